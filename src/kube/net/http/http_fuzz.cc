// Fuzzes the HTTP parsers. However the input is cut into pieces, the requests and the refusal must
// be the same; and nothing may crash, loop or exceed the limits.
#include <cstdint>

#include "base/check.h"
#include "base/random.h"
#include "base/strings.h"
#include "kube/net/http/http1_codec.h"

namespace {

using swell::net::CodecLimits;
using swell::net::RequestParser;
using swell::net::ResponseParser;

constexpr CodecLimits kLimits = {.header_bytes = 2048, .header_count = 16, .body_bytes = 4096};

// A transcript of everything the parser said.
std::string Requests(std::string_view bytes, uint64_t seed) {
  swell::Random random(seed);
  RequestParser parser(kLimits);
  std::string out;
  std::string buffered;
  size_t fed = 0;
  while (true) {
    RequestParser::Step step = parser.Parse(buffered);
    SWELL_CHECK(step.consumed <= buffered.size());
    buffered.erase(0, step.consumed);
    if (step.result == RequestParser::Result::kError) {
      SWELL_CHECK(parser.error().http_status >= 400 && !parser.error().message.empty());
      // Not the code: of two mistakes, the one that came in first is named.
      return out + "error";
    }
    if (step.result == RequestParser::Result::kDone) {
      auto request = parser.Take();
      SWELL_CHECK(request.body.size() <= kLimits.body_bytes);
      SWELL_CHECK(request.headers.size() <= kLimits.header_count);
      out += swell::StrCat(request.method, " ", request.target, "\n", request.body, "\n");
      continue;
    }
    if (step.result != RequestParser::Result::kNeedMore) continue;
    if (fed == bytes.size()) return out;
    size_t piece = seed == 0 ? bytes.size() : 1 + random.Below(16);
    piece = std::min(piece, bytes.size() - fed);
    buffered += bytes.substr(fed, piece);
    fed += piece;
  }
}

void Responses(std::string_view bytes) {
  for (const char* method : {"GET", "HEAD"}) {
    ResponseParser parser(kLimits);
    parser.Start(method);
    std::string_view rest = bytes;
    while (true) {
      ResponseParser::Step step = parser.Parse(rest);
      SWELL_CHECK(step.consumed <= rest.size());
      rest.remove_prefix(step.consumed);
      if (step.result == ResponseParser::Result::kHead) continue;
      if (step.result != ResponseParser::Result::kData) break;
      SWELL_CHECK(step.consumed > 0);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::string whole = Requests(bytes, 0);
  for (uint64_t seed = 1; seed < 4; ++seed) SWELL_CHECK(Requests(bytes, seed) == whole);
  Responses(bytes);
  (void)swell::net::ParseUrl(bytes);
  return 0;
}
