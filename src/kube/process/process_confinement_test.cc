// What a container may do, as its own processes find out.
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"
#include "json/value.h"
#include "kube/process/process_testing.h"
#include "kube/process/shim/shim_spec.h"

namespace swell::process {
namespace {

class Confinement : public ProcessRuntimeTest {
 protected:
  void SetUp() override {
    ProcessRuntimeTest::SetUp();
    if (runtime_->support().isolation != Isolation::kFull) {
      GTEST_SKIP() << "not started by root: " << runtime_->Info().limits;
    }
  }

  // What the script prints in a container of a new pod.
  std::string Say(const SandboxSpec& sandbox, ContainerSpec spec) {
    Create(sandbox);
    return SayIn(std::move(spec));
  }
  std::string SayIn(ContainerSpec spec) {
    spec.ref.attempt = 0;
    observer_->exits.clear();
    auto started = Start(spec);
    if (!started.ok()) return started.status().message();
    Wait(spec.ref.name);
    return Log(spec.ref);
  }
  std::string Say(const std::string& uid, const std::string& script) {
    return Say(Sandbox(uid), Shell(uid, script));
  }

  // A directory of the host, outside of everything of the cluster.
  std::string HostDir(int mode, uid_t owner) {
    char name[] = "/tmp/swell-confinement-XXXXXX";
    EXPECT_NE(::mkdtemp(name), nullptr);
    EXPECT_EQ(::chown(name, owner, owner), 0);
    ::chmod(name, static_cast<mode_t>(mode));
    host_dirs_.emplace_back(name);
    return name;
  }
  void TearDown() override {
    ProcessRuntimeTest::TearDown();
    for (const std::string& dir : host_dirs_) EXPECT_TRUE(RemoveTree(dir).ok());
  }

  static SandboxSpec WithVolume(SandboxSpec sandbox, const std::string& host_path) {
    VolumeSpec volume{.name = "v", .kind = VolumeSpec::Kind::kHostPath};
    volume.host_path = host_path;
    sandbox.volumes.push_back(volume);
    return sandbox;
  }
  static ContainerSpec Mounted(ContainerSpec spec) {
    spec.mounts = {{"v", "/v", "", false}};
    return spec;
  }
  bool users() const { return runtime_->support().users; }

