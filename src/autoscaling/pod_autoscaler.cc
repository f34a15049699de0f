#include "autoscaling/pod_autoscaler.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "autoscaling/resource_use.h"
#include "base/duration.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/quantity.h"
#include "kube/api/meta/selector.h"
#include "kube/api/objects/pod.h"
#include "kube/controllers/cluster/cluster_resources.h"
#include "kube/controllers/pod_facts.h"
#include "kube/controllers/queue.h"
#include "kube/controllers/workload.h"

namespace swell::autoscaling {
namespace {

constexpr size_t kLooksAtOnce = 64;
constexpr Duration kInterval = std::chrono::seconds(15);
constexpr Duration kUseTimeout = std::chrono::seconds(10);
constexpr double kTolerance = 0.1;
// Kubernetes' defaults for processors, which starting takes more of than running does.
constexpr Duration kStarting = std::chrono::minutes(5);
constexpr Duration kFirstReady = std::chrono::seconds(30);
constexpr Duration kDownWindow = std::chrono::seconds(300);
constexpr json::ParseLimits kAnswerLimits{.depth = 16, .bytes = 16 << 20};

using elastic::MetricSample;
using elastic::PaceRules;
using Limit = elastic::PacedReplicas::Limit;

void ReadRules(const json::Value* written, PaceRules& rules) {
  if (written == nullptr) return;
  if (json::Find(*written, {"stabilizationWindowSeconds"}) != nullptr) {
    rules.window = std::chrono::seconds(json::GetInt(*written, {"stabilizationWindowSeconds"}));
  }
  const std::string_view select = json::GetString(*written, {"selectPolicy"});
  if (select == "Min") rules.select = PaceRules::Select::kMin;
  if (select == "Disabled") rules.select = PaceRules::Select::kDisabled;
  const json::Array& policies = json::GetArray(*written, {"policies"});
  if (policies.empty()) return;
  rules.policies.clear();
  for (const json::Value& policy : policies) {
    rules.policies.push_back({json::GetString(policy, {"type"}) == "Percent",
                              json::GetInt(policy, {"value"}),
                              std::chrono::seconds(json::GetInt(policy, {"periodSeconds"}))});
  }
}

elastic::Pace PaceOf(const json::Value& autoscaler) {
  elastic::Pace pace{.replicas_min = json::GetInt(autoscaler, {"spec", "minReplicas"}, 1),
                     .replicas_max = json::GetInt(autoscaler, {"spec", "maxReplicas"})};
  pace.up.policies = elastic::UsualGrowth(kInterval);
  pace.down.policies = {{.percent = true, .value = 100, .period = kInterval}};
  pace.down.window = kDownWindow;
  ReadRules(json::Find(autoscaler, {"spec", "behavior", "scaleUp"}), pace.up);
  ReadRules(json::Find(autoscaler, {"spec", "behavior", "scaleDown"}), pace.down);
  return pace;
}

// Whether what it uses of its processors says nothing yet, by Kubernetes' rules.
bool IsStarting(const json::Value& pod, const json::Value* metrics, WallTime now) {
  const std::optional<api::Condition> ready = api::FindCondition(pod, "Ready");
  const auto started = api::StartTime(pod);
  if (!ready || !started) return true;
  const bool is = ready->IsTrue();
  const auto since = ready->Since();
  if (!since) return !is;
  if (now - *started >= kStarting) return !is && *started + kFirstReady > *since;
  if (!is || metrics == nullptr) return !is;
  // Measured before it was ready.
  const auto at = api::ParseTime(json::GetString(*metrics, {"timestamp"}));
  const auto window = ParseDuration(json::GetString(*metrics, {"window"}));
  return at && window && *at < *since + *window;
}

// By the pod's name.
using PodMetrics = std::unordered_map<std::string_view, const json::Value*>;

PodMetrics MetricsOfPods(const Result<json::Value>& use) {
  PodMetrics metrics;
  if (!use.ok()) return metrics;
  for (const json::Value& item : api::Items(*use)) {
    metrics.emplace(api::Name(item), &item);
  }
  return metrics;
}

// As the API writes it, so that the same amount is not a change.
std::string QuantityText(double amount, bool processors) {
  if (!processors) return std::to_string(std::llround(amount));
  return api::Quantity::Parse(StrCat(std::llround(amount * 1000), "m"))->ToString();
}

// The average over the members with a known value; empty if no member has one.
std::optional<double> Average(const MetricSample& look) {
  double sum = 0;
  double known = 0;
  for (const auto& one : look.of_members) {
    sum += one.value_or(0);
    known += one ? 1 : 0;
  }
  return known > 0 ? std::optional(sum / known) : std::nullopt;
}

// As spec.metrics names it.
std::string_view TypeOf(const MetricSpec& spec) {
  switch (spec.source) {
    case MetricSpec::Source::kPods:
      return "Pods";
    case MetricSpec::Source::kObject:
      return "Object";
    case MetricSpec::Source::kExternal:
      return "External";
    case MetricSpec::Source::kResource:
      break;
  }
  return spec.container.empty() ? "Resource" : "ContainerResource";
}

std::string FaultReason(const MetricSpec& spec) {
  return StrCat("FailedGet", TypeOf(spec), "Metric");
}

// "cpu resource utilization (percentage of request)", as Kubernetes names what it scales by.
std::string NameOf(const MetricSpec& spec) {
  std::string name = StrCat(spec.name, spec.container.empty() ? "" : " container", " resource");
  return spec.utilization ? name + " utilization (percentage of request)" : name;
}

// A metric's entry in the status.
json::Value Measured(const MetricSpec& spec,
                     const std::vector<json::SharedValue>& members,
                     const Result<json::Value>& use,
                     const MetricSample& look) {
  json::Object entry{{"type", TypeOf(spec)}};
  const auto average = Average(look);
  if (!look.fault.empty() || !average) return entry;
  json::Object current;
  if (spec.utilization) current["averageUtilization"] = static_cast<int64_t>(*average);
  MetricSpec amount = spec;
  amount.utilization = false;
  MetricSample amounts;
  amounts.of_members.resize(members.size());
  TakeUse(use, amount, members, amounts);
  current["averageValue"] = QuantityText(Average(amounts).value_or(0), spec.name == "cpu");
  json::Object source{{"name", spec.name}, {"current", std::move(current)}};
  if (!spec.container.empty()) source["container"] = spec.container;
  entry[spec.container.empty() ? "resource" : "containerResource"] = std::move(source);
  return entry;
}

std::string_view LimitReason(Limit limit) {
  switch (limit) {
    case Limit::kMaximum:
      return "TooManyReplicas";
    case Limit::kMinimum:
      return "TooFewReplicas";
    case Limit::kUpRate:
      return "ScaleUpLimit";
    case Limit::kDownRate:
      return "ScaleDownLimit";
    case Limit::kNone:
      break;
  }
  return "DesiredWithinRange";
}

std::string_view LimitMessage(Limit limit) {
  switch (limit) {
    case Limit::kMaximum:
      return "more replicas are asked for than maxReplicas";
    case Limit::kMinimum:
      return "fewer replicas are asked for than minReplicas";
    case Limit::kUpRate:
      return "more replicas are asked for than behavior.scaleUp allows yet";
    case Limit::kDownRate:
      return "fewer replicas are asked for than behavior.scaleDown allows yet";
    case Limit::kNone:
      break;
  }
  return "the number that is asked for is within range";
}

}  // namespace

struct PodAutoscaler::Round {
  std::string key, ns;
  json::SharedValue autoscaler;
  client::Resource resource;  // of its target
  json::SharedValue scale;
  std::vector<MetricSpec> metrics;
  api::LabelSelector selector;
  std::vector<json::SharedValue> pods;
  elastic::Pace pace;
  json::Value status;  // under construction
  client::WorkQueue::Done done;

