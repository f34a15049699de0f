// arena delete, prune.
#include <algorithm>

#include "base/strings.h"
#include "cli/arena/arena.h"
#include "cli/arena/cron.h"
#include "cli/arena/tensorboard.h"

namespace swell::cli::arena {
namespace {

// `left`: a job of another type and this name stays.
Result<std::vector<std::string>> ConfigMapsOfJob(
    Api& api, const std::string& ns, const std::string& name, const TypeFlag& type, bool left) {
  // Those of a cron of that name are not the job's.
  SWELL_ASSIGN_OR_RETURN(const bool cron, HasCron(api, ns, name));
  if (cron) return std::vector<std::string>();
  std::vector<std::string> maps;
  for (const Trainer& trainer : Trainers()) {
    if (type.Takes(trainer)) maps.push_back(trainer.ConfigMapName(name));
  }
  if (!left) maps.push_back(ConfigFilesName(name));
  return ConfigMapsOf(api, ns, maps);
}

// Removes one job with everything that was made for it. False when there was nothing.
Result<bool> DeleteJob(Session& session,
                       Api& api,
                       const std::string& ns,
                       const std::string& name,
                       const TypeFlag& type) {
  bool any = false;
  SWELL_ASSIGN_OR_RETURN(const std::vector<NamedJob> jobs, JobsNamed(api, ns, name));
  const bool left = std::any_of(jobs.begin(), jobs.end(), [&type](const NamedJob& job) {
    return !type.Takes(*job.kind, *job.object);
  });
  SWELL_ASSIGN_OR_RETURN(const auto maps, ConfigMapsOfJob(api, ns, name, type, left));
  for (const NamedJob& job : jobs) {
    if (!type.Takes(*job.kind, *job.object)) continue;
    auto gone = api.Delete(job.kind->resource, ns, name);
    if (!gone.ok() && gone.status().code() != Code::kNotFound) return gone.status();
    any = true;
    session.OutLine(StrCat(job.Object(), " ", Quote(name), " deleted"));
  }
  if (!left) {
    SWELL_ASSIGN_OR_RETURN(const bool tensorboard, DeleteTensorboard(session, api, ns, name));
    any = any || tensorboard;
  }
  SWELL_RETURN_IF_ERROR(DeleteConfigMaps(session, api, ns, maps));
  return any || !maps.empty();
}

class DeleteAction final : public Action {
 public:
  void Declare(Flags& flags) override { type_.Declare(flags); }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(type_.Check());
    if (words.empty()) return Misuse("expected the names of jobs: arena delete JOB...");
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    int failed = 0;
    for (const std::string& name : words) {
      SWELL_ASSIGN_OR_RETURN(bool any, DeleteJob(session, *api, session.Namespace(), name, type_));
      if (any) {
        LogLine(session, "info", StrCat("The Job ", name, " has been deleted successfully"));
      } else {
        LogLine(session, "error",
                StrCat("The job ", name, " doesn't exist in namespace ", session.Namespace(),
                       ServerHint(*api, session.Namespace(), name, "delete")));
        ++failed;
      }
    }
    return failed > 0 ? 1 : 0;
  }

 private:
  TypeFlag type_;
};

class PruneAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Text("-s,--since", &since_, "DURATION", "jobs older than this: 24h");
    flags.Switch("-A,--all-namespaces", &all_, "all namespaces").also = {"--allNamespaces"};
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (!words.empty()) return Misuse(StrCat("unexpected ", Quote(words[0])));
    if (since_.empty()) return Misuse("--since must be set: arena prune --since 24h");
    SWELL_ASSIGN_OR_RETURN(Duration since, ParseDuration(since_, "--since"));
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(auto jobs, ListArenaJobs(session, *api, all_, {}));
    for (const JobView& job : jobs) {
      bool old = job.created && session.Now() - *job.created > since;
      if (StatusWord(job) == "RUNNING" || !old) continue;
      // Arena knows no jobs that wait to resume.
      if (!job.over() && job.started) continue;
      // Only of its kind: a job of another kind and this name may be young, or run.
      SWELL_ASSIGN_OR_RETURN(const bool any,
                             DeleteJob(session, *api, job.ns, job.name, TypeFlag(job)));
      if (!any) continue;
      LogLine(session, "info",
              StrCat("Delete ", TrainerWord(job), " ", job.name, " with Age ",
                     Age(job, session.Now())));
    }
    return 0;
  }

 private:
  std::string since_;
  bool all_ = false;
};

}  // namespace

Result<std::vector<std::string>> ConfigMapsOf(Api& api,
                                              const std::string& ns,
                                              const std::vector<std::string>& names) {
  std::vector<std::string> there;
  for (const std::string& name : names) {
    const auto map = api.Get(client::resources::kConfigMaps, ns, name);
    if (!map.ok() && map.status().code() != Code::kNotFound) return map.status();
    if (map.ok()) there.push_back(name);
  }
  return there;
}

Status DeleteConfigMaps(Session& session,
                        Api& api,
                        const std::string& ns,
                        const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto gone = api.Delete(client::resources::kConfigMaps, ns, name);
    if (!gone.ok() && gone.status().code() != Code::kNotFound) return gone.status();
    session.OutLine(StrCat("configmap ", Quote(name), " deleted"));
  }
  return Status::Ok();
}

Command DeleteSpec() {
  return {
      .name = "delete",
      .aliases = {"del"},
      .summary = "Delete training jobs and their instances.",
      .usage = "JOB...",
      .examples = {{"Two jobs", "arena delete mnist bert"}},
      .completes = Completes::kJob,
      .make = Makes<DeleteAction>(),
  };
}

Command PruneSpec() {
  return {
      .name = "prune",
      .summary = "Delete jobs that are older than a given time and not running.",
      .examples = {{"Jobs older than a day", "arena prune --since 24h"}},
      .notes = "Jobs that are still PENDING are deleted too.",
      .make = Makes<PruneAction>(),
  };
}

}  // namespace swell::cli::arena
