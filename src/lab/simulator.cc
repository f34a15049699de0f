#include "lab/simulator.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <set>

#include "base/check.h"
#include "base/random.h"
#include "base/strings.h"
#include "lab/free_gpus.h"

namespace swell::lab {
namespace {

constexpr int64_t kSecondsMax = int64_t{20} * 365 * 86'400;
constexpr size_t kTimedMax = 5'000'000;
constexpr int kDecisionGibMax = 4;

std::string PoliciesWith(bool (*has)(const PolicyKind&)) {
  std::vector<std::string> names;
  for (const PolicyKind& kind : Policies()) {
    if (has(kind)) names.push_back(kind.name);
  }
  return Join(names, ", ");
}

class Run {
 public:
  Run(const PolicyKind& kind, const RunOptions& options)
      : options_(options),
        bytes_(kind.bytes),
        on_events_(kind.on_events && options.round_s == 0),
        round_s_(options.round_s > 0 ? options.round_s : kind.round_s),
        batch_(kind.batch),
        learns_(kind.learns),
        resizes_(kind.resizes),
        keeps_plans_(kind.plans || !kind.resizes),
        shape_(options.shape),
        policy_(kind.make(shape_)),
        tenants_(options.shape.gpus(), options.shape.tenants) {
    if (options.revocations) revocations_.emplace(shape_.nodes(), *options.revocations);
  }

  Status Admit(const Trace& trace, const ProfileLibrary& profiles) {
    jobs_.reserve(trace.jobs.size());  // active_ points into it
    for (const TraceJob& job : trace.jobs) {
      SWELL_ASSIGN_OR_RETURN(std::vector<const Profile*> its,
                             ProfilesOf(trace.name, job, profiles));
      SWELL_ASSIGN_OR_RETURN(const PlanCurve* plan, PlanOf(trace.name, job, profiles));
      const int least = LeastOf(job, plan);
      if (least > LargestGroup()) {
        return Status(Code::kInvalid,
                      StrCat(trace.name, ": job ", Quote(job.name), " requests ", least,
                             " GPUs, the cluster has ", LargestGroup(),
                             options_.shape.groups.size() > 1 ? " of one type" : ""));
      }
      jobs_.emplace_back(job, std::move(its), OptionsOf(job, plan));
      has_tenants_ |= !job.tenant.empty();
    }
    arrivals_.resize(jobs_.size());
    std::iota(arrivals_.begin(), arrivals_.end(), 0);
    std::stable_sort(arrivals_.begin(), arrivals_.end(), [this](int a, int b) {
      return jobs_[a].trace().submitted_s < jobs_[b].trace().submitted_s;
    });
    return {};
  }

  Status PlayAll() {
    if (on_events_ && AddArrived()) SWELL_RETURN_IF_ERROR(Decide());
    while (arrived_ < arrivals_.size() || !active_.empty()) {
      if (now_s_ > kSecondsMax) {
        return Status(Code::kTimeout,
                      StrCat(active_.size(), " jobs have not ended after 20 years"));
      }
      const int64_t step = NextStep();
      for (const auto& [number, allocation] : allocations_) jobs_[number].Advance(now_s_, step);
      now_s_ += step;
      const bool ended = DropEnded();
      const bool arrived = AddArrived();
      const bool changed = ChangeNodes();
      const bool round = now_s_ % round_s_ == 0;
      const bool due = round || changed || (on_events_ && (ended || arrived));
      if (due && !active_.empty()) SWELL_RETURN_IF_ERROR(Decide());
    }
    return {};
  }

  RunOutcome TakeOutcome() {
    outcome_.tenant_hours = tenants_.Take(now_s_);
    for (const SimJob& job : jobs_) {
      outcome_.jobs.push_back({job.trace().name, job.trace().submitted_s,
                               job.started_s().value_or(-1), job.ended_s(), job.restarts(),
                               job.service(), job.lost_gpu_s()});
      outcome_.gpu_s += {job.service(), job.paused_gpu_s(), job.lost_gpu_s(), 0};
    }
    return std::move(outcome_);
  }

 private:
  int LargestGroup() const {
    int most = 0;
    for (const NodeGroup& group : options_.shape.groups) most = std::max(most, group.gpus());
    return most;
  }

