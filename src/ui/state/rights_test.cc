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

// An API server as before Kubernetes 1.28: nobody is told who they are, but reviews of tokens are
// answered.
class OldServer final : public api::RestHandler {
 public:
  explicit OldServer(std::string review) : review_(std::move(review)) {}
  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override {
    const bool review = request.path.ends_with("/tokenreviews");
    if (review) asked = std::move(request.body);
    api::RestResponse response;
    response.status = review ? 201 : 404;
    response.body.push_back(api::MakeChunk(review ? review_ : "{}"));
    sink->OnResponse(std::move(response));
    return nullptr;
  }
  std::string asked;

 private:
  const std::string review_;
};

TEST_F(PagesTest, OlderServersAreAskedWhoseATokenIs) {
  auto server = std::make_shared<OldServer>(
      R"({"status":{"authenticated":true,"user":{"username":"ann","groups":["team"]}}})");
  RightsReader reader(server_.executor, server, server);
  Result<api::UserInfo> user = swell::Status(Code::kInternal, "no answer");
  reader.WhoIs({.bearer_token = "hers"}, [&user](Result<api::UserInfo> who) { user = who; });
  server_.executor.RunPosted();
  ASSERT_TRUE(user.ok()) << user.status().ToString();
  EXPECT_EQ(user->name, "ann");
  EXPECT_EQ(user->groups, std::vector<std::string>{"team"});
  EXPECT_NE(server->asked.find(R"("token":"hers")"), std::string::npos) << server->asked;

  auto refusing = std::make_shared<OldServer>(R"({"status":{"error":"expired"}})");
  RightsReader another(server_.executor, refusing, refusing);
  another.WhoIs({.bearer_token = "old"}, [&user](Result<api::UserInfo> who) { user = who; });
  server_.executor.RunPosted();
  EXPECT_EQ(user.status().code(), Code::kUnauthorized);
}

}  // namespace
}  // namespace swell::ui
