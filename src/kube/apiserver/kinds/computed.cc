// Kinds that are made up when asked for: the parts of the control plane, and who serves which
// version of the API, both of which are this process; and what nodes and pods use.
#include <algorithm>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/apiserver/kinds/handlers.h"
#include "kube/apiserver/pods/usage.h"
#include "kube/apiserver/print/output.h"
#include "kube/apiserver/reading/selection.h"
#include "kube/apiserver/request/errors.h"

namespace swell::apiserver {
namespace {

constexpr std::string_view kMetricsGroup = "metrics.k8s.io";

json::Object Named(const api::KindInfo& kind, std::string_view name) {
  json::Object object;
  object["apiVersion"] = kind.gvk.ApiVersion();
  object["kind"] = kind.gvk.kind;
  object["metadata"] = json::Object{{"name", name}};
  return object;
}

json::Object Component(const api::KindInfo& kind,
                       std::string_view name,
                       bool healthy,
                       std::string_view message) {
  json::Object object = Named(kind, name);
  object["conditions"] = json::Array{json::Object{
      {"type", "Healthy"}, {"status", healthy ? "True" : "False"}, {"message", message}}};
  return object;
}

std::vector<json::Object> Components(const Core& core, const api::KindInfo& kind) {
  std::vector<json::Object> out;
  if (core.options.audit_problem) {
    const std::string problem = core.options.audit_problem();
    out.push_back(Component(kind, "audit-log", problem.empty(), problem.empty() ? "ok" : problem));
  }
  for (const auto& [name, message] :
       {std::pair("controller-manager", "ok"), std::pair("etcd-0", R"({"health":"true"})"),
        std::pair("scheduler", "ok")}) {
    out.push_back(Component(kind, name, true, message));
  }
  return out;
}

constexpr std::string_view kRegistrationGroup = "apiregistration.k8s.io";

// Since when this cluster serves the kinds of a group: always, or since their definition came.
std::string ServedSince(const Core& core, const api::KindInfo& first) {
  const store::Key key = first.custom ? store::Key{"customresourcedefinitions.apiextensions.k8s.io",
                                                   "", StrCat(first.plural, ".", first.gvk.group)}
                                      : store::Key{"namespaces", "", "kube-system"};
  const store::EntryPtr entry = core.store.Get(key);
  if (!entry) return "";
  return std::string(json::GetString(*entry->Parsed(), {"metadata", "creationTimestamp"}));
}

// A version of a group that this server serves itself. Places in discovery are by the order of the
// list; definitions come last, all alike.
json::Object ApiService(const Core& core,
                        const api::KindInfo& kind,
                        const api::KindInfo& first,
                        int64_t group_priority,
                        int64_t version_priority) {
  const std::string& group = first.gvk.group;
  const std::string since = ServedSince(core, first);
  json::Object object = Named(kind, StrCat(first.gvk.version, ".", group));
  json::Object metadata{{"name", StrCat(first.gvk.version, ".", group)},
                        {"labels", json::Object{{"kube-aggregator.kubernetes.io/automanaged",
                                                 first.custom ? "true" : "onstart"}}}};
  json::Object available{{"type", "Available"},
                         {"status", "True"},
                         {"reason", "Local"},
                         {"message", "Local APIServices are always available"}};
  if (!since.empty()) {
    metadata["creationTimestamp"] = since;
    available["lastTransitionTime"] = since;
  }
  object["metadata"] = std::move(metadata);
  json::Object spec;
  if (!group.empty()) spec["group"] = group;
  spec["version"] = first.gvk.version;
  spec["groupPriorityMinimum"] = first.custom ? 1000 : std::max<int64_t>(group_priority, 1000);
  spec["versionPriority"] = first.custom ? 100 : std::max<int64_t>(version_priority, 1);
  object["spec"] = std::move(spec);
  object["status"] = json::Object{{"conditions", json::Array{std::move(available)}}};
  return object;
}

// One for each group except apiregistration.k8s.io, as in kube-apiserver.
std::vector<json::Object> ApiServices(const Core& core, const api::KindInfo& kind) {
  constexpr int64_t kFirstGroup = 18'000;
  constexpr int64_t kGroupStep = 50;
  constexpr int64_t kFirstVersion = 15;
  std::vector<json::Object> out;
  int64_t group_priority = kFirstGroup;
  for (const api::Scheme::Group& group : core.scheme->Groups()) {
    if (group.name == kRegistrationGroup) continue;
    int64_t version_priority = kFirstVersion;
    for (const std::string& version : group.versions) {
      const std::vector<api::KindPtr> kinds = core.scheme->KindsOf(group.name, version);
      if (kinds.empty()) continue;
      out.push_back(ApiService(core, kind, *kinds[0], group_priority, version_priority--));
    }
    group_priority -= kGroupStep;
  }
  std::sort(out.begin(), out.end(), [](const json::Object& a, const json::Object& b) {
    return api::Name(json::Value(a)) < api::Name(json::Value(b));
  });
  return out;
}

store::EntryPtr EntryOf(const api::KindInfo& kind, json::Object object) {
  const json::Value value(std::move(object));
  return std::make_shared<const store::Entry>(KeyFor(kind, api::Namespace(value), api::Name(value)),
                                              0, json::Print(value), AttributesOf(kind, value));
}

Result<std::vector<json::Object>> ObjectsOf(Core& core, Call& call, const Selection& selection) {
  const api::KindInfo& kind = *call.storage;
  if (kind.gvk.group == kMetricsGroup) return MeasuredUsage(core, call, selection);
  return kind.plural == "apiservices" ? ApiServices(core, kind) : Components(core, kind);
}

// What is measured goes by its kind, and pods by their namespace, too.
Status NotThere(const Call& call) {
  const api::KindInfo& kind = *call.kind;
  if (kind.gvk.group != kMetricsGroup) return NotFoundError(kind, call.info.name);
  api::KindInfo measured = kind;
  measured.plural = ToLower(kind.gvk.kind);
  return NotFoundError(
      measured, kind.namespaced ? StrCat(call.info.ns, "/", call.info.name) : call.info.name);
}

}  // namespace

void HandleComputed(Core& core, const CallPtr& call) {
  const auto selection = Selection::Parse(*call);
  if (!selection.ok()) {
    call->Fail(selection.status());
    return;
  }
  const api::KindInfo& kind = *call->storage;
  auto objects = ObjectsOf(core, *call, *selection);
  if (!objects.ok()) {
    call->Fail(objects.status());
    return;
  }
  std::vector<store::EntryPtr> entries;
  for (json::Object& object : *objects) {
    auto entry = EntryOf(kind, std::move(object));
    if (selection->Matches(*entry)) entries.push_back(std::move(entry));
  }
  if (call->info.name.empty()) {
    RespondList(core, *call, std::move(entries), {core.store.Version(), "", std::nullopt});
  } else if (entries.empty()) {
    call->Fail(NotThere(*call));
  } else {
    RespondEntry(core, *call, 200, *entries[0]);
  }
}

}  // namespace swell::apiserver
