// CelProgram: what is checked before an expression runs, and how it runs.
#include "kube/api/cel/cel.h"

#include <algorithm>

#include "base/strings.h"

namespace swell::api {
namespace {

Status NoOverload() { return Status(Code::kInvalid, "no such overload"); }

bool IsTypeName(std::string_view name) {
  static constexpr std::string_view kTypes[] = {"int",  "uint",   "double", "bool",
                                                "list", "string", "map",    "null_type"};
  return std::find(std::begin(kTypes), std::end(kTypes), name) != std::end(kTypes);
}

bool FindMember(const CelValue& map, const std::string& name, CelValue& out) {
  if (CelFind(map, {name}, out)) return true;
  const std::string meant = UnescapeCelName(name);
  return meant != name && CelFind(map, {meant}, out);
}

class Evaluator {
 public:
  Evaluator(const CelProgram::Variables& variables, CelBudget& budget) : budget_(budget) {
    for (const auto& [name, value] : variables) {
      variables_.emplace_back(name, CelValue::FromJson(*value));
    }
  }
  Evaluator(const CelProgram::Values& variables, CelBudget& budget)
      : budget_(budget), variables_(variables) {}

  Result<CelValue> Run(const CelExpr& expr) {
    SWELL_RETURN_IF_ERROR(budget_.Spend(0));
    switch (expr.kind) {
      case CelExpr::Kind::kLiteral:
        return expr.literal;
      case CelExpr::Kind::kVariable:
        return Variable(expr.text);
      case CelExpr::Kind::kSelect:
        return Select(expr);
      case CelExpr::Kind::kHas:
        return Has(expr);
      case CelExpr::Kind::kIndex:
        return Index(expr);
      case CelExpr::Kind::kCall:
        return Call(expr);
      case CelExpr::Kind::kOperator:
        return Operator(expr);
      case CelExpr::Kind::kList:
        return List(expr);
      case CelExpr::Kind::kMap:
        return Map(expr);
      case CelExpr::Kind::kComprehension:
        return Comprehension(expr);
    }
    return NoOverload();
  }

 private:
  Result<CelValue> Variable(const std::string& name) const {
    for (auto it = variables_.rbegin(); it != variables_.rend(); ++it) {
      if (it->first == name) return it->second;
    }
    if (IsTypeName(name)) return CelValue{name};  // what type() answers
    return Status(Code::kInvalid, StrCat("no such attribute(s): ", name));
  }

  Result<CelValue> Select(const CelExpr& expr) {
    SWELL_ASSIGN_OR_RETURN(const CelValue target, Run(*expr.args[0]));
    if (!IsCelMap(target)) return NoOverload();
    CelValue out;
    if (!FindMember(target, expr.text, out)) {
      return Status(Code::kInvalid, StrCat("no such key: ", expr.text));
    }
    return out;
  }

  Result<CelValue> Has(const CelExpr& expr) {
    SWELL_ASSIGN_OR_RETURN(const CelValue target, Run(*expr.args[0]));
    if (!IsCelMap(target)) return NoOverload();
    CelValue ignored;
    return CelValue{FindMember(target, expr.text, ignored)};
  }

  Result<CelValue> Index(const CelExpr& expr) {
    SWELL_ASSIGN_OR_RETURN(const CelValue target, Run(*expr.args[0]));
    SWELL_ASSIGN_OR_RETURN(const CelValue index, Run(*expr.args[1]));
    if (IsCelMap(target)) {
      CelValue out;
      if (CelFind(target, index, out)) return out;
      return Status(Code::kInvalid, StrCat("no such key: ", CelText(index)));
    }
    const auto* place = std::get_if<int64_t>(&index.data);
    if (!IsCelList(target) || place == nullptr) return NoOverload();
    if (*place < 0 || *place >= CelSize(target)) {
      return Status(Code::kInvalid, StrCat("index out of bounds: ", *place));
    }
    return CelItem(target, static_cast<size_t>(*place));
  }

  Result<CelValue> Call(const CelExpr& expr) {
    std::vector<CelValue> arguments;
    for (const CelExprPtr& argument : expr.args) {
      SWELL_ASSIGN_OR_RETURN(CelValue value, Run(*argument));
      arguments.push_back(std::move(value));
    }
    return CallCel(expr.text, std::move(arguments), budget_);
  }

  // Either side may decide alone, even when the other cannot be told.
  Result<CelValue> Logic(const CelExpr& expr) {
    const bool decisive = expr.text == "||";
    Result<CelValue> left = Run(*expr.args[0]);
    const bool* a = left.ok() ? std::get_if<bool>(&left->data) : nullptr;
    if (a != nullptr && *a == decisive) return left;
    Result<CelValue> right = Run(*expr.args[1]);
    const bool* b = right.ok() ? std::get_if<bool>(&right->data) : nullptr;
    if (b != nullptr && (*b == decisive || a != nullptr)) return right;
    if (!left.ok()) return left;
    if (!right.ok()) return right;
    return NoOverload();
  }

