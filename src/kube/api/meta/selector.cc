#include "kube/api/meta/selector.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/api/meta/meta.h"

namespace swell::api {
namespace {

using Op = Requirement::Op;

constexpr size_t kMaxRequirements = 1000;

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
bool IsSpecial(char c) { return std::string_view("=!(),><").find(c) != std::string_view::npos; }

// Tokens of kubectl's -l syntax: operators, parentheses, commas, and words.
std::vector<std::string_view> Tokenize(std::string_view text) {
  std::vector<std::string_view> tokens;
  size_t i = 0;
  while (i < text.size()) {
    size_t begin = i;
    if (IsSpace(text[i])) {
      ++i;
      continue;
    }
    if (text[i] == '=' || text[i] == '!') {
      i += i + 1 < text.size() && text[i + 1] == '=' ? 2 : 1;
    } else if (IsSpecial(text[i])) {
      ++i;
    } else {
      while (i < text.size() && !IsSpace(text[i]) && !IsSpecial(text[i])) ++i;
    }
    tokens.push_back(text.substr(begin, i - begin));
  }
  return tokens;
}

// A fault of the key is told alone, and as Kubernetes tells it, without a field.
Status CheckRequirement(const Requirement& requirement) {
  std::vector<std::string> faults;
  auto invalid = [&faults](std::string_view field, std::string_view value, std::string_view why) {
    faults.push_back(StrCat(field, ": Invalid value: ", Quote(value), ": ", why));
  };
  const std::string key_fault = CheckQualifiedName(requirement.key);
  if (!key_fault.empty()) invalid("<nil>", requirement.key, key_fault);
  const bool compares = requirement.op == Op::kGt || requirement.op == Op::kLt;
  for (size_t i = 0; key_fault.empty() && i < requirement.values.size(); ++i) {
    const std::string& value = requirement.values[i];
    const std::string at = StrCat("values[", i, "]");
    if (compares && !ParseInt(value)) {
      invalid(at, value, "for 'Gt', 'Lt' operators, the value must be an integer");
    }
    if (const std::string why = CheckLabelValue(value); !why.empty()) {
      invalid(StrCat(at, "[", requirement.key, "]"), value, why);
    }
  }
  if (faults.empty()) return Status::Ok();
  const std::string all = faults.size() == 1 ? faults[0] : StrCat("[", Join(faults, ", "), "]");
  return Status(Code::kBadRequest, StrCat("unable to parse requirement: ", all));
}

class LabelParser {
 public:
  explicit LabelParser(std::string_view text) : tokens_(Tokenize(text)) {}

  Result<std::vector<Requirement>> Run() {
    std::vector<Requirement> requirements;
    if (tokens_.empty()) return requirements;
    while (true) {
      if (!AtWord() && !(at_ < tokens_.size() && tokens_[at_] == "!")) {
        return Unexpected(requirements.empty() ? ", expected: !, identifier, or 'end of string'"
                                               : ", expected: identifier after ','");
      }
      SWELL_ASSIGN_OR_RETURN(Requirement requirement, One());
      SWELL_RETURN_IF_ERROR(CheckRequirement(requirement));
      requirements.push_back(std::move(requirement));
      if (at_ == tokens_.size()) break;
      if (tokens_[at_] != ",") return Unexpected(", expected: ',' or 'end of string'");
      ++at_;
      if (requirements.size() >= kMaxRequirements) {
        return Status(Code::kBadRequest,
                      StrCat("unable to parse requirement: more than ", kMaxRequirements));
      }
    }
    std::stable_sort(requirements.begin(), requirements.end(),
                     [](const Requirement& a, const Requirement& b) { return a.key < b.key; });
    return requirements;
  }

 private:
  bool AtWord() const { return at_ < tokens_.size() && !IsSpecial(tokens_[at_][0]); }

  Status Unexpected(std::string_view rest) const {
    std::string_view found = at_ < tokens_.size() ? tokens_[at_] : std::string_view();
    return Status(Code::kBadRequest, StrCat("found '", found, "'", rest));
  }

  Status Unparsed(std::string_view rest) const {
    return Unexpected(rest).WithContext("unable to parse requirement");
  }

  Result<Requirement> One() {
    Requirement requirement;
    bool absent = at_ < tokens_.size() && tokens_[at_] == "!";
    if (absent) ++at_;
    if (!AtWord()) return Unparsed(", expected: identifier");
    requirement.key = tokens_[at_++];
    requirement.op = absent ? Op::kDoesNotExist : Op::kExists;
    if (absent || at_ == tokens_.size() || tokens_[at_] == ",") return requirement;

    std::string_view op = tokens_[at_++];
    if (op == "in" || op == "notin") {
      requirement.op = op == "in" ? Op::kIn : Op::kNotIn;
      SWELL_ASSIGN_OR_RETURN(requirement.values, ValueList());
      return requirement;
    }
    if (op == "=" || op == "==") {
      requirement.op = Op::kIn;
    } else if (op == "!=") {
      requirement.op = Op::kNotIn;
    } else if (op == ">" || op == "<") {
      requirement.op = op == ">" ? Op::kGt : Op::kLt;
    } else {
      --at_;
      return Unparsed(", expected: in, notin, =, ==, !=, gt, lt");
    }
    // "a=" asks for the empty value.
    requirement.values.emplace_back(AtWord() ? tokens_[at_++] : std::string_view());
    return requirement;
  }

