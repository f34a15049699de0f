// Request bodies: JSON, YAML and Kubernetes' protobuf into documents, and what strict field
// validation says about them.
// - Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"
#include "kube/apiserver/call.h"

namespace swell::apiserver {

// The limits for a body of `bytes`. Real objects have 15 bytes or more for each value, and etcd
// stores at most 1.5 MiB of an object.
constexpr json::ParseLimits BodyLimits(size_t bytes) {
  return {.depth = 64, .bytes = bytes, .values = 128 << 10};
}

inline constexpr std::string_view kApplyPatch = "application/apply-patch+yaml";
bool IsYaml(std::string_view media_type);

// Members that a body names twice, each as strict field validation tells it. The last one counts.
using Duplicates = std::vector<std::string>;

// A YAML body, which must be one document. Without `duplicates`, a duplicate field is an error.
Result<json::Value> DecodeYaml(std::string_view body,
                               size_t limit,
                               Duplicates* duplicates = nullptr);
// A JSON body: the same.
Result<json::Value> DecodeJson(std::string_view body, size_t limit, Duplicates* duplicates);

// Why the body is not an object of the kind.
Status UnreadableBody(const api::KindInfo& kind, std::string_view body, const Status& why);

// The body as one document, by its content type. kTooLarge, kUnsupportedMediaType, kBadRequest.
Result<json::Value> DecodeBody(const api::RestRequest& request,
                               size_t limit,
                               Duplicates* duplicates = nullptr);

// The body as an object of `kind`: apiVersion and kind fit (and are filled in), metadata has the
// right types, fields nobody knows and members named twice are refused, warned about or dropped
// (fieldValidation).
Result<json::Value> DecodeObject(Call& call, const api::KindInfo& kind, size_t limit);

// Drops unknown fields; with fieldValidation=Warn adds warnings. Returns the strict error's text,
// empty when there is nothing to complain about.
Result<std::string> PruneObject(Call& call,
                                const api::KindInfo& kind,
                                json::Value& object,
                                const Duplicates& duplicates);

// The text of an error about them all, as strict field validation has it.
std::string StrictText(const std::vector<std::string>& problems);
// 400 for a patch to apply that names members twice.
Status NamedTwice(const Duplicates& duplicates);

// metadata and its maps have the types that everything relies on.
Status CheckMetadataTypes(const api::KindInfo& kind, const json::Value& object);

// `Pod in version "v1" cannot be handled as a Pod: why`.
// 422 for a patch whose outcome no object of the kind can be (patch.cc).
Status UndecodablePatch(const Call& call, const json::Value& object);
Status DecodeError(const api::KindInfo& kind, std::string_view why);

}  // namespace swell::apiserver
