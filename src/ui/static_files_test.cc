// The pages' files: packed for clients that take gzip, unpacked for those that refuse it.
#include "ui/static_files.h"

#include <zlib.h>

#include <string>

#include <gtest/gtest.h>

namespace swell::ui {
namespace {

std::string Gzip(const std::string& plain) {
  z_stream z{};
  EXPECT_EQ(::deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(::deflateBound(&z, plain.size()) + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  z.avail_in = static_cast<uInt>(plain.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(::deflate(&z, Z_FINISH), Z_STREAM_END);
  out.resize(z.total_out);
  ::deflateEnd(&z);
  return out;
}

class StaticFilesTest : public ::testing::Test {
 protected:
  net::HttpResponse Get(const std::string& path, net::Headers headers = {}) {
    net::HttpRequest request;
    request.method = "GET";
    request.path = path;
    request.headers = std::move(headers);
    return ServeFile(files_, request);
  }
  net::HttpResponse Accepting(const std::string& codings) {
    return Get("/assets/app-0123456789.js", {{"Accept-Encoding", codings}});
  }
  static std::string Body(const net::HttpResponse& response) {
    std::string text;
    for (const auto& chunk : response.body) text += *chunk;
    return text;
  }
  static std::string Header(const net::HttpResponse& response, const std::string& name) {
    const std::string* value = net::FindHeader(response.headers, name);
    return value == nullptr ? "" : *value;
  }

  // Compresses well, so that unpacking needs more room than it guesses at first.
  const std::string script_ = std::string(300'000, 'x') + "end";
  const std::string packed_ = Gzip(script_);
  const StaticFiles files_ = {{"/assets/app-0123456789.js", "text/javascript", "\"tag\"", packed_},
                              {"/index.html", "text/html", "\"page\"", packed_}};
};

TEST_F(StaticFilesTest, AClientThatTakesGzipGetsItPacked) {
  for (const char* codings : {"gzip", "br, GZIP;q=0.5", "*", "identity;q=0.1, gzip;q=1.0"}) {
    const net::HttpResponse response = Accepting(codings);
    EXPECT_EQ(response.status, 200) << codings;
    EXPECT_EQ(Header(response, "Content-Encoding"), "gzip") << codings;
    EXPECT_EQ(Body(response), packed_) << codings;
  }
  EXPECT_EQ(Header(Get("/"), "Content-Encoding"), "gzip") << "nothing was said";
}

TEST_F(StaticFilesTest, AClientThatRefusesGzipGetsItUnpacked) {
  for (const char* codings :
       {"", "identity", "br", "gzip;q=0", "gzip; q=0.0, deflate", "*;q=0, identity"}) {
    const net::HttpResponse response = Accepting(codings);
    EXPECT_EQ(response.status, 200) << codings;
    EXPECT_EQ(Header(response, "Content-Encoding"), "") << codings;
    EXPECT_EQ(Header(response, "Vary"), "Accept-Encoding") << codings;
    EXPECT_EQ(Body(response), script_) << codings;
  }
}

TEST_F(StaticFilesTest, EachFormHasItsOwnTag) {
  const std::string packed = Header(Accepting("gzip"), "ETag");
  const std::string plain = Header(Accepting("identity"), "ETag");
  EXPECT_NE(packed, plain);
  const auto again = [this](const std::string& codings, const std::string& tag) {
    return Get("/", {{"Accept-Encoding", codings}, {"If-None-Match", tag}}).status;
  };
  EXPECT_EQ(again("gzip", Header(Get("/"), "ETag")), 304);
  EXPECT_EQ(again("identity", Header(Get("/"), "ETag")), 200);
}

TEST_F(StaticFilesTest, AClientThatRefusesBothIsRefused) {
  const net::HttpResponse response = Accepting("br, *;q=0");
  EXPECT_EQ(response.status, 406);
  EXPECT_NE(Body(response).find("neither gzip nor identity"), std::string::npos);
}

TEST_F(StaticFilesTest, AFileThatIsDamagedIsSaidToBe) {
  const std::string cut = packed_.substr(0, packed_.size() / 2);
  const StaticFiles broken = {{"/index.html", "text/html", "\"page\"", cut}};
  net::HttpRequest request;
  request.method = "GET";
  request.path = "/";
  request.headers = {{"Accept-Encoding", "identity"}};
  EXPECT_EQ(ServeFile(broken, request).status, 500);
}

}  // namespace
}  // namespace swell::ui
