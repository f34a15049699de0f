#include "ui/views/node_health.h"

#include <cmath>

#include "base/strings.h"
#include "cli/views/node_faults.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/node_health.h"

namespace swell::ui {
namespace {

std::string_view StateWord(cli::NodeWellness wellness) {
  using enum cli::NodeWellness;
  switch (wellness) {
    case kHealthy:
      return "Healthy";
    case kFaulty:
      return "Faulty";
    case kSuspect:
      return "Suspect";
    case kUnhealthy:
      return "Unhealthy";
  }
  return "Healthy";
}

// Of "GPU 1: too hot; GPU 3: lost" the part that speaks of the GPU.
std::string PartOf(std::string_view message, int gpu) {
  const std::string mark = StrCat("GPU ", gpu, ": ");
  size_t at = message.find(mark);
  while (at != std::string_view::npos && at != 0 && message.substr(0, at).back() != ' ') {
    at = message.find(mark, at + 1);
  }
  if (at == std::string_view::npos) return "";
  message.remove_prefix(at + mark.size());
  return std::string(message.substr(0, message.find("; GPU ")));
}

// Users who may not see the pod learn only that one failed.
json::Object FailureRow(const api::NodeFailure& failure, const ViewInput& input) {
  const std::string_view ns = std::string_view(failure.pod).substr(0, failure.pod.find('/'));
  const bool told = input.rights.May(Kind::kPod, ns);
  return json::Object{{"time", api::FormatTime(failure.time)},
                      {"pod", told ? TextOrNull(failure.pod) : json::Value(nullptr)},
                      {"class", boost::json::string_view(api::FailureClassName(failure.which))},
                      {"weight", std::round(failure.weight * 100) / 100},
                      {"message", told ? TextOrNull(failure.said) : json::Value(nullptr)}};
}

}  // namespace

std::vector<GpuHealth> HealthOfGpus(const json::Value& node, size_t count) {
  std::vector<GpuHealth> gpus(count);
  const auto condition = api::FindCondition(node, api::kGpuHealthy);
  for (const int index : api::UnhealthyGpus(node)) {
    if (static_cast<size_t>(index) >= count) break;
    GpuHealth& gpu = gpus[static_cast<size_t>(index)];
    gpu.healthy = false;
    if (condition) gpu.reason = PartOf(condition->message, index);
  }
  return gpus;
}

json::Object HealthOfNode(const json::Value& node, const ViewInput& input) {
  const cli::NodeHealthState state = cli::HealthOfNode(node);
  json::Array faults, rows;
  for (const api::NodeFault& fault : api::FaultsOf(node)) {
    faults.push_back(json::Object{{"type", fault.type},
                                  {"reason", fault.reason},
                                  {"message", fault.message},
                                  {"taints", fault.taints}});
  }
  const std::vector<api::NodeFailure> failures = api::NodeFailuresOf(node);
  for (const api::NodeFailure& one : failures) rows.push_back(FailureRow(one, input));
  return json::Object{
      {"state", boost::json::string_view(StateWord(state.wellness))},
      {"text", state.sentence},
      {"faults", std::move(faults)},
      // In hundredths: it sinks all the time, and is a change of the view only when it is seen.
      {"score", std::round(api::NodeScore(failures, input.now) * 100) / 100},
      {"suspectFrom", api::kSuspectScore},
      {"failures", std::move(rows)}};
}

}  // namespace swell::ui
