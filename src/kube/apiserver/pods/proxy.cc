// The proxy subresource of pods and services: HTTP through the API server.
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "kube/apiserver/admission/admission_webhooks.h"
#include "kube/apiserver/admission/pod_security.h"
#include "kube/apiserver/pods/handlers.h"
#include "kube/apiserver/request/errors.h"
#include "kube/apiserver/service_address.h"

namespace swell::apiserver {
namespace {

// What a proxy's path names: "web", "web:8080" or "https:web:8080".
struct Target {
  std::string scheme = "http";
  std::string name;
  std::string port;  // a number or a name; empty: the one there is
};

// An answer is in memory until its reader has it, as large as the client's limit of 16 MiB.
constexpr size_t kAnswersMax = 64;

struct HttpProxies final : CorePart {
  FairPlaces answers{kAnswersMax};
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

Result<std::string> AddressOfPod(const json::Value& pod, const Target& target) {
  const std::string_view address = json::GetString(pod, {"status", "podIP"});
  if (address.empty()) return BadRequestError("address not allowed");
  // Its address may be that of another's pod by now.
  if (api::HasEnded(pod)) {
    return BadRequestError(
        StrCat("cannot connect to a completed pod; current phase is ", api::Phase(pod)));
  }
  std::string port = target.port;
  for (const json::Value& container : json::GetArray(pod, {"spec", "containers"})) {
    if (!port.empty()) break;
    const json::Array& ports = json::GetArray(container, {"ports"});
    if (!ports.empty()) port = std::to_string(json::GetInt(ports[0], {"containerPort"}));
  }
  return HostAndPort(address, port);
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
  if (resource == "pods") {
    SWELL_RETURN_IF_ERROR(CheckPodConnection(core, call, *object));
  }
  SWELL_ASSIGN_OR_RETURN(const std::string address,
                         resource == "pods" ? AddressOfPod(*object, target)
                                            : AddressOfService(core, *object, target.port));
  if (!core.options.http_dialer) {
    return Status(Code::kUnavailable, "this server reaches no pods");
  }
  HttpTarget to;
  to.base_url = StrCat(target.scheme, "://", address);
  return core.options.http_dialer(to);
}

}  // namespace

void RegisterHttpProxies(Core& core) { core.Add(std::make_unique<HttpProxies>()); }

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
  auto place = core.Get<HttpProxies>().answers.Take(CountedUser(core, *call));
  if (place == nullptr) {
    call->Fail(Status(Code::kTooManyRequests,
                      "too many answers of pods and services are under way to you; try again",
                      {"", "", "", "", {}, 1}));
    return;
  }
  ForwardTo(core, call, std::move(*handler), PathBehind(*call), call->request.query,
            std::move(place));
}

}  // namespace swell::apiserver
