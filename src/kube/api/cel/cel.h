// The rules of custom resources (x-kubernetes-validations), the conditions of webhooks, and
// admission policies: the part of the Common Expression Language that they use. No types are
// declared: an expression is checked for its syntax, its variables and its functions when it is
// compiled, and for the types of its values as it runs.
//
// Known: literals, lists and maps, selection and indices (optional ones, too),
// has(), arithmetic, comparisons, `in`, `&&` and `||` (which bear with an error on the side that
// does not matter), `?:`, the macros, conversions, and the functions of Kubernetes 1.37 for
// strings, bytes, lists, sets, quantities, durations, times, addresses, URLs, versions, formats,
// optional values and rights (cel_access.h). Values of a schema with the format `byte` stay texts.
//
// - Threads: programs are immutable; a budget belongs to one evaluation.
// - Ownership: values may refer to the JSON documents that they came from, which outlive them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "json/value.h"
#include "kube/api/meta/quantity.h"

namespace swell::api {

struct CelValue;
using CelList = std::shared_ptr<const std::vector<CelValue>>;
using CelMap = std::shared_ptr<const std::vector<std::pair<CelValue, CelValue>>>;
using CelQuantity = std::shared_ptr<const Quantity>;    // never null
struct CelObject;                                       // cel_objects.h
using CelObjectPtr = std::shared_ptr<const CelObject>;  // never null

struct CelValue {
  // JSON objects and arrays stay what they are.
  std::variant<std::monostate,
               bool,
               int64_t,
               uint64_t,
               double,
               std::string,
               const json::Value*,
               CelList,
               CelMap,
               CelQuantity,
               Duration,
               WallTime,
               CelObjectPtr>
      data;

  static CelValue FromJson(const json::Value& value);
  static CelValue Of(const Quantity& quantity) {
    return {std::make_shared<const Quantity>(quantity)};
  }
  bool is_null() const { return std::holds_alternative<std::monostate>(data); }
  // As CEL calls its type: "int", "list".
  std::string_view TypeName() const;
};

// How much an evaluation may still cost: a unit is about one step, ten bytes looked at, or a
// hundred bytes copied.
struct CelBudget {
  int64_t left = 1'000'000;
  Status Spend(size_t units);
  // Where the answer comes anyway. The evaluator asks after each step what is left.
  void Charge(size_t units);
  // A text is copied with its value; lists and maps are shared.
  void ChargeCopy(const CelValue& value);
};

struct CelExpr;
using CelExprPtr = std::shared_ptr<const CelExpr>;

struct CelExpr {
  enum class Kind {
    kLiteral,
    kVariable,       // text
    kSelect,         // args[0].text
    kHas,            // has(args[0].text)
    kIndex,          // args[0][args[1]]
    kCall,           // text(args…), or args[0].text(args…) of a method
    kOperator,       // text: "+", "&&", "?:", "!", "neg", "in"
    kList,           // args
    kMap,            // args: key, value, …
    kComprehension,  // args[0].text(variable[, second], args[1][, args[2]])
    kBind,           // args[0].text(variable, args[1]): what an optional value holds
    kOptionalItem,   // ?args[0], in a list or as the key of a map
  };
  Kind kind = Kind::kLiteral;
  std::string text;
  std::string variable, second;
  bool optional = false;  // a selection or an index behind "?"
  bool method = false;
  CelValue literal;
  std::vector<CelExprPtr> args;
  size_t offset = 0;  // in the expression, for messages
};

class CelProgram {
 public:
  // kInvalid: what is wrong, where, and the line with a mark below it.
  static Result<std::shared_ptr<const CelProgram>> Compile(std::string_view text,
                                                           std::vector<std::string> variables = {
                                                               "self", "oldSelf"});

  bool uses_old_self() const { return uses_old_self_; }
  const CelExpr& root() const { return *root_; }
  // `old_self` may be null when the expression does not use it.
  Result<CelValue> Evaluate(const json::Value& self,
                            const json::Value* old_self,
                            CelBudget& budget) const;
  // With the variables that it was compiled for.
  using Variables = std::vector<std::pair<std::string, const json::Value*>>;
  Result<CelValue> Evaluate(const Variables& variables, CelBudget& budget) const;
  using Values = std::vector<std::pair<std::string, CelValue>>;
  Result<CelValue> Evaluate(const Values& variables, CelBudget& budget) const;
  // The names that it selects of a variable: for variables.a + variables.b, a and b.
  std::vector<std::string> Selected(std::string_view variable) const;
  // A message about a place in the expression.
  std::string Complaint(size_t offset, std::string_view what) const;

 private:
  std::string text_;
  CelExprPtr root_;
  bool uses_old_self_ = false;
};

// cel_parser.cc: the syntax alone. An error is "OFFSET what".
Result<CelExprPtr> ParseCel(std::string_view text);
// Field names that CEL cannot spell: foo-bar is foo__dash__bar, and so on.
std::string UnescapeCelName(std::string_view name);
// cel_functions.cc. `name` is "sets.contains" where a library has a name of its own.
bool IsCelFunction(std::string_view name, bool method, size_t arguments);
Result<CelValue> CallCel(std::string_view name, std::vector<CelValue> arguments, CelBudget& budget);
Result<CelValue> OperateCel(std::string_view op,
                            const CelValue& a,
                            const CelValue& b,
                            CelBudget& budget);
// cel_value.cc
// False too when the budget is spent.
bool CelEqual(const CelValue& a, const CelValue& b, CelBudget& budget, int depth = 0);
// -1, 0, 1; kInvalid when they cannot be compared.
Result<int> CelCompare(const CelValue& a, const CelValue& b);
// The size of a list, map, string or bytes; -1 for any other value.
int64_t CelSize(const CelValue& value);
CelValue CelItem(const CelValue& list, size_t i, CelBudget& budget);
std::vector<CelValue> CelKeys(const CelValue& map, CelBudget& budget);
// A member of a map or an object; its data is nullptr if it does not exist.
bool CelFind(const CelValue& map, const CelValue& key, CelValue& out, CelBudget& budget);
bool IsCelList(const CelValue& value);
bool IsCelMap(const CelValue& value);
std::string CelText(const CelValue& value);  // as string() makes it

}  // namespace swell::api
