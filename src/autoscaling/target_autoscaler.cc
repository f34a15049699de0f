#include "autoscaling/target_autoscaler.h"

#include <algorithm>
#include <set>

#include "autoscaling/resource_use.h"
#include "autoscaling/scale_target.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/pod_facts.h"

namespace swell::autoscaling {
namespace {

constexpr Duration kAnswerTimeout = std::chrono::seconds(10);
// The most logs that are read in one interval.
constexpr size_t kLogsMax = 32;
constexpr std::string_view kCustomMetrics = "custom.metrics.k8s.io";
constexpr std::string_view kExternalMetrics = "external.metrics.k8s.io";
constexpr json::ParseLimits kAnswerLimits{.depth = 16, .bytes = 16 << 20};

// Whether the metric is one number, however many members there are.
bool OfAll(const MetricSpec& spec) {
  return spec.source == MetricSpec::Source::kExternal || spec.source == MetricSpec::Source::kObject;
}

std::string SelectorQuery(std::string_view name, std::string_view selector) {
  return selector.empty() ? std::string() : StrCat(name, "=", api::EscapeQuery(selector));
}

}  // namespace

struct TargetAutoscaler::Round : JobScaler::Round {
  TargetRole target;
  std::vector<json::SharedValue> members;  // that run
  std::string members_selector;
  std::vector<elastic::MetricSample> looks;  // like target.metrics
  int pending = 0;

