#include "elastic/metric_scaler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include "base/strings.h"

namespace swell::elastic {
namespace {

constexpr size_t kSeriesMax = 64;
constexpr int64_t kLatestNs = 4'000'000'000'000'000'000;  // in 2096
constexpr size_t kObservationsMax = 1000;
// Waiting doubles up to this many intervals.
constexpr int64_t kPatienceMax = 128;
// Room counts if it is there in two intervals in a row.
constexpr int64_t kRoomLooks = 2;

constexpr std::array<std::pair<ScaleCondition, std::string_view>, 5> kNames = {{
    {ScaleCondition::kStart, "Start"},
    {ScaleCondition::kContinue, "Continue"},
    {ScaleCondition::kStop, "Stop"},
    {ScaleCondition::kReachMaxMetric, "ReachMaxMetric"},
    {ScaleCondition::kReachMaxReplicas, "ReachMaxReplicas"},
}};

std::string_view NameOf(ScaleCondition condition) {
  for (const auto& [value, name] : kNames) {
    if (value == condition) return name;
  }
  return "";
}

ScaleCondition ConditionOf(std::string_view name) {
  for (const auto& [value, known] : kNames) {
    if (known == name) return value;
  }
  return ScaleCondition::kNone;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::string Seconds(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f s", value);
  return text.data();
}

std::string StepTimes(const ScaleState& state, int64_t replicas) {
  auto it = state.series.find(replicas);
  if (it == state.series.end() || it->second.empty()) return "";
  return StrCat(Seconds(Median(it->second)), " a step with ", replicas);
}

Duration Patience(const ScalePolicy& policy, int64_t times) {
  int64_t factor = 1;
  for (int64_t i = 0; i < times && factor < kPatienceMax; ++i) factor *= 2;
  return policy.interval * factor;
}

// Nothing is decided until the group has the new number of members.
void Move(ScaleState& state, int64_t replicas) {
  state.last = state.current;
  state.current = replicas;
  state.complete = false;
  state.undisturbed = false;
  state.series.erase(replicas);
}

ScaleDecision Grow(const ScalePolicy& policy, int64_t target, ScaleState& state, std::string why) {
  Move(state, target);
  state.condition = ScaleCondition::kContinue;
  state.goes_on = true;
  state.message = policy.noun + " continues to be scaled";
  state.room_then = -1;
  state.room_looks = 0;
  state.fits = 0;
  return {target, std::move(why)};
}

void EndScaling(const ScalePolicy& policy, ScaleCondition condition, ScaleState& state) {
  state.condition = condition;
  state.goes_on = false;
  state.room_then = -1;
  state.room_looks = 0;
  state.fits = 0;
  state.known_max = policy.replicas_max;
  if (condition == ScaleCondition::kReachMaxReplicas) {
    state.message = policy.noun + " has reached the max replicas";
  } else if (condition == ScaleCondition::kReachMaxMetric) {
    state.message = policy.noun + " has reached the max metrics";
  } else {
    state.message = "There exists pending pods, return to the last replicas";
  }
}

int64_t Next(const ScalePolicy& policy, int64_t replicas) {
  int64_t more = policy.doubles ? std::max<int64_t>(replicas, 1) * 2 : replicas + 1;
  return std::clamp(more, policy.replicas_min, policy.replicas_max);
}

// The last growth found no place.
ScaleDecision Return(const ScalePolicy& policy, const ScaleFacts& facts, ScaleState& state) {
  int64_t before = state.current;
  int64_t target = state.last;
  if (target < policy.replicas_min || target >= state.current) {
    target = std::clamp(facts.placed, policy.replicas_min, state.current - 1);
  }
  Move(state, target);
  // These ran before; if some of them are gone, somebody else took them.
  state.complete = true;
  EndScaling(policy, ScaleCondition::kStop, state);
  state.room_then = facts.room;
  state.fits = facts.placed;
  state.not_before = facts.now + Patience(policy, state.returns);
  ++state.returns;
  return {target, StrCat("there is no room for ", facts.unplaced, " of ", before)};
}

ScaleDecision DecideSize(const ScalePolicy& policy, const ScaleFacts& facts, ScaleState& state) {
  auto before = state.series.find(state.last);
  if (state.last > 0 && state.last < state.current && before != state.series.end() &&
      !before->second.empty() && state.last >= policy.replicas_min) {
    double then = Median(before->second), now = Median(state.series[state.current]);
    double speed_then = static_cast<double>(state.last) / then;
    double speed_now = static_cast<double>(state.current) / now;
    if (speed_now <= speed_then * (1 + policy.margin)) {
      std::string why = StrCat(StepTimes(state, state.last), ", ", StepTimes(state, state.current));
      int64_t target = state.last;
      Move(state, target);
      state.complete = true;
      state.series.clear();
      state.reference = then;
      EndScaling(policy, ScaleCondition::kReachMaxMetric, state);
      state.not_before = facts.now + Patience(policy, state.tries) * policy.observations;
      return {target, std::move(why)};
    }
  }
  if (state.current >= policy.replicas_max) {
    EndScaling(policy, ScaleCondition::kReachMaxReplicas, state);
    return {};
  }
  return Grow(policy, Next(policy, state.current), state, StepTimes(state, state.current));
}

// After Stop: has room come?
ScaleDecision Revisit(const ScalePolicy& policy, const ScaleFacts& facts, ScaleState& state) {
  if (state.room_then < 0 || facts.room < state.room_then) state.room_then = facts.room;
  // Some of the members that were too many had found a place: a smaller step fits.
  const bool smaller = state.fits > state.current;
  bool more = (smaller ? facts.room > 0 : facts.room > state.room_then) &&
              state.current < policy.replicas_max;
  state.room_looks = more ? state.room_looks + 1 : 0;
  if (state.room_looks < kRoomLooks || facts.now < state.not_before) return {};
  int64_t target = std::min(Next(policy, state.current), state.current + facts.room);
  if (smaller) target = std::min(target, state.fits);
  return Grow(policy, target, state, StrCat("there is room for ", facts.room, " more"));
}

// After ReachMaxMetric: do steps take as long as they did?
ScaleDecision Recheck(const ScalePolicy& policy, const ScaleFacts& facts, ScaleState& state) {
  const std::vector<double>& seen = state.series[state.current];
  if (seen.size() < static_cast<size_t>(policy.observations)) return {};
  double now = Median(seen);
  if (state.reference <= 0) state.reference = now;
  if (std::abs(now - state.reference) <= policy.change * state.reference ||
      facts.now < state.not_before || state.current >= policy.replicas_max) {
    return {};
  }
  std::string why =
      StrCat(StepTimes(state, state.current), ", which took ", Seconds(state.reference));
  state.reference = 0;
  ++state.tries;
  return Grow(policy, Next(policy, state.current), state, std::move(why));
}

// A complete group with the observation of this look.
ScaleDecision Weigh(const ScalePolicy& policy, const ScaleFacts& facts, ScaleState& state) {
  if (facts.seconds_per_step && *facts.seconds_per_step > 0) {
    std::vector<double>& seen = state.series[state.current];
    seen.push_back(*facts.seconds_per_step);
    size_t most = std::min(kObservationsMax, static_cast<size_t>(std::max(1, policy.observations)));
    if (seen.size() > most) seen.erase(seen.begin(), seen.end() - static_cast<int64_t>(most));
    while (state.series.size() > kSeriesMax) state.series.erase(state.series.begin());
  }
  if (state.held) return {};
  if (!state.goes_on && policy.replicas_max > state.known_max) {
    state.known_max = policy.replicas_max;
    state.series[state.current].clear();
    state.condition = ScaleCondition::kContinue;
    state.goes_on = true;
    state.message = policy.noun + " continues to be scaled";
  }
  if (state.goes_on) {
    if (state.series[state.current].size() < static_cast<size_t>(policy.observations)) return {};
    return DecideSize(policy, facts, state);
  }
  if (state.condition == ScaleCondition::kStop) return Revisit(policy, facts, state);
  if (state.condition == ScaleCondition::kReachMaxMetric) return Recheck(policy, facts, state);
  return {};
}

void Begin(const ScalePolicy& policy, const ScaleFacts& facts, ScaleState& state) {
  state = ScaleState();
  state.condition = ScaleCondition::kStart;
  state.goes_on = true;
  state.current = facts.replicas;
  state.start = facts.now;
  state.known_max = policy.replicas_max;
}

// Somebody else has set the number, or the bounds.
std::optional<ScaleDecision> FollowOthers(const ScalePolicy& policy,
                                          const ScaleFacts& facts,
                                          ScaleState& state) {
  int64_t target = std::clamp(facts.replicas, policy.replicas_min, policy.replicas_max);
  if (facts.replicas != state.current) {
    Move(state, facts.replicas);
    EndScaling(policy, ScaleCondition::kStop, state);
    state.held = true;
    state.message = StrCat("Replicas were set to ", target, ", scaling by metrics rests");
  }
  if (target == facts.replicas) return {};
  Move(state, target);
  return ScaleDecision{
      target, StrCat("the job may have ", policy.replicas_min, " to ", policy.replicas_max)};
}

}  // namespace

ScaleDecision DecideScale(const ScalePolicy& policy, const ScaleFacts& facts, ScaleState& state) {
  if (policy.replicas_min > policy.replicas_max) return {};
  if (state.condition == ScaleCondition::kNone) {
    Begin(policy, facts, state);
    auto follow = FollowOthers(policy, facts, state);
    return follow ? *follow : ScaleDecision();
  }
  if (auto follow = FollowOthers(policy, facts, state)) return *follow;
  if (facts.running < state.current) {
    bool tried = !state.complete && !state.held;
    if (tried && facts.unplaced > 0 && state.current > policy.replicas_min) {
      return Return(policy, facts, state);
    }
    // What was seen of a group that broke up is not what the next one does.
    if (state.undisturbed) state.series.erase(state.current);
    state.undisturbed = false;
    return {};
  }
  if (!state.undisturbed) {
    // The group has just become complete: it needs a while to train at its pace.
    if (!state.complete) state.returns = 0;
    state.complete = true;
    state.undisturbed = true;
    return {};
  }
  return Weigh(policy, facts, state);
}

json::Value ScaleState::Status() const {
  json::Object out{
      {"elasticCondition", NameOf(condition)}, {"continue", goes_on}, {"currentReplicas", current}};
  if (last > 0) out["lastReplicas"] = last;
  if (!message.empty()) out["message"] = message;
  return out;
}

json::Value ScaleState::Memory() const {
  json::Value out = Status();
  json::Set(out, {"start"}, start.unix_ns);
  json::Set(out, {"complete"}, complete);
  json::Set(out, {"knownMax"}, known_max);
  if (held) json::Set(out, {"held"}, true);
  if (room_then >= 0) json::Set(out, {"roomThen"}, room_then);
  if (fits > 0) json::Set(out, {"fits"}, fits);
  if (reference > 0) json::Set(out, {"reference"}, reference);
  if (returns > 0) json::Set(out, {"returns"}, returns);
  if (tries > 0) json::Set(out, {"tries"}, tries);
  if (not_before.unix_ns > 0) json::Set(out, {"notBefore"}, not_before.unix_ns);
  if (!goes_on) return out;
  json::Set(out, {"undisturbed"}, undisturbed);
  json::Object seen;
  for (const auto& [replicas, values] : series) {
    if (!values.empty()) seen[std::to_string(replicas)] = json::Array(values.begin(), values.end());
  }
  if (!seen.empty()) json::Set(out, {"series"}, std::move(seen));
  return out;
}

ScaleState ScaleState::FromStatus(const json::Value& status) {
  ScaleState state;
  state.condition = ConditionOf(json::GetString(status, {"elasticCondition"}));
  state.goes_on = json::GetBool(status, {"continue"});
  state.current = json::GetInt(status, {"currentReplicas"});
  state.last = std::max<int64_t>(0, json::GetInt(status, {"lastReplicas"}));
  state.message = json::GetString(status, {"message"});
  return state;
}

ScaleState ScaleState::FromMemory(const json::Value& memory) {
  ScaleState state = FromStatus(memory);
  state.start.unix_ns = std::clamp<int64_t>(json::GetInt(memory, {"start"}), 0, kLatestNs);
  state.complete = json::GetBool(memory, {"complete"});
  state.undisturbed = json::GetBool(memory, {"undisturbed"});
  state.held = json::GetBool(memory, {"held"});
  state.known_max = json::GetInt(memory, {"knownMax"});
  state.room_then = json::GetInt(memory, {"roomThen"}, -1);
  state.fits = json::GetInt(memory, {"fits"});
  state.returns = std::clamp<int64_t>(json::GetInt(memory, {"returns"}), 0, 64);
  state.tries = std::clamp<int64_t>(json::GetInt(memory, {"tries"}), 0, 64);
  state.not_before.unix_ns = json::GetInt(memory, {"notBefore"});
  const json::Value* reference = json::Find(memory, {"reference"});
  if (reference != nullptr && reference->is_number()) {
    state.reference = reference->to_number<double>();
  }
  for (const auto& one : json::GetObject(memory, {"series"})) {
    auto replicas = ParseInt(std::string_view(one.key().data(), one.key().size()));
    if (!replicas || !one.value().is_array() || state.series.size() >= kSeriesMax) continue;
    std::vector<double>& values = state.series[*replicas];
    for (const json::Value& value : one.value().get_array()) {
      if (!value.is_number() || values.size() >= kObservationsMax) break;
      double seconds = value.to_number<double>();
      if (std::isfinite(seconds) && seconds > 0) values.push_back(seconds);
    }
  }
  return state;
}

}  // namespace swell::elastic
