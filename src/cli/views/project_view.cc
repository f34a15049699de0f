#include "cli/views/project_view.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/nearest_word.h"
#include "base/strings.h"
#include "cli/flags.h"
#include "cli/print/text_table.h"
#include "cli/views/job_view.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/amounts.h"
#include "kube/api/objects/node_pool.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/project.h"

namespace swell::cli {
namespace {

using ShareField = api::ResourceShare api::ResourceShares::*;
constexpr std::array<ShareField, 3> kShareFields = {
    &api::ResourceShares::gpu, &api::ResourceShares::cpu, &api::ResourceShares::memory};

void SetUsage(Share& share, const api::ResourceUsage& usage) {
  share.allocated = usage.allocated;
  share.requested = usage.requested;
  share.fair_share = usage.fair_share;
  share.over = share.quota < 0 ? 0 : std::max(0.0, usage.allocated - share.quota);
}

// The use of one resource in each pool. A project with a quota for each is over it where one pool
// is, though others have room.
void ReadPools(const json::Value& object, size_t resource, ProjectView& view) {
  const auto pools = api::PoolUsageOf(object, kShareNames[resource]);
  view.pool_use.resize(pools.size());
  double over = 0;
  bool own_quotas = false;
  for (size_t i = 0; i < pools.size(); ++i) {
    PoolUse& use = view.pool_use[i];
    use.pool = pools[i].pool;
    use.own_quota |= pools[i].quota.has_value();
    Share& share = use.shares[resource];
    share.quota = pools[i].quota.value_or(kUnlimitedShare);
    SetUsage(share, pools[i].usage);
    over += share.over;
    own_quotas |= use.own_quota;
  }
  if (own_quotas) view.shares[resource].over = over;
}

ProjectView ViewProject(json::SharedValue object) {
  const api::ProjectSpec spec(*object);
  ProjectView view;
  view.name = api::Name(*object);
  view.parent = spec.parent;
  view.ns = spec.ns;
  view.description = spec.description;
  view.priority = spec.priority;
  for (const api::ProjectPool& pool : spec.pools) view.pools.push_back(pool.name);
  for (size_t i = 0; i < kShareNames.size(); ++i) {
    const api::ResourceShare whole = spec.Whole(kShareFields[i]);
    Share& share = view.shares[i];
    share.quota = whole.quota.value_or(kUnlimitedShare);
    share.limit = whole.limit.value_or(kUnlimitedShare);
    share.weight = whole.over_quota_weight;
    SetUsage(share, api::UsageOf(*object, kShareNames[i]));
    ReadPools(*object, i, view);
  }
  if (const auto past = api::PastUseOf(*object)) {
    for (const api::PoolPastUse& pool : past->pools) {
      view.past_gpu_hours = view.past_gpu_hours.value_or(0) + pool.gpu_hours;
    }
  }
  view.object = std::move(object);
  return view;
}

// Depth first from `parent`; each project once, however its parents go in circles.
void Take(const std::string& parent,
          std::map<std::string, std::vector<ProjectView>>& by_parent,
          std::vector<ProjectView>& out) {
  auto found = by_parent.find(parent);
  if (found == by_parent.end()) return;
  std::vector<ProjectView> children = std::move(found->second);
  by_parent.erase(found);
  for (ProjectView& child : children) {
    std::string name = child.name;
    out.push_back(std::move(child));
    Take(name, by_parent, out);
  }
}

}  // namespace

std::string_view Share::State() const {
  if (quota < 0) return "unlimited";
  if (over_quota()) return "over quota";
  return allocated >= quota ? "at quota" : "under quota";
}

const ProjectView* ProjectTree::Find(std::string_view name) const {
  for (const ProjectView& project : projects) {
    if (project.name == name) return &project;
  }
  return nullptr;
}

const ProjectView* ProjectTree::OfNamespace(std::string_view ns) const {
  for (const ProjectView& project : projects) {
    if (!project.department && project.ns == ns) return &project;
  }
  return nullptr;
}

std::string ProjectTree::ChargedProject(const JobView& job) const {
  const ProjectView* owner = OfNamespace(job.ns);
  return owner != nullptr ? owner->name : job.project;
}

int ProjectTree::Depth(const ProjectView& project) const {
  int depth = 0;
  const ProjectView* at = &project;
  while (!at->parent.empty()) {
    at = Find(at->parent);
    if (at == nullptr) break;
    if (++depth > api::kProjectDepthMax) return 0;  // a cycle has no root
  }
  return depth;
}

Result<ProjectTree> ReadProjects(Api& api) {
  auto found = api.List(client::resources::kProjects, "");
  if (found.ok()) return ViewProjects(std::move(*found));
  if (found.status().code() == Code::kNotFound) return ProjectTree{};
  return found.status();
}

ProjectTree ViewProjects(std::vector<json::SharedValue> objects) {
  ProjectTree tree;
  std::set<std::string> names, parents;
  std::map<std::string, std::vector<ProjectView>> by_parent;
  std::vector<ProjectView> views;
  for (json::SharedValue& object : objects) {
    views.push_back(ViewProject(std::move(object)));
    names.insert(views.back().name);
    parents.insert(views.back().parent);
  }
  std::sort(views.begin(), views.end(),
            [](const ProjectView& a, const ProjectView& b) { return a.name < b.name; });
  for (ProjectView& view : views) {
    view.department = parents.contains(view.name);
    std::string parent = names.contains(view.parent) ? view.parent : "";
    by_parent[parent].push_back(std::move(view));
  }
  Take("", by_parent, tree.projects);
  // What is left are circles; they are shown all the same.
  while (!by_parent.empty()) {
    std::string parent = by_parent.begin()->first;
    Take(parent, by_parent, tree.projects);
  }
  return tree;
}

namespace {

// "/research/vision": its name, after those of all above it.
std::string PathOf(const ProjectTree& tree, const ProjectView& project) {
  std::string path = "/" + project.name;
  const ProjectView* at = &project;
  for (int depth = 0; !at->parent.empty() && depth < api::kProjectDepthMax; ++depth) {
    path = StrCat("/", at->parent, path);
    at = tree.Find(at->parent);
    if (at == nullptr) break;
  }
  return path;
}

}  // namespace

Result<ProjectView> FindProject(const ProjectTree& tree,
                                const std::string& name,
                                const std::string& program) {
  // Departments may be said before it, as in a path.
  const size_t slash = name.rfind('/');
  const bool path = slash != std::string::npos;
  const ProjectView* found = tree.Find(path ? name.substr(slash + 1) : name);
  if (found != nullptr && (!path || PathOf(tree, *found).ends_with("/" + name))) return *found;
  std::vector<std::string> names;
  for (const ProjectView& project : tree.projects) names.push_back(project.name);
  if (names.empty()) {
    return Status(Code::kNotFound, StrCat("project ", Quote(name),
                                          " not found; there are no projects yet. Create it with: ",
                                          program, " project create ", name, " --gpu-quota N"));
  }
  return NotFoundAmong("project", name, names);
}

Status CheckTakesWork(const ProjectView& project) {
  if (project.object && !api::IsDeleting(*project.object)) return Status::Ok();
  return Status(
      Code::kConflict,
      StrCat("project ", Quote(project.name), project.object ? " is being deleted" : " was deleted",
             " and takes no new work; swell project list shows the projects"));
}

Status CheckChargedProject(Api& api,
                           const std::string& name,
                           std::string_view ns,
                           std::string_view flag) {
  const auto tree = ReadProjects(api);
  // A user who may not read projects has named none.
  if (!tree.ok()) return name.empty() ? Status::Ok() : tree.status();
  const ProjectView* owner = tree->OfNamespace(ns);
  if (name.empty()) return owner == nullptr ? Status::Ok() : CheckTakesWork(*owner);
  auto project = FindProject(*tree, name);
  if (!project.ok()) return project.status().WithContext(flag);
  if (owner == nullptr || owner->name == project->name) {
    return CheckTakesWork(*project).WithContext(flag);
  }
  return Status(Code::kInvalid,
                StrCat(flag, ": ", Quote(name), ": namespace ", ns, " is project ", owner->name,
                       "'s, and work there is charged to it; ",
                       project->ns.empty() ? StrCat("project ", name, " has no namespace yet")
                                           : StrCat("for project ", name, ": -n ", project->ns)));
}

Result<std::vector<JobView>> ListJobsOfProject(Api& api,
                                               const ProjectTree& tree,
                                               const ProjectView& project) {
  auto jobs = ListJobs(api, "");
  if (jobs.status().code() == Code::kForbidden) return ListJobs(api, project.ns);
  if (!jobs.ok()) return jobs.status();
  std::erase_if(*jobs, [&](const JobView& job) {
    return job.ns != project.ns && tree.ChargedProject(job) != project.name;
  });
  return jobs;
}

Result<std::vector<PoolView>> ReadPools(Api& api) {
  auto pools = api.List(client::resources::kNodePools, "");
  if (!pools.ok()) {
    if (pools.status().code() == Code::kNotFound) return std::vector<PoolView>{};
    return pools.status();
  }
  SWELL_ASSIGN_OR_RETURN(auto nodes, api.List(client::resources::kNodes, ""));
  auto pods = api.List(client::resources::kPods, "");
  if (!pods.ok() && pods.status().code() != Code::kForbidden) return pods.status();
  return ViewPools(std::move(*pools), nodes, pods.ok() ? &*pods : nullptr);
}

std::vector<PoolView> ViewPools(std::vector<json::SharedValue> pools,
                                const std::vector<json::SharedValue>& nodes,
                                const std::vector<json::SharedValue>* pods) {
  std::vector<PoolView> views;
  std::map<std::string, int64_t, std::less<>> held;
  if (pods != nullptr) {
    for (const json::SharedValue& pod : *pods) {
      if (api::HasEnded(*pod)) continue;
      held[std::string(api::NodeName(*pod))] += MilliGpus(*pod);
    }
  }
  std::sort(pools.begin(), pools.end(),
            [](const auto& a, const auto& b) { return api::Name(*a) < api::Name(*b); });
  std::set<std::string_view> taken;
  for (const json::SharedValue& pool : pools) {
    PoolView view;
    if (pods != nullptr) view.milli_allocated = 0;
    view.object = pool;
    view.name = api::Name(*pool);
    const api::NodePoolSpec spec(*pool);
    view.placement = spec.spreads_gpu ? "Spread" : "Pack";
    std::vector<std::string> terms;
    for (const auto& label : *spec.node_selector) {
      std::string_view key{label.key().data(), label.key().size()};
      terms.push_back(StrCat(
          key, "=", label.value().is_string() ? json::View(label.value().get_string()) : ""));
    }
    view.selector = terms.empty() ? "all nodes" : Join(terms, ",");
    for (const json::SharedValue& node : nodes) {
      if (!spec.Selects(*node) || !taken.insert(api::Name(*node)).second) continue;
      view.nodes.emplace_back(api::Name(*node));
      const api::Amounts allocatable = api::ReadAmounts(*node, {"status", "allocatable"});
      if (const auto gpus = allocatable.find(api::kGpuResource); gpus != allocatable.end()) {
        view.gpus += gpus->second.Value();
      }
      if (pods != nullptr) *view.milli_allocated += held[view.nodes.back()];
    }
    views.push_back(std::move(view));
  }
  return views;
}

bool AwaitNamespace(Api& api, const std::string& ns) {
  constexpr int kLooks = 300;
  for (int looks = 0; looks < kLooks; ++looks) {
    auto there = api.Get(client::resources::kNamespaces, "", ns);
    // A user who cannot read it continues; the next request reports the error.
    if (there.ok() || there.status().code() != Code::kNotFound) return true;
    if (!api.Pause(std::chrono::milliseconds(100))) return false;
  }
  return false;
}

std::string ShareText(double amount, ShareOf what) {
  if (amount < 0) return "unlimited";
  if (what == ShareOf::kMemory) {
    constexpr double kGi = 1024.0 * 1024 * 1024;
    if (amount >= kGi || amount == 0) {
      return amount == 0 ? "0" : StrCat(GpuText(std::llround(amount / kGi * 10) * 100), "Gi");
    }
    return StrCat(std::llround(amount / (1024 * 1024)), "Mi");
  }
  return GpuText(std::llround(amount * 1000));
}

std::string HoursText(double gpu_hours) {
  return StrCat(ShareText(std::round(gpu_hours * 10) / 10, ShareOf::kGpu), " GPU-hours");
}

namespace {

// "+2", or "-" where nothing is beyond the quota.
std::string OverText(Session& session, const Share& gpu) {
  if (!gpu.over_quota()) return "-";
  return session.Paint(Colour::kYellow, "+" + ShareText(gpu.over, ShareOf::kGpu));
}

}  // namespace

namespace {

// "2 GPUs at most, fair share"; empty: a project without rules for its users.
std::string UserRulesText(const json::Value& project) {
  std::vector<std::string> rules;
  const json::Value* limit = json::Find(project, {"spec", "users", "gpuLimit"});
  if (limit != nullptr && limit->is_number() && limit->to_number<double>() >= 0) {
    rules.push_back(StrCat(ShareText(limit->to_number<double>(), ShareOf::kGpu), " GPUs at most"));
  }
  if (json::GetBool(project, {"spec", "users", "fairShare"})) rules.emplace_back("fair share");
  return Join(rules, ", ");
}

// "2", "2 in a100": what of its GPU quota a project lends; empty: all of it.
std::string LendsText(const json::Value& project) {
  const api::ProjectSpec spec(project);
  std::vector<std::string> lends;
  const auto add = [&lends](const api::ResourceShare& gpu, std::string_view pool) {
    if (!gpu.lending_limit || *gpu.lending_limit < 0) return;
    lends.push_back(StrCat(ShareText(*gpu.lending_limit, ShareOf::kGpu),
                           pool.empty() ? "" : StrCat(" in ", pool)));
  };
  add(spec.shares.gpu, "");
  for (const api::ProjectPool& pool : spec.pools) add(pool.shares.gpu, pool.name);
  return Join(lends, ", ");
}

}  // namespace

std::string ProjectTable(Session& session,
                         const ProjectTree& tree,
                         const std::vector<ProjectView>& shown,
                         const ProjectTableForm& form) {
  std::vector<std::string> header{
      "NAME",       "GPU (held/quota)", "FAIR SHARE",          "REQUESTED",
      "OVER QUOTA", "CPU (held/quota)", "MEMORY (held/quota)", "AGE"};
  if (form.wide) {
    header.insert(header.end(), {"LIMIT", "WEIGHT", "PRIORITY", "NODE POOLS", "NAMESPACE"});
  }
  const bool past = form.wide && std::any_of(shown.begin(), shown.end(), [](const ProjectView& it) {
                      return it.past_gpu_hours.has_value();
                    });
  if (past) header.push_back("PAST USE");
  const bool users = form.wide && std::any_of(shown.begin(), shown.end(), [](const auto& it) {
                       return !UserRulesText(*it.object).empty();
                     });
  if (users) header.push_back("EACH USER");
  const bool lends = form.wide && std::any_of(shown.begin(), shown.end(), [](const auto& it) {
                       return !LendsText(*it.object).empty();
                     });
  if (lends) header.push_back("LENDING LIMIT");
  TextTable table(form.headers ? header : std::vector<std::string>{});
  for (const ProjectView& project : shown) {
    const Share& gpu = project.gpu();
    std::vector<std::string> row{
        std::string(static_cast<size_t>(tree.Depth(project)) * 2, ' ') + project.name,
        HeldText(gpu, ShareOf::kGpu),
        gpu.fair_share ? ShareText(*gpu.fair_share, ShareOf::kGpu) : "-",
        ShareText(gpu.requested, ShareOf::kGpu),
        OverText(session, gpu),
        HeldText(project.shares[1], ShareOf::kCpu),
        HeldText(project.shares[2], ShareOf::kMemory),
        AgeOf(api::CreationTimestamp(*project.object), session.Now())};
    if (form.wide) {
      row.push_back(ShareText(gpu.limit, ShareOf::kGpu));
      row.push_back(gpu.weight ? ShareText(*gpu.weight, ShareOf::kGpu) : "1");
      row.push_back(std::to_string(project.priority));
      row.push_back(project.pools.empty() ? "all" : Join(project.pools, ","));
      row.push_back(project.department ? "-" : project.ns);
    }
    if (past) row.push_back(project.past_gpu_hours ? HoursText(*project.past_gpu_hours) : "-");
    if (users) row.push_back(OrDash(UserRulesText(*project.object)));
    if (lends) row.push_back(OrDash(LendsText(*project.object)));
    table.Add(std::move(row));
  }
  return table.ToString();
}

std::string ProjectPoolTable(Session& session,
                             const std::vector<ProjectView>& shown,
                             bool headers) {
  std::vector<std::string> header{
      "NAME",      "NODE POOL",  "GPU (held/quota)", "FAIR SHARE",
      "REQUESTED", "OVER QUOTA", "CPU (held/quota)", "MEMORY (held/quota)"};
  TextTable table(headers ? header : std::vector<std::string>{});
  for (const ProjectView& project : shown) {
    for (const PoolUse& use : project.pool_use) {
      const Share& gpu = use.shares[0];
      const auto held = [&use](ShareOf what) {
        const Share& share = use.shares[static_cast<size_t>(what)];
        return use.own_quota ? HeldText(share, what)
                             : StrCat(ShareText(share.allocated, what), "/shared");
      };
      table.Add({project.name, use.pool.empty() ? "(no pool)" : use.pool, held(ShareOf::kGpu),
                 gpu.fair_share ? ShareText(*gpu.fair_share, ShareOf::kGpu) : "-",
                 ShareText(gpu.requested, ShareOf::kGpu), OverText(session, gpu),
                 held(ShareOf::kCpu), held(ShareOf::kMemory)});
    }
  }
  return table.ToString();
}

namespace {

// The pools' objects, or names, in a form other than a table.
std::string FormatPools(const std::vector<PoolView>& pools, const OutputForm& form) {
  std::string names;
  std::vector<json::SharedValue> objects;
  for (const PoolView& pool : pools) {
    names += StrCat("nodepool.swell.dev/", pool.name, "\n");
    objects.push_back(pool.object);
  }
  if (form.kind == OutputForm::Kind::kName) return names;
  return FormatObject(form, MakeList(objects), "");
}

std::string PoolTable(const std::vector<PoolView>& pools, WallTime now) {
  TextTable table({"NAME", "NODES", "GPUS (held/all)", "PLACEMENT", "SELECTOR", "AGE"});
  for (const PoolView& pool : pools) {
    table.Add({pool.name, std::to_string(pool.nodes.size()),
               StrCat(pool.milli_allocated ? GpuText(*pool.milli_allocated) : "-", "/", pool.gpus),
               pool.placement, pool.selector, AgeOf(api::CreationTimestamp(*pool.object), now)});
  }
  return table.ToString();
}

}  // namespace

void PrintPools(Session& session,
                const std::vector<PoolView>& pools,
                const OutputForm& form,
                std::string_view advice) {
  if (!form.table()) {
    session.Out(FormatPools(pools, form));
  } else if (pools.empty()) {
    session.ErrLine(
        StrCat("There are no node pools. Quotas count for all nodes together.", advice));
  } else {
    session.Out(PoolTable(pools, session.Now()));
  }
}

std::string HeldText(const Share& share, ShareOf what) {
  return StrCat(ShareText(share.allocated, what), "/", ShareText(share.quota, what));
}

}  // namespace swell::cli
