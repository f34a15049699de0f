// Warnings at submission. The job is accepted, but it would wait or fail, probably because of a
// mistake.
// - Threads: blocks on the Api's loop.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/session.h"

namespace swell::cli {

// The warnings: misspelt images, claims that do not exist, and what TooLargeText says.
std::vector<std::string> SubmitWarnings(Session& session, Api& api, const json::Value& job);
// Prints them on standard error, as warnings of that program.
void PrintSubmitWarnings(Session& session,
                         std::string_view program,
                         Api& api,
                         const json::Value& job);

}  // namespace swell::cli
