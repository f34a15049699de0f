#include <csignal>
#include <cstdio>
#include <map>

#include "base/log.h"
#include "bin/commands.h"
#include "bin/embedded_cluster.h"
#include "cli/session.h"
#include "ops/cluster/cluster_record.h"
#include "ops/cluster/detached.h"
#include "ops/cluster/ready_text.h"
#include "ops/data_dir.h"
#include "ops/flags.h"
#include "ops/options/cluster_options.h"

namespace swell {
namespace {

struct UpFlags {
  ops::ClusterFlags cluster;
  std::string data_dir;
  std::string log_level = "info";
  std::map<std::string, std::string> shape;  // what the cluster is remembered by
  ops::AllowedChanges allowed;
  bool detach = false;

  ops::ClusterOptions& options() { return cluster.options; }
  const ops::DataDir& dir() const { return cluster.options.data_dir; }
};

void AddUpFlags(cli::Flags& flags, UpFlags& to) {
  flags.Switch("-d,--detach", &to.detach,
               "run in the background; return when the API server is ready");
  ops::AddDataDir(flags, to.data_dir);
  ops::AddLogLevel(flags, to.log_level);
  flags.Switch("--reshape", &to.allowed.shape,
               "take nodes, runtime and addresses from these flags alone, not from "
               "the last start; without --listen the port stays, since kubeconfigs name it");
  flags.Switch("--new-keys", &to.allowed.keys,
               "start even if keys of the cluster are missing or replaced; users need new "
               "kubeconfigs");
  ops::AddClusterFlags(flags, to.cluster);
}

void PrintReady(const UpFlags& flags, const std::string& urls, const std::string& before) {
  const std::string text = ops::ReadyText(flags.dir(), flags.cluster.options.runtime,
                                          ops::ClusterUrls::Parse(urls), before);
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

// Runs the cluster in this process. Reports its addresses once it is ready.
Status RunCluster(const UpFlags& flags, const ops::StartReport& report) {
  const ops::DataDir& dir = flags.dir();
  auto fail = [&](const Status& status) {
    report(status);
    return status;
  };
  if (Status locked = ops::LockDataDir(dir); !locked.ok()) return fail(locked);
  SetLogSink(MakeFileLogSink(dir.LogFile()), ops::LogLevelOf(flags.log_level));
  std::signal(SIGPIPE, SIG_IGN);
  auto cluster = EmbeddedCluster::Create(flags.cluster.options);
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
    const ops::ClusterUrls urls{(*cluster)->server_url(), (*cluster)->pages_url()};
    SWELL_LOG_INFO("cluster", "ready", {"url", urls.server}, {"pages", urls.pages});
    report(urls.Print());
  };
  const Status ended = (*cluster)->Run({.ready = ready, .pods_save = pods_save});
  cluster->reset();
  return ended.ok() ? ended : fail(ended);
}

Status RunInBackground(const UpFlags& flags) {
  const ops::DataDir& dir = flags.dir();
  const std::string before = ops::ServerUrl(dir);
  SWELL_ASSIGN_OR_RETURN(const std::string urls,
                         ops::RunDetached(dir.LogFile(), [&flags](const ops::StartReport& report) {
                           return RunCluster(flags, report).ok() ? 0 : 1;
                         }));
  PrintReady(flags, urls, before);
  return Status::Ok();
}

Status RunHere(const UpFlags& flags) {
  const std::string before = ops::ServerUrl(flags.dir());
  return RunCluster(flags, [&flags, &before](const Result<std::string>& urls) {
    if (urls.ok()) PrintReady(flags, *urls, before);
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
    const ops::DataDir dir = ops::ChooseDataDir(flags_.data_dir);
    flags_.options().data_dir = dir;
    SWELL_ASSIGN_OR_RETURN(const auto record, ops::ReadClusterRecord(dir));
    SWELL_ASSIGN_OR_RETURN(flags_.shape, ops::TakeShape(*declared_, record, flags_.allowed));
    SWELL_RETURN_IF_ERROR(ops::ReadClusterFlags(flags_.cluster));
    SWELL_RETURN_IF_ERROR(ops::CheckDirectoryIsOurs(dir));
    SWELL_RETURN_IF_ERROR(ops::PrepareDataDir(dir));
    SWELL_RETURN_IF_ERROR(ops::CheckNotRunning(dir, flags_.allowed));
    SWELL_RETURN_IF_ERROR(ops::CheckClusterFiles(dir, record, flags_.allowed));
    SWELL_RETURN_IF_ERROR(ops::KeepPort(dir, record));
    SWELL_RETURN_IF_ERROR(flags_.detach ? RunInBackground(flags_) : RunHere(flags_));
    return 0;
  }

 private:
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
                        "swell up --nodes 1000 --gpus-per-node 8 --runtime simulated"},
                       {"Jobs import the packages of a conda environment",
                        "swell up --python ~/miniconda3/envs/train/bin/python3"}},
          .standalone = true,
          .make = cli::Makes<UpAction>()};
}

}  // namespace swell
