// SimJob: a job of a trace in virtual time. It trains while it has GPUs.
//
// A job with a profile trains as in Pollux' published simulator, second for second: a new
// allocation costs `resize_s` without progress, then progress grows by the true goodput until the
// epoch ends; the end of an epoch falls on a whole second. A job of which only the duration is
// known runs at speed 1 on the GPUs it requested and slower on fewer, by Amdahl's law with 5 % of
// the work serial; it never uses more than it requested or, where it is elastic, than its maximum.
// A job with an execution plan takes a number of steps, as fast as was measured on its placement.
//
// GPUs of one type form a group of the cluster. A job trains in one group at a time, and fits a
// model for each group that it has tried. It knows the other groups only by the speed of one GPU,
// relative to the groups it has tried.
//
// - Threads: none.
// - Ownership: refers to the trace's job and the profile, which outlive it.
// - Invariants: progress is lost by LoseUnsaved() only; a job that has ended changes no more.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "goodput/step_model.h"
#include "lab/model/profile.h"
#include "lab/trace/trace.h"

namespace swell::lab {

using goodput::BatchChoice;
using goodput::StepCorrections;
using goodput::StepMeasurements;
using goodput::StepParameters;

enum class BatchMode {
  kRequested,  // what the trace says
  kAdaptive,   // the best by what the job has measured so far
};

// What jobs of an application measured before, for the next one of it.
struct Experience {
  struct OnGroup {
    StepMeasurements steps;
    int gpus = 0;  // the most that one ran on
  };
  std::map<int, OnGroup> groups;
  GradientStats first_gradient;
};
using Experiences = std::map<std::string, Experience>;  // by application

struct JobOptions {
  BatchMode batch = BatchMode::kRequested;
  Rules rules = Rules::kPollux;
  int64_t resize_s = 30;
  double slowdown = 1;                  // true speed is that of the profile divided by this
  std::vector<int> gpus_per_node = {};  // of each group
  int first_gpus = 1;                   // it may begin on up to this many, tried or not
  Experiences* experiences =
      nullptr;                      // shared by the jobs of a run; null: each begins with nothing
  const PlanCurve* plan = nullptr;  // of the job's application; null: it has none
  std::vector<int> sizes = {};      // with a plan: the numbers of GPUs on which it trains
  int64_t save_every_s = 0;         // training between two checkpoints; 0: none is made
};

class SimJob {
 public:
  // `profiles` has one for each group of the cluster, or none where the job has a plan or only a
  // duration is known.
  SimJob(const TraceJob& trace, std::vector<const Profile*> profiles, const JobOptions& options);

  // It is submitted now: what others of its application have measured is known.
  void Submit();
  // Time passes from `now_s` on.
  void Advance(int64_t now_s, int64_t seconds);
  // Gives the job other GPUs, all of one group, from now on; empty: none.
  void Place(const Placement& placement, int64_t now_s, int group = 0);
  // Training goes back to the last checkpoint. Checkpoints are made at each change of its GPUs, and
  // after each `save_every_s` of training.
  void LoseUnsaved();

  const TraceJob& trace() const { return trace_; }
  // The profile of the group in which it trains, or trained last.
  const Profile* profile() const { return profiles_.empty() ? nullptr : profiles_[group_]; }
  const Profile* profile(int group) const { return profiles_.empty() ? nullptr : profiles_[group]; }
  const JobOptions& options() const { return options_; }
  const Placement& placement() const { return placement_; }
  int group() const { return group_; }  // of its GPUs
  // The numbers of GPUs on which it trains, if it has an execution plan. Null: any.
  const std::vector<int>* sizes() const {
    return options_.plan == nullptr ? nullptr : &options_.sizes;
  }
  // What a model that is split needs for a size; empty: any placement will do.
  Placement NeededPlacement(int gpus, int gpus_per_node) const {
    return options_.plan == nullptr ? Placement()
                                    : options_.plan->NeededPlacement(gpus, gpus_per_node);
  }
  // Whether any of its nodes has all that its training needs to continue.
  bool survives_on_part() const {
    return options_.plan == nullptr || !options_.plan->splits_state();
  }
  bool resizing() const { return !placement_.empty() && resizing_s_ > 0; }
  int gpus() const { return gpus_; }
  bool ended() const { return ended_s_.has_value(); }
  int64_t ended_s() const { return ended_s_.value_or(-1); }
  std::optional<int64_t> started_s() const { return started_s_; }
  int restarts() const { return restarts_; }
  // GPU-seconds held so far, delays included.
  double service() const { return service_; }
  int64_t running_s() const { return running_s_; }  // with GPUs, delays included
  // Parts of the GPU-seconds held: delays, and training that was lost.
  double paused_gpu_s() const { return paused_gpu_s_; }
  double lost_gpu_s() const { return lost_gpu_s_; }
  int epoch() const { return epoch_; }

