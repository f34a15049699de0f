// What a word that nothing answers to was probably meant to be.
// - Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace swell {

// The candidate nearest to what was typed, when it is near enough to be meant; else empty. The
// beginning of a word counts as near: people shorten commands and flags.
std::string NearestWord(std::string_view typed, const std::vector<std::string>& candidates);

// The same for names of things, which nobody shortens: few letters differ, or only what stands
// before the last slash does ("gpu" for "nvidia.com/gpu").
std::string NearestName(std::string_view typed, const std::vector<std::string>& candidates);

// "; did you mean NEAR?"; "" if `near` is empty.
std::string DidYouMean(std::string_view near);

// kNotFound: `WHAT "name" not found`, with the nearest of the names there are, and all of them.
Status NotFoundAmong(std::string_view what,
                     std::string_view name,
                     const std::vector<std::string>& names);

}  // namespace swell
