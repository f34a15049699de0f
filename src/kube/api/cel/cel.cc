// CelProgram: what is checked before an expression runs, and how it runs.
#include <algorithm>

#include "base/strings.h"
#include "kube/api/cel/cel_objects.h"

namespace swell::api {
namespace {

Status NoOverload() { return Status(Code::kInvalid, "no such overload"); }

bool IsTypeName(std::string_view name) {
  static constexpr std::string_view kTypes[] = {"int",    "uint", "double",    "bool", "list",
                                                "string", "map",  "null_type", "bytes"};
  return std::find(std::begin(kTypes), std::end(kTypes), name) != std::end(kTypes);
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
    Result<CelValue> out = Step(expr);
    if (out.ok()) budget_.ChargeCopy(*out);
    // What a step could not afford it has answered anyhow.
    return budget_.left < 0 ? budget_.Spend(0) : out;
  }

 private:
  Result<CelValue> Step(const CelExpr& expr) {
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
      case CelExpr::Kind::kBind:
        return Bind(expr);
      case CelExpr::Kind::kOptionalItem:
        break;  // its list or map takes it apart
    }
    return NoOverload();
  }

  bool FindMember(const CelValue& map, const std::string& name, CelValue& out) {
    if (CelFind(map, {name}, out, budget_)) return true;
    const std::string meant = UnescapeCelName(name);
    return meant != name && CelFind(map, {meant}, out, budget_);
  }

  Result<CelValue> Variable(const std::string& name) const {
    for (auto it = variables_.rbegin(); it != variables_.rend(); ++it) {
      if (it->first == name) return it->second;
    }
    if (IsTypeName(name)) return CelValue{name};  // what type() answers
    return Status(Code::kInvalid, StrCat("no such attribute(s): ", name));
  }

  // What is selected of an optional value is optional, and there is none of none.
  Result<CelValue> Select(const CelExpr& expr) {
    SWELL_ASSIGN_OR_RETURN(const CelValue target, Run(*expr.args[0]));
    CelValue holder = target;
    const auto* optional = CelAs<CelOptional>(target);
    if (optional != nullptr) {
      if (optional->held == nullptr) return target;
      holder = *optional->held;
    }
    if (CelAs<CelAuthority>(holder) != nullptr) return SelectCelAccess(holder, expr.text);
    if (!IsCelMap(holder)) return NoOverload();
    CelValue out;
    const bool found = FindMember(holder, expr.text, out);
    if (optional != nullptr || expr.optional) return Maybe(found, std::move(out));
    if (!found) return Status(Code::kInvalid, StrCat("no such key: ", expr.text));
    return out;
  }

  static CelValue Maybe(bool found, CelValue value) {
    return CelOf(CelOptional{found ? std::make_shared<const CelValue>(std::move(value)) : nullptr});
  }

  Result<CelValue> Has(const CelExpr& expr) {
    SWELL_ASSIGN_OR_RETURN(const CelValue target, Run(*expr.args[0]));
    const auto* optional = CelAs<CelOptional>(target);
    if (optional != nullptr && optional->held == nullptr) return CelValue{false};
    const CelValue& holder = optional != nullptr ? *optional->held : target;
    if (!IsCelMap(holder)) return NoOverload();
    CelValue ignored;
    return CelValue{FindMember(holder, expr.text, ignored)};
  }

  Result<CelValue> Index(const CelExpr& expr) {
    SWELL_ASSIGN_OR_RETURN(const CelValue target, Run(*expr.args[0]));
    SWELL_ASSIGN_OR_RETURN(const CelValue index, Run(*expr.args[1]));
    const auto* optional = CelAs<CelOptional>(target);
    if (optional != nullptr && optional->held == nullptr) return target;
    const CelValue& holder = optional != nullptr ? *optional->held : target;
    CelValue out;
    const Status found = FindItem(holder, index, out);
    const bool missing = found.code() == Code::kNotFound;
    if ((optional != nullptr || expr.optional) && (found.ok() || missing)) {
      return Maybe(found.ok(), std::move(out));
    }
    if (missing) return Status(Code::kInvalid, found.message());
    if (!found.ok()) return found;
    return out;
  }

  // kNotFound: there is no such item.
  Status FindItem(const CelValue& holder, const CelValue& index, CelValue& out) {
    if (IsCelMap(holder)) {
      if (CelFind(holder, index, out, budget_)) return Status::Ok();
      return Status(Code::kNotFound, StrCat("no such key: ", CelText(index)));
    }
    const auto* place = std::get_if<int64_t>(&index.data);
    if (!IsCelList(holder) || place == nullptr) return NoOverload();
    if (*place < 0 || *place >= CelSize(holder)) {
      return Status(Code::kNotFound, StrCat("index out of bounds: ", *place));
    }
    out = CelItem(holder, static_cast<size_t>(*place), budget_);
    return Status::Ok();
  }

