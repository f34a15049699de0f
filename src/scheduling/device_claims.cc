#include "scheduling/device_claims.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/device_claim.h"
#include "kube/api/objects/extended_claim.h"
#include "kube/api/objects/pod.h"

namespace swell::scheduling {
namespace {

// The pod that is given the claim first may not be bound at all.
constexpr Duration kFollowLimit = std::chrono::seconds(10);
// After this a claim to extended resources that could not be made is made again.
constexpr Duration kMakeAgain = std::chrono::seconds(10);

client::Informer* OfServed(const controllers::Context& context, const client::Resource& resource) {
  return context.informers.Serves(resource) ? &context.informers.Of(resource) : nullptr;
}

json::Value Consumer(const json::Value& pod) {
  return json::Object{{"resource", "pods"}, {"name", api::Name(pod)}, {"uid", api::Uid(pod)}};
}

}  // namespace

// The claims of one pod, one after the other.
struct DeviceClaims::Giving {
  json::SharedValue pod;
  std::string node;
  sched_inputs::DeviceCatalog::Grants grants;
  size_t at = 0;
  Done done;
};

DeviceClaims::DeviceClaims(controllers::Context context)
    : context_(std::move(context)),
      served_(context_.informers.Serves(client::resources::kResourceClaims)),
      pods_(context_.informers.Of(client::resources::kPods)),
      claims_(OfServed(context_, client::resources::kResourceClaims)),
      classes_(OfServed(context_, client::resources::kDeviceClasses)),
      slices_(OfServed(context_, client::resources::kResourceSlices)),
      taint_rules_(OfServed(context_, client::resources::kDeviceTaintRules)),
      client_(context_.executor,
              context_.server,
              context_.user,
              "swell-scheduler",
              /*urgent=*/true) {}

void DeviceClaims::Watch(Hooks hooks) {
  hooks_ = std::move(hooks);
  if (!served_) return;
  const auto devices_changed = [this](auto change) {
    return [this, change](const json::SharedValue& object) {
      change(object);
      OnOffer();
    };
  };
  controllers::Follow(
      *slices_,
      devices_changed([this](const json::SharedValue& slice) { catalog_.SetSlice(slice); }),
      devices_changed(
          [this](const json::SharedValue& slice) { catalog_.RemoveSlice(api::Name(*slice)); }));
  controllers::Follow(
      *classes_, devices_changed([this](const json::SharedValue& it) { catalog_.SetClass(it); }),
      devices_changed(
          [this](const json::SharedValue& it) { catalog_.RemoveClass(api::Name(*it)); }));
  if (taint_rules_ != nullptr) {
    controllers::Follow(
        *taint_rules_,
        devices_changed([this](const json::SharedValue& it) { catalog_.SetTaintRule(it); }),
        devices_changed(
            [this](const json::SharedValue& it) { catalog_.RemoveTaintRule(api::Name(*it)); }));
  }
  const auto claim = [this](const json::SharedValue& it) { OnClaim(*it); };
  controllers::Follow(*claims_, claim, claim);
}

void DeviceClaims::MakeOwnClass() {
  if (!served_ || classes_->Get(api::kGpuDriver)) return;
  const json::Value own = json::Object{
      {"apiVersion", client::resources::kDeviceClasses.ApiVersion()},
      {"kind", "DeviceClass"},
      {"metadata", json::Object{{"name", api::kGpuDriver}}},
      {"spec",
       json::Object{{"selectors",
                     json::Array{json::Object{
                         {"cel", json::Object{{"expression", StrCat("device.driver == '",
                                                                    api::kGpuDriver, "'")}}}}}}}}};
  client_.Create(client::resources::kDeviceClasses, "", own,
                 [](const Result<json::SharedValue>& made) {
                   if (made.ok() || made.status().code() == Code::kAlreadyExists) return;
                   SWELL_LOG_WARNING("scheduler", "device class not made",
                                     {"class", std::string(api::kGpuDriver)},
                                     {"error", made.status().ToString()});
                 });
}

sched_inputs::DeviceCatalog::View DeviceClaims::View() const {
  const auto find = [](const client::Informer& informer) {
    return [&informer](std::string_view key) { return informer.Get(key).get(); };
  };
  return {find(*claims_), find(pods_), [this](const std::string& claim) { return UsersOf(claim); }};
}

std::vector<json::SharedValue> DeviceClaims::UsersOf(const std::string& claim) const {
  std::vector<json::SharedValue> out;
  const auto users = users_.find(claim);
  if (users == users_.end()) return out;
  for (const std::string& key : users->second) {
    if (json::SharedValue pod = pods_.Get(key)) out.push_back(std::move(pod));
  }
  return out;
}

void DeviceClaims::AddToNode(sched::NodeInfo& node) {
  catalog_.AddToNode(node);
  looked_for_.clear();
  const bool offers_more =
      std::any_of(unoffered_.begin(), unoffered_.end(), [&node](const std::string& resource) {
        return node.allocatable.extended.contains(resource);
      });
  if (!offers_more) return;
  unoffered_.clear();
  RefreshWaiting();
}

bool DeviceClaims::SomeNodeOffers(const std::string& resource) {
  if (looked_for_.contains(resource)) return false;
  const auto& nodes = context_.informers.Of(client::resources::kNodes).objects();
  const bool offered = std::any_of(nodes.begin(), nodes.end(), [&resource](const auto& node) {
    return json::Find(*node.second, {"status", "allocatable", resource}) != nullptr;
  });
  if (!offered) looked_for_.insert(resource);
  return offered;
}

// A resource that a node offers is left to that node's device plugin.
std::string DeviceClaims::ClassFor(const std::string& resource) {
  std::string its_class = catalog_.ClassServing(resource);
  return its_class.empty() || SomeNodeOffers(resource) ? "" : its_class;
}

void DeviceClaims::LookAtResources(const json::Value& pod, sched::PodInfo& out) {
  if (!served_ || !out.ours || !out.node.empty() || !out.obstacle.empty()) return;
  if (api::HasEnded(pod) || api::IsDeleting(pod)) return;
  bool any = false;
  for (const auto& [resource, amount] : out.requests.extended) {
    if (ClassFor(resource).empty()) continue;
    unoffered_.insert(resource);
    any = true;
  }
  if (!any) return;
  known_.try_emplace(api::KeyOf(pod));
  const auto [made, fresh] = making_.try_emplace(std::string(api::Uid(pod)));
  out.obstacle = made->second;
  if (out.obstacle.empty()) out.scheduling_gates.emplace_back("resource.k8s.io/claim-made");
  if (fresh) MakeClaim(pod);
}

// One that an earlier scheduler made, and did not tell the pod of, is taken.
void DeviceClaims::MakeClaim(const json::Value& pod) {
  auto made = api::MakeExtendedClaim(
      pod, [this](const std::string& resource) { return ClassFor(resource); });
  if (!made) return;
  for (const json::SharedValue& claim : claims_->ByIndex("owner", api::Uid(pod))) {
    if (api::Annotation(*claim, api::kExtendedClaim).empty() || api::IsDeleting(*claim)) continue;
    return TellClaim(pod, std::string(api::Name(*claim)), made->mappings);
  }
  client_.Create(client::resources::kResourceClaims, api::Namespace(pod), made->claim,
                 [this, pod, mappings = made->mappings](const Result<json::SharedValue>& claim) {
                   if (!claim.ok()) return OnNotMade(pod, claim.status());
                   TellClaim(pod, std::string(api::Name(**claim)), mappings);
                 });
}

void DeviceClaims::TellClaim(const json::Value& pod,
                             const std::string& claim,
                             const json::Array& mappings) {
  const json::Value patch = json::Object{
      {"metadata", json::Object{{"uid", api::Uid(pod)}}},
      {"status",
       json::Object{{"extendedResourceClaimStatus",
                     json::Object{{"requestMappings", mappings}, {"resourceClaimName", claim}}}}}};
  client_.Patch(
      client::resources::kPods, api::Namespace(pod), api::Name(pod), client::PatchType::kMerge,
      patch,
      [this, pod](const Result<json::SharedValue>& told) {
        if (!told.ok()) OnNotMade(pod, told.status());
      },
      "status");
}

void DeviceClaims::OnNotMade(const json::Value& pod, const Status& status) {
  const std::string key = api::KeyOf(pod);
  const auto making = making_.find(api::Uid(pod));
  if (making == making_.end()) return;  // the pod is gone
  making->second =
      StrCat("its claim to the devices that it requests cannot be made: ", status.message());
  Refresh({key});
  context_.executor.After(kMakeAgain, scope_.Wrap([this, key, uid = making->first] {
    making_.erase(uid);
    Refresh({key});
  }));
}

// Pods that share a claim with this one are looked at again when it comes to its node, or is over.
void DeviceClaims::AddToPod(const json::Value& pod, sched::PodInfo& out) {
  if (api::HasExtendedClaim(pod)) {
    making_.erase(std::string(api::Uid(pod)));
  } else {
    LookAtResources(pod, out);
  }
  if (!api::HasDeviceClaims(pod)) return;
  if (!served_) {
    if (out.obstacle.empty()) {
      out.obstacle = "resourceclaims are not served by this cluster (resource.k8s.io/v1)";
    }
    return;
  }
  const std::string key = api::KeyOf(pod);
  Known& known = known_[key];
  const bool moved = known.node != api::NodeName(pod) || known.ended != api::HasEnded(pod);
  known.node = api::NodeName(pod);
  known.ended = api::HasEnded(pod);
  for (const api::PodClaim& claim : api::DeviceClaimsOf(pod)) {
    if (claim.claim.empty()) continue;
    std::string claim_key = StrCat(api::Namespace(pod), "/", claim.claim);
    if (users_[claim_key].insert(key).second) known.claims.push_back(claim_key);
    if (moved && users_[claim_key].size() > 1) Refresh(users_[claim_key]);
  }
  catalog_.AddToPod(pod, View(), out);
  TellNodes();
}

void DeviceClaims::OnPodDeleted(const json::Value& pod) {
  making_.erase(std::string(api::Uid(pod)));
  const auto known = known_.extract(api::KeyOf(pod));
  if (known.empty()) return;
  for (const std::string& claim : known.mapped().claims) {
    const auto users = users_.find(claim);
    if (users == users_.end()) continue;
    users->second.erase(known.key());
    Refresh(users->second);
    if (users->second.empty()) users_.erase(users);
  }
  if (catalog_.ForgetKinds()) RefreshWaiting();
}

void DeviceClaims::OnClaim(const json::Value& claim) {
  const std::string key = api::KeyOf(claim);
  if (api::IsAllocated(claim)) Resume(key, claim);
  const auto users = users_.find(key);
  if (users != users_.end()) Refresh(users->second);
}

// Later: a look at one pod may ask for a look at others.
void DeviceClaims::Refresh(const std::set<std::string>& pods) {
  if (pods.empty()) return;
  context_.executor.Post(scope_.Wrap([this, pods] {
    for (const std::string& key : pods) {
      if (const json::SharedValue pod = pods_.Get(key)) hooks_.pod_changed(*pod);
    }
  }));
}

void DeviceClaims::OnOffer() {
  offers_changed_ = !known_.empty();
  TellNodes();
}

// All changes of one instant share a look at nodes and pods.
void DeviceClaims::TellNodes() {
  changed_nodes_.merge(catalog_.TakeChangedNodes());
  if ((changed_nodes_.empty() && !offers_changed_) || refresh_posted_) return;
  refresh_posted_ = true;
  context_.executor.Post(scope_.Wrap([this] {
    refresh_posted_ = false;
    for (const std::string& node : std::exchange(changed_nodes_, {})) hooks_.node_changed(node);
    if (std::exchange(offers_changed_, false)) RefreshWaiting();
  }));
}

void DeviceClaims::RefreshWaiting() {
  std::set<std::string> pods;
  for (const auto& [key, known] : known_) pods.insert(key);
  Refresh(pods);
}

// ---- giving ----

void DeviceClaims::Give(const json::SharedValue& pod,
                        const std::string& node,
                        const std::vector<int>& devices,
                        Done done) {
  auto grants = catalog_.GrantsFor(*pod, View(), node, devices);
  auto giving = std::make_shared<Giving>();
  giving->pod = pod;
  giving->node = node;
  giving->done = std::move(done);
  const Status status = grants.ok() ? Status::Ok() : grants.status();
  if (grants.ok()) giving->grants = std::move(*grants);
  context_.executor.Post(scope_.Wrap([this, giving, status] {
    if (!status.ok()) return giving->done(status);
    GiveNext(giving);
  }));
}

void DeviceClaims::GiveNext(const GivingPtr& giving) {
  if (giving->at == giving->grants.claims.size()) return giving->done(giving->grants.gpus);
  const std::string& key = giving->grants.claims[giving->at].claim;
  const json::SharedValue claim = claims_->Get(key);
  if (!claim) return giving->done(Status(Code::kNotFound, StrCat("resourceclaim ", key)));
  GiveClaim(giving, *claim);
}

// Each write is of what was seen: what others changed meanwhile is not overwritten.
void DeviceClaims::GiveClaim(const GivingPtr& giving, json::Value claim) {
  const json::Value& wanted = giving->grants.claims[giving->at].allocation;
  auto again = [this, giving](const json::Value& written) { GiveClaim(giving, written); };
  const json::Value* has = json::Find(claim, {"status", "allocation"});
  const bool given = has != nullptr && has->is_object();
  const bool other = given && !wanted.is_null() &&
                     !json::Equal(*json::Find(*has, {"devices"}), *json::Find(wanted, {"devices"}));
  if (other) {
    json::Remove(claim, {"status", "allocation"});
    json::Remove(claim, {"status", "reservedFor"});
    json::Remove(claim, {"status", "devices"});
    return Write(giving, claim, "status", again);
  }
  if (!given && giving->grants.claims[giving->at].follows) {
    return AwaitClaim(giving->grants.claims[giving->at].claim, giving);
  }
  if (!given && wanted.is_null()) {
    return giving->done(Status(Code::kConflict, StrCat("resourceclaim ", api::KeyOf(claim),
                                                       " has lost its devices meanwhile")));
  }
  if (!api::HasFinalizer(claim, api::kDeviceClaimFinalizer)) {
    json::Array finalizers = api::Finalizers(claim);
    finalizers.push_back(json::Value(api::kDeviceClaimFinalizer));
    json::Set(claim, {"metadata", "finalizers"}, std::move(finalizers));
    return Write(giving, claim, "", again);
  }
  if (!api::IsReservedFor(claim, api::Uid(*giving->pod))) {
    json::Array users = json::GetArray(claim, {"status", "reservedFor"});
    users.push_back(Consumer(*giving->pod));
    if (!given) {
      json::Set(claim, {"status", "allocation"}, wanted);
      json::Set(claim, {"status", "allocation", "allocationTimestamp"},
                api::FormatTime(context_.clock.Now()));
    }
    json::Set(claim, {"status", "reservedFor"}, std::move(users));
    return Write(giving, claim, "status", again);
  }
  OnGiven(giving, claim);
}

void DeviceClaims::OnGiven(const GivingPtr& giving, const json::Value& claim) {
  if (giving->grants.claims[giving->at].follows) {
    const auto gpus = catalog_.GpusOf(claim, giving->node);
    if (!gpus) {
      return giving->done(Status(Code::kConflict, StrCat("resourceclaim ", api::KeyOf(claim),
                                                         " has its devices on another node")));
    }
    std::vector<int>& all = giving->grants.gpus;
    all.insert(all.end(), gpus->begin(), gpus->end());
  }
  ++giving->at;
  GiveNext(giving);
}

void DeviceClaims::AwaitClaim(const std::string& key, const GivingPtr& giving) {
  followers_[key].push_back(giving);
  context_.executor.After(kFollowLimit, scope_.Wrap([this, key, giving] {
    const auto waiting = followers_.find(key);
    if (waiting == followers_.end() || std::erase(waiting->second, giving) == 0) return;
    if (waiting->second.empty()) followers_.erase(waiting);
    giving->done(Status(Code::kTimeout, StrCat("resourceclaim ", key, " got no devices")));
  }));
}

void DeviceClaims::Resume(const std::string& key, const json::Value& claim) {
  const auto waiting = followers_.extract(key);
  if (waiting.empty()) return;
  for (const GivingPtr& giving : waiting.mapped()) GiveClaim(giving, claim);
}

void DeviceClaims::Write(const GivingPtr& giving,
                         const json::Value& claim,
                         std::string_view subresource,
                         std::function<void(const json::Value&)> then) {
  client_.Update(
      client::resources::kResourceClaims, claim,
      [giving, then = std::move(then)](const Result<json::SharedValue>& written) {
        if (!written.ok()) return giving->done(written.status());
        then(**written);
      },
      subresource);
}

}  // namespace swell::scheduling
