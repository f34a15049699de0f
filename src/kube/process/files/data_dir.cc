#include "kube/process/files/data_dir.h"

#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include "base/file.h"
#include "base/random.h"

namespace swell::process {

Result<std::string> PrepareDataDir(const std::string& path) {
  SWELL_RETURN_IF_ERROR(MakeDirs(path));
  char* real = ::realpath(path.c_str(), nullptr);
  if (real == nullptr) return ErrnoStatus(errno, "data directory " + path);
  std::string out = real;
  ::free(real);
  return out;
}

std::string TagOf(const std::string& data_dir) {
  static constexpr char kDigits[] = "0123456789abcdef";
  const uint64_t hash = StableHash(data_dir);
  std::string tag;
  for (int i = 0; i < 6; ++i) tag += kDigits[(hash >> (4 * i)) & 15];
  return tag;
}

}  // namespace swell::process
