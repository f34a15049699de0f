// When a container alone starts again: its own policy and its rules, before what the pod says.
#include <string_view>

#include "kube/node/agent_fixture.h"

namespace swell::node {
namespace {

using std::chrono::minutes;

TEST_F(AgentTest, TheContainersOwnPolicyCountsBeforeThePods) {
  const auto create = [this](const std::string& name, const char* pod, const char* own) {
    Create(name,
           StrCat(R"({"restartPolicy":")", pod,
                  R"(","containers":[{"name":"main","image":"busybox","restartPolicy":")", own,
                  R"("}]})"),
           R"({"annotations":{"swell.dev/run-seconds":"1","swell.dev/exit-code":"3"}})");
  };
  create("stays", "Always", "Never");
  create("returns", "Never", "OnFailure");
  sim_.Advance(minutes(1));
  EXPECT_EQ(Phase("stays"), "Failed");
  EXPECT_EQ(json::GetInt(Status("stays"), {"restartCount"}), 0);
  EXPECT_EQ(Phase("returns"), "Running");
  EXPECT_EQ(json::GetInt(Status("returns"), {"restartCount"}), 3);
}

struct RuleCase {
  const char* name;
  const char* rule;
  int restarts;
};

class RuleTest : public AgentTest, public ::testing::WithParamInterface<RuleCase> {};

TEST_P(RuleTest, ExitCodesDecideBeforeThePolicy) {
  Create("a",
         StrCat(R"({"restartPolicy":"Never","containers":[{"name":"main","image":"busybox",)",
                R"("restartPolicy":"Never","restartPolicyRules":[{"action":"Restart",)",
                R"("exitCodes":)", GetParam().rule, "}]}]}"),
         R"({"annotations":{"swell.dev/run-seconds":"1","swell.dev/exit-code":"42"}})");
  sim_.Advance(minutes(1));
  EXPECT_EQ(Phase("a"), GetParam().restarts > 0 ? "Running" : "Failed");
  EXPECT_EQ(json::GetInt(Status("a"), {"restartCount"}), GetParam().restarts);
}

INSTANTIATE_TEST_SUITE_P(
    Rules,
    RuleTest,
    ::testing::Values(RuleCase{"In", R"({"operator":"In","values":[1,42]})", 3},
                      RuleCase{"NotThere", R"({"operator":"In","values":[1]})", 0},
                      RuleCase{"NotIn", R"({"operator":"NotIn","values":[1]})", 3},
                      RuleCase{"NotInThere", R"({"operator":"NotIn","values":[42]})", 0}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace swell::node
