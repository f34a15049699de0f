// JobView: a training job of any kind as people see it: its status in a word, project, priority,
// requests and pods, and why it waits.
// - Threads: values; functions that ask the server block on its loop.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/api.h"
#include "cli/flags.h"
#include "cli/views/events_view.h"
#include "cli/views/pod_view.h"
#include "kube/api/objects/failure.h"
#include "kube/api/objects/progress.h"

namespace swell::cli {

// What differs between kinds of jobs, as far as commands care.
struct JobKindInfo {
  Resource resource;
  std::string kind;
  // Field of spec with one entry per role, a map or a list of named ones; empty: one template.
  std::string roles;
  std::string suspend;   // path below spec
  std::string workload;  // the class of all its jobs; empty: each job's label says it

  // Kubernetes' own Job, whose controller tries again with other pods. Volcano's has its name.
  bool is_batch() const { return resource.group == "batch" && kind == "Job"; }
};
const std::vector<JobKindInfo>& JobKinds();
// Null: it is not a kind of Swell's jobs. Another version of the same kind is another operator's.
const JobKindInfo* FindJobKind(std::string_view api_version, std::string_view kind);
// The kind of a manifest; null: it is not a job's.
const JobKindInfo* KindOfJob(const json::Value& job);

struct RoleEntry {
  std::string name;
  const json::Value* spec;  // in the job
};
std::vector<RoleEntry> RolesOf(const json::Value& job, const JobKindInfo& kind);

struct JobTemplate {
  const json::Value* pod;  // its metadata and spec, in the job
  int64_t replicas;
};
// A TrainJob has none: its pods' shape is in its runtime.
std::vector<JobTemplate> TemplatesOf(const json::Value& job, const JobKindInfo& kind);

// How often other work took members of a job.
struct JobPreemptions {
  int64_t whole = 0;    // it was stopped
  int64_t shrinks = 0;  // it kept its minimum, and trained on

  int64_t total() const { return whole + shrinks; }
  // "2 (1 whole, 1 shrink)", "1 shrink"; "2" where all stopped it.
  std::string Text() const;
};

struct JobView {
  json::SharedValue object;
  const JobKindInfo* kind = nullptr;
  std::string name, ns;
  std::string status;    // Pending, Running, Preempted, Suspended, Restarting, Succeeded, Failed
  std::string priority;  // class name or ""
  std::string project;
  std::string message;  // of the newest condition that says anything
  std::string waits;    // why it does not run, in the scheduler's words
  std::string on_preemption;
  std::string workload;  // train, interactive, build or inference
  std::string user;      // who submitted it, as far as is known
  std::string command_line;
  json::SharedValue group;      // its PodGroup; may be absent
  int64_t replicas = 0;         // wanted
  int64_t least = 0, most = 0;  // between which it may change size; both `replicas` if rigid
  std::string why;              // why it runs with fewer members than wanted
  int64_t milli_gpus = 0;       // of all replicas
  std::optional<WallTime> created, started, ended;
  std::optional<api::Failure> failure;       // the first of those that matter now
  std::optional<api::JobProgress> progress;  // if its script tells
  std::string hung;                          // no rank moves: which, and what they do
  std::string not_finite;                    // its loss, or another number, is NaN or infinite
  std::string unsaved;                       // its last save failed, and what waits for one
  std::optional<WallTime> last_pod_ended;    // of the pods that it had before
  std::vector<json::SharedValue> pods;       // chief first, then by role and index

