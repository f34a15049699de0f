#include "ops/nodes/kubelet_certificate.h"

#include <gtest/gtest.h>

namespace swell::ops {
namespace {

TEST(KubeletCertificateTest, AllNodesShareTheOneOfTheFirst) {
  const RealClock clock;
  std::vector<node::NodeConfig> nodes(2);
  nodes[0].name = "gpu-1";
  nodes[0].internal_ip = "10.0.0.7";
  nodes[1].name = "gpu-2";
  nodes[1].internal_ip = "fd00::7";
  const auto made = MakeKubeletCertificate(nodes, clock);
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  const net::CertificateInfo info = net::DescribeCertificate(made->cert_pem).value();
  EXPECT_EQ(info.common_name, "system:node:gpu-1");
  EXPECT_EQ(info.organizations, std::vector<std::string>{"system:nodes"});
  nodes[1].internal_ip = "gpu-2.example.com";
  EXPECT_NE(MakeKubeletCertificate(nodes, clock).status().message().find("gpu-2.example.com"),
            std::string::npos);
}

}  // namespace
}  // namespace swell::ops
