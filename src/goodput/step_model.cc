#include "goodput/step_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <vector>

#include "base/check.h"

namespace swell::goodput {
namespace {

constexpr double kFree = 1e-8;   // seconds; instead of zero, for logarithms
constexpr double kSlack = 1e-8;  // of rounding up
constexpr int kParameters = 7;
constexpr size_t kRowsMax = 96;

using Vector = std::array<double, kParameters>;  // of logarithms, gamma − 1 included
using Matrix = std::array<Vector, kParameters>;

struct Row {
  int nodes, gpus;
  double batch;
  double log_compute, log_step;
};

StepParameters FromLogs(const Vector& q) {
  return {std::exp(q[0]),
          std::exp(q[1]),
          std::exp(q[2]),
          std::exp(q[3]),
          std::exp(q[4]),
          std::exp(q[5]),
          1 + std::clamp(std::exp(q[6]), 0.0, 9.0)};
}

Vector ToLogs(const StepParameters& p) {
  auto log = [](double x) { return std::log(std::max(x, kFree)); };
  return {log(p.alpha_c), log(p.beta_c), log(p.alpha_n),  log(p.beta_n),
          log(p.alpha_r), log(p.beta_r), log(p.gamma - 1)};
}

// Errors of the model, in logarithms: two for each row, then what keeps it simple.
void Residuals(const StepParameters& p, const std::vector<Row>& rows, std::vector<double>& out) {
  out.clear();
  const double weight = 1 / std::sqrt(static_cast<double>(rows.size()));
  for (const Row& row : rows) {
    out.push_back(weight * (std::log(p.ComputeTime(row.batch)) - row.log_compute));
    out.push_back(weight *
                  (std::log(p.LastPassTime(row.nodes, row.gpus, row.batch)) - row.log_step));
  }
  out.push_back(0.01 * (p.gamma - 1));
  out.push_back(0.03 * p.beta_n / p.alpha_n);
  out.push_back(0.03 * p.beta_r / p.alpha_r);
}

double SumOfSquares(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values) sum += value * value;
  return sum;
}

// Solves a symmetric positive definite system in place; false where it is not.
bool Solve(Matrix a, Vector& b) {
  for (int i = 0; i < kParameters; ++i) {
    for (int j = 0; j <= i; ++j) {
      double sum = a[i][j];
      for (int k = 0; k < j; ++k) sum -= a[i][k] * a[j][k];
      if (i == j) {
        if (!(sum > 0)) return false;
        a[i][i] = std::sqrt(sum);
      } else {
        a[i][j] = sum / a[j][j];
      }
    }
  }
  for (int i = 0; i < kParameters; ++i) {
    for (int k = 0; k < i; ++k) b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  for (int i = kParameters - 1; i >= 0; --i) {
    for (int k = i + 1; k < kParameters; ++k) b[i] -= a[k][i] * b[k];
    b[i] /= a[i][i];
  }
  return true;
}

// Levenberg and Marquardt's method over the parameters that are free.
Vector Descend(Vector q, const std::array<bool, kParameters>& free, const std::vector<Row>& rows) {
  constexpr double kStep = 1e-5;
  std::vector<double> now, moved;
  std::array<std::vector<double>, kParameters> slopes;
  double damping = 1e-3;
  Residuals(FromLogs(q), rows, now);
  double best = SumOfSquares(now);
  for (int round = 0; round < 25 && damping < 1e8; ++round) {
    Matrix normal{};
    Vector down{};
    for (int i = 0; i < kParameters; ++i) {
      if (!free[i]) continue;
      Vector near = q;
      near[i] += kStep;
      Residuals(FromLogs(near), rows, moved);
      slopes[i].resize(now.size());
      for (size_t r = 0; r < now.size(); ++r) slopes[i][r] = (moved[r] - now[r]) / kStep;
    }
    for (int i = 0; i < kParameters; ++i) {
      normal[i][i] = 1;
      if (!free[i]) continue;
      for (int j = 0; j <= i; ++j) {
        if (!free[j]) continue;
        double sum = 0;
        for (size_t r = 0; r < now.size(); ++r) sum += slopes[i][r] * slopes[j][r];
        normal[i][j] = sum;
      }
      for (size_t r = 0; r < now.size(); ++r) down[i] -= slopes[i][r] * now[r];
    }
    bool better = false;
    while (!better && damping < 1e8) {
      Matrix damped = normal;
      for (int i = 0; i < kParameters; ++i) damped[i][i] += damping * damped[i][i] + 1e-12;
      Vector step = down;
      Vector next = q;
      if (Solve(damped, step)) {
        for (int i = 0; i < kParameters; ++i) {
          if (free[i]) next[i] = std::clamp(q[i] + std::clamp(step[i], -2.0, 2.0), -18.4, 8.0);
        }
        Residuals(FromLogs(next), rows, moved);
        const double sum = SumOfSquares(moved);
        better = sum < best;
        if (better) {
          const bool settled = best - sum < 1e-7 * best;
          q = next;
          best = sum;
          std::swap(now, moved);
          if (settled) return q;
        }
      }
      damping *= better ? 0.2 : 5;
    }
  }
  return q;
}

std::vector<Row> RowsOf(const StepMeasurements& measured) {
  std::vector<Row> rows;
  // Where there are many batches, every n-th of them says enough.
  const size_t stride = (measured.size() + kRowsMax - 1) / kRowsMax;
  size_t i = 0;
  for (const auto& [at, time] : measured) {
    if (i++ % stride != 0) continue;
    const auto [nodes, gpus, batch] = at;
    rows.push_back({nodes, gpus, static_cast<double>(batch), std::log(time.step_s - time.sync_s),
                    std::log(time.step_s)});
  }
  return rows;
}

}  // namespace

double StepParameters::SyncTime(int nodes, int gpus) const {
  if (gpus <= 1) return kFree;
  const double beyond = std::max(gpus - 2.0, kFree);
  return nodes > 1 ? alpha_n + beta_n * beyond : alpha_r + beta_r * beyond;
}

double StepParameters::LastPassTime(int nodes, int gpus, double local_batch) const {
  const double compute = ComputeTime(local_batch);
  const double sync = SyncTime(nodes, gpus);
  const double longer = std::max(compute, sync);
  const double shorter = std::min(compute, sync);
  return longer * std::pow(1 + std::pow(shorter / longer, gamma), 1 / gamma);
}

StepParameters FitSteps(const StepMeasurements& measured, const StepParameters* start) {
  SWELL_CHECK(!measured.empty());
  std::set<int64_t> batches;
  bool between = false, within = false, more = false;
  double compute = 0;
  for (const auto& [at, time] : measured) {
    const auto [nodes, gpus, batch] = at;
    batches.insert(batch);
    between |= nodes > 1;
    within |= nodes == 1 && gpus > 1;
    more |= gpus > 2;
    compute += time.step_s - time.sync_s;
  }
  compute /= static_cast<double>(measured.size());
  StepParameters from{0.1, 0.01, 0.1, 0.01, 0.1, 0.01, 1.001};
  if (start != nullptr) {
    from = *start;
    if (from.alpha_n < 1e-4) from.alpha_n = 0.1;
    if (from.beta_n < 1e-6) from.beta_n = 0.001;
    if (from.alpha_r < 1e-4) from.alpha_r = 0.1;
    if (from.beta_r < 1e-6) from.beta_r = 0.001;
    from.gamma = std::clamp(from.gamma, 1.01, 9.0);
  }
  std::array<bool, kParameters> free;
  free.fill(true);
  auto fix = [&](int i, double& parameter, double value) {
    free[i] = false;
    parameter = value;
  };
  if (batches.size() == 1) fix(0, from.alpha_c, compute / 2);
  if (!between) fix(2, from.alpha_n, kFree);
  if (!between || !more) fix(3, from.beta_n, kFree);
  if (!within) fix(4, from.alpha_r, kFree);
  if (!within || !more) fix(5, from.beta_r, kFree);
  if (!between && !within) fix(6, from.gamma, 1.001);
  StepParameters found = FromLogs(Descend(ToLogs(from), free, RowsOf(measured)));
  if (!between) {  // between nodes it is hardly faster than within one
    found.alpha_n = std::max(found.alpha_n, found.alpha_r * 1.1);
    found.beta_n = std::max(found.beta_n, found.beta_r * 1.1);
  }
  return found;
}

StepCorrections CorrectionsOf(const StepMeasurements& measured, const StepParameters& fitted) {
  std::map<std::pair<int, int>, std::pair<double, int>> sums;
  for (const auto& [at, time] : measured) {
    const auto [nodes, gpus, batch] = at;
    auto& [sum, count] = sums[{nodes, gpus}];
    sum += std::log(time.step_s / fitted.LastPassTime(nodes, gpus, static_cast<double>(batch)));
    ++count;
  }
  StepCorrections corrections;
  for (const auto& [shape, sum] : sums) corrections[shape] = std::exp(sum.first / sum.second);
  return corrections;
}

double GainOf(const GradientStats& gradient, double scale) {
  const double below = gradient.var / scale + gradient.sqr;
  return below > 0 ? (gradient.var + gradient.sqr) / below : 1;
}

double EfficiencyOf(double noise, double initial, double batch) {
  return (noise + initial) / (noise + batch);
}

BatchChoice ChooseBatch(const StepParameters& step,
                        const GradientStats& gradient,
                        const BatchLimits& limits,
                        int nodes,
                        int gpus,
                        int tried) {
  const auto initial = static_cast<double>(limits.initial);
  const double least = std::max(initial, static_cast<double>(limits.local_min) * gpus);
  const double most = std::max(least, static_cast<double>(limits.max));
  const double ratio = std::pow(most / least, 1.0 / (tried - 1));
  const double sync = step.SyncTime(nodes, gpus);
  BatchChoice best;
  double wanted = least;
  for (int i = 0; i < tried; ++i, wanted *= ratio) {
    if (i == tried - 1) wanted = most;
    const double local = wanted / gpus;
    int before = static_cast<int>(std::ceil(local / limits.local_max - kSlack)) - 1;
    if (gpus == 1 && local > initial + kSlack) before = std::max(before, 1);
    const auto pass = static_cast<int64_t>(std::ceil(local / (before + 1) - kSlack));
    if (pass < limits.local_min || pass > limits.local_max) continue;
    const double scale = static_cast<double>(pass * gpus * (before + 1)) / initial;
    const double compute = step.ComputeTime(static_cast<double>(pass));
    const double longer = std::max(compute, sync);
    const double last =
        longer *
        std::pow(1 + std::pow(std::min(compute, sync) / longer, step.gamma), 1 / step.gamma);
    const double goodput = GainOf(gradient, scale) / (before * compute + last);
    if (goodput > best.goodput) best = {pass, before, goodput};
  }
  if (best.local_batch == 0) best = {limits.local_min, 0, 0};
  return best;
}

BatchChoice SplitBatch(const BatchLimits& limits, int64_t batch, int gpus) {
  const auto local = static_cast<int64_t>(std::ceil(static_cast<double>(batch) / gpus - kSlack));
  int before = static_cast<int>(std::ceil(
                   static_cast<double>(local) / static_cast<double>(limits.local_max) - kSlack)) -
               1;
  if (gpus == 1 && batch > limits.initial) before = std::max(1, before);
  const auto pass =
      static_cast<int64_t>(std::ceil(static_cast<double>(local) / (before + 1) - kSlack));
  return {pass, before, 0};
}

}  // namespace swell::goodput
