// The jobs of an array, seen together by why, describe, list, logs and delete.
#include "cli/cli_test_util.h"
#include "json/value.h"

namespace swell::cli {
namespace {

class ArrayViewTest : public CliTest {
 protected:
  ArrayViewTest() {
    EXPECT_EQ(Run({"swell", "submit", "sw", "--array", "0-10", "--image", "i", "--", "run"}), 0)
        << err_;
    for (const char* done : {"sw-0", "sw-2"}) Is(done, "Succeeded", "");
    Is("sw-10", "Failed", "the disk is full");
  }
  void Is(const std::string& job, const std::string& condition, const std::string& message) {
    Status("/apis/kubeflow.org/v1/namespaces/default/pytorchjobs/" + job,
           StrCat(R"({"status":{"completionTime":"2026-01-01T00:00:00Z","conditions":[{"type":")",
                  condition, R"(","status":"True","reason":"R","message":")", message,
                  R"(","lastTransitionTime":"2026-01-01T00:00:00Z"}]}})"));
  }
};

TEST_F(ArrayViewTest, WhyCountsTheJobsAndNamesThoseThatFailed) {
  ASSERT_EQ(Run({"swell", "why", "sw"}), 0) << err_;
  EXPECT_EQ(out_,
            "sw is an array of 11 jobs: 3 are done (1 failed), 8 wait.\n"
            "Failed:   sw-10: the disk is full\n"
            "Waits:    sw-1; and 7 more\n"
            "Jobs:     swell list sw -n default\n");
  ASSERT_EQ(Run({"swell", "why", "sw", "-o", "json"}), 0) << err_;
  const auto document = json::Parse(out_);
  ASSERT_TRUE(document.ok()) << out_;
  EXPECT_EQ(json::GetInt(*document, {"succeeded"}), 2);
  EXPECT_EQ(json::GetArray(*document, {"jobs"}).size(), 11u);
  EXPECT_EQ(Run({"swell", "why", "sx"}), 1);
}

TEST_F(ArrayViewTest, DescribeAndListShowItsJobs) {
  ASSERT_EQ(Run({"swell", "describe", "sw"}), 0) << err_;
  EXPECT_NE(out_.find("sw-10   Failed"), std::string::npos) << out_;
  EXPECT_LT(out_.find("\nsw-2 "), out_.find("\nsw-10 ")) << out_;
  ASSERT_EQ(Run({"swell", "list", "sw", "-o", "name"}), 0) << err_;
  EXPECT_EQ(Split(out_, '\n').size(), 12u) << out_;
  ASSERT_EQ(Run({"swell", "list", "sw-3", "-o", "name"}), 0) << err_;
  EXPECT_EQ(out_, "pytorchjob.kubeflow.org/sw-3\n");
}

TEST_F(ArrayViewTest, DeleteTakesAllItsJobs) {
  ASSERT_EQ(Run({"swell", "submit", "swan", "--image", "i", "--", "run"}), 0) << err_;
  ASSERT_EQ(Run({"swell", "delete", "sw"}), 0) << err_;
  EXPECT_EQ(Split(out_, '\n').size(), 12u) << out_;
  ASSERT_EQ(Run({"swell", "list", "-o", "name"}), 0) << err_;
  EXPECT_EQ(out_, "pytorchjob.kubeflow.org/swan\n");
  EXPECT_EQ(Run({"swell", "delete", "sw"}), 1);
}

TEST_F(ArrayViewTest, ACommandForJobsSaysHowToNameThemAll) {
  EXPECT_EQ(Run({"swell", "suspend", "sw"}), 1);
  EXPECT_NE(err_.find("or all: $(swell list sw -o name)."), std::string::npos) << err_;
  ASSERT_EQ(Run({"swell", "suspend", "pytorchjob.kubeflow.org/sw-1"}), 0) << err_;
}

TEST_F(ArrayViewTest, ListShowsFirstWhatIsNotOver) {
  ASSERT_EQ(Run({"swell", "list", "-o", "name"}), 0) << err_;
  EXPECT_TRUE(out_.starts_with("pytorchjob.kubeflow.org/sw-1\n")) << out_;
  const size_t last_waiting = out_.find("/sw-9\n");
  EXPECT_LT(last_waiting, out_.find("/sw-0\n")) << out_;
  EXPECT_LT(last_waiting, out_.find("/sw-10\n")) << out_;
  ASSERT_EQ(Run({"swell", "list", "--active", "-o", "name"}), 0) << err_;
  EXPECT_EQ(Split(out_, '\n').size(), 9u) << out_;
  EXPECT_EQ(Run({"swell", "list", "sw-33"}), 1);
  EXPECT_NE(err_.find("did you mean sw-3?"), std::string::npos) << err_;
}

}  // namespace
}  // namespace swell::cli
