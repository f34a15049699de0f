#include "base/secret.h"

#include <sys/random.h>

#include "base/check.h"

namespace swell {

std::string RandomSecret() {
  unsigned char bytes[32];
  SWELL_CHECK(::getrandom(bytes, sizeof bytes, 0) == sizeof bytes);
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (unsigned char byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace swell
