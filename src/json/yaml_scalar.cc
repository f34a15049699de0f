#include "json/yaml_scalar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/strings.h"

namespace swell::json {
namespace {

constexpr std::array<std::string_view, 11> kTrue = {"y",    "Y",    "yes", "Yes", "YES", "true",
                                                    "True", "TRUE", "on",  "On",  "ON"};
constexpr std::array<std::string_view, 11> kFalse = {"n",     "N",     "no",  "No",  "NO", "false",
                                                     "False", "FALSE", "off", "Off", "OFF"};
constexpr std::array<std::string_view, 5> kNull = {"", "~", "null", "Null", "NULL"};
constexpr std::array<std::string_view, 12> kNotFinite = {".nan",  ".NaN",  ".NAN",  ".inf",
                                                         ".Inf",  ".INF",  "+.inf", "+.Inf",
                                                         "+.INF", "-.inf", "-.Inf", "-.INF"};

template <class Table>
bool In(const Table& table, std::string_view text) {
  return std::find(table.begin(), table.end(), text) != table.end();
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

size_t CountDigits(std::string_view text) {
  size_t n = 0;
  while (n < text.size() && IsDigit(text[n])) ++n;
  return n;
}

// [+-] (0x hex | 0b binary | 0o or 0 octal | decimal), whole text.
std::optional<Value> ParseInteger(std::string_view text) {
  bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  int base = 10;
  if (text.size() > 1 && text[0] == '0') {
    char c = text[1] | 0x20;
    base = c == 'x' ? 16 : c == 'b' ? 2 : 8;
    text.remove_prefix(c == 'x' || c == 'b' || c == 'o' ? 2 : 1);
  }
  uint64_t magnitude = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), magnitude, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  constexpr uint64_t kMaxPositive = INT64_MAX;
  if (negative) {
    if (magnitude > kMaxPositive + 1) return std::nullopt;
    return Value(static_cast<int64_t>(0 - magnitude));
  }
  if (magnitude <= kMaxPositive) return Value(static_cast<int64_t>(magnitude));
  return Value(magnitude);
}

// [-+]? (.digits | digits[.digits]) ([eE][-+]?digits)?
std::optional<double> ParseFloat(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  std::string_view rest = text;
  if (rest.starts_with('-')) rest.remove_prefix(1);
  size_t whole = CountDigits(rest);
  rest.remove_prefix(whole);
  size_t fraction = 0;
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    fraction = CountDigits(rest);
    rest.remove_prefix(fraction);
  }
  if (whole + fraction == 0) return std::nullopt;
  if (!rest.empty() && (rest[0] == 'e' || rest[0] == 'E')) {
    rest.remove_prefix(1);
    if (rest.starts_with('+') || rest.starts_with('-')) rest.remove_prefix(1);
    if (CountDigits(rest) == 0) return std::nullopt;
    rest.remove_prefix(CountDigits(rest));
  }
  double d = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), d);
  if (!rest.empty() || error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return d;
}

// 2001-12-14, optionally with a time: read as a time by YAML 1.1 readers, as a string by us.
bool LooksLikeTime(std::string_view text) {
  if (CountDigits(text) != 4) return false;
  text.remove_prefix(4);
  for (int part = 0; part < 2; ++part) {
    if (!text.starts_with('-')) return false;
    text.remove_prefix(1);
    size_t digits = CountDigits(text);
    if (digits < 1 || digits > 2) return false;
    text.remove_prefix(digits);
  }
  return text.empty() || text[0] == 'T' || text[0] == 't' || text[0] == ' ';
}

// 190:20:30, a number in base 60 for YAML 1.1 readers.
bool LooksLikeBase60(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return !text.empty() && IsDigit(text[0]) && text.find(':') != std::string_view::npos &&
         text.find_first_not_of("0123456789_:.") == std::string_view::npos;
}

}  // namespace

Result<Value> ResolveYamlScalar(std::string_view text) {
  if (In(kNull, text)) return Value(nullptr);
  if (In(kTrue, text)) return Value(true);
  if (In(kFalse, text)) return Value(false);
  if (In(kNotFinite, text)) {
    return Status(Code::kBadRequest, StrCat("number ", text, " cannot be said in JSON"));
  }
  char first = text[0];
  if (IsDigit(first) || first == '+' || first == '-' || first == '.') {
    std::string digits(text);
    if (first != '.') digits.erase(std::remove(digits.begin(), digits.end(), '_'), digits.end());
    if (first != '.') {
      if (auto integer = ParseInteger(digits)) return std::move(*integer);
    }
    if (auto d = ParseFloat(digits)) {
      // Kubernetes turns these into JSON, in which "1e3" and "3.0" are whole numbers.
      if (*d == std::trunc(*d) && std::fabs(*d) < 0x1p53) return Value(static_cast<int64_t>(*d));
      return Value(*d);
    }
  }
  return Value(boost::json::string_view(text.data(), text.size()));
}

bool ReadsAsYamlString(std::string_view text) {
  if (text == "<<" || LooksLikeTime(text) || LooksLikeBase60(text)) return false;
  auto value = ResolveYamlScalar(text);
  return value.ok() && value->is_string();
}

}  // namespace swell::json
