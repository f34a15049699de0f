#include "kube/controllers/workloads/deployment.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/pod_facts.h"
#include "kube/controllers/queue.h"
#include "kube/controllers/workloads/deployment_pass.h"

namespace swell::controllers {
namespace {

using Sets = std::vector<json::SharedValue>;

constexpr size_t kHashLength = 10;
constexpr int64_t kDefaultHistory = 10;

// Ten characters that say which template this is; `collisions` gives the next guess.
std::string TemplateHash(const json::Value& deployment) {
  const json::Value* pod = json::Find(deployment, {"spec", "template"});
  const int64_t collisions = json::GetInt(deployment, {"status", "collisionCount"});
  Random random(
      StableHash(pod != nullptr ? json::Print(*pod) : "", static_cast<uint64_t>(collisions) + 1));
  return random.NameSuffix(kHashLength);
}

int64_t Revision(const json::Value& object) {
  return ParseInt(api::Annotation(object, deployment_keys::kRevision)).value_or(0);
}

int64_t MaxRevision(const Sets& sets) {
  int64_t most = 0;
  for (const json::SharedValue& set : sets) most = std::max(most, Revision(*set));
  return most;
}

// The Deployment's annotations that its ReplicaSets inherit.
json::Object Inherited(const json::Value& deployment) {
  json::Object inherited;
  for (const auto& [key, value] : json::GetObject(deployment, {"metadata", "annotations"})) {
    const std::string_view name(key.data(), key.size());
    if (name == "kubectl.kubernetes.io/last-applied-configuration" ||
        name.starts_with("deployment.kubernetes.io/")) {
      continue;
    }
    inherited[key] = value;
  }
  return inherited;
}

}  // namespace

DeploymentController::DeploymentController(Context context)
    : context_(context),
      deployments_(context_.informers.Of(client::resources::kDeployments)),
      sets_(context_.informers.Of(client::resources::kReplicaSets)),
      pods_(context_.informers.Of(client::resources::kPods)),
      events_(MakeRecorder(context_, "deployment-controller")),
      queue_(MakeQueue(context_, "deployments", 64, this, &DeploymentController::Reconcile)),
      client_(context_.executor, context_.server, context_.user, "deployment-controller"),
      adoption_(sets_, client_) {
  Follow(deployments_, Queued(queue_));
  auto set = [this](const json::SharedValue& it) { OnReplicaSet(*it); };
  sets_.AddHandlers({.on_add = set,
                     .on_update =
                         [set](const json::SharedValue& before, const json::SharedValue& it) {
                           set(before);
                           set(it);
                         },
                     .on_delete = set});
  // Recreate waits for the last old pod to be gone.
  auto pod = [this](const json::SharedValue& it) { OnPod(*it); };
  pods_.AddHandlers({.on_add = {},
                     .on_update =
                         [pod](const json::SharedValue& before, const json::SharedValue& it) {
                           if (HasEnded(*it) && !HasEnded(*before)) pod(it);
                         },
                     .on_delete = pod});
}

void DeploymentController::OnReplicaSet(const json::Value& set) {
  if (const auto owner = api::ControllerOf(set)) {
    if (owner->kind == "Deployment") {
      queue_.Add(StrCat(api::Namespace(set), "/", owner->name));
    }
    return;
  }
  const std::string prefix = StrCat(api::Namespace(set), "/");
  for (auto it = deployments_.objects().lower_bound(prefix);
       it != deployments_.objects().end() && it->first.starts_with(prefix); ++it) {
    queue_.Add(it->first);
  }
}

void DeploymentController::OnPod(const json::Value& pod) {
  const auto owner = api::ControllerOf(pod);
  if (!owner || owner->kind != "ReplicaSet") return;
  const json::SharedValue set = sets_.Get(StrCat(api::Namespace(pod), "/", owner->name));
  if (set) OnReplicaSet(*set);
}

void DeploymentController::Reconcile(const std::string& key, Done done) {
  const json::SharedValue deployment = deployments_.Get(key);
  if (!deployment) return done(Duration::zero());
  auto pass = std::make_shared<Pass>();
  pass->key = key;
  pass->deployment = deployment;
  pass->now = context_.clock.Now();
  pass->writes = MakeBatch(std::move(done));
  Observe(*pass);
  if (!api::IsDeleting(*deployment)) Step(*pass);
  WriteStatus(*pass);
  pass->writes->Close();
}

void DeploymentController::Observe(Pass& pass) {
  const json::Value& it = *pass.deployment;
  pass.wanted = SpecReplicas(it);
  pass.recreate = json::GetString(it, {"spec", "strategy", "type"}) == "Recreate";
  pass.paused = json::GetBool(it, {"spec", "paused"});
  if (!pass.recreate) {
    pass.surge = ScaledValue(json::Find(it, {"spec", "strategy", "rollingUpdate", "maxSurge"}),
                             pass.wanted, true, 1);
    pass.unavailable =
        ScaledValue(json::Find(it, {"spec", "strategy", "rollingUpdate", "maxUnavailable"}),
                    pass.wanted, false, 0);
    // Neither more nor fewer would never get anywhere.
    if (pass.surge == 0 && pass.unavailable == 0) pass.unavailable = 1;
    pass.unavailable = std::min(pass.unavailable, pass.wanted);
  }
  Sets sets = adoption_.OwnedBy(it);
  std::sort(sets.begin(), sets.end(), IsOlder);
  const json::Value* wanted = json::Find(it, {"spec", "template"});
  for (const json::SharedValue& set : sets) {
    const json::Value* own = json::Find(*set, {"spec", "template"});
    if (!pass.fresh && wanted != nullptr && own != nullptr &&
        SameButLabel(*wanted, *own, deployment_keys::kHash)) {
      pass.fresh = set;
    } else {
      pass.old.push_back(set);
    }
  }
}

void DeploymentController::Step(Pass& pass) {
  // A change of the new ReplicaSet's annotations comes back as an event: the rest then.
  if (!pass.paused && pass.fresh && SyncRevision(pass)) return;
  const Sets all = pass.All();
  const bool scaled = std::any_of(all.begin(), all.end(), [&pass](const json::SharedValue& set) {
    const auto desired = ParseInt(api::Annotation(*set, deployment_keys::kDesired));
    return SpecReplicas(*set) > 0 && desired && *desired != pass.wanted;
  });
  if (pass.paused || scaled) {
    ScaleAll(pass);
    if (pass.paused) RemoveHistory(pass);
    return;
  }
  if (pass.recreate) {
    Recreate(pass);
  } else {
    RollOver(pass);
  }
  const bool complete = pass.fresh && StatusOf(*pass.fresh, "availableReplicas") == pass.wanted &&
                        Sum(all, "replicas") == pass.wanted;
  if (complete) RemoveHistory(pass);
}

void DeploymentController::CreateNew(Pass& pass, int64_t replicas) {
  const json::Value& it = *pass.deployment;
  const std::string hash = TemplateHash(it);
  const std::string name = StrCat(api::Name(it), "-", hash);
  json::Object annotations = Inherited(it);
  const std::string revision = std::to_string(MaxRevision(pass.old) + 1);
  annotations[deployment_keys::kDesired] = std::to_string(pass.wanted);
  annotations[deployment_keys::kMost] = std::to_string(pass.wanted + pass.surge);
  annotations[deployment_keys::kRevision] = revision;
  json::Value set = json::Object{{"apiVersion", "apps/v1"}, {"kind", "ReplicaSet"}};
  json::Object labels = json::GetObject(it, {"spec", "template", "metadata", "labels"});
  labels[deployment_keys::kHash] = hash;
  json::Set(set, {"metadata"},
            json::Object{{"name", name},
                         {"namespace", api::Namespace(it)},
                         {"labels", labels},
                         {"annotations", std::move(annotations)},
                         {"ownerReferences", json::Array{api::MakeOwnerReference(it)}}});
  json::Object spec{{"replicas", replicas},
                    {"selector", json::GetObject(it, {"spec", "selector"})},
                    {"template", json::GetObject(it, {"spec", "template"})}};
  const int64_t least = json::GetInt(it, {"spec", "minReadySeconds"});
  if (least > 0) spec["minReadySeconds"] = least;
  json::Set(set, {"spec"}, std::move(spec));
  json::Set(set, {"spec", "selector", "matchLabels", deployment_keys::kHash}, hash);
  json::Set(set, {"spec", "template", "metadata", "labels", deployment_keys::kHash}, hash);
  // The name says which template it is: one that is there already is another's, or comes soon.
  const json::SharedValue taken = sets_.Get(StrCat(api::Namespace(it), "/", name));
  pass.collided = taken != nullptr;
  if (pass.collided) return;
  pass.created = name;
  pass.annotations[deployment_keys::kRevision] = revision;
  client_.Create(client::resources::kReplicaSets, api::Namespace(it), set,
                 pass.writes->Track([this, deployment = pass.deployment, name,
                                     replicas](const Result<json::SharedValue>& made) {
                   if (made.ok() && replicas > 0) {
                     events_.Record(
                         *deployment, "Normal", "ScalingReplicaSet",
                         StrCat("Scaled up replica set ", name, " from 0 to ", replicas));
                   } else if (!made.ok() && made.status().code() != Code::kAlreadyExists) {
                     events_.Record(*deployment, "Warning", "ReplicaSetCreateError",
                                    StrCat("Failed to create new replica set ", Quote(name), ": ",
                                           made.status().message()));
                   }
                 }));
}

// Gives the present ReplicaSet the newest revision. Whether anything had to be written to it.
bool DeploymentController::SyncRevision(Pass& pass) {
  const json::Value& set = *pass.fresh;
  const int64_t newest = MaxRevision(pass.old) + 1;
  const int64_t own = Revision(set);
  json::Object changes;
  if (own < newest) {
    changes[deployment_keys::kRevision] = std::to_string(newest);
    if (own > 0) {
      const std::string_view history = api::Annotation(set, deployment_keys::kRevisionHistory);
      changes[deployment_keys::kRevisionHistory] =
          history.empty() ? std::to_string(own) : StrCat(history, ",", own);
    }
  }
  for (const auto& [key, value] : Inherited(*pass.deployment)) {
    const json::Value* known =
        json::Find(set, {"metadata", "annotations", {key.data(), key.size()}});
    if (known == nullptr || *known != value) changes[key] = value;
  }
  const std::string revision = std::to_string(std::max(own, newest));
  if (api::Annotation(*pass.deployment, deployment_keys::kRevision) != revision) {
    pass.annotations[deployment_keys::kRevision] = revision;
  }
  const json::Value* wanted_least = json::Find(*pass.deployment, {"spec", "minReadySeconds"});
  const int64_t least = wanted_least != nullptr ? wanted_least->to_number<int64_t>() : 0;
  const bool same_least = json::GetInt(set, {"spec", "minReadySeconds"}) == least;
  if (changes.empty() && same_least) return false;
  json::Value patch = json::Object{
      {"metadata",
       json::Object{{"resourceVersion", json::GetString(set, {"metadata", "resourceVersion"})},
                    {"annotations", std::move(changes)}}}};
  if (!same_least) json::Set(patch, {"spec", "minReadySeconds"}, least);
  client_.Patch(client::resources::kReplicaSets, api::Namespace(set), api::Name(set),
                client::PatchType::kMerge, patch, pass.writes->Track());
  return true;
}

bool DeploymentController::Scale(Pass& pass, const json::SharedValue& set, int64_t replicas) {
  const int64_t before = SpecReplicas(*set);
  const std::string desired = std::to_string(pass.wanted);
  const std::string most = std::to_string(pass.wanted + pass.surge);
  const bool same_notes = api::Annotation(*set, deployment_keys::kDesired) == desired &&
                          api::Annotation(*set, deployment_keys::kMost) == most;
  if (before == replicas && same_notes) return false;
  json::Value patch = json::Object{
      {"metadata",
       json::Object{{"resourceVersion", json::GetString(*set, {"metadata", "resourceVersion"})},
                    {"annotations", json::Object{{deployment_keys::kDesired, desired},
                                                 {deployment_keys::kMost, most}}}}},
      {"spec", json::Object{{"replicas", replicas}}}};
  client_.Patch(client::resources::kReplicaSets, api::Namespace(*set), api::Name(*set),
                client::PatchType::kMerge, patch,
                pass.writes->Track([this, deployment = pass.deployment, set, before,
                                    replicas](const Result<json::SharedValue>& written) {
                  if (!written.ok() || before == replicas) return;
                  events_.Record(
                      *deployment, "Normal", "ScalingReplicaSet",
                      StrCat("Scaled ", before < replicas ? "up" : "down", " replica set ",
                             api::Name(*set), " from ", before, " to ", replicas));
                }));
  return true;
}

// The number of replicas has changed in the middle of a rollout: each gets its share.
void DeploymentController::ScaleAll(Pass& pass) {
  Sets active = pass.All();
  std::erase_if(active, [](const json::SharedValue& set) { return SpecReplicas(*set) == 0; });
  if (active.size() <= 1) {
    json::SharedValue only = active.empty() ? pass.fresh : active[0];
    if (!only && !pass.old.empty()) only = pass.old.back();
    if (only) Scale(pass, only, pass.wanted);
    return;
  }
  if (pass.fresh && SpecReplicas(*pass.fresh) == pass.wanted &&
      StatusOf(*pass.fresh, "availableReplicas") == pass.wanted) {
    for (const json::SharedValue& set : pass.old) Scale(pass, set, 0);
    return;
  }
  if (pass.recreate) return;
  const int64_t most = pass.wanted > 0 ? pass.wanted + pass.surge : 0;
  const int64_t to_add = most - SumSpec(active);
  std::stable_sort(active.begin(), active.end(), [](const auto& a, const auto& b) {
    return SpecReplicas(*a) > SpecReplicas(*b);
  });
  std::vector<int64_t> sizes;
  int64_t left = to_add;
  for (const json::SharedValue& set : active) {
    const int64_t size = SpecReplicas(*set);
    const int64_t base = std::max<int64_t>(
        1, ParseInt(api::Annotation(*set, deployment_keys::kMost)).value_or(most));
    int64_t share = (size * most * 2 + base) / (2 * base) - size;
    share = to_add > 0 ? std::clamp<int64_t>(share, 0, left) : std::clamp<int64_t>(share, left, 0);
    left -= share;
    sizes.push_back(size + share);
  }
  sizes[0] = std::max<int64_t>(0, sizes[0] + left);
  for (size_t i = 0; i < active.size(); ++i) Scale(pass, active[i], sizes[i]);
}

void DeploymentController::RollOver(Pass& pass) {
  const int64_t total = SumSpec(pass.All());
  if (!pass.fresh) {
    const int64_t room = pass.wanted + pass.surge - total;
    return CreateNew(pass, std::clamp<int64_t>(room, 0, pass.wanted));
  }
  if (!ScaleUpNew(pass)) ScaleDownOld(pass);
}

bool DeploymentController::ScaleUpNew(Pass& pass) {
  const int64_t own = SpecReplicas(*pass.fresh);
  if (own >= pass.wanted) return Scale(pass, pass.fresh, pass.wanted);
  const int64_t room = pass.wanted + pass.surge - SumSpec(pass.All());
  if (room <= 0) return Scale(pass, pass.fresh, own);
  return Scale(pass, pass.fresh, own + std::min(room, pass.wanted - own));
}

void DeploymentController::ScaleDownOld(Pass& pass) {
  const Sets all = pass.All();
  const int64_t least = pass.wanted - pass.unavailable;
  const int64_t new_unavailable =
      SpecReplicas(*pass.fresh) - StatusOf(*pass.fresh, "availableReplicas");
  int64_t may_go = SumSpec(all) - least - new_unavailable;
  int64_t available_over = Sum(all, "availableReplicas") - least;
  for (const json::SharedValue& set : pass.old) {
    if (SpecReplicas(*set) == 0) continue;
    int64_t size = SpecReplicas(*set);
    // What does not work anyway costs no availability.
    const int64_t broken = std::clamp<int64_t>(size - StatusOf(*set, "availableReplicas"), 0,
                                               std::max<int64_t>(0, may_go));
    size -= broken;
    may_go -= broken;
    const int64_t healthy = std::clamp<int64_t>(std::min({size, available_over, may_go}), 0, size);
    size -= healthy;
    may_go -= healthy;
    available_over -= healthy;
    if (size != SpecReplicas(*set)) Scale(pass, set, size);
  }
}

bool DeploymentController::OldPodsRun(const Pass& pass) const {
  return std::any_of(pass.old.begin(), pass.old.end(), [this](const json::SharedValue& set) {
    const auto pods = pods_.ByIndex("owner", api::Uid(*set));
    return std::any_of(pods.begin(), pods.end(),
                       [](const json::SharedValue& pod) { return !HasEnded(*pod); });
  });
}

void DeploymentController::Recreate(Pass& pass) {
  bool waiting = false;
  for (const json::SharedValue& set : pass.old) {
    if (SpecReplicas(*set) == 0) continue;
    Scale(pass, set, 0);
    waiting = true;
  }
  if (waiting || OldPodsRun(pass)) return;
  if (!pass.fresh) return CreateNew(pass, pass.wanted);
  Scale(pass, pass.fresh, pass.wanted);
}

void DeploymentController::RemoveHistory(Pass& pass) {
  const int64_t limit =
      json::GetInt(*pass.deployment, {"spec", "revisionHistoryLimit"}, kDefaultHistory);
  Sets history = pass.old;
  std::erase_if(history, [](const json::SharedValue& set) { return api::IsDeleting(*set); });
  int64_t over = static_cast<int64_t>(history.size()) - limit;
  std::stable_sort(history.begin(), history.end(),
                   [](const auto& a, const auto& b) { return Revision(*a) < Revision(*b); });
  for (const json::SharedValue& set : history) {
    if (over-- <= 0) break;
    if (SpecReplicas(*set) != 0 || StatusOf(*set, "replicas") != 0 ||
        StatusOf(*set, "observedGeneration") < json::GetInt(*set, {"metadata", "generation"})) {
      continue;
    }
    client_.Delete(client::resources::kReplicaSets, api::Namespace(*set), api::Name(*set),
                   {.precondition_uid = std::string(api::Uid(*set))}, pass.writes->Track());
  }
}

}  // namespace swell::controllers
