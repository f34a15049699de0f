#include "lab/policies/linear_program.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/check.h"

namespace swell::lab {
namespace {

constexpr double kZero = 1e-9;
// The rule of the largest gain is fast, but may go round in circles where the sum stands still;
// Bland's rule cannot.
constexpr int kStandstillMax = 50;
// For each row: some ten times what programs take. Only rounding can ask for more.
constexpr size_t kStepsMax = 50;

class Tableau {
 public:
  Tableau(const std::vector<double>& gains, const std::vector<LinearRow>& rows)
      : variables_(gains.size()), columns_(gains.size() + rows.size() + 1), last_(gains) {
    last_.resize(columns_, 0);
    for (size_t i = 0; i < rows.size(); ++i) {
      SWELL_CHECK(rows[i].limit >= 0 && rows[i].coefficients.size() == variables_);
      std::vector<double>& row = rows_.emplace_back(rows[i].coefficients);
      row.resize(columns_, 0);
      row[variables_ + i] = 1;  // what is left below the limit
      row.back() = rows[i].limit;
      basis_.push_back(variables_ + i);
    }
  }

  void Solve() {
    int standstill = 0;
    for (size_t steps = kStepsMax * (rows_.size() + 1); steps > 0; --steps) {
      const size_t enters = Entering(standstill > kStandstillMax);
      if (enters == SIZE_MAX) return;
      const size_t leaves = Leaving(enters);
      if (leaves == SIZE_MAX) {
        last_[enters] = 0;
        continue;
      }
      standstill = rows_[leaves].back() > kZero ? 0 : standstill + 1;
      Pivot(leaves, enters);
    }
  }

  std::vector<double> Values() const {
    std::vector<double> values(variables_, 0);
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (basis_[i] < variables_) values[basis_[i]] = std::max(0.0, rows_[i].back());
    }
    return values;
  }

 private:
  size_t Entering(bool by_bland) const {
    size_t best = SIZE_MAX;
    for (size_t c = 0; c + 1 < columns_; ++c) {
      if (last_[c] <= kZero) continue;
      if (best == SIZE_MAX || last_[c] > last_[best]) best = c;
      if (by_bland) break;
    }
    return best;
  }

  size_t Leaving(size_t enters) const {
    size_t best = SIZE_MAX;
    double least = 0;
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (rows_[i][enters] <= kZero) continue;
      const double ratio = rows_[i].back() / rows_[i][enters];
      const bool tied = best != SIZE_MAX && std::abs(ratio - least) <= kZero;
      if (best == SIZE_MAX || (tied ? basis_[i] < basis_[best] : ratio < least)) {
        best = i;
        least = ratio;
      }
    }
    return best;
  }

  void Pivot(size_t leaves, size_t enters) {
    std::vector<double>& row = rows_[leaves];
    const double by = row[enters];
    for (double& value : row) value /= by;
    basis_[leaves] = enters;
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (i != leaves) Subtract(row, enters, rows_[i]);
    }
    Subtract(row, enters, last_);
  }

  static void Subtract(const std::vector<double>& row, size_t enters, std::vector<double>& from) {
    const double times = from[enters];
    if (times == 0) return;
    for (size_t c = 0; c < row.size(); ++c) from[c] -= times * row[c];
    from[enters] = 0;
  }

  const size_t variables_;
  const size_t columns_;  // the variables, what is left below each limit, the limit
  std::vector<std::vector<double>> rows_;
  std::vector<double> last_;   // what the sum gains by each column
  std::vector<size_t> basis_;  // the column that each row determines
};

}  // namespace

std::vector<double> MaximizeWithin(const std::vector<double>& gains,
                                   const std::vector<LinearRow>& rows) {
  Tableau tableau(gains, rows);
  tableau.Solve();
  return tableau.Values();
}

}  // namespace swell::lab
