#include "base/nearest_word.h"

#include <algorithm>
#include <cstdint>

#include "base/strings.h"

namespace swell {
namespace {

// How many letters are inserted, left out, replaced, or exchanged with the next one.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before.swap(above);
    above.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      const bool exchanged = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (exchanged) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

// "gpu" of "nvidia.com/gpus": people add and leave out the s of several.
std::string_view LastPart(std::string_view name) {
  name = name.substr(name.rfind('/') + 1);
  if (name.size() > 1 && name.ends_with('s')) name.remove_suffix(1);
  return name;
}

}  // namespace

std::string NearestWord(std::string_view typed, const std::vector<std::string>& candidates) {
  std::string best;
  size_t best_distance = std::max<size_t>(1, typed.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    size_t distance = EditDistance(typed, candidate);
    if (typed.size() >= 3 && candidate.starts_with(typed)) distance = 1;
    if (distance < best_distance && distance < candidate.size()) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string NearestName(std::string_view typed, const std::vector<std::string>& candidates) {
  const size_t limit = typed.size() < 5 ? 1 : std::max<size_t>(2, typed.size() / 5);
  std::string alike, near;
  size_t alike_distance = SIZE_MAX, near_distance = limit + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = EditDistance(typed, candidate);
    if (LastPart(candidate) == LastPart(typed) && distance < alike_distance) {
      alike_distance = distance;
      alike = candidate;
    }
    if (distance < near_distance && distance < candidate.size()) {
      near_distance = distance;
      near = candidate;
    }
  }
  return alike.empty() ? near : alike;
}

std::string DidYouMean(std::string_view near) {
  return near.empty() ? "" : StrCat("; did you mean ", near, "?");
}

Status NotFoundAmong(std::string_view what,
                     std::string_view name,
                     const std::vector<std::string>& names) {
  return {Code::kNotFound,
          StrCat(what, " ", Quote(name), " not found", DidYouMean(NearestWord(name, names)),
                 "\n  Available: ", names.empty() ? "none" : Join(names, ", "))};
}

}  // namespace swell
