#include "net/http/http.h"

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

TEST(HttpTest, DecodesPercentEscapesStrictly) {
  EXPECT_EQ(PercentDecode("/a%2Fb%20c+d").value(), "/a/b c+d");
  EXPECT_EQ(PercentDecode("%41").value(), "A");
  for (const char* bad : {"%", "%4", "%4g", "a%", "%%41"}) {
    auto decoded = PercentDecode(bad);
    ASSERT_FALSE(decoded.ok()) << bad;
    EXPECT_EQ(decoded.status().code(), Code::kBadRequest);
  }
}

TEST(HttpTest, EncodingAndDecodingAreInverse) {
  std::string all;
  for (int c = 0; c < 256; ++c) all.push_back(static_cast<char>(c));
  EXPECT_EQ(PercentDecode(PercentEncode(all)).value(), all);
  EXPECT_EQ(PercentEncode("a b/c~d"), "a%20b%2Fc~d");
}

TEST(HttpTest, ParsesQueries) {
  std::vector<QueryParam> expected = {
      {"labelSelector", "a=b,c"}, {"watch", ""}, {"x", "1 2"}, {"x", "3"}};
  EXPECT_EQ(ParseQuery("labelSelector=a%3Db%2Cc&watch&x=1+2&&x=3").value(), expected);
  EXPECT_TRUE(ParseQuery("").value().empty());
  EXPECT_FALSE(ParseQuery("a=%zz").ok());
  std::string many;
  for (int i = 0; i < 1001; ++i) many += "a&";
  EXPECT_FALSE(ParseQuery(many).ok());
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
