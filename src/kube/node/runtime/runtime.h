// Runtime: runs pods for a node agent. kube/process runs real processes, kube/cri has a container
// engine of the machine run them, SimulatedRuntime runs nothing.
//
// A pod is a sandbox (its directory, network and names) with containers in it. Everything is
// asynchronous: callbacks run on the core executor, exactly once, never from inside the call. A
// runtime only executes and reports; the agent decides about restarts, order and grace periods.
//
// Pods outlive the agent: List() finds what an earlier agent left, Adopt() takes it over.
//
// - Threads: core executor only.
// - Ownership: one Runtime serves any number of node agents and outlives them. Observers are held
//   weakly: a pod whose observer is gone continues to run.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "kube/api/rest/rest.h"
#include "kube/node/runtime/security.h"

namespace swell::node {

// A line of a hosts file.
struct HostsEntry {
  std::string ip;
  std::vector<std::string> names;
  bool operator==(const HostsEntry&) const = default;
};

struct VolumeFile {
  std::string path;  // relative, checked: no "..", not absolute
  std::string bytes;
  int mode = 0644;
  std::optional<int64_t> owner = {};  // a user; empty: the node's
  bool operator==(const VolumeFile&) const = default;
};

// A volume with its content; the runtime makes a directory (or file) of it.
struct VolumeSpec {
  enum class Kind {
    kEmptyDir,  // lives and dies with the pod
    kMemory,    // the same in memory where the runtime can
    kHostPath,  // host_path, after the check that host_path_type asks for
    kFiles,     // the files, replaced whole when the source changes
    kDurable,   // a directory named by `key` under the data directory, kept after the pod
  };
  std::string name;
  Kind kind = Kind::kEmptyDir;
  std::string host_path;
  std::string host_path_type;  // as in Kubernetes: "", Directory, DirectoryOrCreate, File, …
  // kHostPath: an administrator made a PersistentVolume of it. A path that the pod itself names is
  // used with the rights of the pod's own user alone, unless its author may name any path: then
  // root in the pod is root there, as without a user namespace.
  bool declared = false;
  bool of_administrator = false;
  std::string key;  // kDurable: "namespace/claim"
  std::vector<VolumeFile> files;
  int64_t size_limit_bytes = 0;  // kMemory: what the kernel holds it to; 0: half of the memory
};

struct MountSpec {
  std::string volume;
  std::string container_path;
  std::string sub_path;
  bool read_only = false;
};

// What a pod says of name servers: added to the node's settings, or in their place.
struct DnsSpec {
  bool alone = false;
  std::vector<std::string> servers;
  std::vector<std::string> searches;
  std::vector<std::pair<std::string, std::string>> options;  // a value may be empty
};

struct SandboxSpec {
  std::string pod_uid;
  std::string ns;
  std::string name;
  std::string node;
  std::string hostname;
  std::string full_name;  // with its domain; empty: it has none
  DnsSpec dns;
  std::string host_ip;  // the node's address: the pod's own with host_network
  bool host_network = false;
  std::vector<HostsEntry> hosts;  // beyond localhost and the pod's own name
  std::vector<VolumeSpec> volumes;
  // Names the durable checkpoint directory that all incarnations of the pod's job share.
  std::string checkpoint_key;
  // The job whose member the pod is: the log outlives the pod, as long as the job is there. Empty:
  // it does not.
  std::string job_uid;
  std::optional<int64_t> fs_group;
  PodSecurity security;
  int64_t memory_limit_bytes = 0;  // of all its containers together; 0: one has none
  std::string runtime_handler;     // of its RuntimeClass; empty: the runtime's usual one
  std::map<std::string, std::string> annotations;
};

struct SandboxInfo {
  std::string ip;
};

struct ContainerRef {
  std::string pod_uid;
  std::string name;
  int attempt = 0;  // 0 for the first start, then one more per restart
  auto operator<=>(const ContainerRef&) const = default;
};

// An image that a container is about to use.
struct ImageRequest {
  enum class Policy { kIfNotPresent, kAlways, kNever };
  std::string image;
  Policy policy = Policy::kIfNotPresent;
  // Texts of the pod's imagePullSecrets: .dockerconfigjson.
  std::vector<std::string> docker_configs;
};
struct ImageReady {
  // What StartContainer needs to find the image; empty: its name suffices.
  std::string handle;
  std::string id;  // "docker.io/library/busybox@sha256:…"; may be empty
  bool pulled = false;
  bool own_programs = false;  // of the machine: the name is in its catalogue, no image is used
  std::string instead;        // why these stand in for an image that is not in the catalogue
  Duration took{0};           // of the pull
  Duration waited{0};         // the same with the time before it began
  int64_t size_bytes = 0;
};

// What a container may use, as far as it can be changed while it runs.
struct CpuAndMemory {
  int64_t cpu_request_milli = 0;
  int64_t cpu_limit_milli = 0;     // 0: none
  int64_t memory_limit_bytes = 0;  // 0: none

