#include "ops/options/cluster_options.h"

#include <arpa/inet.h>

#include "base/strings.h"
#include "cli/session.h"
#include "ops/flags.h"
#include "ops/nodes/pod_runtime.h"
#include "ops/nodes/python_choice.h"

namespace swell::ops {
namespace {

// Kubernetes gives no token a shorter life.
constexpr Duration kTokenLifeLeast = std::chrono::minutes(10);

Status CheckExternalAddress(const std::string& text) {
  in_addr address;
  if (text.empty() || ::inet_pton(AF_INET, text.c_str(), &address) == 1) return Status::Ok();
  return cli::Misuse(StrCat("--external-address ", Quote(text),
                            ": expected an IPv4 address of this machine, such as 192.0.2.7"));
}

Status ReadTokenLife(const std::string& text, Duration& life) {
  SWELL_ASSIGN_OR_RETURN(life, cli::ParseDuration(text, "--token-max-life"));
  if (life >= kTokenLifeLeast) return Status::Ok();
  return cli::Misuse(StrCat("--token-max-life ", text, ": expected at least 10m"));
}

}  // namespace

void AddClusterFlags(cli::Flags& flags, ClusterFlags& to) {
  ClusterOptions& cluster = to.options;
  flags.Group("Nodes");
  AddNodeFlags(flags, cluster.plan);
  AddRuntimeFlag(flags, cluster.runtime);
  AddPodCidrFlag(flags, cluster.pod_cidr);
  flags.Text("--external-address", &cluster.external_address, "IP",
             "address of this machine where services of type LoadBalancer answer (default: the "
             "address of --listen)");
  flags.Text("--image-store", &cluster.image_store, "DIR",
             "directory of the images, which several clusters may share (default: in the data "
             "directory)");
  AddPythonFlag(flags, cluster.python);
  AddHealthFlag(flags, cluster.health);
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
  AddAuditFlags(flags, cluster.audit);
  flags.Group("Scheduler");
  AddSettingsFlag(flags, to.settings);
  AddRecordFlag(flags, cluster.record_mib);
  flags.Group("Controllers");
  AddControllersFlag(flags, to.controllers);
  flags.SwitchOff("--no-default-scheduler", &cluster.default_scheduler,
                  "do not place pods with schedulerName default-scheduler");
  AddAutoscalingDefaultFlag(flags, cluster.autoscaling_default);
  flags.Group("");
}

Status ReadClusterFlags(ClusterFlags& flags) {
  ClusterOptions& cluster = flags.options;
  SWELL_RETURN_IF_ERROR(ReadControllers(flags.controllers, cluster.controllers));
  SWELL_RETURN_IF_ERROR(CheckPodCidr(cluster.pod_cidr));
  SWELL_RETURN_IF_ERROR(CheckPython(cluster.python));
  const auto kind = ParseRuntimeKind(cluster.runtime);
  if (!kind.ok()) return cli::Misuse(kind.status().message());
  if (!cluster.listen.empty()) {
    SWELL_RETURN_IF_ERROR(CheckHostPort("--listen", cluster.listen, "HOST:PORT", "127.0.0.1:6443"));
  }
  SWELL_RETURN_IF_ERROR(CheckPagesAddresses(cluster.ui_address, cluster.programs_address));
  SWELL_RETURN_IF_ERROR(CheckExternalAddress(cluster.external_address));
  SWELL_RETURN_IF_ERROR(CheckHealthPlan(cluster.health));
  SWELL_RETURN_IF_ERROR(ReadSettings(flags.settings, cluster.scheduler));
  SWELL_RETURN_IF_ERROR(ReadTokenLife(flags.token_life, cluster.token_life_max));
  SWELL_RETURN_IF_ERROR(CheckAuditPlan(cluster.audit));
  if (kind->processes()) cluster.sdk_path = FindSdk();
  return PlanNodes(cluster.plan).status();
}

}  // namespace swell::ops
