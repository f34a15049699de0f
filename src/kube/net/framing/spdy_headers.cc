// A block, uncompressed: the number of headers, then for each the length and text of its name
// (lower case) and of its value, whose parts are separated by NUL. Numbers are 32 bits, big-endian.
#include "kube/net/framing/spdy_headers.h"

#include <zlib.h>

#include <map>
#include <optional>

#include "base/check.h"
#include "base/strings.h"

namespace swell::net {
namespace {

constexpr size_t kBlockMax = 64 << 10;
constexpr uint32_t kHeadersMax = 256;

// The dictionary of SPDY/3's specification: words with their lengths in front, then plain text.
constexpr const char* kDictionaryWords[] = {"options",
                                            "head",
                                            "post",
                                            "put",
                                            "delete",
                                            "trace",
                                            "accept",
                                            "accept-charset",
                                            "accept-encoding",
                                            "accept-language",
                                            "accept-ranges",
                                            "age",
                                            "allow",
                                            "authorization",
                                            "cache-control",
                                            "connection",
                                            "content-base",
                                            "content-encoding",
                                            "content-language",
                                            "content-length",
                                            "content-location",
                                            "content-md5",
                                            "content-range",
                                            "content-type",
                                            "date",
                                            "etag",
                                            "expect",
                                            "expires",
                                            "from",
                                            "host",
                                            "if-match",
                                            "if-modified-since",
                                            "if-none-match",
                                            "if-range",
                                            "if-unmodified-since",
                                            "last-modified",
                                            "location",
                                            "max-forwards",
                                            "pragma",
                                            "proxy-authenticate",
                                            "proxy-authorization",
                                            "range",
                                            "referer",
                                            "retry-after",
                                            "server",
                                            "te",
                                            "trailer",
                                            "transfer-encoding",
                                            "upgrade",
                                            "user-agent",
                                            "vary",
                                            "via",
                                            "warning",
                                            "www-authenticate",
                                            "method",
                                            "get",
                                            "status",
                                            "200 OK",
                                            "version",
                                            "HTTP/1.1",
                                            "url",
                                            "public",
                                            "set-cookie",
                                            "keep-alive",
                                            "origin"};
constexpr std::string_view kDictionaryText =
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request"
    "401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented"
    "503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00"
    " Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,"
    "application/xml,application/xhtml+xml,text/plain,text/javascript,public"
    "privatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";

void PutNumber(std::string& out, size_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift);
}

void PutText(std::string& out, std::string_view text) {
  PutNumber(out, text.size());
  out += text;
}

std::string Dictionary() {
  std::string out;
  for (const char* word : kDictionaryWords) PutText(out, word);
  out += kDictionaryText;
  return out;
}

std::optional<uint32_t> TakeNumber(std::string_view& in) {
  if (in.size() < 4) return std::nullopt;
  uint32_t value = 0;
  for (char c : in.substr(0, 4)) value = value << 8 | static_cast<uint8_t>(c);
  in.remove_prefix(4);
  return value;
}

std::optional<std::string_view> TakeText(std::string_view& in) {
  const auto size = TakeNumber(in);
  if (!size || *size > in.size()) return std::nullopt;
  const std::string_view text = in.substr(0, *size);
  in.remove_prefix(*size);
  return text;
}

const Bytef* Bytes(std::string_view text) { return reinterpret_cast<const Bytef*>(text.data()); }

Status Breach(std::string_view what) {
  return Status(Code::kBadRequest, StrCat("SPDY: header block: ", what));
}

}  // namespace

struct SpdyHeaderCodec::Zlib {
  std::string dictionary = Dictionary();
  z_stream deflate{};
  z_stream inflate{};
};

SpdyHeaderCodec::SpdyHeaderCodec() : zlib_(std::make_unique<Zlib>()) {
  SWELL_CHECK(::deflateInit(&zlib_->deflate, Z_BEST_SPEED) == Z_OK);
  SWELL_CHECK(::inflateInit(&zlib_->inflate) == Z_OK);
  const auto size = static_cast<uInt>(zlib_->dictionary.size());
  SWELL_CHECK(::deflateSetDictionary(&zlib_->deflate, Bytes(zlib_->dictionary), size) == Z_OK);
}

SpdyHeaderCodec::~SpdyHeaderCodec() {
  ::deflateEnd(&zlib_->deflate);
  ::inflateEnd(&zlib_->inflate);
}

std::string SpdyHeaderCodec::Encode(const Headers& headers) {
  std::map<std::string, std::string> joined;
  for (const Header& header : headers) {
    auto [it, fresh] = joined.emplace(ToLower(header.name), header.value);
    if (!fresh) {
      it->second += '\0';
      it->second += header.value;
    }
  }
  std::string plain;
  PutNumber(plain, joined.size());
  for (const auto& [name, value] : joined) {
    PutText(plain, name);
    PutText(plain, value);
  }
  z_stream& z = zlib_->deflate;
  std::string out(::deflateBound(&z, plain.size()) + 64, '\0');
  z.next_in = const_cast<Bytef*>(Bytes(plain));
  z.avail_in = static_cast<uInt>(plain.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  SWELL_CHECK(::deflate(&z, Z_SYNC_FLUSH) == Z_OK && z.avail_in == 0 && z.avail_out > 0);
  out.resize(out.size() - z.avail_out);
  return out;
}

Result<std::string> SpdyHeaderCodec::Inflate(std::string_view block) {
  z_stream& z = zlib_->inflate;
  std::string out(kBlockMax, '\0');
  z.next_in = const_cast<Bytef*>(Bytes(block));
  z.avail_in = static_cast<uInt>(block.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  int code = ::inflate(&z, Z_SYNC_FLUSH);
  if (code == Z_NEED_DICT) {
    code = ::inflateSetDictionary(&z, Bytes(zlib_->dictionary),
                                  static_cast<uInt>(zlib_->dictionary.size()));
    if (code == Z_OK) code = ::inflate(&z, Z_SYNC_FLUSH);
  }
  if (z.avail_out == 0) return Breach(StrCat("longer than ", kBlockMax, " bytes"));
  // Z_BUF_ERROR: all was used up before; there was nothing to add.
  if ((code != Z_OK && code != Z_BUF_ERROR) || z.avail_in != 0) return Breach("cannot be inflated");
  out.resize(out.size() - z.avail_out);
  return out;
}

Result<Headers> SpdyHeaderCodec::Decode(std::string_view block) {
  SWELL_ASSIGN_OR_RETURN(const std::string plain, Inflate(block));
  std::string_view in = plain;
  const auto count = TakeNumber(in);
  if (!count) return Breach("too short");
  if (*count > kHeadersMax) return Breach(StrCat(*count, " headers"));
  Headers headers;
  for (uint32_t i = 0; i < *count; ++i) {
    const auto name = TakeText(in);
    const auto value = name ? TakeText(in) : std::nullopt;
    if (!value) return Breach("cut off");
    if (name->empty()) return Breach("a header without a name");
    size_t begin = 0;
    while (true) {
      const size_t end = value->find('\0', begin);
      headers.push_back({std::string(*name), std::string(value->substr(begin, end - begin))});
      if (end == std::string_view::npos) break;
      begin = end + 1;
    }
  }
  return headers;
}

}  // namespace swell::net
