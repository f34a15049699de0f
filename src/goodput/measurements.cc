#include "goodput/measurements.h"

#include <algorithm>
#include <cmath>

#include "base/strings.h"

namespace swell::goodput {
namespace {

// A new observation counts as one of kMemory observations at most, since jobs drift.
constexpr int64_t kMemory = 12;
// More members are asked for if the job gains at least this part of the best possible gain. They
// are kept for less, so that noise does not move the job to and fro.
constexpr double kWorthAsking = 0.10;
constexpr double kWorthKeeping = 0.05;
// The fit's batch where nobody says how many records a step has; only ratios matter.
constexpr double kBatch = 1024;

bool Sane(double value) { return std::isfinite(value) && value > 0; }

void Blend(double& mean, double value, double part) { mean += (value - mean) * part; }

int NodesFor(const Measurements& measurements, int members) {
  const auto& [most, largest] = *measurements.sizes().rbegin();
  const auto exact = measurements.sizes().find(members);
  if (exact != measurements.sizes().end()) return exact->second.nodes;
  const int per_node = std::max(1, most / std::max(1, largest.nodes));
  return std::clamp((members + per_node - 1) / per_node, 1, members);
}

int64_t BatchOf(BatchRule rule, int members) {
  const double batch = rule == BatchRule::kPerMember ? kBatch : kBatch / members;
  return std::max<int64_t>(1, std::llround(batch));
}

// The model's speed of a size, up to a constant factor.
double Predicted(const Fit& fit, const Measurements& measurements, BatchRule rule, int members) {
  const auto batch = static_cast<double>(BatchOf(rule, members));
  const double step = fit.parameters.LastPassTime(NodesFor(measurements, members), members, batch);
  return (rule == BatchRule::kPerMember ? members : 1.0) / step;
}

SizeSpeed Between(const std::pair<const int, Measured>& low,
                  const std::pair<const int, Measured>& high,
                  int members) {
  const double part = static_cast<double>(members - low.first) / (high.first - low.first);
  return {members, low.second.speed + (high.second.speed - low.second.speed) * part,
          Source::kBetween};
}

SizeSpeed Beyond(const Measurements& measurements, const Fit& fit, BatchRule rule, int members) {
  const auto last = measurements.sizes().rbegin();
  if (fit.healthy) {
    const double ratio = Predicted(fit, measurements, rule, members) /
                         Predicted(fit, measurements, rule, last->first);
    return {members, last->second.speed * ratio, Source::kFitted};
  }
  double slope = last->second.speed / last->first;
  const auto before = std::next(last);
  if (before != measurements.sizes().rend()) {
    slope = (last->second.speed - before->second.speed) / (last->first - before->first);
  }
  const double speed = last->second.speed + slope * (members - last->first);
  return {members, std::max(speed, last->second.speed * 0.5), Source::kOptimistic};
}

SizeSpeed SpeedAt(const Measurements& measurements, const Fit& fit, BatchRule rule, int members) {
  const std::map<int, Measured>& sizes = measurements.sizes();
  const auto at = sizes.lower_bound(members);
  if (at == sizes.end()) return Beyond(measurements, fit, rule, members);
  if (at->first == members) {
    return {members, at->second.speed,
            at->second.other_type ? Source::kOtherType : Source::kMeasured};
  }
  if (at != sizes.begin()) return Between(*std::prev(at), *at, members);
  if (fit.healthy) {
    const double ratio =
        Predicted(fit, measurements, rule, members) / Predicted(fit, measurements, rule, at->first);
    return {members, at->second.speed * ratio, Source::kFitted};
  }
  return {members, at->second.speed * members / at->first, Source::kProportional};
}

// What the job chose at the nearest size that is not larger; else at the least one. 0: not known.
double ChosenBatch(const Measurements& measurements, int members) {
  double batch = 0;
  for (const auto& [size, measured] : measurements.sizes()) {
    if (measured.batch > 0 && (batch == 0 || size <= members)) batch = measured.batch;
  }
  return batch;
}

// All sizes where they are few; else those that were measured, and others in growing steps.
std::vector<int> SizesToShow(const Measurements& measurements, int least, int most) {
  std::vector<int> sizes;
  const int64_t count = int64_t{most} - least + 1;
  if (count <= static_cast<int64_t>(kCurvePointsMax)) {
    for (int members = least; members <= most; ++members) sizes.push_back(members);
    return sizes;
  }
  const size_t room = kCurvePointsMax / 2;
  const double ratio = std::pow(static_cast<double>(most) / least, 1.0 / (room - 1));
  for (size_t i = 0; i < room; ++i) {
    sizes.push_back(static_cast<int>(std::llround(least * std::pow(ratio, i))));
  }
  sizes.back() = most;
  size_t measured = 0;
  for (auto it = measurements.sizes().rbegin();
       it != measurements.sizes().rend() && measured < room; ++it) {
    if (it->first < least || it->first > most) continue;
    sizes.push_back(it->first);
    ++measured;
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

}  // namespace

void Measurements::Add(int members, const Observation& seen) {
  if (members < 1 || !Sane(seen.speed) || !Sane(seen.step_s)) return;
  Measured& size = sizes_[members];
  size.observations = std::min(size.observations + 1, kMemory);
  const double part = 1.0 / static_cast<double>(size.observations);
  Blend(size.speed, seen.speed, part);
  Blend(size.step_s, seen.step_s, part);
  size.nodes = std::max(1, seen.nodes);
  size.at_s = std::max(size.at_s, seen.at_s);
  if (Sane(seen.batch)) size.batch = seen.batch;
  if (seen.sync_s && std::isfinite(*seen.sync_s) && *seen.sync_s >= 0) {
    double sync = size.sync_s.value_or(*seen.sync_s);
    Blend(sync, std::min(*seen.sync_s, seen.step_s), part);
    size.sync_s = sync;
  }
  if (sizes_.size() <= kSizesMax) return;
  // The largest says how far the job may grow, and its own size is in use.
  auto least = sizes_.end();
  for (auto it = sizes_.begin(); std::next(it) != sizes_.end(); ++it) {
    if (it->first == members) continue;
    if (least == sizes_.end() || it->second.observations < least->second.observations) least = it;
  }
  sizes_.erase(least);
}

void Measurements::Restore(int members, const Measured& measured) {
  if (members < 1 || sizes_.size() == kSizesMax) return;
  if (!Sane(measured.speed) || !Sane(measured.step_s)) return;
  Measured& size = sizes_[members];
  size = measured;
  size.nodes = std::max(1, measured.nodes);
  size.observations = std::clamp<int64_t>(measured.observations, 1, kMemory);
  if (size.sync_s && !(std::isfinite(*size.sync_s) && *size.sync_s >= 0)) size.sync_s.reset();
  if (!Sane(size.batch)) size.batch = 0;
}

void Measurements::ForgetLarger(int than, int64_t before_s) {
  std::erase_if(sizes_,
                [&](const auto& size) { return size.first > than && size.second.at_s < before_s; });
}

std::optional<double> SpeedRatio(const Measurements& here, const Measurements& there) {
  double sum = 0;
  int count = 0;
  for (const auto& [members, measured] : here.sizes()) {
    if (there.sizes().empty() || members < there.sizes().begin()->first) continue;
    if (members > there.largest()) continue;
    sum += measured.speed / SpeedAt(there, {}, BatchRule::kConstant, members).speed;
    ++count;
  }
  if (count == 0) return {};
  return sum / count;
}

Measurements Scaled(const Measurements& there, double ratio) {
  Measurements all;
  for (const auto& [members, measured] : there.sizes()) {
    Measured scaled = measured;
    scaled.speed *= ratio;
    scaled.step_s /= ratio;
    scaled.sync_s.reset();
    scaled.other_type = true;
    all.Restore(members, scaled);
  }
  return all;
}

Measurements WithOtherTypes(const Measurements& here, const MeasurementsByType& others) {
  Measurements all = here;
  for (const auto& [type, there] : others) {
    const std::optional<double> ratio = SpeedRatio(here, there);
    if (!ratio) continue;
    const Measurements scaled = Scaled(there, *ratio);
    for (const auto& [members, measured] : scaled.sizes()) {
      if (!all.sizes().contains(members)) all.Restore(members, measured);
    }
  }
  return all;
}

double EfficiencyAt(const Measurements& measurements, const BatchFacts& batch, int members) {
  if (batch.rule == BatchRule::kConstant || !Sane(batch.noise)) return 1;
  if (batch.rule == BatchRule::kChosen) {
    const double initial = ChosenBatch(measurements, std::max(1, batch.least));
    if (initial == 0) return 1;
    return EfficiencyOf(batch.noise, initial, ChosenBatch(measurements, members));
  }
  double of_member = 0;
  int64_t newest = -1;
  for (const auto& [size, measured] : measurements.sizes()) {
    if (measured.batch == 0 || measured.at_s < newest) continue;
    newest = measured.at_s;
    of_member = measured.batch / (size + batch.others);
  }
  if (of_member == 0) return 1;
  const int least = std::max(1, batch.least);
  return EfficiencyOf(batch.noise, of_member * (least + batch.others),
                      of_member * (members + batch.others));
}

Fit FitOf(const Measurements& measurements, BatchRule rule) {
  Fit fit;
  StepMeasurements rows;
  for (const auto& [members, size] : measurements.sizes()) {
    // One member exchanges nothing.
    const std::optional<double> sync = members == 1 ? std::optional(0.0) : size.sync_s;
    if (!sync) continue;
    rows[{size.nodes, members, BatchOf(rule, members)}] = {size.step_s,
                                                           std::min(*sync, 0.99 * size.step_s)};
  }
  if (rows.size() < 2) {
    fit.message = StrCat("none yet: it needs 2 sizes with known time for gradients, and has ",
                         rows.size(), "; other sizes follow from the measured ones");
    return fit;
  }
  fit.parameters = FitSteps(rows, nullptr);
  double squares = 0;
  for (const auto& [at, time] : rows) {
    const auto [nodes, members, batch] = at;
    const double said = fit.parameters.LastPassTime(nodes, members, static_cast<double>(batch));
    squares += std::pow(said / time.step_s - 1, 2);
  }
  fit.error = std::sqrt(squares / static_cast<double>(rows.size()));
  fit.healthy = std::isfinite(fit.error) && fit.error <= kFitErrorMax;
  if (!std::isfinite(fit.error)) fit.error = 1;
  const auto percent = std::llround(fit.error * 100);
  fit.message = fit.healthy
                    ? StrCat("within ", percent, " % of ", rows.size(), " measured sizes")
                    : StrCat("off by ", percent, " % at ", rows.size(),
                             " measured sizes, so it is not used; other sizes follow from these");
  return fit;
}

std::string_view SourceName(Source source) {
  switch (source) {
    case Source::kMeasured:
      return "Measured";
    case Source::kOtherType:
      return "OtherType";
    case Source::kBetween:
      return "Between";
    case Source::kFitted:
      return "Fitted";
    case Source::kOptimistic:
      return "Optimistic";
    case Source::kProportional:
      return "Proportional";
  }
  return "";
}

std::vector<SizeSpeed> SpeedsOf(const Measurements& measurements,
                                const SizeBounds& bounds,
                                const Fit& fit,
                                const BatchFacts& batch) {
  std::vector<SizeSpeed> speeds;
  if (measurements.sizes().empty()) return speeds;
  const int least = std::max(1, bounds.least);
  const int64_t tried = std::max<int64_t>(int64_t{2} * measurements.largest(), least);
  const int most = static_cast<int>(std::min<int64_t>(bounds.most, tried));
  for (int members : SizesToShow(measurements, least, std::max(least, most))) {
    speeds.push_back(SpeedAt(measurements, fit, batch.rule, members));
    speeds.back().efficiency = EfficiencyAt(measurements, batch, members);
  }
  return speeds;
}

Curve CurveOf(const std::vector<SizeSpeed>& speeds) {
  std::vector<CurvePoint> points;
  for (const SizeSpeed& at : speeds) {
    // Three digits: smaller changes are noise, and each would be a write.
    const double relative = at.goodput() / speeds.front().goodput() * 1000;
    points.push_back({at.members, std::max<int64_t>(1, std::llround(relative)) * (kOne / 1000)});
  }
  return Curve(points);
}

int SizeToRequest(const std::vector<SizeSpeed>& speeds, int now) {
  size_t at = 0;
  for (bool larger = true; larger;) {
    larger = false;
    double best = 0;
    size_t best_at = at;
    for (size_t to = at + 1; to < speeds.size(); ++to) {
      const double worth = std::log(speeds[to].goodput() / speeds[at].goodput()) /
                           std::log(static_cast<double>(speeds[to].members) / speeds[at].members);
      if (worth < (speeds[to].members > now ? kWorthAsking : kWorthKeeping) || worth <= best)
        continue;
      best = worth;
      best_at = to;
      larger = true;
    }
    at = best_at;
  }
  return speeds[at].members;
}

}  // namespace swell::goodput
