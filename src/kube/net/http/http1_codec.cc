#include "kube/net/http/http1_codec.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "base/strings.h"

namespace swell::net {
namespace {

constexpr size_t kMaxMethodBytes = 32;
constexpr size_t kMaxExtensionBytes = 256;
constexpr int kMaxSizeDigits = 15;  // so that adding sizes cannot overflow

// What may stand in a header's value: visible characters, blanks, tabs and bytes above ASCII.
bool IsValueChar(char c) {
  auto byte = static_cast<unsigned char>(c);
  return (byte >= 0x20 && byte != 0x7f) || c == '\t';
}

std::string_view TrimBlanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// The length of a head including its empty line, 0 while that is missing. `scanned` remembers
// where to continue, so that a head that trickles in is searched once.
size_t FindHeadEnd(std::string_view in, size_t* scanned) {
  size_t from = *scanned > 3 ? *scanned - 3 : 0;
  size_t at = in.find("\r\n\r\n", from);
  *scanned = in.size();
  return at == in.npos ? 0 : at + 4;
}

// True when a head that is still incomplete already holds a line that no more bytes can mend, so
// that garbage is answered at once and not at the header timeout.
bool HasBareLineFeed(std::string_view in, size_t from) {
  for (size_t at = in.find('\n', from); at != in.npos; at = in.find('\n', at + 1)) {
    if (at == 0 || in[at - 1] != '\r') return true;
  }
  return false;
}

// Splits the next CRLF line off `head`. False when the line ends in a bare LF or holds a bare CR.
bool NextLine(std::string_view* head, std::string_view* line) {
  size_t at = head->find('\n');
  if (at == head->npos || at == 0 || (*head)[at - 1] != '\r') return false;
  *line = head->substr(0, at - 1);
  head->remove_prefix(at + 1);
  return line->find('\r') == line->npos;
}

// Parses header lines up to and including the empty one. The error's text, or "".
std::string ParseHeaders(std::string_view head, size_t max_count, Headers* out) {
  std::string_view line;
  while (true) {
    if (!NextLine(&head, &line)) return "header line does not end in CRLF";
    if (line.empty()) return "";
    if (line[0] == ' ' || line[0] == '\t') return "folded header lines are not accepted";
    if (out->size() == max_count) return StrCat("more than ", max_count, " header lines");
    size_t colon = line.find(':');
    if (colon == line.npos)
      return StrCat("header line ", Quote(line.substr(0, 64)), " has no colon");
    std::string_view name = line.substr(0, colon);
    if (!IsToken(name)) return StrCat("header name ", Quote(name.substr(0, 64)), " is not a token");
    std::string_view value = TrimBlanks(line.substr(colon + 1));
    if (!std::all_of(value.begin(), value.end(), IsValueChar)) {
      return StrCat("header ", name, " has a control character in its value");
    }
    out->push_back({std::string(name), std::string(value)});
  }
}

struct FramingHeaders {
  bool chunked = false;
  bool has_length = false;
  uint64_t length = 0;
};

// Reads Content-Length and Transfer-Encoding. The error's text, or "".
std::string ReadFraming(const Headers& headers, FramingHeaders* out) {
  int encodings = 0;
  for (const Header& header : headers) {
    if (EqualsIgnoreCase(header.name, "Content-Length")) {
      if (out->has_length) return "more than one Content-Length";
      const std::string& text = header.value;
      bool digits =
          !text.empty() && text.size() <= 18 &&
          std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
      if (!digits) return StrCat("Content-Length ", Quote(text.substr(0, 64)), " is not a number");
      out->length = ParseUint(text).value_or(0);
      out->has_length = true;
    } else if (EqualsIgnoreCase(header.name, "Transfer-Encoding")) {
      ++encodings;
      if (encodings > 1 || !EqualsIgnoreCase(header.value, "chunked")) {
        return StrCat("Transfer-Encoding ", Quote(header.value.substr(0, 64)),
                      " is not supported, only one \"chunked\"");
      }
      out->chunked = true;
    }
  }
  if (out->chunked && out->has_length) return "both Content-Length and Transfer-Encoding";
  return "";
}

bool IsHostChar(char c) {
  auto byte = static_cast<unsigned char>(c);
  return byte > 0x20 && byte < 0x7f && std::strchr("/?#@\\\"<>^`{|}", c) == nullptr;
}

bool IsOurs(std::string_view name) {
  switch (name.size()) {
    case 4:
      return EqualsIgnoreCase(name, "Date");
    case 10:
      return EqualsIgnoreCase(name, "Connection");
    case 14:
      return EqualsIgnoreCase(name, "Content-Length");
    case 17:
      return EqualsIgnoreCase(name, "Transfer-Encoding");
    default:
      return false;
  }
}

void AppendHeader(std::string* out, std::string_view name, std::string_view value) {
  out->append(name);
  out->append(": ");
  size_t start = out->size();
  out->append(value);
  // A handler may echo what a client sent; it must not be able to write header lines.
  for (size_t i = start; i < out->size(); ++i) {
    if (!IsValueChar((*out)[i])) (*out)[i] = ' ';
  }
  out->append("\r\n");
}

void AppendNumber(std::string* out, uint64_t number) {
  char digits[20];
  char* at = digits + sizeof(digits);
  do {
    *--at = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number != 0);
  out->append(at, digits + sizeof(digits) - at);
}

}  // namespace

void BodyDecoder::StartChunked(size_t trailer_limit) {
  Start(State::kSizeFirst, 0);
  digits_ = 0;
  extension_bytes_ = 0;
  trailer_bytes_ = 0;
  trailer_limit_ = trailer_limit;
}

void BodyDecoder::Fail(std::string_view why) {
  state_ = State::kError;
  error_ = why;
}

BodyDecoder::Step BodyDecoder::Next(std::string_view in) {
  size_t used = 0;
  while (true) {
    switch (state_) {
      case State::kDone:
        return {Result::kDone, used, {}};
      case State::kError:
        return {Result::kError, used, {}};
      case State::kUntilClose:
        if (in.empty()) return {Result::kNeedMore, 0, {}};
        return {Result::kData, in.size(), in};
      case State::kLength:
      case State::kChunk: {
        if (used == in.size()) return {Result::kNeedMore, used, {}};
        size_t take = std::min<uint64_t>(remaining_, in.size() - used);
        remaining_ -= take;
        if (remaining_ == 0) state_ = state_ == State::kLength ? State::kDone : State::kChunkCr;
        return {Result::kData, used + take, in.substr(used, take)};
      }
      default:
        if (used == in.size()) return {Result::kNeedMore, used, {}};
        Eat(in[used++]);
    }
  }
}

void BodyDecoder::Eat(char c) {
  switch (state_) {
    case State::kSizeFirst:
    case State::kSize: {
      int value = HexDigit(c);
      if (value >= 0) {
        if (++digits_ > kMaxSizeDigits) return Fail("chunk size has too many digits");
        remaining_ = remaining_ * 16 + static_cast<uint64_t>(value);
        state_ = State::kSize;
      } else if (state_ == State::kSize && c == ';') {
        state_ = State::kExtension;
      } else if (state_ == State::kSize && c == '\r') {
        state_ = State::kSizeLf;
      } else {
        Fail("chunk size is not a hexadecimal number");
      }
      return;
    }
    case State::kExtension:
      if (c == '\r') {
        state_ = State::kSizeLf;
      } else if (!IsValueChar(c) || ++extension_bytes_ > kMaxExtensionBytes) {
        Fail("chunk extension is too long or has a control character");
      }
      return;
    case State::kSizeLf:
      if (c != '\n') return Fail("chunk size line does not end in CRLF");
      state_ = remaining_ == 0 ? State::kTrailerStart : State::kChunk;
      return;
    case State::kChunkCr:
      if (c != '\r') return Fail("chunk is longer than its size");
      state_ = State::kChunkLf;
      return;
    case State::kChunkLf:
      if (c != '\n') return Fail("chunk does not end in CRLF");
      state_ = State::kSizeFirst;
      digits_ = 0;
      remaining_ = 0;
      return;
    default:
      EatTrailer(c);
  }
}

void BodyDecoder::EatTrailer(char c) {
  if (++trailer_bytes_ > trailer_limit_) return Fail("trailers are too long");
  switch (state_) {
    case State::kTrailerStart:
      if (c == '\r') {
        state_ = State::kEndLf;
        return;
      }
      [[fallthrough]];
    case State::kTrailerName:
      if (c == ':' && state_ == State::kTrailerName) {
        state_ = State::kTrailerValue;
      } else if (IsToken(std::string_view(&c, 1))) {
        state_ = State::kTrailerName;
      } else {
        Fail("trailer name is not a token");
      }
      return;
    case State::kTrailerValue:
      if (c == '\r') {
        state_ = State::kTrailerLf;
      } else if (!IsValueChar(c)) {
        Fail("trailer has a control character in its value");
      }
      return;
    case State::kTrailerLf:
      if (c != '\n') return Fail("trailer line does not end in CRLF");
      state_ = State::kTrailerStart;
      return;
    case State::kEndLf:
      if (c != '\n') return Fail("last trailer line does not end in CRLF");
      state_ = State::kDone;
      return;
    default:
      Fail("impossible state");
  }
}

bool RequestParser::Fail(int http_status, std::string message) {
  error_ = {http_status, std::move(message)};
  return false;
}

RequestParser::Step RequestParser::Parse(std::string_view in) {
  return in_body_ ? ParseBody(in) : ParseHead(in);
}

RequestParser::Step RequestParser::ParseHead(std::string_view in) {
  size_t from = scanned_;
  size_t length = FindHeadEnd(in.substr(0, limits_.header_bytes), &scanned_);
  if (length == 0) {
    if (HasBareLineFeed(in.substr(0, limits_.header_bytes), from)) {
      Fail(400, "line does not end in CRLF");
      return {Result::kError, 0};
    }
    if (in.size() < limits_.header_bytes) return {Result::kNeedMore, 0};
    Fail(431, StrCat("request head is larger than ", limits_.header_bytes, " bytes"));
    return {Result::kError, 0};
  }
  std::string_view head = in.substr(0, length);
  std::string_view line;
  if (!NextLine(&head, &line)) {
    Fail(400, "request line does not end in CRLF");
    return {Result::kError, 0};
  }
  request_ = {};
  if (!ParseRequestLine(line)) return {Result::kError, 0};
  std::string problem = ParseHeaders(head, limits_.header_count, &request_.headers);
  if (!problem.empty()) {
    Fail(400, std::move(problem));
    return {Result::kError, 0};
  }
  if (!CheckHeaders() || !CheckFraming()) return {Result::kError, 0};
  in_body_ = true;
  // Most requests have no body; they save the caller a turn.
  Step rest = {Result::kHead, length};
  BodyDecoder empty = body_;
  if (empty.Next({}).result == BodyDecoder::Result::kDone) rest.result = Result::kDone;
  return rest;
}

bool RequestParser::ParseRequestLine(std::string_view line) {
  size_t first = line.find(' ');
  size_t last = line.rfind(' ');
  if (first == line.npos || first == last) return Fail(400, "request line has not three parts");
  std::string_view method = line.substr(0, first);
  std::string_view target = line.substr(first + 1, last - first - 1);
  std::string_view version = line.substr(last + 1);
  if (!IsToken(method) || method.size() > kMaxMethodBytes)
    return Fail(400, "method is not a token");
  bool known_form = version.size() == 8 && version.substr(0, 5) == "HTTP/" && version[6] == '.' &&
                    version[5] >= '0' && version[5] <= '9' && version[7] >= '0' &&
                    version[7] <= '9';
  if (!known_form) return Fail(400, "HTTP version is malformed");
  if (version[5] != '1' || version[7] > '1') {
    return Fail(505, StrCat("protocol ", version, " is not supported, only HTTP/1.1"));
  }
  http10_ = version[7] == '0';
  request_.method = std::string(method);
  return ParseTarget(target);
}

bool RequestParser::ParseTarget(std::string_view target) {
  for (char c : target) {
    auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte >= 0x7f || c == '#') {
      return Fail(400, "request target has a character that must be percent-encoded");
    }
  }
  request_.target = std::string(target);
  std::string_view rest = target;
  if (EqualsIgnoreCase(rest.substr(0, 7), "http://") ||
      EqualsIgnoreCase(rest.substr(0, 8), "https://")) {
    size_t slash = rest.find('/', 8);
    rest = slash == rest.npos ? std::string_view("/") : rest.substr(slash);
  } else if (rest == "*" && request_.method == "OPTIONS") {
    request_.path = "*";
    return true;
  }
  if (rest.empty() || rest[0] != '/') return Fail(400, "request target does not begin with '/'");
  size_t question = rest.find('?');
  request_.path = std::string(rest.substr(0, question));
  if (question != rest.npos) request_.query = std::string(rest.substr(question + 1));
  return true;
}

