// What becomes of requests: metrics, health and the audit log.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/apiserver/test_server.h"

namespace swell::apiserver {
namespace {

class RequestLogTest : public testing::Test {
 protected:
  // `problem`: what keeps the log from being written; requests must be recorded then.
  void Start(AuditLevel level = AuditLevel::kWrites, std::function<std::string()> problem = {}) {
    Options options;
    options.audit_required = problem != nullptr;
    options.audit_problem = std::move(problem);
    options.metrics = &metrics_;
    options.rbac = true;
    options.anonymous = true;
    options.audit_level = level;
    options.search_audit = search_;
    options.audit = [this](const std::string& line) {
      EXPECT_TRUE(line.ends_with("}\n"));
      EXPECT_EQ(line.find('\n'), line.size() - 1);
      auto event = json::Parse(line);
      ASSERT_TRUE(event.ok());
      events_.push_back(std::move(*event));
      text_ += line;
    };
    test_ = std::make_unique<TestServer>(std::move(options));
    test_->Boot();
    ASSERT_TRUE(test_->boot.ok());
  }

  // As from the network: by a client certificate.
  api::RestRequest From(std::string user,
                        std::string group,
                        std::string method,
                        const std::string& target,
                        std::string body = {}) {
    api::RestRequest request = test_->Request(std::move(method), target, std::move(body));
    request.user = {};
    request.remote = "10.0.0.7:4711";
    request.credentials.certificate_common_name = std::move(user);
    if (!group.empty()) request.credentials.certificate_organizations = {std::move(group)};
    return request;
  }
  api::RestRequest Admin(std::string method, const std::string& target, std::string body = {}) {
    return From("root", "system:masters", std::move(method), target, std::move(body));
  }
  std::string Metric(const std::string& series) {
    const std::string page = metrics_.Print();
    const size_t at = page.find(StrCat("\n", series, " "));
    if (at == std::string::npos) return "none";
    const size_t value = at + series.size() + 2;
    return page.substr(value, page.find('\n', value) - value);
  }
  static std::string Str(const json::Value& event, json::Path path) {
    return std::string(json::GetString(event, path));
  }

