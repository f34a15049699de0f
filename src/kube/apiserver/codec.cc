#include "kube/apiserver/codec.h"

#include <set>

#include "base/nearest_word.h"
#include "base/strings.h"
#include "json/duplicates.h"
#include "json/erase.h"
#include "json/yaml.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/quantity.h"
#include "kube/api/openapi/protobuf.h"
#include "kube/api/schema/decode_problem.h"
#include "kube/apiserver/request/errors.h"

namespace swell::apiserver {
namespace {

constexpr std::string_view kDuplicateField = "duplicate field ";
constexpr std::string_view kSwellGroup = "swell.dev";

// The first bytes of a body, for error messages: JSON as it is, anything else in hex.
std::string Excerpt(std::string_view body) {
  constexpr size_t kMaxBytes = 30;
  if (body.empty()) return "<empty>";
  const std::string_view more = body.size() > kMaxBytes ? " ..." : "";
  const std::string_view start = body.substr(0, kMaxBytes);
  if (body[0] == '{') return StrCat(IsValidUtf8(start) ? start : "...", more);
  std::string hex;
  for (const char c : start) {
    constexpr char kDigits[] = "0123456789abcdef";
    hex += kDigits[static_cast<unsigned char>(c) >> 4];
    hex += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return hex + std::string(more);
}

// A document that breaks off is by far the commonest malformed one.
std::string ParseProblem(std::string_view body, const Status& why) {
  const bool ends = Trim(body).empty() || why.message().find("unexpected end") != std::string::npos;
  return StrCat("couldn't get version/kind; json parse error: ",
                ends ? "unexpected end of JSON input" : why.message());
}

}  // namespace

bool IsYaml(std::string_view media_type) {
  return media_type == "application/yaml" || media_type == "text/yaml" ||
         media_type == "application/x-yaml";
}

Status UnreadableBody(const api::KindInfo& kind, std::string_view body, const Status& why) {
  if (why.code() != Code::kBadRequest) return why;
  return BadRequestError(StrCat("the object provided is unrecognized (must be of type ",
                                kind.gvk.kind, "): ", ParseProblem(body, why), " (", Excerpt(body),
                                ")"));
}

Result<json::Value> DecodeYaml(std::string_view body, size_t limit, Duplicates* duplicates) {
  SWELL_ASSIGN_OR_RETURN(std::vector<json::Value> documents,
                         duplicates == nullptr
                             ? json::ParseYaml(body, BodyLimits(limit))
                             : json::ParseYamlNoting(body, BodyLimits(limit), *duplicates));
  if (documents.size() == 1) return std::move(documents[0]);
  return BadRequestError(
      StrCat("the request body must be one YAML document, not ", documents.size()));
}

Result<json::Value> DecodeJson(std::string_view body, size_t limit, Duplicates* duplicates) {
  if (duplicates == nullptr) return json::Parse(body, BodyLimits(limit));
  std::vector<std::string> paths;
  auto parsed = json::ParseNoting(body, BodyLimits(limit), paths);
  for (const std::string& path : paths) {
    duplicates->push_back(StrCat(kDuplicateField, Quote(path)));
  }
  return parsed;
}

std::string StrictText(const std::vector<std::string>& problems) {
  return StrCat("strict decoding error: ", Join(problems, ", "));
}

Status NamedTwice(const Duplicates& duplicates) {
  return BadRequestError(StrCat(
      "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  ",
      Join(duplicates, "\n  ")));
}

Status DecodeError(const api::KindInfo& kind, std::string_view why) {
  return BadRequestError(StrCat(kind.gvk.kind, " in version ", Quote(kind.gvk.version),
                                " cannot be handled as a ", kind.gvk.kind, ": ", why));
}

Result<json::Value> DecodeBody(const api::RestRequest& request,
                               size_t limit,
                               Duplicates* duplicates) {
  if (request.body.size() > limit) {
    return Status(Code::kTooLarge, StrCat("Request entity too large: limit is ", limit));
  }
  const std::string media = MediaType(request.content_type);
  if (media == api::kProtobufContentType) return api::DecodeKubernetesProtobuf(request.body);
  if (Trim(request.body).empty()) return BadRequestError("the request body is empty");
  if (media.empty() || media == "application/json") {
    return DecodeJson(request.body, limit, duplicates);
  }
  if (IsYaml(media)) return DecodeYaml(request.body, limit, duplicates);
  return Status(Code::kUnsupportedMediaType,
                "the body of the request was in an unknown format - accepted media types include: "
                "application/json, application/yaml, application/vnd.kubernetes.protobuf");
}

namespace {

Status CheckStringMap(const api::KindInfo& kind,
                      const json::Value& metadata,
                      std::string_view field) {
  const json::Value* map = json::Find(metadata, {field});
  if (map == nullptr || map->is_null()) return Status::Ok();
  if (!map->is_object()) {
    return DecodeError(kind, StrCat("metadata.", field, ": must be a map of strings"));
  }
  for (const auto& [key, value] : map->get_object()) {
    if (!value.is_string() && !value.is_null()) {
      return DecodeError(
          kind, StrCat("metadata.", field, ": the value of ",
                       Quote(std::string_view(key.data(), key.size())), " must be a string"));
    }
  }
  return Status::Ok();
}

Status CheckScalars(const api::KindInfo& kind, const json::Value& metadata) {
  for (std::string_view field : {"name", "generateName", "namespace", "uid", "resourceVersion",
                                 "creationTimestamp", "deletionTimestamp"}) {
    const json::Value* value = json::Find(metadata, {field});
    if (value != nullptr && !value->is_null() && !value->is_string()) {
      return DecodeError(kind, StrCat("metadata.", field, ": must be a string"));
    }
    const bool time = field == "creationTimestamp" || field == "deletionTimestamp";
    if (time && value != nullptr && value->is_string() &&
        !api::ParseTime(json::View(value->get_string()))) {
      return DecodeError(kind, StrCat("metadata.", field, ": must be a time"));
    }
  }
  for (std::string_view field : {"ownerReferences", "finalizers", "managedFields"}) {
    const json::Value* value = json::Find(metadata, {field});
    if (value == nullptr || value->is_null()) continue;
    if (!value->is_array()) {
      return DecodeError(kind, StrCat("metadata.", field, ": must be a list"));
    }
    for (const json::Value& one : value->get_array()) {
      if (field == "finalizers" ? !one.is_string() : !one.is_object()) {
        return DecodeError(kind, StrCat("metadata.", field, ": has an element of a wrong type"));
      }
    }
  }
  return Status::Ok();
}

}  // namespace

Status CheckMetadataTypes(const api::KindInfo& kind, const json::Value& object) {
  if (!object.is_object()) return DecodeError(kind, "the object must be a JSON object");
  const json::Value* metadata = json::Find(object, {"metadata"});
  if (metadata == nullptr || metadata->is_null()) return Status::Ok();
  if (!metadata->is_object()) return DecodeError(kind, "metadata: must be an object");
  Status checked = CheckScalars(kind, *metadata);
  if (checked.ok()) checked = CheckStringMap(kind, *metadata, "labels");
  if (checked.ok()) checked = CheckStringMap(kind, *metadata, "annotations");
  if (checked.ok() || !kind.schema) return checked;
  const std::string problem = api::FindDecodeProblem(*kind.schema, object);
  return problem.empty() ? checked : DecodeError(kind, problem);
}

namespace {

// Fits the object's apiVersion and kind to the request's.
Status CheckKind(const api::KindInfo& kind, json::Value& object) {
  const std::string expected = kind.gvk.ApiVersion();
  json::Object& fields = object.get_object();
  const json::Value* version = fields.if_contains("apiVersion");
  const json::Value* name = fields.if_contains("kind");
  const bool has_version = version != nullptr && !version->is_null() && *version != "";
  const bool has_kind = name != nullptr && !name->is_null() && *name != "";
  if ((has_version && !version->is_string()) || (has_kind && !name->is_string())) {
    return DecodeError(kind, "apiVersion and kind must be strings");
  }
  if (kind.custom && !has_kind) {
    return DecodeError(kind, StrCat("Object 'Kind' is missing in '", json::Print(object), "'"));
  }
  if (has_version && json::View(version->get_string()) != expected) {
    return BadRequestError(StrCat("the API version in the data (",
                                  json::View(version->get_string()),
                                  ") does not match the expected API version (", expected, ")"));
  }
  if (has_kind && json::View(name->get_string()) != kind.gvk.kind) {
    if (kind.custom) {
      api::KindInfo other;
      other.gvk = {kind.gvk.group, kind.gvk.version, std::string(json::View(name->get_string()))};
      return InvalidError(
          other, json::GetString(object, {"metadata", "name"}),
          {InvalidValue("kind", other.gvk.kind, StrCat("must be ", kind.gvk.kind))});
    }
    // Kubernetes names the package of its own form of the kind.
    const std::string_view group = kind.gvk.group;
    const std::string_view package = group.empty() ? "core" : group.substr(0, group.find('.'));
    return BadRequestError(StrCat(json::View(name->get_string()), " in version ",
                                  Quote(kind.gvk.version), " cannot be handled as a ",
                                  kind.gvk.kind, ": converting (", kind.gvk.version, ".",
                                  json::View(name->get_string()), ") to (", package, ".",
                                  kind.gvk.kind, "): unknown conversion"));
  }
  if (!has_version || !has_kind) {
    // First in the document, as everybody writes them.
    json::Object ordered;
    ordered["apiVersion"] = expected;
    ordered["kind"] = kind.gvk.kind;
    for (auto& [key, value] : fields) {
      if (key != "apiVersion" && key != "kind") ordered[key] = std::move(value);
    }
    object = std::move(ordered);
  }
  return Status::Ok();
}

}  // namespace

namespace {

// As Kubernetes' own kinds are stored: a null member is an absent one (`creationTimestamp: null`
// and the like stand in every generated manifest), and quantities are canonical text.
void Canonicalize(const api::Schema& schema, json::Value& value) {
  if (schema.type == api::SchemaType::kQuantity) {
    const auto quantity = api::Quantity::FromJson(value);
    if (quantity.ok()) value = quantity->ToString();  // else validation will say what is wrong
    return;
  }
  if (value.is_array() && schema.items) {
    for (json::Value& item : value.get_array()) Canonicalize(*schema.items, item);
    return;
  }
  if (!value.is_object() || schema.type == api::SchemaType::kAny) return;
  json::Object& object = value.get_object();
  std::set<std::string, std::less<>> nulls;
  for (auto& [key, member] : object) {
    const std::string_view name(key.data(), key.size());
    const api::SchemaField* field = schema.Field(name);
    const api::Schema* below = field != nullptr ? field->schema.get() : schema.items.get();
    if (member.is_null()) {
      // Go writes an empty list as null: where there must be one, it is there. In a map of texts
      // null is the empty one.
      if (field != nullptr && field->required && below->type == api::SchemaType::kArray) {
        member = json::Array();
      } else if (schema.type == api::SchemaType::kMap && below->type == api::SchemaType::kString) {
        member = "";
      } else {
        nulls.emplace(name);
      }
    } else if (below != nullptr) {
      Canonicalize(*below, member);
    }
  }
  json::EraseMembers(object, nulls);
}

// Adds warnings for the problems, or returns the text of a strict error, as the request asks.
std::string TellProblems(Call& call, const std::vector<std::string>& problems) {
  const std::string_view validation = call.query.Get("fieldValidation");
  if (validation == "Strict" && !problems.empty()) {
    return StrictText(problems);
  }
  if (validation == "Ignore" || validation == "Strict") return {};
  for (const std::string& problem : problems) call.AddWarning(problem);
  return {};
}

// What a field is, or where it is a list or a map, what its elements are.
const api::Schema& ElementOf(const api::SchemaField& field) {
  const api::Schema* schema = field.schema.get();
  while (schema->items) schema = schema->items.get();
  return *schema;
}

// How a path goes on to the elements of the field; empty where it is one object.
std::string_view StepInto(const api::SchemaField& field) {
  if (!field.schema->items) return "";
  return field.schema->type == api::SchemaType::kMap ? ".NAME" : "[]";
}

// The object or the element that the dotted path leads to; null where no schema knows it.
const api::Schema* SchemaAt(const api::Schema& schema, std::string_view path) {
  const api::Schema* at = &schema;
  for (std::string_view part : Split(path, '.')) {
    if (at->type == api::SchemaType::kMap) {  // the part is a name that the user chose
      at = at->items.get();
    } else {
      const api::SchemaField* field = at->Field(part.substr(0, part.find('[')));
      at = field == nullptr ? nullptr : field->schema.get();
    }
    while (at != nullptr && at->type == api::SchemaType::kArray) at = at->items.get();
    if (at == nullptr) return nullptr;
  }
  return at;
}

// Where a field that stands in the wrong place belongs, or what it was probably meant to be. Only
// of Swell's own kinds: of others clients know Kubernetes' words.
std::string FieldAdvice(const api::KindInfo& kind, std::string_view path) {
  const size_t dot = path.rfind('.');
  if (kind.gvk.group != kSwellGroup || dot == std::string_view::npos) return "";
  const api::Schema* parent = SchemaAt(*kind.schema, path.substr(0, dot));
  if (parent == nullptr) return "";
  const std::string_view name = path.substr(dot + 1);
  std::vector<std::string> names;
  for (const api::SchemaField& field : parent->fields) {
    if (ElementOf(field).Field(name) != nullptr) {
      return StrCat(": it belongs in ", path.substr(0, dot + 1), field.name, StepInto(field));
    }
    names.push_back(field.name);
  }
  const std::string near = NearestName(name, names);
  return near.empty() ? "" : StrCat(": did you mean ", near, "?");
}

}  // namespace

Result<std::string> PruneObject(Call& call,
                                const api::KindInfo& kind,
                                json::Value& object,
                                const Duplicates& duplicates) {
  if (!kind.schema) return TellProblems(call, duplicates);
  if (!kind.custom) {
    Canonicalize(*kind.schema, object);
  } else if (const api::SchemaField* meta = kind.schema->Field("metadata")) {
    if (json::Value* metadata = json::FindMutable(object, {"metadata"})) {
      Canonicalize(*meta->schema, *metadata);
    }
  }
  const std::vector<std::string> unknown =
      api::UnknownFields(*kind.schema, object, kind.custom ? &api::PodTemplateSchema() : nullptr);
  std::vector<std::string> problems;
  for (const std::string& field : unknown) {
    problems.push_back(StrCat("unknown field ", Quote(field), FieldAdvice(kind, field)));
  }
  // kube-apiserver tells duplicates in YAML, and those of custom objects, before anything else.
  const bool last =
      !kind.custom && !duplicates.empty() && duplicates.front().starts_with(kDuplicateField);
  problems.insert(last ? problems.end() : problems.begin(), duplicates.begin(), duplicates.end());
  std::string strict = TellProblems(call, problems);
  if (strict.empty() && !unknown.empty()) api::PruneUnknown(*kind.schema, object);
  return strict;
}

Result<json::Value> DecodeObject(Call& call, const api::KindInfo& kind, size_t limit) {
  Duplicates duplicates;
  auto decoded = DecodeBody(call.request, limit, &duplicates);
  if (!decoded.ok()) return UnreadableBody(kind, call.request.body, decoded.status());
  json::Value object = std::move(*decoded);
  SWELL_RETURN_IF_ERROR(CheckMetadataTypes(kind, object));
  SWELL_RETURN_IF_ERROR(CheckKind(kind, object));
  SWELL_ASSIGN_OR_RETURN(const std::string strict, PruneObject(call, kind, object, duplicates));
  if (!strict.empty()) return DecodeError(kind, strict);
  return object;
}

}  // namespace swell::apiserver