bool RequestParser::CheckHeaders() {
  int hosts = 0;
  bool close = false;
  bool keep = false;
  expects_continue_ = false;
  for (const Header& header : request_.headers) {
    if (EqualsIgnoreCase(header.name, "Host")) {
      ++hosts;
      if (!std::all_of(header.value.begin(), header.value.end(), IsHostChar)) {
        return Fail(400, "Host header is malformed");
      }
    } else if (EqualsIgnoreCase(header.name, "Connection")) {
      for (std::string_view token : Split(header.value, ',')) {
        close = close || EqualsIgnoreCase(TrimBlanks(token), "close");
        keep = keep || EqualsIgnoreCase(TrimBlanks(token), "keep-alive");
      }
    } else if (EqualsIgnoreCase(header.name, "Expect")) {
      if (!EqualsIgnoreCase(header.value, "100-continue")) {
        return Fail(417, StrCat("Expect ", Quote(header.value.substr(0, 64)), " is not supported"));
      }
      expects_continue_ = !http10_;
    }
  }
  if (hosts > 1 || (hosts == 0 && !http10_)) return Fail(400, "exactly one Host header is needed");
  keep_alive_ = !close && (!http10_ || keep);
  return true;
}

namespace {

std::string TooLarge(const CodecLimits& limits) {
  return StrCat("Request entity too large: limit is ", limits.body_bytes);
}

}  // namespace

