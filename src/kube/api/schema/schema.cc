#include "kube/api/schema/schema.h"

#include <algorithm>
#include <set>

#include "json/erase.h"
#include "kube/api/schema/field_errors.h"
#include "kube/api/schema/schema_pattern.h"

namespace swell::api {
namespace {

constexpr size_t kMaxErrors = 100;

// A field path that grows and shrinks while a document is walked.
class PathScope {
 public:
  PathScope(std::string& path, std::string_view field) : path_(path), size_(path.size()) {
    if (!path_.empty()) path_ += '.';
    path_ += field;
  }
  PathScope(std::string& path, size_t index) : path_(path), size_(path.size()) {
    path_ += '[';
    path_ += std::to_string(index);
    path_ += ']';
  }
  ~PathScope() { path_.resize(size_); }

 private:
  std::string& path_;
  size_t size_;
};

// Examples of operators give the pod template an apiVersion and a kind, as if it were a Pod.
bool IsHeader(std::string_view field) { return field == "apiVersion" || field == "kind"; }

void CollectUnknown(const Schema& said,
                    const json::Value& value,
                    const Schema* pod_template,
                    std::string& path,
                    std::vector<std::string>& out) {
  if (out.size() >= kMaxErrors || value.is_null()) return;
  const bool kept = pod_template != nullptr && KeepsPodTemplate(said);
  const Schema& schema = kept ? *pod_template : said;
  if (const json::Array* list = value.if_array(); list && schema.items) {
    for (size_t i = 0; i < list->size(); ++i) {
      PathScope scope(path, i);
      CollectUnknown(*schema.items, (*list)[i], pod_template, path, out);
    }
    return;
  }
  const json::Object* object = value.if_object();
  if (object == nullptr || schema.type == SchemaType::kAny) return;
  for (const auto& member : *object) {
    PathScope scope(path, std::string_view(member.key()));
    if (schema.type == SchemaType::kMap) {
      if (schema.items) CollectUnknown(*schema.items, member.value(), pod_template, path, out);
      continue;
    }
    if (schema.type != SchemaType::kObject) continue;
    if (const SchemaField* field = schema.Field(member.key())) {
      CollectUnknown(*field->schema, member.value(), pod_template, path, out);
    } else if (!(kept && IsHeader(member.key())) && !schema.preserve_unknown &&
               out.size() < kMaxErrors) {
      out.push_back(path);
    }
  }
}

}  // namespace

std::string_view TypeName(SchemaType type) {
  switch (type) {
    case SchemaType::kObject:
    case SchemaType::kMap:
      return "object";
    case SchemaType::kArray:
      return "array";
    case SchemaType::kInteger:
      return "integer";
    case SchemaType::kNumber:
      return "number";
    case SchemaType::kBoolean:
      return "boolean";
    case SchemaType::kString:
    case SchemaType::kQuantity:
    case SchemaType::kTime:
    case SchemaType::kMicroTime:
      return "string";
    case SchemaType::kIntOrString:
    case SchemaType::kAny:
      break;
  }
  return "";
}

const SchemaField* Schema::Field(std::string_view field_name) const {
  for (const SchemaField& field : fields) {
    if (field.name == field_name) return &field;
  }
  return nullptr;
}

bool KeepsPodTemplate(const Schema& schema) {
  const SchemaField* spec = schema.preserve_unknown ? schema.Field("spec") : nullptr;
  return spec != nullptr && spec->schema->preserve_unknown &&
         spec->schema->Field("containers") != nullptr;
}

std::vector<std::string> UnknownFields(const Schema& schema,
                                       const json::Value& value,
                                       const Schema* pod_template) {
  std::vector<std::string> out;
  std::string path;
  CollectUnknown(schema, value, pod_template, path, out);
  return out;
}

void PruneUnknown(const Schema& schema, json::Value& value) {
  if (json::Array* list = value.if_array(); list && schema.items) {
    for (json::Value& item : *list) PruneUnknown(*schema.items, item);
    return;
  }
  json::Object* object = value.if_object();
  if (object == nullptr || schema.type == SchemaType::kAny) return;
  std::set<std::string, std::less<>> gone;
  for (auto& member : *object) {
    if (schema.type == SchemaType::kMap) {
      if (schema.items) PruneUnknown(*schema.items, member.value());
    } else if (schema.type == SchemaType::kObject) {
      if (const SchemaField* field = schema.Field(member.key())) {
        PruneUnknown(*field->schema, member.value());
      } else if (!schema.preserve_unknown) {
        gone.emplace(member.key());
      }
    }
  }
  json::EraseMembers(*object, gone);
}

namespace {

// A null where a custom kind's schema wants a value counts as nothing written; in Kubernetes' own
// types all nulls do, and are gone before.
bool IsStrayNull(const Schema& schema, const json::Value& value) {
  return value.is_null() && !schema.nullable;
}

// Zero, false and empty text are absence in fields that are not pointers in Kubernetes' own types.
bool MeansAbsence(const SchemaField& field, const json::Value& value) {
  if (field.required || field.proto == 0 || field.proto_pointer) return false;
  switch (field.schema->type) {
    case SchemaType::kBoolean:
      return value.is_bool() && !value.get_bool();
    case SchemaType::kInteger:
      return value.is_int64() && value.get_int64() == 0;
    case SchemaType::kString:
      return value.is_string() && value.get_string().empty();
    default:
      return false;
  }
}

}  // namespace

void ApplyDefaults(const Schema& schema, json::Value& value) {
  if (json::Array* list = value.if_array(); list && schema.items) {
    for (json::Value& item : *list) ApplyDefaults(*schema.items, item);
    return;
  }
  json::Object* object = value.if_object();
  if (object == nullptr) return;
  std::set<std::string, std::less<>> gone;
  if (schema.type == SchemaType::kMap) {
    if (!schema.items) return;
    for (auto& member : *object) {
      if (IsStrayNull(*schema.items, member.value())) {
        gone.emplace(member.key());
      } else {
        ApplyDefaults(*schema.items, member.value());
      }
    }
    json::EraseMembers(*object, gone);
    return;
  }
  for (const SchemaField& field : schema.fields) {
    json::Value* found = object->if_contains(field.name);
    if (found != nullptr && MeansAbsence(field, *found)) {
      json::StableErase(*object, field.name);
      found = nullptr;
    }
    if (field.default_value != nullptr &&
        (found == nullptr ||
         (found->is_null() && (!field.schema->nullable || !schema.name.empty())))) {
      (*object)[field.name] = *field.default_value;
      found = object->if_contains(field.name);
    }
    if (found == nullptr) continue;
    if (IsStrayNull(*field.schema, *found)) {
      json::StableErase(*object, field.name);
    } else {
      ApplyDefaults(*field.schema, *found);
    }
  }
}

bool HasDefaults(const Schema& schema) {
  if (schema.items && HasDefaults(*schema.items)) return true;
  return std::any_of(schema.fields.begin(), schema.fields.end(), [](const SchemaField& field) {
    return field.default_value != nullptr || HasDefaults(*field.schema);
  });
}

}  // namespace swell::api
