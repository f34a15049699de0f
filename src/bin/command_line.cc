#include "bin/command_line.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <CLI/CLI.hpp>

#include "cli/cluster.h"

namespace swell {

int FailCommand(const Status& status) {
  std::fprintf(stderr, "swell: %s\n", status.message().c_str());
  return 1;
}

std::optional<int> ParseCommandLine(CLI::App& app, const std::vector<std::string>& arguments) {
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    std::printf("%s", app.help().c_str());
    return 0;
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "swell %s: %s\nSee: swell %s --help\n", app.get_name().c_str(),
                 error.what(), app.get_name().c_str());
    return 2;
  }
  return std::nullopt;
}

std::string Environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? value : "";
}

void AddLogLevel(CLI::App& app, std::string& level) {
  app.add_option("--log-level", level, "debug, info, warning or error")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}))
      ->type_name("LEVEL");
}

LogLevel LogLevelOf(const std::string& text) {
  if (text == "debug") return LogLevel::kDebug;
  if (text == "warning") return LogLevel::kWarning;
  if (text == "error") return LogLevel::kError;
  return LogLevel::kInfo;
}

void AddDataDir(CLI::App& app, std::string& data_dir) {
  app.add_option("--data-dir", data_dir,
                 "where the cluster keeps everything (default $SWELL_DATA_DIR, else ~/.swell)")
      ->type_name("DIR");
}

std::string FindSdk() {
  std::error_code error;
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return {};
  for (std::filesystem::path dir = self.parent_path(); dir.has_relative_path();
       dir = dir.parent_path()) {
    for (const char* sub : {"sdk/python", "share/swell/python"}) {
      if (std::filesystem::exists(dir / sub / "swell" / "__init__.py", error)) {
        return (dir / sub).string();
      }
    }
  }
  return {};
}

void AddRemoteFlags(CLI::App& app, RemoteFlags& flags) {
  app.add_option("--kubeconfig", flags.kubeconfig,
                 "how to reach the cluster (default: $KUBECONFIG, else the service account of the "
                 "pod this runs in, else this machine's cluster, else ~/.kube/config)")
      ->type_name("FILE");
  app.add_option("--context", flags.context, "a context of the kubeconfig")->type_name("NAME");
}

Result<client::ClusterAccess> FindCluster(const RemoteFlags& flags) {
  if (flags.kubeconfig.empty() && Environment("KUBECONFIG").empty()) {
    auto access = client::InClusterAccess(Environment, std::string(client::kServiceAccountDir));
    if (access) return std::move(*access);
  }
  SWELL_ASSIGN_OR_RETURN(
      cli::FoundKubeconfig found,
      cli::FindKubeconfig({.kubeconfig = flags.kubeconfig, .context = flags.context}, Environment));
  return client::LoadKubeconfig(found.path, flags.context);
}

void AddNodeFlags(CLI::App& app, NodePlan& plan) {
  app.add_option("--nodes", plan.nodes, "virtual nodes (default: one node, this machine as it is)")
      ->type_name("N");
  app.add_option("--gpus-per-node", plan.gpus_per_node, "GPUs of each virtual node")
      ->type_name("N");
  app.add_option("--cpus", plan.cpus, "CPUs of each node (default: the machine's)")->type_name("N");
  app.add_option("--memory", plan.memory, "memory of each node (default: the machine's)")
      ->type_name("SIZE");
  app.add_option("--control-plane-nodes", plan.control_plane_nodes,
                 "virtual control-plane nodes, without GPUs")
      ->type_name("N");
  app.add_option("--system-reserved", plan.system_reserved,
                 "kept off what pods may use on each node, as cpu=80m,memory=500Mi")
      ->type_name("LIST");
}

}  // namespace swell
