// FakeNvml: what the fake of NVIDIA's management library answers; tests change it through the
// library's function `fake_nvml`.
// - Threads: the test's thread.
#pragma once

#include <array>

namespace swell::process {

struct FakeGpu {
  char uuid[32] = {};
  int handle_code = 0;  // of nvmlDeviceGetHandleByUUID
  unsigned long long ecc_errors = 0;
  unsigned remap_pending = 0, remap_failed = 0;
  unsigned long long throttle = 0;
  unsigned links_up = 0;       // bits
  unsigned long long xid = 0;  // reported once
  bool watched = false;        // its events are registered
};

struct FakeNvml {
  int init_code = 0;
  int inits = 0, shutdowns = 0;
  std::array<FakeGpu, 2> gpus;
};

}  // namespace swell::process
