// GoodputScaler's second part: jobs that move to GPUs of another type.
//
// What the job would make there follows from what it measured there, else from the ratio of both
// types as other jobs measured it. Where neither is known it does not move. The scheduler's model
// says how many members would have room (sched/room_elsewhere.h).
//
// The annotation is the order, and what a restarted controller continues from: the job's controller
// stops all members at their notice, so nothing is lost, and makes them anew with that type. When
// the room is gone meanwhile, it takes the annotation away, and the job starts where it can.
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "autoscaling/goodput_round.h"
#include "autoscaling/goodput_scaler.h"
#include "base/strings.h"
#include "kube/api/meta/gpu_type_keys.h"
#include "kube/api/meta/meta.h"

namespace swell::autoscaling {
namespace {

constexpr Duration kConsiderEvery = std::chrono::seconds(30);
// A move that is not over by then does not keep others from moving.
constexpr Duration kMoveMax = std::chrono::minutes(10);
// A job that says how long it still takes is trusted so far.
constexpr Duration kLastsMax = std::chrono::hours(1);

bool Names(const json::Value& pod_template, std::string_view label) {
  if (json::Find(pod_template, {"spec", "nodeSelector", label}) != nullptr) return true;
  const json::Array& terms = json::GetArray(
      pod_template, {"spec", "affinity", "nodeAffinity",
                     "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"});
  for (const json::Value& term : terms) {
    for (const json::Value& one : json::GetArray(term, {"matchExpressions"})) {
      if (json::GetString(one, {"key"}) == label) return true;
    }
  }
  return false;
}

bool NamesType(const json::Value& job) {
  for (const auto& role : json::GetObject(job, {"spec", "roles"})) {
    const json::Value* pod_template = json::Find(role.value(), {"template"});
    if (pod_template != nullptr && Names(*pod_template, api::keys::kGpuProduct)) return true;
  }
  return false;
}

bool IsOver(const json::Value& job) {
  return api::ConditionIsTrue(job, "Succeeded") || api::ConditionIsTrue(job, "Failed");
}

// "4 A100".
std::string GpusText(int64_t members, std::string_view type) { return StrCat(members, " ", type); }

// What a state measured, by type.
goodput::MeasurementsByType ByType(const GoodputState& state) {
  goodput::MeasurementsByType types = state.other_types;
  if (!state.gpu_type.empty()) types[state.gpu_type] = state.published;
  return types;
}

}  // namespace

void GoodputScaler::FollowHold(const Round& round, Known& known) const {
  GoodputState& state = known.state;
  const std::string_view held = api::Annotation(*round.job, api::keys::kHeldGpuType);
  if (held == state.held_to) return;
  if (held.empty()) {
    const bool arrived = state.gpu_type == state.held_to;
    state.type_decision =
        arrived ? StrCat("Was stopped on ", state.held_to, ", and may be placed on any type again")
                : StrCat("Stays on ", state.gpu_type, ": the room on ", state.held_to,
                         " was gone when it came");
    state.move.over = true;
  } else if (state.move.to != held || state.move.over) {
    // Somebody else set it, or it could not be noted.
    state.move = {.from = state.gpu_type,
                  .to = std::string(held),
                  .from_members = state.members,
                  .to_members = state.members,
                  .count = state.move.count + 1,
                  .at = context_.clock.Now()};
    state.type_decision =
        StrCat("Is held to ", held, " by its annotation ", api::keys::kHeldGpuType);
  }
  state.held_to = held;
}

void GoodputScaler::NoteMoved(const Round& round, Known& known) {
  GoodputState& state = known.state;
  GoodputMove& move = state.move;
  if (move.to.empty() || move.over || state.gpu_type != move.to) return;
  move.over = true;
  std::string text = StrCat("Moved from ", GpusText(move.from_members, move.from), " to ",
                            GpusText(state.members, move.to));
  const double before =
      GoodputAt(OutlookOnType(state, round.target, move.from, 0), move.from_members);
  const double now = GoodputAt(OutlookOf(state, round.target), state.members);
  if (before > 0) text += StrCat(": ", PercentText(now / before), " goodput measured");
  if (state.restart_s > 0) text += StrCat("; the restart took ", SecondsText(state.restart_s));
  events_.Record(*round.job, "Normal", "GoodputMeasured", text);
  state.type_decision = std::move(text);
}

std::map<std::string, double> GoodputScaler::RatiosOfOthers(const Round& round,
                                                            const GoodputState& state) const {
  std::map<std::string, std::pair<double, int>> logs;
  for (const auto& [key, job] : jobs().objects()) {
    const json::Value* status = json::Find(*job, {"status", "goodput"});
    if (key == round.key || status == nullptr) continue;
    if (json::GetArray(*status, {"otherTypes"}).empty()) continue;
    const goodput::MeasurementsByType types = ByType(GoodputState::FromStatus(*status));
    const auto here = types.find(state.gpu_type);
    if (here == types.end()) continue;
    for (const auto& [type, there] : types) {
      const std::optional<double> ratio = goodput::SpeedRatio(there, here->second);
      if (type == state.gpu_type || !ratio || !(*ratio > 0)) continue;
      logs[type].first += std::log(*ratio);
      ++logs[type].second;
    }
  }
  std::map<std::string, double> ratios;
  for (const auto& [type, sum] : logs) ratios[type] = std::exp(sum.first / sum.second);
  return ratios;
}

// Offers have as many members as there is room for. Without `rooms` they have the number with the
// highest goodput on that type, at most what the job has or waits for.
std::vector<goodput::TypeOffer> GoodputScaler::OffersFor(const Round& round,
                                                         const GoodputState& state,
                                                         const Rooms* rooms) const {
  std::map<std::string, double> ratios = RatiosOfOthers(round, state);
  for (const auto& [type, measured] : state.other_types) {
    if (!measured.sizes().empty()) ratios[type] = 0;
  }
  ratios.erase(state.gpu_type);
  std::vector<goodput::TypeOffer> offers;
  for (const auto& [type, ratio] : ratios) {
    const GoodputOutlook there = OutlookOnType(state, round.target, type, ratio);
    goodput::TypeOffer offer{.type = type, .by_ratio = ratio > 0};
    // What it would make there at its present size says what it misses.
    int64_t least = state.members, most = least;
    bool room = true;
    if (rooms == nullptr) {
      least = round.target.bounds.least;
      most = round.replicas;
    } else if (const auto it = rooms->find(type); it != rooms->end()) {
      least = most = it->second;
    } else {
      room = false;
    }
    for (int64_t members = least; members <= most; ++members) {
      const double goodput = GoodputAt(there, members);
      if (goodput <= offer.goodput) continue;
      offer.goodput = goodput;
      offer.members = room ? static_cast<int>(members) : 0;
    }
    if (offer.goodput > 0) offers.push_back(std::move(offer));
  }
  return offers;
}

goodput::MoveTerms GoodputScaler::TermsOf(const Round& round, const GoodputState& state) const {
  goodput::MoveTerms terms{.goodput = GoodputAt(round.outlook, state.members),
                           .lasts = goodput::LastsFor(RunOf(round)),
                           .moves = static_cast<int>(std::min<int64_t>(state.move.count, 1000))};
  const int64_t left_s =
      json::GetInt(*round.job, {"status", "progress", "estimatedRemainingSeconds"}, -1);
  if (left_s >= 0) {
    terms.lasts =
        std::min<Duration>(std::chrono::seconds(std::min<int64_t>(left_s, 1'000'000)), kLastsMax);
  }
  if (state.restart_s > 0) {
    terms.restart = std::chrono::milliseconds(std::llround(state.restart_s * 1000));
  }
  if (state.move.count > 0) terms.since_move = context_.clock.Now() - state.move.at;
  return terms;
}

bool GoodputScaler::InOneGroup(const Round& round) const {
  const auto& pods = pods_.ByIndex("owner", api::Uid(*round.job));
  return std::all_of(pods.begin(), pods.end(), [&](const json::SharedValue& pod) {
    return api::Label(*pod, api::keys::kPodGroup) == round.group;
  });
}

// What forbids a move that would pay. Empty: nothing.
std::string GoodputScaler::WhyHeldBack(const Round& round) const {
  if (NamesType(*round.job)) return "its template names the type";
  if (!InOneGroup(round)) return "its members have several priorities";
  const auto saved = [](const json::SharedValue& pod) {
    return api::ParseTime(api::Annotation(*pod, api::keys::kCheckpointTime)).has_value();
  };
  if (std::none_of(round.members.begin(), round.members.end(), saved)) {
    return "no member has reported a checkpoint";
  }
  if (api::ConditionIsTrue(*round.job, "CheckpointFailed")) return "its last save failed";
  if (SomebodyMoves(round.key)) return "another job moves";
  return "";
}

bool GoodputScaler::SomebodyMoves(const std::string& but) const {
  if (hold_under_way_) return true;
  const WallTime now = context_.clock.Now();
  for (const auto& [key, job] : jobs().objects()) {
    if (key == but || IsOver(*job)) continue;
    const auto known = known_.find(key);
    const json::Value* status = json::Find(*job, {"status", "goodput", "move"});
    GoodputMove move;
    if (known != known_.end() && known->second.uid == api::Uid(*job)) {
      move = known->second.state.move;
    } else if (status != nullptr) {
      move = GoodputMove::FromStatus(*status);
    }
    if (!move.to.empty() && !move.over && now - move.at < kMoveMax) return true;
  }
  return false;
}

bool GoodputScaler::ConsiderMove(const RoundPtr& round) {
  Known& known = known_.at(round->key);
  GoodputState& state = known.state;
  const SteadyTime now = context_.clock.Steady();
  if (!find_rooms_ || state.gpu_type.empty() || !api::ConditionIsTrue(*round->job, "Running")) {
    return false;
  }
  if (known.moves_considered && now - *known.moves_considered < kConsiderEvery) return false;
  known.moves_considered = now;
  if (!state.held_to.empty() && state.held_to != state.gpu_type &&
      context_.clock.Now() - state.move.at > kMoveMax) {
    // Its nodes have another label now: members that come would wait for a type that is gone.
    WriteHold(round, "", [this, round] { Write(round); });
    return true;
  }
  std::vector<goodput::TypeOffer> offers = OffersFor(*round, state, nullptr);
  const goodput::MoveTerms terms = TermsOf(*round, state);
  goodput::MoveChoice choice = goodput::ChooseMove(offers, terms);
  if (choice.pays) {
    // Room is looked for only where that can matter.
    Rooms rooms;
    const std::string group = StrCat(round->ns, "/", round->group);
    for (const auto& [type, members] : find_rooms_(group, std::string(api::keys::kGpuProduct))) {
      rooms[type] = members;
    }
    offers = OffersFor(*round, state, &rooms);
    choice = goodput::ChooseMove(offers, terms);
  }
  if (choice.pays) choice.why_not = WhyHeldBack(*round);
  if (choice.pays && offers[static_cast<size_t>(choice.offer)].type == state.held_to) {
    choice.why_not = "it is held to that type already";
  }
  if (choice.pays && choice.why_not.empty()) {
    StartMove(round, offers[static_cast<size_t>(choice.offer)], choice.gain);
    return true;
  }
  const bool said = state.type_decision.starts_with("Stays ");
  if (choice.offer >= 0) {
    const goodput::TypeOffer& offer = offers[static_cast<size_t>(choice.offer)];
    state.type_decision = StrCat("Stays on ", state.gpu_type, ": ", offer.type, " would make ",
                                 PercentText(1 + choice.gain), " goodput",
                                 offer.by_ratio ? " by the ratio that other jobs measured" : "",
                                 ", but ", choice.why_not);
  } else if (said) {
    state.type_decision.clear();
  }
  return false;
}

void GoodputScaler::StartMove(const RoundPtr& round, const goodput::TypeOffer& offer, double gain) {
  const GoodputState& state = known_.at(round->key).state;
  const GoodputMove move{.from = state.gpu_type,
                         .to = offer.type,
                         .from_members = state.members,
                         .to_members = offer.members,
                         .expected = gain,
                         .count = state.move.count + 1,
                         .at = context_.clock.Now()};
  WriteHold(round, offer.type, [this, round, move] {
    GoodputState& moving = known_.at(round->key).state;
    moving.held_to = move.to;
    moving.move = move;
    const goodput::MoveTerms terms = TermsOf(*round, moving);
    const std::string text = StrCat(
        "from ", GpusText(move.from_members, move.from), " to ", GpusText(move.to_members, move.to),
        ": ", PercentText(1 + move.expected), " goodput expected, ",
        SecondsText(std::chrono::duration<double>(terms.restart).count()), " to restart");
    events_.Record(*round->job, "Normal", "Moved", text);
    moving.type_decision = StrCat("Moves ", text);
    WriteNote(round);
  });
}

void GoodputScaler::WriteHold(const RoundPtr& round,
                              std::string_view type,
                              std::function<void()> then) {
  json::Value patch;
  json::Set(patch, {"metadata"},
            json::Object{{"uid", api::Uid(*round->job)},
                         {"resourceVersion", api::ResourceVersionText(*round->job)}});
  json::Set(patch, {"metadata", "annotations", api::keys::kHeldGpuType}, json::Value(nullptr));
  if (!type.empty()) json::Set(patch, {"metadata", "annotations", api::keys::kHeldGpuType}, type);
  hold_under_way_ = true;
  client_.Patch(resource_, round->ns, round->name, client::PatchType::kMerge, patch,
                [this, round, then = std::move(then)](const Result<json::SharedValue>& job) {
                  hold_under_way_ = false;
                  ScaleObservation* known = Recall(round->key);
                  if (known == nullptr) return Finish(round, Status::Ok());
                  if (!job.ok()) {
                    known->looked.reset();
                    return Finish(round, job.status());
                  }
                  known->version = api::ResourceVersion(**job);
                  round->job = *job;
                  then();
                });
}

}  // namespace swell::autoscaling
