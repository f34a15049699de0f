// LastPreemption: whether a pod was stopped by the job's last preemption or created after it.
// - Threads: plain values.
//
// Creation times are whole seconds of another machine's clock, and a job may be preempted twice
// within a second. So each pod also carries the number of preemptions its job had seen before.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/strings.h"
#include "jobs/kinds/job_kind.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"

namespace swell::jobs {

struct PodAge {
  WallTime created;
  int64_t preemptions_before = 0;  // of its job

  static PodAge Of(const json::Value& pod) {
    return {api::CreationTime(pod),
            ParseInt(api::Annotation(pod, api::keys::kPreemptionsBefore)).value_or(0)};
  }
};

struct LastPreemption {
  WallTime time;            // zero: the job is not preempted, or it has run again since
  int64_t preemptions = 0;  // zero: unknown, as when a foreign CRD's schema prunes the field

  static LastPreemption Of(const json::Value& status) {
    LastPreemption last{{}, json::GetInt(status, {"preemptions"})};
    if (const auto preempted = api::FindConditionIn(status, "Preempted");
        preempted && preempted->IsTrue()) {
      last.time = preempted->Since().value_or(last.time);
    }
    return last;
  }
  bool known() const { return time.unix_ns != 0; }
  // True if the preemption stopped a pod of that age.
  bool Stopped(const PodAge& pod) const {
    return known() && pod.created <= time &&
           (preemptions == 0 || pod.preemptions_before < preemptions);
  }
};

}  // namespace swell::jobs
