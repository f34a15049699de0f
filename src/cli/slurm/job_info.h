// JobInfo: a job as Slurm's commands show it: number, state, reason, and what was asked for. Jobs
// that came another way than by sbatch are shown, too; their name stands for the number.
// - Threads: values; functions that ask the server block on its loop.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/session.h"
#include "cli/views/job_view.h"

namespace swell::cli::slurm {

// Slurm's states that occur here.
struct JobState {
  std::string_view code;  // "PD"
  std::string_view word;  // "PENDING"
  bool active = false;    // in the queue
};
inline constexpr JobState kPending{"PD", "PENDING", true};
inline constexpr JobState kConfiguring{"CF", "CONFIGURING", true};
inline constexpr JobState kRunning{"R", "RUNNING", true};
inline constexpr JobState kCompleting{"CG", "COMPLETING", true};
inline constexpr JobState kCompleted{"CD", "COMPLETED"};
inline constexpr JobState kFailed{"F", "FAILED"};
inline constexpr JobState kTimeout{"TO", "TIMEOUT"};
inline constexpr JobState kOutOfMemory{"OOM", "OUT_OF_MEMORY"};
inline constexpr JobState kPreempted{"PR", "PREEMPTED"};
inline constexpr JobState kCancelled{"CA", "CANCELLED"};
// By code or word, in any case; null if there is no such state.
const JobState* FindState(std::string_view text);

struct JobInfo {
  JobView view;       // empty for a job that was cancelled
  bool ours = false;  // made by sbatch or srun
  std::string id;     // "1532"; a job's name where it has no number
  std::string array_id, task_id;
  JobState state;
  std::string reason;      // "Resources", "None"
  std::string dependency;  // "afterok:12:13_*", while it waits
  std::string waits;       // the whole sentence why it waits
  std::string name, user, account, partition, qos, command, work_dir, std_out, std_err, comment;
  int64_t nodes = 1, tasks = 1, cpus = 0, milli_gpus = 0, memory_mib = 0, priority = 0;
  int64_t time_limit_s = 0;  // 0: unlimited
  std::optional<WallTime> submitted, started, ended;
  std::optional<WallTime> not_before;  // of one that waits
  std::vector<std::string> node_list;  // of the machines, in the order of the job's nodes
  int64_t exit_code = 0, exit_signal = 0;

  std::string JobId() const;  // "1532", "1532_3"
  std::optional<Duration> Elapsed(WallTime now) const;
};

// Every job of the namespace, ("" everywhere) in the order of their numbers, then of their names.
Result<std::vector<JobInfo>> ListJobInfos(Api& api, std::string_view ns);
JobInfo InfoOf(JobView view);
// As its spec says it, whatever the controller has done about it.
bool IsSuspended(const JobView& job);
// The namespace of a command that shows: --namespace, or all of them that the user may read.
Result<std::vector<JobInfo>> ListShownJobs(Session& session, Api& api);

// Slurm's word for why a job waits, from the scheduler's sentence.
std::string_view ReasonOf(std::string_view sentence);

// What a user names: "1532", "1532_3", "1532_[1-3,7]", a job's name.
struct JobChoice {
  std::string text, id;
  std::vector<int64_t> tasks;  // empty: all of an array
  bool Takes(const JobInfo& job) const;
};
Result<JobChoice> ParseJobChoice(const std::string& text);
// Those between commas.
Result<std::vector<JobChoice>> ParseJobChoices(std::string_view list);
// Whether one of the choices takes the job. Without choices, every job is taken.
bool Takes(const std::vector<JobChoice>& choices, const JobInfo& job);

// The record that is kept of a job that was cancelled, in the ConfigMap that had its script.
json::Value RecordOf(const JobInfo& job, std::string_view cancelled_by, WallTime now);
std::optional<JobInfo> InfoOfRecord(const json::Value& config_map);
// Those of a namespace, "" everywhere.
Result<std::vector<JobInfo>> ListRecords(Api& api, std::string_view ns);
// Ends the job, and keeps its record.
Status CancelJob(Session& session, Api& api, const JobInfo& job, const std::string& user);

// The user whose jobs are one's own: the cluster's, or for administrators that of this machine,
// since they act for others.
Result<std::string> Me(Session& session, Api& api);
// What a job's own account may not do, in words for the script's author; others as they are.
Status ExplainInJob(Session& session, Status status);

}  // namespace swell::cli::slurm
