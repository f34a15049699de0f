// CEL's operators and functions.
#include <re2/re2.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "base/duration.h"
#include "base/strings.h"
#include "kube/api/cel/cel_objects.h"

namespace swell::api {
namespace {

Status NoOverload() { return Status(Code::kInvalid, "no such overload"); }
Status Overflow() { return Status(Code::kInvalid, "integer overflow"); }

const std::string* TextPtr(const CelValue& value) { return std::get_if<std::string>(&value.data); }

// Both as T, where both are.
template <typename T>
bool Both(const CelValue& a, const CelValue& b, T& x, T& y) {
  const T* left = std::get_if<T>(&a.data);
  const T* right = std::get_if<T>(&b.data);
  if (left == nullptr || right == nullptr) return false;
  x = *left;
  y = *right;
  return true;
}

template <typename T>
Result<CelValue> Whole(std::string_view op, T x, T y) {
  T out = 0;
  bool overflow = false;
  if (op == "+") overflow = __builtin_add_overflow(x, y, &out);
  if (op == "-") overflow = __builtin_sub_overflow(x, y, &out);
  if (op == "*") overflow = __builtin_mul_overflow(x, y, &out);
  if (op == "/" || op == "%") {
    if (y == 0) return Status(Code::kInvalid, op == "/" ? "division by zero" : "modulus by zero");
    if constexpr (std::is_signed_v<T>) {
      if (x == std::numeric_limits<T>::min() && y == -1) return Overflow();
    }
    out = op == "/" ? x / y : x % y;
  }
  if (overflow) return Overflow();
  return CelValue{out};
}

bool AsDouble(const CelValue& value, double& out) {
  if (const auto* d = std::get_if<double>(&value.data)) {
    out = *d;
    return true;
  }
  const auto* i = std::get_if<int64_t>(&value.data);
  if (i != nullptr) out = static_cast<double>(*i);
  return i != nullptr;
}

Result<CelValue> Concatenate(const CelValue& a, const CelValue& b, CelBudget& budget) {
  auto joined = std::make_shared<std::vector<CelValue>>();
  for (const CelValue* list : {&a, &b}) {
    const int64_t size = CelSize(*list);
    SWELL_RETURN_IF_ERROR(budget.Spend(size));
    for (int64_t i = 0; i < size; ++i)
      joined->push_back(CelItem(*list, static_cast<size_t>(i), budget));
  }
  return CelValue{CelList(std::move(joined))};
}

// A time and a duration, or two times.
std::optional<Result<CelValue>> TimeArithmetic(std::string_view op,
                                               const CelValue& a,
                                               const CelValue& b) {
  const auto* span = std::get_if<Duration>(&b.data);
  if (op == "+" && std::holds_alternative<Duration>(a.data)) return TimeArithmetic(op, b, a);
  if ((op != "+" && op != "-") || (op == "+" && span == nullptr)) return std::nullopt;
  const std::optional<WallTime> time = CelTimeOf(a);
  if (!time) return std::nullopt;
  const std::optional<WallTime> other = span == nullptr ? CelTimeOf(b) : std::nullopt;
  if (span == nullptr && !other) return std::nullopt;
  const Result<CelValue> sum =
      Whole(op, time->unix_ns, span != nullptr ? span->count() : other->unix_ns);
  if (!sum.ok()) return sum;
  const int64_t ns = std::get<int64_t>(sum->data);
  return span != nullptr ? CelValue{WallTime{ns}} : CelValue{Duration(ns)};
}

Result<CelValue> Arithmetic(std::string_view op,
                            const CelValue& a,
                            const CelValue& b,
                            CelBudget& budget) {
  int64_t i = 0;
  int64_t j = 0;
  if (Both(a, b, i, j)) return Whole(op, i, j);
  uint64_t u = 0;
  uint64_t v = 0;
  if (Both(a, b, u, v)) return Whole(op, u, v);
  Duration span{};
  Duration other{};
  if ((op == "+" || op == "-") && Both(a, b, span, other)) {
    SWELL_ASSIGN_OR_RETURN(const CelValue sum, Whole(op, span.count(), other.count()));
    return CelValue{Duration(std::get<int64_t>(sum.data))};
  }
  if (const auto timed = TimeArithmetic(op, a, b)) return *timed;
  double x = 0;
  double y = 0;
  if (op != "%" && AsDouble(a, x) && AsDouble(b, y)) {
    return CelValue{op == "+" ? x + y : op == "-" ? x - y : op == "*" ? x * y : x / y};
  }
  if (op == "+" && TextPtr(a) != nullptr && TextPtr(b) != nullptr) {
    SWELL_RETURN_IF_ERROR(budget.Spend((TextPtr(a)->size() + TextPtr(b)->size()) / 10));
    return CelValue{*TextPtr(a) + *TextPtr(b)};
  }
  const auto* bytes = CelAs<CelBytes>(a);
  const auto* more = CelAs<CelBytes>(b);
  if (op == "+" && bytes != nullptr && more != nullptr) {
    SWELL_RETURN_IF_ERROR(budget.Spend((bytes->octets.size() + more->octets.size()) / 10));
    return CelOf(CelBytes{bytes->octets + more->octets});
  }
  if (op == "+" && IsCelList(a) && IsCelList(b)) return Concatenate(a, b, budget);
  return NoOverload();
}

Result<CelValue> Contains(const CelValue& item, const CelValue& in, CelBudget& budget) {
  if (IsCelMap(in)) {
    CelValue ignored;
    return CelValue{CelFind(in, item, ignored, budget)};
  }
  if (!IsCelList(in)) return NoOverload();
  const int64_t size = CelSize(in);
  SWELL_RETURN_IF_ERROR(budget.Spend(static_cast<size_t>(size)));
  for (int64_t i = 0; i < size; ++i) {
    if (CelEqual(item, CelItem(in, static_cast<size_t>(i), budget), budget)) return CelValue{true};
  }
  return CelValue{false};
}

// --- Conversions ---------------------------------------------------------------------------------

template <typename T>
Result<CelValue> Parsed(const std::string& text) {
  T out = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), out);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size()) {
    return Status(Code::kInvalid, StrCat("type conversion error: ", Quote(text)));
  }
  return CelValue{out};
}

