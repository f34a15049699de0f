#include "kube/apiserver/admission/machine_ports.h"

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/runai_workload.h"
#include "kube/apiserver/access/access.h"
#include "kube/apiserver/access/work.h"
#include "kube/apiserver/request/errors.h"

namespace swell::apiserver {
namespace {

constexpr int64_t kFirstPortForAll = 1024;
constexpr std::string_view kBalanced = "LoadBalancer";

// A port of the machine that the object asks for.
struct AskedPort {
  std::string field;
  int64_t number;
};
using AskedPorts = std::vector<AskedPort>;

AskedPorts PortsOfService(const json::Value& service) {
  AskedPorts ports;
  if (json::GetString(service, {"spec", "type"}) != kBalanced) return ports;
  for (const json::Value& port : json::GetArray(service, {"spec", "ports"})) {
    ports.push_back({StrCat("spec.ports[", ports.size(), "].port"), json::GetInt(port, {"port"})});
  }
  return ports;
}

// What the Service of a Run:ai workload will have. The job controller makes it, and may have any
// port.
AskedPorts PortsOfWorkload(const json::Value& workload, std::string_view path) {
  AskedPorts ports;
  // The Service leads to the master. What masterSpec does not set is as the spec says.
  json::Value body = api::Spec(workload);
  std::string_view part = "spec";
  if (const json::Value* master = json::Find(workload, {"masterSpec"})) {
    body = api::WithMasterSpec(body, *master);
    if (json::Find(*master, {"ports"}) != nullptr) part = "masterSpec";
  }
  for (const api::WorkloadPort& port : api::WorkloadPorts(body)) {
    if (port.type != kBalanced) continue;
    ports.push_back({StrCat(path, part, ".", port.item, ".", port.outer_field), port.outer});
  }
  return ports;
}

AskedPorts PortsIn(const api::KindInfo& kind, const json::Value& object) {
  constexpr std::string_view kWorkloads = "run.ai";
  if (kind.gvk.group.empty() && kind.plural == "services") return PortsOfService(object);
  const Work work = WorkOf(kind);
  if (work == Work::kJob && kind.gvk.group == kWorkloads) return PortsOfWorkload(object, "");
  if (work != Work::kCronWorkload) return {};
  const json::Value* job = TemplateOf(work, object);
  const std::string_view version = json::GetString(object, {"spec", "template", "apiVersion"});
  if (job == nullptr || !version.starts_with(StrCat(kWorkloads, "/"))) return {};
  return PortsOfWorkload(*job, "spec.template.workload.");
}

std::set<int64_t> NumbersOf(const AskedPorts& ports) {
  std::set<int64_t> numbers;
  for (const AskedPort& port : ports) numbers.insert(port.number);
  return numbers;
}

// Why ordinary users' services may not take the port; empty: they may.
std::string WhyNotForAll(int64_t number) {
  if (number < kFirstPortForAll) {
    return StrCat("those below ", kFirstPortForAll, " are for administrators; use a port from ",
                  kFirstPortForAll, " on, such as ", 8000 + number, " that leads to ", number,
                  ", or type NodePort");
  }
  if (number >= kFirstNodePort && number < kFirstNodePort + kNodePorts) {
    return StrCat("those from ", kFirstNodePort, " to ", kFirstNodePort + kNodePorts - 1,
                  " are node ports; use type NodePort, or a port outside of the range");
  }
  return "";
}

}  // namespace

Status CheckMachinePorts(const Admission& admission,
                         const json::Value& object,
                         const json::Value* old) {
  if (admission.call == nullptr || admission.subresource == "status") return Status::Ok();
  const AskedPorts asked = PortsIn(admission.kind, object);
  if (asked.empty()) return Status::Ok();
  const std::set<int64_t> had =
      old != nullptr ? NumbersOf(PortsIn(admission.kind, *old)) : std::set<int64_t>();
  for (const AskedPort& port : asked) {
    const std::string why = WhyNotForAll(port.number);
    if (why.empty() || had.contains(port.number)) continue;
    if (MayExceedPodSecurity(admission.core, admission.call->user, admission.ns)) continue;
    return ForbiddenError(admission.kind, admission.name,
                          StrCat(port.field, ": ", port.number,
                                 ": a load balancer takes this port of the machine, and ", why));
  }
  return Status::Ok();
}

}  // namespace swell::apiserver
