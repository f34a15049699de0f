// ShimSpec, ShimState, ShimExit: what a runtime and a pod shim tell each other, as three JSON files
// in the container's directory.
//
//   spec.json   written by the runtime before the shim starts
//   state.json  written by the shim once the command runs: process ids with their start times
//   exit.json   written by the shim when it has ended; its presence is the end
//
// Each is replaced whole, so a reader never sees half of one.
//
// - Threads: values and pure functions.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace swell::process {

// A process, beyond the reuse of its id.
struct ProcessId {
  pid_t pid = 0;
  uint64_t start = 0;  // /proc/PID/stat's start time
};

// How far a container is kept apart from the host.
enum class Isolation {
  kFull,  // root: namespaces, an overlay root, a network of its own
  kUser,  // a user namespace: the same without a network
  kNone,  // plain processes
};
std::string_view IsolationName(Isolation isolation);

struct ShimMount {
  enum class Kind { kBind, kTmpfs };
  Kind kind = Kind::kBind;
  std::string source;  // kBind: a path of the host
  std::string target;  // absolute, in the container
  bool read_only = false;
  int64_t size_bytes = 0;  // kTmpfs; 0: the kernel's default
  // kBind: what of `source` is meant, which pods may have filled with links; empty: all of it.
  std::string sub_path = {};
  // The owners of the files in a container with a user namespace.
  enum class Owners {
    kNobody,  // those of the host: what anybody may read can be read
    kPod,     // as on disk: root's are the container's root's
    kUser,    // as on disk for the container's user and groups, who are not root; else nobody's
    kMade,    // the pod's own ids, without translation: for files that end with the pod
  };
  Owners owners = Owners::kNobody;
  bool of_host = false;  // a path that a user named: it shows nothing of `hidden`
};
// `number`: as in the JSON form; unknown numbers mean kNobody.
ShimMount::Owners OwnersFromJson(int64_t number);

// A program of the machine that prepares the container's files.
struct ShimHook {
  std::string path;
  std::vector<std::string> args;  // the first is its name
  std::vector<std::string> env;
  int64_t timeout_s = 10;
};

struct CgroupDir {
  std::string path;
  std::vector<std::pair<std::string, std::string>> values;  // file → content, in order
  std::vector<std::string> devices = {};  // that may be opened (device_filter.h); empty: all
};

struct ShimSpec {
  std::vector<std::string> argv;
  std::vector<std::string> env;  // NAME=value, no name twice
  std::string cwd;               // made when it is missing
  std::optional<int64_t> uid;
  std::optional<int64_t> gid;
  std::vector<int64_t> groups;
  Isolation isolation = Isolation::kNone;
  // The first process of another container, whose process namespace it enters; without one it has
  // its own. For kFull.
  std::optional<ProcessId> beside;
  std::string hostname;
  std::string netns;                // path of a network namespace; empty: the host's
  std::vector<std::string> hidden;  // directories of the host that no container sees
  bool host_tmp = false;
  // The root is the image with these layers, the lowest first, and not the host's.
  bool has_image = false;
  std::vector<std::string> image_layers;
  std::vector<std::string> image_volumes;  // writable, whatever the root is
  int stop_signal = 0;                     // sent in place of SIGTERM; 0: SIGTERM
  bool read_only_root = false;
  bool confined = false;       // false: written by a version that confined nothing
  std::string user_namespace;  // its path; empty: the shim's own
  int64_t first_id = 0;        // the machine's id of the container's root
  uint64_t capabilities = 0;   // a bit each: what it may hold at most
  bool no_new_privileges = false;
  std::string seccomp_file;  // the filter of system calls; empty: none
  std::string app_armor;     // the name of a profile; empty: none
  bool privileged = false;   // the host's devices, and a /sys that can be written
  bool unmasked_proc = false;
  bool host_pid = false;
  bool host_ipc = false;
  // Nodes beyond the usual ones: path on the host, in the container.
  std::vector<std::pair<std::string, std::string>> devices;
  std::vector<ShimHook> hooks;
  std::vector<std::pair<std::string, std::string>> sysctls;
  std::vector<ShimMount> mounts;
  std::vector<CgroupDir> cgroups;
  // Above them: of the pod as a whole. They are made, and stay for its other containers.
  std::vector<CgroupDir> pod_cgroups;
  std::string oom_file;  // a cgroup file with a line "oom_kill N"
  int oom_score = 0;     // from 0 to 1000: how soon the kernel kills it where memory is short
  std::string log_path;
  int64_t log_bytes_max = 10 << 20;
  int log_files_max = 5;
  bool open_stdin = false;  // for clients that attach
  bool stdin_once = false;  // until the first of them leaves
  bool tty = false;

  json::Value ToJson() const;
  static Result<ShimSpec> FromJson(const json::Value& value);
  // Whether all processes of a process namespace are the container's, and end with its first.
  bool own_pids() const { return isolation != Isolation::kNone && !beside && !host_pid; }
};

// DIR/spec.json.
Result<ShimSpec> ReadShimSpec(const std::string& dir);

struct ShimState {
  pid_t shim_pid = 0;
  uint64_t shim_start = 0;  // /proc/PID/stat's start time: defeats the reuse of process ids
  pid_t init_pid = 0;       // the container's first process, in the host's numbering
  uint64_t init_start = 0;
  int64_t started_ns = 0;  // Unix time
  bool own_pids = false;   // ShimSpec::own_pids()

  json::Value ToJson() const;
  static Result<ShimState> FromJson(const json::Value& value);
};
// DIR/state.json.
Result<ShimState> ReadShimState(const std::string& dir);

struct ShimExit {
  int code = 0;
  int signal = 0;
  bool oom = false;
  int64_t started_ns = 0;
  int64_t finished_ns = 0;

  json::Value ToJson() const;
  static Result<ShimExit> FromJson(const json::Value& value);
};

// Start time of a process in clock ticks since boot; 0 when it does not exist.
uint64_t ProcessStartTime(pid_t pid);

// Renames a new file over the old one; not forced to the disk, which a killed process needs not.
Status ReplaceFile(const std::string& path, std::string_view bytes, int mode = 0644);
// Makes the new file that the next ReplaceFile fills, so that it need not.
Status PrepareReplace(const std::string& path, int mode);

}  // namespace swell::process
