#include "kube/process/network/rule_text.h"

#include <sched.h>

#include <thread>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/process/network/nftables.h"

namespace swell::process {
namespace {

using node::Allowance;

std::shared_ptr<const Allowance> Allow(Allowance one) {
  return std::make_shared<const Allowance>(std::move(one));
}

RuleScope Scope() {
  return {.table = "swelltest",
          .ports = "swtestv",
          .gateway = "10.88.0.1",
          .port_of = [](const std::string& ip) -> std::string {
            return ip.starts_with("10.88.0.") ? StrCat("swtestv", ip.substr(8)) : "";
          },
          .services = {{"10.96.0.1", 443}}};
}

node::NetworkRules Rules() {
  node::NetworkRules rules;
  const auto common =
      Allow({.addresses = {"10.88.0.2", "10.88.0.3"}, .ports = {{"TCP", 80, 80}, {"UDP", 1, 9}}});
  rules.pods["10.88.0.2"].in = {common};
  rules.pods["10.88.0.3"].in = {common};
  rules.pods["10.88.0.3"].out = {
      Allow({.blocks = {{"10.0.0.0/8", {"10.1.0.0/16"}}}, .ports = {{"SCTP", 0, 65535}}})};
  rules.pods["10.88.0.4"].out.emplace();
  rules.pods["10.99.0.2"].in.emplace();  // of another machine
  return rules;
}

size_t Count(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST(RuleText, PodsWithTheSameRulesShareAChain) {
  const RuleText made = MakeRuleText(Rules(), Scope(), {});
  EXPECT_EQ(made.chains.size(), 3u);
  EXPECT_EQ(Count(made.text, "ip saddr { 10.88.0.2, 10.88.0.3 } tcp dport 80 return\n"), 1u);
  EXPECT_EQ(Count(made.text, "ip saddr { 10.88.0.2, 10.88.0.3 } udp dport 1-9 return\n"), 1u);
  EXPECT_EQ(Count(made.text, "ip daddr 10.0.0.0/8 ip daddr != 10.1.0.0/16 sctp dport 0-65535 "),
            1u);
  EXPECT_EQ(Count(made.text, "10.99.0.2"), 0u);
}

// A pod that may not connect does not learn what listens either.
TEST(RuleText, OnlyAnswersPassAsAnswers) {
  const std::string text = MakeRuleText(Rules(), Scope(), {}).text;
  const size_t odd = text.find("tcp flags & (syn | ack | rst) == 0x0 drop\n");
  ASSERT_NE(odd, std::string::npos) << text;
  EXPECT_LT(odd, text.find("tcp flags & (syn | ack) != syn accept\n"));
  EXPECT_EQ(Count(text,
                  "icmp type { echo-reply, destination-unreachable, time-exceeded, "
                  "parameter-problem } accept\n"),
            1u);
  EXPECT_EQ(Count(text, "icmp type"), 1u);
}

TEST(RuleText, ChainsThatNobodyNeedsGo) {
  const RuleText made = MakeRuleText({}, Scope(), {"in_1"});
  EXPECT_EQ(Count(made.text, "delete chain bridge swelltest in_1\n"), 1u);
}

// Each text in force after the other, in a network of this thread alone.
TEST(RuleText, TheKernelTakesIt) {
  Status status = Status(Code::kForbidden, "network namespaces are not permitted here");
  std::thread apart([&status] {
    if (::unshare(CLONE_NEWNET) != 0) return;
    const RuleText first = MakeRuleText(Rules(), Scope(), {});
    status = RunNftables(first.text);
    if (!status.ok()) return;
    node::NetworkRules fewer = Rules();
    fewer.pods.erase("10.88.0.3");
    const RuleText second = MakeRuleText(fewer, Scope(), first.chains);
    status = RunNftables(second.text);
    if (!status.ok()) return;
    RuleScope without = Scope();
    without.services.clear();
    status = RunNftables(MakeRuleText({}, without, second.chains).text);
  });
  apart.join();
  if (status.code() == Code::kForbidden || status.message().find("apt install") < 400) {
    GTEST_SKIP() << status.message();
  }
  EXPECT_TRUE(status.ok()) << status.message();
}

}  // namespace
}  // namespace swell::process
