#include "kube/apiserver/hooks.h"

#include "base/check.h"

namespace swell::apiserver {
namespace {

constexpr ResourceHooks kCustom{.generation = true, .needs_version = true};
constexpr ResourceHooks kPlain;

}  // namespace

void HookTable::Add(std::string_view resource, const ResourceHooks& hooks) {
  SWELL_CHECK(hooks_.emplace(resource, hooks).second);
}

const ResourceHooks& HookTable::Of(const api::KindInfo& kind) const {
  const auto found = hooks_.find(kind.StoreResource());
  if (found != hooks_.end()) return found->second;
  return kind.custom ? kCustom : kPlain;
}

Admission AdmissionOf(Core& core, Call& call) {
  return {core,        &call, call.handled(), call.info.ns, call.info.name, call.info.subresource,
          call.dry_run};
}

}  // namespace swell::apiserver
