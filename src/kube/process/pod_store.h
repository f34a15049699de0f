// PodStore: the directories of pods and containers, and what is known of each.
//
// Below the data directory:
//   pods/UID/pod.json                    the sandbox; present as long as the pod is
//   pods/UID/etc/{hosts,hostname,resolv.conf}, pods/UID/run/{notice,report}, pods/UID/volumes/NAME
//   pods/UID/containers/NAME/ATTEMPT/    spec.json, state.json, exit.json, upper layer, tmp
//   pods/UID/logs/NAME/ATTEMPT.log
//   kept-logs/JOB_UID/UID/logs           of pods that are gone while their job is not
//   checkpoints/NAMESPACE/GROUP          shared by all incarnations of a job's pods, kept
//   volumes/KEY                          of claims without a volume of their own, kept
//   ready/                               directories for pods and containers to come
//   removed/                             trash: what is about to be deleted
//
// - Threads: the I/O thread. Blocking file operations are short and local.
// - Ownership: the reactor whose watches are in the records outlives the store.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "kube/net/reactor/reactor.h"
#include "kube/node/runtime/runtime.h"
#include "kube/process/background/kept_logs.h"
#include "kube/process/background/ready_dirs.h"
#include "kube/process/background/remover.h"
#include "kube/process/shim/shim_spec.h"

namespace swell::process {

// The newest attempt of a container that was started.
struct ProcessContainer {
  node::ContainerRef ref;
  std::string dir;
  std::string log_path;
  ShimState state;
  node::ContainerStarted started;
  int stop_signal = 0;  // of its image, in place of SIGTERM
  std::optional<node::ContainerExit> exit;
  bool running = false;
  UniqueFd shim_fd, init_fd;                 // pidfds
  std::unique_ptr<net::FdWatch> shim_watch;  // before shim_fd in its end
  std::vector<std::function<void()>> when_ended;
};

struct PodVolume {
  std::string path;  // on the host
  ShimMount::Owners owners = ShimMount::Owners::kPod;
  bool of_host = false;  // a path that the pod itself names
  bool scratch = false;  // an emptyDir: nobody else's
};

struct ProcessPod {
  node::SandboxSpec spec;
  node::SandboxInfo info;
  int slot = 0;  // of the network; 0: none
  std::string dir;
  std::map<std::string, PodVolume> volumes;  // by name
  bool own_users = false;                    // has the user namespace of its network's slot
  std::map<std::string, std::unique_ptr<ProcessContainer>> containers;
  std::shared_ptr<void> report_watch;
  bool stopped = false;
  std::function<void(const Status&)> on_removed;

  bool running() const;
  std::string ContainerDir(const node::ContainerRef& ref) const;
  std::string LogPath(const node::ContainerRef& ref) const;
};

// Where the tag's directories in memory are.
inline std::string MemoryRootOf(const std::string& tag) { return "/dev/shm/swell-" + tag; }

class PodStore {
 public:
  struct Options {
    std::string data_dir;
    std::string tag;  // tells memory directories of several data directories apart
    Isolation isolation = Isolation::kNone;
    size_t ready_dirs = 4;
    bool keep_logs = false;                           // of jobs' pods that are gone
    std::function<void(std::function<void()>)> post;  // to the I/O thread
  };
  using Pods = std::map<std::string, std::unique_ptr<ProcessPod>>;  // by uid

  explicit PodStore(Options options);

  // Empties the trash and loads the pods that earlier runs left. Containers are loaded with their
  // state, but neither as running nor as exited.
  Status Start();
  // Makes directories for pods and containers to come.
  void Refill();
  // Removes everything that is of no pod.
  void Finish();

  Pods& pods() { return pods_; }
  const Pods& pods() const { return pods_; }
  ProcessPod* Find(const std::string& uid) const;
  ProcessContainer* Find(const node::ContainerRef& ref) const;

  // Makes the pod's directory and volumes, and adds it. `resolv_conf` is the file's text.
  Result<ProcessPod*> Create(const node::SandboxSpec& spec, const std::string& resolv_conf);
  Status WriteHosts(const ProcessPod& pod) const;
  Status Save(const ProcessPod& pod) const;
  // Makes the directory of an attempt, and frees the scratch space of the attempt before.
  Status CreateContainerDir(const ProcessPod& pod, const node::ContainerRef& ref);
  // The directory that all incarnations of the pod's job share. `other_user`: one who is not root
  // writes there.
  Result<std::string> MakeCheckpointDir(const ProcessPod& pod, bool other_user) const;
  // Frees the scratch space of all containers. Failures are tried again when the pod is removed.
  void DiscardScratch(const ProcessPod& pod);
  // Keeps the logs of a job's pod.
  Status DiscardDir(const ProcessPod& pod);

  const std::string& data_dir() const { return options_.data_dir; }
  // In memory, for volumes.
  std::string MemoryDir(const std::string& uid) const;
  // What the pod's containers share as /dev/shm.
  std::string SharedMemoryDir(const std::string& uid) const { return MemoryDir(uid) + "/.shm"; }
  bool IsInMemory(const ProcessPod& pod, const PodVolume& volume) const;
  // Makes the pod's own ids, which begin with `first_id`, the owners of its folders in memory.
  // Before Linux 6.3 a user namespace cannot translate owners there. These folders end with the
  // pod, so nobody else needs to own them.
  Status GiveMemory(ProcessPod& pod, int64_t first_id) const;
  // Where all of them are: no container sees it.
  std::string MemoryRoot() const { return MemoryRootOf(options_.tag); }
  // `kept_of` as in node::LogOptions.
  Result<std::string> LogPath(const node::ContainerRef& ref, const std::string& kept_of) const;
  KeptLogs& kept_logs() { return kept_logs_; }

 private:
  Status MakePrivateDir(const std::string& dir) const;
  Status Load(const std::string& uid, const std::string& text);
  void LoadContainer(ProcessPod& pod, const std::string& name);
  Status MakeFiles(ProcessPod& pod, const std::string& resolv_conf);
  Status MakeInMemory(const std::string& dir, int64_t size_bytes) const;
  void DiscardScratch(const std::string& container_dir);
  void DiscardMemory(const std::string& uid);
  std::string PodDir(const std::string& uid) const;
  std::string ReadyDir() const;
  std::string TrashDir() const;
  std::string MemoryTrashDir() const;

  Options options_;
  Remover remover_;
  KeptLogs kept_logs_;
  ReadyDirs pod_dirs_, container_dirs_;
  Pods pods_;
};

// Where a container finds the files that swell makes for it.
inline constexpr std::string_view kOwnDir = "/run/swell";

// The pods below the data directory that have a container that runs, of this run or an earlier one:
// "NAMESPACE/NAME".
std::vector<std::string> RunningPods(const std::string& data_dir);

// "process://UID-NAME-ATTEMPT".
std::string ContainerIdOf(const node::ContainerRef& ref);
// The name of the container's control group.
std::string CgroupNameOf(const node::ContainerRef& ref);
// How the container ended, from the files that its shim left.
node::ContainerExit ReadExit(const ProcessContainer& container, WallTime now);
// Reads its last words: its termination file, and the end of its log if it failed.
void ReadLastWords(const ProcessContainer& container, node::ContainerExit& exit);

}  // namespace swell::process
