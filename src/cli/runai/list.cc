// runai list, describe.
#include <algorithm>

#include "base/strings.h"
#include "cli/objects/describe.h"
#include "cli/print/output.h"
#include "cli/print/text_table.h"
#include "cli/runai/print.h"
#include "cli/runai/runai.h"
#include "cli/views/events_view.h"
#include "cli/views/node_view.h"
#include "cli/views/own_namespaces.h"
#include "json/texts.h"
#include "kube/api/meta/meta.h"

namespace swell::cli::runai {
namespace {

constexpr size_t kEventsShown = 10;

// -o FORMAT, and version 2's words for it.
class FormFlags {
 public:
  void Declare(Flags& flags) {
    flags.Text("-o,--output", &output_, "FORMAT", "output format: table, json, yaml or name");
    flags.Switch("--json", &json_, "same as -o json");
    flags.Switch("--yaml", &yaml_, "same as -o yaml");
    flags.Switch("--table", &table_, "print a table (default)").hidden = true;
  }
  Result<OutputForm> Form() const {
    if (int(json_) + int(yaml_) + int(table_) + int(!output_.empty()) > 1) {
      return Misuse("--output, --json, --yaml and --table exclude each other");
    }
    const std::string said = json_ ? "json" : yaml_ ? "yaml" : output_;
    return ParseOutputForm(said == "table" ? "" : said);
  }

