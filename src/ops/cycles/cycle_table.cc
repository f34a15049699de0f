#include "ops/cycles/cycle_table.h"

#include "base/strings.h"

namespace swell::ops {

void CycleTable::AddDecision(
    std::string type, std::string pod, std::string node, std::string rule, std::string reason) {
  ++decisions_;
  table_.Add(
      {std::move(type), std::move(pod), std::move(node), std::move(rule), std::move(reason)});
}

void CycleTable::AddWaiting(const std::vector<std::string>& pods, std::string reason) {
  if (pods.empty()) return;
  const std::string more = pods.size() > 1 ? StrCat(" and ", pods.size() - 1, " more") : "";
  table_.Add({"waits", pods.front() + more, "", "", std::move(reason)});
}

std::string CycleTable::ToString(std::string_view title) const {
  const std::string count = decisions_ == 0 ? "no" : std::to_string(decisions_);
  return StrCat(title, ": ", count, " decision", decisions_ == 1 ? "" : "s", "\n",
                table_.size() > 1 ? table_.ToString() : "");
}

}  // namespace swell::ops
