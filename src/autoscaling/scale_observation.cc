#include "autoscaling/scale_observation.h"

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/pod.h"
#include "kube/api/rest/rest.h"

namespace swell::autoscaling {

Duration UntilNextLook(ScaleObservation& look, SteadyTime now, Duration interval) {
  const Duration since = now - look.looked.value_or(SteadyTime{});
  if (look.looked && since < interval) return interval - since;
  look.looked = now;
  return Duration::zero();
}

std::string LogTailQuery(const json::Value& pod, int lines, int bytes) {
  std::string query = StrCat("tailLines=", lines, "&timestamps=true&limitBytes=", bytes);
  const json::Array& containers = api::Containers(pod);
  if (!containers.empty()) {
    query += StrCat("&container=", api::EscapeQuery(api::ContainerName(containers[0])));
  }
  return query;
}

std::optional<double> PushedMetric(const json::Value& pod, std::string_view metric) {
  const std::string_view text = api::Annotation(pod, api::keys::kMetrics);
  if (text.empty()) return {};
  auto metrics = json::Parse(text, {.depth = 8, .bytes = 64 << 10});
  const json::Value* value = metrics.ok() ? json::Find(*metrics, {metric}) : nullptr;
  if (value == nullptr || !value->is_number()) return {};
  return value->to_number<double>();
}

}  // namespace swell::autoscaling
