#include "kube/api/openapi/openapi.h"

#include "base/strings.h"
#include "json/texts.h"
#include "kube/api/schema/schema_text.h"

namespace swell::api {
namespace {

using json::Array;
using json::Object;
using json::Value;

constexpr std::string_view kTime = "io.k8s.apimachinery.pkg.apis.meta.v1.Time";
constexpr std::string_view kMicroTime = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime";
constexpr std::string_view kQuantity = "io.k8s.apimachinery.pkg.api.resource.Quantity";
constexpr std::string_view kIntOrString = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
constexpr std::string_view kDeleteOptions = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

Value NumberJson(const std::string& text) {
  if (std::optional<int64_t> number = ParseInt(text)) return Value(*number);
  Result<Value> parsed = json::Parse(text);
  return parsed.ok() ? *parsed : Value();
}

Value GvkJson(const GroupVersionKind& gvk) {
  Object out;
  out["group"] = gvk.group;
  out["kind"] = gvk.kind;
  out["version"] = gvk.version;
  return out;
}

// "kubeflow.org", "v1", "PyTorchJob" → "org.kubeflow.v1.PyTorchJob".
std::string CustomName(const GroupVersionKind& gvk) {
  std::string out;
  std::vector<std::string_view> labels = Split(gvk.group, '.');
  for (auto it = labels.rbegin(); it != labels.rend(); ++it) out += StrCat(*it, ".");
  return StrCat(out, gvk.version, ".", gvk.kind);
}

std::string DefinitionName(const KindInfo& kind) {
  return kind.custom ? CustomName(kind.gvk) : kind.schema->name;
}

// Writes schemas as JSON Schema: version 2 or 3 of OpenAPI, named types once each.
class Writer {
 public:
  explicit Writer(int version) : version_(version) {}

  void AddKind(const KindInfo& kind);
  void AddType(const Schema& schema, const GroupVersionKind* gvk);
  Object Reference(std::string_view name) const {
    Object out;
    out["$ref"] = StrCat(version_ == 2 ? "#/definitions/" : "#/components/schemas/", name);
    return out;
  }
  Object TakeDefinitions();

 private:
  Object Body(const Schema& schema, bool custom);
  Object Use(const Schema& schema, bool custom);
  Object NamedScalar(std::string_view name);
  void WriteRules(const Schema& schema, Object& out, bool custom);
  void WriteLogic(const Schema& schema, Object& out);
  void WriteFields(const Schema& schema, Object& out, bool custom);

