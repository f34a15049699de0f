#include "jobs/decisions/job_size.h"

#include <algorithm>
#include <utility>

#include "autoscaling/scale_target.h"
#include "base/median.h"
#include "base/strings.h"
#include "elastic/metric_scaler.h"
#include "json/texts.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/context.h"
#include "kube/controllers/pod_facts.h"

namespace swell::jobs {
namespace {

constexpr size_t kHistoryMax = 48;
constexpr size_t kReasonBytesMax = 200;    // of each change in the history
constexpr size_t kMessageBytesMax = 1000;  // the scheduler names a node at its end
// Members that come one after the other are one change.
constexpr Duration kOneChange = std::chrono::seconds(5);
constexpr std::string_view kMemberEnded = "a member ended";
// Throughput varies all the time. Only a change of this part of it is written.
constexpr double kThroughputChangeMin = 0.2;

std::string Shortened(std::string text, size_t most) {
  if (text.size() > most) {
    text.resize(most);
    while (!text.empty() && (text.back() & 0xC0) == 0x80) text.pop_back();
    if (!text.empty() && (text.back() & 0x80) != 0) text.pop_back();
    text += "...";
  }
  return text;
}

bool Runs(const json::Value& pod) {
  return api::Phase(pod) == "Running" && !api::IsDeleting(pod) && !controllers::WasPreempted(pod);
}

struct SizeEvent {
  std::string_view reason;
  std::string message;
};

// The event of a job without a pod group. The scheduler reports for groups.
SizeEvent ChangeOfUngrouped(int64_t before, int64_t now, int64_t desired, std::string_view why) {
  if (before == 0) return {"Resumed", StrCat("Resumed with ", now, " of ", desired, " members")};
  const std::string numbers = StrCat(" from ", before, " to ", now, " of ", desired, " members");
  if (now > before) return {"Grown", StrCat("Grew", numbers)};
  return {"Shrunk", StrCat("Shrunk", numbers, ": ", why)};
}

// The throughput that a pod reported at the present group size; 0 if no pod has.
double Throughput(const std::map<std::string, json::SharedValue>& pods, int64_t members) {
  double found = 0;
  for (const auto& [name, pod] : pods) {
    std::string_view text = api::Annotation(*pod, api::keys::kMetrics);
    if (text.empty() || !Runs(*pod)) continue;
    auto metrics = json::Parse(text, {.depth = 4, .bytes = 16 << 10});
    if (!metrics.ok() || json::GetInt(*metrics, {"world"}) != members) continue;
    for (std::string_view metric : {"records_per_second", "steps_per_second"}) {
      const json::Value* value = json::Find(*metrics, {metric});
      if (value == nullptr || !value->is_number()) continue;
      found = std::max(found, value->to_number<double>());
      break;
    }
  }
  return found;
}

// What the autoscaler has recorded of the role; null if it has not.
json::Value MemoryOf(const json::Value& job, const ReplicaSpec& replica) {
  std::string_view memory = api::Annotation(job, autoscaling::kScaleMemory);
  if (memory.empty()) return {};
  auto parsed = json::Parse(memory, {.depth = 8, .bytes = 256 << 10});
  const json::Value* of = parsed.ok() ? json::Find(*parsed, {replica.type}) : nullptr;
  return of ? *of : json::Value();
}

// Whether the autoscaler, which reports its own decisions, has set the role to this number.
bool SetByMetric(const json::Value& memory, const ReplicaSpec& replica) {
  return memory.is_object() && !json::GetBool(memory, {"held"}) &&
         json::GetInt(memory, {"currentReplicas"}, -1) == replica.requested;
}

// Minibatches per second of `members` together, from the steps that the autoscaler has observed; 0
// if it has observed none with that many.
double ObservedThroughput(const json::Value& memory, int64_t members) {
  if (!memory.is_object()) return 0;
  elastic::ScaleState state = elastic::ScaleState::FromMemory(memory);
  const std::vector<double>& seconds = state.series[members];
  if (seconds.empty()) {
    // What the last decision was taken by.
    const bool same = state.current == members && state.reference > 0;
    return same ? static_cast<double>(members) / state.reference : 0;
  }
  const double middle = UpperMedian(seconds);
  return middle > 0 ? static_cast<double>(members) / middle : 0;
}

// Sums over the roles that may change size; `members` counts all running pods.
struct Tally {
  int64_t least = 0, most = 0, desired = 0, now = 0, members = 0;
  bool by_metric = false;
  double observed = 0;
};

Tally Count(const json::Value& job,
            const std::string& name,
            const JobSpec& spec,
            const std::map<std::string, json::SharedValue>& pods) {
  Tally tally;
  for (const ReplicaSpec& replica : spec.replicas) {
    int64_t running = 0;
    for (int64_t k = 0; k < replica.replicas; ++k) {
      auto it = pods.find(replica.PodName(name, k));
      running += it != pods.end() && Runs(*it->second);
    }
    tally.members += running;
    if (!replica.max_member) continue;
    tally.now += running;
    tally.desired += replica.replicas;
    tally.least += replica.min_member.value_or(replica.replicas);
    tally.most += *replica.max_member;
    const json::Value memory = MemoryOf(job, replica);
    tally.by_metric = tally.by_metric || SetByMetric(memory, replica);
    tally.observed = std::max(tally.observed, ObservedThroughput(memory, running));
  }
  return tally;
}

void NoteThroughput(json::Value& entry, double throughput) {
  if (throughput <= 0) return;
  double known = json::GetDouble(entry, {"throughput"});
  if (known > 0 && std::abs(throughput - known) < kThroughputChangeMin * known) return;
  json::Set(entry, {"throughput"}, throughput);
}

// Each member runs, or waits for the scheduler to find room.
bool NoMemberStarts(const JobPass& pass) {
  for (const ReplicaSpec& replica : pass.spec.replicas) {
    if (!replica.max_member) continue;
    for (int64_t k = 0; k < replica.replicas; ++k) {
      const auto pod = pass.pods.find(replica.PodName(pass.name, k));
      if (pod == pass.pods.end()) return false;
      if (Runs(*pod->second)) continue;
      const bool waits = !api::IsBound(*pod->second) && !api::IsDeleting(*pod->second) &&
                         api::FindCondition(*pod->second, "PodScheduled").has_value();
      if (!waits) return false;
    }
  }
  return true;
}

// Why fewer members run than are wanted, or why no more are wanted.
std::string WhyNoMore(const JobPass& pass, int64_t now, int64_t desired) {
  if (pass.IsTrue("Succeeded") || pass.IsTrue("Failed") || pass.IsTrue("Suspended")) return "";
  if (now >= desired) {
    for (const ReplicaSpec& replica : pass.spec.replicas) {
      if (!replica.max_member || replica.requested == replica.replicas) continue;
      return StrCat(replica.requested, " were asked for; ", replica.replicas,
                    replica.requested > replica.replicas ? " is the most" : " is the least");
    }
    return "";
  }
  std::string waits;
  for (const auto& [name, pod] : pass.pods) {
    if (!pass.Wants(name) || api::IsBound(*pod)) continue;
    const std::optional<api::Condition> placed = api::FindCondition(*pod, "PodScheduled");
    if (placed) waits = placed->message;
    if (!waits.empty()) break;
  }
  std::string text = StrCat("waits for ", desired - now, " more");
  return waits.empty() ? text : Shortened(StrCat(text, ": ", waits), kMessageBytesMax);
}

// The message of the preemption that took members; empty: none did.
std::string TakenBy(const JobPass& pass, const std::string& preempted) {
  for (const auto& [name, pod] : pass.pods) {
    if (controllers::WasPreempted(*pod)) return controllers::PreemptionMessage(*pod);
  }
  return preempted;
}

std::string WhyChanged(const JobPass& pass,
                       const std::vector<api::SizeChange>& history,
                       int64_t now,
                       int64_t desired,
                       const std::string& preempted) {
  for (std::string_view word : {"Succeeded", "Failed", "Suspended"}) {
    if (pass.IsTrue(word)) return ToLower(word);
  }
  if (history.empty()) return "started";
  const int64_t before = history.back().replicas;
  const int64_t wanted = history.back().desired;
  if (now < before) {
    std::string by = TakenBy(pass, preempted);
    if (!by.empty()) return Shortened(std::move(by), kReasonBytesMax);
  }
  if (wanted != desired) return StrCat("scaled from ", wanted, " to ", desired);
  if (now < before) return std::string(kMemberEnded);
  return before == 0 ? "resumed" : "room again";
}

// Whether members were taken after `last`. Those that were taken before may take a while to stop.
bool TakenSince(const JobPass& pass, std::optional<WallTime> last, const std::string& preempted) {
  if (!preempted.empty()) return true;
  return std::any_of(pass.pods.begin(), pass.pods.end(), [&](const auto& named) {
    const json::Value& pod = *named.second;
    return controllers::WasPreempted(pod) &&
           (!last || controllers::PreemptionTime(pod).value_or(pass.now) > *last);
  });
}

// Members of one growth come within moments of each other.
bool ContinuesGrowth(const std::vector<api::SizeChange>& changes,
                     int64_t now,
                     int64_t desired,
                     WallTime time) {
  if (changes.empty() || now <= changes.back().replicas) return false;
  const api::SizeChange& last = changes.back();
  const bool grew = changes.size() < 2 || changes[changes.size() - 2].replicas < last.replicas;
  return grew && last.time && time - *last.time < kOneChange && last.desired == desired;
}

bool RestsOrIsOver(const JobPass& pass) {
  return pass.IsTrue("Succeeded") || pass.IsTrue("Failed") || pass.IsTrue("Suspended");
}

}  // namespace

// A change of size that was requested is reported when it has happened, with the number that was
// reached. Members that wait for room are the scheduler's to report once they have it.
void ElasticSize::ReportResize(JobPass& pass, const Now& size) {
  const auto resize = resizing_.find(pass.uid());
  if (resize == resizing_.end()) return;
  const bool reached = size.now == size.desired;
  if (!reached && !(size.now < size.desired && NoMemberStarts(pass))) return;
  const int64_t before = resize->second;
  resizing_.erase(resize);
  // The first members of a job are its start.
  if (size.now == before || before == 0) return;
  const std::string_view word = size.now < before ? "Shrunk" : "Grown";
  pass.AddEvent(
      "Normal", word,
      StrCat(word, " from ", before, " to ", size.now, reached ? "" : StrCat(" of ", size.desired),
             " replicas, as asked (", size.least, " to ", size.most, ")"));
}

void ElasticSize::NoteChange(JobPass& pass,
                             const Now& size,
                             const std::vector<api::SizeChange>& changes,
                             const std::string& preempted,
                             json::Array& history) const {
  const int64_t before = changes.empty() ? 0 : changes.back().replicas;
  const bool began = !changes.empty() || size.now > 0;
  if (!began || size.now == before) return;
  const std::string why = WhyChanged(pass, changes, size.now, size.desired, preempted);
  const bool continues = ContinuesGrowth(changes, size.now, size.desired, pass.now);
  // The job's own event reports a resume.
  const bool rested = !changes.empty() && changes.back().reason == "suspended";
  if (!pass.spec.grouped && !history.empty() && !continues && !resizing_.contains(pass.uid()) &&
      !RestsOrIsOver(pass) && !rested && why != kMemberEnded) {
    SizeEvent event = ChangeOfUngrouped(before, size.now, size.desired, why);
    pass.AddEvent("Normal", event.reason, std::move(event.message));
  }
  if (continues) {
    json::Set(history.back(), {"replicas"}, size.now);
    json::Remove(history.back(), {"throughput"});
  } else {
    history.push_back(json::Object{{"time", api::FormatTime(pass.now)},
                                   {"replicas", size.now},
                                   {"desired", size.desired},
                                   {"reason", why}});
  }
  if (history.size() > kHistoryMax) history.erase(history.begin());
}

// When the whole job is preempted, its members may be marked one after the other. The first of them
// look like a shrink; that count is taken back.
void ElasticSize::CountShrinks(const JobPass& pass,
                               const Now& size,
                               const api::JobSize& known,
                               const std::string& preempted,
                               json::Object& status) const {
  const int64_t before = known.history.empty() ? 0 : known.history.back().replicas;
  const bool one = known.last_shrink && pass.now - *known.last_shrink < kOneChange;
  const bool smaller = size.now < before && !RestsOrIsOver(pass);
  const bool keeps = size.now >= std::max<int64_t>(1, size.least);
  int64_t shrinks = known.shrinks;
  std::optional<WallTime> last = known.last_shrink;
  if (smaller && keeps && !one && TakenSince(pass, last, preempted)) {
    ++shrinks;
    last = pass.now;
  } else if (smaller && !keeps && one && shrinks > 0 && !TakenBy(pass, preempted).empty()) {
    --shrinks;
    last.reset();
  }
  if (shrinks > 0) status["shrinks"] = shrinks;
  if (last) status["lastShrinkTime"] = api::FormatTime(*last);
}

void ElasticSize::Fill(JobPass& pass, const std::string& preempted) {
  const std::string_view field = pass.kind.kubedl_style_status() ? "size" : "elastic";
  const Tally tally = Count(*pass.job, pass.name, pass.spec, pass.pods);
  const auto& [least, most, desired, now, members, by_metric, observed] = tally;
  if (most == 0) return;  // no role of this job may change its size
  static const json::Value kNone;
  const json::Value* document = json::Find(pass.status, {field});
  const api::JobSize known(document != nullptr ? *document : kNone);
  const int64_t wanted = known.desired.value_or(desired);
  json::Array history = json::GetArray(pass.status, {field, "history"});
  const std::string uid = pass.uid();
  if (desired != wanted) resizing_.try_emplace(uid, known.replicas);
  const Now size_now{.least = least, .most = most, .desired = desired, .now = now};
  NoteChange(pass, size_now, known.history, preempted, history);
  if (!history.empty()) {
    const double reported = Throughput(pass.pods, pass.spec.grouped ? members : now);
    NoteThroughput(history.back(), reported > 0 ? reported : observed);
  }
  json::Object size{{"minReplicas", least},
                    {"replicas", now},
                    {"desiredReplicas", desired},
                    {"maxReplicas", most},
                    {"history", std::move(history)}};
  CountShrinks(pass, size_now, known, preempted, size);
  // kube-apiserver 1.20 takes an empty string for a null, and refuses it.
  if (std::string why = WhyNoMore(pass, now, desired); !why.empty()) size["message"] = why;
  json::Set(pass.status, {field}, std::move(size));
  if (RestsOrIsOver(pass) || by_metric) {
    resizing_.erase(uid);
  } else {
    ReportResize(pass, size_now);
  }
}

}  // namespace swell::jobs
