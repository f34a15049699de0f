// The front end of Slurm's commands: sbatch, srun, salloc, squeue, sinfo, scancel, scontrol, sacct,
// sprio, sshare. Jobs are TrainingJobs and MPIJobs; docs/slurm.md says what stands for what.
// - Threads: one thread.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/session.h"
#include "cli/slurm/batch_job.h"

namespace swell::cli::slurm {

Command SbatchSpec();
Command SrunSpec();
Command SqueueSpec();
Command SinfoSpec();
Command ScancelSpec();
Command ScontrolSpec();
Command SacctSpec();
Command SallocSpec();
Command SprioSpec();
Command SshareSpec();
Command LinksSpec();
// Commands of Slurm that are not provided, hidden: the summary of each, which it prints, says what
// does its work here.
void AddAbsent(std::vector<Command>& commands);

// A request that was read, with all that it names looked up on the server.
struct Submission {
  BatchJob job;
  Api* api = nullptr;
};
// `arguments`: of the script. Warnings are said unless --quiet.
Result<Submission> PrepareSubmission(Session& session,
                                     const BatchFlags& flags,
                                     const std::string& command,
                                     bool writes_file);

struct SubmittedJob {
  std::string id, name, ns;  // its number; the job object's name
  std::string restricted;    // what was written into its pods for the namespace's level
};
// Creates the ConfigMap, whose version is the job's number, and the job that owns it.
Result<SubmittedJob> SubmitOne(const Submission& submission, JobNumber number);
// Where it would run, if it waited for nothing but room.
Result<int> ShowPlan(Session& session, Submission& submission);
// Switches of Slurm that change nothing here, each with the reason. They are hidden in the help.
void AcceptSwitches(Flags& flags,
                    bool* ignored,
                    std::initializer_list<std::pair<const char*, const char*>> switches);
// Whether this command's input is a terminal.
bool HasTerminal(Session& session);
// A command (or a shell, without words) on the first node of a job of its own, with this terminal.
// The job ends with it. `speaker`: whose messages these are.
Result<int> RunInAllocation(Session& session,
                            const BatchFlags& typed,
                            const std::string& speaker,
                            std::vector<std::string> words);
// The exit status of the job when it has ended: its script's.
Result<int> WaitForEnd(Session& session, Api& api, const SubmittedJob& job);

}  // namespace swell::cli::slurm
