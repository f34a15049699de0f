#include "kube/controllers/workloads/queued_jobs.h"

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/write_batch.h"

namespace swell::controllers {
namespace {

constexpr std::string_view kQueue = "kueue.x-k8s.io/queue-name";
constexpr std::string_view kKueuesOwn = "workloads.kueue.x-k8s.io";
constexpr std::string_view kReleased = "swell.dev/released-from-queue";

bool Waits(const json::Value& job) {
  return json::GetBool(job, {"spec", "suspend"}) && !api::Label(job, kQueue).empty() &&
         api::Annotation(job, kReleased).empty() && !api::IsDeleting(job);
}

}  // namespace

QueuedJobs::QueuedJobs(Context context)
    : context_(std::move(context)),
      jobs_(context_.informers.Of(client::resources::kJobs)),
      events_(MakeRecorder(context_, "job-controller")),
      queue_(context_.executor,
             context_.metrics,
             "queued-jobs",
             16,
             [this](const std::string& key, const client::WorkQueue::Done& done) {
               Reconcile(key, done);
             }),
      client_(context_.executor, context_.server, context_.user, "job-controller") {
  Follow(jobs_, [this](const json::SharedValue& job) {
    if (Waits(*job)) queue_.Add(api::KeyOf(*job));
  });
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
  const json::Value patch = json::Object{
      {"metadata",
       json::Object{{"uid", api::Uid(*job)}, {"annotations", json::Object{{kReleased, queue}}}}},
      {"spec", json::Object{{"suspend", false}}}};
  client_.Patch(client::resources::kJobs, api::Namespace(*job), api::Name(*job),
                client::PatchType::kMerge, patch,
                [this, job, queue, done](const Result<json::SharedValue>& released) {
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
