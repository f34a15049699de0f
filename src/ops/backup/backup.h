// Backup and restore of an embedded cluster as one file.
//
// The file is a tar archive: backup.json (format, version and checksums of the other parts),
// swell.db (the store at one instant), pki/ (so that kubeconfigs and tokens stay valid), port and
// images.yaml. Data written by pods (volumes, checkpoints) is not included.
//
// With a passphrase, all keys in pki/ are encrypted with it, and so the Secrets with one of them.
// Without one the file has no Secrets, nor the key that they are encrypted with.
//
// - Threads: main thread; blocks on files, and on the cluster if it runs.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "ops/data_dir.h"

namespace swell::ops {

// Receives lines of progress for the user.
using PrintLine = std::function<void(std::string_view)>;

// Writes the cluster in `dir`, running or stopped, to `file`. kNotFound if there is no cluster.
// An empty passphrase: without one.
Status Backup(const DataDir& dir,
              const std::string& file,
              const std::string& passphrase,
              const PrintLine& print);
enum class ClusterThere { kIsKept, kIsReplaced };
// Makes the cluster in `file` the one in `dir`. kConflict if a cluster runs in `dir`, or is there
// and is to be kept. A damaged file changes nothing.
Status Restore(const DataDir& dir,
               const std::string& file,
               ClusterThere there,
               const std::string& passphrase,
               const PrintLine& print);

}  // namespace swell::ops
