// The flags of swell up, swell agent and swell controller: what they mean, and what is refused.
#include <functional>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/temp_dir.h"
#include "cli/flags.h"
#include "ops/options/agent_options.h"
#include "ops/options/cluster_options.h"
#include "ops/options/controller_options.h"

namespace swell::ops {
namespace {

ClusterFlags Usual() {
  ClusterFlags flags;
  flags.options.runtime = "simulated";  // looks for no SDK
  flags.options.plan.nodes = 1;
  return flags;
}

std::string Refusal(const std::function<void(ClusterFlags&)>& change) {
  ClusterFlags flags = Usual();
  change(flags);
  const Status status = ReadClusterFlags(flags);
  EXPECT_TRUE(cli::IsMisuse(status)) << status.ToString();
  return status.message();
}

TEST(ClusterOptionsTest, TheyAreReadFromTheFlags) {
  ClusterFlags flags = Usual();
  flags.controllers = {"-cronjob,*"};
  flags.settings = {"reserveAfter=10m"};
  flags.token_life = "12h";
  ASSERT_TRUE(ReadClusterFlags(flags).ok());
  EXPECT_EQ(flags.options.controllers, (std::vector<std::string>{"-cronjob", "*"}));
  EXPECT_EQ(flags.options.scheduler.reserve_after, std::chrono::minutes(10));
  EXPECT_EQ(flags.options.token_life_max, std::chrono::hours(12));
  EXPECT_TRUE(flags.options.has_pages());
}

TEST(ClusterOptionsTest, AMistakeNamesTheFlag) {
  EXPECT_EQ(Refusal([](ClusterFlags& flags) { flags.options.listen = "6443"; }),
            "--listen \"6443\": expected HOST:PORT, such as 127.0.0.1:6443; HOST is localhost or "
            "an IP address, IPv6 in brackets");
  EXPECT_EQ(Refusal([](ClusterFlags& flags) { flags.options.external_address = "::1"; }),
            "--external-address \"::1\": expected an IPv4 address of this machine, such as "
            "192.0.2.7");
  EXPECT_EQ(Refusal([](ClusterFlags& flags) { flags.token_life = "1m"; }),
            "--token-max-life 1m: expected at least 10m");
  EXPECT_EQ(Refusal([](ClusterFlags& flags) { flags.options.python = "/none/python3"; }),
            "--python /none/python3 is not an executable file; expected an interpreter, such as "
            "/opt/venv/bin/python3");
  EXPECT_NE(Refusal([](ClusterFlags& flags) { flags.options.runtime = "vm"; }).find("vm"),
            std::string::npos);
}

TEST(AgentOptionsTest, ADirectoryBesideTheClusters) {
  AgentOptions options;
  EXPECT_TRUE(options.Dir().path.ends_with("/agent")) << options.Dir().path;
  options.data_dir = "/srv/nodes";
  EXPECT_EQ(options.Dir().path, "/srv/nodes");
}

TEST(AgentOptionsTest, AMistakeNamesTheFlag) {
  AgentOptions options;
  options.pod_cidr = "10.0.0.0";
  const Status status = CheckAgentOptions(options);
  EXPECT_TRUE(cli::IsMisuse(status));
  EXPECT_TRUE(status.message().starts_with("--pod-cidr ")) << status.message();
}

TEST(ControllerOptionsTest, AMistakeNamesTheFlag) {
  ControllerOptions options;
  options.webhook.port = 70000;
  EXPECT_EQ(ReadControllerOptions(options).message(), "--webhook-port 70000: expected 0 to 65535");
  options.webhook.port = 0;
  options.settings = {"reserveAfter"};
  EXPECT_TRUE(cli::IsMisuse(ReadControllerOptions(options)));
  options.settings = {"reserveAfter=10m"};
  ASSERT_TRUE(ReadControllerOptions(options).ok());
  EXPECT_EQ(options.scheduler.reserve_after, std::chrono::minutes(10));
}

TEST(ControllerOptionsTest, OneWrongGroupingRuleIsAnError) {
  EXPECT_TRUE(ReadGroupingRules("")->empty());
  TempDir folder;
  const std::string path = folder.File("rules.yaml");
  ASSERT_TRUE(WriteFileAtomically(path, "- name: x\n  nonsense: 1\n", 0644).ok());
  const auto rules = ReadGroupingRules(path);
  ASSERT_FALSE(rules.ok());
  EXPECT_TRUE(rules.status().message().starts_with("--grouping-rules " + path))
      << rules.status().message();
}

}  // namespace
}  // namespace swell::ops
