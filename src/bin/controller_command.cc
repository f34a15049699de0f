// `swell controller`: the scheduler and the job controllers for a cluster that runs elsewhere.
#include <cstdio>

#include "base/file.h"
#include "base/strings.h"
#include "bin/commands.h"
#include "bin/cycle_recorder.h"
#include "bin/node_address.h"
#include "bin/remote_process.h"
#include "cli/session.h"
#include "controllers/replica.h"

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
  bool elect = true;
  std::string lease_duration = "4s";
  std::string renew_deadline = "3s";
  std::string retry_period = "500ms";
  client::LeaderOptions election;
};

void AddElectionFlags(cli::Flags& declared, ControllerFlags& flags) {
  declared.Group("Leader election");
  declared.Switch("--leader-elect", &flags.elect,
                  "of several replicas one leads, the others stand by (default true)");
  declared.Text("--leader-elect-lease-duration", &flags.lease_duration, "SPAN",
                "how long the others wait for a leader that is silent (default 4s)");
  declared.Text("--leader-elect-renew-deadline", &flags.renew_deadline, "SPAN",
                "how long a leader that cannot renew its lease goes on (default 3s)");
  declared.Text("--leader-elect-retry-period", &flags.retry_period, "SPAN",
                "between two tries to get or renew the lease (default 500ms)");
  declared.Text("--leader-elect-namespace", &flags.election.ns, "NAME",
                "of the lease (default this pod's, else swell-system)");
  declared.Text("--leader-elect-name", &flags.election.name, "NAME",
                "of the lease (default swell-controller)");
}

Status ReadElection(ControllerFlags& flags) {
  client::LeaderOptions& election = flags.election;
  SWELL_ASSIGN_OR_RETURN(election.lease_duration, cli::ParseDuration(flags.lease_duration));
  SWELL_ASSIGN_OR_RETURN(election.renew_deadline, cli::ParseDuration(flags.renew_deadline));
  SWELL_ASSIGN_OR_RETURN(election.retry_period, cli::ParseDuration(flags.retry_period));
  return election.Check();
}

Status CheckInstalled(RemoteProcess& process) {
  SWELL_ASSIGN_OR_RETURN(std::vector<std::string> missing, MissingCrds(process));
  if (missing.empty()) return Status::Ok();
  return Status(Code::kNotFound, StrCat(process.access().server, " does not know ",
                                        Join(missing, ", "), "; run: swell install"));
}

// The namespace of the pod that this process runs in; nullopt outside of a cluster.
std::optional<std::string> OwnNamespace() {
  auto text = ReadFile(StrCat(client::kServiceAccountDir, "/namespace"), 1 << 10);
  if (!text.ok() || Trim(*text).empty()) return std::nullopt;
  return std::string(Trim(*text));
}

Status RunController(const ControllerFlags& flags) {
  // Every write of a cycle may be waiting at once; events wait for nothing and delay nothing.
  edge::ClusterTransportOptions options{
      .waiting_max = 200'000, .event_connections = 1, .lease_connections = 2};
  SWELL_ASSIGN_OR_RETURN(auto process, RemoteProcess::Connect(flags.remote, options));
  SWELL_RETURN_IF_ERROR(CheckInstalled(*process));
  SWELL_ASSIGN_OR_RETURN(bool policy_v1, process->Serves("policy", "v1"));
  const char* server = process->access().server.c_str();
  controllers::ReplicaOptions replica{
      .manager = {.host_network = flags.host_network, .scheduler = flags.scheduler},
      .prepare =
          [policy_v1](controllers::Informers& informers) {
            if (!policy_v1) informers.UseVersion("policy", "v1beta1");
          },
      .on_lead =
          [server](const controllers::Informers& informers) {
            auto count = [&](const client::Resource& resource) {
              return informers.Find(resource)->objects().size();
            };
            std::printf("Scheduling for %s: %zu nodes, %zu pods\n", server,
                        count(client::resources::kNodes), count(client::resources::kPods));
            std::fflush(stdout);
          },
      .on_follow =
          [server](const std::string& holder) {
            std::printf("Standing by for %s: %s leads\n", server, holder.c_str());
            std::fflush(stdout);
          }};
  std::unique_ptr<CycleRecorder> recorder;
  if (!flags.record_dir.empty() && flags.record_mib > 0) {
    const auto bytes = static_cast<uint64_t>(flags.record_mib) << 20;
    SWELL_ASSIGN_OR_RETURN(recorder, CycleRecorder::Open(flags.record_dir, bytes));
    replica.recorder = [&recorder, &flags, bytes]() -> sched::Recorder* {
      recorder.reset();  // a new Manager's record begins anew
      auto opened = CycleRecorder::Open(flags.record_dir, bytes);
      if (opened.ok()) recorder = std::move(*opened);
      return recorder ? recorder->recorder() : nullptr;
    };
  }
  if (flags.elect) {
    replica.election = flags.election;
    replica.election->identity = StrCat(HostName(), "_", process->random().Uuid());
  }
  controllers::Replica one(process->core(), process->clock(), process->random(), process->server(),
                           {}, std::move(replica));
  one.Start();
  return process->Run([&] { one.Stop([&] { process->core().Stop(); }); });
}

const cli::Command kController{
    .name = "controller",
    .summary =
        "Run the scheduler (schedulerName: swell) and the job controllers for a Kubernetes "
        "cluster. The stock scheduler may run beside it: pods of others keep their room.",
    .examples = {
        {"For the cluster of $KUBECONFIG", "swell install && swell controller"},
        {"For another one", "swell controller --kubeconfig ~/.kube/config --context production"},
        {"Alone, with no lease", "swell controller --leader-elect=false"}}};

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
  AddElectionFlags(declared, flags);
  flags.election.ns = OwnNamespace().value_or(flags.election.ns);
  if (auto exit = ParseCommandLine(kController, declared, arguments)) return *exit;
  if (Status read = ReadElection(flags); !read.ok()) return Misused(kController, read.message());
  if (Status set = ReadSettings(flags.settings, flags.scheduler); !set.ok()) {
    return Misused(kController, set.message());
  }
  SetLogSink(MakeFileLogSink(""), LogLevelOf(flags.log_level));
  Status done = RunController(flags);
  return done.ok() ? 0 : FailCommand(done);
}

}  // namespace swell
