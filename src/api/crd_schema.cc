#include "api/crd_schema.h"

#include "api/field_errors.h"
#include "api/schema_pattern.h"
#include "api/schema_text.h"
#include "base/strings.h"

namespace swell::api {
namespace {

using json::Value;

constexpr int kMaxDepth = 64;
constexpr size_t kMaxErrors = 100;

bool Flag(const json::Object& node, std::string_view key) {
  const Value* value = node.if_contains(key);
  return value != nullptr && value->is_bool() && value->get_bool();
}

std::string Text(const json::Object& node, std::string_view key) {
  const Value* value = node.if_contains(key);
  return value && value->is_string() ? std::string(json::View(value->get_string())) : "";
}

std::string NumberText(const json::Object& node, std::string_view key) {
  const Value* value = node.if_contains(key);
  if (value == nullptr || !value->is_number()) return {};
  if (value->is_double() &&
      value->get_double() == static_cast<double>(static_cast<int64_t>(value->get_double()))) {
    return std::to_string(static_cast<int64_t>(value->get_double()));
  }
  return json::Print(*value);
}

int64_t Count(const json::Object& node, std::string_view key) {
  const Value* value = node.if_contains(key);
  if (value == nullptr) return -1;
  if (value->is_int64()) return value->get_int64();
  if (value->is_uint64()) return static_cast<int64_t>(value->get_uint64());
  return -1;
}

class Reader {
 public:
  explicit Reader(std::vector<FieldError>& errors) : errors_(errors) {}

  std::shared_ptr<Schema> Read(const Value& node,
                               const std::string& path,
                               int depth,
                               bool logical = false);
  void AddObjectFields(Schema& schema);

 private:
  void Add(FieldError error) {
    if (errors_.size() < kMaxErrors) errors_.push_back(std::move(error));
  }
  void ReadType(const json::Object& node, const std::string& path, Schema& schema, bool logical);
  void ReadRules(const json::Object& node, const std::string& path, Schema& schema);
  void ReadChildren(
      const json::Object& node, const std::string& path, Schema& schema, int depth, bool logical);
  void ReadProperties(
      const json::Object& node, const std::string& path, Schema& schema, int depth, bool logical);
  void ReadLogic(const json::Object& node, const std::string& path, Schema& schema, int depth);
  void ReadList(const json::Object& node, const std::string& path, Schema& schema);
  void CheckForbidden(const json::Object& node, const std::string& path, bool logical);

