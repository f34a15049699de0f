// The view `overview`: the cluster in some numbers, a square per GPU, and the last decisions.
#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "cli/views/node_view.h"
#include "kube/api/meta/meta.h"
#include "kube/client/usage_record.h"
#include "ui/views/node_health.h"
#include "ui/views/nodes.h"
#include "ui/views/views.h"

namespace swell::ui {
namespace {

constexpr size_t kDecisionsShown = 20;
constexpr size_t kFailingShown = 5;

json::Array Squares(const cli::NodeView& node,
                    const NamespaceProjects& projects,
                    const ViewInput& input) {
  json::Array squares;
  const std::vector<GpuUse> gpus = GpusOf(node, projects, input);
  const std::vector<GpuHealth> health = HealthOfGpus(*node.object, gpus.size());
  for (size_t i = 0; i < gpus.size(); ++i) {
    squares.push_back(json::Object{{"index", static_cast<int64_t>(i)},
                                   {"project", TextOrNull(gpus[i].project)},
                                   {"job", TextOrNull(gpus[i].job)},
                                   {"bad", !health[i].healthy},
                                   {"share", static_cast<double>(gpus[i].milli) / 1000}});
  }
  return squares;
}

// GPUs whose pods have done nothing with them for a while; null: it was not measured.
json::Value IdleHeld(const std::vector<cli::NodeView>& nodes, const ViewInput& input) {
  constexpr Duration kAWhile = std::chrono::minutes(5);
  const PodUsage& usage = input.state.usage();
  if (usage.empty()) return nullptr;
  int64_t milli = 0;
  for (const cli::NodeView& node : nodes) {
    for (const json::SharedValue& pod : node.pods) {
      const auto since = usage.IdleSince(*pod);
      if (since && input.now - *since >= kAWhile) milli += cli::MilliGpus(*pod);
    }
  }
  return GpuNumber(milli);
}

void AddGpus(const std::vector<cli::NodeView>& nodes, const ViewInput& input, json::Object& out) {
  int64_t total = 0, ready = 0, held = 0, free = 0;
  for (const cli::NodeView& node : nodes) {
    total += node.total.milli_gpus;
    if (node.ready && !node.unschedulable) {
      ready += node.healthy_gpus() * 1000;
      free += node.FreeMilliGpus();
    }
    held += node.used.milli_gpus;
  }
  out["gpus"] = json::Object{{"total", GpuNumber(total)},
                             {"ready", GpuNumber(ready)},
                             {"held", GpuNumber(held)},
                             {"free", GpuNumber(free)},
                             {"idleHeld", IdleHeld(nodes, input)}};
}

// Fails again and again, or hangs.
bool Fails(const cli::JobView& job) {
  const bool again = job.failure && job.failure->repeats() && !job.RunsAfterOneFailure();
  return !job.over() && (again || !job.hung.empty());
}

// When it failed or began to hang, as far as is known.
WallTime FailsSince(const cli::JobView& job) {
  std::optional<WallTime> since = job.failure ? job.failure->time : std::nullopt;
  if (!job.hung.empty()) {
    if (const auto hung = api::FindCondition(*job.object, "Hung")) {
      since = std::max(since, hung->Since());
    }
  }
  return since ? *since : job.created.value_or(WallTime());
}

// How many jobs fail or hang, and those that began to do so last.
json::Object FailingOf(std::vector<const cli::JobView*> jobs, const ViewInput& input) {
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const auto* a, const auto* b) { return FailsSince(*a) > FailsSince(*b); });
  json::Array rows;
  for (const cli::JobView* job : jobs) {
    if (rows.size() == kFailingShown) break;
    const json::Object row = WorkloadRow(*job, input);
    json::Object shown;
    for (const char* field : {"namespace", "name", "kind", "status", "statusText", "reason"}) {
      shown[field] = row.at(field);
    }
    rows.push_back(std::move(shown));
  }
  return json::Object{{"total", jobs.size()}, {"rows", std::move(rows)}};
}

void AddJobs(const ViewInput& input, bool& partial, json::Object& out) {
  int64_t running = 0, pending = 0;
  std::optional<WallTime> oldest;
  std::vector<const cli::JobView*> failing;
  const JobList jobs = input.Jobs(partial);
  for (const cli::JobView& job : *jobs) {
    running += Runs(job) ? 1 : 0;
    if (Fails(job)) failing.push_back(&job);
    const auto since = WaitsSince(job, input.now);
    if (!since) continue;
    ++pending;
    if (!oldest || *since < *oldest) oldest = since;
  }
  out["jobs"] = json::Object{
      {"running", running}, {"pending", pending}, {"oldestPendingSince", TimeOrNull(oldest)}};
  out["failing"] = FailingOf(std::move(failing), input);
}

// From the account of use. Sums over the cluster are for all who see its nodes, as in its history.
void AddToday(const ViewInput& input, json::Object& out) {
  out["preemptionsToday"] = nullptr;
  out["lostGpuSecondsToday"] = nullptr;
  if (!input.rights.May(Kind::kNode, "")) return;
  const std::string name = client::UsageConfigMapName(client::UsageDate(input.now));
  client::UsageRow sum;
  const ObjectMap& days = input.state.Of(Kind::kUsage);
  if (const auto found = days.find(StrCat(client::kUsageNamespace, "/", name));
      found != days.end()) {
    const auto day = client::UsageDay::FromConfigMap(*found->second);
    if (!day.ok()) return;
    for (const auto& [key, row] : day->rows) sum.Add(row);
  }
  out["preemptionsToday"] = sum.preempted;
  out["lostGpuSecondsToday"] = std::round(sum.lost_gpu_s);
}

}  // namespace

Result<json::Value> OverviewView(const ViewInput& input) {
  json::Object out;
  bool partial = false;
  const NamespaceProjects projects = ProjectsOfNamespaces(input);
  const auto pools = input.Of(Kind::kNodePool, partial);
  const auto nodes = NodesOf(input, partial);
  AddGpus(nodes, input, out);
  AddJobs(input, partial, out);
  AddToday(input, out);
  std::map<std::string, std::pair<int64_t, int64_t>> by_pool;
  json::Array rows;
  for (const cli::NodeView& node : nodes) {
    const std::string pool = PoolOfNode(*node.object, pools);
    if (node.gpus() > 0) {
      by_pool[pool].first += node.total.milli_gpus;
      by_pool[pool].second += node.used.milli_gpus;
    }
    rows.push_back(json::Object{{"name", node.name},
                                {"pool", TextOrNull(pool)},
                                {"ready", node.ready},
                                {"gpus", Squares(node, projects, input)}});
  }
  json::Array pool_rows;
  for (const auto& [name, gpus] : by_pool) {
    pool_rows.push_back(json::Object{{"name", name.empty() ? "(no pool)" : name},
                                     {"total", GpuNumber(gpus.first)},
                                     {"held", GpuNumber(gpus.second)}});
  }
  out["pools"] = std::move(pool_rows);
  out["nodes"] = std::move(rows);
  out["decisions"] = DecisionsOf(input, kDecisionsShown);
  if (partial) out["partial"] = true;
  return json::Value(std::move(out));
}

}  // namespace swell::ui
