// The drop-in front end `runai`: commands, flags and printing of Run:ai's command line, version 1,
// with version 2's names beside them. Its workloads are TrainingJobs of a project's namespace.
// - Threads: one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/jobs/service_address.h"
#include "cli/session.h"
#include "cli/views/job_view.h"
#include "cli/views/project_view.h"

namespace swell::cli::runai {

// `workload` empty: by the flags --interactive, --build and --inference; else fixed to that class.
Command SubmitSpec(const std::string& workload = {});
Command SubmitDistSpec();
// Version 2's runai training standard, pytorch and so on, which list their own workloads:
// `training` has the commands that they share.
Command TrainingPart(const Command& training, const std::string& name);
// Version 2's runai training pytorch submit, and the like: `training` has what they share.
std::vector<Command> FrameworkSpecs(const Command& training);
// `type`: only workloads of this --type are listed; empty: all. `noun`: the words before `list`.
Command ListSpec(const std::string& type = {}, const std::string& noun = {});
Command ListNodesSpec();
Command ListProjectsSpec(std::string name);
Command ListClaimsSpec();  // runai pvc list
Command DescribeSpec();
Command GetSpec();
Command PoolsSpec();  // node-pools, of get and of list
Command TopSpec();
Command ClusterInfoSpec();
Command DeleteSpec();
Command SuspendSpec();
Command UpdateSpec();  // runai inference update
Command ResumeSpec();
Command LogsSpec();
Command ExecSpec();
Command AttachSpec();
Command BashSpec();
Command PortForwardSpec();
Command ConfigSpec();
Command SetProjectSpec();  // runai project set
Command WhoamiSpec();
Command VersionSpec();

// The classes of work, as PriorityClasses and as the TYPE column has them.
struct WorkloadClass {
  std::string_view name;  // train
  std::string_view type;  // Train
  std::string_view role;  // of the job's pods
};
// Train for what is unknown.
const WorkloadClass& ClassOf(std::string_view name);
std::string TypeWord(const JobView& job);
// Pending, Running, Succeeded, Failed, Suspended: a preempted job waits like any other.
std::string StatusWord(const JobView& job);
std::string AgeWord(const JobView& job, WallTime now);

// Where a command works: one project, or all of them.
struct Scope {
  Api* api = nullptr;
  ProjectTree tree;
  ProjectView project;
  bool all = false;

  std::string ns() const { return all ? "" : project.ns; }
};
// What a command does where the user names no project.
enum class NoProject { kIsRefused, kMeansAll };
// --project, else the kubeconfig's namespace when that is a project's. A refusal says which
// projects there are. The namespace of a project that was deleted counts as one, so that its
// workloads can be reached.
Result<Scope> FindScope(Session& session, NoProject none);
// The workloads of the scope: those in the project's namespace, and those elsewhere that name it.
Result<std::vector<JobView>> ListWorkloads(Session& session, const Scope& scope);
// One workload by name; without a project set it is looked for in all of them.
Result<JobView> FindWorkload(Session& session, Scope& scope, const std::string& name);
// "project-a" of the namespace that the job is in; the namespace itself where no project has it.
std::string ProjectOf(const Scope& scope, const JobView& job);

// Flags of Run:ai that scale servers by their load.
void RefuseScaling(Flags& flags);

// Attaches to the workload's first pod as `runai attach` does, as soon as it runs. `limit`: how
// long this waits; empty: no limit.
Result<int> AttachWhenRunning(Session& session,
                              Scope& scope,
                              const std::string& name,
                              std::optional<Duration> limit);

// Where the ports of running jobs are reached: at the addresses of their Services; else, by other
// pods, at those of the jobs' pods. The Services are read when a job has ports.
class ServiceUrls {
 public:
  // `ns`: of the jobs; empty: any.
  ServiceUrls(Api& api, std::string ns) : api_(api), ns_(std::move(ns)) {}

  // With commas between; empty: there are none.
  std::string Of(const JobView& job);

 private:
  Api& api_;
  std::string ns_;
  std::optional<JobAddresses> services_;
};

}  // namespace swell::cli::runai
