#include "cli/runai/flag_names.h"

#include <array>

namespace swell::cli::runai {
namespace {

struct OtherNames {
  std::string_view flag;
  std::array<std::string_view, 2> others;
};

constexpr OtherNames kOtherNames[] = {
    {"--add-capability", {"--capability"}},
    {"--auto-deletion-time-after-completion", {"--ttl-after-finish"}},
    {"--backoff-limit", {"--backoffLimit"}},
    {"--completions", {"--runs"}},
    {"--configmap-map-volume", {"--configmap-volume"}},
    {"--cpu", {"--cpu-core-request"}},
    {"--cpu-limit", {"--cpu-core-limit"}},
    {"--empty-dir-volume", {"--emptydir-volume"}},
    {"--environment", {"--environment-variable", "--env"}},
    {"--existing-pvc", {"--pvc-exists"}},
    {"--gpu", {"--gpu-devices-request"}},
    {"--gpu-memory", {"--gpu-memory-request"}},
    {"--job-name-prefix", {"--name-prefix", "--prefix-name"}},
    {"--master-environment", {"--master-environment-variable"}},
    {"--master-gpu-devices-request", {"--master-gpu"}},
    {"--memory", {"--cpu-memory-request"}},
    {"--memory-limit", {"--cpu-memory-limit"}},
    {"--min-workers", {"--min-replicas"}},
    {"--new-pvc", {"--pvc-new"}},
    {"--run-as-user", {"--run-as-uid"}},
};

}  // namespace

void AddOtherNames(Flags& flags) {
  for (const OtherNames& row : kOtherNames) {
    for (const std::string_view other : row.others) {
      if (!other.empty()) flags.AddName(row.flag, other);
    }
  }
}

}  // namespace swell::cli::runai
