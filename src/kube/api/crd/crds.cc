#include "kube/api/crd/crds.h"

#include <tuple>

#include "base/check.h"
#include "base/strings.h"
#include "kube/api/crd/definitions.h"
#include "kube/api/schema/schema_text.h"
#include "kube/api/schema/scheme.h"

namespace swell::api {
namespace {

using json::Array;
using json::Object;
using json::Value;

void WriteType(const Schema& schema, Object& out) {
  switch (schema.type) {
    case SchemaType::kObject:
    case SchemaType::kMap:
      out["type"] = "object";
      break;
    case SchemaType::kArray:
      out["type"] = "array";
      break;
    case SchemaType::kInteger:
      out["type"] = "integer";
      break;
    case SchemaType::kNumber:
      out["type"] = "number";
      break;
    case SchemaType::kBoolean:
      out["type"] = "boolean";
      break;
    case SchemaType::kIntOrString:
    case SchemaType::kQuantity:
      out["x-kubernetes-int-or-string"] = true;
      break;
    case SchemaType::kAny:
      if (schema.format == "object") out["type"] = "object";
      out["x-kubernetes-preserve-unknown-fields"] = true;
      return;
    case SchemaType::kString:
    case SchemaType::kTime:
    case SchemaType::kMicroTime:
      out["type"] = "string";
      break;
  }
  if (schema.preserve_unknown) out["x-kubernetes-preserve-unknown-fields"] = true;
  if (!schema.format.empty() && schema.type != SchemaType::kIntOrString &&
      schema.type != SchemaType::kNumber) {
    out["format"] = schema.format;
  }
}

Value NumberJson(const std::string& text) {
  if (std::optional<int64_t> number = ParseInt(text)) return Value(*number);
  Result<Value> parsed = json::Parse(text);
  return parsed.ok() ? *parsed : Value();
}

void WriteRules(const Schema& schema, Object& out) {
  if (!schema.minimum.empty()) out["minimum"] = NumberJson(schema.minimum);
  if (!schema.maximum.empty()) out["maximum"] = NumberJson(schema.maximum);
  if (!schema.enum_values.empty()) {
    Array values;
    for (const std::string& v : schema.enum_values) values.emplace_back(v);
    out["enum"] = std::move(values);
  }
  if (schema.type == SchemaType::kArray && schema.list_type == ListType::kMap) {
    Array keys;
    for (const std::string& key : schema.list_map_keys) keys.emplace_back(key);
    out["x-kubernetes-list-type"] = "map";
    out["x-kubernetes-list-map-keys"] = std::move(keys);
  } else if (schema.type == SchemaType::kArray) {
    out["x-kubernetes-list-type"] = schema.list_type == ListType::kSet ? "set" : "atomic";
  }
}

Value Words(std::string_view text) {
  Array out;
  for (std::string_view word : Split(text, ',')) out.emplace_back(std::string(word));
  return out;
}

Value Columns(std::string_view text) {
  Array out;
  for (std::string_view column : Split(text, ';')) {
    std::vector<std::string_view> parts = Split(column, '|');
    Object entry;
    entry["name"] = std::string(parts[0]);
    entry["type"] = std::string(parts[1]);
    entry["jsonPath"] = std::string(parts[2]);
    if (parts.size() > 3) entry["priority"] = ParseInt(parts[3]).value_or(0);
    out.emplace_back(std::move(entry));
  }
  return out;
}

Value Version(const Definition& row, const Schema& schema) {
  Value version = Object();
  json::Set(version, {"name"}, Value(row.version));
  json::Set(version, {"served"}, Value(true));
  json::Set(version, {"storage"}, Value(true));
  json::Set(version, {"schema", "openAPIV3Schema"}, StructuralSchemaJson(schema));
  Value& properties = *json::FindMutable(version, {"schema", "openAPIV3Schema", "properties"});
  json::Set(properties, {"apiVersion"}, Object({{"type", "string"}}));
  json::Set(properties, {"kind"}, Object({{"type", "string"}}));
  json::Set(properties, {"metadata"}, Object({{"type", "object"}}));
  if (row.has_status) json::Set(version, {"subresources", "status"}, Object());
  if (std::vector<std::string_view> paths = Split(row.scale, ','); paths.size() == 3) {
    json::Set(version, {"subresources", "scale", "specReplicasPath"}, Value(std::string(paths[0])));
    json::Set(version, {"subresources", "scale", "statusReplicasPath"},
              Value(std::string(paths[1])));
    json::Set(version, {"subresources", "scale", "labelSelectorPath"},
              Value(std::string(paths[2])));
  }
  json::Set(version, {"additionalPrinterColumns"}, Columns(row.columns));
  return version;
}

Value MakeCrd(const Definition& row, const Schema& schema) {
  Value crd = Object();
  json::Set(crd, {"apiVersion"}, Value("apiextensions.k8s.io/v1"));
  json::Set(crd, {"kind"}, Value("CustomResourceDefinition"));
  json::Set(crd, {"metadata", "name"}, Value(StrCat(row.plural, ".", row.group)));
  json::Set(crd, {"spec", "group"}, Value(row.group));
  Value names = Object();
  json::Set(names, {"kind"}, Value(row.kind));
  json::Set(names, {"listKind"}, Value(StrCat(row.kind, "List")));
  json::Set(names, {"plural"}, Value(row.plural));
  json::Set(names, {"singular"}, Value(ToLower(row.kind)));
  if (!row.short_names.empty()) json::Set(names, {"shortNames"}, Words(row.short_names));
  json::Set(names, {"categories"}, Words(row.categories));
  json::Set(crd, {"spec", "names"}, std::move(names));
  json::Set(crd, {"spec", "scope"}, Value(row.namespaced ? "Namespaced" : "Cluster"));
  Array versions{Version(row, schema)};
  if (!row.also_served.empty()) {
    Value also = versions.front();
    json::Set(also, {"name"}, Value(row.also_served));
    json::Set(also, {"storage"}, Value(false));
    versions.push_back(std::move(also));
  }
  json::Set(crd, {"spec", "versions"}, std::move(versions));
  return crd;
}

}  // namespace

Value StructuralSchemaJson(const Schema& schema) {
  Object out;
  if (!schema.description.empty()) out["description"] = schema.description;
  WriteType(schema, out);
  WriteRules(schema, out);
  if (schema.items && schema.type == SchemaType::kArray) {
    out["items"] = StructuralSchemaJson(*schema.items);
  } else if (schema.items) {
    out["additionalProperties"] = StructuralSchemaJson(*schema.items);
  }
  Object properties;
  Array required;
  for (const SchemaField& field : schema.fields) {
    Value child = StructuralSchemaJson(*field.schema);
    if (!field.description.empty()) child.get_object()["description"] = field.description;
    if (field.default_value) child.get_object()["default"] = *field.default_value;
    properties[field.name] = std::move(child);
    if (field.required) required.emplace_back(field.name);
  }
  if (!properties.empty()) out["properties"] = std::move(properties);
  if (!required.empty()) out["required"] = std::move(required);
  return out;
}

std::vector<Value> SwellPriorityClasses() {
  const std::tuple<const char*, int64_t, const char*> classes[] = {
      {"train", 50, "Training that may be preempted and resumes from its checkpoint."},
      {"interactive", 75, "Work a person is waiting for; may be preempted."},
      {"build", 100, "Work that is not preempted."},
      {"inference", 125, "Serving; not preempted."}};
  std::vector<Value> out;
  for (const auto& [name, value, description] : classes) {
    out.push_back(Object{{"apiVersion", "scheduling.k8s.io/v1"},
                         {"kind", "PriorityClass"},
                         {"metadata", Object{{"name", name}}},
                         {"value", value},
                         {"description", description}});
  }
  return out;
}

Value TorchTrainingRuntime() {
  constexpr const char* kNode = "node";
  const Value container =
      Object{{"name", kNode}, {"image", "pytorch/pytorch:2.7.1-cuda12.8-cudnn9-runtime"}};
  const Value pod = Object{{"spec", Object{{"containers", Array{container}}}}};
  const Value job =
      Object{{"name", kNode}, {"template", Object{{"spec", Object{{"template", pod}}}}}};
  return Object{
      {"apiVersion", "trainer.kubeflow.org/v1alpha1"},
      {"kind", "ClusterTrainingRuntime"},
      {"metadata", Object{{"name", "torch-distributed"},
                          {"labels", Object{{"trainer.kubeflow.org/framework", "torch"}}}}},
      {"spec", Object{{"mlPolicy", Object{{"numNodes", 1}, {"torch", Object{}}}},
                      {"template", Object{{"spec", Object{{"replicatedJobs", Array{job}}}}}}}}};
}

std::vector<Value> SwellCrds() {
  SchemaLibrary library(EmbeddedSchemas());
  std::vector<Value> out;
  for (const Definition& row : Definitions()) {
    SchemaPtr schema = library.Find(StrCat(row.package, ".", row.kind));
    SWELL_CHECK_MSG(schema != nullptr, row.kind);
    out.push_back(MakeCrd(row, *schema));
  }
  return out;
}

}  // namespace swell::api
