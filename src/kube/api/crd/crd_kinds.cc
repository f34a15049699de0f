// CustomResourceDefinition objects: their own rules, and the kinds they add.
#include <algorithm>
#include <set>

#include "base/strings.h"
#include "json/texts.h"
#include "kube/api/crd/crd_rules.h"
#include "kube/api/crd/crd_schema.h"
#include "kube/api/meta/meta.h"
#include "kube/api/schema/field_errors.h"
#include "kube/api/schema/field_rules.h"
#include "kube/api/schema/scheme.h"

namespace swell::api {
namespace {

using json::Value;

void CheckNames(const Value& names, std::vector<FieldError>& errors) {
  const std::string path = "spec.names";
  for (std::string_view key : {"plural", "singular", "kind", "listKind"}) {
    if (json::GetString(names, {key}).empty())
      errors.push_back(RequiredError(PathField(path, key)));
  }
  for (std::string_view key : {"plural", "singular"}) {
    std::string_view name = json::GetString(names, {key});
    if (name.empty()) continue;
    CheckText(name, CheckDns1035Label, PathField(path, key), errors);
  }
  for (std::string_view key : {"kind", "listKind"}) {
    std::string_view name = json::GetString(names, {key});
    if (name.empty()) continue;
    if (std::string why = CheckDns1035Label(ToLower(name)); !why.empty()) {
      errors.push_back(
          InvalidText(PathField(path, key), name,
                      StrCat("may have mixed case, but should otherwise match: ", why)));
    }
  }
  auto labels = [&](std::string_view key) {
    for (const auto& [item, item_at] : ItemsOf(names, key, path)) {
      CheckText(TextIn(item), CheckDns1035Label, item_at, errors);
    }
  };
  labels("shortNames");
  std::string_view kind = json::GetString(names, {"kind"});
  if (!kind.empty() && kind == json::GetString(names, {"listKind"})) {
    errors.push_back(
        InvalidText("spec.names.listKind", kind, "kind and listKind may not be the same"));
  }
  labels("categories");
}

// A path into an object that names one field of each.
bool CheckSimplePath(std::string_view path, const std::string& at, FieldErrors& errors) {
  if (!path.starts_with('.')) {
    errors.push_back(InvalidText(at, path, "must be a simple json path starting with ."));
    return false;
  }
  return true;
}

void CheckColumns(const Value& version, const std::string& path, FieldErrors& errors) {
  static const std::vector<std::string> kTypes = {"boolean", "date", "integer", "number", "string"};
  static const std::vector<std::string> kFormats = {"byte",  "date",  "date-time", "double",
                                                    "float", "int32", "int64",     "password"};
  auto has = [](const std::vector<std::string>& list, std::string_view word) {
    return std::find(list.begin(), list.end(), word) != list.end();
  };
  for (const auto& [column, at] : ItemsOf(version, "additionalPrinterColumns", path)) {
    const std::string_view type = TextOf(column, "type");
    const std::string_view format = TextOf(column, "format");
    const std::string_view json_path = TextOf(column, "jsonPath");
    const std::string types = StrCat("must be one of ", Join(kTypes, ","));
    if (TextOf(column, "name").empty()) errors.push_back(RequiredError(PathField(at, "name")));
    if (type.empty()) {
      errors.push_back(RequiredError(PathField(at, "type"), types));
    } else if (!has(kTypes, type)) {
      errors.push_back(InvalidText(PathField(at, "type"), type, types));
    }
    if (!format.empty() && !has(kFormats, format)) {
      errors.push_back(InvalidText(PathField(at, "format"), format,
                                   StrCat("must be one of ", Join(kFormats, ","))));
    }
    if (json_path.empty()) {
      errors.push_back(RequiredError(PathField(at, "JSONPath")));
    } else {
      (void)CheckSimplePath(json_path, PathField(at, "JSONPath"), errors);
    }
  }
}

void CheckScale(const Value& version, const std::string& path, FieldErrors& errors) {
  const Value* scale = json::Find(version, {"subresources", "scale"});
  if (scale == nullptr || !scale->is_object()) return;
  const std::string at = PathField(path, "subresources.scale");
  for (const auto& [key, root] :
       {std::pair{"specReplicasPath", ".spec"}, std::pair{"statusReplicasPath", ".status"}}) {
    const std::string_view value = TextOf(*scale, key);
    if (value.empty()) {
      errors.push_back(RequiredError(PathField(at, key)));
    } else if (CheckSimplePath(value, PathField(at, key), errors) &&
               !value.starts_with(StrCat(root, "."))) {
      errors.push_back(
          InvalidText(PathField(at, key), value, StrCat("should be a json path under ", root)));
    }
  }
  const std::string_view labels = TextOf(*scale, "labelSelectorPath");
  const std::string labels_at = PathField(at, "labelSelectorPath");
  if (!labels.empty() && CheckSimplePath(labels, labels_at, errors) &&
      !labels.starts_with(".spec.") && !labels.starts_with(".status.")) {
    errors.push_back(
        InvalidText(labels_at, labels, "should be a json path under either .spec or .status"));
  }
}

// Where a part of the versions is told: once for all when it is the same in each.
struct SharedParts {
  explicit SharedParts(const json::Array& versions)
      : schema(Same(versions, {"schema", "openAPIV3Schema"})),
        subresources(Same(versions, {"subresources"})),
        columns(Same(versions, {"additionalPrinterColumns"})) {}

