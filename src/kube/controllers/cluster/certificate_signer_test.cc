#include "kube/controllers/cluster/certificate_signer.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::controllers {
namespace {

using manager::kSecond;
using manager::TestCluster;

const client::Resource kRequests{"certificates.k8s.io", "v1", "certificatesigningrequests", false};
constexpr std::string_view kPem =
    "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n";

class CertificateSignerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    manager::ManagerOptions options;
    options.sign_client_certificate =
        [this](const ClientCertificateRequest& request) -> Result<std::string> {
      ++signed_;
      EXPECT_EQ(request.pem, kPem);
      EXPECT_TRUE(request.digital_signature);
      EXPECT_FALSE(request.key_encipherment);
      return std::string("certificate");
    };
    cluster_.StartManager(std::move(options));
  }
  void Ask(const std::string& name, const std::string& signer, const std::string& usages) {
    cluster_.Create(StrCat(
        "{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: ",
        name, "}, spec: {request: ", Base64Encode(kPem), ", signerName: ", signer, ", usages: [",
        usages, "]}}"));
  }
  void Decide(const std::string& name, const std::string& how) {
    const std::string patch = StrCat("{status: {conditions: [{type: ", how,
                                     ", status: 'True', reason: Test, message: because}]}}");
    const Status decided = cluster_.Patch(kRequests, name, patch, "approval");
    ASSERT_TRUE(decided.ok()) << decided.ToString();
    cluster_.Run(5 * kSecond);
  }
  std::string Certificate(const std::string& name) {
    return std::string(json::GetString(*cluster_.Get(kRequests, name), {"status", "certificate"}));
  }

  TestCluster cluster_;
  int signed_ = 0;
};

TEST_F(CertificateSignerTest, GivesWhatWasApprovedAndNothingElse) {
  const std::string ours = "kubernetes.io/kube-apiserver-client";
  for (const char* name : {"approved", "denied", "open"}) {
    Ask(name, ours, "client auth, digital signature");
  }
  Ask("other", "example.com/own", "client auth, digital signature");
  Decide("approved", "Approved");
  Decide("denied", "Denied");
  Decide("other", "Approved");
  EXPECT_EQ(Certificate("approved"), Base64Encode("certificate"));
  for (const char* name : {"denied", "open", "other"}) EXPECT_EQ(Certificate(name), "") << name;
  EXPECT_EQ(signed_, 1);
}

TEST_F(CertificateSignerTest, SaysWhatIsNotForClients) {
  Ask("server", "kubernetes.io/kube-apiserver-client", "client auth, server auth");
  Decide("server", "Approved");
  EXPECT_TRUE(cluster_.Condition(kRequests, "server", "Failed"));
  EXPECT_EQ(cluster_.Reason(kRequests, "server", "Failed"), "SignerValidationFailure");
  EXPECT_EQ(signed_, 0);
}

}  // namespace
}  // namespace swell::controllers
