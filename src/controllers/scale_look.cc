#include "controllers/scale_look.h"

#include "api/meta.h"
#include "api/swell_keys.h"
#include "base/strings.h"

namespace swell::controllers {

Duration UntilNextLook(ScaleLook& look, SteadyTime now, Duration interval) {
  const Duration since = now - look.looked.value_or(SteadyTime{});
  if (look.looked && since < interval) return interval - since;
  look.looked = now;
  return Duration::zero();
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
