#include "kube/controllers/workloads/stateful_set.h"

#include <algorithm>
#include <map>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/pod_facts.h"
#include "kube/controllers/queue.h"

namespace swell::controllers {
namespace {

constexpr std::string_view kComponent = "statefulset-controller";
constexpr std::string_view kPodName = "statefulset.kubernetes.io/pod-name";
constexpr Duration kClaimsGone = std::chrono::milliseconds(100);
// Creations of one pass. How many there are in all is what a user wrote.
constexpr int64_t kBurst = 500;
constexpr Duration kNextBurst = std::chrono::milliseconds(100);
constexpr std::string_view kPodIndex = "apps.kubernetes.io/pod-index";

// The number in "web-3" of set "web"; nullopt for other names.
std::optional<int64_t> OrdinalOf(const json::Value& pod, std::string_view set) {
  std::string_view name = api::Name(pod);
  if (!name.starts_with(set) || name.size() < set.size() + 2 || name[set.size()] != '-') {
    return std::nullopt;
  }
  const auto ordinal = ParseInt(name.substr(set.size() + 1));
  return ordinal && *ordinal >= 0 ? ordinal : std::nullopt;
}

std::string ClaimName(const json::Value& set, const json::Value& wanted, int64_t ordinal) {
  return StrCat(api::Name(wanted), "-", api::Name(set), "-", ordinal);
}

// Its pod has left for good, and it with that.
bool IsGoing(const json::SharedValue& claim) {
  const json::Array& owners = json::GetArray(*claim, {"metadata", "ownerReferences"});
  return api::IsDeleting(*claim) ||
         std::any_of(owners.begin(), owners.end(), [](const json::Value& owner) {
           return json::GetString(owner, {"kind"}) == "Pod";
         });
}

}  // namespace

// One look at one set.
struct StatefulSetController::Pass {
  json::SharedValue set;
  std::shared_ptr<WriteBatch> writes;
  WallTime now;
  int64_t first = 0, wanted = 0, partition = 0;
  int64_t may_create = kBurst;
  bool parallel = false, on_delete = false;
  bool delete_deleted = false, delete_scaled = false;  // claims, when the set is
  Duration least{0};                                   // how long ready until available
  Duration requeue_after{0};
  std::map<int64_t, json::SharedValue> pods;  // those within the range
  std::map<int64_t, json::SharedValue> over;  // and those beyond it
  Revision current, update;

