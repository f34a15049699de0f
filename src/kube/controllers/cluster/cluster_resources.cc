#include "kube/controllers/cluster/cluster_resources.h"

#include <algorithm>
#include <set>

namespace swell::controllers {
namespace {

client::Resource ToResource(const api::KindInfo& kind) {
  return {kind.gvk.group, kind.gvk.version, kind.plural, kind.namespaced};
}

bool Has(const std::vector<std::string>& verbs, std::string_view verb) {
  return verbs.empty() || std::find(verbs.begin(), verbs.end(), verb) != verbs.end();
}

}  // namespace

std::vector<client::Resource> ClusterResources(const api::Scheme& scheme, Events events) {
  std::vector<client::Resource> out;
  std::set<std::pair<std::string, std::string>> seen;
  for (const api::Scheme::Group& group : scheme.Groups()) {
    // The same objects as the core group's events.
    if (group.name == "events.k8s.io") continue;
    for (const std::string& version : group.versions) {
      for (const api::KindPtr& kind : scheme.KindsOf(group.name, version)) {
        if (kind->read_only || !kind->served || !Has(kind->verbs, "list") ||
            !Has(kind->verbs, "delete") ||
            (kind->plural == "events" && events == Events::kLeftOut)) {
          continue;
        }
        if (seen.insert({group.name, kind->plural}).second) out.push_back(ToResource(*kind));
      }
    }
  }
  return out;
}

std::optional<client::Resource> ResourceOfKind(const api::Scheme& scheme,
                                               std::string_view api_version,
                                               std::string_view kind) {
  api::KindPtr found = scheme.FindKind(api::ParseGvk(api_version, kind));
  if (!found) return std::nullopt;
  return ToResource(*found);
}

}  // namespace swell::controllers
