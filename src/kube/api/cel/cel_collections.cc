// CEL's sets, and the functions that make lists of lists.
#include <algorithm>

#include "kube/api/cel/cel_objects.h"

namespace swell::api {
namespace {

Status NoOverload() { return Status(Code::kInvalid, "no such overload"); }

using Items = std::vector<CelValue>;

CelValue ListOf(Items items) { return {CelList(std::make_shared<Items>(std::move(items)))}; }

Items ItemsOf(const CelValue& list, CelBudget& budget) {
  Items out;
  budget.Charge(static_cast<size_t>(CelSize(list)));
  for (int64_t i = 0; i < CelSize(list); ++i) {
    out.push_back(CelItem(list, static_cast<size_t>(i), budget));
  }
  return out;
}

// The search ends when the budget is spent.
bool Has(const Items& items, const CelValue& wanted, CelBudget& budget) {
  return std::any_of(items.begin(), items.end(), [&](const CelValue& one) {
    budget.Charge(1);
    return CelEqual(one, wanted, budget) || budget.left < 0;
  });
}

Status Flatten(const CelValue& list, int64_t depth, CelBudget& budget, Items& out) {
  constexpr int64_t kDepthMax = 64;
  SWELL_RETURN_IF_ERROR(budget.Spend(0));
  for (CelValue& item : ItemsOf(list, budget)) {
    if (IsCelList(item) && depth > 0) {
      SWELL_RETURN_IF_ERROR(Flatten(item, std::min(depth, kDepthMax) - 1, budget, out));
    } else {
      out.push_back(std::move(item));
    }
  }
  return Status::Ok();
}

Result<CelValue> Sorted(Items items, CelBudget& budget) {
  SWELL_RETURN_IF_ERROR(budget.Spend(items.size() * 16));
  for (size_t i = 1; i < items.size(); ++i) {
    const auto order = CelCompare(items[0], items[i]);
    if (!order.ok()) return order.status();
  }
  std::stable_sort(items.begin(), items.end(), [](const CelValue& a, const CelValue& b) {
    const auto order = CelCompare(a, b);
    return order.ok() && *order < 0;
  });
  return ListOf(std::move(items));
}

Result<CelValue> Range(const CelValue& count, CelBudget& budget) {
  const auto* n = std::get_if<int64_t>(&count.data);
  if (n == nullptr) return NoOverload();
  Items out;
  SWELL_RETURN_IF_ERROR(budget.Spend(static_cast<size_t>(std::max<int64_t>(*n, 0))));
  for (int64_t i = 0; i < *n; ++i) out.push_back({i});
  return ListOf(std::move(out));
}

Result<CelValue> Slice(const Items& items, const std::vector<CelValue>& args) {
  const auto* from = args.size() > 2 ? std::get_if<int64_t>(&args[1].data) : nullptr;
  const auto* to = args.size() > 2 ? std::get_if<int64_t>(&args[2].data) : nullptr;
  if (from == nullptr || to == nullptr) return NoOverload();
  if (*from < 0 || *to < *from || *to > static_cast<int64_t>(items.size())) {
    return Status(Code::kInvalid, "index out of bounds");
  }
  return ListOf(Items(items.begin() + *from, items.begin() + *to));
}

CelValue Held(const Items& items, bool first) {
  if (items.empty()) return CelOf(CelOptional{});
  return CelOf(CelOptional{std::make_shared<const CelValue>(first ? items.front() : items.back())});
}

}  // namespace

Result<CelValue> CallCelSet(std::string_view name,
                            const std::vector<CelValue>& args,
                            CelBudget& budget) {
  if (args.size() != 2 || !IsCelList(args[0]) || !IsCelList(args[1])) return NoOverload();
  const Items mine = ItemsOf(args[0], budget);
  const Items other = ItemsOf(args[1], budget);
  const auto within = [&budget](const Items& small, const Items& large) {
    return std::all_of(small.begin(), small.end(),
                       [&](const CelValue& one) { return Has(large, one, budget); });
  };
  if (name == "sets.contains") return CelValue{within(other, mine)};
  if (name == "sets.equivalent") return CelValue{within(mine, other) && within(other, mine)};
  return CelValue{std::any_of(mine.begin(), mine.end(),
                              [&](const CelValue& one) { return Has(other, one, budget); })};
}

Result<CelValue> CallCelLists(std::string_view name,
                              const std::vector<CelValue>& args,
                              CelBudget& budget) {
  if (name == "lists.range") return Range(args[0], budget);
  if (!IsCelList(args[0])) return NoOverload();
  Items items = ItemsOf(args[0], budget);
  if (name == "slice") return Slice(items, args);
  if (name == "first" || name == "last") return Held(items, name == "first");
  if (name == "sort") return Sorted(std::move(items), budget);
  if (name == "reverse") {
    std::reverse(items.begin(), items.end());
    return ListOf(std::move(items));
  }
  if (name == "distinct") {
    Items out;
    for (CelValue& item : items) {
      if (!Has(out, item, budget)) out.push_back(std::move(item));
    }
    return ListOf(std::move(out));
  }
  if (name != "flatten") return NoOverload();
  const auto* depth = args.size() > 1 ? std::get_if<int64_t>(&args[1].data) : nullptr;
  if (args.size() > 1 && depth == nullptr) return NoOverload();
  if (depth != nullptr && *depth < 0) return Status(Code::kInvalid, "level must be non-negative");
  Items out;
  SWELL_RETURN_IF_ERROR(Flatten(args[0], depth != nullptr ? *depth : 1, budget, out));
  return ListOf(std::move(out));
}

}  // namespace swell::api
