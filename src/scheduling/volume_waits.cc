#include "scheduling/volume_waits.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod_claims.h"
#include "kube/controllers/cluster/volume_match.h"

namespace swell::scheduling {
namespace {

constexpr Duration kLimit = std::chrono::minutes(10);

}  // namespace

VolumeWaits::VolumeWaits(controllers::Context context)
    : context_(std::move(context)),
      claims_(context_.informers.Of(client::resources::kPersistentVolumeClaims)),
      classes_(context_.informers.Of(client::resources::kStorageClasses)),
      client_(context_.executor, context_.server, context_.user, "swell-scheduler") {
  auto look = scope_.Wrap([this](const json::SharedValue& claim) { OnClaim(api::KeyOf(*claim)); });
  controllers::Follow(claims_, look, look);
}

VolumeWaits::~VolumeWaits() {
  for (const auto& [pod, wait] : waits_) context_.executor.Cancel(wait.limit);
}

bool VolumeWaits::Begin(const json::Value& pod, const std::string& node, Done done) {
  std::vector<json::SharedValue> unnamed;
  Wait wait{node, {}, std::move(done)};
  for (const api::MountedClaim& mounted : api::MountedClaims(pod)) {
    const std::string key = StrCat(api::Namespace(pod), "/", mounted.name);
    const json::SharedValue claim = claims_.Get(key);
    if (!claim ||
        !controllers::AwaitsNode(*claim, classes_.Get(controllers::ClassOf(*claim)).get()))
      continue;
    wait.claims.push_back({key});
    if (controllers::SelectedNode(*claim).empty()) unnamed.push_back(claim);
  }
  if (wait.claims.empty()) return false;
  const std::string key = api::KeyOf(pod);
  wait.limit = context_.executor.After(kLimit, [this, key] {
    End(key, Status(Code::kTimeout, "its volumes were not made within ten minutes"));
  });
  const std::string first = wait.claims.front().key;
  waits_.insert_or_assign(key, std::move(wait));
  for (const json::SharedValue& claim : unnamed) Name(key, *claim, node);
  context_.executor.Post(scope_.Wrap([this, first] { OnClaim(first); }));
  return true;
}

// Only if the claim is as it was seen: another pod's node may have come first.
void VolumeWaits::Name(const std::string& pod, const json::Value& claim, const std::string& node) {
  const json::Value patch = json::Object{
      {"metadata",
       json::Object{{"uid", api::Uid(claim)},
                    {"resourceVersion", api::ResourceVersionText(claim)},
                    {"annotations", json::Object{{controllers::kSelectedNode, node}}}}}};
  client_.Patch(client::resources::kPersistentVolumeClaims, api::Namespace(claim), api::Name(claim),
                client::PatchType::kMerge, patch,
                [this, pod, node](const Result<json::SharedValue>& named) {
                  const auto wait = waits_.find(pod);
                  if (!named.ok() && wait != waits_.end() && wait->second.node == node) {
                    End(pod, named.status());
                  }
                });
}

Status VolumeWaits::ReadClaim(const Wait& wait, Claim& claim) const {
  const json::SharedValue object = claims_.Get(claim.key);
  const std::string name = StrCat("persistentvolumeclaim ", Quote(claim.key));
  if (!object || api::IsDeleting(*object)) return Status(Code::kNotFound, StrCat(name, " is gone"));
  if (api::StatusPhase(*object) == "Bound") return Status::Ok();
  const std::string_view selected = controllers::SelectedNode(*object);
  if (selected == wait.node) {
    claim.named = true;
  } else if (!selected.empty()) {
    return Status(Code::kConflict, StrCat(name, " is for node ", Quote(selected)));
  } else if (claim.named) {
    return Status(Code::kConflict, StrCat(name, " gets no volume for node ", Quote(wait.node)));
  }
  return Status(Code::kUnavailable, StrCat(name, " waits for its volume"));
}

void VolumeWaits::OnClaim(const std::string& key) {
  std::vector<std::pair<std::string, Status>> ended;
  for (auto& [pod, wait] : waits_) {
    const bool its = std::any_of(wait.claims.begin(), wait.claims.end(),
                                 [&key](const Claim& claim) { return claim.key == key; });
    if (!its) continue;
    Status worst = Status::Ok();
    for (Claim& claim : wait.claims) {
      const Status status = ReadClaim(wait, claim);
      if (!status.ok() && (worst.ok() || worst.code() == Code::kUnavailable)) worst = status;
    }
    if (worst.code() != Code::kUnavailable) ended.emplace_back(pod, worst);
  }
  for (const auto& [pod, status] : ended) End(pod, status);
}

bool VolumeWaits::GiveUp(const std::string& pod, const Status& why) {
  const bool waits = waits_.contains(pod);
  if (waits) End(pod, why);
  return waits;
}

void VolumeWaits::End(const std::string& pod, const Status& status) {
  const auto wait = waits_.extract(pod);
  if (wait.empty()) return;
  context_.executor.Cancel(wait.mapped().limit);
  wait.mapped().done(status);
}

}  // namespace swell::scheduling
