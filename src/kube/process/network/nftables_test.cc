#include "kube/process/network/nftables.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/select.h>

#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/descriptors.h"
#include "base/unique_fd.h"

namespace swell::process {
namespace {

constexpr char kChange[] = "add table inet swelltest\n";

// One user with a thousand connections ended the cluster at the next pod's start.
TEST(Nftables, ManyOpenFilesDoNotEndTheProcess) {
  if (RaiseDescriptorLimit() < FD_SETSIZE + 100) GTEST_SKIP() << "too few files may be open here";
  bool permitted = true;
  // In a network namespace of this thread alone, which goes with it.
  std::thread([&permitted] {
    permitted = ::unshare(CLONE_NEWNET) == 0 && RunNftables(kChange).ok();
    if (!permitted) return;
    std::vector<UniqueFd> open;
    do {
      open.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
      ASSERT_TRUE(open.back().valid());
    } while (open.back().get() <= FD_SETSIZE);
    EXPECT_TRUE(RunNftables(kChange).ok());
    EXPECT_NE(::fcntl(open.back().get(), F_GETFD), -1) << "it was closed for the process, too";
  }).join();
  if (!permitted) GTEST_SKIP() << "networks of their own or nftables are not permitted here";
}

}  // namespace
}  // namespace swell::process
