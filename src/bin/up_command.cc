#include <arpa/inet.h>

#include <csignal>
#include <cstdio>
#include <map>

#include "base/log.h"
#include "base/strings.h"
#include "bin/commands.h"
#include "bin/embedded_cluster.h"
#include "cli/session.h"
#include "ops/cluster/cluster_record.h"
#include "ops/cluster/detached.h"
#include "ops/data_dir.h"
#include "ops/flags.h"
#include "ops/nodes/machine_limits.h"
#include "ops/nodes/pod_runtime.h"
#include "ops/pages/cluster_pages.h"

namespace swell {
namespace {

// Kubernetes gives no token a shorter life.
constexpr Duration kTokenLifeLeast = std::chrono::minutes(10);

struct UpFlags {
  ClusterOptions cluster;
  std::string data_dir;
  std::string log_level = "info";
  std::vector<std::string> controllers;
  std::vector<std::string> settings;
  std::string token_life = "365d";
  std::map<std::string, std::string> shape;  // what the cluster is remembered by
  bool reshape = false;
  bool new_keys = false;
  bool detach = false;
};

void AddUpFlags(cli::Flags& flags, UpFlags& to) {
  flags.Switch("-d,--detach", &to.detach,
               "run in the background; return when the API server is ready");
  ops::AddDataDir(flags, to.data_dir);
  ops::AddLogLevel(flags, to.log_level);
  flags.Switch("--reshape", &to.reshape,
               "take nodes, runtime and addresses from these flags alone, not from "
               "the last start");
  flags.Switch("--new-keys", &to.new_keys,
               "start even if keys of the cluster are missing or replaced; users need new "
               "kubeconfigs");
  ClusterOptions& cluster = to.cluster;
  flags.Group("Nodes");
  ops::AddNodeFlags(flags, cluster.plan);
  ops::AddRuntimeFlag(flags, cluster.runtime);
  ops::AddPodCidrFlag(flags, cluster.pod_cidr);
  flags.Text("--external-address", &cluster.external_address, "IP",
             "address of this machine where services of type LoadBalancer answer (default: the "
             "address of --listen)");
  flags.Text("--image-store", &cluster.image_store, "DIR",
             "directory of the images, which several clusters may share (default: in the data "
             "directory)");
  ops::AddHealthFlag(flags, cluster.health);
  flags.Group("API server");
  flags.Text(
      "--listen", &cluster.listen, "HOST:PORT",
      "address of the API server (default 127.0.0.1 and a free port, the same after a restart)");
  flags.Text("--ui-address", &cluster.ui_address, "HOST:PORT|off",
             "address of the pages (default 127.0.0.1 and a free port, the same after a restart), "
             "with TLS except on loopback addresses; off: no pages");
  flags.Text("--ui-programs-address", &cluster.programs_address, "HOST:PORT|off",
             "address for the programs of pods that the pages open, such as TensorBoard (default: "
             "the host of the pages and a free port, the same after a restart); off: none");
  flags.Text("--token-auth-file", &cluster.token_auth_file, "FILE",
             "static bearer tokens, one per line: token,user,uid,\"group1,group2\"");
  flags.Text("--token-max-life", &to.token_life, "DURATION",
             "maximum life of service accounts' tokens and of users' tokens and certificates "
             "(default 365d)");
  ops::AddAuditFlags(flags, cluster.audit);
  flags.Group("Scheduler");
  ops::AddSettingsFlag(flags, to.settings);
  ops::AddRecordFlag(flags, cluster.record_mib);
  flags.Group("Controllers");
  ops::AddControllersFlag(flags, to.controllers);
  flags.SwitchOff("--no-default-scheduler", &cluster.default_scheduler,
                  "do not place pods with schedulerName default-scheduler");
  ops::AddAutoscalingDefaultFlag(flags, cluster.autoscaling_default);
  flags.Group("");
}

// `urls`: of the API server, and behind a space of the pages if there are any.
void PrintReady(const ops::DataDir& dir, const std::string& urls) {
  const size_t space = urls.find(' ');
  std::printf("The cluster answers at %s\n", urls.substr(0, space).c_str());
  if (space != std::string::npos) {
    std::printf("Pages: %s (swell ui opens them)\n", urls.substr(space + 1).c_str());
  }
  std::printf("\n  export KUBECONFIG=%s\n", dir.Kubeconfig().c_str());
  const std::string limits = ops::FormatMachineLimits(ops::MachineLimits(dir));
  if (!limits.empty()) std::printf("\n%s", limits.c_str());
  std::fflush(stdout);
}

// Runs the cluster in this process. Reports its addresses once it is ready.
Status RunCluster(const UpFlags& flags, const ops::StartReport& report) {
  const ops::DataDir& dir = flags.cluster.data_dir;
  auto fail = [&](const Status& status) {
    report(status);
    return status;
  };
  if (Status locked = ops::LockDataDir(dir); !locked.ok()) return fail(locked);
  SetLogSink(MakeFileLogSink(dir.LogFile()), ops::LogLevelOf(flags.log_level));
  std::signal(SIGPIPE, SIG_IGN);
  auto cluster = EmbeddedCluster::Create(flags.cluster);
  if (!cluster.ok()) return fail(cluster.status());
  // From here on there is a cluster that a later start finds.
  ops::ClusterRecord record{flags.shape, "", ""};
  ops::TakeFiles(dir, record);
  if (const Status written = ops::WriteClusterRecord(dir, record); !written.ok())
    return fail(written);
  const auto pods_save = [&flags] {
    if (flags.detach) return;  // swell down says it
    std::fputs("Pods have up to 30 s to save and end. Without waiting: Ctrl-C again\n", stderr);
  };
  const auto ready = [&] {
    const std::string pages = (*cluster)->pages_url();
    SWELL_LOG_INFO("cluster", "ready", {"url", (*cluster)->server_url()}, {"pages", pages});
    report(StrCat((*cluster)->server_url(), pages.empty() ? "" : " ", pages));
  };
  const Status ended = (*cluster)->Run({.ready = ready, .pods_save = pods_save});
  cluster->reset();
  return ended.ok() ? ended : fail(ended);
}

Status RunInBackground(const UpFlags& flags) {
  const ops::DataDir& dir = flags.cluster.data_dir;
  SWELL_ASSIGN_OR_RETURN(const std::string urls,
                         ops::RunDetached(dir.LogFile(), [&flags](const ops::StartReport& report) {
                           return RunCluster(flags, report).ok() ? 0 : 1;
                         }));
  PrintReady(dir, urls);
  return Status::Ok();
}

Status RunHere(const UpFlags& flags) {
  return RunCluster(flags, [&flags](const Result<std::string>& urls) {
    if (urls.ok()) PrintReady(flags.cluster.data_dir, *urls);
  });
}

class UpAction final : public cli::Action {
 public:
  void Declare(cli::Flags& flags) override {
    AddUpFlags(flags, flags_);
    declared_ = &flags;
  }

