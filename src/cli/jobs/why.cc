// swell why: reads a job and its cluster, and prints why the job waits and what would start it; of
// a Cron or a CronJob when it starts one.
#include "cli/jobs/why.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/strings.h"
#include "cli/commands.h"
#include "cli/jobs/what_if.h"
#include "cli/jobs/why_cron.h"
#include "cli/jobs/why_report.h"
#include "cli/pods/job_logs.h"
#include "cli/pods/pod_choice.h"
#include "cli/print/output.h"
#include "cli/print/text_table.h"
#include "cli/views/array_view.h"
#include "cli/views/events_view.h"
#include "cli/views/left_pods.h"
#include "cli/views/workloads.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/pod_claims.h"
#include "kube/api/objects/pod_group.h"

namespace swell::cli {
namespace {

const JobKindInfo& PodKind() {
  static const JobKindInfo* kind = new JobKindInfo{client::resources::kPods, "Pod", ""};
  return *kind;
}

const JobKindInfo& GroupKind() {
  static const JobKindInfo* kind = new JobKindInfo{client::resources::kPodGroups, "PodGroup", ""};
  return *kind;
}

// What pods and pod groups have in common with jobs.
JobView ViewOf(json::SharedValue object, const JobKindInfo& kind) {
  JobView view;
  view.kind = &kind;
  view.name = api::Name(*object);
  view.ns = api::Namespace(*object);
  view.status = api::StatusPhase(*object);
  view.priority = api::PriorityClassName(*object);
  view.created = api::ParseTime(api::CreationTimestamp(*object));
  view.object = std::move(object);
  return view;
}

void SetPods(JobView& view, std::vector<json::SharedValue> pods) {
  for (const json::SharedValue& pod : pods) view.milli_gpus += MilliGpus(*pod);
  view.replicas = view.least = view.most = static_cast<int64_t>(pods.size());
  view.pods = std::move(pods);
  ReadFailure(view);
}

// A pod, with or without a job above it, as a job of one.
Result<JobView> FindPod(Api& api, std::string_view ns, std::string_view name) {
  SWELL_ASSIGN_OR_RETURN(json::SharedValue pod, api.Get(client::resources::kPods, ns, name));
  JobView view = ViewOf(pod, PodKind());
  view.project = api::Label(*pod, api::keys::kProject);
  view.message = api::StatusMessage(*pod);
  if (const auto placed = api::FindCondition(*pod, "PodScheduled")) {
    view.waits = placed->message;
  }
  SetPods(view, {pod});
  return view;
}

// A pod group that no job has made, as a job of its pods.
Result<JobView> FindGroup(Api& api, std::string_view ns, std::string_view name) {
  SWELL_ASSIGN_OR_RETURN(json::SharedValue group, api.Get(client::resources::kPodGroups, ns, name));
  SWELL_ASSIGN_OR_RETURN(auto pods, api.List(client::resources::kPods, ns));
  JobView view = ViewOf(group, GroupKind());
  view.project = api::ProjectOfGroup(*group);
  view.waits = api::StatusMessage(*group);
  view.group = group;
  std::erase_if(pods, [name](const json::SharedValue& pod) {
    return api::Label(*pod, api::keys::kPodGroup) != name;
  });
  SetPods(view, std::move(pods));
  return view;
}

// A pod of a workload whose pods wait and run for themselves: one that waits, if there is one.
Result<JobView> FindPodOf(Api& api, const std::string& ns, const std::string& workload) {
  SWELL_ASSIGN_OR_RETURN(const auto pods, PodsOfWorkload(api, ns, workload));
  const auto worst = std::min_element(pods.begin(), pods.end(), [](const auto& a, const auto& b) {
    const auto place = [](const json::Value& pod) {
      return std::pair(api::IsBound(pod), api::Phase(pod) == "Running");
    };
    return place(*a) < place(*b);
  });
  return FindPod(api, ns, api::Name(**worst));
}

// A job by its name, else a pod group, a pod, or what has pods; "pod/NAME" is a pod.
Result<JobView> FindWaiting(Api& api, std::string_view ns, std::string_view name) {
  const size_t slash = name.find('/');
  const std::string_view kind = slash == std::string_view::npos ? "" : name.substr(0, slash);
  if (kind == "pod" || kind == "pods" || kind == "po") {
    return FindPod(api, ns, name.substr(slash + 1));
  }
  if (kind == "podgroup" || kind == "podgroups" || kind == "pg") {
    return FindGroup(api, ns, name.substr(slash + 1));
  }
  auto job = FindJob(api, ns, name);
  if (job.ok() || job.status().code() != Code::kNotFound || ns.empty()) return job;
  if (kind.empty()) {
    if (auto group = FindGroup(api, ns, name); group.ok()) return group;
    if (auto pod = FindPod(api, ns, name); pod.ok()) return pod;
  }
  auto pod = FindPodOf(api, std::string(ns), std::string(name));
  if (pod.ok()) return pod;
  // That a workload has no pods tells more than that it is not a job.
  const std::string_view bare = name.substr(slash == std::string_view::npos ? 0 : slash + 1);
  return WorkloadsNamed(api, ns, bare).empty() ? std::move(job) : std::move(pod);
}

class WhyAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Switch("-A,--all-namespaces", &all_, "find the job in any namespace");
    flags.Text("-o,--output", &output_, "json|yaml", "output format: json or yaml");
    flags.Switch("--json", &json_, "the same as -o json");
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (json_ && !output_.empty() && output_ != "json") {
      return Misuse(StrCat("--json and --output ", output_, " exclude each other: give one"));
    }
    if (json_) output_ = "json";
    // KIND NAME as well as KIND/NAME.
    if (words.size() == 2 && words[0].find('/') == std::string::npos) {
      words = {StrCat(words[0], "/", words[1])};
    }
    if (words.size() != 1 || words[0].empty() || words[0].ends_with('/')) {
      return Misuse("expected the name of one job: swell why JOB");
    }
    SWELL_ASSIGN_OR_RETURN(OutputForm form, ParseOutputForm(output_));
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    const std::string ns = all_ ? "" : session.Namespace();
    if (NamesCron(words[0])) {
      SWELL_ASSIGN_OR_RETURN(const CronAnswer cron, ExplainCron(session, *api, ns, words[0]));
      return Print(session, form, cron);
    }
    const auto answer = ExplainJob(session, *api, ns, words[0]);
    if (answer.status().code() == Code::kNotFound) {
      const auto cron = ExplainCron(session, *api, ns, words[0]);
      if (cron.ok()) return Print(session, form, *cron);
      SWELL_ASSIGN_OR_RETURN(const ArrayView array, FindArray(*api, ns, words[0]));
      if (!array.jobs.empty()) {
        return Print(session, form,
                     {.text = array.Text(),
                      .document = array.Json(),
                      .resource_name = StrCat("array/", array.name)});
      }
    }
    if (!answer.ok()) return answer.status();
    return Print(session, form,
                 {.text = WhyText(answer->facts, answer->forecast),
                  .document = WhyJson(answer->facts, answer->forecast),
                  .resource_name = answer->facts.job.ResourceName()});
  }