Result<CelValue> ToInt(const CelValue& value) {
  if (std::holds_alternative<int64_t>(value.data)) return value;
  if (const auto* text = TextPtr(value)) return Parsed<int64_t>(*text);
  if (const auto* u = std::get_if<uint64_t>(&value.data)) {
    return *u > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())
               ? Result<CelValue>(Overflow())
               : Result<CelValue>(CelValue{static_cast<int64_t>(*u)});
  }
  if (const auto* time = std::get_if<WallTime>(&value.data)) return CelValue{CelSecondsOf(*time)};
  if (const auto* d = std::get_if<double>(&value.data)) {
    if (!(std::abs(*d) < 9.2e18)) return Overflow();
    return CelValue{static_cast<int64_t>(*d)};
  }
  return NoOverload();
}

Result<CelValue> ToUint(const CelValue& value) {
  if (std::holds_alternative<uint64_t>(value.data)) return value;
  if (const auto* text = TextPtr(value)) return Parsed<uint64_t>(*text);
  SWELL_ASSIGN_OR_RETURN(const CelValue whole, ToInt(value));
  const int64_t i = std::get<int64_t>(whole.data);
  if (i < 0) return Overflow();
  return CelValue{static_cast<uint64_t>(i)};
}

Result<CelValue> ToBool(const CelValue& value) {
  if (std::holds_alternative<bool>(value.data)) return value;
  const std::string* text = TextPtr(value);
  if (text == nullptr) return NoOverload();
  for (std::string_view yes : {"1", "t", "T", "TRUE", "true", "True"}) {
    if (*text == yes) return CelValue{true};
  }
  for (std::string_view no : {"0", "f", "F", "FALSE", "false", "False"}) {
    if (*text == no) return CelValue{false};
  }
  return Status(Code::kInvalid, StrCat("type conversion error: ", Quote(*text)));
}

