// People whom `swell user` has made known: who they are, and when they are nobody any more.
#include "kube/apiserver/access/registered_users.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/apiserver/access/account_tokens.h"
#include "kube/apiserver/test_server.h"

namespace swell::apiserver {
namespace {

constexpr char kSecrets[] = "/api/v1/namespaces/kube-system/secrets";

class RegisteredUsersTest : public testing::Test {
 protected:
  RegisteredUsersTest() : test_(MakeOptions()) {
    test_.Boot();
    EXPECT_TRUE(test_.boot.ok());
    test_.user = "";
  }
  static Options MakeOptions() {
    Options options;
    options.rbac = true;
    options.token_key = std::make_shared<TestTokenKey>();
    options.issue_certificate = [](const std::string& name, const std::string& organization,
                                   Duration) {
      return CertificateAndKey{StrCat("cert of ", name, " in ", organization), "key"};
    };
    return options;
  }

  api::RestRequest AsMaster(std::string method, const std::string& target, std::string body = {}) {
    auto request = test_.Request(std::move(method), target, std::move(body));
    request.user = {"root", "", {"system:masters"}};
    return request;
  }
  UserReference Register(const std::string& secret,
                         const std::string& name,
                         const std::string& groups,
                         const std::string& type = "swell.dev/user") {
    const Answer made = test_.Send(AsMaster(
        "POST", kSecrets,
        StrCat(R"({"metadata":{"name":")", secret, R"("},"type":")", type,
               R"(","stringData":{"username":")", name, R"(","groups":")", groups, R"("}})")));
    EXPECT_EQ(made.status, 201) << made.text;
    return {secret, made.Str({"metadata", "uid"})};
  }
  api::RestRequest WithToken(const UserReference& user, Duration valid = std::chrono::hours(1)) {
    const int64_t now_s = test_.executor.Now().unix_ns / 1'000'000'000;
    const json::Object claims{
        {"exp", now_s + std::chrono::duration_cast<std::chrono::seconds>(valid).count()},
        {"nbf", now_s},
        {kUserClaim, json::Object{{"secret", user.secret}, {"uid", user.uid}}}};
    auto request = test_.Request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "{}");
    request.credentials.bearer_token = SignToken(TestTokenKey(), claims);
    return request;
  }
  api::RestRequest WithCertificate(const UserReference& user) {
    auto request = test_.Request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "{}");
    request.credentials.certificate_common_name = "whatever it says";
    request.credentials.certificate_organizations = {"system:masters", user.Organization()};
    return request;
  }

  TestServer test_;
};

TEST_F(RegisteredUsersTest, AreWhatTheSecretSays) {
  const UserReference alice = Register("swell-user-a", "alice", "staff,night-shift");
  for (const api::RestRequest& request : {WithToken(alice), WithCertificate(alice)}) {
    const Answer who = test_.Send(request);
    ASSERT_EQ(who.status, 201) << who.text;
    EXPECT_EQ(who.Str({"status", "userInfo", "username"}), "alice");
    EXPECT_EQ(json::Print(*json::Find(who.body, {"status", "userInfo", "groups"})),
              R"(["staff","night-shift","swell:users","system:authenticated"])");
  }
}

TEST_F(RegisteredUsersTest, GroupsChangeWithoutNewCredentials) {
  const UserReference alice = Register("swell-user-a", "alice", "staff");
  const api::RestRequest request = WithToken(alice);
  test_.Send(AsMaster("PUT", StrCat(kSecrets, "/swell-user-a"),
                      R"({"metadata":{"name":"swell-user-a"},"type":"swell.dev/user",)"
                      R"("stringData":{"username":"alice","groups":"guests"}})"));
  const Answer who = test_.Send(request);
  EXPECT_NE(who.text.find("guests"), std::string::npos) << who.text;
  EXPECT_EQ(who.text.find("staff"), std::string::npos);
}

