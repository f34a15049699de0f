// Certificate signing requests: the rights to approve and sign, and subjects that are refused.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/apiserver/test_server.h"

namespace swell::apiserver {
namespace {

constexpr std::string_view kRequests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
constexpr std::string_view kPem =
    "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n";

class SigningRequestsTest : public ::testing::Test {
 protected:
  SigningRequestsTest() : server(MakeOptions()) {}
  Options MakeOptions() {
    Options options;
    options.rbac = true;
    options.requested_subject = [this](const std::string&) -> Result<CertificateSubject> {
      return CertificateSubject{common_name, organizations};
    };
    return options;
  }
  void SetUp() override {
    server.Boot();
    ASSERT_TRUE(server.boot.ok()) << server.boot.ToString();
  }
  Answer As(const std::string& user, std::string method, std::string target, std::string body) {
    api::RestRequest request =
        server.Request(std::move(method), std::move(target), std::move(body), "application/json");
    request.user = {user, "", {user == "root" ? "system:masters" : "people"}};
    return server.Send(request);
  }
  static std::string Body(std::string_view signer, std::string_view status = "{}") {
    return StrCat(R"({"metadata":{"name":"r"},"spec":{"request":")", Base64Encode(kPem),
                  R"(","usages":["client auth"],"signerName":")", signer, R"("},"status":)", status,
                  "}");
  }
  void Allow(const std::string& verb, const std::string& resource, const std::string& name) {
    const std::string rbac = "/apis/rbac.authorization.k8s.io/v1/";
    const std::string names = name.empty() ? "" : StrCat(R"(,"resourceNames":[")", name, R"("])");
    const std::string role = StrCat("r", ++roles);
    As("root", "POST", rbac + "clusterroles",
       StrCat(R"({"metadata":{"name":")", role,
              R"("},"rules":[{"apiGroups":["certificates.k8s.io"],"resources":[")", resource,
              R"("],"verbs":[")", verb, R"("])", names, "}]}"));
    const Answer bound = As(
        "root", "POST", rbac + "clusterrolebindings",
        StrCat(
            R"({"metadata":{"name":")", role,
            R"("},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":")",
            role, R"("},"subjects":[{"kind":"User","name":"jane"}]})"));
    ASSERT_EQ(bound.status, 201) << bound.text;
  }

  std::string common_name = "jane";
  std::vector<std::string> organizations;
  int roles = 0;
  TestServer server;
};

TEST_F(SigningRequestsTest, NobodyBecomesAMasterOrARegisteredUser) {
  const std::string requests(kRequests);
  organizations = {"team", "system:masters"};
  const Answer refused = As("root", "POST", requests, Body("kubernetes.io/kube-apiserver-client"));
  EXPECT_EQ(refused.status, 403) << refused.text;
  organizations = {"user:root:1234-5678"};
  EXPECT_EQ(As("root", "POST", requests, Body("kubernetes.io/kube-apiserver-client")).status, 403);
  EXPECT_EQ(As("root", "POST", requests, Body("example.com/own")).status, 201);
}

TEST_F(SigningRequestsTest, NamesOfTheSystemAreForTheSystem) {
  const std::string requests(kRequests);
  Allow("create", "certificatesigningrequests", "");
  auto ask = [&](const std::string& user) {
    const Answer answer = As(user, "POST", requests, Body("kubernetes.io/kube-apiserver-client"));
    As("root", "DELETE", requests + "/r", "");
    return answer.status;
  };
  EXPECT_EQ(ask("jane"), 201);
  common_name = "system:kube-scheduler";
  EXPECT_EQ(ask("jane"), 403);
  EXPECT_EQ(ask("root"), 201);
  common_name = "jane";
  organizations = {"system:serviceaccounts"};
  EXPECT_EQ(ask("jane"), 403);
  organizations = {"system:nodes"};
  EXPECT_EQ(ask("jane"), 403);
  organizations.clear();
  common_name = "system:node:n1";
  EXPECT_EQ(ask("jane"), 403);
  Allow("create", "certificatesigningrequests/nodeclient", "");
  EXPECT_EQ(ask("jane"), 201);
}

TEST_F(SigningRequestsTest, ApprovingAndSigningTakeTheSignersRight) {
  const std::string one = StrCat(kRequests, "/r");
  const std::string conditions =
      R"("conditions":[{"type":"Approved","status":"True","reason":"x","message":"y"}])";
  const std::string approved = Body("example.com/own", StrCat("{", conditions, "}"));
  ASSERT_EQ(As("root", "POST", std::string(kRequests), Body("example.com/own")).status, 201);
  Allow("update", "certificatesigningrequests/approval", "");
  Allow("update", "certificatesigningrequests/status", "");
  EXPECT_EQ(As("jane", "PUT", one + "/approval", approved).status, 403);
  Allow("approve", "signers", "example.com/*");
  EXPECT_EQ(As("jane", "PUT", one + "/approval", approved).status, 200);
  const std::string issued =
      Body("example.com/own", StrCat(R"({"certificate":"QQ==",)", conditions, "}"));
  EXPECT_EQ(As("jane", "PUT", one + "/status", issued).status, 403);
  Allow("sign", "signers", "example.com/own");
  const Answer made = As("jane", "PUT", one + "/status", issued);
  EXPECT_EQ(made.status, 200) << made.text;
}

}  // namespace
}  // namespace swell::apiserver
