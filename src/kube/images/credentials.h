// Credentials for registries, as `kubectl create secret docker-registry` stores them.
// - Threads: pure functions and plain values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kube/images/reference.h"

namespace swell::images {

struct Credential {
  std::string registry;  // as the secret has it: HOST, HOST/PATH, https://HOST/v1/, *.HOST
  std::string user;
  std::string password;
  std::string identity_token;  // exchanged for access tokens, where the registry gave one

  // Tells credentials apart without showing them.
  std::string Fingerprint() const;
};

// The text of a Secret's .dockerconfigjson, or of ~/.docker/config.json. kInvalid says what is
// wrong without quoting what is secret.
Result<std::vector<Credential>> ParseDockerConfig(std::string_view text);

// Those that are for the image: the longest path first, then the order they have.
std::vector<Credential> MatchCredentials(const std::vector<Credential>& all,
                                         const Reference& image);

}  // namespace swell::images
