// The names that one flag has in the two versions of Run:ai's command line.
// - Threads: one thread.
#pragma once

#include "cli/flags.h"

namespace swell::cli::runai {

// Lets each declared flag be given by the names that the other version, and older ones, use for it.
// Help shows the name of the declaration alone.
void AddOtherNames(Flags& flags);

}  // namespace swell::cli::runai
