#include "scheduling/scheduler_metrics.h"

#include <algorithm>
#include <map>
#include <vector>

#include "sched/actions/registry.h"

namespace swell::scheduling {
namespace {

using enum MetricType;

// Series of one family that come from the cluster's objects.
constexpr size_t kNodesMax = 5000;
constexpr size_t kJobsMax = 1000;
// Series that begin at zero. Projects that really give places away find room after them.
constexpr size_t kBegunMax = CounterVec::kSeriesMax / 2;

double Seconds(Duration span) { return std::chrono::duration<double>(span).count(); }

std::string_view NonEmpty(std::string_view name) { return name.empty() ? "default" : name; }

}  // namespace

SchedulerMetrics::SchedulerMetrics(Metrics* metrics,
                                   const Clock& clock,
                                   const sched::Model& model,
                                   const sched::Scheduler& scheduler,
                                   const SchedulerLoopStats& stats)
    : clock_(clock),
      model_(model),
      scheduler_(scheduler),
      stats_(stats),
      cycles_({"swell_scheduler_cycle_duration_seconds", kHistogram,
               "Duration of scheduling cycles in seconds, including the start of their writes."},
              LatencyBounds()),
      evictions_({"swell_scheduler_preempted_pods_total",
                  kCounter,
                  "Preempted pods by action and project.",
                  {"rule", "project"}},
                 0),
      lost_({"swell_scheduler_preempted_gpu_seconds_total",
             kCounter,
             "GPU seconds of work since their last checkpoints that preempted pods lost.",
             {"rule", "project"}},
            0),
      waits_({"swell_scheduler_wait_seconds",
              kHistogram,
              "Seconds from the creation of a group's pods to their binding.",
              {"project"}},
             WaitBounds()),
      registered_(RegisterMetrics(metrics, [this](MetricPage& page) {
        BeginCounters();
        Collect(page);
      })) {
  cycles_.At({});
}

void SchedulerMetrics::OnCycle(Duration took) { cycles_.At({}).Observe(Seconds(took)); }

void SchedulerMetrics::OnEviction(const sched::Decision& eviction) {
  const std::string_view project = NonEmpty(model_.QueueOfPod(eviction.pod));
  ++evictions_.At({eviction.rule, project});
  lost_.At({eviction.rule, project}) += eviction.lost_gpu_seconds;
}

void SchedulerMetrics::OnStart(std::string_view project, Duration waited) {
  waits_.At({NonEmpty(project)}).Observe(Seconds(waited));
}

// Nobody sees a counter grow that begins with its first event: rate() and increase() need to have
// seen the zero before.
void SchedulerMetrics::BeginCounters() {
  for (const sched::Model::QueueView& queue : model_.Queues()) {
    for (const std::string& rule : sched::ActionNames()) {
      if (sched::FindAction(rule)->Event().empty()) continue;  // it evicts nothing
      if (evictions_.series().size() >= kBegunMax) return;
      evictions_.At({rule, NonEmpty(queue.name)});
      lost_.At({rule, NonEmpty(queue.name)});
    }
  }
}

void SchedulerMetrics::Collect(MetricPage& page) const {
  CollectCycles(page);
  CollectProjects(page);
  CollectNodes(page);
  CollectJobs(page);
}

void SchedulerMetrics::CollectCycles(MetricPage& page) const {
  page.Add(cycles_);
  page.Add(evictions_);
  page.Add(lost_);
  page.Add(waits_);
  const sched::CycleStats& cycles = scheduler_.stats();
  auto count = [&page](std::string_view name, std::string_view help, int64_t value) {
    page.Add({name, kCounter, help}, static_cast<double>(value));
  };
  count("swell_scheduler_cycles_total", "Scheduling cycles.", cycles.cycles);
  count("swell_scheduler_empty_cycles_total", "Cycles that had nothing to do.",
        cycles.empty_cycles);
  count("swell_scheduler_groups_tried_total", "Groups that the scheduler tried to place.",
        cycles.groups_tried);
  count("swell_scheduler_groups_skipped_total",
        "Groups skipped because an easier one had failed in the same cycle.",
        cycles.groups_skipped);
  count("swell_scheduler_victim_searches_total", "Searches for victims.", cycles.searches);
  count("swell_scheduler_victim_searches_unfinished_total",
        "Searches for victims that were deferred to the next cycle.",
        cycles.searches_out_of_budget);
  count("swell_scheduler_binds_total", "Pods bound to a node.", stats_.binds);
  count("swell_scheduler_evictions_total", "Pods deleted to make room for others.",
        stats_.evictions);
  count("swell_scheduler_refused_total", "Decisions that the API server refused.", stats_.refused);
  page.Add({"swell_scheduler_nodes", kGauge, "Nodes that the scheduler knows."},
           static_cast<double>(model_.node_count()));
  page.Add({"swell_scheduler_pods", kGauge, "Pods that the scheduler knows."},
           static_cast<double>(model_.pod_count()));
}

void SchedulerMetrics::CollectProjects(MetricPage& page) const {
  struct Amount {
    MetricFamily family;
    double sched::Model::QueueView::Resource::*value;
  };
  using Resource = sched::Model::QueueView::Resource;
  const std::vector<std::string_view> labels{"project", "pool", "resource"};
  const Amount amounts[] = {
      {{"swell_project_allocated", kGauge,
        "Resources that the project holds, in GPUs, cores and bytes.", labels},
       &Resource::allocated},
      {{"swell_project_requested", kGauge, "Resources that the project holds or waits for.",
        labels},
       &Resource::requested},
      {{"swell_project_fair_share", kGauge, "The project's fair share now.", labels},
       &Resource::fair_share},
      {{"swell_project_quota", kGauge, "The project's quota. Absent if it is unlimited.", labels},
       &Resource::quota},
      {{"swell_project_limit", kGauge, "The project's limit. Absent if it has none.", labels},
       &Resource::limit}};
  for (const sched::Model::QueueView& queue : model_.Queues()) {
    for (const auto& pool : queue.pools) {
      for (const Resource& resource : pool.resources) {
        for (const Amount& amount : amounts) {
          const double value = resource.*amount.value;
          if (value < 0) continue;  // unlimited
          page.Add(amount.family, {queue.name, NonEmpty(pool.name), resource.name}, value);
        }
      }
    }
  }
}

void SchedulerMetrics::CollectNodes(MetricPage& page) const {
  const std::vector<std::string_view> labels{"node", "pool"};
  const MetricFamily all{"swell_node_gpus", kGauge, "GPUs of the node.", labels};
  const MetricFamily idle{"swell_node_gpus_idle", kGauge, "GPUs that no pod holds.", labels};
  const MetricFamily leaving{"swell_node_gpus_releasing", kGauge,
                             "GPUs held by terminating pods only.", labels};
  sched::Model::NodeView rest;
  size_t told = 0;
  auto add = [&](std::string_view name, const sched::Model::NodeView& node) {
    const LabelValues values{name, NonEmpty(node.pool)};
    page.Add(all, values, node.gpus);
    page.Add(idle, values, node.idle_gpus);
    page.Add(leaving, values, node.releasing_gpus);
  };
  for (const sched::Model::NodeView& node : model_.Nodes()) {
    if (++told <= kNodesMax) {
      add(node.name, node);
      continue;
    }
    rest.gpus += node.gpus;
    rest.idle_gpus += node.idle_gpus;
    rest.releasing_gpus += node.releasing_gpus;
  }
  if (told > kNodesMax) add("(other)", rest);
}

void SchedulerMetrics::CollectJobs(MetricPage& page) const {
  using Group = sched::Model::GroupView;
  std::vector<Group> groups = model_.Groups();
  struct Sum {
    double running = 0, waiting = 0, longest = 0;
  };
  std::map<std::string_view, Sum> sums;
  for (const Group& group : groups) {
    if (group.members == 0) continue;
    Sum& sum = sums[NonEmpty(group.queue)];
    if (group.holding > 0) {
      ++sum.running;
    } else if (group.waiting > 0) {
      ++sum.waiting;
      sum.longest = std::max(sum.longest, Seconds(clock_.Now() - group.creation));
    }
  }
  const MetricFamily jobs{"swell_project_jobs",
                          kGauge,
                          "PodGroups of the project by state: running and waiting.",
                          {"project", "state"}};
  const MetricFamily longest{"swell_project_longest_wait_seconds",
                             kGauge,
                             "Age in seconds of the oldest group that waits.",
                             {"project"}};
  for (const auto& [project, sum] : sums) {
    page.Add(jobs, {project, "running"}, sum.running);
    page.Add(jobs, {project, "waiting"}, sum.waiting);
    page.Add(longest, {project}, sum.longest);
  }
  const std::vector<std::string_view> labels{"namespace", "job", "project"};
  const MetricFamily gpus{"swell_job_gpus", kGauge, "GPUs that the job holds.", labels};
  const MetricFamily members{"swell_job_members",
                             kGauge,
                             "Pods of the job by state: minimum, placed and waiting.",
                             {"namespace", "job", "project", "state"}};
  // The largest, and of those alike the same ones at every scrape.
  std::erase_if(groups, [](const Group& group) { return group.members == 0; });
  std::sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
    return a.gpus != b.gpus ? a.gpus > b.gpus : a.name < b.name;
  });
  Group rest;
  for (size_t i = 0; i < groups.size(); ++i) {
    const Group& group = groups[i];
    if (i >= kJobsMax) {
      rest.gpus += group.gpus;
      continue;
    }
    const size_t slash = group.name.find('/');
    const std::string_view name = group.name;
    const std::string_view ns = slash == std::string::npos ? "" : name.substr(0, slash);
    const std::string_view job = slash == std::string::npos ? name : name.substr(slash + 1);
    const std::string_view project = NonEmpty(group.queue);
    page.Add(gpus, {ns, job, project}, group.gpus);
    page.Add(members, {ns, job, project, "minimum"}, group.minimum);
    page.Add(members, {ns, job, project, "holding"}, group.holding);
    page.Add(members, {ns, job, project, "waiting"}, group.waiting);
  }
  if (groups.size() > kJobsMax) page.Add(gpus, {"(other)", "(other)", "(other)"}, rest.gpus);
}

}  // namespace swell::scheduling
