// Evictions by controllers: a pod that the cluster takes from its node gets the condition
// DisruptionTarget before it is deleted. The condition shows the job's controller that the pod did
// not fail by itself.
// - Threads: core executor only.
#pragma once

#include <string_view>

#include "base/clock.h"
#include "kube/client/client.h"
#include "kube/client/work_queue.h"

namespace swell::controllers {

json::Object DisruptionCondition(std::string_view reason,
                                 std::string_view message,
                                 std::string_view time);

// Writes the condition, then deletes the pod with its grace period.
void EvictPod(client::Client& client,
              const json::SharedValue& pod,
              const json::Object& condition,
              const client::WorkQueue::Done& done);

}  // namespace swell::controllers
