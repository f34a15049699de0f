// ValidateAgainst: schemas' own rules, worded as Kubernetes words them for custom resources.
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/quantity.h"
#include "kube/api/schema/field_errors.h"
#include "kube/api/schema/field_rules.h"
#include "kube/api/schema/schema.h"
#include "kube/api/schema/schema_formats.h"
#include "kube/api/schema/schema_pattern.h"

namespace swell::api {
namespace {

constexpr size_t kMaxErrors = 100;
constexpr int kMaxDepth = 128;

std::string_view KindOfValue(const json::Value& value) {
  switch (value.kind()) {
    case boost::json::kind::null:
      return "null";
    case boost::json::kind::bool_:
      return "boolean";
    case boost::json::kind::int64:
    case boost::json::kind::uint64:
      return "integer";
    case boost::json::kind::double_:
      return "number";
    case boost::json::kind::string:
      return "string";
    case boost::json::kind::array:
      return "array";
    case boost::json::kind::object:
      return "object";
  }
  return "";
}

std::string_view TypeWord(SchemaType type) {
  return type == SchemaType::kIntOrString ? "integer,string" : TypeName(type);
}

double AsDouble(const json::Value& value) {
  if (value.is_int64()) return static_cast<double>(value.get_int64());
  if (value.is_uint64()) return static_cast<double>(value.get_uint64());
  return value.get_double();
}

bool IsInteger(const json::Value& value) {
  if (value.is_int64() || value.is_uint64()) return true;
  return value.is_double() && std::floor(value.get_double()) == value.get_double() &&
         std::abs(value.get_double()) < 9.2e18;
}

// Unicode code points: what minLength and maxLength count.
int64_t CountChars(std::string_view text) {
  int64_t n = 0;
  for (char c : text) n += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return n;
}

std::string QuotedList(const std::vector<std::string>& texts) {
  std::vector<std::string> quoted;
  quoted.reserve(texts.size());
  for (const std::string& text : texts) quoted.push_back(Quote(text));
  return Join(quoted, ", ");
}

class Validator {
 public:
  Validator(std::string path, std::vector<FieldError>& errors)
      : path_(std::move(path)), errors_(errors) {}

  void Check(const Schema& schema, const json::Value& value, int depth);

 private:
  void CheckType(const Schema& schema, const json::Value& value, int depth);
  void CheckString(const Schema& schema, const json::Value& value);
  void CheckNumber(const Schema& schema, const json::Value& value);
  void CheckArray(const Schema& schema, const json::Array& list, int depth);
  void CheckUnique(const Schema& schema, const json::Array& list);
  void CheckObject(const Schema& schema, const json::Value& value, int depth);
  void CheckEmbedded(const json::Value& object);
  void CheckFormat(const Schema& schema, const json::Value& value);
  void CheckLogic(const Schema& schema, const json::Value& value, int depth);
  std::vector<FieldError> ErrorsOf(const Schema& schema, const json::Value& value, int depth) const;
  int CountPassing(const std::vector<SchemaPtr>& parts,
                   const json::Value& value,
                   int depth,
                   std::vector<FieldError>& nearest) const;
  void InvalidChoice(std::string_view detail);

  void Add(FieldError error) {
    if (errors_.size() < kMaxErrors) errors_.push_back(std::move(error));
  }
  void Invalid(const json::Value& value, std::string_view detail) {
    Add(InvalidError(path_, value, StrCat(path_, path_.empty() ? "" : " ", "in body ", detail)));
  }
  // A format is a part of the type.
  void WrongFormat(std::string_view format, const json::Value& value) {
    Add({"FieldValueTypeInvalid", path_,
         StrCat("Invalid value: ", ShowValue(value), ": ", path_, path_.empty() ? "" : " ",
                "in body must be of type ", format, ": ", ShowValue(value))});
  }
  void WrongType(const Schema& schema, const json::Value& value) {
    std::string_view got = KindOfValue(value);
    Add({"FieldValueTypeInvalid", path_,
         StrCat("Invalid value: \"", got, "\": ", path_, path_.empty() ? "" : " ",
                "in body must be of type ", TypeWord(schema.type), ": \"", got, "\"")});
    if (schema.enum_values.empty() || value.is_null() || value.is_structured()) return;
    Add({"FieldValueNotSupported", path_,
         StrCat("Unsupported value: ", ShowValue(value),
                ": supported values: ", QuotedList(schema.enum_values))});
  }

