#include "kube/apiserver/pods/usage.h"

#include <algorithm>
#include <utility>

#include "base/duration.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/apiserver/webhooks/webhook.h"

namespace swell::apiserver {
namespace {

constexpr Duration kTimeout = std::chrono::seconds(5);
constexpr char kSummary[] = "/stats/summary";

// As metrics servers write them: nanocores and kibibytes.
json::Object Usage(const json::Value& usage) {
  return {{"cpu", StrCat(json::GetInt(usage, {"cpu", "usageNanoCores"}), "n")},
          {"memory", StrCat(json::GetInt(usage, {"memory", "workingSetBytes"}) / 1024, "Ki")}};
}

std::string Window(const json::Value& usage) {
  const json::Value* found = json::Find(usage, {"cpu", "usageWindowSeconds"});
  double seconds = 0;
  if (found != nullptr && found->is_double()) seconds = found->get_double();
  if (found != nullptr && found->is_int64()) seconds = static_cast<double>(found->get_int64());
  return FormatDuration(
      std::chrono::milliseconds(static_cast<int64_t>(std::clamp(seconds, 0.0, 1e9) * 1000)));
}

json::Object Measured(const Core& core,
                      const api::KindInfo& kind,
                      const store::Entry& of,
                      const json::Value& usage) {
  json::Object metadata{{"name", of.key.name}};
  if (kind.namespaced) metadata["namespace"] = of.key.ns;
  metadata["creationTimestamp"] = api::FormatTime(core.clock.Now());
  json::Object labels;
  for (const auto& [key, value] : of.attributes.labels) labels[key] = value;
  if (!labels.empty()) metadata["labels"] = std::move(labels);
  return {{"apiVersion", kind.gvk.ApiVersion()},
          {"kind", kind.gvk.kind},
          {"metadata", std::move(metadata)},
          {"timestamp", json::GetString(usage, {"cpu", "time"})},
          {"window", Window(usage)}};
}

// What the node reports; null where it cannot be reached. WaitingForCallout() until it answers.
Result<const json::Value*> UsageFromNode(Core& core, Call& call, const std::string& node) {
  static const json::Value kNothing;
  Callouts& callouts = CalloutsOf(core, call);
  const std::string key = StrCat("usage of ", node);
  const Callouts::Answer* answer = callouts.Find(key);
  if (answer != nullptr) return answer->ok() ? &**answer : &kNothing;
  auto kubelet = core.options.node_dialer
                     ? core.options.node_dialer(node)
                     : Status(Code::kUnavailable, "this server reaches no nodes");
  if (!kubelet.ok()) return &kNothing;
  callouts.Send(key, [&]() -> Result<Callouts::Request> {
    api::RestRequest request;
    request.method = "GET";
    request.path = kSummary;
    request.user = {"system:apiserver", "", {"system:masters"}};
    return Callouts::Request{
        std::move(*kubelet), std::move(request), kTimeout,
        Status(Code::kTimeout, "the node does not answer"), [](const api::RestResponse& response) {
          return response.status == 200 ? json::Parse(response.BodyString())
                                        : Status(Code::kUnavailable, "the node refused");
        }};
  });
  return WaitingForCallout();
}

// Reads are of what was asked, so a name in the path is looked up alone.
std::vector<store::EntryPtr> Subjects(Core& core,
                                      const Call& call,
                                      const std::string& resource,
                                      const Selection& selection) {
  if (!call.info.name.empty()) {
    const auto entry = core.store.Get({resource, call.info.ns, call.info.name});
    return entry ? std::vector<store::EntryPtr>{entry} : std::vector<store::EntryPtr>();
  }
  auto wanted = [&selection](const store::Entry& entry) {
    return selection.labels.Matches(entry.attributes.labels);
  };
  auto listing = core.store.List(resource, call.info.ns, wanted);
  return listing.ok() ? std::move(listing->entries) : std::vector<store::EntryPtr>();
}

const json::Value* FindPod(const json::Value& summary, const store::Key& key) {
  for (const json::Value& pod : json::GetArray(summary, {"pods"})) {
    if (json::GetString(pod, {"podRef", "name"}) == key.name &&
        json::GetString(pod, {"podRef", "namespace"}) == key.ns) {
      return &pod;
    }
  }
  return nullptr;
}

}  // namespace

Result<std::vector<json::Object>> MeasuredUsage(Core& core,
                                                Call& call,
                                                const Selection& selection) {
  const api::KindInfo& kind = *call.storage;
  const bool pods = kind.namespaced;
  std::vector<json::Object> out;
  bool waits = false;
  for (const store::EntryPtr& entry : Subjects(core, call, kind.plural, selection)) {
    if (pods && FieldOf(*entry, "status.phase") != "Running") continue;
    const std::string node = pods ? FieldOf(*entry, "spec.nodeName") : entry->key.name;
    const auto summary = UsageFromNode(core, call, node);
    waits = waits || !summary.ok();
    if (waits) continue;
    const json::Value* about =
        pods ? FindPod(**summary, entry->key) : json::Find(**summary, {"node"});
    if (about == nullptr) continue;
    json::Object object = Measured(core, kind, *entry, *about);
    if (pods) {
      json::Array containers;
      for (const json::Value& container : json::GetArray(*about, {"containers"})) {
        containers.emplace_back(json::Object{{"name", json::GetString(container, {"name"})},
                                             {"usage", Usage(container)}});
      }
      object["containers"] = std::move(containers);
    } else {
      object["usage"] = Usage(*about);
    }
    out.push_back(std::move(object));
  }
  if (waits) return WaitingForCallout();
  return out;
}

}  // namespace swell::apiserver
