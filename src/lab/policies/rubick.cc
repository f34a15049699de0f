// Rubick's allocation (MLSys'25), as its published policy is meant.
//
// A job's slope is the speed that one GPU more adds, relative to the job's speed on the GPUs that
// it requested. Jobs of tenants with a quota are guaranteed. A job that can use more than a node
// is large.
//
// In each round the jobs take their turns. Guaranteed jobs come first, and large ones come last
// among these and among the others; of the large ones, those that run come before those that wait.
// Then the higher slope comes first.
//
// - A job that waits takes what it can use on the node with most free GPUs.
// - If no node has enough, jobs on a node give up GPUs, the lowest slope first. They give those
//   that add more to the taker. To a guaranteed taker, jobs that are not guaranteed give until it
//   has two thirds of the speed that it requested.
// - Then the free GPUs of each node go to its job with the highest slope.
// - A large job first takes as few nodes as it can. At the end of the round it takes as many GPUs
//   as are free. Those with 32 GPUs or more return them at the beginning of each round, so that
//   others choose first.
// - A job that was restarted often neither gives, takes nor returns GPUs.
//
// It knows how fast each job trains on each size: its authors fit a model for each application in
// advance, from a few measurements.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <vector>

#include "base/strings.h"
#include "lab/free_gpus.h"
#include "lab/policies/policies.h"

namespace swell::lab {
namespace {

constexpr double kUseful = 1.01;             // a size counts if it is faster by this factor
constexpr double kGuaranteedPart = 1 / 1.5;  // of the speed on what was requested
constexpr int kRestartsSmall = 5;            // with these it neither gives nor takes GPUs
constexpr int kRestartsLarge = 7;            // with these it keeps its nodes
constexpr int kReturnsFrom = 32;             // GPUs

class Rubick final : public Policy {
 public:
  explicit Rubick(const ClusterShape& shape) : shape_(shape) {}

  Allocations Decide(int64_t, const ActiveJobs& jobs, const Allocations& now) override {
    next_ = now;
    jobs_.clear();
    for (const ActiveJob& active : jobs) jobs_.emplace(active.number, CurveOf(*active.job));
    const std::vector<int> order = InTurn();
    for (int number : order) {
      if (Returns(number)) next_.erase(number);
    }
    for (int number : order) {
      if (next_.contains(number)) continue;
      if (IsSmall(number)) {
        PlaceSmall(number);
      } else {
        PlaceLarge(number, now, /*most=*/false);
      }
    }
    for (int node = 0; node < shape_.nodes(); ++node) GrowOn(node);
    for (int number : order) {
      if (!IsSmall(number)) PlaceLarge(number, now, /*most=*/true);
    }
    return next_;
  }

  std::string Reason(const ActiveJob& active) const override {
    if (!jobs_.contains(active.number)) return "it has not been seen";
    char text[96];
    std::snprintf(text, sizeof text, "%s, a GPU more brings %.3f of its requested speed",
                  IsGuaranteed(active.number) ? "guaranteed" : "not guaranteed",
                  Slope(active.number, SizeAbove(active.number)));
    return text;
  }

 private:
  struct Curve {
    const SimJob* job = nullptr;
    std::vector<int> sizes;      // that bring something
    std::vector<double> speeds;  // relative to what it requested
  };

  int PerNode() const { return shape_.gpus_per_node(); }
  int NodesFor(int gpus) const { return (gpus + PerNode() - 1) / PerNode(); }

  Curve CurveOf(const SimJob& job) const {
    Curve curve;
    curve.job = &job;
    const int requested = job.trace().gpus;
    const double base = job.EstimatedGoodput(NodesFor(requested), requested);
    std::vector<int> sizes;
    if (job.sizes() != nullptr) {
      sizes = *job.sizes();
    } else {
      for (int gpus = job.GpusMin(); gpus <= job.GpusMax(shape_.gpus()); ++gpus)
        sizes.push_back(gpus);
    }
    for (int gpus : sizes) {
      if (gpus > shape_.gpus()) break;
      const double speed = job.EstimatedGoodput(NodesFor(gpus), gpus) / base;
      if (!curve.speeds.empty() && speed <= curve.speeds.back() * kUseful) continue;
      curve.sizes.push_back(gpus);
      curve.speeds.push_back(speed);
    }
    return curve;
  }

