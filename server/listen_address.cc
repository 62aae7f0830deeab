#include "server/listen_address.h"

#include <algorithm>
#include <cstddef>

namespace switchyard {

StatusOr<HostAndPort> ParseHostAndPort(const std::string& address) {
  const size_t colon = address.rfind(':');
  const std::string port = colon == std::string::npos ? "" : address.substr(colon + 1);
  const bool is_number =
      !port.empty() && port.size() <= 5 && std::all_of(port.begin(), port.end(), [](char letter) {
        return letter >= '0' && letter <= '9';
      });
  if (colon == 0 || !is_number || std::stoi(port) > 65535) {
    return InvalidArgument(
        "listen address is \"",
        address,
        "\"; give HOST:PORT with a port in 0..65535, such as 0.0.0.0:50051"
    );
  }
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  return HostAndPort{.host = host, .port = std::stoi(port)};
}

}  // namespace switchyard
