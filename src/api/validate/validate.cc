// ValidateObject: metadata for every kind, then the kind's own rules.

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <set>

#include "api/crd/crd_schema.h"
#include "api/meta.h"
#include "api/validate/validate_rules.h"
#include "base/strings.h"

namespace swell::api {

using json::Value;

std::string_view TextOf(const Value& parent, std::string_view key) {
  return json::GetString(parent, {key});
}

const Value* MemberOf(const Value& parent, std::string_view key) {
  const Value* value = json::Find(parent, {key});
  return value && !value->is_null() ? value : nullptr;
}

std::string_view TextIn(const Value& value) {
  return value.is_string() ? json::View(value.get_string()) : std::string_view();
}

const Value& SpecOf(const Value& object) {
  static const Value kNothing = json::Object();
  const Value* spec = MemberOf(object, "spec");
  return spec != nullptr ? *spec : kNothing;
}

std::string CheckDns1035Label(std::string_view name) {
  if (name.size() > 63) return "must be no more than 63 characters";
  bool fine = !name.empty() && name[0] >= 'a' && name[0] <= 'z' && name.back() != '-';
  for (char c : name) {
    fine = fine && ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-');
  }
  if (fine) return {};
  return "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with "
         "an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or "
         "'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
}

std::string CheckPathSegmentName(std::string_view name) {
  if (name == "." || name == "..") return StrCat("may not be '", name, "'");
  for (char c : {'/', '%'}) {
    if (name.find(c) != std::string_view::npos) return StrCat("may not contain '", c, "'");
  }
  return {};
}

std::string CheckConfigMapKey(std::string_view key) {
  if (key.size() > 253) return "must be no more than 253 characters";
  bool fine = !key.empty();
  for (char c : key) {
    fine = fine && (isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.');
  }
  if (!fine) {
    return "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
           "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
           "'[-._a-zA-Z0-9]+')";
  }
  if (key == ".") return "must not be '.'";
  if (key == "..") return "must not be '..'";
  if (key.starts_with("..")) return "must not start with '..'";
  return {};
}

std::string CheckIp(std::string_view ip) {
  const std::string text(ip);
  std::array<unsigned char, 16> bytes{};
  const int family = ip.find(':') != std::string_view::npos ? AF_INET6 : AF_INET;
  if (inet_pton(family, text.c_str(), bytes.data()) == 1 &&
      text.size() == std::strlen(text.c_str())) {
    return {};
  }
  return "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
}

std::string CheckPort(int64_t port) {
  return port >= 1 && port <= 65535 ? "" : "must be between 1 and 65535, inclusive";
}

std::string CheckEnvVarName(std::string_view name) {
  bool fine = !name.empty() && !isdigit(static_cast<unsigned char>(name[0]));
  for (char c : name) {
    fine = fine && (isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.');
  }
  if (!fine) {
    return "a valid environment variable name must consist of alphabetic characters, digits, '_', "
           "'-', or '.', and must not start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME', "
           " or 'MyEnvName1', regex used for validation is '[-._a-zA-Z][-._a-zA-Z0-9]*')";
  }
  if (name == ".") return "must not be '.'";
  if (name == "..") return "must not be '..'";
  if (name.starts_with("..")) return "must not start with '..'";
  return {};
}

void CheckItemName(const Value& item,
                   const std::string& at,
                   std::set<std::string>& names,
                   FieldErrors& errors) {
  const std::string name(TextOf(item, "name"));
  if (name.empty()) {
    errors.push_back(RequiredError(PathField(at, "name")));
  } else if (std::string why = CheckDnsLabel(name); !why.empty()) {
    errors.push_back(InvalidText(PathField(at, "name"), name, why));
  }
  if (!names.insert(name).second && !name.empty()) {
    errors.push_back(DuplicateError(PathField(at, "name"), Value(name)));
  }
}

bool CheckPortName(std::string_view name, const std::string& path, FieldErrors& errors) {
  const size_t before = errors.size();
  auto invalid = [&](std::string_view why) { errors.push_back(InvalidText(path, name, why)); };
  bool fine = !name.empty();
  bool letter = false;
  for (char c : name) {
    letter = letter || (c >= 'a' && c <= 'z');
    fine = fine && ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-');
  }
  if (name.size() > 15) invalid("must be no more than 15 characters");
  if (!fine) invalid("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
  if (!letter) invalid("must contain at least one letter or number (a-z, 0-9)");
  if (name.find("--") != std::string_view::npos) invalid("must not contain consecutive hyphens");
  if (!name.empty() && (name.front() == '-' || name.back() == '-')) {
    invalid("must not begin or end with a hyphen");
  }
  return errors.size() == before;
}

void CheckPortOrName(const Value& port, const std::string& path, FieldErrors& errors) {
  if (port.is_string()) {
    CheckPortName(json::View(port.get_string()), path, errors);
  } else if (std::string why = CheckPort(json::GetInt(port, {})); !why.empty()) {
    errors.push_back(InvalidError(path, port, why));
  }
}

void CheckOneOf(const Value& parent,
                std::string_view key,
                const std::string& path,
                const std::vector<std::string>& supported,
                FieldErrors& errors) {
  const std::string_view text = TextOf(parent, key);
  if (text.empty()) return;
  if (std::find(supported.begin(), supported.end(), text) != supported.end()) return;
  errors.push_back(NotSupportedError(PathField(path, key), text, supported));
}

void CheckSubdomain(const Value& parent,
                    std::string_view key,
                    const std::string& path,
                    FieldErrors& errors) {
  const std::string_view text = TextOf(parent, key);
  if (text.empty()) return;
  if (std::string why = CheckDnsSubdomain(text); !why.empty()) {
    errors.push_back(InvalidText(PathField(path, key), text, why));
  }
}

FieldError InvalidIntOrText(std::string path, const Value& value, std::string_view detail) {
  const std::string shown =
      value.is_string() ? StrCat("Type:1, IntVal:0, StrVal:", Quote(TextIn(value)))
                        : StrCat("Type:0, IntVal:", json::GetInt(value, {}), ", StrVal:\"\"");
  return {"FieldValueInvalid", std::move(path),
          StrCat("Invalid value: intstr.IntOrString{", shown, "}: ", detail)};
}

FieldError InvalidQuantity(std::string path, const Value& amount, std::string_view detail) {
  return {"FieldValueInvalid", std::move(path),
          StrCat("Invalid value: ", ShowQuantity(amount), ": ", detail)};
}

FieldError InvalidTexts(std::string path, const json::Array& texts, std::string_view detail) {
  std::vector<std::string> quoted;
  for (const Value& text : texts) quoted.push_back(Quote(TextIn(text)));
  return {"FieldValueInvalid", std::move(path),
          StrCat("Invalid value: []string{", Join(quoted, ", "), "}: ", detail)};
}

namespace {

std::optional<uint64_t> PercentOf(const Value& amount) {
  const std::string_view text = TextIn(amount);
  if (!text.ends_with('%')) return std::nullopt;
  return ParseUint(text.substr(0, text.size() - 1));
}

}  // namespace

void CheckIntOrPercent(const Value& parent,
                       std::string_view key,
                       const std::string& path,
                       FieldErrors& errors) {
  const Value* amount = MemberOf(parent, key);
  if (amount == nullptr) return;
  if (!amount->is_string()) {
    CheckNonNegative(parent, key, path, errors);
  } else if (!PercentOf(*amount)) {
    errors.push_back(InvalidIntOrText(
        PathField(path, key), *amount,
        "a valid percent string must be a numeric string followed by an ending '%' (e.g. "
        "'1%',  or '93%', regex used for validation is '[0-9]+%')"));
  }
}

void CheckNotAbove100Percent(const Value& parent,
                             std::string_view key,
                             const std::string& path,
                             FieldErrors& errors) {
  const Value* amount = MemberOf(parent, key);
  const std::optional<uint64_t> percent = amount ? PercentOf(*amount) : std::nullopt;
  if (!percent || *percent <= 100) return;
  errors.push_back(
      InvalidIntOrText(PathField(path, key), *amount, "must not be greater than 100%"));
}

void CheckQualified(std::string_view key,
                    const std::string& path,
                    FieldErrors& errors,
                    bool any_case) {
  const std::string why = any_case ? CheckQualifiedName(ToLower(key)) : CheckQualifiedName(key);
  if (why.empty()) return;
  errors.push_back(InvalidText(path, key, why));
  // An empty name breaks two rules; so may a long one.
  const size_t slash = key.find('/');
  const std::string_view name = slash == std::string_view::npos ? key : key.substr(slash + 1);
  if (name.empty() && slash != 0) {
    errors.push_back(InvalidText(path, key, CheckQualifiedName("-")));
  }
}

void CheckLabels(const Value& labels, const std::string& path, FieldErrors& errors) {
  for (const auto& label : json::GetObject(labels, {})) {
    std::string_view key = label.key();
    CheckQualified(key, path, errors);
    if (!label.value().is_string()) continue;
    std::string_view value = json::View(label.value().get_string());
    if (std::string why = CheckLabelValue(value); !why.empty()) {
      errors.push_back(InvalidText(path, value, why));
    }
  }
}

void CheckAnnotations(const Value& annotations, const std::string& path, FieldErrors& errors) {
  constexpr size_t kMaxBytes = 256 << 10;
  size_t bytes = 0;
  for (const auto& member : json::GetObject(annotations, {})) {
    std::string_view key = member.key();
    CheckQualified(key, path, errors, true);
    bytes += key.size();
    if (member.value().is_string()) bytes += member.value().get_string().size();
  }
  if (bytes > kMaxBytes) errors.push_back(TooLongError(path, kMaxBytes));
}

void CheckNonNegative(const Value& parent,
                      std::string_view key,
                      const std::string& path,
                      FieldErrors& errors) {
  const Value* value = MemberOf(parent, key);
  if (value != nullptr && value->is_int64() && value->get_int64() < 0) {
    errors.push_back(
        InvalidError(PathField(path, key), *value, "must be greater than or equal to 0"));
  }
}

void CheckImmutable(const Value* now,
                    const Value* before,
                    const std::string& path,
                    FieldErrors& errors,
                    std::string_view detail) {
  Value nothing;
  const Value& a = now ? *now : nothing;
  const Value& b = before ? *before : nothing;
  if (!json::Equal(a, b)) errors.push_back(InvalidError(path, a, detail));
}

void CheckLabelSelector(const Value& selector, const std::string& path, FieldErrors& errors) {
  if (const Value* labels = MemberOf(selector, "matchLabels")) {
    CheckLabels(*labels, PathField(path, "matchLabels"), errors);
  }
  const json::Array& terms = json::GetArray(selector, {"matchExpressions"});
  for (size_t i = 0; i < terms.size(); ++i) {
    std::string at = PathIndex(PathField(path, "matchExpressions"), i);
    std::string_view op = TextOf(terms[i], "operator");
    const json::Array& values = json::GetArray(terms[i], {"values"});
    if (op == "In" || op == "NotIn") {
      if (values.empty()) {
        errors.push_back(RequiredError(PathField(at, "values"),
                                       "must be specified when `operator` is 'In' or 'NotIn'"));
      }
    } else if (op == "Exists" || op == "DoesNotExist") {
      if (!values.empty()) {
        errors.push_back(
            ForbiddenError(PathField(at, "values"),
                           "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
      }
    } else {
      errors.push_back(InvalidText(PathField(at, "operator"), op, "not a valid selector operator"));
    }
    std::string_view key = TextOf(terms[i], "key");
    CheckQualified(key, PathField(at, "key"), errors);
  }
}

namespace {

std::string CheckObjectName(const KindInfo& kind, std::string_view name) {
  const std::string& k = kind.gvk.kind;
  if (!kind.custom) {
    if (k == "Namespace") return CheckDnsLabel(name);
    if (k == "Service") return CheckDns1035Label(name);
    if (kind.gvk.group == "rbac.authorization.k8s.io") {
      return CheckPathSegmentName(name);
    }
  }
  return CheckDnsSubdomain(name);
}

void CheckNames(const KindInfo& kind, const Value& object, FieldErrors& errors) {
  std::string name(Name(object));
  std::string_view generate = json::GetString(object, {"metadata", "generateName"});
  if (!generate.empty()) {
    std::string probe(generate);
    if (probe.back() == '-') probe.back() = 'a';  // a suffix follows
    if (std::string why = CheckObjectName(kind, probe); !why.empty()) {
      errors.push_back(InvalidText("metadata.generateName", generate, why));
    }
  }
  if (name.empty()) {
    if (generate.empty() && !kind.read_only) {
      errors.push_back(RequiredError("metadata.name", "name or generateName is required"));
    }
    return;
  }
  if (std::string why = CheckObjectName(kind, name); !why.empty()) {
    errors.push_back(InvalidText("metadata.name", name, why));
  }
}

void CheckOwners(const Value& object, FieldErrors& errors) {
  const json::Array& owners = json::GetArray(object, {"metadata", "ownerReferences"});
  std::string controller;
  for (size_t i = 0; i < owners.size(); ++i) {
    const std::string at = "metadata.ownerReferences";  // its fields go without the index
    for (std::string_view key : {"apiVersion", "kind", "name", "uid"}) {
      const std::string_view text = TextOf(owners[i], key);
      const bool version = key == "apiVersion";
      if (text.empty() || (version && text.find('/') != text.rfind('/'))) {
        errors.push_back(InvalidText(PathField(at, key), text,
                                     StrCat(version ? "version" : key, " must not be empty")));
      }
    }
    if (TextOf(owners[i], "apiVersion") == "v1" && TextOf(owners[i], "kind") == "Event") {
      errors.push_back(
          InvalidError(at, owners[i], "/v1, Kind=Event is disallowed from being an owner"));
    }
    if (!json::GetBool(owners[i], {"controller"})) continue;
    if (!controller.empty()) {
      errors.push_back(InvalidError(
          "metadata.ownerReferences", *json::Find(object, {"metadata", "ownerReferences"}),
          StrCat("Only one reference can have Controller set to true. Found \"true\" in "
                 "references for ",
                 controller, " and ", TextOf(owners[i], "name"))));
      return;
    }
    controller = TextOf(owners[i], "name");
  }
}

// Only Kubernetes' own kinds insist on a domain: CRDs and their objects take any qualified name.
void CheckFinalizers(const KindInfo& kind, const Value& object, FieldErrors& errors) {
  const bool needs_domain = !kind.custom && kind.gvk.group != "apiextensions.k8s.io";
  const json::Array& list = json::GetArray(object, {"metadata", "finalizers"});
  std::set<std::string_view> names;
  for (const Value& item : list) {
    CheckQualified(TextIn(item), "metadata.finalizers", errors);
    names.insert(TextIn(item));
  }
  if (names.contains("orphan") && names.contains("foregroundDeletion")) {
    errors.push_back(InvalidTexts("metadata.finalizers", list,
                                  "finalizer orphan and foregroundDeletion cannot be both set"));
  }
  for (size_t i = 0; needs_domain && i < list.size(); ++i) {
    const std::string_view name = TextIn(list[i]);
    const bool standard = name == "orphan" || name == "foregroundDeletion" || name == "kubernetes";
    if (standard || name.find('/') != std::string_view::npos) continue;
    errors.push_back(
        InvalidText(PathIndex("metadata.finalizers", i), name,
                    "name is neither a standard finalizer name nor is it fully qualified"));
  }
}

// Only a deletion sets these.
void CheckDeletion(const Value& metadata, const Value& old, FieldErrors& errors) {
  const Value* time = MemberOf(metadata, "deletionTimestamp");
  if (time != nullptr && !IsDeleting(old)) {
    errors.push_back({"FieldValueInvalid", "metadata.deletionTimestamp",
                      StrCat("Invalid value: ", ShowTime(TextIn(*time)), ": field is immutable")});
  }
  if (const Value* grace = MemberOf(metadata, "deletionGracePeriodSeconds")) {
    CheckImmutable(grace, json::Find(old, {"metadata", "deletionGracePeriodSeconds"}),
                   "metadata.deletionGracePeriodSeconds", errors);
  }
}

}  // namespace

void CheckMetadata(const KindInfo& kind,
                   const Value& object,
                   const Value* old,
                   FieldErrors& errors) {
  const Value* metadata = json::Find(object, {"metadata"});
  if (metadata == nullptr || !metadata->is_object()) {
    if (!kind.read_only) errors.push_back(RequiredError("metadata"));
    return;
  }
  if (old == nullptr) CheckNames(kind, object, errors);
  std::string_view ns = Namespace(object);
  if (!kind.namespaced && !ns.empty()) {
    errors.push_back(ForbiddenError("metadata.namespace", "not allowed on this type"));
  } else if (!ns.empty()) {
    if (std::string why = CheckDnsLabel(ns); !why.empty()) {
      errors.push_back(InvalidText("metadata.namespace", ns, why));
    }
  }
  CheckNonNegative(*metadata, "generation", "metadata", errors);
  if (const Value* labels = MemberOf(*metadata, "labels")) {
    CheckLabels(*labels, "metadata.labels", errors);
  }
  if (const Value* annotations = MemberOf(*metadata, "annotations")) {
    CheckAnnotations(*annotations, "metadata.annotations", errors);
  }
  CheckOwners(object, errors);
  CheckFinalizers(kind, object, errors);
  if (old == nullptr) return;
  CheckDeletion(*metadata, *old, errors);
  for (std::string_view key : {"name", "namespace", "uid", "creationTimestamp"}) {
    const Value* now = MemberOf(*metadata, key);
    const Value* before = json::Find(*old, {"metadata", key});
    // Absent means unchanged: the server fills these in.
    if (now != nullptr && before != nullptr && !(now->is_string() && now->get_string().empty())) {
      CheckImmutable(now, before, PathField("metadata", key), errors);
    }
  }
}

namespace {

// A field without the places in lists on the way to it: rules name some of them otherwise than a
// schema does, or not at all.
std::string Bare(std::string_view field) {
  std::string out;
  int depth = 0;
  for (char c : field) {
    depth += c == '[' ? 1 : 0;
    if (depth == 0) out += c;
    depth -= c == ']' ? 1 : 0;
  }
  return out;
}

// Whether a rule that names `told` speaks of a field, of what is below it, or of the part of a spec
// that it belongs to.
bool Covers(std::string_view told, std::string_view field) {
  const bool below =
      told.starts_with(field) && (told.size() == field.size() || told[field.size()] == '.');
  const bool whole =
      told.find('.') != std::string_view::npos && field.substr(0, field.rfind('.')) == told;
  return below || whole;
}

// Whether the kind has rules of its own, which are then all that it must obey.
bool CheckKind(const KindInfo& kind, const Value& object, const Value* old, FieldErrors& errors) {
  const std::string& k = kind.gvk.kind;
  if (k == "Pod") {
    // What was once accepted stays: an update checks what changed.
    if (old == nullptr) CheckPod(object, errors);
    if (old != nullptr) CheckPodUpdate(object, *old, errors);
    return true;
  }
  if (k == "CustomResourceDefinition") {
    CheckCrd(object, errors);
    if (old == nullptr) return true;
    for (std::string_view key : {"group", "scope"}) {
      CheckImmutable(json::Find(object, {"spec", key}), json::Find(*old, {"spec", key}),
                     PathField("spec", key), errors);
    }
    // Once it is served its objects are of this kind.
    if (ConditionIsTrue(*old, "Established")) {
      CheckImmutable(json::Find(object, {"spec", "names", "kind"}),
                     json::Find(*old, {"spec", "names", "kind"}), "spec.names.kind", errors);
    }
    return true;
  }
  return CheckWorkload(kind, object, old, errors) || CheckNetwork(kind, object, old, errors) ||
         CheckStorage(kind, object, old, errors) || CheckConfig(kind, object, old, errors) ||
         CheckPolicy(kind, object, old, errors) || CheckRegistered(kind, object, old, errors);
}

}  // namespace

std::vector<FieldError> ValidateObject(const KindInfo& kind,
                                       const Value& object,
                                       const Value* old,
                                       const std::vector<FieldError>& schema_errors) {
  constexpr size_t kMaxErrors = 100;
  FieldErrors errors;
  CheckMetadata(kind, object, old, errors);
  const bool ruled = !kind.custom && CheckKind(kind, object, old, errors);
  std::vector<std::string> told;
  for (const FieldError& error : errors) told.push_back(Bare(error.field));
  for (const FieldError& error : schema_errors) {
    // Kubernetes' types have no required fields: an absent one is empty, and the rules say whether
    // it may be.
    if (ruled && error.reason == "FieldValueRequired") continue;
    const bool known = std::any_of(told.begin(), told.end(), [&](const std::string& field) {
      return Covers(field, Bare(error.field));
    });
    if (!known) errors.push_back(error);
  }
  if (errors.size() > kMaxErrors) errors.resize(kMaxErrors);
  return errors;
}

}  // namespace swell::api
