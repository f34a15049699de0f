// The commands that only this program has: they run a cluster rather than talk to one.
// Thread-safety: main thread.
#pragma once

#include <string>
#include <vector>

namespace swell {

// `swell up`, `down`, `status`. Arguments are those after the command's name; the answer is the
// process's exit status.
int UpCommand(const std::vector<std::string>& arguments);
int DownCommand(const std::vector<std::string>& arguments);
int StatusCommand(const std::vector<std::string>& arguments);

}  // namespace swell