  Result<std::vector<std::string>> ValueList() {
    if (at_ == tokens_.size() || tokens_[at_] != "(") return Unparsed(" expected: '('");
    ++at_;
    std::vector<std::string> values;
    if (at_ == tokens_.size() || (!AtWord() && tokens_[at_] != "," && tokens_[at_] != ")")) {
      return Unparsed(", expected: ',', ')' or identifier");
    }
    while (true) {
      values.emplace_back(AtWord() ? tokens_[at_++] : std::string_view());
      if (at_ == tokens_.size()) return Unparsed(", expected: ',' or ')'");
      std::string_view separator = tokens_[at_];
      if (separator != "," && separator != ")") return Unparsed(", expected: ',' or ')'");
      ++at_;
      if (separator == ")") break;
    }
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    return values;
  }

  std::vector<std::string_view> tokens_;
  size_t at_ = 0;
};

bool RequirementMatches(const Requirement& requirement, const std::string_view* value) {
  auto listed = [&] {
    return std::find(requirement.values.begin(), requirement.values.end(), *value) !=
           requirement.values.end();
  };
  switch (requirement.op) {
    case Op::kExists:
      return value != nullptr;
    case Op::kDoesNotExist:
      return value == nullptr;
    case Op::kIn:
      return value != nullptr && listed();
    case Op::kNotIn:
      return value == nullptr || !listed();
    case Op::kGt:
    case Op::kLt: {
      if (value == nullptr || requirement.values.empty()) return false;
      auto have = ParseInt(*value);
      auto bound = ParseInt(requirement.values[0]);
      if (!have || !bound) return false;
      return requirement.op == Op::kGt ? *have > *bound : *have < *bound;
    }
  }
  return false;
}

Result<Requirement> ExpressionFromJson(const json::Value& expression) {
  Requirement requirement;
  requirement.key = json::GetString(expression, {"key"});
  for (const json::Value& value : json::GetArray(expression, {"values"})) {
    if (!value.is_string()) {
      return Status(Code::kInvalid, StrCat("matchExpressions: key ", Quote(requirement.key),
                                           ": values must be strings, not ", json::Print(value)));
    }
    requirement.values.emplace_back(json::View(value.get_string()));
  }
  std::string_view op = json::GetString(expression, {"operator"});
  bool takes_values = op == "In" || op == "NotIn";
  if (op == "In") {
    requirement.op = Op::kIn;
  } else if (op == "NotIn") {
    requirement.op = Op::kNotIn;
  } else if (op == "Exists") {
    requirement.op = Op::kExists;
  } else if (op == "DoesNotExist") {
    requirement.op = Op::kDoesNotExist;
  } else {
    return Status(Code::kInvalid, StrCat(Quote(op), " is not a valid label selector operator"));
  }
  if (takes_values == requirement.values.empty()) {
    return Status(Code::kInvalid,
                  StrCat("matchExpressions: key ", Quote(requirement.key), ": ",
                         takes_values ? "for 'in', 'notin' operators, values set can't be empty"
                                      : "values set must be empty for exists and does not exist"));
  }
  std::sort(requirement.values.begin(), requirement.values.end());
  return requirement;
}

std::string RequirementText(const Requirement& requirement) {
  const std::string& key = requirement.key;
  bool one = requirement.values.size() == 1;
  switch (requirement.op) {
    case Op::kExists:
      return key;
    case Op::kDoesNotExist:
      return "!" + key;
    case Op::kIn:
      if (one) return StrCat(key, "=", requirement.values[0]);
      return StrCat(key, " in (", Join(requirement.values, ","), ")");
    case Op::kNotIn:
      if (one) return StrCat(key, "!=", requirement.values[0]);
      return StrCat(key, " notin (", Join(requirement.values, ","), ")");
    case Op::kGt:
      return StrCat(key, ">", Join(requirement.values, ","));
    case Op::kLt:
      return StrCat(key, "<", Join(requirement.values, ","));
  }
  return key;
}

// The text with its escapes (\\ \, \=) resolved.
Result<std::string> UnescapeField(std::string_view text) {
  auto bad = [](const std::string& what) {
    return Status(Code::kBadRequest, StrCat("invalid field selector: ", what));
  };
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
      if (i == text.size() || std::string_view("\\,=").find(text[i]) == std::string_view::npos) {
        return bad(StrCat("invalid escape sequence: ", text.substr(i - 1, 2)));
      }
    } else if (text[i] == ',' || text[i] == '=') {
      return bad(StrCat("unescaped character in value: ", static_cast<int>(text[i])));
    }
    out += text[i];
  }
  return out;
}

