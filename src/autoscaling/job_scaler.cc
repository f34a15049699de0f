#include "autoscaling/job_scaler.h"

#include <utility>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/queue.h"

namespace swell::autoscaling {
namespace {

constexpr size_t kLooksAtOnce = 64;
// How soon to retry when the cache is older than our own write.
constexpr Duration kStale = std::chrono::milliseconds(50);

// Adds to a merge patch the version of the job that it applies to, and the memory.
json::Value WithMemory(json::Value patch, const json::Value& job, std::string_view memory) {
  json::Set(patch, {"metadata"},
            json::Object{{"uid", api::Uid(job)},
                         {"resourceVersion", api::ResourceVersionText(job)},
                         {"annotations", json::Object{{kScaleMemory, memory}}}});
  return patch;
}

void RecordResize(client::EventRecorder& events,
                  const json::Value& job,
                  std::string_view role,
                  int64_t from,
                  int64_t to,
                  std::string_view why) {
  const bool grows = to > from;
  events.Record(job, "Normal", grows ? "Grown" : "Shrunk",
                StrCat(role, grows ? " grows" : " shrinks", " from ", from, " to ", to, ": ", why));
}

}  // namespace

JobScaler::JobScaler(controllers::Context context,
                     client::Resource resource,
                     std::string_view queue)
    : context_(std::move(context)),
      pods_(context_.informers.Of(client::resources::kPods)),
      events_(controllers::MakeRecorder(context_, "autoscaler")),
      resource_(std::move(resource)),
      jobs_(context_.informers.Of(resource_)),
      queue_(controllers::MakeQueue(context_,
                                    StrCat(queue, "-", resource_.GroupResource()),
                                    kLooksAtOnce,
                                    this,
                                    &JobScaler::Reconcile)),
      client_(context_.executor, context_.server, context_.user, "autoscaler") {
  controllers::Follow(jobs_, controllers::Queued(queue_),
                      [this](const json::SharedValue& job) { Forget(api::KeyOf(*job)); });
}

void JobScaler::Reconcile(const std::string& key, client::WorkQueue::Done done) {
  const json::SharedValue job = jobs_.Get(key);
  if (!job || api::IsDeleting(*job) || !api::ConditionIsTrue(*job, "Running")) {
    return done(Duration::zero());
  }
  ObserveAndDecide(key, job, std::move(done));
}

void JobScaler::RequeueAll() {
  for (const auto& [key, job] : jobs_.objects()) queue_.Add(key);
}

bool JobScaler::IsDue(ScaleObservation& look,
                      const json::Value& job,
                      Duration interval,
                      const client::WorkQueue::Done& done) const {
  if (api::ResourceVersion(job) < look.version) {
    done(kStale);
    return false;
  }
  const Duration pause = UntilNextLook(look, context_.clock.Steady(), interval);
  if (pause == Duration::zero()) return true;
  done(pause);
  return false;
}

void JobScaler::Begin(Round& round,
                      const std::string& key,
                      const json::SharedValue& job,
                      const ScaledRole& role,
                      Duration interval,
                      client::WorkQueue::Done done) {
  static_cast<ScaledRole&>(round) = role;
  round.key = key;
  round.ns = api::Namespace(*job);
  round.name = api::Name(*job);
  round.job = job;
  round.interval = interval;
  round.done = std::move(done);
}

void JobScaler::WriteJob(const AnyRound& round,
                         std::optional<int64_t> replicas,
                         const std::string& why,
                         const std::string& memory,
                         std::function<void(const Status&)> next) {
  json::Value patch = replicas ? AtPath(round->path, *replicas) : json::Value(json::Object{});
  patch = WithMemory(std::move(patch), *round->job, memory);
  client_.Patch(
      resource_, round->ns, round->name, client::PatchType::kMerge, patch,
      [this, round, replicas, why, next = std::move(next)](const Result<json::SharedValue>& job) {
        ScaleObservation* known = Recall(round->key);
        if (known == nullptr) return Finish(round, Status::Ok());
        if (!job.ok()) return next(job.status());
        known->version = api::ResourceVersion(**job);
        if (replicas && !why.empty())
          RecordResize(events_, **job, round->role, round->replicas, *replicas, why);
        round->job = *job;
        next(Status::Ok());
      });
}

void JobScaler::PatchStatus(const AnyRound& round, json::Value wanted) {
  PatchStatusField(round, {"status", "elasticScaling", round->role}, std::move(wanted));
}

void JobScaler::PatchStatusField(const AnyRound& round,
                                 const std::vector<std::string>& path,
                                 json::Value wanted) {
  json::Value patch = AtPath(path, std::move(wanted));
  json::Set(patch, {"metadata", "uid"}, api::Uid(*round->job));
  client_.Patch(
      resource_, round->ns, round->name, client::PatchType::kMerge, patch,
      [this, round](const Result<json::SharedValue>& job) {
        ScaleObservation* known = Recall(round->key);
        if (job.ok() && known != nullptr) known->version = api::ResourceVersion(**job);
        Finish(round, job.status());
      },
      "status");
}

void JobScaler::Complain(const json::Value& job,
                         ScaleObservation& look,
                         const std::string& message) {
  if (look.complaint == message) return;
  look.complaint = message;
  events_.Record(job, "Warning", "InvalidAutoscaling", message);
}

void JobScaler::Finish(const AnyRound& round, const Status& status) {
  if (!round->done) return;
  const client::WorkQueue::Done done = std::exchange(round->done, nullptr);
  const bool gone = status.code() == Code::kNotFound || status.code() == Code::kConflict;
  if (!status.ok() && !gone) return done(status);
  if (Recall(round->key) == nullptr) return done(gone ? kStale : Duration::zero());
  done(round->interval);
}

}  // namespace swell::autoscaling
