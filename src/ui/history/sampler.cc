#include "ui/history/sampler.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/strings.h"
#include "cli/views/job_report.h"
#include "cli/views/node_view.h"
#include "cli/views/project_view.h"
#include "kube/api/meta/meta.h"
#include "kube/client/usage_record.h"
#include "ui/views/nodes.h"

namespace swell::ui {
namespace {

// Nodes beyond these have no curves of their own.
constexpr size_t kNodesMost = 100;
constexpr size_t kProjectsMost = 75;
constexpr size_t kPoolsMost = 25;
// Curves of CPUs and memory are three times as many as those of GPUs, so there are fewer of them:
// all series together stay below History::kLaddersMax.
constexpr size_t kNodesWithAllMost = 32;
constexpr size_t kPoolsWithAllMost = 10;

class Sampler {
 public:
  Sampler(const ClusterState& state, WallTime now) : input_{state, everything_, no_params_, now} {
    everything_.everywhere = ~KindSet{0};
  }

  std::vector<Sample> Take() {
    bool partial = false;
    jobs_ = input_.Jobs(partial);
    Nodes();
    Jobs();
    Projects();
    Counters();
    return std::move(samples_);
  }

 private:
  void Add(std::string name, double value, decltype(SeriesName::labels) labels = {}) {
    samples_.push_back({{std::move(name), std::move(labels)}, value});
  }

  struct Sum {
    double total = 0, held = 0, utilized = 0;
    bool measured = false;
  };

  // CPUs in cores, memory in bytes.
  struct Amounts {
    cli::Amounts total, held;
    double cores = 0, memory = 0;  // used
  };

  // "cpu_held" and so on; of nodes "node_cpu_held".
  void AddAmounts(const std::string& prefix,
                  const Amounts& sum,
                  const decltype(SeriesName::labels)& labels) {
    Add(prefix + "cpu_held", static_cast<double>(sum.held.milli_cpu) / 1000, labels);
    Add(prefix + "memory_held", static_cast<double>(sum.held.memory), labels);
    if (input_.state.usage().empty()) return;  // nothing was measured
    Add(prefix + "cpu_used", sum.cores, labels);
    Add(prefix + "memory_used", sum.memory, labels);
  }

  void CpuAndMemory(const std::vector<cli::NodeView>& nodes,
                    const std::vector<json::SharedValue>& pools) {
    const PodUsage& usage = input_.state.usage();
    std::map<std::string, Amounts> by_pool;
    for (const cli::NodeView& node : nodes) {
      Amounts one{node.total, node.used};
      for (const json::SharedValue& pod : node.pods) {
        const PodUsage::Use* use = usage.Find(*pod);
        one.cores += use == nullptr ? 0 : use->cores;
        one.memory += use == nullptr ? 0 : use->memory;
      }
      if (nodes.size() <= kNodesWithAllMost) AddAmounts("node_", one, {{"node", node.name}});
      Amounts& sum = by_pool[PoolOfNode(*node.object, pools)];
      sum.total.Add(one.total);
      sum.held.Add(one.held);
      sum.cores += one.cores;
      sum.memory += one.memory;
    }
    size_t told = 0;
    for (const auto& [pool, sum] : by_pool) {
      if (++told > kPoolsWithAllMost) break;
      Add("cpu_total", static_cast<double>(sum.total.milli_cpu) / 1000, {{"pool", pool}});
      Add("memory_total", static_cast<double>(sum.total.memory), {{"pool", pool}});
      AddAmounts("", sum, {{"pool", pool}});
    }
  }

  void Nodes() {
    bool partial = false;
    const auto pools = input_.Of(Kind::kNodePool, partial);
    const auto nodes =
        cli::ViewNodes(input_.Of(Kind::kNode, partial), input_.Of(Kind::kPod, partial));
    std::map<std::string, Sum> by_pool;
    CpuAndMemory(nodes, pools);
    const NamespaceProjects projects = ProjectsOfNamespaces(input_);
    const bool each = nodes.size() <= kNodesMost;
    for (const cli::NodeView& node : nodes) {
      if (node.gpus() == 0) continue;
      Sum one{static_cast<double>(node.total.milli_gpus) / 1000,
              static_cast<double>(node.used.milli_gpus) / 1000};
      for (const json::SharedValue& pod : node.pods) {
        const double gpus = static_cast<double>(cli::MilliGpus(*pod)) / 1000;
        if (gpus <= 0) continue;
        Used& of_project = used_[ProjectOf(*pod, projects)];
        of_project.held += gpus;
        const auto part = input_.state.usage().GpuPart(*pod);
        of_project.measured = of_project.measured && part.has_value();
        if (!part) continue;
        one.utilized += *part * gpus;
        of_project.gpus += *part * gpus;
        one.measured = true;
      }
      if (each) {
        Add("node_gpu_held", one.held, {{"node", node.name}});
        if (one.measured) Add("node_gpu_utilized", one.utilized, {{"node", node.name}});
      }
      Sum& sum = by_pool[PoolOfNode(*node.object, pools)];
      sum.total += one.total;
      sum.held += one.held;
      sum.utilized += one.utilized;
      sum.measured = sum.measured || one.measured;
    }
    size_t told = 0;
    for (const auto& [pool, sum] : by_pool) {
      if (++told > kPoolsMost) break;
      Add("gpu_total", sum.total, {{"pool", pool}});
      Add("gpu_held", sum.held, {{"pool", pool}});
      // Nothing that is held is used by nobody.
      if (sum.measured || sum.held == 0) Add("gpu_utilized", sum.utilized, {{"pool", pool}});
    }
  }

