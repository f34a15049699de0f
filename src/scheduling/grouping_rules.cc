#include "scheduling/grouping_rules.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/strings.h"
#include "json/yaml.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "kube/controllers/context.h"

namespace swell::scheduling {
namespace {

constexpr size_t kRulesMax = 256;
constexpr int64_t kMembersMax = 1'000'000;
constexpr size_t kNameMax = 63;

// The fields are documented in docs/scheduling.md.
constexpr std::string_view kBuiltIn = R"(
rules:
- {name: job, owner: {group: batch, kind: Job}, via: true}
- {name: replica-set, owner: {group: apps, kind: ReplicaSet}, via: true}
- {name: pod, owner: {group: "", kind: Pod}, via: true}
- name: kubernetes
  podField: spec.schedulingGroup.podGroupName
  owner: {group: scheduling.k8s.io, version: v1beta1, kind: PodGroup}
  minMember: "spec.schedulingPolicy.gang.minCount | 1"
  priorityClassFrom: [spec.priorityClassName]
  topologyFrom: [spec.schedulingConstraints.topology.key]
  wholeWhen: {spec.disruptionMode.all: "*"}
- name: volcano
  podAnnotation: scheduling.k8s.io/group-name
  owner: {group: scheduling.volcano.sh, version: v1beta1, kind: PodGroup}
  minMember: spec.minMember
  priorityClassFrom: [spec.priorityClassName]
  projectFrom: [spec.queue]
- name: coscheduling
  podLabel: scheduling.x-k8s.io/pod-group
  owner: {group: scheduling.x-k8s.io, version: v1alpha1, kind: PodGroup}
  minMember: spec.minMember
- name: ray-cluster-that-scales
  owner: {group: ray.io, kind: RayCluster}
  when: {spec.enableInTreeAutoscaling: "true"}
  podSets:
  - {name: head, pods: {ray.io/node-type: head}}
  - each: spec.workerGroupSpecs
    name: groupName
    minMember: ["minReplicas | 0", "numOfHosts | 1"]
    pods: {ray.io/group: $name}
- name: ray-cluster
  owner: {group: ray.io, kind: RayCluster}
  podSets:
  - {name: head, pods: {ray.io/node-type: head}}
  - each: spec.workerGroupSpecs
    name: groupName
    minMember: ["replicas | minReplicas | 0", "numOfHosts | 1"]
    pods: {ray.io/group: $name}
- name: mpi-job
  owner: {group: kubeflow.org, kind: MPIJob}
  priorityClassFrom: [spec.runPolicy.schedulingPolicy.priorityClass]
  podSets:
  - {name: launcher, minMember: 0, pods: {training.kubeflow.org/replica-type: launcher}}
  - {name: launcher, minMember: 0, pods: {training.kubeflow.org/job-role: launcher}}
  - {name: worker, minMember: "spec.mpiReplicaSpecs.Worker.replicas | 0"}
- name: tf-job
  owner: {group: kubeflow.org, kind: TFJob}
  priorityClassFrom: [spec.runPolicy.schedulingPolicy.priorityClass]
  podSets: [{each: spec.tfReplicaSpecs, minMember: "replicas | 1",
             pods: {training.kubeflow.org/replica-type: $name}}]
- name: pytorch-job
  owner: {group: kubeflow.org, kind: PyTorchJob}
  when: {spec.elasticPolicy.minReplicas: "*"}
  priorityClassFrom: [spec.runPolicy.schedulingPolicy.priorityClass]
  podSets:
  - {name: worker, minMember: spec.elasticPolicy.minReplicas,
     pods: {training.kubeflow.org/replica-type: worker}}
  - {name: master, minMember: "spec.pytorchReplicaSpecs.Master.replicas | 0"}
- name: pytorch-job-rigid
  owner: {group: kubeflow.org, kind: PyTorchJob}
  priorityClassFrom: [spec.runPolicy.schedulingPolicy.priorityClass]
  podSets: [{each: spec.pytorchReplicaSpecs, minMember: "replicas | 1",
             pods: {training.kubeflow.org/replica-type: $name}}]
- name: xgboost-job
  owner: {group: kubeflow.org, kind: XGBoostJob}
  priorityClassFrom: [spec.runPolicy.schedulingPolicy.priorityClass]
  podSets: [{each: spec.xgbReplicaSpecs, minMember: "replicas | 1",
             pods: {training.kubeflow.org/replica-type: $name}}]
- name: paddle-job
  owner: {group: kubeflow.org, kind: PaddleJob}
  priorityClassFrom: [spec.runPolicy.schedulingPolicy.priorityClass]
  podSets: [{each: spec.paddleReplicaSpecs, minMember: "replicas | 1",
             pods: {training.kubeflow.org/replica-type: $name}}]
- name: jax-job
  owner: {group: kubeflow.org, kind: JAXJob}
  priorityClassFrom: [spec.runPolicy.schedulingPolicy.priorityClass]
  podSets: [{each: spec.jaxReplicaSpecs, minMember: "replicas | 1",
             pods: {training.kubeflow.org/replica-type: $name}}]
- name: kueue-job
  owner: {group: batch, kind: Job}
  when: {"metadata.labels[kueue.x-k8s.io/queue-name]": "*"}
  minMember: "metadata.annotations[kueue.x-k8s.io/job-min-parallelism] | spec.parallelism | 1"
- name: job-set-in-order
  owner: {group: jobset.x-k8s.io, kind: JobSet}
  when: {spec.startupPolicy.startupPolicyOrder: InOrder}
  perLabel: jobset.sigs.k8s.io/replicatedjob-name
  podSets: &jobs
  - each: spec.replicatedJobs
    name: name
    minMember: ["replicas | 1", "template.spec.parallelism | 1"]
    pods: {jobset.sigs.k8s.io/replicatedjob-name: $name}
- name: job-set-with-dependents
  owner: {group: jobset.x-k8s.io, kind: JobSet}
  when: {spec.replicatedJobs.dependsOn: "*"}
  perLabel: jobset.sigs.k8s.io/replicatedjob-name
  podSets: *jobs
- name: job-set
  owner: {group: jobset.x-k8s.io, kind: JobSet}
  podSets: *jobs
- name: leader-worker-set-one-by-one
  owner: {group: leaderworkerset.x-k8s.io, kind: LeaderWorkerSet}
  when: {spec.startupPolicy: LeaderReady}
  perLabel: leaderworkerset.sigs.k8s.io/group-index
  minMember: 1
- name: leader-worker-set-of-a-domain
  owner: {group: leaderworkerset.x-k8s.io, kind: LeaderWorkerSet}
  when: {"metadata.annotations[leaderworkerset.sigs.k8s.io/exclusive-topology]": "*"}
  perLabel: leaderworkerset.sigs.k8s.io/group-index
  minMember: 1
- name: leader-worker-set
  owner: {group: leaderworkerset.x-k8s.io, kind: LeaderWorkerSet}
  perLabel: leaderworkerset.sigs.k8s.io/group-index
  minMember: "spec.leaderWorkerTemplate.size | 1"
- {name: deployment, owner: {group: apps, kind: Deployment}, perPod: true,
   priorityClassName: inference, onlyWithGpus: true, onlyInProjects: true}
- {name: stateful-set, owner: {group: apps, kind: StatefulSet}, perPod: true,
   priorityClassName: inference, onlyWithGpus: true, onlyInProjects: true}
)";

const json::Value* At(const json::Value& found, std::string_view path) {
  if (path.empty()) return &found;
  if (found.is_array()) {
    for (const json::Value& entry : found.get_array()) {
      if (const json::Value* there = At(entry, path)) return there;
    }
    return nullptr;
  }
  // "annotations[example.com/size].x": a step in brackets is taken as it is.
  const bool literal = path.starts_with('[');
  const size_t end = literal ? path.find(']') : path.find_first_of(".[");
  std::string_view rest = end == std::string_view::npos ? "" : path.substr(end);
  if (literal && !rest.empty()) rest.remove_prefix(1);
  if (rest.starts_with('.')) rest.remove_prefix(1);
  const std::string_view step = literal ? path.substr(1, end - 1) : path.substr(0, end);
  const json::Value* next = json::Find(found, {step});
  return next == nullptr ? nullptr : At(*next, rest);
}

std::string TextAt(const json::Value& root, std::string_view path) {
  const json::Value* found = At(root, path);
  if (found == nullptr || found->is_null()) return "";
  if (found->is_string()) return std::string(json::View(found->get_string()));
  return json::Print(*found);
}

// Empty: there is no text.
std::string_view ViewAt(const json::Value& root, std::string_view path) {
  const json::Value* found = At(root, path);
  return found != nullptr && found->is_string() ? json::View(found->get_string())
                                                : std::string_view();
}

// One rule's fields as they are read; the first fault counts.
class RuleReader {
 public:
  RuleReader(const json::Value& rule, size_t index) : rule_(rule) {
    const std::string_view name = json::GetString(rule, {"name"});
    who_ = name.empty() ? StrCat("rules[", index, "]") : StrCat("rule ", Quote(name));
  }