bool RequestParser::CheckFraming() {
  FramingHeaders framing;
  std::string problem = ReadFraming(request_.headers, &framing);
  if (!problem.empty()) return Fail(400, std::move(problem));
  if (framing.chunked && http10_) return Fail(400, "Transfer-Encoding in an HTTP/1.0 request");
  if (framing.length > limits_.body_bytes) {
    return Fail(413, TooLarge(limits_));
  }
  if (framing.chunked) {
    body_.StartChunked(limits_.header_bytes);
  } else {
    body_.StartLength(framing.length);
  }
  return true;
}

RequestParser::Step RequestParser::ParseBody(std::string_view in) {
  size_t used = 0;
  while (true) {
    BodyDecoder::Step step = body_.Next(in.substr(used));
    used += step.consumed;
    switch (step.result) {
      case BodyDecoder::Result::kNeedMore:
        return {Result::kNeedMore, used};
      case BodyDecoder::Result::kDone:
        return {Result::kDone, used};
      case BodyDecoder::Result::kError:
        Fail(400, body_.error());
        return {Result::kError, used};
      case BodyDecoder::Result::kData:
        if (request_.body.size() + step.data.size() > limits_.body_bytes) {
          Fail(413, TooLarge(limits_));
          return {Result::kError, used};
        }
        request_.body.append(step.data);
    }
  }
}

