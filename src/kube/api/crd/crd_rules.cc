#include "kube/api/crd/crd_rules.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/api/schema/field_rules.h"

namespace swell::api {
namespace {

using json::Value;

constexpr int kDepthMax = 64;
constexpr size_t kErrorsMax = 100;
constexpr int64_t kObjectBudget = 10'000'000;

// --- Reading -------------------------------------------------------------------------------------

// What is known of the types in an expression: schemas of the variables, null where unknown.
class FieldChecker {
 public:
  FieldChecker(const CelProgram& program, const Value& self, bool root)
      : program_(program), root_(root ? &self : nullptr) {
    scope_.emplace_back("self", &self);
    scope_.emplace_back("oldSelf", &self);
  }

  // The schema of what the expression is; null: it cannot be told.
  const Value* Check(const CelExpr& expr) {
    switch (expr.kind) {
      case CelExpr::Kind::kVariable:
        return Variable(expr.text);
      case CelExpr::Kind::kSelect:
        return OptionalOr(expr, Select(expr, Check(*expr.args[0])));
      case CelExpr::Kind::kHas:
        (void)Select(expr, Check(*expr.args[0]));
        return nullptr;
      case CelExpr::Kind::kIndex:
        (void)Check(*expr.args[1]);
        return OptionalOr(expr, Item(Check(*expr.args[0])));
      case CelExpr::Kind::kComprehension:
        return Comprehension(expr);
      case CelExpr::Kind::kBind:
        // What it is made of is optional, and has no schema of its own.
        (void)Check(*expr.args[0]);
        scope_.emplace_back(expr.variable, nullptr);
        (void)Check(*expr.args[1]);
        scope_.pop_back();
        return nullptr;
      default:
        for (const CelExprPtr& argument : expr.args) (void)Check(*argument);
        return nullptr;
    }
  }

  const std::vector<std::string>& complaints() const { return complaints_; }

 private:
  // What may be missing has methods of its own, and none of its schema's fields is asked for.
  static const Value* OptionalOr(const CelExpr& expr, const Value* schema) {
    return expr.optional ? nullptr : schema;
  }

  const Value* Variable(const std::string& name) const {
    for (auto it = scope_.rbegin(); it != scope_.rend(); ++it) {
      if (it->first == name) return it->second;
    }
    return nullptr;
  }

  static const Value* Item(const Value* schema) {
    if (schema == nullptr) return nullptr;
    const bool list = json::GetString(*schema, {"type"}) == "array";
    const Value* item = json::Find(*schema, {list ? "items" : "additionalProperties"});
    return item != nullptr && item->is_object() ? item : nullptr;
  }

  const Value* Select(const CelExpr& expr, const Value* schema) {
    if (schema == nullptr || json::GetString(*schema, {"type"}) != "object" ||
        json::GetBool(*schema, {"x-kubernetes-preserve-unknown-fields"}) ||
        json::GetBool(*schema, {"x-kubernetes-embedded-resource"})) {
      return nullptr;
    }
    if (schema == root_ &&
        (expr.text == "metadata" || expr.text == "kind" || expr.text == "apiVersion")) {
      return nullptr;
    }
    const Value* properties = json::Find(*schema, {"properties"});
    for (const std::string& name : {expr.text, UnescapeCelName(expr.text)}) {
      const Value* field = properties ? json::Find(*properties, {name}) : nullptr;
      if (field != nullptr) return field;
    }
    if (json::Find(*schema, {"additionalProperties"}) != nullptr) return Item(schema);
    complaints_.push_back(
        program_.Complaint(expr.offset, StrCat("undefined field '", expr.text, "'")));
    return nullptr;
  }

  const Value* Comprehension(const CelExpr& expr) {
    const Value* over = Check(*expr.args[0]);
    // If it is a map, the variable is a key.
    const bool list = over != nullptr && json::GetString(*over, {"type"}) == "array";
    const Value* item = list ? Item(over) : nullptr;
    const size_t depth = scope_.size();
    scope_.emplace_back(expr.variable, expr.second.empty() ? item : nullptr);
    if (!expr.second.empty()) scope_.emplace_back(expr.second, Item(over));
    for (size_t i = 1; i < expr.args.size(); ++i) (void)Check(*expr.args[i]);
    scope_.resize(depth);
    return expr.text == "filter" ? over : nullptr;
  }

