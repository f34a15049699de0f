#include "controllers/jobs/scale_look.h"

#include "api/meta.h"
#include "api/rest.h"
#include "api/swell_keys.h"
#include "base/strings.h"
#include "controllers/jobs/scale_target.h"

namespace swell::controllers {

Duration UntilNextLook(ScaleLook& look, SteadyTime now, Duration interval) {
  const Duration since = now - look.looked.value_or(SteadyTime{});
  if (look.looked && since < interval) return interval - since;
  look.looked = now;
  return Duration::zero();
}

json::Value WithMemory(json::Value patch, const json::Value& job, std::string_view memory) {
  json::Set(patch, {"metadata"},
            json::Object{{"uid", api::Uid(job)},
                         {"resourceVersion", json::GetString(job, {"metadata", "resourceVersion"})},
                         {"annotations", json::Object{{kScaleMemory, memory}}}});
  return patch;
}

json::Value ScalingStatusPatch(const json::Value& job, std::string_view role, json::Value wanted) {
  json::Value patch;
  json::Set(patch, {"metadata", "uid"}, api::Uid(job));
  json::Set(patch, {"status", "elasticScaling", role}, std::move(wanted));
  return patch;
}

std::string LogTailQuery(const json::Value& pod, int lines, int bytes) {
  std::string query = StrCat("tailLines=", lines, "&timestamps=true&limitBytes=", bytes);
  const json::Array& containers = json::GetArray(pod, {"spec", "containers"});
  if (!containers.empty()) {
    query += StrCat("&container=", api::EscapeQuery(json::GetString(containers[0], {"name"})));
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

void Complain(client::EventRecorder& events,
              const json::Value& job,
              ScaleLook& look,
              const std::string& message) {
  if (look.complaint == message) return;
  look.complaint = message;
  events.Record(job, "Warning", "InvalidAutoscaling", message);
}

void TellResized(client::EventRecorder& events,
                 const json::Value& job,
                 std::string_view role,
                 int64_t from,
                 int64_t to,
                 std::string_view why) {
  const bool grows = to > from;
  events.Record(job, "Normal", grows ? "Grown" : "Shrunk",
                StrCat(role, grows ? " grows" : " shrinks", " from ", from, " to ", to, ": ", why));
}

}  // namespace swell::controllers