  Result<CelValue> Operator(const CelExpr& expr) {
    const std::string& op = expr.text;
    if (op == "&&" || op == "||") return Logic(expr);
    SWELL_ASSIGN_OR_RETURN(const CelValue a, Run(*expr.args[0]));
    if (op == "?:") {
      const bool* yes = std::get_if<bool>(&a.data);
      return yes != nullptr ? Run(*expr.args[*yes ? 1 : 2]) : NoOverload();
    }
    if (op == "!") {
      const bool* yes = std::get_if<bool>(&a.data);
      if (yes == nullptr) return NoOverload();
      return CelValue{!*yes};
    }
    if (op == "neg") {
      if (const auto* d = std::get_if<double>(&a.data)) return CelValue{-*d};
      return OperateCel("-", {int64_t{0}}, a, budget_);
    }
    SWELL_ASSIGN_OR_RETURN(const CelValue b, Run(*expr.args[1]));
    return OperateCel(op, a, b, budget_);
  }

  Result<CelValue> List(const CelExpr& expr) {
    auto list = std::make_shared<std::vector<CelValue>>();
    for (const CelExprPtr& item : expr.args) {
      SWELL_ASSIGN_OR_RETURN(CelValue value, Run(*item));
      list->push_back(std::move(value));
    }
    return CelValue{CelList(std::move(list))};
  }

  Result<CelValue> Map(const CelExpr& expr) {
    auto map = std::make_shared<std::vector<std::pair<CelValue, CelValue>>>();
    for (size_t i = 0; i + 1 < expr.args.size(); i += 2) {
      SWELL_ASSIGN_OR_RETURN(CelValue key, Run(*expr.args[i]));
      SWELL_ASSIGN_OR_RETURN(CelValue value, Run(*expr.args[i + 1]));
      map->emplace_back(std::move(key), std::move(value));
    }
    return CelValue{CelMap(std::move(map))};
  }

  // The macros over a list's items or a map's keys. all and exists bear with errors like && and ||.
  Result<CelValue> Comprehension(const CelExpr& expr) {
    SWELL_ASSIGN_OR_RETURN(const CelValue over, Run(*expr.args[0]));
    if (!IsCelList(over) && !IsCelMap(over)) return NoOverload();
    std::vector<CelValue> items;
    SWELL_RETURN_IF_ERROR(budget_.Spend(CelSize(over)));
    if (IsCelMap(over)) {
      items = CelKeys(over);
    } else {
      for (int64_t i = 0; i < CelSize(over); ++i) items.push_back(CelItem(over, i));
    }
    auto kept = std::make_shared<std::vector<CelValue>>();
    Status problem;
    int64_t hits = 0;
    const std::string& macro = expr.text;
    const bool short_cut = macro == "all" || macro == "exists";
    for (CelValue& item : items) {
      variables_.emplace_back(expr.variable, item);
      Result<CelValue> first = Run(*expr.args[1]);
      const bool filtered = macro == "map" && expr.args.size() > 2;
      const bool* yes = first.ok() ? std::get_if<bool>(&first->data) : nullptr;
      Result<CelValue> value = first;
      if (filtered && yes != nullptr && *yes) value = Run(*expr.args[2]);
      variables_.pop_back();
      const bool wants_bool = macro != "map" || filtered;
      const Status failed = !first.ok()                    ? first.status()
                            : wants_bool && yes == nullptr ? NoOverload()
                            : !value.ok()                  ? value.status()
                                                           : Status::Ok();
      if (!failed.ok()) {
        if (!short_cut || budget_.left < 0) return failed;
        problem = failed;
        continue;
      }
      if (short_cut && *yes == (macro == "exists")) return first;
      if (wants_bool && !*yes) continue;
      ++hits;
      kept->push_back(macro == "map" ? *value : item);
    }
    if (!problem.ok()) return problem;
    if (short_cut) return CelValue{macro == "all"};
    if (macro == "exists_one") return CelValue{hits == 1};
    return CelValue{CelList(std::move(kept))};
  }

  CelBudget& budget_;
  std::vector<std::pair<std::string, CelValue>> variables_;
};

// Variables and functions that there are none of; whether oldSelf is asked for.
struct Checker {
  const CelProgram& program;
  std::vector<std::string> variables;
  std::vector<std::string> complaints = {};
  bool old_self = false;