  int version_;
  std::map<std::string, Object> definitions_;
};

Object Writer::TakeDefinitions() {
  Object out;
  for (auto& [name, body] : definitions_) out[name] = std::move(body);
  definitions_.clear();
  return out;
}

void Writer::AddType(const Schema& schema, const GroupVersionKind* gvk) {
  if (!definitions_.contains(schema.name)) {
    definitions_[schema.name];  // here already, should it contain itself
    Object body = Body(schema, false);
    definitions_[schema.name] = std::move(body);
  }
  if (gvk != nullptr) {
    definitions_[schema.name]["x-kubernetes-group-version-kind"] = Array({GvkJson(*gvk)});
  }
}

void Writer::AddKind(const KindInfo& kind) {
  if (kind.schema == nullptr) return;
  if (!kind.custom) {
    AddType(*kind.schema, &kind.gvk);
    return;
  }
  Object body = Body(*kind.schema, true);
  body["x-kubernetes-group-version-kind"] = Array({GvkJson(kind.gvk)});
  definitions_[CustomName(kind.gvk)] = std::move(body);
}

Object Writer::NamedScalar(std::string_view name) {
  if (!definitions_.contains(std::string(name))) {
    Object body;
    if (name == kTime || name == kMicroTime) {
      body["description"] = "A point in time, in the form of RFC 3339.";
      body["type"] = "string";
      body["format"] = "date-time";
    } else if (name == kQuantity) {
      body["description"] = "An amount with an optional suffix, such as 100m, 4Gi or 1e3.";
      if (version_ == 2) {
        body["type"] = "string";
      } else {
        body["oneOf"] = Array({Object({{"type", "string"}}), Object({{"type", "number"}})});
      }
    } else {
      body["description"] = "An integer or a string.";
      body["format"] = "int-or-string";
      if (version_ == 2) {
        body["type"] = "string";
      } else {
        body["oneOf"] = Array({Object({{"type", "integer"}}), Object({{"type", "string"}})});
      }
    }
    definitions_[std::string(name)] = std::move(body);
  }
  return Reference(name);
}

Object Writer::Use(const Schema& schema, bool custom) {
  // Definitions say little of pods' templates, and all that a pod may have is taken. Clients of
  // version 2 would refuse by themselves what the server warns of.
  if (custom && version_ == 3 && KeepsPodTemplate(schema)) {
    AddType(PodTemplateSchema(), nullptr);
    return Reference(PodTemplateSchema().name);
  }
  if (schema.type == SchemaType::kObject && !schema.name.empty()) {
    AddType(schema, nullptr);
    return Reference(schema.name);
  }
  if (!custom || schema.nullable) {
    if (schema.type == SchemaType::kTime) return NamedScalar(kTime);
    if (schema.type == SchemaType::kMicroTime) return NamedScalar(kMicroTime);
    if (schema.type == SchemaType::kQuantity) return NamedScalar(kQuantity);
    if (schema.type == SchemaType::kIntOrString && !custom) return NamedScalar(kIntOrString);
  }
  return Body(schema, custom);
}

Object Writer::Body(const Schema& schema, bool custom) {
  Object out;
  if (!schema.description.empty()) out["description"] = schema.description;
  const bool any_object = schema.type == SchemaType::kAny && schema.format == "object";
  std::string_view type = any_object ? "object" : TypeName(schema.type);
  if (!type.empty()) out["type"] = type;
  if (!schema.format.empty() && schema.type != SchemaType::kAny) out["format"] = schema.format;
  if (schema.preserve_unknown) out["x-kubernetes-preserve-unknown-fields"] = true;
  if (schema.embedded_resource) out["x-kubernetes-embedded-resource"] = true;
  if (schema.type == SchemaType::kIntOrString) out["x-kubernetes-int-or-string"] = true;
  if (custom && schema.nullable && version_ == 3 && schema.type != SchemaType::kAny) {
    out["nullable"] = true;
  }
  if (schema.atomic && schema.type != SchemaType::kArray) out["x-kubernetes-map-type"] = "atomic";
  WriteRules(schema, out, custom);
  if (schema.type == SchemaType::kArray && schema.items) {
    out["items"] = Use(*schema.items, custom);
  } else if (schema.type == SchemaType::kMap && schema.items) {
    out["additionalProperties"] = Use(*schema.items, custom);
  }
  // Clients of version 2 take the listed fields for the only ones.
  if (version_ == 3 || !schema.preserve_unknown) WriteFields(schema, out, custom);
  if (version_ == 3) WriteLogic(schema, out);
  return out;
}

void Writer::WriteFields(const Schema& schema, Object& out, bool custom) {
  Object properties;
  Array required;
  for (const SchemaField& field : schema.fields) {
    Object body = Use(*field.schema, custom);
    if (version_ == 3 && body.contains("$ref")) {
      // Version 3 ignores what stands beside a reference.
      Object reference = std::move(body);
      body = Object();
      body["allOf"] = Array({std::move(reference)});
    }
    if (!field.description.empty()) body["description"] = field.description;
    if (field.default_value && version_ == 3) body["default"] = *field.default_value;
    const Schema& type = *field.schema;
    if (type.patch_merge || type.patch_retain_keys || type.patch_replace) {
      std::string strategy = type.patch_replace ? "replace" : type.patch_merge ? "merge" : "";
      if (type.patch_retain_keys) strategy += strategy.empty() ? "retainKeys" : ",retainKeys";
      body["x-kubernetes-patch-strategy"] = strategy;
      if (!type.patch_merge_key.empty()) {
        body["x-kubernetes-patch-merge-key"] = type.patch_merge_key;
      }
    }
    properties[field.name] = std::move(body);
    if (field.required) required.emplace_back(field.name);
  }
  if (!properties.empty()) out["properties"] = std::move(properties);
  if (!required.empty()) out["required"] = std::move(required);
}

void Writer::WriteRules(const Schema& schema, Object& out, bool custom) {
  if (!schema.enum_values.empty()) out["enum"] = json::TextArray(schema.enum_values);
  if (!schema.pattern.empty()) out["pattern"] = schema.pattern;
  if (!schema.minimum.empty()) out["minimum"] = NumberJson(schema.minimum);
  if (!schema.maximum.empty()) out["maximum"] = NumberJson(schema.maximum);
  if (schema.exclusive_minimum) out["exclusiveMinimum"] = true;
  if (schema.exclusive_maximum) out["exclusiveMaximum"] = true;
  if (!schema.multiple_of.empty()) out["multipleOf"] = NumberJson(schema.multiple_of);
  const std::pair<std::string_view, int64_t> counts[] = {
      {"minLength", schema.min_length},         {"maxLength", schema.max_length},
      {"minItems", schema.min_items},           {"maxItems", schema.max_items},
      {"minProperties", schema.min_properties}, {"maxProperties", schema.max_properties}};
  for (const auto& [name, count] : counts) {
    if (count >= 0) out[name] = count;
  }
  if (schema.type != SchemaType::kArray) return;
  if (schema.list_type == ListType::kMap) {
    out["x-kubernetes-list-type"] = "map";
    out["x-kubernetes-list-map-keys"] = json::TextArray(schema.list_map_keys);
  } else if (schema.list_type == ListType::kSet) {
    out["x-kubernetes-list-type"] = "set";
  } else if (!custom) {
    out["x-kubernetes-list-type"] = "atomic";
  }
}

void Writer::WriteLogic(const Schema& schema, Object& out) {
  const std::pair<std::string_view, const std::vector<SchemaPtr>*> lists[] = {
      {"allOf", &schema.all_of}, {"anyOf", &schema.any_of}, {"oneOf", &schema.one_of}};
  for (const auto& [name, parts] : lists) {
    if (parts->empty()) continue;
    Array list;
    for (const SchemaPtr& part : *parts) {
      Object body = Body(*part, true);
      body.erase("nullable");
      list.emplace_back(std::move(body));
    }
    out[name] = std::move(list);
  }
  if (schema.not_schema) {
    Object body = Body(*schema.not_schema, true);
    body.erase("nullable");
    out["not"] = std::move(body);
  }
}

// -- paths -------------------------------------------------------------------------------------

struct ParameterRow {
  std::string_view name;
  std::string_view type;
  std::string_view description;
};
constexpr ParameterRow kListParameters[] = {
    {"allowWatchBookmarks", "boolean", "Whether a watch may send bookmarks."},
    {"continue", "string", "Where the last page of the list ended."},
    {"fieldSelector", "string", "Which objects are meant, by their fields."},
    {"labelSelector", "string", "Which objects are meant, by their labels."},
    {"limit", "integer", "The most objects in one answer."},
    {"resourceVersion", "string", "The version that the answer must reach."},
    {"resourceVersionMatch", "string", "How the version is understood."},
    {"timeoutSeconds", "integer", "How long the call may last."},
    {"watch", "boolean", "Whether changes are sent as they happen."},
};
constexpr ParameterRow kWriteParameters[] = {
    {"dryRun", "string", "All: check everything, store nothing."},
    {"fieldManager", "string", "The name under which fields are owned."},
    {"fieldValidation", "string", "Ignore, Warn or Strict: what unknown fields do."},
};
constexpr ParameterRow kForceParameter = {"force", "boolean",
                                          "Whether apply takes fields from other managers."};

class PathWriter {
 public:
  PathWriter(int version, Writer& types) : version_(version), types_(types) {}

