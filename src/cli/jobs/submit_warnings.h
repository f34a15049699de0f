// What a user who submits a job is told at once, though the job is taken: it would wait, or fail,
// for what is probably a mistake.
// - Threads: blocks on the Api's loop.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/session.h"

namespace swell::cli {

// Misspelt images, and what TooLargeText says.
std::vector<std::string> SubmitWarnings(Session& session, Api& api, const json::Value& job);
// On standard error, as warnings of that program.
void PrintSubmitWarnings(Session& session,
                         std::string_view program,
                         Api& api,
                         const json::Value& job);

}  // namespace swell::cli
