#include "ops/access/client_certificates.h"

#include <gtest/gtest.h>

namespace swell::ops {
namespace {

class ClientCertificatesTest : public ::testing::Test {
 protected:
  const RealClock clock_;
  const net::CertificatePair authority_ = net::GenerateCa("swell-ca", clock_.Now()).value();
};

TEST_F(ClientCertificatesTest, AUserIsNamedAndBelongsToItsOrganization) {
  apiserver::Options options;
  AddCertificates(options, authority_, clock_);
  const WallTime before = clock_.Now();
  const auto issued = options.issue_certificate("jane", "swell:users", std::chrono::hours(1));
  ASSERT_TRUE(issued.ok()) << issued.status().ToString();
  EXPECT_NE(issued->key.find("PRIVATE KEY"), std::string::npos);
  const net::CertificateInfo info = net::DescribeCertificate(issued->certificate).value();
  EXPECT_EQ(info.common_name, "jane");
  EXPECT_EQ(info.organizations, std::vector<std::string>{"swell:users"});
  EXPECT_LT(info.not_before, before) << "clocks of clients may be behind";
  EXPECT_EQ(info.not_after - info.not_before, Duration(std::chrono::hours(1)));
}

TEST_F(ClientCertificatesTest, ARequestThatCannotBeReadIsRefused) {
  apiserver::Options options;
  AddCertificates(options, authority_, clock_);
  EXPECT_FALSE(options.requested_subject("no request").ok());
  EXPECT_FALSE(SignerOf(authority_, clock_)({.pem = "no request"}).ok());
}

}  // namespace
}  // namespace swell::ops
