#include "ops/election_flags.h"

#include "cli/session.h"
#include "kube/client/kubeconfig.h"

namespace swell::ops {

void AddElectionFlags(cli::Flags& declared, ElectionFlags& to) {
  const client::LeaderOptions usual;
  to.ns = client::InClusterNamespace().value_or(usual.ns);
  to.name = usual.name;
  declared.Group("Leader election");
  declared.Switch("--leader-elect", &to.elect,
                  "elect one leader among the replicas (default true)");
  declared.Text("--leader-elect-lease-duration", &to.lease_duration, "DURATION",
                "how long followers wait before they replace a silent leader (default 4s)");
  declared.Text("--leader-elect-renew-deadline", &to.renew_deadline, "DURATION",
                "how long a leader continues without renewing its lease (default 3s)");
  declared.Text("--leader-elect-retry-period", &to.retry_period, "DURATION",
                "time between attempts to get or renew the lease (default 500ms)");
  declared.Text("--leader-elect-namespace", &to.ns, "NAME",
                "namespace of the lease (default: this pod's, else swell-system)");
  declared.Text("--leader-elect-name", &to.name, "NAME",
                "name of the lease (default swell-controller)");
}

Result<client::LeaderOptions> ReadElection(const ElectionFlags& flags) {
  client::LeaderOptions election;
  election.ns = flags.ns;
  election.name = flags.name;
  SWELL_ASSIGN_OR_RETURN(election.lease_duration,
                         cli::ParseDuration(flags.lease_duration, "--leader-elect-lease-duration"));
  SWELL_ASSIGN_OR_RETURN(election.renew_deadline,
                         cli::ParseDuration(flags.renew_deadline, "--leader-elect-renew-deadline"));
  SWELL_ASSIGN_OR_RETURN(election.retry_period,
                         cli::ParseDuration(flags.retry_period, "--leader-elect-retry-period"));
  if (const Status fits = election.Check(); !fits.ok()) return cli::Misuse(fits.message());
  return election;
}

}  // namespace swell::ops