  bool operator==(const CpuAndMemory&) const = default;
};

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): in the order that people read
struct ContainerSpec {
  ContainerRef ref;
  bool init = false;   // runs to its end before the main containers start
  std::string target;  // a container of the pod whose processes it is to see; empty: its own only
  std::string image;
  std::string image_handle;          // ImageReady's
  std::vector<std::string> command;  // replaces the image's entry point when not empty
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;  // later ones win
  std::string working_dir;
  std::vector<MountSpec> mounts;
  std::optional<int64_t> run_as_user;
  std::optional<int64_t> run_as_group;
  std::vector<int64_t> supplemental_groups;
  bool strict_groups = false;    // none that the image's files give its user
  std::string stop_signal = {};  // "SIGUSR1"; empty: the image's, or SIGTERM
  bool run_as_non_root = false;  // kForbidden where it would be root
  bool read_only_root = false;
  ContainerSecurity security;
  std::vector<std::string> gpus;  // ids of the devices that it sees
  bool host_network = false;
  int64_t cpu_request_milli = 0;
  int64_t cpu_limit_milli = 0;  // 0: none
  int64_t memory_request_bytes = 0;
  int64_t memory_limit_bytes = 0;  // 0: none
  // What all containers of the pod may use together, where its spec says so.
  std::optional<CpuAndMemory> whole_pod;
  int64_t grace_seconds = 30;
  // Standard input stays open for clients that attach; with stdin_once, until the first one leaves.
  bool open_stdin = false;
  bool stdin_once = false;
  bool tty = false;
  std::string termination_path = "/dev/termination-log";
};

struct ContainerStarted {
  std::string container_id;  // "process://…"
  std::string image_id;
  WallTime started;
};

// The reason of a container that ended unseen: its shim was killed, or the machine went down.
inline constexpr std::string_view kStatusUnknown = "ContainerStatusUnknown";
inline constexpr int kExitUnknown = 137;  // the exit code beside it

struct ContainerExit {
  int code = 0;  // 128 + signal when killed
  int signal = 0;
  bool oom_killed = false;
  WallTime started;
  WallTime finished;
  std::string container_id;
  std::string reason;               // empty: the agent says Completed, Error or OOMKilled
  std::string termination_message;  // what the container wrote to its termination file
  std::string log_tail;             // the last 80 lines, at most 2 KiB: FallbackToLogsOnError
};

// What an earlier agent's pod looks like now.
struct FoundContainer {
  std::string name;
  int attempt = 0;
  ContainerStarted started;
  std::optional<ContainerExit> exit;  // empty: running
};
struct FoundPod {
  std::string pod_uid;
  std::string ns;
  std::string name;
  SandboxInfo sandbox;
  std::vector<FoundContainer> containers;  // the newest attempt of each
};

// What a running container uses of its node.
struct ContainerUsage {
  ContainerRef ref;
  WallTime started;
  WallTime at;               // when it was measured
  Duration cpu{0};           // processor time since its start
  Duration window{0};        // the last seconds, or what has passed since its start
  Duration window_cpu{0};    // processor time in them
  int64_t memory_bytes = 0;  // the working set
};

// Progress records of a pod's ranks (progress_watch.h) by the number in their file's name: bytes as
// the pod's processes wrote them.
using ProgressRecords = std::map<int64_t, std::string>;

