#include "lab/model/sim_job.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace swell::lab {
namespace {

constexpr double kSerialPart = 0.05;
constexpr int kWidestMeasured = 64;  // nothing wider was measured
constexpr size_t kMeasurementsMax = 4096;
constexpr int kBatchesOfCurve = 16;  // goodput is flat around its best batch
constexpr int kBatchesOfSia = 50;

// The published simulator trains this one on one GPU with one batch.
constexpr std::string_view kOneGpuApplication = "ncf";
constexpr int64_t kOneGpuBatch = 32768;

}  // namespace

SimJob::SimJob(const TraceJob& trace,
               std::vector<const Profile*> profiles,
               const JobOptions& options)
    : trace_(trace), profiles_(std::move(profiles)), options_(options), learned_(profiles_.size()) {
  SWELL_CHECK(!profiles_.empty() || trace.duration_s > 0);
  if (options.plan != nullptr) {
    // The published simulator ends a job after one step more.
    const bool one_more = options.rules == Rules::kRubick;
    work_left_ = static_cast<double>(trace.steps + (one_more ? 1 : 0));
  } else if (profiles_.empty()) {
    work_left_ = static_cast<double>(trace.duration_s);
  } else {
    epoch_end_ = profile()->Progress(1);
  }
  Save();
}

BatchLimits SimJob::LimitsOn(int group, const Placement& placement) const {
  BatchLimits limits = profile(group)->limits();
  // Sia's simulator looks up the largest batch that was measured on exactly this placement.
  if (options_.rules == Rules::kSia) limits.local_max = profile(group)->LocalBatchMaxOn(placement);
  return limits;
}

std::optional<int64_t> SimJob::FixedBatch() const {
  if (options_.batch == BatchMode::kRequested) return trace_.batch;
  if (trace_.application == kOneGpuApplication) return kOneGpuBatch;
  return std::nullopt;
}

void SimJob::UpdateBatch() {
  const BatchLimits limits = LimitsOn(group_, placement_);
  const std::optional<StepParameters>& fitted = learned_[group_].fitted;
  std::optional<int64_t> batch = FixedBatch();
  if (!batch && !fitted) batch = std::max(limits.initial, limits.local_min * gpus_);
  const BatchChoice before = batch_;
  batch_ =
      batch ? SplitBatch(limits, *batch, gpus_)
            : ChooseBatch(*fitted, gradient_, limits, static_cast<int>(placement_.size()), gpus_);
  const int64_t parts = int64_t{gpus_} * (batch_.passes_before + 1);
  batch_.local_batch = std::max<int64_t>(1, std::min(batch_.local_batch, limits.max / parts));
  stale_ |=
      batch_.local_batch != before.local_batch || batch_.passes_before != before.passes_before;
}

void SimJob::Measure(const StepTime& time) {
  Learned& learned = learned_[group_];
  const auto [at, added] = learned.steps.try_emplace(
      {static_cast<int>(placement_.size()), gpus_, batch_.local_batch}, time);
  if (!added) return;
  learned.gpus = std::max(learned.gpus, gpus_);
  if (options_.experiences != nullptr) {
    Experience& experience = (*options_.experiences)[trace_.application];
    Experience::OnGroup& known = experience.groups[group_];
    if (known.steps.size() < kMeasurementsMax) known.steps.insert(*at);
    known.gpus = std::max(known.gpus, gpus_);
    if (epoch_ == 0) experience.first_gradient = gradient_;
  }
  Fit(learned);
}

void SimJob::Fit(Learned& learned) {
  // Sia's simulator fits from the start each time. If batches hardly differ, a fit that continues
  // from the last one ends in a model whose time does not depend on the batch.
  const bool anew = options_.rules == Rules::kSia || !learned.fitted;
  learned.fitted = FitSteps(learned.steps, anew ? nullptr : &*learned.fitted);
  learned.corrections = CorrectionsOf(learned.steps, *learned.fitted);
}

void SimJob::Submit() {
  if (options_.experiences == nullptr || profiles_.empty()) return;
  const auto found = options_.experiences->find(trace_.application);
  if (found == options_.experiences->end()) return;
  for (const auto& [group, known] : found->second.groups) {
    Learned& learned = learned_[group];
    learned.steps = known.steps;
    learned.gpus = known.gpus;
    Fit(learned);
  }
  gradient_ = found->second.first_gradient;
  ++estimate_version_;
}

void SimJob::UpdateSpeed() {
  const int64_t batch = gpus_ * batch_.local_batch * (batch_.passes_before + 1);
  const double scale =
      static_cast<double>(batch) / static_cast<double>(profile()->limits().initial);
  const StepTime time = profile()->Step(placement_, batch_.local_batch);
  gradient_ = profile()->Gradient(batch, epoch_);
  const double gain = (gradient_.var + gradient_.sqr) / (gradient_.var / scale + gradient_.sqr);
  if (options_.batch == BatchMode::kAdaptive) Measure(time);
  ++estimate_version_;
  const double compute = time.step_s - time.sync_s;
  goodput_ = gain / (time.step_s + compute * batch_.passes_before) / options_.slowdown;
  stale_ = false;
}

