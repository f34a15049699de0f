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

// The published simulator trains this one on one GPU with one batch.
constexpr std::string_view kOneGpuApplication = "ncf";
constexpr int64_t kOneGpuBatch = 32768;

}  // namespace

SimJob::SimJob(const TraceJob& trace, const Profile* profile, const JobOptions& options)
    : trace_(trace), profile_(profile), options_(options) {
  SWELL_CHECK(profile != nullptr || trace.duration_s > 0);
  if (profile_ == nullptr) {
    work_left_s_ = static_cast<double>(trace.duration_s);
  } else {
    epoch_end_ = profile_->Progress(1);
  }
}

std::optional<int64_t> SimJob::FixedBatch() const {
  if (options_.batch == BatchMode::kRequested) return trace_.batch;
  if (trace_.application == kOneGpuApplication) return kOneGpuBatch;
  return std::nullopt;
}

void SimJob::UpdateBatch() {
  const BatchLimits& limits = profile_->limits();
  std::optional<int64_t> batch = FixedBatch();
  if (!batch && !fitted_) batch = std::max(limits.initial, limits.local_min * gpus_);
  const BatchChoice before = batch_;
  batch_ =
      batch ? SplitBatch(limits, *batch, gpus_)
            : ChooseBatch(*fitted_, gradient_, limits, static_cast<int>(placement_.size()), gpus_);
  const int64_t parts = int64_t{gpus_} * (batch_.passes_before + 1);
  batch_.local_batch = std::max<int64_t>(1, std::min(batch_.local_batch, limits.max / parts));
  stale_ |=
      batch_.local_batch != before.local_batch || batch_.passes_before != before.passes_before;
}

void SimJob::Measure(const StepTime& time) {
  const auto [at, added] =
      measured_.try_emplace({static_cast<int>(placement_.size()), gpus_, batch_.local_batch}, time);
  if (!added) return;
  gpus_measured_ = std::max(gpus_measured_, gpus_);
  if (options_.experiences != nullptr) {
    Experience& experience = (*options_.experiences)[trace_.application];
    if (experience.steps.size() < kMeasurementsMax) experience.steps.insert(*at);
    experience.gpus = std::max(experience.gpus, gpus_);
    if (epoch_ == 0) experience.first_gradient = gradient_;
  }
  Fit();
}

void SimJob::Fit() {
  fitted_ = FitSteps(measured_, fitted_ ? &*fitted_ : nullptr);
  corrections_ = CorrectionsOf(measured_, *fitted_);
}

void SimJob::Submit() {
  if (options_.experiences == nullptr || profile_ == nullptr) return;
  const auto found = options_.experiences->find(trace_.application);
  if (found == options_.experiences->end()) return;
  measured_ = found->second.steps;
  gpus_measured_ = found->second.gpus;
  gradient_ = found->second.first_gradient;
  Fit();
  ++estimate_version_;
}

void SimJob::UpdateSpeed() {
  const int64_t batch = gpus_ * batch_.local_batch * (batch_.passes_before + 1);
  const double scale = static_cast<double>(batch) / static_cast<double>(profile_->limits().initial);
  const StepTime time = profile_->Step(placement_, batch_.local_batch);
  gradient_ = profile_->Gradient(batch, epoch_);
  const double gain = (gradient_.var + gradient_.sqr) / (gradient_.var / scale + gradient_.sqr);
  if (options_.batch == BatchMode::kAdaptive) Measure(time);
  ++estimate_version_;
  const double compute = time.step_s - time.sync_s;
  goodput_ = gain / (time.step_s + compute * batch_.passes_before);
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
      if (epoch_ >= profile_->epochs()) ended_s_ = now_s + taken;
      progress_ = epoch_end_;
      if (!ended()) epoch_end_ = profile_->Progress(epoch_ + 1);
      stale_ = true;
    }
    now_s += taken;
    seconds -= taken;
    running_s_ += taken;
    service_ += static_cast<double>(taken) * gpus_;
    if (was_stale && !ended()) UpdateBatch();
  }
}

double SimJob::WorkSpeed(int gpus) const {
  if (gpus <= 0) return 0;
  auto time = [](int on) { return kSerialPart + (1 - kSerialPart) / on; };
  return time(trace_.gpus) / time(std::min(gpus, trace_.most_gpus()));
}

