// Revocations: nodes that are taken away for a time, as on a market of spare capacity. Each node
// goes at random times of its own (a Poisson process while it is there), after a notice.
//
// - Threads: a plain value.
// - Invariants: equal options, equal times, on any machine: nothing here depends on the C library's
//   logarithm.
#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

#include "base/random.h"

namespace swell::lab {

struct RevocationOptions {
  double per_node_day = 0;
  int64_t notice_s = 30;
  int64_t away_s = 1800;  // from the end of the notice until the node is back
  // What writing a checkpoint of a job takes when the notice comes; empty: as long as its resize.
  std::optional<int64_t> save_s;
  int64_t save_every_s = 600;  // training between two checkpoints
  uint64_t seed = 1;
};

struct NodeChange {
  int64_t at_s = 0;
  int node = 0;
  bool returns = false;  // else it is announced to go
};

class Revocations {
 public:
  Revocations(int nodes, const RevocationOptions& options);

  // INT64_MAX: none ever.
  int64_t NextAt() const { return changes_.empty() ? INT64_MAX : changes_.top().at_s; }
  // The next change, by time and node.
  NodeChange Take();

 private:
  struct Later {
    bool operator()(const NodeChange& a, const NodeChange& b) const {
      return a.at_s != b.at_s ? a.at_s > b.at_s : a.node > b.node;
    }
  };

  void AddGoing(int node, int64_t there_since_s);

  const RevocationOptions options_;
  std::vector<Random> random_;  // by node
  std::priority_queue<NodeChange, std::vector<NodeChange>, Later> changes_;
};

// From the exponential distribution with mean 1.
double Exponential(Random& random);

}  // namespace swell::lab