void SimJob::Train(int64_t now_s, int64_t seconds) {
  while (seconds > 0 && !ended()) {
    const bool was_stale = stale_;
    if (stale_) UpdateSpeed();
    int64_t taken = seconds;
    if (progress_ + goodput_ * static_cast<double>(seconds) < epoch_end_) {
      progress_ += goodput_ * static_cast<double>(seconds);
    } else {
      ++epoch_;
      taken = std::min<int64_t>(seconds, std::llrint((epoch_end_ - progress_) / goodput_));
      if (epoch_ >= profile()->epochs()) ended_s_ = now_s + taken;
      progress_ = epoch_end_;
      if (!ended()) epoch_end_ = profile()->Progress(epoch_ + 1);
      stale_ = true;
    }
    now_s += taken;
    seconds -= taken;
    running_s_ += taken;
    service_ += static_cast<double>(taken) * gpus_;
    if (was_stale && !ended()) UpdateBatch();
  }
}

double SimJob::WorkSpeed(const Placement& placement) const {
  if (options_.plan != nullptr) return 1 / options_.plan->StepSeconds(placement);
  return WorkSpeed(static_cast<int>(placement.size()), GpusOf(placement));
}

double SimJob::WorkSpeed(int nodes, int gpus) const {
  if (gpus <= 0) return 0;
  if (options_.plan != nullptr) return 1 / options_.plan->StepSeconds(nodes, gpus);
  auto time = [](int on) { return kSerialPart + (1 - kSerialPart) / on; };
  return time(trace_.gpus) / time(std::min(gpus, trace_.most_gpus()));
}

void SimJob::Work(int64_t now_s, int64_t seconds) {
  const double speed = WorkSpeed(placement_);
  int64_t taken = seconds;
  if (work_left_ <= speed * static_cast<double>(seconds)) {
    taken = std::min(seconds, static_cast<int64_t>(std::ceil(work_left_ / speed)));
    ended_s_ = now_s + taken;
    work_left_ = 0;
  } else {
    work_left_ -= speed * static_cast<double>(seconds);
  }
  running_s_ += taken;
  service_ += static_cast<double>(taken) * gpus_;
}

void SimJob::Advance(int64_t now_s, int64_t seconds) {
  if (placement_.empty() || ended()) return;
  const int64_t delay = std::min(resizing_s_, seconds);
  resizing_s_ -= delay;
  running_s_ += delay;
  service_ += static_cast<double>(delay) * gpus_;
  paused_gpu_s_ += static_cast<double>(delay) * gpus_;
  now_s += delay;
  seconds -= delay;
  while (seconds > 0 && !ended()) {
    const int64_t part =
        options_.save_every_s > 0 ? std::min(seconds, options_.save_every_s - unsaved_s_) : seconds;
    TrainOrWork(now_s, part);
    now_s += part;
    seconds -= part;
    unsaved_s_ += part;
    unsaved_gpu_s_ += static_cast<double>(part) * gpus_;
    if (unsaved_s_ == options_.save_every_s) Save();
  }
}

void SimJob::TrainOrWork(int64_t now_s, int64_t seconds) {
  if (profiles_.empty()) {
    Work(now_s, seconds);
  } else {
    Train(now_s, seconds);
  }
}

void SimJob::Save() {
  saved_ = {progress_, epoch_, epoch_end_, work_left_};
  unsaved_s_ = 0;
  unsaved_gpu_s_ = 0;
}

void SimJob::LoseUnsaved() {
  progress_ = saved_.progress;
  epoch_ = saved_.epoch;
  epoch_end_ = saved_.epoch_end;
  work_left_ = saved_.work_left;
  lost_gpu_s_ += unsaved_gpu_s_;
  stale_ = true;
  Save();
}

void SimJob::Place(const Placement& placement, int64_t now_s, int group) {
  SWELL_CHECK(!ended());
  Save();
  if (!placement.empty() && !profiles_.empty()) group_ = group;
  placement_ = placement;
  gpus_ = GpusOf(placement);
  stale_ = true;
  if (placement.empty()) {
    batch_ = {};
    return;
  }
  if (!profiles_.empty()) UpdateBatch();
  resizing_s_ = options_.resize_s;
  if (started_s_) {
    ++restarts_;
  } else {
    started_s_ = now_s;
  }
}

int SimJob::AnyFitted() const {
  for (size_t group = 0; group < learned_.size(); ++group) {
    if (learned_[group].fitted) return static_cast<int>(group);
  }
  return -1;
}

SimJob::Source SimJob::SourceFor(int group, int nodes, int gpus) const {
  if (learned_[group].fitted) return {group, nodes, 1};
  Source source;
  source.group = AnyFitted();
  if (source.group < 0) return source;
  const int per_node = options_.gpus_per_node[source.group];
  source.nodes = (gpus + per_node - 1) / per_node;
  const double there = profile(source.group)->SingleGpuSpeed();
  const double here = profile(group)->SingleGpuSpeed();
  if (there > 0 && here > 0) source.factor = here / there;
  return source;
}

