#include "kube/api/schema/schema_formats.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "kube/api/meta/cidr.h"
#include "kube/api/schema/field_rules.h"
#include "kube/api/schema/schema_pattern.h"

namespace swell::api {
namespace {

constexpr auto kNone = std::string_view::npos;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsHex(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool IsAscii(char c) { return (static_cast<unsigned char>(c) & 0x80) == 0; }

bool AllHex(std::string_view text) { return std::all_of(text.begin(), text.end(), IsHex); }

// --- Addresses -----------------------------------------------------------------------------------

bool IsIpv4(std::string_view text) { return CheckIp(text).empty() && text.find('.') != kNone; }
bool IsIpv6(std::string_view text) { return CheckIp(text).empty() && text.find(':') != kNone; }
bool IsCidr(std::string_view text) { return ParseCidr(text).has_value(); }

// 6, 8 or 20 bytes: 00:00:5e:00:53:01, 00-00-5e-00-53-01 or 0000.5e00.5301.
bool IsMac(std::string_view text) {
  if (text.size() < 14) return false;
  const size_t digits = text[4] == '.' ? 4 : 2;
  const char separator = text[digits];
  if (separator != '.' && separator != ':' && separator != '-') return false;
  const std::vector<std::string_view> groups = Split(text, separator);
  for (std::string_view group : groups) {
    if (group.size() != digits || !AllHex(group)) return false;
  }
  const size_t bytes = groups.size() * digits / 2;
  return (separator == '.') == (digits == 4) && (bytes == 6 || bytes == 8 || bytes == 20);
}

// Words of letters, digits and some signs, with single dots between them.
bool IsDotAtom(std::string_view text) {
  constexpr std::string_view kSigns = "!#$%&'*+-/=?^_`{|}~";
  if (text.empty()) return false;
  for (std::string_view atom : Split(text, '.')) {
    if (atom.empty()) return false;
    for (char c : atom) {
      if (IsAscii(c) && !IsLetter(c) && !IsDigit(c) && kSigns.find(c) == kNone) return false;
    }
  }
  return true;
}

// "a@b", or with a name before it: "Name <a@b>".
bool IsMailAddress(std::string_view text) {
  text = Trim(text);
  if (const size_t open = text.rfind('<'); open != kNone && text.ends_with('>')) {
    text = text.substr(open + 1, text.size() - open - 2);
  }
  const size_t at = text.rfind('@');
  if (at == kNone) return false;
  const std::string_view local = text.substr(0, at);
  const bool quoted = local.size() > 2 && local.front() == '"' && local.back() == '"';
  return (quoted || IsDotAtom(local)) && IsDotAtom(text.substr(at + 1));
}

// If the name has dots, its last part has only letters. Other than ASCII counts as a letter.
bool IsHostname(std::string_view text) {
  static const auto pattern = SchemaPattern::Compile(
      "^([a-zA-Z0-9$+<=>^`|~]((-?[a-zA-Z0-9$+<=>^`|~]{0,62})?)|"
      "([a-zA-Z0-9$+<=>^`|~](([a-zA-Z0-9$+<=>^`|~-]{0,61}[a-zA-Z0-9$+<=>^`|~])?)(\\.)){1,}"
      "([a-zA-Z]){2,63})$");
  if (text.size() > 255) return false;
  std::string ascii;
  for (char c : text) {
    const bool continues = (static_cast<unsigned char>(c) & 0xC0) == 0x80;
    if (!continues) ascii += IsAscii(c) ? c : 'a';
  }
  for (std::string_view label : Split(text, '.')) {
    if (label.size() > 63) return false;
  }
  return pattern->Matches(ascii);
}

// --- URIs, as Go's net/url reads those of requests
// ------------------------------------------------

// Whether each % starts an escape.
bool IsEscaped(std::string_view text) {
  for (size_t i = text.find('%'); i != kNone; i = text.find('%', i + 1)) {
    if (i + 2 >= text.size() || !IsHex(text[i + 1]) || !IsHex(text[i + 2])) return false;
  }
  return true;
}

bool IsOneOf(std::string_view text, std::string_view signs) {
  return std::all_of(text.begin(), text.end(), [signs](char c) {
    return !IsAscii(c) || IsLetter(c) || IsDigit(c) || signs.find(c) != kNone;
  });
}

bool IsAuthority(std::string_view text) {
  if (const size_t at = text.rfind('@'); at != kNone) {
    const std::string_view user = text.substr(0, at);
    if (!IsEscaped(user) || !IsOneOf(user, "-._:~!$&'()*+,;=%@")) return false;
    text = text.substr(at + 1);
  }
  const size_t bracket = text.starts_with('[') ? text.rfind(']') : 0;
  if (bracket == kNone) return false;
  const size_t colon = bracket > 0 ? bracket + 1 : std::min(text.rfind(':'), text.size());
  const std::string_view port = text.substr(colon);
  if (!port.empty() && port[0] != ':') return false;
  if (!port.empty() && !std::all_of(port.begin() + 1, port.end(), IsDigit)) return false;
  const std::string_view host = text.substr(0, colon);
  return IsEscaped(host) && IsOneOf(host, "-_.~!$&'()*+,;=:[]<>\"%");
}

size_t SchemeLength(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ':') return i;
    if (!IsLetter(c) && (i == 0 || (!IsDigit(c) && c != '+' && c != '-' && c != '.'))) break;
  }
  return kNone;
}

bool IsRequestUri(std::string_view text) {
  for (char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return false;
  }
  if (text == "*") return true;
  const size_t scheme = SchemeLength(text);
  if (scheme == 0) return false;
  std::string_view rest = scheme == kNone ? text : text.substr(scheme + 1);
  rest = rest.substr(0, rest.find('?'));
  if (!rest.starts_with('/')) return scheme != kNone;
  if (scheme != kNone && rest.starts_with("//")) {
    rest.remove_prefix(2);
    const size_t end = std::min(rest.find('/'), rest.size());
    if (!IsAuthority(rest.substr(0, end))) return false;
    rest.remove_prefix(end);
  }
  return IsEscaped(rest);
}

// --- Times ---------------------------------------------------------------------------------------

// The digits from `at` on, -1 when they are not all there.
int DigitsAt(std::string_view text, size_t at, size_t count) {
  const auto number = at + count <= text.size() ? ParseUint(text.substr(at, count)) : std::nullopt;
  return number ? static_cast<int>(*number) : -1;
}

bool IsDate(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  const int year = DigitsAt(text, 0, 4);
  const int month = DigitsAt(text, 5, 2);
  const int day = DigitsAt(text, 8, 2);
  if (year < 0 || month < 0 || day < 0) return false;
  return std::chrono::year_month_day{std::chrono::year(year),
                                     std::chrono::month(static_cast<unsigned>(month)),
                                     std::chrono::day(static_cast<unsigned>(day))}
      .ok();
}

bool IsDateTime(std::string_view text) {
  static const auto pattern = SchemaPattern::Compile(
      "^[tT]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](.[0-9]+)?([zZ]|[+-][0-9]{2}:[0-9]{2})$");
  return text.size() > 10 && IsDate(text.substr(0, 10)) && pattern->Matches(text.substr(10));
}

bool IsTimeUnit(std::string_view unit) {
  static constexpr std::string_view kUnits[] = {"ns", "us", "µs", "μs", "ms", "s",
                                                "m",  "h",  "hr", "d",  "w",  "wk"};
  static constexpr std::string_view kStarts[] = {"nano", "micro", "milli", "sec",
                                                 "min",  "hour",  "day",   "week"};
  const std::string lower = ToLower(unit);
  return std::find(std::begin(kUnits), std::end(kUnits), lower) != std::end(kUnits) ||
         std::any_of(std::begin(kStarts), std::end(kStarts),
                     [&lower](std::string_view start) { return lower.starts_with(start); });
}

// A number with its unit somewhere in the text: "1h30m", "22 ns", "5 minutes".
bool IsDuration(std::string_view text) {
  if (text == "0" || text == "+0" || text == "-0") return true;
  size_t i = 0;
  while (i < text.size()) {
    if (!IsDigit(text[i++])) continue;
    while (i < text.size() && (IsDigit(text[i]) || text[i] == ' ')) ++i;
    const size_t from = i;
    while (i < text.size() && (IsLetter(text[i]) || !IsAscii(text[i]))) ++i;
    if (IsTimeUnit(text.substr(from, i - from))) return true;
  }
  return false;
}

// --- Numbers with check digits
// ---------------------------------------------------------------------

std::string Without(std::string_view text, std::string_view signs) {
  std::string out;
  for (char c : text) {
    if (signs.find(c) == kNone) out += c;
  }
  return out;
}

bool IsIsbn10(std::string_view text) {
  static const auto pattern = SchemaPattern::Compile("^[0-9]{9}[0-9X]$");
  const std::string digits = Without(text, " -");
  if (!pattern->Matches(digits)) return false;
  int sum = 0;
  for (int i = 0; i < 10; ++i) sum += (i + 1) * (digits[i] == 'X' ? 10 : digits[i] - '0');
  return sum % 11 == 0;
}

bool IsIsbn13(std::string_view text) {
  static const auto pattern = SchemaPattern::Compile("^[0-9]{13}$");
  const std::string digits = Without(text, " -");
  if (!pattern->Matches(digits)) return false;
  int sum = 0;
  for (int i = 0; i < 13; ++i) sum += (i % 2 == 0 ? 1 : 3) * (digits[i] - '0');
  return sum % 10 == 0;
}

bool IsIsbn(std::string_view text) { return IsIsbn10(text) || IsIsbn13(text); }

bool IsCreditCard(std::string_view text) {
  static const auto pattern = SchemaPattern::Compile(
      "^(4[0-9]{12}([0-9]{3})?|5[1-5][0-9]{14}|6(011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|"
      "3(0[0-5]|[68][0-9])[0-9]{11}|(2131|1800|35[0-9]{3})[0-9]{11})$");
  std::string digits;
  std::copy_if(text.begin(), text.end(), std::back_inserter(digits), IsDigit);
  if (!pattern->Matches(digits)) return false;
  int sum = 0;
  for (size_t i = 0; i < digits.size(); ++i) {
    const int digit = digits[digits.size() - 1 - i] - '0';
    sum += i % 2 == 0 ? digit : digit * 2 / 10 + digit * 2 % 10;
  }
  return sum % 10 == 0;
}

// -------------------------------------------------------------------------------------------------

bool IsBytes(std::string_view text) { return !text.empty() && Base64Decode(text).has_value(); }

using Check = bool (*)(std::string_view);

Check CheckOf(std::string_view format) {
  static const std::map<std::string_view, Check> checks = {
      {"byte", IsBytes},        {"cidr", IsCidr},         {"creditcard", IsCreditCard},
      {"date", IsDate},         {"datetime", IsDateTime}, {"duration", IsDuration},
      {"email", IsMailAddress}, {"hostname", IsHostname}, {"ipv4", IsIpv4},
      {"ipv6", IsIpv6},         {"isbn", IsIsbn},         {"isbn10", IsIsbn10},
      {"isbn13", IsIsbn13},     {"mac", IsMac},           {"uri", IsRequestUri}};
  const auto found = checks.find(format);
  return found == checks.end() ? nullptr : found->second;
}

const SchemaPattern* PatternOf(std::string_view format) {
  static const auto uuid = [](std::string_view version, std::string_view variant) {
    return SchemaPattern::Compile(StrCat("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?", version,
                                         "[0-9a-f]{3}-?", variant, "[0-9a-f]{3}-?[0-9a-f]{12}$"));
  };
  static const std::string color = "\\s*([0-9]|[1-9]\\d|1\\d\\d|2[0-4]\\d|25[0-5])\\s*";
  static const std::map<std::string_view, std::shared_ptr<const SchemaPattern>> patterns = {
      {"bsonobjectid", SchemaPattern::Compile("^[0-9a-fA-F]{24}$")},
      {"hexcolor", SchemaPattern::Compile("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$")},
      {"rgbcolor",
       SchemaPattern::Compile(StrCat("^rgb\\(", color, ",", color, ",", color, "\\)$"))},
      {"ssn", SchemaPattern::Compile("^\\d{3}[- ]\\d{2}[- ]\\d{4}$")},
      {"uuid", uuid("[0-9a-f]", "[0-9a-f]")},
      {"uuid3", uuid("3", "[0-9a-f]")},
      {"uuid4", uuid("4", "[89ab]")},
      {"uuid5", uuid("5", "[89ab]")}};
  const auto found = patterns.find(format);
  return found == patterns.end() ? nullptr : found->second.get();
}

}  // namespace

bool HasFormat(std::string_view text, std::string_view format) {
  const std::string plain = Without(format, "-");  // date-time and datetime are one
  if (const Check check = CheckOf(plain)) return check(text);
  const SchemaPattern* pattern = PatternOf(plain);
  return pattern == nullptr || pattern->Matches(text);
}

}  // namespace swell::api
