#include "cli/views/job_view.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/natural_order.h"
#include "base/strings.h"
#include "cli/views/job_report.h"
#include "kube/api/crd/definitions.h"
#include "kube/api/meta/gate_keys.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/job.h"
#include "kube/api/objects/node.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/pod_group.h"
#include "kube/api/objects/runai_workload.h"

namespace swell::cli {
namespace {

std::string NewestMessage(const json::Value& job) {
  std::string message, newest;
  for (const api::Condition& condition : api::Conditions(job)) {
    if (condition.message.empty() || condition.last_transition_time < newest) continue;
    newest = condition.last_transition_time;
    message = condition.message;
  }
  return message;
}

// The status says it best; without one the first pod that waits knows.
std::string WhyNoMore(const JobView& job) {
  const auto size = api::SizeOfJob(*job.object);
  if (size && !size->message.empty()) return std::string(size->message);
  if (job.over() || job.status == "Suspended") return "";
  if (!job.waits.empty()) return job.waits;
  for (const json::SharedValue& pod : job.pods) {
    const std::optional<api::Condition> placed = api::FindCondition(*pod, "PodScheduled");
    if (placed && placed->IsFalse()) {
      return std::string(placed->message);
    }
  }
  return "";
}

// What its conditions say besides its status.
void ReadConditions(const json::Value& job, JobView& view) {
  const auto hung = api::FindCondition(job, "Hung");
  if (hung && hung->IsTrue()) view.hung = hung->message;
  const auto refused = api::FindCondition(job, "ReplicaFailure");
  if (refused && refused->IsTrue()) view.waits = refused->message;
  for (const char* type : {"SuspensionWaits", "CheckpointFailed"}) {
    const auto condition = api::FindCondition(job, type);
    if (condition && condition->IsTrue() && view.unsaved.empty()) view.unsaved = condition->message;
  }
  const auto not_finite = api::FindCondition(job, "MetricNotFinite");
  if (not_finite && not_finite->IsTrue() && !view.over()) view.not_finite = not_finite->message;
}

void ReadRoles(const json::Value& job, const JobKindInfo& kind, JobView& view) {
  for (const RoleBounds& bounds : BoundsOf(job, kind)) {
    view.replicas += bounds.replicas;
    // ElasticDL's master can wait without workers and continue with the next one.
    const bool needs_none = kind.kind == "ElasticDLJob" && bounds.role == "Worker";
    view.least += needs_none ? 0 : bounds.least;
    view.most += bounds.most;
  }
  for (const JobTemplate& one : TemplatesOf(job, kind)) {
    view.milli_gpus += one.replicas * MilliGpus(*one.pod);
    if (view.priority.empty()) view.priority = api::PriorityClassName(*one.pod);
  }
}

// When it was made, began and ended. The status depends on it for jobs that wait.
void ReadStart(const json::Value& job, const JobKindInfo& kind, JobView& view) {
  view.created = api::ParseTime(api::CreationTimestamp(job));
  view.started = api::StartTime(job);
  view.ended = api::ParseTime(json::GetString(job, {"status", "completionTime"}));
  // A batch Job that has failed has no completionTime.
  if (!view.ended && view.status == "Failed") {
    if (const auto failed = api::FindCondition(job, "Failed")) view.ended = failed->Since();
  }
  if (kind.is_batch() && view.status == "Pending" && view.started &&
      json::GetInt(job, {"status", "active"}) > 0) {
    view.status = "Running";
  }
  // Controllers note when they began to care for it.
  if (view.status == "Pending" && !api::FindCondition(job, "Running")) {
    view.started.reset();
  }
}

JobView ViewOf(json::SharedValue object, const JobKindInfo& kind) {
  JobView view;
  const json::Value& job = *object;
  view.kind = &kind;
  view.name = api::Name(job);
  view.ns = api::Namespace(job);
  view.status = api::JobStatusWord(job);
  view.message = NewestMessage(job);
  view.progress = api::ProgressOfJob(job);
  ReadConditions(job, view);
  view.on_preemption = api::Annotation(job, api::keys::kOnPreemption);
  if (view.on_preemption.empty()) view.on_preemption = "Requeue";
  ReadRoles(job, kind, view);
  const json::Value* policy = json::Find(job, {"spec", "runPolicy", "schedulingPolicy"});
  if (policy) {
    view.priority = json::GetString(*policy, {"priorityClass"}, view.priority);
    view.project = api::ProjectOfQueue(*policy);
  }
  view.priority = json::GetString(job, {"spec", "priorityClassName"}, view.priority);
  view.project = json::GetString(job, {"spec", "project"}, view.project);
  view.on_preemption =
      json::GetString(job, {"spec", "preemption", "onPreemption"}, view.on_preemption);
  // The priority classes train and interactive are called as the workloads.
  if (view.priority.empty()) view.priority = kind.workload;
  view.workload = kind.workload;
  if (view.workload.empty()) view.workload = api::Label(job, api::keys::kWorkload);
  view.user = api::Annotation(job, api::keys::kUser);
  if (view.user.empty()) view.user = api::Annotation(job, "arena.kubeflow.org/username");
  view.command_line = api::Annotation(job, api::keys::kCommandLine);
  std::string_view project = api::Label(job, api::keys::kProject);
  if (!project.empty()) view.project = project;
  ReadStart(job, kind, view);
  view.object = std::move(object);
  return view;
}

// When its pods began to run, now or before a preemption: a job may have waited long for them.
void ReadTimes(JobView& job) {
  std::optional<WallTime> first;
  const auto see = [&first](std::optional<WallTime> time) {
    if (time && (!first || *time < *first)) first = time;
  };
  for (const json::Value& attempt : json::GetArray(*job.object, {"status", "attempts"})) {
    see(api::ParseTime(json::GetString(attempt, {"started"})));
    const auto ended = api::ParseTime(json::GetString(attempt, {"ended"}));
    if (ended && (!job.last_pod_ended || *job.last_pod_ended < *ended)) job.last_pod_ended = ended;
  }
  for (const json::SharedValue& pod : job.pods) see(api::StartTime(*pod));
  if (first) job.started = first;
}

// Masters before workers, workers before parameter servers, worker-2 before worker-10.
bool PodBefore(const json::SharedValue& a, const json::SharedValue& b) {
  auto key = [](const json::Value& pod) {
    std::string_view role, index;
    for (const auto& [role_label, index_label] :
         {std::pair(std::string_view("training.kubeflow.org/replica-type"),
                    std::string_view("training.kubeflow.org/replica-index")),
          std::pair(std::string_view("replica-type"), std::string_view("replica-index")),
          std::pair(api::keys::kJobRole, api::keys::kJobIndex)}) {
      if (role.empty()) role = api::Label(pod, role_label);
      if (index.empty()) index = api::Label(pod, index_label);
    }
    return std::tuple(api::LeadRank(role), std::string(role), ParseInt(index).value_or(0),
                      std::string(api::Name(pod)));
  };
  return key(*a) < key(*b);
}

void AddGroup(JobView& job, json::SharedValue group) {
  const bool wants = !job.over() && job.status != "Running" && job.status != "Suspended";
  if (job.waits.empty() && wants) {
    job.waits = api::StatusMessage(*group);
  }
  // How many nodes the runtime gives a TrainJob that says no number itself.
  const bool by_runtime = job.kind->kind == "TrainJob" &&
                          json::Find(*job.object, {"spec", "trainer", "numNodes"}) == nullptr;
  const int64_t nodes = api::MinMembers(*group);
  if (by_runtime && nodes > 0) job.replicas = job.least = job.most = nodes;
  job.group = std::move(group);
}

// Kubernetes counts a batch Job's pods that wait for a node as active, too.
void ReadPlaces(JobView& job) {
  if (!job.kind->is_batch() || job.status != "Running") return;
  const json::Value* waiting = nullptr;
  for (const json::SharedValue& pod : job.pods) {
    if (api::HasEnded(*pod) || api::IsDeleting(*pod)) continue;
    if (api::IsBound(*pod)) return;
    if (waiting == nullptr) waiting = pod.get();
  }
  if (waiting == nullptr) return;
  job.status = "Pending";
  job.started.reset();
  if (const auto placed = api::FindCondition(*waiting, "PodScheduled")) job.waits = placed->message;
}

// A preempted job has its places again before its pods run: it starts, like a new job.
void ReadReturn(JobView& job) {
  if (job.status != "Preempted") return;
  const int64_t placed =
      std::count_if(job.pods.begin(), job.pods.end(), [](const json::SharedValue& pod) {
        return api::IsBound(*pod) && !api::HasEnded(*pod) && !api::IsDeleting(*pod);
      });
  if (placed > 0 && placed >= job.least) job.status = "Pending";
}

// "worker-12": a role and an index.
bool IsInstance(std::string_view rest) {
  size_t dash = rest.rfind('-');
  return dash != std::string_view::npos && dash > 0 && rest.find('-') == dash &&
         ParseUint(rest.substr(dash + 1)).has_value();
}

// None of its containers runs: they ended, and start again later.
bool WaitsToStartAgain(const json::Value& pod) {
  const std::vector<api::ContainerStatus> all = api::ContainerStatuses(pod);
  return !all.empty() && std::none_of(all.begin(), all.end(), [](const api::ContainerStatus& one) {
    return one.Runs() || one.state == api::ContainerStatus::State::kUnknown;
  });
}

}  // namespace

std::vector<JobTemplate> TemplatesOf(const json::Value& job, const JobKindInfo& kind) {
  std::vector<JobTemplate> templates;
  if (kind.roles.empty()) {
    if (const json::Value* pod = api::TemplateOf(api::Spec(job))) {
      templates.push_back({pod, json::GetInt(job, {"spec", "parallelism"}, 1)});
    }
    return templates;
  }
  const std::vector<RoleEntry> roles = RolesOf(job, kind);
  const std::vector<RoleBounds> bounds = BoundsOf(job, kind);  // of the same roles
  for (size_t i = 0; i < roles.size(); ++i) {
    if (const json::Value* pod = api::TemplateOf(*roles[i].spec)) {
      templates.push_back({pod, bounds[i].replicas});
    }
  }
  return templates;
}

const std::vector<JobKindInfo>& JobKinds() {
  static const std::vector<JobKindInfo> kinds = [] {
    std::vector<JobKindInfo> all;
    for (const api::Definition& one : api::JobDefinitions()) {
      all.push_back({{one.group, one.version, one.plural, true},
                     one.kind,
                     one.roles == "-" ? "" : one.roles,
                     one.suspend,
                     one.workload});
    }
    all.push_back({client::resources::kJobs, "Job", "", "suspend", ""});
    return all;
  }();
  return kinds;
}

const JobKindInfo* FindJobKind(std::string_view api_version, std::string_view kind) {
  for (const JobKindInfo& one : JobKinds()) {
    if (one.kind == kind && one.resource.ApiVersion() == api_version) return &one;
  }
  return nullptr;
}

const JobKindInfo* KindOfJob(const json::Value& job) {
  return FindJobKind(api::ApiVersionOf(job), api::KindOf(job));
}

std::vector<RoleEntry> RolesOf(const json::Value& job, const JobKindInfo& kind) {
  std::vector<RoleEntry> roles;
  if (kind.roles.empty()) return roles;
  for (const auto& role : json::GetObject(job, {"spec", kind.roles})) {
    roles.push_back({std::string(role.key().data(), role.key().size()), &role.value()});
  }
  for (const json::Value& role : json::GetArray(job, {"spec", kind.roles})) {
    roles.push_back({std::string(json::GetString(role, {"name"})), &role});
  }
  return roles;
}

std::string_view RoleOfPod(const json::Value& pod) {
  for (std::string_view label :
       {std::string_view("training.kubeflow.org/replica-type"), std::string_view("replica-type"),
        std::string_view(api::keys::kJobRole)}) {
    if (const std::string_view role = api::Label(pod, label); !role.empty()) return role;
  }
  return "";
}

int64_t JobView::RunningPods() const {
  return std::count_if(pods.begin(), pods.end(), [](const json::SharedValue& pod) {
    return api::Phase(*pod) == "Running" && !api::IsDeleting(*pod) && !WaitsToStartAgain(*pod);
  });
}

int64_t JobView::PendingPods() const {
  return std::count_if(pods.begin(), pods.end(), [](const json::SharedValue& pod) {
    return api::Phase(*pod) == "Pending" && !api::IsDeleting(*pod);
  });
}

int64_t JobView::HeldMilliGpus() const {
  int64_t held = 0;
  for (const json::SharedValue& pod : pods) {
    bool placed = api::IsBound(*pod);
    if (placed && !api::HasEnded(*pod)) held += MilliGpus(*pod);
  }
  return held;
}

std::vector<RoleBounds> BoundsOf(const json::Value& job, const JobKindInfo& kind) {
  std::vector<RoleBounds> all;
  if (kind.roles.empty()) {
    // A TrainJob says how many nodes it has, a Job how many pods run at once.
    int64_t n = json::GetInt(job, {"spec", "parallelism"},
                             json::GetInt(job, {"spec", "trainer", "numNodes"}, 1));
    if (!kind.workload.empty()) n = api::WorkloadMembers(api::Spec(job));
    all.push_back({.role = "", .replicas = n, .least = n, .most = n});
    return all;
  }
  for (const RoleEntry& role : RolesOf(job, kind)) {
    RoleBounds one;
    one.role = role.name;
    one.replicas = api::ReplicasOf(*role.spec);
    one.least = one.most = one.replicas;
    const json::Value* elastic = json::Find(*role.spec, {"elastic"});
    std::optional<api::ReplicaBounds> bounds;
    std::string field;
    if (elastic != nullptr) {
      bounds = api::ReplicaBounds(*elastic);
      field = StrCat("spec.", kind.roles, ".", one.role, ".elastic");
    } else if (const api::ElasticPolicy policy(api::Spec(job));
               policy.given && one.role == "Worker") {
      bounds = policy.bounds;
      field = "spec.elasticPolicy";
    }
    if (bounds) {
      one.least = bounds->least;
      one.most = std::max(one.least, bounds->most.value_or(one.replicas));
      one.least_field = field + ".minReplicas";
      one.most_field = field + ".maxReplicas";
      // Others may write any number. The job has the nearer bound then.
      one.replicas = std::clamp(one.replicas, one.least, one.most);
    }
    all.push_back(std::move(one));
  }
  return all;
}

Result<bool> SetSuspended(Api& api, const JobView& job, bool suspend) {
  if (job.over()) {
    return Status(Code::kConflict, StrCat("job ", Quote(job.name), " is over: ", job.status));
  }
  json::Value patch = suspend;
  std::vector<std::string_view> path = Split(job.kind->suspend, '.');
  const json::Value* now = &api::Spec(*job.object);
  for (size_t i = 0; i < path.size() && now != nullptr; ++i) now = json::Find(*now, {path[i]});
  if (suspend == (now != nullptr && now->is_bool() && now->get_bool())) return false;
  for (size_t i = path.size(); i-- > 0;) patch = json::Object{{path[i], std::move(patch)}};
  patch = json::Object{{"spec", std::move(patch)}};
  auto patched = api.Patch(job.kind->resource, job.ns, job.name, client::PatchType::kMerge, patch);
  if (!patched.ok()) return patched.status();
  return true;
}

bool ConcernsJob(const JobView& job, const EventView& event) {
  // Events without a uid were made by hand.
  const auto is = [&event](const json::Value& object) {
    return event.object_uid.empty() || event.object_uid == api::Uid(object);
  };
  if (event.object == job.name && event.object_kind == job.kind->kind) return is(*job.object);
  const bool since = !job.created || event.first >= *job.created;
  if (event.object_kind == "PodGroup") {
    const bool ours = event.object == job.name || event.object.starts_with(job.name + ".");
    return ours && (job.group && event.object == job.name ? is(*job.group) : since);
  }
  if (event.object_kind != "Pod") return false;
  for (const json::SharedValue& pod : job.pods) {
    if (!event.object_uid.empty() && event.object_uid == api::Uid(*pod)) return true;
  }
  for (const json::Value& attempt : json::GetArray(*job.object, {"status", "attempts"})) {
    const std::string_view uid = json::GetString(attempt, {"uid"});
    if (!uid.empty() && event.object_uid == uid) return true;
  }
  const std::string_view name = event.object;
  return since && name.starts_with(job.name) && name.size() > job.name.size() &&
         name[job.name.size()] == '-' && IsInstance(name.substr(job.name.size() + 1));
}

// A batch Job tries again with another pod, after a while: until then the last one says what is
// wrong.
void ReadFailureOfLastTry(JobView& job) {
  const auto newest = std::max_element(
      job.pods.begin(), job.pods.end(),
      [](const auto& a, const auto& b) { return api::CreationTime(*a) < api::CreationTime(*b); });
  if (newest == job.pods.end()) return;
  job.failure = api::FailureOf(**newest, WallTime());
  if (!job.failure) return;
  const bool taken = job.failure->which == api::FailureClass::kPreempted;
  if (taken || job.failure->settles) return job.failure.reset();
  if (!job.failure->repeats()) job.failure->waits = "BackOff";
}

// The job's status does not say whether the member runs again.
void ReadWhetherItSettles(JobView& job) {
  for (const json::SharedValue& pod : job.pods) {
    if (api::Name(*pod) != job.failure->member) continue;
    const auto own = api::FailureOf(*pod, WallTime());
    if (own && own->container == job.failure->container) job.failure->settles = own->settles;
  }
}

void ReadFirstFailure(JobView& job) {
  job.failure = api::FailureOfJob(*job.object);
  if (job.failure) return ReadWhetherItSettles(job);
  if (job.status == "Succeeded") return;
  if (job.kind->is_batch() && !job.over()) return ReadFailureOfLastTry(job);
  job.failure = api::FirstFailure(job.pods, WallTime());
  if (!job.failure) return;
  // Without the time of the cluster nobody knows which of them have recovered.
  const bool taken = job.failure->which == api::FailureClass::kPreempted;
  const bool is_over = job.over() || job.kind->kind == "Pod";
  if (taken || job.failure->settles || !(is_over || job.failure->repeats())) job.failure.reset();
}

void ReadFailure(JobView& job) {
  // Members that were stopped with the preempted one have no reason of their own.
  if (job.EndedByPreemption()) return job.failure.reset();
  ReadFirstFailure(job);
  // A member that was started again and trains has recovered, as far as its steps can tell.
  const bool moves = job.failure && job.failure->time && job.progress &&
                     job.progress->updated > *job.failure->time;
  if (moves && !job.over() && job.RunningPods() >= job.replicas) job.failure.reset();
}

bool JobView::ReportsNoCheckpoint() const {
  const bool trains = workload.empty() || workload == "train";
  if (!trains || over() || progress || RunningPods() == 0) return false;
  return std::none_of(pods.begin(), pods.end(), [](const json::SharedValue& pod) {
    return !api::Annotation(*pod, api::keys::kCheckpointTime).empty() || api::UsesSdk(*pod);
  });
}

std::string JobView::SuspensionWaitText() const {
  return StrCat(
      "keeps running until a save succeeds, because its last save failed. To "
      "suspend it now and lose the work since its last checkpoint: swell suspend ",
      name, " -n ", ns, " --force");
}

std::string JobView::GateText() const {
  if (!object || over()) return "";
  if (const std::string_view manager = api::OtherManager(*object); !manager.empty()) {
    return StrCat("is run by ", manager, ", and not by Swell (managedBy)");
  }
  if (api::Annotation(*object, api::keys::kGate) != "closed") return "";
  const std::string_view reason = api::Annotation(*object, api::keys::kGateReason);
  const size_t colon = reason.find(": ");
  if (colon == std::string_view::npos) return "waits to be looked at";
  const std::string_view sentence = reason.substr(colon + 2);
  if (!reason.starts_with(api::keys::kNeverSatisfied)) return std::string(sentence);
  return StrCat("waits for ever: ", sentence, "; swell delete ", ResourceName(), " -n ", ns,
                " removes it");
}

std::string JobView::StatusText() const {
  if (!GateText().empty()) return "Waiting";
  if (status == "Failed") {
    if (failure) return StrCat("Failed: ", failure->Word());
    const std::optional<api::Condition> failed = api::FindCondition(*object, "Failed");
    const std::string_view reason = failed ? failed->reason : std::string_view();
    const bool plain = reason.empty() || reason == "Failed" || reason.ends_with("JobFailed");
    return plain ? status : StrCat("Failed: ", reason);
  }
  if (status == "Running" && !hung.empty()) return "Hung";
  const bool waits_for_it = status == "Running" || status == "Pending" || status == "Restarting";
  if (!failure || !failure->repeats() || !waits_for_it) return status;
  return RunsAfterOneFailure() ? "Restarting" : failure->Word();
}

bool JobView::RunsAfterOneFailure() const {
  return failure && failure->settles && failure->restarts <= 1;
}

std::string ProgressText(const JobView& job) {
  if (!job.progress) return "-";
  if (job.progress->percentage) return StrCat(*job.progress->percentage, "%");
  return job.progress->step > 0 ? StrCat("step ", job.progress->step) : "-";
}

std::string EtaText(const JobView& job) {
  const auto left = RemainingSeconds(job);
  return left ? api::HumanDuration(std::chrono::seconds(*left)) : "-";
}

std::string JobView::Hindrance() const { return failure ? failure->Sentence() : waits; }

std::string JobView::Reason() const {
  if (failure) return failure->Sentence();
  if (const std::string gate = GateText(); !gate.empty()) return gate;
  if (status != "Running") return waits.empty() ? message : waits;
  if (!hung.empty()) return hung;
  if (!unsaved.empty()) return unsaved;
  return why.empty() ? LeftText() : why;
}

std::string JobView::LeftText() const {
  if (over() || kind->is_batch() || RunningPods() == 0) return "";
  std::vector<std::string> left;
  for (const json::SharedValue& pod : pods) {
    if (api::Phase(*pod) == "Succeeded") left.emplace_back(api::Name(*pod));
  }
  if (left.empty()) return "";
  return StrCat(left.front(), left.size() == 1 ? "" : StrCat(" and ", left.size() - 1, " more"),
                left.size() == 1 ? " has" : " have",
                " ended with 0; the others run on, or wait for ", left.size() == 1 ? "it" : "them");
}

std::string JobView::HindranceReason() const {
  if (!failure) return StrCat(status, ": ", waits);
  const bool pulls = failure->waits == "ErrImagePull";
  return StrCat(failure->member, ": ", pulls ? "ImagePullBackOff" : failure->Word());
}

std::string JobView::EndText() const {
  // How many of which role failed is less than who did, and why.
  const bool counts = message.starts_with(StrCat(kind->kind, " ", name, " failed because "));
  return failure && (message.empty() || counts) ? failure->Sentence() : message;
}

std::string JobPreemptions::Text() const {
  if (shrinks == 0) return std::to_string(whole);
  const std::string shrunk = StrCat(shrinks, shrinks == 1 ? " shrink" : " shrinks");
  return whole == 0 ? shrunk : StrCat(total(), " (", whole, " whole, ", shrunk, ")");
}

JobPreemptions JobView::Preemptions() const {
  const auto size = api::SizeOfJob(*object);
  return {.whole = api::PreemptionCount(group ? *group : *object),
          .shrinks = size ? size->shrinks : 0};
}

bool JobView::EndedByPreemption() const {
  if (status != "Failed" || !object) return false;
  const std::optional<api::Condition> failed = api::FindCondition(*object, "Failed");
  return failed && failed->IsTrue() && failed->reason == "Preempted";
}

bool JobView::CanNeverStart() const {
  return failure && (failure->waits == "InvalidImageName" || failure->waits == "ErrImageNeverPull");
}

namespace {

// When its pods began to run after it was resumed; nullopt: none has.
std::optional<WallTime> RunsSinceResume(const JobView& job, WallTime resumed) {
  std::optional<WallTime> first;
  const auto see = [&](std::optional<WallTime> time) {
    if (time && *time >= resumed && (!first || *time < *first)) first = time;
  };
  for (const json::Value& attempt : json::GetArray(*job.object, {"status", "attempts"})) {
    see(api::ParseTime(json::GetString(attempt, {"started"})));
  }
  for (const json::SharedValue& pod : job.pods) see(api::StartTime(*pod));
  // Its pods may be gone. The controller notes anew when it begins to care for a job again.
  if (!first && (job.over() || job.status == "Running")) first = api::StartTime(*job.object);
  return first;
}

}  // namespace

// As with Kubernetes and Arena: from its start to its end, or to now. It does not stop while the
// job waits for places that others took, and begins anew when a suspended job is resumed.
std::optional<Duration> JobView::RunTime(WallTime now) const {
  if (!started || status == "Suspended") return std::nullopt;
  std::optional<WallTime> since = started;
  const auto suspended = api::FindCondition(*object, "Suspended");
  if (suspended && suspended->IsFalse()) {
    if (const auto resumed = suspended->Since()) since = RunsSinceResume(*this, *resumed);
  }
  if (!since) return std::nullopt;
  return std::max(ended.value_or(now) - *since, Duration(0));
}

std::string JobView::ResourceName() const {
  std::string singular = ToLower(kind->kind);
  return StrCat(singular, kind->resource.group.empty() ? "" : "." + kind->resource.group, "/",
                name);
}

namespace {

Result<std::vector<json::SharedValue>> Items(Result<api::RestResponse>& answer) {
  std::vector<json::SharedValue> items;
  if (!answer.ok()) {
    if (answer.status().code() == Code::kNotFound) return items;
    return answer.status();
  }
  SWELL_ASSIGN_OR_RETURN(json::Value list, json::Parse(answer->BodyString(), {.bytes = 1 << 30}));
  for (const json::Value& item : api::Items(list)) {
    items.push_back(std::make_shared<const json::Value>(item));
  }
  return items;
}

// 0: the user cannot read nodes, too.
int64_t SmallestGpuOf(Api& api) {
  auto nodes = api.List(client::resources::kNodes, "");
  return nodes.ok() ? cli::SmallestGpuMib(*nodes) : 0;
}

// What the job's templates ask for by memory, in GPUs of that size.
int64_t MilliGpusByMemory(const JobView& job, int64_t gpu_mib) {
  int64_t total = 0;
  for (const JobTemplate& one : TemplatesOf(*job.object, *job.kind)) {
    const int64_t mib = ParseInt(api::Annotation(*one.pod, api::keys::kGpuMemory)).value_or(0);
    const int64_t devices =
        ParseInt(api::Annotation(*one.pod, api::keys::kGpuFractionDevices)).value_or(1);
    total += one.replicas * devices * (mib * 1000 / gpu_mib);
  }
  return total;
}

bool AsksForMemory(const JobView& job) {
  const std::vector<JobTemplate> templates = TemplatesOf(*job.object, *job.kind);
  return std::any_of(templates.begin(), templates.end(), [](const JobTemplate& one) {
    return !api::Annotation(*one.pod, api::keys::kGpuMemory).empty();
  });
}

}  // namespace

Result<std::vector<JobView>> ListJobs(Api& api, std::string_view ns, std::string_view name) {
  std::vector<api::RestRequest> requests;
  std::string query =
      name.empty() ? "" : StrCat("fieldSelector=metadata.name%3D", api::EscapeQuery(name));
  for (const JobKindInfo& kind : JobKinds()) {
    requests.push_back({.method = "GET", .path = kind.resource.Path(ns), .query = query});
  }
  requests.push_back({.method = "GET", .path = client::resources::kPods.Path(ns)});
  requests.push_back({.method = "GET", .path = client::resources::kPodGroups.Path(ns)});
  auto answers = api.CallAll(std::move(requests));
  JobObjects objects;
  for (size_t i = 0; i < JobKinds().size(); ++i) {
    SWELL_ASSIGN_OR_RETURN(auto jobs, Items(answers[i]));
    std::erase_if(jobs, [name](const json::SharedValue& job) {
      return !name.empty() && api::Name(*job) != name;
    });
    objects.jobs.push_back(std::move(jobs));
  }
  SWELL_ASSIGN_OR_RETURN(objects.pods, Items(answers[JobKinds().size()]));
  SWELL_ASSIGN_OR_RETURN(objects.groups, Items(answers[JobKinds().size() + 1]));
  objects.smallest_gpu_mib = [&api] { return SmallestGpuOf(api); };
  std::vector<JobView> views = ViewJobs(objects);
  std::sort(views.begin(), views.end(), [](const JobView& a, const JobView& b) {
    if (a.ns != b.ns) return a.ns < b.ns;
    const std::strong_ordering names = CompareNatural(a.name, b.name);
    return names != 0 ? names < 0 : a.kind->kind < b.kind->kind;
  });
  return views;
}

int64_t SmallestGpuMib(const std::vector<json::SharedValue>& nodes) {
  int64_t smallest = 0;
  for (const json::SharedValue& node : nodes) {
    const int64_t mib = api::GpuMemoryMib(*node);
    if (mib > 0 && (smallest == 0 || mib < smallest)) smallest = mib;
  }
  return smallest;
}

std::vector<JobView> ViewJobs(const JobObjects& objects) {
  std::vector<JobView> views;
  for (size_t i = 0; i < JobKinds().size() && i < objects.jobs.size(); ++i) {
    for (const json::SharedValue& job : objects.jobs[i]) {
      // Swell's server answers with another group's job where only that has the name.
      std::string_view version = api::ApiVersionOf(*job);
      version = version.substr(0, version.find('/'));
      if (!version.empty() && version != JobKinds()[i].resource.group) continue;
      views.push_back(ViewOf(job, JobKinds()[i]));
    }
  }
  std::map<std::string, json::SharedValue> group_of;
  for (const json::SharedValue& group : objects.groups) group_of[api::KeyOf(*group)] = group;
  std::map<std::string, std::vector<json::SharedValue>> pods_of;  // by their owners' uids
  for (const json::SharedValue& pod : objects.pods) {
    for (const api::OwnerReference& owner : api::Owners(*pod)) pods_of[owner.uid].push_back(pod);
  }
  std::optional<int64_t> gpu_mib;  // asked for once, if at all
  for (JobView& view : views) {
    view.pods = pods_of[std::string(api::Uid(*view.object))];
    std::sort(view.pods.begin(), view.pods.end(), PodBefore);
    // What a runtime adds to a TrainJob, its pods know; and, once they are placed, how many GPUs an
    // amount of memory is.
    if (view.milli_gpus == 0) {
      for (const json::SharedValue& pod : view.pods) view.milli_gpus += MilliGpus(*pod);
    }
    if (view.milli_gpus == 0 && AsksForMemory(view)) {
      if (!gpu_mib) gpu_mib = objects.smallest_gpu_mib ? objects.smallest_gpu_mib() : 0;
      if (*gpu_mib > 0) view.milli_gpus = MilliGpusByMemory(view, *gpu_mib);
    }
    ReadPlaces(view);
    auto group = group_of.find(StrCat(view.ns, "/", view.name));
    // A batch Job's is called otherwise, where a rule made it one.
    if (group == group_of.end() && !view.pods.empty()) {
      group =
          group_of.find(StrCat(view.ns, "/", api::Label(*view.pods.front(), api::keys::kPodGroup)));
    }
    if (group != group_of.end()) AddGroup(view, group->second);
    ReadReturn(view);
    if (view.RunningPods() < view.replicas) view.why = WhyNoMore(view);
    ReadTimes(view);
    ReadFailure(view);
    if (view.failure && view.failure->repeats()) view.message = view.failure->Sentence();
    // Kubernetes' own controller says that it gave up, and not why.
    if (view.kind->is_batch() && view.status == "Failed" && view.failure &&
        view.message.find(view.failure->member) == std::string::npos) {
      view.message += StrCat(view.message.empty() ? "" : ". ", view.failure->Sentence());
    }
  }
  return views;
}

std::vector<OthersJob> ListOthersJobs(Api& api, std::string_view ns) {
  std::vector<OthersJob> jobs;
  auto groups = api.List(client::resources::kPodGroups, ns);
  if (!groups.ok()) return jobs;
  for (const json::SharedValue& group : *groups) {
    // The owner of such a group is not its controller. The group of a single pod is not a job.
    const std::vector<api::OwnerReference> owners = api::Owners(*group);
    if (owners.empty() || owners[0].kind == "Pod") continue;
    const api::OwnerReference& owner = owners[0];
    if (FindJobKind(owner.api_version, owner.kind) != nullptr) continue;
    jobs.push_back({owner.kind, owner.name, std::string(api::Name(*group))});
  }
  return jobs;
}

}  // namespace swell::cli
