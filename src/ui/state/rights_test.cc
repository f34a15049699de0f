// Rights: the API server's own decisions, and credentials that it does not accept.
#include <gtest/gtest.h>

#include "ui/ui_test_util.h"

namespace swell::ui {
namespace {

TEST_F(PagesTest, RightsAreTheApiServersOwn) {
  Project("vision");
  Project("speech");
  Researcher("jane", "vision");
  Settle();
  const auto admin = RightsOf("admin-token");
  EXPECT_TRUE(admin->May(Kind::kUser, "kube-system"));
  EXPECT_TRUE(admin->inside.empty());
  const auto jane = RightsOf("jane-token");
  EXPECT_TRUE(jane->May(Kind::kPod, "vision"));
  EXPECT_FALSE(jane->May(Kind::kPod, "speech"));
  EXPECT_FALSE(jane->May(Kind::kUser, "vision"));
  EXPECT_TRUE(jane->May(Kind::kNode, ""));
  EXPECT_FALSE(RightsOf("john-token")->May(Kind::kPod, "vision"));
  EXPECT_NE(jane->Key(), RightsOf("john-token")->Key());
  EXPECT_EQ(jane->Key(), RightsOf("jane-token")->Key());
}

TEST_F(PagesTest, UnknownCredentialsHaveNoRights) {
  swell::Status status;
  reader_.Read({.bearer_token = "wrong"}, {},
               [&](const Result<Rights>& r) { status = r.status(); });
  server_.executor.RunPosted();
  EXPECT_EQ(status.code(), Code::kUnauthorized);
  reader_.WhoIs({.bearer_token = "wrong"}, [&](const auto& user) { status = user.status(); });
  server_.executor.RunPosted();
  EXPECT_EQ(status.code(), Code::kUnauthorized);
}

TEST_F(PagesTest, CredentialsNameTheirUser) {
  std::string name;
  reader_.WhoIs({.bearer_token = "jane-token"},
                [&name](const auto& user) { name = user.ok() ? user->name : ""; });
  server_.executor.RunPosted();
  EXPECT_EQ(name, "jane");
}

}  // namespace
}  // namespace swell::ui
