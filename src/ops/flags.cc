#include "ops/flags.h"

#include <arpa/inet.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/host_port.h"
#include "base/strings.h"
#include "cli/cluster.h"
#include "kube/process/network/pod_cidr.h"
#include "manager/manager.h"
#include "scheduling/scheduler_settings.h"

namespace swell::ops {

Status CheckWords(const std::vector<std::string>& words, size_t most) {
  if (words.size() <= most) return Status::Ok();
  return cli::Misuse(StrCat("unexpected argument ", Quote(words[most])));
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
             "data directory of the cluster (default $SWELL_DATA_DIR, else ~/.swell)");
}

void AddPodCidrFlag(cli::Flags& flags, std::string& cidr) {
  flags.Text("--pod-cidr", &cidr, "CIDR", "address range of pods");
}

Status CheckPodCidr(const std::string& cidr) {
  if (cidr.empty()) return Status::Ok();
  const auto parsed = process::ParsePodCidr(cidr);
  return parsed.ok() ? Status::Ok() : cli::Misuse(StrCat("--pod-cidr ", parsed.status().message()));
}

void AddControllersFlag(cli::Flags& flags, std::vector<std::string>& lists) {
  flags.List(
      "--controllers", &lists, "LIST",
      StrCat("built-in controllers to run, comma-separated: * (all, the default), NAME, -NAME "
             "(not this one) or swell (none); Swell's own controllers always run. Names: ",
             Join(manager::ControllerNames(), ", ")));
}

Status ReadControllers(const std::vector<std::string>& lists,
                       std::vector<std::string>& controllers) {
  if (lists.empty()) return Status::Ok();
  controllers.clear();
  for (const std::string& list : lists) {
    for (std::string_view item : Split(list, ',')) {
      const std::string_view name = item.starts_with('-') ? item.substr(1) : item;
      const bool all_or_none = name == "*" || name == "swell";
      if (!all_or_none && !Contains(manager::ControllerNames(), name)) {
        return cli::Misuse(StrCat("--controllers: ", Quote(name), " is not a known controller"));
      }
      controllers.emplace_back(item);
    }
  }
  return Status::Ok();
}

namespace {

bool IsListenAddress(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return false;
  const auto port = ParseUint(std::string_view(text).substr(colon + 1));
  if (!port || *port > 65535) return false;
  const std::string host = text.substr(0, colon);
  if (host.empty() || host == "localhost") return true;
  const std::string inner(Unbracketed(host));
  in6_addr address;
  return ::inet_pton(inner == host ? AF_INET : AF_INET6, inner.c_str(), &address) == 1;
}

}  // namespace

Status CheckHostPort(std::string_view flag,
                     const std::string& value,
                     std::string_view form,
                     std::string_view example) {
  if (IsListenAddress(value)) return Status::Ok();
  return cli::Misuse(StrCat(flag, " ", Quote(value), ": expected ", form, ", such as ", example,
                            "; HOST is localhost or an IP address, IPv6 in brackets"));
}

void AddSettingsFlag(cli::Flags& flags, std::vector<std::string>& settings) {
  flags.List("--set", &settings, "KEY=VALUE",
             "scheduler setting, repeatable: staleGracePeriod=60s, reserveAfter=30m, "
             "movePause=10m, pastUseShare=0.5, pastUseHalfLife=168h");
}

Status ReadSettings(const std::vector<std::string>& texts, sched::Settings& settings) {
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) {
      return cli::Misuse(StrCat("--set ", Quote(text), ": expected KEY=VALUE"));
    }
    const Status set = scheduling::SetSetting(std::string_view(text).substr(0, equals),
                                              std::string_view(text).substr(equals + 1), settings);
    if (!set.ok()) return cli::Misuse(StrCat("--set ", Quote(text), ": ", set.message()));
  }
  return Status::Ok();
}

void AddAutoscalingDefaultFlag(cli::Flags& flags, std::string& mode) {
  flags.Choice("--autoscaling-default", &mode, "MODE", {"Goodput", "None"},
               "autoscaling of elastic TrainingJobs that name no mode, where no project has a "
               "default: Goodput or None (default None)");
}

void AddRecordFlag(cli::Flags& flags, int64_t& mib) {
  flags.Int(
      "--record-cycles", &mib, "MIB",
      "disk space for the last scheduling cycles, which swell replay reads (default 64; 0: none)");
}

std::string FindSdk() {
  std::error_code error;
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return {};
  for (std::filesystem::path dir = self.parent_path(); dir.has_relative_path();
       dir = dir.parent_path()) {
    for (const char* sub : {"sdk/python", "share/swell/python"}) {
      if (std::filesystem::exists(dir / sub / "swell" / "__init__.py", error)) {
        return std::filesystem::canonical(dir / sub, error).string();
      }
    }
  }
  std::fprintf(stderr,
               "swell: warning: no Python SDK found in sdk/python or share/swell/python above %s; "
               "training scripts in pods cannot import swell and start without a checkpoint\n",
               self.c_str());
  return {};
}

void AddRemoteFlags(cli::Flags& flags, RemoteFlags& to) {
  flags.Text("--kubeconfig", &to.kubeconfig, "FILE",
             "kubeconfig file (default: $KUBECONFIG, else the pod's service account, else the "
             "cluster of this machine, else ~/.kube/config)");
  flags.Text("--context", &to.context, "NAME", "context of the kubeconfig");
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

}  // namespace swell::ops
