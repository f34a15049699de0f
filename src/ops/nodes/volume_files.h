// VolumeFiles: the directories of volumes that the nodes of `swell up` share, removed when the
// volumes are.
// - Threads: the core thread; a thread of its own removes.
// - Ownership: made after the runtime, which forks.
#pragma once

#include <string>

#include "kube/process/background/remover.h"
#include "ops/data_dir.h"

namespace swell::ops {

class VolumeFiles {
 public:
  // Also removes what an earlier run left.
  explicit VolumeFiles(DataDir dir);
  // `handle`: the agents' name of the volume, NAMESPACE/CLAIM. A failure is logged.
  void Remove(const std::string& handle);
  // Waits until all that was removed is gone from the disk.
  void Finish() { remover_.Finish(); }

 private:
  const DataDir dir_;
  process::Remover remover_;
};

}  // namespace swell::ops
