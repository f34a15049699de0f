#include "kube/node/devices/claim_devices.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/device_claim.h"
#include "kube/node/devices/device_slice.h"

namespace swell::node {
namespace {

// The devices that one claim gives the pod, or why it gives none.
Status AddClaim(const json::Value& pod,
                std::string_view name,
                const json::Value& claim,
                const std::string& node,
                ClaimDevices& out) {
  const std::string what = StrCat("ResourceClaim ", Quote(api::Name(claim)));
  const std::string owner = api::PodOfClaim(claim);
  if (!owner.empty() && owner != api::Uid(pod)) {
    return Status(Code::kConflict, StrCat(what, " was made for another pod"));
  }
  if (!api::IsAllocated(claim)) return Status(Code::kUnavailable, StrCat(what, " has no devices"));
  if (!api::IsReservedFor(claim, api::Uid(pod))) {
    return Status(Code::kUnavailable, StrCat(what, " is not reserved for the pod"));
  }
  for (const api::AllocatedDevice& device : api::AllocatedDevices(claim)) {
    if (device.driver != api::kGpuDriver) {
      return Status(Code::kUnavailable,
                    StrCat(what, " has device ", Quote(device.device), " of driver ",
                           Quote(device.driver), ", which does not run on this node"));
    }
    const int gpu = GpuOfDeviceName(device.device);
    if (device.pool != node || gpu < 0) {
      return Status(Code::kConflict, StrCat(what, " has device ", Quote(device.device), " of pool ",
                                            Quote(device.pool), ", which is not on this node"));
    }
    ClaimDevices::Given given{.claim = std::string(name),
                              .claim_uid = std::string(api::Uid(claim)),
                              .request = std::string(device.request),
                              .gpu = gpu,
                              .admin = device.admin};
    if (name != api::kExtendedClaimName) {
      out.Add(std::move(given));
      continue;
    }
    for (const api::MappedRequest& one : api::MappedRequestsOf(pod)) {
      if (!api::IsOfRequest(device.request, one.request)) continue;
      given.container = one.container;
      out.Add(given);
    }
  }
  return Status::Ok();
}

struct Fetch : std::enable_shared_from_this<Fetch> {
  client::Client& client;
  json::Value pod;
  std::string node;
  std::function<void(Result<ClaimDevices>)> done;
  std::vector<api::PodClaim> claims;  // texts of `pod`
  ClaimDevices devices;
  size_t at = 0;

  Fetch(client::Client& client_in, const json::Value& pod_in) : client(client_in), pod(pod_in) {
    claims = api::DeviceClaimsOf(pod);
  }

  void Next() {
    while (at < claims.size() && claims[at].needless) ++at;
    if (at == claims.size()) return done(std::move(devices));
    const api::PodClaim& claim = claims[at++];
    if (claim.claim.empty()) {
      return done(
          Status(Code::kUnavailable, StrCat("the ResourceClaim of template ",
                                            Quote(claim.template_name), " has not been made yet")));
    }
    client.Get(
        client::resources::kResourceClaims, api::Namespace(pod), claim.claim,
        [self = shared_from_this(), name = claim.name,
         wanted = claim.claim](const Result<json::SharedValue>& got) {
          if (!got.ok()) {
            return self->done(got.status().WithContext(StrCat("ResourceClaim ", Quote(wanted))));
          }
          const Status status = AddClaim(self->pod, name, **got, self->node, self->devices);
          if (!status.ok()) return self->done(status);
          self->Next();
        });
  }
};

}  // namespace

const ClaimDevices::Given* ClaimDevices::Find(int gpu) const {
  const auto found = std::find_if(given_.begin(), given_.end(),
                                  [gpu](const Given& given) { return given.gpu == gpu; });
  return found == given_.end() ? nullptr : &*found;
}

std::vector<int> ClaimDevices::Gpus() const {
  std::vector<int> out;
  for (const Given& given : given_) {
    if (std::find(out.begin(), out.end(), given.gpu) == out.end()) out.push_back(given.gpu);
  }
  return out;
}

std::vector<int> ClaimDevices::OfContainer(const json::Value& container) const {
  std::vector<int> out;
  const std::string_view name = json::GetString(container, {"name"});
  for (const Given& given : given_) {
    const bool its = !name.empty() && given.container == name;
    if (its && std::find(out.begin(), out.end(), given.gpu) == out.end()) out.push_back(given.gpu);
  }
  for (const api::ContainerClaim& used : api::ContainerClaims(container)) {
    for (const Given& given : given_) {
      const bool meant = given.claim == used.claim && api::IsOfRequest(given.request, used.request);
      if (meant && std::find(out.begin(), out.end(), given.gpu) == out.end()) {
        out.push_back(given.gpu);
      }
    }
  }
  return out;
}

bool ClaimDevices::MayShare(int gpu, const ClaimDevices& other) const {
  const Given* mine = Find(gpu);
  const Given* its = other.Find(gpu);
  if ((mine != nullptr && mine->admin) || (its != nullptr && its->admin)) return true;
  return mine != nullptr && its != nullptr && mine->claim_uid == its->claim_uid;
}

void FetchClaimDevices(client::Client& client,
                       const json::Value& pod,
                       const std::string& node,
                       std::function<void(Result<ClaimDevices>)> done) {
  auto fetch = std::make_shared<Fetch>(client, pod);
  fetch->node = node;
  fetch->done = std::move(done);
  fetch->Next();
}

}  // namespace swell::node
