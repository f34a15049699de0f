// runai list, describe.
#include <algorithm>

#include "api/meta.h"
#include "base/strings.h"
#include "cli/objects/describe.h"
#include "cli/objects/events_view.h"
#include "cli/print/output.h"
#include "cli/print/text_table.h"
#include "cli/projects/node_view.h"
#include "cli/runai/print.h"
#include "cli/runai/runai.h"

namespace swell::cli::runai {
namespace {

constexpr size_t kEventsShown = 10;

class ListJobsAction final : public Action {
 public:
  explicit ListJobsAction(std::string workload = {}) : workload_(std::move(workload)) {}
  void Declare(Flags& flags) override {
    flags.Switch("-A,--all-projects", &all_, "of every project");
    flags.Text("-o,--output", &output_, "FORMAT", "json, yaml or name");
    flags.Switch("--no-headers", &no_headers_, "without the first lines");
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (!words.empty()) {
      return Misuse(StrCat("there are no ", Quote(words[0]),
                           " to list; there are jobs, projects, departments, nodes, node-pools"));
    }
    SWELL_ASSIGN_OR_RETURN(OutputForm form, ParseOutputForm(output_));
    SWELL_ASSIGN_OR_RETURN(Scope scope, all_ ? All(session) : FindScope(session));
    SWELL_ASSIGN_OR_RETURN(std::vector<JobView> jobs, ListJobs(*scope.api, scope.ns()));
    std::erase_if(jobs, [this](const JobView& job) { return !IsOf(job, workload_); });
    if (!form.table()) {
      std::vector<json::SharedValue> objects;
      for (const JobView& job : jobs) {
        objects.push_back(job.object);
        if (form.kind == OutputForm::Kind::kName) session.OutLine(job.name);
      }
      if (form.kind != OutputForm::Kind::kName) {
        session.Out(FormatObject(form, MakeList(objects), ""));
      }
      return 0;
    }
    if (!no_headers_) {
      session.OutLine(scope.all ? std::string("Showing jobs for all projects")
                                : StrCat("Showing jobs for project ", scope.project.name));
    }
    session.Out(JobsTable(session, scope, jobs, !no_headers_));
    return 0;
  }

 private:
  static Result<Scope> All(Session& session) {
    Scope scope;
    SWELL_ASSIGN_OR_RETURN(scope.api, session.Server());
    SWELL_ASSIGN_OR_RETURN(scope.tree, ReadProjects(*scope.api));
    scope.all = true;
    return scope;
  }

  // Workspaces are those that may be preempted and those that may not.
  static bool IsOf(const JobView& job, const std::string& workload) {
    if (workload.empty()) return true;
    const std::string type = TypeWord(job);
    return type == ClassOf(workload).type || (workload == "interactive" && type == "Build");
  }

  std::string workload_;
  bool all_ = false, no_headers_ = false;
  std::string output_;
};

class ListProjectsAction final : public Action {
 public:
  explicit ListProjectsAction(bool departments) : departments_(departments) {}
  void Declare(Flags& flags) override {
    flags.Text("-o,--output", &output_, "FORMAT", "json, yaml or name");
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (!words.empty()) return Misuse(StrCat("unexpected ", Quote(words[0])));
    SWELL_ASSIGN_OR_RETURN(OutputForm form, ParseOutputForm(output_));
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(ProjectTree tree, ReadProjects(*api));
    if (!form.table()) {
      std::vector<json::SharedValue> objects;
      for (const ProjectView& project : tree.projects) {
        if (project.department == departments_) objects.push_back(project.object);
        if (project.department == departments_ && form.kind == OutputForm::Kind::kName) {
          session.OutLine(project.name);
        }
      }
      if (form.kind != OutputForm::Kind::kName) {
        session.Out(FormatObject(form, MakeList(objects), ""));
      }
      return 0;
    }
    TextTable table({departments_ ? "DEPARTMENT" : "PROJECT",
                     departments_ ? "PART OF" : "DEPARTMENT", "DESERVED GPUs", "ALLOCATED GPUs",
                     "REQUESTED GPUs", "FAIR SHARE", "NODE POOLS"});
    for (const ProjectView& project : tree.projects) {
      if (project.department != departments_) continue;
      const Share& gpu = project.gpu();
      std::string marker = session.Namespace() == project.ns ? " (default)" : "";
      table.Add({project.name + marker, project.parent.empty() ? "-" : project.parent,
                 ShareText(gpu.quota, ShareOf::kGpu), ShareText(gpu.allocated, ShareOf::kGpu),
                 ShareText(gpu.requested, ShareOf::kGpu),
                 gpu.fair_share ? ShareText(*gpu.fair_share, ShareOf::kGpu) : "-",
                 project.pools.empty() ? "all nodes" : Join(project.pools, ",")});
    }
    session.Out(table.ToString());
    return 0;
  }