  void Jobs() {
    int64_t waiting_milli = 0, running = 0;
    std::vector<double> waits;  // seconds
    for (const cli::JobView& job : *jobs_) {
      if (job.over()) continue;
      running += Runs(job) ? 1 : 0;
      if (const auto since = WaitsSince(job, input_.now)) {
        waiting_milli += job.milli_gpus;
        waits.push_back(std::chrono::duration<double>(input_.now - *since).count());
      }
      OneJob(job);
    }
    Add("queue_length", static_cast<double>(waits.size()));
    Add("queue_gpus", static_cast<double>(waiting_milli) / 1000);
    Add("queue_wait_p50_seconds", Quantile(waits, 0.5));
    Add("queue_wait_p95_seconds", Quantile(waits, 0.95));
    Add("running_jobs", static_cast<double>(running));
  }

  // The least value that so great a part of all does not exceed; 0 of none.
  static double Quantile(std::vector<double>& values, double part) {
    if (values.empty()) return 0;
    const auto place =
        static_cast<std::ptrdiff_t>(std::ceil(part * static_cast<double>(values.size()))) - 1;
    const auto at = values.begin() + std::max<std::ptrdiff_t>(0, place);
    std::nth_element(values.begin(), at, values.end());
    return *at;
  }

  void OneJob(const cli::JobView& job) {
    const decltype(SeriesName::labels) labels = {{"namespace", job.ns}, {"job", job.name}};
    const auto add = [&](const char* name, std::optional<double> value) {
      if (value) samples_.push_back({{name, labels}, *value, true});
    };
    add("job_members", static_cast<double>(job.RunningPods()));
    // A job that waits trains nothing, whatever its pods reported before.
    const cli::JobReport report = cli::ReportOf(job, /*only_running=*/true);
    add("job_throughput", report.throughput);
    add("job_loss", report.loss);
    if (job.progress) add("job_step", static_cast<double>(job.progress->step));
    add("job_progress", cli::DoneShare(job));
  }

  struct Used {
    double held = 0, gpus = 0;
    bool measured = true;  // of each pod with GPUs
  };

  // A part that was not measured would look idle.
  void AddUtilized(const Used& used, const decltype(SeriesName::labels)& labels) {
    if (used.measured) Add("project_gpu_utilized", used.gpus, labels);
  }

  void Projects() {
    // With the work of no project, the curves of projects add up to what is held.
    const Used& of_none = used_[""];
    Add("project_gpu_held", of_none.held, {{"project", ""}});
    AddUtilized(of_none, {{"project", ""}});
    bool partial = false;
    const cli::ProjectTree tree = cli::ViewProjects(input_.Of(Kind::kProject, partial));
    const size_t most = std::min(tree.projects.size(), kProjectsMost);
    for (size_t i = 0; i < most; ++i) {
      const cli::ProjectView& project = tree.projects[i];
      const decltype(SeriesName::labels) labels = {{"project", project.name}};
      const cli::Share& gpu = project.gpu();
      Add("project_gpu_held", gpu.allocated, labels);
      Add("project_gpu_requested", gpu.requested, labels);
      AddUtilized(used_[project.name], labels);
      if (gpu.quota >= 0) Add("project_gpu_quota", gpu.quota, labels);
      if (gpu.fair_share) Add("project_gpu_fair_share", *gpu.fair_share, labels);
    }
  }

  // Each day's account is whole for itself; the curve continues over midnight.
  void Counters() {
    client::UsageRow sum;
    std::map<std::string, client::UsageRow> projects;
    // Nobody sees a counter grow that begins with its first start.
    for (const auto& [name, project] : input_.state.Of(Kind::kProject)) {
      projects[std::string(api::Name(*project))];
    }
    for (const auto& [key, object] : input_.state.Of(Kind::kUsage)) {
      const auto day = client::UsageDay::FromConfigMap(*object);
      if (!day.ok()) continue;
      for (const auto& [which, row] : day->rows) {
        sum.Add(row);
        projects[std::get<0>(which)].Add(row);
      }
    }
    Add("preemptions", static_cast<double>(sum.preempted));
    Add("lost_gpu_seconds", sum.lost_gpu_s);
    size_t told = 0;
    for (const auto& [project, row] : projects) {
      if (++told > kProjectsMost) break;
      Add("started_jobs", static_cast<double>(row.started), {{"project", project}});
      Add("started_wait_seconds", row.wait_s, {{"project", project}});
    }
    for (const auto& [rule, pods] : input_.state.evictions().by_rule()) {
      Add("preemptions_by_rule", static_cast<double>(pods), {{"rule", rule}});
    }
  }

  std::map<std::string, Used> used_;  // by project
  Rights everything_;
  const Params no_params_;
  const ViewInput input_;
  JobList jobs_;
  std::vector<Sample> samples_;
};

}  // namespace

std::vector<Sample> SampleCluster(const ClusterState& state, WallTime now) {
  return Sampler(state, now).Take();
}

bool MaySee(const SeriesName& series, const Rights& rights) {
  if (const std::string_view ns = series.Label("namespace"); !ns.empty()) {
    return rights.May(Kind::kPod, ns);
  }
  if (!series.Label("project").empty()) return rights.May(Kind::kProject, "");
  return rights.May(Kind::kNode, "");
}

}  // namespace swell::ui
