#include "cli/views/workloads.h"

#include <utility>

#include "base/strings.h"
#include "kube/api/meta/meta.h"

namespace swell::cli {
namespace {

namespace resources = client::resources;

constexpr std::pair<const Resource*, std::string_view> kKinds[] = {
    {&resources::kDeployments, "Deployment"},
    {&resources::kStatefulSets, "StatefulSet"},
    {&resources::kDaemonSets, "DaemonSet"}};

}  // namespace

std::vector<Workload> WorkloadsNamed(Api& api, std::string_view ns, std::string_view name) {
  std::vector<Workload> found;
  for (const auto& [resource, kind] : kKinds) {
    auto object = api.Get(*resource, ns, name);
    if (object.ok()) found.push_back({resource, kind, std::move(*object)});
  }
  // A server has only names that are values of labels.
  if (!found.empty() || !api::CheckLabelValue(name).empty()) return found;
  auto versions =
      api.List(resources::kDeployments, ns, {.label_selector = StrCat(kServingName, "=", name)});
  if (!versions.ok()) return found;
  for (json::SharedValue& version : *versions) {
    found.push_back({&resources::kDeployments, "Deployment", std::move(version)});
  }
  return found;
}

}  // namespace swell::cli