std::vector<std::string_view> SplitTerms(std::string_view text) {
  std::vector<std::string_view> terms;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == ',') {
      terms.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  terms.push_back(text.substr(begin));
  return terms;
}

// Nothing where there is no operator.
Result<std::optional<FieldSelector::Term>> ParseTerm(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    std::string_view rest = text.substr(i);
    if (text[i] == '\\') {
      ++i;
      continue;
    }
    bool unequal = rest.starts_with("!=");
    if (!unequal && text[i] != '=') continue;
    size_t length = unequal || rest.starts_with("==") ? 2 : 1;
    if (i == 0) break;
    SWELL_ASSIGN_OR_RETURN(std::string value, UnescapeField(rest.substr(length)));
    return std::optional(
        FieldSelector::Term{std::string(text.substr(0, i)), std::move(value), !unequal});
  }
  return std::optional<FieldSelector::Term>();
}

}  // namespace

Result<LabelSelector> LabelSelector::Parse(std::string_view text) {
  LabelSelector selector;
  SWELL_ASSIGN_OR_RETURN(selector.requirements_, LabelParser(text).Run());
  return selector;
}

Result<LabelSelector> LabelSelector::FromJson(const json::Value* value) {
  LabelSelector selector;
  if (value == nullptr || value->is_null()) {
    selector.nothing_ = true;
    return selector;
  }
  if (!value->is_object()) {
    return Status(Code::kInvalid, StrCat("selector must be an object, not ", json::Print(*value)));
  }
  for (const auto& label : json::GetObject(*value, {"matchLabels"})) {
    std::string key(label.key().data(), label.key().size());
    if (!label.value().is_string()) {
      return Status(Code::kInvalid, StrCat("matchLabels: ", Quote(key), ": must be a string, not ",
                                           json::Print(label.value())));
    }
    selector.requirements_.push_back(
        {std::move(key), Op::kIn, {std::string(json::View(label.value().get_string()))}});
  }
  for (const json::Value& item : json::GetArray(*value, {"matchExpressions"})) {
    SWELL_ASSIGN_OR_RETURN(Requirement requirement, ExpressionFromJson(item));
    selector.requirements_.push_back(std::move(requirement));
  }
  for (const Requirement& requirement : selector.requirements_) {
    Status checked = CheckRequirement(requirement);
    if (!checked.ok()) return Status(Code::kInvalid, checked.message());
  }
  std::stable_sort(selector.requirements_.begin(), selector.requirements_.end(),
                   [](const Requirement& a, const Requirement& b) { return a.key < b.key; });
  return selector;
}

bool LabelSelector::Matches(const StringPairs& labels) const {
  if (nothing_) return false;
  return std::all_of(requirements_.begin(), requirements_.end(), [&](const Requirement& r) {
    const std::optional<std::string_view> found = labels.Find(r.key);
    return RequirementMatches(r, found ? &*found : nullptr);
  });
}

bool LabelSelector::Matches(const json::Value& labels_object) const {
  if (nothing_) return false;
  return std::all_of(requirements_.begin(), requirements_.end(), [&](const Requirement& r) {
    const json::Value* found = json::Find(labels_object, {r.key});
    if (found != nullptr && !found->is_string()) found = nullptr;
    std::string_view view = found ? json::View(found->get_string()) : std::string_view();
    return RequirementMatches(r, found ? &view : nullptr);
  });
}

std::string LabelSelector::ToString() const {
  std::vector<std::string> parts;
  for (const Requirement& requirement : requirements_)
    parts.push_back(RequirementText(requirement));
  return Join(parts, ",");
}

bool HasLabels(const json::Value& object, const json::Object& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&object](const auto& label) {
    return label.value().is_string() &&
           Label(object, label.key()) == json::View(label.value().get_string());
  });
}

Result<FieldSelector> FieldSelector::Parse(std::string_view text) {
  FieldSelector selector;
  for (std::string_view part : SplitTerms(text)) {
    if (part.empty()) continue;
    SWELL_ASSIGN_OR_RETURN(auto term, ParseTerm(part));
    if (!term || selector.terms_.size() >= kMaxRequirements) {
      return Status(Code::kBadRequest,
                    StrCat("invalid selector: '", text, "'; can't understand '", part, "'"));
    }
    selector.terms_.push_back(std::move(*term));
  }
  return selector;
}

bool FieldSelector::Matches(const StringPairs& fields) const {
  return std::all_of(terms_.begin(), terms_.end(), [&](const Term& term) {
    return (fields.Find(term.field).value_or("") == term.value) == term.equal;
  });
}

}  // namespace swell::api
