#include "scheduling/unserved_pods.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "kube/controllers/queue.h"

namespace swell::scheduling {
namespace {

// A user's own scheduler may be slow, or about to start.
constexpr Duration kPatience = std::chrono::seconds(30);

}  // namespace

UnservedPods::UnservedPods(controllers::Context context, std::vector<std::string> served)
    : context_(std::move(context)),
      served_(std::move(served)),
      pods_(context_.informers.Of(client::resources::kPods)),
      events_(controllers::MakeRecorder(context_, "scheduler")),
      queue_(controllers::MakeQueue(context_, "unserved-pods", 1, this, &UnservedPods::Reconcile)) {
  pods_.AddHandlers({.on_add =
                         [this](const json::SharedValue& pod) {
                           if (IsUnserved(*pod)) queue_.AddAfter(api::KeyOf(*pod), kPatience);
                         },
                     .on_update = {},
                     .on_delete = {}});
}

bool UnservedPods::IsUnserved(const json::Value& pod) const {
  const std::string_view scheduler = api::SchedulerName(pod);
  return std::find(served_.begin(), served_.end(), scheduler) == served_.end() &&
         !api::IsBound(pod) && !api::HasEnded(pod) && !api::IsDeleting(pod) &&
         !api::FindCondition(pod, "PodScheduled");
}

void UnservedPods::Reconcile(const std::string& key, const client::WorkQueue::Done& done) {
  const json::SharedValue pod = pods_.Get(key);
  if (pod && IsUnserved(*pod)) {
    events_.Record(*pod, "Warning", "FailedScheduling",
                   StrCat("it waits for another scheduler, ", Quote(api::SchedulerName(*pod)),
                          " (spec.schedulerName), which has not answered; Swell places pods that "
                          "name none, or one of ",
                          Join(served_, ", ")));
  }
  done(Duration::zero());
}

}  // namespace swell::scheduling
