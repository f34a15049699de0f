#include "kube/apiserver/access/project_limits.h"

#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/amounts.h"
#include "kube/api/objects/node_pool.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/project.h"
#include "kube/apiserver/access/charged_project.h"
#include "kube/apiserver/request/errors.h"

namespace swell::apiserver {
namespace {

struct Limited {
  std::string_view name;
  api::ResourceShare api::ResourceShares::*share;
};
constexpr Limited kLimited[] = {{"cpu", &api::ResourceShares::cpu},
                                {"memory", &api::ResourceShares::memory}};

// In cores or bytes.
double AmountOf(const api::Amounts& amounts, std::string_view name) {
  const auto found = amounts.find(name);
  return found == amounts.end() ? 0 : static_cast<double>(found->second.MilliValue()) / 1000;
}

std::string Text(std::string_view name, double amount) {
  constexpr double kMi = 1 << 20;
  const bool memory = name == "memory";
  const auto number = static_cast<int64_t>(std::llround(memory ? amount / kMi : amount * 1000));
  const auto quantity = api::Quantity::Parse(StrCat(number, memory ? "Mi" : "m"));
  return quantity.ok() ? quantity->ToString() : std::to_string(amount);
}

// The first by name, as the scheduler takes it. Empty: the node is in none.
std::string PoolOfNode(const Core& core, std::string_view name) {
  const store::EntryPtr node = core.store.Latest({"nodes", "", std::string(name)});
  const auto pools = core.store.List("nodepools.swell.dev", "");
  if (!node || !pools.ok()) return "";
  const auto in = std::find_if(pools->entries.begin(), pools->entries.end(), [&](const auto& pool) {
    const json::SharedValue document = pool->Parsed();
    return api::NodePoolSpec(*document).Selects(*node->Parsed());
  });
  return in == pools->entries.end() ? "" : (*in)->key.name;
}

struct Room {
  double limit = -1;  // below zero: none
  double used = 0;
};

// A project that lists no pools has one limit for all of them together.
Room RoomOf(const json::Value& project, const std::string& pool, const Limited& resource) {
  const api::ProjectSpec spec(project);
  Room room{.used = api::UsageOf(project, resource.name).allocated};
  const std::optional<double>& usual = (spec.shares.*resource.share).limit;
  if (spec.pools.empty()) {
    room.limit = usual.value_or(-1);
    return room;
  }
  for (const api::PoolUsage& one : api::PoolUsageOf(project, resource.name)) {
    if (one.pool == pool) room.used = one.usage.allocated;
  }
  const auto listed = std::find_if(spec.pools.begin(), spec.pools.end(),
                                   [&pool](const auto& one) { return one.name == pool; });
  if (listed != spec.pools.end()) {
    room.limit = (listed->shares.*resource.share).limit.value_or(-1);
  } else {
    const bool rest = pool.empty() || pool == "default";
    room.limit = rest ? usual.value_or(spec.has_shares ? -1 : 0) : 0;
  }
  return room;
}

}  // namespace

Status CheckProjectLimits(const Admission& admission,
                          const json::Value& pod,
                          const json::Value& old) {
  if (!api::IsBound(old) || api::HasEnded(old)) return Status::Ok();
  const Core& core = admission.core;
  const api::Amounts has = api::HeldAmounts(old);
  const api::Amounts wants = api::PodAmounts(api::Spec(pod), api::AmountField::kRequests);
  const std::string pool = PoolOfNode(core, api::NodeName(old));
  json::SharedValue project = ProjectOfPod(core, old);
  for (int depth = 0; project && depth < api::kProjectDepthMax; ++depth) {
    for (const Limited& resource : kLimited) {
      const double more = AmountOf(wants, resource.name) - AmountOf(has, resource.name);
      const Room room = RoomOf(*project, pool, resource);
      if (more <= 0 || room.limit < 0 || room.used + more <= room.limit) continue;
      return ForbiddenError(
          admission.kind, admission.name,
          StrCat("project ", Quote(api::Name(*project)), " holds ", Text(resource.name, room.used),
                 " of ", resource.name, pool.empty() ? "" : StrCat(" in pool ", Quote(pool)),
                 " and may hold ", Text(resource.name, room.limit), "; the resize adds ",
                 Text(resource.name, more)));
    }
    const store::EntryPtr above =
        core.store.Latest({"projects.swell.dev", "", std::string(api::ParentOfProject(*project))});
    project = above ? above->Parsed() : nullptr;
  }
  return Status::Ok();
}

}  // namespace swell::apiserver