  // What is known without looking ahead. A curve is of goodput by GPUs on as few nodes as can be;
  // it changes when the version does.
  uint64_t estimate_version() const { return estimate_version_; }
  double EstimatedGoodput(int nodes, int gpus) const {
    return EstimatedGoodput(group_, nodes, gpus);
  }
  // For a group that it has not tried: the estimate of a group that it has, times the ratio of the
  // speeds of one GPU.
  double EstimatedGoodput(int group, int nodes, int gpus) const;
  // The same from the fitted model alone, with batches up to `batch_max`, as Sia's policy estimates
  // it.
  double ModelGoodput(int group, int nodes, int gpus, int64_t batch_max) const;
  // Whether the estimates have any measurement behind them.
  bool measured() const { return profiles_.empty() || AnyFitted() >= 0; }
  // On fewer it does not train.
  int GpusMin() const {
    if (sizes() != nullptr) return sizes()->front();
    return profiles_.empty() ? std::max(1, trace_.gpus_min) : 1;
  }
  // As many as it may try: twice what it has run on, within its batch and what it requested.
  int GpusMax(int cluster_gpus) const { return GpusMax(cluster_gpus, options_.first_gpus); }
  int GpusMax(int cluster_gpus, int first_gpus) const;

  // For policies that look ahead: seconds of training left if it had these GPUs from now on.
  double RemainingSeconds(const Placement& placement) const;
  // True speed on a placement, in initial batches per second (seconds of work per second).
  double TrueGoodput(const Placement& placement) const;
  // True steps a second with the requested batch on a placement in a group (seconds of work per
  // second).
  double RequestedSpeed(int group, const Placement& placement) const;

  // A time within which it does not end, unless its speed doubles; at least 1.
  int64_t QuietSeconds() const;

 private:
  // What it measured in a group, and the model that it fitted.
  struct Learned {
    StepMeasurements steps;
    int gpus = 0;  // the most it ran on
    std::optional<StepParameters> fitted;
    StepCorrections corrections;
  };
  // The group whose model answers for this group: another one if it has no model of its own.
  struct Source {
    int group = 0;
    int nodes = 1;
    double factor = 1;
  };

  // Its training as it was at the last checkpoint.
  struct Saved {
    double progress = 0;
    int epoch = 0;
    double epoch_end = 0;
    double work_left = 0;
  };

  void TrainOrWork(int64_t now_s, int64_t seconds);
  void Save();
  void Train(int64_t now_s, int64_t seconds);
  void Work(int64_t now_s, int64_t seconds);
  void UpdateBatch();
  void UpdateSpeed();
  void Measure(const StepTime& time);
  void Fit(Learned& learned);
  int AnyFitted() const;  // the first group with a model; -1: none
  Source SourceFor(int group, int nodes, int gpus) const;
  double CorrectionFor(const Source& source, int gpus) const;
  double WorkSpeed(int nodes, int gpus) const;
  double WorkSpeed(const Placement& placement) const;
  // The requested batch on a placement, and the time that a step takes with it.
  struct RequestedStep {
    BatchChoice batch;
    double step_s = 1;
  };
  RequestedStep RequestedStepOn(int group, const Placement& placement) const;
  BatchLimits LimitsOn(int group, const Placement& placement) const;
  std::optional<int64_t> FixedBatch() const;

  const TraceJob& trace_;
  const std::vector<const Profile*> profiles_;  // by group
  const JobOptions options_;

  Placement placement_;
  int group_ = 0;
  int gpus_ = 0;
  int64_t resizing_s_ = 0;  // of the delay to come
  std::optional<int64_t> started_s_;
  std::optional<int64_t> ended_s_;
  int restarts_ = 0;
  double service_ = 0;
  int64_t running_s_ = 0;
  double paused_gpu_s_ = 0;
  double lost_gpu_s_ = 0;
  Saved saved_;
  int64_t unsaved_s_ = 0;  // training since then
  double unsaved_gpu_s_ = 0;

  // With a profile.
  BatchChoice batch_;
  double progress_ = 0;
  int epoch_ = 0;
  double goodput_ = 0;  // of batch_ on placement_ in epoch_
  double epoch_end_ = 0;
  bool stale_ = true;  // goodput_
  GradientStats gradient_;
  std::vector<Learned> learned_;  // by group
  uint64_t estimate_version_ = 0;

  // Without a profile: seconds on the requested GPUs, or steps of its plan.
  double work_left_ = 0;
};

}  // namespace swell::lab