 private:
  std::vector<std::string> host_dirs_;
};

TEST_F(Confinement, RootInAPodIsNobodyOutside) {
  if (!users()) GTEST_SKIP() << runtime_->Info().limits;
  SandboxSpec sandbox = Sandbox("pod-a");
  VolumeSpec kept{.name = "v", .kind = VolumeSpec::Kind::kDurable};
  kept.key = "default/claim";
  sandbox.volumes = {kept};
  const std::string said =
      Say(sandbox, Mounted(Shell("pod-a",
                                 "id -u; id -G; awk '{print ($2 > 65535), $3}' "
                                 "/proc/self/uid_map; echo x > /v/f; chown 7:8 /v/f")));
  EXPECT_EQ(said, "0\n0\n1 65536\n");
  // On disk the owners are those that it gave.
  struct stat info;
  ASSERT_EQ(::stat((data_dir_ + "/volumes/default/claim/f").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 7u);
  EXPECT_EQ(info.st_gid, 8u);
}

// Linux before 6.3 does not translate the owners of files in memory, and Debian 12 has 6.1.
TEST_F(Confinement, MemoryIsThePodsOwnWithoutTranslatedOwners) {
  if (!users()) GTEST_SKIP() << runtime_->Info().limits;
  SandboxSpec sandbox = Sandbox("pod-a");
  sandbox.volumes = {{.name = "v", .kind = VolumeSpec::Kind::kMemory}};
  ContainerSpec spec = Mounted(
      Shell("pod-a",
            "chmod 1770 /v; echo x > /v/f; echo x > /dev/shm/f; echo x > /sub/f; "
            "stat -c '%u %a' /v /dev/shm /sub /v/f /dev/shm/f; "
            "grep -E ' /(v|sub|dev/shm) ' /proc/self/mountinfo | grep -c idmapped; exit 0"));
  spec.mounts.push_back({"v", "/sub", "a/b", false});
  EXPECT_EQ(Say(sandbox, spec), "0 1770\n0 1777\n0 755\n0 644\n0 644\n0\n");
  spec = Mounted(Shell("pod-a", "cat /v/f /dev/shm/f; stat -c %u /v/f", "second"));
  EXPECT_EQ(SayIn(spec), "x\nx\n0\n");
}

TEST_F(Confinement, TheKernelEndsPodsBeforeTheCluster) {
  const std::string read = "read score < /proc/self/oom_score_adj; echo $score";
  EXPECT_EQ(Say("pod-a", read), "1000\n") << "it asked for no memory";
  ContainerSpec spec = Shell("pod-b", read);
  spec.memory_request_bytes = 1 << 20;
  EXPECT_EQ(Say(Sandbox("pod-b"), spec), "999\n");
}

TEST_F(Confinement, APodCannotHaveTheKernelSpareItOrTheNodeSaysSo) {
  const std::string lower = "{ echo 0 > /proc/self/oom_score_adj; } 2> /dev/null; ";
  const std::string score = Say("pod-a", lower +
                                             "read score < /proc/self/oom_score_adj; "
                                             "echo $score");
  EXPECT_EQ(score == "1000\n", runtime_->support().scores) << score;
  const bool told = runtime_->Info().limits.find("SYS_RESOURCE") != std::string::npos;
  EXPECT_EQ(score == "1000\n", !told) << runtime_->Info().limits;
}

TEST_F(Confinement, PodsDoNotShareIds) {
  if (!users()) GTEST_SKIP() << runtime_->Info().limits;
  const std::string a = Say("pod-a", "cat /proc/self/uid_map");
  const std::string b = Say("pod-b", "cat /proc/self/uid_map");
  EXPECT_NE(a, b);
}

TEST_F(Confinement, WhoAsksForNothingHasTheDefaults) {
  const std::string said =
      Say("pod-a", "grep -E 'CapInh|CapEff|CapBnd|CapAmb|Seccomp:|NoNewPrivs' /proc/self/status");
  EXPECT_EQ(said,
            "CapInh:\t0000000000000000\nCapEff:\t00000000a00425fb\nCapBnd:\t00000000a00425fb\n"
            "CapAmb:\t0000000000000000\nNoNewPrivs:\t0\nSeccomp:\t2\n");
}

TEST_F(Confinement, CapabilitiesAndPromisesAreAsAskedFor) {
  Create(Sandbox("pod-a"));
  ContainerSpec spec = Shell("pod-a",
                             "grep -E 'CapEff|CapBnd|Seccomp:|NoNewPrivs' "
                             "/proc/self/status");
  spec.security.capabilities = 0;
  spec.security.no_new_privileges = true;
  const std::string none =
      "CapEff:\t0000000000000000\nCapBnd:\t0000000000000000\n"
      "NoNewPrivs:\t1\nSeccomp:\t2\n";
  EXPECT_EQ(SayIn(spec), none);
  spec.ref.name = "other";
  spec.run_as_user = 1500;
  EXPECT_EQ(SayIn(spec), none);
  spec.ref.name = "unconfined";
  spec.run_as_user.reset();
  spec.security = {};
  spec.security.seccomp.kind = node::SecurityProfile::Kind::kUnconfined;
  EXPECT_EQ(SayIn(spec),
            "CapEff:\t00000000a00425fb\nCapBnd:\t00000000a00425fb\n"
            "NoNewPrivs:\t0\nSeccomp:\t0\n");
}

TEST_F(Confinement, CommandsInAContainerAreConfinedAsItIs) {
  Create(Sandbox("pod-a"));
  ContainerSpec spec = Shell("pod-a", "echo up; while :; do sleep 1; done");
  spec.security.capabilities = 0;
  spec.security.no_new_privileges = true;
  ASSERT_TRUE(Start(spec).ok());
  ASSERT_TRUE(AwaitLog(spec.ref, "up\n"));
  std::optional<Result<node::ExecResult>> result;
  runtime_->Exec(spec.ref,
                 {.argv = {"sh", "-c",
                           "id -u; id -G; readlink /proc/self/ns/user /proc/2/ns/user "
                           "| uniq | wc -l; grep -E 'CapEff|NoNewPrivs|Seccomp:' "
                           "/proc/self/status"},
                  .timeout = std::chrono::seconds(20)},
                 [&](Result<node::ExecResult> r) { result = std::move(r); });
  ASSERT_TRUE(Until([&] { return result.has_value(); }));
  ASSERT_TRUE(result->ok());
  EXPECT_EQ((*result)->output, "0\n0\n1\nCapEff:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n");
}

TEST_F(Confinement, NoCommandEntersAnotherContainerThatHasTheNumberOfOneThatEnded) {
  Create(Sandbox("pod-a"));
  const ContainerSpec spec = Shell("pod-a", "echo up; while :; do sleep 1; done");
  ASSERT_TRUE(Start(spec).ok());
  ASSERT_TRUE(AwaitLog(spec.ref, "up\n"));
  const std::string dir = PodDir("pod-a") + "/containers/main/0";
  auto state = ReadShimState(dir);
  ASSERT_TRUE(state.ok());
  const auto run = [&](int64_t after) {
    ShimState told = *state;
    told.init_start += static_cast<uint64_t>(after);
    EXPECT_TRUE(WriteFileAtomically(dir + "/state.json", json::Print(told.ToJson()), 0600).ok());
    std::optional<Result<node::ExecResult>> result;
    runtime_->Exec(spec.ref, {.argv = {"echo", "ran"}, .timeout = std::chrono::seconds(20)},
                   [&](Result<node::ExecResult> r) { result = std::move(r); });
    EXPECT_TRUE(Until([&] { return result.has_value(); }));
    return (*result)->output;
  };
  EXPECT_EQ(run(1), "the container has ended\n");
  EXPECT_EQ(run(0), "ran\n");
}

TEST_F(Confinement, GroupsAreExactlyThoseAskedFor) {
  Create(Sandbox("pod-a"));
  ContainerSpec spec = Shell("pod-a", "id -G");
  spec.run_as_user = spec.run_as_group = 1500;
  EXPECT_EQ(SayIn(spec), "1500\n");
}

TEST_F(Confinement, DevicesAreTheUsualOnes) {
  const std::string said = Say("pod-a",
                               "ls /dev | tr '\\n' ' '; ls /dev/shm; mknod /tmp/m c 1 1 "
                               "2>/dev/null && cat /tmp/m; echo x > /dev/null; "
                               "head -c 3 /dev/zero | wc -c");
  EXPECT_EQ(said,
            "fd full mqueue null ptmx pts random shm stderr stdin stdout "
            "termination-log tty urandom zero 3\n");
}

TEST_F(Confinement, TheMachinesSettingsCannotBeChanged) {
  const std::string said =
      Say("pod-a",
          "for f in /proc/sys/kernel/core_pattern /proc/sysrq-trigger "
          "/sys/fs/cgroup/x /sys/kernel/uevent_helper; do (echo x > $f) 2>/dev/null && "
          "echo wrote $f; done; cat /proc/keys | wc -c; ls /sys/firmware | wc -l; "
          "umount /tmp 2>/dev/null && echo unmounted; unshare -U true 2>/dev/null && "
          "echo unshared; find /sys/fs/cgroup -name 'pod-*' | wc -l; echo end");
  EXPECT_EQ(said, "0\n0\n0\nend\n");
}

// A place for a mount is made where nothing can be made, too, but not out of what the machine has.
TEST_F(Confinement, NoMountPathUncoversTheMachine) {
  SandboxSpec sandbox = Sandbox("pod-a");
  sandbox.volumes = {{.name = "v"}, {.name = "w"}};
  Create(sandbox);
  ASSERT_TRUE(FileExists("/etc/passwd"));
  ContainerSpec spec = Shell("pod-a", "ls /etc; echo z > /etc/x/z && cat /etc/x/z");
  spec.mounts = {{"v", "/etc", "", true}, {"w", "/etc/x", "", false}};
  const std::string said = SayIn(spec);
  EXPECT_TRUE(said.ends_with("x\nz\n")) << said;
  EXPECT_EQ(said.find("passwd"), std::string::npos) << said;
}

// A mount path in a directory of the machine gives no more rights than the pod has there.
TEST_F(Confinement, NoMountPathChangesADirectoryOfTheMachine) {
  if (!users()) GTEST_SKIP() << runtime_->Info().limits;
  const std::string roots = HostDir(0777, 0);
  ASSERT_TRUE(WriteFileAtomically(roots + "/file", "kept").ok());
  ASSERT_TRUE(MakeDirs(roots + "/closed").ok());
  ASSERT_TRUE(MakeDirs(roots + "/empty").ok());
  SandboxSpec sandbox = WithVolume(Sandbox("pod-a"), roots);
  sandbox.volumes.push_back({.name = "w"});
  sandbox.volumes.push_back({.name = "f", .kind = VolumeSpec::Kind::kFiles, .files = {{"m", "x"}}});
  Create(sandbox);
  int number = 0;
  auto say = [&](const node::MountSpec& inner) {
    ContainerSpec spec = Mounted(Shell("pod-a", "echo ran", StrCat("c-", number++)));
    spec.mounts.push_back(inner);
    return SayIn(spec);
  };
  EXPECT_NE(say({"w", "/v/file", "", false}), "ran\n");
  EXPECT_NE(say({"w", "/v/closed/made", "", false}), "ran\n");
  EXPECT_NE(say({"f", "/v/empty", "m", true}), "ran\n");
  EXPECT_EQ(*ReadFile(roots + "/file", 10), "kept");
  EXPECT_FALSE(FileExists(roots + "/closed/made"));
  EXPECT_TRUE(FileExists(roots + "/empty"));
  // Where everybody may write, the place is the pod's own.
  EXPECT_EQ(say({"w", "/v/made/deep", "", false}), "ran\n");
  struct stat info {};
  ASSERT_EQ(::stat((roots + "/made/deep").c_str(), &info), 0);
  EXPECT_NE(info.st_uid, 0u);
  EXPECT_EQ(say({"f", "/v/plain", "m", true}), "ran\n");
}

// The machine's root is there while the container's is built.
TEST_F(Confinement, NoWorkingDirectoryIsMadeOutside) {
  const std::string outside = HostDir(0755, 0);
  SandboxSpec sandbox = WithVolume(Sandbox("pod-a"), outside);
  sandbox.volumes.push_back({.name = "w"});
  Create(sandbox);
  ContainerSpec planter = Mounted(Shell("pod-a", StrCat("ln -s /.swell-old", outside, " /w/link")));
  planter.mounts.push_back({"w", "/w", "", false});
  EXPECT_EQ(SayIn(planter), "");
  for (const char* dir : {"/w/link/made", "/w/link/made/deep", "/v/made", "/x/../v/made"}) {
    planter.working_dir = dir;
    SayIn(planter);
    EXPECT_FALSE(FileExists(outside + "/made")) << dir;
  }
  ContainerSpec own = Shell("pod-a", "pwd");
  own.working_dir = "/usr/made/here";
  EXPECT_EQ(SayIn(own), "/usr/made/here\n");
}

class ConfinementWithMachineIds : public Confinement {
 protected:
  ConfinementWithMachineIds() { host_options_.users = false; }
};

TEST_F(ConfinementWithMachineIds, AWorkingDirectoryIsMadeWithTheRightsOfTheUser) {
  const std::string outside = HostDir(0755, 0);
  Create(WithVolume(Sandbox("pod-a"), outside));
  ContainerSpec spec = Mounted(Shell("pod-a", "pwd"));
  spec.run_as_user = spec.run_as_group = 70'000;
  spec.working_dir = "/v/made";
  EXPECT_NE(SayIn(spec), "/v/made\n");
  EXPECT_FALSE(FileExists(outside + "/made"));
  spec.ref.name = "own";
  spec.working_dir = "/usr/made/here";
  EXPECT_EQ(SayIn(spec), "/usr/made/here\n");
  ASSERT_EQ(::chown(outside.c_str(), 70'000, 70'000), 0);
  spec.ref.name = "allowed";
  spec.working_dir = "/v/made";
  EXPECT_EQ(SayIn(spec), "/v/made\n");
}

// The machine's root is there while the container's is built, and what is in the way of a mount is
// removed.
TEST_F(Confinement, NoPathGoesUpToTheMachine) {
  const std::string outside = HostDir(0755, 0);
  ASSERT_TRUE(WriteFileAtomically(outside + "/file", "kept").ok());
  ASSERT_TRUE(MakeDirs(outside + "/empty").ok());
  SandboxSpec sandbox = Sandbox("pod-a");
  sandbox.volumes = {{.name = "w"}};
  Create(sandbox);
  int number = 0;
  const auto shell = [&number](const char* script) {
    return Shell("pod-a", script, StrCat("c-", number++));
  };
  for (const char* name : {"/file", "/empty", "/made", "/made/deep"}) {
    for (const char* up : {"/x/..", "/x/y/../..", "/./x/.."}) {
      const std::string path = StrCat(up, "/.swell-old", outside, name);
      ContainerSpec spec = shell("echo ran");
      spec.mounts = {{"w", path, "", false}};
      EXPECT_NE(SayIn(spec), "ran\n") << path;
      spec = shell("echo ran");
      spec.termination_path = path;
      EXPECT_NE(SayIn(spec), "ran\n") << path;
    }
  }
  EXPECT_EQ(*ReadFile(outside + "/file", 10), "kept");
  EXPECT_TRUE(FileExists(outside + "/empty"));
  EXPECT_FALSE(FileExists(outside + "/made"));
  ContainerSpec spec = shell("echo z > /b/z && cat /b/z");
  spec.mounts = {{"w", "a/.././b/", "", false}};
  EXPECT_EQ(SayIn(spec), "z\n") << "within the container it may go up";
}

TEST_F(Confinement, AnInnerVolumeIsSeenWhateverTheWayToTheOuterOne) {
  SandboxSpec sandbox = Sandbox("pod-a");
  sandbox.volumes = {{.name = "outer"}, {.name = "inner"}};
  Create(sandbox);
  ContainerSpec spec = Shell("pod-a", "echo in > /b/in/file");
  spec.mounts = {{"outer", "/x/y/../../b", "", false}, {"inner", "/b/in", "", false}};
  EXPECT_EQ(SayIn(spec), "");
  spec = Shell("pod-a", "cat /inner/file", "reads");
  spec.mounts = {{"inner", "/inner", "", false}};
  EXPECT_EQ(SayIn(spec), "in\n");
}

TEST_F(Confinement, WhatAPodHasMadeOnTheMachineIsNobodys) {
  const std::string closed = HostDir(0755, 0), shared = HostDir(0777, 0);
  int number = 0;
  auto make = [&](const std::string& path, const char* type, bool of_administrator) {
    SandboxSpec sandbox = WithVolume(Sandbox(StrCat("pod-", number++)), path);
    sandbox.volumes[0].host_path_type = type;
    sandbox.volumes[0].of_administrator = of_administrator;
    std::optional<Result<node::SandboxInfo>> made;
    runtime_->CreateSandbox(sandbox, observer_, [&](Result<node::SandboxInfo> r) { made = r; });
    EXPECT_TRUE(Until([&] { return made.has_value(); }));
    struct stat info {};
    const bool there = ::stat(path.c_str(), &info) == 0;
    return StrCat(made->ok() ? "made" : "refused", there ? StrCat(", of ", info.st_uid) : "");
  };
  for (const char* type : {"", "DirectoryOrCreate", "FileOrCreate"}) {
    EXPECT_EQ(make(closed + "/a", type, false), "refused") << type;
    EXPECT_EQ(make(StrCat(shared, "/a", type), type, false), "made, of 65534") << type;
    EXPECT_EQ(make(StrCat(closed, "/b", type), type, true), "made, of 0") << type;
  }
}

TEST_F(Confinement, NothingIsMountedInPlaceOfWhatTheKernelSays) {
  SandboxSpec sandbox = Sandbox("pod-a");
  sandbox.volumes = {{.name = "v", .kind = VolumeSpec::Kind::kEmptyDir},
                     {.name = "f", .kind = VolumeSpec::Kind::kFiles, .files = {{"m", "none\n"}}}};
  Create(sandbox);
  EXPECT_EQ(SayIn(Mounted(Shell("pod-a", "ln -s /proc /v/link"))), "");
  for (const char* at : {"/proc", "/proc/x", "/proc/self/x", "/proc/sys/x", "/proc/1", "/v/link",
                         "/v/link/x", "/proc/sys/kernel/hostname"}) {
    ContainerSpec spec = Mounted(Shell("pod-a", "ls /proc"));
    spec.mounts.push_back({"v", at, "", false});
    EXPECT_EQ(SayIn(spec), StrCat("mount path ", at,
                                  ": nothing can be mounted on /proc or below, but on a file such "
                                  "as /proc/meminfo; use another path"));
  }
  ContainerSpec less = Shell("pod-a", "cat /proc/meminfo");
  less.mounts = {{"f", "/proc/meminfo", "m", true}};
  EXPECT_EQ(SayIn(less), "none\n");
}

TEST_F(Confinement, APathOfTheHostIsUsedWithTheRightsOfThePodsUser) {
  if (!users()) GTEST_SKIP() << runtime_->Info().limits;
  const std::string roots = HostDir(0755, 0), eves = HostDir(0700, 1500);
  ASSERT_TRUE(WriteFileAtomically(roots + "/open", "o").ok());
  ASSERT_TRUE(WriteFileAtomically(roots + "/secret", "s", 0600).ok());
  const std::string script =
      "cat /v/open; cat /v/secret 2>/dev/null; touch /v/planted 2>/dev/null "
      "&& echo planted; chmod 777 /v 2>/dev/null && echo opened; echo";
  EXPECT_EQ(Say(WithVolume(Sandbox("pod-a"), roots), Mounted(Shell("pod-a", script))), "o\n");
  ContainerSpec eve = Mounted(Shell("pod-b", "echo mine > /v/f; stat -c %u /v/f"));
  eve.run_as_user = eve.run_as_group = 1500;
  EXPECT_EQ(Say(WithVolume(Sandbox("pod-b"), eves), eve), "1500\n");
  struct stat info;
  ASSERT_EQ(::stat((eves + "/f").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 1500u);
  ContainerSpec root = Mounted(Shell("pod-c", "ls /v 2>&1 | grep -c denied"));
  EXPECT_EQ(Say(WithVolume(Sandbox("pod-c"), eves), root), "1\n");
  // Ids that the author only chose may be anybody's.
  SandboxSpec chosen = WithVolume(Sandbox("pod-e"), eves);
  chosen.security.ids_chosen = chosen.security.never_root = true;
  ContainerSpec thief = Mounted(Shell("pod-e", "id -u; cat /v/f 2>&1 | grep -c denied"));
  thief.run_as_user = thief.run_as_group = 1500;
  EXPECT_EQ(Say(chosen, thief), "1500\n1\n");
  // An administrator may give the node's own root.
  SandboxSpec own = WithVolume(Sandbox("pod-d"), roots);
  own.security.host_users = true;
  EXPECT_EQ(Say(own, Mounted(Shell("pod-d", "touch /v/planted && cat /v/secret"))), "s");
}

TEST_F(Confinement, TheClustersOwnFilesAreSeenByNoPod) {
  ASSERT_TRUE(WriteFileAtomically(data_dir_ + "/ca.key", "key").ok());
  SandboxSpec all = WithVolume(Sandbox("pod-a"), "/");
  all.security.host_users = true;
  const std::string script =
      StrCat("ls -A /v", data_dir_, " && cat /v", data_dir_, "/ca.key 2>/dev/null; echo end");
  EXPECT_EQ(Say(all, Mounted(Shell("pod-a", script))), "end\n");
  Create(WithVolume(Sandbox("pod-b"), data_dir_));
  const std::string why = Start(Mounted(Shell("pod-b", "true"))).status().message();
  EXPECT_NE(why.find("where the cluster keeps its own files"), std::string::npos) << why;
  const std::string link = HostDir(0755, 0) + "/link";
  ASSERT_EQ(::symlink(data_dir_.c_str(), link.c_str()), 0);
  Create(WithVolume(Sandbox("pod-c"), link));
  EXPECT_FALSE(Start(Mounted(Shell("pod-c", "true"))).ok());
}

TEST_F(Confinement, SharedMemoryHasTheSizeOfThePod) {
  SandboxSpec sandbox = Sandbox("pod-a");
  sandbox.memory_limit_bytes = 32 << 20;
  EXPECT_EQ(Say(sandbox, Shell("pod-a",
                               "df -k /dev/shm | tail -1 | awk '{print $2}'; "
                               "echo x > /dev/shm/f")),
            "32768\n");
  EXPECT_EQ(SayIn(Shell("pod-a", "cat /dev/shm/f", "second")), "x\n");
}

TEST_F(Confinement, ContainersShareTheLimitsOfTheirPod) {
  const std::string groups = runtime_->support().cgroups.memory_dir;
  if (groups.empty()) GTEST_SKIP() << runtime_->Info().limits;
  Create(Sandbox("pod-a"));
  for (const char* name : {"first", "second"}) {
    ContainerSpec spec = Shell("pod-a", "", name);
    spec.command = {"/usr/bin/python3", "-c", "x = bytearray(400 << 20); print(len(x))"};
    spec.whole_pod = {
        .cpu_request_milli = 100, .cpu_limit_milli = 0, .memory_limit_bytes = 64 << 20};
    const ContainerExit exit = Run(spec);
    EXPECT_EQ(exit.code, 137);
    EXPECT_TRUE(exit.oom_killed);
    EXPECT_TRUE(FileExists(groups + "/pod-a")) << "it is the other containers', too";
  }
  std::optional<Status> removed;
  runtime_->Remove("pod-a", [&](const Status& status) { removed = status; });
  ASSERT_TRUE(Until([&] { return removed.has_value(); }));
  EXPECT_FALSE(FileExists(groups + "/pod-a"));
}

TEST_F(Confinement, APodCannotUseUpTheMachinesProcesses) {
  if (runtime_->support().cgroups.pids_dir.empty()) GTEST_SKIP() << runtime_->Info().limits;
  EXPECT_EQ(Say("pod-a", "cat /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max 2>/dev/null"),
            StrCat(ProcessLimit(), "\n"));
}

TEST_F(Confinement, APrivilegedContainerHasTheMachine) {
  SandboxSpec sandbox = Sandbox("pod-a");
  sandbox.security.privileged = true;
  ContainerSpec spec = Shell("pod-a",
                             "grep -c 'Seccomp:.0' /proc/self/status; cat "
                             "/proc/self/uid_map | awk '{print $2}'; mount -t tmpfs x "
                             "/mnt && echo mounted");
  spec.security.privileged = true;
  spec.security.capabilities = node::kAllCapabilities;
  spec.security.seccomp.kind = node::SecurityProfile::Kind::kUnconfined;
  EXPECT_EQ(Say(sandbox, spec), "1\n0\nmounted\n");
}

TEST_F(Confinement, WhatThisMachineDoesNotHaveIsRefused) {
  Create(Sandbox("pod-a"));
  ContainerSpec spec = Shell("pod-a", "true");
  spec.security.seccomp = {node::SecurityProfile::Kind::kLocalhost, "none.json", true};
  EXPECT_EQ(Start(spec).status().code(), Code::kForbidden);
}

TEST_F(Confinement, IdsBeyondThePodsAreForUsersWhoAreNotRoot) {
  const auto make = [this](SandboxSpec sandbox) {
    std::optional<Result<node::SandboxInfo>> made;
    runtime_->CreateSandbox(sandbox, observer_,
                            [&](Result<node::SandboxInfo> r) { made = std::move(r); });
    EXPECT_TRUE(Until([&] { return made.has_value(); }));
    return made ? made->status() : Status(Code::kTimeout, "");
  };
  SandboxSpec far = Sandbox("pod-b");
  far.security.highest_id = 70'000;
  EXPECT_EQ(make(far).code(), Code::kNotAcceptable) << "root of the machine, without asking for it";
  far.pod_uid = "pod-c";
  far.security.never_root = true;
  far.security.host_users = false;
  EXPECT_EQ(make(far).code(), Code::kNotAcceptable) << "it asked for ids of its own";
  far.security.host_users.reset();
  far.security.ids_chosen = true;
  EXPECT_EQ(make(far).code(), Code::kNotAcceptable) << "ids of the machine that nobody gave it";
  far.security.ids_chosen = false;
  far.pod_uid = "pod-d";
  ASSERT_TRUE(make(far).ok());
  ContainerSpec spec = Shell("pod-d", "grep NoNewPrivs /proc/self/status");
  spec.run_as_user = 70'000;
  spec.run_as_group = 70'000;
  EXPECT_EQ(SayIn(spec), "NoNewPrivs:\t1\n");
}

TEST_F(Confinement, LowPortsAndSettingsOfThePodsOwnNetwork) {
  if (!runtime_->support().network) GTEST_SKIP() << runtime_->Info().limits;
  SandboxSpec sandbox = Sandbox("pod-a");
  sandbox.security.sysctls = {{"net.ipv4.tcp_syncookies", "0"}};
  ContainerSpec spec = Shell("pod-a",
                             "cat /proc/sys/net/ipv4/tcp_syncookies; python3 -c 'import socket; "
                             "socket.socket().bind((\"\", 80)); print(\"bound\")'");
  spec.run_as_user = spec.run_as_group = 1500;
  EXPECT_EQ(Say(sandbox, spec), "0\nbound\n");
}

}  // namespace
}  // namespace swell::process
