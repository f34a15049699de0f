// The proxy subresource of pods and services: HTTP through the API server.
#include "base/strings.h"
#include "kube/api/meta.h"
#include "kube/apiserver/admission/admission_webhooks.h"
#include "kube/apiserver/handlers.h"
#include "kube/apiserver/request/errors.h"

namespace swell::apiserver {
namespace {

// What a proxy's path names: "web", "web:8080" or "https:web:8080".
struct Target {
  std::string scheme = "http";
  std::string name;
  std::string port;  // a number or a name; empty: the one there is
};

Result<Target> ParseTarget(const std::string& resource, std::string_view text) {
  const std::vector<std::string_view> parts = Split(text, ':');
  Target target;
  if (parts.size() > 3 ||
      (parts.size() == 3 && !parts[0].empty() && parts[0] != "http" && parts[0] != "https")) {
    return BadRequestError(StrCat("invalid ", resource, " request ", Quote(text)));
  }
  if (parts.size() == 3 && !parts[0].empty()) target.scheme = parts[0];
  target.name = parts.size() == 3 ? parts[1] : parts[0];
  if (parts.size() > 1) target.port = parts.back();
  return target;
}

std::string HostAndPort(std::string_view address, std::string_view port) {
  const bool v6 = address.find(':') != std::string_view::npos;
  return StrCat(v6 ? "[" : "", address, v6 ? "]" : "", port.empty() ? "" : ":", port);
}

Result<std::string> AddressOfPod(const json::Value& pod, const Target& target) {
  const std::string_view address = json::GetString(pod, {"status", "podIP"});
  if (address.empty()) return BadRequestError("address not allowed");
  std::string port = target.port;
  for (const json::Value& container : json::GetArray(pod, {"spec", "containers"})) {
    if (!port.empty()) break;
    const json::Array& ports = json::GetArray(container, {"ports"});
    if (!ports.empty()) port = std::to_string(json::GetInt(ports[0], {"containerPort"}));
  }
  return HostAndPort(address, port);
}

// The first of the service's endpoints that has the port.
Result<std::string> AddressOfService(const Core& core,
                                     const json::Value& service,
                                     const Target& target,
                                     const std::string& ns) {
  std::string port = target.port;
  if (const std::optional<uint64_t> number = ParseUint(port)) {
    bool found = false;
    for (const json::Value& one : json::GetArray(service, {"spec", "ports"})) {
      if (json::GetInt(one, {"port"}) != static_cast<int64_t>(*number)) continue;
      port = json::GetString(one, {"name"});
      found = true;
      break;
    }
    if (!found) {
      return Status(Code::kUnavailable,
                    StrCat("no service port ", *number, " found for service ", Quote(target.name)));
    }
  }
  const auto endpoints = core.store.Get({"endpoints", ns, target.name});
  if (!endpoints)
    return Status(Code::kNotFound, StrCat("endpoints ", Quote(target.name), " not found"));
  const auto document = endpoints->Parsed();
  for (const json::Value& subset : json::GetArray(*document, {"subsets"})) {
    const json::Array& addresses = json::GetArray(subset, {"addresses"});
    if (addresses.empty()) continue;
    for (const json::Value& one : json::GetArray(subset, {"ports"})) {
      if (json::GetString(one, {"name"}) != port) continue;
      return HostAndPort(json::GetString(addresses[0], {"ip"}),
                         std::to_string(json::GetInt(one, {"port"})));
    }
  }
  return Status(Code::kUnavailable,
                StrCat("no endpoints available for service ", Quote(target.name)));
}

// What follows "proxy" in the request's path, as it came.
std::string PathBehind(const Call& call) {
  std::string out;
  for (std::string_view part : Split(call.info.rest, '/')) {
    if (!part.empty()) out += StrCat("/", api::EscapePathSegment(part));
  }
  if (out.empty() || call.request.path.ends_with('/')) out += '/';
  return out;
}

Result<std::shared_ptr<api::RestHandler>> Dial(Core& core, const Call& call) {
  const std::string& resource = call.storage->plural;
  SWELL_ASSIGN_OR_RETURN(const Target target,
                         ParseTarget(resource == "pods" ? "pod" : "service", call.info.name));
  const auto entry = core.store.Get(KeyFor(*call.storage, call.info.ns, target.name));
  if (!entry) return NotFoundError(*call.kind, target.name);
  const auto object = entry->Parsed();
  SWELL_ASSIGN_OR_RETURN(const std::string address,
                         resource == "pods"
                             ? AddressOfPod(*object, target)
                             : AddressOfService(core, *object, target, call.info.ns));
  if (!core.options.http_dialer) {
    return Status(Code::kUnavailable, "this server reaches no pods");
  }
  HttpTarget to;
  to.base_url = StrCat(target.scheme, "://", address);
  return core.options.http_dialer(to);
}

}  // namespace

Result<std::string> ServiceAddress(const Core& core,
                                   const std::string& ns,
                                   const std::string& name,
                                   int64_t port) {
  const auto entry = core.store.Get({"services", ns, name});
  if (!entry) return Status(Code::kNotFound, StrCat("service ", Quote(name), " not found"));
  return AddressOfService(core, *entry->Parsed(), {"https", name, std::to_string(port)}, ns);
}

void HandleHttpProxy(Core& core, const CallPtr& call) {
  const bool pod = call->storage->plural == "pods";
  const Status asked = AskConnect(core, *call, pod ? "PodProxyOptions" : "ServiceProxyOptions",
                                  {{"path", PathBehind(*call)}});
  if (!asked.ok()) {
    call->Fail(asked);
    return;
  }
  auto handler = Dial(core, *call);
  if (!handler.ok()) {
    call->Fail(handler.status());
    return;
  }
  ForwardTo(core, call, std::move(*handler), PathBehind(*call), call->request.query);
}

}  // namespace swell::apiserver
