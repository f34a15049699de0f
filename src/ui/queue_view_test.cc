// The place of a waiting workload, in the list and on its own page.
#include <string>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "ui/ui_test_util.h"

namespace swell::ui {
namespace {

class QueueViewTest : public PagesTest {
 protected:
  QueueViewTest() {
    Project("vision");
    Project("speech");
    Researcher("jane", "vision");
    Node("node-1", 4);
    Job("vision", "see");
    Pod("vision", "see", 0, "node-1");
    Job("speech", "hear", 3);
    Settle();
  }
};

TEST_F(QueueViewTest, AWorkloadThatWaitsTellsItsPlaceInTheQueue) {
  Job("vision", "later");
  for (const std::string name : {"see-worker-2", "later-worker-0"}) {
    const std::string job = name.substr(0, name.find('-'));
    Pod("vision", job, name.back() - '0', "");
    Status("/api/v1/namespaces/vision/pods/" + name, R"({"status":{"phase":"Pending"}})");
    Settle();
  }
  Settle();
  const auto told = [this](const std::string& token) {
    std::string text;
    const json::Value data = See("workloads", token);
    for (const json::Value& row : json::GetArray(data, {"rows"})) {
      text += StrCat(json::GetString(row, {"name"}), ": ", json::GetInt(row, {"place"}), "\n");
    }
    return text;
  };
  EXPECT_EQ(told("jane-token"), "later: 2\nsee: 1\n");
  EXPECT_EQ(told("admin-token"), "hear: 0\nlater: 2\nsee: 1\n") << "hear does not wait";
  const json::Value page = See("job", "jane-token", {{"namespace", "vision"}, {"name", "later"}});
  EXPECT_EQ(json::GetString(page, {"summary", "queue", "text"}),
            "2nd of 2 that wait in vision, by priority and age");
}

// Without a project, work of all namespaces waits in one queue.
TEST_F(QueueViewTest, AJobsOwnPageCountsWhatWaitsInOtherNamespacesToo) {
  for (const std::string ns : {"red", "blue"}) {
    Create("/api/v1/namespaces", StrCat(R"({"metadata":{"name":")", ns, R"("}})"));
    Job(ns, "of-" + ns);
    Pod(ns, "of-" + ns, 0, "");
    Status(StrCat("/api/v1/namespaces/", ns, "/pods/of-", ns, "-worker-0"),
           R"({"status":{"phase":"Pending"}})");
    Settle();
  }
  Researcher("jane", "blue");
  const auto told = [this](const std::string& token) {
    const json::Value page = See("job", token, {{"namespace", "blue"}, {"name", "of-blue"}});
    return std::string(json::GetString(page, {"summary", "queue", "text"}));
  };
  EXPECT_EQ(told("admin-token"), "2nd of 2 that wait without a project, by priority and age");
  EXPECT_EQ(told("jane-token"), "nothing else waits without a project, as far as you may see");
}

}  // namespace
}  // namespace swell::ui
