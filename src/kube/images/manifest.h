// Manifests of images: Docker's schema 2 and OCI's, read from bytes that nobody has checked.
// - Threads: pure functions and plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace swell::images {

constexpr size_t kManifestBytesMax = 4 << 20;
constexpr size_t kConfigBytesMax = 4 << 20;
constexpr size_t kLayersMax = 127;
constexpr size_t kPlatformsMax = 256;

// One blob, or one manifest of an index.
struct Descriptor {
  std::string media_type;
  std::string digest;
  int64_t size = 0;
  std::string os, architecture, variant;  // in an index
  std::string name;                       // annotation of an OCI layout: a tag or a whole name
};

struct Manifest {
  std::string media_type;
  bool is_index = false;
  std::vector<Descriptor> manifests;  // of an index
  Descriptor config;
  std::vector<Descriptor> layers;  // the lowest first
  int64_t LayerBytes() const;
};

// What a container of the image starts as.
struct ImageConfig {
  std::string os, architecture;
  std::vector<std::string> entrypoint;
  std::vector<std::string> cmd;
  std::vector<std::pair<std::string, std::string>> env;
  std::string working_dir;
  std::string user;  // "", "1000", "name", "1000:100", "name:group"
  std::vector<std::string> volumes;
  std::string stop_signal;            // "SIGINT", "2"; empty: SIGTERM
  std::vector<std::string> diff_ids;  // of the layers, unpacked
};

Result<Manifest> ParseManifest(std::string_view bytes);
Result<ImageConfig> ParseConfig(std::string_view bytes);
// Whether the config belongs to the manifest and to this machine.
Status CheckConfig(const Manifest& manifest, const ImageConfig& config);

// "amd64", "arm64": this machine's architecture in Go's words.
std::string HostArchitecture();
// The manifest of an index for Linux on that architecture. kNotFound names those that there are.
Result<Descriptor> ChoosePlatform(const Manifest& index, std::string_view architecture);

// A signal's number by name ("SIGINT", "INT") or number; 0 when there is no such signal.
int SignalNumber(std::string_view text);

}  // namespace swell::images
