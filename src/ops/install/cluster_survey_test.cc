#include "ops/install/cluster_survey.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/value.h"
#include "ops/install/install_objects.h"

namespace swell::ops {
namespace {

// Definitions are Swell's, except those named.
FindDefinition Ours(std::set<std::string> others, std::set<std::string>* asked = nullptr) {
  return [others = std::move(others), asked](const std::string& name) {
    if (asked != nullptr) asked->insert(name);
    json::Value definition = json::Object{{"metadata", json::Object{{"name", name}}}};
    if (!others.contains(name)) MarkAsOurs(definition);
    return Result<json::SharedValue>(std::make_shared<const json::Value>(std::move(definition)));
  };
}

FindDefinition NobodyMayAsk() {
  return [](const std::string& name) -> Result<json::SharedValue> {
    ADD_FAILURE() << name;
    return Status(Code::kNotFound, name);
  };
}

TEST(FindOthersJobsTest, ADefinitionThatIsNotOursHasAnOperatorOfItsOwn) {
  std::set<std::string> asked;
  const auto others =
      FindOthersJobs(Ours({"pytorchjobs.kubeflow.org", "crons.apps.kubedl.io"}, &asked), "auto");
  ASSERT_TRUE(others.ok()) << others.status().ToString();
  EXPECT_EQ(*others, (std::set<std::string>{"crons.apps.kubedl.io", "pytorchjobs.kubeflow.org"}));
  EXPECT_FALSE(asked.contains("trainingjobs.swell.dev")) << "nobody else has that";
}

TEST(FindOthersJobsTest, TheFlagDecidesWithoutAsking) {
  EXPECT_TRUE(FindOthersJobs(NobodyMayAsk(), "swell")->empty());
  const std::set<std::string> others = FindOthersJobs(NobodyMayAsk(), "operator").value();
  EXPECT_TRUE(others.contains("pytorchjobs.kubeflow.org"));
  for (const std::string& name : others) EXPECT_TRUE(name.ends_with("kubeflow.org")) << name;
}

TEST(FindOthersJobsTest, AnErrorNamesTheDefinition) {
  const auto refused = FindOthersJobs(
      [](const std::string&) -> Result<json::SharedValue> {
        return Status(Code::kForbidden, "no rights");
      },
      "auto");
  EXPECT_NE(refused.status().message().find(": no rights"), std::string::npos);
  EXPECT_NE(refused.status().message().find("jobs."), std::string::npos)
      << refused.status().message();
}

}  // namespace
}  // namespace swell::ops
