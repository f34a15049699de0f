#include "ui/static_files.h"

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
  if (accepts != nullptr && accepts->find("gzip") == std::string::npos &&
      accepts->find('*') == std::string::npos) {
    return Text(406, "the pages are sent with Content-Encoding: gzip only\n");
  }
  net::HttpResponse response;
  response.headers = {
      {"ETag", std::string(file->etag)},
      {"Vary", "Accept-Encoding"},
      {"Cache-Control", IsHashed(file->path) ? "public, max-age=31536000, immutable" : "no-cache"}};
  const std::string* known = net::FindHeader(request.headers, "If-None-Match");
  if (known != nullptr && known->find(file->etag) != std::string::npos) {
    response.status = 304;
    return response;
  }
  response.headers.push_back({"Content-Type", std::string(file->type)});
  response.headers.push_back({"Content-Encoding", "gzip"});
  response.body.push_back(net::MakeChunk(std::string(file->gzip)));
  return response;
}

}  // namespace swell::ui
