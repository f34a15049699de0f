// swell controller: the scheduler and the job controllers for a Kubernetes cluster.
#include <cstdio>
#include <vector>

#include "base/file.h"
#include "base/host_port.h"
#include "base/strings.h"
#include "bin/commands.h"
#include "cli/cluster.h"
#include "cli/session.h"
#include "kube/client/client.h"
#include "manager/replica.h"
#include "ops/access/job_keys.h"
#include "ops/cycles/cycle_recorder.h"
#include "ops/election_flags.h"
#include "ops/install/cluster_survey.h"
#include "ops/install/webhook.h"
#include "ops/monitoring.h"
#include "ops/nodes/node_address.h"
#include "ops/pages/cluster_pages.h"
#include "ops/pages/pages_certificate.h"
#include "ops/remote_process.h"

namespace swell {
namespace {

using ops::RemoteProcess;

constexpr char kMetricsAddress[] = "127.0.0.1:10290";

struct ControllerFlags {
  ops::RemoteFlags remote;
  std::string log_level = "info";
  bool host_network = false;
  std::string metrics_address;
  std::string ui_address;
  std::string ui_programs = "off";
  std::string ui_cert_file;
  std::string ui_key_file;
  std::string ui_history;
  std::string grouping_rules;
  std::string kubeflow = "auto";
  ops::WebhookOptions webhook;
  std::string record_dir;
  int64_t record_mib = ops::kRecordMibUsual;
  std::vector<std::string> settings;
  sched::Settings scheduler;
  std::string autoscaling_default;
  ops::ElectionFlags election;
};

void AddPagesFlags(cli::Flags& declared, ControllerFlags& flags) {
  declared.Text("--ui-address", &flags.ui_address, "HOST:PORT",
                "also serve the pages at this address (default: no pages); with TLS, except on "
                "loopback addresses");
  declared.Text("--ui-programs-address", &flags.ui_programs, "HOST:PORT|off",
                "also serve, at this address, the programs of pods that the pages open, such as "
                "TensorBoard (default off)");
  declared.Text("--ui-cert-file", &flags.ui_cert_file, "FILE",
                "certificate of the pages, with --ui-key-file (default: one made at each start)");
  declared.Text("--ui-key-file", &flags.ui_key_file, "FILE", "private key of the pages");
  declared.Text("--ui-history-file", &flags.ui_history, "FILE",
                "keep the history of the pages in this file (default: in memory)");
}

Status CheckPages(const ControllerFlags& flags) {
  if (!flags.ui_address.empty()) {
    SWELL_RETURN_IF_ERROR(
        ops::CheckHostPort("--ui-address", flags.ui_address, "HOST:PORT", "127.0.0.1:8080"));
  }
  if (flags.ui_cert_file.empty() != flags.ui_key_file.empty()) {
    return cli::Misuse("--ui-cert-file and --ui-key-file belong together: give both");
  }
  const bool more =
      !flags.ui_cert_file.empty() || !flags.ui_history.empty() || flags.ui_programs != "off";
  if (flags.ui_address.empty() && more) {
    return cli::Misuse(
        "--ui-programs-address, --ui-cert-file and --ui-history-file need --ui-address");
  }
  return ops::CheckProgramsAddress(flags.ui_programs, flags.ui_address);
}

// Rules from a file. One wrong rule is an error: nobody would read an event about it.
Result<std::vector<scheduling::GroupingRule>> ReadGroupingRules(const std::string& path) {
  if (path.empty()) return std::vector<scheduling::GroupingRule>();
  SWELL_ASSIGN_OR_RETURN(std::string text, ReadFile(path, 1 << 20));
  scheduling::GroupingRules::Read read = scheduling::GroupingRules::Parse(text);
  if (read.faults.empty()) return std::move(read.rules);
  return Status(Code::kInvalid, StrCat("--grouping-rules ", path, ": ", read.faults.front()));
}

// Prints which replica leads.
void PrintLeader(const std::string& server, manager::ReplicaOptions& replica) {
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

// The options of the replica, from the flags and the cluster.
Result<manager::ReplicaOptions> ReplicaFor(RemoteProcess& process, const ControllerFlags& flags) {
  SWELL_ASSIGN_OR_RETURN(bool policy_v1, process.Serves("policy", "v1"));
  SWELL_ASSIGN_OR_RETURN(auto missing, ops::FindMissing(process));
  SWELL_ASSIGN_OR_RETURN(auto grouping_rules, ReadGroupingRules(flags.grouping_rules));
  SWELL_ASSIGN_OR_RETURN(auto others,
                         ops::FindOthersJobs(ops::DefinitionsOf(process), flags.kubeflow));
  if (!others.empty()) {
    std::printf("Their own operators run %s; pods with schedulerName swell are placed\n",
                Join({others.begin(), others.end()}, ", ").c_str());
  }
  manager::ReplicaOptions replica{.manager = {.make_ssh_key = ops::MakeJobKey,
                                              .host_network = flags.host_network,
                                              .others_jobs = std::move(others),
                                              .grouping_rules = std::move(grouping_rules),
                                              .grouping_namespace = flags.election.ns,
                                              .scheduler = flags.scheduler,
                                              .autoscaling_default = flags.autoscaling_default,
                                              .own_namespace = flags.election.ns},
                                  .prepare = [=](controllers::Informers& informers) {
                                    if (!policy_v1) informers.UseVersion("policy", "v1beta1");
                                    for (const client::Resource& one : missing) {
                                      informers.LeaveOut(one);
                                    }
                                  }};
  PrintLeader(process.access().server, replica);
  if (flags.election.elect) {
    SWELL_ASSIGN_OR_RETURN(replica.election, ops::ReadElection(flags.election));
    replica.election->identity = StrCat(ops::HostName(), "_", process.random().Uuid());
  }
  return replica;
}

// Each Manager begins a new record in `recorder`, which outlives the replica.
Status RecordCycles(const ControllerFlags& flags,
                    std::unique_ptr<ops::CycleRecorder>& recorder,
                    manager::ReplicaOptions& replica) {
  if (flags.record_dir.empty() || flags.record_mib <= 0) return Status::Ok();
  const auto bytes = static_cast<uint64_t>(flags.record_mib) << 20;
  SWELL_ASSIGN_OR_RETURN(recorder, ops::CycleRecorder::Open(flags.record_dir, bytes));
  replica.recorder = [&recorder, dir = flags.record_dir, bytes]() -> sched::Recorder* {
    recorder.reset();
    auto opened = ops::CycleRecorder::Open(dir, bytes);
    if (opened.ok()) recorder = std::move(*opened);
    return recorder ? recorder->recorder() : nullptr;
  };
  return Status::Ok();
}

// The pages of the cluster, on each replica. They watch with this process's credentials and act
// with those of the person who looks; nothing is shown to others.
class ControllerPages {
 public:
  static Result<std::unique_ptr<ControllerPages>> Start(RemoteProcess& process,
                                                        const ControllerFlags& flags,
                                                        Metrics& metrics) {
    SWELL_ASSIGN_OR_RETURN(
        std::shared_ptr<api::RestHandler> callers,
        edge::HttpTransport::Make(process.core(), edge::CallersConfig(process.access())));
    auto pages =
        std::make_unique<ControllerPages>(process, std::move(callers), flags.ui_history, metrics);
    ops::PagesOptions options{.address = flags.ui_address, .programs_address = flags.ui_programs};
    if (!IsLoopback(flags.ui_address)) {
      SWELL_ASSIGN_OR_RETURN(const net::CertificatePair pair,
                             ops::PagesCertificate({flags.ui_cert_file, flags.ui_key_file},
                                                   flags.election.ns, process.clock()));
      options.cert_pem = pair.cert_pem;
      options.key_pem = pair.key_pem;
    }
    SWELL_RETURN_IF_ERROR(pages->pages_.Listen(options, process.random()));
    pages->pages_.Start(pages->informers_, process.random().Next());
    std::printf("Pages: %s (log in with a token of the cluster)\n", pages->pages_.url().c_str());
    std::fflush(stdout);
    return pages;
  }

  ControllerPages(RemoteProcess& process,
                  std::shared_ptr<api::RestHandler> callers,
                  const std::string& history,
                  Metrics& metrics)
      : informers_(process.core(), process.server(), {}, process.random().Next()),
        pages_(process.core(),
               process.clock(),
               {.server = process.server(), .callers = std::move(callers), .metrics = &metrics},
               history) {}

 private:
  // The pages' own: a replica drops its informers with the lead.
  controllers::Informers informers_;
  ops::ClusterPages pages_;
};

Status RunController(const ControllerFlags& flags) {
  // All writes of a cycle may wait at once. Events have a connection of their own.
  edge::ClusterTransportOptions options{
      .waiting_max = 200'000, .event_connections = 1, .lease_connections = 2};
  SWELL_ASSIGN_OR_RETURN(auto process, RemoteProcess::Connect(flags.remote, options));
  SWELL_RETURN_IF_ERROR(ops::CheckInstalled(*process));
  if (auto version = process->ServerVersion(); version.ok() && cli::IsEmbedded(*version)) {
    std::fprintf(stderr,
                 "swell: warning: %s is a cluster of swell up, which has a scheduler already; two "
                 "schedulers will conflict\n",
                 process->access().server.c_str());
  }
  SWELL_ASSIGN_OR_RETURN(manager::ReplicaOptions replica, ReplicaFor(*process, flags));
  const bool others_crons =
      replica.manager.others_jobs.contains(client::resources::kCrons.GroupResource());
  std::unique_ptr<ops::CycleRecorder> recorder;
  SWELL_RETURN_IF_ERROR(RecordCycles(flags, recorder, replica));
  ops::Monitoring monitoring;
  replica.metrics = &monitoring.metrics;
  manager::Replica one(process->core(), process->clock(), process->random(), process->server(), {},
                       std::move(replica));
  monitoring.health.AddReady("informer-sync", [&one] {
    return one.synced() ? "" : "the cluster's objects are not known yet";
  });
  monitoring.health.AddReady("shutdown",
                             [&one] { return one.stopping() ? "the process is stopping" : ""; });
  SWELL_RETURN_IF_ERROR(monitoring.Listen(*process, flags.metrics_address, kMetricsAddress));
  std::optional<ops::ControllerWebhook> webhook;
  if (flags.webhook.port > 0) {
    ops::WebhookOptions webhook_options = flags.webhook;
    webhook_options.ns = flags.election.ns;
    webhook_options.admission.others_crons = others_crons;
    webhook.emplace(*process, std::move(webhook_options));
    SWELL_RETURN_IF_ERROR(webhook->Start());
  }
  std::unique_ptr<ControllerPages> pages;
  if (!flags.ui_address.empty()) {
    SWELL_ASSIGN_OR_RETURN(pages, ControllerPages::Start(*process, flags, monitoring.metrics));
  }
  one.Start();
  return process->Run([&] { one.Stop([&] { process->core().Stop(); }); });
}

class ControllerAction final : public cli::Action {
 public:
  void Declare(cli::Flags& flags) override {
    ops::AddRemoteFlags(flags, flags_.remote);
    flags.Switch("--host-network", &flags_.host_network,
                 "give each job a port of its own, for pods that share the network of their node");
    flags.Text("--record-dir", &flags_.record_dir, "DIR",
               "record the last scheduling cycles there, for swell replay DIR");
    ops::AddMonitoringFlag(flags, flags_.metrics_address, kMetricsAddress);
    flags.Text("--grouping-rules", &flags_.grouping_rules, "FILE",
               "rules that group pods of other operators into gangs, in addition to those of the "
               "ConfigMap swell-grouping (docs/scheduling.md)");
    flags.Choice(
        "--kubeflow-jobs", &flags_.kubeflow, "CHOICE", {"auto", "swell", "operator"},
        "what runs jobs of Kubeflow and KubeDL: swell, operator (their own), or auto: for each "
        "kind, the program that installed its definition (default auto)");
    flags.Int("--webhook-port", &flags_.webhook.port, "PORT",
              "port of the admission webhook (default 0: off; see swell install --webhook)");
    flags.Switch("--webhook-admit-oversized-pods", &flags_.webhook.admission.admit_oversized_pods,
                 "admit pods that fit on no node, with a warning");
    AddPagesFlags(flags, flags_);
    ops::AddSettingsFlag(flags, flags_.settings);
    ops::AddAutoscalingDefaultFlag(flags, flags_.autoscaling_default);
    ops::AddRecordFlag(flags, flags_.record_mib);
    ops::AddLogLevel(flags, flags_.log_level);
    ops::AddElectionFlags(flags, flags_.election);
  }

  Result<int> Run(cli::Session&, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(ops::CheckWords(words));
    SWELL_RETURN_IF_ERROR(ops::ReadElection(flags_.election).status());
    if (flags_.webhook.port < 0 || flags_.webhook.port > 65535) {
      return cli::Misuse(StrCat("--webhook-port ", flags_.webhook.port, ": expected 0 to 65535"));
    }
    SWELL_RETURN_IF_ERROR(CheckPages(flags_));
    SWELL_RETURN_IF_ERROR(ops::ReadSettings(flags_.settings, flags_.scheduler));
    SetLogSink(MakeFileLogSink(""), ops::LogLevelOf(flags_.log_level));
    SWELL_RETURN_IF_ERROR(RunController(flags_));
    return 0;
  }

 private:
  ControllerFlags flags_;
};

}  // namespace

cli::Command ControllerCommand() {
  return {
      .name = "controller",
      .group = "Kubernetes",
      .summary = "Run the scheduler and the job controllers for a Kubernetes cluster.",
      .examples = {{"For the cluster of $KUBECONFIG", "swell install && swell controller"},
                   {"For another one",
                    "swell controller --kubeconfig ~/.kube/config --context production"},
                   {"One replica only, without a lease", "swell controller --leader-elect=false"},
                   {"With the pages, on this machine",
                    "swell controller --ui-address 127.0.0.1:8080"},
                   {"With metrics that other machines can read",
                    "swell controller --metrics-address 0.0.0.0:10290"}},
      .notes = "It places pods with schedulerName swell. The default scheduler may run beside it.",
      .standalone = true,
      .make = cli::Makes<ControllerAction>()};
}

}  // namespace swell
