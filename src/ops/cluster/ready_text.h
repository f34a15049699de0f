// ReadyText: what `swell up` prints once its cluster answers.
// - Threads: the main thread; reads the cluster's directory.
#pragma once

#include <string>

#include "ops/data_dir.h"

namespace swell::ops {

struct ClusterUrls {
  std::string server;
  std::string pages;  // empty: the cluster has none

  // As one line, for the process that waits for a cluster in the background.
  std::string Print() const;
  static ClusterUrls Parse(const std::string& line);
};

// `runtime`: the value of --runtime. `before`: the server's URL at the last start, if there was
// one.
std::string ReadyText(const DataDir& dir,
                      const std::string& runtime,
                      const ClusterUrls& urls,
                      const std::string& before);

}  // namespace swell::ops