  const CelProgram& program_;
  const Value* root_;
  std::vector<std::pair<std::string, const Value*>> scope_;
  std::vector<std::string> complaints_;
};

// Whether the expression is plainly of another type.
bool CannotBe(const CelExpr& expr, const Value* schema, bool wants_text) {
  if (expr.kind == CelExpr::Kind::kLiteral) {
    return wants_text ? !std::holds_alternative<std::string>(expr.literal.data)
                      : !std::holds_alternative<bool>(expr.literal.data);
  }
  if (expr.kind == CelExpr::Kind::kList || expr.kind == CelExpr::Kind::kMap) return true;
  if (schema != nullptr) {
    const std::string_view type = json::GetString(*schema, {"type"});
    return !type.empty() && type != (wants_text ? "string" : "boolean");
  }
  if (expr.kind == CelExpr::Kind::kCall && expr.text == "size") return true;
  if (expr.kind == CelExpr::Kind::kHas) return wants_text;
  if (expr.kind != CelExpr::Kind::kOperator || expr.text == "?:") return false;
  const bool arithmetic = expr.text == "+" || expr.text == "-" || expr.text == "*" ||
                          expr.text == "/" || expr.text == "%" || expr.text == "neg";
  return wants_text ? expr.text != "+" : arithmetic;
}

std::string ShowRule(const Value& rule) {
  const auto text = [&rule](const char* key) { return Quote(TextOf(rule, key)); };
  return StrCat("apiextensions.ValidationRule{Rule:", text("rule"), ", Message:", text("message"),
                ", MessageExpression:", text("messageExpression"),
                ", Reason:(*apiextensions.FieldValueErrorReason)(nil), FieldPath:",
                text("fieldPath"), ", OptionalOldSelf:(*bool)(nil)}");
}

class RuleReader {
 public:
  explicit RuleReader(std::vector<FieldError>& errors) : errors_(errors) {}

  // `fixed`: where old and new can be told apart no more; empty: they can.
  std::shared_ptr<const CrdRules> Read(const Value& schema,
                                       const std::string& path,
                                       const std::string& fixed,
                                       int depth) {
    if (!schema.is_object() || depth > kDepthMax) return nullptr;
    auto out = std::make_shared<CrdRules>();
    out->type = TextOf(schema, "type");
    const json::Array& rules = json::GetArray(schema, {"x-kubernetes-validations"});
    for (size_t i = 0; i < rules.size(); ++i) {
      const std::string at = PathIndex(PathField(path, "x-kubernetes-validations"), i);
      ReadRule(schema, rules[i], at, fixed, depth == 0, *out);
    }
    for (const auto& property : json::GetObject(schema, {"properties"})) {
      std::string name(std::string_view(property.key()));
      const std::string at = PathKey(PathField(path, "properties"), name);
      if (auto child = Read(property.value(), at, fixed, depth + 1)) {
        out->properties[std::move(name)] = std::move(child);
      }
    }
    if (const Value* extra = MemberOf(schema, "additionalProperties")) {
      out->additional = Read(*extra, PathField(path, "additionalProperties"), fixed, depth + 1);
    }
    if (const Value* items = MemberOf(schema, "items")) {
      const bool keyed = TextOf(schema, "x-kubernetes-list-type") == "map";
      if (keyed) {
        for (const Value& key : json::GetArray(schema, {"x-kubernetes-list-map-keys"})) {
          out->list_keys.emplace_back(TextIn(key));
        }
      }
      const std::string at = PathField(path, "items");
      out->items = Read(*items, at, keyed ? fixed : fixed.empty() ? path : fixed, depth + 1);
    }
    const bool any =
        !out->rules.empty() || !out->properties.empty() || out->additional || out->items;
    return any ? out : nullptr;
  }

 private:
  void Invalid(const Value& rule, const std::string& at, std::string_view why) {
    if (errors_.size() >= kErrorsMax) return;
    errors_.push_back(
        {"FieldValueInvalid", at, StrCat("Invalid value: ", ShowRule(rule), ": ", why)});
  }

