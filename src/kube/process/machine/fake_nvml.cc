// The functions of NVML that GpuCheck and DiscoverGpus call.
#include "kube/process/machine/fake_nvml.h"

#include <cstring>

namespace {

using swell::process::FakeGpu;

swell::process::FakeNvml state;

struct EventData {
  void* device;
  unsigned long long type;
  unsigned long long data;
  unsigned gpu_instance, compute_instance;
};

constexpr int kNotFound = 6;
constexpr int kTimeout = 10;
constexpr unsigned kLinks = 4;

FakeGpu& Of(void* device) { return *static_cast<FakeGpu*>(device); }

}  // namespace

extern "C" {

swell::process::FakeNvml* fake_nvml() { return &state; }

int nvmlInit_v2() {
  state.inits += state.init_code == 0;
  return state.init_code;
}
int nvmlShutdown() {
  ++state.shutdowns;
  return 0;
}
int nvmlEventSetCreate(void** set) {
  *set = &state;
  return 0;
}
int nvmlEventSetFree(void*) { return 0; }
int nvmlDeviceRegisterEvents(void* device, unsigned long long, void*) {
  Of(device).watched = true;
  return 0;
}
int nvmlEventSetWait_v2(void*, EventData* event, unsigned) {
  for (FakeGpu& gpu : state.gpus) {
    if (gpu.xid == 0 || !gpu.watched) continue;
    *event = {&gpu, 0x8, gpu.xid, 0, 0};
    gpu.xid = 0;
    return 0;
  }
  return kTimeout;
}
int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  for (FakeGpu& gpu : state.gpus) {
    if (std::strcmp(gpu.uuid, uuid) != 0) continue;
    *device = &gpu;
    return gpu.handle_code;
  }
  return kNotFound;
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  std::strncpy(text, Of(device).uuid, size);
  return 0;
}
int nvmlDeviceGetTotalEccErrors(void* device, int, int, unsigned long long* count) {
  *count = Of(device).ecc_errors;
  return 0;
}
int nvmlDeviceGetRemappedRows(
    void* device, unsigned* corrected, unsigned* uncorrected, unsigned* pending, unsigned* failed) {
  *corrected = *uncorrected = 0;
  *pending = Of(device).remap_pending;
  *failed = Of(device).remap_failed;
  return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* reasons) {
  *reasons = Of(device).throttle;
  return 0;
}
int nvmlDeviceGetNvLinkState(void* device, unsigned link, unsigned* active) {
  if (link >= kLinks) return kNotFound;
  *active = (Of(device).links_up >> link) & 1U;
  return 0;
}

}  // extern "C"
