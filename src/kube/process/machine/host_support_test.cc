// What is written to the control groups of a container.
#include "kube/process/machine/host_support.h"

#include <map>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"
#include "base/temp_dir.h"

namespace swell::process {
namespace {

std::string Written(const CgroupSupport& support, int64_t cpu_request_milli, const char* file) {
  ShimSpec spec;
  FillCgroups(support, "id", cpu_request_milli, 0, 0, spec);
  for (const CgroupDir& dir : spec.cgroups) {
    for (const auto& [name, value] : dir.values) {
      if (name == file) return value;
    }
  }
  return "";
}

TEST(Cgroups, AContainerThatRequestsNoCpuHasTheLeastWeight) {
  CgroupSupport old;
  old.version = 1;
  old.cpu_dir = "/cpu";
  EXPECT_EQ(Written(old, 0, "cpu.shares"), "2");
  EXPECT_EQ(Written(old, 1000, "cpu.shares"), "1024");
  CgroupSupport unified;
  unified.version = 2;
  unified.memory_dir = "/all";
  EXPECT_EQ(Written(unified, 0, "cpu.weight"), "1");
  EXPECT_EQ(Written(unified, 1000, "cpu.weight"), "39");
}

TEST(Cgroups, EachControllerThatIsMissingIsNamed) {
  CgroupSupport support;
  support.version = 1;
  support.memory_dir = support.cpu_dir = support.pids_dir = "/x";
  EXPECT_EQ(Join(NotLimited(support), "; "), "");
  support.cpu_dir.clear();
  EXPECT_EQ(Join(NotLimited(support), "; "),
            "CPU limits are not enforced: no writable cpu controller");
  support.memory_dir.clear();
  support.pids_dir.clear();
  EXPECT_EQ(NotLimited(support).size(), 3u);
  support.version = 0;
  support.why_not = "no control groups are mounted";
  EXPECT_EQ(Join(NotLimited(support), "; "),
            "memory and CPU limits are not enforced: no control groups are mounted; the number of "
            "a pod's processes is not limited: no writable pids controller");
}

// Directories as the kernel shows them; only in some may groups be made and processes be moved.
TEST(Cgroups, TheTopmostGroupThatIsOursIsDivided) {
  TempDir tree;
  const std::string mount = tree.path() + "/cgroup";
  const std::string manager = "/user.slice/user-7.slice/user@7.service";
  const std::string text = StrCat("1:name=systemd:/x\n0::", manager, "/app.slice/run-1.scope\n");
  ASSERT_TRUE(MakeDirs(StrCat(mount, manager, "/app.slice/run-1.scope")).ok());
  EXPECT_EQ(GroupToDivide(mount, text), "");
  const auto give = [](const std::string& group) {
    for (const char* file : {"/cgroup.procs", "/cgroup.subtree_control"}) {
      ASSERT_TRUE(WriteFileAtomically(group + file, "").ok());
    }
  };
  give(StrCat(mount, manager, "/app.slice/run-1.scope"));
  EXPECT_EQ(GroupToDivide(mount, text), StrCat(mount, manager, "/app.slice/run-1.scope"));
  give(StrCat(mount, manager));
  EXPECT_EQ(GroupToDivide(mount, text), StrCat(mount, manager));
  EXPECT_EQ(GroupToDivide(mount, "0::/user.slice/user-7.slice/session-1.scope\n"), "");
  give(mount);
  EXPECT_EQ(GroupToDivide(mount, text), mount);
  EXPECT_EQ(GroupToDivide(mount, "0::/../../x\n"), mount);
  EXPECT_EQ(GroupToDivide(mount, ""), mount);
}

// "PATH: FILE=VALUE …; …"
std::string Text(const std::vector<CgroupDir>& groups) {
  std::vector<std::string> out;
  for (const CgroupDir& group : groups) {
    out.push_back(group.path + ":");
    for (const auto& [file, value] : group.values) {
      if (file != "pids.max") out.back() += StrCat(" ", file, "=", value);
    }
  }
  return Join(out, "; ");
}

TEST(Cgroups, AContainersGroupIsBelowItsPodsWhereThePodHasAmounts) {
  const node::CpuAndMemory whole{2000, 3000, 1 << 20};
  CgroupSupport old;
  old.version = 1;
  old.cpu_dir = "/cpu/x";
  old.memory_dir = "/memory/x";
  old.pids_dir = "/pids/x";
  ShimSpec spec;
  FillCgroups(old, "u.main.0", 1000, 0, 4096, spec);
  PutBelowPod(old, "u", whole, spec);
  EXPECT_EQ(Text(spec.pod_cgroups),
            "/cpu/x/u: cpu.shares=2048 cpu.cfs_period_us=100000 cpu.cfs_quota_us=300000; "
            "/memory/x/u: memory.use_hierarchy=1 memory.limit_in_bytes=1048576 "
            "memory.memsw.limit_in_bytes=1048576");
  EXPECT_EQ(Text(spec.cgroups),
            "/pids/x/u.main.0:; /cpu/x/u/u.main.0: cpu.shares=1024; /memory/x/u/u.main.0: "
            "memory.limit_in_bytes=4096 memory.memsw.limit_in_bytes=4096");
  EXPECT_EQ(spec.oom_file, "/memory/x/u/u.main.0/memory.oom_control");

  CgroupSupport unified;
  unified.version = 2;
  unified.memory_dir = unified.cpu_dir = unified.pids_dir = "/all/x";
  ShimSpec newer;
  FillCgroups(unified, "u.main.0", 1000, 0, 0, newer);
  PutBelowPod(unified, "u", whole, newer);
  EXPECT_EQ(Text(newer.pod_cgroups),
            "/all/x/u: cgroup.subtree_control=+memory +cpu cgroup.subtree_control=+pids "
            "cpu.weight=79 cpu.max=300000 100000 memory.max=1048576 memory.swap.max=0");
  EXPECT_EQ(Text(newer.cgroups), "/all/x/u/u.main.0: cpu.weight=39 memory.oom.group=1");
  EXPECT_EQ(newer.oom_file, "/all/x/u/u.main.0/memory.events");
}

TEST(Cgroups, TheGroupOfShimsStaysWhilePodsGo) {
  TempDir dir;
  CgroupSupport unified;
  unified.version = 2;
  unified.memory_dir = unified.cpu_dir = unified.pids_dir = dir.File("all");
  const std::string shims = ShimGroup(unified);
  for (const std::string& group : {dir.File("all/u"), shims}) {
    ASSERT_TRUE(MakeDirs(group).ok());
  }
  CleanCgroups(unified, [](const std::string&) { return false; });
  EXPECT_FALSE(FileExists(dir.File("all/u")));
  EXPECT_TRUE(FileExists(shims));
  RemoveCgroups(unified);
  EXPECT_FALSE(FileExists(dir.File("all")));
  CgroupSupport old;
  old.version = 1;
  old.memory_dir = "/memory";
  EXPECT_EQ(ShimGroup(old), "");
}

TEST(Cgroups, AResizeOfAWholePodWritesTheGroupOfThePod) {
  TempDir dir;
  CgroupSupport old;
  old.version = 1;
  old.cpu_dir = dir.File("cpu");
  old.memory_dir = dir.File("memory");
  const std::map<std::string, std::string> want = {{"cpu/u/cpu.shares", "2048"},
                                                   {"cpu/u/cpu.cfs_period_us", "100000"},
                                                   {"cpu/u/cpu.cfs_quota_us", "300000"},
                                                   {"memory/u/memory.limit_in_bytes", "1048576"}};
  for (const char* name : {"cpu/u/u.main.0", "memory/u/u.main.0"}) {
    ASSERT_TRUE(MakeDirs(dir.File(name)).ok());
  }
  for (const auto& [file, text] : want) ASSERT_TRUE(WriteFileAtomically(dir.File(file), "").ok());
  const Status resized = ResizeCgroups(old, "u", {2000, 3000, 1 << 20});
  ASSERT_TRUE(resized.ok()) << resized.ToString();
  for (const auto& [file, text] : want) EXPECT_EQ(ReadFile(dir.File(file)).value(), text) << file;
  EXPECT_FALSE(ResizeCgroups(old, "v", {2000, 3000, 1 << 20}).ok()) << "it has no group";

  CgroupSupport unified;
  unified.version = 2;
  unified.memory_dir = unified.cpu_dir = unified.pids_dir = dir.File("all");
  ASSERT_TRUE(MakeDirs(dir.File("all/u/u.main.0")).ok());
  for (const char* file :
       {"cpu.weight", "cpu.max", "memory.max", "memory.swap.max", "pids.max", "memory.oom.group"}) {
    ASSERT_TRUE(WriteFileAtomically(dir.File(StrCat("all/u/", file)), "").ok());
  }
  const Status newer = ResizeCgroups(unified, "u", {2000, 3000, 1 << 20});
  ASSERT_TRUE(newer.ok()) << newer.ToString();
  EXPECT_EQ(ReadFile(dir.File("all/u/memory.max")).value(), "1048576");
  for (const char* file : {"pids.max", "memory.oom.group"}) {
    EXPECT_EQ(ReadFile(dir.File(StrCat("all/u/", file))).value(), "")
        << file << " is a container's";
  }
}

}  // namespace
}  // namespace swell::process