  bool IsGuaranteed(int number) const {
    const auto tenant = shape_.tenants.find(jobs_.at(number).job->trace().tenant);
    return tenant != shape_.tenants.end() && tenant->second.quota > 0;
  }
  // A job that trains on one node at most.
  bool IsSmall(int number) const { return jobs_.at(number).sizes.back() <= PerNode(); }
  int Held(int number) const {
    const auto held = next_.find(number);
    return held == next_.end() ? 0 : static_cast<int>(held->second.size());
  }
  bool MayChange(int number) const { return jobs_.at(number).job->restarts() < kRestartsSmall; }
  bool Returns(int number) const {
    return !IsSmall(number) && !IsGuaranteed(number) && Held(number) >= kReturnsFrom &&
           jobs_.at(number).job->restarts() < kRestartsLarge;
  }

  // The largest size of at most `gpus` GPUs; 0: every size has more.
  int SizeWithin(int number, int gpus) const {
    const std::vector<int>& sizes = jobs_.at(number).sizes;
    const auto above = std::upper_bound(sizes.begin(), sizes.end(), gpus);
    return above == sizes.begin() ? 0 : *std::prev(above);
  }
  // The next size beyond what it holds. Equal to what it holds: there is none.
  int SizeAbove(int number) const {
    const std::vector<int>& sizes = jobs_.at(number).sizes;
    const auto above = std::upper_bound(sizes.begin(), sizes.end(), Held(number));
    return above == sizes.end() ? Held(number) : *above;
  }
  double SpeedOn(int number, int size) const {
    const Curve& curve = jobs_.at(number);
    const auto at = std::lower_bound(curve.sizes.begin(), curve.sizes.end(), size);
    return size == 0 ? 0 : curve.speeds[at - curve.sizes.begin()];
  }
  // For each GPU between what it holds and another size.
  double Slope(int number, int size) const {
    const int held = Held(number);
    if (size == held) return 0;
    return (SpeedOn(number, size) - SpeedOn(number, SizeWithin(number, held))) / (size - held);
  }

  bool IsSatisfied(int number, int size) const { return SpeedOn(number, size) >= kGuaranteedPart; }

  void Give(int number, int node, int gpus) {
    if (gpus == 0) {
      next_.erase(number);
    } else {
      next_[number] = Allocation(gpus, node);
    }
  }

  std::vector<int> InTurn() const {
    struct Turn {
      bool without_guarantee, large, waits;
      double slope_down;
      int number;
      auto operator<=>(const Turn&) const = default;
    };
    std::vector<Turn> turns;
    for (const auto& [number, curve] : jobs_) {
      const bool large = !IsSmall(number);
      turns.push_back({!IsGuaranteed(number), large, large && Held(number) == 0,
                       -Slope(number, SizeAbove(number)), number});
    }
    std::sort(turns.begin(), turns.end());
    std::vector<int> order;
    for (const Turn& turn : turns) order.push_back(turn.number);
    return order;
  }

  void PlaceSmall(int number) {
    const FreeGpus free(shape_, next_);
    std::vector<int> nodes(shape_.nodes());
    for (int node = 0; node < shape_.nodes(); ++node) nodes[node] = node;
    std::stable_sort(nodes.begin(), nodes.end(),
                     [&free](int a, int b) { return free.on(a) > free.on(b); });
    for (int node : nodes) {
      const int size = SizeWithin(number, free.on(node));
      if (size > 0 && (!IsGuaranteed(number) || IsSatisfied(number, size))) {
        Give(number, node, size);
        return;
      }
    }
    for (int node : nodes) {
      if (TakeFromOthers(number, node, free.on(node))) return;
    }
  }