  std::optional<GroupingRule> Read() {
    if (!rule_.is_object()) Fault("", "must be an object");
    Only(rule_, "",
         {"name", "owner", "podLabel", "podAnnotation", "podField", "when", "via", "perLabel",
          "perPod", "minMember", "podSets", "priorityClassFrom", "priorityClassName", "projectFrom",
          "topologyFrom", "wholeWhen", "onlyWithGpus", "onlyInProjects", "disabled"});
    GroupingRule out;
    out.name = Text(rule_, "", "name", true);
    out.disabled = Switch("disabled");
    if (out.disabled) return Done(std::move(out));
    ReadOwner(out);
    out.pod_label = Text(rule_, "", "podLabel", false);
    out.pod_annotation = Text(rule_, "", "podAnnotation", false);
    out.pod_field = Text(rule_, "", "podField", false);
    out.whole_when = Pairs(rule_, "", "wholeWhen");
    const bool named = out.NamedByPods();
    if (named && out.version.empty())
      Fault("owner.version", "Required value: pods name the object");
    out.when = Pairs(rule_, "", "when");
    out.via = Switch("via");
    out.per_label = Text(rule_, "", "perLabel", false);
    out.per_pod = Switch("perPod");
    if (out.per_pod && !out.per_label.empty()) Fault("perPod", "Forbidden: there is perLabel");
    out.min_member = Counts(rule_, "", "minMember");
    ReadSets(out);
    if (!out.pod_sets.empty() && !out.min_member.empty()) {
      Fault("minMember", "Forbidden: each of podSets has its own");
    }
    out.priority_paths = Paths("priorityClassFrom");
    out.project_paths = Paths("projectFrom");
    out.topology_paths = Paths("topologyFrom");
    out.priority_class = Text(rule_, "", "priorityClassName", false);
    out.only_with_gpus = Switch("onlyWithGpus");
    out.only_in_projects = Switch("onlyInProjects");
    return Done(std::move(out));
  }

