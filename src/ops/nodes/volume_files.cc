#include "ops/nodes/volume_files.h"

#include <utility>

#include "base/log.h"
#include "base/strings.h"

namespace swell::ops {

VolumeFiles::VolumeFiles(DataDir dir) : dir_(std::move(dir)) {
  remover_.Empty(dir_.RemovedVolumesDir());
}

void VolumeFiles::Remove(const std::string& handle) {
  const std::string path = StrCat(dir_.path, "/volumes/", handle);
  const Status removed = remover_.Discard(path, dir_.RemovedVolumesDir());
  if (removed.ok()) return;
  SWELL_LOG_WARNING("cluster", "volume not removed", {"error", removed.ToString()});
}

}  // namespace swell::ops