Result<CelValue> Convert(std::string_view to, const CelValue& value) {
  if (to == "int") return ToInt(value);
  if (to == "uint") return ToUint(value);
  if (to == "dyn") return value;
  if (to == "type") return CelValue{std::string(value.TypeName())};
  if (to == "double") {
    double out = 0;
    if (AsDouble(value, out)) return CelValue{out};
    if (const auto* u = std::get_if<uint64_t>(&value.data)) {
      return CelValue{static_cast<double>(*u)};
    }
    return TextPtr(value) != nullptr ? Parsed<double>(*TextPtr(value)) : NoOverload();
  }
  if (to == "bool") return ToBool(value);
  const auto* bytes = CelAs<CelBytes>(value);
  if (to == "bytes") {
    if (bytes != nullptr) return value;
    return TextPtr(value) != nullptr ? CelOf(CelBytes{*TextPtr(value)})
                                     : Result<CelValue>(NoOverload());
  }
  if (bytes != nullptr && !IsValidUtf8(bytes->octets)) {
    return Status(Code::kInvalid, "invalid UTF-8 in bytes, cannot convert to string");
  }
  if (value.is_null() || IsCelList(value) || IsCelMap(value)) return NoOverload();
  return CelValue{CelText(value)};
}

// --- Strings -------------------------------------------------------------------------------------

// Where each character starts; the last is the text's end.
std::vector<size_t> Characters(const std::string& text) {
  std::vector<size_t> out;
  for (size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) out.push_back(i);
  }
  out.push_back(text.size());
  return out;
}

