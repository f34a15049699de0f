#include "kube/net/http/http1_codec.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/strings.h"

namespace swell::net {
namespace {

struct Parsed {
  std::vector<HttpRequest> requests;
  int error = 0;  // HTTP status of the refusal
  std::string message;
};

// Feeds `bytes` in pieces, the way a connection does: what is not consumed comes again.
Parsed ParseAll(std::string_view bytes, Random* random, CodecLimits limits = {}) {
  RequestParser parser(limits);
  Parsed out;
  std::string buffered;
  size_t fed = 0;
  while (true) {
    RequestParser::Step step = parser.Parse(buffered);
    buffered.erase(0, step.consumed);
    if (step.result == RequestParser::Result::kError) {
      out.error = parser.error().http_status;
      out.message = parser.error().message;
      return out;
    }
    if (step.result == RequestParser::Result::kDone) {
      out.requests.push_back(parser.Take());
      if (buffered.empty() && fed == bytes.size()) return out;
    } else if (step.result == RequestParser::Result::kNeedMore) {
      if (fed == bytes.size()) return out;
      size_t piece = random == nullptr ? bytes.size() - fed
                                       : std::min<size_t>(1 + random->Below(7), bytes.size() - fed);
      buffered += bytes.substr(fed, piece);
      fed += piece;
    }
  }
}

TEST(RequestParserTest, ReadsARequest) {
  Parsed parsed = ParseAll(
      "GET /api/v1/pods?watch=1&x HTTP/1.1\r\nHost: a:80\r\nAccept: \t application/json \r\n"
      "X-Empty:\r\nX-Utf8: \xc3\xa4\r\n\r\n",
      nullptr);
  ASSERT_EQ(parsed.requests.size(), 1u) << parsed.message;
  const HttpRequest& request = parsed.requests[0];
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.target, "/api/v1/pods?watch=1&x");
  EXPECT_EQ(request.path, "/api/v1/pods");
  EXPECT_EQ(request.query, "watch=1&x");
  EXPECT_EQ(*FindHeader(request.headers, "accept"), "application/json");
  EXPECT_EQ(*FindHeader(request.headers, "x-empty"), "");
  EXPECT_EQ(*FindHeader(request.headers, "x-utf8"), "\xc3\xa4");
}

TEST(RequestParserTest, ReadsOtherTargetForms) {
  Parsed parsed = ParseAll(
      "GET http://a/p?q HTTP/1.1\r\nHost: a\r\n\r\nOPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"
      "GET http://a HTTP/1.1\r\nHost: a\r\n\r\n",
      nullptr);
  ASSERT_EQ(parsed.requests.size(), 3u) << parsed.message;
  EXPECT_EQ(parsed.requests[0].path, "/p");
  EXPECT_EQ(parsed.requests[0].query, "q");
  EXPECT_EQ(parsed.requests[1].path, "*");
  EXPECT_EQ(parsed.requests[2].path, "/");
}

TEST(RequestParserTest, HoweverTheBytesAreCutTheRequestsAreTheSame) {
  std::string bytes =
      "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\nhello world"
      "POST /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
      "5;name=value\r\nhello\r\n00006\r\n world\r\n0\r\nTrailer: x\r\n\r\n"
      "DELETE /c HTTP/1.1\r\nHost: a\r\n\r\n";
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    Parsed parsed = ParseAll(bytes, &random);
    ASSERT_EQ(parsed.requests.size(), 3u) << "seed " << seed << ": " << parsed.message;
    EXPECT_EQ(parsed.requests[0].body, "hello world");
    EXPECT_EQ(parsed.requests[1].body, "hello world");
    EXPECT_EQ(parsed.requests[2].method, "DELETE");
    EXPECT_EQ(parsed.requests[2].body, "");
  }
}

struct BadCase {
  const char* name;
  std::string bytes;
  int status = 400;
};

