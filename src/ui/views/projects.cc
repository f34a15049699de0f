// The view `projects`: what each project is guaranteed, holds, wants and would get.
#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "cli/views/project_view.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/project.h"
#include "kube/api/objects/user.h"
#include "ui/views/views.h"

namespace swell::ui {
namespace {

// Below zero there is no bound.
json::Value Bound(double amount) { return amount < 0 ? json::Value(nullptr) : json::Value(amount); }

json::Object ShareDocument(const cli::Share& share) {
  json::Object out{{"held", share.allocated},
                   {"quota", Bound(share.quota)},
                   {"requested", share.requested},
                   {"limit", Bound(share.limit)},
                   {"weight", share.weight.value_or(1)}};
  out["fairShare"] = share.fair_share ? json::Value(*share.fair_share) : json::Value(nullptr);
  return out;
}

json::Array Pools(const json::Value& project) {
  json::Array pools;
  const api::ProjectSpec spec(project);
  for (const api::ProjectPool& pool : spec.pools) {
    const api::ResourceShare& gpu = pool.shares.gpu;
    json::Object share{{"quota", gpu.quota ? Bound(*gpu.quota) : json::Value(nullptr)},
                       {"limit", gpu.limit ? Bound(*gpu.limit) : json::Value(nullptr)},
                       {"weight", gpu.over_quota_weight.value_or(1)},
                       {"held", nullptr},
                       {"fairShare", nullptr},
                       {"requested", nullptr}};
    for (const api::PoolUsage& of : api::PoolUsageOf(project, "gpu")) {
      if (of.pool != pool.name) continue;
      share["held"] = of.usage.allocated;
      share["requested"] = of.usage.requested;
      if (of.usage.fair_share) share["fairShare"] = *of.usage.fair_share;
    }
    pools.push_back(json::Object{{"name", pool.name}, {"gpu", std::move(share)}});
  }
  return pools;
}

// Users whom `swell user create --project` bound to each project, by project. Only users that may
// see the cluster's users learn of them.
std::map<std::string, json::Array, std::less<>> BoundUsers(const ViewInput& input) {
  std::map<std::string, json::Array, std::less<>> users;
  bool partial = false;
  for (const json::SharedValue& secret : input.Of(Kind::kUser, partial)) {
    if (!api::IsUserSecret(*secret)) continue;
    const api::RegisteredUser user(*secret);
    for (const std::string& project : user.projects) {
      users[project].push_back(json::Object{
          {"kind", "User"}, {"name", user.name}, {"role", user.role}, {"source", "User"}});
    }
  }
  return users;
}

// `source` says where the membership is written: in the Project or with the user.
json::Array Members(const json::Value& project, json::Array users) {
  json::Array members;
  for (const json::Value& one : api::MembersOf(project)) {
    const api::ProjectMember member(one);
    members.push_back(json::Object{{"kind", boost::json::string_view(member.kind)},
                                   {"name", boost::json::string_view(member.name)},
                                   {"role", boost::json::string_view(member.role)},
                                   {"source", "Project"}});
  }
  for (json::Value& user : users) members.push_back(std::move(user));
  return members;
}

struct Load {
  int64_t running = 0, pending = 0;
  std::optional<WallTime> oldest;
};

std::map<std::string, Load> LoadOfProjects(const ViewInput& input,
                                           const cli::ProjectTree& tree,
                                           bool& partial) {
  std::map<std::string, Load> loads;
  const JobList jobs = input.Jobs(partial);
  for (const cli::JobView& job : *jobs) {
    Load& load = loads[tree.ChargedProject(job)];
    load.running += Runs(job) ? 1 : 0;
    const auto since = WaitsSince(job, input.now);
    if (!since) continue;
    ++load.pending;
    if (!load.oldest || *since < *load.oldest) load.oldest = since;
  }
  return loads;
}

// `load` is null where the user may not see the project's jobs.
json::Object Row(const cli::ProjectView& project, const Load* load, json::Array users) {
  const cli::Share& gpu = project.gpu();
  const bool terminating = api::IsDeleting(*project.object);
  json::Object resources;
  for (size_t i = 0; i < cli::kShareNames.size(); ++i) {
    resources[cli::kShareNames[i]] = ShareDocument(project.shares[i]);
  }
  json::Object row{{"name", project.name},
                   {"parent", TextOrNull(project.parent)},
                   {"namespace", project.ns},
                   {"status", terminating ? "Deleting" : "Ready"},
                   {"message", ""},
                   {"description", project.description},
                   {"priority", project.priority},
                   {"department", project.department},
                   {"resources", std::move(resources)},
                   {"pools", Pools(*project.object)},
                   {"running", nullptr},
                   {"pending", nullptr},
                   {"longestPendingSince", nullptr},
                   {"members", Members(*project.object, std::move(users))},
                   {"created", TextOrNull(api::CreationTimestamp(*project.object))}};
  if (load != nullptr) {
    row["running"] = load->running;
    row["pending"] = load->pending;
    row["longestPendingSince"] = TimeOrNull(load->oldest);
  }
  row["borrows"] = gpu.over_quota() ? gpu.allocated - gpu.quota : 0.0;
  // Its own that it does not hold; whether others hold them, the cluster's free GPUs tell.
  row["lends"] = gpu.quota > 0 ? std::max(0.0, gpu.quota - gpu.allocated) : 0.0;
  return row;
}

}  // namespace

Result<json::Value> ProjectsView(const ViewInput& input) {
  bool partial = false;
  const cli::ProjectTree tree = cli::ViewProjects(input.Of(Kind::kProject, partial));
  std::map<std::string, Load> loads = LoadOfProjects(input, tree, partial);
  std::map<std::string, json::Array, std::less<>> users = BoundUsers(input);
  double borrowed = 0;
  json::Array rows;
  for (const cli::ProjectView& project : tree.projects) {
    const bool hidden = !project.ns.empty() && !input.rights.May(Kind::kPod, project.ns);
    rows.push_back(
        Row(project, hidden ? nullptr : &loads[project.name], std::move(users[project.name])));
    if (!project.department && project.gpu().over_quota()) {
      borrowed += project.gpu().allocated - project.gpu().quota;
    }
  }
  // Nobody lends more than is borrowed.
  for (json::Value& row : rows) {
    json::Value& lends = row.get_object()["lends"];
    lends = std::min(lends.as_double(), borrowed);
  }
  json::Object out{{"rows", std::move(rows)}};
  if (partial) out["partial"] = true;
  if (!input.rights.May(Kind::kUser, api::kUserNamespace)) out["membersPartial"] = true;
  return json::Value(std::move(out));
}

}  // namespace swell::ui
