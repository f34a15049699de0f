#include "kube/controllers/cluster/ephemeral_volumes.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "kube/api/meta/local_storage.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/queue.h"
#include "kube/controllers/workload.h"

namespace swell::controllers {
namespace {

json::Value ClaimFor(const json::Value& pod, const api::MountedClaim& wanted) {
  const json::Value& from = *wanted.claim_template;
  json::Object metadata{{"name", wanted.name},
                        {"namespace", api::Namespace(pod)},
                        {"ownerReferences", json::Array{api::MakeOwnerReference(pod)}}};
  for (std::string_view field : {"labels", "annotations"}) {
    const json::Object& given = json::GetObject(from, {"metadata", field});
    if (!given.empty()) metadata[field] = given;
  }
  json::Value claim = json::Object{
      {"apiVersion", "v1"}, {"kind", "PersistentVolumeClaim"}, {"metadata", std::move(metadata)}};
  if (const json::Value* spec = json::Find(from, {"spec"})) json::Set(claim, {"spec"}, *spec);
  return claim;
}

bool IsEphemeral(const api::MountedClaim& claim) { return claim.claim_template != nullptr; }

}  // namespace

EphemeralVolumes::EphemeralVolumes(Context context)
    : context_(std::move(context)),
      pods_(context_.informers.Of(client::resources::kPods)),
      claims_(context_.informers.Of(client::resources::kPersistentVolumeClaims)),
      volumes_(context_.informers.Of(client::resources::kPersistentVolumes)),
      queue_(MakeQueue(context_, "ephemeral-volumes", 16, this, &EphemeralVolumes::Reconcile)),
      events_(MakeRecorder(context_, "ephemeral_volume")),
      client_(context_.executor, context_.server, context_.user, "ephemeral-volume-controller") {
  Follow(pods_, [this](const json::SharedValue& pod) { OnPod(*pod); });
  const auto claim = [this](const json::SharedValue& it) { QueueUsers(api::KeyOf(*it)); };
  claims_.AddHandlers({.on_add = claim, .on_update = {}, .on_delete = claim});
  const auto volume = [this](const json::SharedValue& it) { QueueUsers(api::ClaimKeyOf(*it)); };
  volumes_.AddHandlers({.on_add = {}, .on_update = {}, .on_delete = volume});
}

void EphemeralVolumes::OnPod(const json::Value& pod) {
  for (const api::MountedClaim& claim : api::MountedClaims(pod)) {
    if (IsEphemeral(claim)) return queue_.Add(api::KeyOf(pod));
  }
}

// A pod may have another claim to be made, or one that waited until this claim or volume was gone.
void EphemeralVolumes::QueueUsers(const std::string& claim) {
  if (claim.empty()) return;
  const std::string prefix = claim.substr(0, claim.find('/') + 1);
  const auto& pods = pods_.objects();
  for (auto it = pods.lower_bound(prefix); it != pods.end() && it->first.starts_with(prefix);
       ++it) {
    for (const api::MountedClaim& mounted : api::MountedClaims(*it->second)) {
      if (IsEphemeral(mounted) && prefix + mounted.name == claim) queue_.Add(it->first);
    }
  }
}

// Whether an earlier claim of that key has left a volume of this machine that is still to be
// removed.
bool EphemeralVolumes::LeavesVolume(const std::string& claim) const {
  const auto volumes = volumes_.ByIndex("claim", claim);
  return std::any_of(volumes.begin(), volumes.end(), [](const json::SharedValue& volume) {
    return json::GetString(*volume, {"spec", "persistentVolumeReclaimPolicy"}) == "Delete" &&
           json::GetString(*volume, {"spec", "csi", "driver"}) == api::kLocalStorage;
  });
}

// Makes one claim at a time: its watch event brings the next.
void EphemeralVolumes::Reconcile(const std::string& key, client::WorkQueue::Done done) {
  const json::SharedValue pod = pods_.Get(key);
  if (!pod || !api::IsActive(*pod)) return done(Duration::zero());
  for (const api::MountedClaim& wanted : api::MountedClaims(*pod)) {
    if (!IsEphemeral(wanted)) continue;
    const std::string claim = StrCat(api::Namespace(*pod), "/", wanted.name);
    const json::SharedValue there = claims_.Get(claim);
    if (!there && LeavesVolume(claim)) return done(Duration::zero());
    if (!there) return MakeClaim(pod, wanted, done);
    if (!api::IsMadeFor(*there, *pod)) Tell(*pod, wanted.name, api::NotMadeFor(*there, *pod));
  }
  done(Duration::zero());
}

void EphemeralVolumes::MakeClaim(const json::SharedValue& pod,
                                 const api::MountedClaim& wanted,
                                 const client::WorkQueue::Done& done) {
  client_.Create(client::resources::kPersistentVolumeClaims, api::Namespace(*pod),
                 ClaimFor(*pod, wanted),
                 [this, pod, name = wanted.name, done](const Result<json::SharedValue>& made) {
                   if (made.ok() || made.status().code() == Code::kAlreadyExists) {
                     return done(Duration::zero());
                   }
                   Tell(*pod, name, made.status().message());
                   done(made.status());
                 });
}

void EphemeralVolumes::Tell(const json::Value& pod,
                            const std::string& claim,
                            std::string_view why) {
  events_.Record(pod, "Warning", "FailedBinding",
                 StrCat("ephemeral volume ", claim.substr(api::Name(pod).size() + 1), ": ", why));
}

}  // namespace swell::controllers
