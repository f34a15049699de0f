// What becomes of the state that a process left in memory if the agent that saw its end is killed
// before it is on disk.
#include "kube/process/left_state.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"
#include "base/unique_fd.h"
#include "kube/process/files/data_dir.h"
#include "kube/process/process_testing.h"
#include "kube/process/saving_states.h"

namespace swell::process {
namespace {

// As sdk/python/swell/saving.py leaves it.
constexpr std::string_view kLeaves = R"(
import json, os, struct
folder = os.environ["SWELL_CHECKPOINT_DIR"]
open(folder + "/.run", "w").write("abc")
index = json.dumps({"run": "abc", "step": 7, "codec": "bytes", "records": [["", 64, 5]]}).encode()
head = struct.pack("<8sQQQ32x", b"SWELLMEM", 1, 69, len(index))
open("/dev/shm/copy", "wb").write(head + b"state" + index)
open(os.environ["SWELL_PERSIST_FILE"], "w").write('{"copy": "copy"}')
)";
constexpr const char* kManifest = "/checkpoints/default/job/step-000000000007.json";

class LeftStateTest : public ProcessRuntimeTest {
 protected:
  // A pod whose process has left its state and ended.
  void Leave(SandboxSpec sandbox) {
    sandbox.job_uid = "job";
    Create(sandbox);
    ContainerSpec spec = Shell(sandbox.pod_uid, "");
    spec.command = {"/usr/bin/python3", "-c", std::string(kLeaves)};
    for (const VolumeSpec& volume : sandbox.volumes)
      spec.mounts.push_back({volume.name, "/dev/shm"});
    ASSERT_EQ(Run(spec).code, 0) << Log(spec.ref);
  }
  // The agent is killed; the next one finds that nobody wants the pod any more.
  void RestartAndRemove(const std::string& uid) {
    runtime_.reset();
    Open();
    Remove(uid);
  }
  void Remove(const std::string& uid) {
    std::optional<Status> removed;
    runtime_->Remove(uid, [&](const Status& status) { removed = status; });
    ASSERT_TRUE(Until([&] { return removed.has_value(); }));
    EXPECT_TRUE(removed->ok()) << removed->ToString();
    EXPECT_FALSE(FileExists(PodDir(uid)));
  }
  std::string Report(const std::string& file) {
    return StrCat(PodDir("pod-a"), "/run/report/", file);
  }
  bool OnDisk() const { return FileExists(data_dir_ + kManifest); }
};

// A batch Job makes its next pod while the last one still ends.
TEST_F(LeftStateTest, APodThatNobodyWaitsForIsOfferedNothing) {
  Create(Sandbox("pod-a"));
  const ContainerSpec spec = Shell("pod-a", "echo ${SWELL_PERSIST_FILE-nothing}");
  ASSERT_EQ(Run(spec).code, 0);
  EXPECT_EQ(Log(spec.ref), "nothing\n");
}

TEST_F(LeftStateTest, APodIsNotRemovedBeforeItsStateIsOnDisk) {
  if (!isolated()) GTEST_SKIP() << "no /dev/shm of its own";
  Leave(Sandbox("pod-a"));
  RestartAndRemove("pod-a");
  EXPECT_TRUE(OnDisk());
}

TEST_F(LeftStateTest, TheNextAgentKnowsTheVolumesThatServeAsSharedMemory) {
  if (!isolated()) GTEST_SKIP() << "no /dev/shm of its own";
  SandboxSpec sandbox = Sandbox("pod-a");
  sandbox.volumes.emplace_back();
  sandbox.volumes[0].name = "shm";
  sandbox.volumes[0].kind = VolumeSpec::Kind::kMemory;
  Leave(sandbox);
  RestartAndRemove("pod-a");
  EXPECT_TRUE(OnDisk());
}

TEST_F(LeftStateTest, AnAgentThatIsKilledWhileItWritesIsFollowedByTwoMore) {
  if (!isolated()) GTEST_SKIP() << "no /dev/shm of its own";
  Leave(Sandbox("pod-a"));
  ASSERT_EQ(std::rename(Report("persist.json").c_str(), Report("persist.json.2").c_str()), 0);
  RestartAndRemove("pod-a");
  EXPECT_TRUE(OnDisk());
}

TEST_F(LeftStateTest, AStateThatKillsEveryAgentIsGivenUp) {
  if (!isolated()) GTEST_SKIP() << "no /dev/shm of its own";
  Leave(Sandbox("pod-a"));
  ASSERT_EQ(std::rename(Report("persist.json").c_str(), Report("persist.json.3").c_str()), 0);
  RestartAndRemove("pod-a");
  EXPECT_FALSE(OnDisk());
}

// An elastic job continues without the member that left a state.
TEST_F(LeftStateTest, AProcessOfTheJobThatSavesItselfComesFirst) {
  if (!isolated()) GTEST_SKIP() << "no /dev/shm of its own";
  Leave(Sandbox("pod-a"));
  const std::string folder = data_dir_ + "/checkpoints/default/job";
  UniqueFd lock(::open((folder + "/.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX), 0);
  std::string delay;
  std::optional<Status> stopped;
  runtime_->Stop(
      "pod-a", [&](const Status& why) { delay = why.message(); },
      [&](const Status& status) { stopped = status; });
  ASSERT_TRUE(Until([&] { return !delay.empty(); }));
  EXPECT_EQ(delay, StrCat("another checkpoint of the job is being written to ", folder));
  EXPECT_FALSE(OnDisk());
  lock = UniqueFd();
  ASSERT_TRUE(Until([&] { return stopped.has_value(); }));
  EXPECT_TRUE(stopped->ok()) << stopped->ToString();
  EXPECT_TRUE(OnDisk());
}

TEST_F(LeftStateTest, WhatDoesNotFitIsDroppedWhenTheClusterEnds) {
  if (!isolated()) GTEST_SKIP() << "no /dev/shm of its own";
  Leave(Sandbox("pod-a"));
  const UniqueFd lock(::open((data_dir_ + "/checkpoints/default/job/.lock").c_str(),
                             O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX), 0);
  bool down = false;
  runtime_->Shutdown([&down] { down = true; });
  ASSERT_TRUE(Until([&] { return down; }));
  runtime_.reset();
  EXPECT_FALSE(FileExists(PodDir("pod-a")));
}

TEST_F(LeftStateTest, TheNextAgentTellsNothingOfWhatTheLastOneWrote) {
  if (!isolated()) GTEST_SKIP() << "no /dev/shm of its own";
  Create(Sandbox("pod-a"));
  TellSaving(data_dir_, {.states = 1, .delay = "3 MiB are missing", .seconds_left = 290});
  ASSERT_TRUE(ReadSaving(data_dir_).has_value());
  runtime_.reset();
  Open();
  ASSERT_TRUE(Until([&] { return !ReadSaving(data_dir_); }));
}

TEST_F(LeftStateTest, MemoryOfAPodThatWasNotFinishedIsRemoved) {
  if (!isolated()) GTEST_SKIP() << "no /dev/shm of its own";
  const auto mounts = [root = MemoryRootOf(TagOf(data_dir_)) + "/"] {
    const auto text = ReadFile("/proc/self/mounts", 4 << 20);
    int count = 0;
    for (std::string_view line : Split(text.ok() ? *text : "", '\n')) {
      count += line.find(root) != std::string_view::npos ? 1 : 0;
    }
    return count;
  };
  Create(Sandbox("pod-a"));
  EXPECT_EQ(mounts(), 1);
  Create(Sandbox("pod-a"));
  EXPECT_EQ(mounts(), 1) << "another try";
  runtime_.reset();
  ASSERT_EQ(::unlink((PodDir("pod-a") + "/pod.json").c_str()), 0);
  Open();
  EXPECT_EQ(mounts(), 0) << "the agent was killed before it wrote what it had made";
}

TEST_F(LeftStateTest, WhatCannotBeWrittenKeepsNoPod) {
  if (!isolated()) GTEST_SKIP() << "no /dev/shm of its own";
  Leave(Sandbox("pod-a"));
  ASSERT_TRUE(RemoveTree(Report("persist.json")).ok());
  ASSERT_TRUE(MakeDirs(Report("persist.json/in")).ok());
  Remove("pod-a");
  EXPECT_FALSE(OnDisk());
}

}  // namespace
}  // namespace swell::process
