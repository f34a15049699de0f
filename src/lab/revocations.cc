#include "lab/revocations.h"

#include <cmath>

#include "base/strings.h"

namespace swell::lab {
namespace {

constexpr double kDaySeconds = 86'400;

}  // namespace

// Von Neumann's method: comparisons alone decide.
double Exponential(Random& random) {
  for (int whole = 0;; ++whole) {
    const double first = random.Unit();
    double last = first, next = first;
    int length = 0;  // of the falling run that begins with `first`
    while (next <= last) {
      last = next;
      ++length;
      next = random.Unit();
    }
    if (length % 2 == 1) return whole + first;
  }
}

Revocations::Revocations(int nodes, const RevocationOptions& options) : options_(options) {
  if (options.per_node_day <= 0) return;
  for (int node = 0; node < nodes; ++node) {
    random_.emplace_back(StableHash(StrCat("node ", node, " of ", options.seed)));
    AddGoing(node, 0);
  }
}

void Revocations::AddGoing(int node, int64_t there_since_s) {
  const double there_s =
      std::floor(Exponential(random_[node]) * (kDaySeconds / options_.per_node_day));
  changes_.push({there_since_s + 1 + static_cast<int64_t>(there_s), node, false});
}

NodeChange Revocations::Take() {
  const NodeChange change = changes_.top();
  changes_.pop();
  if (change.returns) {
    AddGoing(change.node, change.at_s);
  } else {
    changes_.push({change.at_s + options_.notice_s + options_.away_s, change.node, true});
  }
  return change;
}

}  // namespace swell::lab