  bool Healthy(const json::Value& pod) {
    return !api::IsDeleting(pod) && IsAvailable(pod, least, now, requeue_after);
  }
  bool IsUpdated(const json::Value& pod) const { return IsOf(pod, update); }
  // Pods of earlier versions have the hash.
  static bool IsOf(const json::Value& pod, const Revision& revision) {
    const std::string_view label = api::Label(pod, kRevisionLabel);
    return label == revision.name || label == revision.hash;
  }
};

StatefulSetController::StatefulSetController(Context context)
    : context_(context),
      sets_(context_.informers.Of(client::resources::kStatefulSets)),
      pods_(context_.informers.Of(client::resources::kPods)),
      claims_(context_.informers.Of(client::resources::kPersistentVolumeClaims)),
      events_(MakeRecorder(context_, std::string(kComponent))),
      queue_(MakeQueue(context_, "statefulsets", 64, this, &StatefulSetController::Reconcile)),
      client_(context_.executor, context_.server, context_.user, std::string(kComponent)),
      adoption_(pods_, client_),
      revisions_(context_, client_) {
  Follow(sets_, Queued(queue_));
  for (client::Informer* informer : {&pods_, &revisions_.objects()}) {
    Follow(*informer, OwnerQueued(queue_, "StatefulSet"), OwnerQueued(queue_, "StatefulSet"));
  }
}

void StatefulSetController::Reconcile(const std::string& key, Done done) {
  const json::SharedValue set = sets_.Get(key);
  if (!set || api::IsDeleting(*set)) return done(Duration::zero());
  Pass pass;
  pass.set = set;
  pass.now = context_.clock.Now();
  pass.writes = MakeBatch(std::move(done));
  Observe(pass);
  for (const auto& [ordinal, pod] : pass.pods) OwnClaims(pass, *pod, ordinal, false);
  for (const auto& [ordinal, pod] : pass.over) OwnClaims(pass, *pod, ordinal, true);
  if (Fill(pass) && Shrink(pass)) RollOver(pass);
  WriteStatus(pass);
  if (pass.requeue_after.count() > 0) pass.writes->RequeueAfter(pass.requeue_after);
  pass.writes->Close();
}

void StatefulSetController::Observe(Pass& pass) {
  const json::Value& set = *pass.set;
  pass.first = json::GetInt(set, {"spec", "ordinals", "start"});
  pass.wanted = json::GetInt(set, {"spec", "replicas"}, 1);
  pass.parallel = json::GetString(set, {"spec", "podManagementPolicy"}) == "Parallel";
  pass.on_delete = json::GetString(set, {"spec", "updateStrategy", "type"}) == "OnDelete";
  const auto deletes = [&set](std::string_view when) {
    return json::GetString(set, {"spec", "persistentVolumeClaimRetentionPolicy", when}) == "Delete";
  };
  pass.delete_deleted = deletes("whenDeleted");
  pass.delete_scaled = deletes("whenScaled");
  pass.partition = json::GetInt(set, {"spec", "updateStrategy", "rollingUpdate", "partition"});
  pass.least = std::chrono::seconds(json::GetInt(set, {"spec", "minReadySeconds"}));
  for (const json::SharedValue& pod : adoption_.OwnedBy(set)) {
    const auto ordinal = OrdinalOf(*pod, api::Name(set));
    if (!ordinal) continue;
    const bool inside = *ordinal >= pass.first && *ordinal < pass.first + pass.wanted;
    (inside ? pass.pods : pass.over)[*ordinal] = pod;
  }
  pass.update = revisions_.Ensure(set, *pass.writes);
  pass.current = pass.update;
  const std::string_view current = json::GetString(set, {"status", "currentRevision"});
  for (const Revision& one : revisions_.Of(set)) {
    if (one.name == current) pass.current = one;
  }
}

// Makes what is missing; false while there is something to wait for.
bool StatefulSetController::Fill(Pass& pass) {
  bool complete = true;
  for (int64_t ordinal = pass.first; ordinal < pass.first + pass.wanted; ++ordinal) {
    const auto found = pass.pods.find(ordinal);
    if (found == pass.pods.end()) {
      if (pass.may_create-- == 0) {
        pass.requeue_after = kNextBurst;
        return false;
      }
      CreatePod(pass, ordinal);
      complete = false;
    } else if (HasEnded(*found->second) && !api::IsDeleting(*found->second)) {
      // Its successor has the same name: it must go first.
      DeletePod(pass, found->second);
      complete = false;
    } else if (!pass.Healthy(*found->second)) {
      // A broken pod of an old revision may be what the update is to mend.
      complete = complete && pass.parallel;
      if (!pass.parallel && !pass.IsUpdated(*found->second)) complete = true;
    }
    if (!complete && !pass.parallel) return false;
  }
  return complete;
}

// Takes away what is beyond the range, from the top; false while that lasts.
bool StatefulSetController::Shrink(Pass& pass) {
  for (auto it = pass.over.rbegin(); it != pass.over.rend(); ++it) {
    if (!api::IsDeleting(*it->second)) DeletePod(pass, it->second);
    if (!pass.parallel) return false;
  }
  return pass.over.empty();
}

// Replaces pods of old revisions, from the top down to the partition, one at a time.
void StatefulSetController::RollOver(Pass& pass) {
  if (pass.on_delete) return;
  for (auto it = pass.pods.rbegin(); it != pass.pods.rend(); ++it) {
    if (it->first < pass.partition) return;
    if (!pass.IsUpdated(*it->second)) {
      if (!api::IsDeleting(*it->second)) DeletePod(pass, it->second);
      return;
    }
    if (!pass.Healthy(*it->second)) return;
  }
}

void StatefulSetController::CreatePod(Pass& pass, int64_t ordinal) {
  const json::Value& set = *pass.set;
  const std::vector<json::SharedValue> claims = ClaimsOf(pass, ordinal);
  if (std::any_of(claims.begin(), claims.end(), IsGoing)) {
    // With the pod before this one.
    pass.requeue_after = kClaimsGone;
    return;
  }
  const bool rolling = pass.current.name != pass.update.name;
  const int64_t still_current = pass.partition > 0
                                    ? pass.partition
                                    : pass.first + json::GetInt(set, {"status", "currentReplicas"});
  const bool old = !pass.on_delete && rolling && ordinal < still_current;
  const Revision& revision = old ? pass.current : pass.update;
  const std::string name = StrCat(api::Name(set), "-", ordinal);
  json::Value pod = PodOf(WithTemplateOf(set, revision), name);
  json::Set(pod, {"metadata", "labels", kRevisionLabel}, revision.name);
  json::Set(pod, {"metadata", "labels", kPodName}, name);
  json::Set(pod, {"metadata", "labels", kPodIndex}, std::to_string(ordinal));
  json::Set(pod, {"spec", "hostname"}, name);
  const std::string_view service = json::GetString(set, {"spec", "serviceName"});
  if (!service.empty()) json::Set(pod, {"spec", "subdomain"}, service);
  CreateClaims(pass, ordinal, pod);
  client_.Create(
      client::resources::kPods, api::Namespace(set), pod,
      pass.writes->Track([this, set = pass.set, name](const Result<json::SharedValue>& made) {
        if (made.ok()) {
          events_.Record(
              *set, "Normal", "SuccessfulCreate",
              StrCat("create Pod ", name, " in StatefulSet ", api::Name(*set), " successful"));
        } else if (made.status().code() != Code::kAlreadyExists) {
          events_.Record(*set, "Warning", "FailedCreate",
                         StrCat("create Pod ", name, " in StatefulSet ", api::Name(*set),
                                " failed error: ", made.status().message()));
        }
      }));
}

// Those that there are.
std::vector<json::SharedValue> StatefulSetController::ClaimsOf(const Pass& pass, int64_t ordinal) {
  std::vector<json::SharedValue> claims;
  for (const json::Value& wanted : json::GetArray(*pass.set, {"spec", "volumeClaimTemplates"})) {
    json::SharedValue claim =
        claims_.Get(StrCat(api::Namespace(*pass.set), "/", ClaimName(*pass.set, wanted, ordinal)));
    if (claim) claims.push_back(std::move(claim));
  }
  return claims;
}

// Sets the owner that a claim goes with, by spec.persistentVolumeClaimRetentionPolicy: its set, its
// pod that leaves because the set shrinks, or none. The garbage collector does the rest.
void StatefulSetController::OwnClaims(Pass& pass,
                                      const json::Value& pod,
                                      int64_t ordinal,
                                      bool leaving) {
  const json::Value& set = *pass.set;
  const json::Value* owner = nullptr;
  if (leaving && pass.delete_scaled) {
    owner = &pod;
  } else if (pass.delete_deleted) {
    owner = &set;
  }
  for (const json::SharedValue& claim : ClaimsOf(pass, ordinal)) {
    const json::Array& before = json::GetArray(*claim, {"metadata", "ownerReferences"});
    json::Array after;
    for (const json::Value& reference : before) {
      const std::string_view uid = json::GetString(reference, {"uid"});
      if (uid != api::Uid(set) && uid != api::Uid(pod)) after.push_back(reference);
    }
    if (owner != nullptr) after.push_back(api::MakeOwnerReference(*owner));
    if (after == before) continue;
    const json::Value patch =
        json::Object{{"metadata", json::Object{{"uid", api::Uid(*claim)},
                                               {"ownerReferences", std::move(after)}}}};
    client_.Patch(client::resources::kPersistentVolumeClaims, api::Namespace(set),
                  api::Name(*claim), client::PatchType::kMerge, patch, pass.writes->Track());
  }
}

// Claims outlive their pods, unless their set says otherwise: the next pod of that name finds its
// data.
void StatefulSetController::CreateClaims(Pass& pass, int64_t ordinal, json::Value& pod) {
  const json::Value& set = *pass.set;
  json::Array volumes = json::GetArray(pod, {"spec", "volumes"});
  for (const json::Value& wanted : json::GetArray(set, {"spec", "volumeClaimTemplates"})) {
    const std::string name = ClaimName(set, wanted, ordinal);
    const auto same = std::remove_if(volumes.begin(), volumes.end(), [&](const json::Value& one) {
      return json::GetString(one, {"name"}) == api::Name(wanted);
    });
    volumes.erase(same, volumes.end());
    volumes.push_back(json::Object{{"name", api::Name(wanted)},
                                   {"persistentVolumeClaim", json::Object{{"claimName", name}}}});
    if (claims_.Get(StrCat(api::Namespace(set), "/", name))) continue;
    json::Value claim = wanted;
    json::Remove(claim, {"status"});
    json::Set(claim, {"apiVersion"}, "v1");
    json::Set(claim, {"kind"}, "PersistentVolumeClaim");
    json::Set(claim, {"metadata", "name"}, name);
    json::Set(claim, {"metadata", "namespace"}, api::Namespace(set));
    if (pass.delete_deleted) {
      json::Set(claim, {"metadata", "ownerReferences"}, json::Array{api::MakeOwnerReference(set)});
    }
    for (const auto& [key, value] : json::GetObject(set, {"spec", "selector", "matchLabels"})) {
      json::Set(claim, {"metadata", "labels", {key.data(), key.size()}}, value);
    }
    client_.Create(
        client::resources::kPersistentVolumeClaims, api::Namespace(set), claim,
        pass.writes->Track([this, set = pass.set, name, pod_name = std::string(api::Name(pod))](
                               const Result<json::SharedValue>& made) {
          if (!made.ok()) return;
          events_.Record(*set, "Normal", "SuccessfulCreate",
                         StrCat("create Claim ", name, " Pod ", pod_name, " in StatefulSet ",
                                api::Name(*set), " success"));
        }));
  }
  if (!volumes.empty()) json::Set(pod, {"spec", "volumes"}, std::move(volumes));
}

void StatefulSetController::DeletePod(Pass& pass, const json::SharedValue& pod) {
  client_.Delete(
      client::resources::kPods, api::Namespace(*pod), api::Name(*pod),
      {.precondition_uid = std::string(api::Uid(*pod))},
      pass.writes->Track([this, set = pass.set, pod](const Result<json::SharedValue>& gone) {
        if (!gone.ok()) return;
        events_.Record(*set, "Normal", "SuccessfulDelete",
                       StrCat("delete Pod ", api::Name(*pod), " in StatefulSet ", api::Name(*set),
                              " successful"));
      }));
}

void StatefulSetController::WriteStatus(Pass& pass) {
  const json::Value& set = *pass.set;
  int64_t ready = 0;
  int64_t available = 0;
  int64_t current = 0;
  int64_t updated = 0;
  int64_t replicas = 0;
  for (const auto* group : {&pass.pods, &pass.over}) {
    for (const auto& [ordinal, pod] : *group) {
      ++replicas;
      if (api::IsDeleting(*pod)) continue;
      ready += IsReady(*pod) ? 1 : 0;
      available += IsAvailable(*pod, pass.least, pass.now, pass.requeue_after) ? 1 : 0;
      updated += pass.IsUpdated(*pod) ? 1 : 0;
      current += Pass::IsOf(*pod, pass.current) ? 1 : 0;
    }
  }
  std::string current_name = pass.current.name;
  if (updated == pass.wanted && ready == pass.wanted && replicas == pass.wanted) {
    current_name = pass.update.name;
    current = updated;
  }
  const json::Value* known = json::Find(set, {"status"});
  json::Value status = known != nullptr && known->is_object() ? *known : json::Object{};
  json::Set(status, {"observedGeneration"}, json::GetInt(set, {"metadata", "generation"}));
  json::Set(status, {"replicas"}, replicas);
  json::Set(status, {"readyReplicas"}, ready);
  json::Set(status, {"availableReplicas"}, available);
  json::Set(status, {"currentReplicas"}, current);
  json::Set(status, {"updatedReplicas"}, updated);
  json::Set(status, {"currentRevision"}, current_name);
  json::Set(status, {"updateRevision"}, pass.update.name);
  if (json::Find(status, {"collisionCount"}) == nullptr) {
    json::Set(status, {"collisionCount"}, json::Value(0));
  }
  revisions_.Trim(set, {pass.current.name, pass.update.name}, *pass.writes);
  if (known != nullptr && json::Equal(*known, status)) return;
  client_.Patch(client::resources::kStatefulSets, api::Namespace(set), api::Name(set),
                client::PatchType::kMerge, json::Object{{"status", std::move(status)}},
                pass.writes->Track(), "status");
}

}  // namespace swell::controllers
