#include "ops/options/controller_options.h"

#include <utility>

#include "base/file.h"
#include "base/strings.h"
#include "cli/flags.h"
#include "ops/monitoring.h"

namespace swell::ops {

void AddControllerFlags(cli::Flags& flags, ControllerOptions& to) {
  AddRemoteFlags(flags, to.remote);
  flags.Switch("--host-network", &to.host_network,
               "give each job a port of its own, for pods that share the network of their node");
  flags.Text("--record-dir", &to.record_dir, "DIR",
             "record the last scheduling cycles there, for swell replay DIR");
  AddMonitoringFlag(flags, to.metrics_address, kControllerMetricsAddress);
  flags.Text("--grouping-rules", &to.grouping_rules, "FILE",
             "rules that group pods of other operators into gangs, in addition to those of the "
             "ConfigMap swell-grouping (docs/scheduling.md)");
  flags.Choice("--kubeflow-jobs", &to.kubeflow, "CHOICE", {"auto", "swell", "operator"},
               "what runs jobs of Kubeflow and KubeDL: swell, operator (their own), or auto: for "
               "each kind, the program that installed its definition (default auto)");
  flags.Int("--webhook-port", &to.webhook.port, "PORT",
            "port of the admission webhook (default 0: off; see swell install --webhook)");
  flags.Switch("--webhook-admit-oversized-pods", &to.webhook.admission.admit_oversized_pods,
               "admit pods that fit on no node, with a warning");
  AddControllerPagesFlags(flags, to.pages);
  AddSettingsFlag(flags, to.settings);
  AddAutoscalingDefaultFlag(flags, to.autoscaling_default);
  AddRecordFlag(flags, to.record_mib);
  AddLogLevel(flags, to.log_level);
  AddElectionFlags(flags, to.election);
}

Status ReadControllerOptions(ControllerOptions& options) {
  SWELL_RETURN_IF_ERROR(ReadElection(options.election).status());
  if (options.webhook.port < 0 || options.webhook.port > 65535) {
    return cli::Misuse(StrCat("--webhook-port ", options.webhook.port, ": expected 0 to 65535"));
  }
  SWELL_RETURN_IF_ERROR(CheckControllerPages(options.pages));
  return ReadSettings(options.settings, options.scheduler);
}

Result<std::vector<scheduling::GroupingRule>> ReadGroupingRules(const std::string& path) {
  if (path.empty()) return std::vector<scheduling::GroupingRule>();
  SWELL_ASSIGN_OR_RETURN(std::string text, ReadFile(path, 1 << 20));
  scheduling::GroupingRules::Read read = scheduling::GroupingRules::Parse(text);
  if (read.faults.empty()) return std::move(read.rules);
  return Status(Code::kInvalid, StrCat("--grouping-rules ", path, ": ", read.faults.front()));
}

}  // namespace swell::ops