  const std::string& fault() const { return fault_; }

 private:
  std::optional<GroupingRule> Done(GroupingRule rule) {
    if (!fault_.empty()) return {};
    return rule;
  }
  void Fault(std::string_view field, std::string_view message) {
    if (fault_.empty()) {
      fault_ = StrCat(who_, ": ", field, field.empty() ? "" : ": ", message);
    }
  }
  void Only(const json::Value& object, std::string_view at, std::vector<std::string_view> known) {
    if (!object.is_object()) return;
    for (const auto& entry : object.get_object()) {
      if (std::find(known.begin(), known.end(), std::string_view(entry.key())) != known.end())
        continue;
      std::string all;
      for (std::string_view one : known) all += StrCat(all.empty() ? "" : ", ", one);
      Fault(StrCat(at, std::string_view(entry.key())), StrCat("unknown field; there are ", all));
    }
  }
  std::string Text(const json::Value& object,
                   std::string_view at,
                   std::string_view field,
                   bool required) {
    const json::Value* found = json::Find(object, {field});
    if (found == nullptr && required) Fault(StrCat(at, field), "Required value");
    if (found == nullptr) return "";
    if (!found->is_string()) Fault(StrCat(at, field), "Invalid value: must be a text");
    return std::string(json::GetString(object, {field}));
  }
  bool Switch(std::string_view field) {
    const json::Value* found = json::Find(rule_, {field});
    if (found != nullptr && !found->is_bool()) {
      Fault(field, StrCat("Invalid value: ", json::Print(*found), ": must be true or false"));
    }
    return json::GetBool(rule_, {field});
  }
  std::vector<std::string> Paths(std::string_view field) {
    std::vector<std::string> out;
    const json::Value* from = json::Find(rule_, {field});
    if (from == nullptr) return out;
    constexpr std::string_view kWrong = "Invalid value: must be a list of paths";
    if (!from->is_array()) Fault(field, kWrong);
    for (const json::Value& path : json::GetArray(rule_, {field})) {
      if (!path.is_string()) Fault(field, kWrong);
      if (path.is_string()) out.emplace_back(json::View(path.get_string()));
    }
    return out;
  }
  void ReadOwner(GroupingRule& out) {
    const json::Value* owner = json::Find(rule_, {"owner"});
    if (owner == nullptr || !owner->is_object()) return Fault("owner", "Required value");
    Only(*owner, "owner.", {"group", "version", "kind", "resource"});
    out.group = Text(*owner, "owner.", "group", true);
    out.version = Text(*owner, "owner.", "version", false);
    out.kind = Text(*owner, "owner.", "kind", true);
    out.resource = Text(*owner, "owner.", "resource", false);
    if (out.resource.empty()) out.resource = StrCat(ToLower(out.kind), "s");
  }
  std::vector<std::pair<std::string, std::string>> Pairs(const json::Value& object,
                                                         const std::string& at,
                                                         std::string_view field) {
    std::vector<std::pair<std::string, std::string>> out;
    const json::Value* found = json::Find(object, {field});
    if (found == nullptr) return out;
    if (!found->is_object()) {
      Fault(StrCat(at, field), "Invalid value: must be an object of texts");
      return out;
    }
    for (const auto& entry : found->get_object()) {
      if (!entry.value().is_string()) {
        Fault(StrCat(at, field, ".", std::string_view(entry.key())),
              "Invalid value: must be a text");
        continue;
      }
      out.emplace_back(std::string_view(entry.key()), json::View(entry.value().get_string()));
    }
    return out;
  }
  std::optional<Count> OneCount(const json::Value& value, const std::string& field) {
    Count count;
    if (value.is_number()) {
      const int64_t number = value.is_int64() ? value.get_int64() : -1;
      if (number < 0 || number > kMembersMax) {
        Fault(field, StrCat("Invalid value: ", json::Print(value), ": must be between 0 and ",
                            kMembersMax));
      }
      count.number = number;
      return count;
    }
    if (!value.is_string()) {
      Fault(field, StrCat("Invalid value: ", json::Print(value), ": must be a number or a path"));
      return {};
    }
    for (std::string_view part : Split(json::View(value.get_string()), '|')) {
      part = Trim(part);
      if (part.empty() || count.number) {
        Fault(field, StrCat("Invalid value: ", json::Print(value),
                            ": must be paths with | between them, a number last"));
        return {};
      }
      count.number = ParseInt(part);
      if (count.number && (*count.number < 0 || *count.number > kMembersMax)) {
        Fault(field, StrCat("Invalid value: ", json::Print(value), ": must be between 0 and ",
                            kMembersMax));
      }
      if (!count.number) count.paths.emplace_back(part);
    }
    return count;
  }
  std::vector<Count> Counts(const json::Value& object,
                            const std::string& at,
                            std::string_view field) {
    std::vector<Count> out;
    const json::Value* found = json::Find(object, {field});
    if (found == nullptr) return out;
    const std::string where = StrCat(at, field);
    if (!found->is_array()) {
      if (auto count = OneCount(*found, where)) out.push_back(std::move(*count));
      return out;
    }
    for (size_t i = 0; i < found->get_array().size(); ++i) {
      if (auto count = OneCount(found->get_array()[i], StrCat(where, "[", i, "]"))) {
        out.push_back(std::move(*count));
      }
    }
    return out;
  }
  void ReadSets(GroupingRule& out) {
    const json::Value* sets = json::Find(rule_, {"podSets"});
    if (sets == nullptr) return;
    if (!sets->is_array()) return Fault("podSets", "Invalid value: must be a list");
    for (size_t i = 0; i < sets->get_array().size(); ++i) {
      const json::Value& one = sets->get_array()[i];
      const std::string at = StrCat("podSets[", i, "].");
      if (!one.is_object()) return Fault(StrCat("podSets[", i, "]"), "must be an object");
      Only(one, at, {"each", "name", "minMember", "pods"});
      PodSetRule set;
      set.each = Text(one, at, "each", false);
      set.name = Text(one, at, "name", set.each.empty());
      set.min_member = Counts(one, at, "minMember");
      set.pods = Pairs(one, at, "pods");
      out.pod_sets.push_back(std::move(set));
    }
  }