 private:
  bool departments_;
  std::string output_;
};

class ListNodesAction final : public Action {
 public:
  void Declare(Flags&) override {}
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(std::vector<NodeView> nodes, ReadNodes(*api, words));
    session.Out(NodesTable(session, nodes));
    return 0;
  }
};

class DescribeJobAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Switch("--show-events", &all_events_, "with every event, not only the last ones");
    flags.Switch("--events", &all_events_, "the same, as version 2 calls it");
    flags.Int("--event-limit", &limit_, "N", "with so many of the last events");
    flags.Text("-o,--output", &output_, "FORMAT", "json, yaml or wide");
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (words.empty()) {
      return Misuse("say what: runai describe JOB, runai describe project NAME, or node NAME");
    }
    SWELL_ASSIGN_OR_RETURN(OutputForm form, ParseOutputForm(output_));
    SWELL_ASSIGN_OR_RETURN(Scope scope, FindScope(session, true));
    for (size_t i = 0; i < words.size(); ++i) {
      SWELL_ASSIGN_OR_RETURN(JobView job, FindWorkload(session, scope, words[i]));
      if (!form.table()) {
        session.Out(FormatObject(form, *job.object, job.ResourceName()));
        continue;
      }
      if (i > 0) session.OutLine("");
      SWELL_ASSIGN_OR_RETURN(std::vector<EventView> all, ListEvents(*scope.api, job.ns, ""));
      std::vector<EventView> events;
      for (EventView& event : all) {
        if (ConcernsJob(job, event.object_kind, event.object)) events.push_back(std::move(event));
      }
      session.Out(DescribeWorkload(session, scope, job));
      session.Out(EventsText(session, events, ToShow(events.size())));
    }
    return 0;
  }

 private:
  size_t ToShow(size_t all) const {
    if (limit_ > 0) return std::min(all, static_cast<size_t>(limit_));
    return all_events_ ? all : std::min(all, kEventsShown);
  }

  bool all_events_ = false;
  int64_t limit_ = 0;
  std::string output_;
};

class DescribeProjectAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Text("-o,--output", &output_, "FORMAT", "json or yaml");
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_ASSIGN_OR_RETURN(OutputForm form, ParseOutputForm(output_));
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(ProjectTree tree, ReadProjects(*api));
    if (words.empty() && !session.global().project.empty()) {
      words.push_back(session.global().project);
    }
    if (words.size() != 1) return Misuse("one name expected: runai describe project NAME");
    SWELL_ASSIGN_OR_RETURN(ProjectView project, FindProject(tree, words[0]));
    if (!form.table()) {
      session.Out(FormatObject(form, *project.object, "project.swell.dev/" + project.name));
      return 0;
    }
    session.Out(DescribeProject(session, project));
    if (project.department) return 0;
    Scope scope{.api = api, .tree = std::move(tree), .project = project};
    SWELL_ASSIGN_OR_RETURN(std::vector<JobView> jobs, ListJobs(*api, project.ns));
    session.Out("\nWorkloads:\n");
    session.Out(jobs.empty() ? "  none\n" : JobsTable(session, scope, jobs, true));
    return 0;
  }

 private:
  std::string output_;
};

