// CEL's find(), findAll(), format() and strings.quote().
#include <re2/re2.h>

#include <algorithm>
#include <cstdio>

#include "base/strings.h"
#include "kube/api/cel/cel_objects.h"

namespace swell::api {
namespace {

Status NoOverload() { return Status(Code::kInvalid, "no such overload"); }

Result<CelValue> Find(const std::string& text,
                      const std::string& pattern,
                      int64_t most,
                      bool one,
                      CelBudget& budget) {
  SWELL_ASSIGN_OR_RETURN(const auto compiled, CompileCelPattern(pattern, text.size(), budget));
  auto found = std::make_shared<std::vector<CelValue>>();
  size_t start = 0;
  size_t end = std::string::npos;  // of the match before
  re2::StringPiece hit;
  const re2::StringPiece all(text.data(), text.size());
  while (start <= text.size() && (most < 0 || static_cast<int64_t>(found->size()) < most)) {
    SWELL_RETURN_IF_ERROR(budget.Spend(found->empty() ? 0 : text.size() / 10));
    if (!compiled->Match(all, start, text.size(), re2::RE2::UNANCHORED, &hit, 1)) break;
    const auto at = static_cast<size_t>(hit.data() - text.data());
    // Right behind another match there is no empty one.
    if (!hit.empty() || at != end) found->push_back({std::string(hit.data(), hit.size())});
    end = at + hit.size();
    start = hit.empty() ? end + 1 : end;
  }
  if (!one) return CelValue{CelList(std::move(found))};
  return found->empty() ? CelValue{std::string()} : found->front();
}

// --- format --------------------------------------------------------------------------------------

std::string Shown(const CelValue& value, CelBudget& budget, int depth) {
  constexpr int kDepthMax = 32;
  budget.Charge(1);
  if (depth > kDepthMax || budget.left < 0) return "...";
  if (value.is_null()) return "null";
  std::vector<std::string> parts;
  if (IsCelList(value)) {
    for (int64_t i = 0; i < CelSize(value); ++i) {
      parts.push_back(Shown(CelItem(value, static_cast<size_t>(i), budget), budget, depth + 1));
    }
    return StrCat("[", Join(parts, ", "), "]");
  }
  if (!IsCelMap(value)) {
    const std::string text = CelText(value);
    budget.Charge(text.size() / 10);
    return depth > 0 && std::holds_alternative<std::string>(value.data) ? Quote(text) : text;
  }
  for (const CelValue& key : CelKeys(value, budget)) {
    CelValue member;
    CelFind(value, key, member, budget);
    parts.push_back(StrCat(Shown(key, budget, depth + 1), ":", Shown(member, budget, depth + 1)));
  }
  std::sort(parts.begin(), parts.end());
  return StrCat("{", Join(parts, ", "), "}");
}

std::string InBase(uint64_t number, unsigned base, bool upper) {
  const char* digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
  std::string out;
  do {
    out.insert(out.begin(), digits[number % base]);
    number /= base;
  } while (number > 0);
  return out;
}

Result<CelValue> Whole(char clause, const CelValue& value) {
  const auto* i = std::get_if<int64_t>(&value.data);
  const auto* u = std::get_if<uint64_t>(&value.data);
  const auto* yes = std::get_if<bool>(&value.data);
  const auto* text = std::get_if<std::string>(&value.data);
  const bool hex = clause == 'x' || clause == 'X';
  if (clause == 'b' && yes != nullptr) return CelValue{std::string(*yes ? "1" : "0")};
  const auto* bytes = CelAs<CelBytes>(value);
  if (hex && (text != nullptr || bytes != nullptr)) {
    std::string out;
    for (const char c : text != nullptr ? *text : bytes->octets) {
      const auto byte = static_cast<unsigned char>(c);
      out += (byte < 16 ? "0" : "") + InBase(byte, 16, clause == 'X');
    }
    return CelValue{out};
  }
  if (i == nullptr && u == nullptr) {
    return Status(Code::kInvalid, StrCat("error during formatting: %", std::string(1, clause),
                                         " clause can not be used on ", value.TypeName()));
  }
  const unsigned base = hex ? 16 : clause == 'b' ? 2 : clause == 'o' ? 8 : 10;
  const bool negative = i != nullptr && *i < 0;
  const uint64_t size = u != nullptr ? *u
                        : negative   ? 0 - static_cast<uint64_t>(*i)
                                     : static_cast<uint64_t>(*i);
  return CelValue{StrCat(negative ? "-" : "", InBase(size, base, clause == 'X'))};
}

// 1.5e-01 as 1.5×10⁻⁰¹.
std::string WithPower(std::string_view text) {
  static constexpr std::string_view kDigits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  const size_t at = text.find('e');
  if (at == std::string_view::npos) return std::string(text);
  std::string out = StrCat(text.substr(0, at), "×10");
  for (const char c : text.substr(at + 1)) {
    if (c == '-') out += "⁻";
    if (c >= '0' && c <= '9') out += kDigits[c - '0'];
  }
  return out;
}

Result<CelValue> Fractional(char clause, int digits, const CelValue& value) {
  double number = 0;
  if (const auto* d = std::get_if<double>(&value.data)) {
    number = *d;
  } else if (const auto* i = std::get_if<int64_t>(&value.data)) {
    number = static_cast<double>(*i);
  } else {
    return Status(Code::kInvalid, StrCat("error during formatting: %", std::string(1, clause),
                                         " clause can not be used on ", value.TypeName()));
  }
  char text[512];
  if (clause == 'f') {
    const int size = std::snprintf(text, sizeof(text), "%.*f", digits, number);
    return CelValue{std::string(text, static_cast<size_t>(size))};
  }
  const int size = std::snprintf(text, sizeof(text), "%.*e", digits, number);
  return CelValue{WithPower(std::string_view(text, static_cast<size_t>(size)))};
}

Result<CelValue> Format(const std::string& pattern, const CelValue& list, CelBudget& budget) {
  constexpr int kDigitsMax = 100;
  std::string out;
  size_t next = 0;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      out += pattern[i];
      continue;
    }
    int digits = 6;
    if (++i < pattern.size() && pattern[i] == '.') {
      for (digits = 0, ++i; i < pattern.size() && pattern[i] >= '0' && pattern[i] <= '9'; ++i) {
        digits = std::min(digits * 10 + (pattern[i] - '0'), kDigitsMax);
      }
    }
    const char clause = i < pattern.size() ? pattern[i] : '\0';
    if (clause == '%') {
      out += '%';
      continue;
    }
    if (static_cast<int64_t>(next) >= CelSize(list)) {
      return Status(Code::kInvalid, StrCat("index ", next, " out of range"));
    }
    const CelValue value = CelItem(list, next++, budget);
    if (clause == 's') {
      out += Shown(value, budget, 0);
    } else if (clause == 'f' || clause == 'e') {
      SWELL_ASSIGN_OR_RETURN(const CelValue part, Fractional(clause, digits, value));
      out += CelText(part);
    } else if (clause != '\0' && std::string_view("dbxXo").find(clause) != std::string_view::npos) {
      SWELL_ASSIGN_OR_RETURN(const CelValue part, Whole(clause, value));
      out += CelText(part);
    } else {
      return Status(Code::kInvalid,
                    StrCat("could not parse formatting clause: unrecognized formatting clause ",
                           Quote(std::string(1, clause))));
    }
    SWELL_RETURN_IF_ERROR(budget.Spend(out.size() / 10));
  }
  return CelValue{out};
}

}  // namespace

