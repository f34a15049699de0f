// HTTP/1.1 on the wire, without any I/O: bytes in, requests or responses out, and back.
//
// The parsers are strict where leniency lets two programs disagree about where a message ends
// (request smuggling): lines end in CRLF, no folded headers, one Content-Length or one
// "Transfer-Encoding: chunked" but never both, no blank before a colon, no control characters.
//
// - Threads: none. The parsers keep no reference to the bytes they were given.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kube/net/http/http.h"

namespace swell::net {

struct CodecLimits {
  size_t header_bytes = 64 << 10;  // request or status line, headers, trailers
  size_t header_count = 256;
  size_t body_bytes = 3 << 20;
};

// Why a message was refused: what to answer, and what to say.
struct CodecError {
  int http_status = 400;
  std::string message;
};

// Takes the framing off a body. Gives out slices of its input, so nothing is copied here.
class BodyDecoder {
 public:
  enum class Result { kNeedMore, kData, kDone, kError };
  struct Step {
    Result result;
    size_t consumed;
    std::string_view data;  // for kData
  };

  void StartEmpty() { Start(State::kDone, 0); }
  void StartLength(uint64_t length) { Start(length == 0 ? State::kDone : State::kLength, length); }
  void StartChunked(size_t trailer_limit);
  void StartUntilClose() { Start(State::kUntilClose, 0); }

  // Consumes from the front of `in`; call again with the rest until kNeedMore, kDone or kError.
  Step Next(std::string_view in);
  bool until_close() const { return state_ == State::kUntilClose; }
  const std::string& error() const { return error_; }

 private:
  enum class State {
    kDone,
    kLength,
    kUntilClose,
    kSizeFirst,
    kSize,
    kExtension,
    kSizeLf,
    kChunk,
    kChunkCr,
    kChunkLf,
    kTrailerStart,
    kTrailerName,
    kTrailerValue,
    kTrailerLf,
    kEndLf,
    kError,
  };

  void Start(State state, uint64_t remaining) {
    state_ = state;
    remaining_ = remaining;
  }
  // One character of chunk framing.
  void Eat(char c);
  void EatTrailer(char c);
  void Fail(std::string_view why);

  State state_ = State::kDone;
  uint64_t remaining_ = 0;
  int digits_ = 0;
  size_t extension_bytes_ = 0;
  size_t trailer_bytes_ = 0;
  size_t trailer_limit_ = 0;
  std::string error_;
};

// Server side. One object parses the requests of a connection one after the other.
class RequestParser {
 public:
  enum class Result {
    kNeedMore,
    kHead,  // the head is complete and a body follows; said once per request
    kDone,  // Take() the request
    kError,
  };
  struct Step {
    Result result;
    size_t consumed;
  };

  explicit RequestParser(CodecLimits limits) : limits_(limits) {}

  // Consumes from the front of `in`. Bytes not consumed must come again, followed by more.
  Step Parse(std::string_view in);

  // After kHead or kDone.
  bool keep_alive() const { return keep_alive_; }
  bool http10() const { return http10_; }
  bool expects_continue() const { return expects_continue_; }
  const CodecError& error() const { return error_; }
  // Bytes of the body that have come.
  size_t body_bytes() const { return request_.body.size(); }

  // After kDone: the request; the parser is ready for the next one.
  HttpRequest Take();

 private:
  Step ParseHead(std::string_view in);
  Step ParseBody(std::string_view in);
  bool ParseRequestLine(std::string_view line);
  bool ParseTarget(std::string_view target);
  bool CheckHeaders();
  bool CheckFraming();
  bool Fail(int http_status, std::string message);

  CodecLimits limits_;
  HttpRequest request_;
  BodyDecoder body_;
  CodecError error_;
  size_t scanned_ = 0;  // bytes of an incomplete head already searched for its end
  bool in_body_ = false;
  bool keep_alive_ = true;
  bool http10_ = false;
  bool expects_continue_ = false;
};

// Client side: the answer to one request.
class ResponseParser {
 public:
  enum class Result {
    kNeedMore,
    kHead,  // status() and headers() are known; said once
    kData,
    kDone,
    kError,
  };
  struct Step {
    Result result;
    size_t consumed;
    std::string_view data;  // for kData
  };

  explicit ResponseParser(CodecLimits limits) : limits_(limits) {}

  // Before each answer: the method decides whether a body follows.
  void Start(std::string_view method);
  Step Parse(std::string_view in);
  // The connection ended. True when that completes the answer.
  bool FinishAtClose() const { return in_body_ && body_.until_close(); }

  int status() const { return status_; }
  const Headers& headers() const { return headers_; }
  Headers& headers() { return headers_; }
  bool keep_alive() const { return keep_alive_; }
  const std::string& error() const { return error_.message; }

 private:
  Step ParseHead(std::string_view in);
  bool ParseStatusLine(std::string_view line);
  bool CheckFraming();
  bool Fail(std::string message);

  CodecLimits limits_;
  int status_ = 0;
  Headers headers_;
  BodyDecoder body_;
  CodecError error_;
  size_t scanned_ = 0;
  bool in_body_ = false;
  bool head_request_ = false;
  bool http10_ = false;
  bool keep_alive_ = true;
};

enum class Framing { kNone, kLength, kChunked, kUntilClose };

// Framing headers (Content-Length, Transfer-Encoding, Connection, Date) are ours: the caller's
// headers of those names are left out, and control characters in values become blanks.
void AppendResponseHead(std::string* out,
                        int status,
                        const Headers& headers,
                        Framing framing,
                        uint64_t length,
                        bool keep_alive,
                        std::string_view date);
// The head and body of a request. `extra` comes after the request's own headers, except names it
// has. kBadRequest for a method, target or header that cannot be sent.
Status AppendRequest(std::string* out,
                     const HttpRequest& request,
                     std::string_view target,
                     std::string_view authority,
                     const Headers& extra,
                     bool upgrade);
// "1a2b\r\n": the line before a chunk of `size` bytes.
void AppendChunkHeader(std::string* out, uint64_t size);
// "Sun, 06 Nov 1994 08:49:37 GMT".
std::string HttpDate(int64_t unix_s);

}  // namespace swell::net
