// `swell controller`: the scheduler and the job controllers for a cluster that runs elsewhere.
#include <cstdio>
#include <set>

#include "base/file.h"
#include "base/strings.h"
#include "bin/commands.h"
#include "bin/cycle_recorder.h"
#include "bin/monitoring.h"
#include "bin/node_address.h"
#include "bin/remote_process.h"
#include "bin/webhook.h"
#include "cli/session.h"
#include "kube/api/meta.h"
#include "kube/api/scheme.h"
#include "operator/replica.h"

namespace swell {
namespace {

constexpr char kMetricsAddress[] = "127.0.0.1:10290";

struct ControllerFlags {
  RemoteFlags remote;
  std::string log_level = "info";
  bool host_network = false;
  std::string metrics_address;
  std::string grouping_rules;
  std::string kubeflow = "auto";
  WebhookOptions webhook;
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
  SWELL_ASSIGN_OR_RETURN(election.lease_duration,
                         cli::ParseDuration(flags.lease_duration, "--leader-elect-lease-duration"));
  SWELL_ASSIGN_OR_RETURN(election.renew_deadline,
                         cli::ParseDuration(flags.renew_deadline, "--leader-elect-renew-deadline"));
  SWELL_ASSIGN_OR_RETURN(election.retry_period,
                         cli::ParseDuration(flags.retry_period, "--leader-elect-retry-period"));
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

// Rules from a file, all of which must hold: nobody reads its events.
Result<std::vector<controllers::GroupingRule>> ReadGroupingRules(const std::string& path) {
  if (path.empty()) return std::vector<controllers::GroupingRule>();
  SWELL_ASSIGN_OR_RETURN(std::string text, ReadFile(path, 1 << 20));
  controllers::GroupingRules::Read read = controllers::GroupingRules::Parse(text);
  if (read.faults.empty()) return std::move(read.rules);
  return Status(Code::kInvalid, StrCat("--grouping-rules ", path, ": ", read.faults.front()));
}

// The kinds of Kubeflow and KubeDL that their own operators run here: those whose definition they
// brought, not Swell.
Result<std::set<std::string>> FindOthersJobs(RemoteProcess& process, const std::string& choice) {
  std::set<std::string> others;
  if (choice == "swell") return others;
  for (const json::Value& own : api::SwellCrds()) {
    const std::string_view group = json::GetString(own, {"spec", "group"});
    const std::string name(api::Name(own));
    if (choice == "operator" && group == "kubeflow.org") others.insert(name);
    if (choice == "operator" || (group != "kubeflow.org" && group != "training.kubedl.io"))
      continue;
    auto crd = process.Await([&](client::ObjectCallback done) {
      process.client().Get(client::resources::kCrds, "", name, std::move(done));
    });
    if (!crd.ok()) return crd.status().WithContext(name);
    if (api::Label(**crd, kManagedByLabel) != kManagedBy) others.insert(name);
  }
  return others;
}

// Who leads is told to whoever started the program.
void TellWhoLeads(const std::string& server, controllers::ReplicaOptions& replica) {
  replica.on_lead = [server](const controllers::Informers& informers) {
    auto count = [&](const client::Resource& resource) {
      return informers.Find(resource)->objects().size();
    };
    std::printf("Scheduling for %s: %zu nodes, %zu pods\n", server.c_str(),
                count(client::resources::kNodes), count(client::resources::kPods));
    std::fflush(stdout);
  };
  replica.on_follow = [server](const std::string& holder) {
    std::printf("Standing by for %s: %s leads\n", server.c_str(), holder.c_str());
    std::fflush(stdout);
  };
}

// What the flags and the cluster say of the replica.
Result<controllers::ReplicaOptions> ReplicaFor(RemoteProcess& process,
                                               const ControllerFlags& flags) {
  SWELL_ASSIGN_OR_RETURN(bool policy_v1, process.Serves("policy", "v1"));
  SWELL_ASSIGN_OR_RETURN(auto grouping_rules, ReadGroupingRules(flags.grouping_rules));
  SWELL_ASSIGN_OR_RETURN(auto others, FindOthersJobs(process, flags.kubeflow));
  if (!others.empty()) {
    std::printf(
        "%s are left to their own operator; their pods with schedulerName swell are placed\n",
        Join({others.begin(), others.end()}, ", ").c_str());
  }
  controllers::ReplicaOptions replica{.manager = {.host_network = flags.host_network,
                                                  .others_jobs = std::move(others),
                                                  .grouping_rules = std::move(grouping_rules),
                                                  .grouping_namespace = flags.election.ns,
                                                  .scheduler = flags.scheduler,
                                                  .own_namespace = flags.election.ns},
                                      .prepare = [policy_v1](controllers::Informers& informers) {
                                        if (!policy_v1) informers.UseVersion("policy", "v1beta1");
                                      }};
  TellWhoLeads(process.access().server, replica);
  if (flags.elect) {
    replica.election = flags.election;
    replica.election->identity = StrCat(HostName(), "_", process.random().Uuid());
  }
  return replica;
}

// Each Manager's record begins anew in `recorder`, which outlives the replica.
Status RecordCycles(const ControllerFlags& flags,
                    std::unique_ptr<CycleRecorder>& recorder,
                    controllers::ReplicaOptions& replica) {
  if (flags.record_dir.empty() || flags.record_mib <= 0) return Status::Ok();
  const auto bytes = static_cast<uint64_t>(flags.record_mib) << 20;
  SWELL_ASSIGN_OR_RETURN(recorder, CycleRecorder::Open(flags.record_dir, bytes));
  replica.recorder = [&recorder, dir = flags.record_dir, bytes]() -> sched::Recorder* {
    recorder.reset();
    auto opened = CycleRecorder::Open(dir, bytes);
    if (opened.ok()) recorder = std::move(*opened);
    return recorder ? recorder->recorder() : nullptr;
  };
  return Status::Ok();
}

Status RunController(const ControllerFlags& flags) {
  // Every write of a cycle may be waiting at once; events wait for nothing and delay nothing.
  edge::ClusterTransportOptions options{
      .waiting_max = 200'000, .event_connections = 1, .lease_connections = 2};
  SWELL_ASSIGN_OR_RETURN(auto process, RemoteProcess::Connect(flags.remote, options));
  SWELL_RETURN_IF_ERROR(CheckInstalled(*process));
  if (auto version = process->ServerVersion(); version.ok() && IsSwellsOwn(*version)) {
    std::fprintf(stderr,
                 "swell: warning: %s is a cluster of swell up, which schedules by itself: two "
                 "schedulers will be in each other's way\n",
                 process->access().server.c_str());
  }
  SWELL_ASSIGN_OR_RETURN(controllers::ReplicaOptions replica, ReplicaFor(*process, flags));
  std::unique_ptr<CycleRecorder> recorder;
  SWELL_RETURN_IF_ERROR(RecordCycles(flags, recorder, replica));
  Monitoring monitoring;
  replica.metrics = &monitoring.metrics;
  controllers::Replica one(process->core(), process->clock(), process->random(), process->server(),
                           {}, std::move(replica));
  monitoring.health.AddReady("informer-sync", [&one] {
    return one.synced() ? "" : "the cluster's objects are not known yet";
  });
  monitoring.health.AddReady("shutdown",
                             [&one] { return one.stopping() ? "the process is stopping" : ""; });
  SWELL_RETURN_IF_ERROR(monitoring.Listen(*process, flags.metrics_address, kMetricsAddress));
  std::optional<Webhook> webhook;
  if (flags.webhook.port > 0) {
    WebhookOptions webhook_options = flags.webhook;
    webhook_options.ns = flags.election.ns;
    webhook.emplace(*process, std::move(webhook_options));
    SWELL_RETURN_IF_ERROR(webhook->Start());
  }
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
        {"Alone, with no lease", "swell controller --leader-elect=false"},
        {"With metrics for others to scrape", "swell controller --metrics-address 0.0.0.0:10290"}}};

}  // namespace

int ControllerCommand(const std::vector<std::string>& arguments) {
  ControllerFlags flags;
  cli::Flags declared;
  AddRemoteFlags(declared, flags.remote);
  declared.Switch("--host-network", &flags.host_network,
                  "pods share their nodes' ports: give each job a port of its own");
  declared.Text("--record-dir", &flags.record_dir, "DIR",
                "keep the scheduler's last cycles there, for swell replay DIR");
  AddMonitoringFlag(declared, flags.metrics_address, kMetricsAddress);
  declared.Text("--grouping-rules", &flags.grouping_rules, "FILE",
                "rules by which pods of other operators form gangs, beside those of the ConfigMap "
                "swell-grouping (docs/scheduling.md)");
  declared.Choice("--kubeflow-jobs", &flags.kubeflow, "WHO", {"auto", "swell", "operator"},
                  "who runs the jobs of kubeflow.org (default auto: of each kind, and of KubeDL's, "
                  "who brought its definition)");
  declared.Int("--webhook-port", &flags.webhook.port, "PORT",
               "answer the API server there about pods and jobs before they are let in (default "
               "0: off; swell install --webhook)");
  declared.Switch("--webhook-nodes-may-come", &flags.webhook.admission.nodes_may_come,
                  "let in what no node is large enough for, with a warning");
  AddSettingsFlag(declared, flags.settings);
  AddRecordFlag(declared, flags.record_mib);
  AddLogLevel(declared, flags.log_level);
  AddElectionFlags(declared, flags);
  flags.election.ns = OwnNamespace().value_or(flags.election.ns);
  if (auto exit = ParseCommandLine(kController, declared, arguments)) return *exit;
  if (Status read = ReadElection(flags); !read.ok()) return Misused(kController, read.message());
  if (flags.webhook.port < 0 || flags.webhook.port > 65535) {
    return Misused(kController, "--webhook-port is a port, 1 to 65535");
  }
  if (Status set = ReadSettings(flags.settings, flags.scheduler); !set.ok()) {
    return Misused(kController, set.message());
  }
  SetLogSink(MakeFileLogSink(""), LogLevelOf(flags.log_level));
  Status done = RunController(flags);
  return done.ok() ? 0 : FailCommand(done);
}

}  // namespace swell
