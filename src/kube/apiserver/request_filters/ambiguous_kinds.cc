#include "kube/apiserver/request_filters/ambiguous_kinds.h"

#include <algorithm>
#include <array>

#include "base/strings.h"

namespace swell::apiserver {
namespace {

constexpr std::array<std::string_view, 2> kFirst = {"elasticdl.org", "kubeflow.org"};
constexpr std::string_view kOther = "training.kubedl.io";

bool HasAny(const Core& core, const api::KindInfo& kind, const std::string& ns) {
  auto listing = core.store.List(kind.StoreResource(), ns, {}, 1);
  return listing.ok() && !listing->entries.empty();
}

// As `kubectl wait` and `kubectl get NAME --watch` ask for one object.
std::string NameSelected(const Query& query) {
  constexpr std::string_view kByName = "metadata.name=";
  std::string_view selector = query.Get("fieldSelector");
  if (!selector.starts_with(kByName) || selector.find(',') != std::string_view::npos) return "";
  return std::string(selector.substr(kByName.size()));
}

}  // namespace

void ResolveAmbiguousKind(const Core& core, std::string_view verb, Call& call) {
  RequestInfo& info = call.info;
  if (std::find(kFirst.begin(), kFirst.end(), info.group) == kFirst.end() || verb == "create") {
    return;
  }
  api::KindPtr first = core.scheme->StorageKind(info.group, info.resource);
  api::KindPtr other = core.scheme->StorageKind(kOther, info.resource);
  if (!first || !other || !other->served) return;
  std::string name = info.name.empty() ? NameSelected(call.query) : info.name;
  if (!name.empty()) {
    if (core.store.Latest(KeyFor(*first, info.ns, name)) ||
        !core.store.Latest(KeyFor(*other, info.ns, name))) {
      return;
    }
  } else {
    bool for_people = call.request.accept.find("as=Table") != std::string::npos;
    if ((verb != "list" && verb != "watch") || !for_people || HasAny(core, *first, info.ns) ||
        !HasAny(core, *other, info.ns)) {
      return;
    }
  }
  info.group = kOther;
  info.version = other->gvk.version;
}

}  // namespace swell::apiserver