  Result<int> Run(cli::Session&, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(ops::CheckWords(words));
    // Mistakes in the flags are reported before anything is started.
    flags_.cluster.data_dir = ops::ChooseDataDir(flags_.data_dir);
    SWELL_ASSIGN_OR_RETURN(const auto record, ops::ReadClusterRecord(flags_.cluster.data_dir));
    SWELL_ASSIGN_OR_RETURN(flags_.shape, ops::TakeShape(*declared_, record, flags_.reshape));
    SWELL_RETURN_IF_ERROR(Read());
    SWELL_RETURN_IF_ERROR(ops::CheckDirectoryIsOurs(flags_.cluster.data_dir));
    SWELL_RETURN_IF_ERROR(ops::PrepareDataDir(flags_.cluster.data_dir));
    if (auto running = ops::FindRunning(flags_.cluster.data_dir)) {
      return Status(Code::kConflict,
                    StrCat("a cluster already runs in ", flags_.cluster.data_dir.path, " (process ",
                           running->pid,
                           flags_.reshape ? "); to start it with these flags, stop it first: "
                                          : "); stop it with: ",
                           "swell down --data-dir ", flags_.cluster.data_dir.path));
    }
    SWELL_RETURN_IF_ERROR(
        ops::CheckClusterFiles(flags_.cluster.data_dir, record, flags_.new_keys, flags_.reshape));
    SWELL_RETURN_IF_ERROR(ops::KeepPort(flags_.cluster.data_dir, record));
    SWELL_RETURN_IF_ERROR(flags_.detach ? RunInBackground(flags_) : RunHere(flags_));
    return 0;
  }

