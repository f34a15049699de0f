#include "cli/views/view_json.h"

#include <cmath>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/pod.h"

namespace swell::cli {
namespace {

json::Value NumberJson(double number) {
  const bool whole = number == std::floor(number) && std::abs(number) < 1e15;
  return whole ? json::Value(static_cast<int64_t>(number)) : json::Value(number);
}

json::Value NumberJson(const std::optional<double>& number) {
  return number ? NumberJson(*number) : json::Value(nullptr);
}

// -1 is unlimited, as in a Project's manifest.
json::Object ShareJson(const Share& share) {
  return json::Object{{"quota", NumberJson(share.quota)},
                      {"limit", NumberJson(share.limit)},
                      {"overQuotaWeight", NumberJson(share.weight)},
                      {"allocated", NumberJson(share.allocated)},
                      {"requested", NumberJson(share.requested)},
                      {"fairShare", NumberJson(share.fair_share)},
                      {"overQuota", NumberJson(share.over)}};
}

json::Value HeldJson(json::Value held, json::Value total) {
  return json::Object{{"held", std::move(held)}, {"total", std::move(total)}};
}

}  // namespace

json::Value UnitsJson(int64_t milli) { return NumberJson(static_cast<double>(milli) / 1000.0); }

json::Value TimeJson(const std::optional<WallTime>& time) {
  return time ? json::Value(api::FormatTime(*time)) : json::Value(nullptr);
}

json::Value TextJson(std::string_view text) {
  return text.empty() ? json::Value(nullptr) : json::Value(text);
}

json::Object EventJson(const EventView& event) {
  return json::Object{{"namespace", event.ns},
                      {"firstSeen", api::FormatTime(event.first)},
                      {"lastSeen", api::FormatTime(event.last)},
                      {"count", event.count},
                      {"type", event.type},
                      {"reason", event.reason},
                      {"kind", event.object_kind},
                      {"name", event.object},
                      {"message", event.message}};
}

json::Array EventsJson(const std::vector<EventView>& events) {
  json::Array list;
  for (const EventView& event : events) list.push_back(EventJson(event));
  return list;
}

json::Array ConditionsJson(const json::Value& object) {
  json::Array list;
  for (const api::Condition& one : api::Conditions(object)) {
    list.push_back(json::Object{{"type", one.type},
                                {"status", one.status},
                                {"since", TextJson(one.last_transition_time)},
                                {"reason", TextJson(one.reason)},
                                {"message", TextJson(one.message)}});
  }
  return list;
}

json::Object PodJson(const json::Value& pod) {
  return json::Object{{"namespace", api::Namespace(pod)},
                      {"name", api::Name(pod)},
                      {"status", PodStatusWord(pod)},
                      {"ready", PodReady(pod)},
                      {"restarts", api::RestartCount(pod)},
                      {"node", TextJson(api::NodeName(pod))},
                      {"gpus", UnitsJson(MilliGpus(pod))},
                      {"gpuDevices", TextJson(api::Annotation(pod, api::keys::kGpuDevices))},
                      {"created", TextJson(api::CreationTimestamp(pod))}};
}

json::Array PodsJson(const std::vector<json::SharedValue>& pods) {
  json::Array list;
  for (const json::SharedValue& pod : pods) list.push_back(PodJson(*pod));
  return list;
}

json::Object JobJson(const JobView& job) {
  return json::Object{{"namespace", job.ns},
                      {"name", job.name},
                      {"kind", job.kind->kind},
                      {"apiVersion", job.kind->resource.ApiVersion()},
                      {"status", job.StatusText()},
                      {"reason", TextJson(job.over() ? job.EndText() : job.Reason())},
                      {"priority", TextJson(job.priority)},
                      {"project", TextJson(job.project)},
                      {"onPreemption", job.on_preemption},
                      {"preemptions", job.Preemptions().whole},
                      {"shrinks", job.Preemptions().shrinks},
                      {"gpus", UnitsJson(job.milli_gpus)},
                      {"gpusHeld", UnitsJson(job.HeldMilliGpus())},
                      {"replicas", job.replicas},
                      {"runningReplicas", job.RunningPods()},
                      {"minReplicas", job.least},
                      {"maxReplicas", job.most},
                      {"created", TimeJson(job.created)},
                      {"started", TimeJson(job.started)},
                      {"ended", TimeJson(job.ended)}};
}

json::Object NodeUseJson(const Amounts& used, const Amounts& total, int64_t unhealthy_gpus) {
  json::Value gpus = HeldJson(UnitsJson(used.milli_gpus), UnitsJson(total.milli_gpus));
  json::Set(gpus, {"unhealthy"}, unhealthy_gpus);
  return json::Object{{"gpus", std::move(gpus)},
                      {"cpu", HeldJson(UnitsJson(used.milli_cpu), UnitsJson(total.milli_cpu))},
                      {"memoryBytes", HeldJson(used.memory, total.memory)}};
}

json::Object ProjectJson(const ProjectView& project) {
  json::Object out{{"name", project.name},
                   {"parent", TextJson(project.parent)},
                   {"namespace", TextJson(project.department ? "" : project.ns)},
                   {"priority", project.priority},
                   {"nodePools", json::Array(project.pools.begin(), project.pools.end())},
                   {"pastGpuHours", NumberJson(project.past_gpu_hours)}};
  for (size_t i = 0; i < kShareNames.size(); ++i) {
    out[kShareNames[i]] = ShareJson(project.shares[i]);
  }
  return out;
}

}  // namespace swell::cli
