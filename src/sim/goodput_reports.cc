#include "sim/goodput_reports.h"

#include <algorithm>
#include <utility>

#include "base/random.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/controllers/pod_facts.h"
#include "sim/sim_cluster.h"

namespace swell::sim {
namespace {

constexpr Duration kEvery = std::chrono::seconds(2);
constexpr double kRecordsOfStep = 10;
constexpr std::string_view kKind = "TrainingJob";

// The part of a step that members do not share.
double SerialPart(const std::string& job) {
  return static_cast<double>(StableHash(job) % 100) / 100;
}

}  // namespace

GoodputReports::GoodputReports(Executor& executor, std::shared_ptr<api::RestHandler> server)
    : timer_(executor), client_(executor, std::move(server), SystemUser(), "scripts") {}

void GoodputReports::ReportLater() {
  timer_.Start(kEvery, [this] {
    client_.List(client::resources::kPods, "", {}, [this](const Result<client::ObjectList>& pods) {
      if (pods.ok()) OnPods(*pods);
      ReportLater();
    });
  });
}

void GoodputReports::OnPods(const client::ObjectList& pods) {
  std::map<std::string, std::vector<json::SharedValue>> members;
  for (const json::SharedValue& pod : pods.items) {
    const auto owner = api::ControllerOf(*pod);
    if (!owner || owner->kind != kKind || api::IsDeleting(*pod)) continue;
    if (api::Phase(*pod) != "Running") continue;
    members[StrCat(api::Namespace(*pod), "/", owner->name)].push_back(pod);
  }
  for (const auto& [job, its] : members) {
    const auto first = std::min_element(its.begin(), its.end(), [](const auto& a, const auto& b) {
      return api::Name(*a) < api::Name(*b);
    });
    Report(**first, its.size());
  }
}

void GoodputReports::Report(const json::Value& first, size_t members) {
  const std::string job = StrCat(api::Namespace(first), "/", api::ControllerOf(first)->name);
  const double serial = SerialPart(job);
  const double speed = 10 / (serial + (1 - serial) / static_cast<double>(members));
  const json::Object metrics{{"world", static_cast<int64_t>(members)},
                             {"training_step", ++steps_[job]},
                             {"steps_per_second", speed / kRecordsOfStep},
                             {"records_per_second", speed},
                             {"batch_records", kRecordsOfStep},
                             {"last_resize_seconds", 0.3}};
  json::Value patch;
  json::Set(patch, {"metadata", "uid"}, api::Uid(first));
  json::Set(patch, {"metadata", "annotations", api::keys::kMetrics}, json::Print(metrics));
  client_.Patch(client::resources::kPods, std::string(api::Namespace(first)), api::Name(first),
                client::PatchType::kMerge, patch, {});
}

}  // namespace swell::sim
