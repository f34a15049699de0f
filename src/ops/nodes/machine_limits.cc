#include "ops/nodes/machine_limits.h"

#include <algorithm>
#include <cstdio>

#include "base/file.h"
#include "base/strings.h"
#include "json/texts.h"
#include "json/value.h"
#include "kube/process/process_runtime.h"

namespace swell::ops {
namespace {

constexpr size_t kFileBytesMax = 64 << 10;

std::string LimitsFile(const DataDir& dir) { return StrCat(dir.path, "/", process::kLimitsFile); }

std::pair<std::string_view, std::string_view> WhatAndWhy(std::string_view limit) {
  const size_t colon = limit.find(": ");
  if (colon == std::string_view::npos) return {limit, {}};
  return {limit.substr(0, colon), limit.substr(colon + 2)};
}

}  // namespace

std::vector<std::string> MachineLimits(const DataDir& dir) {
  auto text = ReadFile(LimitsFile(dir), kFileBytesMax);
  if (!text.ok()) return {};
  auto value = json::Parse(*text);
  if (!value.ok() || !value->is_array()) return {};
  return json::Texts(value->get_array());
}

void ForgetMachineLimits(const DataDir& dir) { std::remove(LimitsFile(dir).c_str()); }

std::string FormatMachineLimits(const std::vector<std::string>& limits) {
  if (limits.empty()) return {};
  constexpr std::string_view kWhat = "PODS ON THIS MACHINE";
  size_t width = kWhat.size();
  for (const std::string& limit : limits) width = std::max(width, WhatAndWhy(limit).first.size());
  auto line = [width](std::string_view what, std::string_view why) {
    const std::string blanks(why.empty() ? 0 : width - what.size() + 3, ' ');
    return StrCat(what, blanks, why, "\n");
  };
  std::string text = line(kWhat, "WHY");
  for (const std::string& limit : limits) {
    const auto [what, why] = WhatAndWhy(limit);
    text += line(what, why);
  }
  return text;
}

}  // namespace swell::ops
