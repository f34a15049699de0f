// LeftState: the state that a training process left in memory when it had to leave its GPU. The
// process names the copy in a file of its report directory and exits; the node writes the copy to
// the job's checkpoint folder afterwards. Until then the pod has ended but is not gone, so nobody
// waits for the disk but the job itself.
//
// - Threads: pure functions over the file system. PersistState blocks for as long as the disk
// takes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/process/files/memory_copy.h"
#include "kube/process/pod_store.h"

namespace swell::process {

struct LeftState {
  std::string report_dir, file;  // {"copy": its path below /dev/shm}
  std::string memory_dir;        // what the container has as /dev/shm
};

// The file, in its report directory, by which a container with these mounts may leave its state.
// Empty: its /dev/shm is not the pod's own, so the node would not find what it left there; or no
// job waits for the pod's object to go before it makes the next one, as a batch Job does not.
std::string PersistFileOf(const ProcessPod& pod, const std::vector<node::MountSpec>& mounts);

// What a process of the pod left; nullopt: nothing.
std::optional<LeftState> FindLeftState(const PodStore& store, const ProcessPod& pod);

// Writes it to the checkpoint folder. An error says why it is lost, unless MayBeTriedAgain(). If
// the agent is killed meanwhile, the state is found again, at most twice.
Status PersistState(const LeftState& left, const std::string& folder, WriteProgress& progress);

// Whether the state is still there after this error, and a later try may succeed. It stays there
// until DropLeftState().
bool MayBeTriedAgain(const Status& status);
void DropLeftState(const LeftState& left);

}  // namespace swell::process
