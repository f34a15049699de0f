#include "kube/apiserver/request/errors.h"

#include <algorithm>

#include "base/strings.h"

namespace swell::apiserver {
namespace {

StatusDetails About(const api::KindInfo& kind, std::string_view name) {
  StatusDetails details;
  details.name = name;
  details.group = kind.gvk.group;
  details.kind = kind.plural;
  return details;
}

std::string KindAndGroup(const api::KindInfo& kind) {
  return kind.gvk.group.empty() ? kind.gvk.kind : StrCat(kind.gvk.kind, ".", kind.gvk.group);
}

}  // namespace

Status NotFoundError(const api::KindInfo& kind, std::string_view name) {
  return Status(Code::kNotFound, StrCat(kind.GroupResource(), " ", Quote(name), " not found"),
                About(kind, name));
}

Status AlreadyExistsError(const api::KindInfo& kind, std::string_view name) {
  return Status(Code::kAlreadyExists,
                StrCat(kind.GroupResource(), " ", Quote(name), " already exists"),
                About(kind, name));
}

Status ConflictError(const api::KindInfo& kind, std::string_view name, std::string_view why) {
  return Status(Code::kConflict,
                StrCat("Operation cannot be fulfilled on ", kind.GroupResource(), " ", Quote(name),
                       ": ", why),
                About(kind, name));
}

Status ModifiedError(const api::KindInfo& kind, std::string_view name) {
  return ConflictError(kind, name,
                       "the object has been modified; please apply your changes to the latest "
                       "version and try again");
}

Status ForbiddenError(const api::KindInfo& kind, std::string_view name, std::string_view why) {
  std::string who = kind.GroupResource();
  if (!name.empty()) who += StrCat(" ", Quote(name));
  return Status(Code::kForbidden, StrCat(who, " is forbidden: ", why), About(kind, name));
}

Status InvalidError(const api::KindInfo& kind,
                    std::string_view name,
                    const std::vector<api::FieldError>& errors) {
  StatusDetails details = About(kind, name);
  details.kind = kind.gvk.kind;
  // What is said twice is one error of the message, and two causes.
  std::vector<std::string> texts;
  for (const api::FieldError& error : errors) {
    std::string text =
        error.field.empty() ? error.message : StrCat(error.field, ": ", error.message);
    if (std::find(texts.begin(), texts.end(), text) == texts.end())
      texts.push_back(std::move(text));
    details.causes.push_back({error.reason, error.field, error.message});
  }
  std::string text = Join(texts, ", ");
  if (texts.size() > 1) text = StrCat("[", text, "]");
  return Status(Code::kInvalid, StrCat(KindAndGroup(kind), " ", Quote(name), " is invalid: ", text),
                std::move(details));
}

Status OptionsError(std::string_view options_kind, const api::FieldError& error) {
  return Status(
      Code::kInvalid,
      StrCat(options_kind, ".meta.k8s.io \"\" is invalid: ", error.field, ": ", error.message),
      {"",
       "meta.k8s.io",
       std::string(options_kind),
       "",
       {{error.reason, error.field, error.message}},
       0});
}

Status BadRequestError(std::string message) {
  return Status(Code::kBadRequest, std::move(message));
}

Status NoSuchResourceError() {
  return Status(Code::kNotFound, "the server could not find the requested resource");
}

Status MethodNotAllowedError() {
  return Status(Code::kMethodNotAllowed,
                "the server does not allow this method on the requested resource");
}

api::FieldError InvalidValue(std::string field, std::string_view value, std::string_view why) {
  return {"FieldValueInvalid", std::move(field),
          StrCat("Invalid value: ", Quote(value), ": ", why)};
}

api::FieldError RequiredValue(std::string field, std::string_view why) {
  return {"FieldValueRequired", std::move(field),
          why.empty() ? "Required value" : StrCat("Required value: ", why)};
}

api::FieldError ForbiddenValue(std::string field, std::string_view why) {
  return {"FieldValueForbidden", std::move(field), StrCat("Forbidden: ", why)};
}

api::FieldError UnsupportedValue(std::string field,
                                 std::string_view value,
                                 const std::vector<std::string>& supported) {
  std::string list;
  for (const std::string& one : supported) {
    list += StrCat(list.empty() ? "" : ", ", Quote(one));
  }
  return {"FieldValueNotSupported", std::move(field),
          StrCat("Unsupported value: ", Quote(value), ": supported values: ", list)};
}

json::Value StatusToJson(const Status& status) {
  json::Object object;
  object["kind"] = "Status";
  object["apiVersion"] = "v1";
  object["metadata"] = json::Object();
  object["status"] = "Failure";
  object["message"] = status.message();
  const std::string_view reason = Reason(status.code());
  if (!reason.empty()) object["reason"] = reason;
  const StatusDetails& from = status.details();
  json::Object details;
  if (!from.name.empty()) details["name"] = from.name;
  if (!from.group.empty()) details["group"] = from.group;
  if (!from.kind.empty()) details["kind"] = from.kind;
  if (!from.uid.empty()) details["uid"] = from.uid;
  if (!from.causes.empty()) {
    json::Array causes;
    for (const StatusCause& cause : from.causes) {
      json::Object entry;
      if (!cause.reason.empty()) entry["reason"] = cause.reason;
      entry["message"] = cause.message;
      if (!cause.field.empty()) entry["field"] = cause.field;
      causes.push_back(std::move(entry));
    }
    details["causes"] = std::move(causes);
  }
  if (from.retry_after_s > 0) details["retryAfterSeconds"] = from.retry_after_s;
  // Errors about the request as such carry details even when there is nothing to say.
  const bool generic = status.code() == Code::kNotFound || status.code() == Code::kInvalid ||
                       status.code() == Code::kMethodNotAllowed;
  if (generic || !details.empty()) object["details"] = std::move(details);
  object["code"] = HttpStatus(status.code());
  return object;
}

json::Value SuccessStatus(const api::KindInfo& kind, std::string_view name, std::string_view uid) {
  json::Object details;
  details["name"] = name;
  if (!kind.gvk.group.empty()) details["group"] = kind.gvk.group;
  details["kind"] = kind.plural;
  if (!uid.empty()) details["uid"] = uid;
  json::Object object;
  object["kind"] = "Status";
  object["apiVersion"] = "v1";
  object["metadata"] = json::Object();
  object["status"] = "Success";
  object["details"] = std::move(details);
  return object;
}

api::RestResponse ErrorResponse(const Status& status) {
  api::RestResponse response = JsonResponse(HttpStatus(status.code()), StatusToJson(status));
  if (status.details().retry_after_s > 0) {
    response.headers.emplace_back("Retry-After", std::to_string(status.details().retry_after_s));
  }
  if (status.code() == Code::kUnauthorized) {
    response.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"swell\"");
  }
  return response;
}

api::RestResponse UnnamedErrorResponse(std::string message) {
  json::Value document = StatusToJson(Status(Code::kInternal, std::move(message)));
  json::Remove(document, {"reason"});
  return JsonResponse(HttpStatus(Code::kInternal), document);
}

api::RestResponse JsonResponse(int status, const json::Value& value) {
  api::RestResponse response;
  response.status = status;
  response.body.push_back(api::MakeChunk(json::Print(value)));
  return response;
}

}  // namespace swell::apiserver
