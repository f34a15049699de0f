#include "kube/edge/webhook/webhook_server.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/net/http/client.h"
#include "kube/net/net_testing.h"

namespace swell::edge {
namespace {

TEST(WebhookServer, AnswersReviewsOverTls) {
  net::Reactor reactor;
  RealClock clock;
  auto ca = net::GenerateCa("ca", clock.Now() - std::chrono::minutes(5));
  ASSERT_TRUE(ca.ok());
  auto pair = net::IssueCert(*ca, {.common_name = "webhook",
                                   .ip_addresses = {"127.0.0.1"},
                                   .server = true,
                                   .not_before = clock.Now() - std::chrono::minutes(5)});
  ASSERT_TRUE(pair.ok());
  WebhookServer server(reactor, clock, [](const json::Value& review) {
    return json::Object{
        {"response", json::Object{{"uid", json::GetString(review, {"request", "uid"})}}}};
  });
  auto port = server.Listen("127.0.0.1:0", {pair->cert_pem, pair->key_pem, {}});
  ASSERT_TRUE(port.ok()) << port.status().ToString();
  net::ClientConfig config{.base_url = StrCat("https://127.0.0.1:", *port)};
  config.tls.ca_pem = ca->cert_pem;
  auto client = net::HttpClient::Make(reactor, config);
  ASSERT_TRUE(client.ok()) << client.status().ToString();
  auto ask = [&](std::string method, std::string target, std::string body) {
    net::HttpRequest request;
    request.method = std::move(method);
    request.target = std::move(target);
    request.body = std::move(body);
    std::optional<Result<net::HttpResponse>> answer;
    (*client)->Send(request, net::kPatience,
                    [&](Result<net::HttpResponse> got) { answer = std::move(got); });
    EXPECT_TRUE(reactor.RunUntil([&] { return answer.has_value(); }, net::kPatience));
    EXPECT_TRUE(answer && answer->ok()) << (answer ? answer->status().ToString() : "no answer");
    return answer && answer->ok() ? **answer : net::HttpResponse{};
  };
  EXPECT_EQ(net::BodyText(ask("POST", "/admit?timeout=5s", R"({"request":{"uid":"u"}})").body),
            R"({"response":{"uid":"u"}})");
  EXPECT_EQ(ask("POST", "/admit", "{").status, 400);
  EXPECT_EQ(ask("POST", "/admit", "{}").status, 400);
  EXPECT_EQ(ask("GET", "/admit", "").status, 405);
  EXPECT_EQ(ask("GET", "/other", "").status, 404);
  EXPECT_EQ(ask("GET", "/healthz", "").status, 200);
}

}  // namespace
}  // namespace swell::edge
