// The end of a job by its user's will. What sacct knows of it afterwards is in the ConfigMap that
// had its script, which the job then owns no more.
#include <tuple>

#include "base/strings.h"
#include "cli/slurm/job_info.h"
#include "cli/slurm/slurm_keys.h"
#include "kube/api/meta/gate_keys.h"
#include "kube/api/meta/meta.h"

namespace swell::cli::slurm {
namespace {

// How long sacct shows a job that was cancelled.
constexpr Duration kKept = std::chrono::hours(24 * 7);

Status RemoveOldRecords(Session& session, Api& api, const std::string& ns) {
  auto maps = api.List(client::resources::kConfigMaps, ns,
                       {.label_selector = StrCat(kRecordLabel, "=cancelled")});
  if (!maps.ok()) return maps.status();
  for (const json::SharedValue& map : *maps) {
    const auto record = InfoOfRecord(*map);
    if (record && record->ended && session.Now() - *record->ended < kKept) continue;
    // Another scancel may have been faster.
    std::ignore = api.Delete(client::resources::kConfigMaps, ns, api::Name(*map));
  }
  return Status::Ok();
}

Status KeepRecord(Session& session, Api& api, const JobInfo& job, const std::string& user) {
  auto maps = api.List(client::resources::kConfigMaps, job.view.ns,
                       {.label_selector = StrCat(kJobId, "=", job.id)});
  if (!maps.ok()) return maps.status();
  for (const json::SharedValue& map : *maps) {
    json::Value patch = json::Object{};
    json::Set(patch, {"metadata", "labels", kRecordLabel}, "cancelled");
    json::Set(patch, {"metadata", "ownerReferences"}, nullptr);
    json::Set(patch, {"data", kRecordKey}, json::Print(RecordOf(job, user, session.Now())));
    auto patched = api.Patch(client::resources::kConfigMaps, job.view.ns, api::Name(*map),
                             client::PatchType::kMerge, patch);
    if (!patched.ok()) return patched.status();
  }
  return RemoveOldRecords(session, api, job.view.ns);
}

// The first node keeps the way to the others, with which it came, until all have stopped: what
// tasks say while they save themselves takes it.
Status StopThenDelete(Api& api, const JobView& job) {
  json::Value patch = json::Object{};
  json::Set(patch, {"metadata", "annotations", api::keys::kDeleteWhenStopped}, "scancel");
  json::Set(patch, {"metadata", "annotations", api::keys::kSuspendUnsaved}, "true");
  auto marked = api.Patch(job.kind->resource, job.ns, job.name, client::PatchType::kMerge, patch);
  if (!marked.ok()) return marked.status();
  return SetSuspended(api, job, true).status();
}

}  // namespace

Status CancelJob(Session& session, Api& api, const JobInfo& job, const std::string& user) {
  if (job.ours) SWELL_RETURN_IF_ERROR(KeepRecord(session, api, job, user));
  if (job.ours && job.nodes > 1 && job.view.RunningPods() > 0 && !job.view.over()) {
    const Status stopped = StopThenDelete(api, job.view);
    return stopped.code() == Code::kNotFound ? Status::Ok() : stopped;
  }
  auto gone = api.Delete(job.view.kind->resource, job.view.ns, job.view.name);
  return gone.ok() || gone.status().code() == Code::kNotFound ? Status::Ok() : gone.status();
}

}  // namespace swell::cli::slurm
