// Rules of configuration.
#include <algorithm>
#include <set>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/validate/validate_rules.h"

namespace swell::api {
namespace {

using json::Value;

// What a base64 text stands for.
size_t DecodedBytes(std::string_view text) {
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  return text.size() / 4 * 3 - std::min(padding, text.size() / 4 * 3);
}

void CheckDataKeys(const Value& object, bool secret, FieldErrors& errors) {
  constexpr size_t kMaxBytes = 1 << 20;
  size_t bytes = 0;
  for (std::string_view field : {"data", "binaryData"}) {
    for (const auto& member : json::GetObject(object, {field})) {
      std::string_view key = member.key();
      CheckText(key, CheckConfigMapKey, PathKey(field, key), errors);
      if (field == "binaryData" && json::GetObject(object, {"data"}).contains(key)) {
        errors.push_back(InvalidText(PathKey("data", key), key,
                                     "duplicate of key present in "
                                     "binaryData"));
      }
      const std::string_view text = TextIn(member.value());
      bytes += secret || field == "binaryData" ? DecodedBytes(text) : text.size();
    }
  }
  // What holds for the whole has no name there.
  if (bytes > kMaxBytes) errors.push_back(TooLongError(secret ? "data" : "[]", kMaxBytes));
}

void CheckImmutableData(const Value& object, const Value& old, FieldErrors& errors) {
  if (!json::GetBool(old, {"immutable"})) return;
  constexpr std::string_view kWhy = "field is immutable when `immutable` is set";
  if (!json::GetBool(object, {"immutable"})) {
    errors.push_back(ForbiddenError("immutable", kWhy));
  }
  for (std::string_view key : {"data", "binaryData"}) {
    const Value* a = MemberOf(object, key);
    const Value* b = MemberOf(old, key);
    if (!json::Equal(a ? *a : Value(), b ? *b : Value())) {
      errors.push_back(ForbiddenError(std::string(key), kWhy));
    }
  }
}

// Secret types promise keys.
void CheckSecretType(const Value& secret, FieldErrors& errors) {
  static constexpr std::pair<std::string_view, std::string_view> kKeys[] = {
      {"kubernetes.io/dockercfg", ".dockercfg"},
      {"kubernetes.io/dockerconfigjson", ".dockerconfigjson"},
      {"kubernetes.io/tls", "tls.crt"},
      {"kubernetes.io/tls", "tls.key"},
  };
  std::string_view type = TextOf(secret, "type");
  const json::Object& data = json::GetObject(secret, {"data"});
  for (const auto& [of, key] : kKeys) {
    if (of == type && !data.contains(key)) {
      errors.push_back(RequiredError(PathKey("data", key)));
    }
  }
  if (type == "kubernetes.io/basic-auth" && !data.contains("username") &&
      !data.contains("password")) {
    errors.push_back(RequiredError("data[username]"));
    errors.push_back(RequiredError("data[password]"));
  }
  if (type == "kubernetes.io/ssh-auth" &&
      json::GetString(secret, {"data", "ssh-privatekey"}).empty()) {
    errors.push_back(RequiredError("data[ssh-privatekey]"));
  }
  for (std::string_view key : {".dockercfg", ".dockerconfigjson"}) {
    const Value* text = type.starts_with("kubernetes.io/docker") ? data.if_contains(key) : nullptr;
    if (text == nullptr || !text->is_string()) continue;
    const std::optional<std::string> config = Base64Decode(json::View(text->get_string()));
    if (config && !json::Parse(*config).ok()) {
      const std::string_view start = Trim(*config);
      errors.push_back(InvalidText(PathKey("data", key), "<secret contents redacted>",
                                   start.empty() || start.starts_with('{')
                                       ? "unexpected end of JSON input"
                                       : StrCat("invalid character '", start.substr(0, 1),
                                                "' looking for beginning of value")));
    }
  }
  if (type == "kubernetes.io/service-account-token" &&
      Annotation(secret, "kubernetes.io/service-account.name").empty()) {
    errors.push_back(RequiredError("metadata.annotations[kubernetes.io/service-account.name]"));
  }
}

}  // namespace

bool CheckConfig(const KindInfo& kind, const Value& object, const Value* old, FieldErrors& errors) {
  const std::string& k = kind.gvk.kind;
  if (k == "ConfigMap" || k == "Secret") {
    CheckDataKeys(object, k == "Secret", errors);
    if (old != nullptr) CheckImmutableData(object, *old, errors);
    if (k == "Secret") CheckSecretType(object, errors);
    if (k == "Secret" && old != nullptr) {
      CheckImmutable(MemberOf(object, "type"), MemberOf(*old, "type"), "type", errors);
    }
  } else if (k == "ResourceQuota") {
    CheckQuota(object, old, errors);
  } else if (k == "LimitRange") {
    CheckLimitRange(object, errors);
  } else {
    return false;
  }
  return true;
}

}  // namespace swell::api
