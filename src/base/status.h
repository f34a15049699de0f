// Status: the outcome of an operation, as Kubernetes' API knows outcomes.
//
// A Status is OK or an error with a Code, a message for people and, for invalid objects, the causes
// field by field. The codes are those of metav1.Status: one table (status.cc) maps a code to its
// HTTP status and its reason, so an error made deep in the store reaches kubectl unchanged.
//
// - Threads: immutable values; an OK Status is one null pointer. Rule of context: a callee says
//   what only it knows; the caller adds what only it knows.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace swell {

enum class Code {
  kOk,
  kBadRequest,            // 400 BadRequest
  kUnauthorized,          // 401 Unauthorized
  kForbidden,             // 403 Forbidden
  kNotFound,              // 404 NotFound
  kMethodNotAllowed,      // 405 MethodNotAllowed
  kNotAcceptable,         // 406 NotAcceptable
  kAlreadyExists,         // 409 AlreadyExists
  kConflict,              // 409 Conflict
  kGone,                  // 410 Gone
  kExpired,               // 410 Expired: resourceVersion or continue token too old
  kTooLarge,              // 413 RequestEntityTooLarge
  kUnsupportedMediaType,  // 415 UnsupportedMediaType
  kInvalid,               // 422 Invalid
  kTooManyRequests,       // 429 TooManyRequests
  kInternal,              // 500 InternalError
  kUnavailable,           // 503 ServiceUnavailable
  kTimeout,               // 504 Timeout
  kNoSpace,               // 507 (no Kubernetes reason): the disk is full
};

// One field of an object that is wrong: metav1.StatusCause.
struct StatusCause {
  std::string reason;   // FieldValueInvalid, FieldValueRequired, FieldValueNotSupported, ...
  std::string field;    // spec.containers[0].name
  std::string message;  // Invalid value: "x": must be ...
};

// The object of the error: metav1.StatusDetails. Empty strings are left out of the answer.
struct StatusDetails {
  std::string name;
  std::string group;
  std::string kind;  // the resource ("pods") in most answers, the Kind in Invalid ones
  std::string uid;
  std::vector<StatusCause> causes;
  int retry_after_s = 0;
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message);
  Status(Code code, std::string message, StatusDetails details);

  static Status Ok() { return Status(); }

  bool ok() const { return rep_ == nullptr; }
  Code code() const { return rep_ ? rep_->code : Code::kOk; }
  const std::string& message() const;
  const StatusDetails& details() const;

  // The same error with `context + ": "` before its message.
  Status WithContext(std::string_view context) const;
  // The same error about another object.
  Status WithDetails(StatusDetails details) const;

  // "NotFound: pods "x" not found", for logs.
  std::string ToString() const;

 private:
  struct Rep {
    Code code;
    std::string message;
    StatusDetails details;
  };
  std::shared_ptr<const Rep> rep_;
};

int HttpStatus(Code code);
// metav1.StatusReason of the code: "NotFound"; "" for kOk.
std::string_view Reason(Code code);
// The code of an answer, for clients: by reason first, by HTTP status where the reason is unknown.
Code CodeFromReason(std::string_view reason, int http_status);

}  // namespace swell