HttpRequest RequestParser::Take() {
  in_body_ = false;
  scanned_ = 0;
  return std::move(request_);
}

void ResponseParser::Start(std::string_view method) {
  head_request_ = method == "HEAD";
  status_ = 0;
  headers_.clear();
  scanned_ = 0;
  in_body_ = false;
  keep_alive_ = true;
}

bool ResponseParser::Fail(std::string message) {
  error_.message = std::move(message);
  return false;
}

ResponseParser::Step ResponseParser::Parse(std::string_view in) {
  if (!in_body_) return ParseHead(in);
  BodyDecoder::Step step = body_.Next(in);
  switch (step.result) {
    case BodyDecoder::Result::kNeedMore:
      return {Result::kNeedMore, step.consumed, {}};
    case BodyDecoder::Result::kData:
      return {Result::kData, step.consumed, step.data};
    case BodyDecoder::Result::kDone:
      return {Result::kDone, step.consumed, {}};
    case BodyDecoder::Result::kError:
      break;
  }
  Fail(body_.error());
  return {Result::kError, step.consumed, {}};
}

ResponseParser::Step ResponseParser::ParseHead(std::string_view in) {
  size_t skipped = 0;
  // Informational answers (100 Continue) come before the real one; only a few are believable.
  for (int informational = 0; informational < 8; ++informational) {
    std::string_view rest = in.substr(skipped);
    size_t from = scanned_;
    size_t length = FindHeadEnd(rest.substr(0, limits_.header_bytes), &scanned_);
    if (length == 0) {
      if (HasBareLineFeed(rest.substr(0, limits_.header_bytes), from)) {
        Fail("line does not end in CRLF");
        return {Result::kError, skipped, {}};
      }
      if (rest.size() < limits_.header_bytes) return {Result::kNeedMore, skipped, {}};
      Fail(StrCat("response head is larger than ", limits_.header_bytes, " bytes"));
      return {Result::kError, skipped, {}};
    }
    std::string_view head = rest.substr(0, length);
    std::string_view line;
    headers_.clear();
    bool ok = NextLine(&head, &line) || Fail("status line does not end in CRLF");
    ok = ok && ParseStatusLine(line);
    std::string problem = ok ? ParseHeaders(head, limits_.header_count, &headers_) : "";
    if (!problem.empty()) ok = Fail(std::move(problem));
    if (!ok || !CheckFraming()) return {Result::kError, skipped, {}};
    skipped += length;
    scanned_ = 0;
    if (status_ >= 200 || status_ == 101) {
      in_body_ = true;
      return {Result::kHead, skipped, {}};
    }
  }
  Fail("too many informational responses");
  return {Result::kError, skipped, {}};
}

