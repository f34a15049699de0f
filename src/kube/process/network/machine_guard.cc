#include "kube/process/network/machine_guard.h"

#include "base/log.h"
#include "base/strings.h"
#include "kube/process/network/nftables.h"

namespace swell::process {
namespace {

// "add" makes it if it is not there, so that deleting it never fails.
std::string RemovalText(const MachineGuardSpec& spec) {
  return StrCat("add table inet ", spec.table, "\ndelete table inet ", spec.table, "\n");
}

}  // namespace

// What is sent to any address of the machine goes through "lo". A packet without a socket, such as
// the answer that a port is closed, has no user id and matches neither rule.
Status GuardMachine(const MachineGuardSpec& spec) {
  const std::string from_pod = StrCat("    meta skuid ", spec.first_id, "-", spec.last_id,
                                      " oifname { \"lo\", ", Quote(spec.bridge), " } ");
  return RunNftables(StrCat(RemovalText(spec), "table inet ", spec.table,
                            " {\n  chain output {\n"
                            "    type filter hook output priority 0; policy accept;\n",
                            from_pod, "meta l4proto { tcp, udp } th dport 53 accept\n", from_pod,
                            "reject\n  }\n}\n"));
}

void UnguardMachine(const MachineGuardSpec& spec) {
  const Status removed = RunNftables(RemovalText(spec));
  if (!removed.ok()) SWELL_LOG_WARNING("network", "guard left", {"error", removed.ToString()});
}

}  // namespace swell::process
