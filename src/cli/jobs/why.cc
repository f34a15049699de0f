// swell why: why a job waits or was stopped, in numbers, and what would start it.
#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "base/strings.h"
#include "cli/commands.h"
#include "cli/jobs/what_if.h"
#include "cli/print/output.h"
#include "cli/print/text_table.h"
#include "cli/views/events_view.h"
#include "cli/views/node_view.h"
#include "cli/views/project_view.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"

namespace swell::cli {
namespace {

// Single jobs whose end is tried, and how many are taken together when none alone is enough.
constexpr size_t kJobsTried = 48, kJobsTriedLeast = 12;
constexpr size_t kObjectsTried = 200'000;
constexpr size_t kTogetherMax = 12;
constexpr size_t kNodesShown = 20;
// How far ahead to search for a time when minimum run times are over.
constexpr std::chrono::seconds kLookAhead = std::chrono::hours(24);

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
  view.status = json::GetString(*object, {"status", "phase"});
  view.priority = json::GetString(*object, {"spec", "priorityClassName"});
  view.created = api::ParseTime(json::GetString(*object, {"metadata", "creationTimestamp"}));
  view.object = std::move(object);
  return view;
}

void SetPods(JobView& view, std::vector<json::SharedValue> pods) {
  for (const json::SharedValue& pod : pods) view.milli_gpus += MilliGpus(*pod);
  view.replicas = view.least = view.most = static_cast<int64_t>(pods.size());
  view.pods = std::move(pods);
}

// A pod, with or without a job above it, as a job of one.
Result<JobView> FindPod(Api& api, std::string_view ns, std::string_view name) {
  SWELL_ASSIGN_OR_RETURN(json::SharedValue pod, api.Get(client::resources::kPods, ns, name));
  JobView view = ViewOf(pod, PodKind());
  view.project = api::Label(*pod, api::keys::kProject);
  view.message = json::GetString(*pod, {"status", "message"});
  if (const json::Value* placed = api::FindCondition(*pod, "PodScheduled")) {
    view.waits = json::GetString(*placed, {"message"});
  }
  SetPods(view, {pod});
  return view;
}

// A pod group that no job has made, as a job of its pods.
Result<JobView> FindGroup(Api& api, std::string_view ns, std::string_view name) {
  SWELL_ASSIGN_OR_RETURN(json::SharedValue group, api.Get(client::resources::kPodGroups, ns, name));
  SWELL_ASSIGN_OR_RETURN(auto pods, api.List(client::resources::kPods, ns));
  JobView view = ViewOf(group, GroupKind());
  view.project = json::GetString(*group, {"spec", "project"});
  view.waits = json::GetString(*group, {"status", "message"});
  view.group = group;
  std::erase_if(pods, [name](const json::SharedValue& pod) {
    return api::Label(*pod, api::keys::kPodGroup) != name;
  });
  SetPods(view, std::move(pods));
  return view;
}

// A job by its name, else a pod group, else a pod; "pod/NAME" is a pod.
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
  if (job.ok() || job.status().code() != Code::kNotFound || ns.empty() || !kind.empty()) return job;
  if (auto group = FindGroup(api, ns, name); group.ok()) return group;
  auto pod = FindPod(api, ns, name);
  return pod.ok() ? std::move(pod) : std::move(job);
}

class WhyAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Switch("-A,--all-namespaces", &all_, "find the job in any namespace");
    flags.Text("-o,--output", &output_, "json|yaml", "output format: json or yaml");
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (words.size() != 1 || words[0].empty() || words[0].ends_with('/')) {
      return Misuse("the name of one job expected: swell why JOB");
    }
    SWELL_ASSIGN_OR_RETURN(OutputForm form, ParseOutputForm(output_));
    session_ = &session;
    SWELL_ASSIGN_OR_RETURN(api_, session.Server());
    SWELL_ASSIGN_OR_RETURN(job_, FindWaiting(*api_, all_ ? "" : session.Namespace(), words[0]));
    SWELL_ASSIGN_OR_RETURN(tree_, ReadProjects(*api_));
    const Status read = ReadCluster();
    hidden_ = read.code() == Code::kForbidden;
    if (!hidden_) SWELL_RETURN_IF_ERROR(read);
    if (Podless()) SWELL_RETURN_IF_ERROR(ReadTrouble());
    if (form.table()) {
      session.Out(Text());
    } else {
      session.Out(FormatObject(form, Json(), job_.ResourceName()));
    }
    return 0;
  }

 private:
  bool Waits() const {
    return !job_.over() && job_.status != "Suspended" && job_.PendingPods() > 0;
  }

  bool Podless() const { return job_.pods.empty() && !job_.over() && job_.status != "Suspended"; }
  bool IsPod() const { return job_.kind == &PodKind(); }
  std::string_view PodNode() const { return json::GetString(*job_.object, {"spec", "nodeName"}); }

  // The other scheduler that is responsible for a pod; empty if it is Swell.
  std::string_view OtherScheduler() const {
    const std::string_view name =
        IsPod() ? json::GetString(*job_.object, {"spec", "schedulerName"}) : "";
    return name == "swell" || name == "default-scheduler" ? "" : name;
  }

  // True if it waits for Swell's scheduler.
  bool WaitsForScheduler() const {
    return Waits() && OtherScheduler().empty() &&
           (!IsPod() || (PodNode().empty() && !LacksGroup()));
  }

  // The scheduler ignores a pod until its group exists.
  bool LacksGroup() const {
    const json::Value* placed = api::FindCondition(*job_.object, "PodScheduled");
    return placed != nullptr && json::GetString(*placed, {"reason"}) == "GroupMissing";
  }

  // The first pod without a node; null if there is no such pod.
  const json::Value* WaitingPod() const {
    for (const json::SharedValue& pod : job_.pods) {
      if (json::GetString(*pod, {"spec", "nodeName"}).empty() && !PodHasEnded(*pod)) return &*pod;
    }
    return nullptr;
  }

  // The name that the scheduler uses. A batch Job has no group; then it is that of a pod.
  std::string Group() const {
    const json::Value* pod = WaitingPod();
    return pod != nullptr ? GroupOfPod(*pod) : StrCat(job_.ns, "/", job_.name);
  }

  // Users who cannot read the whole cluster get the reasons recorded on the job only.
  Status ReadCluster() {
    SWELL_ASSIGN_OR_RETURN(nodes_, ReadNodes(*api_));
    return WaitsForScheduler() ? TryChanges() : Status::Ok();
  }

  // The last warning about a job without pods.
  Status ReadTrouble() {
    SWELL_ASSIGN_OR_RETURN(auto events, ListEvents(*api_, job_.ns, job_.name, job_.kind->kind));
    for (const EventView& event : events) {
      if (event.type == "Warning") trouble_ = event.message;
    }
    return Status::Ok();
  }

  // What the scheduler would do now, and with changes to the cluster.
  Status TryChanges() {
    SWELL_ASSIGN_OR_RETURN(json::Array state, ReadState(*api_));
    SWELL_ASSIGN_OR_RETURN(WhatIf what_if, WhatIf::Make(*session_, std::move(state)));
    std::string group = Group();
    int64_t placed = job_.group ? json::GetInt(*job_.group, {"status", "scheduled"}) : 0;
    // A running elastic job needs one more member.
    int64_t need = std::max<int64_t>(1, LeastMembers(what_if.state(), group) - placed);
    now_ = what_if.Run(group);
    if (now_.starts(need)) return Status::Ok();
    TryTime(what_if, group, need);
    TryEnds(what_if, group, need);
    TryQuota(what_if, group, need);
    TryNode(what_if, group, need);
    return Status::Ok();
  }

  // Time alone: victims become preemptible when their minimum run time is over.
  void TryTime(const WhatIf& what_if, const std::string& group, int64_t need) {
    auto after = [&](std::chrono::seconds later) {
      return what_if.Run(group, what_if.Without({}), later);
    };
    std::chrono::seconds too_soon{0}, enough = kLookAhead;
    Outcome then = after(enough);
    if (!then.starts(need)) return;
    while (enough - too_soon > std::chrono::seconds(1)) {
      const auto middle = too_soon + (enough - too_soon) / 2;
      Outcome at = after(middle);
      if (at.starts(need)) {
        enough = middle;
        then = std::move(at);
      } else {
        too_soon = middle;
      }
    }
    std::set<std::string> groups;
    for (const Outcome::Victim& victim : then.victims) groups.insert(victim.group);
    const std::vector<Holder> holders = Holders();
    std::set<std::string> names;
    for (const std::string& one : groups) {
      const auto holder = std::find_if(holders.begin(), holders.end(), [&one](const Holder& it) {
        return it.groups.contains(one);
      });
      names.insert(holder != holders.end() ? holder->name : one);
    }
    changes_.push_back(StrCat(api::HumanDuration(enough), " more",
                              names.empty() ? "" : ", when it may preempt ",
                              Join({names.begin(), names.end()}, ", ")));
  }

  // What ends together: a job, the pods that one owner made, or a pod.
  struct Holder {
    std::string name;
    std::set<std::string> groups;
    int64_t milli_gpus = 0;
    std::vector<std::string> nodes;
  };

  static std::string HolderOf(const json::Value& pod) {
    const std::string group = GroupOfPod(pod);
    if (!group.starts_with('/')) return group;
    const auto owner = api::ControllerOf(pod);
    return owner ? StrCat(ToLower(owner->kind), " ", api::Namespace(pod), "/", owner->name)
                 : StrCat("pod ", api::KeyOf(pod));
  }

  std::vector<Holder> Holders() const {
    std::map<std::string, Holder> by_name;
    for (const NodeView& node : nodes_) {
      for (const json::SharedValue& pod : node.pods) {
        if (MilliGpus(*pod) == 0) continue;
        Holder& holder = by_name[HolderOf(*pod)];
        holder.groups.insert(GroupOfPod(*pod));
        holder.milli_gpus += MilliGpus(*pod);
        if (holder.nodes.empty() || holder.nodes.back() != node.name) {
          holder.nodes.push_back(node.name);
        }
      }
    }
    const json::Value* waiting = WaitingPod();
    const std::string own = waiting != nullptr ? HolderOf(*waiting) : Group();
    std::vector<Holder> holders;
    for (auto& [name, holder] : by_name) {
      holder.name = name;
      if (name != own) holders.push_back(std::move(holder));
    }
    std::sort(holders.begin(), holders.end(), [](const Holder& a, const Holder& b) {
      return std::tie(a.milli_gpus, a.name) < std::tie(b.milli_gpus, b.name);
    });
    return holders;
  }

  // The smallest holder whose end is enough; else the fewest of the largest together.
  void TryEnds(const WhatIf& what_if, const std::string& group, int64_t need) {
    std::vector<Holder> holders = Holders();
    // Each attempt costs a cycle, and the user waits.
    const size_t most =
        std::clamp(kObjectsTried / (what_if.state().size() + 1), kJobsTriedLeast, kJobsTried);
    size_t tried = 0;
    for (const Holder& holder : holders) {
      if (++tried > most) break;
      Outcome outcome = what_if.Run(group, what_if.Without(holder.groups));
      if (!outcome.starts(need) || !outcome.victims.empty()) continue;
      changes_.push_back(StrCat(holder.name, " ends (", GpusText(holder.milli_gpus), " on ",
                                Join(holder.nodes, ", "), ")"));
      return;
    }
    std::vector<std::string> names;
    std::set<std::string> together;
    int64_t gpus = 0;
    for (size_t i = holders.size(); i-- > 0 && names.size() < kTogetherMax;) {
      names.push_back(holders[i].name);
      together.insert(holders[i].groups.begin(), holders[i].groups.end());
      gpus += holders[i].milli_gpus;
      Outcome outcome = what_if.Run(group, what_if.Without(together));
      if (!outcome.starts(need)) continue;
      changes_.push_back(StrCat(Join(names, " and "), " end (", GpusText(gpus), " together)"));
      return;
    }
  }

  const ProjectView* Project() const {
    const ProjectView* found = tree_.Find(job_.project);
    return found != nullptr ? found : tree_.OfNamespace(job_.ns);
  }

  // What the project and those above it would hold of GPUs with the job.
  std::map<std::string, double> WithJob() const {
    std::map<std::string, double> gpus;
    for (const ProjectView* at = Project(); at != nullptr && gpus.size() < 32;
         at = at->parent.empty() ? nullptr : tree_.Find(at->parent)) {
      gpus[at->name] = at->gpu().allocated + static_cast<double>(job_.milli_gpus) / 1000.0;
    }
    return gpus;
  }

  static void Raise(json::Array& state,
                    const std::map<std::string, double>& gpus,
                    std::string_view field) {
    for (json::Value& object : state) {
      if (json::GetString(object, {"kind"}) != "Project") continue;
      auto found = gpus.find(std::string(api::Name(object)));
      if (found == gpus.end()) continue;
      json::Value* pools = json::FindMutable(object, {"spec", "nodePools"});
      const bool lists = pools != nullptr && pools->is_array() && !pools->get_array().empty();
      if (!lists || json::Find(object, {"spec", "resources"}) != nullptr) {
        json::Set(object, {"spec", "resources", "gpu", field}, found->second);
      }
      if (!lists) continue;
      for (json::Value& pool : pools->get_array()) {
        json::Set(pool, {"resources", "gpu", field}, found->second);
      }
    }
  }

  // "3 for team-a and team-b"; amounts that differ are told one by one.
  static std::string AmountsText(const std::map<std::string, double>& gpus) {
    std::map<std::string, std::vector<std::string>> by_amount;
    for (const auto& [name, amount] : gpus) {
      by_amount[ShareText(amount, ShareOf::kGpu)].push_back(name);
    }
    std::vector<std::string> parts;
    for (const auto& [amount, names] : by_amount) {
      parts.push_back(StrCat(amount, " for ", Join(names, " and ")));
    }
    return Join(parts, ", ");
  }

  // A limit that is in the way, else a quota, else both.
  void TryQuota(const WhatIf& what_if, const std::string& group, int64_t need) {
    const std::map<std::string, double> gpus = WithJob();
    std::map<std::string, double> limited;
    for (const auto& [name, amount] : gpus) {
      const double limit = tree_.Find(name)->gpu().limit;
      if (limit >= 0 && amount > limit) limited[name] = amount;
    }
    auto attempt = [&](bool limits, bool quotas) {
      json::Array state = what_if.state();
      if (limits) Raise(state, limited, "limit");
      if (quotas) Raise(state, gpus, "quota");
      Outcome outcome = what_if.Run(group, StateViewOf(state));
      if (!outcome.starts(need)) return false;
      std::string what;
      if (limits) what = StrCat("a GPU limit of ", AmountsText(limited));
      if (quotas) what += StrCat(limits ? " and " : "", "a GPU quota of ", AmountsText(gpus));
      if (!outcome.victims.empty()) {
        what += StrCat(", which would stop ", outcome.victims.size(), " pods, ",
                       outcome.victims[0].pod, " first");
      }
      changes_.push_back(std::move(what));
      return true;
    };
    if (gpus.empty()) return;
    if (!limited.empty() && attempt(true, false)) return;
    attempt(!limited.empty(), true);
  }

  void TryNode(const WhatIf& what_if, const std::string& group, int64_t need) {
    const NodeView* largest = nullptr;
    for (const NodeView& node : nodes_) {
      if (node.ready && (largest == nullptr || node.gpus() > largest->gpus())) largest = &node;
    }
    if (largest == nullptr) return;
    json::Array state = what_if.state();
    constexpr int kNodesMax = 8;
    for (int more = 1; more <= kNodesMax; more *= 2) {
      while (added_ < more) {
        json::Value node = *largest->object;
        std::string name = StrCat(largest->name, "-what-if-", ++added_);
        json::Set(node, {"apiVersion"}, "v1");
        json::Set(node, {"kind"}, "Node");
        json::Set(node, {"metadata", "name"}, name);
        json::Set(node, {"metadata", "labels", "kubernetes.io/hostname"}, name);
        state.push_back(std::move(node));
      }
      Outcome outcome = what_if.Run(group, StateViewOf(state));
      if (!outcome.starts(need) || !outcome.victims.empty()) continue;
      changes_.push_back(more == 1 ? StrCat("one more node like ", largest->name)
                                   : StrCat(more, " more nodes like ", largest->name));
      return;
    }
  }

  std::string NeedText() const {
    if (IsPod()) return GpusText(job_.milli_gpus);
    std::string each;
    if (!job_.pods.empty()) each = GpuText(MilliGpus(*job_.pods[0]));
    return job_.replicas == 1 ? StrCat(GpusText(job_.milli_gpus), " in one pod")
                              : StrCat(GpusText(job_.milli_gpus), " in ", job_.replicas, " pods",
                                       each.empty() ? "" : StrCat(" of ", each));
  }

  std::string StateText() const {
    WallTime now = session_->Now();
    if (job_.over()) {
      return StrCat("is over: ", job_.status, job_.message.empty() ? "" : ". ", job_.message);
    }
    if (job_.status == "Suspended") return StrCat("is suspended; swell resume ", job_.name);
    if (Podless()) return "has no pods yet";
    if (IsPod() && !PodNode().empty()) {
      return StrCat(Waits() ? "starts on " : "runs on ", PodNode(),
                    job_.milli_gpus > 0 ? ": " + GpusText(job_.milli_gpus) : "");
    }
    if (!Waits()) {
      return StrCat("runs: ", job_.RunningPods(), " of ", job_.replicas, " pods, ",
                    GpusText(job_.HeldMilliGpus()));
    }
    std::string since =
        job_.created ? StrCat(", submitted ", api::HumanDuration(now - *job_.created), " ago") : "";
    return job_.RunningPods() > 0
               ? StrCat("runs with ", job_.RunningPods(), " of ", job_.replicas,
                        " pods; the others wait")
               : StrCat("waits", job_.milli_gpus > 0 ? " for " + NeedText() : "", since);
  }

  std::string Reason() const {
    // A reported reason may come from Swell, which also serves some names of other schedulers.
    if (!OtherScheduler().empty() && job_.waits.empty()) {
      return StrCat("another scheduler is responsible for it: ", Quote(OtherScheduler()),
                    " (spec.schedulerName)");
    }
    if (IsPod() && !PodNode().empty()) return NodeTrouble();
    std::vector<std::string> gates;
    for (const json::Value& gate : json::GetArray(*job_.object, {"spec", "schedulingGates"})) {
      gates.emplace_back(json::GetString(gate, {"name"}));
    }
    if (!gates.empty()) {
      return StrCat("it has scheduling gates, which must be removed first: ", Join(gates, ", "));
    }
    if (!now_.reason.empty()) return now_.reason;
    return Podless() ? trouble_ : job_.waits;
  }

  // Why the node does not start its pod; empty if unknown.
  std::string NodeTrouble() const {
    if (hidden_) return "";
    for (const NodeView& node : nodes_) {
      if (node.name != PodNode()) continue;
      return node.ready ? "" : StrCat("the node ", node.name, " is not ready");
    }
    return StrCat("the node does not exist: ", PodNode());
  }

  // Reports a minimum that the job cannot reach.
  std::string MinimumText() const {
    const int64_t least =
        json::GetInt(*job_.object, {"spec", "runPolicy", "schedulingPolicy", "minAvailable"});
    if (job_.over() || least <= job_.replicas) return "";
    return StrCat("minAvailable is ", least, ", but the job has ", job_.replicas,
                  " members; all of them start together");
  }

  std::string StoppedText() const {
    if (!job_.group) return "";
    const json::Value* last = json::Find(*job_.group, {"status", "lastPreemption"});
    if (last == nullptr) return "";
    auto when = api::ParseTime(json::GetString(*last, {"time"}));
    return StrCat(when ? api::HumanDuration(session_->Now() - *when) + " ago" : "once", ", rule ",
                  json::GetString(*last, {"rule"}), ": ",
                  OneLine(json::GetString(*last, {"message"})));
  }

  std::string QuotaText() const {
    const ProjectView* project = Project();
    if (project == nullptr) return "";
    const Share& gpu = project->gpu();
    return StrCat(project->name, " holds ", HeldText(gpu, ShareOf::kGpu), " GPUs",
                  gpu.fair_share ? ", fair share " + ShareText(*gpu.fair_share, ShareOf::kGpu) : "",
                  ", requested ", ShareText(gpu.requested, ShareOf::kGpu), PastUseText(*project));
  }

  // Past use lowers the share of a project if shares are fair over time.
  std::string PastUseText(const ProjectView& project) const {
    double all = 0;  // of its siblings
    for (const ProjectView& other : tree_.projects) {
      if (other.parent == project.parent) all += other.past_gpu_hours.value_or(0);
    }
    if (all <= 0) return "";
    return StrCat("; its past use counts as ", HoursText(project.past_gpu_hours.value_or(0)),
                  ", of ", HoursText(all), " at its level");
  }

  // Nodes with the most free GPUs first, if there are many.
  std::string NodesText() const {
    std::vector<const NodeView*> nodes;
    for (const NodeView& node : nodes_) {
      if (node.gpus() > 0) nodes.push_back(&node);
    }
    if (nodes.size() > kNodesShown) {
      std::stable_sort(nodes.begin(), nodes.end(), [](const NodeView* a, const NodeView* b) {
        return FreeOf(*a) > FreeOf(*b);
      });
    }
    TextTable table({"NODE", "FREE GPUS", "HELD BY"}, 2);
    for (size_t i = 0; i < nodes.size() && i < kNodesShown; ++i) {
      table.Add(
          {nodes[i]->name,
           StrCat(GpuText(FreeOf(*nodes[i])), " of ", nodes[i]->gpus(), KeptFreeText(*nodes[i])),
           HoldersText(*nodes[i])});
    }
    if (nodes.empty()) return "";
    std::string text = table.ToString("  ");
    if (nodes.size() <= kNodesShown) return text;
    return StrCat(text, "  and ", nodes.size() - kNodesShown, " more nodes with at most ",
                  GpuText(FreeOf(*nodes[kNodesShown])), " free\n");
  }

  static int64_t FreeOf(const NodeView& node) {
    return node.total.milli_gpus - node.used.milli_gpus;
  }

  // Why pods may not be placed there: ", not ready", ", cordoned", ", tainted dedicated=x".
  static std::string KeptFreeText(const NodeView& node) {
    std::string text = node.ready ? "" : ", not ready";
    if (node.unschedulable) text += ", cordoned";
    for (const json::Value& taint : json::GetArray(*node.object, {"spec", "taints"})) {
      const std::string_view key = json::GetString(taint, {"key"});
      if (key.starts_with("node.kubernetes.io/") ||
          json::GetString(taint, {"effect"}) == "PreferNoSchedule") {
        continue;
      }
      const std::string_view value = json::GetString(taint, {"value"});
      text += StrCat(", tainted ", key, value.empty() ? "" : "=", value);
    }
    return text;
  }

  static std::string HoldersText(const NodeView& node) {
    std::map<std::string, int64_t> held;
    for (const json::SharedValue& pod : node.pods) {
      int64_t gpus = MilliGpus(*pod);
      if (gpus == 0) continue;
      std::string_view name = api::Label(*pod, api::keys::kPodGroup);
      held[StrCat(api::Namespace(*pod), "/", name.empty() ? api::Name(*pod) : name)] += gpus;
    }
    std::vector<std::string> holders;
    for (const auto& [name, gpus] : held) holders.push_back(StrCat(name, " ", GpuText(gpus)));
    return holders.empty() ? "-" : Join(holders, ", ");
  }

  std::string Text() const {
    std::string out = StrCat(job_.name, " ", StateText());
    out += out.ends_with('.') ? "\n" : ".\n";  // some kinds' messages end with a full stop
    auto add = [&out](std::string_view title, const std::string& text) {
      if (!text.empty()) out += StrCat(title, OneLine(text), "\n");
    };
    if (Waits() || Podless()) add("Why:      ", Reason());
    add("Minimum:  ", MinimumText());
    add("Stopped:  ", StoppedText());
    add("Quota:    ", QuotaText());
    if (!WaitsForScheduler()) return out;
    if (hidden_) {
      return out +
             "Only users who can read the whole cluster see what uses the nodes and what would " +
             "start the job.\n";
    }
    if (std::string nodes = NodesText(); !nodes.empty()) out += StrCat("Nodes:\n", nodes);
    if (!now_.places.empty()) return out + PlacedText();
    if (changes_.empty()) return out;
    out +=
        changes_.size() == 1 ? "It would start with:\n" : "It would start with any one of these:\n";
    for (const std::string& change : changes_) out += StrCat("  ", change, "\n");
    return out;
  }

  std::string PlacedText() const {
    if (!now_.promised()) return "The scheduler is about to place it.\n";
    if (now_.victims.empty()) {  // they give way to others of its project just as well
      return "It will start when the pods that it preempts have stopped.\n";
    }
    std::string out = "It will start when these pods have stopped:\n";
    for (const Outcome::Victim& victim : now_.victims) {
      out += StrCat("  ", victim.pod, " on ", victim.node, "\n");
    }
    return out;
  }

  json::Value Json() const {
    json::Array changes;
    for (const std::string& change : changes_) changes.emplace_back(change);
    json::Array nodes;
    for (const NodeView& node : nodes_) {
      nodes.push_back(json::Object{
          {"name", node.name},
          {"gpus", node.gpus()},
          {"free", static_cast<double>(node.total.milli_gpus - node.used.milli_gpus) / 1000.0}});
    }
    json::Value out =
        json::Object{{"job", job_.ResourceName()}, {"namespace", job_.ns},
                     {"status", job_.status},      {"waits", Waits()},
                     {"says", StateText()},        {"reason", Reason()},
                     {"nodes", std::move(nodes)},  {"wouldStartWith", std::move(changes)}};
    if (const json::Value* last =
            job_.group ? json::Find(*job_.group, {"status", "lastPreemption"}) : nullptr) {
      json::Set(out, {"lastPreemption"}, *last);
    }
    if (const ProjectView* project = Project()) {
      const Share& gpu = project->gpu();
      json::Set(out, {"project"},
                json::Object{{"name", project->name},
                             {"quota", gpu.quota},
                             {"allocated", gpu.allocated},
                             {"requested", gpu.requested},
                             {"fairShare", gpu.fair_share.value_or(0)}});
    }
    return out;
  }

  bool all_ = false;
  std::string output_;
  Session* session_ = nullptr;
  Api* api_ = nullptr;
  JobView job_;
  ProjectTree tree_;
  std::vector<NodeView> nodes_;
  Outcome now_;
  std::vector<std::string> changes_;
  std::string trouble_;
  int added_ = 0;
  bool hidden_ = false;
};

}  // namespace

