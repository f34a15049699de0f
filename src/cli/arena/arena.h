// The drop-in front end `arena`: commands, flags and printing of Arena v0.5.0.
//
// What people grep for is kept to the letter: status words, columns, dashes, INFO lines.
//
// - Threads: one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/session.h"
#include "cli/views/job_view.h"
#include "kube/client/client.h"

namespace swell::cli::arena {

Command SubmitSpec();
// The children of `arena cron` that submit a job of a kind.
std::vector<Command> CronJobSpecs();
Command CronSpec();
Command GetSpec();
Command ListSpec();
Command LogsSpec();
Command DeleteSpec();
Command PruneSpec();
Command TopSpec();
Command AttachSpec();
Command ScaleOutSpec();
Command ScaleInSpec();
Command LogviewerSpec();
Command ServeSpec();
Command DataSpec();
Command WhoamiSpec();
Command VersionSpec();

// logrus' line: "INFO[0000] text". Levels below --loglevel print nothing.
void LogLine(Session& session, std::string_view level, std::string_view text);

// One unit only: 22s, 3m, 5h, 2d, 1y.
std::string ShortDuration(Duration span);

// Arena's words and times for a job.
std::string StatusWord(const JobView& job);   // PENDING, RUNNING, SUCCEEDED, FAILED
std::string ReasonText(const JobView& job);   // what failed, or why it waits; may be empty
std::string TrainerWord(const JobView& job);  // PYTORCHJOB
std::string Age(const JobView& job, WallTime now);
Duration TrainingDuration(const JobView& job, WallTime now);
std::string HostOf(const json::Value& pod);     // host IP, or N/A
std::string PhaseWord(const json::Value& pod);  // RUNNING, or UNKNOWN

// A kind that arena submits. Several are MPIJobs here; the label `app` tells them apart.
struct Trainer {
  std::vector<std::string_view> words;  // as --type and submit have it; the first in full
  std::string_view kind;                // of the object
  client::Resource resource;
  std::string_view created_by;  // Arena's label of that name

  std::string word() const { return std::string(words[0]); }  // etjob
  std::string Object() const;                                 // mpijob.kubeflow.org
  std::string ConfigMapName(const std::string& job) const;    // NAME-etjob
};
const std::vector<Trainer>& Trainers();
const Trainer& TrainerNamed(std::string_view word);
// Null: arena does not submit such.
const Trainer* TrainerOf(const client::Resource& resource, const json::Value& job);

inline constexpr int64_t kInstancesMax = 10'000;  // of one role; controllers refuse more

// The ConfigMap with the files of --config-file, of a job or a cron.
std::string ConfigFilesName(const std::string& job);

// Those of these ConfigMaps that exist.
Result<std::vector<std::string>> ConfigMapsOf(Api& api,
                                              const std::string& ns,
                                              const std::vector<std::string>& names);
// Deletes them and says so, also of those that the cluster has deleted meanwhile with their owner.
Status DeleteConfigMaps(Session& session,
                        Api& api,
                        const std::string& ns,
                        const std::vector<std::string>& names);

// The jobs of that name of every kind that arena lists.
struct NamedJob {
  const JobKindInfo* kind;
  const Trainer* trainer;  // null: arena does not submit such
  json::SharedValue object;

  std::string Object() const;  // mpijob.kubeflow.org
};
Result<std::vector<NamedJob>> JobsNamed(Api& api, const std::string& ns, const std::string& name);

// Arena shows training jobs; plain batch Jobs are not its business.
bool IsTrainingJob(const JobKindInfo& kind);

// "--type": the kind of job by Arena's words for it; empty is every kind.
class TypeFlag {
 public:
  TypeFlag() = default;
  // As if it were given.
  explicit TypeFlag(const Trainer& trainer) : trainer_(&trainer) {}
  explicit TypeFlag(const JobView& job);
  void Declare(Flags& flags);
  // Refuses unknown kinds, naming those that are known. Before the others.
  Status Check();
  bool Takes(const JobKindInfo& kind, const json::Value& job) const;
  bool Takes(const Trainer& trainer) const;

 private:
  std::string said_;
  const Trainer* trainer_ = nullptr;
  const JobKindInfo* kind_ = nullptr;
};

// "-o": json, yaml or wide (the table), as all of Arena's commands take it.
Status CheckOutput(const std::string& output);
bool IsData(const std::string& output);  // json or yaml
std::string Serialise(const std::string& output, const json::Value& value);
// A job as Arena's JSON and YAML have it.
json::Value DescribeJob(const JobView& job, WallTime now);

// The training jobs of the namespace, or of all of them.
Result<std::vector<JobView>> ListArenaJobs(Session& session,
                                           Api& api,
                                           bool everywhere,
                                           const TypeFlag& type);
// The command to use instead, if a server has this name; else empty.
std::string ServerHint(Api& api,
                       const std::string& ns,
                       const std::string& name,
                       std::string_view verb);
// A job that arena can see; kNotFound in Arena's words.
Result<JobView> FindArenaJob(Session& session,
                             Api& api,
                             const std::string& name,
                             const TypeFlag& type);

}  // namespace swell::cli::arena
