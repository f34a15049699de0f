// Schema: what a kind's objects look like. One source for everything that must agree about it:
// validation, unknown-field warnings, defaulting, pruning, strategic merge, OpenAPI v2 and v3,
// `kubectl explain`, and CustomResourceDefinitions.
//
// Built-in schemas are written in a small text form (src/kube/api/schemas/*.txt, embedded at build
// and parsed once at start; schema_text.h); a CRD's openAPIV3Schema becomes the same structure.
//
// - Threads: immutable once built; shared by const pointer.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace swell::api {

enum class SchemaType {
  kObject,  // known fields
  kMap,     // string keys, `items` values
  kArray,
  kString,
  kInteger,  // int32 or int64 by `format`
  kNumber,
  kBoolean,
  kIntOrString,
  kQuantity,
  kTime,  // RFC 3339 seconds
  kMicroTime,
  kAny,  // anything; unknown fields are kept (x-kubernetes-preserve-unknown-fields)
};

// How lists are merged: Kubernetes' x-kubernetes-list-type, and strategic merge's patchStrategy.
enum class ListType { kAtomic, kSet, kMap };

struct Schema;
class SchemaPattern;  // a compiled regular expression (schema_pattern.h)
using SchemaPtr = std::shared_ptr<const Schema>;

struct SchemaField {
  std::string name;
  SchemaPtr schema;
  bool required = false;
  std::string description;
  json::SharedValue default_value;  // may be null
  // Protobuf field number; proto_outer is that of the message it is nested in on the wire where
  // JSON has no such level (a volume's source). 0: none.
  int proto = 0;
  int proto_outer = 0;
  bool proto_pointer = false;  // zero is a value on the wire, not absence
};

struct Schema {
  SchemaType type = SchemaType::kAny;
  std::string name;  // "io.k8s.api.core.v1.PodSpec"; empty for anonymous ones
  std::string description;
  std::string format;  // int32, int64, byte, date-time, ...
  bool nullable = false;
  bool preserve_unknown = false;
  bool embedded_resource = false;          // has apiVersion, kind, metadata of its own
  bool atomic = false;                     // kObject, kMap: replaced whole by server-side apply
  std::vector<SchemaField> fields;         // kObject, in document order
  SchemaPtr items;                         // kArray, kMap
  ListType list_type = ListType::kAtomic;  // kArray
  bool patch_merge = false;                // strategic merge merges the list (or map) by keys
  bool patch_retain_keys = false;          // patchStrategy=retainKeys
  bool patch_replace = false;              // patchStrategy=replace: never merged
  std::string patch_merge_key;             // strategic merge key; empty for lists of scalars
  std::vector<std::string> list_map_keys;  // server-side apply keys
  std::vector<std::string> enum_values;
  std::string pattern;  // regular expression, with its compiled form
  std::shared_ptr<const SchemaPattern> compiled_pattern;
  std::string minimum, maximum;  // decimal text; empty: none
  bool exclusive_minimum = false, exclusive_maximum = false;
  int64_t min_length = -1, max_length = -1, min_items = -1, max_items = -1, min_properties = -1,
          max_properties = -1;
  bool unique_items = false;
  std::string multiple_of;
  // Value rules of structural schemas; kept as written for OpenAPI, checked by Validate.
  std::vector<SchemaPtr> all_of, any_of, one_of;
  SchemaPtr not_schema;

  const SchemaField* Field(std::string_view field_name) const;
};

// The JSON type as OpenAPI names it; empty where there is no single one.
std::string_view TypeName(SchemaType type);

// One thing wrong with a document.
struct FieldError {
  std::string reason;   // FieldValueInvalid, FieldValueRequired, FieldValueNotSupported, ...
  std::string field;    // spec.containers[0].name
  std::string message;  // as Kubernetes words it: `Invalid value: "x": must be ...`
};

// Types, required fields, enums, bounds, patterns. At most 100 errors.
std::vector<FieldError> ValidateAgainst(const Schema& schema,
                                        const json::Value& value,
                                        const std::string& path = {});
// Whether it keeps a pod's template whole, whatever is in it.
bool KeepsPodTemplate(const Schema& schema);
// Fields that no schema knows: "spec.containers[0].imagee". In document order, at most 100. Custom
// kinds keep pods' templates without knowing all that may be in them: `pod_template` does.
std::vector<std::string> UnknownFields(const Schema& schema,
                                       const json::Value& value,
                                       const Schema* pod_template = nullptr);
void PruneUnknown(const Schema& schema, json::Value& value);
void ApplyDefaults(const Schema& schema, json::Value& value);
// Whether a field of the schema, at any depth, has a default. Not for recursive schemas.
bool HasDefaults(const Schema& schema);

// A CRD's validation.openAPIV3Schema. kInvalid for what is not a structural schema.
Result<SchemaPtr> ParseOpenApiSchema(const json::Value& open_api_v3);

}  // namespace swell::api
