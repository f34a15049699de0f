#include "kube/net/http/http.h"

#include <gtest/gtest.h>

namespace swell::net {
namespace {

TEST(HttpTest, FindsHeadersInAnyCase) {
  Headers headers = {{"Content-Type", "application/json"}, {"X-A", "1"}, {"x-a", "2"}};
  ASSERT_NE(FindHeader(headers, "content-type"), nullptr);
  EXPECT_EQ(*FindHeader(headers, "CONTENT-TYPE"), "application/json");
  EXPECT_EQ(*FindHeader(headers, "x-A"), "1");
  EXPECT_EQ(FindHeader(headers, "x-b"), nullptr);
}

TEST(HttpTest, FindsTokensInLists) {
  Headers headers = {{"Connection", "keep-alive, Upgrade"}, {"Connection", "te"}};
  EXPECT_TRUE(HeaderHasToken(headers, "connection", "upgrade"));
  EXPECT_TRUE(HeaderHasToken(headers, "connection", "TE"));
  EXPECT_FALSE(HeaderHasToken(headers, "connection", "up"));
}

TEST(HttpTest, ParsesUrls) {
  Url url = ParseUrl("https://example.org").value();
  EXPECT_EQ(url.host, "example.org");
  EXPECT_EQ(url.port, 443);
  EXPECT_EQ(url.Authority(), "example.org");
  url = ParseUrl("http://[::1]:8080/k8s/clusters/c1/").value();
  EXPECT_EQ(url.host, "::1");
  EXPECT_EQ(url.port, 8080);
  EXPECT_EQ(url.path, "/k8s/clusters/c1");
  EXPECT_EQ(url.Authority(), "[::1]:8080");
  url = ParseUrl("unix:///run/swell.sock").value();
  EXPECT_EQ(url.host, "/run/swell.sock");
  for (const char* bad :
       {"", "example.org", "ftp://a", "http://", "http://a:0", "http://a:65536", "http://a:x",
        "http://[::1", "http://u@a", "http://a?q", "unix://run", "http://a b", "http://a\r\n"}) {
    EXPECT_FALSE(ParseUrl(bad).ok()) << bad;
  }
}

TEST(HttpTest, AnErrorAnswerIsAKubernetesStatus) {
  HttpResponse response =
      StatusResponse(Status(Code::kNotFound, "pods \"x\"\n\x01 not found \xff"));
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(*FindHeader(response.headers, "Content-Type"), "application/json");
  EXPECT_EQ(BodyText(response.body),
            "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
            "\"message\":\"pods \\\"x\\\"\\u000a\\u0001 not found ?\",\"reason\":\"NotFound\","
            "\"code\":404}\n");
}

}  // namespace
}  // namespace swell::net