class DescribeNodeAction final : public Action {
 public:
  void Declare(Flags&) override {}
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(std::vector<NodeView> nodes, ReadNodes(*api, words));
    bool first = true;
    for (const NodeView& node : nodes) {
      SWELL_ASSIGN_OR_RETURN(std::vector<EventView> events,
                             ListEvents(*api, "default", node.name, "Node"));
      if (!first) session.OutLine("");
      first = false;
      session.Out(DescribeNode(session, *node.object, node.pods, events));
    }
    return 0;
  }
};

}  // namespace

Command ListNodesSpec() {
  return {
      .name = "nodes",
      .aliases = {"node"},
      .summary = "Lists the nodes and their GPUs.",
      .usage = "[NODE...]",
      .completes = Completes::kNode,
      .make = Makes<ListNodesAction>(),
  };
}

Command ListSpec(const std::string& workload) {
  Command command{
      .name = "list",
      .aliases = {"ls"},
      .summary = "Lists a project's workloads; projects and nodes, too.",
      .examples = {{"Of the current project", "runai list"},
                   {"Of all projects", "runai list --all-projects"},
                   {"Projects and their quotas", "runai list projects"}},
      .make = [workload] { return std::make_unique<ListJobsAction>(workload); },
  };
  if (!workload.empty()) {
    const std::string noun = workload == "train"         ? "training"
                             : workload == "interactive" ? "workspace"
                                                         : workload;
    command.summary = StrCat("Lists a project's work of this class.");
    command.examples = {{"Of all projects", StrCat("runai ", noun, " list -A")}};
    return command;
  }
  Command jobs{
      .name = "jobs",
      .aliases = {"job", "workloads"},
      .summary = "Lists a project's workloads.",
      .make = Makes<ListJobsAction>(),
  };
  Command projects{
      .name = "projects",
      .aliases = {"project"},
      .summary = "Lists the projects: what they deserve, have and would get.",
      .make = [] { return std::make_unique<ListProjectsAction>(false); },
  };
  Command departments{
      .name = "departments",
      .aliases = {"department"},
      .summary = "Lists the departments: projects that have projects in them.",
      .make = [] { return std::make_unique<ListProjectsAction>(true); },
  };
  command.children = {std::move(jobs), std::move(projects), std::move(departments), ListNodesSpec(),
                      PoolsSpec()};
  return command;
}

Command DescribeSpec() {
  Command command{
      .name = "describe",
      .aliases = {"desc"},
      .summary = "Tells everything about a workload, a project or a node.",
      .usage = "JOB | job JOB | project NAME | node NAME",
      .examples = {{"A workload: its quota, its pods, why it waits",
                    "runai describe train1 -p team-a"},
                   {"With everything that happened to it",
                    "runai describe train1 -p team-a --show-events"},
                   {"A project's quotas", "runai describe project team-a"}},
      .completes = Completes::kJob,
      .make = Makes<DescribeJobAction>(),
  };
  Command job{
      .name = "job",
      .aliases = {"jobs", "workload"},
      .summary = "Tells everything about a workload.",
      .usage = "JOB...",
      .completes = Completes::kJob,
      .make = Makes<DescribeJobAction>(),
  };
  Command project{
      .name = "project",
      .summary = "Tells a project's quotas, and what it has of them.",
      .usage = "NAME",
      .make = Makes<DescribeProjectAction>(),
  };
  Command node{
      .name = "node",
      .summary = "Tells everything about nodes.",
      .usage = "[NAME...]",
      .completes = Completes::kNode,
      .make = Makes<DescribeNodeAction>(),
  };
  command.children = {std::move(job), std::move(project), std::move(node)};
  return command;
}

}  // namespace swell::cli::runai
