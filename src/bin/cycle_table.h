// CycleTable: what one scheduling cycle decided and who waits, for people: those of one group that
// wait for the same reason are one line.
// - Threads: a value.
#pragma once

#include <string>
#include <vector>

#include "cli/print/text_table.h"

namespace swell {

class CycleTable {
 public:
  void AddDecision(
      std::string type, std::string pod, std::string node, std::string rule, std::string reason);
  void AddWaiting(const std::vector<std::string>& pods, std::string reason);
  // To standard output: "TITLE: 2 decisions", and the lines if there are any.
  void Print(const std::string& title) const;

 private:
  cli::TextTable table_{{"DECISION", "POD", "NODE", "RULE", "REASON"}};
  size_t decisions_ = 0;
};

}  // namespace swell