  // Null when it does not compile.
  std::shared_ptr<const CelProgram> Compile(const Value& schema,
                                            const Value& rule,
                                            std::string_view key,
                                            const std::string& at,
                                            bool root) {
    const bool message = key == "messageExpression";
    const std::string failed =
        message ? "messageExpression compilation failed: " : "compilation failed: ";
    Result<std::shared_ptr<const CelProgram>> program = CelProgram::Compile(TextOf(rule, key));
    if (!program.ok()) {
      Invalid(rule, at, StrCat(failed, program.status().message()));
      return nullptr;
    }
    FieldChecker checker(**program, schema, root);
    const Value* result = checker.Check((*program)->root());
    if (!checker.complaints().empty()) {
      Invalid(rule, at, StrCat(failed, Join(checker.complaints(), "\n")));
      return nullptr;
    }
    if (CannotBe((*program)->root(), result, message)) {
      Invalid(rule, at,
              message ? "messageExpression must evaluate to a string"
                      : "cel expression must evaluate to a bool");
      return nullptr;
    }
    return *program;
  }

  void ReadRule(const Value& schema,
                const Value& given,
                const std::string& path,
                const std::string& fixed,
                bool root,
                CrdRules& out) {
    static const std::vector<std::string> kReasons = {"FieldValueDuplicate", "FieldValueForbidden",
                                                      "FieldValueInvalid", "FieldValueRequired"};
    CrdRule rule;
    rule.text = TextOf(given, "rule");
    rule.message = TextOf(given, "message");
    rule.reason = TextOf(given, "reason");
    rule.field_path = TextOf(given, "fieldPath");
    const std::string at = PathField(path, "rule");
    if (Trim(rule.text).empty()) {
      errors_.push_back(RequiredError(at, "rule is not specified"));
      return;
    }
    const std::string message_at = PathField(path, "message");
    if (!rule.message.empty() && Trim(rule.message).empty()) {
      errors_.push_back(
          InvalidText(message_at, rule.message, "message must be non-empty if specified"));
    } else if (Trim(rule.message).find('\n') != std::string_view::npos) {
      errors_.push_back(
          InvalidText(message_at, rule.message, "message must not contain line breaks"));
    }
    CheckOneOf(given, "reason", path, kReasons, errors_);
    rule.program = Compile(schema, given, "rule", at, root);
    if (rule.program == nullptr) return;
    if (rule.program->uses_old_self() && !fixed.empty()) {
      Invalid(given, at,
              StrCat("oldSelf cannot be used on the uncorrelatable portion of the schema within ",
                     fixed));
      return;
    }
    if (!TextOf(given, "messageExpression").empty()) {
      rule.message_program =
          Compile(schema, given, "messageExpression", PathField(path, "messageExpression"), root);
    }
    out.rules.push_back(std::move(rule));
  }

  std::vector<FieldError>& errors_;
};

// --- Checking ------------------------------------------------------------------------------------

class RuleChecker {
 public:
  std::vector<FieldError> errors;

  void Check(const CrdRules& rules,
             const Value& value,
             const Value* old,
             const std::string& path,
             int depth) {
    if (depth > kDepthMax || value.is_null()) return;
    for (const CrdRule& rule : rules.rules) {
      if (errors.size() >= kErrorsMax || left_ <= 0) return;
      if (rule.program->uses_old_self() && old == nullptr) continue;
      CheckRule(rule, rules.type, value, old, path);
    }
    if (value.is_object()) {
      for (const auto& member : value.get_object()) CheckMember(rules, member, old, path, depth);
    } else if (value.is_array() && rules.items) {
      const json::Array& items = value.get_array();
      for (size_t i = 0; i < items.size(); ++i) {
        Check(*rules.items, items[i], OldItem(rules, items[i], old), PathIndex(path, i), depth + 1);
      }
    }
  }

 private:
  void CheckMember(const CrdRules& rules,
                   const json::Object::value_type& member,
                   const Value* old,
                   const std::string& path,
                   int depth) {
    const std::string_view name = member.key();
    const Value* before = old != nullptr ? json::Find(*old, {name}) : nullptr;
    const auto property = rules.properties.find(std::string(name));
    if (property != rules.properties.end()) {
      Check(*property->second, member.value(), before, PathField(path, name), depth + 1);
    } else if (rules.additional) {
      Check(*rules.additional, member.value(), before, PathKey(path, name), depth + 1);
    }
  }