  // One for each group of the cluster; none where only the job's duration is known.
  Result<std::vector<const Profile*>> ProfilesOf(const std::string& trace,
                                                 const TraceJob& job,
                                                 const ProfileLibrary& profiles) const {
    std::vector<const Profile*> its;
    if (job.application.empty() || !job.plan.empty()) return its;
    for (const NodeGroup& group : options_.shape.groups) {
      its.push_back(profiles.Find(job.application, group.type));
      if (its.back() != nullptr) continue;
      const std::string on = group.type.empty() ? "" : StrCat(" on ", group.type);
      return Status(Code::kNotFound,
                    StrCat(trace, ": job ", Quote(job.name), ": application ",
                           Quote(job.application), " has no profile", on, "; the profiles are ",
                           profiles.Names().empty() ? "none" : Join(profiles.Names(), ", "),
                           " (--profiles)"));
    }
    return its;
  }

  // Null where the job has none.
  Result<const PlanCurve*> PlanOf(const std::string& trace,
                                  const TraceJob& job,
                                  const ProfileLibrary& profiles) const {
    if (job.plan.empty()) return nullptr;
    const std::string of = StrCat(trace, ": job ", Quote(job.name));
    if (options_.shape.groups.size() > 1) {
      return Status(Code::kInvalid, StrCat(of,
                                           " has an execution plan, and plans were measured on "
                                           "one type of GPU; the cluster is ",
                                           options_.shape.ToString()));
    }
    if (!keeps_plans_) {
      return Status(
          Code::kInvalid,
          StrCat(of,
                 " trains only on numbers of GPUs that its execution plan allows, and "
                 "this policy tries any; these keep to plans, or to the requested GPUs: ",
                 PoliciesWith([](const PolicyKind& kind) { return kind.plans || !kind.resizes; })));
    }
    const PlanCurve* plan = profiles.FindPlan(job.application, job.plan);
    if (plan != nullptr && options_.fastest_plans) plan = profiles.FindPlan(job.application, "");
    if (plan == nullptr) {
      return Status(Code::kNotFound,
                    StrCat(of, ": application ", Quote(job.application),
                           " was not measured with plan ", Quote(job.plan),
                           " (--profiles DIR with DIR/", job.application, "/placements.csv)"));
    }
    if (!std::binary_search(plan->sizes().begin(), plan->sizes().end(), job.gpus)) {
      return Status(Code::kInvalid,
                    StrCat(of, " requests ", job.gpus, " GPUs, and plan ", Quote(job.plan), " of ",
                           job.application, " was measured on ", Join(Texts(plan->sizes()), ", ")));
    }
    if (SizesOf(*plan).empty()) {
      return Status(Code::kInvalid,
                    StrCat(of, " trains only where plan ", Quote(job.plan), " of ", job.application,
                           " was measured: on nodes with more than ",
                           options_.shape.gpus_per_node(), " GPUs (--cluster NODESxGPUS)"));
    }
    return plan;
  }

  // A job that keeps its size is placed anywhere.
  std::vector<int> SizesOf(const PlanCurve& plan) const {
    return resizes_ ? plan.SizesOn(options_.shape.gpus_per_node()) : plan.sizes();
  }

  static std::vector<std::string> Texts(const std::vector<int>& numbers) {
    std::vector<std::string> texts;
    for (int number : numbers) texts.push_back(StrCat(number));
    return texts;
  }

  JobOptions OptionsOf(const TraceJob& job, const PlanCurve* plan) {
    const ApplicationCosts costs = CostsOf(options_.rules, job.application);
    JobOptions options;
    options.batch = batch_;
    options.rules = options_.rules;
    options.resize_s = options_.resize_s.value_or(costs.resize_s);
    options.slowdown = costs.slowdown;
    options.plan = plan;
    if (plan != nullptr) options.sizes = SizesOf(*plan);
    options.first_gpus = options_.shape.gpus_per_node();
    options.experiences = learns_ ? &experiences_ : nullptr;
    if (options_.revocations) options.save_every_s = options_.revocations->save_every_s;
    for (const NodeGroup& group : options_.shape.groups) {
      options.gpus_per_node.push_back(group.gpus_per_node);
    }
    return options;
  }

