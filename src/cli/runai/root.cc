// The whole of `runai`.
#include <algorithm>

#include "base/strings.h"
#include "cli/commands.h"
#include "cli/runai/runai.h"

namespace swell::cli {
namespace {

// Version 2 says the class first: runai training submit.
Command Workload(const std::string& name, const std::string& type, std::string summary) {
  return {
      .name = name,
      .summary = std::move(summary),
      .hidden = true,
      .children = {runai::ListSpec(type, name), runai::DescribeSpec(), runai::DeleteSpec(),
                   runai::SuspendSpec(), runai::ResumeSpec(), runai::LogsSpec(), runai::ExecSpec(),
                   runai::AttachSpec(), runai::BashSpec(), runai::PortForwardSpec()},
  };
}

Command Training() {
  Command training = Workload("training", "train", "Manage training workloads.");
  Command standard = runai::TrainingPart(training, "standard");
  standard.children.push_back(runai::SubmitSpec("train"));
  std::vector<Command> frameworks = runai::FrameworkSpecs(training);
  training.children.push_back(runai::SubmitSpec("train"));
  training.children.push_back(std::move(standard));
  for (Command& framework : frameworks) training.children.push_back(std::move(framework));
  return training;
}

Command Submitted(Command workload, const std::string& class_name) {
  workload.children.push_back(runai::SubmitSpec(class_name));
  return workload;
}

Command Inference() {
  Command inference =
      Submitted(Workload("inference", "inference", "Manage inference workloads."), "inference");
  inference.children.push_back(runai::UpdateSpec());
  return inference;
}

// `runai node describe` beside `runai describe node`.
Command DescribeOf(const std::string& noun) {
  Command describe = *runai::DescribeSpec().Find(noun);
  describe.name = "describe";
  return describe;
}

// `runai project set` beside what `swell project` has, and the list as `runai list projects`.
Command Projects() {
  Command projects = ProjectCommandSpec("runai");
  projects.children.push_back(runai::SetProjectSpec());
  projects.children.push_back(DescribeOf("project"));
  for (Command& child : projects.children) {
    if (child.name == "list") child = runai::ListProjectsSpec("list");
  }
  return projects;
}

Command Nodes() {
  Command list = runai::ListNodesSpec();
  list.name = "list";
  list.aliases = {};
  return {.name = "node",
          .aliases = {"nodes"},
          .summary = "Show nodes.",
          .hidden = true,
          .children = {std::move(list), DescribeOf("node")}};
}

Command Claims() {
  return {.name = "pvc",
          .aliases = {"pvcs"},
          .summary = "Show volume claims.",
          .hidden = true,
          .children = {runai::ListClaimsSpec()}};
}

Command Departments() {
  Command list = *runai::ListSpec().Find("departments");
  list.name = "list";
  list.aliases = {"ls"};
  return {.name = "department",
          .aliases = {"departments"},
          .summary = "Show departments.",
          .hidden = true,
          .children = {std::move(list)}};
}

// Commands for Run:ai's own service, which does not exist here.
struct Absent {
  const char* parent;  // "": runai itself
  const char* name;
  const char* instead;
  // Not an error, so that scripts that call it continue.
  bool done = false;
};

class Missing final : public Action {
 public:
  explicit Missing(const Absent& what) : what_(what) {}
  void Declare(Flags&) override {}
  Result<int> Run(Session& session, std::vector<std::string>) override {
    const std::string text = StrCat(what_.name, " is not needed: ", what_.instead);
    if (!what_.done) return Misuse(text);
    session.ErrLine(StrCat("runai: ", text));
    return 0;
  }

 private:
  const Absent& what_;
};

void AddMissing(Command& root) {
  constexpr const char* kClusters =
      "the kubeconfig selects the cluster; runai cluster-info shows it";
  static constexpr Absent kMissing[] = {
      {"", "login", "the kubeconfig identifies you; swell user create adds users", true},
      {"", "logout", "the kubeconfig identifies you; unset KUBECONFIG to log out", true},
      {"", "cluster", kClusters, true},
      {"", "kubeconfig", "the file named by $KUBECONFIG is used", true},
      {"", "report", "use swell report, and Prometheus for metrics"},
      {"", "update", "runai is a part of swell and is updated with it", true},
      {"", "upgrade", "runai is a part of swell and is updated with it", true},
      {"", "template", "runai submit --dry-run -o yaml prints a manifest to apply again"},
      {"", "diagnostics",
       "swell health shows what is wrong, and swell why JOB says why a job waits or failed"},
      {"list", "clusters", kClusters, true},
      {"config", "cluster", "kubectl config use-context selects another cluster"},
      {"config", "set", "runai config project NAME sets the project, the kubeconfig the cluster"},
  };
  for (const Absent& one : kMissing) {
    Command missing;
    missing.name = one.name;
    missing.summary = "Not needed.";
    missing.hidden = true;
    missing.raw = true;
    missing.make = [&one] { return std::make_unique<Missing>(one); };
    auto parent = std::find_if(root.children.begin(), root.children.end(),
                               [&one](const Command& child) { return child.name == one.parent; });
    (parent == root.children.end() ? root : *parent).children.push_back(std::move(missing));
  }
}

}  // namespace

Command RunaiRoot() {
  Command root{
      .name = "runai",
      .summary = "Run:ai's commands for workloads and projects, provided by Swell.",
      .examples = {{"Train on eight GPUs",
                    "runai submit train1 -p team-a -i pytorch/pytorch:latest -g 8 --command "
                    "\"python a.py\""},
                   {"Show its status", "runai describe train1 -p team-a"},
                   {"GPU use of the nodes", "runai cluster-info"}},
      .notes =
          "The commands of version 2 work, too. They name the class of work first: runai training "
          "submit, runai workspace list, runai inference describe, runai workload list.",
      .children = {runai::SubmitSpec(),
                   runai::SubmitDistSpec(),
                   runai::ListSpec(),
                   runai::DescribeSpec(),
                   runai::DeleteSpec(),
                   runai::SuspendSpec(),
                   runai::ResumeSpec(),
                   runai::LogsSpec(),
                   runai::ExecSpec(),
                   runai::AttachSpec(),
                   runai::BashSpec(),
                   runai::PortForwardSpec(),
                   runai::ClusterInfoSpec(),
                   runai::GetSpec(),
                   runai::TopSpec(),
                   runai::ConfigSpec(),
                   Projects(),
                   NodePoolCommandSpec("runai"),
                   runai::WhoamiSpec(),
                   runai::VersionSpec(),
                   CompletionCommandSpec("runai"),
                   CompleteCommandSpec(),
                   Training(),
                   Submitted(Workload("workspace", "interactive", "Manage workspaces."),
                             "interactive"),
                   Inference(),
                   Workload("workload", "", "Manage workloads of every class."),
                   Nodes(),
                   Departments(),
                   Claims()},
  };
  // Version 2 has these beside `training` as well.
  for (const char* name : {"pytorch", "tensorflow", "xgboost", "distributed", "mpi", "jax"}) {
    root.children.push_back(*root.Find("training")->Find(name));
    root.children.back().hidden = true;
  }
  // The name that it had at first.
  root.children.push_back(*root.Find("submit-dist")->Find("mpi"));
  root.children.back().name = "submit-mpi";
  root.children.back().hidden = true;
  AddMissing(root);
  for (Command& child : root.children) child.group.clear();
  return root;
}

}  // namespace swell::cli
