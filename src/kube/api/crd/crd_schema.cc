#include "kube/api/crd/crd_schema.h"

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "json/texts.h"
#include "kube/api/schema/field_errors.h"
#include "kube/api/schema/field_rules.h"
#include "kube/api/schema/schema_pattern.h"
#include "kube/api/schema/schema_text.h"

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

// In the words of Go's regular expressions, as far as a glance at the pattern tells.
std::string WhyNoPattern(std::string_view pattern) {
  std::vector<size_t> open;
  size_t bracket = std::string_view::npos;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\') {
      if (i + 1 == pattern.size()) return "trailing backslash at end of expression: ``";
      ++i;
    } else if (bracket != std::string_view::npos) {
      if (c == ']' && i > bracket + 1) bracket = std::string_view::npos;
    } else if (c == '[') {
      bracket = i;
    } else if (c == '(') {
      open.push_back(i);
    } else if (c == ')') {
      if (open.empty()) return StrCat("unexpected ): `", pattern, "`");
      open.pop_back();
    } else if ((c == '*' || c == '+' || c == '?') && (i == 0 || pattern[i - 1] == '|')) {
      return StrCat("missing argument to repetition operator: `", std::string(1, c), "`");
    }
  }
  if (bracket != std::string_view::npos) {
    return StrCat("missing closing ]: `", pattern.substr(bracket), "`");
  }
  if (!open.empty()) return StrCat("missing closing ): `", pattern, "`");
  return StrCat("invalid or unsupported Perl syntax: `", pattern, "`");
}

// Where a schema stands. A logical one (allOf, anyOf, oneOf, not) only adds rules to another.
enum class Place { kRoot, kItem, kField, kLogical };

class Reader {
 public:
  std::shared_ptr<Schema> Read(const Value& node, const std::string& path, int depth, Place place);
  void AddObjectFields(Schema& schema);
  // All that is wrong. That a schema is not structural is reported when all of it can be
  // understood.
  void GiveErrors(std::vector<FieldError>& errors);

 private:
  void Add(FieldError error) {
    if (errors_.size() < kMaxErrors) errors_.push_back(std::move(error));
  }
  void NotStructural(FieldError error) {
    if (structural_.size() < kMaxErrors) structural_.push_back(std::move(error));
  }
  void ReadType(const json::Object& node, Schema& schema, Place place);
  void ReadRules(const json::Object& node, const std::string& path, Schema& schema);
  void ReadChildren(
      const json::Object& node, const std::string& path, Schema& schema, int depth, Place place);
  void ReadProperties(
      const json::Object& node, const std::string& path, Schema& schema, int depth, Place place);
  void ReadDefault(const Value& value,
                   const std::string& path,
                   const Schema& schema,
                   SchemaField& field);
  void ReadLogic(const json::Object& node, const std::string& path, Schema& schema, int depth);
  void ReadList(const json::Object& node, Schema& schema);
  void CheckListType(const json::Object& node, const std::string& path);
  void CheckListKeys(const json::Object& node, const std::string& path);
  void CheckMapType(const json::Object& node, const std::string& path);
  void CheckForbidden(const json::Object& node, const std::string& path);
  void CheckLogical(const json::Object& node, const std::string& path);
  void CheckType(const json::Object& node, const std::string& path, Place place);
  void CheckObjectFields(const json::Object& node, const std::string& path, Place place);

  std::vector<FieldError> errors_;
  std::vector<FieldError> structural_;
  bool understood_ = true;
  SchemaPtr meta_;
};

std::shared_ptr<Schema> Reader::Read(const Value& value,
                                     const std::string& path,
                                     int depth,
                                     Place place) {
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
  CheckForbidden(*node, path);
  ReadType(*node, *schema, place);
  ReadRules(*node, path, *schema);
  ReadChildren(*node, path, *schema, depth, place);
  CheckMapType(*node, path);
  CheckListType(*node, path);
  if (schema->type == SchemaType::kArray) ReadList(*node, *schema);
  if (place == Place::kLogical) {
    CheckLogical(*node, path);
  } else {
    CheckObjectFields(*node, path, place);
    CheckType(*node, path, place);
    if (schema->embedded_resource) AddObjectFields(*schema);
  }
  return schema;
}

