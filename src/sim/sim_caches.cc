#include "sim/sim_caches.h"

#include <map>
#include <utility>

#include "base/strings.h"
#include "kube/api/meta/meta.h"

namespace swell::sim {

void SimCaches::Check() {
  const SteadyTime now = cluster_.executor().Steady();
  if (now - looked_ < kEvery || !cluster_.server_up()) return;
  // Not so soon after the last look: others were broken in between.
  if (now - std::exchange(looked_, now) > 2 * kEvery) differed_.clear();
  std::set<std::string> differences;
  for (size_t i = 0; i < 2; ++i) Compare(i, differences);
  for (const std::string& one : differences) {
    if (differed_.contains(one)) cluster_.history().Violation(one);
  }
  differed_ = std::move(differences);
}

void SimCaches::Compare(size_t replica, std::set<std::string>& differences) const {
  const manager::Replica* process = cluster_.replica(replica);
  if (process == nullptr || process->informers() == nullptr) return;
  for (const client::Resource& resource : process->informers()->resources()) {
    const client::Informer& informer = *process->informers()->Find(resource);
    if (!informer.synced()) continue;
    std::map<std::string, uint64_t> versions = cluster_.Versions(resource.GroupResource());
    auto differs = [&](const std::string& key, const std::string& known, const std::string& is) {
      differences.insert(StrCat("for ", SimCluster::ReplicaName(replica), " ", resource.plural, " ",
                                key, " is ", known, " for long, and it is ", is));
    };
    for (const auto& [key, object] : informer.objects()) {
      const std::string known(api::ResourceVersionText(*object));
      const auto durable = versions.extract(key);
      const std::string is = durable ? StrCat(durable.mapped()) : "gone";
      if (known != is) differs(key, known, is);
    }
    for (const auto& [key, version] : versions) differs(key, "not there", StrCat(version));
  }
}

}  // namespace swell::sim
