// Flags and plans of the administrators' commands, and what install creates.
#include <gtest/gtest.h>

#include "cli/flags.h"
#include "kube/api/meta/meta.h"
#include "kube/client/kubeconfig.h"
#include "ops/cycles/cycle_table.h"
#include "ops/election_flags.h"
#include "ops/flags.h"
#include "ops/install/install_objects.h"
#include "ops/nodes/plan_nodes.h"

namespace swell::ops {
namespace {

TEST(PlanNodesTest, ControlPlaneFirstThenVirtualNodes) {
  NodePlan plan;
  plan.nodes = 2;
  plan.gpus_per_node = 4;
  plan.control_plane_nodes = 1;
  plan.system_reserved = "cpu=80m,memory=500Mi";
  auto nodes = PlanNodes(plan);
  ASSERT_TRUE(nodes.ok()) << nodes.status().ToString();
  ASSERT_EQ(nodes->size(), 3U);
  EXPECT_TRUE((*nodes)[0].control_plane);
  EXPECT_EQ((*nodes)[1].name, "node-1");
  EXPECT_EQ((*nodes)[2].capacity.at("nvidia.com/gpu"), "4");
  EXPECT_EQ((*nodes)[2].system_reserved.at("cpu"), "80m");
}

TEST(PlanNodesTest, LargeFleetsRenewLeasesLessOftenButInTime) {
  for (const auto& [nodes, seconds] : std::map<size_t, int>{{1, 10}, {1500, 15}, {20'000, 20}}) {
    std::vector<node::NodeConfig> fleet(nodes);
    SlowLeases(fleet);
    EXPECT_EQ(fleet.back().lease_interval, std::chrono::seconds(seconds)) << nodes;
  }
}

TEST(PlanNodesTest, MistakesAreMisuseAndNameTheFlag) {
  auto message = [](const std::function<void(NodePlan&)>& change) {
    NodePlan plan;
    plan.nodes = 1;
    change(plan);
    const Status status = PlanNodes(plan).status();
    EXPECT_TRUE(cli::IsMisuse(status)) << status.ToString();
    return status.message();
  };
  EXPECT_EQ(message([](NodePlan& plan) { plan.nodes = 0; }),
            "--nodes: 0 is not between 1 and 20000");
  EXPECT_EQ(message([](NodePlan& plan) { plan.cpus = "many"; }),
            "--cpus: \"many\" is not an amount like 4 or 15Gi");
  EXPECT_EQ(message([](NodePlan& plan) { plan.system_reserved = "cpu"; }),
            "--system-reserved: \"cpu\" is not of the form cpu=80m");
  EXPECT_NE(message([](NodePlan& plan) {
              plan.nodes = NodePlan::kThisMachine;
              plan.gpus_per_node = 2;
            }).find("--gpus-per-node needs --nodes"),
            std::string::npos);
}

TEST(OpsFlagsTest, SettingsAndWords) {
  sched::Settings settings;
  EXPECT_TRUE(ReadSettings({"reserveAfter=30m"}, settings).ok());
  EXPECT_TRUE(cli::IsMisuse(ReadSettings({"reserveAfter"}, settings)));
  EXPECT_TRUE(cli::IsMisuse(ReadSettings({"noSuchSetting=1"}, settings)));
  EXPECT_TRUE(CheckWords({}).ok());
  EXPECT_TRUE(CheckWords({"a"}, 1).ok());
  EXPECT_EQ(CheckWords({"a", "b"}, 1).message(), "unexpected argument \"b\"");
}

TEST(OpsFlagsTest, ControllersAreListedByName) {
  std::vector<std::string> controllers{"*"};
  EXPECT_TRUE(ReadControllers({}, controllers).ok());
  EXPECT_EQ(controllers, std::vector<std::string>{"*"});
  EXPECT_TRUE(ReadControllers({"*,-deployment", "swell"}, controllers).ok());
  EXPECT_EQ(controllers, (std::vector<std::string>{"*", "-deployment", "swell"}));
  const Status unknown = ReadControllers({"*,-deploymnt"}, controllers);
  EXPECT_TRUE(cli::IsMisuse(unknown));
  EXPECT_EQ(unknown.message(), "--controllers: \"deploymnt\" is not a known controller");
}

TEST(OpsFlagsTest, AnElectionHasOneLeaderAtATime) {
  cli::Flags declared;
  ElectionFlags flags;
  AddElectionFlags(declared, flags);
  const client::LeaderOptions usual;
  const auto read = ReadElection(flags);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->ns, client::InClusterNamespace().value_or(usual.ns));
  EXPECT_EQ(read->name, usual.name);
  EXPECT_EQ(read->lease_duration, usual.lease_duration);
  EXPECT_EQ(read->renew_deadline, usual.renew_deadline);
  EXPECT_EQ(read->retry_period, usual.retry_period);
  flags.renew_deadline = "4s";
  EXPECT_EQ(ReadElection(flags).status().message(),
            "the lease duration must be greater than the renew deadline");
  EXPECT_TRUE(cli::IsMisuse(ReadElection(flags).status()));
  flags.renew_deadline = "soon";
  EXPECT_NE(ReadElection(flags).status().message().find("--leader-elect-renew-deadline"),
            std::string::npos);
}

TEST(OpsFlagsTest, AnAddressHasAPort) {
  EXPECT_TRUE(CheckHostPort("--listen", "[::1]:0", "HOST:PORT", "127.0.0.1:6443").ok());
  const Status portless = CheckHostPort("--listen", "localhost", "HOST:PORT", "127.0.0.1:6443");
  EXPECT_TRUE(cli::IsMisuse(portless));
  EXPECT_EQ(
      portless.message(),
      "--listen \"localhost\": expected HOST:PORT, such as 127.0.0.1:6443; HOST is localhost or "
      "an IP address, IPv6 in brackets");
  for (const char* wrong : {"localhost:http", "127.0.0.1:65536", "127.0.0.1:", "machine:80",
                            "1.2.3:80", "::1:80", "[::1]"}) {
    EXPECT_FALSE(CheckHostPort("--listen", wrong, "HOST:PORT", "x").ok()) << wrong;
  }
  for (const char* right : {"localhost:80", "0.0.0.0:0", ":8080"}) {
    EXPECT_TRUE(CheckHostPort("--listen", right, "HOST:PORT", "x").ok()) << right;
  }
}

TEST(InstallObjectsTest, EverythingIsMarkedAndInTheNamespace) {
  std::vector<json::Value> objects = InstallObjects("gpu-system");
  for (json::Value& one : ControllerObjects({.ns = "gpu-system", .image = "swell:1"})) {
    objects.push_back(std::move(one));
  }
  bool deployment = false;
  for (const json::Value& object : objects) {
    EXPECT_EQ(api::Label(object, kManagedByLabel), kManagedBy)
        << json::Print(object).substr(0, 200);
    EXPECT_EQ(api::Label(object, kPartOfLabel), kPartOf) << json::Print(object).substr(0, 200);
    const std::string_view ns = api::Namespace(object);
    EXPECT_TRUE(ns.empty() || ns == "gpu-system" || ns == "kube-system") << ns;
    deployment |= json::GetString(object, {"kind"}) == "Deployment";
  }
  EXPECT_TRUE(deployment);
}

TEST(CycleTableTest, PodsThatWaitForTheSameReasonShareARow) {
  CycleTable table;
  EXPECT_EQ(table.ToString("Cycle 1"), "Cycle 1: no decisions\n");
  table.AddDecision("bind", "ns/a", "node-1", "", "fits");
  table.AddWaiting({"ns/b", "ns/c"}, "no room");
  const std::string text = table.ToString("Cycle 1");
  EXPECT_TRUE(text.starts_with("Cycle 1: 1 decision\n")) << text;
  EXPECT_NE(text.find("ns/b and 1 more"), std::string::npos) << text;
}

}  // namespace
}  // namespace swell::ops
