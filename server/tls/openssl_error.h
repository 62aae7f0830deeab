#pragma once

#include <string>

namespace switchyard {

// What OpenSSL last complained about in this thread, and forgets it: "bad base64 decode".
std::string TakeOpensslError();

}  // namespace switchyard
