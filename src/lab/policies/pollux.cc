// Pollux (OSDI'21): each round, a genetic algorithm looks for the matrix of jobs by nodes whose
// power mean of speed-ups is highest.
//
// A speed-up is a job's goodput by its fitted model relative to that on a fair share. It counts
// less where the job would restart, the more so the more restarts it had for its age. At most one
// job that spans nodes is on a node, since two would disturb each other; a job is tried on at most
// twice the GPUs that it has run on. A second goal, the speed-up of the GPUs in use, keeps
// solutions apart that the first one would not tell from each other.
//
// Follows the published artefact: NSGA-II with a population of 100 over 100 generations, crossover
// of jobs at a single point, mutation that resets, clears and raises, repair, and the best front of
// one round as the first population of the next. The numbers drawn differ, so results do, too.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <tuple>
#include <unordered_set>

#include "base/decimal.h"
#include "base/random.h"
#include "base/strings.h"
#include "lab/policies/policies.h"
#include "sched/state/amount_text.h"

namespace swell::lab {
namespace {

constexpr uint64_t kSeed = 20210714;
constexpr size_t kPopulation = 100;
constexpr int kGenerations = 100;
constexpr int kMatingsMax = 10;  // rounds of them, to find children that are not there yet
constexpr double kCrossover = 0.9;
constexpr double kReset = 0.1;      // of a job's row, to what it holds
constexpr double kClearsRow = 0.1;  // of a row, that some of its nodes are cleared
constexpr double kClears = 0.1;     // of such a node
constexpr double kRestartSeconds = 30;
constexpr int kNodesMax = 16;     // of one job
constexpr double kLeast = 0.001;  // of a speed-up, so that one job without GPUs is not all

using Cells = std::vector<uint16_t>;  // GPUs, by job and node

struct Member {
  Cells cells;
  double mean = 0;      // of speed-ups
  double per_gpu = 0;   // speed-up of the GPUs of nodes in use
  int front = 0;        // 0: nobody is better in both
  double crowding = 0;  // how far its neighbours are

  bool Beats(const Member& other) const {
    return std::tuple(-front, crowding) > std::tuple(-other.front, other.crowding);
  }
};

// What a job makes of GPUs, relative to a fair share. Looked up often, computed once.
class SpeedUps {
 public:
  SpeedUps(const SimJob& job, int gpus_max, int fair) : job_(job), gpus_max_(gpus_max) {
    fair_ = Goodput(1, fair);
    known_.assign((kNodesMax + 1) * static_cast<size_t>(gpus_max + 1), -1);
  }

  int gpus_max() const { return gpus_max_; }
  double Of(int nodes, int gpus) {
    if (gpus == 0) return 0;
    double& known = known_[static_cast<size_t>(nodes) * (gpus_max_ + 1) + gpus];
    if (known < 0) known = Goodput(nodes, gpus) / fair_;
    return known;
  }

 private:
  double Goodput(int nodes, int gpus) const {
    const Profile* profile = job_.profile();
    const int64_t batch_max = profile == nullptr ? 0 : profile->limits().max;
    return job_.ModelGoodput(0, nodes, gpus, batch_max);
  }

  const SimJob& job_;
  const int gpus_max_;
  double fair_ = 1;
  std::vector<double> known_;
};

struct Contender {
  int number = 0;
  SpeedUps speed_ups;
  double restart_factor = 1;
};

// One round's search. Rows are jobs in the order in which repair serves them.
class Search {
 public:
  Search(const ClusterShape& shape, std::vector<Contender>& jobs, Cells base, Random& random)
      : jobs_(jobs),
        nodes_(static_cast<size_t>(shape.nodes())),
        per_node_(static_cast<uint16_t>(shape.gpus_per_node())),
        capacity_(nodes_, per_node_),
        base_(std::move(base)),
        random_(random) {
    for (int node : shape.away) capacity_[node] = 0;
  }

  // The best front; the first of it has the highest mean.
  std::vector<Cells> Run(std::vector<Cells> begins_with) {
    for (Cells& cells : begins_with) {
      Repair(cells);
      Admit(std::move(cells), population_);
    }
    Survive();
    for (int i = 0; i < kGenerations && Mate(); ++i) Survive();
    std::stable_sort(population_.begin(), population_.end(), [](const Member& a, const Member& b) {
      return std::tuple(a.front, -a.mean) < std::tuple(b.front, -b.mean);
    });
    std::vector<Cells> front;
    for (Member& member : population_) {
      if (member.front == 0) front.push_back(std::move(member.cells));
    }
    return front;
  }

