// The view `workloads`: one row per job of any kind.
#include <algorithm>
#include <cstdlib>
#include <optional>

#include "base/strings.h"
#include "cli/views/job_report.h"
#include "cli/views/queue_places.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/job.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/pod_group.h"
#include "ui/views/job_details.h"
#include "ui/views/nodes.h"
#include "ui/views/servers.h"
#include "ui/views/views.h"

namespace swell::ui {
namespace {

int64_t Seconds(Duration span) {
  return std::max<int64_t>(0, std::chrono::duration_cast<std::chrono::seconds>(span).count());
}

json::Value PreemptibleOf(const cli::JobView& job) {
  if (!job.group) return nullptr;
  const std::string_view word = api::Preemptibility(*job.group);
  return word.empty() ? json::Value(true) : json::Value(word != "NonPreemptible");
}

// Null: none of its pods waits for a node.
const json::Value* WaitingPod(const cli::JobView& job) {
  for (const json::SharedValue& pod : job.pods) {
    if (!api::IsBound(*pod) && api::IsActive(*pod)) return pod.get();
  }
  return nullptr;
}

// Counts the work that the user sees.
cli::QueuePlaces QueuePlacesOf(const ViewInput& input) {
  bool hides = false, ignored = false;
  const auto pods = input.Of(Kind::kPod, hides), groups = input.Of(Kind::kPodGroup, hides);
  const auto pointers = [](const std::vector<json::SharedValue>& objects) {
    cli::QueuePlaces::Objects out;
    for (const json::SharedValue& one : objects) out.push_back(one.get());
    return out;
  };
  using Seen = cli::QueuePlaces::Seen;
  return {pointers(pods), pointers(groups), cli::ViewProjects(input.Of(Kind::kProject, ignored)),
          hides ? Seen::kPart : Seen::kAll};
}

// A job that starts moves up all that wait behind it, and each row that changes is sent to every
// tab. So rows tell only the first places, and not how many wait.
json::Value PlaceOf(const json::Value& pod, const cli::QueuePlaces& places) {
  constexpr int64_t kPlacesTold = 20;
  const auto found = places.Find(pod);
  const bool told = found && found->of > 1 && found->place > 0 && found->place <= kPlacesTold;
  return told ? json::Value(found->place) : nullptr;
}

}  // namespace

json::Value QueueOf(const cli::JobView& job, const ViewInput& input) {
  const json::Value* pod = WaitingPod(job);
  // Most jobs do not wait, and all pods are looked at.
  const auto place = pod == nullptr ? std::nullopt : QueuePlacesOf(input).Find(*pod);
  return place ? place->Json() : nullptr;
}

bool Runs(const cli::JobView& job) { return job.RunningPods() > 0 || job.status == "Running"; }

std::optional<WallTime> WaitsSince(const cli::JobView& job, WallTime now) {
  if (job.over() || Runs(job) || job.status == "Suspended") return std::nullopt;
  WallTime since = std::max(job.created.value_or(now), job.last_pod_ended.value_or(WallTime()));
  const auto suspended = api::FindCondition(*job.object, "Suspended");
  if (suspended && suspended->IsFalse()) {
    since = std::max(since, suspended->Since().value_or(since));
  }
  return std::min(since, now);
}

json::Object WorkloadRow(const cli::JobView& job, const ViewInput& input) {
  const json::Value& object = *job.object;
  const cli::JobReport report = cli::ReportOf(job);
  const bool runs = job.status == "Running";
  json::Object row{{"namespace", job.ns},
                   {"name", job.name},
                   {"kind", job.kind->kind},
                   {"apiVersion", job.kind->resource.ApiVersion()},
                   {"plural", job.kind->resource.plural},
                   {"uid", boost::json::string_view(api::Uid(object))},
                   {"status", runs && !job.hung.empty() ? "Hung" : job.status},
                   {"statusText", job.StatusText()},
                   {"reason", job.Reason()},
                   {"project", TextOrNull(job.project)},
                   {"pool", nullptr},
                   {"priority", TextOrNull(job.priority)},
                   {"preemptible", PreemptibleOf(job)},
                   {"workload", TextOrNull(job.workload)},
                   {"members", json::Object{{"running", job.RunningPods()},
                                            {"requested", job.replicas},
                                            {"min", job.least},
                                            {"max", job.most}}},
                   {"gpus", json::Object{{"requested", GpuNumber(job.milli_gpus)},
                                         {"held", GpuNumber(job.HeldMilliGpus())}}},
                   {"preemptions", job.Preemptions().whole},
                   {"shrinks", job.Preemptions().shrinks},
                   {"createdBy", TextOrNull(job.user)},
                   {"created", TimeOrNull(job.created)},
                   {"started", TimeOrNull(job.started)},
                   {"completed", TimeOrNull(job.ended)},
                   {"progress", ProgressOf(job)},
                   {"throughput", nullptr},
                   {"throughputUnit", nullptr}};
  if (report.throughput) {
    row["throughput"] = *report.throughput;
    row["throughputUnit"] = boost::json::string_view(report.unit);
  }
  const WallTime end = job.ended.value_or(input.now);
  const WallTime waited_until = job.started.value_or(end);
  // A span that grows would change every row of every view: the page counts it from its start.
  row["waitSeconds"] = nullptr;
  row["runSeconds"] = nullptr;
  row["runsSince"] = nullptr;
  const auto since = WaitsSince(job, input.now);
  row["waitsSince"] = TimeOrNull(since);
  // The pods that a server has now are not those that it began with.
  if (!since && !IsServer(job) && job.created && (job.started || job.ended)) {
    row["waitSeconds"] = Seconds(waited_until - *job.created);
  }
  if (const auto run = job.RunTime(input.now)) {
    if (job.ended) row["runSeconds"] = Seconds(*run);
    row["runsSince"] = TimeOrNull(end - *run);
  }
  return row;
}

Result<json::Value> WorkloadsView(const ViewInput& input) {
  bool partial = false;
  const NamespaceProjects projects = ProjectsOfNamespaces(input);
  const auto pools = input.Of(Kind::kNodePool, partial);
  bool nodes_hidden = false;
  std::map<std::string, std::string, std::less<>> pool_of;  // by node
  for (const json::SharedValue& node : input.Of(Kind::kNode, nodes_hidden)) {
    pool_of[std::string(api::Name(*node))] = PoolOfNode(*node, pools);
  }
  json::Array rows;
  const JobList jobs = input.Jobs(partial);
  std::optional<cli::QueuePlaces> places;  // all pods are looked at, so only where a job waits
  for (const cli::JobView& job : *jobs) {
    json::Object row = WorkloadRow(job, input);
    row["place"] = nullptr;
    if (const json::Value* pod = WaitingPod(job); pod != nullptr) {
      if (!places) places = QueuePlacesOf(input);
      row["place"] = PlaceOf(*pod, *places);
    }
    if (const auto of = projects.find(job.ns); of != projects.end()) row["project"] = of->second;
    for (const json::SharedValue& pod : job.pods) {
      const auto found = pool_of.find(api::NodeName(*pod));
      if (found == pool_of.end()) continue;
      row["pool"] = TextOrNull(found->second);
      break;
    }
    rows.push_back(std::move(row));
  }
  json::Object out{{"rows", std::move(rows)}};
  if (partial) out["partial"] = true;
  return json::Value(std::move(out));
}

}  // namespace swell::ui
