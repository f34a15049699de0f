#include "kube/controllers/cluster/certificate_cleaner.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::controllers {
namespace {

using manager::TestCluster;
using std::chrono::hours;
using std::chrono::minutes;

const client::Resource kRequests{"certificates.k8s.io", "v1", "certificatesigningrequests", false};
constexpr std::string_view kPem =
    "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n";

class CertificateCleanerTest : public ::testing::Test {
 protected:
  CertificateCleanerTest()
      : informers_(cluster_.sim, cluster_.server, kAdmin, 1),
        cleaner_(
            Context{cluster_.sim, cluster_.sim, random_, cluster_.server, kAdmin, informers_}) {
    informers_.Start();
  }
  void Ask(const std::string& name) {
    cluster_.Create(StrCat(
        "{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: ",
        name, "}, spec: {request: ", Base64Encode(kPem),
        ", signerName: example.com/own, usages: [client auth]}}"));
  }
  void Say(const std::string& name, const std::string& status, const std::string& subresource) {
    const Status said =
        cluster_.Patch(kRequests, name, StrCat("{status: {", status, "}}"), subresource);
    ASSERT_TRUE(said.ok()) << said.ToString();
  }
  void Decide(const std::string& name, const std::string& how) {
    Say(name, StrCat("conditions: [{type: ", how, ", status: 'True', reason: R, message: m}]"),
        how == "Failed" ? "status" : "approval");
  }
  std::string Left() {
    std::string left;
    for (const json::SharedValue& request : cluster_.List(kRequests)) {
      left += StrCat(left.empty() ? "" : " ", api::Name(*request));
    }
    return left;
  }

  inline static const api::UserInfo kAdmin{"system:admin", "", {"system:masters"}};
  TestCluster cluster_;
  Random random_{1};
  Informers informers_;
  CertificateCleaner cleaner_;
};

TEST_F(CertificateCleanerTest, WhatWasAnsweredGoesAfterAnHourAndWhatWasNotAfterADay) {
  for (const char* name : {"approved", "denied", "failed", "issued", "open"}) Ask(name);
  cluster_.Run(hours(3));
  Decide("approved", "Approved");
  Decide("denied", "Denied");
  Decide("failed", "Failed");
  Decide("issued", "Approved");
  Say("issued", StrCat("certificate: ", Base64Encode("certificate")), "status");
  cluster_.Run(minutes(59));
  EXPECT_EQ(Left(), "approved denied failed issued open");
  cluster_.Run(minutes(2));
  EXPECT_EQ(Left(), "approved open") << "its signer may be away";
  cluster_.Run(hours(19));
  EXPECT_EQ(Left(), "approved open");
  cluster_.Run(hours(1));
  EXPECT_EQ(Left(), "approved");
}

TEST_F(CertificateCleanerTest, WhatIsIssuedLateStaysForAnHourOfItsApprovalOnly) {
  Ask("late");
  Decide("late", "Approved");
  cluster_.Run(hours(48));
  EXPECT_EQ(Left(), "late");
  Say("late", StrCat("certificate: ", Base64Encode("certificate")), "status");
  cluster_.Run(minutes(1));
  EXPECT_EQ(Left(), "");
}

}  // namespace
}  // namespace swell::controllers