 private:
  uint16_t* Row(Cells& cells, size_t job) const { return cells.data() + job * nodes_; }

  static uint64_t HashOf(const Cells& cells) {
    return StableHash({reinterpret_cast<const char*>(cells.data()), cells.size() * 2});
  }

  // Unless it is there.
  bool Admit(Cells cells, std::vector<Member>& members) {
    if (!seen_.insert(HashOf(cells)).second) return false;
    Member& member = members.emplace_back();
    member.cells = std::move(cells);
    Evaluate(member);
    return true;
  }

  void Evaluate(Member& member) {
    std::vector<bool> used(nodes_, false);
    double inverse = 0, sum = 0;
    for (size_t j = 0; j < jobs_.size(); ++j) {
      const uint16_t* row = Row(member.cells, j);
      int nodes = 0, gpus = 0;
      for (size_t n = 0; n < nodes_; ++n) {
        if (row[n] == 0) continue;
        ++nodes;
        gpus += row[n];
        used[n] = true;
      }
      const double speed_up = jobs_[j].speed_ups.Of(nodes, gpus);
      sum += speed_up;
      const bool restarts = !std::equal(row, row + nodes_, Row(base_, j));
      const double counted = speed_up / per_node_ * (restarts ? jobs_[j].restart_factor : 1);
      inverse += 1 / (counted + kLeast);
    }
    member.mean = static_cast<double>(jobs_.size()) / inverse;
    const auto in_use = std::count(used.begin(), used.end(), true);
    member.per_gpu = in_use == 0 ? 0 : sum / static_cast<double>(in_use * per_node_);
  }

  // False: nothing new was found, so the population is all there is, or nearly.
  bool Mate() {
    std::vector<Member> children;
    for (int i = 0; i < kMatingsMax && children.size() < kPopulation; ++i) {
      const size_t there = children.size(), missing = kPopulation - there;
      for (size_t pair = 0; 2 * pair < missing; ++pair) {
        Cells a = Chosen().cells, b = Chosen().cells;
        if (random_.Unit() < kCrossover) {
          const auto point = static_cast<std::ptrdiff_t>(random_.Below(jobs_.size()) * nodes_);
          std::swap_ranges(a.begin(), a.begin() + point, b.begin());
        }
        for (Cells* child : {&a, &b}) {
          Mutate(*child);
          Repair(*child);
          if (children.size() < kPopulation) Admit(std::move(*child), children);
        }
      }
      if (children.size() == there) break;
    }
    const bool any = !children.empty();
    std::move(children.begin(), children.end(), std::back_inserter(population_));
    return any;
  }

  // The better one of two.
  const Member& Chosen() {
    const Member& one = population_[random_.Below(population_.size())];
    const Member& other = population_[random_.Below(population_.size())];
    return other.Beats(one) ? other : one;
  }

  void Mutate(Cells& cells) {
    for (size_t j = 0; j < jobs_.size(); ++j) {
      uint16_t* row = Row(cells, j);
      if (random_.Unit() < kReset) std::copy_n(Row(base_, j), nodes_, row);
      if (random_.Unit() >= kClearsRow) continue;
      for (size_t n = 0; n < nodes_; ++n) {
        if (random_.Unit() < kClears) row[n] = 0;
      }
    }
    for (size_t n = 0; n < nodes_; ++n) RaiseSome(cells, n);
  }

  // On a node with free GPUs: of all jobs one, on average, and one of those that are there.
  void RaiseSome(Cells& cells, size_t node) {
    int used = 0, there = 0;
    for (size_t j = 0; j < jobs_.size(); ++j) {
      const uint16_t gpus = Row(cells, j)[node];
      used += gpus;
      there += gpus > 0 ? 1 : 0;
    }
    if (used >= capacity_[node]) return;
    const double any = 1 / static_cast<double>(jobs_.size());
    for (size_t j = 0; j < jobs_.size(); ++j) {
      uint16_t& gpus = Row(cells, j)[node];
      const double again = gpus > 0 ? 1.0 / there : 0;
      if (random_.Unit() >= any + again - any * again) continue;
      if (gpus <= per_node_) gpus += static_cast<uint16_t>(random_.Below(per_node_ + 1 - gpus));
    }
  }

