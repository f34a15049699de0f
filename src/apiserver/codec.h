// Request bodies: JSON, YAML and Kubernetes' protobuf into documents, and what strict field
// validation says about them.
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "apiserver/call.h"
#include "base/result.h"
#include "json/value.h"

namespace swell::apiserver {

// The body as one document, by its content type. kTooLarge, kUnsupportedMediaType, kBadRequest.
Result<json::Value> DecodeBody(const api::RestRequest& request, size_t limit);

// The body as an object of `kind`: apiVersion and kind fit (and are filled in), metadata has the
// right types, fields nobody knows are refused, warned about or dropped (fieldValidation).
Result<json::Value> DecodeObject(Call& call, const api::KindInfo& kind, size_t limit);

// Drops unknown fields; with fieldValidation=Warn adds warnings. Returns the strict error's text,
// empty when there is nothing to complain about.
Result<std::string> PruneObject(Call& call, const api::KindInfo& kind, json::Value& object);

// metadata and its maps have the types that everything relies on.
Status CheckMetadataTypes(const api::KindInfo& kind, const json::Value& object);

// `Pod in version "v1" cannot be handled as a Pod: why`.
// 422 for a patch whose outcome no object of the kind can be (patch.cc).
Status UndecodablePatch(const Call& call, const json::Value& object);
Status DecodeError(const api::KindInfo& kind, std::string_view why);

}  // namespace swell::apiserver
