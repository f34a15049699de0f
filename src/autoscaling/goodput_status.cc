#include "autoscaling/goodput_status.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "json/texts.h"
#include "kube/api/meta/meta.h"

namespace swell::autoscaling {
namespace {

constexpr double kNewsworthy = 0.05;
// The noise scale varies more than speeds do, and says less.
constexpr double kNoiseNewsworthy = 0.10;
constexpr size_t kOtherTypesMax = 3;

// Four digits say enough.
double Rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return 0;
  const double unit = std::pow(10.0, std::floor(std::log10(std::fabs(value))) - 3);
  const double rounded = std::round(value / unit) * unit;
  // Without the dust of the multiplication.
  return std::round(rounded * 1e9) / 1e9;
}

json::Array PointsOf(const goodput::Measurements& measurements) {
  json::Array points;
  for (const auto& [members, size] : measurements.sizes()) {
    json::Object point{{"members", members},
                       {"perSecond", Rounded(size.speed)},
                       {"stepSeconds", Rounded(size.step_s)}};
    if (size.sync_s) point["syncSeconds"] = Rounded(*size.sync_s);
    if (size.batch > 0) point["batchRecords"] = Rounded(size.batch);
    point["nodes"] = size.nodes;
    point["observations"] = size.observations;
    if (size.at_s > 0) {
      point["lastSeen"] = api::FormatTime(WallTime{size.at_s * 1'000'000'000});
    }
    points.push_back(std::move(point));
  }
  return points;
}

goodput::Measurements PointsIn(const json::Value& object) {
  goodput::Measurements measurements;
  for (const json::Value& point : json::GetArray(object, {"points"})) {
    goodput::Measured size;
    size.speed = json::GetDouble(point, {"perSecond"});
    size.step_s = json::GetDouble(point, {"stepSeconds"});
    if (json::Find(point, {"syncSeconds"}) != nullptr)
      size.sync_s = json::GetDouble(point, {"syncSeconds"});
    size.batch = json::GetDouble(point, {"batchRecords"});
    size.nodes =
        static_cast<int>(std::clamp<int64_t>(json::GetInt(point, {"nodes"}), 1, INT32_MAX));
    size.observations = json::GetInt(point, {"observations"});
    const auto seen = api::ParseTime(json::GetString(point, {"lastSeen"}));
    if (seen) size.at_s = std::max<int64_t>(0, seen->unix_ns / 1'000'000'000);
    const int64_t members = json::GetInt(point, {"members"});
    if (members < 1 || members > INT32_MAX) continue;
    measurements.Restore(static_cast<int>(members), size);
  }
  return measurements;
}

int64_t LastSeen(const goodput::Measurements& measurements) {
  int64_t last_s = 0;
  for (const auto& [members, size] : measurements.sizes()) last_s = std::max(last_s, size.at_s);
  return last_s;
}

json::Array SizesOf(const std::vector<goodput::SizeSpeed>& speeds) {
  json::Array sizes;
  const bool counted =
      std::any_of(speeds.begin(), speeds.end(), [](const auto& at) { return at.efficiency != 1; });
  for (const goodput::SizeSpeed& at : speeds) {
    json::Object size{{"members", at.members},
                      {"perSecond", Rounded(at.speed)},
                      {"relative", Rounded(at.goodput() / speeds.front().goodput())},
                      {"source", goodput::SourceName(at.source)}};
    if (counted) size["efficiencyPercent"] = std::llround(at.efficiency * 100);
    sizes.push_back(std::move(size));
  }
  return sizes;
}

}  // namespace

void GoodputState::Add(int64_t at, const goodput::Observation& seen) {
  const int size = static_cast<int>(at);
  measured.Add(size, seen);
  const auto now = measured.sizes().find(size);
  if (now == measured.sizes().end()) return;
  const auto before = published.sizes().find(size);
  const bool news = before == published.sizes().end() ||
                    before->second.observations != now->second.observations ||
                    before->second.nodes != now->second.nodes ||
                    (before->second.batch == 0) != (now->second.batch == 0) ||
                    std::fabs(now->second.speed / before->second.speed - 1) > kNewsworthy;
  if (!news) return;
  // Sizes may have been forgotten meanwhile.
  const goodput::Measurements old = std::exchange(published, {});
  for (const auto& [members, size_now] : measured.sizes()) {
    const auto said = old.sizes().find(members);
    const bool as_said = members != size && said != old.sizes().end();
    published.Restore(members, as_said ? said->second : size_now);
  }
}

void GoodputState::AddNoise(double records) {
  if (noise == 0 || std::fabs(records / noise - 1) > kNoiseNewsworthy) noise = records;
}

void GoodputState::LeaveSize() {
  const auto left = measured.sizes().find(static_cast<int>(members));
  if (left != measured.sizes().end() && published.sizes().contains(left->first)) {
    published.Restore(left->first, left->second);
  }
}

void GoodputState::ChangeGpuType(std::string_view type) {
  // Until now nobody said which type it was.
  if (gpu_type.empty()) {
    gpu_type = type;
    return;
  }
  if (!published.sizes().empty()) {
    other_types[gpu_type] = published;
    if (other_types.size() > kOtherTypesMax) {
      other_types.erase(std::min_element(
          other_types.begin(), other_types.end(),
          [](const auto& a, const auto& b) { return LastSeen(a.second) < LastSeen(b.second); }));
    }
  }
  const auto known = other_types.extract(std::string(type));
  published = known.empty() ? goodput::Measurements() : std::move(known.mapped());
  measured = published;
  measured_at = 0;
  gpu_type = type;
}

void GoodputState::Forget() {
  measured = {};
  published = {};
  other_types.clear();
  measured_at = 0;
}

GoodputState GoodputState::FromStatus(const json::Value& status) {
  GoodputState state;
  state.unit = json::GetString(status, {"unit"});
  state.gpu_type = json::GetString(status, {"gpuType"});
  state.measured = PointsIn(status);
  state.published = state.measured;
  for (const json::Value& other : json::GetArray(status, {"otherTypes"})) {
    const std::string_view type = json::GetString(other, {"gpuType"});
    if (type.empty() || state.other_types.size() == kOtherTypesMax) continue;
    state.other_types.emplace(type, PointsIn(other));
  }
  state.members = json::GetInt(status, {"members"});
  state.measured_at = json::GetInt(status, {"measuredAt"});
  state.wanted = json::GetInt(status, {"wanted"});
  state.resize_s = std::max(0.0, json::GetDouble(status, {"resizeSeconds"}));
  state.noise = std::max(0.0, json::GetDouble(status, {"noiseRecords"}));
  state.decision = json::GetString(status, {"decision"});
  state.decided_at = api::ParseTime(json::GetString(status, {"decidedAt"})).value_or(WallTime{});
  state.restart_s = std::max(0.0, json::GetDouble(status, {"restartSeconds"}));
  state.held_to = json::GetString(status, {"heldTo"});
  state.type_decision = json::GetString(status, {"typeDecision"});
  if (const json::Value* move = json::Find(status, {"move"})) {
    state.move = GoodputMove::FromStatus(*move);
  }
  return state;
}

GoodputMove GoodputMove::FromStatus(const json::Value& status) {
  GoodputMove move;
  move.from = json::GetString(status, {"from"});
  move.to = json::GetString(status, {"to"});
  move.from_members = json::GetInt(status, {"fromMembers"});
  move.to_members = json::GetInt(status, {"toMembers"});
  move.expected = json::GetDouble(status, {"expectedPercent"}) / 100;
  move.count = std::max<int64_t>(0, json::GetInt(status, {"count"}));
  move.at = api::ParseTime(json::GetString(status, {"time"})).value_or(WallTime{});
  move.over = json::GetBool(status, {"over"});
  return move;
}

json::Value GoodputMove::ToStatus() const {
  return json::Object{{"from", from},
                      {"fromMembers", from_members},
                      {"to", to},
                      {"toMembers", to_members},
                      {"expectedPercent", std::llround(expected * 100)},
                      {"count", count},
                      {"time", api::FormatTime(at)},
                      {"over", over}};
}

GoodputOutlook OutlookOf(const GoodputState& state, const GoodputRole& role) {
  GoodputOutlook outlook;
  outlook.fit = goodput::FitOf(state.published, role.batch);
  outlook.speeds = goodput::SpeedsOf(goodput::WithOtherTypes(state.published, state.other_types),
                                     role.bounds, outlook.fit, BatchOf(state, role));
  outlook.curve = goodput::CurveOf(outlook.speeds);
  return outlook;
}

double GoodputAt(const GoodputOutlook& outlook, int64_t members) {
  if (outlook.speeds.empty() || members < 1) return 0;
  const double relative = static_cast<double>(outlook.curve.At(members)) / goodput::kOne;
  return outlook.speeds.front().goodput() * relative;
}

GoodputOutlook OutlookOnType(GoodputState state,
                             const GoodputRole& role,
                             std::string_view type,
                             double ratio) {
  const goodput::Measurements here = state.published;
  state.ChangeGpuType(type);
  if (state.published.sizes().empty() && ratio > 0) state.published = goodput::Scaled(here, ratio);
  return OutlookOf(state, role);
}

goodput::BatchFacts BatchOf(const GoodputState& state, const GoodputRole& role) {
  return {.rule = role.batch,
          .noise = state.noise,
          .least = role.bounds.least,
          .others = static_cast<int>(std::min<int64_t>(role.others, INT32_MAX / 2))};
}

bool GoodputOutlook::Tried(int64_t members) const {
  for (const goodput::SizeSpeed& at : speeds) {
    if (at.members == members) return at.source != goodput::Source::kOptimistic;
  }
  return false;
}

json::Value ToStatus(const GoodputState& state,
                     const GoodputRole& role,
                     const GoodputOutlook& outlook) {
  json::Object status{{"role", role.role},
                      {"unit", state.unit.empty() ? "steps" : state.unit},
                      {"members", state.members},
                      {"measuredAt", state.measured_at},
                      {"wanted", state.wanted > 0 ? state.wanted : role.replicas},
                      {"points", PointsOf(state.published)},
                      {"curve", SizesOf(outlook.speeds)},
                      {"fit", json::Object{{"healthy", outlook.fit.healthy},
                                           {"errorPercent", std::llround(outlook.fit.error * 100)},
                                           {"message", outlook.fit.message}}}};
  if (!state.gpu_type.empty()) status["gpuType"] = state.gpu_type;
  if (!state.other_types.empty()) {
    json::Array others;
    for (const auto& [type, measured] : state.other_types) {
      others.push_back(json::Object{{"gpuType", type}, {"points", PointsOf(measured)}});
    }
    status["otherTypes"] = std::move(others);
  }
  if (!role.default_of.empty()) status["defaultOf"] = role.default_of;
  // Beyond its last size the curve says nothing.
  if (state.members > 0 && state.members < outlook.curve.members_max()) {
    const double here = static_cast<double>(outlook.curve.At(state.members));
    const double next = static_cast<double>(outlook.curve.At(state.members + 1));
    status["nextPercent"] = here > 0 ? std::llround((next / here - 1) * 100) : 0;
  }
  if (state.resize_s > 0) status["resizeSeconds"] = Rounded(state.resize_s);
  if (state.noise > 0) status["noiseRecords"] = Rounded(state.noise);
  if (state.restart_s > 0) status["restartSeconds"] = Rounded(state.restart_s);
  if (!state.held_to.empty()) status["heldTo"] = state.held_to;
  if (!state.type_decision.empty()) status["typeDecision"] = state.type_decision;
  if (!state.move.to.empty()) status["move"] = state.move.ToStatus();
  if (!state.decision.empty()) {
    status["decision"] = state.decision;
    status["decidedAt"] = api::FormatTime(state.decided_at);
  }
  return status;
}

}  // namespace swell::autoscaling
