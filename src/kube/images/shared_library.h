// SharedLibrary: a library that is opened when it is first needed: this program is also every
// container's shim, whose start must not pay for what only pulls use.
// - Threads: plain values; a library stays open for the life of the process.
#pragma once

#include <string>

#include "base/result.h"

namespace swell::images {

class SharedLibrary {
 public:
  // kUnavailable names the package that is missing.
  static Result<SharedLibrary> Open(const char* file, const char* package);

  // Sets the pointer to a function of the library; remembers the first that is missing.
  template <class Function>
  void Find(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(Symbol(name));
  }
  // Whether everything was found.
  Status Check() const;

 private:
  void* Symbol(const char* name);

  void* handle_ = nullptr;
  std::string file_;
  std::string missing_;
};

}  // namespace swell::images
