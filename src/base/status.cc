#include "base/status.h"

#include <array>

namespace swell {
namespace {

struct CodeRow {
  Code code;
  int http;
  std::string_view reason;
};

constexpr std::array kCodes = {
    CodeRow{Code::kOk, 200, ""},
    CodeRow{Code::kBadRequest, 400, "BadRequest"},
    CodeRow{Code::kUnauthorized, 401, "Unauthorized"},
    CodeRow{Code::kForbidden, 403, "Forbidden"},
    CodeRow{Code::kNotFound, 404, "NotFound"},
    CodeRow{Code::kMethodNotAllowed, 405, "MethodNotAllowed"},
    CodeRow{Code::kNotAcceptable, 406, "NotAcceptable"},
    CodeRow{Code::kAlreadyExists, 409, "AlreadyExists"},
    CodeRow{Code::kConflict, 409, "Conflict"},
    CodeRow{Code::kGone, 410, "Gone"},
    CodeRow{Code::kExpired, 410, "Expired"},
    CodeRow{Code::kTooLarge, 413, "RequestEntityTooLarge"},
    CodeRow{Code::kUnsupportedMediaType, 415, "UnsupportedMediaType"},
    CodeRow{Code::kInvalid, 422, "Invalid"},
    CodeRow{Code::kTooManyRequests, 429, "TooManyRequests"},
    CodeRow{Code::kInternal, 500, "InternalError"},
    CodeRow{Code::kUnavailable, 503, "ServiceUnavailable"},
    CodeRow{Code::kTimeout, 504, "Timeout"},
    CodeRow{Code::kNoSpace, 507, "InsufficientStorage"},
};

}  // namespace

Status::Status(Code code, std::string message) : Status(code, std::move(message), {}) {}

Status::Status(Code code, std::string message, StatusDetails details)
    : rep_(code == Code::kOk
               ? nullptr
               : std::make_shared<const Rep>(Rep{code, std::move(message), std::move(details)})) {}

const std::string& Status::message() const {
  static const std::string empty;
  return rep_ ? rep_->message : empty;
}

const StatusDetails& Status::details() const {
  static const StatusDetails empty;
  return rep_ ? rep_->details : empty;
}

Status Status::WithContext(std::string_view context) const {
  if (ok()) return *this;
  return Status(rep_->code, std::string(context) + ": " + rep_->message, rep_->details);
}

Status Status::WithDetails(StatusDetails details) const {
  if (ok()) return *this;
  return Status(rep_->code, rep_->message, std::move(details));
}

std::string Status::ToString() const {
  if (ok()) return "OK";
  return std::string(Reason(rep_->code)) + ": " + rep_->message;
}

int HttpStatus(Code code) {
  for (const CodeRow& row : kCodes) {
    if (row.code == code) return row.http;
  }
  return 500;
}

std::string_view Reason(Code code) {
  for (const CodeRow& row : kCodes) {
    if (row.code == code) return row.reason;
  }
  return "InternalError";
}

Code CodeFromReason(std::string_view reason, int http_status) {
  if (!reason.empty()) {
    for (const CodeRow& row : kCodes) {
      if (row.reason == reason) return row.code;
    }
  }
  if (http_status >= 200 && http_status < 300) return Code::kOk;
  for (const CodeRow& row : kCodes) {
    if (row.http == http_status) return row.code;
  }
  return http_status >= 500 ? Code::kInternal : Code::kBadRequest;
}

}  // namespace swell
