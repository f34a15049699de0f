#include "kube/process/network/address_guard.h"

#include <utility>
#include <vector>

#include "base/log.h"
#include "base/strings.h"
#include "kube/process/network/nftables.h"

namespace swell::process {
namespace {

std::string Elements(const std::vector<std::string>& items) {
  return items.empty() ? "" : StrCat("    elements = { ", Join(items, ", "), " }\n");
}

std::string Own(const std::string& port, const PodAddresses& addresses) {
  return StrCat(Quote(port), " . ", addresses.hardware, " . ", addresses.ip);
}

// Before the rules of NetworkPolicies, and before the bridge learns who sent it.
constexpr std::string_view kRules =
    "  chain prerouting {\n"
    "    type filter hook prerouting priority -10; policy accept;\n"
    "    iifname != @guarded accept\n"
    "    ether type ip iifname . ether saddr . ip saddr @own accept\n"
    "    ether type arp iifname . ether saddr . arp saddr ip @own "
    "iifname . arp saddr ether . arp saddr ip @own accept\n"
    "    drop\n"
    "  }\n";

}  // namespace

Result<bool> AddressGuard::Find() const {
  SWELL_ASSIGN_OR_RETURN(const std::string tables, AskNftables("list tables bridge\n"));
  const std::string own = StrCat("table bridge ", table_);
  bool found = false;
  for (std::string_view line : Split(tables, '\n')) found = found || Trim(line) == own;
  return found;
}

std::string AddressGuard::MadeAnew() const {
  std::vector<std::string> guarded, own;
  for (const auto& [port, addresses] : ports_) {
    guarded.push_back(Quote(port));
    own.push_back(Own(port, addresses));
  }
  const std::string table = StrCat("table bridge ", table_);
  return StrCat("add ", table, "\ndelete ", table, "\n", table,
                " {\n  set guarded {\n    type ifname\n", Elements(guarded),
                "  }\n  set own {\n    type ifname . ether_addr . ipv4_addr\n", Elements(own),
                "  }\n", kRules, "}\n");
}

Status AddressGuard::Start(std::map<std::string, PodAddresses> ports) {
  ports_ = std::move(ports);
  SWELL_RETURN_IF_ERROR(RunNftables(MadeAnew()));
  started_ = true;
  return Status::Ok();
}

Status AddressGuard::Add(const std::string& port, const PodAddresses& addresses) {
  if (!started_) return Status::Ok();
  ports_[port] = addresses;
  const std::string element = StrCat("add element bridge ", table_, " ");
  const Status added = RunNftables(StrCat(element, "guarded { ", Quote(port), " }\n", element,
                                          "own { ", Own(port, addresses), " }\n"));
  return added.ok() ? added : RunNftables(MadeAnew());
}

void AddressGuard::Remove(const std::string& port) {
  const auto found = ports_.find(port);
  if (found == ports_.end()) return;
  const std::string element = StrCat("delete element bridge ", table_, " ");
  const Status removed = RunNftables(StrCat(element, "guarded { ", Quote(port), " }\n", element,
                                            "own { ", Own(port, found->second), " }\n"));
  ports_.erase(found);
  // Somebody removed the table; the next Add makes it anew without this port.
  if (!removed.ok()) SWELL_LOG_WARNING("network", "guard left", {"error", removed.ToString()});
}

void AddressGuard::Shutdown() {
  if (!std::exchange(started_, false)) return;
  ports_.clear();
  const std::string table = StrCat("table bridge ", table_);
  const Status removed = RunNftables(StrCat("add ", table, "\ndelete ", table, "\n"));
  if (!removed.ok()) SWELL_LOG_WARNING("network", "guard left", {"error", removed.ToString()});
}

}  // namespace swell::process
