#include "ui/history/sampler.h"

#include <algorithm>

#include "base/strings.h"
#include "cli/views/node_view.h"
#include "cli/views/project_view.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/pod.h"
#include "kube/client/usage_record.h"
#include "ui/views/nodes.h"

namespace swell::ui {
namespace {

// Nodes beyond these have no curves of their own.
constexpr size_t kNodesMost = 100;
constexpr size_t kProjectsMost = 75;

class Sampler {
 public:
  Sampler(const ClusterState& state, WallTime now) : look_{state, everything_, no_params_, now} {
    everything_.everywhere = ~KindSet{0};
  }

  std::vector<Sample> Take() {
    bool partial = false;
    jobs_ = look_.Jobs(partial);
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

  void Nodes() {
    bool partial = false;
    const auto pools = look_.Of(Kind::kNodePool, partial);
    const auto nodes =
        cli::ViewNodes(look_.Of(Kind::kNode, partial), look_.Of(Kind::kPod, partial));
    struct Sum {
      double total = 0, held = 0, utilized = 0;
      bool measured = false;
    };
    std::map<std::string, Sum> by_pool;
    const bool each = nodes.size() <= kNodesMost;
    for (const cli::NodeView& node : nodes) {
      if (node.gpu_capacity == 0) continue;
      Sum one{static_cast<double>(node.total.milli_gpus) / 1000,
              static_cast<double>(node.used.milli_gpus) / 1000};
      for (const json::SharedValue& pod : node.pods) {
        const auto part = look_.state.usage().GpuPart(*pod);
        if (!part) continue;
        one.utilized += *part * static_cast<double>(cli::MilliGpus(*pod)) / 1000;
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
    for (const auto& [pool, sum] : by_pool) {
      Add("gpu_total", sum.total, {{"pool", pool}});
      Add("gpu_held", sum.held, {{"pool", pool}});
      // Nothing that is held is used by nobody.
      if (sum.measured || sum.held == 0) Add("gpu_utilized", sum.utilized, {{"pool", pool}});
    }
  }

  void Jobs() {
    int64_t waiting = 0, waiting_milli = 0, running = 0;
    for (const cli::JobView& job : *jobs_) {
      if (job.over()) continue;
      const bool runs = job.RunningPods() > 0;
      running += runs;
      if (!runs && job.status != "Suspended") {
        ++waiting;
        waiting_milli += job.milli_gpus;
      }
      OneJob(job);
    }
    Add("queue_length", static_cast<double>(waiting));
    Add("queue_gpus", static_cast<double>(waiting_milli) / 1000);
    Add("running_jobs", static_cast<double>(running));
  }

  void OneJob(const cli::JobView& job) {
    const decltype(SeriesName::labels) labels = {{"namespace", job.ns}, {"job", job.name}};
    samples_.push_back({{"job_members", labels}, static_cast<double>(job.RunningPods()), true});
    for (const json::SharedValue& pod : job.pods) {
      if (api::Phase(*pod) != "Running") continue;
      const std::string_view text = api::Annotation(*pod, api::keys::kMetrics);
      if (text.empty()) continue;
      const auto metrics = json::Parse(text, {.depth = 4, .bytes = 16 << 10});
      if (!metrics.ok()) return;
      for (const char* name : {"throughput", "loss"}) {
        const json::Value* value = json::Find(*metrics, {name});
        if (value == nullptr || !value->is_number()) continue;
        samples_.push_back({{StrCat("job_", name), labels}, value->to_number<double>(), true});
      }
      return;  // the one that leads speaks for the job
    }
  }

  void Projects() {
    bool partial = false;
    const cli::ProjectTree tree = cli::ViewProjects(look_.Of(Kind::kProject, partial));
    const size_t most = std::min(tree.projects.size(), kProjectsMost);
    for (size_t i = 0; i < most; ++i) {
      const cli::ProjectView& project = tree.projects[i];
      const decltype(SeriesName::labels) labels = {{"project", project.name}};
      const cli::Share& gpu = project.gpu();
      Add("project_gpu_held", gpu.allocated, labels);
      Add("project_gpu_requested", gpu.requested, labels);
      if (gpu.quota >= 0) Add("project_gpu_quota", gpu.quota, labels);
      if (gpu.fair_share) Add("project_gpu_fair_share", *gpu.fair_share, labels);
    }
  }

  // Each day's account is whole for itself; the curve continues over midnight.
  void Counters() {
    client::UsageRow sum;
    for (const auto& [key, object] : look_.state.Of(Kind::kUsage)) {
      const auto day = client::UsageDay::FromConfigMap(*object);
      if (!day.ok()) continue;
      for (const auto& [which, row] : day->rows) sum.Add(row);
    }
    Add("preemptions", static_cast<double>(sum.preempted));
    Add("lost_gpu_seconds", sum.lost_gpu_s);
  }

  Rights everything_;
  const Params no_params_;
  const Look look_;
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
