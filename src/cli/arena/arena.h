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
#include "cli/jobs/pytorch_spec.h"
#include "cli/session.h"
#include "cli/views/job_view.h"

namespace swell::cli::arena {

Command SubmitSpec();
Command GetSpec();
Command ListSpec();
Command LogsSpec();
Command DeleteSpec();
Command PruneSpec();
Command TopSpec();
Command AttachSpec();
Command LogviewerSpec();
Command DataSpec();
Command WhoamiSpec();
Command VersionSpec();

// logrus' line: "INFO[0000] text". Levels below --loglevel print nothing.
void LogLine(Session& session, std::string_view level, std::string_view text);

// One unit only: 22s, 3m, 5h, 2d, 1y.
std::string ShortDuration(Duration span);

// Arena shows training jobs; plain batch Jobs are not its business.
inline bool IsTrainingJob(const JobView& job) { return job.kind->kind != "Job"; }

// Arena's words and times for a job.
std::string StatusWord(const JobView& job);   // PENDING, RUNNING, SUCCEEDED, FAILED
std::string ReasonText(const JobView& job);   // what failed, or why it waits; may be empty
std::string TrainerWord(const JobView& job);  // PYTORCHJOB
std::string Age(const JobView& job, WallTime now);
Duration TrainingDuration(const JobView& job, WallTime now);
std::string HostOf(const json::Value& pod);  // host IP, or N/A

// "--type": the kind of job by Arena's words for it; empty is every kind.
class TypeFlag {
 public:
  void Declare(Flags& flags);
  // Refuses what is no kind here, naming those that are. Before the others.
  Status Check();
  bool Takes(const JobView& job) const;
  bool Takes(std::string_view kind) const { return kind_.empty() || kind == kind_; }

 private:
  std::string said_, kind_;
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
// A job that arena can see; kNotFound in Arena's words.
Result<JobView> FindArenaJob(Session& session,
                             Api& api,
                             const std::string& name,
                             const TypeFlag& type);

// The kinds that arena submits.
struct Trainer {
  JobForm form;
  std::vector<std::string_view> words;  // as --type and submit have it; the first in full

  std::string ConfigMapName(const std::string& job) const;  // NAME-pytorchjob
};
const std::vector<Trainer>& Trainers();

}  // namespace swell::cli::arena
