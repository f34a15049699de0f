#include "sched_inputs/project_shares.h"

#include <utility>

#include "base/strings.h"
#include "kube/api/objects/project.h"

namespace swell::controllers {
namespace {

std::optional<ShareFault> CheckShares(std::string_view field, const api::ResourceShares& shares) {
  const std::pair<std::string_view, const api::ResourceShare*> all[] = {
      {"gpu", &shares.gpu}, {"cpu", &shares.cpu}, {"memory", &shares.memory}};
  for (const auto& [name, share] : all) {
    if (!share->limit || !share->quota || *share->limit < 0) continue;
    if (*share->quota <= *share->limit) continue;
    return ShareFault{StrCat("spec.", field, ".", name, ".limit"),
                      StrCat("Invalid value: ", json::Print(*share->limit),
                             ": is below the quota of ", json::Print(*share->quota))};
  }
  return std::nullopt;
}

}  // namespace

std::optional<ShareFault> FindShareFault(const json::Value& project) {
  const api::ProjectSpec spec(project);
  if (auto fault = CheckShares("resources", spec.shares)) return fault;
  for (size_t i = 0; i < spec.pools.size(); ++i) {
    if (auto fault = CheckShares(StrCat("nodePools[", i, "].resources"), spec.pools[i].shares)) {
      return fault;
    }
  }
  return std::nullopt;
}

}  // namespace swell::controllers