bool ResponseParser::ParseStatusLine(std::string_view line) {
  bool form = line.size() >= 12 && line.substr(0, 7) == "HTTP/1." && line[8] == ' ' &&
              (line[7] == '0' || line[7] == '1') && (line.size() == 12 || line[12] == ' ');
  auto status = form ? ParseUint(line.substr(9, 3)) : std::nullopt;
  if (!status || *status < 100 || *status > 599) {
    return Fail(StrCat("status line ", Quote(line.substr(0, 64)), " is malformed"));
  }
  status_ = static_cast<int>(*status);
  http10_ = line[7] == '0';
  return true;
}

bool ResponseParser::CheckFraming() {
  FramingHeaders framing;
  std::string problem = ReadFraming(headers_, &framing);
  if (!problem.empty()) return Fail(std::move(problem));
  keep_alive_ = http10_ ? HeaderHasToken(headers_, "Connection", "keep-alive")
                        : !HeaderHasToken(headers_, "Connection", "close");
  bool bodiless = head_request_ || status_ < 200 || status_ == 204 || status_ == 304;
  if (bodiless) {
    body_.StartEmpty();
  } else if (framing.chunked) {
    body_.StartChunked(limits_.header_bytes);
  } else if (framing.has_length) {
    body_.StartLength(framing.length);
  } else {
    body_.StartUntilClose();
    keep_alive_ = false;
  }
  return true;
}

