// OpenAPI v2 on the wire: gnostic's openapi_v2.proto, written from the JSON document.
// Numbers are that file's field numbers.
#include <cstring>

#include "base/strings.h"
#include "kube/api/openapi/openapi.h"

namespace swell::api {
namespace {

using json::Object;
using json::Value;

class Message {
 public:
  void Text(int field, std::string_view text) {
    Key(field, 2);
    Varint(text.size());
    bytes_.append(text);
  }
  void Sub(int field, const Message& message) { Text(field, message.bytes_); }
  void Bool(int field, bool value) {
    Key(field, 0);
    Varint(value ? 1 : 0);
  }
  void Integer(int field, int64_t value) {
    Key(field, 0);
    Varint(static_cast<uint64_t>(value));
  }
  void Double(int field, double value) {
    Key(field, 1);
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    bytes_.append(raw, sizeof raw);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  void Key(int field, int wire) { Varint(static_cast<uint64_t>(field) << 3 | wire); }
  void Varint(uint64_t value) {
    while (value >= 0x80) {
      bytes_ += static_cast<char>(value | 0x80);
      value >>= 7;
    }
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

// Any, as gnostic reads it: YAML, of which JSON is a part.
Message AnyOf(const Value& value) {
  Message out;
  out.Text(2, json::Print(value));
  return out;
}

template <class Fn>
void EachExtension(const Object& object, Fn fn) {
  for (const auto& member : object) {
    if (!std::string_view(member.key()).starts_with("x-")) continue;
    Message named;
    named.Text(1, member.key());
    named.Sub(2, AnyOf(member.value()));
    fn(named);
  }
}

void TextField(const Object& from, std::string_view key, int field, Message& out) {
  const Value* value = from.if_contains(key);
  if (value && value->is_string()) out.Text(field, json::View(value->get_string()));
}

void BoolField(const Object& from, std::string_view key, int field, Message& out) {
  const Value* value = from.if_contains(key);
  if (value && value->is_bool() && value->get_bool()) out.Bool(field, true);
}

void TextList(const Object& from, std::string_view key, int field, Message& out) {
  const Value* value = from.if_contains(key);
  if (value == nullptr || !value->is_array()) return;
  for (const Value& item : value->get_array()) {
    if (item.is_string()) out.Text(field, json::View(item.get_string()));
  }
}

double Number(const Value& value) {
  if (value.is_int64()) return static_cast<double>(value.get_int64());
  if (value.is_uint64()) return static_cast<double>(value.get_uint64());
  return value.is_double() ? value.get_double() : 0;
}

Message SchemaMessage(const Value& value);

void SchemaRules(const Object& object, Message& out) {
  const std::pair<std::string_view, int> doubles[] = {
      {"multipleOf", 6}, {"maximum", 7}, {"minimum", 9}};
  for (const auto& [key, field] : doubles) {
    if (const Value* value = object.if_contains(key)) out.Double(field, Number(*value));
  }
  const std::pair<std::string_view, int> integers[] = {
      {"maxLength", 11}, {"minLength", 12},     {"maxItems", 14},
      {"minItems", 15},  {"maxProperties", 17}, {"minProperties", 18}};
  for (const auto& [key, field] : integers) {
    const Value* value = object.if_contains(key);
    if (value && value->is_int64()) out.Integer(field, value->get_int64());
  }
  BoolField(object, "exclusiveMaximum", 8, out);
  BoolField(object, "exclusiveMinimum", 10, out);
  TextField(object, "pattern", 13, out);
}

Message SchemaMessage(const Value& value) {
  Message out;
  const Object* object = value.if_object();
  if (object == nullptr) return out;
  TextField(*object, "$ref", 1, out);
  TextField(*object, "format", 2, out);
  TextField(*object, "description", 4, out);
  if (const Value* fallback = object->if_contains("default")) out.Sub(5, AnyOf(*fallback));
  SchemaRules(*object, out);
  TextList(*object, "required", 19, out);
  if (const Value* values = object->if_contains("enum"); values && values->is_array()) {
    for (const Value& v : values->get_array()) out.Sub(20, AnyOf(v));
  }
  if (const Value* extra = object->if_contains("additionalProperties")) {
    Message item;
    item.Sub(1, SchemaMessage(*extra));
    out.Sub(21, item);
  }
  if (const Value* type = object->if_contains("type"); type && type->is_string()) {
    Message item;
    item.Text(1, json::View(type->get_string()));
    out.Sub(22, item);
  }
  if (const Value* items = object->if_contains("items")) {
    Message item;
    item.Sub(1, SchemaMessage(*items));
    out.Sub(23, item);
  }
  if (const Value* properties = object->if_contains("properties");
      properties && properties->is_object()) {
    Message list;
    for (const auto& member : properties->get_object()) {
      Message named;
      named.Text(1, member.key());
      named.Sub(2, SchemaMessage(member.value()));
      list.Sub(1, named);
    }
    out.Sub(25, list);
  }
  EachExtension(*object, [&out](const Message& extension) { out.Sub(31, extension); });
  return out;
}

// ParametersItem > Parameter > body, query or path parameter.
Message ParameterMessage(const Value& value) {
  const Object& object = json::GetObject(value, {});
  std::string_view in = json::GetString(value, {"in"});
  Message inner;
  Message parameter;
  if (in == "body") {
    TextField(object, "description", 1, inner);
    TextField(object, "name", 2, inner);
    TextField(object, "in", 3, inner);
    BoolField(object, "required", 4, inner);
    if (const Value* schema = object.if_contains("schema")) inner.Sub(5, SchemaMessage(*schema));
    parameter.Sub(1, inner);
  } else {
    bool query = in == "query";
    BoolField(object, "required", 1, inner);
    TextField(object, "in", 2, inner);
    TextField(object, "description", 3, inner);
    TextField(object, "name", 4, inner);
    TextField(object, "type", query ? 6 : 5, inner);
    Message non_body;
    non_body.Sub(query ? 3 : 4, inner);
    parameter.Sub(2, non_body);
  }
  Message item;
  item.Sub(1, parameter);
  return item;
}

Message ResponsesMessage(const Value& value) {
  Message out;
  for (const auto& member : json::GetObject(value, {})) {
    Message response;
    response.Text(1, json::GetString(member.value(), {"description"}));
    if (const Value* schema = json::Find(member.value(), {"schema"})) {
      Message item;
      item.Sub(1, SchemaMessage(*schema));
      response.Sub(2, item);
    }
    Message response_value;
    response_value.Sub(1, response);
    Message named;
    named.Text(1, member.key());
    named.Sub(2, response_value);
    out.Sub(1, named);
  }
  return out;
}

Message OperationMessage(const Value& value) {
  Message out;
  const Object& object = json::GetObject(value, {});
  TextField(object, "description", 3, out);
  TextField(object, "operationId", 5, out);
  TextList(object, "consumes", 7, out);
  for (const Value& parameter : json::GetArray(value, {"parameters"})) {
    out.Sub(8, ParameterMessage(parameter));
  }
  if (const Value* responses = object.if_contains("responses")) {
    out.Sub(9, ResponsesMessage(*responses));
  }
  EachExtension(object, [&out](const Message& extension) { out.Sub(13, extension); });
  return out;
}

Message PathItemMessage(const Value& value) {
  Message out;
  const std::pair<std::string_view, int> verbs[] = {
      {"get", 2}, {"put", 3}, {"post", 4}, {"delete", 5}, {"patch", 8}};
  for (const auto& [verb, field] : verbs) {
    if (const Value* operation = json::Find(value, {verb})) {
      out.Sub(field, OperationMessage(*operation));
    }
  }
  for (const Value& parameter : json::GetArray(value, {"parameters"})) {
    out.Sub(9, ParameterMessage(parameter));
  }
  return out;
}

}  // namespace

std::string OpenApiV2Protobuf(const Value& open_api_v2) {
  Message document;
  document.Text(1, json::GetString(open_api_v2, {"swagger"}));
  Message info;
  info.Text(1, json::GetString(open_api_v2, {"info", "title"}));
  info.Text(2, json::GetString(open_api_v2, {"info", "version"}));
  document.Sub(2, info);
  Message paths;
  for (const auto& member : json::GetObject(open_api_v2, {"paths"})) {
    Message named;
    named.Text(1, member.key());
    named.Sub(2, PathItemMessage(member.value()));
    paths.Sub(2, named);
  }
  document.Sub(8, paths);
  Message definitions;
  for (const auto& member : json::GetObject(open_api_v2, {"definitions"})) {
    Message named;
    named.Text(1, member.key());
    named.Sub(2, SchemaMessage(member.value()));
    definitions.Sub(1, named);
  }
  document.Sub(9, definitions);
  return document.Take();
}

}  // namespace swell::api
