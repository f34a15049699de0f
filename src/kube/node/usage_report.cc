#include "kube/node/usage_report.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

#include "base/strings.h"
#include "kube/api/meta/meta.h"

namespace swell::node {
namespace {

struct PodUsage {
  const PodWorker* worker = nullptr;
  std::vector<const ContainerUsage*> containers;
};

// By namespace and name.
std::map<std::pair<std::string, std::string>, PodUsage> ByPod(
    const NodeAgent& agent, const std::vector<ContainerUsage>& usage) {
  std::map<std::pair<std::string, std::string>, PodUsage> pods;
  for (const ContainerUsage& container : usage) {
    const PodWorker* worker = agent.FindWorker(container.ref.pod_uid);
    if (worker == nullptr) continue;
    PodUsage& pod =
        pods[{std::string(api::Namespace(worker->pod())), std::string(api::Name(worker->pod()))}];
    pod.worker = worker;
    pod.containers.push_back(&container);
  }
  return pods;
}

struct Sum {
  WallTime at;
  double nano_cores = 0;
  Duration cpu{0};
  Duration window{0};
  int64_t memory_bytes = 0;

  void Add(const ContainerUsage& usage) {
    at = std::max(at, usage.at);
    const double window_ns = std::max(1.0, static_cast<double>(usage.window.count()));
    nano_cores += static_cast<double>(usage.window_cpu.count()) / window_ns * 1e9;
    cpu += usage.cpu;
    window = std::max(window, usage.window);
    memory_bytes += usage.memory_bytes;
  }
};

void AddUsage(const Sum& sum, json::Object& to) {
  const std::string time = api::FormatTime(sum.at);
  to["cpu"] = json::Object{{"time", time},
                           {"usageNanoCores", static_cast<int64_t>(sum.nano_cores)},
                           {"usageCoreNanoSeconds", sum.cpu.count()},
                           {"usageWindowSeconds", static_cast<double>(sum.window.count()) / 1e9}};
  to["memory"] = json::Object{{"time", time}, {"workingSetBytes", sum.memory_bytes}};
}

std::string Decimal(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.15g", number);
  return text;
}

// The text of one metric; samples are in the order of Add.
class MetricFamily {
 public:
  MetricFamily(std::string_view name, std::string_view type, std::string_view help)
      : name_(name),
        text_(StrCat("# HELP ", name, " [STABLE] ", help, "\n# TYPE ", name, " ", type, "\n")) {}
  void Add(std::string_view labels, double value, WallTime at) {
    text_ += StrCat(name_, labels, " ", Decimal(value), " ", at.unix_ns / 1'000'000, "\n");
  }
  const std::string& text() const { return text_; }

 private:
  std::string name_;
  std::string text_;
};

double Seconds(Duration duration) { return static_cast<double>(duration.count()) / 1e9; }

}  // namespace

json::Value StatsSummary(const NodeAgent& agent,
                         const std::vector<ContainerUsage>& usage,
                         WallTime now) {
  Sum all;
  json::Array pods;
  for (const auto& [key, pod] : ByPod(agent, usage)) {
    Sum sum;
    json::Array containers;
    WallTime started = pod.containers[0]->started;
    for (const ContainerUsage* container : pod.containers) {
      Sum one;
      one.Add(*container);
      sum.Add(*container);
      all.Add(*container);
      started = std::min(started, container->started);
      json::Object entry{{"name", container->ref.name},
                         {"startTime", api::FormatTime(container->started)}};
      AddUsage(one, entry);
      containers.emplace_back(std::move(entry));
    }
    json::Object entry{
        {"podRef",
         json::Object{{"name", key.second}, {"namespace", key.first}, {"uid", pod.worker->uid()}}},
        {"startTime", api::FormatTime(started)},
        {"containers", std::move(containers)}};
    AddUsage(sum, entry);
    pods.emplace_back(std::move(entry));
  }
  if (usage.empty()) all.at = now;
  json::Object node{{"nodeName", agent.name()}};
  AddUsage(all, node);
  return json::Object{{"node", std::move(node)}, {"pods", std::move(pods)}};
}

std::string ResourceMetrics(const NodeAgent& agent,
                            const std::vector<ContainerUsage>& usage,
                            WallTime now) {
  MetricFamily cpu("container_cpu_usage_seconds_total", "counter",
                   "Cumulative cpu time consumed by the container in core-seconds");
  MetricFamily memory("container_memory_working_set_bytes", "gauge",
                      "Current working set of the container in bytes");
  MetricFamily start("container_start_time_seconds", "gauge",
                     "Start time of the container since unix epoch in seconds");
  MetricFamily node_cpu("node_cpu_usage_seconds_total", "counter",
                        "Cumulative cpu time consumed by the node in core-seconds");
  MetricFamily node_memory("node_memory_working_set_bytes", "gauge",
                           "Current working set of the node in bytes");
  MetricFamily pod_cpu("pod_cpu_usage_seconds_total", "counter",
                       "Cumulative cpu time consumed by the pod in core-seconds");
  MetricFamily pod_memory("pod_memory_working_set_bytes", "gauge",
                          "Current working set of the pod in bytes");
  Sum all;
  for (const auto& [key, pod] : ByPod(agent, usage)) {
    Sum sum;
    for (const ContainerUsage* container : pod.containers) {
      sum.Add(*container);
      all.Add(*container);
      const std::string labels = StrCat("{container=\"", container->ref.name, "\",namespace=\"",
                                        key.first, "\",pod=\"", key.second, "\"}");
      cpu.Add(labels, Seconds(container->cpu), container->at);
      memory.Add(labels, static_cast<double>(container->memory_bytes), container->at);
      start.Add(labels, static_cast<double>(container->started.unix_ns) / 1e9, container->at);
    }
    const std::string labels = StrCat("{namespace=\"", key.first, "\",pod=\"", key.second, "\"}");
    pod_cpu.Add(labels, Seconds(sum.cpu), sum.at);
    pod_memory.Add(labels, static_cast<double>(sum.memory_bytes), sum.at);
  }
  if (usage.empty()) all.at = now;
  node_cpu.Add("", Seconds(all.cpu), all.at);
  node_memory.Add("", static_cast<double>(all.memory_bytes), all.at);
  std::string text;
  for (const MetricFamily* family :
       {&cpu, &memory, &start, &node_cpu, &node_memory, &pod_cpu, &pod_memory}) {
    text += family->text();
  }
  return text +
         "# HELP resource_scrape_error [STABLE] 1 if there was an error while getting container "
         "metrics, 0 otherwise\n# TYPE resource_scrape_error gauge\nresource_scrape_error 0\n";
}

}  // namespace swell::node
