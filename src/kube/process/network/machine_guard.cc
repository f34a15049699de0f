#include "kube/process/network/machine_guard.h"

#include "base/log.h"
#include "base/strings.h"
#include "kube/process/network/nftables.h"

namespace swell::edge {
namespace {

// "add" makes it if it is not there, so that deleting it never fails.
std::string RemovalText(const MachineGuardSpec& spec) {
  return StrCat("add table inet ", spec.table, "\ndelete table inet ", spec.table, "\n");
}

}  // namespace

// What is sent to any address of the machine goes through "lo".
Status GuardMachine(const MachineGuardSpec& spec) {
  return RunNftables(StrCat(RemovalText(spec), "table inet ", spec.table,
                            " {\n  chain output {\n"
                            "    type filter hook output priority 0; policy accept;\n"
                            "    meta skuid != ",
                            spec.first_id, "-", spec.last_id, " accept\n    oifname != { \"lo\", ",
                            Quote(spec.bridge),
                            " } accept\n"
                            "    meta l4proto { tcp, udp } th dport 53 accept\n"
                            "    reject\n  }\n}\n"));
}

void UnguardMachine(const MachineGuardSpec& spec) {
  const Status removed = RunNftables(RemovalText(spec));
  if (!removed.ok()) SWELL_LOG_WARNING("network", "guard left", {"error", removed.ToString()});
}

}  // namespace swell::edge