  std::function<void(AuditQuery, std::function<void(Result<json::Value>)>)> search_;
  Metrics metrics_;
  std::vector<json::Value> events_;
  std::string text_;
  std::unique_ptr<TestServer> test_;
};

TEST_F(RequestLogTest, CountsRequestsByWhatTheyAreAbout) {
  Start();
  EXPECT_EQ(test_->Send(Admin("POST", kPods, PodJson("a"))).status, 201);
  EXPECT_EQ(test_->Send(Admin("POST", kPods, PodJson("a"))).status, 409);
  EXPECT_EQ(test_->Send(Admin("GET", "/api/v1/pods")).status, 200);
  EXPECT_EQ(test_->Send(Admin("GET", "/api/v1/nonsense")).status, 404);
  EXPECT_EQ(test_->Send(Admin("GET", "/healthz")).status, 200);
  const std::string pods = R"(group="",version="v1",resource="pods",subresource="")";
  auto total = [&](const char* verb, const char* scope, int code) {
    return Metric(StrCat("apiserver_request_total{verb=\"", verb, "\",", pods, ",scope=\"", scope,
                         "\",code=\"", code, "\"}"));
  };
  EXPECT_EQ(total("POST", "namespace", 201), "1");
  EXPECT_EQ(total("POST", "namespace", 409), "1");
  EXPECT_EQ(total("LIST", "cluster", 200), "1");
  EXPECT_EQ(Metric(StrCat("apiserver_request_duration_seconds_count{verb=\"POST\",", pods,
                          ",scope=\"namespace\"}")),
            "2");
  // What does not exist makes no series of its own.
  EXPECT_EQ(metrics_.Print().find("nonsense"), std::string::npos);
  EXPECT_EQ(Metric("apiserver_storage_objects{resource=\"pods\"}"), "1");
  EXPECT_NE(Metric("swell_store_commits_total"), "0");
  EXPECT_EQ(Metric("apiserver_current_inflight_requests{request_kind=\"mutating\"}"), "0");
}

TEST_F(RequestLogTest, CountsStreamsWhileTheyLast) {
  Start();
  {
    auto call =
        test_->server->Handle(Admin("GET", "/api/v1/pods?watch=1"), std::make_shared<TestSink>());
    test_->executor.RunPosted();
    EXPECT_EQ(Metric("apiserver_current_streams"), "1");
    EXPECT_EQ(Metric("apiserver_registered_watchers"), "1");
  }
  EXPECT_EQ(Metric("apiserver_current_streams"), "0");
  EXPECT_EQ(Metric("apiserver_registered_watchers"), "0");
}

TEST_F(RequestLogTest, ServesMetricsToThoseWhoMayReadThem) {
  Start();
  const Answer page = test_->Send(Admin("GET", "/metrics"));
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.content_type, "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_NE(page.text.find("# TYPE apiserver_request_total counter\n"), std::string::npos);
  EXPECT_EQ(test_->Send(From("eve", "", "GET", "/metrics")).status, 403);
  EXPECT_EQ(test_->Send(From("prometheus", "system:monitoring", "GET", "/metrics")).status, 200);
}

TEST_F(RequestLogTest, SaysWhoDidWhatWhen) {
  Start();
  test_->executor.Advance(std::chrono::seconds(5));
  ASSERT_EQ(test_->Send(Admin("POST", kPods, PodJson("a"))).status, 201);
  ASSERT_EQ(events_.size(), 1u);
  const json::Value& event = events_[0];
  EXPECT_EQ(Str(event, {"kind"}), "Event");
  EXPECT_EQ(Str(event, {"apiVersion"}), "audit.k8s.io/v1");
  EXPECT_EQ(Str(event, {"level"}), "Metadata");
  EXPECT_EQ(Str(event, {"stage"}), "ResponseComplete");
  EXPECT_EQ(Str(event, {"verb"}), "create");
  EXPECT_EQ(Str(event, {"requestURI"}), kPods);
  EXPECT_EQ(Str(event, {"user", "username"}), "root");
  EXPECT_EQ(Str(event, {"userAgent"}), "test/1");
  EXPECT_EQ(json::Print(*json::Find(event, {"sourceIPs"})), R"(["10.0.0.7"])");
  EXPECT_EQ(json::Print(*json::Find(event, {"objectRef"})),
            R"({"resource":"pods","namespace":"default","name":"a","apiVersion":"v1"})");
  EXPECT_EQ(json::GetInt(event, {"responseStatus", "code"}), 201);
  EXPECT_EQ(Str(event, {"annotations", "authorization.k8s.io/decision"}), "allow");
  EXPECT_EQ(Str(event, {"requestReceivedTimestamp"}).size(), 27u);  // microseconds
  EXPECT_EQ(Str(event, {"auditID"}).size(), 36u);
}

TEST_F(RequestLogTest, LeavesOutWhatChangesNothing) {
  Start();
  test_->Send(Admin("GET", "/api/v1/pods"));
  test_->Send(Admin("GET", "/version"));
  test_->Send(Admin("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                    R"({"spec":{"resourceAttributes":{"verb":"get","resource":"pods"}}})"));
  test_->Post(kPods, PodJson("by-swell-itself"));
  EXPECT_EQ(text_, "");
}

TEST_F(RequestLogTest, TellsOfEverythingWhenAsked) {
  Start(AuditLevel::kAll);
  test_->Send(Admin("GET", "/api/v1/pods?limit=5"));
  ASSERT_EQ(events_.size(), 1u);
  EXPECT_EQ(Str(events_[0], {"requestURI"}), "/api/v1/pods?limit=5");
}

TEST_F(RequestLogTest, TellsOfRefusalsAndReadSecrets) {
  Start();
  EXPECT_EQ(test_->Send(From("eve", "", "GET", "/api/v1/namespaces/default/pods/x")).status, 403);
  EXPECT_EQ(test_->Send(Admin("GET", "/api/v1/namespaces/default/secrets/none")).status, 404);
  api::RestRequest stranger = Admin("GET", kPods);
  stranger.credentials = {.bearer_token = "top-secret-token"};
  EXPECT_EQ(test_->Send(stranger).status, 401);
  ASSERT_EQ(events_.size(), 3u);
  EXPECT_EQ(Str(events_[0], {"annotations", "authorization.k8s.io/decision"}), "forbid");
  EXPECT_EQ(Str(events_[0], {"responseStatus", "reason"}), "Forbidden");
  EXPECT_EQ(Str(events_[0], {"user", "username"}), "eve");
  EXPECT_EQ(Str(events_[1], {"verb"}), "get");
  EXPECT_EQ(Str(events_[1], {"responseStatus", "status"}), "Failure");
  EXPECT_EQ(Str(events_[2], {"responseStatus", "reason"}), "Unauthorized");
  EXPECT_EQ(text_.find("top-secret-token"), std::string::npos);
}

TEST_F(RequestLogTest, TellsWhoAskedForCredentialsAndBackups) {
  Start();
  test_->Send(Admin("POST", "/swell/v1/users/swell-user-zoe/credentials", "{}"));
  test_->Send(Admin("POST", "/swell/v1/backup"));
  EXPECT_EQ(test_->Send(From("eve", "", "POST", "/swell/v1/backup")).status, 403);
  EXPECT_EQ(test_->Send(From("eve", "", "GET", "/metrics")).status, 403);
  ASSERT_EQ(events_.size(), 4u);
  EXPECT_EQ(Str(events_[0], {"requestURI"}), "/swell/v1/users/swell-user-zoe/credentials");
  EXPECT_EQ(Str(events_[0], {"verb"}), "post");
  EXPECT_EQ(json::Find(events_[0], {"objectRef"}), nullptr);
  EXPECT_EQ(Str(events_[1], {"user", "username"}), "root");
  EXPECT_EQ(Str(events_[2], {"annotations", "authorization.k8s.io/decision"}), "forbid");
  EXPECT_EQ(Str(events_[3], {"requestURI"}), "/metrics");
}

TEST_F(RequestLogTest, RefusesWhatItCannotRecordWhereThatIsRequired) {
  std::string problem;
  Start(AuditLevel::kWrites, [&problem] { return problem; });
  ASSERT_EQ(test_->Send(Admin("POST", kPods, PodJson("a"))).status, 201);
  problem = "the disk is full";
  const Answer refused = test_->Send(Admin("POST", kPods, PodJson("b")));
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(
      refused.Message(),
      "the audit log cannot be written, and this cluster serves nothing that it cannot record "
      "(--audit-required): the disk is full");
  EXPECT_EQ(test_->Send(Admin("GET", "/api/v1/namespaces/default/secrets/none")).status, 503);
  EXPECT_EQ(test_->Send(Admin("POST", "/swell/v1/backup")).status, 503);
  // What is not recorded is served, and so are nodes and Swell itself.
  EXPECT_EQ(test_->Send(Admin("GET", kPods)).status, 200);
  EXPECT_EQ(test_
                ->Send(Admin("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                             R"({"spec":{"resourceAttributes":{"verb":"get"}}})"))
                .status,
            201);
  EXPECT_NE(test_->Post(kPods, PodJson("by-swell-itself")).status, 503);
  const Answer node = test_->Send(From("system:node:n", "system:nodes", "POST", "/api/v1/nodes",
                                       R"({"metadata":{"name":"n"}})"));
  EXPECT_NE(node.status, 503) << node.text;
  const Answer part = test_->Send(Admin("GET", "/api/v1/componentstatuses/audit-log"));
  EXPECT_EQ(json::Print(*json::Find(part.body, {"conditions"})),
            R"([{"type":"Healthy","status":"False","message":"the disk is full"}])");
  problem.clear();
  EXPECT_EQ(test_->Send(Admin("POST", kPods, PodJson("b"))).status, 201);
}

TEST_F(RequestLogTest, AdministratorsSearchTheLog) {
  search_ = [](const AuditQuery& query, const auto& done) {
    done(json::Value(json::Object{{"kind", "EventList"}, {"user", query.user}}));
  };
  Start();
  const auto found = test_->Send(Admin("GET", "/swell/v1/audit?user=eve"));
  EXPECT_EQ(found.status, 200);
  EXPECT_EQ(found.Str({"user"}), "eve");
  EXPECT_EQ(test_->Send(Admin("GET", "/swell/v1/audit?limit=x")).status, 400);
  EXPECT_EQ(test_->Send(From("eve", "", "GET", "/swell/v1/audit")).status, 403);
}

TEST_F(RequestLogTest, HasNoSecrets) {
  Start(AuditLevel::kAll);
  test_->Send(Admin("POST", "/api/v1/namespaces/default/secrets",
                    R"({"metadata":{"name":"s"},"stringData":{"password":"hunter2"}})"));
  test_->Send(Admin("GET", "/api/v1/pods?access_token=hunter2&limit=1&Password=hunter2"));
  EXPECT_EQ(test_->Send(Admin("GET", "/api/v1/namespaces/default/secrets/s")).status, 200);
  EXPECT_EQ(events_.size(), 3u);
  EXPECT_EQ(text_.find("hunter2"), std::string::npos);
  EXPECT_EQ(text_.find("aHVudGVyMg"), std::string::npos);  // in base64
  EXPECT_NE(text_.find("access_token=REDACTED&limit=1&password=REDACTED"), std::string::npos);
}

TEST_F(RequestLogTest, SaysForWhomSomebodyActed) {
  Start();
  api::RestRequest request = Admin("DELETE", "/api/v1/namespaces/default/pods/none");
  request.credentials.impersonate = {.name = "alice", .groups = {"research"}};
  EXPECT_EQ(test_->Send(request).status, 403);
  ASSERT_EQ(events_.size(), 1u);
  EXPECT_EQ(Str(events_[0], {"user", "username"}), "root");
  EXPECT_EQ(Str(events_[0], {"impersonatedUser", "username"}), "alice");
}

TEST_F(RequestLogTest, TellsWhenStreamsBeginAndEnd) {
  Start(AuditLevel::kAll);
  {
    auto sink = std::make_shared<TestSink>();
    auto call = test_->server->Handle(Admin("GET", "/api/v1/pods?watch=1"), sink);
    test_->executor.RunPosted();
    ASSERT_EQ(events_.size(), 1u);
  }
  ASSERT_EQ(events_.size(), 2u);
  EXPECT_EQ(Str(events_[0], {"stage"}), "ResponseStarted");
  EXPECT_EQ(Str(events_[1], {"stage"}), "ResponseComplete");
  EXPECT_EQ(Str(events_[0], {"auditID"}), Str(events_[1], {"auditID"}));
}

TEST_F(RequestLogTest, OneLinePerEventWhateverUsersSend) {
  Start();
  const std::string name = "x\n{\"kind\":\"Event\",\"user\":{\"username\":\"root\"}}";
  api::RestRequest request = From(
      name, "", "DELETE", StrCat("/api/v1/namespaces/default/pods/", api::EscapePathSegment(name)));
  request.user_agent = "evil\r\nagent\x1b[2J";
  EXPECT_EQ(test_->Send(request).status, 403);
  ASSERT_EQ(events_.size(), 1u);
  EXPECT_EQ(Str(events_[0], {"user", "username"}), name);
  EXPECT_EQ(Str(events_[0], {"userAgent"}), "evil\r\nagent\x1b[2J");
  EXPECT_EQ(text_.find('\x1b'), std::string::npos);
}

TEST_F(RequestLogTest, TextsOfRefusedRequestsAreCut) {
  Start();
  const std::string name(20'000, 'x');
  api::RestRequest long_one =
      From("joe", "", "GET", StrCat("/api/v1/namespaces/lab/secrets?labelSelector=", name));
  long_one.user_agent = name;
  EXPECT_EQ(test_->Send(std::move(long_one)).status, 403);
  ASSERT_EQ(events_.size(), 1u);
  EXPECT_LT(text_.size(), 4000u);
  EXPECT_EQ(Str(events_[0], {"userAgent"}), StrCat(name.substr(0, 512), "...TRUNCATED"));
  EXPECT_TRUE(Str(events_[0], {"requestURI"}).starts_with("/api/v1/namespaces/lab/"));
  // What is served is told at length: a command may be the important part.
  EXPECT_EQ(
      test_->Send(Admin("POST", StrCat(kPods, "?pretty=", name.substr(0, 2000)), PodJson("a")))
          .status,
      201);
  EXPECT_TRUE(Str(events_[1], {"requestURI"}).ends_with("xxx"));
}

TEST_F(RequestLogTest, HealthSaysWhatIsWrong) {
  Options options;
  std::string wrong = "starting";
  options.health.AddReady("informer-sync", [&wrong] { return wrong; });
  TestServer test(std::move(options));
  EXPECT_EQ(test.Get("/livez?verbose").text, "[+]ping ok\n[+]store ok\nlivez check passed\n");
  EXPECT_EQ(test.Get("/readyz").status, 500);
  wrong.clear();
  EXPECT_EQ(test.Get("/readyz").text, "ok");
  EXPECT_EQ(test.Get("/readyz/informer-sync").text, "ok");
  EXPECT_EQ(test.Get("/readyz/other").status, 404);
}

}  // namespace
}  // namespace swell::apiserver
