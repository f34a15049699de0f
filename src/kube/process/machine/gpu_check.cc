#include "kube/process/machine/gpu_check.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/strings.h"

namespace swell::process {
namespace {

using node::HealthReport;
using node::Verdict;

// Numbers of NVML's interface.
constexpr int kOk = 0;
constexpr int kNotFound = 6;
constexpr int kGpuIsLost = 15;
constexpr int kResetRequired = 16;
constexpr int kUncorrected = 1;
constexpr int kSinceDriverLoad = 0;
constexpr unsigned long long kXidEvents = 0x8;
constexpr unsigned long long kHwSlowdown = 0x8;
constexpr unsigned long long kHwThermal = 0x40;
constexpr unsigned long long kHwPowerBrake = 0x80;
constexpr unsigned kLinksMax = 18;
constexpr int kEventsMax = 256;  // of one round
constexpr unsigned kUuidMax = 96;

struct EventData {
  void* device;
  unsigned long long type;
  unsigned long long data;
  unsigned gpu_instance;
  unsigned compute_instance;
};

struct Xid {
  uint64_t number;
  std::string_view what;
};
// Those after which the GPU cannot be relied on. Others are the program's errors, or others name
// the cause.
constexpr std::array<Xid, 12> kSerious = {{{46, "the GPU stopped processing"},
                                           {48, "double-bit memory error"},
                                           {62, "internal micro-controller halt"},
                                           {64, "a memory row could not be remapped"},
                                           {74, "NVLink error"},
                                           {79, "it has fallen off the bus"},
                                           {95, "uncontained memory error"},
                                           {109, "context switch timeout"},
                                           {119, "GSP firmware timeout"},
                                           {120, "GSP firmware error"},
                                           {140, "unrecovered memory error"},
                                           {143, "GPU initialization error"}}};

bool IsLost(int code) { return code == kGpuIsLost || code == kResetRequired || code == kNotFound; }

}  // namespace

GpuCheck::GpuCheck(Clock& clock, std::vector<std::string> uuids, std::string library)
    : clock_(clock), name_(std::move(library)) {
  for (std::string& uuid : uuids) gpus_.push_back({.uuid = std::move(uuid)});
}

GpuCheck::~GpuCheck() {
  if (!open_) return;
  if (event_set_ != nullptr) library_->Call("nvmlEventSetFree", event_set_);
  library_->Call("nvmlShutdown");
}

std::string GpuCheck::Open() {
  if (open_) return "";
  if (!library_) library_ = std::make_unique<NvmlLibrary>(name_);
  if (!library_->loaded()) {
    library_.reset();
    return StrCat(name_, " cannot be loaded any more");
  }
  if (const int code = library_->Call("nvmlInit_v2"); code != kOk) {
    return StrCat("the NVIDIA driver does not answer: NVML error ", code);
  }
  open_ = true;
  if (library_->Call("nvmlEventSetCreate", &event_set_) != kOk) event_set_ = nullptr;
  return "";
}

HealthReport GpuCheck::AllBad(const std::string& why) const {
  HealthReport report{.type = "GpuHealthy", .verdict = Verdict::kBad, .reason = "DriverFailed"};
  for (size_t i = 0; i < gpus_.size(); ++i) report.gpus.push_back({static_cast<int>(i), why});
  return report;
}

HealthReport GpuCheck::Run() {
  if (const std::string why = Open(); !why.empty()) return AllBad(why);
  ReadEvents();
  HealthReport report{.type = "GpuHealthy", .reason = "CheckPassed"};
  report.message = StrCat(gpus_.size(), gpus_.size() == 1 ? " GPU is" : " GPUs are", " well");
  for (size_t i = 0; i < gpus_.size(); ++i) {
    const Fault fault = FaultOf(gpus_[i]);
    if (fault.reason.empty()) continue;
    if (report.gpus.empty()) report.reason = fault.reason;
    report.verdict = Verdict::kBad;
    report.certain |= fault.certain;
    report.gpus.push_back({static_cast<int>(i), fault.message});
  }
  return report;
}

// The driver keeps what happened since the last round.
void GpuCheck::ReadEvents() {
  for (int i = 0; event_set_ != nullptr && i < kEventsMax; ++i) {
    EventData event{};
    if (library_->Call("nvmlEventSetWait_v2", event_set_, &event, 0U) != kOk) return;
    if (event.type == kXidEvents) OnXid(event.device, event.data);
  }
}

void GpuCheck::OnXid(void* device, uint64_t number) {
  const auto known = std::find_if(kSerious.begin(), kSerious.end(),
                                  [number](const Xid& one) { return one.number == number; });
  if (known == kSerious.end()) return;
  char uuid[kUuidMax] = {};
  const bool named = library_->Call("nvmlDeviceGetUUID", device, &uuid[0], kUuidMax) == kOk;
  for (Gpu& gpu : gpus_) {
    if (named ? gpu.uuid != uuid : gpu.device != device) continue;
    gpu.xid = {StrCat("XidError", number),
               StrCat("the driver reported XID ", number, ", ", known->what), true};
    gpu.xids.push_back(clock_.Steady());
    if (gpu.xids.size() > kXidsMax) gpu.xids.pop_front();
  }
}

GpuCheck::Fault GpuCheck::XidFault(Gpu& gpu) const {
  const SteadyTime now = clock_.Steady();
  while (!gpu.xids.empty() && now - gpu.xids.front() > kXidWindow && gpu.xids.size() < kXidsMax) {
    gpu.xids.pop_front();
  }
  if (gpu.xids.empty()) return {};
  Fault fault = gpu.xid;
  if (gpu.xids.size() == kXidsMax && gpu.xids.back() - gpu.xids.front() <= kXidWindow) {
    fault.message += StrCat("; ", kXidsMax,
                            " serious errors within a day: it needs a reset, or an agent that "
                            "starts again");
    return fault;
  }
  return now - gpu.xids.back() < kXidTime ? fault : Fault{};
}

GpuCheck::Fault GpuCheck::FaultOf(Gpu& gpu) {
  const int code = library_->Call("nvmlDeviceGetHandleByUUID", gpu.uuid.c_str(), &gpu.device);
  if (IsLost(code)) {
    gpu.lost = true;
    return {"GpuLost", StrCat("the driver lost it: NVML error ", code), true};
  }
  // It was reset, so what the driver reported before is over.
  if (code == kOk && std::exchange(gpu.lost, false)) gpu.xids.clear();
  if (Fault fault = XidFault(gpu); !fault.reason.empty()) return fault;
  if (code != kOk) return {"DriverFailed", StrCat("the driver answers NVML error ", code)};
  if (!gpu.events && event_set_ != nullptr) {
    gpu.events =
        library_->Call("nvmlDeviceRegisterEvents", gpu.device, kXidEvents, event_set_) == kOk;
  }
  if (Fault fault = MemoryFault(gpu); !fault.reason.empty()) return fault;
  if (Fault fault = LinkFault(gpu); !fault.reason.empty()) return fault;
  return ClockFault(gpu);
}

GpuCheck::Fault GpuCheck::MemoryFault(const Gpu& gpu) {
  unsigned long long errors = 0;
  const int code = library_->Call("nvmlDeviceGetTotalEccErrors", gpu.device, kUncorrected,
                                  kSinceDriverLoad, &errors);
  // A handle may be had of a GPU that does not answer any more.
  if (IsLost(code)) return {"GpuLost", StrCat("the driver lost it: NVML error ", code), true};
  unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
  if (library_->Call("nvmlDeviceGetRemappedRows", gpu.device, &corrected, &uncorrected, &pending,
                     &failed) == kOk) {
    if (failed != 0) return {"RowRemapFailed", "a memory row could not be remapped", true};
    if (pending != 0) {
      return {"RowRemapPending", "a memory row waits for a reset of the GPU to be remapped", true};
    }
  }
  unsigned retired_pending = 0;
  if (library_->Call("nvmlDeviceGetRetiredPagesPendingStatus", gpu.device, &retired_pending) ==
          kOk &&
      retired_pending != 0) {
    return {"RetiredPagesPending", "memory pages wait for a reset of the GPU to be retired", true};
  }
  if (code == kOk && errors > 0) {
    return {"EccErrors", StrCat(errors, " uncorrectable memory errors since the driver was loaded"),
            true};
  }
  return {};
}

GpuCheck::Fault GpuCheck::ClockFault(const Gpu& gpu) {
  unsigned long long reasons = 0;
  if (library_->Call("nvmlDeviceGetCurrentClocksThrottleReasons", gpu.device, &reasons) != kOk) {
    return {};
  }
  if ((reasons & kHwThermal) != 0) return {"ThermalSlowdown", "its clocks are slowed by heat"};
  if ((reasons & kHwPowerBrake) != 0) {
    return {"PowerBrake", "its clocks are slowed by the power supply"};
  }
  if ((reasons & kHwSlowdown) != 0) return {"HardwareSlowdown", "its hardware slows its clocks"};
  return {};
}

GpuCheck::Fault GpuCheck::LinkFault(Gpu& gpu) {
  uint32_t up = 0;
  for (unsigned link = 0; link < kLinksMax; ++link) {
    unsigned active = 0;
    if (library_->Call("nvmlDeviceGetNvLinkState", gpu.device, link, &active) != kOk) break;
    if (active != 0) up |= uint32_t{1} << link;
  }
  if (!std::exchange(gpu.links_known, true)) gpu.links = up;
  const uint32_t down = gpu.links & ~up;
  if (down == 0) return {};
  return {"NvLinkDown", StrCat(__builtin_popcount(down), " of its NVLinks went down")};
}

}  // namespace swell::process