std::string PlanText(const Outcome& outcome, int64_t least, std::string_view job) {
  std::string out;
  if (!outcome.starts(least)) {
    return StrCat(job, " would wait: ", OneLine(outcome.reason), "\n");
  }
  TextTable table({"POD", "NODE", "GPUS"}, 2);
  for (const Outcome::Place& place : outcome.places) {
    table.Add({place.pod, place.node, place.gpus.empty() ? "-" : place.gpus});
  }
  out = outcome.promised()
            ? StrCat(job, " would start when the pods that it preempts have stopped:\n")
            : StrCat(job, " would start now:\n");
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

Status PrintPlan(Session& session, Api& api, const json::Value& job) {
  const JobKindInfo* kind = nullptr;
  for (const JobKindInfo& one : JobKinds()) {
    if (one.resource.ApiVersion() == json::GetString(job, {"apiVersion"}) &&
        one.kind == json::GetString(job, {"kind"})) {
      kind = &one;
    }
  }
  if (kind == nullptr) return Status(Code::kNotAcceptable, "no plan for this kind of job");
  const auto made = api.Create(kind->resource, api::Namespace(job), job,
                               {.dry_run = true, .field_validation = "Strict"});
  const bool there = made.status().code() == Code::kAlreadyExists;
  if (!made.ok() && !there) return made.status();
  SWELL_ASSIGN_OR_RETURN(json::Array state, ReadState(api));
  SWELL_ASSIGN_OR_RETURN(WhatIf what_if, WhatIf::Make(session, std::move(state)));
  SWELL_RETURN_IF_ERROR(what_if.AddJob(there ? job : **made, *kind));
  std::string group = api::KeyOf(job);
  session.Out(PlanText(what_if.Run(group), LeastMembers(what_if.state(), group), api::Name(job)));
  return Status::Ok();
}

Command WhyCommandSpec() {
  Command command{
      .name = "why",
      .group = "Jobs",
      .summary = "Explain why a job waits or was stopped, and what would start it.",
      .usage = "JOB",
      .examples = {{"Why a job does not start", "swell why mnist"},
                   {"A pod or a pod group without a job", "swell why pod/mnist"},
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