  // The item of the old list with the same keys.
  static const Value* OldItem(const CrdRules& rules, const Value& item, const Value* old) {
    if (old == nullptr || rules.list_keys.empty() || !old->is_array()) return nullptr;
    for (const Value& one : old->get_array()) {
      const bool same =
          std::all_of(rules.list_keys.begin(), rules.list_keys.end(), [&](const std::string& key) {
            const Value* a = json::Find(item, {key});
            const Value* b = json::Find(one, {key});
            return a != nullptr && b != nullptr && json::Equal(*a, *b);
          });
      if (same) return &one;
    }
    return nullptr;
  }

  Result<CelValue> Run(const CelProgram& program, const Value& value, const Value* old) {
    CelBudget budget;
    budget.left = std::min(budget.left, left_);
    const int64_t before = budget.left;
    Result<CelValue> out = program.Evaluate(value, old, budget);
    left_ -= before - budget.left;
    return out;
  }

  void CheckRule(const CrdRule& rule,
                 const std::string& type,
                 const Value& value,
                 const Value* old,
                 const std::string& path) {
    const std::string told(Trim(rule.message.empty() ? rule.text : rule.message));
    const Result<CelValue> result = Run(*rule.program, value, old);
    const bool* fine = result.ok() ? std::get_if<bool>(&result->data) : nullptr;
    if (fine != nullptr && *fine) return;
    if (fine == nullptr) {
      const std::string why = result.ok() ? "no such overload" : result.status().message();
      std::string text = StrCat(why, " evaluating rule: ", told);
      if (why.starts_with("no such overload")) {
        text = StrCat("'", why,
                      "': call arguments did not match a supported operator, function or macro "
                      "signature for rule: ",
                      told);
      } else if (why.starts_with("call cost")) {
        text = StrCat(
            "'operation cancelled: actual cost limit exceeded': no further validation "
            "rules will be run due to call cost exceeds limit for rule: ",
            told);
        left_ = 0;
      }
      errors.push_back(InvalidText(path.empty() ? "<nil>" : path, type, text));
      return;
    }
    std::string message =
        rule.message.empty() ? StrCat("failed rule: ", told) : std::string(Trim(rule.message));
    if (rule.message_program) {
      const Result<CelValue> made = Run(*rule.message_program, value, old);
      const auto* text = made.ok() ? std::get_if<std::string>(&made->data) : nullptr;
      if (text && !Trim(*text).empty() && text->find('\n') == std::string::npos) {
        message = Trim(*text);
      }
    }
    // An object's own rules have no path, which Kubernetes shows so.
    std::string field = StrCat(path, rule.field_path);
    if (path.empty()) field = rule.field_path.empty() ? "<nil>" : rule.field_path.substr(1);
    Report(rule, field, type, message);
  }

  void Report(const CrdRule& rule,
              const std::string& path,
              const std::string& type,
              const std::string& message) {
    if (rule.reason == "FieldValueForbidden") {
      errors.push_back(ForbiddenError(path, message));
    } else if (rule.reason == "FieldValueRequired") {
      errors.push_back(RequiredError(path, message));
    } else if (rule.reason == "FieldValueDuplicate") {
      errors.push_back(DuplicateError(path, Value(type)));
    } else {
      errors.push_back(InvalidText(path, type, message));
    }
  }

  int64_t left_ = kObjectBudget;
};

}  // namespace

std::shared_ptr<const CrdRules> ReadCrdRules(const Value& open_api_v3,
                                             const std::string& path,
                                             std::vector<FieldError>& errors) {
  return RuleReader(errors).Read(open_api_v3, path, "", 0);
}

std::vector<FieldError> CheckCrdRules(const CrdRules& rules,
                                      const Value& object,
                                      const Value* old) {
  RuleChecker checker;
  checker.Check(rules, object, old, "", 0);
  return std::move(checker.errors);
}

}  // namespace swell::api