 private:
  std::string output_;
  bool json_ = false, yaml_ = false, table_ = false;
};

// The objects in a form that is not a table.
void PrintObjects(Session& session,
                  const OutputForm& form,
                  const std::vector<json::SharedValue>& objects) {
  if (form.kind != OutputForm::Kind::kName) {
    session.Out(FormatObject(form, MakeList(objects), ""));
    return;
  }
  for (const json::SharedValue& object : objects) session.OutLine(std::string(api::Name(*object)));
}

class ListJobsAction final : public Action {
 public:
  // `listed`: the type that the command is about; empty: any.
  explicit ListJobsAction(std::string listed = {}) : listed_(std::move(listed)) {}
  void Declare(Flags& flags) override {
    flags.Switch("-A,--all-projects", &all_, "all projects").also = {"--all"};
    flags.Text("--state", &state_, "STATUS",
               "only workloads with this status: Running, Pending, ...");
    flags.Text("--type", &type_, "TYPE", "only workloads of this class or framework").hidden = true;
    flags.Int("--limit", &limit_, "N", "show at most N");
    flags.Int("--offset", &offset_, "N", "skip the first N");
    form_.Declare(flags);
    flags.Switch("--no-headers", &no_headers_, "omit the header");
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (!words.empty()) {
      return Misuse(
          StrCat(Quote(words[0]), ": expected jobs, projects, departments, nodes or node-pools"));
    }
    SWELL_ASSIGN_OR_RETURN(OutputForm form, form_.Form());
    SWELL_RETURN_IF_ERROR(CheckState());
    SWELL_ASSIGN_OR_RETURN(const WorkloadType listed, FindType(listed_));
    SWELL_ASSIGN_OR_RETURN(const WorkloadType type, FindType(type_));
    SWELL_ASSIGN_OR_RETURN(Scope scope,
                           all_ ? All(session) : FindScope(session, NoProject::kIsRefused));
    SWELL_ASSIGN_OR_RETURN(std::vector<JobView> jobs, ListWorkloads(session, scope));
    std::erase_if(jobs, [this, &listed, &type](const JobView& job) {
      return !IsOf(job, listed) || !IsOf(job, type) || (!state_.empty() && !IsInState(job));
    });
    const size_t skipped =
        std::min(jobs.size(), static_cast<size_t>(std::max<int64_t>(0, offset_)));
    jobs.erase(jobs.begin(), jobs.begin() + static_cast<std::ptrdiff_t>(skipped));
    if (limit_ > 0 && jobs.size() > static_cast<size_t>(limit_)) {
      jobs.erase(jobs.begin() + static_cast<std::ptrdiff_t>(limit_), jobs.end());
    }
    if (!form.table()) {
      std::vector<json::SharedValue> objects;
      for (const JobView& job : jobs) objects.push_back(job.object);
      PrintObjects(session, form, objects);
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
  // A job that has failed says how in its status word.
  bool IsInState(const JobView& job) const {
    return ToLower(job.over() ? job.status : StatusWord(job)) == ToLower(state_);
  }

  static Result<Scope> All(Session& session) {
    Scope scope;
    SWELL_ASSIGN_OR_RETURN(scope.api, session.Server());
    SWELL_ASSIGN_OR_RETURN(scope.tree, ReadProjects(*scope.api));
    scope.all = true;
    return scope;
  }

  // What version 2 calls a type: a class of work, a part of the training, or a kind of jobs.
  enum class Training { kAny, kStandard, kDistributed };
  struct WorkloadType {
    std::string_view name, workload, kind;
    Training training = Training::kAny;
  };
  // An empty name is every type.
  static Result<WorkloadType> FindType(const std::string& name) {
    static constexpr WorkloadType kTypes[] = {{"training", "train", ""},
                                              {"train", "train", ""},
                                              {"standard", "train", "", Training::kStandard},
                                              {"distributed", "train", "", Training::kDistributed},
                                              {"workspace", "interactive", ""},
                                              {"interactive", "interactive", ""},
                                              {"inference", "inference", ""},
                                              {"pytorch", "", "PyTorchJob"},
                                              {"tensorflow", "", "TFJob"},
                                              {"tf", "", "TFJob"},
                                              {"mpi", "", "MPIJob"},
                                              {"xgboost", "", "XGBoostJob"},
                                              {"jax", "", "JAXJob"}};
    if (name.empty()) return WorkloadType{};
    for (const WorkloadType& one : kTypes) {
      if (one.name == ToLower(name)) return one;
    }
    return Misuse(StrCat("--type ", Quote(name),
                         ": expected training, standard, distributed, workspace, inference, "
                         "pytorch, tensorflow, mpi, xgboost or jax"));
  }

  // A workload's own words, and those of pods that Kubernetes has for what goes wrong.
  Status CheckState() const {
    constexpr std::string_view kStates[] = {"pending", "running", "succeeded", "failed",
                                            "suspended"};
    constexpr std::string_view kOfPods[] = {
        "completed",        "terminating", "containercreating", "crashloopbackoff", "errimagepull",
        "imagepullbackoff", "error",       "oomkilled",         "podinitializing",  "preempted",
        "restarting"};
    const std::string state = ToLower(state_);
    const auto is = [&state](std::string_view known) { return known == state; };
    if (state.empty() || std::ranges::any_of(kStates, is) || std::ranges::any_of(kOfPods, is)) {
      return Status::Ok();
    }
    return WrongValue("--state", state_,
                      {"pending", "running", "succeeded", "failed", "suspended"});
  }

  static bool IsOf(const JobView& job, const WorkloadType& type) {
    const std::string_view framework = json::GetString(*job.object, {"spec", "jobType"});
    const bool distributed = job.kind->kind == "DistributedWorkload";
    if (!type.kind.empty() && (distributed ? framework : job.kind->kind) != type.kind) return false;
    if (type.training != Training::kAny &&
        (!distributed && IsStandard(*job.kind)) != (type.training == Training::kStandard)) {
      return false;
    }
    if (type.workload.empty()) return true;
    // Workspaces are those that may be preempted and those that may not.
    const std::string word = TypeWord(job);
    return word == ClassOf(type.workload).type ||
           (type.workload == "interactive" && word == "Build");
  }
  // What runai submit makes: with one pod, or with --completions; and Run:ai's own manifests.
  static bool IsStandard(const JobKindInfo& kind) {
    return kind.kind == "TrainingJob" || kind.kind == "Job" || !kind.workload.empty();
  }

  std::string listed_;
  bool all_ = false, no_headers_ = false;
  int64_t limit_ = 0, offset_ = 0;
  std::string state_, type_;
  FormFlags form_;
};

class ListProjectsAction final : public Action {
 public:
  explicit ListProjectsAction(bool departments) : departments_(departments) {}
  void Declare(Flags& flags) override { form_.Declare(flags); }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (!words.empty()) return Misuse(StrCat("unexpected ", Quote(words[0])));
    SWELL_ASSIGN_OR_RETURN(OutputForm form, form_.Form());
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(ProjectTree tree, ReadProjects(*api));
    if (!form.table()) {
      std::vector<json::SharedValue> objects;
      for (const ProjectView& project : tree.projects) {
        if (project.department == departments_) objects.push_back(project.object);
      }
      PrintObjects(session, form, objects);
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
  FormFlags form_;
};

class ListNodesAction final : public Action {
 public:
  void Declare(Flags& flags) override { form_.Declare(flags); }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_ASSIGN_OR_RETURN(OutputForm form, form_.Form());
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(std::vector<NodeView> nodes, ReadShownNodes(session, *api, words));
    if (form.table()) {
      session.Out(NodesTable(session, nodes));
      return 0;
    }
    std::vector<json::SharedValue> objects;
    for (const NodeView& node : nodes) objects.push_back(node.object);
    PrintObjects(session, form, objects);
    return 0;
  }

 private:
  FormFlags form_;
};

class ListClaimsAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    form_.Declare(flags);
    flags.Switch("--no-headers", &no_headers_, "omit the header");
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (!words.empty()) return Misuse(StrCat("unexpected ", Quote(words[0])));
    SWELL_ASSIGN_OR_RETURN(OutputForm form, form_.Form());
    SWELL_ASSIGN_OR_RETURN(Scope scope, FindScope(session, NoProject::kIsRefused));
    SWELL_ASSIGN_OR_RETURN(const std::vector<json::SharedValue> claims,
                           scope.api->List(client::resources::kPersistentVolumeClaims, scope.ns()));
    if (!form.table()) {
      PrintObjects(session, form, claims);
      return 0;
    }
    TextTable table(no_headers_ ? std::vector<std::string>{}
                                : std::vector<std::string>{"NAME", "STATUS", "SIZE", "ACCESS MODE",
                                                           "STORAGE CLASS", "VOLUME", "AGE"},
                    2);
    auto text = [](const json::Value& of, json::Path path) {
      return OrDash(std::string(json::GetString(of, path)));
    };
    for (const json::SharedValue& claim : claims) {
      const std::vector<std::string> modes =
          json::Texts(json::GetArray(*claim, {"spec", "accessModes"}));
      const auto made = api::ParseTime(api::CreationTimestamp(*claim));
      table.Add({std::string(api::Name(*claim)), text(*claim, {"status", "phase"}),
                 text(*claim, {"spec", "resources", "requests", "storage"}),
                 OrDash(Join(modes, ",")), text(*claim, {"spec", "storageClassName"}),
                 text(*claim, {"spec", "volumeName"}),
                 made ? api::HumanDuration(session.Now() - *made) : "-"});
    }
    session.Out(table.ToString());
    return 0;
  }

