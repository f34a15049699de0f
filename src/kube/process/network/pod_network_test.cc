#include "kube/process/network/pod_network.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "kube/process/network/netlink.h"

namespace swell::process {
namespace {

std::string HardwareAddress(const std::string& name) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request = {};
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  EXPECT_EQ(::ioctl(fd, SIOCGIFHWADDR, &request), 0) << errno;
  ::close(fd);
  return {request.ifr_hwaddr.sa_data, 6};
}

// In a network namespace of this thread alone, which goes with it.
void PortsComeToABridge() {
  const int own = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(own, 0);
  auto host = Netlink::Open();
  ASSERT_TRUE(host.ok());
  ASSERT_TRUE(host->AddBridge("bridge").ok());
  const int index = host->LinkIndex("bridge").value();
  ASSERT_TRUE(Netlink::KeepHardwareAddress("bridge").ok());
  const std::string address = HardwareAddress("bridge");
  // A bridge would take its first port's address.
  ASSERT_TRUE(host->AddVeth("port-1", index, "pod-1", own).ok());
  EXPECT_EQ(HardwareAddress("bridge"), address);
  EXPECT_NE(HardwareAddress("port-1"), address);
  ASSERT_TRUE(host->DeleteLink("port-1").ok());
  EXPECT_EQ(HardwareAddress("bridge"), address);
  ::close(own);
}

TEST(Netlink, ABridgeKeepsItsHardwareAddressWhateverPortsComeAndGo) {
  bool permitted = true;
  std::thread apart([&permitted] {
    permitted = ::unshare(CLONE_NEWNET) == 0;
    if (permitted) PortsComeToABridge();
  });
  apart.join();
  if (!permitted) GTEST_SKIP() << "network namespaces are not permitted here";
}

}  // namespace
}  // namespace swell::process