  int64_t NextStep() const {
    const int64_t to_round = round_s_ - now_s_ % round_s_;
    const int64_t next = arrived_ < arrivals_.size()
                             ? jobs_[arrivals_[arrived_]].trace().submitted_s - now_s_
                             : INT64_MAX;
    if (active_.empty()) {  // nothing happens before the next arrival, or the round that sees it
      if (on_events_) return std::max<int64_t>(next, 1);
      return to_round + std::max<int64_t>(0, next - to_round + round_s_ - 1) / round_s_ * round_s_;
    }
    const int64_t to_change = revocations_ ? revocations_->NextAt() - now_s_ : INT64_MAX;
    if (!on_events_) return std::min(to_round, to_change);
    int64_t step = std::min({to_round, next, to_change});
    for (const auto& [number, allocation] : allocations_) {  // others do not get on
      step = std::min(step, jobs_[number].QuietSeconds());
    }
    return std::max<int64_t>(step, 1);
  }

  bool DropEnded() {
    bool any = false;
    for (auto at = allocations_.begin(); at != allocations_.end();) {
      const int number = at->first;
      if (!jobs_[number].ended()) {
        ++at;
        continue;
      }
      any = true;
      NoteTenant(number, {.asked = -MostOf(number), .held = -HeldBy(number)});
      active_.erase(PlaceOf(number));
      policy_->Ended(number);
      at = allocations_.erase(at);
    }
    if (any) NoteInUse();
    return any;
  }

  // Where the job is among the active ones, or would be.
  ActiveJobs::iterator PlaceOf(int number) {
    return std::lower_bound(
        active_.begin(), active_.end(), number,
        [](const ActiveJob& active, int wanted) { return active.number < wanted; });
  }

  bool AddArrived() {
    bool any = false;
    for (; arrived_ < arrivals_.size(); ++arrived_, any = true) {
      const int number = arrivals_[arrived_];
      if (jobs_[number].trace().submitted_s > now_s_) break;
      const ActiveJob active{number, &jobs_[number]};
      active_.insert(PlaceOf(number), active);
      jobs_[number].Submit();
      policy_->Submitted(active);
      NoteTenant(number, {.asked = MostOf(number), .waits = +1});
    }
    return any;
  }

  // Nodes that go or come back by now.
  bool ChangeNodes() {
    bool any = false;
    for (; revocations_ && revocations_->NextAt() <= now_s_; any = true) {
      const NodeChange change = revocations_->Take();
      if (change.returns) {
        shape_.away.erase(change.node);
        policy_->Returns(change.node);
        continue;
      }
      ++outcome_.revocations;
      shape_.away.insert(change.node);
      policy_->Leaves(change.node);
      Vacate(change.node);
    }
    if (any && has_tenants_) tenants_.SetGpus(now_s_, shape_.gpus());
    return any;
  }

  void Vacate(int node) {
    for (const auto& [number, allocation] : allocations_) {
      const auto there = std::count(allocation.begin(), allocation.end(), node);
      if (there == 0) continue;
      struck_.insert(number);
      outcome_.gpu_s.vacated += static_cast<double>(there * options_.revocations->notice_s);
    }
  }

  // What jobs hold on nodes that stay, where they can train on with it.
  Allocations Left() const {
    Allocations left = allocations_;
    for (int number : struck_) {
      Allocation& its = left.at(number);
      std::erase_if(its, [this](int node) { return shape_.away.contains(node); });
      if (its.empty() || !resizes_ || !jobs_[number].survives_on_part()) left.erase(number);
    }
    return left;
  }

  // What is left of a job has its state. Else there must be time to write it.
  void LoseWork(const Allocations& left) {
    for (int number : struck_) {
      const int64_t save_s =
          options_.revocations->save_s.value_or(jobs_[number].options().resize_s);
      if (save_s <= options_.revocations->notice_s || left.contains(number)) continue;
      jobs_[number].LoseUnsaved();
    }
  }

