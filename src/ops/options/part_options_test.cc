// What the flags of swell up mean for the server, the controllers and the nodes.
#include "ops/options/part_options.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/temp_dir.h"

namespace swell::ops {
namespace {

using Strings = std::vector<std::string>;

TEST(PartOptionsTest, ServerAndControllersAgreeWhoPlacesPodsThatNameNoScheduler) {
  auto is_ours = [](const ClusterOptions& cluster) {
    const Strings names = ManagerOptionsOf(cluster).scheduler_names;
    return std::count(names.begin(), names.end(), "default-scheduler") == 1;
  };
  ClusterOptions cluster;
  EXPECT_EQ(ServerOptionsOf(cluster).value().default_scheduler, "swell");
  EXPECT_TRUE(is_ours(cluster));
  cluster.default_scheduler = false;
  EXPECT_EQ(ServerOptionsOf(cluster).value().default_scheduler, "default-scheduler");
  EXPECT_FALSE(is_ours(cluster));
}

TEST(PartOptionsTest, TheServerReadsTheTokensOfAFile) {
  const TempDir folder;
  ClusterOptions cluster;
  cluster.token_auth_file = folder.File("tokens.csv");
  EXPECT_EQ(ServerOptionsOf(cluster).status().code(), Code::kNotFound);
  ASSERT_TRUE(WriteFileAtomically(cluster.token_auth_file, "secret,ann,1\n").ok());
  const auto server = ServerOptionsOf(cluster);
  ASSERT_TRUE(server.ok()) << server.status().ToString();
  EXPECT_EQ(server->tokens.size(), 1U);
  ASSERT_TRUE(WriteFileAtomically(cluster.token_auth_file, "secret\n").ok());
  EXPECT_NE(ServerOptionsOf(cluster).status().message().find(cluster.token_auth_file),
            std::string::npos);
}

TEST(PartOptionsTest, NodePortsAreServedWhereTheServerListens) {
  auto addresses = [](const std::string& listen, const std::string& external = "") {
    ClusterOptions cluster;
    cluster.listen = listen;
    cluster.external_address = external;
    const node::MachineAddresses machine = MachineAddressesOf(cluster);
    return machine.nodes + " " + machine.external;
  };
  EXPECT_EQ(addresses("192.0.2.7:6443"), "192.0.2.7 192.0.2.7");
  EXPECT_EQ(addresses("192.0.2.7:6443", "192.0.2.8"), "192.0.2.7 192.0.2.8");
  EXPECT_EQ(addresses("[::1]:6443"), "127.0.0.1 127.0.0.1");
  EXPECT_TRUE(addresses("0.0.0.0:6443").starts_with("0.0.0.0 "));
}

TEST(PartOptionsTest, TheCertificateHasEachAddressThatClientsUse) {
  ClusterOptions cluster;
  cluster.listen = "192.0.2.7:6443";
  EXPECT_EQ(CertificateHosts(cluster, ""), (Strings{"192.0.2.7"}));
  EXPECT_EQ(CertificateHosts(cluster, "10.88.0.1"), (Strings{"192.0.2.7", "10.88.0.1"}));
  cluster.ui_address = "192.0.2.9:8443";
  EXPECT_EQ(CertificateHosts(cluster, ""), (Strings{"192.0.2.7", "192.0.2.9"}));
  for (const char* none : {"off", "127.0.0.1:8443"}) {
    cluster.ui_address = none;
    EXPECT_EQ(CertificateHosts(cluster, ""), (Strings{"192.0.2.7"})) << none;
  }
}

TEST(PartOptionsTest, PodsFindTheServerByTheirVariables) {
  const auto variables = ServerVariables("fd00::1", 6443);
  auto value = [&variables](const std::string& name) {
    const auto it = std::find_if(variables.begin(), variables.end(),
                                 [&name](const auto& one) { return one.first == name; });
    return it == variables.end() ? "" : it->second;
  };
  EXPECT_EQ(value("KUBERNETES_SERVICE_HOST"), "fd00::1");
  EXPECT_EQ(value("KUBERNETES_SERVICE_PORT"), "6443");
  EXPECT_EQ(value("KUBERNETES_SERVICE_PORT_HTTPS"), "6443");
  EXPECT_EQ(value("KUBERNETES_PORT"), "tcp://[fd00::1]:6443");
}

}  // namespace
}  // namespace swell::ops
