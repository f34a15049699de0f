#include "kube/api/schema/decode_problem.h"

#include <map>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/quantity.h"

namespace swell::api {
namespace {

constexpr int kMaxDepth = 128;

// "io.k8s.api.apps.v1.DeploymentSpec" → "DeploymentSpec".
std::string_view ShortName(std::string_view full) { return full.substr(full.rfind('.') + 1); }

std::string GoType(const Schema& schema) {
  switch (schema.type) {
    case SchemaType::kObject: {
      std::string_view rest = schema.name;
      const std::string_view name = ShortName(rest);
      if (rest.size() <= name.size()) return "struct";
      rest.remove_suffix(name.size() + 1);
      return StrCat(ShortName(rest), ".", name);
    }
    case SchemaType::kMap:
      if (schema.items->type == SchemaType::kQuantity) return "v1.ResourceList";
      return StrCat("map[string]", GoType(*schema.items));
    case SchemaType::kArray:
      return StrCat("[]", GoType(*schema.items));
    case SchemaType::kInteger:
      return schema.format;
    case SchemaType::kNumber:
      return "float64";
    case SchemaType::kBoolean:
      return "bool";
    case SchemaType::kIntOrString:
      return "intstr.IntOrString";
    case SchemaType::kQuantity:
      return "resource.Quantity";
    case SchemaType::kTime:
      return "v1.Time";
    case SchemaType::kMicroTime:
      return "v1.MicroTime";
    case SchemaType::kString:
    case SchemaType::kAny:
      break;
  }
  return schema.format == "byte" ? "[]uint8" : "string";
}

// What encoding/json calls the value in its way.
std::string JsonWord(const json::Value& value, bool with_number) {
  if (value.is_bool()) return "bool";
  if (value.is_string()) return "string";
  if (value.is_array()) return "array";
  if (value.is_object()) return "object";
  return with_number ? StrCat("number ", json::Print(value)) : "number";
}

// What reflect calls it.
std::string_view GoKind(const json::Value& value) {
  if (value.is_bool()) return "bool";
  if (value.is_string()) return "string";
  if (value.is_array()) return "slice";
  if (value.is_object()) return "map";
  return value.is_double() ? "float64" : "int64";
}

std::string_view KindOfType(const Schema& schema) {
  switch (schema.type) {
    case SchemaType::kInteger:
      return schema.format;
    case SchemaType::kNumber:
      return "float64";
    case SchemaType::kBoolean:
      return "bool";
    default:
      return "string";
  }
}

bool FitsInteger(const Schema& schema, const json::Value& value) {
  if (!value.is_int64()) return false;  // Boost keeps what int64 holds as int64
  return schema.format != "int32" ||
         (value.get_int64() >= INT32_MIN && value.get_int64() <= INT32_MAX);
}

std::string Base64Problem(std::string_view text, DecodeForm form) {
  if (Base64Decode(text)) return {};
  size_t at = 0;
  while (at < text.size() &&
         (isalnum(static_cast<unsigned char>(text[at])) || text[at] == '+' || text[at] == '/')) {
    ++at;
  }
  return StrCat(form == DecodeForm::kConverted ? "error decoding from json: " : "",
                "illegal base64 data at input byte ", at == text.size() ? at / 4 * 4 : at);
}

class Finder {
 public:
  explicit Finder(DecodeForm form) : form_(form) {}

  std::string Find(const Schema& schema, const json::Value& value, int depth);

 private:
  std::string FindInObject(const Schema& schema, const json::Object& object, int depth);
  std::string Mismatch(const Schema& schema, const json::Value& value) const;
  std::string FindInScalar(const Schema& schema, const json::Value& value) const;