double SimJob::CorrectionFor(const Source& source, int gpus) const {
  const StepCorrections& corrections = learned_[source.group].corrections;
  const auto found = corrections.find({source.nodes, gpus});
  return found == corrections.end() ? 1 : found->second;
}

double SimJob::EstimatedGoodput(int group, int nodes, int gpus) const {
  if (gpus <= 0) return 0;
  if (profiles_.empty()) return WorkSpeed(nodes, gpus);
  if (trace_.application == kOneGpuApplication) return gpus;
  const Source source = SourceFor(group, nodes, gpus);
  if (source.group < 0) return gpus;
  return ChooseBatch(*learned_[source.group].fitted, gradient_, profile(source.group)->limits(),
                     source.nodes, gpus, kBatchesOfCurve)
             .goodput *
         source.factor / CorrectionFor(source, gpus);
}

double SimJob::ModelGoodput(int group, int nodes, int gpus, int64_t batch_max) const {
  if (profiles_.empty()) return WorkSpeed(nodes, gpus);
  if (trace_.application == kOneGpuApplication) return gpus;
  const Source source = SourceFor(group, nodes, gpus);
  if (source.group < 0) return gpus;
  BatchLimits limits = profile(source.group)->limits();
  limits.max = batch_max;
  return ChooseBatch(*learned_[source.group].fitted, gradient_, limits, source.nodes, gpus,
                     kBatchesOfSia)
             .goodput *
         source.factor;
}

int SimJob::GpusMax(int cluster_gpus, int first_gpus) const {
  if (sizes() != nullptr) return std::min(sizes()->back(), cluster_gpus);
  if (profiles_.empty()) return std::min(trace_.most_gpus(), cluster_gpus);
  if (trace_.application == kOneGpuApplication) return 1;
  int64_t by_batch = 1;
  int measured = 0;
  for (size_t group = 0; group < profiles_.size(); ++group) {
    const BatchLimits& limits = profiles_[group]->limits();
    by_batch = std::max(by_batch, limits.max / limits.local_min);
    measured = std::max(measured, learned_[group].gpus);
  }
  const int tried = std::max(2 * measured, first_gpus);
  return static_cast<int>(
      std::min<int64_t>({int64_t{tried}, kWidestMeasured, by_batch, cluster_gpus}));
}

SimJob::RequestedStep SimJob::RequestedStepOn(int group, const Placement& placement) const {
  const BatchLimits limits = LimitsOn(group, placement);
  const int gpus = GpusOf(placement);
  RequestedStep requested;
  requested.batch = SplitBatch(limits, trace_.batch, gpus);
  const int64_t parts = int64_t{gpus} * (requested.batch.passes_before + 1);
  int64_t& local = requested.batch.local_batch;
  local = std::max<int64_t>(1, std::min(local, limits.max / parts));
  const StepTime time = profile(group)->Step(placement, local);
  requested.step_s = time.step_s + (time.step_s - time.sync_s) * requested.batch.passes_before;
  return requested;
}

double SimJob::TrueGoodput(const Placement& placement) const {
  const int gpus = GpusOf(placement);
  if (gpus <= 0) return 0;
  if (profiles_.empty()) return WorkSpeed(placement);
  const auto [split, step_s] = RequestedStepOn(group_, placement);
  const int64_t batch = int64_t{gpus} * (split.passes_before + 1) * split.local_batch;
  const int epoch = std::min(epoch_, profile()->epochs() - 1);
  const double scale =
      static_cast<double>(batch) / static_cast<double>(profile()->limits().initial);
  return GainOf(profile()->Gradient(batch, epoch), scale) / step_s / options_.slowdown;
}

double SimJob::RequestedSpeed(int group, const Placement& placement) const {
  if (profiles_.empty()) return WorkSpeed(placement);
  return 1 / RequestedStepOn(group, placement).step_s / options_.slowdown;
}

double SimJob::RemainingSeconds(const Placement& placement) const {
  const double speed = TrueGoodput(placement);
  if (speed <= 0) return 0;
  const double left =
      profiles_.empty() ? work_left_ : profile()->Progress(profile()->epochs()) - progress_;
  return left / speed;
}

int64_t SimJob::QuietSeconds() const {
  if (placement_.empty() || ended()) return INT64_MAX;
  const double speed = profiles_.empty() ? WorkSpeed(placement_) : goodput_;
  if (!profiles_.empty() && stale_) return 1;
  const double left =
      profiles_.empty() ? work_left_ : profile()->Progress(profile()->epochs()) - progress_;
  const double at_speed = left / speed;
  // A job without a profile keeps its speed: its end is known.
  const double quiet = profiles_.empty() ? std::ceil(at_speed) : at_speed / 2;
  return std::max<int64_t>(1, resizing_s_ + static_cast<int64_t>(quiet));
}

}  // namespace swell::lab