  Status CheckMemory() const {
    constexpr double kGib = 1 << 30;
    const double gib = bytes_ == nullptr ? 0 : bytes_(options_.shape, active_.size()) / kGib;
    if (gib <= kDecisionGibMax) return {};
    return Status(
        Code::kInvalid,
        StrCat("a decision would take ", std::llround(gib), " GiB of memory for ", active_.size(),
               " jobs at once on ", options_.shape.ToString(), ", and may take ", kDecisionGibMax,
               "; play fewer jobs, or a cluster that fits them better"));
  }

  Status Decide() {
    SWELL_RETURN_IF_ERROR(CheckMemory());
    const int64_t began = options_.clock_ns ? options_.clock_ns() : 0;
    Allocations left;
    if (!struck_.empty()) left = Left();
    const Allocations& now = struck_.empty() ? allocations_ : left;
    Allocations next;
    if (shape_.gpus() > 0) next = policy_->Decide(now_s_, active_, now);
    if (options_.clock_ns && outcome_.decide_ns.size() < kTimedMax) {
      outcome_.decide_ns.push_back(options_.clock_ns() - began);
    }
    ++outcome_.decisions;
    const FreeGpus free(shape_, next);  // checks that no node is overfull
    if (options_.on_decision) {
      options_.on_decision({now_s_, active_, allocations_, next, *policy_, shape_});
    }
    LoseWork(left);
    CarryOut(next);
    struck_.clear();
    allocations_ = std::move(next);
    NoteInUse();
    return {};
  }

  // Jobs change in the order of the trace.
  void CarryOut(const Allocations& next) {
    static const Allocation kNone;
    auto had = allocations_.begin();
    auto has = next.begin();
    while (had != allocations_.end() || has != next.end()) {
      const bool old = has == next.end() || (had != allocations_.end() && had->first <= has->first);
      const int number = old ? had->first : has->first;
      const bool is_new = has != next.end() && has->first == number;
      Change(number, old ? (had++)->second : kNone, is_new ? (has++)->second : kNone);
    }
  }

  void Change(int number, const Allocation& before, const Allocation& after) {
    if (before == after) return;
    NoteTenant(number,
               {.held = static_cast<int>(after.size()) - static_cast<int>(before.size()),
                .waits = static_cast<int>(after.empty()) - static_cast<int>(before.empty())});
    Note(number, after);
    if (!struck_.contains(number) && Same(before, after)) return;
    const int group = after.empty() ? 0 : options_.shape.GroupOf(after.front());
    jobs_[number].Place(PlacementOf(after), now_s_, group);
  }

  struct TenantChange {
    int asked = 0, held = 0, waits = 0;
  };
  void NoteTenant(int number, const TenantChange& change) {
    if (!has_tenants_) return;
    const std::string& tenant = jobs_[number].trace().tenant;
    if (change.asked != 0) tenants_.Ask(now_s_, tenant, change.asked);
    if (change.held != 0) tenants_.Hold(now_s_, tenant, change.held);
    if (change.waits != 0) tenants_.Wait(now_s_, tenant, LeastOf(number), change.waits > 0);
  }
  int MostOf(int number) const {
    const SimJob& job = jobs_[number];
    if (!resizes_) return job.trace().gpus;
    if (job.sizes() != nullptr) return std::min(job.sizes()->back(), options_.shape.gpus());
    return job.trace().most_gpus();
  }
  int LeastOf(int number) const {
    const SimJob& job = jobs_[number];
    return LeastOf(job.trace(), job.options().plan);
  }
  int LeastOf(const TraceJob& job, const PlanCurve* plan) const {
    if (!resizes_) return job.gpus;
    return plan != nullptr ? SizesOf(*plan).front() : std::max(1, job.gpus_min);
  }
  int HeldBy(int number) const {
    const auto held = allocations_.find(number);
    return held == allocations_.end() ? 0 : static_cast<int>(held->second.size());
  }

  // A move that costs nothing.
  bool Same(const Allocation& before, const Allocation& after) const {
    if (options_.rules == Rules::kPollux || before.empty() || after.empty()) return false;
    return PlacementOf(before) == PlacementOf(after) &&
           options_.shape.GroupOf(before.front()) == options_.shape.GroupOf(after.front());
  }

