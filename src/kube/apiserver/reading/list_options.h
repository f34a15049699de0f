// ListOptions: limit, continue tokens and the rules of resourceVersion.
// - Threads: values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kube/apiserver/request/request.h"

namespace swell::apiserver {

// Absent or empty reads as 0; kBadRequest when it is not a version.
Result<uint64_t> ParseVersion(std::string_view text);

struct ListOptions {
  size_t limit = 0;
  uint64_t at_version = 0;  // 0: now
  bool from_continue = false;
  std::string after_ns;
  std::optional<std::string> after_name;

  static Result<ListOptions> Parse(const Query& query, uint64_t current);
};

std::string MakeContinueToken(uint64_t version, std::string_view ns, std::string_view name);

Status TooNewVersionError(uint64_t requested, uint64_t current);
Status ExpiredListError(uint64_t version, const Status& why);
// As Kubernetes words it; its answer carries InconsistentToken in metadata.continue.
Status ExpiredContinueError();
// A token that continues behind the same object, at the newest state.
std::string InconsistentToken(const ListOptions& options);

}  // namespace swell::apiserver
