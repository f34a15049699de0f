#include "lab/model/profile.h"

#include <algorithm>
#include <numeric>

#include "base/file.h"
#include "base/strings.h"

namespace swell::lab {
namespace {

constexpr int kNodesMax = 16;  // the widest measured; wider jobs count as if on this number
constexpr size_t kKnownStepsMax = 1 << 20;

// Smallest rotation: ranks form a ring, and where it begins does not matter.
std::string RingName(const Placement& placement) {
  std::string digits;
  for (int gpus : placement) {
    if (gpus > 9) return "";  // such placements have no name in the files
    digits += static_cast<char>('0' + gpus);
  }
  std::string best = digits;
  for (size_t i = 1; i < digits.size(); ++i) {
    best = std::min(best, digits.substr(i) + digits.substr(0, i));
  }
  return best;
}

struct StepColumns {
  size_t batch, step, sync;
};

Result<StepColumns> FindStepColumns(const CsvTable& table) {
  StepColumns columns{};
  SWELL_ASSIGN_OR_RETURN(columns.batch, table.Column("local_bsz"));
  SWELL_ASSIGN_OR_RETURN(columns.step, table.Column("step_time"));
  SWELL_ASSIGN_OR_RETURN(columns.sync, table.Column("sync_time"));
  return columns;
}

struct BatchAndTime {
  int64_t batch;
  StepTime time;
};

Result<BatchAndTime> ReadStep(const CsvTable& table, size_t row, const StepColumns& columns) {
  BatchAndTime read{};
  SWELL_ASSIGN_OR_RETURN(read.batch, table.Integer(row, columns.batch));
  SWELL_ASSIGN_OR_RETURN(read.time.step_s, table.Number(row, columns.step));
  SWELL_ASSIGN_OR_RETURN(read.time.sync_s, table.Number(row, columns.sync));
  if (read.batch < 1 || read.batch > 1'000'000) {
    return table.Wrong(row, columns.batch, "expected 1 to 1000000");
  }
  if (read.time.step_s <= 0 || read.time.sync_s < 0 || read.time.sync_s >= read.time.step_s) {
    return table.Wrong(row, columns.step, "expected a positive time, longer than sync_time");
  }
  return read;
}

}  // namespace

int GpusOf(const Placement& placement) {
  return std::accumulate(placement.begin(), placement.end(), 0);
}

Result<std::unique_ptr<Profile>> Profile::Load(const std::string& folder,
                                               const std::string& application,
                                               const std::string& gpu_type,
                                               Rules rules) {
  std::unique_ptr<Profile> profile(new Profile);
  profile->application_ = application;
  profile->gpu_type_ = gpu_type;
  profile->rules_ = rules;
  std::vector<StepPoint> points;
  SWELL_RETURN_IF_ERROR(
      profile->ReadPlacements(StrCat(folder, "/placements-", gpu_type, ".csv"), points));
  const std::string scaling = StrCat(folder, "/scalability-", gpu_type, ".csv");
  if (FileExists(scaling)) SWELL_RETURN_IF_ERROR(profile->ReadScaling(scaling, points));
  SWELL_ASSIGN_OR_RETURN(const std::vector<std::string> files, ListDir(folder));
  for (std::string_view file : files) {
    const std::string path = StrCat(folder, "/", file);
    if (!file.starts_with("validation-") || !file.ends_with(".csv")) continue;
    file = file.substr(11, file.size() - 15);
    const auto batch = ParseInt(file);
    if (!batch || *batch < 1 || *batch > 1'000'000) {
      return Status(Code::kInvalid, StrCat(path, ": expected validation-BATCH.csv"));
    }
    SWELL_RETURN_IF_ERROR(profile->ReadCourse(path, *batch));
  }
  SWELL_RETURN_IF_ERROR(profile->Finish(folder));
  profile->surface_ = std::make_unique<StepSurface>(application, points);
  return profile;
}

Status Profile::ReadPlacements(const std::string& path, std::vector<StepPoint>& points) {
  SWELL_ASSIGN_OR_RETURN(const CsvTable table, CsvTable::Read(path));
  SWELL_ASSIGN_OR_RETURN(const size_t name_column, table.Column("placement"));
  SWELL_ASSIGN_OR_RETURN(const StepColumns columns, FindStepColumns(table));
  struct Sum {
    StepTime time;
    int count = 0;
  };
  std::map<std::array<int64_t, 3>, Sum> sums;  // placements of one shape count by their mean
  for (size_t row = 0; row < table.rows(); ++row) {
    const std::string name(table.Text(row, name_column));
    if (name.empty() || name.size() > kNodesMax ||
        name.find_first_not_of("123456789") != std::string::npos) {
      return table.Wrong(row, name_column, "expected GPUs on each node as digits");
    }
    SWELL_ASSIGN_OR_RETURN(const BatchAndTime read, ReadStep(table, row, columns));
    placements_[name].emplace_back(read.batch, read.time);
    int64_t gpus = 0;
    for (char digit : name) gpus += digit - '0';
    Sum& sum = sums[{static_cast<int64_t>(name.size()), gpus, read.batch}];
    sum.time.step_s += read.time.step_s;
    sum.time.sync_s += read.time.sync_s;
    ++sum.count;
  }
  if (placements_.empty()) return Status(Code::kInvalid, StrCat(path, ": has no rows"));
  for (auto& [name, curve] : placements_) {
    std::sort(curve.begin(), curve.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
  }
  limits_.local_min = sums.begin()->first[2];
  for (const auto& [at, sum] : sums) {
    limits_.local_min = std::min(limits_.local_min, at[2]);
    limits_.local_max = std::max(limits_.local_max, at[2]);
    nodes_max_ = std::max(nodes_max_, static_cast<int>(at[0]));
    int64_t& local_max = local_max_[static_cast<int>(at[1])];
    local_max = std::max(local_max, at[2]);
    points.push_back({at, {sum.time.step_s / sum.count, sum.time.sync_s / sum.count}});
  }
  limits_.local_max = LocalBatchMax(rules_, application_, gpu_type_, limits_.local_max);
  return {};
}

Status Profile::ReadScaling(const std::string& path, std::vector<StepPoint>& points) {
  SWELL_ASSIGN_OR_RETURN(const CsvTable table, CsvTable::Read(path));
  SWELL_ASSIGN_OR_RETURN(const size_t nodes_column, table.Column("num_nodes"));
  SWELL_ASSIGN_OR_RETURN(const size_t gpus_column, table.Column("num_replicas"));
  SWELL_ASSIGN_OR_RETURN(const StepColumns columns, FindStepColumns(table));
  std::map<std::array<int64_t, 3>, StepTime> added;
  for (size_t row = 0; row < table.rows(); ++row) {
    SWELL_ASSIGN_OR_RETURN(const int64_t nodes, table.Integer(row, nodes_column));
    SWELL_ASSIGN_OR_RETURN(const int64_t gpus, table.Integer(row, gpus_column));
    SWELL_ASSIGN_OR_RETURN(const BatchAndTime read, ReadStep(table, row, columns));
    if (nodes < 1 || gpus < nodes || gpus > 100'000) {
      return table.Wrong(row, gpus_column, "expected at least as many as num_nodes");
    }
    added[{nodes, gpus, read.batch}] = read.time;
    nodes_max_ = std::max(nodes_max_, static_cast<int>(nodes));
    int64_t& local_max = scaled_local_max_[{nodes, gpus}];
    local_max = std::max(local_max, read.batch);
  }
  for (const StepPoint& point : points) added.erase(point.at);
  for (const auto& [at, time] : added) points.push_back({at, time});
  return {};
}

Status Profile::ReadCourse(const std::string& path, int64_t batch) {
  SWELL_ASSIGN_OR_RETURN(const CsvTable table, CsvTable::Read(path));
  SWELL_ASSIGN_OR_RETURN(const size_t progress, table.Column("progress"));
  SWELL_ASSIGN_OR_RETURN(const size_t steps, table.Column("iteration"));
  SWELL_ASSIGN_OR_RETURN(const size_t sqr, table.Column("grad_sqr"));
  SWELL_ASSIGN_OR_RETURN(const size_t var, table.Column("grad_var"));
  Course course;
  for (size_t row = 0; row < table.rows(); ++row) {
    Epoch epoch;
    SWELL_ASSIGN_OR_RETURN(epoch.progress, table.Number(row, progress));
    SWELL_ASSIGN_OR_RETURN(epoch.steps, table.Number(row, steps));
    SWELL_ASSIGN_OR_RETURN(epoch.gradient.sqr, table.Number(row, sqr));
    SWELL_ASSIGN_OR_RETURN(epoch.gradient.var, table.Number(row, var));
    if (epoch.progress <= (course.empty() ? 0 : course.back().progress)) {
      return table.Wrong(row, progress, "expected more than the row before");
    }
    if (epoch.gradient.sqr < 0 || epoch.gradient.var < 0 ||
        epoch.gradient.sqr + epoch.gradient.var <= 0) {
      return table.Wrong(row, sqr, "expected grad_sqr and grad_var of at least 0, not both 0");
    }
    course.push_back(epoch);
  }
  if (course.empty()) return Status(Code::kInvalid, StrCat(path, ": has no rows"));
  courses_[batch] = std::move(course);
  return {};
}

Status Profile::Finish(const std::string& folder) {
  if (courses_.empty()) {
    return Status(Code::kInvalid, StrCat(folder, ": has no validation-BATCH.csv"));
  }
  limits_.initial = courses_.begin()->first;
  limits_.max = courses_.rbegin()->first;
  size_t epochs = courses_.begin()->second.size();
  for (const auto& [batch, course] : courses_) epochs = std::min(epochs, course.size());
  epochs_ = static_cast<int>(epochs);
  if (limits_.max < limits_.local_min) {
    return Status(Code::kInvalid,
                  StrCat(folder, ": the largest validated batch, ", limits_.max,
                         ", is below the smallest measured local_bsz, ", limits_.local_min));
  }
  return {};
}

StepTime Profile::Step(const Placement& placement, int64_t local_batch) const {
  const std::string name = RingName(placement);
  const std::string key =
      StrCat(name, ":", placement.size(), ":", GpusOf(placement), ":", local_batch);
  const auto known = known_steps_.find(key);
  if (known != known_steps_.end()) return known->second;
  const auto measured = placements_.find(name);
  const int nodes = std::min(static_cast<int>(placement.size()), kNodesMax);
  const StepTime time = measured != placements_.end()
                            ? OnCurve(measured->second, local_batch)
                            : surface_->At(nodes, GpusOf(placement), local_batch);
  if (known_steps_.size() < kKnownStepsMax) known_steps_.emplace(key, time);
  return time;
}

double Profile::SingleGpuSpeed() const {
  const auto single = placements_.find("1");
  if (single == placements_.end()) return 0;
  double slowest_s = 0;
  for (const auto& [batch, time] : single->second) slowest_s = std::max(slowest_s, time.step_s);
  return static_cast<double>(single->second.back().first) / slowest_s;
}

int64_t Profile::LocalBatchMaxOn(const Placement& placement) const {
  int64_t most = 0;
  const auto measured = placements_.find(RingName(placement));
  const int gpus = GpusOf(placement);
  if (measured != placements_.end()) {
    most = measured->second.back().first;
  } else {
    for (const auto& [at, batch] : scaled_local_max_) {
      const bool as_wide = at.first >= static_cast<int64_t>(placement.size()) && at.second >= gpus;
      if (as_wide) most = std::max(most, batch);
    }
  }
  const auto of_as_many = local_max_.find(gpus);
  if (of_as_many != local_max_.end()) most = std::min(most, of_as_many->second);
  return most > 0 ? most : limits_.local_max;
}

Profile::Neighbours Profile::Around(int64_t batch) const {
  auto high = courses_.lower_bound(batch);
  if (high == courses_.end()) high = std::prev(courses_.end());
  const bool same = high->first <= batch || high == courses_.begin();
  const auto low = same ? high : std::prev(high);
  return {low->first, high->first, &low->second, &high->second};
}

GradientStats Profile::Gradient(int64_t batch, int epoch) const {
  const Neighbours n = Around(batch);
  const GradientStats& low = (*n.low)[epoch].gradient;
  const GradientStats& high = (*n.high)[epoch].gradient;
  if (n.low == n.high) return low;
  const auto above = static_cast<double>(batch - n.low_batch);
  const auto below = static_cast<double>(n.high_batch - batch);
  const auto width = static_cast<double>(n.high_batch - n.low_batch);
  return {(above * high.sqr + below * low.sqr) / width,
          (above * high.var + below * low.var) / width};
}

double Profile::Progress(int epochs) const {
  if (epochs <= 0) return 0;
  double least = courses_.begin()->second[epochs - 1].progress;
  for (const auto& [batch, course] : courses_) least = std::min(least, course[epochs - 1].progress);
  return least;
}

double Profile::Steps(int64_t batch, int epoch) const {
  const Neighbours n = Around(batch);
  const double low = (*n.low)[epoch].steps;
  const double high = (*n.high)[epoch].steps;
  if (n.low == n.high) return low;
  return (static_cast<double>(batch - n.low_batch) * high +
          static_cast<double>(n.high_batch - batch) * low) /
         static_cast<double>(n.high_batch - n.low_batch);
}

Result<ProfileLibrary> ProfileLibrary::Load(const std::string& folder,
                                            const std::vector<std::string>& gpu_types,
                                            Rules rules,
                                            const std::set<std::string>* only) {
  SWELL_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDir(folder));
  ProfileLibrary library;
  bool any_plans = false;
  for (const std::string& name : names) {
    const std::string file = StrCat(folder, "/", name, "/placements.csv");
    if (!FileExists(file)) continue;
    any_plans = true;
    if (only != nullptr && !only->contains(name)) continue;
    SWELL_RETURN_IF_ERROR(library.ReadPlans(file, name));
  }
  for (const std::string& gpu_type : gpu_types) {
    bool any = false;
    for (const std::string& name : names) {
      const std::string inside = StrCat(folder, "/", name);
      if (!FileExists(StrCat(inside, "/placements-", gpu_type, ".csv"))) continue;
      any = true;
      if (only != nullptr && !only->contains(name)) continue;
      const auto files = ListDir(inside);
      if (!files.ok()) return files.status();
      const bool trains = std::any_of(files->begin(), files->end(), [](const std::string& file) {
        return file.starts_with("validation-");
      });
      if (!trains) continue;  // another simulator's pipeline job
      SWELL_ASSIGN_OR_RETURN(std::unique_ptr<Profile> profile,
                             Profile::Load(inside, name, gpu_type, rules));
      library.Add(std::move(profile));
    }
    if (!any && !any_plans) {
      return Status(Code::kNotFound,
                    StrCat(folder, ": has no APPLICATION/placements-", gpu_type, ".csv"));
    }
  }
  return library;
}

Status ProfileLibrary::ReadPlans(const std::string& file, const std::string& application) {
  SWELL_ASSIGN_OR_RETURN(const std::vector<PlanStep> steps, ReadPlanSteps(file));
  std::map<std::string, PlanCurve>& curves = plans_[application];
  curves.try_emplace("", steps, "");
  for (const PlanStep& step : steps) curves.try_emplace(step.plan, steps, step.plan);
  return {};
}

const PlanCurve* ProfileLibrary::FindPlan(const std::string& application,
                                          const std::string& plan) const {
  const auto found = plans_.find(application);
  if (found == plans_.end()) return nullptr;
  const auto curve = found->second.find(plan);
  return curve == found->second.end() ? nullptr : &curve->second;
}

void ProfileLibrary::Add(std::unique_ptr<Profile> profile) {
  const std::string name = profile->application();
  profiles_[name].push_back(std::move(profile));
}

const Profile* ProfileLibrary::Find(const std::string& application,
                                    const std::string& gpu_type) const {
  const auto found = profiles_.find(application);
  if (found == profiles_.end()) return nullptr;
  for (const auto& profile : found->second) {
    if (gpu_type.empty() || profile->gpu_type() == gpu_type) return profile.get();
  }
  return nullptr;
}

std::vector<std::string> ProfileLibrary::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, profiles] : profiles_) names.push_back(name);
  return names;
}

}  // namespace swell::lab
