// RegistriesConfig: how registries are reached, from DIR/registries.yaml.
//
//   registries:
//   - host: registry.example.com:5000   # as image names have it; docker.io for Docker's
//     mirrors: [http://mirror:5000]     # asked first, in this order
//     ca: /etc/ssl/example.pem          # trusted instead of the machine's authorities
//     insecure: true                    # any certificate will do, and so will plain HTTP
//
// A registry on this machine's loopback that is not listed is asked over plain HTTP.
//
// - Threads: immutable after it is loaded.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace swell::images {

// One place to ask: the registry itself or a mirror.
struct Endpoint {
  std::string url;  // https://registry-1.docker.io
  std::string ca_file;
  bool insecure = false;
  bool mirror = false;
  bool listed = false;  // in the file: an administrator chose it
};

class RegistriesConfig {
 public:
  // A file that does not exist is an empty one. kInvalid names file, entry and field.
  static Result<RegistriesConfig> Load(const std::string& file);

  // The mirrors of a registry, then the registry.
  std::vector<Endpoint> EndpointsOf(const std::string& host) const;

 private:
  struct Entry {
    std::string host;
    std::vector<std::string> mirrors;
    std::string ca_file;
    bool insecure = false;
  };
  std::vector<Entry> entries_;
};

}  // namespace swell::images
