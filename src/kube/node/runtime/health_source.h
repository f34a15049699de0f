// HealthSource: what the checks of a node find. kube/process has those of this machine.
// - Threads: called on the core executor, and calls back there.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace swell::node {

enum class Verdict { kGood, kBad, kUnknown };

struct GpuFault {
  int index = 0;  // of the node's devices
  std::string message;
};

// What one check found: a condition of the node. With `gpus` it blames these devices alone.
struct HealthReport {
  std::string type;  // "DiskHealthy"
  Verdict verdict = Verdict::kGood;
  std::string reason;    // "ReadOnly"
  std::string message;   // one line
  bool certain = false;  // one bad result is enough
  std::vector<GpuFault> gpus;
};

class HealthSource {
 public:
  using Done = std::function<void(std::vector<HealthReport> reports)>;

  virtual ~HealthSource() = default;
  // Runs the checks of the node once. `done` may come much later, or never when the source ends.
  virtual void Check(const std::string& node, Done done) = 0;
};

}  // namespace swell::node
