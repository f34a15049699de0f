#include "kube/node/devices/device_slice.h"

#include <algorithm>
#include <utility>

#include "base/back_off.h"
#include "base/log.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/device_claim.h"
#include "kube/node/devices/gpu_env.h"

namespace swell::node {
namespace {

constexpr std::string_view kNamePrefix = "gpu-";
constexpr int kDevicesMax = 128;      // that a slice may have
constexpr size_t kAttributeMax = 64;  // bytes of a text

json::Value TextAttribute(std::string_view text) {
  return json::Object{{"string", text.substr(0, kAttributeMax)}};
}

json::Array DevicesOf(const NodeConfig& config,
                      const Amounts& allocatable,
                      int gpus,
                      const std::set<int>& bad) {
  const GpuKind kind = GpuKindOf(config, allocatable, gpus);
  json::Array devices;
  for (int index = 0; index < std::min(gpus, kDevicesMax); ++index) {
    if (bad.contains(index)) continue;
    json::Object attributes{{"type", TextAttribute("gpu")},
                            {"index", json::Object{{"int", index}}},
                            {"model", TextAttribute(kind.model)}};
    const auto at = static_cast<size_t>(index);
    if (at < config.gpu_device_ids.size()) {
      attributes["uuid"] = TextAttribute(config.gpu_device_ids[at]);
    }
    json::Object device{{"name", GpuDeviceName(index)}, {"attributes", std::move(attributes)}};
    if (kind.memory_mib > 0) {
      device["capacity"] =
          json::Object{{"memory", json::Object{{"value", StrCat(kind.memory_mib, "Mi")}}}};
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace

std::string GpuDeviceName(int index) { return StrCat(kNamePrefix, index); }

int GpuOfDeviceName(std::string_view name) {
  if (!name.starts_with(kNamePrefix)) return -1;
  const auto index = ParseUint(name.substr(kNamePrefix.size()));
  return index && *index < 4096 ? static_cast<int>(*index) : -1;
}

DeviceSlice::DeviceSlice(Executor& executor, client::Client& client, const NodeConfig& config)
    : client_(client), config_(config), timer_(executor) {}

void DeviceSlice::Publish(const std::string& node_uid,
                          const Amounts& allocatable,
                          const std::set<int>& bad) {
  const auto capacity = config_.capacity.find(std::string(kGpuResource));
  const int64_t gpus =
      capacity == config_.capacity.end() ? 0 : ParseInt(capacity->second).value_or(0);
  if (!config_.publish_gpus || gpus <= 0 || node_uid.empty()) return;
  json::Value owner = json::Object{
      {"apiVersion", "v1"}, {"kind", "Node"}, {"name", config_.name}, {"uid", node_uid}};
  slice_ = json::Object{
      {"apiVersion", client::resources::kResourceSlices.ApiVersion()},
      {"kind", "ResourceSlice"},
      {"metadata", json::Object{{"name", StrCat(config_.name, "-", api::kGpuDriver)},
                                {"ownerReferences", json::Array{std::move(owner)}}}},
      {"spec",
       json::Object{
           {"driver", api::kGpuDriver},
           {"nodeName", config_.name},
           {"pool",
            json::Object{{"name", config_.name}, {"generation", 1}, {"resourceSliceCount", 1}}},
           {"devices", DevicesOf(config_, allocatable,
                                 static_cast<int>(std::min<int64_t>(gpus, 4096)), bad)}}}};
  failures_ = 0;
  Write();
}

void DeviceSlice::Write() {
  timer_.Cancel();
  client_.Create(client::resources::kResourceSlices, "", slice_,
                 [this](const Result<json::SharedValue>& made) {
                   if (made.status().code() == Code::kAlreadyExists) return Replace();
                   OnWritten(made.status());
                 });
}

// The pool's generation goes up when its devices change; a slice that says the same stays.
void DeviceSlice::Replace() {
  client_.Get(
      client::resources::kResourceSlices, "", api::Name(slice_),
      [this](const Result<json::SharedValue>& known) {
        if (!known.ok()) return OnWritten(known.status());
        const json::Value* is = json::Find(**known, {"spec", "devices"});
        const json::Value* owners = json::Find(**known, {"metadata", "ownerReferences"});
        const json::Value& wanted = *json::Find(slice_, {"spec", "devices"});
        const json::Value& owner = *json::Find(slice_, {"metadata", "ownerReferences"});
        const bool same_devices = is != nullptr && json::Equal(*is, wanted);
        const auto known_owners = api::Owners(**known);
        const bool same_owner = owners != nullptr && !known_owners.empty() &&
                                known_owners.front().uid == api::Owners(slice_).front().uid;
        if (same_devices && same_owner) return OnWritten(Status::Ok());
        const int64_t generation = json::GetInt(**known, {"spec", "pool", "generation"});
        const json::Value patch = json::Object{
            {"metadata", json::Object{{"resourceVersion", api::ResourceVersionText(**known)},
                                      {"ownerReferences", owner}}},
            {"spec", json::Object{{"devices", wanted},
                                  {"pool", json::Object{{"generation", generation + 1}}}}}};
        client_.Patch(
            client::resources::kResourceSlices, "", api::Name(slice_), client::PatchType::kMerge,
            patch,
            [this](const Result<json::SharedValue>& written) { OnWritten(written.status()); });
      });
}

void DeviceSlice::OnWritten(const Status& status) {
  if (status.ok()) return;
  if (status.code() == Code::kNotFound && failures_ == 0) return;  // the server has no such kind
  if (status.code() == Code::kForbidden) {
    SWELL_LOG_WARNING("agent", "GPUs not published as a ResourceSlice", {"node", config_.name},
                      {"error", status.ToString()});
    return;
  }
  timer_.Start(BackOff(std::chrono::milliseconds(500), std::chrono::seconds(60), failures_++),
               [this] { Write(); });
}

}  // namespace swell::node