 private:
  static int Print(Session& session, const OutputForm& form, const CronAnswer& answer) {
    session.Out(form.table() ? answer.text
                             : FormatObject(form, answer.document, answer.resource_name));
    return 0;
  }

  bool all_ = false;
  bool json_ = false;
  std::string output_;
};

std::vector<PoolView> PoolsOf(const json::Array& state, const std::vector<NodeView>& nodes) {
  std::vector<json::SharedValue> pools, node_objects;
  for (const json::Value& object : state) {
    if (api::KindOf(object) != "NodePool") continue;
    pools.push_back(std::make_shared<const json::Value>(object));
  }
  for (const NodeView& node : nodes) node_objects.push_back(node.object);
  return ViewPools(std::move(pools), node_objects, nullptr);
}

void ReadQueue(const json::Array& state, WhyFacts& facts) {
  QueuePlaces::Objects pods, groups;
  for (const json::Value& object : state) {
    const std::string_view kind = api::KindOf(object);
    if (kind == "Pod") pods.push_back(&object);
    if (kind == "PodGroup") groups.push_back(&object);
  }
  facts.queue =
      QueuePlaces(pods, groups, facts.tree, QueuePlaces::Seen::kAll).Find(*facts.WaitingPod());
}

// Users who cannot read the whole cluster see the queue of their own namespace.
Status ReadOwnQueue(Api& api, WhyFacts& facts) {
  const json::Value* pod = facts.WaitingPod();
  if (!facts.WaitsForScheduler() || pod == nullptr) return Status::Ok();
  QueuePlaces::Objects pods, groups;
  SWELL_ASSIGN_OR_RETURN(const auto all, api.List(client::resources::kPods, facts.job.ns));
  for (const json::SharedValue& one : all) pods.push_back(one.get());
  SWELL_ASSIGN_OR_RETURN(const auto made, api.List(client::resources::kPodGroups, facts.job.ns));
  for (const json::SharedValue& one : made) groups.push_back(one.get());
  facts.queue = QueuePlaces(pods, groups, facts.tree, QueuePlaces::Seen::kPart).Find(*pod);
  return Status::Ok();
}

