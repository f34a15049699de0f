#include "autoscaling/log_autoscaler.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "kube/controllers/pod_facts.h"
#include "sched_inputs/sched_convert.h"

namespace swell::autoscaling {
namespace {

constexpr Duration kLogTimeout = std::chrono::seconds(10);

double Middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// The time since when the scheduler has found no node for the pod.
std::optional<WallTime> UnplacedSince(const json::Value& pod) {
  const std::optional<api::Condition> scheduled = api::FindCondition(pod, "PodScheduled");
  if (!scheduled || !scheduled->IsFalse() || scheduled->reason != "Unschedulable" ||
      !api::NominatedNode(pod).empty()) {
    return {};
  }
  return scheduled->Since();
}

// How often `unit` goes into what is left; negative amounts go into nothing.
int64_t Times(int64_t left, int64_t unit, int64_t most) {
  return unit <= 0 ? most : std::clamp<int64_t>(left / unit, 0, most);
}

void Subtract(sched::Resources& from, const sched::Resources& what) {
  from.cpu_milli -= what.cpu_milli;
  from.memory_bytes -= what.memory_bytes;
  from.ephemeral_bytes -= what.ephemeral_bytes;
  from.pods -= 1;
  for (const auto& [name, amount] : what.extended) from.extended[name] -= amount;
}

bool Takes(const sched::NodeInfo& node, const json::Value& pod_spec) {
  if (node.unschedulable || !node.ready) return false;
  for (const auto& wanted : json::GetObject(pod_spec, {"nodeSelector"})) {
    if (!wanted.value().is_string()) return false;
    auto label = node.labels.find(std::string(wanted.key()));
    if (label == node.labels.end() || label->second != json::View(wanted.value().get_string())) {
      return false;
    }
  }
  // A pod with any toleration may tolerate this taint; the scheduler decides.
  return !json::GetArray(pod_spec, {"tolerations"}).empty() ||
         std::none_of(node.taints.begin(), node.taints.end(), [](const sched::Taint& taint) {
           return taint.effect != sched::TaintEffect::kPreferNoSchedule;
         });
}

}  // namespace

struct LogAutoscaler::Round : JobScaler::Round {
  ScaleTarget target;
  elastic::ScaleFacts facts;
  json::SharedValue first;  // the member whose log is read
  bool answered = false;    // the log has come, or is not waited for any more
};

LogAutoscaler::LogAutoscaler(controllers::Context context,
                             client::Resource resource,
                             ReadScaleTarget read)
    : JobScaler(std::move(context), std::move(resource), "autoscaler"),
      read_(read),
      nodes_(context_.informers.Of(client::resources::kNodes)) {}

void LogAutoscaler::ObserveAndDecide(const std::string& key,
                                     const json::SharedValue& job,
                                     client::WorkQueue::Done done) {
  auto target = read_(*job);
  if (!target.ok()) {
    Complain(*job, known_[key], target.status().message());
    return done(Duration::zero());
  }
  if (!*target) {
    Forget(key);
    return done(Duration::zero());
  }
  Known& known = Remember(key, *job, **target);
  if (!IsDue(known, *job, (*target)->policy.interval, done)) return;
  auto round = std::make_shared<Round>();
  Begin(*round, key, job, **target, (*target)->policy.interval, std::move(done));
  round->target = std::move(**target);
  CountPods(*round);
  bool complete = round->facts.running == round->facts.replicas;
  if (!complete || !round->first) return Decide(round);
  if (auto pushed = FreshlyPushed(*round, known)) {
    round->facts.seconds_per_step = pushed;
    return Decide(round);
  }
  ReadLog(round);
}

ScaleObservation* LogAutoscaler::Recall(const std::string& key) {
  const auto known = known_.find(key);
  return known == known_.end() ? nullptr : &known->second;
}

LogAutoscaler::Known& LogAutoscaler::Remember(const std::string& key,
                                              const json::Value& job,
                                              const ScaleTarget& target) {
  Known& known = known_[key];
  std::string_view annotation = api::Annotation(job, kScaleMemory);
  bool taken_away = annotation.empty() && !known.memory.empty();
  if (known.uid == api::Uid(job) && !taken_away) return known;
  known = Known();
  known.uid = api::Uid(job);
  known.memory = annotation;
  json::ParseLimits limits{.depth = 8, .bytes = 256 << 10};
  auto parsed = json::Parse(annotation.empty() ? "{}" : annotation, limits);
  const json::Value* memory = parsed.ok() ? json::Find(*parsed, {target.role}) : nullptr;
  if (memory != nullptr) {
    known.state = elastic::ScaleState::FromMemory(*memory);
    known.position.seen_unix_ns = json::GetInt(*memory, {"seen"});
    known.position.nodes = json::GetInt(*memory, {"nodes"});
  } else if (!taken_away) {
    const json::Value* status = json::Find(job, {"status", "elasticScaling", target.role});
    if (status != nullptr) {
      known.state = elastic::ScaleState::FromStatus(*status);
      known.state.start =
          api::ParseTime(json::GetString(*status, {"startTime"})).value_or(context_.clock.Now());
    }
  }
  return known;
}

void LogAutoscaler::CountPods(Round& round) const {
  elastic::ScaleFacts& facts = round.facts;
  facts.now = context_.clock.Now();
  facts.replicas = round.replicas;
  std::string set = ToLower(round.role);
  int64_t first = 0;
  for (const json::SharedValue& pod : pods_.ByIndex("owner", api::Uid(*round.job))) {
    if (api::Label(*pod, api::keys::kPodSet) != set || api::IsDeleting(*pod) || api::HasEnded(*pod))
      continue;
    if (!api::NodeName(*pod).empty()) {
      ++facts.placed;
    } else if (auto since = UnplacedSince(*pod)) {
      facts.unplaced += facts.now - *since >= round.interval;
    }
    if (api::Phase(*pod) != "Running") continue;
    ++facts.running;
    std::string_view name = api::Name(*pod);
    int64_t index = ParseInt(name.substr(name.rfind('-') + 1)).value_or(0);
    if (!round.first || index < first) {
      first = index;
      round.first = pod;
    }
  }
}

// Counts what is free by requests alone; the scheduler knows more, so this is a reason to try.
int64_t LogAutoscaler::RoomFor(const json::Value& pod_template, int64_t most) const {
  const json::Value& spec = api::Spec(pod_template);
  sched::Resources wanted = sched_inputs::PodRequests(spec);
  int64_t room = 0;
  for (const auto& [key, node] : nodes_.objects()) {
    if (room >= most) break;
    sched::NodeInfo info = sched_inputs::ToNodeInfo(*node);
    if (!Takes(info, spec)) continue;
    sched::Resources left = info.allocatable;
    for (const json::SharedValue& pod : pods_.ByIndex("node", info.name)) {
      if (!api::HasEnded(*pod)) Subtract(left, sched_inputs::PodRequests(api::Spec(*pod)));
    }
    int64_t here = std::min({Times(left.cpu_milli, wanted.cpu_milli, most),
                             Times(left.memory_bytes, wanted.memory_bytes, most),
                             Times(left.ephemeral_bytes, wanted.ephemeral_bytes, most),
                             Times(left.pods, 1, most)});
    for (const auto& [name, amount] : wanted.extended) {
      here = std::min(here, Times(left.extended[name], amount, most));
    }
    room += here;
  }
  return std::min(room, most);
}

// A pushed number counts once: with the step that it was pushed at.
std::optional<double> LogAutoscaler::FreshlyPushed(const Round& round, Known& known) {
  const auto pushed = PushedMetric(*round.first, round.target.metric);
  if (!pushed) return {};
  std::string_view step = api::Annotation(*round.first, api::keys::kStep);
  if (step == known.pushed_step) return {};
  known.pushed_step = step;
  return pushed;
}

void LogAutoscaler::ReadLog(const RoundPtr& round) {
  std::string pod = StrCat(round->ns, "/", api::Name(*round->first));
  // A second request would not be answered faster than the one under way.
  if (!reading_.insert(pod).second) return Decide(round);
  api::RestRequest request;
  request.method = "GET";
  request.path = client::resources::kPods.Path(round->ns, api::Name(*round->first), "log");
  request.query = LogTailQuery(*round->first, 200, 256 << 10);
  request.accept = "*/*";
  TimerId timer =
      context_.executor.After(kLogTimeout, scope_.Wrap([this, round] { OnLog(round, ""); }));
  client_.Call(std::move(request),
               [this, round, pod, timer](const Result<api::RestResponse>& answer) {
                 context_.executor.Cancel(timer);
                 reading_.erase(pod);
                 OnLog(round, answer.ok() ? answer->BodyString() : std::string());
               });
}

void LogAutoscaler::OnLog(const RoundPtr& round, std::string_view log) {
  if (round->answered) return;
  round->answered = true;
  auto known = known_.find(round->key);
  if (known == known_.end()) return Finish(round, Status::Ok());
  auto metrics = elastic::LogMetrics::Compile(round->target.pattern);
  if (!metrics.ok()) {
    Complain(*round->job, known->second,
             StrCat(round->target.pattern_field, ": ", metrics.status().message()));
    return Finish(round, Status::Ok());
  }
  std::vector<double> seen =
      metrics->Read(log, round->facts.replicas + round->target.others, known->second.position);
  if (!seen.empty()) round->facts.seconds_per_step = Middle(std::move(seen));
  Decide(round);
}

void LogAutoscaler::Decide(const RoundPtr& round) {
  auto known = known_.find(round->key);
  if (known == known_.end()) return Finish(round, Status::Ok());
  elastic::ScaleState& state = known->second.state;
  const bool stopped = state.condition == elastic::ScaleCondition::kStop && !state.held;
  if (stopped || round->facts.unplaced > 0) {
    round->facts.room = RoomFor(round->target.pod_template,
                                std::max<int64_t>(1, round->target.policy.replicas_max));
  }
  elastic::ScaleDecision decision = elastic::DecideScale(round->target.policy, round->facts, state);
  json::Value memory = state.Memory();
  if (state.goes_on) {
    json::Set(memory, {"seen"}, known->second.position.seen_unix_ns);
    json::Set(memory, {"nodes"}, known->second.position.nodes);
  }
  std::string text = json::Print(json::Object{{round->role, memory}});
  if (text == known->second.memory && !decision.replicas) return WriteStatus(round);
  known->second.memory = std::move(text);
  Write(round, decision);
}

void LogAutoscaler::Write(const RoundPtr& round, const elastic::ScaleDecision& decision) {
  WriteJob(round, decision.replicas, decision.why, known_.at(round->key).memory,
           [this, round](const Status& written) {
             if (written.ok()) return WriteStatus(round);
             // Another writer changed the job: drop the decision and start again from what it
             // wrote.
             Forget(round->key);
             Finish(round, written);
           });
}

void LogAutoscaler::WriteStatus(const RoundPtr& round) {
  const elastic::ScaleState& state = known_.at(round->key).state;
  json::Value wanted = state.Status();
  json::Set(wanted, {"startTime"}, api::FormatTime(state.start));
  const json::Value* shown = json::Find(*round->job, {"status", "elasticScaling", round->role});
  if (shown != nullptr && json::Equal(*shown, wanted)) return Finish(round, Status::Ok());
  for (std::string_view optional : {"lastReplicas", "message"}) {
    if (!json::Find(wanted, {optional})) json::Set(wanted, {optional}, json::Value(nullptr));
  }
  PatchStatus(round, std::move(wanted));
}

}  // namespace swell::autoscaling