 private:
  FormFlags form_;
  bool no_headers_ = false;
};

class DescribeJobAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Switch("--show-events", &all_events_, "show all events");
    flags.Switch("--events", &all_events_, "same as --show-events");
    flags.Int("--event-limit", &limit_, "N", "number of events to show (-1: all)");
    flags.Text("-o,--output", &output_, "FORMAT", "output format: table, json, yaml or wide");
    // Parts that version 2 names are shown anyway.
    for (const char* part : {"--general", "--compute", "--pods", "--networks", "--containers"}) {
      flags.Switch(part, &shown_, "shown anyway").hidden = true;
    }
    for (const char* sort : {"--type", "--framework"}) {
      flags.Text(sort, &type_, "TYPE", "accepted; the name finds the workload").hidden = true;
    }
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (words.empty()) {
      return Misuse(
          "expected a name: runai describe WORKLOAD, runai describe project NAME or runai describe "
          "node "
          "NAME");
    }
    if (!shown_) return Misuse("runai describe always shows all parts");
    SWELL_ASSIGN_OR_RETURN(OutputForm form, ParseOutputForm(output_ == "table" ? "" : output_));
    SWELL_ASSIGN_OR_RETURN(Scope scope, FindScope(session, NoProject::kMeansAll));
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
        if (ConcernsJob(job, event)) events.push_back(std::move(event));
      }
      session.Out(DescribeWorkload(session, scope, job));
      session.Out(EventsText(session, events, ToShow(events.size())));
    }
    return 0;
  }

 private:
  size_t ToShow(size_t all) const {
    if (limit_ > 0) return std::min(all, static_cast<size_t>(limit_));
    return all_events_ || limit_ < 0 ? all : std::min(all, kEventsShown);
  }

  bool all_events_ = false, shown_ = true;
  int64_t limit_ = 0;
  std::string output_, type_;
};

class DescribeProjectAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Text("-o,--output", &output_, "FORMAT", "output format: json or yaml");
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_ASSIGN_OR_RETURN(OutputForm form, ParseOutputForm(output_));
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(ProjectTree tree, ReadProjects(*api));
    if (words.empty() && !session.global().project.empty()) {
      words.push_back(session.global().project);
    }
    if (words.size() != 1) return Misuse("expected one name: runai describe project NAME");
    SWELL_ASSIGN_OR_RETURN(ProjectView project, FindProject(tree, words[0]));
    if (!form.table()) {
      session.Out(FormatObject(form, *project.object, "project.swell.dev/" + project.name));
      return 0;
    }
    session.Out(DescribeProject(session, project));
    if (project.department) return 0;
    Scope scope{.api = api, .tree = std::move(tree), .project = project};
    const auto jobs = ListJobs(*api, project.ns);
    // Everybody may read projects; the work in them is for their members.
    const bool hidden = jobs.status().code() == Code::kForbidden;
    if (!jobs.ok() && !hidden) return jobs.status();
    session.Out("\nWorkloads:\n");
    if (hidden) {
      session.OutLine(StrCat("  you may not see those of namespace ", project.ns));
    } else {
      session.Out(jobs->empty() ? "  none\n" : JobsTable(session, scope, *jobs, true));
    }
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
    SWELL_ASSIGN_OR_RETURN(std::vector<NodeView> nodes, ReadShownNodes(session, *api, words));
    bool first = true;
    for (const NodeView& node : nodes) {
      SWELL_ASSIGN_OR_RETURN(std::vector<EventView> events,
                             ListShownEvents(session, *api, node.name, "Node", ""));
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
      .summary = "List nodes and their GPUs.",
      .usage = "[NODE...]",
      .completes = Completes::kNode,
      .make = Makes<ListNodesAction>(),
  };
}

Command ListProjectsSpec(std::string name) {
  return {
      .name = std::move(name),
      .summary = "List projects with quota, use and fair share.",
      .make = [] { return std::make_unique<ListProjectsAction>(false); },
  };
}

Command ListClaimsSpec() {
  return {
      .name = "list",
      .aliases = {"ls"},
      .summary = "List the volume claims of a project.",
      .examples = {{"The current project", "runai pvc list"}},
      .make = Makes<ListClaimsAction>(),
  };
}

Command ListSpec(const std::string& type, const std::string& noun) {
  Command command{
      .name = "list",
      .aliases = {"ls"},
      .summary = "List workloads, projects or nodes.",
      .examples = {{"The current project", "runai list"},
                   {"All projects", "runai list --all-projects"},
                   {"Projects and their quotas", "runai list projects"}},
      .make = [type] { return std::make_unique<ListJobsAction>(type); },
  };
  if (!type.empty()) {
    command.summary = "List workloads of this type.";
    command.examples = {{"All projects", StrCat("runai ", noun, " list -A")}};
    return command;
  }
  Command jobs{
      .name = "jobs",
      .aliases = {"job", "workloads"},
      .summary = "List workloads of a project.",
      .make = Makes<ListJobsAction>(),
  };
  Command projects = ListProjectsSpec("projects");
  projects.aliases = {"project"};
  Command departments{
      .name = "departments",
      .aliases = {"department"},
      .summary = "List departments.",
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
      .summary = "Describe a workload, a project or a node in detail.",
      .usage = "WORKLOAD | job WORKLOAD | project NAME | node NAME",
      .examples = {{"A workload: quota, pods, reason for waiting",
                    "runai describe train1 -p team-a"},
                   {"With all its events", "runai describe train1 -p team-a --show-events"},
                   {"A project's quotas", "runai describe project team-a"}},
      .completes = Completes::kJob,
      .make = Makes<DescribeJobAction>(),
  };
  Command job{
      .name = "job",
      .aliases = {"jobs", "workload"},
      .summary = "Describe a workload in detail.",
      .usage = "WORKLOAD...",
      .completes = Completes::kJob,
      .make = Makes<DescribeJobAction>(),
  };
  Command project{
      .name = "project",
      .summary = "Show quotas and use of a project.",
      .usage = "NAME",
      .make = Makes<DescribeProjectAction>(),
  };
  Command node{
      .name = "node",
      .summary = "Describe nodes in detail.",
      .usage = "[NAME...]",
      .completes = Completes::kNode,
      .make = Makes<DescribeNodeAction>(),
  };
  command.children = {std::move(job), std::move(project), std::move(node)};
  return command;
}

}  // namespace swell::cli::runai