  const json::Value& rule_;
  std::string who_, fault_;
};

int64_t Evaluate(const std::vector<Count>& counts, const json::Value& holder) {
  int64_t product = 1;
  for (const Count& count : counts) {
    std::optional<int64_t> found;
    for (const std::string& path : count.paths) {
      const json::Value* value = At(holder, path);
      if (value == nullptr || found) continue;
      if (value->is_number()) found = value->is_int64() ? value->get_int64() : 1;
      // As annotations say numbers.
      if (value->is_string()) found = ParseInt(json::View(value->get_string()));
    }
    if (!found) found = count.number;
    product =
        std::min(kMembersMax, product * std::clamp<int64_t>(found.value_or(1), 0, kMembersMax));
  }
  return product;
}

struct SetOf {
  std::string name;
  int64_t min_member = 1;
  const PodSetRule* rule = nullptr;
};

std::vector<SetOf> SetsOf(const GroupingRule& rule, const json::Value& owner) {
  std::vector<SetOf> out;
  for (const PodSetRule& set : rule.pod_sets) {
    if (set.each.empty()) {
      out.push_back({set.name, Evaluate(set.min_member, owner), &set});
      continue;
    }
    const json::Value* entries = At(owner, set.each);
    if (entries == nullptr) continue;
    if (entries->is_object()) {
      for (const auto& entry : entries->get_object()) {
        out.push_back({ToLower(std::string_view(entry.key())),
                       Evaluate(set.min_member, entry.value()), &set});
      }
    } else if (entries->is_array()) {
      for (const json::Value& entry : entries->get_array()) {
        out.push_back({TextAt(entry, set.name), Evaluate(set.min_member, entry), &set});
      }
    }
  }
  if (out.empty()) out.push_back({"default", Evaluate(rule.min_member, owner), nullptr});
  return out;
}

bool Fits(const SetOf& set, const json::Value& pod) {
  if (set.rule == nullptr) return true;
  return std::all_of(set.rule->pods.begin(), set.rule->pods.end(), [&](const auto& wanted) {
    const std::string& text = wanted.second == "$name" ? set.name : wanted.second;
    return ToLower(api::Label(pod, wanted.first)) == ToLower(text);
  });
}

// The sets of one group. Where each label value has a group, it has the set of its pods alone.
std::vector<SetOf> SetsOfGroup(const GroupingRule& rule,
                               const json::Value& owner,
                               const json::Value& pod) {
  std::vector<SetOf> sets = SetsOf(rule, owner);
  const auto own =
      std::find_if(sets.begin(), sets.end(), [&](const SetOf& set) { return Fits(set, pod); });
  if (rule.per_label.empty() || own == sets.end()) return sets;
  return {*own};
}

bool Holds(const std::vector<std::pair<std::string, std::string>>& when, const json::Value& owner) {
  return std::all_of(when.begin(), when.end(), [&](const auto& wanted) {
    const std::string text = TextAt(owner, wanted.first);
    return wanted.second == "*" ? !text.empty() : text == wanted.second;
  });
}

bool Applies(const GroupingRule& rule, const json::Value& owner) { return Holds(rule.when, owner); }

// By what others' queues are named: it counts where a project is called the same.
constexpr std::string_view kQueueLabels[] = {"kai.scheduler/queue", "runai/queue",
                                             "kueue.x-k8s.io/queue-name", "volcano.sh/queue-name"};

std::string ProjectOf(const GroupingRule& rule,
                      const json::Value& owner,
                      const json::Value& pod,
                      const IsProject& is_project) {
  for (const json::Value* holder : {&pod, &owner}) {
    const std::string_view own = api::Label(*holder, api::keys::kProject);
    if (!own.empty()) return std::string(own);
  }
  std::vector<std::string> named;
  for (const std::string& path : rule.project_paths) named.push_back(TextAt(owner, path));
  for (const json::Value* holder : {&pod, &owner}) {
    for (std::string_view label : kQueueLabels) named.emplace_back(api::Label(*holder, label));
  }
  const auto known = std::find_if(named.begin(), named.end(), [&](const std::string& name) {
    return !name.empty() && is_project(name);
  });
  return known == named.end() ? "" : *known;
}

std::string_view GroupOfVersion(std::string_view api_version) {
  const size_t slash = api_version.find('/');
  return slash == std::string_view::npos ? std::string_view() : api_version.substr(0, slash);
}

}  // namespace

