#include "server/tls/openssl_error.h"

#include <openssl/err.h>

namespace switchyard {

std::string TakeOpensslError() {
  const unsigned long error = ERR_get_error();  // the oldest, which caused the others
  ERR_clear_error();
  const char* const reason = ERR_reason_error_string(error);
  return reason == nullptr ? "no reason given" : reason;
}

}  // namespace switchyard