  std::vector<FieldError>& errors_;
  SchemaPtr meta_;
};

std::shared_ptr<Schema> Reader::Read(const Value& value,
                                     const std::string& path,
                                     int depth,
                                     bool logical) {
  auto schema = std::make_shared<Schema>();
  const json::Object* node = value.if_object();
  if (node == nullptr || depth > kMaxDepth) {
    Add(InvalidError(path, value, node ? "is nested too deeply" : "must be a schema"));
    return schema;
  }
  schema->description = Text(*node, "description");
  schema->format = Text(*node, "format");
  schema->nullable = Flag(*node, "nullable");
  schema->preserve_unknown = Flag(*node, "x-kubernetes-preserve-unknown-fields");
  schema->embedded_resource = Flag(*node, "x-kubernetes-embedded-resource");
  schema->atomic = Text(*node, "x-kubernetes-map-type") == "atomic";
  CheckForbidden(*node, path, logical);
  ReadType(*node, path, *schema, logical);
  ReadRules(*node, path, *schema);
  ReadChildren(*node, path, *schema, depth, logical);
  if (schema->embedded_resource && !logical) AddObjectFields(*schema);
  return schema;
}

void Reader::CheckForbidden(const json::Object& node, const std::string& path, bool logical) {
  for (std::string_view key : {"$ref", "definitions", "dependencies", "additionalItems",
                               "patternProperties", "id", "$schema"}) {
    const Value* value = node.if_contains(key);
    if (value && !value->is_null() && !(value->is_string() && value->get_string().empty())) {
      Add(ForbiddenError(PathField(path, key), StrCat(key, " is not supported")));
    }
  }
  if (Flag(node, "uniqueItems")) {
    Add(ForbiddenError(PathField(path, "uniqueItems"),
                       "uniqueItems cannot be set to true since the runtime complexity becomes "
                       "quadratic"));
  }
  if (!logical) return;
  for (std::string_view key : {"description", "title", "type", "default", "additionalProperties",
                               "nullable", "x-kubernetes-preserve-unknown-fields",
                               "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string"}) {
    if (node.contains(key)) {
      Add(ForbiddenError(PathField(path, key), "must be empty to be structural"));
    }
  }
}

void Reader::ReadType(const json::Object& node,
                      const std::string& path,
                      Schema& schema,
                      bool logical) {
  std::string type = Text(node, "type");
  if (Flag(node, "x-kubernetes-int-or-string")) {
    if (!type.empty()) {
      Add(InvalidText(PathField(path, "type"), type,
                      "must be empty if x-kubernetes-int-or-string is true"));
    }
    schema.type = SchemaType::kIntOrString;
  } else if (type == "object") {
    schema.type = node.contains("additionalProperties") ? SchemaType::kMap : SchemaType::kObject;
  } else if (type == "array") {
    schema.type = SchemaType::kArray;
  } else if (type == "string") {
    schema.type = SchemaType::kString;
  } else if (type == "integer") {
    schema.type = SchemaType::kInteger;
  } else if (type == "number") {
    schema.type = SchemaType::kNumber;
  } else if (type == "boolean") {
    schema.type = SchemaType::kBoolean;
  } else if (!type.empty()) {
    Add(NotSupportedError(PathField(path, "type"), type,
                          {"array", "boolean", "integer", "number", "object", "string"}));
  } else {
    schema.type = logical && node.contains("properties") ? SchemaType::kObject : SchemaType::kAny;
    if (!logical && !schema.preserve_unknown) {
      Add(RequiredError(PathField(path, "type"), "must not be empty for specified object fields"));
    }
  }
}

void Reader::ReadRules(const json::Object& node, const std::string& path, Schema& schema) {
  schema.minimum = NumberText(node, "minimum");
  schema.maximum = NumberText(node, "maximum");
  schema.exclusive_minimum = Flag(node, "exclusiveMinimum");
  schema.exclusive_maximum = Flag(node, "exclusiveMaximum");
  schema.multiple_of = NumberText(node, "multipleOf");
  schema.min_length = Count(node, "minLength");
  schema.max_length = Count(node, "maxLength");
  schema.min_items = Count(node, "minItems");
  schema.max_items = Count(node, "maxItems");
  schema.min_properties = Count(node, "minProperties");
  schema.max_properties = Count(node, "maxProperties");
  schema.pattern = Text(node, "pattern");
  if (!schema.pattern.empty()) {
    schema.compiled_pattern = SchemaPattern::Compile(schema.pattern);
    if (schema.compiled_pattern == nullptr) {
      Add(InvalidText(PathField(path, "pattern"), schema.pattern,
                      "must be a valid regular expression"));
    }
  }
  if (const Value* values = node.if_contains("enum"); values && values->is_array()) {
    for (const Value& v : values->get_array()) {
      schema.enum_values.push_back(v.is_string() ? std::string(json::View(v.get_string()))
                                                 : json::Print(v));
    }
  }
}

void Reader::ReadChildren(
    const json::Object& node, const std::string& path, Schema& schema, int depth, bool logical) {
  const Value* extra = node.if_contains("additionalProperties");
  if (extra != nullptr && !logical) {
    if (node.contains("properties")) {
      Add(ForbiddenError(PathField(path, "additionalProperties"),
                         "additionalProperties and properties are mutual exclusive"));
    } else if (extra->is_bool()) {
      auto any = std::make_shared<Schema>();
      any->preserve_unknown = true;
      any->nullable = true;
      schema.items = any;
      if (!extra->get_bool()) {
        Add(ForbiddenError(PathField(path, "additionalProperties"),
                           "additionalProperties cannot be set to false"));
      }
    } else {
      schema.items = Read(*extra, PathField(path, "additionalProperties"), depth + 1);
    }
  }
  ReadProperties(node, path, schema, depth, logical);
  if (const Value* items = node.if_contains("items")) {
    schema.items = Read(*items, PathField(path, "items"), depth + 1, logical);
  } else if (schema.type == SchemaType::kArray) {
    Add(RequiredError(PathField(path, "items"), "must be specified"));
    schema.items = std::make_shared<Schema>();
  }
  if (schema.type == SchemaType::kArray) ReadList(node, path, schema);
  ReadLogic(node, path, schema, depth);
}

void Reader::ReadProperties(
    const json::Object& node, const std::string& path, Schema& schema, int depth, bool logical) {
  std::vector<std::string> required;
  if (const Value* list = node.if_contains("required"); list && list->is_array()) {
    for (const Value& name : list->get_array()) {
      if (name.is_string()) required.emplace_back(json::View(name.get_string()));
    }
  }
  if (const Value* properties = node.if_contains("properties");
      properties && properties->is_object()) {
    for (const auto& member : properties->get_object()) {
      SchemaField field;
      field.name = std::string(std::string_view(member.key()));
      std::string at = PathKey(PathField(path, "properties"), field.name);
      std::shared_ptr<Schema> child = Read(member.value(), at, depth + 1, logical);
      field.description = child->description;
      field.required = std::erase(required, field.name) > 0;
      const json::Object* text = member.value().if_object();
      const Value* fallback = text ? text->if_contains("default") : nullptr;
      if (fallback != nullptr && !logical) {
        field.default_value = std::make_shared<const Value>(*fallback);
        for (FieldError& e : ValidateAgainst(*child, *fallback, PathField(at, "default"))) {
          Add(std::move(e));
        }
      }
      field.schema = std::move(child);
      schema.fields.push_back(std::move(field));
    }
  }
  // Required members that have no schema of their own: in logical parts, mostly.
  for (std::string& name : required) {
    SchemaField field;
    field.name = std::move(name);
    auto any = std::make_shared<Schema>();
    any->preserve_unknown = true;
    any->nullable = true;
    field.schema = any;
    field.required = true;
    schema.fields.push_back(std::move(field));
  }
}

void Reader::ReadList(const json::Object& node, const std::string& path, Schema& schema) {
  std::string type = Text(node, "x-kubernetes-list-type");
  if (type == "set") schema.list_type = ListType::kSet;
  if (type != "map") return;
  schema.list_type = ListType::kMap;
  const Value* keys = node.if_contains("x-kubernetes-list-map-keys");
  if (keys && keys->is_array()) {
    for (const Value& key : keys->get_array()) {
      if (key.is_string()) schema.list_map_keys.emplace_back(json::View(key.get_string()));
    }
  }
  std::string at = PathField(path, "x-kubernetes-list-map-keys");
  if (schema.list_map_keys.empty()) {
    Add(RequiredError(at, "must not be empty if x-kubernetes-list-type is map"));
  }
  for (size_t i = 0; i < schema.list_map_keys.size(); ++i) {
    if (schema.items && schema.items->Field(schema.list_map_keys[i]) == nullptr) {
      Add(InvalidText(PathIndex(at, i), schema.list_map_keys[i],
                      "must be the name of a property of items"));
    }
  }
}

void Reader::ReadLogic(const json::Object& node,
                       const std::string& path,
                       Schema& schema,
                       int depth) {
  // The type is said already; structural schemas may repeat it in this one place.
  if (schema.type == SchemaType::kIntOrString) return;
  const std::pair<std::string_view, std::vector<SchemaPtr>*> lists[] = {
      {"allOf", &schema.all_of}, {"anyOf", &schema.any_of}, {"oneOf", &schema.one_of}};
  for (const auto& [key, target] : lists) {
    const Value* parts = node.if_contains(key);
    if (parts == nullptr || !parts->is_array()) continue;
    const json::Array& list = parts->get_array();
    for (size_t i = 0; i < list.size(); ++i) {
      std::shared_ptr<Schema> part =
          Read(list[i], PathIndex(PathField(path, key), i), depth + 1, true);
      part->nullable = true;
      target->push_back(part);
    }
  }
  if (const Value* part = node.if_contains("not"); part && part->is_object()) {
    std::shared_ptr<Schema> inner = Read(*part, PathField(path, "not"), depth + 1, true);
    inner->nullable = true;
    schema.not_schema = inner;
  }
}

void Reader::AddObjectFields(Schema& schema) {
  if (meta_ == nullptr) {
    SchemaLibrary library(EmbeddedSchemas());
    meta_ = library.Find("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
  }
  auto text = std::make_shared<Schema>();
  text->type = SchemaType::kString;
  auto set = [&schema](std::string name, SchemaPtr type, std::string description) {
    for (SchemaField& field : schema.fields) {
      if (field.name == name) {
        field.schema = std::move(type);
        return;
      }
    }
    SchemaField field;
    field.name = std::move(name);
    field.schema = std::move(type);
    field.description = std::move(description);
    schema.fields.push_back(std::move(field));
  };
  set("apiVersion", text, "The group and version that this object is written in.");
  set("kind", text, "What kind of object this is.");
  set("metadata", meta_, "Standard object metadata.");
}

void CheckRootMetadata(const Value& root,
                       const std::string& path,
                       std::vector<FieldError>& errors) {
  for (const auto& member : json::GetObject(root, {"properties", "metadata"})) {
    if (member.key() == "type" || member.key() == "description") continue;
    if (member.key() == "properties" && member.value().is_object()) {
      bool fine = true;
      for (const auto& p : member.value().get_object()) {
        fine = fine && (p.key() == "name" || p.key() == "generateName");
      }
      if (fine) continue;
    }
    errors.push_back(ForbiddenError(
        StrCat(path, ".properties[metadata]"),
        "must not specify anything other than name and generateName, but metadata is implicitly "
        "specified"));
    return;
  }
}

}  // namespace

SchemaPtr ReadOpenApiSchema(const Value& open_api_v3,
                            const std::string& path,
                            std::vector<FieldError>& errors) {
  Reader reader(errors);
  if (json::GetString(open_api_v3, {"type"}) != "object") {
    errors.push_back(InvalidText(PathField(path, "type"), json::GetString(open_api_v3, {"type"}),
                                 "must be object at the root"));
  }
  CheckRootMetadata(open_api_v3, path, errors);
  std::shared_ptr<Schema> schema = reader.Read(open_api_v3, path, 0);
  if (schema->type == SchemaType::kObject) reader.AddObjectFields(*schema);
  return schema;
}

Result<SchemaPtr> ParseOpenApiSchema(const Value& open_api_v3) {
  std::vector<FieldError> errors;
  SchemaPtr schema = ReadOpenApiSchema(open_api_v3, "openAPIV3Schema", errors);
  if (errors.empty()) return schema;
  StatusDetails details;
  for (const FieldError& e : errors) details.causes.push_back({e.reason, e.field, e.message});
  return Status(Code::kInvalid, StrCat(errors[0].field, ": ", errors[0].message),
                std::move(details));
}

}  // namespace swell::api
