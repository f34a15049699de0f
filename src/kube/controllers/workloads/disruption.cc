#include "kube/controllers/workloads/disruption.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/pod_facts.h"
#include "kube/controllers/queue.h"
#include "kube/controllers/workload.h"
#include "kube/controllers/write_batch.h"

namespace swell::controllers {
namespace {

// An eviction that was allowed but whose pod is still there after this is not going to happen.
constexpr Duration kDisruptedFor = std::chrono::minutes(2);

bool Protects(const json::Value& budget, const json::Value& pod) {
  const auto selector = api::LabelSelector::FromJson(json::Find(budget, {"spec", "selector"}));
  return selector.ok() && Selects(*selector, pod);
}

// Pods of "ns/…" in the informer's order.
template <class F>
void ForPodsIn(const client::Informer& pods, std::string_view ns, F&& visit) {
  std::string prefix = StrCat(ns, "/");
  const auto& objects = pods.objects();
  for (auto it = objects.lower_bound(prefix); it != objects.end(); ++it) {
    if (!it->first.starts_with(prefix)) break;
    visit(*it->second);
  }
}

}  // namespace

// The pods that a budget selects.
struct DisruptionController::Sums {
  int64_t pods = 0, healthy = 0;
  std::map<std::string, const json::Value*> one_of;  // a pod of each controller, by its uid
  std::map<std::string, int64_t> of_owner;           // pods of each controller
  json::Object disrupted;  // evictions under way whose pods still look healthy
  Duration requeue_after{0};
};

int64_t DesiredHealthy(const json::Value& budget, int64_t expected) {
  if (const json::Value* most = json::Find(budget, {"spec", "maxUnavailable"})) {
    return std::max<int64_t>(0, expected - ScaledValue(most, expected, true, 0));
  }
  const json::Value* least = json::Find(budget, {"spec", "minAvailable"});
  return ScaledValue(least, expected, true, 0);
}

DisruptionController::DisruptionController(Context context)
    : context_(std::move(context)),
      budgets_(context_.informers.Of(client::resources::kPodDisruptionBudgets)),
      pods_(context_.informers.Of(client::resources::kPods)),
      replica_sets_(context_.informers.Of(client::resources::kReplicaSets)),
      deployments_(context_.informers.Of(client::resources::kDeployments)),
      stateful_sets_(context_.informers.Of(client::resources::kStatefulSets)),
      queue_(
          MakeQueue(context_, "poddisruptionbudgets", 16, this, &DisruptionController::Reconcile)),
      client_(context_.executor, context_.server, context_.user, "disruption-controller"),
      events_(MakeRecorder(context_, "controllermanager")) {
  Follow(budgets_, Queued(queue_));
  for (client::Informer* owners : {&replica_sets_, &deployments_, &stateful_sets_}) {
    owners->AddHandlers(
        {.on_add = {},
         .on_update = [this](const json::SharedValue& before,
                             const json::SharedValue& now) { OnScale(*before, *now); },
         .on_delete = {}});
  }
  pods_.AddHandlers({.on_add = [this](const json::SharedValue& pod) { OnPod(*pod); },
                     .on_update =
                         [this](const json::SharedValue& before, const json::SharedValue& pod) {
                           OnPod(*before);
                           OnPod(*pod);
                         },
                     .on_delete = [this](const json::SharedValue& pod) { OnPod(*pod); }});
}

void DisruptionController::OnPod(const json::Value& pod) {
  for (const auto& [key, budget] : budgets_.objects()) {
    if (api::Namespace(*budget) == api::Namespace(pod) && Protects(*budget, pod)) queue_.Add(key);
  }
}

// How many pods the pod's controller is asked for; nullopt when that is not known.
std::optional<int64_t> DisruptionController::ScaleOf(const json::Value& pod) const {
  std::optional<int64_t> scale;
  json::SharedValue held;
  const json::Value* owned = &pod;
  // A ReplicaSet of a Deployment is asked for less than it in the middle of a rollout.
  for (int depth = 0; depth < 2; ++depth) {
    const auto owner = api::ControllerOf(*owned);
    if (!owner) return scale;
    const client::Informer* informer = nullptr;
    if (owner->kind == "ReplicaSet") informer = &replica_sets_;
    if (owner->kind == "Deployment") informer = &deployments_;
    if (owner->kind == "StatefulSet") informer = &stateful_sets_;
    if (informer == nullptr) return scale;
    held = informer->Get(StrCat(api::Namespace(pod), "/", owner->name));
    if (!held || api::Uid(*held) != owner->uid) return scale;
    owned = held.get();
    scale = json::GetInt(*owned, {"spec", "replicas"}, 1);
  }
  return scale;
}

void DisruptionController::OnScale(const json::Value& before, const json::Value& now) {
  if (json::GetInt(before, {"spec", "replicas"}) == json::GetInt(now, {"spec", "replicas"})) return;
  const std::string prefix = StrCat(api::Namespace(now), "/");
  for (auto it = budgets_.objects().lower_bound(prefix);
       it != budgets_.objects().end() && it->first.starts_with(prefix); ++it) {
    queue_.Add(it->first);
  }
}

DisruptionController::Sums DisruptionController::CountPods(const json::Value& budget) const {
  const WallTime now = context_.clock.Now();
  const json::Object& disrupted = json::GetObject(budget, {"status", "disruptedPods"});
  Sums sums;
  ForPodsIn(pods_, api::Namespace(budget), [&](const json::Value& pod) {
    if (HasEnded(pod) || !Protects(budget, pod)) return;
    ++sums.pods;
    const auto owner = api::ControllerOf(pod);
    const std::string owner_uid = owner ? owner->uid : StrCat("pod ", api::Uid(pod));
    ++sums.of_owner[owner_uid];
    if (owner) sums.one_of.emplace(owner_uid, &pod);
    if (api::IsDeleting(pod)) return;
    if (const json::Value* since = disrupted.if_contains(api::Name(pod));
        since != nullptr && since->is_string()) {
      const auto time = api::ParseTime(json::View(since->get_string()));
      if (time && *time + kDisruptedFor > now) {
        sums.disrupted[api::Name(pod)] = *since;
        const Duration left = *time + kDisruptedFor - now;
        if (sums.requeue_after.count() == 0 || left < sums.requeue_after) sums.requeue_after = left;
        return;
      }
    }
    if (api::ConditionIsTrue(pod, "Ready")) ++sums.healthy;
  });
  return sums;
}

// A number of pods that must be there counts those that are; all else counts those that should be,
// or a half-started workload could be taken down by the other half.
int64_t DisruptionController::ExpectedPods(const json::Value& budget, const Sums& sums) const {
  const json::Value* most = json::Find(budget, {"spec", "maxUnavailable"});
  const json::Value* least = json::Find(budget, {"spec", "minAvailable"});
  if (most == nullptr && (least == nullptr || !least->is_string())) return sums.pods;
  int64_t expected = 0;
  for (const auto& [owner, count] : sums.of_owner) {
    const auto pod = sums.one_of.find(owner);
    expected += pod == sums.one_of.end() ? count : ScaleOf(*pod->second).value_or(count);
  }
  return expected;
}

json::Value DisruptionController::NextStatus(const json::Value& budget,
                                             const Sums& sums,
                                             int64_t expected) const {
  const int64_t desired = DesiredHealthy(budget, expected);
  const int64_t allowed = expected > 0 ? std::max<int64_t>(0, sums.healthy - desired) : 0;
  json::Array conditions = json::GetArray(budget, {"status", "conditions"});
  api::SetCondition(conditions, "DisruptionAllowed", allowed > 0 ? "True" : "False",
                    allowed > 0 ? "SufficientPods" : "InsufficientPods", "", context_.clock.Now());
  json::Object next = json::GetObject(budget, {"status"});
  next["currentHealthy"] = sums.healthy;
  next["desiredHealthy"] = desired;
  next["disruptionsAllowed"] = allowed;
  next["expectedPods"] = expected;
  next["observedGeneration"] = json::GetInt(budget, {"metadata", "generation"});
  next["conditions"] = std::move(conditions);
  const bool had = !json::GetObject(budget, {"status", "disruptedPods"}).empty();
  next["disruptedPods"] = sums.disrupted;
  if (sums.disrupted.empty() && !had) next.erase("disruptedPods");
  return next;
}

void DisruptionController::Reconcile(const std::string& key, const client::WorkQueue::Done& done) {
  const json::SharedValue budget = budgets_.Get(key);
  if (!budget || api::IsDeleting(*budget)) return done(Duration::zero());
  const Sums sums = CountPods(*budget);
  json::Value next = NextStatus(*budget, sums, ExpectedPods(*budget, sums));
  const json::Value* known = json::Find(*budget, {"status"});
  if (known != nullptr && json::Equal(*known, next)) return done(sums.requeue_after);
  const bool observed = json::GetInt(*budget, {"status", "observedGeneration"}) ==
                        json::GetInt(*budget, {"metadata", "generation"});
  if (sums.pods == 0 && (!observed || json::GetInt(*budget, {"status", "expectedPods"}) > 0)) {
    events_.Record(*budget, "Normal", "NoPods", "No matching pods found");
  }
  json::Value updated = *budget;
  json::Set(updated, {"status"}, std::move(next));
  // A whole status with the version looked at: an eviction may be writing to it right now.
  client_.Update(client::resources::kPodDisruptionBudgets, updated, Ends(done, sums.requeue_after),
                 "status");
}

}  // namespace swell::controllers
