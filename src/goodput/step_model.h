// StepModel: what a job's measurements say of numbers of GPUs it has not tried. The laboratory and
// the live cluster fit the same one.
//
// Step time as Pollux models it (OSDI'21, section 3.2): computing alpha_c + beta_c·m for a batch m
// of a GPU, exchanging gradients alpha + beta·(GPUs − 2), with parameters of their own within a
// node and between nodes, overlapped by a norm with exponent gamma. Goodput is throughput times
// statistical efficiency (φ + M0) / (φ + M) for a batch M, the initial batch M0 and the gradient
// noise scale φ. What was never measured counts as free, so that it is tried.
//
// - Threads: plain values and pure functions.
// - Invariants: parameters are positive, 1 <= gamma <= 10.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

namespace swell::goodput {

struct StepTime {
  double step_s = 0;  // a whole step
  double sync_s = 0;  // of it: waiting for the exchange of gradients
};

struct GradientStats {
  double sqr = 0;  // squared norm of the true gradient
  double var = 0;  // variance of the gradient of one initial batch
};

// What a job may choose its batch from.
struct BatchLimits {
  int64_t initial = 1;    // of all GPUs together; progress is counted in steps of this
  int64_t max = 1;        // of all GPUs together
  int64_t local_min = 1;  // of one GPU and pass
  int64_t local_max = 1;
};

struct StepParameters {
  double alpha_c = 0, beta_c = 0;  // seconds, seconds per sample
  double alpha_n = 0, beta_n = 0;  // between nodes: seconds, seconds per GPU beyond two
  double alpha_r = 0, beta_r = 0;  // within a node
  double gamma = 1;                // 1: no overlap; 10: nearly the longer of the two

  double ComputeTime(double local_batch) const { return alpha_c + beta_c * local_batch; }
  double SyncTime(int nodes, int gpus) const;
  // The last pass of a step, with the exchange.
  double LastPassTime(int nodes, int gpus, double local_batch) const;
};

// By nodes, GPUs and batch of a GPU.
using StepMeasurements = std::map<std::tuple<int, int, int64_t>, StepTime>;

// Least squares of the logarithms, from `start` where there is one. `measured` is not empty.
StepParameters FitSteps(const StepMeasurements& measured, const StepParameters* start);

// By nodes and GPUs: how much longer a step took than the model says, as a factor. The model has
// seven parameters; where there are measurements of a shape, they know better.
using StepCorrections = std::map<std::pair<int, int>, double>;
StepCorrections CorrectionsOf(const StepMeasurements& measured, const StepParameters& fitted);

struct BatchChoice {
  int64_t local_batch = 0;
  int passes_before = 0;  // gradient accumulation before the pass that exchanges gradients
  double goodput = 0;     // initial batches per second
};

// The best of `tried` batches in geometric steps; `gpus` >= `nodes` >= 1, `tried` >= 2.
BatchChoice ChooseBatch(const StepParameters& step,
                        const GradientStats& gradient,
                        const BatchLimits& limits,
                        int nodes,
                        int gpus,
                        int tried = 50);

// How a batch that the user fixed is split over GPUs.
BatchChoice SplitBatch(const BatchLimits& limits, int64_t batch, int gpus);

// Progress of one step in initial batches.
double GainOf(const GradientStats& gradient, double scale);

// What a record of a batch is worth to the training, as a part of what one of the initial batch is:
// (φ + M0) / (φ + M). All three are in records and positive.
double EfficiencyOf(double noise, double initial, double batch);

}  // namespace swell::goodput