void Reader::GiveErrors(std::vector<FieldError>& errors) {
  errors.insert(errors.end(), errors_.begin(), errors_.end());
  if (understood_) errors.insert(errors.end(), structural_.begin(), structural_.end());
}

void Reader::CheckForbidden(const json::Object& node, const std::string& path) {
  for (std::string_view key : {"$ref", "definitions", "dependencies", "additionalItems",
                               "patternProperties", "id", "$schema"}) {
    const Value* value = node.if_contains(key);
    if (value && !value->is_null() && !(value->is_string() && value->get_string().empty())) {
      Add(ForbiddenError(PathField(path, key), StrCat(key, " is not supported")));
      understood_ = false;
    }
  }
  const std::string type = Text(node, "type");
  if (!type.empty() && type != "object" && type != "array" && type != "string" &&
      type != "integer" && type != "number" && type != "boolean") {
    Add(NotSupportedError(PathField(path, "type"), type,
                          {"array", "boolean", "integer", "number", "object", "string"}));
    understood_ = false;
  }
  if (Flag(node, "uniqueItems")) {
    Add(ForbiddenError(PathField(path, "uniqueItems"),
                       "uniqueItems cannot be set to true since the runtime complexity becomes "
                       "quadratic"));
  }
  const Value* preserve = node.if_contains("x-kubernetes-preserve-unknown-fields");
  if (preserve != nullptr && preserve->is_bool() && !preserve->get_bool()) {
    Add(InvalidError(PathField(path, "x-kubernetes-preserve-unknown-fields"), *preserve,
                     "must be true or undefined"));
  }
}

void Reader::CheckLogical(const json::Object& node, const std::string& path) {
  static constexpr std::pair<std::string_view, std::string_view> kForbidden[] = {
      {"type", "empty"},
      {"additionalProperties", "undefined"},
      {"default", "undefined"},
      {"title", "empty"},
      {"description", "empty"},
      {"nullable", "false"},
      {"x-kubernetes-preserve-unknown-fields", "false"},
      {"x-kubernetes-embedded-resource", "false"},
      {"x-kubernetes-int-or-string", "false"},
      {"x-kubernetes-list-map-keys", "empty"},
      {"x-kubernetes-list-type", "undefined"},
      {"x-kubernetes-map-type", "undefined"}};
  for (const auto& [key, must] : kForbidden) {
    const Value* value = node.if_contains(key);
    if (value == nullptr || (value->is_bool() && !value->get_bool())) continue;
    NotStructural(
        ForbiddenError(PathField(path, key), StrCat("must be ", must, " to be structural")));
  }
  const Value* properties = node.if_contains("properties");
  if (properties && properties->is_object() && properties->get_object().contains("metadata")) {
    NotStructural(ForbiddenError(StrCat(path, ".properties[metadata]"),
                                 "must not be specified in a nested context"));
  }
}

void Reader::CheckType(const json::Object& node, const std::string& path, Place place) {
  const std::string type = Text(node, "type");
  const std::string at = PathField(path, "type");
  if (Flag(node, "x-kubernetes-embedded-resource") && type != "object") {
    constexpr std::string_view kWhy = "must be object if x-kubernetes-embedded-resource is true";
    NotStructural(type.empty() ? RequiredError(at, kWhy) : InvalidText(at, type, kWhy));
  } else if (type.empty() && !Flag(node, "x-kubernetes-int-or-string") &&
             !Flag(node, "x-kubernetes-preserve-unknown-fields")) {
    NotStructural(RequiredError(at, place == Place::kRoot   ? "must not be empty at the root"
                                    : place == Place::kItem ? "must not be empty for specified "
                                                              "array items"
                                                            : "must not be empty for specified "
                                                              "object fields"));
  }
  if (place == Place::kRoot && !type.empty() && type != "object") {
    NotStructural(InvalidText(at, type, "must be object at the root"));
  }
}

