// The published results of Pollux' simulator, job by job, and those of Sia and Shockwave, within a
// range, where their traces and profiles are present: in the folder that SWELL_LAB_DATA names, else
// in ../shared/data beside the source tree.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"
#include "lab/simulator.h"
#include "lab/trace/csv.h"

namespace swell::lab {
namespace {

std::string DataFolder() {
  const char* said = std::getenv("SWELL_LAB_DATA");
  if (said != nullptr) return said;
  const std::string here = __FILE__;
  return here.substr(0, here.rfind("/src/lab/")) + "/../shared/data";
}

// Completion times of a configuration by workload and job.
using Published = std::map<std::string, std::map<std::string, double>>;

Published ReadPublished(const std::string& configuration) {
  Published published;
  const auto table = CsvTable::Read(DataFolder() + "/pollux/published/per_job_jct.csv");
  if (!table.ok()) return published;
  const size_t config = *table->Column("config"), workload = *table->Column("workload"),
               job = *table->Column("job"), time = *table->Column("jct_s");
  for (size_t row = 0; row < table->rows(); ++row) {
    if (table->Text(row, config) != configuration) continue;
    published[std::string(table->Text(row, workload))][std::string(table->Text(row, job))] =
        *table->Number(row, time);
  }
  return published;
}

class PublishedResults : public testing::TestWithParam<std::pair<const char*, const char*>> {};

// Every job of every workload, to the second; averages to the last bit follow.
TEST_P(PublishedResults, EveryJobEndsWhenItDidThere) {
  const auto [policy, load] = GetParam();
  const std::string profiles_folder = DataFolder() + "/profiles";
  if (!FileExists(profiles_folder)) GTEST_SKIP() << "no " << profiles_folder;
  const auto profiles = ProfileLibrary::Load(profiles_folder, {"aws"});
  ASSERT_TRUE(profiles.ok()) << profiles.status().message();
  int compared = 0;
  for (const auto& [workload, times] : ReadPublished(StrCat(policy, "-", load))) {
    const std::string file =
        StrCat(DataFolder(), "/pollux/workloads/load-", load, "/", workload, ".csv");
    if (!FileExists(file)) continue;
    const auto trace = ReadTrace(file);
    ASSERT_TRUE(trace.ok()) << trace.status().message();
    const auto run = Play(*trace, *profiles, **FindPolicy(policy), RunOptions{});
    ASSERT_TRUE(run.ok()) << run.status().message();
    ASSERT_EQ(run->jobs.size(), times.size());
    for (const JobOutcome& job : run->jobs) {
      ASSERT_EQ(static_cast<double>(job.completion_s()), times.at(job.name))
          << workload << " " << job.name;
      ++compared;
    }
  }
  EXPECT_GT(compared, 0);
}

INSTANTIATE_TEST_SUITE_P(Pollux,
                         PublishedResults,
                         testing::Values(std::pair{"tiresias", "0.5"},
                                         std::pair{"tiresias", "1.0"},
                                         std::pair{"tiresias", "1.5"},
                                         std::pair{"tiresias", "2.0"},
                                         std::pair{"optimus", "0.5"},
                                         std::pair{"optimus", "1.0"},
                                         std::pair{"optimus", "1.5"},
                                         std::pair{"optimus", "2.0"}));

double AverageOfWorkloadSix(std::string_view policy) {
  const auto profiles = ProfileLibrary::Load(DataFolder() + "/profiles", {"aws"});
  const auto trace = ReadTrace(DataFolder() + "/pollux/workloads/load-1.0/workload-6.csv");
  if (!profiles.ok() || !trace.ok()) return 0;
  const auto run = Play(*trace, *profiles, **FindPolicy(policy), RunOptions{});
  if (!run.ok()) return 0;
  double sum = 0;
  for (const JobOutcome& job : run->jobs) sum += static_cast<double>(job.completion_s());
  return sum / static_cast<double>(run->jobs.size());
}

TEST(PublishedAverages, WorkloadSixToTheLastBit) {
  if (!FileExists(DataFolder() + "/profiles")) GTEST_SKIP() << "no " << DataFolder();
  EXPECT_EQ(AverageOfWorkloadSix("tiresias"), 3469.69375);
  EXPECT_EQ(AverageOfWorkloadSix("optimus"), 5301.875);
}

double MeanCompletion(const RunOutcome& run) {
  double sum = 0;
  for (const JobOutcome& job : run.jobs) sum += static_cast<double>(job.completion_s());
  return sum / static_cast<double>(run.jobs.size());
}

// Sia's simulator, run with other solvers, on the first trace of Helios and of Philly. A program
// has many optima, and solvers differ in which they find, so no job ends in the same second.
TEST(PublishedAverages, SiaOnThreeTypesOfGpu) {
  const std::string file = DataFolder() + "/sia/workloads/saturn/workload-1.csv";
  if (!FileExists(file)) GTEST_SKIP() << "no " << file;
  RunOptions options;
  options.rules = Rules::kSia;
  options.shape = ClusterShape({{6, 4, "aws"}, {2, 8, "dgx-ext"}, {3, 8, "rtx"}});
  const auto trace = ReadTrace(file);
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  std::set<std::string> named;
  for (const TraceJob& job : trace->jobs) named.insert(job.application);
  const auto profiles = ProfileLibrary::Load(DataFolder() + "/profiles", {"aws", "dgx-ext", "rtx"},
                                             Rules::kSia, &named);
  ASSERT_TRUE(profiles.ok()) << profiles.status().message();
  const auto run = Play(*trace, *profiles, **FindPolicy("sia"), options);
  ASSERT_TRUE(run.ok()) << run.status().message();
  EXPECT_NEAR(MeanCompletion(*run) / 3600, 0.590, 0.059);
  double gpu_s = 0;
  for (const JobOutcome& job : run->jobs) gpu_s += job.gpu_s;
  EXPECT_NEAR(gpu_s / 3600 / 160, 3.48, 0.35);
}

TEST(PublishedAverages, ShockwavesTraceUnderMaxMin) {
  const std::string file =
      DataFolder() +
      "/shockwave/120_0.2_5_100_40_25_0_0.5_0.5_0.6_0.3_0.09_0.01_multigpu_dynamic.trace";
  if (!FileExists(file)) GTEST_SKIP() << "no " << file;
  const auto trace = ReadTrace(file);
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  int64_t gpu_s = 0;
  for (const TraceJob& job : trace->jobs) gpu_s += job.duration_s * job.gpus;
  EXPECT_NEAR(static_cast<double>(gpu_s), 19868.6 * 32, 100) << "as recorded there";
  RunOptions options;
  options.shape = ClusterShape(32, 1);
  options.resize_s = 20;
  options.round_s = 120;
  const auto run = Play(*trace, ProfileLibrary(), **FindPolicy("max-min"), options);
  ASSERT_TRUE(run.ok()) << run.status().message();
  // Recorded there: 11,274 s and 33,208 s.
  EXPECT_NEAR(MeanCompletion(*run), 11'274, 600);
  int64_t last_s = 0;
  for (const JobOutcome& job : run->jobs) last_s = std::max(last_s, job.ended_s);
  EXPECT_NEAR(static_cast<double>(last_s), 33'208, 1'700);
}

}  // namespace
}  // namespace swell::lab