  void AddKind(const KindInfo& kind, Object& paths);

 private:
  Value Parameter(const ParameterRow& row, std::string_view in) const;
  Value PathParameters(const KindInfo& kind, bool item) const;
  Object Operation(const KindInfo& kind, std::string_view verb);
  void AddBody(const KindInfo& kind, std::string_view verb, Object& operation, Array& parameters);

  int version_;
  Writer& types_;
};

Value PathWriter::Parameter(const ParameterRow& row, std::string_view in) const {
  Object out;
  out["name"] = row.name;
  out["in"] = in;
  out["description"] = row.description;
  if (in == "path") out["required"] = true;
  if (version_ == 2) {
    out["type"] = row.type;
    out["uniqueItems"] = true;
  } else {
    Object schema;
    schema["type"] = row.type;
    schema["uniqueItems"] = true;
    out["schema"] = std::move(schema);
  }
  return out;
}

Value PathWriter::PathParameters(const KindInfo& kind, bool item) const {
  Array out;
  if (item) out.push_back(Parameter({"name", "string", "The object's name."}, "path"));
  if (kind.namespaced) {
    out.push_back(Parameter({"namespace", "string", "The object's namespace."}, "path"));
  }
  return out;
}

void PathWriter::AddBody(const KindInfo& kind,
                         std::string_view verb,
                         Object& operation,
                         Array& parameters) {
  std::vector<std::string> types = {"*/*"};
  Object schema = types_.Reference(DefinitionName(kind));
  if (verb == "patch") {
    types = {"application/json-patch+json", "application/merge-patch+json",
             "application/apply-patch+yaml"};
    if (!kind.custom) types.emplace_back("application/strategic-merge-patch+json");
    schema = Object({{"type", "object"}});
  } else if (verb.starts_with("delete")) {
    schema = types_.Reference(kDeleteOptions);
  }
  bool required = !verb.starts_with("delete");
  if (version_ == 2) {
    operation["consumes"] = json::TextArray(types);
    Object body;
    body["name"] = "body";
    body["in"] = "body";
    if (required) body["required"] = true;
    body["schema"] = std::move(schema);
    parameters.emplace_back(std::move(body));
    return;
  }
  Object content;
  for (const std::string& type : types) content[type] = Object({{"schema", schema}});
  Object body;
  body["content"] = std::move(content);
  if (required) body["required"] = true;
  operation["requestBody"] = std::move(body);
}

Object PathWriter::Operation(const KindInfo& kind, std::string_view verb) {
  Object out;
  std::string_view action = verb == "create" ? "post" : verb == "update" ? "put" : verb;
  out["description"] = StrCat(verb, " ", kind.gvk.kind);
  out["operationId"] =
      StrCat(verb, kind.gvk.group.empty() ? "Core" : ToUpper(kind.gvk.group.substr(0, 1)),
             kind.gvk.group.empty() ? std::string() : kind.gvk.group.substr(1), kind.gvk.version,
             kind.gvk.kind);
  Array parameters;
  bool write = verb == "create" || verb == "update" || verb == "patch";
  if (write) {
    for (const ParameterRow& row : kWriteParameters) parameters.push_back(Parameter(row, "query"));
    if (verb == "patch") parameters.push_back(Parameter(kForceParameter, "query"));
  } else if (verb.starts_with("delete")) {
    parameters.push_back(Parameter(kWriteParameters[0], "query"));
  } else if (verb == "list") {
    for (const ParameterRow& row : kListParameters) parameters.push_back(Parameter(row, "query"));
  }
  if (write || verb.starts_with("delete")) AddBody(kind, verb, out, parameters);
  if (!parameters.empty()) out["parameters"] = std::move(parameters);
  Object ok;
  ok["description"] = "OK";
  if (verb != "list" && !verb.starts_with("delete")) {
    Object schema = types_.Reference(DefinitionName(kind));
    if (version_ == 2) {
      ok["schema"] = std::move(schema);
    } else {
      ok["content"] = Object({{"application/json", Object({{"schema", std::move(schema)}})}});
    }
  }
  Object responses;
  responses[verb == "create" ? "201" : "200"] = std::move(ok);
  out["responses"] = std::move(responses);
  out["x-kubernetes-action"] = action;
  out["x-kubernetes-group-version-kind"] = GvkJson(kind.gvk);
  return out;
}

void PathWriter::AddKind(const KindInfo& kind, Object& paths) {
  std::string base = kind.gvk.group.empty()
                         ? StrCat("/api/", kind.gvk.version)
                         : StrCat("/apis/", kind.gvk.group, "/", kind.gvk.version);
  if (kind.namespaced) base += "/namespaces/{namespace}";
  Object collection;
  Object item;
  for (const std::string& verb : kind.verbs) {
    if (verb == "list") collection["get"] = Operation(kind, verb);
    if (verb == "create") collection["post"] = Operation(kind, verb);
    if (verb == "deletecollection") collection["delete"] = Operation(kind, verb);
    if (verb == "get") item["get"] = Operation(kind, verb);
    if (verb == "update") item["put"] = Operation(kind, verb);
    if (verb == "patch") item["patch"] = Operation(kind, verb);
    if (verb == "delete") item["delete"] = Operation(kind, verb);
  }
  if (Value parameters = PathParameters(kind, false); !parameters.get_array().empty()) {
    collection["parameters"] = std::move(parameters);
  }
  paths[StrCat(base, "/", kind.plural)] = std::move(collection);
  if (item.empty()) return;
  item["parameters"] = PathParameters(kind, true);
  paths[StrCat(base, "/", kind.plural, "/{name}")] = std::move(item);
}

Object Info() {
  Object info;
  info["title"] = "Swell";
  info["version"] = "v1";
  return info;
}

void AddCommonTypes(Writer& types) {
  SchemaLibrary library(EmbeddedSchemas());
  const std::string package = "io.k8s.apimachinery.pkg.apis.meta.v1.";
  for (const char* name : {"DeleteOptions", "Status"}) {
    GroupVersionKind gvk{"", "v1", name};
    types.AddType(*library.Find(package + name), &gvk);
  }
}

std::string DocumentPath(std::string_view group, std::string_view version) {
  return group.empty() ? StrCat("api/", version) : StrCat("apis/", group, "/", version);
}

}  // namespace

Value OpenApiV2(const Scheme& scheme) {
  Writer types(2);
  PathWriter path_writer(2, types);
  AddCommonTypes(types);
  Object paths;
  for (const Scheme::Group& group : scheme.Groups()) {
    for (const std::string& version : group.versions) {
      for (const KindPtr& kind : scheme.KindsOf(group.name, version)) {
        types.AddKind(*kind);
        path_writer.AddKind(*kind, paths);
      }
    }
  }
  Object out;
  out["swagger"] = "2.0";
  out["info"] = Info();
  out["paths"] = std::move(paths);
  out["definitions"] = types.TakeDefinitions();
  return out;
}

Value OpenApiV3Index(const Scheme& scheme) {
  Object paths;
  for (const Scheme::Group& group : scheme.Groups()) {
    for (const std::string& version : group.versions) {
      std::string path = DocumentPath(group.name, version);
      Object entry;
      entry["serverRelativeURL"] = StrCat("/openapi/v3/", path, "?hash=", scheme.generation());
      paths[path] = std::move(entry);
    }
  }
  Object out;
  out["paths"] = std::move(paths);
  return out;
}

Value OpenApiV3(const Scheme& scheme, std::string_view group, std::string_view version) {
  Writer types(3);
  PathWriter path_writer(3, types);
  AddCommonTypes(types);
  Object paths;
  for (const KindPtr& kind : scheme.KindsOf(group, version)) {
    types.AddKind(*kind);
    path_writer.AddKind(*kind, paths);
  }
  Object components;
  components["schemas"] = types.TakeDefinitions();
  Object out;
  out["openapi"] = "3.0.0";
  out["info"] = Info();
  out["paths"] = std::move(paths);
  out["components"] = std::move(components);
  return out;
}

}  // namespace swell::api
