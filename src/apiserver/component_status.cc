// ComponentStatus: what `kubectl get componentstatuses` shows of the control plane. Made up when
// asked for; everything that could be unhealthy is this process, which answers.
#include "api/meta.h"
#include "apiserver/errors.h"
#include "apiserver/handlers.h"
#include "apiserver/output.h"
#include "apiserver/selection.h"

namespace swell::apiserver {
namespace {

store::EntryPtr Component(const api::KindInfo& kind, std::string name, std::string_view message) {
  json::Object condition;
  condition["type"] = "Healthy";
  condition["status"] = "True";
  condition["message"] = message;
  json::Object object;
  object["apiVersion"] = "v1";
  object["kind"] = "ComponentStatus";
  object["metadata"] = json::Object{{"name", name}};
  object["conditions"] = json::Array{std::move(condition)};
  json::Value value(std::move(object));
  auto bytes = api::MakeChunk(json::Print(value));
  return std::make_shared<const store::Entry>(KeyFor(kind, "", name), 0, std::move(bytes),
                                              AttributesOf(kind, value));
}

}  // namespace

void HandleComponentStatus(Core& core, const CallPtr& call) {
  const auto selection = Selection::Parse(*call);
  if (!selection.ok()) {
    call->Fail(selection.status());
    return;
  }
  std::vector<store::EntryPtr> entries;
  for (const auto& [name, message] :
       {std::pair("controller-manager", "ok"), std::pair("etcd-0", R"({"health":"true"})"),
        std::pair("scheduler", "ok")}) {
    auto entry = Component(*call->storage, name, message);
    if (selection->Matches(*entry)) entries.push_back(std::move(entry));
  }
  if (call->info.name.empty()) {
    RespondList(core, *call, entries, {core.store.Version(), "", std::nullopt});
  } else if (entries.empty()) {
    call->Fail(NotFoundError(*call->kind, call->info.name));
  } else {
    RespondEntry(core, *call, 200, *entries[0]);
  }
}

}  // namespace swell::apiserver
