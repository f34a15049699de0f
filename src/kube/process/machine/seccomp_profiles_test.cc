#include "kube/process/machine/seccomp_profiles.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/temp_dir.h"

namespace swell::process {
namespace {

constexpr int kNewerThanAnything = 999;

// Runs it in a process that has the filter; its answer is an errno.
int Under(const std::string& filter, const std::function<int()>& call) {
  const pid_t child = ::fork();
  if (child == 0) {
    sock_fprog program = {};
    program.len = static_cast<unsigned short>(filter.size() / sizeof(sock_filter));
    program.filter = reinterpret_cast<sock_filter*>(const_cast<char*>(filter.data()));
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) ::_exit(255);
    ::_exit(call());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int ErrnoOf(long number, long a = 0, long b = 0, long c = 0) {
  errno = 0;
  return ::syscall(number, a, b, c) < 0 ? errno : 0;
}

TEST(SeccompProfiles, TheDefaultRefusesWhatPodsDoNotNeed) {
  auto filter = CompileDefaultFilter(node::DefaultCapabilities());
  ASSERT_TRUE(filter.ok()) << filter.status().ToString();
  EXPECT_EQ(Under(*filter, [] { return ErrnoOf(SYS_getpid); }), 0);
  EXPECT_EQ(Under(*filter, [] { return ErrnoOf(SYS_keyctl, 0, -3); }), EPERM);
  EXPECT_EQ(Under(*filter, [] { return ErrnoOf(SYS_unshare, 0x10000000); }), EPERM);
  EXPECT_EQ(Under(*filter, [] { return ErrnoOf(SYS_mount); }), EPERM);
  EXPECT_EQ(Under(*filter, [] { return ErrnoOf(SYS_bpf); }), EPERM);
  EXPECT_EQ(Under(*filter, [] { return ErrnoOf(SYS_clone3); }), ENOSYS);
  EXPECT_EQ(Under(*filter, [] { return ErrnoOf(kNewerThanAnything); }), ENOSYS);
  // A new user namespace by clone; the child ends at once.
  EXPECT_EQ(Under(*filter, [] { return ErrnoOf(SYS_clone, 0x10000000); }), ENOSYS);
  EXPECT_EQ(Under(*filter, [] { return ErrnoOf(SYS_socket, 40, 1, 0); }), ENOSYS);
}

TEST(SeccompProfiles, WhatRunsOnTheMachinesNetworkCannotListen) {
  auto filter = CompileDefaultFilter(node::DefaultCapabilities(), Ports::kClosed);
  ASSERT_TRUE(filter.ok()) << filter.status().ToString();
  EXPECT_EQ(Under(*filter, [] { return ErrnoOf(SYS_bind, -1, 0, 0); }), EPERM);
  EXPECT_EQ(Under(*filter, [] { return ErrnoOf(SYS_listen, -1, 0); }), EPERM);
  EXPECT_EQ(Under(*filter, [] { return ErrnoOf(SYS_connect, -1, 0, 0); }), EBADF);
  EXPECT_EQ(Under(*filter, [] { return ErrnoOf(SYS_mount); }), EPERM);
  auto usual = CompileDefaultFilter(node::DefaultCapabilities());
  ASSERT_TRUE(usual.ok());
  EXPECT_EQ(Under(*usual, [] { return ErrnoOf(SYS_bind, -1, 0, 0); }), EBADF);
  TempDir dir;
  SeccompProfiles profiles(dir.path());
  node::ContainerSecurity security;
  auto quiet = profiles.FileFor(security, Ports::kClosed);
  ASSERT_TRUE(quiet.ok());
  EXPECT_NE(*quiet, *profiles.FileFor(security, Ports::kMayOpen));
  security.seccomp.kind = node::SecurityProfile::Kind::kLocalhost;
  security.seccomp.name = "all.json";
  EXPECT_EQ(*profiles.FileFor(security, Ports::kClosed), *quiet);
}

TEST(SeccompProfiles, ACapabilityOpensItsCalls) {
  const node::CapabilitySet admin = node::CapabilitySet{1}
                                    << node::CapabilityNumber("SYS_ADMIN").value_or(0);
  auto filter = CompileDefaultFilter(node::DefaultCapabilities() | admin);
  ASSERT_TRUE(filter.ok());
  EXPECT_EQ(Under(*filter, [] { return ErrnoOf(SYS_unshare, 0); }), 0);
  EXPECT_EQ(Under(*filter, [] { return ErrnoOf(SYS_keyctl, 0, -3); }), EPERM);
}

TEST(SeccompProfiles, AProfileOfTheNodeIsFollowed) {
  auto filter = CompileOciFilter(R"({
    "defaultAction": "SCMP_ACT_ALLOW",
    "architectures": ["SCMP_ARCH_X86_64"],
    "syscalls": [
      {"names": ["getppid", "no_such_call"], "action": "SCMP_ACT_ERRNO", "errnoRet": 95},
      {"names": ["kill"], "action": "SCMP_ACT_ERRNO",
       "args": [{"index": 1, "value": 0, "op": "SCMP_CMP_EQ"}]}]})");
  ASSERT_TRUE(filter.ok()) << filter.status().ToString();
  EXPECT_EQ(Under(*filter, [] { return ErrnoOf(SYS_getppid); }), 95);
  EXPECT_EQ(Under(*filter, [] { return ErrnoOf(SYS_kill, ::getpid(), 0); }), EPERM);
  EXPECT_EQ(Under(*filter, [] { return ErrnoOf(SYS_kill, ::getpid(), 23); }), 0);  // SIGURG
}

TEST(SeccompProfiles, WhatIsWrongWithAProfileIsSaid) {
  const std::pair<const char*, const char*> kCases[] = {
      {"[]", "profile: must be an object"},
      {R"({"defaultAction": "DENY"})",
       "defaultAction: \"DENY\" must be SCMP_ACT_ALLOW, SCMP_ACT_ERRNO, SCMP_ACT_LOG, "
       "SCMP_ACT_TRAP or SCMP_ACT_KILL_PROCESS"},
      {R"({"defaultAction": "SCMP_ACT_ALLOW", "archMap": []})",
       "archMap: is not supported; profiles have the form of the OCI runtime specification"},
      {R"({"defaultAction": "SCMP_ACT_ALLOW", "flags": ["SECCOMP_FILTER_FLAG_LOG"]})",
       "flags: \"SECCOMP_FILTER_FLAG_LOG\" is not supported"},
      {R"({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["read"], "action":
          "SCMP_ACT_TRAP", "args": [{"index": 7, "op": "SCMP_CMP_EQ"}]}]})",
       "syscalls[0].args[0].index: must be 0 to 5"},
      {R"({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"action": "SCMP_ACT_TRAP"}]})",
       "syscalls[0].names: must name a system call"},
  };
  for (const auto& [text, why] : kCases) {
    EXPECT_EQ(CompileOciFilter(text).status().message(), why) << text;
  }
  EXPECT_FALSE(CompileOciFilter("{").ok());
}

