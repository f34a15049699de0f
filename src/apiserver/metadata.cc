#include "apiserver/metadata.h"

#include "api/meta.h"
#include "apiserver/errors.h"
#include "apiserver/hooks.h"
#include "base/strings.h"

namespace swell::apiserver {
namespace {

using Errors = std::vector<api::FieldError>;

constexpr size_t kMaxAnnotationBytes = 256 << 10;
constexpr size_t kMaxNameBytes = 253;

std::string CheckName(const api::KindInfo& kind, const std::string& name) {
  const ResourceHooks& hooks = HooksOf(kind);
  if (hooks.path_segment_names) {
    if (name == "." || name == "..") return StrCat("may not be '", name, "'");
    if (name.find('/') != std::string::npos) return "may not contain '/'";
    if (name.find('%') != std::string::npos) return "may not contain '%'";
    return {};
  }
  return hooks.label_names ? api::CheckDnsLabel(name) : api::CheckDnsSubdomain(name);
}

void CheckLabels(const json::Value& object, Errors& errors) {
  for (const auto& [key, value] : json::GetObject(object, {"metadata", "labels"})) {
    const std::string_view name(key.data(), key.size());
    const std::string bad_key = api::CheckQualifiedName(name);
    if (!bad_key.empty()) errors.push_back(InvalidValue("metadata.labels", name, bad_key));
    if (!value.is_string()) continue;
    const std::string bad_value = api::CheckLabelValue(json::View(value.get_string()));
    if (!bad_value.empty()) {
      errors.push_back(
          InvalidValue("metadata.labels", json::View(value.get_string()), bad_value));
    }
  }
}

void CheckAnnotations(const json::Value& object, Errors& errors) {
  size_t bytes = 0;
  for (const auto& [key, value] : json::GetObject(object, {"metadata", "annotations"})) {
    const std::string_view name(key.data(), key.size());
    const std::string bad_key = api::CheckQualifiedName(ToLower(name));
    if (!bad_key.empty()) errors.push_back(InvalidValue("metadata.annotations", name, bad_key));
    bytes += key.size() + (value.is_string() ? value.get_string().size() : 0);
  }
  if (bytes > kMaxAnnotationBytes) {
    errors.push_back({"FieldValueTooLong", "metadata.annotations",
                      StrCat("Too long: may not be more than ", kMaxAnnotationBytes, " bytes")});
  }
}

void CheckOwners(const json::Value& object, Errors& errors) {
  const json::Array& owners = json::GetArray(object, {"metadata", "ownerReferences"});
  std::string controller;
  for (size_t i = 0; i < owners.size(); ++i) {
    const std::string path = StrCat("metadata.ownerReferences[", i, "]");
    for (const char* field : {"apiVersion", "kind", "name", "uid"}) {
      if (json::GetString(owners[i], {field}).empty()) {
        errors.push_back(InvalidValue(StrCat(path, ".", field), "", "must not be empty"));
      }
    }
    if (!json::GetBool(owners[i], {"controller"})) continue;
    const std::string name(json::GetString(owners[i], {"name"}));
    if (!controller.empty()) {
      errors.push_back(InvalidValue(
          "metadata.ownerReferences", name,
          StrCat("Only one reference can have Controller set to true. Found \"true\" in "
                 "references for ",
                 controller, " and ", name)));
    }
    controller = name;
  }
}

void CheckFinalizerNames(const json::Value& object, Errors& errors) {
  for (const json::Value& finalizer : json::GetArray(object, {"metadata", "finalizers"})) {
    if (!finalizer.is_string()) continue;
    const std::string_view name = json::View(finalizer.get_string());
    const std::string bad = api::CheckQualifiedName(name);
    if (!bad.empty()) errors.push_back(InvalidValue("metadata.finalizers", name, bad));
  }
}

}  // namespace

Errors ValidateMetadata(const api::KindInfo& kind, const json::Value& object,
                        const json::Value* old) {
  Errors errors;
  const std::string name(api::Name(object));
  if (old == nullptr) {
    const std::string bad =
        name.size() > kMaxNameBytes ? "must be no more than 253 characters" : CheckName(kind, name);
    if (!bad.empty()) errors.push_back(InvalidValue("metadata.name", name, bad));
  }
  CheckLabels(object, errors);
  CheckAnnotations(object, errors);
  CheckOwners(object, errors);
  CheckFinalizerNames(object, errors);
  return errors;
}

}  // namespace swell::apiserver
