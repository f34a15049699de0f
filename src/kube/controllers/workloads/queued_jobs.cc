#include "kube/controllers/workloads/queued_jobs.h"

#include "base/strings.h"
#include "kube/api/meta/gate_keys.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/job.h"
#include "kube/controllers/queue.h"
#include "kube/controllers/write_batch.h"

namespace swell::controllers {
namespace {

constexpr std::string_view kQueue = "kueue.x-k8s.io/queue-name";
constexpr std::string_view kKueuesOwn = "workloads.kueue.x-k8s.io";
constexpr std::string_view kReleased = "swell.dev/released-from-queue";

}  // namespace

QueuedJobs::QueuedJobs(Context context,
                       const client::Resource& resource,
                       std::string suspend,
                       const std::string& component)
    : context_(std::move(context)),
      suspend_(std::move(suspend)),
      jobs_(context_.informers.Of(resource)),
      events_(MakeRecorder(context_, component)),
      queue_(MakeQueue(
          context_, StrCat("queued-", resource.GroupResource()), 16, this, &QueuedJobs::Reconcile)),
      client_(context_.executor, context_.server, context_.user, component) {
  Follow(jobs_, [this](const json::SharedValue& job) {
    if (Waits(*job)) queue_.Add(api::KeyOf(*job));
  });
}

bool QueuedJobs::Waits(const json::Value& job) const {
  if (!api::IsSuspended(job, suspend_) || api::Label(job, kQueue).empty()) return false;
  if (!api::Annotation(job, kReleased).empty() || api::IsDeleting(job)) return false;
  if (!api::OtherManager(job).empty()) return false;
  // It waits for other jobs or for a user, too.
  for (std::string_view other : {api::keys::kGate, api::keys::kHeld}) {
    if (!api::Annotation(job, other).empty()) return false;
  }
  // Its spec is as it was made: a user or a rule that suspends it later changes it.
  return json::GetInt(job, {"metadata", "generation"}) <= 1;
}

void QueuedJobs::Reconcile(const std::string& key, const client::WorkQueue::Done& done) {
  json::SharedValue job = jobs_.Get(key);
  if (!job || !Waits(*job)) return done(Duration::zero());
  client_.Get(client::resources::kCrds, "", kKueuesOwn,
              [this, job, done](const Result<json::SharedValue>& kueue) {
                if (kueue.status().code() == Code::kNotFound) return Release(job, done);
                done(kueue.ok() ? Result<Duration>(Duration::zero()) : kueue.status());
              });
}

void QueuedJobs::Release(const json::SharedValue& job, const client::WorkQueue::Done& done) {
  const std::string queue(api::Label(*job, kQueue));
  json::Value patch =
      json::Object{{"metadata", json::Object{{"uid", api::Uid(*job)},
                                             {"annotations", json::Object{{kReleased, queue}}}}}};
  api::SetSuspended(patch, suspend_, false);
  client_.Patch(jobs_.resource(), api::Namespace(*job), api::Name(*job), client::PatchType::kMerge,
                patch, [this, job, queue, done](const Result<json::SharedValue>& released) {
                  if (released.ok()) {
                    events_.Record(*job, "Normal", "Released",
                                   StrCat("There is no Kueue here: the job does not wait for its "
                                          "queue ",
                                          queue, ", but for its place alone"));
                  }
                  Ends(done, {}, {Code::kNotFound, Code::kConflict})(released);
                });
}

}  // namespace swell::controllers