std::vector<BadCase> BadCases() {
  const std::string get = "GET / HTTP/1.1\r\nHost: a\r\n";
  const std::string post = "POST / HTTP/1.1\r\nHost: a\r\n";
  const std::string chunked = post + "Transfer-Encoding: chunked\r\n\r\n";
  return {
      {"length and chunked", post + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"},
      {"chunked and length", post + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n"},
      {"two lengths", post + "Content-Length: 3\r\nContent-Length: 4\r\n\r\n"},
      {"two equal lengths", post + "Content-Length: 3\r\nContent-Length: 3\r\n\r\n"},
      {"list of lengths", post + "Content-Length: 3, 3\r\n\r\n"},
      {"signed length", post + "Content-Length: +3\r\n\r\n"},
      {"negative length", post + "Content-Length: -1\r\n\r\n"},
      {"hex length", post + "Content-Length: 0x3\r\n\r\n"},
      {"empty length", post + "Content-Length:\r\n\r\n"},
      {"length with blank", post + "Content-Length: 1 2\r\n\r\n"},
      {"overflowing length", post + "Content-Length: 99999999999999999999999\r\n\r\n"},
      {"unknown encoding", post + "Transfer-Encoding: gzip\r\n\r\n"},
      {"chunked not alone", post + "Transfer-Encoding: gzip, chunked\r\n\r\n"},
      {"chunked twice", post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"},
      {"identity", post + "Transfer-Encoding: identity\r\n\r\n"},
      {"almost chunked", post + "Transfer-Encoding: xchunked\r\n\r\n"},
      {"chunked behind vertical tab", post + "Transfer-Encoding: \vchunked\r\n\r\n"},
      {"blank before colon", post + "Transfer-Encoding : chunked\r\n\r\n"},
      {"folded header", get + "X: a\r\n b\r\n\r\n"},
      {"folded with tab", get + "X: a\r\n\tb\r\n\r\n"},
      {"blank before first header", "GET / HTTP/1.1\r\n Host: a\r\n\r\n"},
      {"bare LF after request line", "GET / HTTP/1.1\nHost: a\r\n\r\n"},
      {"bare LF after header", "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n"},
      {"bare LF at the end", "GET / HTTP/1.1\r\nHost: a\r\n\n"},
      {"bare CR in a value", get + "X: a\rb\r\n\r\n"},
      {"NUL in a value", get + std::string("X: a\0b\r\n\r\n", 10)},
      {"control in a value", get + "X: a\x01\r\n\r\n"},
      {"no colon", get + "Garbage\r\n\r\n"},
      {"empty name", get + ": a\r\n\r\n"},
      {"name with blank", get + "X Y: a\r\n\r\n"},
      {"name above ASCII", get + "X\xc3\xa4: a\r\n\r\n"},
      {"no host", "GET / HTTP/1.1\r\nX: a\r\n\r\n"},
      {"two hosts", get + "Host: b\r\n\r\n"},
      {"host with path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"},
      {"host with blank", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n"},
      {"two blanks", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"tab for blank", "GET\t/\tHTTP/1.1\r\nHost: a\r\n\r\n"},
      {"blank in target", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"control in target", "GET /a\x7f HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"fragment", "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"relative target", "GET a HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"authority target", "CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"no version", "GET /\r\n\r\n"},
      {"lower-case version", "GET / http/1.1\r\nHost: a\r\n\r\n"},
      {"long version", "GET / HTTP/1.10\r\nHost: a\r\n\r\n"},
      {"HTTP/2", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505},
      {"HTTP/1.2", "GET / HTTP/1.2\r\nHost: a\r\n\r\n", 505},
      {"preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {"method with colon", "GE:T / HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"leading empty line", "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"TLS on a plain port", std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n", 12)},
      {"chunked in HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"},
      {"expectation", get + "Expect: 200-ok\r\n\r\n", 417},
      {"empty chunk size", chunked + "\r\n"},
      {"chunk size with 0x", chunked + "0x5\r\nhello\r\n0\r\n\r\n"},
      {"negative chunk size", chunked + "-1\r\n"},
      {"blank before chunk size", chunked + " 5\r\nhello\r\n0\r\n\r\n"},
      {"blank after chunk size", chunked + "5 \r\nhello\r\n0\r\n\r\n"},
      {"overflowing chunk size", chunked + "ffffffffffffffffff\r\n"},
      {"chunk size ends in LF", chunked + "5\nhello\r\n0\r\n\r\n"},
      {"chunk size ends in CR CR", chunked + "5\r\rhello\r\n0\r\n\r\n"},
      {"chunk shorter than data", chunked + "3\r\nhello\r\n0\r\n\r\n"},
      {"chunk ends in LF", chunked + "5\r\nhello\n0\r\n\r\n"},
      {"LF in extension", chunked + "5;a\nb\r\nhello\r\n0\r\n\r\n"},
      {"long extension", chunked + "5;" + std::string(300, 'a') + "\r\nhello\r\n0\r\n\r\n"},
      {"folded trailer", chunked + "0\r\nX: a\r\n b\r\n\r\n"},
      {"trailer ends in LF", chunked + "0\r\nX: a\n\r\n"},
      {"endless trailer", chunked + "0\r\nX: " + std::string(70'000, 'a')},
      {"long head", get + "X: " + std::string(70'000, 'a'), 431},
      {"long head, complete", get + "X: " + std::string(70'000, 'a') + "\r\n\r\n", 431},
      {"long request line", "GET /" + std::string(70'000, 'a'), 431},
      {"big length", post + "Content-Length: 3145729\r\n\r\n", 413},
      {"big chunk", chunked + "300001\r\n" + std::string(0x300001, 'x'), 413},
  };
}

TEST(RequestParserTest, RefusesWhatTwoProgramsCouldReadDifferently) {
  for (const BadCase& bad : BadCases()) {
    Parsed whole = ParseAll(bad.bytes, nullptr);
    EXPECT_EQ(whole.error, bad.status) << bad.name << ": " << whole.message;
    EXPECT_TRUE(whole.requests.empty()) << bad.name;
    EXPECT_FALSE(whole.message.empty()) << bad.name;
    if (bad.bytes.size() > 1'000'000) continue;
    Random random(7);
    Parsed cut = ParseAll(bad.bytes, &random);
    EXPECT_EQ(cut.error, bad.status) << bad.name << ", in pieces: " << cut.message;
    EXPECT_TRUE(cut.requests.empty()) << bad.name << ", in pieces";
  }
}

TEST(RequestParserTest, RefusesTooManyHeaders) {
  std::string bytes = "GET / HTTP/1.1\r\nHost: a\r\n";
  for (int i = 0; i < 256; ++i) bytes += "X: a\r\n";
  EXPECT_EQ(ParseAll(bytes + "\r\n", nullptr).error, 400);
}

TEST(RequestParserTest, KnowsWhetherTheConnectionStays) {
  struct Case {
    const char* bytes;
    bool keep_alive;
  };
  for (const Case& c : {Case{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", true},
                        Case{"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", false},
                        Case{"GET / HTTP/1.1\r\nHost: a\r\nConnection: te, CLOSE\r\n\r\n", false},
                        Case{"GET / HTTP/1.0\r\n\r\n", false},
                        Case{"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true}}) {
    RequestParser parser({});
    EXPECT_EQ(parser.Parse(c.bytes).result, RequestParser::Result::kDone) << c.bytes;
    EXPECT_EQ(parser.keep_alive(), c.keep_alive) << c.bytes;
  }
}

// What a client would hand on: status, headers, body; whether it was complete.
struct Answer {
  int status = 0;
  std::string body;
  bool done = false;
  bool done_at_close = false;
  std::string error;
};

Answer ParseAnswer(std::string_view bytes, std::string_view method, Random* random) {
  ResponseParser parser({});
  parser.Start(method);
  Answer out;
  std::string buffered;
  size_t fed = 0;
  while (true) {
    ResponseParser::Step step = parser.Parse(buffered);
    if (step.result == ResponseParser::Result::kData) out.body += step.data;
    buffered.erase(0, step.consumed);
    if (step.result == ResponseParser::Result::kHead) out.status = parser.status();
    if (step.result == ResponseParser::Result::kError) out.error = parser.error();
    if (step.result == ResponseParser::Result::kDone) out.done = true;
    if (out.done || !out.error.empty()) return out;
    if (step.result != ResponseParser::Result::kNeedMore) continue;
    if (fed == bytes.size()) break;
    size_t piece = std::min<size_t>(1 + random->Below(9), bytes.size() - fed);
    buffered += bytes.substr(fed, piece);
    fed += piece;
  }
  out.done_at_close = parser.FinishAtClose();
  return out;
}

TEST(ResponseParserTest, ReadsEveryFraming) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    Answer a = ParseAnswer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "GET", &random);
    EXPECT_TRUE(a.done && a.body == "hello") << "seed " << seed << a.error;
    a = ParseAnswer(
        "HTTP/1.1 200\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", "GET",
        &random);
    EXPECT_TRUE(a.done && a.body == "hello") << "seed " << seed << a.error;
    a = ParseAnswer("HTTP/1.0 200 OK\r\n\r\nhello", "GET", &random);
    EXPECT_TRUE(!a.done && a.done_at_close && a.body == "hello") << "seed " << seed << a.error;
    a = ParseAnswer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "HEAD", &random);
    EXPECT_TRUE(a.done && a.body.empty()) << "seed " << seed << a.error;
    a = ParseAnswer("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "GET", &random);
    EXPECT_TRUE(a.done && a.status == 304) << "seed " << seed << a.error;
    a = ParseAnswer(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\n"
        "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n",
        "POST", &random);
    EXPECT_TRUE(a.done && a.status == 201) << "seed " << seed << a.error;
    a = ParseAnswer("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", "GET", &random);
    EXPECT_FALSE(a.done || a.done_at_close) << "a cut answer is not an answer";
  }
}

TEST(ResponseParserTest, RefusesMalformedAnswers) {
  Random random(1);
  for (const char* bad :
       {"HTTP/2 200 OK\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 999 X\r\n\r\n",
        "HTTP/1.1  200 OK\r\n\r\n", "SSH-2.0-OpenSSH\r\n\r\n", "HTTP/1.1 200 OK\nA: b\n\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"}) {
    EXPECT_FALSE(ParseAnswer(bad, "GET", &random).error.empty()) << bad;
  }
}

TEST(EncoderTest, HeadersCannotSmuggleLines) {
  std::string out;
  AppendResponseHead(&out, 302,
                     {{"Location", "/x\r\nSet-Cookie: a=b"},
                      {"Bad Name", "x"},
                      {"Content-Length", "99"},
                      {"transfer-encoding", "chunked"}},
                     Framing::kLength, 3, false, "");
  EXPECT_EQ(out,
            "HTTP/1.1 302 Found\r\nLocation: /x  Set-Cookie: a=b\r\nConnection: close\r\n"
            "Content-Length: 3\r\n\r\n");
  HttpRequest request;
  request.method = "GET";
  std::string text;
  EXPECT_FALSE(AppendRequest(&text, request, "/a b", "h", {}, false).ok());
  EXPECT_FALSE(AppendRequest(&text, request, "/a\r\nX: y", "h", {}, false).ok());
  EXPECT_FALSE(AppendRequest(&text, request, "/", "h", {{"X", "a\r\nY: b"}}, false).ok());
  request.method = "GET /";
  EXPECT_FALSE(AppendRequest(&text, request, "/", "h", {}, false).ok());
}

TEST(EncoderTest, WhatItWritesTheParserReads) {
  HttpRequest request;
  request.method = "POST";
  request.headers = {{"Content-Type", "text/plain"}, {"X", "mine"}};
  request.body = "hello";
  std::string text;
  ASSERT_TRUE(
      AppendRequest(&text, request, "/p?q", "host:1", {{"x", "theirs"}, {"Y", "z"}}, false).ok());
  Parsed parsed = ParseAll(text, nullptr);
  ASSERT_EQ(parsed.requests.size(), 1u) << parsed.message;
  EXPECT_EQ(parsed.requests[0].body, "hello");
  EXPECT_EQ(*FindHeader(parsed.requests[0].headers, "X"), "mine");
  EXPECT_EQ(*FindHeader(parsed.requests[0].headers, "Y"), "z");
  EXPECT_EQ(*FindHeader(parsed.requests[0].headers, "Host"), "host:1");
}

TEST(EncoderTest, FormatsDates) {
  EXPECT_EQ(HttpDate(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(HttpDate(0), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(HttpDate(-1), "Wed, 31 Dec 1969 23:59:59 GMT");
  EXPECT_EQ(HttpDate(1767225600), "Thu, 01 Jan 2026 00:00:00 GMT");
}

TEST(EncoderTest, WritesChunkHeaders) {
  std::string out;
  AppendChunkHeader(&out, 0x1a2b);
  AppendChunkHeader(&out, 1);
  EXPECT_EQ(out, "1a2b\r\n1\r\n");
}

}  // namespace
}  // namespace swell::net
