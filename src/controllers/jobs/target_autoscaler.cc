#include "controllers/jobs/target_autoscaler.h"

#include <algorithm>
#include <set>

#include "api/meta.h"
#include "base/strings.h"
#include "controllers/jobs/scale_target.h"
#include "controllers/pod_facts.h"
#include "controllers/workloads/resource_use.h"

namespace swell::controllers {
namespace {

constexpr size_t kLooksAtOnce = 64;
constexpr Duration kAnswerTimeout = std::chrono::seconds(10);
// A job that our own write is newer than.
constexpr Duration kStale = std::chrono::milliseconds(50);
// Of so many members the logs are read at a look.
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

struct TargetAutoscaler::Round {
  std::string key, ns, name;
  json::SharedValue job;
  TargetRole role;
  std::vector<json::SharedValue> members;  // that run
  std::string members_selector;
  std::vector<elastic::MetricLook> looks;  // like role.metrics
  client::WorkQueue::Done done;
  int pending = 0;

  std::optional<size_t> Member(std::string_view pod) const {
    for (size_t i = 0; i < members.size(); ++i) {
      if (api::Name(*members[i]) == pod) return i;
    }
    return {};
  }
};

TargetAutoscaler::TargetAutoscaler(Context context, client::Resource resource, ReadTargetRole read)
    : context_(std::move(context)),
      resource_(std::move(resource)),
      read_(read),
      jobs_(context_.informers.Of(resource_)),
      pods_(context_.informers.Of(client::resources::kPods)),
      events_(MakeRecorder(context_, "autoscaler")),
      queue_(context_.executor,
             context_.metrics,
             StrCat("target-autoscaler-", resource_.GroupResource()),
             kLooksAtOnce,
             [this](const std::string& key, client::WorkQueue::Done done) {
               Reconcile(key, std::move(done));
             }),
      client_(context_.executor, context_.server, context_.user, "autoscaler") {
  Follow(jobs_, Queued(queue_),
         [this](const json::SharedValue& job) { known_.erase(api::KeyOf(*job)); });
}

void TargetAutoscaler::Reconcile(const std::string& key, client::WorkQueue::Done done) {
  if (!context_.informers.synced()) return done(Duration(std::chrono::milliseconds(5)));
  json::SharedValue job = jobs_.Get(key);
  if (!job || api::IsDeleting(*job) || !api::ConditionIsTrue(*job, "Running")) {
    return done(Duration::zero());
  }
  auto role = read_(*job);
  if (role.ok() && !*role) {
    known_.erase(key);
    return done(Duration::zero());
  }
  Known& known = known_[key];
  if (known.uid != api::Uid(*job)) {
    known = Known();
    known.uid = api::Uid(*job);
  }
  if (!role.ok()) {
    Complain(events_, *job, known, role.status().message());
    return done(Duration::zero());
  }
  if (api::ResourceVersion(*job) < known.version) return done(kStale);
  const Duration pause = UntilNextLook(known, context_.clock.Steady(), (*role)->policy.interval);
  if (pause != Duration::zero()) return done(pause);
  auto round = std::make_shared<Round>();
  round->key = key;
  round->ns = api::Namespace(*job);
  round->name = api::Name(*job);
  round->job = job;
  round->role = std::move(**role);
  round->done = std::move(done);
  FindMembers(*round);
  if (round->members.empty()) return Finish(round, Status::Ok());
  Ask(round);
}

void TargetAutoscaler::FindMembers(Round& round) const {
  const std::string set = ToLower(round.role.role);
  for (const json::SharedValue& pod : pods_.ByIndex("owner", api::Uid(*round.job))) {
    if (api::Label(*pod, keys::kPodSet) != set || api::IsDeleting(*pod)) continue;
    if (Phase(*pod) == "Running") round.members.push_back(pod);
  }
  round.members_selector =
      json::GetString(*round.job, {"status", "replicaStatuses", round.role.role, "selector"});
  for (const MetricSpec& spec : round.role.metrics) {
    elastic::MetricLook look;
    look.name = spec.name;
    look.target = spec.target;
    look.average = spec.average;
    if (!OfAll(spec)) {
      look.of_members.resize(round.members.size());
    }
    round.looks.push_back(std::move(look));
  }
}

void TargetAutoscaler::Ask(const RoundPtr& round) {
  ++round->pending;  // until everything is asked
  bool usage = false;
  for (size_t i = 0; i < round->role.metrics.size(); ++i) {
    const MetricSpec& spec = round->role.metrics[i];
    if (spec.source == MetricSpec::Source::kExternal) {
      AskExternal(round, i);
    } else if (spec.source == MetricSpec::Source::kObject) {
      AskObject(round, i);
    } else if (spec.source == MetricSpec::Source::kResource) {
      usage = true;
    } else {
      elastic::MetricLook& look = round->looks[i];
      bool pushed = false;
      for (size_t m = 0; m < round->members.size(); ++m) {
        look.of_members[m] = PushedMetric(*round->members[m], spec.name);
        pushed = pushed || look.of_members[m];
      }
      if (!pushed) round->role.pattern.empty() ? AskPods(round, i) : AskLogs(round, i);
    }
  }
  if (usage) AskUsage(round);
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
  std::weak_ptr<bool> alive = alive_;
  TimerId timer = context_.executor.After(kAnswerTimeout, [alive, end] {
    if (!alive.expired()) end(Status(Code::kTimeout, "there was no answer in time"));
  });
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

void TargetAutoscaler::AskUsage(const RoundPtr& round) {
  Get(round, PodMetricsPath(round->ns), SelectorQuery("labelSelector", round->members_selector),
      [round](const Result<std::string>& answer) { UseUsage(*round, answer); });
}

void TargetAutoscaler::UseUsage(Round& round, const Result<std::string>& answer) {
  const auto list = answer.ok() ? json::Parse(*answer, kAnswerLimits) : answer.status();
  for (size_t i = 0; i < round.looks.size(); ++i) {
    const MetricSpec& spec = round.role.metrics[i];
    if (spec.source == MetricSpec::Source::kResource) {
      TakeUse(list, spec, round.members, round.looks[i]);
    }
  }
}

void TargetAutoscaler::AskPods(const RoundPtr& round, size_t metric) {
  const MetricSpec& spec = round->role.metrics[metric];
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
  elastic::MetricLook& look = round.looks[metric];
  auto list = answer.ok() ? json::Parse(*answer, kAnswerLimits) : answer.status();
  if (!list.ok()) {
    look.fault = StrCat("no member pushes it; ", MetricsFault(kCustomMetrics, list.status()));
    return;
  }
  for (const json::Value& item : json::GetArray(*list, {"items"})) {
    const auto member = round.Member(json::GetString(item, {"describedObject", "name"}));
    if (member) look.of_members[*member] = AmountOf(json::Find(item, {"value"}));
  }
}

void TargetAutoscaler::AskLogs(const RoundPtr& round, size_t metric) {
  auto compiled = elastic::LogMetrics::Compile(round->role.pattern);
  if (!compiled.ok()) {
    round->looks[metric].fault =
        StrCat(round->role.pattern_field, ": ", compiled.status().message());
    return;
  }
  auto pattern = std::make_shared<elastic::LogMetrics>(std::move(*compiled));
  for (size_t m = 0; m < std::min(round->members.size(), kLogsMax); ++m) {
    const json::Value& pod = *round->members[m];
    Get(round, client::resources::kPods.Path(round->ns, api::Name(pod), "log"),
        LogTailQuery(pod, 50, 64 << 10),
        [round, metric, m, pattern](const Result<std::string>& log) {
          if (!log.ok()) return;
          // Of whatever group size the lines are.
          elastic::LogPosition position;
          pattern->Read(*log, 0, position);
          const int64_t nodes = position.nodes;
          position = {};
          const std::vector<double> seen = pattern->Read(*log, nodes, position);
          if (!seen.empty()) round->looks[metric].of_members[m] = seen.back();
        });
  }
}

void TargetAutoscaler::AskExternal(const RoundPtr& round, size_t metric) {
  const MetricSpec& spec = round->role.metrics[metric];
  Get(round,
      StrCat("/apis/", kExternalMetrics, "/v1beta1/namespaces/", round->ns, "/",
             api::EscapePathSegment(spec.name)),
      SelectorQuery("labelSelector", spec.selector),
      [round, metric](const Result<std::string>& answer) {
        UseSeries(round->looks[metric], kExternalMetrics, answer);
      });
}

// A namespace's metrics are in itself; what has no namespace is found without one.
void TargetAutoscaler::AskObject(const RoundPtr& round, size_t metric) {
  const MetricSpec& spec = round->role.metrics[metric];
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

void TargetAutoscaler::UseSeries(elastic::MetricLook& look,
                                 std::string_view api_group,
                                 const Result<std::string>& answer) {
  auto list = answer.ok() ? json::Parse(*answer, kAnswerLimits) : answer.status();
  if (!list.ok()) {
    look.fault = MetricsFault(api_group, list.status());
    return;
  }
  for (const json::Value& item : json::GetArray(*list, {"items"})) {
    const auto value = AmountOf(json::Find(item, {"value"}));
    if (value) look.of_all = look.of_all.value_or(0) + *value;
  }
  if (!look.of_all) look.fault = StrCat(api_group, ": no series of it");
}

void TargetAutoscaler::Decide(const RoundPtr& round) {
  auto found = known_.find(round->key);
  if (found == known_.end()) return Finish(round, Status::Ok());
  Known& known = found->second;
  const elastic::TargetDecision decision = elastic::LookAtTargets(
      round->role.policy, context_.clock.Now(), round->role.replicas,
      static_cast<int64_t>(round->members.size()), round->looks, known.state);
  if (!decision.faults.empty() && known.faults != decision.faults) {
    events_.Record(*round->job, "Warning", "FailedGetMetrics", decision.faults);
  }
  known.recovered = !known.faults.empty() && decision.faults.empty();
  known.faults = decision.faults;
  if (decision.desired == round->role.replicas) return WriteStatus(round, decision);
  Write(round, decision);
}

void TargetAutoscaler::Write(const RoundPtr& round, const elastic::TargetDecision& decision) {
  const std::string memory = json::Print(
      json::Object{{round->role.role, json::Object{{"currentReplicas", decision.desired}}}});
  const json::Value patch =
      WithMemory(AtPath(round->role.path, decision.desired), *round->job, memory);
  client_.Patch(resource_, round->ns, round->name, client::PatchType::kMerge, patch,
                [this, round, decision](const Result<json::SharedValue>& job) {
                  auto known = known_.find(round->key);
                  if (!job.ok() || known == known_.end()) return Finish(round, job.status());
                  known->second.version = api::ResourceVersion(**job);
                  TellResized(events_, **job, round->role.role, round->role.replicas,
                              decision.desired, decision.why);
                  round->job = *job;
                  WriteStatus(round, decision);
                });
}

// Numbers move all the time; the status says what the last change was for.
void TargetAutoscaler::WriteStatus(const RoundPtr& round, const elastic::TargetDecision& decision) {
  const json::Value* shown =
      json::Find(*round->job, {"status", "elasticScaling", round->role.role});
  const bool changed = decision.desired != round->role.replicas;
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
    json::Set(wanted, {"lastReplicas"}, round->role.replicas);
  } else if (shown != nullptr && json::Find(*shown, {"lastReplicas"}) != nullptr) {
    json::Set(wanted, {"lastReplicas"}, json::GetInt(*shown, {"lastReplicas"}));
  }
  if (shown != nullptr && json::Equal(*shown, wanted)) return Finish(round, Status::Ok());
  client_.Patch(
      resource_, round->ns, round->name, client::PatchType::kMerge,
      ScalingStatusPatch(*round->job, round->role.role, std::move(wanted)),
      [this, round](const Result<json::SharedValue>& job) {
        auto known = known_.find(round->key);
        if (job.ok() && known != known_.end()) {
          known->second.version = api::ResourceVersion(**job);
        }
        Finish(round, job.status());
      },
      "status");
}

void TargetAutoscaler::Finish(const RoundPtr& round, const Status& status) {
  auto done = std::exchange(round->done, nullptr);
  if (!done) return;
  const bool gone = status.code() == Code::kNotFound || status.code() == Code::kConflict;
  if (!status.ok() && !gone) return done(status);
  done(round->role.policy.interval);
}

}  // namespace swell::controllers
