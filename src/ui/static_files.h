// StaticFiles: the built pages (web/dist), as tools/embed_pages.py laid them into the program:
// gzip'd, with a hash as their entity tag. A client that refuses gzip gets them unpacked.
// - Threads: pure functions over constant data.
#pragma once

#include <string_view>
#include <vector>

#include "kube/net/http/http.h"

namespace swell::ui {

struct StaticFile {
  std::string_view path;  // "/index.html", "/assets/app-1A2B3C4D.js"
  std::string_view type;  // its Content-Type
  std::string_view etag;  // with its quotes
  std::string_view gzip;  // what is sent, mostly
};
using StaticFiles = std::vector<StaticFile>;

// Those of this program; empty where web/dist was empty when it was built.
const StaticFiles& EmbeddedPages();

// A file, index.html for every path that looks like a page's, or an error.
net::HttpResponse ServeFile(const StaticFiles& files, const net::HttpRequest& request);

// What every answer of the pages' server says to browsers.
void AddSafetyHeaders(net::Headers& headers);

}  // namespace swell::ui
