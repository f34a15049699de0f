// What passes between a browser and a program in a pod, and what does not.
#include "ui/programs/program_headers.h"

#include <gtest/gtest.h>

namespace swell::ui {
namespace {

const ProgramPlace kPlace{.authority = "board.vision", .prefix = "/p/abc"};

std::string ValueOf(const net::Headers& headers, std::string_view name) {
  const std::string* value = net::FindHeader(headers, name);
  return value != nullptr ? *value : "(none)";
}

TEST(ProgramHeadersTest, NothingOfThePagesReachesTheProgram) {
  net::HttpRequest request;
  request.method = "POST";
  request.path = "/p/abc/data/plugin/x";
  request.query = "run=a%20b";
  request.body = "body";
  for (const char* name :
       {"Cookie", "Authorization", "Origin", "Referer", "Host", "X-Swell-CSRF", "Impersonate-User",
        "X-Forwarded-For", "X-Remote-User", "Proxy-Authorization", "Forwarded"}) {
    request.headers.push_back({name, "secret"});
  }
  request.headers.push_back({"Accept-Encoding", "gzip"});
  request.headers.push_back({"Content-Type", "text/plain"});
  request.headers.push_back({"X-TensorBoard-Feature-Flags", "{}"});
  const net::HttpRequest to = ToProgram(request, kPlace);
  EXPECT_EQ(to.method, "POST");
  EXPECT_EQ(to.target, "/data/plugin/x?run=a%20b");
  EXPECT_EQ(to.body, "body");
  ASSERT_EQ(to.headers.size(), 3U);
  EXPECT_EQ(ValueOf(to.headers, "Accept-Encoding"), "gzip");
  EXPECT_EQ(ValueOf(to.headers, "Content-Type"), "text/plain");
  EXPECT_EQ(ValueOf(to.headers, "X-TensorBoard-Feature-Flags"), "{}");
}

TEST(ProgramHeadersTest, TheProgramsRootIsThePlaceItself) {
  net::HttpRequest request;
  request.method = "GET";
  request.path = "/p/abc/";
  EXPECT_EQ(ToProgram(request, kPlace).target, "/");
}

TEST(ProgramHeadersTest, WhatWouldStayInTheBrowserDoesNotComeBack) {
  const net::Headers out = FromProgram({{"Set-Cookie", "swell_session=forged"},
                                        {"Clear-Site-Data", "*"},
                                        {"Service-Worker-Allowed", "/"},
                                        {"Access-Control-Allow-Origin", "*"},
                                        {"Strict-Transport-Security", "max-age=1"},
                                        {"Content-Security-Policy", "default-src 'self'"},
                                        {"Content-Type", "text/html"},
                                        {"Content-Encoding", "gzip"}},
                                       kPlace);
  for (const char* name : {"Set-Cookie", "Clear-Site-Data", "Service-Worker-Allowed",
                           "Access-Control-Allow-Origin", "Strict-Transport-Security"}) {
    EXPECT_EQ(ValueOf(out, name), "(none)") << name;
  }
  EXPECT_EQ(ValueOf(out, "Content-Type"), "text/html");
  EXPECT_EQ(ValueOf(out, "Content-Encoding"), "gzip");
  EXPECT_EQ(ValueOf(out, "X-Content-Type-Options"), "nosniff");
  // Its own policy and ours: a browser keeps to both.
  EXPECT_EQ(ValueOf(out, "Content-Security-Policy"), "default-src 'self'");
  EXPECT_TRUE(net::HeaderHasToken(out, "Cross-Origin-Opener-Policy", "same-origin"));
}

TEST(ProgramHeadersTest, RedirectsStayBelowThePlace) {
  const auto redirected = [](const char* to) {
    return ValueOf(FromProgram({{"Location", to}}, kPlace), "Location");
  };
  EXPECT_EQ(redirected("/x?y=1"), "/p/abc/x?y=1");
  EXPECT_EQ(redirected("http://board.vision/x"), "/p/abc/x");
  EXPECT_EQ(redirected("x/"), "x/");
  EXPECT_EQ(redirected("https://example.com/"), "https://example.com/");
  EXPECT_EQ(redirected("//example.com/"), "//example.com/");
}

}  // namespace
}  // namespace swell::ui
