#include "ui/programs/program_headers.h"

#include <utility>

#include "base/strings.h"

namespace swell::ui {
namespace {

constexpr std::string_view kRequestHeaders[] = {"Accept",
                                                "Accept-Encoding",
                                                "Accept-Language",
                                                "Cache-Control",
                                                "Content-Type",
                                                "If-Modified-Since",
                                                "If-None-Match",
                                                "If-Range",
                                                "Pragma",
                                                "Range",
                                                "User-Agent",
                                                "X-Requested-With",
                                                "If-Unmodified-Since"};
// TensorBoard's pages send their feature flags so.
constexpr std::string_view kTensorboardHeaders = "x-tensorboard-";

// Not among them: Set-Cookie, which other ports of this host would get, and what would open the
// program to other origins or leave something of it behind in the browser.
constexpr std::string_view kAnswerHeaders[] = {"Accept-Ranges",
                                               "Cache-Control",
                                               "Content-Disposition",
                                               "Content-Encoding",
                                               "Content-Language",
                                               "Content-Range",
                                               "Content-Security-Policy",
                                               "Content-Type",
                                               "ETag",
                                               "Expires",
                                               "Last-Modified",
                                               "Location",
                                               "Retry-After",
                                               "Vary"};

template <size_t N>
bool IsIn(const std::string_view (&list)[N], std::string_view name) {
  for (std::string_view one : list) {
    if (net::EqualsIgnoreCase(one, name)) return true;
  }
  return false;
}

// "http://AUTHORITY/x" and "/x" → "PREFIX/x"; what leads elsewhere stays as it is.
std::string BelowPrefix(std::string_view location, const ProgramPlace& place) {
  for (std::string_view scheme : {"http:", "https:"}) {
    const std::string own = StrCat(scheme, "//", place.authority, "/");
    if (location.starts_with(own)) location.remove_prefix(own.size() - 1);
  }
  if (!location.starts_with('/') || location.starts_with("//")) return std::string(location);
  return StrCat(place.prefix, location);
}

}  // namespace

net::HttpRequest ToProgram(net::HttpRequest& request, const ProgramPlace& place) {
  net::HttpRequest to;
  to.method = request.method;
  to.path = request.path.substr(place.prefix.size());
  if (to.path.empty()) to.path = "/";
  to.query = request.query;
  to.target = to.query.empty() ? to.path : StrCat(to.path, "?", to.query);
  for (const net::Header& header : request.headers) {
    if (IsIn(kRequestHeaders, header.name) ||
        ToLower(header.name).starts_with(kTensorboardHeaders)) {
      to.headers.push_back(header);
    }
  }
  to.body = std::move(request.body);
  return to;
}

net::Headers FromProgram(const net::Headers& headers, const ProgramPlace& place) {
  net::Headers out;
  for (const net::Header& header : headers) {
    if (!IsIn(kAnswerHeaders, header.name)) continue;
    const bool redirect = net::EqualsIgnoreCase(header.name, "Location");
    out.push_back({header.name, redirect ? BelowPrefix(header.value, place) : header.value});
  }
  AddProgramHeaders(out);
  return out;
}

void AddProgramHeaders(net::Headers& headers) {
  headers.push_back(
      {"Content-Security-Policy", "frame-ancestors 'self'; form-action 'self'; base-uri 'self'"});
  headers.push_back({"X-Content-Type-Options", "nosniff"});
  headers.push_back({"Referrer-Policy", "no-referrer"});
  headers.push_back({"Cross-Origin-Opener-Policy", "same-origin"});
  headers.push_back({"Cross-Origin-Resource-Policy", "same-origin"});
}

net::HttpResponse ProgramText(int status, std::string_view text) {
  net::HttpResponse response;
  response.status = status;
  response.headers = {{"Content-Type", "text/plain; charset=utf-8"}, {"Cache-Control", "no-store"}};
  AddProgramHeaders(response.headers);
  response.body.push_back(net::MakeChunk(StrCat(text, "\n")));
  return response;
}

}  // namespace swell::ui