// Pattern and text may both be a stranger's: RE2's time is linear in the text (docs/adr/0011).
Result<std::shared_ptr<const re2::RE2>> CompileCelPattern(const std::string& pattern,
                                                          size_t text_size,
                                                          CelBudget& budget) {
  constexpr size_t kCompileCost = 100;
  constexpr int64_t kProgramBytesMax = 256 << 10;
  SWELL_RETURN_IF_ERROR(budget.Spend(kCompileCost + pattern.size()));
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kProgramBytesMax);
  const auto compiled =
      std::make_shared<const re2::RE2>(re2::StringPiece(pattern.data(), pattern.size()), options);
  if (!compiled->ok()) {
    return Status(Code::kInvalid, StrCat("error parsing regexp: ", Quote(pattern)));
  }
  const auto size = static_cast<size_t>(compiled->ProgramSize());
  SWELL_RETURN_IF_ERROR(budget.Spend((text_size / 10 + 1) * (size / 8 + 1)));
  return compiled;
}

Result<CelValue> CallCelString(std::string_view name,
                               const std::vector<CelValue>& args,
                               CelBudget& budget) {
  const std::string& text = std::get<std::string>(args[0].data);
  if (name == "strings.quote") return CelValue{Quote(text)};
  if (name == "format") {
    return args.size() > 1 && IsCelList(args[1]) ? Format(text, args[1], budget) : NoOverload();
  }
  const auto* pattern = args.size() > 1 ? std::get_if<std::string>(&args[1].data) : nullptr;
  const auto* most = args.size() > 2 ? std::get_if<int64_t>(&args[2].data) : nullptr;
  if (pattern == nullptr || (args.size() > 2 && most == nullptr)) return NoOverload();
  const bool one = name == "find";
  return Find(text, *pattern, one ? 1 : most != nullptr ? *most : -1, one, budget);
}

}  // namespace swell::api
