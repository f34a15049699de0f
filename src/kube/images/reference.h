// Reference: the name of an image, as Docker reads it: "busybox" is
// docker.io/library/busybox:latest.
// - Threads: pure functions and plain values.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace swell::images {

struct Reference {
  std::string host;    // "docker.io", "localhost:5000"
  std::string path;    // "library/busybox"
  std::string tag;     // "1.36"; "latest" where the name has neither tag nor digest
  std::string digest;  // "sha256:…"; where it is there, it counts and the tag does not

  std::string Repository() const;  // HOST/PATH
  std::string Name() const;        // HOST/PATH:TAG or HOST/PATH@DIGEST
  // What a registry is asked for: the digest, or else the tag.
  const std::string& Wanted() const { return digest.empty() ? tag : digest; }
  bool operator==(const Reference&) const = default;
};

// kInvalid says which part is wrong and why.
Result<Reference> ParseReference(std::string_view text);

// The host and port of a registry's URL, which may lack its scheme; valid while the URL is.
std::string_view HostOf(std::string_view url);

// Whether it is "sha256:" and 64 lower-case hexadecimal digits.
bool IsDigest(std::string_view text);
// The hexadecimal digits of a digest.
std::string_view DigestHex(std::string_view digest);

}  // namespace swell::images
