#include "kube/controllers/cluster/resource_claims.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "kube/controllers/queue.h"
#include "kube/controllers/workload.h"
#include "kube/controllers/write_batch.h"

namespace swell::controllers {
namespace {

const client::Resource& Gangs() { return client::resources::kGangs; }

bool IsGang(const json::Value& holder) { return api::KindOf(holder) == "PodGroup"; }

// The claims that the group makes or names, as a pod's.
std::vector<api::PodClaim> ClaimsOfGang(const json::Value& gang) {
  std::vector<api::PodClaim> claims;
  for (const json::Value& one : json::GetArray(gang, {"spec", "resourceClaims"})) {
    api::PodClaim claim{.name = json::GetString(one, {"name"}),
                        .claim = json::GetString(one, {"resourceClaimName"}),
                        .template_name = json::GetString(one, {"resourceClaimTemplateName"})};
    for (const json::Value& made : json::GetArray(gang, {"status", "resourceClaimStatuses"})) {
      if (json::GetString(made, {"name"}) != claim.name) continue;
      claim.claim = json::GetString(made, {"resourceClaimName"});
    }
    claims.push_back(claim);
  }
  return claims;
}

bool SameClaims(const json::Value& gang, const json::Value& other) {
  return api::Uid(gang) == api::Uid(other) &&
         json::GetArray(gang, {"spec", "resourceClaims"}) ==
             json::GetArray(other, {"spec", "resourceClaims"}) &&
         json::GetArray(gang, {"status", "resourceClaimStatuses"}) ==
             json::GetArray(other, {"status", "resourceClaimStatuses"});
}

std::string_view GangOf(const json::Value& pod) {
  return json::GetString(pod, {"spec", "schedulingGroup", "podGroupName"});
}

// The claim as a template says it, for a pod or a gang.
json::Value ClaimFrom(const json::Value& claim_template,
                      const json::Value& holder,
                      std::string_view name) {
  json::Object annotations = json::GetObject(claim_template, {"spec", "metadata", "annotations"});
  annotations[api::kPodClaimName] = name;
  json::Object metadata{{"generateName", StrCat(api::Name(holder), "-", name, "-")},
                        {"namespace", api::Namespace(holder)},
                        {"annotations", std::move(annotations)},
                        {"ownerReferences", json::Array{api::MakeOwnerReference(holder)}}};
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
      pod_queue_(MakeQueue(
          context_, "resourceclaims-of-pods", 16, this, &ResourceClaimController::ReconcilePod)),
      gang_queue_(MakeQueue(
          context_, "resourceclaims-of-groups", 16, this, &ResourceClaimController::ReconcileGang)),
      claim_queue_(MakeQueue(
          context_, "resourceclaims", 16, this, &ResourceClaimController::ReconcileClaim)),
      events_(MakeRecorder(context_, "resource_claim")),
      client_(context_.executor, context_.server, context_.user, "resourceclaim-controller") {
  const auto pod = [this](const json::SharedValue& it) { OnPod(*it); };
  Follow(pods_, pod, pod);
  Follow(claims_, Queued(claim_queue_));
  if (context_.informers.Serves(Gangs())) {
    gangs_ = &context_.informers.Of(Gangs());
    gangs_->AddHandlers(
        {.on_add = [this](const json::SharedValue& gang) { OnGang(*gang); },
         .on_update =
             [this](const json::SharedValue& before, const json::SharedValue& gang) {
               // Its conditions change with its pods, and finding those means looking at all pods.
               if (!SameClaims(*before, *gang)) OnGang(*gang);
             },
         .on_delete = {}});
  }
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

// Its pods may have waited for it, or for its claims.
void ResourceClaimController::OnGang(const json::Value& gang) {
  gang_queue_.Add(api::KeyOf(gang));
  for (const auto& [key, pod] : pods_.objects()) {
    const bool member = GangOf(*pod) == api::Name(gang) &&
                        api::Namespace(*pod) == api::Namespace(gang) && api::HasDeviceClaims(*pod);
    if (member) pod_queue_.Add(key);
  }
}

void ResourceClaimController::QueueWaiting(const json::Value& claim_template) {
  const auto waits = [&](const json::Value& holder, const std::vector<api::PodClaim>& claims) {
    return api::Namespace(holder) == api::Namespace(claim_template) &&
           std::any_of(claims.begin(), claims.end(), [&](const api::PodClaim& claim) {
             return claim.template_name == api::Name(claim_template) && claim.claim.empty();
           });
  };
  for (const auto& [key, pod] : pods_.objects()) {
    if (waits(*pod, api::DeviceClaimsOf(*pod))) pod_queue_.Add(key);
  }
  if (gangs_ == nullptr) return;
  for (const auto& [key, gang] : gangs_->objects()) {
    if (waits(*gang, ClaimsOfGang(*gang))) gang_queue_.Add(key);
  }
}

json::SharedValue ResourceClaimController::FindMade(const json::Value& holder,
                                                    std::string_view name) const {
  for (const json::SharedValue& claim : claims_.ByIndex("owner", api::Uid(holder))) {
    if (api::Annotation(*claim, api::kPodClaimName) == name && !api::IsDeleting(*claim)) {
      return claim;
    }
  }
  return nullptr;
}

// Makes one claim at a time: the watch event of what it tells the pod brings the next.
void ResourceClaimController::ReconcilePod(const std::string& key, client::WorkQueue::Done done) {
  const json::SharedValue pod = pods_.Get(key);
  if (!pod || !api::IsActive(*pod)) return done(Duration::zero());
  for (const api::PodClaim& wanted : api::DeviceClaimsOf(*pod)) {
    if (wanted.template_name.empty() || !wanted.claim.empty() || wanted.needless) continue;
    if (const std::optional<std::string> shared = OfGang(*pod, wanted)) {
      if (shared->empty()) continue;  // the pod comes back with its group
      return Tell(*pod, wanted.name, *shared, std::move(done));
    }
    const json::SharedValue made = FindMade(*pod, wanted.name);
    if (made) return Tell(*pod, wanted.name, api::Name(*made), std::move(done));
    return MakeClaim(pod, wanted, done);
  }
  done(Duration::zero());
}

std::optional<std::string> ResourceClaimController::OfGang(const json::Value& pod,
                                                           const api::PodClaim& wanted) const {
  const std::string_view name = GangOf(pod);
  if (name.empty() || gangs_ == nullptr) return std::nullopt;
  const json::SharedValue gang = gangs_->Get(StrCat(api::Namespace(pod), "/", name));
  if (!gang) return "";
  for (const api::PodClaim& claim : ClaimsOfGang(*gang)) {
    const bool same = claim.name == wanted.name && claim.template_name == wanted.template_name;
    if (same) return std::string(claim.claim);
  }
  return std::nullopt;
}

// As of a pod.
void ResourceClaimController::ReconcileGang(const std::string& key, client::WorkQueue::Done done) {
  const json::SharedValue gang = gangs_->Get(key);
  if (!gang || api::IsDeleting(*gang)) return done(Duration::zero());
  for (const api::PodClaim& wanted : ClaimsOfGang(*gang)) {
    if (wanted.template_name.empty() || !wanted.claim.empty()) continue;
    const json::SharedValue made = FindMade(*gang, wanted.name);
    if (made) return Tell(*gang, wanted.name, api::Name(*made), std::move(done));
    return MakeClaim(gang, wanted, done);
  }
  done(Duration::zero());
}

void ResourceClaimController::MakeClaim(const json::SharedValue& holder,
                                        const api::PodClaim& wanted,
                                        const client::WorkQueue::Done& done) {
  const std::string ns(api::Namespace(*holder));
  const std::string what =
      StrCat(IsGang(*holder) ? "PodGroupResourceClaim " : "PodResourceClaim ", wanted.name, ": ");
  const json::SharedValue from = templates_.Get(StrCat(ns, "/", wanted.template_name));
  if (!from) {
    events_.Record(
        *holder, "Warning", "FailedResourceClaimCreation",
        StrCat(what, "resource claim template ", Quote(wanted.template_name), " not found"));
    return done(Duration::zero());  // it comes back with the template
  }
  client_.Create(client::resources::kResourceClaims, ns, ClaimFrom(*from, *holder, wanted.name),
                 [this, holder, what, name = std::string(wanted.name),
                  done](const Result<json::SharedValue>& made) {
                   if (made.ok()) return Tell(*holder, name, api::Name(**made), done);
                   events_.Record(*holder, "Warning", "FailedResourceClaimCreation",
                                  StrCat(what, made.status().message()));
                   done(made.status());
                 });
}

void ResourceClaimController::Tell(const json::Value& holder,
                                   std::string_view name,
                                   std::string_view claim,
                                   client::WorkQueue::Done done) {
  const json::Value patch = json::Object{
      {"metadata", json::Object{{"uid", api::Uid(holder)}}},
      {"status",
       json::Object{{"resourceClaimStatuses",
                     json::Array{json::Object{{"name", name}, {"resourceClaimName", claim}}}}}}};
  client_.Patch(IsGang(holder) ? Gangs() : client::resources::kPods, api::Namespace(holder),
                api::Name(holder), client::PatchType::kStrategic, patch,
                Ends(std::move(done), {}, {Code::kNotFound, Code::kConflict}), "status");
}

void ResourceClaimController::ReconcileClaim(const std::string& key, client::WorkQueue::Done done) {
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
