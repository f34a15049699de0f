// The whole of `runai`.
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/runai/runai.h"

namespace swell::cli {
namespace {

// Version 2 says the class first: runai training submit.
Command Workload(const std::string& name, const std::string& workload, std::string summary) {
  return {
      .name = name,
      .summary = std::move(summary),
      .hidden = true,
      .children = {runai::ListSpec(workload), runai::DescribeSpec(), runai::DeleteSpec(),
                   runai::SuspendSpec(true), runai::SuspendSpec(false), runai::LogsSpec(),
                   runai::ExecSpec(), runai::AttachSpec(), runai::BashSpec(),
                   runai::PortForwardSpec()},
  };
}

Command Training() {
  Command training = Workload("training", "train", "Training: submit, list, describe, delete.");
  Command standard = training;
  standard.name = "standard";
  standard.children.push_back(runai::SubmitSpec("train"));
  Command pytorch = training;
  pytorch.name = "pytorch";
  pytorch.children.push_back(runai::SubmitPyTorchSpec());
  training.children.push_back(runai::SubmitSpec("train"));
  training.children.push_back(std::move(standard));
  training.children.push_back(std::move(pytorch));
  return training;
}

Command Submitted(Command workload, const std::string& class_name) {
  workload.children.push_back(runai::SubmitSpec(class_name));
  return workload;
}

// `runai project set` beside what `swell project` has.
Command Projects() {
  Command projects = ProjectCommandSpec("runai");
  projects.children.push_back(runai::SetProjectSpec());
  return projects;
}

Command Nodes() {
  Command list = runai::ListNodesSpec();
  list.name = "list";
  list.aliases = {};
  return {.name = "node", .summary = "Nodes: list.", .hidden = true, .children = {std::move(list)}};
}

// What Run:ai's own service does, which there is none of.
class Missing final : public Action {
 public:
  Missing(std::string name, std::string instead)
      : name_(std::move(name)), instead_(std::move(instead)) {}
  void Declare(Flags&) override {}
  Result<int> Run(Session&, std::vector<std::string>) override {
    return Misuse(StrCat(name_, " is not needed: ", instead_));
  }

 private:
  std::string name_, instead_;
};

void AddMissing(Command& root) {
  struct One {
    const char* name;
    const char* instead;
  };
  static constexpr One kMissing[] = {
      {"login", "the kubeconfig says who you are; swell user create makes people"},
      {"logout", "the kubeconfig says who you are; unset KUBECONFIG to be nobody"},
      {"cluster", "the kubeconfig says which cluster; runai cluster-info shows it"},
      {"update", "runai is a part of swell and comes with it"},
      {"upgrade", "runai is a part of swell and comes with it"},
      {"template", "runai submit --dry-run -o yaml prints a manifest to keep and apply"},
  };
  for (const One& one : kMissing) {
    Command missing;
    missing.name = one.name;
    missing.summary = "Not needed.";
    missing.hidden = true;
    missing.raw = true;
    missing.make = [one] { return std::make_unique<Missing>(one.name, one.instead); };
    root.children.push_back(std::move(missing));
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
                   {"See how it does", "runai describe train1 -p team-a"},
                   {"Who has the GPUs", "runai cluster-info"}},
      .children = {runai::SubmitSpec(),
                   runai::SubmitDistSpec(),
                   runai::ListSpec(),
                   runai::DescribeSpec(),
                   runai::DeleteSpec(),
                   runai::SuspendSpec(true),
                   runai::SuspendSpec(false),
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
                   Submitted(Workload("workspace", "interactive", "Workspaces."), "interactive"),
                   Submitted(Workload("inference", "inference", "Inference."), "inference"),
                   Workload("workload", "", "Workloads of every class."),
                   Nodes()},
  };
  AddMissing(root);
  for (Command& child : root.children) child.group.clear();
  return root;
}

}  // namespace swell::cli
