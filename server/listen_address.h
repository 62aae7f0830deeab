#pragma once

#include <string>

#include "base/status.h"

namespace switchyard {

struct HostAndPort {
  std::string host;  // an IPv6 address without its brackets
  int port = 0;
};

// HOST:PORT or [IPV6]:PORT with a port in 0..65535; else INVALID_ARGUMENT.
StatusOr<HostAndPort> ParseHostAndPort(const std::string& address);

}  // namespace switchyard
