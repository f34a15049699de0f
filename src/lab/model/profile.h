// Profile: what was measured of an application: step times over GPUs, and how training advances
// with the batch. The format is that of Pollux' published simulator (docs/lab.md).
//
// - Threads: none; remembers step times it was asked for.
// - Invariants: tables are not empty; progress grows from epoch to epoch.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "goodput/step_model.h"
#include "lab/model/plan_curve.h"
#include "lab/model/rules.h"
#include "lab/model/step_surface.h"
#include "lab/trace/csv.h"

namespace swell::lab {

// A placement has the GPUs on each node of a job, in the order of its ranks.
int GpusOf(const Placement& placement);

using goodput::BatchLimits;
using goodput::GradientStats;

class Profile {
 public:
  // Reads FOLDER/placements-TYPE.csv, scalability-TYPE.csv and validation-BATCH.csv.
  static Result<std::unique_ptr<Profile>> Load(const std::string& folder,
                                               const std::string& application,
                                               const std::string& gpu_type,
                                               Rules rules);

  const std::string& application() const { return application_; }
  const std::string& gpu_type() const { return gpu_type_; }
  const BatchLimits& limits() const { return limits_; }
  int epochs() const { return epochs_; }
  int nodes_max() const { return nodes_max_; }  // the most that were measured together
  // Samples a second of one GPU at its largest batch, as Sia compares types of GPU; 0: not
  // measured.
  double SingleGpuSpeed() const;
  // The largest batch per GPU that was measured on this placement, or on one with at least as many
  // GPUs.
  int64_t LocalBatchMaxOn(const Placement& placement) const;

  StepTime Step(const Placement& placement, int64_t local_batch) const;
  // During an epoch, from 0. Linear between the measured batches.
  GradientStats Gradient(int64_t batch, int epoch) const;
  // Progress at the end of epoch number `epochs`.
  double Progress(int epochs) const;
  // Steps at a batch until an epoch, from 0, has ended.
  double Steps(int64_t batch, int epoch) const;

 private:
  struct Epoch {
    double progress = 0;
    double steps = 0;
    GradientStats gradient;
  };
  using Course = std::vector<Epoch>;
  struct Neighbours {
    int64_t low_batch, high_batch;
    const Course* low;
    const Course* high;
  };

  Profile() = default;
  Status ReadPlacements(const std::string& path, std::vector<StepPoint>& points);
  Status ReadScaling(const std::string& path, std::vector<StepPoint>& points);
  Status ReadCourse(const std::string& path, int64_t batch);
  Status Finish(const std::string& folder);
  Neighbours Around(int64_t batch) const;

  std::string application_;
  std::string gpu_type_;
  Rules rules_ = Rules::kPollux;
  BatchLimits limits_;
  int nodes_max_ = 0;
  int epochs_ = 0;
  std::map<std::string, std::vector<std::pair<int64_t, StepTime>>> placements_;  // "124" → curve
  std::map<int, int64_t> local_max_;  // by number of GPUs, over all placements on them
  std::map<std::pair<int64_t, int64_t>, int64_t> scaled_local_max_;  // by nodes and GPUs
  std::unique_ptr<StepSurface> surface_;
  std::map<int64_t, Course> courses_;  // by batch
  mutable std::unordered_map<std::string, StepTime> known_steps_;
};

// All applications below a folder, on one type of GPU or several, and those with execution plans.
class ProfileLibrary {
 public:
  // `only`: the applications that are read; null: all.
  static Result<ProfileLibrary> Load(const std::string& folder,
                                     const std::vector<std::string>& gpu_types,
                                     Rules rules = Rules::kPollux,
                                     const std::set<std::string>* only = nullptr);
  // An empty type means the first one that was read.
  const Profile* Find(const std::string& application, const std::string& gpu_type = "") const;
  // Null: the application has no such plan. An empty plan is the fastest one on each placement.
  const PlanCurve* FindPlan(const std::string& application, const std::string& plan) const;
  void Add(std::unique_ptr<Profile> profile);
  std::vector<std::string> Names() const;

 private:
  // Reads FOLDER/APPLICATION/placements.csv.
  Status ReadPlans(const std::string& file, const std::string& application);

  std::map<std::string, std::vector<std::unique_ptr<Profile>>> profiles_;  // by application
  std::map<std::string, std::map<std::string, PlanCurve>> plans_;  // by application and plan
};

}  // namespace swell::lab
