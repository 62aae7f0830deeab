#include <iostream>
#include <memory>
#include <string>

#include "base/log.h"
#include "server/serve.h"
#include "tests/server/running_server.h"

// `switchyard serve` as it is, of a model whose load takes until a line comes on standard input.

namespace switchyard {
namespace {

StatusOr<std::unique_ptr<LoadedModel>> LoadWhenTold(
    const std::filesystem::path& /*folder*/, const LoadOptions& /*options*/
) {
  std::string line;
  if (!std::getline(std::cin, line)) {
    return FailedPrecondition("standard input ended before it brought a line");
  }
  return MakeFakeModel({'a'}, {});
}

int Main() {
  InitializeLog();
  ServeOptions options;
  options.server.listen_address = "127.0.0.1:0";
  options.server.http.listen_address = "127.0.0.1:0";
  const Status status = RunServer(options, LoadWhenTold);
  if (!status.ok()) {
    std::cerr << "error: " << MessageOf(status) << std::endl;
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace switchyard

int main() {
  return switchyard::Main();
}
