// The view `job`: all about one job: its members, what they did when, and what was decided.
#include "kube/api/objects/job.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/strings.h"
#include "cli/views/events_view.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/pod.h"
#include "ui/views/job_details.h"
#include "ui/views/nodes.h"
#include "ui/views/servers.h"
#include "ui/views/views.h"

namespace swell::ui {
namespace {

constexpr size_t kEventsShown = 200;
constexpr std::array<std::string_view, 7> kMarks = {"Preempted", "Reclaimed", "Shrunk",  "Grown",
                                                    "Resumed",   "Suspended", "NodeLost"};

std::string_view RoleOf(const json::Value& pod) {
  for (std::string_view key :
       {api::keys::kJobRole, std::string_view("training.kubeflow.org/replica-type"),
        std::string_view("replica-type")}) {
    if (const std::string_view role = api::Label(pod, key); !role.empty()) return role;
  }
  return "";
}

json::Value IndexOfPod(const json::Value& pod) {
  for (std::string_view key :
       {api::keys::kJobIndex, std::string_view("training.kubeflow.org/replica-index"),
        std::string_view("replica-index")}) {
    if (const auto index = ParseInt(api::Label(pod, key))) return *index;
  }
  return nullptr;
}

json::Object MemberRow(const json::Value& pod, int64_t attempt, const PodUsage& usage) {
  json::Array gpus;
  const std::string_view devices = api::Annotation(pod, api::keys::kGpuDevices);
  for (std::string_view one : Split(devices, ',')) {
    if (const auto index = ParseInt(Trim(one))) gpus.push_back(*index);
  }
  json::Object row{{"pod", boost::json::string_view(api::Name(pod))},
                   {"role", TextOrNull(RoleOf(pod))},
                   {"index", IndexOfPod(pod)},
                   {"node", TextOrNull(api::NodeName(pod))},
                   {"gpus", std::move(gpus)},
                   {"status", cli::PodStatusWord(pod)},
                   {"reason", TextOrNull(api::StatusReason(pod))},
                   {"restarts", api::RestartCount(pod)},
                   {"attempt", attempt},
                   {"started", TimeOrNull(api::StartTime(pod))},
                   {"finished", nullptr},
                   {"exitCode", nullptr},
                   {"message", TextOrNull(api::StatusMessage(pod))},
                   {"cpu", nullptr},
                   {"memory", nullptr}};
  if (const PodUsage::Use* use = usage.Find(pod)) {
    row["cpu"] = use->cores;
    row["memory"] = use->memory;
  }
  for (const api::ContainerStatus& container : api::ContainerStatuses(pod)) {
    if (!container.Ended()) continue;
    row["exitCode"] = container.exit_code;
    row["finished"] = TimeOrNull(container.finished_at);
    if (!container.message.empty()) row["message"] = TextOrNull(container.message);
  }
  return row;
}

// The job's own state in between two moments, from those of its members.
std::string_view JobState(const std::map<std::string, int>& members) {
  for (std::string_view state :
       {"running", "resuming", "starting", "saving", "preempted", "queued"}) {
    const auto found = members.find(std::string(state));
    if (found != members.end() && found->second > 0) return state;
  }
  return "idle";
}

struct Timeline {
  json::Array lanes, sizes, attempts;
};

json::Object Lane(const json::Value& member,
                  std::string_view state,
                  WallTime from,
                  std::optional<WallTime> to) {
  return json::Object{{"member", member},
                      {"state", boost::json::string_view(state)},
                      {"from", api::FormatTime(from)},
                      {"to", TimeOrNull(to)}};
}

// Null: nothing is known of it.
const JobLog* LogOf(const cli::JobView& job, const ViewInput& input) {
  return input.state.members().Find(IsServer(job) ? DeploymentLogKey(job.ns, job.name)
                                                  : std::string(api::Uid(*job.object)));
}

// An earlier server may have had the same name.
bool IsOf(const cli::JobView& job, const MemberSpan& span) {
  return !IsServer(job) || !job.created || span.from >= *job.created;
}

// What was recorded, and runs that were over before the pages saw them: a pod that fails at once,
// or one that came and went while no server ran.
std::vector<MemberSpan> SpansOf(const JobLog* log, const cli::JobView& job) {
  std::vector<MemberSpan> spans;
  if (log != nullptr) {
    std::copy_if(log->spans.begin(), log->spans.end(), std::back_inserter(spans),
                 [&job](const MemberSpan& span) { return IsOf(job, span); });
  }
  std::set<std::string, std::less<>> ran;
  for (const MemberSpan& span : spans) {
    if (span.state == "running") ran.insert(span.uid);
  }
  const auto add = [&](std::string_view member, std::string_view uid, std::optional<WallTime> from,
                       std::optional<WallTime> to) {
    if (!from || !to || !ran.emplace(uid).second) return;
    // Such times are whole seconds: a run of none lasted less than one.
    const WallTime end = std::max(*to, *from + std::chrono::milliseconds(500));
    spans.push_back({std::string(member), std::string(uid), "running", *from, end});
  };
  for (const json::Value& one : json::GetArray(*job.object, {"status", "attempts"})) {
    add(json::GetString(one, {"member"}), json::GetString(one, {"uid"}),
        api::ParseTime(json::GetString(one, {"started"})),
        api::ParseTime(json::GetString(one, {"ended"})));
  }
  for (const json::SharedValue& pod : job.pods) {
    for (const api::ContainerStatus& container : api::ContainerStatuses(*pod)) {
      if (!api::HasEnded(*pod) || !container.Ended()) continue;
      add(api::Name(*pod), api::Uid(*pod), api::ParseTime(container.started_at),
          container.finished_at);
    }
  }
  return spans;
}

// Walks through all beginnings and ends in their order.
Timeline TimelineOf(const std::vector<MemberSpan>& spans, const cli::JobView& job) {
  Timeline out;
  struct Step {
    WallTime time;
    std::string_view state, member;
    int change;
  };
  std::vector<Step> steps;
  for (const MemberSpan& span : spans) {
    out.lanes.push_back(Lane(json::Value(span.member), span.state, span.from, span.to));
    steps.push_back({span.from, span.state, span.member, 1});
    if (span.to) steps.push_back({*span.to, span.state, span.member, -1});
  }
  std::stable_sort(steps.begin(), steps.end(),
                   [](const Step& a, const Step& b) { return a.time < b.time; });
  std::map<std::string, int> members;
  // Pods of one member may seem to overlap, where the times of their ends are whole seconds.
  std::map<std::string_view, int> pods_that_run;
  std::string_view state;
  WallTime since;
  std::optional<WallTime> attempt;
  int64_t number = 0;
  int64_t running = -1;
  auto end_attempt = [&](std::optional<WallTime> to) {
    if (!attempt) return;
    out.attempts.push_back(
        json::Object{{"number", ++number},
                     {"from", api::FormatTime(*attempt)},
                     {"to", TimeOrNull(to)},
                     {"reason", to ? EndOfAttempt(job, *attempt, *to) : json::Value(nullptr)}});
    attempt.reset();
  };
  for (size_t i = 0; i < steps.size(); ++i) {
    members[std::string(steps[i].state)] += steps[i].change;
    if (steps[i].state == "running") pods_that_run[steps[i].member] += steps[i].change;
    if (i + 1 < steps.size() && steps[i + 1].time == steps[i].time) continue;
    const WallTime time = steps[i].time;
    const std::string_view now = JobState(members);
    if (now != state) {
      if (!state.empty() && state != "idle") out.lanes.push_back(Lane(nullptr, state, since, time));
      if (now == "running" && !attempt) attempt = time;
      if (now != "running" && now != "saving") end_attempt(time);  // nobody runs any more
      state = now;
      since = time;
    }
    const auto size = std::count_if(pods_that_run.begin(), pods_that_run.end(),
                                    [](const auto& member) { return member.second > 0; });
    if (size != running) {
      running = size;
      out.sizes.push_back(json::Object{{"time", api::FormatTime(time)}, {"members", running}});
    }
  }
  if (!state.empty() && state != "idle") {
    out.lanes.push_back(Lane(nullptr, state, since, std::nullopt));
  }
  end_attempt(std::nullopt);
  return out;
}

struct JobEvents {
  json::Array rows, marks;
};

// What the event marks in the timeline; empty: nothing. A kind may stand before the reason:
// "PyTorchJobSuspended", and "JobSuspended" of KubeDL.
std::string_view MarkOf(const cli::EventView& event) {
  std::string_view reason = event.reason;
  for (const std::string_view kind :
       {std::string_view(event.object_kind), std::string_view("Job")}) {
    if (reason.starts_with(kind)) reason.remove_prefix(kind.size());
  }
  const auto found = std::find(kMarks.begin(), kMarks.end(), reason);
  const bool of_job = event.object_kind != "Pod" || reason == "NodeLost";
  return found != kMarks.end() && of_job ? *found : std::string_view();
}

// Events of the job itself, its group and its pods; an earlier job of that name has other uids.
JobEvents EventsOf(const cli::JobView& job, const ViewInput& input) {
  std::set<std::string, std::less<>> uids{std::string(api::Uid(*job.object))};
  if (job.group) uids.emplace(api::Uid(*job.group));
  for (const json::SharedValue& pod : job.pods) {
    uids.emplace(api::Uid(*pod));
    // A server's pods belong to a ReplicaSet.
    for (const api::OwnerReference& owner : api::Owners(*pod)) uids.insert(owner.uid);
  }
  if (const JobLog* log = LogOf(job, input)) {
    for (const MemberSpan& span : log->spans) {
      if (IsOf(job, span)) uids.insert(span.uid);
    }
  }
  struct Found {
    cli::EventView view;
    json::SharedValue event;
  };
  std::vector<Found> found;
  bool partial = false;
  for (json::SharedValue& event : input.Of(Kind::kEvent, partial)) {
    if (json::GetString(*event, {"involvedObject", "namespace"}) != job.ns) continue;
    if (!uids.contains(json::GetString(*event, {"involvedObject", "uid"}))) continue;
    cli::EventView view = cli::ViewEvent(*event);
    found.push_back({std::move(view), std::move(event)});
  }
  std::sort(found.begin(), found.end(),
            [](const Found& a, const Found& b) { return b.view.Before(a.view); });
  JobEvents out;
  for (const Found& one : found) {
    const std::string_view mark = MarkOf(one.view);
    if (!mark.empty()) {
      out.marks.push_back(json::Object{{"time", api::FormatTime(one.view.last)},
                                       {"kind", boost::json::string_view(mark)},
                                       {"text", one.view.message}});
    }
    if (out.rows.size() >= kEventsShown) continue;
    out.rows.push_back(EventRow(one.view, *one.event));
  }
  std::reverse(out.marks.begin(), out.marks.end());
  return out;
}

// Which pod of its member each pod is, the first being 1. Only some members of a large job have
// their pods of before noted; a pod itself knows how often it was preempted.
std::map<std::string, int64_t> AttemptsOf(const cli::JobView& job) {
  std::map<std::string, int64_t> attempts;  // by pod
  for (const json::SharedValue& pod : job.pods) {
    attempts[std::string(api::Name(*pod))] =
        1 + ParseInt(api::Annotation(*pod, api::keys::kPreemptionsBefore)).value_or(0);
  }
  for (const json::Value& one : json::GetArray(*job.object, {"status", "attempts"})) {
    const auto found = attempts.find(std::string(json::GetString(one, {"member"})));
    if (found == attempts.end()) continue;
    found->second = std::max(found->second, 1 + json::GetInt(one, {"attempt"}));
  }
  return attempts;
}

std::string Sentence(const cli::JobView& job) {
  const std::string the = IsServer(job) ? "The server " : "The job ";
  if (!job.hung.empty() && job.status == "Running") return StrCat("The job hangs. ", job.hung);
  if (job.over()) {
    const std::string why = job.status == "Failed" ? job.EndText() : "";
    return StrCat("The job is over: ", job.StatusText(), ".", why.empty() ? "" : " ", why);
  }
  if (job.failure && job.failure->repeats()) {
    return StrCat(the, job.RunsAfterOneFailure() ? "runs again after a failure. " : "fails. ",
                  job.failure->Sentence());
  }
  if (const std::string gate = job.GateText(); !gate.empty()) return StrCat("The job ", gate);
  if (job.status == "Suspended") {
    return StrCat(the, IsServer(job) ? "has no replicas: it" : "is suspended and",
                  " holds no GPUs.");
  }
  const std::string held = cli::GpusText(job.HeldMilliGpus());
  if (job.RunningPods() > 0) {
    std::string text =
        StrCat(the, "runs with ", job.RunningPods(), " of ", job.replicas, " members on ", held);
    text += job.why.empty() ? "." : StrCat(": ", job.why);
    return job.unsaved.empty() ? text : StrCat(text, " ", job.unsaved);
  }
  return job.waits.empty() ? the + "waits." : StrCat(the, "waits: ", job.waits);
}

// Swell's controller keeps an account of the GPU time of its jobs. Others keep none.
bool HasAccount(const cli::JobView& job) { return !IsServer(job) && !job.kind->is_batch(); }

// For kinds without an account the loss is unknown, except that it is 0 if they never held a GPU.
json::Value LostGpuSeconds(const cli::JobView& job) {
  const json::Value* account = json::Find(*job.object, {"status", "gpuTime"});
  if (account != nullptr) return json::GetInt(*account, {"lostSeconds"});
  const bool none = job.milli_gpus == 0 || !job.started || HasAccount(job);
  return none ? json::Value(0) : json::Value(nullptr);
}

json::Value HeldGpuSeconds(const cli::JobView& job) {
  const json::Value* account = json::Find(*job.object, {"status", "gpuTime"});
  if (account != nullptr) return json::GetInt(*account, {"heldSeconds"});
  return HasAccount(job) ? json::Value(0) : json::Value(nullptr);
}

// The account is written only when something happens to the job: not before its first minute is
// over, and later than that where it just runs.
json::Value HeldGpuAsOf(const cli::JobView& job) {
  const json::Value* account = json::Find(*job.object, {"status", "gpuTime"});
  if (account != nullptr) return TextOrNull(json::GetString(*account, {"lastUpdateTime"}));
  return HasAccount(job) ? TimeOrNull(job.started) : json::Value(nullptr);
}

// What the job's state allows; whether the user may is the API server's to say.
json::Object ActionsOf(const cli::JobView& job) {
  const bool suspended = job.status == "Suspended";
  const bool can = !job.over() && !job.kind->suspend.empty();
  return json::Object{
      {"suspend", can && !suspended},
      {"resume", can && suspended},
      {"scale", !job.over() && (job.elastic() || job.kind->is_batch() || IsServer(job))},
      {"delete", true}};
}

}  // namespace

Result<json::Value> JobPageView(const ViewInput& input) {
  const std::string ns = input.Param("namespace"), name = input.Param("name");
  const std::string kind = input.Param("kind");
  bool partial = false;
  std::optional<cli::JobView> found;
  const JobList jobs = input.Jobs(partial, ns);
  for (const cli::JobView& job : *jobs) {
    if (job.ns != ns || job.name != name || (!kind.empty() && job.kind->kind != kind)) continue;
    found = job;
    break;
  }
  if (!found) {
    return Status(Code::kNotFound,
                  StrCat("job ", Quote(name), " not found in namespace ", Quote(ns)));
  }
  cli::JobView& job = *found;
  const NamespaceProjects projects = ProjectsOfNamespaces(input);
  if (const auto of = projects.find(job.ns); of != projects.end()) job.project = of->second;
  json::Array members;
  const std::map<std::string, int64_t> attempts = AttemptsOf(job);
  for (const json::SharedValue& pod : job.pods) {
    members.push_back(
        MemberRow(*pod, attempts.at(std::string(api::Name(*pod))), input.state.usage()));
    members.back().get_object()["straggler"] = IsStraggler(job, api::Name(*pod));
  }
  json::Array checkpoints;
  const JobLog* const log = LogOf(job, input);
  Timeline timeline = TimelineOf(SpansOf(log, job), job);
  // The pods of a server come and go one by one.
  if (IsServer(job)) timeline.attempts.clear();
  if (log != nullptr) {
    for (const auto& one : log->checkpoints) {
      checkpoints.push_back(json::Object{{"time", api::FormatTime(one.time)}, {"step", one.step}});
    }
  }
  JobEvents events = EventsOf(job, input);
  if (job.over() && job.ended) {
    events.marks.push_back(json::Object{
        {"time", api::FormatTime(*job.ended)}, {"kind", job.status}, {"text", job.EndText()}});
  }
  json::Object summary = WorkloadRow(job, input);
  summary["queue"] = QueueOf(job, input);
  return json::Value(json::Object{{"summary", std::move(summary)},
                                  {"sentence", Sentence(job)},
                                  {"conditions", ConditionRows(*job.object)},
                                  {"members", std::move(members)},
                                  {"timeline", std::move(timeline.lanes)},
                                  {"marks", std::move(events.marks)},
                                  {"sizes", std::move(timeline.sizes)},
                                  {"checkpoints", std::move(checkpoints)},
                                  {"lostGpuSeconds", LostGpuSeconds(job)},
                                  {"heldGpuSeconds", HeldGpuSeconds(job)},
                                  {"heldGpuAsOf", HeldGpuAsOf(job)},
                                  {"events", std::move(events.rows)},
                                  {"attempts", std::move(timeline.attempts)},
                                  {"logs", LogsOf(job)},
                                  {"hang", HangOf(job)},
                                  {"warnings", WarningsOf(job)},
                                  {"goodput", GoodputDocument(job, *jobs)},
                                  {"addresses", AddressesOf(job, input)},
                                  {"actions", ActionsOf(job)}});
}

}  // namespace swell::ui