  Result<CelValue> Call(const CelExpr& expr) {
    if (expr.method && (expr.text == "or" || expr.text == "orValue")) return Or(expr);
    std::vector<CelValue> arguments;
    for (const CelExprPtr& argument : expr.args) {
      SWELL_ASSIGN_OR_RETURN(CelValue value, Run(*argument));
      arguments.push_back(std::move(value));
    }
    return CallCel(expr.text, std::move(arguments), budget_);
  }

  // The other value is asked for only where there is none.
  Result<CelValue> Or(const CelExpr& expr) {
    SWELL_ASSIGN_OR_RETURN(const CelValue first, Run(*expr.args[0]));
    const auto* optional = CelAs<CelOptional>(first);
    if (optional == nullptr) return NoOverload();
    if (optional->held != nullptr) {
      return expr.text == "or" ? first : *optional->held;
    }
    SWELL_ASSIGN_OR_RETURN(CelValue other, Run(*expr.args[1]));
    if (expr.text == "or" && CelAs<CelOptional>(other) == nullptr) return NoOverload();
    return other;
  }

  // optMap() and optFlatMap(): an expression of what an optional value holds.
  Result<CelValue> Bind(const CelExpr& expr) {
    SWELL_ASSIGN_OR_RETURN(const CelValue target, Run(*expr.args[0]));
    const auto* optional = CelAs<CelOptional>(target);
    if (optional == nullptr) return NoOverload();
    if (optional->held == nullptr) return target;
    variables_.emplace_back(expr.variable, *optional->held);
    budget_.ChargeCopy(*optional->held);
    Result<CelValue> made = Run(*expr.args[1]);
    variables_.pop_back();
    if (!made.ok()) return made;
    if (expr.text == "optMap") return Maybe(true, std::move(*made));
    return CelAs<CelOptional>(*made) != nullptr ? made : NoOverload();
  }

