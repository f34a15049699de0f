#include "kube/cri/requests.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"
#include "base/temp_dir.h"

namespace swell::cri {
namespace {

// The bytes of a field of a message of messages: {15, 2, 1} is that of the capabilities.
std::string Dig(std::string_view bytes, const std::vector<uint32_t>& path) {
  for (const uint32_t number : path) {
    std::string_view found;
    for (Fields fields(bytes); fields.Next();) {
      if (fields.number() == number) found = fields.bytes();
    }
    bytes = found;
  }
  return std::string(bytes);
}

std::vector<std::string> Items(std::string_view bytes, uint32_t number) {
  std::vector<std::string> out;
  for (Fields fields(bytes); fields.Next();) {
    if (fields.number() == number) out.push_back(fields.text());
  }
  return out;
}

class CriRequests : public ::testing::Test {
 protected:
  CriRequests()
      : store_({.data_dir = dir_.path(),
                .tag = "tested",
                .isolation = process::Isolation::kNone,
                .ready_dirs = 0,
                .post = [](std::function<void()>) {}}) {
    engine_.version = {"containerd", "1.6.20"};
    pod_.spec.pod_uid = "uid";
    pod_.spec.ns = "team";
    pod_.spec.name = "one";
    pod_.spec.hostname = "one";
    pod_.spec.checkpoint_key = "team/job";
    pod_.dir = dir_.path() + "/pods/uid";
    container_.ref = {"uid", "main", 2};
    container_.image = "busybox:1";
    container_.image_handle = "sha256:1";
  }

  Result<Message> Config() {
    return ContainerConfig({engine_, store_, pod_, container_, "abcdef", ""});
  }

