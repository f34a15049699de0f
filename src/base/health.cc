#include "base/health.h"

#include <algorithm>

#include "base/log.h"
#include "base/strings.h"

namespace swell {

HealthChecks::Answer HealthChecks::Ask(std::string_view path,
                                       bool verbose,
                                       const std::vector<std::string>& exclude) const {
  while (path.starts_with("/")) path.remove_prefix(1);
  const size_t slash = path.find('/');
  const std::string endpoint(path.substr(0, slash));
  const std::string only(slash == std::string_view::npos ? "" : path.substr(slash + 1));
  if (endpoint != "healthz" && endpoint != "livez" && endpoint != "readyz") return {404, ""};
  std::string lines, failed;
  std::vector<std::string> unknown = exclude;
  bool found = false;
  for (const Named& one : checks_) {
    if (one.ready_only && endpoint != "readyz") continue;
    if (!only.empty() && one.name != only) continue;
    found = true;
    if (std::erase(unknown, one.name) > 0) {
      lines += StrCat("[+]", one.name, " excluded: ok\n");
      continue;
    }
    const std::string wrong = one.check();
    if (wrong.empty()) {
      lines += StrCat("[+]", one.name, " ok\n");
      continue;
    }
    lines += StrCat("[-]", one.name, " failed: reason withheld\n");
    failed += StrCat(failed.empty() ? "" : "; ", one.name, ": ", wrong);
  }
  if (!found) return {404, ""};
  if (!only.empty() && failed.empty()) return {200, "ok"};
  if (!only.empty()) return {500, "internal server error: reason withheld\n"};
  for (const std::string& name : unknown) {
    lines +=
        StrCat("warn: some health checks cannot be excluded: no matches for ", Quote(name), "\n");
  }
  if (!failed.empty()) {
    SWELL_LOG_INFO("health", "check failed", {"endpoint", endpoint}, {"because", failed});
    return {500, StrCat(lines, endpoint, " check failed\n")};
  }
  if (verbose) return {200, StrCat(lines, endpoint, " check passed\n")};
  return {200, "ok"};
}

HealthChecks::Answer HealthChecks::Ask(std::string_view path, std::string_view query) const {
  bool verbose = false;
  std::vector<std::string> exclude;
  for (std::string_view part : Split(query, '&')) {
    if (part == "verbose" || part.starts_with("verbose=")) verbose = true;
    if (part.starts_with("exclude=")) exclude.emplace_back(part.substr(8));
  }
  return Ask(path, verbose, exclude);
}

}  // namespace swell
