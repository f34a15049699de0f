// GpuCheck: the health of this machine's GPUs, from NVIDIA's management library: whether the driver
// still reaches them, uncorrectable memory errors, rows that cannot be remapped, NVLinks that went
// down, clocks slowed by heat or power, and the driver's serious error events (XID).
// - Threads: as MachineCheck.
// - Ownership: the clock outlives it.
// - Invariants: a serious XID counts for kXidTime, since the driver reports it once and what it did
//   to the GPU the other checks find. It counts until the GPU was reset or the program starts again
//   once there were kXidsMax within kXidWindow.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "kube/process/machine/machine_check.h"
#include "kube/process/machine/nvml_library.h"

namespace swell::process {

class GpuCheck final : public MachineCheck {
 public:
  // `uuids`: the node's devices, in their order.
  GpuCheck(Clock& clock, std::vector<std::string> uuids, std::string library = "libnvidia-ml.so.1");
  ~GpuCheck() override;
  node::HealthReport Run() override;

  static constexpr Duration kXidTime = std::chrono::minutes(10);
  static constexpr Duration kXidWindow = std::chrono::hours(24);
  static constexpr size_t kXidsMax = 3;

 private:
  struct Fault {
    std::string reason, message;  // empty: none
    bool certain = false;
  };
  struct Gpu {
    std::string uuid;
    void* device = nullptr;
    bool events = false;  // registered
    Fault xid;
    std::deque<SteadyTime> xids;  // when the last of them were reported; empty: none counts
    bool lost = false;
    uint32_t links = 0;  // those that were up when the check began
    bool links_known = false;
  };

  // Empty: the driver answers.
  std::string Open();
  void ReadEvents();
  void OnXid(void* device, uint64_t xid);
  Fault FaultOf(Gpu& gpu);
  Fault XidFault(Gpu& gpu) const;
  Fault MemoryFault(const Gpu& gpu);
  Fault ClockFault(const Gpu& gpu);
  Fault LinkFault(Gpu& gpu);
  node::HealthReport AllBad(const std::string& why) const;

  Clock& clock_;
  std::string name_;
  std::vector<Gpu> gpus_;
  std::unique_ptr<NvmlLibrary> library_;
  bool open_ = false;
  void* event_set_ = nullptr;
};

}  // namespace swell::process
