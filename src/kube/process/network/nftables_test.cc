#include "kube/process/network/nftables.h"

#include <fcntl.h>
#include <sys/select.h>
#include <unistd.h>

#include <vector>

#include <gtest/gtest.h>

#include "base/descriptors.h"
#include "base/unique_fd.h"

namespace swell::process {
namespace {

// One user with a thousand connections ended the cluster at the next pod's start.
TEST(Nftables, ManyOpenFilesDoNotEndTheProcess) {
  if (RaiseDescriptorLimit() < FD_SETSIZE + 100) GTEST_SKIP() << "too few files may be open here";
  const bool before = AskNftables("list tables\n").ok();
  std::vector<UniqueFd> open;
  do {
    open.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    ASSERT_TRUE(open.back().valid());
  } while (open.back().get() <= FD_SETSIZE);
  EXPECT_EQ(AskNftables("list tables\n").ok(), before);
  EXPECT_NE(::fcntl(open.back().get(), F_GETFD), -1) << "it was closed for the process, too";
}

}  // namespace
}  // namespace swell::process