  TempDir dir_;
  process::PodStore store_;
  Engine engine_;
  process::ProcessPod pod_;
  node::ContainerSpec container_;
};

TEST_F(CriRequests, ContainersHaveTheirNamesLogsAndLabels) {
  container_.command = {"sh", ""};
  const auto config = Config();
  ASSERT_TRUE(config.ok()) << config.status().ToString();
  const std::string& bytes = config->bytes();
  EXPECT_EQ(Dig(bytes, {1}), Message().Text(1, "main").Number(2, 2).bytes());
  EXPECT_EQ(Dig(bytes, {2, 1}), "sha256:1");
  EXPECT_EQ(Items(bytes, 3), (std::vector<std::string>{"sh", ""}));
  EXPECT_EQ(Dig(bytes, {11}), "main/2.log");
  Texts labels;
  for (const std::string& entry : Items(bytes, 9)) ReadEntry(entry, labels);
  EXPECT_EQ(labels[kInstanceLabel], "abcdef");
  EXPECT_EQ(labels[kUidLabel], "uid");
  EXPECT_EQ(labels[kContainerLabel], "main");
}

TEST_F(CriRequests, EveryCapabilityIsNamed) {
  container_.security.capabilities = 1 << 10 | 1;
  const auto config = Config();
  ASSERT_TRUE(config.ok());
  const std::string capabilities = Dig(config->bytes(), {15, 2, 1});
  EXPECT_EQ(Items(capabilities, 2), std::vector<std::string>{"ALL"});
  EXPECT_EQ(Items(capabilities, 1), (std::vector<std::string>{"CHOWN", "NET_BIND_SERVICE"}));
}

TEST_F(CriRequests, TheKernelEndsContainersBeforeTheCluster) {
  container_.cpu_request_milli = 1000;
  const auto config = Config();
  ASSERT_TRUE(config.ok());
  const std::string resources = Dig(config->bytes(), {15, 1});
  EXPECT_EQ(resources, Message().Number(3, 1024).Number(5, 1000).bytes())
      << "it asks for no memory";
}

TEST_F(CriRequests, TheLastOfTwoVariablesCounts) {
  container_.env = {{"A", "1"}, {"B", "2"}, {"A", "3"}};
  const auto config = Config();
  ASSERT_TRUE(config.ok());
  Texts env;
  for (const std::string& entry : Items(config->bytes(), 6)) {
    EXPECT_FALSE(env.contains(Dig(entry, {1})));
    ReadEntry(entry, env);
  }
  EXPECT_EQ(env["A"], "3");
  EXPECT_EQ(env["SWELL_REPORT_FILE"], "/run/swell/report/report.json");
}

TEST_F(CriRequests, WhatTheEngineHasNoWordsForIsRefused) {
  container_.strict_groups = true;
  EXPECT_EQ(Config().status().code(), Code::kForbidden);
  engine_.status.strict_groups = true;
  EXPECT_TRUE(Config().ok());
  container_.security.unmasked_proc = true;
  EXPECT_EQ(Config().status().code(), Code::kForbidden);
  pod_.spec.security.host_users = false;
  EXPECT_EQ(CheckSandbox(pod_.spec).code(), Code::kNotAcceptable);
}

TEST_F(CriRequests, AProfileOfTheNodeMustBeThere) {
  container_.security.seccomp = {node::SecurityProfile::Kind::kLocalhost, "mine.json", true};
  EXPECT_EQ(Config().status().code(), Code::kForbidden);
  ASSERT_TRUE(MakeDirs(dir_.path() + "/seccomp").ok());
  ASSERT_TRUE(WriteFileAtomically(dir_.path() + "/seccomp/mine.json", "{}").ok());
  EXPECT_TRUE(Config().ok());
  container_.security.seccomp.name = "../seccomp/mine.json";
  EXPECT_EQ(Config().status().code(), Code::kForbidden);
}

TEST_F(CriRequests, RootDoesNotGetPathsOfTheMachine) {
  pod_.spec.volumes = {{.name = "v", .kind = node::VolumeSpec::Kind::kHostPath}};
  pod_.volumes["v"] = {.path = "/srv/data", .of_host = true};
  EXPECT_EQ(CheckHostPaths(pod_, dir_.path()).code(), Code::kNotAcceptable);
  pod_.spec.security.never_root = true;
  EXPECT_TRUE(CheckHostPaths(pod_, dir_.path()).ok());
  pod_.volumes["v"].path = dir_.path() + "/pki";
  EXPECT_EQ(CheckHostPaths(pod_, dir_.path()).code(), Code::kNotAcceptable);
  pod_.volumes["v"].path = "/";
  EXPECT_EQ(CheckHostPaths(pod_, dir_.path()).code(), Code::kNotAcceptable);
  pod_.spec.volumes[0].of_administrator = true;
  EXPECT_TRUE(CheckHostPaths(pod_, dir_.path()).ok());
  pod_.spec.volumes[0].of_administrator = false;
  pod_.spec.security = {.host_users = true};
  EXPECT_TRUE(CheckHostPaths(pod_, dir_.path()).ok());
}

TEST_F(CriRequests, NonRootIsChecked) {
  container_.run_as_non_root = true;
  EXPECT_EQ(CheckNonRoot(pod_, container_, {}).code(), Code::kForbidden);
  EXPECT_EQ(CheckNonRoot(pod_, container_, {.user = "app"}).code(), Code::kForbidden);
  EXPECT_TRUE(CheckNonRoot(pod_, container_, {.uid = 1000}).ok());
  container_.run_as_user = 0;
  EXPECT_EQ(CheckNonRoot(pod_, container_, {.uid = 1000}).code(), Code::kForbidden);
}

TEST(CriAnswers, ReadsAContainer) {
  const Message status =
      Message().Text(1, "id").Number(3, 2).Number(5, 10).Number(6, 20).Number(7, 137);
  const Message answer =
      Message().Add(1, Message(status).Text(10, "OOMKilled")).Texts(2, {{"info", R"({"pid":41})"}});
  const ContainerState state = ReadContainer(answer.bytes());
  EXPECT_EQ(state.phase, Phase::kExited);
  EXPECT_EQ(state.exit_code, 137);
  EXPECT_EQ(state.finished_ns, 20);
  EXPECT_EQ(state.reason, "OOMKilled");
  EXPECT_EQ(state.pid, 41);
}

TEST(CriAnswers, SaysWhatTheEngineLacks) {
  const Message network =
      Message().Text(1, "NetworkReady").Text(3, "NetworkPluginNotReady").Text(4, "no config");
  const Message answer =
      Message()
          .Add(1, Message().Add(1, Message().Text(1, "RuntimeReady").Bool(2, true)).Add(1, network))
          .Texts(2, {{"config", R"({"enableCDI":true})"}})
          .Add(4, Message().Bool(1, true));
  const EngineStatus status = ReadStatus(answer.bytes(), {"containerd", "1.7.2"});
  EXPECT_EQ(status.not_ready, "NetworkReady is false: NetworkPluginNotReady: no config");
  EXPECT_TRUE(status.cdi);
  EXPECT_TRUE(status.strict_groups);
  EXPECT_FALSE(ReadStatus("", {"containerd", "1.7.2"}).cdi);
  EXPECT_TRUE(ReadStatus("", {"containerd", "2.1.0"}).cdi);
  EXPECT_TRUE(ReadStatus("", {"cri-o", "1.30.0"}).cdi);
}

TEST(CriAnswers, FindsTheNetworkOfASandbox) {
  const std::string info =
      R"({"pid":7,"runtimeSpec":{"linux":{"namespaces":[{"type":"network","path":"/run/netns/a"}]}}})";
  const Message status = Message().Add(5, Message().Text(1, "10.0.0.2"));
  const SandboxState state =
      ReadSandbox(Message().Add(1, status).Texts(2, {{"info", info}}).bytes());
  EXPECT_EQ(state.ip, "10.0.0.2");
  EXPECT_EQ(state.netns, "/run/netns/a");
  EXPECT_EQ(ReadSandbox(Message().Texts(2, {{"info", R"({"pid":7})"}}).bytes()).netns,
            "/proc/7/ns/net");
}

TEST(CriAnswers, AMissingImageIsNone) {
  EXPECT_FALSE(ReadImage("").has_value());
  const Message image = Message().Text(1, "sha256:1").Add(5, Message());
  const auto read = ReadImage(Message().Add(1, image).bytes());
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->uid, 0);
}

}  // namespace
}  // namespace swell::cri
