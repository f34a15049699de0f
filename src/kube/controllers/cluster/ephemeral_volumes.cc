#include "kube/controllers/cluster/ephemeral_volumes.h"

#include <utility>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
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
      queue_(context_.executor,
             context_.metrics,
             "ephemeral-volumes",
             16,
             [this](const std::string& key, client::WorkQueue::Done done) {
               Reconcile(key, std::move(done));
             }),
      events_(MakeRecorder(context_, "ephemeral_volume")),
      client_(context_.executor, context_.server, context_.user, "ephemeral-volume-controller") {
  Follow(pods_, [this](const json::SharedValue& pod) { OnPod(*pod); });
  const auto claim = [this](const json::SharedValue& it) { OnClaim(*it); };
  claims_.AddHandlers({.on_add = claim, .on_update = {}, .on_delete = claim});
}

void EphemeralVolumes::OnPod(const json::Value& pod) {
  for (const api::MountedClaim& claim : api::MountedClaims(pod)) {
    if (IsEphemeral(claim)) return queue_.Add(api::KeyOf(pod));
  }
}

// The pod may want another one next. One that is gone may have been in its way.
void EphemeralVolumes::OnClaim(const json::Value& claim) {
  const std::string prefix = StrCat(api::Namespace(claim), "/");
  const auto& pods = pods_.objects();
  for (auto it = pods.lower_bound(prefix); it != pods.end() && it->first.starts_with(prefix);
       ++it) {
    for (const api::MountedClaim& mounted : api::MountedClaims(*it->second)) {
      if (IsEphemeral(mounted) && mounted.name == api::Name(claim)) queue_.Add(it->first);
    }
  }
}

// Makes one claim at a time: its watch event brings the next.
void EphemeralVolumes::Reconcile(const std::string& key, client::WorkQueue::Done done) {
  if (!context_.informers.synced()) return done(kNotSynced);
  const json::SharedValue pod = pods_.Get(key);
  if (!pod || !api::IsActive(*pod)) return done(Duration::zero());
  for (const api::MountedClaim& wanted : api::MountedClaims(*pod)) {
    if (!IsEphemeral(wanted)) continue;
    const json::SharedValue there = claims_.Get(StrCat(api::Namespace(*pod), "/", wanted.name));
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
