#include "kube/api/objects/user.h"

#include <gtest/gtest.h>

#include "base/strings.h"

namespace swell::api {
namespace {

RegisteredUser Researcher() {
  RegisteredUser user;
  user.name = "alice@example.com";
  user.role = "researcher";
  user.projects = {"vision", "nlp"};
  user.groups = {"staff"};
  user.run_as = "1500:100,44";
  return user;
}

// The field that is wrong, and why.
std::string WrongIn(const RegisteredUser& user) {
  const Status status = CheckNewUser(user);
  if (status.ok()) return "";
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_EQ(status.details().causes.size(), 1U);
  if (status.details().causes.empty()) return "";
  const StatusCause& cause = status.details().causes.front();
  return StrCat(cause.field, " ", cause.message);
}

TEST(RegisteredUserTest, ComesBackFromItsSecret) {
  json::Value secret = Researcher().ToSecret();
  EXPECT_TRUE(IsUserSecret(secret));
  json::Object& metadata = secret.get_object()["metadata"].get_object();
  EXPECT_TRUE(metadata["labels"].get_object().contains(kUserLabel));
  metadata["name"] = "swell-user-a";
  metadata["uid"] = "1234";
  metadata["creationTimestamp"] = "2026-01-02T03:04:05Z";
  const RegisteredUser read(secret);
  EXPECT_EQ(read.secret, "swell-user-a");
  EXPECT_EQ(read.uid, "1234");
  EXPECT_EQ(read.name, "alice@example.com");
  EXPECT_EQ(read.role, "researcher");
  EXPECT_EQ(read.projects, Researcher().projects);
  EXPECT_EQ(read.groups, Researcher().groups);
  EXPECT_EQ(read.run_as, "1500:100,44");
  EXPECT_EQ(read.created, "2026-01-02T03:04:05Z");
}

TEST(RegisteredUserTest, OtherSecretsAreNoUsers) {
  const json::Value secret = json::Object{{"type", "Opaque"}};
  EXPECT_FALSE(IsUserSecret(secret));
  EXPECT_TRUE(RegisteredUser(secret).name.empty());
}

TEST(CheckNewUserTest, NamesTheFieldThatIsWrong) {
  EXPECT_EQ(WrongIn(Researcher()), "");
  RegisteredUser user = Researcher();
  for (const char* wrong : {"", "system:admin", "-a", "a b"}) {
    user.name = wrong;
    EXPECT_TRUE(WrongIn(user).starts_with("name ")) << wrong;
  }
  user = Researcher();
  user.role = "king";
  EXPECT_EQ(WrongIn(user), "role \"king\": expected admin, project-admin, researcher or viewer");
  user.role = "admin";
  EXPECT_TRUE(WrongIn(user).starts_with("projects "));
  user.projects.clear();
  EXPECT_EQ(WrongIn(user), "");
  user.role = "viewer";
  EXPECT_TRUE(WrongIn(user).starts_with("projects "));
  user = Researcher();
  user.run_as = "root";
  EXPECT_TRUE(WrongIn(user).starts_with("runAs "));
  user = Researcher();
  for (const char* wrong : {"", "system:masters", "swell:users", "a,b"}) {
    user.groups = {wrong};
    EXPECT_TRUE(WrongIn(user).starts_with("groups ")) << wrong;
  }
}

TEST(ParseRunAs, ReadsNumbers) {
  auto one = ParseRunAs("1500");
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->uid, 1500);
  EXPECT_EQ(one->gids, (std::vector<int64_t>{1500}));
  auto more = ParseRunAs("1500:100,44");
  ASSERT_TRUE(more.ok());
  EXPECT_EQ(more->gids, (std::vector<int64_t>{100, 44}));
  for (const char* wrong : {"", "x", "-1", "1:", "1:x", "1:2,", "2147483648", "1:2:3"}) {
    EXPECT_FALSE(ParseRunAs(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace swell::api