// What a pod has on the node's disk, in bytes.
struct DiskUse {
  std::map<std::string, int64_t> volumes;     // its emptyDirs, by name
  std::map<std::string, int64_t> containers;  // their own files and logs, by name
};

class PodObserver {
 public:
  virtual ~PodObserver() = default;
  // Once per started container.
  virtual void OnContainerExit(const ContainerRef& container, const ContainerExit& exit) = 0;
  // The training process replaced its report file.
  virtual void OnReport(const std::string& report_json) = 0;
  // A progress record of the pod changed; all of them.
  virtual void OnProgress(const ProgressRecords& records) = 0;
};

struct ExecSpec {
  std::vector<std::string> argv;
  Duration timeout = std::chrono::seconds(1);
  size_t output_bytes_max = 10 << 10;
};
struct ExecResult {
  int code = 0;
  std::string output;  // standard output and error together
  bool timed_out = false;
};

struct ProbeSpec {
  // kTcp: a connection suffices. kHttps checks no certificate. kGrpc asks grpc.health.v1.Health.
  enum class Protocol { kTcp, kHttp, kHttps, kGrpc };
  Protocol protocol = Protocol::kTcp;
  std::string host;  // empty: the pod's own address
  uint16_t port = 0;
  std::string path = "/";  // HTTP
  std::vector<std::pair<std::string, std::string>> headers;
  std::string service;  // gRPC; may be empty
  Duration timeout = std::chrono::seconds(1);
};
struct ProbeResult {
  bool ok = false;
  std::string message;  // why not, as the kubelet words it
};

struct LogOptions {
  bool follow = false;
  bool timestamps = false;
  int64_t tail_lines = -1;  // -1: all
  std::optional<WallTime> since;
  int64_t limit_bytes = -1;  // -1: none
  // "NAMESPACE/POD" of a pod that is gone and was a job's member; empty: the pod is there. Then a
  // negative attempt of the reference is the newest one.
  std::string kept_of;
};
struct LogCallbacks {
  // An empty chunk says that the log is open, while there is nothing in it yet. False: the
  // receiver is gone or too slow; the stream ends.
  std::function<bool(const api::Chunk&)> on_chunk;
  std::function<void(const Status&)> on_end;
};
class LogStream {
 public:
  virtual ~LogStream() = default;  // destroying it ends the stream without on_end
};

// Standard streams of a command that is to run, or of a container to attach to.
struct StdioSpec {
  std::vector<std::string> argv;  // empty: attach
  bool input = false;
  bool output = false;
  bool error = false;  // without a terminal
  bool tty = false;    // run: make a terminal; attach: the container says
};
struct TerminalSize {
  uint16_t columns = 0;
  uint16_t rows = 0;
};
// Destroying it hangs up: a command is killed, an attached container continues.
class StdioSession {
 public:
  virtual ~StdioSession() = default;
  // Standard input and output; with a terminal also what goes to standard error.
  virtual const api::DuplexPtr& io() = 0;
  // Standard error, only read; null when not asked for or with a terminal.
  virtual const api::DuplexPtr& error() = 0;
  virtual void Resize(TerminalSize size) = 0;
  // Runs once with the command's exit code (128 + signal when killed), or why it is not known. For
  // an attached container, when it has ended: then its output has, too, but may not be read yet.
  virtual void OnExit(std::function<void(Result<int>)> done) = 0;
};
using StdioCallback = std::function<void(Result<std::shared_ptr<StdioSession>>)>;

struct RuntimeInfo {
  std::string name;            // "process": the scheme of container ids
  std::string version;         // "0.1.0"
  bool resolves_names = true;  // false: hosts entries would be thrown away
  // Text for the node's annotation about what this machine does not permit; may be empty.
  std::string limits;
  // False: containers need no EnsureImage and have no events but Started.
  bool has_images = true;
  // RuntimeClasses name handlers of the engine, which refuses those that it lacks. False: this
  // runtime runs every pod the same way, whatever handler is named.
  bool has_handlers = false;
};

class Runtime {
 public:
  virtual ~Runtime() = default;

  virtual RuntimeInfo Info() const = 0;

