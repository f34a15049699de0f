#include "kube/api/objects/restart_policy.h"

#include <gtest/gtest.h>

#include "kube/api/objects/test_document.h"

namespace swell::api {
namespace {

TEST(RestartPolicy, RulesComeFirstThenTheContainerThenThePod) {
  const struct {
    std::string_view pod, container;
    int exit_code;
    bool restarts;
  } rows[] = {
      {"{}", "{}", 0, true},
      {"{spec: {restartPolicy: OnFailure}}", "{}", 0, false},
      {"{spec: {restartPolicy: OnFailure}}", "{}", 1, true},
      {"{spec: {restartPolicy: Never}}", "{}", 1, false},
      {"{spec: {restartPolicy: Never}}", "{restartPolicy: Always}", 0, true},
      {"{spec: {restartPolicy: Always}}", "{restartPolicy: Never}", 1, false},
      {"{spec: {restartPolicy: Never}}",
       "{restartPolicy: Never, restartPolicyRules: [{action: Restart, exitCodes: {operator: In, "
       "values: [3, 4]}}]}",
       4, true},
      {"{spec: {restartPolicy: Never}}",
       "{restartPolicy: Never, restartPolicyRules: [{action: Restart, exitCodes: {operator: NotIn, "
       "values: [3, 4]}}]}",
       4, false},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(RestartsAfter(Document(row.pod), Document(row.container), row.exit_code),
              row.restarts)
        << row.pod << row.container << row.exit_code;
  }
}

TEST(RestartPolicy, OneRuleRestartsAllContainersTogether) {
  const auto pod = [](std::string_view action) {
    return Document(std::string("{spec: {containers: [{}], initContainers: [{restartPolicyRules: "
                                "[{action: ") +
                    std::string(action) + "}]}]}}");
  };
  EXPECT_TRUE(MayRestartTogether(pod("RestartAllContainers")));
  EXPECT_FALSE(MayRestartTogether(pod("Restart")));
  EXPECT_FALSE(MayRestartTogether(Document("{}")));
}

}  // namespace
}  // namespace swell::api