void Reader::CheckObjectFields(const json::Object& node, const std::string& path, Place place) {
  const bool embedded = Flag(node, "x-kubernetes-embedded-resource");
  static const Value kNothing = json::Object();
  const Value* given = node.if_contains("properties");
  const Value& properties = given != nullptr && given->is_object() ? *given : kNothing;
  if (place == Place::kRoot || embedded) {
    for (const auto& [name, type] :
         {std::pair{"kind", "string"}, {"apiVersion", "string"}, {"metadata", "object"}}) {
      const Value* property = json::Find(properties, {name});
      const std::string_view got = property ? json::GetString(*property, {"type"}) : type;
      if (got == type) continue;
      NotStructural(
          InvalidText(StrCat(path, ".properties[", name, "].type"), got, StrCat("must be ", type)));
    }
  }
  if (place == Place::kRoot) {
    for (const auto& member : json::GetObject(properties, {"metadata"})) {
      if (member.key() == "type" || member.key() == "description") continue;
      bool fine = member.key() == "properties" && member.value().is_object();
      for (const auto& p : json::GetObject(member.value(), {})) {
        fine = fine && (p.key() == "name" || p.key() == "generateName");
      }
      if (fine) continue;
      NotStructural(ForbiddenError(
          StrCat(path, ".properties[metadata]"),
          "must not specify anything other than name and generateName, but metadata is implicitly "
          "specified"));
      break;
    }
  }
  if (embedded && !Flag(node, "x-kubernetes-preserve-unknown-fields") &&
      properties.get_object().empty()) {
    NotStructural(RequiredError(PathField(path, "properties"),
                                "must not be empty if x-kubernetes-embedded-resource is true "
                                "without x-kubernetes-preserve-unknown-fields"));
  }
}

void Reader::ReadType(const json::Object& node, Schema& schema, Place place) {
  static constexpr std::pair<std::string_view, SchemaType> kTypes[] = {
      {"object", SchemaType::kObject}, {"array", SchemaType::kArray},
      {"string", SchemaType::kString}, {"integer", SchemaType::kInteger},
      {"number", SchemaType::kNumber}, {"boolean", SchemaType::kBoolean}};
  const std::string type = Text(node, "type");
  schema.type = place == Place::kLogical && node.contains("properties") ? SchemaType::kObject
                                                                        : SchemaType::kAny;
  for (const auto& [name, meant] : kTypes) {
    if (name == type) schema.type = meant;
  }
  // False: there are no fields but those that are named.
  const Value* extra = node.if_contains("additionalProperties");
  const bool open = extra != nullptr && !(extra->is_bool() && !extra->get_bool());
  if (schema.type == SchemaType::kObject && open) schema.type = SchemaType::kMap;
  if (Flag(node, "x-kubernetes-int-or-string")) schema.type = SchemaType::kIntOrString;
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
      NotStructural(InvalidText(PathField(path, "pattern"), schema.pattern,
                                StrCat("must be a valid regular expression, but isn't: error "
                                       "parsing regexp: ",
                                       WhyNoPattern(schema.pattern))));
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
    const json::Object& node, const std::string& path, Schema& schema, int depth, Place place) {
  const bool logical = place == Place::kLogical;
  if (const Value* items = node.if_contains("items")) {
    schema.items =
        Read(*items, PathField(path, "items"), depth + 1, logical ? Place::kLogical : Place::kItem);
  } else if (schema.type == SchemaType::kArray) {
    NotStructural(RequiredError(PathField(path, "items"), "must be specified"));
    schema.items = std::make_shared<Schema>();
  }
  ReadProperties(node, path, schema, depth, place);
  const Value* extra = node.if_contains("additionalProperties");
  if (extra != nullptr && !logical) {
    if (node.contains("properties") && !(extra->is_bool() && extra->get_bool())) {
      Add(ForbiddenError(PathField(path, "additionalProperties"),
                         "additionalProperties and properties are mutual exclusive"));
    } else if (extra->is_bool() && extra->get_bool()) {
      auto any = std::make_shared<Schema>();
      any->preserve_unknown = true;
      any->nullable = true;
      schema.items = any;
    } else if (!extra->is_bool()) {
      schema.items =
          Read(*extra, PathField(path, "additionalProperties"), depth + 1, Place::kField);
    }
  }
  ReadLogic(node, path, schema, depth);
}

