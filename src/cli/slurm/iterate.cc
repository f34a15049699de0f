#include "cli/slurm/iterate.h"

#include <chrono>

#include "base/strings.h"
#include "kube/api/meta/meta.h"

namespace swell::cli::slurm {
namespace {

constexpr int kInterrupted = 130;

}  // namespace

void Iterate::Declare(Flags& flags) {
  flags.Int("-i,--iterate", &seconds_, "SECONDS", "print it again after each so many seconds");
}

Result<int> Iterate::Run(Session& session, const std::function<Status()>& print) const {
  if (seconds_ == kOnce) {
    SWELL_RETURN_IF_ERROR(print());
    return 0;
  }
  if (seconds_ < 1) return Misuse(StrCat("--iterate ", seconds_, ": expected 1 or more"));
  SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
  for (;;) {
    if (!session.OutLine(api::FormatTime(session.Now()))) return 0;
    SWELL_RETURN_IF_ERROR(print());
    if (!session.OutLine("")) return 0;
    if (!api->Pause(std::chrono::seconds(seconds_))) return kInterrupted;
  }
}

}  // namespace swell::cli::slurm
