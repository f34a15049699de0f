// ScriptChecks: the programs of a folder as checks of a node. Exit code 0 is good, 1 is bad, any
// other is unknown; the first line of the output is the message. A bad script whose line begins
// with "gpu N:" blames that GPU alone.
// - Threads: one, which blocks while a script runs; Stop may be called from any thread.
// - Invariants: bounded in scripts, in the time of each, and in the output that is kept.
#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "kube/node/runtime/health_source.h"

namespace swell::process {

class ScriptChecks {
 public:
  static constexpr size_t kScriptsMax = 32;
  static constexpr size_t kLineMax = 200;
  static constexpr Duration kLimit = std::chrono::seconds(10);

  // `data_dir` is what the scripts find in SWELL_DATA_DIR.
  ScriptChecks(std::string dir, std::string data_dir, Duration limit = kLimit)
      : dir_(std::move(dir)), data_dir_(std::move(data_dir)), limit_(limit) {}

  // `node` is what the scripts find in NODE_NAME.
  std::vector<node::HealthReport> Run(const std::string& node);
  // The script that runs is killed, and no more are started.
  void Stop() { stopped_ = true; }

  // "ib-port.sh" → "IbPortHealthy"; empty: the name has no letter or digit.
  static std::string TypeOf(std::string_view file);

 private:
  struct End {
    int exit_code = -1;   // -1: it did not end by itself
    std::string problem;  // why it did not
    bool started = true;
    std::string output;
  };
  node::HealthReport RunOne(const std::string& file, const std::string& node);
  End Execute(const std::string& path, const std::string& node);
  End Await(int pid, int output);

  std::string dir_, data_dir_;
  Duration limit_;
  std::atomic<bool> stopped_ = false;
};

}  // namespace swell::process
