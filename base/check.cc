#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace switchyard {

CheckFailure::CheckFailure(const char* condition, const char* file, int line) {
  stream_ << file << ":" << line << ": CHECK(" << condition << ") failed ";
}

CheckFailure::~CheckFailure() {
  std::fprintf(stderr, "%s\n", stream_.str().c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace switchyard