  void NoteInUse() {
    size_t gpus = 0;
    for (const auto& [number, allocation] : allocations_) gpus += allocation.size();
    std::vector<GpusInUse>& in_use = outcome_.in_use;
    const auto held = static_cast<double>(gpus);
    // What was decided twice at one instant counts once.
    if (!in_use.empty() && in_use.back().at_s == now_s_) in_use.pop_back();
    if (in_use.empty() || in_use.back().gpus != held) in_use.push_back({now_s_, held});
  }

  void Note(int number, const Allocation& allocation) {
    std::vector<int64_t> words{now_s_, number, static_cast<int64_t>(allocation.size())};
    words.insert(words.end(), allocation.begin(), allocation.end());
    std::string bytes;
    for (int64_t word : words) {
      for (int i = 0; i < 8; ++i) bytes += static_cast<char>(word >> (8 * i));
    }
    outcome_.hash = StableHash(bytes, outcome_.hash);
  }

  const RunOptions& options_;
  double (*const bytes_)(const ClusterShape& shape, size_t jobs);  // PolicyKind::bytes
  const bool on_events_;
  const int64_t round_s_;
  const BatchMode batch_;
  const bool learns_;
  const bool resizes_;
  const bool keeps_plans_;
  Experiences experiences_;
  ClusterShape shape_;                    // as it is now
  const std::unique_ptr<Policy> policy_;  // refers to shape_
  std::vector<SimJob> jobs_;
  std::vector<int> arrivals_;  // numbers of jobs by time
  size_t arrived_ = 0;
  ActiveJobs active_;
  Allocations allocations_;
  std::optional<Revocations> revocations_;
  std::set<int> struck_;  // numbers of jobs that lost a node since the last decision
  int64_t now_s_ = 0;
  RunOutcome outcome_;
  bool has_tenants_ = false;
  TenantHours tenants_;
};

Status CheckPolicy(const PolicyKind& policy, const RunOptions& options) {
  const std::string shape = options.shape.ToString();
  const bool many = options.shape.groups.size() > 1;
  if (many && !policy.many_types) {
    return Status(Code::kInvalid,
                  StrCat("policy ", policy.name, " knows GPUs of one type, not ", shape,
                         "; these know several: ",
                         PoliciesWith([](const PolicyKind& kind) { return kind.many_types; })));
  }
  if (options.revocations && many) {
    return Status(Code::kInvalid,
                  StrCat("nodes are revoked on a cluster with GPUs of one type, not ", shape));
  }
  if (options.revocations && !policy.nodes_go) {
    return Status(
        Code::kInvalid,
        StrCat("policy ", policy.name, " does not know that nodes are revoked; these do: ",
               PoliciesWith([](const PolicyKind& kind) { return kind.nodes_go; })));
  }
  return {};
}

}  // namespace

double GpuSeconds::UsefulPart() const {
  return held > 0 ? (held - paused - lost) / (held + vacated) : 0;
}

GpuSeconds& GpuSeconds::operator+=(const GpuSeconds& other) {
  held += other.held;
  paused += other.paused;
  lost += other.lost;
  vacated += other.vacated;
  return *this;
}

Result<RunOutcome> Play(const Trace& trace,
                        const ProfileLibrary& profiles,
                        const PolicyKind& policy,
                        const RunOptions& options) {
  SWELL_RETURN_IF_ERROR(CheckPolicy(policy, options));
  Run run(policy, options);
  SWELL_RETURN_IF_ERROR(run.Admit(trace, profiles));
  const Status played = run.PlayAll();
  if (!played.ok()) return played.WithContext(StrCat(trace.name, ", policy ", policy.name));
  return run.TakeOutcome();
}

Status AddUndisturbed(const Trace& trace,
                      const ProfileLibrary& profiles,
                      const PolicyKind& policy,
                      const RunOptions& options,
                      RunOutcome& outcome) {
  RunOptions undisturbed = options;
  // Not reset: checkpoints stay where they are, and with them each sum of progress.
  if (undisturbed.revocations) undisturbed.revocations->per_node_day = 0;
  SWELL_ASSIGN_OR_RETURN(const RunOutcome run, Play(trace, profiles, policy, undisturbed));
  outcome.undisturbed_gpu_s = run.gpu_s;
  return {};
}

}  // namespace swell::lab
