// Errors as kube-apiserver words them, and Status as a JSON document.
// - Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "json/value.h"
#include "kube/api/rest/rest.h"
#include "kube/api/schema/schema.h"
#include "kube/api/schema/scheme.h"

namespace swell::apiserver {

Status NotFoundError(const api::KindInfo& kind, std::string_view name);
Status AlreadyExistsError(const api::KindInfo& kind, std::string_view name);
// `Operation cannot be fulfilled on pods "x": why`.
Status ConflictError(const api::KindInfo& kind, std::string_view name, std::string_view why);
Status ModifiedError(const api::KindInfo& kind, std::string_view name);
// `pods "x" is forbidden: why`.
Status ForbiddenError(const api::KindInfo& kind, std::string_view name, std::string_view why);
// `Pod "x" is invalid: spec.containers: Required value`.
Status InvalidError(const api::KindInfo& kind,
                    std::string_view name,
                    const std::vector<api::FieldError>& errors);
// About the options of a request: `CreateOptions.meta.k8s.io "" is invalid: …`.
Status OptionsError(std::string_view options_kind, const api::FieldError& error);
Status BadRequestError(std::string message);
// 404 for paths and resources that do not exist at all.
Status NoSuchResourceError();
Status MethodNotAllowedError();

api::FieldError InvalidValue(std::string field, std::string_view value, std::string_view why);
api::FieldError RequiredValue(std::string field, std::string_view why = {});
api::FieldError ForbiddenValue(std::string field, std::string_view why);
api::FieldError UnsupportedValue(std::string field,
                                 std::string_view value,
                                 const std::vector<std::string>& supported);

json::Value StatusToJson(const Status& status);
// {"kind":"Status","status":"Success","details":{…}}.
json::Value SuccessStatus(const api::KindInfo& kind, std::string_view name, std::string_view uid);
// With Retry-After where the status asks for it.
api::RestResponse ErrorResponse(const Status& status);
// 500 that names no reason, as errors are that kube-apiserver has no word for.
api::RestResponse UnnamedErrorResponse(std::string message);
api::RestResponse JsonResponse(int status, const json::Value& value);

}  // namespace swell::apiserver