  int64_t replicas() const { return json::GetInt(*scale, {"spec", "replicas"}); }
};

PodAutoscaler::PodAutoscaler(controllers::Context context, const api::Scheme& scheme)
    : context_(std::move(context)),
      scheme_(scheme),
      autoscalers_(context_.informers.Of(client::resources::kPodAutoscalers)),
      pods_(context_.informers.Of(client::resources::kPods)),
      events_(controllers::MakeRecorder(context_, "horizontal-pod-autoscaler")),
      queue_(controllers::MakeQueue(
          context_, "horizontalpodautoscalers", kLooksAtOnce, this, &PodAutoscaler::Reconcile)),
      client_(context_.executor, context_.server, context_.user, "horizontal-pod-autoscaler") {
  controllers::Follow(
      autoscalers_, controllers::Queued(queue_),
      [this](const json::SharedValue& autoscaler) { known_.erase(api::KeyOf(*autoscaler)); });
}

void PodAutoscaler::Reconcile(const std::string& key, client::WorkQueue::Done done) {
  json::SharedValue autoscaler = autoscalers_.Get(key);
  if (!autoscaler || api::IsDeleting(*autoscaler)) return done(Duration::zero());
  Known& known = known_[key];
  if (known.uid != api::Uid(*autoscaler)) {
    known = Known();
    known.uid = api::Uid(*autoscaler);
  }
  const Duration pause = UntilNextLook(known, context_.clock.Steady(), kInterval);
  if (pause != Duration::zero()) return done(pause);
  auto round = std::make_shared<Round>();
  round->key = key;
  round->ns = api::Namespace(*autoscaler);
  round->autoscaler = autoscaler;
  round->status = json::Object(json::GetObject(*autoscaler, {"status"}));
  round->pace = PaceOf(*autoscaler);
  round->done = std::move(done);
  const json::Value& ref = *json::Find(*autoscaler, {"spec", "scaleTargetRef"});
  const auto resource =
      controllers::ResourceOfKind(scheme_, api::ApiVersionOf(ref), api::KindOf(ref));
  if (!resource) {
    return Fail(round, "AbleToScale", "FailedGetScale",
                StrCat("no kind ", Quote(api::KindOf(ref)), " is served in version ",
                       Quote(api::ApiVersionOf(ref))));
  }
  round->resource = *resource;
  api::RestRequest request;
  request.method = "GET";
  request.path = resource->Path(round->ns, json::GetString(ref, {"name"}), "scale");
  request.accept = "application/json";
  client_.Call(std::move(request),
               scope_.Wrap([this, round](const Result<api::RestResponse>& answer) {
                 auto scale = answer.ok() ? json::Parse(answer->BodyString()) : answer.status();
                 if (!scale.ok()) return OnScale(round, scale.status());
                 OnScale(round, std::make_shared<const json::Value>(std::move(*scale)));
               }));
}

void PodAutoscaler::OnScale(const RoundPtr& round, const Result<json::SharedValue>& scale) {
  if (!scale.ok()) {
    return Fail(round, "AbleToScale", "FailedGetScale",
                StrCat("the target's scale cannot be read: ", scale.status().message()));
  }
  round->scale = *scale;
  SetCondition(*round, "AbleToScale", true, "SucceededGetScale", "the target's scale was read");
  json::Set(round->status, {"currentReplicas"}, json::GetInt(**scale, {"status", "replicas"}));
  const int64_t replicas = round->replicas();
  json::Set(round->status, {"desiredReplicas"}, replicas);
  if (replicas == 0 && round->pace.replicas_min != 0) {
    SetCondition(*round, "ScalingActive", false, "ScalingDisabled",
                 "the target is scaled to zero, and stays so");
    return WriteStatus(round);
  }
  if (replicas > round->pace.replicas_max) {
    return Rescale(round, round->pace.replicas_max,
                   "Current number of replicas above Spec.MaxReplicas");
  }
  if (replicas < round->pace.replicas_min) {
    return Rescale(round, round->pace.replicas_min,
                   "Current number of replicas below Spec.MinReplicas");
  }
  const std::string_view selector = json::GetString(**scale, {"status", "selector"});
  auto parsed = api::LabelSelector::Parse(selector);
  if (selector.empty() || !parsed.ok()) {
    return Fail(round, "ScalingActive", "InvalidSelector",
                "the target's scale names no selector of its pods");
  }
  round->selector = std::move(*parsed);
  auto metrics =
      ReadMetricSpecs(json::GetArray(*round->autoscaler, {"spec", "metrics"}), "spec.metrics");
  if (!metrics.ok()) {
    return Fail(round, "ScalingActive", "InvalidMetricSourceType", metrics.status().message());
  }
  round->metrics = std::move(*metrics);
  ReadUse(round);
}

void PodAutoscaler::ReadUse(const RoundPtr& round) {
  api::RestRequest request;
  request.method = "GET";
  request.path = PodMetricsPath(round->ns);
  request.query = StrCat("labelSelector=", api::EscapeQuery(round->selector.ToString()));
  request.accept = "application/json";
  const std::function<void(const Result<json::Value>&)> on_use = scope_.Wrap(
      [this, round, called = std::make_shared<bool>(false)](const Result<json::Value>& use) {
        if (!std::exchange(*called, true)) OnUse(round, use);
      });
  const TimerId timer = context_.executor.After(
      kUseTimeout, [on_use] { on_use(Status(Code::kTimeout, "there was no answer in time")); });
  client_.Call(std::move(request),
               scope_.Wrap([this, on_use, timer](const Result<api::RestResponse>& answer) {
                 context_.executor.Cancel(timer);
                 on_use(answer.ok() ? json::Parse(answer->BodyString(), kAnswerLimits)
                                    : Result<json::Value>(answer.status()));
               }));
}

void PodAutoscaler::FindPods(Round& round) const {
  const std::string prefix = round.ns + "/";
  const auto& pods = pods_.objects();
  for (auto it = pods.lower_bound(prefix); it != pods.end() && it->first.starts_with(prefix);
       ++it) {
    const json::Value& pod = *it->second;
    if (api::IsDeleting(pod) || api::Phase(pod) == "Failed") continue;
    if (round.selector.Matches(json::Value(api::Labels(pod)))) {
      round.pods.push_back(it->second);
    }
  }
}

void PodAutoscaler::OnUse(const RoundPtr& round, const Result<json::Value>& use) {
  FindPods(*round);
  const PodMetrics metrics = MetricsOfPods(use);
  const WallTime now = context_.clock.Now();
  auto is_starting = [&metrics, now](const json::Value& pod) {
    const auto found = metrics.find(api::Name(pod));
    return IsStarting(pod, found == metrics.end() ? nullptr : found->second, now);
  };
  std::vector<MetricSample> looks;
  json::Array current;
  for (const MetricSpec& spec : round->metrics) {
    MetricSample look{.name = spec.name, .target = spec.target, .average = spec.average};
    std::vector<json::SharedValue> members;
    for (const json::SharedValue& pod : round->pods) {
      const bool starting =
          api::Phase(*pod) == "Pending" || (spec.name == "cpu" && is_starting(*pod));
      if (starting) {
        ++look.unready;
      } else {
        members.push_back(pod);
      }
    }
    look.of_members.resize(members.size());
    if (spec.source == MetricSpec::Source::kResource) {
      TakeUse(use, spec, members, look);
    } else {
      look.fault = "only what pods use of cpu and memory is known here";
    }
    current.push_back(Measured(spec, members, use, look));
    looks.push_back(std::move(look));
  }
  const int64_t replicas = round->replicas();
  const elastic::TargetProposal proposal = elastic::ProposeReplicas(
      kTolerance, replicas, static_cast<int64_t>(round->pods.size()), looks);
  json::Set(round->status, {"currentMetrics"}, std::move(current));
  if (!proposal.metric || (proposal.faulty && proposal.replicas < replicas)) {
    return Fail(round, "ScalingActive", FaultReason(round->metrics[*proposal.faulty]),
                proposal.faults);
  }
  const std::string name = NameOf(round->metrics[*proposal.metric]);
  SetCondition(*round, "ScalingActive", true, "ValidMetricFound",
               "a number of replicas follows from " + name);
  ApplyBehavior(round, proposal.replicas,
                proposal.replicas > replicas ? name + " above target" : "All metrics below target");
}

void PodAutoscaler::ApplyBehavior(const RoundPtr& round, int64_t proposed, const std::string& why) {
  const auto known = known_.find(round->key);
  if (known == known_.end()) return round->done(Duration::zero());  // deleted meanwhile
  const int64_t replicas = round->replicas();
  const elastic::PacedReplicas paced =
      elastic::Follow(round->pace, context_.clock.Now(), replicas, proposed, known->second.pace);
  if (paced.stable > proposed) {
    SetCondition(*round, "AbleToScale", true, "ScaleDownStabilized",
                 "more were asked for within the window of scaling down");
  } else if (paced.stable < proposed) {
    SetCondition(*round, "AbleToScale", true, "ScaleUpStabilized",
                 "fewer were asked for within the window of scaling up");
  } else {
    SetCondition(*round, "AbleToScale", true, "ReadyForNewScale",
                 "nothing asked for lately holds it back");
  }
  SetCondition(*round, "ScalingLimited", paced.limit != Limit::kNone, LimitReason(paced.limit),
               LimitMessage(paced.limit));
  if (paced.replicas == replicas) return WriteStatus(round);
  Rescale(round, paced.replicas, why);
}

void PodAutoscaler::Rescale(const RoundPtr& round, int64_t replicas, const std::string& why) {
  const int64_t before = round->replicas();
  json::Value scale = *round->scale;
  json::Set(scale, {"spec", "replicas"}, replicas);
  client_.Update(
      round->resource, scale,
      scope_.Wrap([this, round, before, replicas, why](const Result<json::SharedValue>& written) {
        const std::string what = StrCat("New size: ", replicas, "; reason: ", why);
        if (!written.ok()) {
          events_.Record(*round->autoscaler, "Warning", "FailedRescale",
                         StrCat(what, "; error: ", written.status().message()));
          SetCondition(*round, "AbleToScale", false, "FailedUpdateScale",
                       StrCat("the target's scale was not written: ", written.status().message()));
          return WriteStatus(round);
        }
        const WallTime now = context_.clock.Now();
        const auto known = known_.find(round->key);
        if (known != known_.end()) {
          elastic::NoteChange(round->pace, now, replicas - before, known->second.pace);
        }
        events_.Record(*round->autoscaler, "Normal", "SuccessfulRescale", what);
        SetCondition(*round, "AbleToScale", true, "SucceededRescale",
                     StrCat("the target was scaled to ", replicas));
        json::Set(round->status, {"desiredReplicas"}, replicas);
        json::Set(round->status, {"lastScaleTime"}, api::FormatTime(now));
        WriteStatus(round);
      }),
      "scale");
}

void PodAutoscaler::Fail(const RoundPtr& round,
                         std::string_view condition,
                         std::string_view reason,
                         const std::string& message) {
  events_.Record(*round->autoscaler, "Warning", reason, message);
  SetCondition(*round, condition, false, reason, message);
  WriteStatus(round);
}

void PodAutoscaler::SetCondition(Round& round,
                                 std::string_view type,
                                 bool value,
                                 std::string_view reason,
                                 std::string_view message) const {
  controllers::SetStatusCondition(round.status, type, value, reason, message, context_.clock.Now());
}

void PodAutoscaler::WriteStatus(const RoundPtr& round) {
  const json::Value& autoscaler = *round->autoscaler;
  if (const json::Value* generation = json::Find(autoscaler, {"metadata", "generation"})) {
    json::Set(round->status, {"observedGeneration"}, *generation);
  }
  const json::Value* before = api::FindStatus(autoscaler);
  if (before != nullptr && json::Equal(*before, round->status)) return round->done(kInterval);
  const json::Value patch = json::Object{{"metadata", json::Object{{"uid", api::Uid(autoscaler)}}},
                                         {"status", round->status}};
  client_.Patch(
      client::resources::kPodAutoscalers, round->ns, api::Name(autoscaler),
      client::PatchType::kMerge, patch,
      [round](const Result<json::SharedValue>& written) {
        const Code code = written.ok() ? Code::kOk : written.status().code();
        if (written.ok() || code == Code::kNotFound || code == Code::kConflict) {
          return round->done(kInterval);
        }
        round->done(written.status());
      },
      "status");
}

}  // namespace swell::autoscaling