  // What stands behind "?" in a list or a map: whether it is there.
  Result<bool> TakeOptional(CelValue& value) {
    const auto* optional = CelAs<CelOptional>(value);
    if (optional == nullptr) return NoOverload();
    if (optional->held == nullptr) return false;
    value = CelValue(*optional->held);
    budget_.ChargeCopy(value);
    return true;
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
      const bool optional = item->kind == CelExpr::Kind::kOptionalItem;
      SWELL_ASSIGN_OR_RETURN(CelValue value, Run(optional ? *item->args[0] : *item));
      SWELL_ASSIGN_OR_RETURN(const bool there, optional ? TakeOptional(value) : Result<bool>(true));
      if (there) list->push_back(std::move(value));
    }
    return CelValue{CelList(std::move(list))};
  }

  Result<CelValue> Map(const CelExpr& expr) {
    auto map = std::make_shared<std::vector<std::pair<CelValue, CelValue>>>();
    for (size_t i = 0; i + 1 < expr.args.size(); i += 2) {
      const CelExpr& name = *expr.args[i];
      const bool optional = name.kind == CelExpr::Kind::kOptionalItem;
      SWELL_ASSIGN_OR_RETURN(CelValue key, Run(optional ? *name.args[0] : name));
      SWELL_ASSIGN_OR_RETURN(CelValue value, Run(*expr.args[i + 1]));
      SWELL_ASSIGN_OR_RETURN(const bool there, optional ? TakeOptional(value) : Result<bool>(true));
      if (there) map->emplace_back(std::move(key), std::move(value));
    }
    return CelValue{CelMap(std::move(map))};
  }

  // What a macro has come to.
  struct Fold {
    std::vector<CelValue> kept;
    std::vector<std::pair<CelValue, CelValue>> members;  // of transformMap, transformMapEntry
    std::vector<CelValue> keys;                          // of sortBy
    Status problem;
    int64_t hits = 0;
  };

  // The macros over a list's items or a map's keys; those of two variables have the index or the
  // key, and the value. all and exists bear with errors like && and ||.
  Result<CelValue> Comprehension(const CelExpr& expr) {
    SWELL_ASSIGN_OR_RETURN(const CelValue over, Run(*expr.args[0]));
    const bool map = IsCelMap(over);
    if (!IsCelList(over) && !map) return NoOverload();
    SWELL_RETURN_IF_ERROR(budget_.Spend(CelSize(over)));
    const std::vector<CelValue> keys = map ? CelKeys(over, budget_) : std::vector<CelValue>();
    Fold fold;
    for (int64_t i = 0; i < CelSize(over); ++i) {
      const auto place = static_cast<size_t>(i);
      CelValue item = map ? keys[place] : CelItem(over, place, budget_);
      const size_t depth = variables_.size();
      CelValue key = map ? item : CelValue{i};
      if (expr.second.empty()) {
        variables_.emplace_back(expr.variable, item);
      } else {
        if (map) CelFind(over, keys[place], item, budget_);
        variables_.emplace_back(expr.variable, key);
        variables_.emplace_back(expr.second, item);
      }
      Result<std::optional<CelValue>> decided = Take(expr, key, item, fold);
      variables_.resize(depth);
      if (!decided.ok()) return decided.status();
      if (*decided) return **decided;
    }
    return Folded(expr.text, std::move(fold));
  }

  // One item. A value: that is the answer, whatever comes.
  Result<std::optional<CelValue>> Take(const CelExpr& expr,
                                       const CelValue& key,
                                       const CelValue& item,
                                       Fold& fold) {
    const std::string& macro = expr.text;
    const bool short_cut = macro == "all" || macro == "exists";
    const bool makes = macro == "map" || macro.starts_with("transform");
    const bool wants_bool = macro != "sortBy" && (!makes || expr.args.size() > 2);
    Result<CelValue> first = Run(*expr.args[1]);
    const bool* yes = first.ok() ? std::get_if<bool>(&first->data) : nullptr;
    const Status failed = !first.ok()                    ? first.status()
                          : wants_bool && yes == nullptr ? NoOverload()
                                                         : Status::Ok();
    if (!failed.ok()) {
      if (!short_cut || budget_.left < 0) return failed;
      fold.problem = failed;
      return std::optional<CelValue>();
    }
    if (short_cut && *yes == (macro == "exists")) return std::optional(*first);
    if (wants_bool && !*yes) return std::optional<CelValue>();
    ++fold.hits;
    CelValue made = *first;
    if (makes && wants_bool) {
      SWELL_ASSIGN_OR_RETURN(made, Run(*expr.args[2]));
    }
    if (macro == "sortBy") fold.keys.push_back(made);
    if (macro == "transformMapEntry") {
      SWELL_RETURN_IF_ERROR(TakeEntries(made, fold));
    } else if (macro == "transformMap") {
      fold.members.emplace_back(key, std::move(made));
    } else if (makes) {
      fold.kept.push_back(std::move(made));
    } else {
      fold.kept.push_back(item);
    }
    return std::optional<CelValue>();
  }

  // No two items may make the same key.
  Status TakeEntries(const CelValue& made, Fold& fold) {
    if (!IsCelMap(made)) return NoOverload();
    for (CelValue& key : CelKeys(made, budget_)) {
      SWELL_RETURN_IF_ERROR(budget_.Spend(fold.members.size() / 10));
      for (const auto& [known, ignored] : fold.members) {
        if (!CelEqual(known, key, budget_)) continue;
        return Status(Code::kInvalid,
                      StrCat("insert failed: key ", CelText(key), " already exists"));
      }
      CelValue value;
      CelFind(made, key, value, budget_);
      fold.members.emplace_back(std::move(key), std::move(value));
    }
    return Status::Ok();
  }

  Result<CelValue> Folded(const std::string& macro, Fold fold) {
    if (!fold.problem.ok()) return fold.problem;
    if (macro == "all" || macro == "exists") return CelValue{macro == "all"};
    if (macro == "exists_one") return CelValue{fold.hits == 1};
    if (macro == "transformMap" || macro == "transformMapEntry") {
      return CelValue{CelMap(
          std::make_shared<std::vector<std::pair<CelValue, CelValue>>>(std::move(fold.members)))};
    }
    if (macro == "sortBy") {
      SWELL_RETURN_IF_ERROR(SortBy(fold));
    }
    return CelValue{CelList(std::make_shared<std::vector<CelValue>>(std::move(fold.kept)))};
  }

  Status SortBy(Fold& fold) {
    SWELL_RETURN_IF_ERROR(budget_.Spend(fold.keys.size() * 16));
    std::vector<size_t> order(fold.keys.size());
    for (size_t i = 0; i < order.size(); ++i) {
      order[i] = i;
      const auto comparable = CelCompare(fold.keys[0], fold.keys[i]);
      if (!comparable.ok()) return comparable.status();
    }
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      const auto compared = CelCompare(fold.keys[a], fold.keys[b]);
      return compared.ok() && *compared < 0;
    });
    std::vector<CelValue> sorted;
    for (const size_t i : order) sorted.push_back(std::move(fold.kept[i]));
    fold.kept = std::move(sorted);
    return Status::Ok();
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
      const bool inner = i > 0 && (expr.kind == CelExpr::Kind::kComprehension ||
                                   expr.kind == CelExpr::Kind::kBind);
      const size_t depth = variables.size();
      if (inner) variables.insert(variables.end(), {expr.variable, expr.second});
      Check(*expr.args[i]);
      variables.resize(depth);
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
