#include "kube/controllers/cluster/volume_binder.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/api/meta/local_storage.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/selector.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/pod_claims.h"
#include "kube/controllers/cluster/volume_match.h"
#include "kube/controllers/queue.h"
#include "kube/controllers/workload.h"
#include "kube/controllers/write_batch.h"

namespace swell::controllers {
namespace {

constexpr std::string_view kProvisionedBy = "pv.kubernetes.io/provisioned-by";
constexpr std::string_view kBoundByController = "pv.kubernetes.io/bound-by-controller";
constexpr std::string_view kBindCompleted = "pv.kubernetes.io/bind-completed";
constexpr std::string_view kIsDefault = "storageclass.kubernetes.io/is-default-class";
constexpr std::string_view kClaimFinalizer = "kubernetes.io/pvc-protection";
constexpr std::string_view kVolumeFinalizer = "kubernetes.io/pv-protection";

// The handle of what was made for the volume's claim. A volume that somebody wrote by hand may say
// anything: it holds nothing.
std::string HeldBy(const json::Value& volume) {
  const json::Value& ref = *json::Find(volume, {"spec", "claimRef"});
  const bool plain = api::CheckDnsLabel(json::GetString(ref, {"namespace"})).empty() &&
                     api::CheckDnsSubdomain(json::GetString(ref, {"name"})).empty();
  const std::string handle = api::ClaimKeyOf(volume);
  const bool ours = api::Name(volume) == StrCat("pvc-", json::GetString(ref, {"uid"})) &&
                    json::GetString(volume, {"spec", "csi", "volumeHandle"}) == handle;
  return plain && ours ? handle : std::string();
}

bool Uses(const json::Value& pod, std::string_view name) {
  const std::vector<api::MountedClaim> claims = api::MountedClaims(pod);
  return std::any_of(claims.begin(), claims.end(),
                     [name](const api::MountedClaim& claim) { return claim.name == name; });
}

}  // namespace

// One look at one object.
struct VolumeBinder::Pass {
  const json::Value& object;
  std::shared_ptr<WriteBatch> writes;
};

VolumeBinder::VolumeBinder(Context context, std::function<void(const std::string&)> remove)
    : context_(context),
      remove_(std::move(remove)),
      claims_(context_.informers.Of(client::resources::kPersistentVolumeClaims)),
      volumes_(context_.informers.Of(client::resources::kPersistentVolumes)),
      classes_(context_.informers.Of(client::resources::kStorageClasses)),
      pods_(context_.informers.Of(client::resources::kPods)),
      claim_queue_(
          MakeQueue(context_, "persistentvolumeclaims", 16, this, &VolumeBinder::ReconcileClaim)),
      volume_queue_(
          MakeQueue(context_, "persistentvolumes", 16, this, &VolumeBinder::ReconcileVolume)),
      events_(MakeRecorder(context_, "persistentvolume-controller")),
      client_(context_.executor, context_.server, context_.user, "persistentvolume-binder") {
  Watch();
}

void VolumeBinder::Watch() {
  auto claim = [this](const json::SharedValue& it) {
    claim_queue_.Add(api::KeyOf(*it));
    QueueVolumeOf(*it);
  };
  Follow(claims_, claim, claim);
  auto volume = [this](const json::SharedValue& it) {
    volume_queue_.Add(std::string(api::Name(*it)));
    const std::string key = api::ClaimKeyOf(*it);
    if (key.empty()) return QueueUnbound();
    claim_queue_.Add(key);
  };
  Follow(volumes_, volume, volume);
  auto pod = [this](const json::SharedValue& it) { QueueClaimsOf(*it); };
  Follow(pods_, pod, pod);
  auto any = [this](const json::SharedValue&) { QueueUnbound(); };
  classes_.AddHandlers({.on_add = any, .on_update = {}, .on_delete = {}});
}

// Claims that wait for a pod, or for the last one to be gone.
void VolumeBinder::QueueClaimsOf(const json::Value& pod) {
  for (const api::MountedClaim& mounted : api::MountedClaims(pod)) {
    const std::string key = StrCat(api::Namespace(pod), "/", mounted.name);
    const json::SharedValue claim = claims_.Get(key);
    if (!claim) continue;
    const bool bound = api::StatusPhase(*claim) == "Bound";
    if (!bound || api::IsDeleting(*claim)) claim_queue_.Add(key);
  }
}

void VolumeBinder::QueueVolumeOf(const json::Value& claim) {
  const std::string_view name = json::GetString(claim, {"spec", "volumeName"});
  if (!name.empty()) volume_queue_.Add(std::string(name));
}

void VolumeBinder::QueueUnbound() {
  for (const auto& [key, claim] : claims_.objects()) {
    if (api::StatusPhase(*claim) != "Bound") claim_queue_.Add(key);
  }
}

bool VolumeBinder::HasConsumer(const json::Value& claim, bool on_node) const {
  const std::string prefix = StrCat(api::Namespace(claim), "/");
  const auto& pods = pods_.objects();
  for (auto it = pods.lower_bound(prefix); it != pods.end() && it->first.starts_with(prefix);
       ++it) {
    if (on_node && !api::IsBound(*it->second)) continue;
    if (Uses(*it->second, api::Name(claim))) return true;
  }
  return false;
}

const json::Value* VolumeBinder::DefaultClass() const {
  for (const auto& [name, storage_class] : classes_.objects()) {
    if (api::Annotation(*storage_class, kIsDefault) == "true") return storage_class.get();
  }
  return nullptr;
}

void VolumeBinder::ReconcileClaim(const std::string& key, client::WorkQueue::Done done) {
  const json::SharedValue claim = claims_.Get(key);
  if (!claim) return done(Duration(0));
  Pass pass{*claim, MakeBatch(std::move(done))};
  if (api::IsDeleting(*claim)) {
    if (api::HasFinalizer(*claim, kClaimFinalizer) && !HasConsumer(*claim, true)) {
      client_.Update(client::resources::kPersistentVolumeClaims,
                     api::WithoutFinalizer(*claim, kClaimFinalizer), pass.writes->Track());
    }
  } else if (const std::string_view name = json::GetString(*claim, {"spec", "volumeName"});
             !name.empty()) {
    BindNamed(pass, name);
  } else {
    FindVolume(pass);
  }
  pass.writes->Close();
}

void VolumeBinder::BindNamed(Pass& pass, std::string_view volume_name) {
  const json::Value& claim = pass.object;
  const bool completed = !api::Annotation(claim, kBindCompleted).empty();
  const json::SharedValue volume = volumes_.Get(std::string(volume_name));
  if (!volume) {
    if (completed && api::StatusPhase(claim) != "Lost") {
      events_.Record(claim, "Warning", "ClaimLost",
                     "Bound claim has lost its PersistentVolume. Data on the volume is lost!");
    }
    return SetClaimStatus(pass, completed ? "Lost" : "Pending", nullptr);
  }
  if (json::Find(*volume, {"spec", "claimRef"}) == nullptr) {
    const std::string why = WhyNotFor(*volume, claim);
    if (why.empty() || completed) return Bind(pass, *volume);
    events_.Record(claim, "Warning", "VolumeMismatch",
                   StrCat("Cannot bind to requested volume ", Quote(volume_name), ": ", why));
    return SetClaimStatus(pass, "Pending", nullptr);
  }
  if (IsKeptFor(*volume, claim)) return Bind(pass, *volume);
  if (completed) {
    events_.Record(claim, "Warning", "ClaimMisbound",
                   "Two claims are bound to the same volume, this one is bound incorrectly");
    return SetClaimStatus(pass, "Lost", nullptr);
  }
  events_.Record(claim, "Warning", "FailedBinding",
                 StrCat("volume ", Quote(volume_name), " already bound to a different claim."));
  SetClaimStatus(pass, "Pending", nullptr);
}

void VolumeBinder::FindVolume(Pass& pass) {
  const json::Value& claim = pass.object;
  const auto selector = api::LabelSelector::FromJson(json::Find(claim, {"spec", "selector"}));
  const bool selects = json::Find(claim, {"spec", "selector"}) != nullptr;
  static const json::Value kNoLabels = json::Object{};
  json::SharedValue best;
  for (const auto& [name, volume] : volumes_.objects()) {
    if (api::IsDeleting(*volume)) continue;
    if (IsKeptFor(*volume, claim)) {
      if (WhyNotFor(*volume, claim).empty()) return Bind(pass, *volume);
      continue;
    }
    if (json::Find(*volume, {"spec", "claimRef"}) != nullptr) continue;
    const json::Value* labels = json::Find(*volume, {"metadata", "labels"});
    if (selects && !(selector.ok() && selector->Matches(labels ? *labels : kNoLabels))) continue;
    if (!WhyNotFor(*volume, claim).empty()) continue;
    if (!best || SmallerVolume(*volume, *best)) best = volume;
  }
  const bool names_class = json::Find(claim, {"spec", "storageClassName"}) != nullptr;
  const std::string class_name = ClassOf(claim);
  const json::SharedValue named = class_name.empty() ? nullptr : classes_.Get(class_name);
  const json::Value* storage_class = named ? named.get() : nullptr;
  if (!names_class && class_name.empty()) storage_class = DefaultClass();
  const bool waits = storage_class != nullptr && WaitsForConsumer(*storage_class);
  if (best && (!waits || !named || HasConsumer(claim, false))) return Bind(pass, *best);
  if (storage_class == nullptr) {
    if (class_name.empty()) {
      events_.Record(claim, "Normal", "FailedBinding",
                     "no persistent volumes available for this claim and no storage class is set");
    } else {
      events_.Record(claim, "Warning", "ProvisioningFailed",
                     StrCat("storageclass.storage.k8s.io ", Quote(class_name), " not found"));
    }
  } else if ((waits || !named) && !HasConsumer(claim, false)) {
    events_.Record(claim, "Normal", "WaitForFirstConsumer",
                   "waiting for first consumer to be created before binding");
  } else {
    return Provision(pass, *storage_class);
  }
  SetClaimStatus(pass, "Pending", nullptr);
}

void VolumeBinder::Provision(Pass& pass, const json::Value& storage_class) {
  const json::Value& claim = pass.object;
  if (ClassOf(claim).empty()) {  // the class first: the watch event brings the volume
    json::Value next = claim;
    json::Set(next, {"spec", "storageClassName"}, api::Name(storage_class));
    client_.Update(client::resources::kPersistentVolumeClaims, next, pass.writes->Track());
    return;
  }
  const std::string_view provisioner = json::GetString(storage_class, {"provisioner"});
  if (provisioner != api::kLocalStorage) {
    if (provisioner != kNoProvisioner) {
      events_.Record(claim, "Normal", "ExternalProvisioning",
                     StrCat("waiting for a volume to be created, either by external provisioner ",
                            Quote(provisioner), " or manually created by system administrator"));
    }
    return SetClaimStatus(pass, "Pending", nullptr);
  }
  const std::string name = StrCat("pvc-", api::Uid(claim));
  const json::Value* request = json::Find(claim, {"spec", "resources", "requests", "storage"});
  json::Value volume = json::Object{
      {"apiVersion", "v1"},
      {"kind", "PersistentVolume"},
      {"metadata",
       json::Object{{"name", name},
                    {"annotations", json::Object{{kProvisionedBy, api::kLocalStorage}}}}},
      {"spec",
       json::Object{{"capacity", json::Object{{"storage", request ? *request : json::Value("0")}}},
                    {"accessModes", json::GetArray(claim, {"spec", "accessModes"})},
                    {"claimRef", api::ObjectReferenceTo(claim)},
                    {"storageClassName", api::Name(storage_class)},
                    {"volumeMode", json::GetString(claim, {"spec", "volumeMode"}, "Filesystem")},
                    {"persistentVolumeReclaimPolicy",
                     json::GetString(storage_class, {"reclaimPolicy"}, "Delete")},
                    {"csi", json::Object{{"driver", api::kLocalStorage},
                                         // Where agents keep the claim's data in any case.
                                         {"volumeHandle", api::KeyOf(claim)}}}}}};
  client_.Create(client::resources::kPersistentVolumes, "", volume,
                 pass.writes->Track([this, name, claim](const Result<json::SharedValue>& made) {
                   if (!made.ok()) return;
                   events_.Record(claim, "Normal", "ProvisioningSucceeded",
                                  StrCat("Successfully provisioned volume ", name));
                 }));
}

// The next of: the volume's reference to the claim, the claim's to the volume, the claim's status.
void VolumeBinder::Bind(Pass& pass, const json::Value& volume) {
  const json::Value& claim = pass.object;
  if (json::GetString(volume, {"spec", "claimRef", "uid"}) != api::Uid(claim)) {
    json::Value next = volume;
    if (json::Find(volume, {"spec", "claimRef"}) == nullptr) {
      json::Set(next, {"metadata", "annotations", kBoundByController}, "yes");
    }
    json::Set(next, {"spec", "claimRef"}, api::ObjectReferenceTo(claim));
    client_.Update(client::resources::kPersistentVolumes, next, pass.writes->Track());
    return;
  }
  if (api::Annotation(claim, kBindCompleted).empty()) {
    json::Value next = claim;
    if (json::GetString(claim, {"spec", "volumeName"}).empty()) {
      json::Set(next, {"metadata", "annotations", kBoundByController}, "yes");
      json::Set(next, {"spec", "volumeName"}, api::Name(volume));
    }
    json::Set(next, {"metadata", "annotations", kBindCompleted}, "yes");
    client_.Update(client::resources::kPersistentVolumeClaims, next, pass.writes->Track());
    return;
  }
  SetClaimStatus(pass, "Bound", &volume);
}

void VolumeBinder::SetClaimStatus(Pass& pass, std::string_view phase, const json::Value* volume) {
  json::Value next = pass.object;
  json::Set(next, {"status", "phase"}, phase);
  if (volume != nullptr) {
    json::Set(next, {"status", "accessModes"}, json::GetArray(*volume, {"spec", "accessModes"}));
    json::Set(next, {"status", "capacity"}, json::GetObject(*volume, {"spec", "capacity"}));
  }
  if (json::Equal(next, pass.object)) return;
  client_.Update(client::resources::kPersistentVolumeClaims, next, pass.writes->Track(), "status");
}

void VolumeBinder::SetVolumePhase(Pass& pass, std::string_view phase, std::string_view message) {
  if (api::StatusPhase(pass.object) == phase) return;
  json::Value next = pass.object;
  json::Set(next, {"status"}, json::Object{{"phase", phase}});
  if (!message.empty()) json::Set(next, {"status", "message"}, message);
  client_.Update(client::resources::kPersistentVolumes, next, pass.writes->Track(), "status");
}

void VolumeBinder::ReconcileVolume(const std::string& name, client::WorkQueue::Done done) {
  const json::SharedValue volume = volumes_.Get(name);
  if (!volume) return done(Duration(0));
  Pass pass{*volume, MakeBatch(std::move(done))};
  const json::SharedValue claim = claims_.Get(api::ClaimKeyOf(*volume));
  const std::string_view uid = json::GetString(*volume, {"spec", "claimRef", "uid"});
  const bool bound = !uid.empty() && claim && api::Uid(*claim) == uid;
  if (api::IsDeleting(*volume) && !bound) {
    if (api::HasFinalizer(*volume, kVolumeFinalizer)) {
      client_.Update(client::resources::kPersistentVolumes,
                     api::WithoutFinalizer(*volume, kVolumeFinalizer), pass.writes->Track());
    }
  } else if (uid.empty()) {
    SetVolumePhase(pass, "Available");
  } else if (!bound) {
    Reclaim(pass);
  } else if (json::GetString(*claim, {"spec", "volumeName"}) == name) {
    SetVolumePhase(pass, "Bound");
  }
  pass.writes->Close();
}

// The claim is gone.
void VolumeBinder::Reclaim(Pass& pass) {
  const json::Value& volume = pass.object;
  const std::string_view phase = api::StatusPhase(volume);
  if (phase == "Failed") return;
  if (phase != "Released") return SetVolumePhase(pass, "Released");
  const std::string_view policy =
      json::GetString(volume, {"spec", "persistentVolumeReclaimPolicy"}, "Retain");
  if (policy == "Retain") return;
  if (policy == "Delete" && api::Annotation(volume, kProvisionedBy) == api::kLocalStorage) {
    client_.Delete(
        client::resources::kPersistentVolumes, "", api::Name(volume),
        {.precondition_uid = std::string(api::Uid(volume))},
        pass.writes->Track([this, handle = HeldBy(volume)](const Result<json::SharedValue>& gone) {
          if (gone.ok() && remove_ && !handle.empty()) remove_(handle);
        }));
    return;
  }
  const bool recycle = policy == "Recycle";
  const std::string message =
      recycle ? "No recycler plugin found for the volume!"
              : StrCat("error getting deleter volume plugin for volume ", Quote(api::Name(volume)),
                       ": no deletable volume plugin matched");
  events_.Record(volume, "Warning", recycle ? "VolumeFailedRecycle" : "VolumeFailedDelete",
                 message);
  SetVolumePhase(pass, "Failed", message);
}

}  // namespace swell::controllers