TEST(SeccompProfiles, FiltersAreKeptAsFiles) {
  TempDir dir;
  SeccompProfiles profiles(dir.path());
  node::ContainerSecurity security;
  auto first = profiles.FileFor(security, Ports::kMayOpen);
  ASSERT_TRUE(first.ok()) << first.status().ToString();
  EXPECT_TRUE(FileExists(*first));
  // NET_ADMIN opens no call: the same filter does.
  security.capabilities |= node::CapabilitySet{1}
                           << node::CapabilityNumber("NET_ADMIN").value_or(0);
  EXPECT_EQ(*profiles.FileFor(security, Ports::kMayOpen), *first);
  security.seccomp.kind = node::SecurityProfile::Kind::kLocalhost;
  security.seccomp.name = "team/mine.json";
  EXPECT_EQ(profiles.FileFor(security, Ports::kMayOpen).status().code(), Code::kForbidden);
  ASSERT_TRUE(MakeDirs(dir.path() + "/seccomp/team").ok());
  ASSERT_TRUE(WriteFileAtomically(dir.path() + "/seccomp/team/mine.json",
                                  R"({"defaultAction": "SCMP_ACT_ALLOW"})")
                  .ok());
  auto own = profiles.FileFor(security, Ports::kMayOpen);
  ASSERT_TRUE(own.ok()) << own.status().ToString();
  EXPECT_NE(*own, *first);
  security.seccomp.name = "../pki/ca.key";
  EXPECT_NE(
      profiles.FileFor(security, Ports::kMayOpen).status().message().find("must be a path below"),
      std::string::npos);
  security.seccomp.kind = node::SecurityProfile::Kind::kUnconfined;
  EXPECT_EQ(*profiles.FileFor(security, Ports::kMayOpen), "");
}

}  // namespace
}  // namespace swell::process