  const DecodeForm form_;
  std::string struct_;
  std::string path_;
};

std::string Finder::Mismatch(const Schema& schema, const json::Value& value) const {
  if (form_ == DecodeForm::kConverted) {
    const std::string_view got = GoKind(value);
    switch (schema.type) {
      case SchemaType::kMap:
        return StrCat("cannot restore map from ", got);
      case SchemaType::kArray:
        return StrCat("cannot restore slice from ", got);
      case SchemaType::kObject:
        return StrCat("cannot restore struct from: ", got);
      case SchemaType::kString:
        if (schema.format == "byte") return StrCat("cannot restore slice from ", got);
        if (got == "int64") return "cannot convert int64 to string";
        break;
      case SchemaType::kInteger:
        if (got == "float64") return StrCat("cannot convert float64 to ", schema.format);
        break;
      default:
        break;
    }
    return StrCat("unrecognized type: ", KindOfType(schema));
  }
  const bool wants_number =
      schema.type == SchemaType::kInteger || schema.type == SchemaType::kNumber;
  const std::string word = JsonWord(value, wants_number && value.is_number());
  const std::string type = GoType(schema);
  if (struct_.empty()) {
    return StrCat("json: cannot unmarshal ", word, " into Go value of type ", type);
  }
  return StrCat("json: cannot unmarshal ", word, " into Go struct field ", struct_, ".", path_,
                " of type ", type);
}

std::string Finder::FindInObject(const Schema& schema, const json::Object& object, int depth) {
  const std::string outer = struct_;
  const size_t length = path_.size();
  std::string problem;
  for (const auto& member : object) {
    const SchemaField* field = schema.Field(member.key());
    if (field == nullptr) continue;
    struct_ = ShortName(schema.name);
    path_ += StrCat(path_.empty() ? "" : ".", field->name);
    problem = Find(*field->schema, member.value(), depth + 1);
    path_.resize(length);
    if (!problem.empty()) break;
  }
  struct_ = outer;
  return problem;
}

std::string Finder::FindInScalar(const Schema& schema, const json::Value& value) const {
  switch (schema.type) {
    case SchemaType::kInteger:
      return FitsInteger(schema, value) ? "" : Mismatch(schema, value);
    case SchemaType::kNumber:
      return value.is_number() ? "" : Mismatch(schema, value);
    case SchemaType::kBoolean:
      return value.is_bool() ? "" : Mismatch(schema, value);
    case SchemaType::kString:
      if (!value.is_string()) return Mismatch(schema, value);
      return schema.format == "byte" ? Base64Problem(json::View(value.get_string()), form_) : "";
    case SchemaType::kIntOrString: {
      if (value.is_string()) return {};
      Schema number;
      number.format = "int32";
      if (FitsInteger(number, value)) return {};
      return StrCat("json: cannot unmarshal ", JsonWord(value, value.is_number()),
                    " into Go value of type int32");
    }
    case SchemaType::kQuantity: {
      const auto parsed = Quantity::FromJson(value);
      return parsed.ok() ? ""
                         : "quantities must match the regular expression "
                           "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    }
    case SchemaType::kTime:
    case SchemaType::kMicroTime: {
      if (!value.is_string()) {
        return StrCat("json: cannot unmarshal ", JsonWord(value, false),
                      " into Go value of type string");
      }
      const std::string_view text = json::View(value.get_string());
      if (ParseTime(text)) return {};
      return StrCat("parsing time ", Quote(text), " as \"2006-01-02T15:04:05",
                    schema.type == SchemaType::kMicroTime ? ".000000" : "",
                    "Z07:00\": cannot parse ", Quote(text), " as \"2006\"");
    }
    default:
      return {};
  }
}

std::string Finder::Find(const Schema& schema, const json::Value& value, int depth) {
  if (value.is_null() || schema.type == SchemaType::kAny || depth > kMaxDepth) return {};
  if (schema.type == SchemaType::kObject) {
    if (!value.is_object()) return Mismatch(schema, value);
    return FindInObject(schema, value.get_object(), depth);
  }
  if (schema.type == SchemaType::kMap) {
    if (!value.is_object()) return Mismatch(schema, value);
    for (const auto& member : value.get_object()) {
      std::string problem = Find(*schema.items, member.value(), depth + 1);
      if (!problem.empty()) return problem;
    }
    return {};
  }
  if (schema.type == SchemaType::kArray) {
    if (!value.is_array()) return Mismatch(schema, value);
    for (const json::Value& item : value.get_array()) {
      std::string problem = Find(*schema.items, item, depth + 1);
      if (!problem.empty()) return problem;
    }
    return {};
  }
  return FindInScalar(schema, value);
}

}  // namespace

std::string FindDecodeProblem(const Schema& schema, const json::Value& value, DecodeForm form) {
  return Finder(form).Find(schema, value, 0);
}

std::string GoText(const json::Value& value) {
  if (value.is_null()) return "<nil>";
  if (value.is_string()) return std::string(json::View(value.get_string()));
  if (value.is_array()) {
    std::string text;
    for (const json::Value& item : value.get_array()) {
      text += StrCat(text.empty() ? "" : " ", GoText(item));
    }
    return StrCat("[", text, "]");
  }
  if (!value.is_object()) return json::Print(value);
  std::map<std::string, const json::Value*> sorted;
  for (const auto& member : value.get_object()) {
    sorted[std::string(std::string_view(member.key()))] = &member.value();
  }
  std::string text;
  for (const auto& [key, member] : sorted) {
    text += StrCat(text.empty() ? "" : " ", key, ":", GoText(*member));
  }
  return StrCat("map[", text, "]");
}

}  // namespace swell::api
