#include "cli/slurm/job_info.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/strings.h"
#include "cli/jobs/gate_request.h"
#include "cli/slurm/slurm_keys.h"
#include "cli/slurm/values.h"
#include "cli/views/own_namespaces.h"
#include "kube/api/meta/account_keys.h"
#include "kube/api/meta/gate_keys.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/request_keys.h"
#include "kube/api/objects/amounts.h"
#include "kube/api/objects/job.h"
#include "kube/api/objects/pod.h"

namespace swell::cli::slurm {
namespace {

constexpr std::array<JobState, 10> kStates = {kPending,   kConfiguring, kRunning, kCompleting,
                                              kCompleted, kFailed,      kTimeout, kOutOfMemory,
                                              kPreempted, kCancelled};
constexpr int64_t kSignalBase = 128;
constexpr std::string_view kCrashLoop = "CrashLoopBackOff";

std::string_view FailedReason(const json::Value& job) {
  const std::optional<api::Condition> failed = api::FindCondition(job, "Failed");
  return failed ? failed->reason : std::string_view();
}

JobState EndState(const JobView& job) {
  if (job.RunningPods() > 0) return kCompleting;
  if (job.status == "Succeeded") return kCompleted;
  const std::string_view reason = FailedReason(*job.object);
  const std::string_view of_pod = job.failure ? std::string_view(job.failure->reason) : "";
  if (reason == "DeadlineExceeded" || of_pod == "DeadlineExceeded") return kTimeout;
  if (reason == "Preempted") return kPreempted;
  if (reason == api::keys::kNeverSatisfied || reason == api::keys::kCancelled) return kCancelled;
  return of_pod == "OOMKilled" ? kOutOfMemory : kFailed;
}

JobState StateOf(const JobView& job) {
  if (job.over()) return EndState(job);
  const bool goes = !api::Annotation(*job.object, api::keys::kDeleteWhenStopped).empty();
  if (goes || api::IsDeleting(*job.object)) return kCompleting;
  if (job.status == "Running") return kRunning;
  const bool placed =
      std::any_of(job.pods.begin(), job.pods.end(), [](const json::SharedValue& pod) {
        return api::IsBound(*pod) && api::Phase(*pod) == "Pending" && !api::IsDeleting(*pod);
      });
  if (placed && job.PendingPods() == static_cast<int64_t>(job.pods.size())) return kConfiguring;
  // Pods that still end: of a job that was preempted, or that is held.
  return job.RunningPods() > 0 && job.status == "Pending" ? kConfiguring : kPending;
}

std::string WaitReason(const JobView& job) {
  if (!api::Annotation(*job.object, api::keys::kHeld).empty()) return "JobHeldUser";
  if (api::Annotation(*job.object, api::keys::kGate) == "closed") {
    const std::string_view said = api::Annotation(*job.object, api::keys::kGateReason);
    if (!said.empty()) return std::string(said.substr(0, said.find(':')));
    // Its controller has not looked at it yet.
    const auto has = [&job](std::string_view key) {
      return !api::Annotation(*job.object, key).empty();
    };
    if (has(api::keys::kStartAfter)) return "Dependency";
    if (has(api::keys::kStartNotBefore)) return "BeginTime";
    return has(api::keys::kArrayAtOnce) ? "JobArrayTaskLimit" : "Dependency";
  }
  if (IsSuspended(job)) return "JobHeldUser";
  if (job.failure && job.failure->repeats()) {
    // Its pods come back after a delay; others cannot be started as they are.
    return job.failure->waits == kCrashLoop ? "BeginTime" : "BadConstraints";
  }
  return std::string(ReasonOf(job.waits));
}

std::string EndReason(const JobState& state) {
  if (state.code == kCancelled.code) return std::string(api::keys::kNeverSatisfied);
  if (state.code == kFailed.code) return "NonZeroExitCode";
  if (state.code == kTimeout.code) return "TimeLimit";
  if (state.code == kOutOfMemory.code) return "OutOfMemory";
  return "None";
}

void FillRequest(JobInfo& info) {
  const auto parsed = json::Parse(api::Annotation(*info.view.object, kRequest));
  const json::Value request = parsed.ok() ? *parsed : json::Value(json::Object{});
  const auto text = [&request](std::string_view name, std::string& to) {
    const std::string_view value = json::GetString(request, {name});
    if (!value.empty()) to = value;
  };
  text("name", info.name);
  text("partition", info.partition);
  text("command", info.command);
  text("workDir", info.work_dir);
  text("stdOut", info.std_out);
  text("stdErr", info.std_err);
  text("comment", info.comment);
  info.nodes = std::max<int64_t>(1, info.view.replicas);
  info.tasks = json::GetInt(request, {"tasks"}, info.nodes);
  info.cpus =
      json::GetInt(request, {"cpus"}, info.tasks * json::GetInt(request, {"cpusPerTask"}, 1));
  info.cpus = std::max(info.tasks, info.cpus);
  info.memory_mib = json::GetInt(request, {"memoryMib"});
  info.time_limit_s = json::GetInt(request, {"timeLimitSeconds"});
}

// What keeps it waiting besides the scheduler, and in whose words.
void FillWait(JobInfo& info) {
  const json::Value& job = *info.view.object;
  const std::string_view after = api::Annotation(job, api::keys::kStartAfter);
  if (api::Annotation(job, api::keys::kGate) != "closed") {
    info.waits = info.view.Hindrance();
    return;
  }
  info.dependency = after;
  info.not_before = api::ParseTime(api::Annotation(job, api::keys::kStartNotBefore));
  const std::string_view said = api::Annotation(job, api::keys::kGateReason);
  const size_t colon = said.find(": ");
  if (colon != std::string_view::npos) info.waits = said.substr(colon + 2);
}

// The nodes of members whose pods were removed at the end of their job, as an MPIJob's workers are.
void AddNodesOfRemovedPods(JobInfo& info) {
  using Member = std::pair<size_t, std::string_view>;  // worker-2 before worker-10
  std::map<Member, std::string_view> nodes;
  for (const json::Value& attempt : json::GetArray(*info.view.object, {"status", "attempts"})) {
    const std::string_view member = json::GetString(attempt, {"member"});
    nodes[{member.size(), member}] = json::GetString(attempt, {"node"});  // the last one counts
  }
  for (const json::SharedValue& pod : info.view.pods) {
    nodes.erase({api::Name(*pod).size(), api::Name(*pod)});
  }
  for (const auto& [member, node] : nodes) {
    if (!node.empty()) info.node_list.emplace_back(node);
  }
}

void FillNodes(JobInfo& info) {
  if (!info.view.pods.empty()) {
    info.priority = json::GetInt(*info.view.pods.front(), {"spec", "priority"});
  }
  for (const json::SharedValue& pod : info.view.pods) {
    const std::string_view node = json::GetString(*pod, {"spec", "nodeName"});
    if (!node.empty()) info.node_list.emplace_back(node);
  }
  if (info.view.over()) AddNodesOfRemovedPods(info);
}

void FillExit(JobInfo& info) {
  if (!info.view.failure || !info.view.failure->exit_code) return;
  const int64_t code = *info.view.failure->exit_code;
  if (code > kSignalBase) {
    info.exit_signal = code - kSignalBase;
  } else {
    info.exit_code = code;
  }
}

// Numbers before names, lower ones first.
bool Before(const JobInfo& a, const JobInfo& b) {
  const auto key = [](const JobInfo& job) {
    const auto number = ParseInt(job.array_id.empty() ? job.id : job.array_id);
    return std::tuple(!number.has_value(), number.value_or(0), ParseInt(job.task_id).value_or(0),
                      job.view.ns, job.id);
  };
  return key(a) < key(b);
}

std::string TimeOr(const std::optional<WallTime>& time) {
  return time ? api::FormatTime(*time) : std::string();
}

}  // namespace

bool IsSuspended(const JobView& job) {
  const json::Value* now = &api::Spec(*job.object);
  for (std::string_view part : Split(job.kind->suspend, '.')) {
    now = json::Find(*now, {part});
    if (now == nullptr) return false;
  }
  return now->is_bool() && now->get_bool();
}

const JobState* FindState(std::string_view text) {
  const std::string word = ToUpper(text);
  for (const JobState& state : kStates) {
    if (word == state.code || word == state.word) return &state;
  }
  return nullptr;
}

std::string_view ReasonOf(std::string_view sentence) {
  const auto has = [sentence](std::string_view part) {
    return sentence.find(part) != std::string_view::npos;
  };
  if (sentence.empty()) return "Priority";
  if (has("does not exist")) return "InvalidAccount";
  if (has("limit of project") || has("over its limit") || has("above its limit") ||
      has("its quota") || has("the quota")) {
    return "AssocGrpGRES";
  }
  if (has("closed to project")) return "PartitionConfig";
  if (has("held for") || has("priority")) return "Priority";
  if (has("scheduling gates")) return "JobHeldAdmin";
  return "Resources";
}

JobInfo InfoOf(JobView view) {
  JobInfo info;
  info.view = std::move(view);
  const JobView& job = info.view;
  info.id = api::Label(*job.object, kJobId);
  info.ours = !info.id.empty();
  if (info.ours) {
    info.array_id = api::Label(*job.object, kArrayJobId);
    info.task_id = api::Label(*job.object, kArrayTaskId);
  } else {
    info.id = job.name;
  }
  info.name = job.name;
  info.user = job.user.empty() ? "-" : job.user;
  info.account = job.project;
  info.qos = job.priority;
  info.milli_gpus = job.milli_gpus;
  FillRequest(info);
  if (info.partition.empty()) info.partition = kAllPartition;
  FillNodes(info);
  FillExit(info);
  info.state = StateOf(job);
  info.submitted = job.created;
  info.started = job.started;
  info.ended = job.ended;
  if (job.over() && !info.ended) {
    const auto end = api::FindCondition(*job.object, job.status);
    if (end) info.ended = api::ParseTime(end->last_transition_time);
  }
  const bool waits = info.state.code == kPending.code;
  info.reason = waits ? WaitReason(job) : info.state.active ? "None" : EndReason(info.state);
  // Its own script did it.
  if (job.over() && FailedReason(*job.object) == api::keys::kCancelled) {
    info.reason = StrCat("by ", info.user);
  }
  if (waits) info.started.reset();
  if (waits) FillWait(info);
  // Only the node knows its name.
  for (std::string* file : {&info.std_out, &info.std_err}) {
    const size_t at = file->find("%N");
    if (at != std::string::npos && !info.node_list.empty()) {
      file->replace(at, 2, info.node_list.front());
    }
  }
  return info;
}

namespace {

// The jobs of a namespace by the names of their objects, and how many tasks each array has there.
struct NamedJobs {
  std::map<std::string_view, const JobInfo*> by_name;
  std::map<std::string_view, size_t> tasks;
};

// "afterok:a:b+c" by numbers. An array that is named whole is "12_*"; what is gone keeps its name.
std::string NumberedTerm(std::string_view term, const NamedJobs& jobs) {
  const size_t colon = term.find(':');
  if (colon == std::string_view::npos) return std::string(term);
  std::string text(term.substr(0, colon));
  std::map<std::string_view, std::vector<std::string>> of_array;
  std::vector<std::pair<std::string_view, std::string>> words;  // of an array that is named first
  for (std::string_view part : Split(term.substr(colon + 1), ':')) {
    for (std::string_view name : Split(part, '+')) {
      const auto found = jobs.by_name.find(name);
      if (found == jobs.by_name.end()) {
        words.emplace_back("", name);
        continue;
      }
      const JobInfo& job = *found->second;
      if (job.array_id.empty()) {
        words.emplace_back("", job.id);
        continue;
      }
      if (of_array[job.array_id].empty()) words.emplace_back(job.array_id, "");
      of_array[job.array_id].push_back(job.JobId());
    }
  }
  for (const auto& [array, id] : words) {
    if (array.empty()) {
      text += StrCat(":", id);
    } else if (of_array[array].size() == jobs.tasks.at(array)) {
      text += StrCat(":", array, "_*");
    } else {
      text += StrCat(":", Join(of_array[array], ":"));
    }
  }
  return text;
}

// Jobs wait for objects by name, and people know them by number.
void NumberDependencies(std::vector<JobInfo>& all) {
  std::map<std::string_view, NamedJobs> by_namespace;
  for (const JobInfo& job : all) {
    NamedJobs& jobs = by_namespace[job.view.ns];
    jobs.by_name.emplace(job.view.name, &job);
    if (!job.array_id.empty()) ++jobs.tasks[job.array_id];
  }
  for (JobInfo& job : all) {
    if (job.dependency.empty()) continue;
    const char separator = job.dependency.find('?') == std::string::npos ? ',' : '?';
    std::vector<std::string> terms;
    for (std::string_view term : Split(job.dependency, separator)) {
      terms.push_back(NumberedTerm(term, by_namespace[job.view.ns]));
    }
    job.dependency = Join(terms, std::string(1, separator));
  }
}

std::vector<JobInfo> InfosOf(std::vector<JobView> views) {
  std::vector<JobInfo> all;
  all.reserve(views.size());
  for (JobView& view : views) all.push_back(InfoOf(std::move(view)));
  std::stable_sort(all.begin(), all.end(), Before);
  NumberDependencies(all);
  return all;
}

}  // namespace

Result<std::vector<JobInfo>> ListJobInfos(Api& api, std::string_view ns) {
  SWELL_ASSIGN_OR_RETURN(std::vector<JobView> views, ListJobs(api, ns));
  return InfosOf(std::move(views));
}

Result<std::vector<JobInfo>> ListShownJobs(Session& session, Api& api) {
  if (!session.global().ns.empty()) return ListJobInfos(api, session.Namespace());
  auto shown = FindShownJobs(session, api, "");
  if (!shown.ok()) return shown.status();
  // A job's own account may not even read its namespace.
  if (shown->partial && shown->jobs.empty()) {
    if (const auto own = ListJobs(api, session.Namespace()); !own.ok()) {
      return ExplainInJob(session, own.status());
    }
  }
  return InfosOf(std::move(shown->jobs));
}

std::string JobInfo::JobId() const {
  return array_id.empty() ? id : StrCat(array_id, "_", task_id);
}

std::optional<Duration> JobInfo::Elapsed(WallTime now) const {
  if (view.object && state.code != kPending.code) return view.RunTime(now);
  if (!started) return std::nullopt;
  return std::max(ended.value_or(now) - *started, Duration(0));
}

Result<JobChoice> ParseJobChoice(const std::string& text) {
  JobChoice choice;
  choice.text = text;
  const size_t underscore = text.find('_');
  const std::string head = text.substr(0, underscore);
  // A step of a job, "12.batch", means the job.
  choice.id = ParseUint(head.substr(0, head.find('.'))) ? head.substr(0, head.find('.')) : text;
  if (underscore == std::string::npos || !ParseUint(head)) return choice;
  std::string list = text.substr(underscore + 1);
  if (list.starts_with('[') && list.ends_with(']')) list = list.substr(1, list.size() - 2);
  SWELL_ASSIGN_OR_RETURN(const ArrayRange tasks, ParseArrayRange("job", list));
  choice.tasks = tasks.ids;
  return choice;
}

Result<std::vector<JobChoice>> ParseJobChoices(std::string_view list) {
  std::vector<JobChoice> choices;
  for (const std::string& one : CommaList(list)) {
    SWELL_ASSIGN_OR_RETURN(JobChoice choice, ParseJobChoice(one));
    choices.push_back(std::move(choice));
  }
  return choices;
}

bool Takes(const std::vector<JobChoice>& choices, const JobInfo& job) {
  return choices.empty() || std::any_of(choices.begin(), choices.end(),
                                        [&job](const JobChoice& one) { return one.Takes(job); });
}

bool JobChoice::Takes(const JobInfo& job) const {
  if (job.array_id.empty() || (job.id == id && job.id != job.array_id)) {
    return job.id == id && tasks.empty();
  }
  if (job.array_id != id) return false;
  const int64_t task = ParseInt(job.task_id).value_or(-1);
  return tasks.empty() || std::find(tasks.begin(), tasks.end(), task) != tasks.end();
}

json::Value RecordOf(const JobInfo& job, std::string_view cancelled_by, WallTime now) {
  return json::Object{{"id", job.id},
                      {"object", job.view.name},
                      {"arrayId", job.array_id},
                      {"taskId", job.task_id},
                      {"name", job.name},
                      {"user", job.user},
                      {"account", job.account},
                      {"partition", job.partition},
                      {"qos", job.qos},
                      {"workDir", job.work_dir},
                      {"command", job.command},
                      {"nodes", job.nodes},
                      {"tasks", job.tasks},
                      {"cpus", job.cpus},
                      {"milliGpus", job.milli_gpus},
                      {"timeLimitSeconds", job.time_limit_s},
                      {"nodeList", Join(job.node_list, ",")},
                      {"submitted", TimeOr(job.submitted)},
                      {"started", TimeOr(job.started)},
                      {"ended", api::FormatTime(now)},
                      {"cancelledBy", cancelled_by}};
}

std::optional<JobInfo> InfoOfRecord(const json::Value& config_map) {
  const auto parsed = json::Parse(json::GetString(config_map, {"data", kRecordKey}));
  if (!parsed.ok() || !parsed->is_object()) return std::nullopt;
  const json::Value& record = *parsed;
  const auto text = [&record](std::string_view name) {
    return std::string(json::GetString(record, {name}));
  };
  JobInfo info;
  info.ours = true;
  info.id = text("id");
  if (info.id.empty()) return std::nullopt;
  info.array_id = text("arrayId");
  info.task_id = text("taskId");
  info.name = text("name");
  info.user = text("user");
  info.account = text("account");
  info.partition = text("partition");
  info.qos = text("qos");
  info.work_dir = text("workDir");
  info.command = text("command");
  info.nodes = json::GetInt(record, {"nodes"}, 1);
  info.tasks = json::GetInt(record, {"tasks"}, 1);
  info.cpus = json::GetInt(record, {"cpus"});
  info.milli_gpus = json::GetInt(record, {"milliGpus"});
  info.time_limit_s = json::GetInt(record, {"timeLimitSeconds"});
  for (std::string_view node : Split(json::GetString(record, {"nodeList"}), ',')) {
    info.node_list.emplace_back(node);
  }
  info.submitted = api::ParseTime(text("submitted"));
  info.started = api::ParseTime(text("started"));
  info.ended = api::ParseTime(text("ended"));
  info.state = kCancelled;
  info.reason = StrCat("by ", text("cancelledBy"));
  info.view.ns = api::Namespace(config_map);
  info.view.name = text("object").empty() ? info.id : text("object");
  return info;
}

Result<std::vector<JobInfo>> ListRecords(Api& api, std::string_view ns) {
  SWELL_ASSIGN_OR_RETURN(const auto maps,
                         api.List(client::resources::kConfigMaps, ns,
                                  {.label_selector = StrCat(kRecordLabel, "=cancelled")}));
  std::vector<JobInfo> records;
  for (const json::SharedValue& map : maps) {
    if (auto record = InfoOfRecord(*map)) records.push_back(std::move(*record));
  }
  return records;
}

Result<std::string> Me(Session& session, Api& api) {
  const json::Value review =
      json::Object{{"apiVersion", "authentication.k8s.io/v1"}, {"kind", "SelfSubjectReview"}};
  auto answer =
      api.Create({"authentication.k8s.io", "v1", "selfsubjectreviews", false}, "", review);
  if (!answer.ok()) return LocalUser(session);
  const json::Array& groups = json::GetArray(**answer, {"status", "userInfo", "groups"});
  const std::string name(json::GetString(**answer, {"status", "userInfo", "username"}));
  const bool master =
      std::find(groups.begin(), groups.end(), json::Value("system:masters")) != groups.end();
  // A job acts for the user whose it is.
  const std::string of_job = session.env().getenv("SLURM_JOB_USER");
  if (name.starts_with("system:serviceaccount:") && !of_job.empty()) return of_job;
  return name.empty() || master || name.starts_with("system:") ? LocalUser(session) : name;
}

Status ExplainInJob(Session& session, Status status) {
  const bool in_job = !session.env().getenv("SLURM_JOB_ID").empty();
  if (!in_job || status.code() != Code::kForbidden) return status;
  return Status(status.code(),
                StrCat("this job's account may not do that: ", status.message(),
                       "; run this outside of the job, or submit jobs where the namespace has the "
                       "ServiceAccount ",
                       api::keys::kJobAccount, " (docs/slurm.md)"));
}

}  // namespace swell::cli::slurm