// The scheduler has named the pod's node in the claim; the pod is bound when the claim is.
void ReadAwaitedVolume(const json::Array& state, WhyFacts& facts) {
  const json::Value* pod = facts.WaitingPod();
  if (pod == nullptr) return;
  for (const api::MountedClaim& mounted : api::MountedClaims(*pod)) {
    for (const json::Value& claim : state) {
      const bool its = api::KindOf(claim) == "PersistentVolumeClaim" &&
                       api::Namespace(claim) == api::Namespace(*pod) &&
                       api::Name(claim) == mounted.name;
      const std::string_view node = api::Annotation(claim, api::kSelectedNode);
      if (!its || node.empty() || api::StatusPhase(claim) == "Bound") continue;
      const std::string_view maker =
          api::Annotation(claim, "volume.kubernetes.io/storage-provisioner");
      facts.awaited_volume =
          StrCat("its volume on ", node, " (persistentvolumeclaim ", Quote(mounted.name), ")",
                 maker.empty() ? "" : StrCat(", which ", maker, " is to make"));
      return;
    }
  }
}

// Users who cannot read the whole cluster get the reasons recorded on the job only.
Status ReadCluster(Session& session, Api& api, WhyAnswer& answer) {
  SWELL_ASSIGN_OR_RETURN(answer.facts.nodes, ReadNodes(api));
  if (!answer.facts.WaitsForScheduler()) return Status::Ok();
  SWELL_ASSIGN_OR_RETURN(json::Array state, ReadState(api));
  answer.facts.pools = PoolsOf(state, answer.facts.nodes);
  if (answer.facts.WaitingPod() != nullptr) ReadQueue(state, answer.facts);
  ReadAwaitedVolume(state, answer.facts);
  SWELL_ASSIGN_OR_RETURN(const WhatIf what_if, WhatIf::Make(session, std::move(state)));
  answer.forecast = ForecastStart(answer.facts, what_if);
  return Status::Ok();
}

// Jobs of one namespace are those that may exchange members.
Status ReadGoodput(Api& api, WhyFacts& facts) {
  facts.goodput = GoodputOf(*facts.job.object);
  if (!facts.goodput) return Status::Ok();
  SWELL_ASSIGN_OR_RETURN(const auto jobs, api.List(facts.job.kind->resource, facts.job.ns));
  for (const json::SharedValue& job : jobs) {
    std::optional<GoodputView> goodput = GoodputOf(*job);
    if (goodput) facts.others.push_back(std::move(*goodput));
  }
  return Status::Ok();
}

Status ReadTrouble(Api& api, WhyFacts& facts) {
  const JobView& job = facts.job;
  if (facts.LacksPods()) {
    SWELL_ASSIGN_OR_RETURN(auto events, ListEvents(api, job.ns, job.name, job.kind->kind));
    for (const EventView& event : events) {
      if (event.type == "Warning") facts.trouble = event.message;
    }
    // Its pods get the names of these.
    const std::string left = LeftPodsText(api, job.ns, job.name, api::Uid(*job.object));
    if (!left.empty()) facts.trouble = left;
  } else if (const json::Value* pod = facts.StartingPod()) {
    SWELL_ASSIGN_OR_RETURN(auto events,
                           ListEvents(api, job.ns, api::Name(*pod), "Pod", api::Uid(*pod)));
    std::string said;
    // What came last is what the node is at: a failure, or a pull that takes its time. What it has
    // done does not say why the pod waits.
    constexpr std::array<std::string_view, 4> kDone = {"Scheduled", "Pulled", "Created", "Started"};
    if (!events.empty() &&
        std::find(kDone.begin(), kDone.end(), events.back().reason) == kDone.end()) {
      said = events.back().message;
    }
    for (const api::ContainerStatus& status : api::InitContainerStatuses(*pod)) {
      if (status.Runs() && !api::HasSidecar(*pod, status.name)) {
        said = StrCat("waits for its init container ", status.name, " to end");
      }
    }
    if (!said.empty()) {
      facts.trouble = StrCat(facts.IsPod() ? "" : StrCat(api::Name(*pod), ": "), said);
    }
  }
  return Status::Ok();
}

}  // namespace

