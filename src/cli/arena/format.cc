#include <algorithm>

#include "base/strings.h"
#include "cli/arena/arena.h"
#include "cli/print/text_table.h"
#include "cli/views/own_namespaces.h"
#include "cli/views/workloads.h"
#include "json/yaml.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"

namespace swell::cli::arena {
namespace {

int Rank(std::string_view level) {
  if (level == "debug" || level == "trace") return 0;
  if (level == "info") return 1;
  if (level == "warn" || level == "warning") return 2;
  return 3;
}

// When the instance that stands for the job last changed.
std::optional<WallTime> ChiefsLatestCondition(const JobView& job) {
  std::optional<WallTime> latest;
  if (job.pods.empty()) return latest;
  for (const api::Condition& condition : api::Conditions(*job.pods[0])) {
    const auto time = condition.Since();
    if (time && (!latest || *latest < *time)) latest = time;
  }
  return latest;
}

}  // namespace

void LogLine(Session& session, std::string_view level, std::string_view text) {
  if (Rank(level) < Rank(session.global().log_level)) return;
  std::string word = ToUpper(level).substr(0, 4);
  Colour colour = word == "INFO" ? Colour::kBlue : word == "WARN" ? Colour::kYellow : Colour::kRed;
  std::string shown = session.env().err_is_terminal ? session.Paint(colour, word) : word;
  session.ErrLine(StrCat(shown, "[0000] ", text));
}

std::string ShortDuration(Duration span) {
  int64_t s = std::max<int64_t>(0, std::chrono::duration_cast<std::chrono::seconds>(span).count());
  if (s < 60) return StrCat(s, "s");
  if (s < 3600) return StrCat(s / 60, "m");
  if (s < 86400) return StrCat(s / 3600, "h");
  constexpr int64_t kDay = 86'400;
  const int64_t days = s / kDay;
  return days < 365 ? StrCat(days, "d") : StrCat(days / 365, "y");
}

std::string StatusWord(const JobView& job) {
  if (job.status == "Succeeded" || job.status == "Failed") return ToUpper(job.status);
  if (job.status == "Suspended") return "SUSPENDED";
  if (job.status != "Running") return "PENDING";
  if (job.failure && job.failure->repeats()) return "PENDING";
  // An elastic job trains while it has its minimum.
  if (job.elastic() && job.RunningPods() >= std::max<int64_t>(job.least, 1)) return "RUNNING";
  for (const json::SharedValue& pod : job.pods) {
    if (api::Phase(*pod) == "Pending") return "PENDING";
  }
  return "RUNNING";
}

std::string ReasonText(const JobView& job) {
  if (job.failure) return OneLine(job.failure->Sentence());
  if (job.status == "Failed") return OneLine(job.message);
  return OneLine(job.waits);
}

std::string TrainerWord(const JobView& job) {
  const Trainer* trainer = TrainerOf(job.kind->resource, *job.object);
  return ToUpper(trainer != nullptr ? trainer->words[0] : job.kind->kind);
}

std::string Age(const JobView& job, WallTime now) {
  return job.created ? ShortDuration(now - *job.created) : "0s";
}

Duration TrainingDuration(const JobView& job, WallTime now) {
  if (job.status == "Failed" && !job.ended && job.started) {
    if (auto latest = ChiefsLatestCondition(job)) return *latest - *job.started;
  }
  return job.RunTime(now).value_or(Duration(0));
}

std::string HostOf(const json::Value& pod) {
  std::string_view host = api::HostIp(pod);
  return host.empty() ? "N/A" : std::string(host);
}

std::string PhaseWord(const json::Value& pod) {
  const std::string_view phase = api::StatusPhase(pod);
  return phase.empty() ? "UNKNOWN" : ToUpper(phase);
}

bool IsData(const std::string& output) { return output == "json" || output == "yaml"; }

Status CheckOutput(const std::string& output) {
  if (output.empty() || output == "wide" || IsData(output)) return Status::Ok();
  return WrongValue("--output", output, {"json", "yaml", "wide"});
}

std::string Serialise(const std::string& output, const json::Value& value) {
  return output == "json" ? json::PrintPretty(value) + "\n" : json::PrintYaml(value);
}

json::Value DescribeJob(const JobView& job, WallTime now) {
  json::Array instances;
  for (size_t i = 0; i < job.pods.size(); ++i) {
    const json::Value& pod = *job.pods[i];
    instances.push_back(json::Object{{"ip", api::PodIp(pod)},
                                     {"status", PhaseWord(pod)},
                                     {"name", api::Name(pod)},
                                     {"age", ShortDuration(now - api::CreationTime(pod))},
                                     {"node", HostOf(pod)},
                                     {"nodeName", api::NodeName(pod)},
                                     {"isChief", i == 0},
                                     {"requestGPUs", MilliGpus(pod) / 1000}});
  }
  return json::Object{{"name", job.name},
                      {"namespace", job.ns},
                      {"duration", ShortDuration(TrainingDuration(job, now))},
                      {"status", StatusWord(job)},
                      {"reason", ReasonText(job)},
                      {"trainer", ToLower(TrainerWord(job))},
                      {"tensorboard", ""},
                      {"chiefName", job.pods.empty() ? "" : std::string(api::Name(*job.pods[0]))},
                      {"instances", std::move(instances)},
                      {"priority", job.priority.empty() ? "N/A" : job.priority},
                      {"requestGPUs", job.milli_gpus / 1000},
                      {"allocatedGPUs", job.HeldMilliGpus() / 1000}};
}

Result<std::vector<JobView>> ListArenaJobs(Session& session,
                                           Api& api,
                                           bool everywhere,
                                           const TypeFlag& type) {
  SWELL_ASSIGN_OR_RETURN(std::vector<JobView> jobs,
                         ListShownJobs(session, api, everywhere ? "" : session.Namespace()));
  std::erase_if(jobs, [&type](const JobView& job) { return !type.Takes(*job.kind, *job.object); });
  return jobs;
}

Result<JobView> FindArenaJob(Session& session,
                             Api& api,
                             const std::string& name,
                             const TypeFlag& type) {
  auto job = FindJob(api, session.Namespace(), name);
  if (job.ok() && type.Takes(*job->kind, *job->object)) return job;
  if (!job.ok() && job.status().code() != Code::kNotFound) return job;
  return Status(Code::kNotFound,
                StrCat("The job ", name, " doesn't exist in namespace ", session.Namespace(),
                       ", please create it first. use 'arena submit'",
                       ServerHint(api, session.Namespace(), name, "get")));
}

std::string ServerHint(Api& api,
                       const std::string& ns,
                       const std::string& name,
                       std::string_view verb) {
  const std::vector<Workload> found = WorkloadsNamed(api, ns, name);
  if (found.empty() || api::Label(*found[0].object, kServingName) != name) return "";
  return StrCat(". It is a server: use 'arena serve ", verb, " ", name, "'");
}

}  // namespace swell::cli::arena