void AppendResponseHead(std::string* out,
                        int status,
                        const Headers& headers,
                        Framing framing,
                        uint64_t length,
                        bool keep_alive,
                        std::string_view date) {
  out->append("HTTP/1.1 ");
  AppendNumber(out, static_cast<uint64_t>(status));
  out->push_back(' ');
  out->append(ReasonPhrase(status));
  out->append("\r\n");
  for (const Header& header : headers) {
    if (!IsOurs(header.name) && IsToken(header.name)) AppendHeader(out, header.name, header.value);
  }
  if (!date.empty()) AppendHeader(out, "Date", date);
  if (status == 101) {
    out->append("Connection: Upgrade\r\n");
  } else if (!keep_alive) {
    out->append("Connection: close\r\n");
  }
  if (framing == Framing::kLength) {
    out->append("Content-Length: ");
    AppendNumber(out, length);
    out->append("\r\n");
  } else if (framing == Framing::kChunked) {
    out->append("Transfer-Encoding: chunked\r\n");
  }
  out->append("\r\n");
}

Status AppendRequest(std::string* out,
                     const HttpRequest& request,
                     std::string_view target,
                     std::string_view authority,
                     const Headers& extra,
                     bool upgrade) {
  auto plain = [](char c) { return static_cast<unsigned char>(c) > 0x20 && c != 0x7f; };
  if (!IsToken(request.method)) {
    return Status(Code::kBadRequest, StrCat("method ", Quote(request.method), " is not a token"));
  }
  if (target.empty() || !std::all_of(target.begin(), target.end(), plain)) {
    return Status(Code::kBadRequest, StrCat("request target ", Quote(target), " is malformed"));
  }
  out->append(request.method).append(" ").append(target).append(" HTTP/1.1\r\n");
  if (FindHeader(request.headers, "Host") == nullptr) AppendHeader(out, "Host", authority);
  auto append_all = [out](const Headers& headers, const Headers* unless) {
    for (const Header& header : headers) {
      if (unless != nullptr && FindHeader(*unless, header.name) != nullptr) continue;
      if (IsOurs(header.name)) continue;
      bool legal = IsToken(header.name) &&
                   std::all_of(header.value.begin(), header.value.end(), IsValueChar);
      if (!legal) {
        return Status(Code::kBadRequest,
                      StrCat("header ", Quote(header.name), " has an illegal character"));
      }
      out->append(header.name).append(": ").append(header.value).append("\r\n");
    }
    return Status::Ok();
  };
  SWELL_RETURN_IF_ERROR(append_all(request.headers, nullptr));
  SWELL_RETURN_IF_ERROR(append_all(extra, &request.headers));
  if (upgrade) out->append("Connection: Upgrade\r\n");
  bool may_omit = request.method == "GET" || request.method == "HEAD" || request.method == "DELETE";
  if (!request.body.empty() || !may_omit) {
    out->append("Content-Length: ");
    AppendNumber(out, request.body.size());
    out->append("\r\n");
  }
  out->append("\r\n");
  out->append(request.body);
  return Status::Ok();
}

void AppendChunkHeader(std::string* out, uint64_t size) {
  static constexpr char kHex[] = "0123456789abcdef";
  char digits[16];
  char* at = digits + sizeof(digits);
  do {
    *--at = kHex[size & 15];
    size >>= 4;
  } while (size != 0);
  out->append(at, digits + sizeof(digits) - at);
  out->append("\r\n");
}

std::string HttpDate(int64_t unix_s) {
  static constexpr const char* kDays[] = {"Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"};
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  int64_t days = unix_s / 86400;
  int64_t second = unix_s % 86400;
  if (second < 0) {
    second += 86400;
    --days;
  }
  std::chrono::year_month_day date{std::chrono::sys_days(std::chrono::days(days))};
  auto two = [](int64_t n) {
    std::string text = std::to_string(n);
    return text.size() < 2 ? "0" + text : text;
  };
  return StrCat(kDays[((days % 7) + 7) % 7], ", ", two(static_cast<unsigned>(date.day())), " ",
                kMonths[static_cast<unsigned>(date.month()) - 1], " ",
                static_cast<int>(date.year()), " ", two(second / 3600), ":", two(second / 60 % 60),
                ":", two(second % 60), " GMT");
}

}  // namespace swell::net
