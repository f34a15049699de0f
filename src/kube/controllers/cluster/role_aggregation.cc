#include "kube/controllers/cluster/role_aggregation.h"

#include <algorithm>

#include "kube/api/meta/meta.h"
#include "kube/api/meta/selector.h"
#include "kube/controllers/queue.h"
#include "kube/controllers/workload.h"
#include "kube/controllers/write_batch.h"

namespace swell::controllers {
namespace {

const json::Array& SelectorsOf(const json::Value& role) {
  return json::GetArray(role, {"aggregationRule", "clusterRoleSelectors"});
}

}  // namespace

RoleAggregation::RoleAggregation(Context context)
    : context_(context),
      roles_(context_.informers.Of(client::resources::kClusterRoles)),
      queue_(MakeQueue(context_, "clusterroles", 4, this, &RoleAggregation::Reconcile)),
      client_(context_.executor, context_.server, context_.user, "clusterrole-aggregation") {
  auto any = [this](const json::SharedValue&) { OnRole(); };
  Follow(roles_, any, any);
}

void RoleAggregation::OnRole() {
  for (const auto& [name, role] : roles_.objects()) {
    if (!SelectorsOf(*role).empty()) queue_.Add(name);
  }
}

void RoleAggregation::Reconcile(const std::string& name, client::WorkQueue::Done done) {
  const json::SharedValue role = roles_.Get(name);
  if (!role || SelectorsOf(*role).empty()) return done(Duration::zero());
  json::Array rules;
  for (const json::Value& clause : SelectorsOf(*role)) {
    const auto selector = api::LabelSelector::FromJson(&clause);
    if (!selector.ok()) continue;
    for (const auto& [other_name, other] : roles_.objects()) {
      static const json::Value kNone = json::Object{};
      const json::Value* labels = json::Find(*other, {"metadata", "labels"});
      if (other_name == name || !selector->Matches(labels != nullptr ? *labels : kNone)) continue;
      for (const json::Value& rule : json::GetArray(*other, {"rules"})) {
        if (std::find(rules.begin(), rules.end(), rule) == rules.end()) rules.push_back(rule);
      }
    }
  }
  if (json::GetArray(*role, {"rules"}) == rules) return done(Duration::zero());
  client_.Patch(client::resources::kClusterRoles, "", name, client::PatchType::kMerge,
                json::Object{{"rules", std::move(rules)}}, Ends(std::move(done)));
}

}  // namespace swell::controllers
