// `swell controller`: the scheduler and the job controllers for a cluster that runs elsewhere.
#include <cstdio>

#include "base/strings.h"
#include "bin/commands.h"
#include "bin/cycle_recorder.h"
#include "bin/remote_process.h"
#include "controllers/manager.h"

namespace swell {
namespace {

struct ControllerFlags {
  RemoteFlags remote;
  std::string log_level = "info";
  bool host_network = false;
  std::string record_dir;
  int64_t record_mib = kRecordMibUsual;
  std::vector<std::string> settings;
  sched::Settings scheduler;
};

Status CheckInstalled(RemoteProcess& process) {
  SWELL_ASSIGN_OR_RETURN(std::vector<std::string> missing, MissingCrds(process));
  if (missing.empty()) return Status::Ok();
  return Status(Code::kNotFound, StrCat(process.access().server, " does not know ",
                                        Join(missing, ", "), "; run: swell install"));
}

Status RunController(const ControllerFlags& flags) {
  // Every write of a cycle may be waiting at once; events wait for nothing and delay nothing.
  edge::ClusterTransportOptions options{.waiting_max = 200'000, .event_connections = 1};
  SWELL_ASSIGN_OR_RETURN(auto process, RemoteProcess::Connect(flags.remote, options));
  SWELL_RETURN_IF_ERROR(CheckInstalled(*process));
  controllers::Informers informers(process->core(), process->server(), {},
                                   process->random().Next());
  SWELL_ASSIGN_OR_RETURN(bool policy_v1, process->Serves("policy", "v1"));
  if (!policy_v1) informers.UseVersion("policy", "v1beta1");
  std::unique_ptr<CycleRecorder> recorder;
  if (!flags.record_dir.empty() && flags.record_mib > 0) {
    SWELL_ASSIGN_OR_RETURN(
        recorder,
        CycleRecorder::Open(flags.record_dir, static_cast<uint64_t>(flags.record_mib) << 20));
  }
  controllers::Manager manager(
      controllers::Context{
          process->core(), process->clock(), process->random(), process->server(), {}, informers},
      {.host_network = flags.host_network,
       .scheduler = flags.scheduler,
       .recorder = recorder ? recorder->recorder() : nullptr});
  manager.Start();
  informers.WhenSynced([&] {
    size_t nodes = informers.Of(client::resources::kNodes).objects().size();
    size_t pods = informers.Of(client::resources::kPods).objects().size();
    std::printf("Scheduling for %s: %zu nodes, %zu pods\n", process->access().server.c_str(), nodes,
                pods);
    std::fflush(stdout);
  });
  return process->Run([&] { process->core().Stop(); });
}

const cli::Command kController{
    .name = "controller",
    .summary =
        "Run the scheduler (schedulerName: swell) and the job controllers for a Kubernetes "
        "cluster. The stock scheduler may run beside it: pods of others keep their room.",
    .examples = {
        {"For the cluster of $KUBECONFIG", "swell install && swell controller"},
        {"For another one", "swell controller --kubeconfig ~/.kube/config --context production"}}};

}  // namespace

int ControllerCommand(const std::vector<std::string>& arguments) {
  ControllerFlags flags;
  cli::Flags declared;
  AddRemoteFlags(declared, flags.remote);
  declared.Switch("--host-network", &flags.host_network,
                  "pods share their nodes' ports: give each job a port of its own");
  declared.Text("--record-dir", &flags.record_dir, "DIR",
                "keep the scheduler's last cycles there, for swell replay DIR");
  AddSettingsFlag(declared, flags.settings);
  AddRecordFlag(declared, flags.record_mib);
  AddLogLevel(declared, flags.log_level);
  if (auto exit = ParseCommandLine(kController, declared, arguments)) return *exit;
  if (Status set = ReadSettings(flags.settings, flags.scheduler); !set.ok()) {
    return Misused(kController, set.message());
  }
  SetLogSink(MakeFileLogSink(""), LogLevelOf(flags.log_level));
  Status done = RunController(flags);
  return done.ok() ? 0 : FailCommand(done);
}

}  // namespace swell