 private:
  Status Read() {
    ClusterOptions& cluster = flags_.cluster;
    SWELL_RETURN_IF_ERROR(ops::ReadControllers(flags_.controllers, cluster.controllers));
    SWELL_RETURN_IF_ERROR(ops::CheckPodCidr(cluster.pod_cidr));
    const auto kind = ops::ParseRuntimeKind(cluster.runtime);
    if (!kind.ok()) return cli::Misuse(kind.status().message());
    if (!cluster.listen.empty()) {
      SWELL_RETURN_IF_ERROR(
          ops::CheckHostPort("--listen", cluster.listen, "HOST:PORT", "127.0.0.1:6443"));
    }
    if (!cluster.ui_address.empty() && cluster.ui_address != "off") {
      SWELL_RETURN_IF_ERROR(ops::CheckHostPort("--ui-address", cluster.ui_address,
                                               "HOST:PORT or off", "127.0.0.1:8080"));
    }
    if (cluster.ui_address != "off") {
      SWELL_RETURN_IF_ERROR(
          ops::CheckProgramsAddress(cluster.programs_address, cluster.ui_address));
    }
    in_addr address;
    if (!cluster.external_address.empty() &&
        ::inet_pton(AF_INET, cluster.external_address.c_str(), &address) != 1) {
      return cli::Misuse(StrCat("--external-address ", Quote(cluster.external_address),
                                ": expected an IPv4 address of this machine, such as 192.0.2.7"));
    }
    SWELL_RETURN_IF_ERROR(ops::CheckHealthPlan(cluster.health));
    SWELL_RETURN_IF_ERROR(ops::ReadSettings(flags_.settings, cluster.scheduler));
    SWELL_ASSIGN_OR_RETURN(cluster.token_life_max,
                           cli::ParseDuration(flags_.token_life, "--token-max-life"));
    if (cluster.token_life_max < kTokenLifeLeast) {
      return cli::Misuse(StrCat("--token-max-life ", flags_.token_life, ": expected at least 10m"));
    }
    SWELL_RETURN_IF_ERROR(ops::CheckAuditPlan(cluster.audit));
    if (kind->processes()) cluster.sdk_path = ops::FindSdk();
    return ops::PlanNodes(cluster.plan).status();
  }

  UpFlags flags_;
  const cli::Flags* declared_ = nullptr;  // while the command runs
};

}  // namespace

cli::Command UpCommand() {
  return {.name = "up",
          .group = "Cluster",
          .summary = "Start a cluster on this machine.",
          .examples = {{"One node: this machine with its CPUs and GPUs", "swell up"},
                       {"Three virtual nodes and three control-plane nodes, in the background",
                        "swell up --detach --nodes 3 --gpus-per-node 4 --control-plane-nodes 3"},
                       {"Many simulated nodes, whose pods start no processes",
                        "swell up --nodes 1000 --gpus-per-node 8 --runtime simulated"}},
          .standalone = true,
          .make = cli::Makes<UpAction>()};
}

}  // namespace swell
