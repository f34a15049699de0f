// CommandText: the command of a job or a server, as Arena reads it from its words.
// - Threads: any.
#pragma once

#include <string>
#include <vector>

namespace swell::cli::arena {

// The words, joined. Arena's charts write the command into YAML, so that scripts of its users rely
// on what YAML does to it: one pair of quotes around the whole goes away, and lines that carry on
// with flags are one line. Other texts of several lines stay scripts, which YAML would not take.
std::string CommandText(const std::vector<std::string>& words);

}  // namespace swell::cli::arena