  int64_t RunningPods() const;
  int64_t PendingPods() const;
  int64_t HeldMilliGpus() const;  // of pods that have a place
  // Its status with what failed: "Failed: OOMKilled", "CrashLoopBackOff".
  std::string StatusText() const;
  // One failure is not a loop.
  bool RunsAfterOneFailure() const;
  // What it waits for before it may start (`--after`, `--begin`, a place in its array); empty:
  // nothing of the kind.
  std::string GateText() const;
  // What keeps it from running, in a sentence; empty: nothing that is known.
  std::string Hindrance() const;
  // The same for as long as that is the same, also while a pull is tried again.
  std::string HindranceReason() const;
  // Its pods would lose what they did since the last good save: `unsaved` says more.
  bool RunsUnsaved() const { return !unsaved.empty() && !over() && RunningPods() > 0; }
  // It trains, its pods run, and none has reported a checkpoint or used the SDK: only what its
  // script saves by itself outlives a stop.
  bool ReportsNoCheckpoint() const;
  // What its suspension then waits for: words that follow the job's name.
  std::string SuspensionWaitText() const;
  // What people should know of it in a sentence: what fails, hangs, cannot be saved or is missing,
  // why it waits, or how it ended. Empty: all is well.
  std::string Reason() const;
  // Members that have ended with 0 while others run and may wait for them in vain. Empty if every
  // member runs, or if the kind's pods do not work together.
  std::string LeftText() const;
  // How it ended, with who failed and why; empty: nothing is known.
  std::string EndText() const;
  // True if it failed because it was preempted and its policy is Fail. Its program is not at fault.
  bool EndedByPreemption() const;
  // No retry helps: the job itself must change.
  bool CanNeverStart() const;
  // How long its pods have run, without the wait before them; empty if none has started.
  std::optional<Duration> RunTime(WallTime now) const;
  JobPreemptions Preemptions() const;
  bool elastic() const { return least < most; }
  bool over() const { return status == "Succeeded" || status == "Failed"; }
  std::string ResourceName() const;  // "pytorchjob.kubeflow.org/mnist"
};

// What jobs are made of.
struct JobObjects {
  std::vector<std::vector<json::SharedValue>> jobs;  // like JobKinds()
  std::vector<json::SharedValue> pods, groups;
  // Asked once, if at all, for jobs that ask for GPU memory; empty: unknown.
  std::function<int64_t()> smallest_gpu_mib;
};
// In the order of their kinds.
std::vector<JobView> ViewJobs(const JobObjects& objects);
// The smallest GPU's memory in MiB, by which projects are charged for pods without a node. 0:
// unknown.
int64_t SmallestGpuMib(const std::vector<json::SharedValue>& nodes);

// By namespace and name. `ns` empty: everywhere; `name` empty: all. Kinds that the server does not
// have are left out.
Result<std::vector<JobView>> ListJobs(Api& api, std::string_view ns, std::string_view name = {});
// One job by name, of any kind; kAlreadyExists when the name is ambiguous, with the kinds.
Result<JobView> FindJob(Api& api, std::string_view ns, std::string_view name);

// A job of another operator, as far as is known of it: whose pods are placed as a group.
struct OthersJob {
  std::string kind, name;
  std::string group;  // the PodGroup's name
};
// Empty also where nobody may ask.
std::vector<OthersJob> ListOthersJobs(Api& api, std::string_view ns);

// How many of a role there may be.
struct RoleBounds {
  std::string role;
  int64_t replicas = 1;         // as requested, within the bounds
  int64_t least = 1, most = 1;  // both `replicas` when the role is rigid
  std::string least_field, most_field;
};
std::vector<RoleBounds> BoundsOf(const json::Value& job, const JobKindInfo& kind);

// Suspends or resumes the job. False: it was so already. kConflict when the job is over.
Result<bool> SetSuspended(Api& api, const JobView& job, bool suspend);

// Whether an event is about this very job, its group or one of its pods, of which some may be gone:
// not about an earlier job of the same name.
bool ConcernsJob(const JobView& job, const EventView& event);
// Finds out what fails, from the job's status or else from its pods.
void ReadFailure(JobView& job);
// The role that the pod has in its job, in lower case; empty if it has none.
std::string_view RoleOfPod(const json::Value& pod);

// "42%", or "-" where the total is not known; "4m", "-".
std::string ProgressText(const JobView& job);
std::string EtaText(const JobView& job);

}  // namespace swell::cli
