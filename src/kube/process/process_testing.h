// The fixture of tests that run real processes: a runtime over a fresh data directory. For tests
// only.
// - Threads: the test's thread.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"
#include "kube/process/process_runtime.h"

namespace swell::process {

using node::ContainerExit;
using node::ContainerRef;
using node::ContainerSpec;
using node::ContainerStarted;
using node::SandboxSpec;
using node::VolumeSpec;

constexpr Duration kLimit = std::chrono::seconds(100);

class Observer final : public node::PodObserver {
 public:
  void OnContainerExit(const ContainerRef& ref, const ContainerExit& exit) override {
    exits[ref.name] = exit;
    seen_ns = clock.Steady().ns;
  }
  void OnReport(const std::string& report) override { reports.push_back(report); }
  void OnProgress(const node::ProgressRecords& records) override { progress = records; }

  std::map<std::string, ContainerExit> exits;
  std::vector<std::string> reports;
  node::ProgressRecords progress;
  int64_t seen_ns = 0;
  RealClock clock;
};

class ProcessRuntimeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/swell-process-test-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    data_dir_ = name;
    ::chmod(name, 0755);
    Open();
  }

  void TearDown() override {
    if (runtime_) {
      bool down = false;
      runtime_->Shutdown([&down] { down = true; });
      EXPECT_TRUE(Until([&] { return down; }));
      runtime_.reset();
    }
    EXPECT_TRUE(RemoveTree(data_dir_).ok());
  }

  void Open() {
    ProcessOptions options;
    options.data_dir = data_dir_;
    options.shim_command = {SWELL_TEST_SHIM};
    options.ready_networks = 1;
    options.host = host_options_;
    auto runtime = ProcessRuntime::Create(core_, options);
    ASSERT_TRUE(runtime.ok()) << runtime.status().ToString();
    runtime_ = std::move(*runtime);
  }

  bool Until(const std::function<bool()>& done) { return core_.RunUntil(done, kLimit); }

  bool isolated() const { return runtime_->support().isolation != Isolation::kNone; }

  SandboxSpec Sandbox(const std::string& uid) {
    SandboxSpec spec;
    spec.pod_uid = uid;
    spec.ns = "default";
    spec.name = uid;
    spec.node = "node-0";
    spec.hostname = uid;
    spec.host_ip = "127.0.0.1";
    spec.checkpoint_key = "default/job";
    return spec;
  }

  std::string Create(const SandboxSpec& spec) {
    std::optional<Result<node::SandboxInfo>> made;
    runtime_->CreateSandbox(spec, observer_, [&](Result<node::SandboxInfo> r) { made = r; });
    EXPECT_TRUE(Until([&] { return made.has_value(); }));
    EXPECT_TRUE(made->ok()) << made->status().ToString();
    return made->ok() ? (*made)->ip : "";
  }

  static ContainerSpec Shell(const std::string& uid,
                             const std::string& script,
                             const std::string& name = "main",
                             int attempt = 0) {
    ContainerSpec spec;
    spec.ref = {uid, name, attempt};
    spec.image = "busybox:1.36";
    spec.command = {"/bin/sh", "-c", script};
    return spec;
  }

  Result<ContainerStarted> Start(const ContainerSpec& spec) {
    std::optional<Result<ContainerStarted>> started;
    runtime_->StartContainer(spec, [&](Result<ContainerStarted> r) { started = r; });
    EXPECT_TRUE(Until([&] { return started.has_value(); }));
    return *started;
  }

  ContainerExit Wait(const std::string& name = "main") {
    EXPECT_TRUE(Until([&] { return observer_->exits.contains(name); }));
    return observer_->exits[name];
  }

  ContainerExit Run(const ContainerSpec& spec) {
    auto started = Start(spec);
    EXPECT_TRUE(started.ok()) << started.status().ToString();
    return Wait(spec.ref.name);
  }

  std::string Log(const ContainerRef& ref, node::LogOptions options = {}) {
    std::string text;
    std::optional<Status> end;
    auto stream = runtime_->ReadLog(ref, options,
                                    {[&](const api::Chunk& chunk) {
                                       text += *chunk;
                                       return true;
                                     },
                                     [&](const Status& status) { end = status; }});
    EXPECT_TRUE(Until([&] { return end.has_value(); }));
    return text;
  }

  // Follows the log until it says exactly this.
  bool AwaitLog(const ContainerRef& ref, const std::string& wanted) {
    std::string text;
    auto stream = runtime_->ReadLog(ref, {.follow = true},
                                    {[&](const api::Chunk& chunk) {
                                       text += *chunk;
                                       return true;
                                     },
                                     [](const Status&) {}});
    return Until([&] { return text == wanted; });
  }

  std::string PodDir(const std::string& uid) { return data_dir_ + "/pods/" + uid; }

  HostOptions host_options_;
  std::string data_dir_;
  net::Reactor core_;
  std::shared_ptr<Observer> observer_ = std::make_shared<Observer>();
  std::unique_ptr<ProcessRuntime> runtime_;
};

class PlainProcessTest : public ProcessRuntimeTest {
 protected:
  PlainProcessTest() { host_options_ = {.namespaces = false, .network = false, .cgroups = false}; }
};

}  // namespace swell::process
