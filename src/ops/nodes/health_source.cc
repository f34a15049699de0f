#include "ops/nodes/health_source.h"

#include <sys/stat.h>

#include <climits>
#include <cstdlib>

#include "base/strings.h"
#include "kube/process/machine/gpu_nodes.h"
#include "kube/process/machine/machine_health.h"

namespace swell::ops {
namespace {

// With more nodes in one process, scripts run once for all of them.
constexpr size_t kNodesWithScripts = 16;

}  // namespace

void AddHealthFlag(cli::Flags& flags, HealthPlan& plan) {
  flags.Text("--health-checks", &plan.scripts_dir, "DIR",
             "directory of programs that check the nodes' health: exit code 0 is good, 1 bad, 2 "
             "unknown");
}

Status CheckHealthPlan(HealthPlan& plan) {
  if (plan.scripts_dir.empty()) return Status::Ok();
  struct stat info;
  char real[PATH_MAX];
  if (::realpath(plan.scripts_dir.c_str(), real) == nullptr || ::stat(real, &info) != 0 ||
      !S_ISDIR(info.st_mode)) {
    return cli::Misuse(StrCat("--health-checks ", Quote(plan.scripts_dir), ": not a directory"));
  }
  if ((info.st_mode & S_IWOTH) != 0 && (info.st_mode & S_ISVTX) == 0) {
    return cli::Misuse(StrCat("--health-checks ", Quote(plan.scripts_dir),
                              ": every user of this machine may write there; take that away: "
                              "chmod o-w ",
                              plan.scripts_dir));
  }
  plan.scripts_dir = real;
  return Status::Ok();
}

std::unique_ptr<node::HealthSource> MakeHealthSource(Executor& core,
                                                     const HealthPlan& plan,
                                                     const std::string& data_dir,
                                                     bool has_processes,
                                                     const std::vector<node::NodeConfig>& nodes) {
  process::MachineHealthOptions options{.scripts_dir = plan.scripts_dir,
                                        .scripts_by_node = nodes.size() <= kNodesWithScripts};
  if (has_processes) options.data_dir = data_dir;
  for (const node::NodeConfig& node : nodes) {
    // Only one node can be this machine with its own GPUs.
    if (!process::RealGpus(node.gpu_device_ids).empty()) options.gpu_ids = node.gpu_device_ids;
  }
  if (options.data_dir.empty() && options.scripts_dir.empty()) return nullptr;
  return std::make_unique<process::MachineHealth>(core, std::move(options));
}

}  // namespace swell::ops
