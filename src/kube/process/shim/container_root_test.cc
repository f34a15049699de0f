#include "kube/process/shim/container_root.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/temp_dir.h"

namespace swell::process {
namespace {

enum Outcome { kSeen = 0, kNotSeen = 1, kNoRoot = 2, kNoMachine = 3 };

// In a process of its own: a machine whose /tmp is a file system of its own, and a container there.
Outcome LookIntoTmp(const ShimSpec& spec, const std::string& dir) {
  bool machine = ::unshare(CLONE_NEWNS) == 0 &&
                 ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                 ::mount("tmpfs", "/tmp", "tmpfs", 0, "mode=1777") == 0 &&
                 WriteFileAtomically("/tmp/of-the-host", "x").ok() && MakeDirs(dir).ok();
  if (!machine) return kNoMachine;
  if (!EnterContainerRoot(spec, dir, -1).ok()) return kNoRoot;
  return FileExists("/tmp/of-the-host") ? kSeen : kNotSeen;
}

// As an exit status of a child, or -1.
int InAChild(const ShimSpec& spec, const std::string& dir) {
  pid_t child = ::fork();
  if (child == 0) ::_exit(LookIntoTmp(spec, dir));
  int status = 0;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ContainerRoot, AnImageThatAsksForTheHostsTmpSeesItThoughItIsAFileSystemOfItsOwn) {
  TempDir outside;
  // In what /tmp is in the child, as where somebody tries Swell out.
  const std::string dir = outside.path() + "/container";
  ShimSpec spec;
  spec.isolation = Isolation::kFull;
  spec.host_tmp = true;
  const int with = InAChild(spec, dir);
  spec.host_tmp = false;
  const int without = InAChild(spec, dir);
  if (with == kNoMachine) {  // this process may not mount: pods are plain processes here
    EXPECT_EQ(without, kNoMachine);
    return;
  }
  EXPECT_EQ(with, kSeen);
  EXPECT_EQ(without, kNotSeen);
}

}  // namespace
}  // namespace swell::process
