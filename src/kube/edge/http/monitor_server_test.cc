#include "kube/edge/http/monitor_server.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/net/http/client.h"
#include "kube/net/net_testing.h"

namespace swell::edge {
namespace {

TEST(MonitorServer, AnswersWhoWatchesOver) {
  net::Reactor reactor;
  RealClock clock;
  Metrics metrics;
  HealthChecks health;
  std::string wrong = "not yet";
  health.AddReady("informer-sync", [&wrong] { return wrong; });
  auto registered = metrics.Register([](MetricPage& page) {
    page.Add({"answer", MetricType::kGauge, "The answer."}, 42);
  });
  MonitorServer server(reactor, clock, metrics, health);
  auto port = server.Listen("127.0.0.1:0");
  ASSERT_TRUE(port.ok()) << port.status().ToString();
  auto client = net::HttpClient::Make(reactor, {.base_url = StrCat("http://127.0.0.1:", *port)});
  ASSERT_TRUE(client.ok());
  auto ask = [&](std::string method, std::string target) {
    net::HttpRequest request;
    request.method = std::move(method);
    request.target = std::move(target);
    std::optional<Result<net::HttpResponse>> answer;
    (*client)->Send(request, net::kPatience,
                    [&](Result<net::HttpResponse> got) { answer = std::move(got); });
    EXPECT_TRUE(reactor.RunUntil([&] { return answer.has_value(); }, net::kPatience));
    EXPECT_TRUE(answer->ok());
    return answer->ok() ? **answer : net::HttpResponse{};
  };
  const net::HttpResponse page = ask("GET", "/metrics");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(*net::FindHeader(page.headers, "Content-Type"), kMetricsContentType);
  EXPECT_EQ(net::BodyText(page.body),
            "# HELP answer The answer.\n# TYPE answer gauge\nanswer 42\n");
  EXPECT_EQ(net::BodyText(ask("GET", "/healthz").body), "ok");
  EXPECT_EQ(ask("GET", "/readyz").status, 500);
  wrong.clear();
  EXPECT_EQ(net::BodyText(ask("GET", "/readyz?verbose").body),
            "[+]ping ok\n[+]informer-sync ok\nreadyz check passed\n");
  EXPECT_EQ(net::BodyText(ask("GET", "/livez?verbose").body), "[+]ping ok\nlivez check passed\n");
  EXPECT_EQ(ask("GET", "/").status, 404);
  EXPECT_EQ(ask("POST", "/metrics").status, 405);
  // HEAD has the answer's head alone.
  EXPECT_EQ(net::BodyText(ask("HEAD", "/healthz").body), "");
}

}  // namespace
}  // namespace swell::edge
