#include "kube/controllers/cluster/resource_claims.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "kube/controllers/workload.h"
#include "kube/controllers/write_batch.h"

namespace swell::controllers {
namespace {

// The claim as a template says it, for a pod.
json::Value ClaimFrom(const json::Value& claim_template,
                      const json::Value& pod,
                      std::string_view name) {
  json::Object annotations = json::GetObject(claim_template, {"spec", "metadata", "annotations"});
  annotations[api::kPodClaimName] = name;
  json::Object metadata{{"generateName", StrCat(api::Name(pod), "-", name, "-")},
                        {"namespace", api::Namespace(pod)},
                        {"annotations", std::move(annotations)},
                        {"ownerReferences", json::Array{api::MakeOwnerReference(pod)}}};
  const json::Object& labels = json::GetObject(claim_template, {"spec", "metadata", "labels"});
  if (!labels.empty()) metadata["labels"] = labels;
  json::Value claim = json::Object{{"apiVersion", "resource.k8s.io/v1"},
                                   {"kind", "ResourceClaim"},
                                   {"metadata", std::move(metadata)}};
  if (const json::Value* spec = json::Find(claim_template, {"spec", "spec"})) {
    json::Set(claim, {"spec"}, *spec);
  }
  return claim;
}

}  // namespace

struct ResourceClaimController::Pass {
  json::SharedValue claim;
  client::WorkQueue::Done done;
  std::vector<api::ClaimConsumer> users;  // texts of the claim
  size_t at = 0;                          // of them, the next to look at
  json::Array valid;                      // as reservedFor has them
};

ResourceClaimController::ResourceClaimController(Context context)
    : context_(std::move(context)),
      pods_(context_.informers.Of(client::resources::kPods)),
      claims_(context_.informers.Of(client::resources::kResourceClaims)),
      templates_(context_.informers.Of(client::resources::kResourceClaimTemplates)),
      pod_queue_(context_.executor,
                 context_.metrics,
                 "resourceclaims-of-pods",
                 16,
                 [this](const std::string& key, client::WorkQueue::Done done) {
                   ReconcilePod(key, std::move(done));
                 }),
      claim_queue_(context_.executor,
                   context_.metrics,
                   "resourceclaims",
                   16,
                   [this](const std::string& key, client::WorkQueue::Done done) {
                     ReconcileClaim(key, std::move(done));
                   }),
      events_(MakeRecorder(context_, "resource_claim")),
      client_(context_.executor, context_.server, context_.user, "resourceclaim-controller") {
  const auto pod = [this](const json::SharedValue& it) { OnPod(*it); };
  Follow(pods_, pod, pod);
  Follow(claims_, Queued(claim_queue_));
  templates_.AddHandlers({.on_add = [this](const json::SharedValue& it) { QueueWaiting(*it); },
                          .on_update = {},
                          .on_delete = {}});
}

void ResourceClaimController::OnPod(const json::Value& pod) {
  if (!api::HasDeviceClaims(pod)) return;
  pod_queue_.Add(api::KeyOf(pod));
  for (const api::PodClaim& claim : api::DeviceClaimsOf(pod)) {
    if (!claim.claim.empty()) claim_queue_.Add(StrCat(api::Namespace(pod), "/", claim.claim));
  }
}

void ResourceClaimController::QueueWaiting(const json::Value& claim_template) {
  for (const auto& [key, pod] : pods_.objects()) {
    if (api::Namespace(*pod) != api::Namespace(claim_template)) continue;
    const std::vector<api::PodClaim> claims = api::DeviceClaimsOf(*pod);
    const bool waits = std::any_of(claims.begin(), claims.end(), [&](const api::PodClaim& claim) {
      return claim.template_name == api::Name(claim_template) && claim.claim.empty();
    });
    if (waits) pod_queue_.Add(key);
  }
}

json::SharedValue ResourceClaimController::FindMade(const json::Value& pod,
                                                    std::string_view name) const {
  for (const json::SharedValue& claim : claims_.ByIndex("owner", api::Uid(pod))) {
    if (api::Annotation(*claim, api::kPodClaimName) == name && !api::IsDeleting(*claim)) {
      return claim;
    }
  }
  return nullptr;
}

// Makes one claim at a time: the watch event of what it tells the pod brings the next.
void ResourceClaimController::ReconcilePod(const std::string& key, client::WorkQueue::Done done) {
  if (!context_.informers.synced()) return done(kNotSynced);
  const json::SharedValue pod = pods_.Get(key);
  if (!pod || !api::IsActive(*pod)) return done(Duration::zero());
  for (const api::PodClaim& wanted : api::DeviceClaimsOf(*pod)) {
    if (wanted.template_name.empty() || !wanted.claim.empty() || wanted.needless) continue;
    const json::SharedValue made = FindMade(*pod, wanted.name);
    if (made) return TellPod(*pod, wanted.name, api::Name(*made), std::move(done));
    return MakeClaim(pod, wanted, done);
  }
  done(Duration::zero());
}

void ResourceClaimController::MakeClaim(const json::SharedValue& pod,
                                        const api::PodClaim& wanted,
                                        const client::WorkQueue::Done& done) {
  const std::string ns(api::Namespace(*pod));
  const json::SharedValue from = templates_.Get(StrCat(ns, "/", wanted.template_name));
  if (!from) {
    events_.Record(*pod, "Warning", "FailedResourceClaimCreation",
                   StrCat("PodResourceClaim ", wanted.name, ": resource claim template ",
                          Quote(wanted.template_name), " not found"));
    return done(Duration::zero());  // it comes back with the template
  }
  client_.Create(
      client::resources::kResourceClaims, ns, ClaimFrom(*from, *pod, wanted.name),
      [this, pod, name = std::string(wanted.name), done](const Result<json::SharedValue>& made) {
        if (made.ok()) return TellPod(*pod, name, api::Name(**made), done);
        events_.Record(*pod, "Warning", "FailedResourceClaimCreation",
                       StrCat("PodResourceClaim ", name, ": ", made.status().message()));
        done(made.status());
      });
}

void ResourceClaimController::TellPod(const json::Value& pod,
                                      std::string_view name,
                                      std::string_view claim,
                                      client::WorkQueue::Done done) {
  const json::Value patch = json::Object{
      {"metadata", json::Object{{"uid", api::Uid(pod)}}},
      {"status",
       json::Object{{"resourceClaimStatuses",
                     json::Array{json::Object{{"name", name}, {"resourceClaimName", claim}}}}}}};
  client_.Patch(client::resources::kPods, api::Namespace(pod), api::Name(pod),
                client::PatchType::kStrategic, patch,
                Ends(std::move(done), {}, {Code::kNotFound, Code::kConflict}), "status");
}

void ResourceClaimController::ReconcileClaim(const std::string& key, client::WorkQueue::Done done) {
  if (!context_.informers.synced()) return done(kNotSynced);
  const json::SharedValue claim = claims_.Get(key);
  if (!claim) return done(Duration::zero());
  auto pass = std::make_shared<Pass>();
  pass->claim = claim;
  pass->done = std::move(done);
  pass->users = api::ConsumersOf(*claim);
  CheckUsers(pass);
}

// The server is asked about a user that the cache does not know.
void ResourceClaimController::CheckUsers(const PassPtr& pass) {
  const json::Value& claim = *pass->claim;
  const json::Array& reserved = json::GetArray(claim, {"status", "reservedFor"});
  for (; pass->at < pass->users.size(); ++pass->at) {
    const api::ClaimConsumer& user = pass->users[pass->at];
    const json::Value& entry = reserved[pass->at];
    if (user.resource != "pods") {
      pass->valid.push_back(entry);
      continue;
    }
    const json::SharedValue pod = pods_.Get(StrCat(api::Namespace(claim), "/", user.name));
    if (!pod || api::Uid(*pod) != user.uid) {
      return client_.Get(
          client::resources::kPods, api::Namespace(claim), user.name,
          [this, pass, uid = std::string(user.uid), entry](const Result<json::SharedValue>& got) {
            if (!got.ok() && got.status().code() != Code::kNotFound) {
              return pass->done(got.status());
            }
            const bool uses = got.ok() && api::Uid(**got) == uid && !api::HasEnded(**got);
            if (uses) pass->valid.push_back(entry);
            ++pass->at;
            CheckUsers(pass);
          });
    }
    if (!api::HasEnded(*pod)) pass->valid.push_back(entry);
  }
  Free(pass);
}

// With the last user go the devices. What was looked at is replaced, or nothing is: a scheduler may
// be giving the claim to another pod.
void ResourceClaimController::Free(const PassPtr& pass) {
  const json::Value& claim = *pass->claim;
  const bool drops = pass->valid.size() < pass->users.size();
  const bool frees =
      pass->valid.empty() && api::IsAllocated(claim) && (drops || api::IsDeleting(claim));
  if (!drops && !frees) return Settle(claim, pass->done);
  json::Value next = claim;
  if (pass->valid.empty()) {
    json::Remove(next, {"status", "reservedFor"});
  } else {
    json::Set(next, {"status", "reservedFor"}, std::move(pass->valid));
  }
  if (frees) {
    json::Remove(next, {"status", "allocation"});
    json::Remove(next, {"status", "devices"});
  }
  client_.Update(client::resources::kResourceClaims, next, Ends(pass->done), "status");
}

// What else there is to do about a claim that nobody has to be dropped from.
void ResourceClaimController::Settle(const json::Value& claim,
                                     const client::WorkQueue::Done& done) {
  if (!api::IsAllocated(claim) && api::HasFinalizer(claim, api::kDeviceClaimFinalizer)) {
    return client_.Update(client::resources::kResourceClaims,
                          api::WithoutFinalizer(claim, api::kDeviceClaimFinalizer), Ends(done));
  }
  const std::string owner = api::PodOfClaim(claim);
  if (owner.empty() || api::IsDeleting(claim)) return done(Duration::zero());
  const auto reference = api::ControllerOf(claim);
  const json::SharedValue pod = pods_.Get(StrCat(api::Namespace(claim), "/", reference->name));
  if (!pod || api::Uid(*pod) != owner || !api::HasEnded(*pod)) return done(Duration::zero());
  client_.Delete(client::resources::kResourceClaims, api::Namespace(claim), api::Name(claim),
                 {.precondition_uid = std::string(api::Uid(claim))},
                 Ends(done, {}, {Code::kNotFound, Code::kConflict}));
}

}  // namespace swell::controllers
