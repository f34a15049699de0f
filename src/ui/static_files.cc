#include "ui/static_files.h"

#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>

#include "base/strings.h"

namespace swell::ui {
namespace {

// Scripts and styles come from this server alone, and no other page may frame these.
constexpr std::string_view kPolicy =
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'";

const StaticFile* Find(const StaticFiles& files, std::string_view path) {
  for (const StaticFile& file : files) {
    if (file.path == path) return &file;
  }
  return nullptr;
}

net::HttpResponse Text(int status, std::string text) {
  net::HttpResponse response;
  response.status = status;
  response.headers.push_back({"Content-Type", "text/plain; charset=utf-8"});
  response.body.push_back(net::MakeChunk(std::move(text)));
  return response;
}

// The builder puts a hash into the names of what index.html refers to.
bool IsHashed(std::string_view path) {
  const size_t dot = path.find('.');
  const size_t dash = path.rfind('-', dot);
  return path.starts_with("/assets/") && dot != std::string_view::npos &&
         dash != std::string_view::npos && dot - dash > 8;
}

// "gzip;q=0.5, identity" → whether `coding` may be used. A coding that is not named follows "*".
bool Accepts(std::string_view list, std::string_view coding, bool unnamed) {
  std::optional<bool> star;
  for (std::string_view one : Split(list, ',')) {
    const size_t semicolon = one.find(';');
    const std::string name = ToLower(Trim(one.substr(0, semicolon)));
    std::string_view weight;
    if (semicolon != std::string_view::npos) weight = Trim(one.substr(semicolon + 1));
    const bool wanted = !(weight.starts_with("q=") &&
                          std::strtod(std::string(weight.substr(2)).c_str(), nullptr) <= 0);
    if (name == coding) return wanted;
    if (name == "*") star = wanted;
  }
  return star.value_or(unnamed);
}

// A file is at most as large as the builder makes it; the bound keeps a broken one from growing.
std::optional<std::string> Unpacked(std::string_view gzip) {
  constexpr size_t kPlainMost = 8 << 20;
  constexpr int kGzipOnly = 16 + MAX_WBITS;
  z_stream z{};
  if (::inflateInit2(&z, kGzipOnly) != Z_OK) return std::nullopt;
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(gzip.data()));
  z.avail_in = static_cast<uInt>(gzip.size());
  std::string plain(std::min(kPlainMost, gzip.size() * 4 + 1024), '\0');
  int code = Z_OK;
  for (;;) {
    z.next_out = reinterpret_cast<Bytef*>(plain.data()) + z.total_out;
    z.avail_out = static_cast<uInt>(plain.size() - z.total_out);
    code = ::inflate(&z, Z_NO_FLUSH);
    if (code != Z_OK || z.avail_out > 0 || plain.size() >= kPlainMost) break;
    plain.resize(std::min(kPlainMost, plain.size() * 2));
  }
  plain.resize(z.total_out);
  ::inflateEnd(&z);
  return code == Z_STREAM_END ? std::optional(std::move(plain)) : std::nullopt;
}

// The same file in another coding is another representation.
std::string PlainTag(std::string_view etag) {
  return StrCat(etag.substr(0, etag.size() - 1), "-plain\"");
}

}  // namespace

void AddSafetyHeaders(net::Headers& headers) {
  headers.push_back({"Content-Security-Policy", std::string(kPolicy)});
  headers.push_back({"X-Content-Type-Options", "nosniff"});
  headers.push_back({"X-Frame-Options", "DENY"});
  headers.push_back({"Referrer-Policy", "no-referrer"});
  headers.push_back({"Cross-Origin-Opener-Policy", "same-origin"});
  headers.push_back({"Cross-Origin-Resource-Policy", "same-origin"});
}

net::HttpResponse ServeFile(const StaticFiles& files, const net::HttpRequest& request) {
  if (request.method != "GET" && request.method != "HEAD") {
    net::HttpResponse refused = Text(405, StrCat(request.method, " is not GET\n"));
    refused.headers.push_back({"Allow", "GET, HEAD"});
    return refused;
  }
  if (files.empty()) {
    return Text(503, "This build of swell has no pages: web/dist was empty when it was built.\n");
  }
  const size_t last = request.path.rfind('/');
  const bool page = request.path.find('.', last) == std::string::npos;
  const StaticFile* file = Find(files, page ? "/index.html" : std::string_view(request.path));
  if (file == nullptr) return Text(404, StrCat("there is no file ", request.path, "\n"));
  // A client that does not say takes anything.
  const std::string* accepts = net::FindHeader(request.headers, "Accept-Encoding");
  const bool packed = accepts == nullptr || Accepts(*accepts, "gzip", false);
  if (!packed && !Accepts(*accepts, "identity", true)) {
    return Text(406, StrCat("Accept-Encoding ", Quote(*accepts),
                            " allows neither gzip nor identity, in which the pages are sent\n"));
  }
  const std::string etag = packed ? std::string(file->etag) : PlainTag(file->etag);
  net::HttpResponse response;
  response.headers = {
      {"ETag", etag},
      {"Vary", "Accept-Encoding"},
      {"Cache-Control", IsHashed(file->path) ? "public, max-age=31536000, immutable" : "no-cache"}};
  const std::string* known = net::FindHeader(request.headers, "If-None-Match");
  if (known != nullptr && known->find(etag) != std::string::npos) {
    response.status = 304;
    return response;
  }
  response.headers.push_back({"Content-Type", std::string(file->type)});
  if (packed) {
    response.headers.push_back({"Content-Encoding", "gzip"});
    response.body.push_back(net::MakeChunk(std::string(file->gzip)));
    return response;
  }
  std::optional<std::string> plain = Unpacked(file->gzip);
  if (!plain) return Text(500, StrCat("the file ", request.path, " of this build is damaged\n"));
  response.body.push_back(net::MakeChunk(std::move(*plain)));
  return response;
}

}  // namespace swell::ui