void SimJob::Work(int64_t now_s, int64_t seconds) {
  const double speed = WorkSpeed(gpus_);
  int64_t taken = seconds;
  if (work_left_s_ <= speed * static_cast<double>(seconds)) {
    taken = std::min(seconds, static_cast<int64_t>(std::ceil(work_left_s_ / speed)));
    ended_s_ = now_s + taken;
    work_left_s_ = 0;
  } else {
    work_left_s_ -= speed * static_cast<double>(seconds);
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
  if (profile_ != nullptr) {
    Train(now_s + delay, seconds - delay);
  } else if (seconds > delay) {
    Work(now_s + delay, seconds - delay);
  }
}

void SimJob::Place(const Placement& placement, int64_t now_s) {
  SWELL_CHECK(!ended());
  placement_ = placement;
  gpus_ = GpusOf(placement);
  stale_ = true;
  if (placement.empty()) {
    batch_ = {};
    return;
  }
  if (profile_ != nullptr) UpdateBatch();
  resizing_s_ = options_.resize_s;
  if (started_s_) {
    ++restarts_;
  } else {
    started_s_ = now_s;
  }
}

double SimJob::CorrectionFor(int nodes, int gpus) const {
  const auto found = corrections_.find({nodes, gpus});
  return found == corrections_.end() ? 1 : found->second;
}

double SimJob::EstimatedGoodput(int nodes, int gpus) const {
  if (gpus <= 0) return 0;
  if (profile_ == nullptr) return WorkSpeed(gpus);
  if (trace_.application == kOneGpuApplication || !fitted_) return gpus;
  return ChooseBatch(*fitted_, gradient_, profile_->limits(), nodes, gpus, kBatchesOfCurve)
             .goodput /
         CorrectionFor(nodes, gpus);
}

int SimJob::GpusMax(int cluster_gpus) const {
  if (profile_ == nullptr) return std::min(trace_.most_gpus(), cluster_gpus);
  if (trace_.application == kOneGpuApplication) return 1;
  const int64_t by_batch = profile_->limits().max / profile_->limits().local_min;
  const int tried = std::max(2 * gpus_measured_, options_.first_gpus);
  return static_cast<int>(
      std::min<int64_t>({int64_t{tried}, kWidestMeasured, by_batch, cluster_gpus}));
}

double SimJob::TrueGoodput(const Placement& placement) const {
  const int gpus = GpusOf(placement);
  if (gpus <= 0) return 0;
  if (profile_ == nullptr) return WorkSpeed(gpus);
  const BatchLimits& limits = profile_->limits();
  BatchChoice split = SplitBatch(limits, trace_.batch, gpus);
  const int64_t parts = int64_t{gpus} * (split.passes_before + 1);
  split.local_batch = std::max<int64_t>(1, std::min(split.local_batch, limits.max / parts));
  const int64_t batch = parts * split.local_batch;
  const StepTime time = profile_->Step(placement, split.local_batch);
  const int epoch = std::min(epoch_, profile_->epochs() - 1);
  const double gain = GainOf(profile_->Gradient(batch, epoch),
                             static_cast<double>(batch) / static_cast<double>(limits.initial));
  return gain / (time.step_s + (time.step_s - time.sync_s) * split.passes_before);
}

double SimJob::RemainingSeconds(const Placement& placement) const {
  const double speed = TrueGoodput(placement);
  if (speed <= 0) return 0;
  const double left =
      profile_ == nullptr ? work_left_s_ : profile_->Progress(profile_->epochs()) - progress_;
  return left / speed;
}

int64_t SimJob::QuietSeconds() const {
  if (placement_.empty() || ended()) return INT64_MAX;
  const double speed = profile_ == nullptr ? WorkSpeed(gpus_) : goodput_;
  if (profile_ != nullptr && stale_) return 1;
  const double left =
      profile_ == nullptr ? work_left_s_ : profile_->Progress(profile_->epochs()) - progress_;
  const double at_speed = left / speed;
  // A job without a profile keeps its speed: its end is known.
  const double quiet = profile_ == nullptr ? std::ceil(at_speed) : at_speed / 2;
  return std::max<int64_t>(1, resizing_s_ + static_cast<int64_t>(quiet));
}

}  // namespace swell::lab
