#include "kube/cri/pods_device.h"

#include <gtest/gtest.h>

#include "base/strings.h"

namespace swell::cri {
namespace {

constexpr std::string_view kTitles =
    "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT      \n";
constexpr std::string_view kDefault =
    "eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n";
// 10.89.0.0/16, and 10.89.17.0/24 within it.
constexpr std::string_view kWide = "wide0\t0000590A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n";
constexpr std::string_view kCni = "cni0\t0011590A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";

TEST(PodsDevice, IsThatOfTheNarrowestNetworkAroundThePod) {
  for (const std::string& routes :
       {StrCat(kTitles, kDefault, kWide, kCni), StrCat(kTitles, kCni, kWide, kDefault)}) {
    EXPECT_EQ(PodsDevice(routes, "10.89.17.2"), "cni0") << routes;
    EXPECT_EQ(PodsDevice(routes, "10.89.18.2"), "wide0") << routes;
  }
}

TEST(PodsDevice, IsTheOneThatTheKernelPrefersAmongEqualNetworks) {
  constexpr std::string_view kDearer =
      "cni1\t0011590A\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n";
  EXPECT_EQ(PodsDevice(StrCat(kTitles, kDearer, kCni), "10.89.17.2"), "cni0");
}

TEST(PodsDevice, IsNoneWhereNoInterfaceLeadsToTheWholeNetwork) {
  // ptp: a route of the pod's own. Others: a network behind a gateway.
  constexpr std::string_view kOwn = "veth1\t0211590A\t00000000\t0005\t0\t0\t0\tFFFFFFFF\t0\t0\t0\n";
  constexpr std::string_view kBehind =
      "host0\t0011590A\t0100590A\t0003\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
  EXPECT_EQ(PodsDevice(StrCat(kTitles, kDefault, kWide, kOwn), "10.89.17.2"), "");
  EXPECT_EQ(PodsDevice(StrCat(kTitles, kDefault, kWide, kBehind), "10.89.17.2"), "");
  EXPECT_EQ(PodsDevice(StrCat(kTitles, kDefault), "10.89.17.2"), "");
  EXPECT_EQ(PodsDevice("", "10.89.17.2"), "");
  EXPECT_EQ(PodsDevice(StrCat(kTitles, kCni), "no address"), "");
}

}  // namespace
}  // namespace swell::cri
