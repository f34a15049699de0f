#include "kube/api/schema/field_rules.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "base/strings.h"
#include "kube/api/meta/meta.h"

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

std::vector<ListItem> ItemsOf(const json::Array& list, std::string_view path) {
  std::vector<ListItem> items;
  items.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) items.push_back({list[i], PathIndex(path, i)});
  return items;
}

std::vector<ListItem> ItemsOf(const Value& parent, std::string_view key, std::string_view path) {
  return ItemsOf(json::GetArray(parent, {key}), PathField(path, key));
}

void CheckText(std::string_view text, TextRule rule, const std::string& path, FieldErrors& errors) {
  if (std::string why = rule(text); !why.empty()) errors.push_back(InvalidText(path, text, why));
}

void CheckRequired(std::string_view text,
                   TextRule rule,
                   const std::string& path,
                   FieldErrors& errors) {
  if (text.empty()) {
    errors.push_back(RequiredError(path));
  } else {
    CheckText(text, rule, path, errors);
  }
}

void CheckName(const Value& parent,
               std::string_view key,
               TextRule rule,
               const std::string& path,
               FieldErrors& errors) {
  CheckRequired(TextOf(parent, key), rule, PathField(path, key), errors);
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

std::string CheckEnvVarName(std::string_view name) {
  if (name.empty()) return "environment variable name must be non-empty";
  for (const char c : name) {
    if (c < ' ' || c > '~' || c == '=') {
      return "a valid environment variable name must consist only of printable ASCII characters "
             "other than '='";
    }
  }
  return {};
}

void CheckItemName(const Value& item,
                   const std::string& at,
                   std::set<std::string>& names,
                   FieldErrors& errors) {
  const std::string name(TextOf(item, "name"));
  CheckRequired(name, CheckDnsLabel, PathField(at, "name"), errors);
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

void CheckPort(int64_t port, const std::string& path, FieldErrors& errors) {
  if (port >= 1 && port <= 65535) return;
  errors.push_back(InvalidError(path, Value(port), "must be between 1 and 65535, inclusive"));
}

void CheckPortOrName(const Value& port, const std::string& path, FieldErrors& errors) {
  if (port.is_string()) {
    CheckPortName(json::View(port.get_string()), path, errors);
  } else {
    CheckPort(json::GetInt(port, {}), path, errors);
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
  CheckText(text, CheckDnsSubdomain, PathField(path, key), errors);
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

bool IsZeroOrNoNumber(const Value* amount) {
  if (amount == nullptr) return true;
  if (!amount->is_string()) return json::GetInt(*amount, {}) == 0;
  if (const auto percent = PercentOf(*amount)) return *percent == 0;
  return ParseInt(TextIn(*amount)).value_or(0) == 0;
}

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
    CheckText(value, CheckLabelValue, path, errors);
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
  for (const auto& [term, at] : ItemsOf(selector, "matchExpressions", path)) {
    std::string_view op = TextOf(term, "operator");
    const json::Array& values = json::GetArray(term, {"values"});
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
    std::string_view key = TextOf(term, "key");
    CheckQualified(key, PathField(at, "key"), errors);
  }
}

namespace {

void CheckHookService(const Value& service, const std::string& at, FieldErrors& errors) {
  for (std::string_view key : {"name", "namespace"}) {
    if (!TextOf(service, key).empty()) continue;
    errors.push_back(RequiredError(PathField(at, key), StrCat("service ", key, " is required")));
  }
  const std::string_view path = TextOf(service, "path");
  const std::string path_at = PathField(at, "path");
  if (path.empty() || path == "/") return;
  if (!path.starts_with('/')) {
    errors.push_back(InvalidText(path_at, path, "must start with a '/'"));
  }
  std::string_view rest = path.substr(1);
  if (rest.ends_with('/')) rest.remove_suffix(1);
  size_t index = 0;
  for (std::string_view step : Split(rest, '/')) {
    const std::string where = StrCat("segment[", index++, "]");
    if (step.empty()) {
      errors.push_back(InvalidText(path_at, path, where + " may not be empty"));
    } else if (std::string why = CheckDnsSubdomain(step); !why.empty()) {
      errors.push_back(InvalidText(path_at, path, StrCat(where, ": ", why)));
    }
  }
}

void CheckHookUrl(std::string_view url, const std::string& at, FieldErrors& errors) {
  constexpr std::string_view kForm = "; desired format: https://host[/path]";
  const size_t scheme = url.find("://");
  if (url.substr(0, scheme) != "https") {
    errors.push_back(InvalidText(at, url.substr(0, scheme),
                                 StrCat("'https' is the only allowed URL scheme", kForm)));
  }
  std::string_view rest =
      scheme == std::string_view::npos ? std::string_view() : url.substr(scheme + 3);
  const size_t fragment = rest.find('#');
  const size_t query = rest.substr(0, fragment).find('?');
  const std::string_view host = rest.substr(0, rest.find_first_of("/?#"));
  const size_t user = host.find('@');
  if (host.empty()) errors.push_back(InvalidText(at, host, StrCat("host must be provided", kForm)));
  if (user != std::string_view::npos) {
    errors.push_back(
        InvalidText(at, host.substr(0, user), "user information is not permitted in the URL"));
  }
  if (fragment != std::string_view::npos) {
    errors.push_back(
        InvalidText(at, rest.substr(fragment + 1), "fragments are not permitted in the URL"));
  }
  if (query != std::string_view::npos) {
    errors.push_back(InvalidText(at, rest.substr(0, fragment).substr(query + 1),
                                 "query parameters are not permitted in the URL"));
  }
}

}  // namespace

void CheckHookClient(const Value* client, const std::string& at, FieldErrors& errors) {
  const Value* url = client ? MemberOf(*client, "url") : nullptr;
  const Value* service = client ? MemberOf(*client, "service") : nullptr;
  if ((url == nullptr) == (service == nullptr)) {
    errors.push_back(RequiredError(at, "exactly one of url or service is required"));
  } else if (service != nullptr) {
    CheckHookService(*service, PathField(at, "service"), errors);
  } else {
    CheckHookUrl(TextIn(*url), PathField(at, "url"), errors);
  }
}

void CheckReviewVersions(const json::Array& versions,
                         const std::string& at,
                         FieldErrors& errors,
                         std::string_view missing) {
  const bool known = std::any_of(versions.begin(), versions.end(), [](const Value& version) {
    return TextIn(version) == "v1" || TextIn(version) == "v1beta1";
  });
  if (versions.empty()) {
    errors.push_back(RequiredError(at, missing));
  } else if (!known) {
    errors.push_back(InvalidTexts(at, versions, "must include at least one of v1, v1beta1"));
  }
}

}  // namespace swell::api
