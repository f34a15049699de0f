// NvmlLibrary: NVIDIA's management library, loaded at run time and called by the names of its
// stable C interface.
// - Threads: one; a call may block for as long as the driver does.
#pragma once

#include <dlfcn.h>

#include <string>

namespace swell::process {

class NvmlLibrary {
 public:
  static constexpr int kMissing = -1;  // the library lacks the function

  explicit NvmlLibrary(const std::string& name) : handle_(::dlopen(name.c_str(), RTLD_NOW)) {}
  ~NvmlLibrary() {
    if (handle_ != nullptr) ::dlclose(handle_);
  }
  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;
  bool loaded() const { return handle_ != nullptr; }

  // Calls a function by name; its NVML code, or kMissing.
  template <class... Args>
  int Call(const char* name, Args... args) {
    auto function = reinterpret_cast<int (*)(Args...)>(::dlsym(handle_, name));
    return function == nullptr ? kMissing : function(args...);
  }

 private:
  void* handle_;
};

}  // namespace swell::process
