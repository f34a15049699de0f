// SecretBox: bytes that only a holder of the key can read, and that nobody else can change
// (AES-256-GCM).
//
// A box is nonce (12 bytes, random), ciphertext and tag (16 bytes). `context` is not in the box: it
// says what the box is for, and a box of another context does not open.
//
// - Threads: pure functions, except that randomness comes from the system.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace swell::net {

inline constexpr size_t kSecretKeyBytes = 32;

// `count` random bytes.
Result<std::string> RandomBytes(size_t count);
Result<std::string> SealBytes(std::string_view key,
                              std::string_view plain,
                              std::string_view context);
// kUnauthorized: another key, another context, or bytes that were changed.
Result<std::string> OpenBytes(std::string_view key,
                              std::string_view sealed,
                              std::string_view context);
// A key from what a person remembers (scrypt): takes a tenth of a second and 64 MiB.
Result<std::string> KeyFromPassphrase(std::string_view passphrase, std::string_view salt);

}  // namespace swell::net
