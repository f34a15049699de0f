#include "base/metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/background_queue.h"
#include "base/file.h"
#include "base/health.h"
#include "base/line_file.h"
#include "base/strings.h"

namespace swell {
namespace {

using enum MetricType;

TEST(Metrics, PrintsFamiliesInOnePieceAndOrder) {
  Metrics metrics;
  CounterVec requests({"b_total", kCounter, "Requests\nby \\verb.", {"verb", "code"}}, 0);
  requests.At({"GET", "200"}) += 2;
  ++requests.At({"PUT \"x\"\n", "409"});
  auto first = metrics.Register([&](MetricPage& page) {
    page.Add({"c", kGauge, "A number.", {"of"}}, {"one"}, 0.25);
    page.Add(requests);
  });
  auto second = metrics.Register([](MetricPage& page) {
    page.Add({"c", kGauge, "A number.", {"of"}}, {"two"}, 1e20);
    page.Add({"a", kGauge, "First."}, -3);
  });
  EXPECT_EQ(metrics.Print(),
            "# HELP a First.\n# TYPE a gauge\na -3\n"
            "# HELP b_total Requests\\nby \\\\verb.\n# TYPE b_total counter\n"
            "b_total{verb=\"GET\",code=\"200\"} 2\n"
            "b_total{verb=\"PUT \\\"x\\\"\\n\",code=\"409\"} 1\n"
            "# HELP c A number.\n# TYPE c gauge\nc{of=\"one\"} 0.25\nc{of=\"two\"} 1e+20\n");
  second.reset();
  EXPECT_EQ(metrics.Print().find("\na "), std::string::npos);
}

TEST(Metrics, CountsWhatIsBelowEachBound) {
  const std::vector<double> bounds{0.1, 1};
  HistogramVec times({"t_seconds", kHistogram, "Times.", {"verb"}}, bounds);
  for (double value : {0.05, 0.1, 0.5, 7.0}) times.At({"GET"}).Observe(value);
  MetricPage page;
  page.Add(times);
  EXPECT_EQ(page.ToString(),
            "# HELP t_seconds Times.\n# TYPE t_seconds histogram\n"
            "t_seconds_bucket{verb=\"GET\",le=\"0.1\"} 2\n"
            "t_seconds_bucket{verb=\"GET\",le=\"1\"} 3\n"
            "t_seconds_bucket{verb=\"GET\",le=\"+Inf\"} 4\n"
            "t_seconds_sum{verb=\"GET\"} 7.65\nt_seconds_count{verb=\"GET\"} 4\n");
}

TEST(Metrics, KeepsTheNumberOfSeriesBounded) {
  CounterVec counters({"n_total", kCounter, "N.", {"user"}}, 0);
  for (int i = 0; i < 10'000; ++i) ++counters.At({std::to_string(i)});
  EXPECT_EQ(counters.series().size(), CounterVec::kSeriesMax + 1);
  EXPECT_EQ(counters.At({"(other)"}), 10'000.0 - CounterVec::kSeriesMax);
  EXPECT_EQ(counters.At({"17"}), 1);
}

TEST(Metrics, ARegistrationMayOutliveThem) {
  std::unique_ptr<Metrics::Registration> registration;
  {
    Metrics metrics;
    registration = metrics.Register([](MetricPage&) {});
  }
  registration.reset();
  EXPECT_EQ(RegisterMetrics(nullptr, [](MetricPage&) {}), nullptr);
}

TEST(Metrics, TellsAboutTheProcess) {
  MetricPage page;
  AddProcessMetrics(page, "1.2.3");
  const std::string text = page.ToString();
  for (const char* name : {"process_cpu_seconds_total ", "process_open_fds ", "process_max_fds ",
                           "process_resident_memory_bytes ", "process_virtual_memory_bytes ",
                           "process_start_time_seconds ", "process_threads ",
                           "swell_build_info{version=\"1.2.3\"} 1"}) {
    EXPECT_NE(text.find(StrCat("\n", name)), std::string::npos) << name;
  }
}

TEST(Health, AnswersAsKubernetesComponentsDo) {
  std::string broken;
  HealthChecks health;
  health.Add("store", [&broken] { return broken; });
  health.AddReady("informer-sync", [] { return "not yet"; });
  EXPECT_EQ(health.Ask("/healthz", "").text, "ok");
  EXPECT_EQ(health.Ask("/livez", "verbose").text, "[+]ping ok\n[+]store ok\nlivez check passed\n");
  const HealthChecks::Answer ready = health.Ask("/readyz", "");
  EXPECT_EQ(ready.status, 500);
  EXPECT_EQ(ready.text,
            "[+]ping ok\n[+]store ok\n[-]informer-sync failed: reason withheld\n"
            "readyz check failed\n");
  EXPECT_EQ(health.Ask("/readyz", "exclude=informer-sync&verbose").text,
            "[+]ping ok\n[+]store ok\n[+]informer-sync excluded: ok\nreadyz check passed\n");
  EXPECT_EQ(health.Ask("/readyz/store", "").text, "ok");
  EXPECT_EQ(health.Ask("/readyz/informer-sync", "").status, 500);
  EXPECT_EQ(health.Ask("/healthz/informer-sync", "").status, 404);
  EXPECT_EQ(health.Ask("/metrics", "").status, 404);
  broken = "disk full";
  EXPECT_EQ(health.Ask("/healthz", "").status, 500);
  EXPECT_EQ(health.Ask("/livez", "verbose&exclude=nothing").text,
            "[+]ping ok\n[-]store failed: reason withheld\n"
            "warn: some health checks cannot be excluded: no matches for \"nothing\"\n"
            "livez check failed\n");
}

class Lines : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    dir_ = StrCat(testing::TempDir(), "swell-lines-", info->name(), "-", ::getpid());
    ASSERT_TRUE(RemoveTree(dir_).ok());
    ASSERT_TRUE(MakeDirs(dir_).ok());
  }
  void TearDown() override { ASSERT_TRUE(RemoveTree(dir_).ok()); }
  std::string Text(const std::string& name) {
    auto text = ReadFile(dir_ + "/" + name);
    return text.ok() ? *text : text.status().ToString();
  }

  std::string dir_;
};

TEST_F(Lines, MoveOnAndTheOldestGo) {
  auto file = LineFile::Open(dir_ + "/log", {.bytes_max = 10, .backups = 2}).value();
  for (const char* line : {"one..\n", "two..\n", "three\n", "four.\n"}) {
    ASSERT_TRUE(file->Append(line).ok());
  }
  EXPECT_EQ(Text("log"), "four.\n");
  EXPECT_EQ(Text("log.1"), "three\n");
  EXPECT_EQ(Text("log.2"), "two..\n");
  EXPECT_EQ(ListDir(dir_).value().size(), 3u);
  EXPECT_EQ(std::filesystem::status(dir_ + "/log").permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST_F(Lines, GoOnBehindWhatACrashTore) {
  ASSERT_TRUE(WriteFileAtomically(dir_ + "/log", "whole\nhal").ok());
  auto file = LineFile::Open(dir_ + "/log", {}).value();
  ASSERT_TRUE(file->Append("next\n").ok());
  EXPECT_EQ(Text("log"), "whole\nhal\nnext\n");
}

// As a disk does that is full in the middle of a line.
TEST_F(Lines, AreWholeOrNotThere) {
  auto file = LineFile::Open(dir_ + "/log", {}).value();
  ASSERT_TRUE(file->Append("one\n").ok());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit full{.rlim_cur = 10, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
  const Status refused = file->Append("a second one\n");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  (void)std::signal(SIGXFSZ, handler);
  EXPECT_FALSE(refused.ok());
  EXPECT_EQ(Text("log"), "one\n");
  ASSERT_TRUE(file->Append("three\n").ok());
  EXPECT_EQ(Text("log"), "one\nthree\n");
}

TEST_F(Lines, SayWhatIsWrong) {
  auto file = LineFile::Open(dir_ + "/none/log", {});
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.status().message().find(dir_ + "/none/log"), std::string::npos);
}

TEST(Background, WorksInOrderAndEndsWhenAllIsDone) {
  std::string done;
  {
    BackgroundQueue<std::string> queue(1 << 20, Duration::zero(), [&done](const auto& items) {
      for (const std::string& item : items) done += item;
    });
    for (const char* item : {"a", "b", "c"}) EXPECT_TRUE(queue.Push(item, 1));
  }
  EXPECT_EQ(done, "abc");
}

TEST(Background, RefusesWhatDoesNotFit) {
  std::atomic<bool> working{false};
  std::atomic<bool> go_on{false};
  size_t done = 0;
  {
    BackgroundQueue<size_t> queue(10, Duration::zero(), [&](const auto& items) {
      working = true;
      working.notify_all();
      go_on.wait(false);
      done += items.size();
    });
    EXPECT_TRUE(queue.Push(1, 50));  // larger than all the room, but alone
    working.wait(false);
    EXPECT_TRUE(queue.Push(2, 6));
    EXPECT_FALSE(queue.Push(3, 6));
    EXPECT_TRUE(queue.Push(4, 4));
    go_on = true;
    go_on.notify_all();
  }
  EXPECT_EQ(done, 3u);
}

TEST(Background, GathersAndStillEndsAtOnce) {
  std::vector<size_t> turns;
  {
    BackgroundQueue<int> queue(10, std::chrono::hours(1),
                               [&](const auto& items) { turns.push_back(items.size()); });
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(queue.Push(i, 1));
  }
  size_t all = 0;
  for (const size_t turn : turns) all += turn;
  EXPECT_EQ(all, 5u);
}

}  // namespace
}  // namespace swell
