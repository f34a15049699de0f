#include "kube/process/machine/nvml.h"

#include <dlfcn.h>

#include "base/strings.h"

namespace swell::edge {
namespace {

// The parts of NVML's stable C interface that are used here.
using Device = void*;
struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

constexpr unsigned kTextMax = 96;
constexpr unsigned kGpusMax = 1024;

class Library {
 public:
  explicit Library(const std::string& name) : handle_(::dlopen(name.c_str(), RTLD_NOW)) {}
  ~Library() {
    if (handle_ != nullptr) ::dlclose(handle_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  bool loaded() const { return handle_ != nullptr; }

  // Calls a function by name; its NVML code, or -1 when the library lacks it.
  template <class... Args>
  int Call(const char* name, Args... args) {
    auto function = reinterpret_cast<int (*)(Args...)>(::dlsym(handle_, name));
    return function == nullptr ? -1 : function(args...);
  }

 private:
  void* handle_;
};

}  // namespace

GpuInventory DiscoverGpus(const std::string& name) {
  GpuInventory found;
  Library library(name);
  if (!library.loaded()) {
    found.why_none = StrCat("no NVIDIA driver: ", name, " cannot be loaded");
    return found;
  }
  int code = library.Call("nvmlInit_v2");
  if (code != 0) {
    found.why_none = StrCat("the NVIDIA driver does not answer: NVML error ", code);
    return found;
  }
  char text[kTextMax] = {};
  if (library.Call("nvmlSystemGetDriverVersion", &text[0], kTextMax) == 0) {
    found.driver_version = text;
  }
  unsigned count = 0;
  library.Call("nvmlDeviceGetCount_v2", &count);
  for (unsigned i = 0; i < count && i < kGpusMax; ++i) {
    Device device = nullptr;
    if (library.Call("nvmlDeviceGetHandleByIndex_v2", i, &device) != 0) continue;
    GpuInfo gpu;
    gpu.index = static_cast<int>(i);
    if (library.Call("nvmlDeviceGetUUID", device, &text[0], kTextMax) == 0) gpu.uuid = text;
    if (library.Call("nvmlDeviceGetName", device, &text[0], kTextMax) == 0) gpu.name = text;
    Memory memory = {};
    if (library.Call("nvmlDeviceGetMemoryInfo", device, &memory) == 0) {
      gpu.memory_bytes = static_cast<int64_t>(memory.total);
    }
    found.gpus.push_back(std::move(gpu));
  }
  if (found.gpus.empty()) found.why_none = "the NVIDIA driver finds no GPU";
  library.Call("nvmlShutdown");
  return found;
}

}  // namespace swell::edge
