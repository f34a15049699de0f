// CustomResourceDefinition objects: their own rules, and the kinds they add.
#include <set>

#include "api/crd_schema.h"
#include "api/field_errors.h"
#include "api/meta.h"
#include "api/scheme.h"
#include "base/strings.h"

namespace swell::api {
namespace {

using json::Value;

// A DNS-1035 label: what resource names, versions and short names must be.
std::string CheckDns1035(std::string_view name) {
  bool fine =
      !name.empty() && name.size() <= 63 && name[0] >= 'a' && name[0] <= 'z' && name.back() != '-';
  for (char c : name) fine = fine && ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-');
  if (fine) return {};
  if (name.size() > 63) return "must be no more than 63 characters";
  return "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with "
         "an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or "
         "'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
}

void CheckNames(const Value& names, std::vector<FieldError>& errors) {
  const std::string path = "spec.names";
  for (std::string_view key : {"plural", "singular"}) {
    std::string_view name = json::GetString(names, {key});
    if (key == "singular" && name.empty()) continue;
    if (name.empty()) continue;  // the schema says that it is required
    if (std::string why = CheckDns1035(name); !why.empty()) {
      errors.push_back(InvalidText(PathField(path, key), name, why));
    }
  }
  for (std::string_view key : {"kind", "listKind"}) {
    std::string_view name = json::GetString(names, {key});
    if (name.empty()) continue;
    if (std::string why = CheckDns1035(ToLower(name)); !why.empty()) {
      errors.push_back(
          InvalidText(PathField(path, key), name,
                      StrCat("may have mixed case, but should otherwise match: ", why)));
    }
  }
  std::string_view kind = json::GetString(names, {"kind"});
  if (!kind.empty() && kind == json::GetString(names, {"listKind"})) {
    errors.push_back(
        InvalidText("spec.names.listKind", kind, "kind and listKind may not be the same"));
  }
  const json::Array& short_names = json::GetArray(names, {"shortNames"});
  for (size_t i = 0; i < short_names.size(); ++i) {
    std::string_view name =
        short_names[i].is_string() ? json::View(short_names[i].get_string()) : std::string_view();
    if (std::string why = CheckDns1035(name); !why.empty()) {
      errors.push_back(InvalidText(PathIndex("spec.names.shortNames", i), name, why));
    }
  }
}

void CheckColumns(const Value& version, const std::string& path, std::vector<FieldError>& errors) {
  const json::Array& columns = json::GetArray(version, {"additionalPrinterColumns"});
  static const std::vector<std::string> kTypes = {"boolean", "date", "integer", "number", "string"};
  for (size_t i = 0; i < columns.size(); ++i) {
    std::string at = PathIndex(PathField(path, "additionalPrinterColumns"), i);
    std::string_view type = json::GetString(columns[i], {"type"});
    bool known = false;
    for (const std::string& t : kTypes) known = known || t == type;
    if (!known)
      errors.push_back(InvalidText(PathField(at, "type"), type,
                                   "must be one of boolean,date,integer,number,string"));
    std::string_view json_path = json::GetString(columns[i], {"jsonPath"});
    if (!json_path.starts_with('.')) {
      errors.push_back(InvalidText(PathField(at, "JSONPath"), json_path,
                                   "must be a simple json path starting with ."));
    }
  }
}

void CheckScale(const Value& version, const std::string& path, std::vector<FieldError>& errors) {
  const Value* scale = json::Find(version, {"subresources", "scale"});
  if (scale == nullptr) return;
  std::string at = PathField(path, "subresources.scale");
  const std::pair<std::string_view, std::string_view> rules[] = {
      {"specReplicasPath", ".spec."}, {"statusReplicasPath", ".status."}};
  for (const auto& [key, prefix] : rules) {
    std::string_view value = json::GetString(*scale, {key});
    if (value.empty()) {
      errors.push_back(RequiredError(PathField(at, key)));
    } else if (!value.starts_with(prefix)) {
      errors.push_back(
          InvalidText(PathField(at, key), value,
                      StrCat("should be a json path under ", prefix.substr(0, prefix.size() - 1))));
    }
  }
}

void CheckVersions(const Value& crd, std::vector<FieldError>& errors) {
  const json::Array& versions = json::GetArray(crd, {"spec", "versions"});
  int storage = 0;
  std::set<std::string> seen;
  for (size_t i = 0; i < versions.size(); ++i) {
    std::string path = PathIndex("spec.versions", i);
    const Value& version = versions[i];
    std::string name(json::GetString(version, {"name"}));
    if (std::string why = CheckDns1035(name); !why.empty()) {
      errors.push_back(InvalidText(PathField(path, "name"), name, why));
    }
    if (!seen.insert(name).second) {
      errors.push_back(InvalidText("spec.versions", name, "must contain unique version names"));
    }
    storage += json::GetBool(version, {"storage"}) ? 1 : 0;
    const Value* schema = json::Find(version, {"schema", "openAPIV3Schema"});
    if (schema == nullptr || schema->is_null()) {
      errors.push_back(
          RequiredError(PathField(path, "schema.openAPIV3Schema"), "schemas are required"));
    } else {
      (void)ReadOpenApiSchema(*schema, PathField(path, "schema.openAPIV3Schema"), errors);
    }
    CheckColumns(version, path, errors);
    CheckScale(version, path, errors);
  }
  const json::Array& stored = json::GetArray(crd, {"status", "storedVersions"});
  for (size_t i = 0; i < stored.size(); ++i) {
    if (!stored[i].is_string()) continue;
    const std::string name(json::View(stored[i].get_string()));
    if (name.empty() || seen.count(name) > 0) continue;
    errors.push_back(
        InvalidText(PathIndex("status.storedVersions", i), name, "must appear in spec.versions"));
  }
  if (storage != 1) {
    errors.push_back(InvalidError("spec.versions", versions.empty() ? Value("null") : versions,
                                  "must have exactly one version marked as storage version"));
  }
}

}  // namespace

void CheckCrd(const Value& crd, std::vector<FieldError>& errors) {
  const Value* spec = json::Find(crd, {"spec"});
  if (spec == nullptr || !spec->is_object()) return;
  std::string_view group = json::GetString(*spec, {"group"});
  std::string_view plural = json::GetString(*spec, {"names", "plural"});
  if (!group.empty()) {
    if (std::string why = CheckDnsSubdomain(group); !why.empty()) {
      errors.push_back(InvalidText("spec.group", group, why));
    } else if (group.find('.') == std::string_view::npos) {
      errors.push_back(
          InvalidText("spec.group", group, "should be a domain with at least one dot"));
    }
  }
  if (Name(crd) != StrCat(plural, ".", group)) {
    errors.push_back(
        InvalidText("metadata.name", Name(crd), "must be spec.names.plural+\".\"+spec.group"));
  }
  bool is_protected = group == "k8s.io" || group == "kubernetes.io" || group.ends_with(".k8s.io") ||
                      group.ends_with(".kubernetes.io");
  if (is_protected && Annotation(crd, "api-approved.kubernetes.io").empty()) {
    errors.push_back(RequiredError(
        "metadata.annotations[api-approved.kubernetes.io]",
        "protected groups must have approval annotation \"api-approved.kubernetes.io\""));
  }
  if (json::GetBool(*spec, {"preserveUnknownFields"})) {
    errors.push_back(InvalidError("spec.preserveUnknownFields", Value(true),
                                  "cannot set to true, set x-kubernetes-preserve-unknown-fields "
                                  "to true in spec.versions[*].schema instead"));
  }
  if (const Value* names = json::Find(*spec, {"names"})) CheckNames(*names, errors);
  CheckVersions(crd, errors);
}

namespace {

std::vector<std::string> Strings(const json::Array& list) {
  std::vector<std::string> out;
  for (const Value& item : list) {
    if (item.is_string()) out.emplace_back(json::View(item.get_string()));
  }
  return out;
}

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

}  // namespace

Result<std::vector<CrdVersion>> KindsOfCrd(const Value& crd) {
  std::vector<FieldError> errors;
  CheckCrd(crd, errors);
  if (!errors.empty()) {
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
  std::vector<CrdVersion> out;
  for (const Value& version : json::GetArray(crd, {"spec", "versions"})) {
    CrdVersion entry;
    KindInfo& kind = entry.kind;
    kind.gvk = {std::string(json::GetString(crd, {"spec", "group"})),
                std::string(json::GetString(version, {"name"})),
                std::string(json::GetString(crd, {"spec", "names", "kind"}))};
    kind.plural = std::string(json::GetString(crd, {"spec", "names", "plural"}));
    kind.singular = std::string(json::GetString(crd, {"spec", "names", "singular"}));
    if (kind.singular.empty()) kind.singular = ToLower(kind.gvk.kind);
    kind.short_names = Strings(json::GetArray(crd, {"spec", "names", "shortNames"}));
    kind.categories = Strings(json::GetArray(crd, {"spec", "names", "categories"}));
    kind.namespaced = json::GetString(crd, {"spec", "scope"}) == "Namespaced";
    kind.custom = true;
    kind.served = json::GetBool(version, {"served"});
    if (json::GetBool(version, {"deprecated"})) {
      const std::string_view own = json::GetString(version, {"deprecationWarning"});
      kind.deprecation = own.empty()
                             ? StrCat(kind.gvk.ApiVersion(), " ", kind.gvk.kind, " is deprecated")
                             : std::string(own);
    }
    kind.verbs = {"create", "delete", "deletecollection", "get",
                  "list",   "patch",  "update",           "watch"};
    kind.schema =
        ReadOpenApiSchema(*json::Find(version, {"schema", "openAPIV3Schema"}), "", errors);
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
