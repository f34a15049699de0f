#include "kube/apiserver/admission/machine_ports.h"

#include <set>

#include "base/strings.h"
#include "kube/apiserver/access/access.h"
#include "kube/apiserver/request/errors.h"

namespace swell::apiserver {
namespace {

constexpr int64_t kFirstPortForAll = 1024;

bool IsBalanced(const json::Value& service) {
  return json::GetString(service, {"spec", "type"}) == "LoadBalancer";
}

std::set<int64_t> PortsOf(const json::Value& service) {
  std::set<int64_t> numbers;
  for (const json::Value& port : json::GetArray(service, {"spec", "ports"})) {
    numbers.insert(json::GetInt(port, {"port"}));
  }
  return numbers;
}

// Why ordinary users' services may not take the port; empty: they may.
std::string WhyNotForAll(int64_t number) {
  if (number < kFirstPortForAll) {
    return StrCat("those below ", kFirstPortForAll, " are for administrators; use a port from ",
                  kFirstPortForAll, " on, such as ", 8000 + number, " with targetPort ", number,
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
  const bool service = admission.kind.gvk.group.empty() && admission.kind.plural == "services";
  if (!service || admission.call == nullptr || !IsBalanced(object)) return Status::Ok();
  const std::set<int64_t> had =
      old != nullptr && IsBalanced(*old) ? PortsOf(*old) : std::set<int64_t>();
  const json::Array& ports = json::GetArray(object, {"spec", "ports"});
  for (size_t i = 0; i < ports.size(); ++i) {
    const int64_t number = json::GetInt(ports[i], {"port"});
    const std::string why = WhyNotForAll(number);
    if (why.empty() || had.contains(number)) continue;
    if (MayExceedPodSecurity(admission.core, admission.call->user, admission.ns)) continue;
    return ForbiddenError(admission.kind, admission.name,
                          StrCat("spec.ports[", i, "].port: ", number,
                                 ": a load balancer takes this port of the machine, and ", why));
  }
  return Status::Ok();
}

}  // namespace swell::apiserver