  virtual void List(const std::string& node,
                    std::function<void(Result<std::vector<FoundPod>>)> done) = 0;
  // Events of a found pod go to `observer` from now on. An exit that List reported is not
  // reported again; one that happened since is.
  virtual void Adopt(const FoundPod& pod, std::weak_ptr<PodObserver> observer) = 0;

  virtual void CreateSandbox(const SandboxSpec& spec,
                             std::weak_ptr<PodObserver> observer,
                             std::function<void(Result<SandboxInfo>)> done) = 0;
  // Makes sure that the image is on this machine. `on_pull` runs before `done` if it must be
  // pulled. kInvalid: it is not the name of an image. kMethodNotAllowed: it is missing, and the
  // policy is kNever. Any other error: it cannot be pulled.
  virtual void EnsureImage(const ImageRequest& request,
                           std::function<void()> on_pull,
                           std::function<void(Result<ImageReady>)> done) = 0;
  // kNotFound: there is no such image. Any other error: the container cannot be started (a bad
  // volume, no such command). Once started, its exit is reported through the pod's observer.
  virtual void StartContainer(const ContainerSpec& spec,
                              std::function<void(Result<ContainerStarted>)> done) = 0;
  // To the container's main process if it handles the signal, else to all of its process group. No
  // effect once it has exited.
  virtual void Signal(const ContainerRef& container, int signal) = 0;
  // Changes what a running container may use; a reference without a name: what the containers of
  // the pod may use together. After an error they still have what they had.
  virtual void Resize(const ContainerRef& container,
                      const CpuAndMemory& amounts,
                      std::function<void(const Status&)> done) = 0;
  // Writes to disk the state that a training process left in memory when it ended, and releases
  // what a finished pod does not need any more (network, scratch space); its logs stay readable.
  // If the state is not on disk yet but may still get there, `on_delay` is called once with the
  // reason. An error of `done` says why the state is lost.
  virtual void Stop(const std::string& pod_uid,
                    std::function<void(const Status&)> on_delay,
                    std::function<void(const Status&)> done) = 0;
  // Kills what still runs and removes everything of the pod but durable directories.
  virtual void Remove(const std::string& pod_uid, std::function<void(const Status&)> done) = 0;

  virtual void Exec(const ContainerRef& container,
                    const ExecSpec& spec,
                    std::function<void(Result<ExecResult>)> done) = 0;
  // Runs a command in the container, or attaches to it, with live standard streams.
  virtual void OpenStdio(const ContainerRef& container,
                         const StdioSpec& spec,
                         StdioCallback done) = 0;
  // A connection to a TCP port of the pod, as from its own loopback.
  virtual void Dial(const std::string& pod_uid,
                    uint16_t port,
                    std::function<void(Result<api::DuplexPtr>)> done) = 0;
  virtual void Probe(const std::string& pod_uid,
                     const ProbeSpec& spec,
                     std::function<void(ProbeResult)> done) = 0;

  // Measures the node's running containers.
  virtual void Usage(const std::string& node,
                     std::function<void(std::vector<ContainerUsage>)> done) = 0;

  // Measures what a pod has on disk. It may take long, and not see what changes meanwhile.
  virtual void MeasureDisk(const std::string& pod_uid, std::function<void(DiskUse)> done) = 0;

  virtual void UpdateHosts(const std::string& pod_uid, const std::vector<HostsEntry>& hosts) = 0;
  virtual void UpdateVolume(const std::string& pod_uid, const VolumeSpec& volume) = 0;
  // Writes the notice file of the preemption protocol, before SIGTERM.
  virtual void WriteNotice(const std::string& pod_uid, const std::string& notice_json) = 0;

  // `attempt` of the reference chooses the file; kNotFound without one.
  virtual std::unique_ptr<LogStream> ReadLog(const ContainerRef& container,
                                             const LogOptions& options,
                                             LogCallbacks callbacks) = 0;
  // The jobs of which logs are kept, by their uids.
  virtual void KeptJobs(std::function<void(std::vector<std::string>)> done) { done({}); }
  // The job is gone: removes the logs that are kept of its pods.
  virtual void ForgetJob(const std::string& /*job_uid*/) {}
};

}  // namespace swell::node