GroupingRules::GroupingRules() {
  Read read = Parse(kBuiltIn);
  SWELL_CHECK_MSG(read.faults.empty(), read.faults.front());
  built_in_ = rules_ = std::move(read.rules);
}

GroupingRules::Read GroupingRules::Parse(std::string_view yaml) {
  Read read;
  auto documents = json::ParseYaml(yaml, {.depth = 16, .bytes = 1 << 20});
  if (!documents.ok()) {
    read.faults.emplace_back(documents.status().message());
    return read;
  }
  std::set<std::string> names;
  for (const json::Value& document : *documents) {
    const json::Value* rules = json::Find(document, {"rules"});
    if (rules == nullptr || !rules->is_array()) {
      read.faults.emplace_back("rules: Required value: a list of rules");
      continue;
    }
    for (size_t i = 0; i < rules->get_array().size(); ++i) {
      if (read.rules.size() >= kRulesMax) {
        read.faults.push_back(StrCat("rules: Too many: must have at most ", kRulesMax, " items"));
        return read;
      }
      RuleReader reader(rules->get_array()[i], i);
      auto rule = reader.Read();
      if (!rule) {
        read.faults.push_back(reader.fault());
      } else if (!names.insert(rule->name).second) {
        read.faults.push_back(StrCat("rule ", Quote(rule->name), ": name: Duplicate value"));
      } else {
        read.rules.push_back(std::move(*rule));
      }
    }
  }
  return read;
}

