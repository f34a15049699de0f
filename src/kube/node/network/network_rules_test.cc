#include "kube/node/network/network_rules.h"

#include <gtest/gtest.h>

#include "base/strings.h"

namespace swell::node {
namespace {

json::SharedValue Object(const std::string& text) {
  auto parsed = json::Parse(text);
  EXPECT_TRUE(parsed.ok()) << text;
  return std::make_shared<const json::Value>(std::move(*parsed));
}

json::SharedValue Pod(const std::string& ns,
                      const std::string& name,
                      const std::string& ip,
                      int http = 8080) {
  return Object(StrCat(R"({"metadata":{"name":")", name, R"(","namespace":")", ns,
                       R"(","labels":{"app":")", name, R"("}},
      "spec":{"containers":[{"ports":[{"name":"http","containerPort":)",
                       http, R"(}]}]},
      "status":{"phase":"Running","podIP":")",
                       ip, R"("}})"));
}

json::SharedValue Policy(const std::string& spec) {
  return Object(StrCat(R"({"metadata":{"name":"p","namespace":"a"},"spec":)", spec, "}"));
}

// a: web (.1), db (.2); b: web (.3), outside: 192.0.2.1.
NetworkRules Make(const std::vector<std::string>& specs) {
  std::vector<json::SharedValue> policies;
  for (const std::string& spec : specs) policies.push_back(Policy(spec));
  return MakeNetworkRules(
      policies,
      {Pod("a", "web", "10.0.0.1"), Pod("a", "db", "10.0.0.2", 5432), Pod("b", "web", "10.0.0.3")},
      {Object(R"({"metadata":{"name":"a","labels":{"team":"x"}}})"),
       Object(R"({"metadata":{"name":"b","labels":{"team":"y"}}})")});
}

// "1>2": the first reaches the second. Each pair of 10.0.0.1 to 10.0.0.3 and 192.0.2.1 (9).
std::string Pairs(const NetworkRules& rules, uint16_t port = 80, const char* protocol = "TCP") {
  const std::map<std::string, std::string> ends{
      {"1", "10.0.0.1"}, {"2", "10.0.0.2"}, {"3", "10.0.0.3"}, {"9", "192.0.2.1"}};
  std::vector<std::string> allowed;
  for (const auto& [from, from_ip] : ends) {
    for (const auto& [to, to_ip] : ends) {
      if (from == to || !rules.Allows(from_ip, to_ip, protocol, port)) continue;
      allowed.push_back(StrCat(from, ">", to));
    }
  }
  return Join(allowed, " ");
}

constexpr char kAll[] = "1>2 1>3 1>9 2>1 2>3 2>9 3>1 3>2 3>9 9>1 9>2 9>3";

TEST(NetworkRules, WithoutPoliciesEverythingIsAllowed) { EXPECT_EQ(Pairs(Make({})), kAll); }

TEST(NetworkRules, APolicyThatAllowsNothingDeniesByDirection) {
  EXPECT_EQ(Pairs(Make({R"({"podSelector":{},"policyTypes":["Ingress"]})"})),
            "1>3 1>9 2>3 2>9 3>9 9>3");
  EXPECT_EQ(Pairs(Make({R"({"podSelector":{},"policyTypes":["Egress"]})"})),
            "3>1 3>2 3>9 9>1 9>2 9>3");
  EXPECT_EQ(Pairs(Make({R"({"podSelector":{},"policyTypes":["Ingress","Egress"]})"})), "3>9 9>3");
}

TEST(NetworkRules, PeersAreChosenByPodsNamespacesBothAndBlocks) {
  auto to_web = [](const std::string& peers) {
    return Pairs(Make({StrCat(R"({"podSelector":{"matchLabels":{"app":"web"}},
        "policyTypes":["Ingress"],"ingress":[{"from":[)",
                              peers, "]}]}")}));
  };
  const std::string rest = "1>2 1>3 1>9 2>3 2>9 3>2 3>9 9>2 9>3";
  EXPECT_EQ(to_web(R"({"podSelector":{}})"), "1>2 1>3 1>9 2>1 2>3 2>9 3>2 3>9 9>2 9>3");
  EXPECT_EQ(to_web(R"({"podSelector":{"matchLabels":{"app":"nobody"}}})"), rest);
  EXPECT_EQ(to_web(R"({"namespaceSelector":{"matchLabels":{"team":"y"}}})"),
            "1>2 1>3 1>9 2>3 2>9 3>1 3>2 3>9 9>2 9>3");
  EXPECT_EQ(to_web(R"({"namespaceSelector":{},"podSelector":{"matchLabels":{"app":"db"}}})"),
            "1>2 1>3 1>9 2>1 2>3 2>9 3>2 3>9 9>2 9>3");
  EXPECT_EQ(to_web(R"({"ipBlock":{"cidr":"0.0.0.0/0","except":["10.0.0.0/8"]}})"),
            "1>2 1>3 1>9 2>3 2>9 3>2 3>9 9>1 9>2 9>3");
  EXPECT_EQ(to_web(R"({"ipBlock":{"cidr":"2001:db8::/32"}})"), rest);
}

TEST(NetworkRules, PortsAreNumbersRangesNamesAndProtocols) {
  auto in = [](const std::string& ports) {
    return Make({StrCat(R"({"podSelector":{},"policyTypes":["Ingress"],"ingress":[{"ports":[)",
                        ports, "]}]}")});
  };
  const std::string closed = "1>3 1>9 2>3 2>9 3>9 9>3";
  EXPECT_EQ(Pairs(in(R"({"port":80})")), kAll);
  EXPECT_EQ(Pairs(in(R"({"port":80})"), 81), closed);
  EXPECT_EQ(Pairs(in(R"({"port":80})"), 80, "UDP"), closed);
  EXPECT_EQ(Pairs(in(R"({"port":80,"endPort":90})"), 90), kAll);
  EXPECT_EQ(Pairs(in(R"({"port":80,"endPort":90})"), 91), closed);
  EXPECT_EQ(Pairs(in(R"({"protocol":"UDP"})"), 7, "UDP"), kAll);
  // The name is 8080 in one pod and 5432 in the other.
  EXPECT_EQ(Pairs(in(R"({"port":"http"})"), 8080), "1>3 1>9 2>1 2>3 2>9 3>1 3>9 9>1 9>3");
  EXPECT_EQ(Pairs(in(R"({"port":"http"})"), 5432), "1>2 1>3 1>9 2>3 2>9 3>2 3>9 9>2 9>3");
  EXPECT_EQ(Pairs(in(R"({"port":"nothing"})"), 80), closed);
}

TEST(NetworkRules, NamesOfPortsAreTheReceiversOnTheWayOut) {
  const NetworkRules rules = Make({R"({"podSelector":{"matchLabels":{"app":"web"}},
      "policyTypes":["Egress"],"egress":[{"to":[{"podSelector":{}}],"ports":[{"port":"http"}]}]})"});
  EXPECT_TRUE(rules.Allows("10.0.0.1", "10.0.0.2", "TCP", 5432));
  EXPECT_FALSE(rules.Allows("10.0.0.1", "10.0.0.2", "TCP", 8080));
  EXPECT_FALSE(rules.Allows("10.0.0.1", "10.0.0.3", "TCP", 8080));
}

TEST(NetworkRules, PoliciesAddUp) {
  EXPECT_EQ(Pairs(Make({R"({"podSelector":{},"policyTypes":["Ingress"]})",
                        R"({"podSelector":{},"policyTypes":["Ingress"],
                            "ingress":[{"from":[{"podSelector":{}}]}]})"})),
            "1>2 1>3 1>9 2>1 2>3 2>9 3>9 9>3");
}

TEST(NetworkRules, PodsOfTheMachinesNetworkAndEndedOnesDoNotCount) {
  const auto rules = MakeNetworkRules(
      {Policy(R"({"podSelector":{},"policyTypes":["Ingress"]})")},
      {Object(R"({"metadata":{"name":"host","namespace":"a"},"spec":{"hostNetwork":true},
                  "status":{"phase":"Running","podIP":"10.0.0.1"}})"),
       Object(R"({"metadata":{"name":"done","namespace":"a"},
                  "status":{"phase":"Succeeded","podIP":"10.0.0.2"}})"),
       Object(R"({"metadata":{"name":"new","namespace":"a"},"status":{"phase":"Pending"}})")},
      {});
  EXPECT_TRUE(rules.pods.empty());
}

}  // namespace
}  // namespace swell::node
