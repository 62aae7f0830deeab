#pragma once

#include <httplib.h>

#include <string>

namespace switchyard {

// The HTTP library without its connections: what it makes of a request, as text. Thread-safe once
// all pages are added.
class PageServer final : public httplib::Server {
 public:
  // The response to a request that consists of `head` alone. Does not throw.
  std::string Answer(const std::string& head, const std::string& host);
};

}  // namespace switchyard
