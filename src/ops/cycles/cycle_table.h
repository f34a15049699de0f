// CycleTable: the decisions of one scheduling cycle and the waiting pods as a table. Pods of one
// group that wait for the same reason share a row.
// - Threads: a value.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/print/text_table.h"

namespace swell::ops {

class CycleTable {
 public:
  void AddDecision(
      std::string type, std::string pod, std::string node, std::string rule, std::string reason);
  void AddWaiting(const std::vector<std::string>& pods, std::string reason);
  // "TITLE: 2 decisions", and the rows if there are any.
  std::string ToString(std::string_view title) const;

 private:
  cli::TextTable table_{{"DECISION", "POD", "NODE", "RULE", "REASON"}};
  size_t decisions_ = 0;
};

}  // namespace swell::ops