  static bool Same(const json::Array& versions, json::Path part) {
    for (const Value& version : versions) {
      const Value* first = json::Find(versions[0], part);
      const Value* other = json::Find(version, part);
      if (!json::Equal(first ? *first : Value(), other ? *other : Value())) return false;
    }
    return true;
  }

  bool schema, subresources, columns;
};

void CheckVersion(const Value& version, size_t i, const SharedParts& shared, FieldErrors& errors) {
  const std::string path = PathIndex("spec.versions", i);
  const std::string_view name = TextOf(version, "name");
  if (std::string why = CheckDns1035Label(name); !why.empty()) {
    errors.push_back(InvalidText(PathField(path, "name"), name, why));
    if (i == 0 && !name.empty()) errors.push_back(InvalidText("spec.version", name, why));
  }
  const Value* schema = json::Find(version, {"schema", "openAPIV3Schema"});
  const std::string schema_at = PathField(path, "schema.openAPIV3Schema");
  if (schema == nullptr || schema->is_null()) {
    errors.push_back(RequiredError(schema_at, "schemas are required"));
  } else if (!shared.schema || i == 0) {
    const std::string at = shared.schema ? "spec.validation.openAPIV3Schema" : schema_at;
    (void)ReadOpenApiSchema(*schema, at, errors);
    (void)ReadCrdRules(*schema, at, errors);
  }
  if (!shared.subresources || i == 0) {
    CheckScale(version, shared.subresources ? "spec" : path, errors);
  }
  if (!shared.columns || i == 0) CheckColumns(version, shared.columns ? "spec" : path, errors);
}

void CheckVersions(const Value& crd, FieldErrors& errors) {
  const json::Array& versions = json::GetArray(crd, {"spec", "versions"});
  const SharedParts shared(versions);
  int storage = 0;
  std::set<std::string> seen;
  bool unique = true;
  for (size_t i = 0; i < versions.size(); ++i) {
    CheckVersion(versions[i], i, shared, errors);
    unique = seen.emplace(TextOf(versions[i], "name")).second && unique;
    storage += json::GetBool(versions[i], {"storage"}) ? 1 : 0;
  }
  auto invalid = [&](std::string_view why) {
    const bool absent = json::Find(crd, {"spec", "versions"}) == nullptr;
    errors.push_back(versions.empty()
                         ? FieldError{"FieldValueInvalid", "spec.versions",
                                      StrCat("Invalid value: "
                                             "[]apiextensions.CustomResourceDefinitionVersion",
                                             absent ? "(nil): " : "{}: ", why)}
                         : InvalidError("spec.versions", versions, why));
  };
  if (!unique) invalid("must contain unique version names");
  if (storage != 1) invalid("must have exactly one version marked as storage version");
  if (storage == 0) {
    errors.push_back({"FieldValueInvalid", "status.storedVersions",
                      "Invalid value: []string(nil): must have at least one stored version"});
  }
  const json::Array& stored = json::GetArray(crd, {"status", "storedVersions"});
  for (const auto& [version, version_at] : ItemsOf(stored, "status.storedVersions")) {
    const std::string name(TextIn(version));
    if (name.empty() || seen.count(name) > 0) continue;
    errors.push_back(InvalidText(version_at, name, "must appear in spec.versions"));
  }
}

void CheckConversion(const Value& spec, FieldErrors& errors) {
  const Value* conversion = MemberOf(spec, "conversion");
  if (conversion == nullptr || TextOf(*conversion, "strategy") != "Webhook") return;
  const Value* client = json::Find(*conversion, {"webhook", "clientConfig"});
  const std::string at = "spec.conversion.webhookClientConfig";
  if (client == nullptr) {
    errors.push_back(RequiredError(at, "required when strategy is set to Webhook"));
  } else {
    CheckHookClient(client, at, errors);
  }
  CheckReviewVersions(json::GetArray(*conversion, {"webhook", "conversionReviewVersions"}),
                      "spec.conversion.conversionReviewVersions", errors);
}

}  // namespace

void CheckCrd(const Value& crd, std::vector<FieldError>& errors) {
  const Value* spec = &SpecOf(crd);
  std::string_view group = json::GetString(*spec, {"group"});
  std::string_view plural = json::GetString(*spec, {"names", "plural"});
  if (Name(crd) != StrCat(plural, ".", group)) {
    errors.push_back(
        InvalidText("metadata.name", Name(crd), "must be spec.names.plural+\".\"+spec.group"));
  }
  if (group.empty()) {
    errors.push_back(RequiredError("spec.group"));
  } else {
    if (std::string why = CheckDnsSubdomain(group); !why.empty()) {
      errors.push_back(InvalidText("spec.group", group, why));
    } else if (group.find('.') == std::string_view::npos) {
      errors.push_back(
          InvalidText("spec.group", group, "should be a domain with at least one dot"));
    }
  }
  if (TextOf(*spec, "scope").empty()) errors.push_back(RequiredError("spec.scope"));
  CheckOneOf(*spec, "scope", "spec", {"Cluster", "Namespaced"}, errors);
  bool is_protected = group == "k8s.io" || group == "kubernetes.io" || group.ends_with(".k8s.io") ||
                      group.ends_with(".kubernetes.io");
  if (is_protected && Annotation(crd, "api-approved.kubernetes.io").empty()) {
    errors.push_back(RequiredError(
        "metadata.annotations[api-approved.kubernetes.io]",
        "protected groups must have approval annotation \"api-approved.kubernetes.io\", see "
        "https://github.com/kubernetes/enhancements/pull/1111"));
  }
  if (json::GetBool(*spec, {"preserveUnknownFields"})) {
    errors.push_back(InvalidError("spec.preserveUnknownFields", Value(true),
                                  "cannot set to true, set x-preserve-unknown-fields to true in "
                                  "spec.versions[*].schema instead"));
  }
  CheckVersions(crd, errors);
  static const Value kNothing = json::Object();
  const Value* names = MemberOf(*spec, "names");
  CheckNames(names ? *names : kNothing, errors);
  CheckConversion(*spec, errors);
}

namespace {

void ReadColumns(const Value& version, KindInfo& kind) {
  for (const Value& c : json::GetArray(version, {"additionalPrinterColumns"})) {
    PrinterColumn column;
    column.name = std::string(json::GetString(c, {"name"}));
    column.type = std::string(json::GetString(c, {"type"}));
    column.format = std::string(json::GetString(c, {"format"}));
    column.description = std::string(json::GetString(c, {"description"}));
    column.priority = static_cast<int>(json::GetInt(c, {"priority"}));
    column.json_path = std::string(json::GetString(c, {"jsonPath"}));
    if (column.description.empty()) {
      column.description =
          StrCat("Custom resource definition column (in JSONPath format): ", column.json_path);
    }
    kind.columns.push_back(std::move(column));
  }
  // Kubernetes shows the age only when the definition names no columns of its own.
}

void ReadSubresources(const Value& version, KindInfo& kind) {
  const Value* subresources = json::Find(version, {"subresources"});
  if (subresources == nullptr) return;
  const Value* status = json::Find(*subresources, {"status"});
  kind.has_status = status != nullptr && !status->is_null();
  if (const Value* scale = json::Find(*subresources, {"scale"}); scale && scale->is_object()) {
    kind.has_scale = true;
    kind.scale_spec_path = std::string(json::GetString(*scale, {"specReplicasPath"}));
    kind.scale_status_path = std::string(json::GetString(*scale, {"statusReplicasPath"}));
    kind.scale_selector_path = std::string(json::GetString(*scale, {"labelSelectorPath"}));
    kind.subresources.emplace_back("scale");
  }
  if (kind.has_status) kind.subresources.emplace_back("status");
}

Status InvalidCrd(const Value& crd, const std::vector<FieldError>& errors) {
  StatusDetails details;
  details.name = std::string(Name(crd));
  details.group = "apiextensions.k8s.io";
  details.kind = "CustomResourceDefinition";
  std::vector<std::string> texts;
  for (const FieldError& e : errors) {
    details.causes.push_back({e.reason, e.field, e.message});
    texts.push_back(StrCat(e.field, ": ", e.message));
  }
  const std::string text = Join(texts, ", ");
  return Status(Code::kInvalid,
                StrCat("CustomResourceDefinition.apiextensions.k8s.io ", Quote(Name(crd)),
                       " is invalid: ", texts.size() > 1 ? StrCat("[", text, "]") : text),
                std::move(details));
}

// What a kind's names, scope and version say of it.
void ReadNames(const Value& crd, const Value& version, KindInfo& kind) {
  kind.gvk = {std::string(json::GetString(crd, {"spec", "group"})),
              std::string(json::GetString(version, {"name"})),
              std::string(json::GetString(crd, {"spec", "names", "kind"}))};
  kind.plural = std::string(json::GetString(crd, {"spec", "names", "plural"}));
  kind.singular = std::string(json::GetString(crd, {"spec", "names", "singular"}));
  if (kind.singular.empty()) kind.singular = ToLower(kind.gvk.kind);
  kind.short_names = json::Texts(json::GetArray(crd, {"spec", "names", "shortNames"}));
  kind.categories = json::Texts(json::GetArray(crd, {"spec", "names", "categories"}));
  kind.namespaced = json::GetString(crd, {"spec", "scope"}) == "Namespaced";
  kind.custom = true;
  kind.served = json::GetBool(version, {"served"});
  if (json::GetBool(version, {"deprecated"})) {
    const std::string_view own = json::GetString(version, {"deprecationWarning"});
    kind.deprecation = own.empty()
                           ? StrCat(kind.gvk.ApiVersion(), " ", kind.gvk.kind, " is deprecated")
                           : std::string(own);
  }
  // In the order in which kube-apiserver names them, which kubectl keeps.
  kind.verbs = {"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"};
}

}  // namespace

Result<std::vector<CrdVersion>> KindsOfCrd(const Value& crd) {
  std::vector<FieldError> errors;
  CheckCrd(crd, errors);
  if (!errors.empty()) return InvalidCrd(crd, errors);
  std::vector<CrdVersion> out;
  for (const Value& version : json::GetArray(crd, {"spec", "versions"})) {
    CrdVersion entry;
    KindInfo& kind = entry.kind;
    ReadNames(crd, version, kind);
    const Value& schema = *json::Find(version, {"schema", "openAPIV3Schema"});
    kind.schema = ReadOpenApiSchema(schema, "", errors);
    if (auto rules = ReadCrdRules(schema, "", errors)) {
      kind.rules = [rules = std::move(rules)](const Value& object, const Value* old) {
        return CheckCrdRules(*rules, object, old);
      };
    }
    ReadSubresources(version, kind);
    ReadColumns(version, kind);
    for (const Value& field : json::GetArray(version, {"selectableFields"})) {
      std::string_view path = json::GetString(field, {"jsonPath"});
      if (path.starts_with('.')) kind.selectable_fields.emplace_back(path.substr(1));
    }
    entry.storage = json::GetBool(version, {"storage"});
    out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace swell::api