void GroupingRules::Extend(std::vector<GroupingRule> rules) {
  std::set<std::string> replaced;
  for (const GroupingRule& rule : rules) replaced.insert(rule.name);
  for (const GroupingRule& rule : built_in_) {
    if (!replaced.contains(rule.name)) rules.push_back(rule);
  }
  std::erase_if(rules, [](const GroupingRule& rule) { return rule.disabled; });
  rules_ = std::move(rules);
}

std::optional<client::Resource> GroupingRules::Knows(std::string_view api_version,
                                                     std::string_view kind) const {
  const std::string_view group = GroupOfVersion(api_version);
  for (const GroupingRule& rule : rules_) {
    if (rule.group != group || rule.kind != kind) continue;
    const size_t slash = api_version.find('/');
    return client::Resource{
        rule.group,
        std::string(slash == std::string_view::npos ? api_version : api_version.substr(slash + 1)),
        rule.resource, true};
  }
  return {};
}

const GroupingRule* GroupingRules::For(std::string_view api_version,
                                       std::string_view kind,
                                       const json::Value& owner) const {
  const std::string_view group = GroupOfVersion(api_version);
  for (const GroupingRule& rule : rules_) {
    if (rule.via || rule.NamedByPods() || rule.group != group) continue;
    if (rule.kind == kind && Applies(rule, owner)) return &rule;
  }
  return nullptr;
}