  // Rules that every solution keeps.
  void Repair(Cells& cells) {
    std::vector<bool> spanned(nodes_, false);  // by a job on several nodes
    std::vector<int> left(capacity_.begin(), capacity_.end());
    for (size_t j = 0; j < jobs_.size(); ++j) {
      uint16_t* row = Row(cells, j);
      if (NodesOf(row) > 1) {
        for (size_t n = 0; n < nodes_; ++n) {
          if (row[n] == 0) continue;
          if (spanned[n]) row[n] = 0;
          spanned[n] = true;
        }
      }
      Limit(row, jobs_[j].speed_ups.gpus_max());
      for (size_t n = 0; n < nodes_; ++n) {
        row[n] = static_cast<uint16_t>(std::min<int>(row[n], left[n]));
        left[n] -= row[n];
      }
    }
  }

  std::ptrdiff_t NodesOf(const uint16_t* row) const {
    return std::count_if(row, row + nodes_, [](uint16_t gpus) { return gpus > 0; });
  }

  // Takes GPUs from random nodes until the job has as many as it may.
  void Limit(uint16_t* row, int gpus_max) {
    if (std::accumulate(row, row + nodes_, 0) <= gpus_max && NodesOf(row) <= kNodesMax) return;
    std::vector<size_t> order(nodes_);
    std::iota(order.begin(), order.end(), 0);
    for (size_t i = nodes_; i > 1; --i) std::swap(order[i - 1], order[random_.Below(i)]);
    int gpus = 0, nodes = 0;
    for (size_t n : order) {
      const int kept = nodes < kNodesMax ? std::min<int>(row[n], gpus_max - gpus) : 0;
      row[n] = static_cast<uint16_t>(kept);
      gpus += kept;
      nodes += kept > 0 ? 1 : 0;
    }
  }

  // The best fronts remain, and of the last one those with most room around them.
  void Survive() {
    Rank();
    std::stable_sort(population_.begin(), population_.end(),
                     [](const Member& a, const Member& b) { return a.Beats(b); });
    if (population_.size() > kPopulation) population_.resize(kPopulation);
    seen_.clear();
    for (const Member& member : population_) seen_.insert(HashOf(member.cells));
  }

  void Rank() {
    std::stable_sort(population_.begin(), population_.end(), [](const Member& a, const Member& b) {
      return std::tie(a.mean, a.per_gpu) > std::tie(b.mean, b.per_gpu);
    });
    std::vector<std::vector<Member*>> fronts;
    for (Member& member : population_) {
      // Those before it have at least its mean, and the last of a front the highest second goal.
      const auto front = std::find_if(fronts.begin(), fronts.end(), [&member](const auto& one) {
        const Member& last = *one.back();
        return member.per_gpu > last.per_gpu ||
               (member.per_gpu == last.per_gpu && member.mean == last.mean);
      });
      member.front = static_cast<int>(front - fronts.begin());
      if (front == fronts.end()) {
        fronts.push_back({&member});
      } else {
        front->push_back(&member);
      }
    }
    for (const std::vector<Member*>& front : fronts) FillCrowding(front);
  }

  static void FillCrowding(const std::vector<Member*>& front) {
    const double means = front.front()->mean - front.back()->mean;
    const double others = front.back()->per_gpu - front.front()->per_gpu;
    for (size_t i = 0; i < front.size(); ++i) {
      if (i == 0 || i + 1 == front.size()) {
        front[i]->crowding = INFINITY;
        continue;
      }
      front[i]->crowding = 0;
      if (means > 0) front[i]->crowding += (front[i - 1]->mean - front[i + 1]->mean) / means;
      if (others > 0) {
        front[i]->crowding += (front[i + 1]->per_gpu - front[i - 1]->per_gpu) / others;
      }
    }
  }

  std::vector<Contender>& jobs_;
  const size_t nodes_;
  const uint16_t per_node_;
  std::vector<uint16_t> capacity_;  // by node: per_node_, or 0 if it is away
  Cells base_;
  Random& random_;
  std::vector<Member> population_;
  std::unordered_set<uint64_t> seen_;  // of the population and its children; looked up only
};

class Pollux final : public Policy {
 public:
  explicit Pollux(const ClusterShape& shape) : shape_(shape), random_(kSeed) {}

