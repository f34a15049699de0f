#include "jobs/progress/progress_reader.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "autoscaling/scale_observation.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/job.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/progress.h"
#include "kube/controllers/pod_facts.h"
#include "kube/controllers/queue.h"

namespace swell::jobs {
namespace {

constexpr size_t kReadsAtOnce = 16;
constexpr int kLogLines = 200;
constexpr int kLogBytes = 512 << 10;  // a bar writes a kilobyte a second
constexpr Duration kLogTimeout = std::chrono::seconds(10);

// The role that leads, if there is one; then the first member.
std::tuple<int, int64_t, std::string_view> LeadOrder(const json::Value& pod) {
  const std::string_view role = api::Label(pod, api::keys::kPodSet);
  const std::string_view name = api::Name(pod);
  const int64_t index = ParseInt(name.substr(name.rfind('-') + 1)).value_or(0);
  return {api::LeadRank(role), index, name};
}

// Reports of the SDK name the process that made them.
bool HasReports(const json::Value& pod) {
  const auto ranks = api::RanksOf(pod);
  return std::any_of(ranks.begin(), ranks.end(),
                     [](const api::RankProgress& rank) { return rank.pid > 0; });
}

// JSON has no numbers that are not finite: they are texts, as the SDK reports them.
json::Value LossJson(double loss) {
  if (std::isfinite(loss)) return loss;
  return std::isnan(loss) ? "NaN" : loss > 0 ? "Infinity" : "-Infinity";
}

// With the numbers that the pod reports otherwise.
std::string MetricsText(const json::Value& pod, const elastic::LoggedProgress& progress) {
  auto parsed =
      json::Parse(api::Annotation(pod, api::keys::kMetrics), {.depth = 8, .bytes = 64 << 10});
  json::Value metrics =
      parsed.ok() && parsed->is_object() ? std::move(*parsed) : json::Value(json::Object{});
  json::Set(metrics, {"training_step"}, progress.step);
  if (const double speed = progress.Speed(); speed > 0) {
    json::Set(metrics, {"steps_per_second"}, speed);
  } else {
    json::Remove(metrics, {"steps_per_second"});
  }
  if (progress.loss) json::Set(metrics, {"loss"}, LossJson(*progress.loss));
  if (progress.not_finite_since) {
    json::Set(metrics, {"not_finite_since"}, *progress.not_finite_since);
  } else {
    json::Remove(metrics, {"not_finite_since"});
  }
  return json::Print(metrics);
}

}  // namespace

std::string_view ProgressPatternOf(const json::Value& job) {
  const std::string_view field = json::GetString(job, {"spec", "progress", "logPattern"});
  return field.empty() ? api::Annotation(job, api::keys::kProgressPattern) : field;
}

std::string ProgressPatternField(const json::Value& job) {
  const bool field = !json::GetString(job, {"spec", "progress", "logPattern"}).empty();
  return field ? std::string("spec.progress.logPattern")
               : StrCat("metadata.annotations[", api::keys::kProgressPattern, "]");
}

struct ProgressReader::Round {
  std::string key;
  json::SharedValue pod;
  int64_t running = 0;
  client::WorkQueue::Done done;
  bool answered = false;  // the log has come, or is not waited for any more
};

ProgressReader::ProgressReader(controllers::Context context, client::Resource resource)
    : context_(std::move(context)),
      jobs_(context_.informers.Of(resource)),
      pods_(context_.informers.Of(client::resources::kPods)),
      events_(controllers::MakeRecorder(context_, "progress-reader")),
      queue_(controllers::MakeQueue(context_,
                                    StrCat("progress-", resource.GroupResource()),
                                    kReadsAtOnce,
                                    this,
                                    &ProgressReader::Reconcile)),
      client_(context_.executor, context_.server, context_.user, "progress-reader") {
  // Jobs without a pattern, which most are, never come to the queue.
  controllers::Follow(
      jobs_,
      [this](const json::SharedValue& job) {
        const std::string key = api::KeyOf(*job);
        if (!ProgressPatternOf(*job).empty() || known_.contains(key)) queue_.Add(key);
      },
      [this](const json::SharedValue& job) { known_.erase(api::KeyOf(*job)); });
}

void ProgressReader::Reconcile(const std::string& key, client::WorkQueue::Done done) {
  const json::SharedValue job = jobs_.Get(key);
  const std::string_view pattern = job ? ProgressPatternOf(*job) : std::string_view();
  if (pattern.empty() || api::IsDeleting(*job) || !api::ConditionIsTrue(*job, "Running")) {
    known_.erase(key);
    return done(Duration::zero());
  }
  Known& known = Recall(key, *job, pattern);
  if (!known.reader) return done(Duration::zero());
  const SteadyTime now = context_.clock.Steady();
  if (now < known.next) return done(known.next - now);
  known.next = now + kInterval;
  auto round = std::make_shared<Round>();
  round->key = key;
  round->pod = LeadOf(*job, round->running);
  if (!round->pod || HasReports(*round->pod)) return done(kInterval);
  if (known.pod_uid != api::Uid(*round->pod)) {
    known.pod_uid = api::Uid(*round->pod);
    known.progress = {};
  }
  // Steps of another number of members say nothing of the speed of this one.
  if (std::exchange(known.running, round->running) != round->running) {
    known.progress.readings.clear();
  }
  round->done = std::move(done);
  ReadLog(round);
}

ProgressReader::Known& ProgressReader::Recall(const std::string& key,
                                              const json::Value& job,
                                              std::string_view pattern) {
  Known& known = known_[key];
  if (known.pattern == pattern) return known;
  known = Known();
  known.pattern = pattern;
  auto reader = elastic::LogProgress::Compile(pattern);
  if (reader.ok()) {
    known.reader = std::move(*reader);
  } else {
    events_.Record(job, "Warning", "InvalidProgressPattern",
                   StrCat(ProgressPatternField(job), ": ", reader.status().message()));
  }
  return known;
}

json::SharedValue ProgressReader::LeadOf(const json::Value& job, int64_t& running) const {
  json::SharedValue lead;
  for (const json::SharedValue& pod : pods_.ByIndex("owner", api::Uid(job))) {
    if (api::Phase(*pod) != "Running" || api::IsDeleting(*pod)) continue;
    ++running;
    if (!lead || LeadOrder(*pod) < LeadOrder(*lead)) lead = pod;
  }
  return lead;
}

void ProgressReader::ReadLog(const RoundPtr& round) {
  api::RestRequest request;
  request.method = "GET";
  request.path = client::resources::kPods.Path(std::string(api::Namespace(*round->pod)),
                                               api::Name(*round->pod), "log");
  request.query = autoscaling::LogTailQuery(*round->pod, kLogLines, kLogBytes);
  request.accept = "*/*";
  const TimerId timer =
      context_.executor.After(kLogTimeout, scope_.Wrap([this, round] { OnLog(round, ""); }));
  client_.Call(std::move(request), [this, round, timer](const Result<api::RestResponse>& answer) {
    context_.executor.Cancel(timer);
    OnLog(round, answer.ok() ? answer->BodyString() : std::string());
  });
}

void ProgressReader::OnLog(const RoundPtr& round, std::string_view log) {
  if (round->answered) return;
  round->answered = true;
  auto known = known_.find(round->key);
  if (known == known_.end() || !known->second.reader) return round->done(Duration::zero());
  elastic::LoggedProgress& progress = known->second.progress;
  if (!known->second.reader->Read(log, context_.clock.Now(), progress))
    return round->done(kInterval);
  Write(round, progress);
}

void ProgressReader::Write(const RoundPtr& round, const elastic::LoggedProgress& progress) {
  const api::RankProgress rank{.world = round->running,
                               .phase = "step",
                               .step = progress.step,
                               .total = progress.total,
                               .epoch = progress.epoch,
                               .epochs = progress.epochs,
                               .steps_per_second = progress.Speed(),
                               .changed = WallTime{progress.changed_unix_ns}};
  json::Value patch;
  json::Set(patch, {"metadata", "uid"}, api::Uid(*round->pod));
  json::Set(patch, {"metadata", "annotations", api::keys::kProgress},
            json::Print(api::RanksToJson({rank})));
  json::Set(patch, {"metadata", "annotations", api::keys::kMetrics},
            MetricsText(*round->pod, progress));
  client_.Patch(client::resources::kPods, std::string(api::Namespace(*round->pod)),
                api::Name(*round->pod), client::PatchType::kMerge, patch,
                [round](const Result<json::SharedValue>& written) {
                  // A pod that is gone has no progress.
                  if (written.ok() || written.status().code() == Code::kNotFound) {
                    return round->done(kInterval);
                  }
                  round->done(written.status());
                });
}

}  // namespace swell::jobs