  std::optional<size_t> Member(std::string_view pod) const {
    for (size_t i = 0; i < members.size(); ++i) {
      if (api::Name(*members[i]) == pod) return i;
    }
    return {};
  }
};

TargetAutoscaler::TargetAutoscaler(controllers::Context context,
                                   client::Resource resource,
                                   ReadTargetRole read)
    : JobScaler(std::move(context), std::move(resource), "target-autoscaler"), read_(read) {}

void TargetAutoscaler::ObserveAndDecide(const std::string& key,
                                        const json::SharedValue& job,
                                        client::WorkQueue::Done done) {
  auto target = read_(*job);
  if (target.ok() && !*target) {
    Forget(key);
    return done(Duration::zero());
  }
  Known& known = known_[key];
  if (known.uid != api::Uid(*job)) {
    known = Known();
    known.uid = api::Uid(*job);
  }
  if (!target.ok()) {
    Complain(*job, known, target.status().message());
    return done(Duration::zero());
  }
  if (!IsDue(known, *job, (*target)->policy.interval, done)) return;
  auto round = std::make_shared<Round>();
  Begin(*round, key, job, **target, (*target)->policy.interval, std::move(done));
  round->target = std::move(**target);
  FindMembers(*round);
  if (round->members.empty()) return Finish(round, Status::Ok());
  ReadMetrics(round);
}

ScaleObservation* TargetAutoscaler::Recall(const std::string& key) {
  const auto known = known_.find(key);
  return known == known_.end() ? nullptr : &known->second;
}

void TargetAutoscaler::FindMembers(Round& round) const {
  const std::string set = ToLower(round.role);
  for (const json::SharedValue& pod : pods_.ByIndex("owner", api::Uid(*round.job))) {
    if (api::Label(*pod, api::keys::kPodSet) != set || api::IsDeleting(*pod)) continue;
    if (api::Phase(*pod) == "Running") round.members.push_back(pod);
  }
  round.members_selector =
      json::GetString(*round.job, {"status", "replicaStatuses", round.role, "selector"});
  for (const MetricSpec& spec : round.target.metrics) {
    elastic::MetricSample look;
    look.name = spec.name;
    look.target = spec.target;
    look.average = spec.average;
    if (!OfAll(spec)) {
      look.of_members.resize(round.members.size());
    }
    round.looks.push_back(std::move(look));
  }
}

void TargetAutoscaler::ReadMetrics(const RoundPtr& round) {
  ++round->pending;  // until everything is asked
  bool usage = false;
  for (size_t i = 0; i < round->target.metrics.size(); ++i) {
    const MetricSpec& spec = round->target.metrics[i];
    if (spec.source == MetricSpec::Source::kExternal) {
      ReadExternalMetric(round, i);
    } else if (spec.source == MetricSpec::Source::kObject) {
      ReadObjectMetric(round, i);
    } else if (spec.source == MetricSpec::Source::kResource) {
      usage = true;
    } else {
      elastic::MetricSample& look = round->looks[i];
      bool pushed = false;
      for (size_t m = 0; m < round->members.size(); ++m) {
        look.of_members[m] = PushedMetric(*round->members[m], spec.name);
        pushed = pushed || look.of_members[m];
      }
      if (!pushed) round->target.pattern.empty() ? ReadPodMetric(round, i) : ReadLogs(round, i);
    }
  }
  if (usage) ReadUsage(round);
  if (--round->pending == 0) Decide(round);
}

void TargetAutoscaler::Get(const RoundPtr& round,
                           std::string path,
                           std::string query,
                           std::function<void(const Result<std::string>&)> heard) {
  ++round->pending;
  auto once = std::make_shared<std::function<void(const Result<std::string>&)>>(std::move(heard));
  auto end = [this, round, once](const Result<std::string>& answer) {
    if (!*once) return;
    std::exchange(*once, nullptr)(answer);
    if (--round->pending == 0) Decide(round);
  };
  TimerId timer = context_.executor.After(kAnswerTimeout, scope_.Wrap([end] {
    end(Status(Code::kTimeout, "there was no answer in time"));
  }));
  api::RestRequest request;
  request.method = "GET";
  request.path = std::move(path);
  request.query = std::move(query);
  request.accept = "*/*";
  client_.Call(std::move(request), [this, timer, end](const Result<api::RestResponse>& answer) {
    context_.executor.Cancel(timer);
    end(answer.ok() ? Result<std::string>(answer->BodyString()) : answer.status());
  });
}

void TargetAutoscaler::ReadUsage(const RoundPtr& round) {
  Get(round, PodMetricsPath(round->ns), SelectorQuery("labelSelector", round->members_selector),
      [round](const Result<std::string>& answer) { UseUsage(*round, answer); });
}

void TargetAutoscaler::UseUsage(Round& round, const Result<std::string>& answer) {
  const auto list = answer.ok() ? json::Parse(*answer, kAnswerLimits) : answer.status();
  for (size_t i = 0; i < round.looks.size(); ++i) {
    const MetricSpec& spec = round.target.metrics[i];
    if (spec.source == MetricSpec::Source::kResource) {
      TakeUse(list, spec, round.members, round.looks[i]);
    }
  }
}

void TargetAutoscaler::ReadPodMetric(const RoundPtr& round, size_t metric) {
  const MetricSpec& spec = round->target.metrics[metric];
  std::string query = SelectorQuery("labelSelector", round->members_selector);
  const std::string more = SelectorQuery("metricLabelSelector", spec.selector);
  if (!more.empty()) query += StrCat(query.empty() ? "" : "&", more);
  Get(round,
      StrCat("/apis/", kCustomMetrics, "/v1beta1/namespaces/", round->ns, "/pods/*/",
             api::EscapePathSegment(spec.name)),
      std::move(query),
      [round, metric](const Result<std::string>& answer) { UsePods(*round, metric, answer); });
}

void TargetAutoscaler::UsePods(Round& round, size_t metric, const Result<std::string>& answer) {
  elastic::MetricSample& look = round.looks[metric];
  auto list = answer.ok() ? json::Parse(*answer, kAnswerLimits) : answer.status();
  if (!list.ok()) {
    look.fault = StrCat("no member pushes it; ", MetricsFault(kCustomMetrics, list.status()));
    return;
  }
  for (const json::Value& item : api::Items(*list)) {
    const auto member = round.Member(json::GetString(item, {"describedObject", "name"}));
    if (member) look.of_members[*member] = AmountOf(json::Find(item, {"value"}));
  }
}

void TargetAutoscaler::ReadLogs(const RoundPtr& round, size_t metric) {
  auto compiled = elastic::LogMetrics::Compile(round->target.pattern);
  if (!compiled.ok()) {
    round->looks[metric].fault =
        StrCat(round->target.pattern_field, ": ", compiled.status().message());
    return;
  }
  auto pattern = std::make_shared<elastic::LogMetrics>(std::move(*compiled));
  for (size_t m = 0; m < std::min(round->members.size(), kLogsMax); ++m) {
    const json::Value& pod = *round->members[m];
    Get(round, client::resources::kPods.Path(round->ns, api::Name(pod), "log"),
        LogTailQuery(pod, 50, 64 << 10),
        [round, metric, m, pattern](const Result<std::string>& log) {
          if (!log.ok()) return;
          // The first read finds the group size, the second the values for that size.
          elastic::LogPosition position;
          pattern->Read(*log, 0, position);
          const int64_t nodes = position.nodes;
          position = {};
          const std::vector<double> seen = pattern->Read(*log, nodes, position);
          if (!seen.empty()) round->looks[metric].of_members[m] = seen.back();
        });
  }
}

void TargetAutoscaler::ReadExternalMetric(const RoundPtr& round, size_t metric) {
  const MetricSpec& spec = round->target.metrics[metric];
  Get(round,
      StrCat("/apis/", kExternalMetrics, "/v1beta1/namespaces/", round->ns, "/",
             api::EscapePathSegment(spec.name)),
      SelectorQuery("labelSelector", spec.selector),
      [round, metric](const Result<std::string>& answer) {
        UseSeries(round->looks[metric], kExternalMetrics, answer);
      });
}

// A namespace's metrics are in itself; what has no namespace is found without one.
void TargetAutoscaler::ReadObjectMetric(const RoundPtr& round, size_t metric) {
  const MetricSpec& spec = round->target.metrics[metric];
  const std::string name = api::EscapePathSegment(spec.object_name);
  const std::string value = api::EscapePathSegment(spec.name);
  const bool core = spec.object_group.empty();
  std::string path = StrCat("/apis/", kCustomMetrics, "/v1beta1/");
  if (core && spec.object_resource == "namespaces") {
    path += StrCat("namespaces/", name, "/metrics/", value);
  } else {
    const bool rooted =
        core && (spec.object_resource == "nodes" || spec.object_resource == "persistentvolumes");
    if (!rooted) path += StrCat("namespaces/", round->ns, "/");
    path += StrCat(spec.object_resource, core ? "" : ".", spec.object_group, "/", name, "/", value);
  }
  Get(round, std::move(path), SelectorQuery("metricLabelSelector", spec.selector),
      [round, metric](const Result<std::string>& answer) {
        UseSeries(round->looks[metric], kCustomMetrics, answer);
      });
}

void TargetAutoscaler::UseSeries(elastic::MetricSample& look,
                                 std::string_view api_group,
                                 const Result<std::string>& answer) {
  auto list = answer.ok() ? json::Parse(*answer, kAnswerLimits) : answer.status();
  if (!list.ok()) {
    look.fault = MetricsFault(api_group, list.status());
    return;
  }
  for (const json::Value& item : api::Items(*list)) {
    const auto value = AmountOf(json::Find(item, {"value"}));
    if (value) look.of_all = look.of_all.value_or(0) + *value;
  }
  if (!look.of_all) look.fault = StrCat(api_group, ": no series of it");
}

void TargetAutoscaler::Decide(const RoundPtr& round) {
  auto found = known_.find(round->key);
  if (found == known_.end()) return Finish(round, Status::Ok());
  Known& known = found->second;
  const elastic::TargetDecision decision = elastic::DecideByTargets(
      round->target.policy, context_.clock.Now(), round->replicas,
      static_cast<int64_t>(round->members.size()), round->looks, known.state);
  if (!decision.faults.empty() && known.faults != decision.faults) {
    events_.Record(*round->job, "Warning", "FailedGetMetrics", decision.faults);
  }
  known.recovered = !known.faults.empty() && decision.faults.empty();
  known.faults = decision.faults;
  if (decision.desired == round->replicas) return WriteStatus(round, decision);
  Write(round, decision);
}

void TargetAutoscaler::Write(const RoundPtr& round, const elastic::TargetDecision& decision) {
  const std::string memory =
      json::Print(json::Object{{round->role, json::Object{{"currentReplicas", decision.desired}}}});
  WriteJob(round, decision.desired, decision.why, memory,
           [this, round, decision](const Status& written) {
             if (!written.ok()) return Finish(round, written);
             WriteStatus(round, decision);
           });
}

// The metrics vary all the time, so the message keeps the reason of the last change.
void TargetAutoscaler::WriteStatus(const RoundPtr& round, const elastic::TargetDecision& decision) {
  const json::Value* shown = json::Find(*round->job, {"status", "elasticScaling", round->role});
  const bool changed = decision.desired != round->replicas;
  const std::string_view told = shown ? json::GetString(*shown, {"message"}) : std::string_view();
  auto known = known_.find(round->key);
  const bool news = changed || told.empty() || (known != known_.end() && known->second.recovered);
  std::string message(news ? decision.why : told);
  if (!decision.faults.empty()) message = decision.faults;
  json::Value wanted = json::Object{{"elasticCondition", "Target"},
                                    {"continue", true},
                                    {"currentReplicas", decision.desired},
                                    {"message", message}};
  if (changed) {
    json::Set(wanted, {"lastReplicas"}, round->replicas);
  } else if (shown != nullptr && json::Find(*shown, {"lastReplicas"}) != nullptr) {
    json::Set(wanted, {"lastReplicas"}, json::GetInt(*shown, {"lastReplicas"}));
  }
  if (shown != nullptr && json::Equal(*shown, wanted)) return Finish(round, Status::Ok());
  PatchStatus(round, std::move(wanted));
}

}  // namespace swell::autoscaling