  Allocations Decide(int64_t now_s, const ActiveJobs& jobs, const Allocations& now) override {
    std::vector<Contender> contenders = ContendersOf(now_s, jobs);
    std::map<int, std::vector<uint16_t>> held;
    for (const auto& [number, allocation] : now) {
      std::vector<uint16_t>& row = held[number];
      row.assign(shape_.nodes(), 0);
      for (int node : allocation) ++row[node];
    }
    const Cells base = CellsOf(contenders, held);
    std::vector<Cells> begins_with;
    for (const auto& rows : front_) begins_with.push_back(CellsOf(contenders, rows));
    if (begins_with.empty()) begins_with.push_back(base);
    const std::vector<Cells> front =
        Search(shape_, contenders, base, random_).Run(std::move(begins_with));
    Keep(contenders, front);
    Allocations next;
    for (const auto& [number, row] : front_.front()) {
      Allocation allocation;
      for (size_t n = 0; n < row.size(); ++n) {
        allocation.insert(allocation.end(), row[n], static_cast<int>(n));
      }
      if (!allocation.empty()) next[number] = std::move(allocation);
    }
    return next;
  }

  std::string Reason(const ActiveJob& active) const override {
    const auto known = factors_.find(active.number);
    const std::string factor = Decimal(known == factors_.end() ? 1.0 : known->second, 2);
    return StrCat(
        "the power mean of speed-ups is highest among those found, another placement "
        "counts ",
        factor, " times its goodput after ", sched::Plural(active.job->restarts(), "restart"));
  }

 private:
  using Rows = std::map<int, std::vector<uint16_t>>;  // by the job's number

  // Those that received least service come first.
  std::vector<Contender> ContendersOf(int64_t now_s, const ActiveJobs& jobs) {
    std::vector<const ActiveJob*> order;
    for (const ActiveJob& active : jobs) order.push_back(&active);
    std::stable_sort(order.begin(), order.end(), [](const ActiveJob* a, const ActiveJob* b) {
      const SimJob &x = *a->job, &y = *b->job;
      return std::tuple(x.service(), x.trace().submitted_s) <
             std::tuple(y.service(), y.trace().submitted_s);
    });
    const auto count = static_cast<int>(jobs.size());
    const int fair = (shape_.gpus() + count - 1) / count;
    std::vector<Contender> contenders;
    factors_.clear();
    for (const ActiveJob* active : order) {
      const SimJob& job = *active->job;
      const auto age = static_cast<double>(now_s - job.trace().submitted_s);
      const double factor =
          std::max(age - job.restarts() * kRestartSeconds, 0.0) / (age + kRestartSeconds);
      factors_[active->number] = factor;
      contenders.push_back(
          {active->number, SpeedUps(job, job.GpusMax(shape_.gpus(), 1), fair), factor});
    }
    return contenders;
  }

  Cells CellsOf(const std::vector<Contender>& contenders, const Rows& rows) const {
    Cells cells;
    for (const Contender& contender : contenders) {
      const auto row = rows.find(contender.number);
      if (row == rows.end()) {
        cells.resize(cells.size() + shape_.nodes(), 0);
      } else {
        cells.insert(cells.end(), row->second.begin(), row->second.end());
      }
    }
    return cells;
  }

  void Keep(const std::vector<Contender>& contenders, const std::vector<Cells>& front) {
    front_.clear();
    for (const Cells& cells : front) {
      Rows& rows = front_.emplace_back();
      auto at = cells.begin();
      for (const Contender& contender : contenders) {
        rows[contender.number].assign(at, at + shape_.nodes());
        at += shape_.nodes();
      }
    }
  }

  const ClusterShape& shape_;
  Random random_;
  std::vector<Rows> front_;        // of the last round; the first was carried out
  std::map<int, double> factors_;  // of the last decision, by job
};

}  // namespace

// The population, as many children, and the best front as it was and as it is kept.
double BytesOfPollux(const ClusterShape& shape, size_t jobs) {
  return 4.0 * kPopulation * sizeof(uint16_t) * static_cast<double>(jobs) * shape.nodes();
}

std::unique_ptr<Policy> MakePollux(const ClusterShape& shape) {
  return std::make_unique<Pollux>(shape);
}

}  // namespace swell::lab