  std::string path_;
  std::vector<FieldError>& errors_;
};

void Validator::Check(const Schema& schema, const json::Value& value, int depth) {
  if (errors_.size() >= kMaxErrors) return;
  if (depth > kMaxDepth) {
    Invalid(json::Value("..."), "is nested too deeply");
    return;
  }
  if (value.is_null()) {
    if (!schema.nullable && schema.type != SchemaType::kAny) WrongType(schema, value);
    return;
  }
  CheckType(schema, value, depth);
  CheckLogic(schema, value, depth);
}

void Validator::CheckType(const Schema& schema, const json::Value& value, int depth) {
  switch (schema.type) {
    case SchemaType::kAny:
      if (schema.format == "object" && !value.is_object()) {
        Invalid(value, "must be an object");
      } else {
        CheckObject(schema, value, depth);
      }
      return;
    case SchemaType::kObject:
    case SchemaType::kMap:
      if (!value.is_object()) return WrongType(schema, value);
      return CheckObject(schema, value, depth);
    case SchemaType::kArray:
      if (!value.is_array()) return WrongType(schema, value);
      return CheckArray(schema, value.get_array(), depth);
    case SchemaType::kInteger:
      if (!IsInteger(value)) return WrongType(schema, value);
      return CheckNumber(schema, value);
    case SchemaType::kNumber:
      if (!value.is_number()) return WrongType(schema, value);
      return CheckNumber(schema, value);
    case SchemaType::kBoolean:
      if (!value.is_bool()) WrongType(schema, value);
      return;
    case SchemaType::kIntOrString:
      if (value.is_string()) return CheckString(schema, value);
      if (!IsInteger(value)) return WrongType(schema, value);
      return CheckNumber(schema, value);
    case SchemaType::kQuantity: {
      Result<Quantity> parsed = Quantity::FromJson(value);
      if (!parsed.ok()) Add(InvalidError(path_, value, parsed.status().message()));
      return;
    }
    case SchemaType::kTime:
    case SchemaType::kMicroTime:
      if (!value.is_string()) return WrongType(schema, value);
      if (!ParseTime(json::View(value.get_string()))) {
        WrongFormat("date-time", value);
      }
      return;
    case SchemaType::kString:
      if (!value.is_string()) return WrongType(schema, value);
      return CheckString(schema, value);
  }
}

void Validator::CheckString(const Schema& schema, const json::Value& value) {
  std::string_view text = json::View(value.get_string());
  // One of these at most, as Kubernetes reports it.
  if (schema.max_length >= 0 && CountChars(text) > schema.max_length) {
    Add({"FieldValueTooLong", path_,
         StrCat("Too long: may not be more than ", schema.max_length, " bytes")});
  } else if (schema.min_length >= 0 && CountChars(text) < schema.min_length) {
    Invalid(value, StrCat("should be at least ", schema.min_length, " chars long"));
  } else if (schema.compiled_pattern && !schema.compiled_pattern->Matches(text)) {
    Invalid(value, StrCat("should match '", schema.pattern, "'"));
  }
  if (!schema.enum_values.empty()) {
    bool known = false;
    for (const std::string& e : schema.enum_values) known = known || e == text;
    // An empty string in a built-in type is an absent one.
    if (!known && !(text.empty() && schema.nullable)) {
      Add(NotSupportedError(path_, text, schema.enum_values));
    }
  }
  CheckFormat(schema, value);
}

void Validator::CheckFormat(const Schema& schema, const json::Value& value) {
  const std::string_view text = json::View(value.get_string());
  if (schema.format.empty() || (text.empty() && schema.nullable)) return;
  if (HasFormat(text, schema.format)) return;
  WrongFormat(schema.format, value);
}

void Validator::CheckNumber(const Schema& schema, const json::Value& value) {
  if (schema.format == "int32") {
    double v = AsDouble(value);
    if (v < -2147483648.0 || v > 2147483647.0) {
      Invalid(value, "must be of type int32: the number does not fit");
    }
  }
  const bool above = value.is_uint64() && value.get_uint64() > static_cast<uint64_t>(INT64_MAX);
  if (above && schema.type == SchemaType::kInteger) {
    Invalid(value, "must be of type int64: the number does not fit");
  }
  auto bound = [](const std::string& text) {
    double out = 0;
    std::from_chars(text.data(), text.data() + text.size(), out);
    return out;
  };
  double v = AsDouble(value);
  if (!schema.minimum.empty()) {
    double min = bound(schema.minimum);
    if (schema.exclusive_minimum ? v <= min : v < min) {
      Invalid(value, StrCat("should be greater than ",
                            schema.exclusive_minimum ? "" : "or equal to ", schema.minimum));
    }
  }
  if (!schema.maximum.empty()) {
    double max = bound(schema.maximum);
    if (schema.exclusive_maximum ? v >= max : v > max) {
      Invalid(value, StrCat("should be less than ", schema.exclusive_maximum ? "" : "or equal to ",
                            schema.maximum));
    }
  }
  if (!schema.multiple_of.empty()) {
    double step = bound(schema.multiple_of);
    if (step > 0 && std::abs(std::remainder(v, step)) > step * 1e-9) {
      Invalid(value, StrCat("should be a multiple of ", schema.multiple_of));
    }
  }
  if (!schema.enum_values.empty()) {
    std::string text = json::Print(value);
    bool known = false;
    for (const std::string& e : schema.enum_values) known = known || e == text;
    if (!known) Add(NotSupportedError(path_, text, schema.enum_values));
  }
}

void Validator::CheckArray(const Schema& schema, const json::Array& list, int depth) {
  auto size = static_cast<int64_t>(list.size());
  if (schema.min_items >= 0 && size < schema.min_items) {
    Invalid(json::Value(size), StrCat("should have at least ", schema.min_items, " items"));
  }
  if (schema.max_items >= 0 && size > schema.max_items) {
    Add(TooManyError(path_, list.size(), static_cast<size_t>(schema.max_items)));
    return;
  }
  CheckUnique(schema, list);
  if (!schema.items) return;
  size_t length = path_.size();
  for (size_t i = 0; i < list.size() && errors_.size() < kMaxErrors; ++i) {
    path_ += StrCat("[", i, "]");
    Check(*schema.items, list[i], depth + 1);
    path_.resize(length);
  }
}

void Validator::CheckUnique(const Schema& schema, const json::Array& list) {
  // Built-in types say their uniqueness rules themselves (validate.cc): Kubernetes does not
  // enforce list keys on them.
  bool keyed = schema.list_type == ListType::kMap && !schema.list_map_keys.empty();
  bool custom = !schema.nullable || schema.unique_items;
  if (!custom || (!keyed && schema.list_type != ListType::kSet && !schema.unique_items)) return;
  std::set<std::string> seen;
  for (size_t i = 0; i < list.size(); ++i) {
    json::Value key = list[i];
    if (keyed) {
      key = json::Object();
      const json::Object* object = list[i].if_object();
      for (const std::string& name : schema.list_map_keys) {
        const json::Value* part = object ? object->if_contains(name) : nullptr;
        if (part) key.get_object()[name] = *part;
      }
    }
    if (seen.insert(json::Print(key)).second) continue;
    Add({"FieldValueDuplicate", PathIndex(path_, i),
         StrCat("Duplicate value: ", ShowUntyped(key))});
  }
}

void Validator::CheckEmbedded(const json::Value& object) {
  for (std::string_view field : {"apiVersion", "kind"}) {
    if (json::GetString(object, {field}).empty()) {
      Add(RequiredError(PathField(path_, field), "must not be empty"));
    }
  }
  std::vector<FieldError> errors;
  const std::string at = PathField(path_, "metadata");
  if (const json::Value* labels = json::Find(object, {"metadata", "labels"})) {
    CheckLabels(*labels, PathField(at, "labels"), errors);
  }
  if (const json::Value* annotations = json::Find(object, {"metadata", "annotations"})) {
    CheckAnnotations(*annotations, PathField(at, "annotations"), errors);
  }
  for (FieldError& error : errors) Add(std::move(error));
}

void Validator::CheckObject(const Schema& schema, const json::Value& value, int depth) {
  const json::Object* object = value.if_object();
  if (object == nullptr) return;
  auto size = static_cast<int64_t>(object->size());
  if (schema.min_properties >= 0 && size < schema.min_properties) {
    Invalid(json::Value(size),
            StrCat("should have at least ", schema.min_properties, " properties"));
  }
  if (schema.max_properties >= 0 && size > schema.max_properties) {
    Add(TooManyError(path_, object->size(), static_cast<size_t>(schema.max_properties)));
  }
  if (schema.embedded_resource) CheckEmbedded(value);
  size_t length = path_.size();
  auto descend = [&](const Schema& child, std::string_view key, const json::Value& member) {
    if (!path_.empty()) path_ += '.';
    path_ += key;
    Check(child, member, depth + 1);
    path_.resize(length);
  };
  if (schema.type == SchemaType::kMap) {
    if (!schema.items) return;
    for (const auto& member : *object) descend(*schema.items, member.key(), member.value());
    return;
  }
  for (const SchemaField& field : schema.fields) {
    const json::Value* member = object->if_contains(field.name);
    bool absent =
        member == nullptr || (member->is_null() && field.schema->nullable && !schema.name.empty());
    if (absent) {
      if (field.required) Add(RequiredError(PathField(path_, field.name)));
      continue;
    }
    descend(*field.schema, field.name, *member);
  }
}

std::vector<FieldError> Validator::ErrorsOf(const Schema& schema,
                                            const json::Value& value,
                                            int depth) const {
  std::vector<FieldError> errors;
  Validator inner(path_, errors);
  inner.Check(schema, value, depth + 1);
  return errors;
}

// How many parts hold; when none does, also what is wrong with the one that is nearest to it.
int Validator::CountPassing(const std::vector<SchemaPtr>& parts,
                            const json::Value& value,
                            int depth,
                            std::vector<FieldError>& nearest) const {
  int passing = 0;
  nearest.clear();
  bool first = true;
  for (const SchemaPtr& part : parts) {
    std::vector<FieldError> errors = ErrorsOf(*part, value, depth);
    passing += errors.empty() ? 1 : 0;
    if (first || errors.size() < nearest.size()) nearest = std::move(errors);
    first = false;
  }
  return passing;
}

// Errors about alternatives are about no field in particular.
void Validator::InvalidChoice(std::string_view detail) {
  Add({"FieldValueInvalid", "<nil>", StrCat("Invalid value: \"\": ", Quote(path_), " ", detail)});
}

void Validator::CheckLogic(const Schema& schema, const json::Value& value, int depth) {
  std::vector<FieldError> nearest;
  for (const SchemaPtr& part : schema.all_of) {
    size_t before = errors_.size();
    Check(*part, value, depth + 1);
    if (errors_.size() > before) InvalidChoice("must validate all the schemas (allOf)");
  }
  if (!schema.any_of.empty() && CountPassing(schema.any_of, value, depth, nearest) == 0) {
    InvalidChoice("must validate at least one schema (anyOf)");
    for (FieldError& error : nearest) Add(std::move(error));
  }
  if (!schema.one_of.empty()) {
    int passing = CountPassing(schema.one_of, value, depth, nearest);
    if (passing == 0) {
      InvalidChoice("must validate one and only one schema (oneOf). Found none valid");
      for (FieldError& error : nearest) Add(std::move(error));
    } else if (passing > 1) {
      InvalidChoice(StrCat("must validate one and only one schema (oneOf). Found ", passing,
                           " valid alternatives"));
    }
  }
  if (schema.not_schema && ErrorsOf(*schema.not_schema, value, depth).empty()) {
    InvalidChoice("must not validate the schema (not)");
  }
}

}  // namespace

std::vector<FieldError> ValidateAgainst(const Schema& schema,
                                        const json::Value& value,
                                        const std::string& path) {
  std::vector<FieldError> errors;
  Validator(path, errors).Check(schema, value, 0);
  return errors;
}

}  // namespace swell::api