const GroupingRule* GroupingRules::Named(const json::Value& pod, std::string_view& named) const {
  for (const GroupingRule& rule : rules_) {
    named = {};
    if (!rule.pod_label.empty()) named = api::Label(pod, rule.pod_label);
    if (!rule.pod_annotation.empty()) named = api::Annotation(pod, rule.pod_annotation);
    if (!rule.pod_field.empty()) named = ViewAt(pod, rule.pod_field);
    if (!named.empty()) return &rule;
  }
  return nullptr;
}

std::string GroupNameOf(const GroupingRule& rule,
                        const json::Value& owner,
                        const json::Value& pod) {
  std::string name = rule.per_pod ? std::string(api::Name(pod))
                                  : StrCat(ToLower(rule.kind), ".", api::Name(owner));
  if (!rule.per_label.empty()) name += StrCat(".", api::Label(pod, rule.per_label));
  if (name.size() <= kNameMax) return name;
  // Different names stay different: by what is left out.
  uint64_t hash = 14695981039346656037u;
  for (unsigned char byte : name) hash = (hash ^ byte) * 1099511628211u;
  name.resize(kNameMax - 9);
  while (!name.empty() && (name.back() == '.' || name.back() == '-')) name.pop_back();
  return StrCat(name, "-", std::to_string(hash % 100'000'000));
}

std::string PodSetOf(const GroupingRule& rule, const json::Value& owner, const json::Value& pod) {
  const std::vector<SetOf> sets = SetsOf(rule, owner);
  auto fits =
      std::find_if(sets.begin(), sets.end(), [&](const SetOf& set) { return Fits(set, pod); });
  return fits == sets.end() ? sets.front().name : fits->name;
}

json::Object GroupSpecOf(const GroupingRule& rule,
                         const json::Value& owner,
                         const json::Value& pod,
                         const IsProject& is_project) {
  json::Array sets;
  std::set<std::string> names;
  for (const SetOf& set : SetsOfGroup(rule, owner, pod)) {
    if (!names.insert(set.name).second) continue;
    sets.push_back(json::Object{{"name", set.name}, {"minMember", set.min_member}});
  }
  json::Object spec{{"podSets", std::move(sets)}};
  std::string priority;
  for (const std::string& path : rule.priority_paths) {
    if (priority.empty()) priority = TextAt(owner, path);
  }
  // The right to a class that Kubernetes itself needs is checked when pods are made, and not for
  // owners of every kind.
  if (priority.starts_with("system-")) priority.clear();
  if (priority.empty()) priority = api::PriorityClassName(pod);
  if (priority.empty()) priority = rule.priority_class;
  if (!priority.empty()) spec["priorityClassName"] = priority;
  if (!rule.whole_when.empty()) {
    spec["preemptUnit"] = Holds(rule.whole_when, owner) ? "Gang" : "Pod";
  }
  std::string together;
  for (const std::string& path : rule.topology_paths) {
    if (together.empty()) together = TextAt(owner, path);
  }
  if (!together.empty()) spec["topology"] = json::Object{{"required", together}};
  const std::string project = ProjectOf(rule, owner, pod, is_project);
  if (!project.empty()) spec["project"] = project;
  return spec;
}

}  // namespace swell::scheduling
