#include "bin/command_line.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/strings.h"
#include "cli/cluster.h"
#include "scheduling/scheduler_settings.h"

namespace swell {
namespace {

constexpr int kHelpColumns = 100;

}  // namespace

int FailCommand(const Status& status) {
  std::fprintf(stderr, "swell: %s\n", status.message().c_str());
  return 1;
}

int Misused(const cli::Command& command, const std::string& message) {
  std::fprintf(stderr, "swell %s: %s\nSee: swell %s --help\n", command.name.c_str(),
               message.c_str(), command.name.c_str());
  return 2;
}

std::optional<int> ParseCommandLine(const cli::Command& command,
                                    cli::Flags& flags,
                                    const std::vector<std::string>& arguments,
                                    std::vector<std::string>* words) {
  bool help = false;
  flags.Switch("-h,--help", &help, "this text");
  std::vector<std::string> found;
  Status parsed = flags.Parse(arguments, &found);
  if (help) {
    std::printf(
        "%s",
        cli::CommandHelp(command, StrCat("swell ", command.name), &flags, kHelpColumns).c_str());
    return 0;
  }
  if (!parsed.ok()) return Misused(command, parsed.message());
  if (words != nullptr) {
    *words = std::move(found);
  } else if (!found.empty()) {
    return Misused(command, StrCat("unexpected word ", Quote(found[0])));
  }
  return std::nullopt;
}

std::string Environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? value : "";
}

void AddLogLevel(cli::Flags& flags, std::string& level) {
  flags.Choice("--log-level", &level, "LEVEL", {"debug", "info", "warning", "error"},
               "debug, info, warning or error (default info)");
}

LogLevel LogLevelOf(const std::string& text) {
  if (text == "debug") return LogLevel::kDebug;
  if (text == "warning") return LogLevel::kWarning;
  if (text == "error") return LogLevel::kError;
  return LogLevel::kInfo;
}

void AddDataDir(cli::Flags& flags, std::string& data_dir) {
  flags.Text("--data-dir", &data_dir, "DIR",
             "where the cluster keeps everything (default $SWELL_DATA_DIR, else ~/.swell)");
}

void AddSettingsFlag(cli::Flags& flags, std::vector<std::string>& settings) {
  flags.List("--set", &settings, "KEY=VALUE",
             "a setting of the scheduler, repeatable: staleGracePeriod=60s, reserveAfter=30m, "
             "movePause=10m, pastUseShare=0.5, pastUseHalfLife=168h");
}

Status ReadSettings(const std::vector<std::string>& texts, sched::Settings& settings) {
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) {
      return {Code::kBadRequest, StrCat("--set ", Quote(text), " is not KEY=VALUE")};
    }
    SWELL_RETURN_IF_ERROR(controllers::SetSetting(std::string_view(text).substr(0, equals),
                                                  std::string_view(text).substr(equals + 1),
                                                  settings));
  }
  return Status::Ok();
}

void AddRecordFlag(cli::Flags& flags, int64_t& mib) {
  flags.Int(
      "--record-cycles", &mib, "MIB",
      "how much of the scheduler's last cycles is kept for swell replay (default 64; 0: none)");
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
  std::fprintf(stderr,
               "swell: warning: the Python SDK is neither at sdk/python nor at share/swell/python "
               "above %s: training scripts in pods do without it and resume from nothing\n",
               self.c_str());
  return {};
}

void AddRemoteFlags(cli::Flags& flags, RemoteFlags& to) {
  flags.Text("--kubeconfig", &to.kubeconfig, "FILE",
             "how to reach the cluster (default: $KUBECONFIG, else the service account of the pod "
             "this runs in, else this machine's cluster, else ~/.kube/config)");
  flags.Text("--context", &to.context, "NAME", "a context of the kubeconfig");
}

Result<client::ClusterAccess> FindCluster(const RemoteFlags& flags) {
  if (flags.kubeconfig.empty() && Environment("KUBECONFIG").empty()) {
    auto access = client::InClusterAccess(Environment, std::string(client::kServiceAccountDir));
    if (access) return std::move(*access);
  }
  SWELL_ASSIGN_OR_RETURN(
      const std::string path,
      cli::FindKubeconfig({.kubeconfig = flags.kubeconfig, .context = flags.context}, Environment));
  return client::LoadKubeconfig(path, flags.context);
}

void AddNodeFlags(cli::Flags& flags, NodePlan& plan) {
  flags.Int("--nodes", &plan.nodes, "N",
            "virtual nodes (default: one node, this machine as it is)");
  flags.Int("--gpus-per-node", &plan.gpus_per_node, "N", "GPUs of each virtual node");
  flags.Text("--cpus", &plan.cpus, "N", "CPUs of each node (default: the machine's)");
  flags.Text("--memory", &plan.memory, "SIZE", "memory of each node (default: the machine's)");
  flags.Int("--control-plane-nodes", &plan.control_plane_nodes, "N",
            "virtual control-plane nodes, without GPUs");
  flags.Text("--system-reserved", &plan.system_reserved, "LIST",
             "kept off what pods may use on each node, as cpu=80m,memory=500Mi");
}

}  // namespace swell