std::string Cased(std::string text, bool upper) {
  for (char& c : text) {
    if (upper && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (!upper && c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

Result<CelValue> Substring(const std::string& text, int64_t from, int64_t to) {
  const std::vector<size_t> at = Characters(text);
  const auto size = static_cast<int64_t>(at.size()) - 1;
  if (from < 0 || from > size || to < from || to > size) {
    return Status(Code::kInvalid,
                  StrCat("index out of range: ", from < 0 || from > size ? from : to));
  }
  return CelValue{text.substr(at[from], at[to] - at[from])};
}

Result<CelValue> IndexOf(const std::string& text, const std::string& part, bool last) {
  const size_t found = last ? text.rfind(part) : text.find(part);
  if (found == std::string::npos) return CelValue{int64_t{-1}};
  const std::vector<size_t> at = Characters(text);
  const auto place = std::lower_bound(at.begin(), at.end(), found);
  return CelValue{static_cast<int64_t>(place - at.begin())};
}

std::vector<std::string> SplitText(const std::string& text, const std::string& by, int64_t most) {
  std::vector<std::string> out;
  if (most == 0) return out;
  if (by.empty()) {
    const std::vector<size_t> at = Characters(text);
    for (size_t i = 0; i + 1 < at.size(); ++i) out.push_back(text.substr(at[i], at[i + 1] - at[i]));
    return out;
  }
  size_t start = 0;
  while (most < 0 || static_cast<int64_t>(out.size()) + 1 < most) {
    const size_t found = text.find(by, start);
    if (found == std::string::npos) break;
    out.push_back(text.substr(start, found - start));
    start = found + by.size();
  }
  out.push_back(text.substr(start));
  return out;
}

Result<CelValue> Replaced(const std::string& text,
                          const std::string& from,
                          const std::string& to,
                          int64_t most,
                          CelBudget& budget) {
  if (from.empty()) return CelValue{text};
  std::string out;
  size_t start = 0;
  for (; most != 0; --most) {
    const size_t found = text.find(from, start);
    if (found == std::string::npos) break;
    SWELL_RETURN_IF_ERROR(budget.Spend((found - start + to.size()) / 10));
    out += text.substr(start, found - start) + to;
    start = found + from.size();
  }
  return CelValue{out + text.substr(start)};
}

CelValue ListOf(const std::vector<std::string>& texts) {
  auto list = std::make_shared<std::vector<CelValue>>();
  for (const std::string& text : texts) list->push_back({text});
  return {CelList(std::move(list))};
}

Result<CelValue> MatchText(const std::string& text, const std::string& pattern, CelBudget& budget) {
  SWELL_ASSIGN_OR_RETURN(const auto compiled, CompileCelPattern(pattern, text.size(), budget));
  return CelValue{re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *compiled)};
}

// Methods of a string with up to two texts or numbers behind it.
Result<CelValue> CallText(std::string_view name,
                          const std::vector<CelValue>& args,
                          CelBudget& budget) {
  const std::string& text = *TextPtr(args[0]);
  const std::string* one = args.size() > 1 ? TextPtr(args[1]) : nullptr;
  // An argument that is a number; else, what stands for it.
  const auto number = [&args](size_t i, int64_t otherwise) {
    const int64_t* given = args.size() > i ? std::get_if<int64_t>(&args[i].data) : nullptr;
    return given != nullptr ? *given : otherwise;
  };
  const bool numbered = args.size() > 1 && std::holds_alternative<int64_t>(args[1].data);
  if (name == "lowerAscii" || name == "upperAscii") return CelValue{Cased(text, name[0] == 'u')};
  if (name == "trim") return CelValue{std::string(Trim(text))};
  const auto end = static_cast<int64_t>(Characters(text).size()) - 1;
  if (name == "charAt" && numbered) {
    const int64_t at = number(1, 0);
    return at == end ? CelValue{std::string()} : Substring(text, at, at + 1);
  }
  if (name == "substring" && numbered) return Substring(text, number(1, 0), number(2, end));
  if (one == nullptr) return NoOverload();
  if (name == "startsWith") return CelValue{text.starts_with(*one)};
  if (name == "endsWith") return CelValue{text.ends_with(*one)};
  // A search may compare the whole part at each place of the text.
  SWELL_RETURN_IF_ERROR(budget.Spend((text.size() / 10) * (one->size() / 10)));
  if (name == "contains") return CelValue{text.find(*one) != std::string::npos};
  if (name == "matches") return MatchText(text, *one, budget);
  if (name == "indexOf" || name == "lastIndexOf") return IndexOf(text, *one, name[0] == 'l');
  if (name == "split") {
    const std::vector<std::string> parts = SplitText(text, *one, number(2, -1));
    SWELL_RETURN_IF_ERROR(budget.Spend(parts.size()));
    return ListOf(parts);
  }
  if (name == "replace" && args.size() > 2 && TextPtr(args[2]) != nullptr) {
    return Replaced(text, *one, *TextPtr(args[2]), number(3, -1), budget);
  }
  return NoOverload();
}

// --- Lists ---------------------------------------------------------------------------------------

Result<CelValue> Joined(const CelValue& list, const std::string& between, CelBudget& budget) {
  std::string out;
  for (int64_t i = 0; i < CelSize(list); ++i) {
    const CelValue item = CelItem(list, static_cast<size_t>(i), budget);
    if (TextPtr(item) == nullptr) return NoOverload();
    SWELL_RETURN_IF_ERROR(budget.Spend((TextPtr(item)->size() + between.size()) / 10));
    out += StrCat(i > 0 ? between : "", *TextPtr(item));
  }
  return CelValue{out};
}

Result<CelValue> Sum(const CelValue& list, CelBudget& budget) {
  CelValue sum{int64_t{0}};
  for (int64_t i = 0; i < CelSize(list); ++i) {
    const CelValue item = CelItem(list, static_cast<size_t>(i), budget);
    if (i == 0) {
      sum = item;
      continue;
    }
    SWELL_ASSIGN_OR_RETURN(sum, Arithmetic("+", sum, item, budget));
  }
  return sum;
}

Result<CelValue> CallList(std::string_view name,
                          const std::vector<CelValue>& args,
                          CelBudget& budget) {
  const CelValue& list = args[0];
  const int64_t size = CelSize(list);
  const auto item = [&](int64_t i) { return CelItem(list, static_cast<size_t>(i), budget); };
  SWELL_RETURN_IF_ERROR(budget.Spend(size));
  if (name == "join") {
    const std::string* between = args.size() > 1 ? TextPtr(args[1]) : nullptr;
    if (args.size() > 1 && between == nullptr) return NoOverload();
    return Joined(list, between ? *between : "", budget);
  }
  if (name == "sum") return Sum(list, budget);
  if (name == "isSorted") {
    for (int64_t i = 1; i < size; ++i) {
      SWELL_ASSIGN_OR_RETURN(const int order, CelCompare(item(i - 1), item(i)));
      if (order > 0) return CelValue{false};
    }
    return CelValue{true};
  }
  if (name == "min" || name == "max") {
    if (size == 0) return Status(Code::kInvalid, StrCat(name, " called on empty list"));
    CelValue best = item(0);
    for (int64_t i = 1; i < size; ++i) {
      SWELL_ASSIGN_OR_RETURN(const int order, CelCompare(item(i), best));
      if (name == "min" ? order < 0 : order > 0) best = item(i);
    }
    return best;
  }
  if (name != "indexOf" && name != "lastIndexOf") return CallCelLists(name, args, budget);
  if (args.size() < 2) return NoOverload();
  int64_t found = -1;
  for (int64_t i = 0; i < size; ++i) {
    if (!CelEqual(item(i), args[1], budget)) continue;
    found = i;
    if (name == "indexOf") break;
  }
  return CelValue{found};
}

// --- Quantities ----------------------------------------------------------------------------------

Result<CelValue> ToQuantity(const CelValue& value, bool ask) {
  const std::string* text = TextPtr(value);
  if (text == nullptr) return NoOverload();
  const Result<Quantity> parsed = Quantity::Parse(*text);
  if (ask) return CelValue{parsed.ok()};
  if (!parsed.ok()) return Status(Code::kInvalid, StrCat("invalid quantity: ", Quote(*text)));
  return CelValue::Of(*parsed);
}

constexpr int64_t kMilli = 1000;

Result<CelValue> CallQuantity(std::string_view name, const std::vector<CelValue>& args) {
  const Quantity& mine = *std::get<CelQuantity>(args[0].data);
  const auto* other = args.size() > 1 ? std::get_if<CelQuantity>(&args[1].data) : nullptr;
  const auto* number = args.size() > 1 ? std::get_if<int64_t>(&args[1].data) : nullptr;
  if (number != nullptr && (name == "add" || name == "sub")) {
    SWELL_ASSIGN_OR_RETURN(const Quantity whole, Quantity::Parse(std::to_string(*number)));
    return CallQuantity(name, {args[0], CelValue::Of(whole)});
  }
  if (name == "sign") {
    return CelValue{int64_t{mine.zero() ? 0 : mine.negative() ? -1 : 1}};
  }
  const bool whole = mine.MilliValue() % kMilli == 0;
  if (name == "isInteger") return CelValue{whole};
  if (name == "asInteger") {
    if (!whole) return Status(Code::kInvalid, "cannot convert value to integer");
    return CelValue{mine.Value()};
  }
  if (name == "asApproximateFloat") {
    return CelValue{whole ? static_cast<double>(mine.Value())
                          : static_cast<double>(mine.MilliValue()) / kMilli};
  }
  if (other == nullptr) return NoOverload();
  if (name == "isGreaterThan") return CelValue{mine > **other};
  if (name == "isLessThan") return CelValue{mine < **other};
  if (name == "compareTo") {
    return CelValue{int64_t{mine < **other ? -1 : mine > **other ? 1 : 0}};
  }
  if (name == "add") {
    Quantity sum = mine;
    sum += **other;
    return CelValue::Of(sum);
  }
  if (name == "sub") {
    Quantity rest = mine;
    rest -= **other;
    return CelValue::Of(rest);
  }
  return NoOverload();
}

// --- Durations and addresses ---------------------------------------------------------------------

// Go's syntax: a unit behind each number, none above hours, and a sign.
std::optional<Duration> ParseGoDuration(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const bool unitless = !text.empty() && text.back() >= '0' && text.back() <= '9' && text != "0";
  if (unitless || text.find('d') != std::string_view::npos) return std::nullopt;
  const std::optional<Duration> parsed = ParseDuration(text);
  return parsed && negative ? -*parsed : parsed;
}

Result<CelValue> ToDuration(const CelValue& value) {
  if (std::holds_alternative<Duration>(value.data)) return value;
  const std::string* text = TextPtr(value);
  if (text == nullptr) return NoOverload();
  const std::optional<Duration> parsed = ParseGoDuration(*text);
  if (!parsed) return Status(Code::kInvalid, StrCat("type conversion error: ", Quote(*text)));
  return CelValue{*parsed};
}

// How many whole units there are.
Result<CelValue> CallDuration(std::string_view name, Duration span) {
  using std::chrono::duration_cast;
  if (name == "getHours") return CelValue{int64_t{duration_cast<std::chrono::hours>(span).count()}};
  if (name == "getMinutes") {
    return CelValue{int64_t{duration_cast<std::chrono::minutes>(span).count()}};
  }
  if (name == "getSeconds") {
    return CelValue{int64_t{duration_cast<std::chrono::seconds>(span).count()}};
  }
  if (name == "getMilliseconds") {
    return CelValue{int64_t{duration_cast<std::chrono::milliseconds>(span).count()}};
  }
  return NoOverload();
}

// --- Optional values -----------------------------------------------------------------------------

CelValue Some(CelValue value) {
  return CelOf(CelOptional{std::make_shared<const CelValue>(std::move(value))});
}

// 0, "", false, null, [] and {}.
bool IsZero(const CelValue& value) {
  if (IsCelList(value) || IsCelMap(value) || TextPtr(value) != nullptr) return CelSize(value) == 0;
  const auto* yes = std::get_if<bool>(&value.data);
  double number = 1;
  const auto* whole = std::get_if<uint64_t>(&value.data);
  const auto* span = std::get_if<Duration>(&value.data);
  return value.is_null() || (yes != nullptr && !*yes) || (AsDouble(value, number) && number == 0) ||
         (whole != nullptr && *whole == 0) || (span != nullptr && *span == Duration::zero());
}

// or() and orValue() are the evaluator's: what stands behind them may not be asked for.
Result<CelValue> CallOptional(std::string_view name,
                              const std::vector<CelValue>& args,
                              CelBudget& budget) {
  if (name == "optional.none") return CelOf(CelOptional{});
  if (name == "optional.of") return Some(args[0]);
  if (name == "optional.ofNonZeroValue") {
    return IsZero(args[0]) ? CelOf(CelOptional{}) : Some(args[0]);
  }
  if (name == "optional.unwrap" || name == "unwrapOpt") {
    if (!IsCelList(args[0])) return NoOverload();
    auto out = std::make_shared<std::vector<CelValue>>();
    for (int64_t i = 0; i < CelSize(args[0]); ++i) {
      const CelValue item = CelItem(args[0], static_cast<size_t>(i), budget);
      const auto* optional = CelAs<CelOptional>(item);
      if (optional == nullptr) return NoOverload();
      if (optional->held == nullptr) continue;
      out->push_back(*optional->held);
      budget.ChargeCopy(*optional->held);
    }
    return CelValue{CelList(std::move(out))};
  }
  const auto& held = CelAs<CelOptional>(args[0])->held;
  if (name == "hasValue") return CelValue{held != nullptr};
  if (name != "value") return NoOverload();
  if (held == nullptr) return Status(Code::kInvalid, "optional.none() dereference");
  return *held;
}

struct CelFunction {
  std::string_view name;
  bool method;
  size_t least, most;  // arguments, with a method's target
};
constexpr CelFunction kFunctions[] = {{"size", true, 1, 1},
                                      {"size", false, 1, 1},
                                      {"int", false, 1, 1},
                                      {"uint", false, 1, 1},
                                      {"double", false, 1, 1},
                                      {"string", false, 1, 1},
                                      {"bool", false, 1, 1},
                                      {"bytes", false, 1, 1},
                                      {"type", false, 1, 1},
                                      {"dyn", false, 1, 1},
                                      {"startsWith", true, 2, 2},
                                      {"endsWith", true, 2, 2},
                                      {"contains", true, 2, 2},
                                      {"matches", true, 2, 2},
                                      {"matches", false, 2, 2},
                                      {"charAt", true, 2, 2},
                                      {"indexOf", true, 2, 2},
                                      {"lastIndexOf", true, 2, 2},
                                      {"lowerAscii", true, 1, 1},
                                      {"upperAscii", true, 1, 1},
                                      {"replace", true, 3, 4},
                                      {"split", true, 2, 3},
                                      {"substring", true, 2, 3},
                                      {"trim", true, 1, 1},
                                      {"join", true, 1, 2},
                                      {"sum", true, 1, 1},
                                      {"min", true, 1, 1},
                                      {"max", true, 1, 1},
                                      {"isSorted", true, 1, 1},
                                      {"quantity", false, 1, 1},
                                      {"isQuantity", false, 1, 1},
                                      {"sign", true, 1, 1},
                                      {"isInteger", true, 1, 1},
                                      {"asInteger", true, 1, 1},
                                      {"add", true, 2, 2},
                                      {"compareTo", true, 2, 2},
                                      {"isGreaterThan", true, 2, 2},
                                      {"isLessThan", true, 2, 2},
                                      {"asApproximateFloat", true, 1, 1},
                                      {"duration", false, 1, 1},
                                      {"getHours", true, 1, 2},
                                      {"getMinutes", true, 1, 2},
                                      {"getSeconds", true, 1, 2},
                                      {"getMilliseconds", true, 1, 2},
                                      {"sub", true, 2, 2},
                                      {"timestamp", false, 1, 1},
                                      {"getFullYear", true, 1, 2},
                                      {"getMonth", true, 1, 2},
                                      {"getDate", true, 1, 2},
                                      {"getDayOfMonth", true, 1, 2},
                                      {"getDayOfWeek", true, 1, 2},
                                      {"getDayOfYear", true, 1, 2},
                                      {"ip", false, 1, 1},
                                      {"isIP", false, 1, 1},
                                      {"cidr", false, 1, 1},
                                      {"isCIDR", false, 1, 1},
                                      {"ip.isCanonical", false, 1, 1},
                                      {"url", false, 1, 1},
                                      {"isURL", false, 1, 1},
                                      {"family", true, 1, 1},
                                      {"isUnspecified", true, 1, 1},
                                      {"isLoopback", true, 1, 1},
                                      {"isLinkLocalMulticast", true, 1, 1},
                                      {"isLinkLocalUnicast", true, 1, 1},
                                      {"isGlobalUnicast", true, 1, 1},
                                      {"ip", true, 1, 1},
                                      {"masked", true, 1, 1},
                                      {"prefixLength", true, 1, 1},
                                      {"getScheme", true, 1, 1},
                                      {"getHost", true, 1, 1},
                                      {"getHostname", true, 1, 1},
                                      {"getPort", true, 1, 1},
                                      {"getEscapedPath", true, 1, 1},
                                      {"getQuery", true, 1, 1},
                                      {"containsIP", true, 2, 2},
                                      {"containsCIDR", true, 2, 2},
                                      {"semver", false, 1, 2},
                                      {"isSemver", false, 1, 2},
                                      {"major", true, 1, 1},
                                      {"minor", true, 1, 1},
                                      {"patch", true, 1, 1},
                                      {"format.named", false, 1, 1},
                                      {"validate", true, 2, 2},
                                      {"find", true, 2, 2},
                                      {"findAll", true, 2, 3},
                                      {"format", true, 2, 2},
                                      {"sets.contains", false, 2, 2},
                                      {"sets.equivalent", false, 2, 2},
                                      {"sets.intersects", false, 2, 2},
                                      {"lists.range", false, 1, 1},
                                      {"strings.quote", false, 1, 1},
                                      {"distinct", true, 1, 1},
                                      {"reverse", true, 1, 1},
                                      {"sort", true, 1, 1},
                                      {"first", true, 1, 1},
                                      {"last", true, 1, 1},
                                      {"flatten", true, 1, 2},
                                      {"slice", true, 3, 3},
                                      {"optional.none", false, 0, 0},
                                      {"optional.of", false, 1, 1},
                                      {"optional.ofNonZeroValue", false, 1, 1},
                                      {"optional.unwrap", false, 1, 1},
                                      {"hasValue", true, 1, 1},
                                      {"value", true, 1, 1},
                                      {"unwrapOpt", true, 1, 1},
                                      {"path", true, 2, 2},
                                      {"group", true, 2, 2},
                                      {"serviceAccount", true, 3, 3},
                                      {"resource", true, 2, 2},
                                      {"subresource", true, 2, 2},
                                      {"namespace", true, 2, 2},
                                      {"name", true, 2, 2},
                                      {"fieldSelector", true, 2, 2},
                                      {"labelSelector", true, 2, 2},
                                      {"check", true, 2, 2},
                                      {"allowed", true, 1, 1},
                                      {"reason", true, 1, 1},
                                      {"errored", true, 1, 1},
                                      {"error", true, 1, 1},
                                      {"or", true, 2, 2},
                                      {"orValue", true, 2, 2}};

}  // namespace

bool IsCelFunction(std::string_view name, bool method, size_t arguments) {
  constexpr std::string_view kFormats = "format.";
  if (!method && arguments == 0 && name.starts_with(kFormats)) {
    return IsCelFormat(name.substr(kFormats.size()));
  }
  return std::any_of(std::begin(kFunctions), std::end(kFunctions), [&](const CelFunction& f) {
    return f.name == name && f.method == method && arguments >= f.least && arguments <= f.most;
  });
}

namespace {

// Functions that stand alone, by their names.
std::optional<Result<CelValue>> CallByName(std::string_view name,
                                           const std::vector<CelValue>& args,
                                           CelBudget& budget) {
  if (name.starts_with("optional.") || name == "unwrapOpt") return CallOptional(name, args, budget);
  if (name.starts_with("format.")) return CallCelFormat(name, args);
  if (name.starts_with("sets.")) return CallCelSet(name, args, budget);
  if (name == "lists.range") return CallCelLists(name, args, budget);
  if (args.empty()) return NoOverload();
  if (name == "size") {
    const int64_t size = CelSize(args[0]);
    return size < 0 ? Result<CelValue>(NoOverload()) : Result<CelValue>(CelValue{size});
  }
  if (name == "int" || name == "uint" || name == "double" || name == "string" || name == "bool" ||
      name == "bytes" || name == "type" || name == "dyn") {
    return Convert(name, args[0]);
  }
  if (name == "quantity" || name == "isQuantity") return ToQuantity(args[0], name[0] == 'i');
  if (name == "duration") return ToDuration(args[0]);
  if (name == "timestamp") return CallCelTime(name, args, budget);
  if (name == "semver" || name == "isSemver") return CallCelVersion(name, args);
  return std::nullopt;
}

Result<CelValue> CallObject(std::string_view name,
                            const std::vector<CelValue>& args,
                            CelBudget& budget) {
  SWELL_RETURN_IF_ERROR(budget.Spend(CelObjectBytes(*std::get<CelObjectPtr>(args[0].data)) / 10));
  if (CelAs<CelOptional>(args[0]) != nullptr) return CallOptional(name, args, budget);
  if (CelAs<CelVersion>(args[0]) != nullptr) return CallCelVersion(name, args);
  if (CelAs<CelFormat>(args[0]) != nullptr) return CallCelFormat(name, args);
  if (CelAs<CelAuthority>(args[0]) != nullptr || CelAs<CelDecision>(args[0]) != nullptr) {
    return CallCelAccess(name, args, budget);
  }
  if (CelAs<CelBytes>(args[0]) != nullptr) return NoOverload();
  return CallCelNetwork(name, args);
}

bool IsOfText(std::string_view name) {
  return name == "ip" || name == "isIP" || name == "cidr" || name == "isCIDR" ||
         name == "ip.isCanonical" || name == "url" || name == "isURL";
}

}  // namespace

Result<CelValue> CallCel(std::string_view name, std::vector<CelValue> args, CelBudget& budget) {
  if (const auto answer = CallByName(name, args, budget)) return *answer;
  if (const auto* span = std::get_if<Duration>(&args[0].data)) {
    return args.size() == 1 ? CallDuration(name, *span) : NoOverload();
  }
  if (std::holds_alternative<CelQuantity>(args[0].data)) return CallQuantity(name, args);
  if (std::holds_alternative<CelObjectPtr>(args[0].data)) return CallObject(name, args, budget);
  if (std::holds_alternative<WallTime>(args[0].data) || name.starts_with("get")) {
    return CallCelTime(name, args, budget);
  }
  if (const std::string* text = TextPtr(args[0])) {
    SWELL_RETURN_IF_ERROR(budget.Spend(text->size() / 10));
    if (IsOfText(name)) return CallCelNetwork(name, args);
    const bool more =
        name == "find" || name == "findAll" || name == "format" || name == "strings.quote";
    return more ? CallCelString(name, args, budget) : CallText(name, args, budget);
  }
  return IsCelList(args[0]) ? CallList(name, args, budget) : NoOverload();
}

Result<CelValue> OperateCel(std::string_view op,
                            const CelValue& a,
                            const CelValue& b,
                            CelBudget& budget) {
  if (op == "==" || op == "!=") {
    SWELL_RETURN_IF_ERROR(budget.Spend(std::max<int64_t>(CelSize(a), 0) / 10));
    return CelValue{CelEqual(a, b, budget) == (op == "==")};
  }
  if (op == "in") return Contains(a, b, budget);
  if (op == "<" || op == "<=" || op == ">" || op == ">=") {
    SWELL_ASSIGN_OR_RETURN(const int order, CelCompare(a, b));
    return CelValue{op == "<"    ? order < 0
                    : op == "<=" ? order <= 0
                    : op == ">"  ? order > 0
                                 : order >= 0};
  }
  return Arithmetic(op, a, b, budget);
}

}  // namespace swell::api
