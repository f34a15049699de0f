#include "projects/projects.h"

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "json/patch.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/project.h"
#include "kube/controllers/queue.h"
#include "sched_inputs/project_shares.h"
#include "sched_inputs/sched_convert.h"

namespace swell::projects {
namespace {

using api::NamespaceOfProject;

// "spec.resources.gpu.limit: ...". Empty if nothing is wrong with the spec by itself.
std::string WrongSpec(const json::Value& project) {
  const auto fault = sched_inputs::FindProjectFault(project);
  return fault ? StrCat(fault->field, ": ", fault->message) : "";
}

constexpr Duration kDelay = std::chrono::seconds(1);
constexpr Duration kNewDelay = std::chrono::milliseconds(100);
constexpr Duration kPastUseEvery = std::chrono::minutes(5);
constexpr const char* kRound = "round";

json::Value UsageOf(const std::vector<sched::Model::QueueView::Resource>& resources,
                    bool with_quota) {
  json::Object usage;
  for (const auto& resource : resources) {
    json::Object fields{{"fairShare", resource.fair_share},
                        {"allocated", resource.allocated},
                        {"requested", resource.requested}};
    if (with_quota) fields["quota"] = resource.quota;
    usage[resource.name] = std::move(fields);
  }
  return usage;
}

// The quota is the document's: it also counts pools that have no nodes yet.
json::Value WholeUsageOf(const sched::Model::QueueView& queue, const api::ProjectSpec& spec) {
  constexpr api::ResourceShare api::ResourceShares::*kShares[] = {
      &api::ResourceShares::gpu, &api::ResourceShares::cpu, &api::ResourceShares::memory};
  std::vector<sched::Model::QueueView::Resource> resources = queue.resources;
  for (size_t r = 0; r < std::min(resources.size(), std::size(kShares)); ++r) {
    resources[r].quota = spec.Whole(kShares[r]).quota.value_or(resources[r].quota);
  }
  return UsageOf(resources, true);
}

json::Value PoolsOf(const sched::Model::QueueView& queue) {
  json::Array pools;
  for (const auto& pool : queue.pools) {
    pools.push_back(
        json::Object{{"name", pool.name}, {"usage", UsageOf(pool.resources, !queue.one_share)}});
  }
  return pools;
}

constexpr std::string_view kEnforce = "pod-security.kubernetes.io/enforce";
constexpr std::string_view kWarn = "pod-security.kubernetes.io/warn";
constexpr std::string_view kUsualPodSecurity = "baseline";

// Pods beyond the level are refused; a workload that would make such pods brings a warning.
json::Object SecurityLabels(std::string_view level) {
  return json::Object{{kEnforce, level}, {kWarn, level}};
}

// Many more than people need, and few enough that nobody fills the store. Pods and the rest are
// counted in memory (kube/apiserver/admission/object_counts), which costs less.
json::Value ObjectQuota(std::string_view ns) {
  json::Object hard;
  for (const char* few :
       {"count/serviceaccounts", "count/cronjobs.batch", "count/daemonsets.apps",
        "count/networkpolicies.networking.k8s.io", "count/rolebindings.rbac.authorization.k8s.io",
        "count/roles.rbac.authorization.k8s.io"}) {
    hard[few] = "1000";
  }
  for (const char* many :
       {"count/configmaps", "count/secrets", "count/services", "count/persistentvolumeclaims",
        "count/deployments.apps", "count/statefulsets.apps", "count/jobs.batch",
        "count/leases.coordination.k8s.io", "count/ingresses.networking.k8s.io"}) {
    hard[many] = "5000";
  }
  return json::Object{
      {"apiVersion", "v1"},
      {"kind", "ResourceQuota"},
      {"metadata",
       json::Object{{"name", "project-objects"},
                    {"namespace", ns},
                    {"labels", json::Object{{"app.kubernetes.io/managed-by", "swell"}}}}},
      {"spec", json::Object{{"hard", std::move(hard)}}}};
}

constexpr std::string_view kIsolation = "project-isolated";

// Only pods of the project's namespace reach its pods.
json::Value Isolation(const json::Value& project, std::string_view ns) {
  const json::Value everybody = json::Object{{"podSelector", json::Object{}}};
  const json::Value owner = json::Object{{"apiVersion", "swell.dev/v1"},
                                         {"kind", "Project"},
                                         {"name", api::Name(project)},
                                         {"uid", api::Uid(project)},
                                         {"controller", true}};
  return json::Object{
      {"apiVersion", "networking.k8s.io/v1"},
      {"kind", "NetworkPolicy"},
      {"metadata", json::Object{{"name", kIsolation},
                                {"namespace", ns},
                                {"labels", json::Object{{"app.kubernetes.io/managed-by", "swell"}}},
                                {"ownerReferences", json::Array{owner}}}},
      {"spec",
       json::Object{
           {"podSelector", json::Object{}},
           {"policyTypes", json::Array{json::Value("Ingress")}},
           {"ingress", json::Array{json::Value(json::Object{{"from", json::Array{everybody}}})}}}}};
}

// The status as it is, with `fields` put in.
json::Value Merged(const json::Value& object, json::Object fields) {
  json::Value status = json::GetObject(object, {"status"});
  for (auto& [field, value] : fields) status.get_object()[field] = std::move(value);
  return status;
}

}  // namespace

ProjectController::ProjectController(controllers::Context context,
                                     const sched::Model& model,
                                     PastUse past_use)
    : context_(context),
      model_(model),
      past_use_(std::move(past_use)),
      projects_(context_.informers.Of(client::resources::kProjects)),
      pools_(context_.informers.Of(client::resources::kNodePools)),
      namespaces_(context_.informers.Of(client::resources::kNamespaces)),
      policies_(context_.informers.Of(client::resources::kNetworkPolicies)),
      pods_(context_.informers.Of(client::resources::kPods)),
      queue_(controllers::MakeQueue(context_, "projects", 1, this, &ProjectController::Reconcile)),
      client_(context_.executor, context_.server, context_.user, "project-controller") {
  auto look = [this](const json::SharedValue&) { OnCycle(); };
  // Users continue in the new project's namespace; but its children may follow right behind it.
  auto made = [this](const json::SharedValue&) { queue_.AddAfter(kRound, kNewDelay); };
  controllers::Follow(projects_, look, look);
  projects_.AddHandlers({.on_add = made, .on_update = {}, .on_delete = {}});
  controllers::Follow(pools_, look, look);
  namespaces_.AddHandlers({.on_add = {}, .on_update = {}, .on_delete = look});
  policies_.AddHandlers({.on_add = {}, .on_update = {}, .on_delete = look});
}

void ProjectController::OnCycle() {
  if (projects_.objects().empty() && pools_.objects().empty()) return;
  queue_.AddAfter(kRound, kDelay);
}

void ProjectController::Reconcile(client::WorkQueue::Done done) {
  std::set<std::string_view> parents;
  for (const auto& [name, project] : projects_.objects()) {
    parents.insert(api::ParentOfProject(*project));
  }
  std::vector<sched::Model::QueueView> queues = model_.Queues();
  const std::vector<sched::PastUse> past = past_use_();
  for (const auto& [name, project] : projects_.objects()) {
    auto queue = std::find_if(queues.begin(), queues.end(),
                              [&name = name](const auto& view) { return view.name == name; });
    const sched::Model::QueueView* view = queue == queues.end() ? nullptr : &*queue;
    Guard(*project, view);
    WriteProject(*project, view, past, !parents.contains(name));
  }
  for (const auto& [name, pool] : pools_.objects()) WritePool(*pool);
  done(Duration::zero());
}

void ProjectController::WriteProject(const json::Value& project,
                                     const sched::Model::QueueView* queue,
                                     const std::vector<sched::PastUse>& past,
                                     bool leaf) {
  const bool deleting = api::IsDeleting(project);
  std::string wrong = deleting ? InUse(project, queue) : SpecFault(project, leaf);
  const char* bad = deleting ? "Terminating" : "Invalid";
  json::Object fields{{"phase", wrong.empty() ? "Ready" : bad}};
  if (deleting && wrong.empty()) return;
  if (wrong != api::StatusMessage(project)) fields["message"] = wrong;
  if (leaf && !deleting) {
    MakeNamespace(project);
    Isolate(project, NamespaceOfProject(project));
    fields["namespace"] = NamespaceOfProject(project);
  }
  if (queue != nullptr) {
    fields["usage"] = WholeUsageOf(*queue, api::ProjectSpec(project));
    const bool any = queue->pools.size() > 1 || !queue->pools.front().name.empty();
    if (any) fields["pools"] = PoolsOf(*queue);
    if (!any && json::Find(project, {"status", "pools"}) != nullptr) fields["pools"] = nullptr;
  }
  // It changes with every cycle and is worth a write now and then.
  const auto noted = api::PastUseOf(project);
  json::Value used = sched_inputs::FromPastUse(past, api::Name(project));
  if (!used.is_null() && (!noted || context_.clock.Now() - noted->as_of >= kPastUseEvery)) {
    fields["pastUse"] = std::move(used);
  }
  json::Value status = Merged(project, std::move(fields));
  const json::Value* known = api::FindStatus(project);
  if (known != nullptr && json::Equal(*known, status)) return;
  // A picture for people: the next round repairs what fails.
  json::Value patch = json::Object{{"status", std::move(status)}};
  client_.Patch(client::resources::kProjects, "", api::Name(project), client::PatchType::kMerge,
                patch, {}, "status");
}

std::string ProjectController::InUse(const json::Value& project,
                                     const sched::Model::QueueView* queue) const {
  const std::vector<std::string> children = ChildrenOf(api::Name(project));
  if (!children.empty()) {
    return StrCat("it is deleted once no projects are in it: ", Join(children, ", "));
  }
  if (queue == nullptr) return "";
  for (const auto& resource : queue->resources) {
    if (resource.requested <= 0) continue;  // what it holds is part of it
    return StrCat("it is deleted once its work is: ", json::Print(json::Value(resource.requested)),
                  " of ", resource.name,
                  " are held or waited for; to let it go now: ", "swell project delete --force ",
                  api::Name(project));
  }
  return "";
}

void ProjectController::Guard(const json::Value& project, const sched::Model::QueueView* queue) {
  json::Array kept;
  bool guarded = false;
  for (const json::Value& one : api::Finalizers(project)) {
    const bool ours = one == json::Value(api::keys::kProjectInUse);
    guarded |= ours;
    if (!ours) kept.push_back(one);
  }
  if (!api::IsDeleting(project)) {
    if (guarded) return;
    kept.push_back(json::Value(api::keys::kProjectInUse));
  } else if (!guarded || !InUse(project, queue).empty()) {
    return;
  }
  SetFinalizers(project, std::move(kept));
}

void ProjectController::SetFinalizers(const json::Value& project, json::Array finalizers) {
  json::Value patch =
      json::Object{{"metadata", json::Object{{"uid", api::Uid(project)},
                                             {"resourceVersion", api::ResourceVersionText(project)},
                                             {"finalizers", std::move(finalizers)}}}};
  // A conflict is seen again by the watch that tells of it.
  client_.Patch(client::resources::kProjects, "", api::Name(project), client::PatchType::kMerge,
                patch, {}, {});
}

void ProjectController::WritePool(const json::Value& pool) {
  int64_t nodes = 0;
  int64_t gpus = 0;
  for (const sched::Model::NodeView& node : model_.Nodes()) {
    if (node.pool != api::Name(pool)) continue;
    ++nodes;
    gpus += node.gpus;
  }
  json::Value status = Merged(pool, {{"nodes", nodes}, {"gpus", gpus}});
  const json::Value* known = api::FindStatus(pool);
  if (known != nullptr && json::Equal(*known, status)) return;
  json::Value patch = json::Object{{"status", std::move(status)}};
  client_.Patch(client::resources::kNodePools, "", api::Name(pool), client::PatchType::kMerge,
                patch, {}, "status");
}

// What is wrong with the project's parent; empty if nothing is.
std::string ProjectController::WrongParent(const json::Value& project) const {
  std::string_view parent = api::ParentOfProject(project);
  for (int depth = 0; !parent.empty(); ++depth) {
    if (parent == api::Name(project) || depth > api::kProjectDepthMax) {
      return StrCat("spec.parent: Invalid value: ", Quote(api::ParentOfProject(project)),
                    ": the project would be part of itself");
    }
    json::SharedValue above = projects_.Get(parent);
    if (!above) {
      return StrCat("spec.parent: Not found: ", Quote(parent), depth > 0 ? ", further up" : "");
    }
    parent = api::ParentOfProject(*above);
  }
  return "";
}

std::string ProjectController::WrongPool(const json::Value& project) const {
  const std::vector<api::ProjectPool> pools = api::ProjectSpec(project).pools;
  for (size_t i = 0; i < pools.size(); ++i) {
    if (pools_.Get(pools[i].name)) continue;
    return StrCat("spec.nodePools[", i, "].name: Not found: ", Quote(pools[i].name),
                  ": no node pool has this name, so these quotas and limits have no effect");
  }
  return "";
}

std::vector<std::string> ProjectController::ChildrenOf(std::string_view name) const {
  std::vector<std::string> children;
  for (const auto& [child, other] : projects_.objects()) {
    if (api::ParentOfProject(*other) == name) children.push_back(child);
  }
  return children;
}

bool ProjectController::IsParent(std::string_view name) const {
  const auto& all = projects_.objects();
  return std::any_of(all.begin(), all.end(),
                     [name](const auto& one) { return api::ParentOfProject(*one.second) == name; });
}

// The first project by name has a namespace that several ask for, as its work is charged.
std::string ProjectController::WrongNamespace(const json::Value& project) const {
  const std::string_view ns = NamespaceOfProject(project);
  const std::string said = StrCat("spec.namespace: Invalid value: ", Quote(ns), ": ");
  if (const std::string wrong = api::CheckDnsLabel(ns); !wrong.empty()) return said + wrong;
  for (const auto& [name, other] : projects_.objects()) {
    if (name >= api::Name(project)) break;
    if (NamespaceOfProject(*other) != ns || IsParent(name)) continue;
    return StrCat(said, "it is project ", name, "'s, which what runs there is charged to");
  }
  return "";
}

// Work belongs to leaves: nobody is charged for what a project had before others were put below it.
std::string ProjectController::WrongWork(const json::Value& project) const {
  const std::string_view ns = NamespaceOfProject(project);
  for (const auto& [key, pod] : pods_.objects()) {
    if (api::Namespace(*pod) != ns || api::HasEnded(*pod)) continue;
    return StrCat("work in namespace ", ns, " (pod ", api::Name(*pod),
                  ") counts for no quota or limit: projects are below this one (",
                  Join(ChildrenOf(api::Name(project)), ", "),
                  "), and work belongs to one of those");
  }
  return "";
}

std::string ProjectController::SpecFault(const json::Value& project, bool leaf) const {
  std::string wrong = WrongParent(project);
  if (wrong.empty()) wrong = WrongPool(project);
  if (wrong.empty()) wrong = WrongSpec(project);
  if (wrong.empty()) wrong = leaf ? WrongNamespace(project) : WrongWork(project);
  return wrong;
}

void ProjectController::Isolate(const json::Value& project, std::string_view ns) {
  const json::SharedValue there = policies_.Get(StrCat(ns, "/", kIsolation));
  const bool wanted = json::GetBool(project, {"spec", "isolated"});
  if (wanted == (there != nullptr)) return;
  // Somebody else's of the same name stays.
  const auto owner = there ? api::ControllerOf(*there) : std::nullopt;
  if (there && (!owner || owner->uid != api::Uid(project))) return;
  if (!wanted) {
    client_.Delete(client::resources::kNetworkPolicies, ns, kIsolation, {}, {});
  } else if (namespaces_.Get(ns)) {
    client_.Create(client::resources::kNetworkPolicies, ns, Isolation(project, ns), {});
  }
}

void ProjectController::MakeNamespace(const json::Value& project) {
  const std::string_view name = NamespaceOfProject(project);
  if (!api::CheckDnsLabel(name).empty()) return;
  const std::string wanted = api::ProjectSpec(project).pod_security;
  const json::SharedValue there = namespaces_.Get(name);
  if (there == nullptr) {
    json::Object labels = SecurityLabels(wanted.empty() ? kUsualPodSecurity : wanted);
    labels[api::keys::kProject] = api::Name(project);
    const json::Value ns =
        json::Object{{"apiVersion", "v1"},
                     {"kind", "Namespace"},
                     {"metadata", json::Object{{"name", name}, {"labels", std::move(labels)}}}};
    client_.Create(client::resources::kNamespaces, "", ns, {});
    // Once: an administrator may change it, or do without it.
    client_.Create(client::resources::kResourceQuotas, name, ObjectQuota(name), {});
    return;
  }
  // Those of Kubernetes' own run what no level would let through.
  if (api::IsDeleting(*there) || name.starts_with("kube-")) return;
  const std::string_view enforced = api::Label(*there, kEnforce);
  if (wanted.empty() ? !enforced.empty() : enforced == wanted) return;
  const json::Value patch = json::Object{
      {"metadata",
       json::Object{{"labels", SecurityLabels(wanted.empty() ? kUsualPodSecurity : wanted)}}}};
  client_.Patch(client::resources::kNamespaces, "", name, client::PatchType::kMerge, patch, {}, {});
}

}  // namespace swell::projects
