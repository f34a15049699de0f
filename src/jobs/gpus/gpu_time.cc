#include "jobs/gpus/gpu_time.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/strings.h"
#include "jobs/gpus/gpu_use.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "kube/controllers/pod_facts.h"

namespace swell::jobs {
namespace {

using client::GpuUse;

constexpr int64_t kSecondsMax = int64_t{1} << 53;

double Seconds(Duration span) { return std::chrono::duration<double>(span).count(); }

int64_t Whole(double seconds) {
  return static_cast<int64_t>(std::llround(std::clamp(seconds, 0.0, 9e15)));
}

}  // namespace

GpuTime::Job GpuTime::FromStatus(const json::Value& status) {
  Job job;
  const auto seconds = [&status](std::string_view field) {
    return static_cast<double>(
        std::clamp<int64_t>(json::GetInt(status, {"gpuTime", "seconds", field}), 0, kSecondsMax));
  };
  for (size_t i = 0; i < client::kGpuUses; ++i) {
    job.seconds[i] = seconds(client::GpuUseName(static_cast<GpuUse>(i)));
  }
  job.lost = static_cast<double>(
      std::clamp<int64_t>(json::GetInt(status, {"gpuTime", "lostSeconds"}), 0, kSecondsMax));
  job.until =
      api::ParseTime(json::GetString(status, {"gpuTime", "lastUpdateTime"})).value_or(WallTime());
  return job;
}

void GpuTime::Charge(Job& job, Held& held, WallTime until) {
  if (until <= held.since) return;
  job.seconds[static_cast<size_t>(held.use)] += held.gpus * Seconds(until - held.since);
  held.since = until;
}

void GpuTime::ChargePod(Job& job, const json::Value& pod, bool gang_runs, WallTime now) {
  const double gpus = api::IsBound(pod) ? GpusAskedBy(pod) : 0;
  if (gpus <= 0) return;
  auto found = job.held.find(api::Uid(pod));
  const bool ended = api::HasEnded(pod);
  if (found == job.held.end()) {
    // One that ended before anybody looked was charged by the controller before this one.
    if (ended) return;
    const WallTime since = std::max(BoundAt(pod, now), job.until);
    Held fresh{.use = GpuUseOf(pod, gang_runs),
               .gpus = gpus,
               .since = since,
               .lost_in_place = LossInPlace(since)};
    found = job.held.emplace(api::Uid(pod), fresh).first;
  }
  Held& held = found->second;
  const WallTime end = ended ? EndedAt(pod, now) : now;
  Charge(job, held, end);
  job.lost += held.lost_in_place.Take(pod, held.gpus);
  held.lost = LostGpuSeconds(pod, held.gpus, end);
  if (ended) {
    job.lost += held.lost;
    job.held.erase(found);
    return;
  }
  held.use = GpuUseOf(pod, gang_runs);
  held.seen = true;
}

json::Value GpuTime::ToJson(const Job& job, WallTime now) {
  json::Object seconds;
  double all = 0;
  for (size_t i = 0; i < client::kGpuUses; ++i) {
    all += job.seconds[i];
    const int64_t whole = Whole(job.seconds[i]);
    if (whole > 0) seconds[client::GpuUseName(static_cast<GpuUse>(i))] = whole;
  }
  json::Object out{{"heldSeconds", Whole(all)},
                   {"seconds", std::move(seconds)},
                   {"lastUpdateTime", api::FormatTime(now)}};
  if (const int64_t lost = Whole(job.lost); lost > 0) out["lostSeconds"] = lost;
  const double training = job.seconds[static_cast<size_t>(GpuUse::kTraining)];
  if (all >= 1) {
    const double share = std::max(0.0, training - job.lost) / all;
    out["productivePercentage"] = static_cast<int64_t>(share * 100);
  }
  return out;
}

void GpuTime::Note(const std::string& job_uid,
                   const std::map<std::string, json::SharedValue>& pods,
                   bool gang_runs,
                   WallTime now,
                   bool over,
                   json::Value& status) {
  auto known = jobs_.find(job_uid);
  if (known == jobs_.end()) known = jobs_.emplace(job_uid, FromStatus(status)).first;
  Job& job = known->second;
  for (auto& [uid, held] : job.held) held.seen = false;
  for (const auto& [name, pod] : pods) ChargePod(job, *pod, gang_runs, now);
  for (auto& [uid, held] : job.held) {
    if (held.seen) continue;
    Charge(job, held, now);
    job.lost += held.lost;
  }
  std::erase_if(job.held, [](const auto& one) { return !one.second.seen; });
  const double all = std::accumulate(job.seconds.begin(), job.seconds.end(), 0.0);
  const WallTime written =
      api::ParseTime(json::GetString(status, {"gpuTime", "lastUpdateTime"})).value_or(WallTime());
  // What is written last stays for as long as the job holds nothing.
  const bool let_go =
      job.held.empty() && Whole(all) != json::GetInt(status, {"gpuTime", "heldSeconds"});
  if (all >= 1 && (over || let_go || now - written >= kWriteEvery)) {
    json::Set(status, {"gpuTime"}, ToJson(job, now));
  }
}

}  // namespace swell::jobs
