#include "bin/cycle_table.h"

#include <cstdio>

#include "base/strings.h"

namespace swell {

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

void CycleTable::Print(const std::string& title) const {
  const std::string count = decisions_ == 0 ? "no" : std::to_string(decisions_);
  std::printf("%s: %s decision%s\n", title.c_str(), count.c_str(), decisions_ == 1 ? "" : "s");
  if (table_.size() > 1) std::printf("%s", table_.ToString().c_str());
}

}  // namespace swell
