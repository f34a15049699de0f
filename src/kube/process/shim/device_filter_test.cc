#include "kube/process/shim/device_filter.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"

namespace swell::process {
namespace {

// The errno of opening the file from within the group; 0 when it opens.
int OpenWithin(const std::string& group, const char* path) {
  const pid_t child = ::fork();
  if (child == 0) {
    const int procs = ::open((group + "/cgroup.procs").c_str(), O_WRONLY);
    if (procs < 0 || ::write(procs, "0", 1) != 1) ::_exit(255);
    ::_exit(::open(path, O_RDONLY) >= 0 ? 0 : errno);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// A group of this test alone below the mount point of a hierarchy; nothing where none can be made.
class Group {
 public:
  explicit Group(const std::string& root) : path_(StrCat(root, "/swell-test-", ::getpid())) {
    made_ = FileExists(root + "/cgroup.procs") && ::mkdir(path_.c_str(), 0755) == 0;
  }
  ~Group() {
    if (made_) ::rmdir(path_.c_str());
  }
  bool made() const { return made_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool made_ = false;
};

void FiltersDevices(const std::string& root) {
  const Group group(root);
  if (!group.made()) GTEST_SKIP() << "no group can be made below " << root;
  EXPECT_EQ(OpenWithin(group.path(), "/dev/zero"), 0);
  const Status allowed = AllowDevices(group.path(), {"c 1:3", "c 136:*"});
  if (allowed.code() == Code::kForbidden) GTEST_SKIP() << allowed.message();
  ASSERT_TRUE(allowed.ok()) << allowed.ToString();
  EXPECT_EQ(OpenWithin(group.path(), "/dev/null"), 0);
  EXPECT_EQ(OpenWithin(group.path(), "/dev/zero"), EPERM);
  EXPECT_EQ(OpenWithin(group.path(), "/dev/urandom"), EPERM);
  EXPECT_EQ(OpenWithin(group.path(), "/etc/passwd"), 0);
}

TEST(DeviceFilter, OfVersion1) { FiltersDevices("/sys/fs/cgroup/devices"); }

TEST(DeviceFilter, OfVersion2) {
  for (const char* root : {"/sys/fs/cgroup/unified", "/sys/fs/cgroup"}) {
    if (FileExists(StrCat(root, "/cgroup.controllers"))) return FiltersDevices(root);
  }
  GTEST_SKIP() << "control groups of version 2 are not mounted";
}

TEST(DeviceFilter, RulesAreOfDeviceFilesAlone) {
  EXPECT_EQ(DeviceRuleOf("/dev/null"), "c 1:3");
  EXPECT_EQ(DeviceRuleOf("/etc/passwd"), "");
  EXPECT_EQ(DeviceRuleOf("/nowhere"), "");
}

TEST(DeviceFilter, WhatIsNoRuleIsRefused) {
  for (const char* rule : {"", "c", "x 1:3", "c 1", "c :3", "c 1:", "c 1:x", "c -1:3"}) {
    EXPECT_EQ(AllowDevices("/nowhere", {rule}).code(), Code::kInvalid) << rule;
  }
}

}  // namespace
}  // namespace swell::process
