// swell controller: the scheduler and the job controllers for a Kubernetes cluster.
#include <cstdio>
#include <vector>

#include "base/strings.h"
#include "bin/commands.h"
#include "cli/cluster.h"
#include "cli/session.h"
#include "kube/client/client.h"
#include "manager/replica.h"
#include "ops/install/cluster_survey.h"
#include "ops/monitoring.h"
#include "ops/nodes/node_address.h"
#include "ops/options/controller_options.h"
#include "ops/options/controller_replica.h"
#include "ops/remote_process.h"

namespace swell {
namespace {

using ops::RemoteProcess;

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

// Says which kinds are left to others, and which replica leads.
Result<manager::ReplicaOptions> ReplicaFor(RemoteProcess& process,
                                           const ops::ControllerOptions& flags) {
  SWELL_ASSIGN_OR_RETURN(const ops::ClusterFacts facts,
                         ops::SurveyCluster(process, flags.kubeflow));
  if (const auto& others = facts.others_jobs; !others.empty()) {
    std::printf("Their own operators run %s; pods with schedulerName swell are placed\n",
                Join({others.begin(), others.end()}, ", ").c_str());
  }
  SWELL_ASSIGN_OR_RETURN(manager::ReplicaOptions replica, ops::ReplicaOptionsOf(flags, facts));
  PrintLeader(process.access().server, replica);
  if (replica.election) {
    replica.election->identity = StrCat(ops::HostName(), "_", process.random().Uuid());
  }
  return replica;
}

Status RunController(const ops::ControllerOptions& flags) {
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
  ops::CycleRecorders recorders(flags.record_dir, flags.record_mib);
  SWELL_RETURN_IF_ERROR(recorders.Check());
  replica.recorder = [&recorders] { return recorders.Begin(); };
  ops::Monitoring monitoring;
  replica.metrics = &monitoring.metrics;
  manager::Replica one(process->core(), process->clock(), process->random(), process->server(), {},
                       std::move(replica));
  monitoring.health.AddReady("informer-sync", [&one] {
    return one.synced() ? "" : "the cluster's objects are not known yet";
  });
  monitoring.health.AddReady("shutdown",
                             [&one] { return one.stopping() ? "the process is stopping" : ""; });
  SWELL_RETURN_IF_ERROR(
      monitoring.Listen(*process, flags.metrics_address, ops::kControllerMetricsAddress));
  std::optional<ops::ControllerWebhook> webhook;
  if (flags.webhook.port > 0) {
    ops::WebhookOptions webhook_options = flags.webhook;
    webhook_options.ns = flags.election.ns;
    webhook_options.admission.others_crons = others_crons;
    webhook.emplace(*process, std::move(webhook_options));
    SWELL_RETURN_IF_ERROR(webhook->Start());
  }
  std::unique_ptr<ops::ControllerPages> pages;
  if (flags.pages.on()) {
    SWELL_ASSIGN_OR_RETURN(
        pages,
        ops::ControllerPages::Start(*process, flags.pages, flags.election.ns, monitoring.metrics));
    std::printf("Pages: %s (log in with a token of the cluster)\n", pages->url().c_str());
    std::fflush(stdout);
  }
  one.Start();
  return process->Run([&] { one.Stop([&] { process->core().Stop(); }); });
}

class ControllerAction final : public cli::Action {
 public:
  void Declare(cli::Flags& flags) override { ops::AddControllerFlags(flags, options_); }

  Result<int> Run(cli::Session&, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(ops::CheckWords(words));
    SWELL_RETURN_IF_ERROR(ops::ReadControllerOptions(options_));
    SetLogSink(MakeFileLogSink(""), ops::LogLevelOf(options_.log_level));
    SWELL_RETURN_IF_ERROR(RunController(options_));
    return 0;
  }

 private:
  ops::ControllerOptions options_;
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