  void Check(const CelExpr& expr) {
    if (expr.kind == CelExpr::Kind::kVariable) {
      old_self = old_self || expr.text == "oldSelf";
      if (std::find(variables.begin(), variables.end(), expr.text) == variables.end() &&
          !IsTypeName(expr.text)) {
        Complain(expr);
      }
    }
    if (expr.kind == CelExpr::Kind::kCall &&
        !IsCelFunction(expr.text, expr.method, expr.args.size())) {
      Complain(expr);
    }
    for (size_t i = 0; i < expr.args.size(); ++i) {
      const bool inner = expr.kind == CelExpr::Kind::kComprehension && i > 0;
      if (inner) variables.push_back(expr.variable);
      Check(*expr.args[i]);
      if (inner) variables.pop_back();
    }
  }

  void Complain(const CelExpr& expr) {
    constexpr size_t kMost = 10;
    if (complaints.size() >= kMost) return;
    complaints.push_back(program.Complaint(
        expr.offset, StrCat("undeclared reference to '", expr.text, "' (in container '')")));
  }
};

}  // namespace

std::string UnescapeCelName(std::string_view name) {
  static constexpr std::pair<std::string_view, std::string_view> kEscapes[] = {
      {"__underscores__", "__"}, {"__dot__", "."}, {"__dash__", "-"}, {"__slash__", "/"}};
  std::string out;
  while (!name.empty()) {
    bool escaped = false;
    for (const auto& [escape, meant] : kEscapes) {
      if (!name.starts_with(escape)) continue;
      out += meant;
      name.remove_prefix(escape.size());
      escaped = true;
      break;
    }
    if (escaped) continue;
    out += name.front();
    name.remove_prefix(1);
  }
  // Reserved words: __in__.
  if (out.size() > 4 && out.starts_with("__") && out.ends_with("__")) {
    out = out.substr(2, out.size() - 4);
  }
  return out;
}

std::string CelProgram::Complaint(size_t offset, std::string_view what) const {
  offset = std::min(offset, text_.size());
  const size_t start = offset == 0 ? 0 : text_.rfind('\n', offset - 1) + 1;
  const size_t end = std::min(text_.find('\n', offset), text_.size());
  const auto line =
      1 + std::count(text_.begin(), text_.begin() + static_cast<ptrdiff_t>(start), '\n');
  return StrCat("ERROR: <input>:", line, ":", offset - start + 1, ": ", what, "\n | ",
                text_.substr(start, end - start), "\n | ", std::string(offset - start, '.'), "^");
}

Result<std::shared_ptr<const CelProgram>> CelProgram::Compile(std::string_view text,
                                                              std::vector<std::string> variables) {
  auto program = std::make_shared<CelProgram>();
  program->text_ = std::string(text);
  Result<CelExprPtr> root = ParseCel(text);
  if (!root.ok()) {
    const std::string& message = root.status().message();
    const size_t space = message.find(' ');
    return Status(Code::kInvalid,
                  program->Complaint(ParseUint(message.substr(0, space)).value_or(0),
                                     message.substr(space + 1)));
  }
  program->root_ = *root;
  Checker checker{*program, std::move(variables)};
  checker.Check(**root);
  if (!checker.complaints.empty()) {
    return Status(Code::kInvalid, Join(checker.complaints, "\n"));
  }
  program->uses_old_self_ = checker.old_self;
  return std::shared_ptr<const CelProgram>(std::move(program));
}

Result<CelValue> CelProgram::Evaluate(const json::Value& self,
                                      const json::Value* old_self,
                                      CelBudget& budget) const {
  Variables variables = {{"self", &self}};
  if (old_self != nullptr) variables.emplace_back("oldSelf", old_self);
  return Evaluate(variables, budget);
}

Result<CelValue> CelProgram::Evaluate(const Variables& variables, CelBudget& budget) const {
  return Evaluator(variables, budget).Run(*root_);
}

Result<CelValue> CelProgram::Evaluate(const Values& variables, CelBudget& budget) const {
  return Evaluator(variables, budget).Run(*root_);
}

namespace {

void CollectSelected(const CelExpr& expr, std::string_view of, std::vector<std::string>& out) {
  const bool selects = expr.kind == CelExpr::Kind::kSelect || expr.kind == CelExpr::Kind::kHas;
  if (selects && expr.args[0]->kind == CelExpr::Kind::kVariable && expr.args[0]->text == of &&
      std::find(out.begin(), out.end(), expr.text) == out.end()) {
    out.push_back(expr.text);
  }
  for (const CelExprPtr& argument : expr.args) CollectSelected(*argument, of, out);
}

}  // namespace

std::vector<std::string> CelProgram::Selected(std::string_view variable) const {
  std::vector<std::string> out;
  CollectSelected(*root_, variable, out);
  return out;
}

}  // namespace swell::api
