// CEL's versions (semver.org), and the formats that texts may be held to.
#include <algorithm>

#include "base/strings.h"
#include "kube/api/cel/cel_objects.h"
#include "kube/api/meta/meta.h"
#include "kube/api/schema/field_rules.h"
#include "kube/api/schema/schema_formats.h"

namespace swell::api {
namespace {

Status NoOverload() { return Status(Code::kInvalid, "no such overload"); }

bool IsDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Parts of letters, digits and hyphens between points.
bool IsIdentifiers(const std::vector<std::string_view>& parts, bool zeros) {
  constexpr std::string_view kAllowed =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-";
  return !parts.empty() && std::all_of(parts.begin(), parts.end(), [&](std::string_view part) {
    const bool padded = IsDigits(part) && part.size() > 1 && part[0] == '0';
    return !part.empty() && part.find_first_not_of(kAllowed) == std::string_view::npos &&
           (zeros || !padded);
  });
}

std::optional<uint64_t> ReadNumber(std::string_view text, bool lenient) {
  while (lenient && text.size() > 1 && text[0] == '0') text.remove_prefix(1);
  if (!IsDigits(text) || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  return ParseUint(text);
}

int ComparePart(const std::string& a, const std::string& b) {
  const bool number_a = IsDigits(a);
  const bool number_b = IsDigits(b);
  if (number_a != number_b) return number_a ? -1 : 1;
  if (number_a && a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  return a < b ? -1 : b < a ? 1 : 0;
}

// What is built of a version does not order it.
int Compare(const CelVersion& a, const CelVersion& b) {
  if (a.numbers != b.numbers) return a.numbers < b.numbers ? -1 : 1;
  if (a.before.empty() != b.before.empty()) return a.before.empty() ? 1 : -1;
  for (size_t i = 0; i < std::min(a.before.size(), b.before.size()); ++i) {
    if (const int order = ComparePart(a.before[i], b.before[i]); order != 0) return order;
  }
  return a.before.size() < b.before.size() ? -1 : a.before.size() > b.before.size() ? 1 : 0;
}

std::string CheckNamed(std::string_view name, std::string text) {
  // Names are made of a prefix by what is appended to it.
  if (name.ends_with("Prefix")) {
    if (text.ends_with('-')) text.back() = 'a';
    name.remove_suffix(std::string_view("Prefix").size());
  }
  if (name == "dns1123Label") return CheckDnsLabel(text);
  if (name == "dns1123Subdomain") return CheckDnsSubdomain(text);
  if (name == "dns1035Label") return CheckDns1035Label(text);
  if (name == "qualifiedName") return CheckQualifiedName(text);
  if (name == "labelValue") return CheckLabelValue(text);
  if (name == "uri") {
    const auto url = CallCelNetwork("url", {{text}});
    return url.ok() ? "" : StrCat("parse ", Quote(text), ": invalid URI for request");
  }
  if (HasFormat(text, name)) return "";
  return name == "uuid"   ? "does not match the UUID format"
         : name == "byte" ? "invalid base64"
                          : StrCat("invalid ", name);
}

constexpr std::string_view kFormats[] = {"dns1123Label",
                                         "dns1123Subdomain",
                                         "dns1035Label",
                                         "qualifiedName",
                                         "dns1123LabelPrefix",
                                         "dns1123SubdomainPrefix",
                                         "dns1035LabelPrefix",
                                         "labelValue",
                                         "uri",
                                         "uuid",
                                         "byte",
                                         "date",
                                         "datetime"};

}  // namespace

std::optional<CelVersion> ParseCelVersion(std::string_view text, bool lenient) {
  if (lenient && text.starts_with('v')) text.remove_prefix(1);
  CelVersion version;
  if (const size_t plus = text.find('+'); plus != std::string_view::npos) {
    version.build = text.substr(plus + 1);
    if (!IsIdentifiers(Split(version.build, '.'), true)) return std::nullopt;
    text = text.substr(0, plus);
  }
  if (const size_t dash = text.find('-'); dash != std::string_view::npos) {
    const std::vector<std::string_view> parts = Split(text.substr(dash + 1), '.');
    if (!IsIdentifiers(parts, false)) return std::nullopt;
    version.before.assign(parts.begin(), parts.end());
    text = text.substr(0, dash);
  }
  std::vector<std::string_view> numbers = Split(text, '.');
  while (lenient && numbers.size() < version.numbers.size()) numbers.emplace_back("0");
  if (numbers.size() != version.numbers.size()) return std::nullopt;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto number = ReadNumber(numbers[i], lenient);
    if (!number) return std::nullopt;
    version.numbers[i] = *number;
  }
  return version;
}

Result<CelValue> CallCelVersion(std::string_view name, const std::vector<CelValue>& args) {
  if (const auto* text = std::get_if<std::string>(&args[0].data)) {
    const bool* lenient = args.size() > 1 ? std::get_if<bool>(&args[1].data) : nullptr;
    if (args.size() > 1 && lenient == nullptr) return NoOverload();
    const auto version = ParseCelVersion(*text, lenient != nullptr && *lenient);
    if (name == "isSemver") return CelValue{version.has_value()};
    if (version) return CelOf(*version);
    return Status(Code::kInvalid, StrCat("invalid semantic version: ", Quote(*text)));
  }
  const auto* mine = CelAs<CelVersion>(args[0]);
  if (mine == nullptr) return NoOverload();
  constexpr std::string_view kParts[] = {"major", "minor", "patch"};
  for (size_t i = 0; i < std::size(kParts); ++i) {
    if (name == kParts[i]) return CelValue{static_cast<int64_t>(mine->numbers[i])};
  }
  const auto* other = args.size() > 1 ? CelAs<CelVersion>(args[1]) : nullptr;
  if (other == nullptr) return NoOverload();
  const int order = Compare(*mine, *other);
  if (name == "compareTo") return CelValue{int64_t{order}};
  if (name == "isLessThan") return CelValue{order < 0};
  return name == "isGreaterThan" ? Result<CelValue>(CelValue{order > 0}) : NoOverload();
}

bool IsCelFormat(std::string_view name) {
  return std::find(std::begin(kFormats), std::end(kFormats), name) != std::end(kFormats);
}

Result<CelValue> CallCelFormat(std::string_view name, const std::vector<CelValue>& args) {
  constexpr std::string_view kLibrary = "format.";
  if (args.empty()) return CelOf(CelFormat{std::string(name.substr(kLibrary.size()))});
  const auto* text = std::get_if<std::string>(&args.back().data);
  if (text == nullptr) return NoOverload();
  if (name == "format.named") {
    if (!IsCelFormat(*text)) return CelOf(CelOptional{});
    return CelOf(CelOptional{std::make_shared<const CelValue>(CelOf(CelFormat{*text}))});
  }
  const auto* format = CelAs<CelFormat>(args[0]);
  if (format == nullptr || name != "validate" || args.size() != 2) return NoOverload();
  const std::string wrong = CheckNamed(format->name, *text);
  if (wrong.empty()) return CelOf(CelOptional{});
  auto list = std::make_shared<std::vector<CelValue>>();
  list->push_back({wrong});
  return CelOf(CelOptional{std::make_shared<const CelValue>(CelValue{CelList(std::move(list))})});
}

std::string_view CelObjectType(const CelObject& object) {
  static constexpr std::string_view kNames[] = {"net.IP",
                                                "net.CIDR",
                                                "kubernetes.URL",
                                                "kubernetes.Semver",
                                                "kubernetes.NamedFormat",
                                                "optional_type",
                                                "bytes",
                                                "",
                                                "kubernetes.authorization.Decision"};
  static constexpr std::string_view kStages[] = {
      "kubernetes.authorization.Authorizer", "kubernetes.authorization.GroupCheck",
      "kubernetes.authorization.ResourceCheck", "kubernetes.authorization.PathCheck"};
  const auto* authority = std::get_if<CelAuthority>(&object.is);
  return authority != nullptr ? kStages[static_cast<size_t>(authority->stage)]
                              : kNames[object.is.index()];
}

size_t CelObjectBytes(const CelObject& object) {
  if (const auto* url = std::get_if<CelUrl>(&object.is)) {
    return url->scheme.size() + url->host.size() + url->path.size() + url->query.size();
  }
  if (const auto* bytes = std::get_if<CelBytes>(&object.is)) return bytes->octets.size();
  const auto* version = std::get_if<CelVersion>(&object.is);
  if (version == nullptr) return 0;
  size_t bytes = version->build.size();
  for (const std::string& part : version->before) bytes += part.size() + sizeof(std::string);
  return bytes;
}

bool CelObjectsEqual(const CelObject& a, const CelObject& b, CelBudget& budget, int depth) {
  budget.Charge(CelObjectBytes(a) / 10);
  if (a.is.index() != b.is.index()) return false;
  const auto same = [](const Cidr& x, const Cidr& y) {
    return x.v6 == y.v6 && x.bits == y.bits && x.bytes == y.bytes;
  };
  if (const auto* address = std::get_if<CelAddress>(&a.is)) {
    return same(address->host, std::get<CelAddress>(b.is).host);
  }
  if (const auto* range = std::get_if<CelRange>(&a.is)) {
    return same(range->range, std::get<CelRange>(b.is).range);
  }
  if (const auto* url = std::get_if<CelUrl>(&a.is)) {
    const auto& other = std::get<CelUrl>(b.is);
    return url->scheme == other.scheme && url->host == other.host && url->path == other.path &&
           url->query == other.query;
  }
  if (const auto* version = std::get_if<CelVersion>(&a.is)) {
    return Compare(*version, std::get<CelVersion>(b.is)) == 0;
  }
  if (const auto* format = std::get_if<CelFormat>(&a.is)) {
    return format->name == std::get<CelFormat>(b.is).name;
  }
  if (const auto* bytes = std::get_if<CelBytes>(&a.is)) {
    return bytes->octets == std::get<CelBytes>(b.is).octets;
  }
  // Questions and answers about rights equal nothing.
  const auto* optional = std::get_if<CelOptional>(&a.is);
  if (optional == nullptr) return false;
  const auto& held = optional->held;
  const auto& other = std::get<CelOptional>(b.is).held;
  if (held == nullptr || other == nullptr) return held == other;
  return CelEqual(*held, *other, budget, depth + 1);
}

}  // namespace swell::api
