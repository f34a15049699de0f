// What kinds of today's Kubernetes do on their way in: devices and claims, ranges of addresses,
// certificates of pods.
#include "base/clock.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/apiserver/access/access.h"
#include "kube/apiserver/kinds/handlers.h"
#include "kube/apiserver/request/errors.h"

namespace swell::apiserver {
namespace {

// Since when each taint is there, of those that do not say it.
void StampTaint(const Admission& admission, json::Value& taint) {
  if (!taint.is_object() || json::Find(taint, {"timeAdded"}) != nullptr) return;
  json::Set(taint, {"timeAdded"}, json::Value(api::FormatTime(admission.core.clock.Now())));
}

void StampTaints(const Admission& admission, json::Value& slice) {
  json::Value* devices = json::FindMutable(slice, {"spec", "devices"});
  if (devices == nullptr || !devices->is_array()) return;
  for (json::Value& device : devices->get_array()) {
    json::Value* taints = json::FindMutable(device, {"taints"});
    if (taints == nullptr || !taints->is_array()) continue;
    for (json::Value& taint : taints->get_array()) StampTaint(admission, taint);
  }
}

Status CreateSlice(Admission& admission, json::Value& object) {
  const std::string driver(json::GetString(object, {"spec", "driver"}));
  if (driver != ToLower(driver)) {
    admission.Warn(StrCat("spec.driver: driver names should be lowercase; ", Quote(driver),
                          " contains uppercase characters"));
  }
  StampTaints(admission, object);
  return Status::Ok();
}

Status UpdateSlice(Admission& admission, json::Value& object, const json::Value&) {
  return CreateSlice(admission, object);
}

Status CreateTaintRule(Admission& admission, json::Value& object) {
  json::Value* taint = json::FindMutable(object, {"spec", "taint"});
  if (taint != nullptr) StampTaint(admission, *taint);
  return Status::Ok();
}

// Another effect begins when it is written.
Status UpdateTaintRule(Admission& admission, json::Value& object, const json::Value& old) {
  const json::Value* before = json::Find(old, {"spec", "taint"});
  json::Value* taint = json::FindMutable(object, {"spec", "taint"});
  if (before != nullptr && taint != nullptr &&
      json::GetString(*before, {"effect"}) != json::GetString(*taint, {"effect"}) &&
      json::GetString(*before, {"timeAdded"}) == json::GetString(*taint, {"timeAdded"})) {
    json::Remove(*taint, {"timeAdded"});
  }
  return CreateTaintRule(admission, object);
}

// Devices that others use are given to those alone who look after devices.
bool WantsAdminAccess(const json::Value& devices) {
  for (const json::Value& request : json::GetArray(devices, {"requests"})) {
    if (json::GetBool(request, {"exactly", "adminAccess"})) return true;
  }
  return false;
}

Status CheckAdminAccess(const Admission& admission, const json::Value* devices) {
  if (devices == nullptr || !WantsAdminAccess(*devices)) return Status::Ok();
  const api::KindPtr kind = admission.core.scheme->FindResource("", "v1", "namespaces");
  const auto entry = kind ? admission.core.store.Latest(KeyFor(*kind, "", admission.ns)) : nullptr;
  const json::SharedValue ns = entry ? entry->Parsed() : nullptr;
  if (ns && api::Label(*ns, "resource.kubernetes.io/admin-access") == "true") return Status::Ok();
  return InvalidError(
      admission.kind, admission.name,
      {ForbiddenValue("spec.devices.requests",
                      "admin access to devices requires the `resource.kubernetes.io/admin-access: "
                      "true` label on the containing namespace")});
}

Status CreateClaim(Admission& admission, json::Value& object) {
  return CheckAdminAccess(admission, json::Find(object, {"spec", "devices"}));
}

Status CreateClaimTemplate(Admission& admission, json::Value& object) {
  return CheckAdminAccess(admission, json::Find(object, {"spec", "spec", "devices"}));
}

// What drivers said of devices is forgotten with the devices.
Status UpdateClaim(Admission&, json::Value& object, const json::Value&) {
  if (json::Find(object, {"status", "allocation"}) == nullptr) {
    json::Remove(object, {"status", "devices"});
  }
  return Status::Ok();
}

// Services get their addresses from the range that the server was started with.
Status CreateServiceRange(Admission& admission, json::Value&) {
  admission.Warn(
      "this object is stored but not used: services get addresses only from the server's own range "
      "(ServiceCIDR kubernetes)");
  return Status::Ok();
}

Status CreateAddress(Admission& admission, json::Value&) {
  admission.Warn(
      "this object is stored but reserves nothing: this server keeps no IPAddress for the "
      "addresses of its services");
  return Status::Ok();
}

bool MaySign(const Admission& admission, const std::string& signer) {
  if (admission.call == nullptr) return true;
  for (const std::string& name : {signer, StrCat(signer.substr(0, signer.find('/')), "/*")}) {
    AccessAttributes attributes;
    attributes.verb = "sign";
    attributes.group = admission.kind.gvk.group;
    attributes.version = "*";
    attributes.resource = "signers";
    attributes.name = name;
    if (Decide(admission.core, admission.call->user, attributes).allowed) return true;
  }
  return false;
}

Status UpdatePodCertificateRequest(Admission& admission,
                                   json::Value& object,
                                   const json::Value& old) {
  if (admission.subresource != "status") return Status::Ok();
  const json::Value* now = json::Find(object, {"status"});
  const json::Value* before = json::Find(old, {"status"});
  if (now != nullptr && before != nullptr && json::Equal(*now, *before)) return Status::Ok();
  const std::string signer(json::GetString(old, {"spec", "signerName"}));
  if (MaySign(admission, signer)) return Status::Ok();
  return InvalidError(
      admission.kind, admission.name,
      {ForbiddenValue("spec.signerName",
                      StrCat("User ", Quote(admission.call->user.name),
                             " is not permitted to \"sign\" for signer ", Quote(signer)))});
}

}  // namespace

void RegisterNewerKinds(Core& core) {
  HookTable& hooks = core.hooks;
  hooks.Add(
      "resourceslices.resource.k8s.io",
      {.create = CreateSlice, .update = UpdateSlice, .generation = true, .answers_deleted = true});
  hooks.Add("devicetaintrules.resource.k8s.io",
            {.create = CreateTaintRule, .update = UpdateTaintRule, .generation = true});
  hooks.Add("deviceclasses.resource.k8s.io", {.generation = true, .answers_deleted = true});
  hooks.Add("resourceclaims.resource.k8s.io",
            {.create = CreateClaim, .update = UpdateClaim, .answers_deleted = true});
  hooks.Add("resourceclaimtemplates.resource.k8s.io",
            {.create = CreateClaimTemplate, .answers_deleted = true});
  hooks.Add("volumeattributesclasses.storage.k8s.io", {.answers_deleted = true});
  hooks.Add("servicecidrs.networking.k8s.io", {.create = CreateServiceRange});
  hooks.Add("ipaddresses.networking.k8s.io", {.create = CreateAddress});
  hooks.Add("podcertificaterequests.certificates.k8s.io",
            {.update = UpdatePodCertificateRequest, .needs_version = true});
  hooks.Add("storageversionmigrations.storagemigration.k8s.io", {.needs_version = true});
}

}  // namespace swell::apiserver
