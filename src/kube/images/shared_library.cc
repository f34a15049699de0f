#include "kube/images/shared_library.h"

#include <dlfcn.h>

#include "base/strings.h"

namespace swell::images {

Result<SharedLibrary> SharedLibrary::Open(const char* file, const char* package) {
  SharedLibrary out;
  out.file_ = file;
  out.handle_ = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (out.handle_ == nullptr) {
    return Status(Code::kUnavailable, StrCat("this needs the library ", file,
                                             ", which this machine lacks: apt install ", package));
  }
  return out;
}

void* SharedLibrary::Symbol(const char* name) {
  void* found = ::dlsym(handle_, name);
  if (found == nullptr && missing_.empty()) missing_ = name;
  return found;
}

Status SharedLibrary::Check() const {
  if (missing_.empty()) return Status::Ok();
  return Status(Code::kUnavailable,
                StrCat("the library ", file_, " is too old: it has no ", missing_));
}

}  // namespace swell::images