Result<WhyAnswer> ExplainJob(Session& session,
                             Api& api,
                             std::string_view ns,
                             const std::string& name) {
  WhyAnswer answer;
  WhyFacts& facts = answer.facts;
  SWELL_ASSIGN_OR_RETURN(facts.job, FindWaiting(api, ns, name));
  facts.now = session.Now();
  QuoteLastLine(api, facts.job);
  SWELL_ASSIGN_OR_RETURN(facts.tree, ReadProjects(api));
  const Status read = ReadCluster(session, api, answer);
  facts.hidden = read.code() == Code::kForbidden;
  if (!facts.hidden) SWELL_RETURN_IF_ERROR(read);
  if (facts.hidden) {
    const Status own = ReadOwnQueue(api, facts);
    if (!own.ok() && own.code() != Code::kForbidden) return own;
  }
  SWELL_RETURN_IF_ERROR(ReadTrouble(api, facts));
  SWELL_RETURN_IF_ERROR(ReadGoodput(api, facts));
  return answer;
}

std::string PlanText(const Plan& plan) {
  const Outcome& outcome = plan.outcome;
  std::string out;
  if (!outcome.starts(plan.least)) {
    return StrCat(plan.job, " would wait: ", OneLine(outcome.reason), "\n");
  }
  TextTable table({"POD", "NODE", "GPUS"}, 2);
  for (const Outcome::Place& place : outcome.places) {
    table.Add({place.pod, place.node, place.gpus.empty() ? "-" : place.gpus});
  }
  out = outcome.promised()
            ? StrCat(plan.job, " would start when the pods that it preempts have stopped:\n")
            : StrCat(plan.job, " would start now:\n");
  out += table.ToString("  ");
  if (!outcome.waiting.empty()) {
    out += StrCat(outcome.waiting.size(), " more pods would wait: ", OneLine(outcome.reason), "\n");
  }
  if (outcome.victims.empty()) return out + "It would not preempt any pod.\n";
  TextTable victims({"STOPPED", "NODE", "RULE", "BECAUSE"}, 2);
  for (const Outcome::Victim& victim : outcome.victims) {
    victims.Add({victim.pod, victim.node, victim.rule, OneLine(victim.reason)});
  }
  return StrCat(out, "It would preempt:\n", victims.ToString("  "));
}

Result<json::Value> TryJob(Api& api, const json::Value& job) {
  const JobKindInfo* kind = KindOfJob(job);
  if (kind == nullptr) return Status(Code::kNotAcceptable, "no plan for this kind of job");
  const auto made = api.Create(kind->resource, api::Namespace(job), job,
                               {.dry_run = true, .field_validation = "Strict"});
  if (made.status().code() == Code::kAlreadyExists) return job;
  if (!made.ok()) return made.status();
  return **made;
}

Result<Plan> MakePlan(Session& session, Api& api, const json::Value& job) {
  SWELL_ASSIGN_OR_RETURN(const json::Value made, TryJob(api, job));
  auto state = ReadState(api);
  if (state.status().code() == Code::kForbidden) {
    return Status(Code::kForbidden,
                  StrCat(state.status().message(), "; submit the job without a plan: swell why ",
                         api::Name(job), " then says what it waits for"));
  }
  if (!state.ok()) return state.status();
  SWELL_ASSIGN_OR_RETURN(WhatIf what_if, WhatIf::Make(session, std::move(*state)));
  SWELL_RETURN_IF_ERROR(what_if.AddJob(made, *KindOfJob(job)));
  const std::string group = api::KeyOf(job);
  return Plan{what_if.Run(group), LeastMembers(what_if.state(), group),
              std::string(api::Name(job))};
}

Status PrintPlan(Session& session, Api& api, const json::Value& job) {
  SWELL_ASSIGN_OR_RETURN(const Plan plan, MakePlan(session, api, job));
  session.Out(PlanText(plan));
  return Status::Ok();
}

Command WhyCommandSpec() {
  Command command{
      .name = "why",
      .group = "Jobs",
      .summary = "Explain why a job or a cron waits or was stopped, and what would start it.",
      .usage = "JOB | ARRAY | KIND/NAME",
      .examples = {{"Why a job does not start", "swell why mnist"},
                   {"A pod or a pod group without a job", "swell why pod/mnist"},
                   {"How far an array is, and which of its jobs failed", "swell why sweep"},
                   {"When a Cron or a CronJob starts its next job, and why it does not",
                    "swell why cron/nightly"},
                   {"As JSON", "swell why mnist -o json"}},
  };
  command.notes =
      "To find what would start the job, the scheduler's own code runs on changed copies of the "
      "cluster's state. Nothing in the cluster is changed.";
  command.completes = Completes::kJob;
  command.make = Makes<WhyAction>();
  return command;
}

}  // namespace swell::cli
