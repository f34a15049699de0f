// The requests that the ports of the pages answer.
#include "ui/requests/request_checks.h"

#include <gtest/gtest.h>

namespace swell::ui {
namespace {

net::HttpRequest With(net::Headers headers) {
  net::HttpRequest request;
  request.method = "POST";
  request.headers = std::move(headers);
  return request;
}

TEST(RequestChecksTest, LoopbackPortsAnswerToLoopbackNames) {
  for (const char* host : {"127.0.0.1:80", "localhost:80", "localhost", "[::1]:80", "[::1]"}) {
    EXPECT_TRUE(CheckHost(With({{"Host", host}}), {}).ok()) << host;
  }
  for (const char* host : {"evil.example:80", "127.0.0.1.evil.example", "", "[::2]:80"}) {
    EXPECT_EQ(CheckHost(With({{"Host", host}}), {}).code(), Code::kForbidden) << host;
  }
  EXPECT_TRUE(CheckHost(With({{"Host", "pages.example"}}), {.loopback = false}).ok());
}

TEST(RequestChecksTest, WritesComeFromThePortItself) {
  const net::Header host{"Host", "localhost:81"};
  EXPECT_TRUE(CheckOrigin(With({host, {"Origin", "http://localhost:81"}}), {}).ok());
  EXPECT_FALSE(CheckOrigin(With({host, {"Origin", "http://localhost:80"}}), {}).ok());
  EXPECT_FALSE(CheckOrigin(With({host, {"Origin", "http://127.0.0.1:81"}}), {}).ok());
  EXPECT_FALSE(CheckOrigin(With({host, {"Origin", "null"}}), {}).ok());
  EXPECT_FALSE(CheckOrigin(With({host, {"Cookie", "a=b"}}), {}).ok());
  EXPECT_TRUE(CheckOrigin(With({host}), {}).ok());
  EXPECT_FALSE(CheckOrigin(With({host, {"Origin", "http://localhost:81"}}), {.secure = true}).ok());
}

TEST(RequestChecksTest, EveryCookieOfANameIsFound) {
  const auto found = CookiesOf(With({{"Cookie", "a=1; b=2;a=3"}, {"cookie", " a=4=5"}}), "a");
  EXPECT_EQ(found, (std::vector<std::string>{"1", "3", "4=5"}));
  EXPECT_TRUE(CookiesOf(With({{"Cookie", "ab=1; a"}}), "a").empty());
}

}  // namespace
}  // namespace swell::ui
