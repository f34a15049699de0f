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
      .children = {runai::SubmitSpec(workload), runai::ListSpec(), runai::DescribeSpec(),
                   runai::DeleteSpec(), runai::SuspendSpec(true), runai::SuspendSpec(false),
                   runai::LogsSpec()},
  };
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
                   runai::BashSpec(),
                   runai::PortForwardSpec(),
                   runai::ClusterInfoSpec(),
                   runai::GetSpec(),
                   runai::TopSpec(),
                   runai::ConfigSpec(),
                   ProjectCommandSpec("runai"),
                   NodePoolCommandSpec("runai"),
                   runai::WhoamiSpec(),
                   runai::VersionSpec(),
                   CompletionCommandSpec("runai"),
                   CompleteCommandSpec(),
                   Workload("training", "train", "Training: submit, list, describe, delete."),
                   Workload("workspace", "interactive", "Workspaces: submit, list, describe."),
                   Workload("inference", "inference", "Inference: submit, list, describe.")},
  };
  for (Command& child : root.children) child.group.clear();
  return root;
}

}  // namespace swell::cli