  // The smallest size that is enough, if others on the node give it.
  bool TakeFromOthers(int number, int node, int free) {
    if (!MayChange(number)) return false;
    const Curve& curve = jobs_.at(number);
    const bool guaranteed = IsGuaranteed(number);
    for (int size : curve.sizes) {
      if (size > PerNode()) return false;
      if (size <= free || (guaranteed && !IsSatisfied(number, size))) continue;
      const Allocations before = next_;
      int missing = size - free;
      while (missing > 0) {
        const int given = ShrinkLowest(node, guaranteed, Slope(number, size));
        if (given == 0) break;
        missing -= given;
      }
      if (missing <= 0) {
        Give(number, node, size);
        return true;
      }
      next_ = before;
      if (!guaranteed) return false;
    }
    return false;
  }

  // The job on the node that loses least for each GPU gives up its last step. 0: none may.
  int ShrinkLowest(int node, bool for_guaranteed, double worth) {
    int lowest = -1, lowest_size = 0;
    double least = INFINITY;
    for (const auto& [number, allocation] : next_) {
      if (allocation.front() != node || !IsSmall(number) || !MayChange(number)) continue;
      const int smaller = SizeWithin(number, Held(number) - 1);
      if (IsGuaranteed(number) && !IsSatisfied(number, smaller)) continue;
      const double loss = Slope(number, smaller);
      const bool may = loss < worth || (for_guaranteed && !IsGuaranteed(number));
      if (!may || loss >= least) continue;
      lowest = number;
      lowest_size = smaller;
      least = loss;
    }
    if (lowest < 0) return 0;
    const int given = Held(lowest) - lowest_size;
    Give(lowest, node, lowest_size);
    return given;
  }

  void GrowOn(int node) {
    while (true) {
      const int free = FreeGpus(shape_, next_).on(node);
      int best = -1;
      double most = 0;
      for (const auto& [number, allocation] : next_) {
        if (allocation.front() != node || !IsSmall(number)) continue;
        const int size = SizeWithin(number, std::min(Held(number) + free, PerNode()));
        if (size <= Held(number) || Slope(number, size) <= most) continue;
        best = number;
        most = Slope(number, size);
      }
      if (best < 0) return;
      Give(best, node, SizeWithin(best, std::min(Held(best) + free, PerNode())));
    }
  }

  // Where it is, if it keeps its size.
  void PlaceLarge(int number, const Allocations& now, bool most) {
    Allocations others = next_;
    others.erase(number);
    FreeGpus free(shape_, others);
    for (int size : most ? Descending(number) : FirstSizes(number)) {
      if (size <= Held(number) || size > free.total()) continue;
      Allocation placed = PlacedAs(number, size, now, free);
      if (placed.empty()) continue;
      next_[number] = std::move(placed);
      return;
    }
  }

  std::vector<int> Descending(int number) const {
    const std::vector<int>& sizes = jobs_.at(number).sizes;
    return {sizes.rbegin(), sizes.rend()};
  }
  // Several nodes, as few as can be, else as much of one as can be.
  std::vector<int> FirstSizes(int number) const {
    const std::vector<int>& sizes = jobs_.at(number).sizes;
    const auto several = std::upper_bound(sizes.begin(), sizes.end(), PerNode());
    std::vector<int> first(several, sizes.end());
    first.insert(first.end(), std::make_reverse_iterator(several), sizes.rend());
    return first;
  }

  // Empty: it does not fit.
  Allocation PlacedAs(int number, int size, const Allocations& now, FreeGpus& free) const {
    const auto had = now.find(number);
    if (had != now.end() && static_cast<int>(had->second.size()) == size &&
        Fits(had->second, free)) {
      return had->second;
    }
    const Placement needed = jobs_.at(number).job->NeededPlacement(size, PerNode());
    return free.TakeShape(needed.empty() ? TightPlacement(size, PerNode()) : needed);
  }

  static bool Fits(const Allocation& allocation, const FreeGpus& free) {
    std::map<int, int> by_node;
    for (int node : allocation) ++by_node[node];
    return std::all_of(by_node.begin(), by_node.end(),
                       [&free](const auto& part) { return part.second <= free.on(part.first); });
  }

  const ClusterShape shape_;
  std::map<int, Curve> jobs_;
  Allocations next_;
};

}  // namespace

std::unique_ptr<Policy> MakeRubick(const ClusterShape& shape) {
  return std::make_unique<Rubick>(shape);
}

}  // namespace swell::lab