TEST_F(RegisteredUsersTest, WhoIsDeletedIsNobody) {
  const UserReference alice = Register("swell-user-a", "alice", "");
  const api::RestRequest token = WithToken(alice);
  EXPECT_EQ(test_.Send(token).status, 201);
  EXPECT_EQ(test_.Send(AsMaster("DELETE", StrCat(kSecrets, "/swell-user-a"))).status, 200);
  EXPECT_EQ(test_.Send(token).status, 401);
  EXPECT_EQ(test_.Send(WithCertificate(alice)).status, 401);
  // The same name again is somebody else.
  Register("swell-user-a", "alice", "");
  EXPECT_EQ(test_.Send(token).status, 401);
}

TEST_F(RegisteredUsersTest, OtherSecretsAreNobody) {
  const UserReference opaque = Register("opaque", "system:admin", "system:masters", "Opaque");
  EXPECT_EQ(test_.Send(WithToken(opaque)).status, 401);
  EXPECT_EQ(test_.Send(WithCertificate(opaque)).status, 401);
}

TEST_F(RegisteredUsersTest, TokensExpireAndAreSigned) {
  const UserReference alice = Register("swell-user-a", "alice", "");
  api::RestRequest request = WithToken(alice, std::chrono::minutes(10));
  test_.executor.Advance(std::chrono::minutes(9));
  EXPECT_EQ(test_.Send(request).status, 201);
  test_.executor.Advance(std::chrono::minutes(2));
  EXPECT_EQ(test_.Send(request).status, 401);
  request = WithToken(alice);
  request.credentials.bearer_token.back() ^= 1;
  EXPECT_EQ(test_.Send(request).status, 401);
}

TEST_F(RegisteredUsersTest, TheServerSignsTheirCredentials) {
  const UserReference alice = Register("swell-user-a", "alice", "staff");
  const std::string path = "/swell/v1/users/swell-user-a/credentials";
  const std::string body = StrCat(R"({"uid":")", alice.uid, R"(","expirationSeconds":600})");
  const Answer made = test_.Send(AsMaster("POST", path, body));
  ASSERT_EQ(made.status, 201) << made.text;
  auto request = test_.Request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "{}");
  request.credentials.bearer_token = made.Str({"token"});
  EXPECT_EQ(test_.Send(request).Str({"status", "userInfo", "username"}), "alice");
  test_.executor.Advance(std::chrono::minutes(11));
  EXPECT_EQ(test_.Send(request).status, 401);

  const Answer pair = test_.Send(AsMaster(
      "POST", path,
      StrCat(R"({"uid":")", alice.uid, R"(","expirationSeconds":600,"certificate":true})")));
  EXPECT_EQ(pair.Str({"certificate"}), StrCat("cert of alice in ", alice.Organization()));
  EXPECT_EQ(pair.Str({"key"}), "key");
}

TEST_F(RegisteredUsersTest, NobodyElseGetsThem) {
  const UserReference alice = Register("swell-user-a", "alice", "");
  const UserReference bob = Register("swell-user-b", "bob", "");
  const std::string path = "/swell/v1/users/swell-user-a/credentials";
  const std::string body = StrCat(R"({"uid":")", alice.uid, R"(","expirationSeconds":600})");
  api::RestRequest request = WithToken(bob);
  request.path = path;
  request.body = body;
  EXPECT_EQ(test_.Send(request).status, 403);
  const std::string other = StrCat(R"({"uid":")", bob.uid, R"(","expirationSeconds":600})");
  EXPECT_EQ(test_.Send(AsMaster("POST", path, other)).status, 404);
  EXPECT_EQ(test_.Send(AsMaster("POST", path, StrCat(R"({"uid":")", alice.uid, R"("})"))).status,
            400);
  EXPECT_EQ(test_.Send(AsMaster("POST", path, "no json")).status, 400);
  EXPECT_EQ(test_.Send(AsMaster("POST", "/swell/v1/users/nobody/credentials", body)).status, 404);
}

}  // namespace
}  // namespace swell::apiserver