void Reader::ReadDefault(const Value& value,
                         const std::string& path,
                         const Schema& schema,
                         SchemaField& field) {
  field.default_value = std::make_shared<const Value>(value);
  const std::string at = PathField(path, "default");
  // What is in it is told without its place there.
  for (const FieldError& e : ValidateAgainst(schema, value)) {
    std::string message = e.message;
    if (const size_t in = message.find(": in body "); in != std::string::npos) {
      message.insert(in + 1, " ");
    }
    Add({e.reason, at, message});
  }
  if (!UnknownFields(schema, value).empty()) {
    Add({"FieldValueInvalid", at,
         StrCat("Invalid value: ", ShowUntyped(value), ": must not have unknown fields")});
  }
}

void Reader::ReadProperties(
    const json::Object& node, const std::string& path, Schema& schema, int depth, Place place) {
  std::vector<std::string> required;
  if (const Value* list = node.if_contains("required"); list && list->is_array()) {
    required = json::Texts(list->get_array());
  }
  const bool logical = place == Place::kLogical;
  if (const Value* properties = node.if_contains("properties");
      properties && properties->is_object()) {
    for (const auto& member : properties->get_object()) {
      SchemaField field;
      field.name = std::string(std::string_view(member.key()));
      std::string at = PathKey(PathField(path, "properties"), field.name);
      std::shared_ptr<Schema> child =
          Read(member.value(), at, depth + 1, logical ? Place::kLogical : Place::kField);
      field.description = child->description;
      field.required = std::erase(required, field.name) > 0;
      const json::Object* text = member.value().if_object();
      const Value* fallback = text ? text->if_contains("default") : nullptr;
      if (fallback != nullptr && !logical) ReadDefault(*fallback, at, *child, field);
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

void Reader::CheckMapType(const json::Object& node, const std::string& path) {
  const std::string map_type = Text(node, "x-kubernetes-map-type");
  if (map_type.empty()) return;
  const std::string type = Text(node, "type");
  if (type != "object") {
    constexpr std::string_view kWhy = "must be object if x-kubernetes-map-type is specified";
    const std::string at = PathField(path, "type");
    Add(type.empty() ? RequiredError(at, kWhy) : InvalidText(at, type, kWhy));
  }
  if (map_type != "atomic" && map_type != "granular") {
    Add(NotSupportedError(PathField(path, "x-kubernetes-map-type"), map_type,
                          {"atomic", "granular"}));
  }
}

void Reader::CheckListType(const json::Object& node, const std::string& path) {
  const std::string list_type = Text(node, "x-kubernetes-list-type");
  const std::string type = Text(node, "type");
  const std::string at = PathField(path, "x-kubernetes-list-type");
  const Value* items = node.if_contains("items");
  if (!list_type.empty() && type != "array") {
    constexpr std::string_view kWhy = "must be array if x-kubernetes-list-type is specified";
    const std::string type_at = PathField(path, "type");
    Add(type.empty() ? RequiredError(type_at, kWhy) : InvalidText(type_at, type, kWhy));
  } else if (list_type == "set" && items != nullptr && items->is_object()) {
    // Its items are compared whole.
    const bool object = json::GetString(*items, {"type"}) == "object";
    const std::string_view key = object ? "x-kubernetes-map-type" : "x-kubernetes-list-type";
    const std::string_view how = json::GetString(*items, {key});
    const bool whole = how == "atomic" || (!object && how.empty()) ||
                       (!object && json::GetString(*items, {"type"}) != "array");
    if (!whole) {
      Add(InvalidError(PathField(PathField(path, "items"), key), Value(),
                       "must be atomic as item of a list with x-kubernetes-list-type=set"));
    }
  }
  if (!list_type.empty() && list_type != "atomic" && list_type != "set" && list_type != "map") {
    Add(NotSupportedError(at, list_type, {"atomic", "set", "map"}));
  }
  const Value* keys = node.if_contains("x-kubernetes-list-map-keys");
  if (keys && keys->is_array() && !keys->get_array().empty() && list_type != "map") {
    constexpr std::string_view kWhy = "must be map if x-kubernetes-list-map-keys is non-empty";
    Add(list_type.empty() ? RequiredError(at, kWhy) : InvalidText(at, list_type, kWhy));
  }
  if (list_type == "map") CheckListKeys(node, path);
}

void Reader::CheckListKeys(const json::Object& node, const std::string& path) {
  static const Value kNothing = json::Object();
  const std::string at = PathField(path, "x-kubernetes-list-map-keys");
  const Value* given = node.if_contains("x-kubernetes-list-map-keys");
  const json::Array keys = given && given->is_array() ? given->get_array() : json::Array();
  const Value* list_items = node.if_contains("items");
  const Value& items = list_items ? *list_items : kNothing;
  const std::string items_at = PathField(path, "items");
  if (keys.empty()) {
    Add(RequiredError(at, "must not be empty if x-kubernetes-list-type is map"));
  }
  if (list_items == nullptr) {
    Add(RequiredError(items_at, "must have a schema if x-kubernetes-list-type is map"));
    return;
  }
  if (const std::string_view type = json::GetString(items, {"type"}); type != "object") {
    Add(InvalidText(PathField(items_at, "type"), type,
                    "must be object if parent array's x-kubernetes-list-type is map"));
    return;
  }
  std::set<std::string> seen;
  std::vector<FieldError> later;
  const json::Array& required = json::GetArray(items, {"required"});
  for (const Value& item : keys) {
    if (!item.is_string()) continue;
    const std::string key(json::View(item.get_string()));
    const std::string key_at = PathKey(PathField(items_at, "properties"), key);
    const Value* property = json::Find(items, {"properties", key});
    if (property == nullptr) {
      Add(InvalidTexts(at, keys, "entries must all be names of item properties"));
    } else {
      const std::string_view type = json::GetString(*property, {"type"});
      if (type == "array" || type == "object") {
        Add(InvalidText(PathField(key_at, "type"), "object",
                        "must be a scalar type if parent array's x-kubernetes-list-type is map"));
      }
      if (std::find(required.begin(), required.end(), item) == required.end() &&
          json::Find(*property, {"default"}) == nullptr) {
        later.push_back(RequiredError(PathField(key_at, "default"),
                                      "this property is in x-kubernetes-list-map-keys, so it must "
                                      "have a default or be a required property"));
      }
    }
    if (!seen.insert(key).second) Add(InvalidTexts(at, keys, "must not contain duplicate entries"));
  }
  for (FieldError& error : later) Add(std::move(error));
}

void Reader::ReadList(const json::Object& node, Schema& schema) {
  std::string type = Text(node, "x-kubernetes-list-type");
  if (type == "set") schema.list_type = ListType::kSet;
  if (type != "map") return;
  schema.list_type = ListType::kMap;
  const Value* keys = node.if_contains("x-kubernetes-list-map-keys");
  if (keys == nullptr || !keys->is_array()) return;
  for (const Value& key : keys->get_array()) {
    if (key.is_string()) schema.list_map_keys.emplace_back(json::View(key.get_string()));
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
          Read(list[i], PathIndex(PathField(path, key), i), depth + 1, Place::kLogical);
      part->nullable = true;
      target->push_back(part);
    }
  }
  if (const Value* part = node.if_contains("not"); part && part->is_object()) {
    std::shared_ptr<Schema> inner = Read(*part, PathField(path, "not"), depth + 1, Place::kLogical);
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

}  // namespace

SchemaPtr ReadOpenApiSchema(const Value& open_api_v3,
                            const std::string& path,
                            std::vector<FieldError>& errors) {
  Reader reader;
  std::shared_ptr<Schema> schema = reader.Read(open_api_v3, path, 0, Place::kRoot);
  if (schema->type == SchemaType::kObject) reader.AddObjectFields(*schema);
  reader.GiveErrors(errors);
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
