#include "kube/edge/kubelet/kubelet_endpoints.h"

#include "base/descriptors.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/edge/kubelet/kubelet_server.h"
#include "kube/edge/streams/command_server.h"
#include "kube/edge/streams/port_forward_server.h"

namespace swell::edge {
namespace {

// A port takes two of a WebSocket's 256 channels.
constexpr size_t kPortsMax = 100;
constexpr size_t kForwardedPart = 8;
// A command has six: the client's, three pipes, two for its process. Clients have half of all
// (net::ServerConfig), so commands and forwarded connections share the rest.
constexpr size_t kCommandPart = 16;

// Segments of the path, unescaped; empty when an escape is bad.
std::vector<std::string> PathSegments(std::string_view path) {
  std::vector<std::string> out;
  for (std::string_view part : Split(path, '/')) {
    if (part.empty()) continue;
    auto pair = api::ParseQuery(StrCat("p=", part));
    if (!pair.ok() || pair->size() != 1) return {};
    out.push_back(std::move((*pair)[0].second));
  }
  return out;
}

bool IsOn(const std::vector<std::pair<std::string, std::string>>& query, std::string_view name) {
  for (const auto& [key, value] : query) {
    if (key == name) return value == "1" || value == "true";
  }
  return false;
}

std::string ValueOf(const std::vector<std::pair<std::string, std::string>>& query,
                    std::string_view name) {
  for (const auto& [key, value] : query) {
    if (key == name) return value;
  }
  return "";
}

Result<std::vector<uint16_t>> Ports(const std::vector<std::pair<std::string, std::string>>& query) {
  std::vector<uint16_t> ports;
  for (const auto& [key, value] : query) {
    if (key != "port") continue;
    for (std::string_view text : Split(value, ',')) {
      const auto port = ParseUint(text);
      if (!port || *port > 65535) {
        return Status(Code::kBadRequest, StrCat("unable to parse ", Quote(value), " as a port"));
      }
      if (*port < 1)
        return Status(Code::kBadRequest, StrCat("port ", Quote(value), " must be > 0"));
      ports.push_back(static_cast<uint16_t>(*port));
    }
  }
  if (ports.size() > kPortsMax) {
    return Status(Code::kBadRequest, StrCat("at most ", kPortsMax, " ports at once"));
  }
  return ports;
}

// The stream, which keeps the place until it is dropped.
api::DuplexPtr Holding(FairPlaces::Place place, api::DuplexPtr stream) {
  api::DuplexStream* const to = stream.get();
  auto held = std::make_shared<std::pair<FairPlaces::Place, api::DuplexPtr>>(std::move(place),
                                                                             std::move(stream));
  return {std::move(held), to};
}

// Connects to a pod's port, in a place that the connection holds until it is dropped.
auto DialInPlace(node::Runtime& runtime,
                 std::string pod_uid,
                 std::shared_ptr<FairPlaces> places,
                 std::string user) {
  return [runtime = &runtime, uid = std::move(pod_uid), places = std::move(places),
          user = std::move(user)](uint16_t port, std::function<void(Result<api::DuplexPtr>)> done) {
    FairPlaces::Place place = places->Take(user);
    if (place == nullptr) {
      return done(Status(Code::kTooManyRequests,
                         StrCat(places->taken(),
                                " forwarded connections are open, and too many of them are yours: "
                                "close some")));
    }
    runtime->Dial(uid, port, [place, done = std::move(done)](Result<api::DuplexPtr> to) {
      if (!to.ok()) return done(std::move(to));
      done(Holding(place, std::move(*to)));
    });
  };
}

Status NoSuchContainer(std::string_view name) {
  return Status(Code::kInternal, StrCat("container not found (", Quote(name), ")"));
}

}  // namespace

std::unique_ptr<api::RestCall> KubeletEndpoints::Handle(api::RestRequest request,
                                                        std::shared_ptr<api::RestSink> sink) {
  const std::vector<std::string> path = PathSegments(request.path);
  const std::string first = path.empty() ? "" : path[0];
  const bool command = first == "exec" || first == "attach";
  if (!command && first != "portForward") return plain_.Handle(std::move(request), std::move(sink));
  Status refused;
  auto query = api::ParseQuery(request.query);
  if (!query.ok()) {
    refused = query.status();
  } else if (request.method != "GET" && request.method != "POST") {
    refused = Status(Code::kMethodNotAllowed, "405: Method Not Allowed");
  } else if (command) {
    refused = Command(request, path, *query, *sink);
  } else {
    refused = PortForward(request, path, *query, *sink);
  }
  if (!refused.ok()) sink->OnResponse(TextResponse(HttpStatus(refused.code()), refused.message()));
  return nullptr;
}

Status KubeletEndpoints::Command(const api::RestRequest& request,
                                 const std::vector<std::string>& path,
                                 const Query& query,
                                 api::RestSink& sink) {
  if (path.size() < 4 || path.size() > 5) {
    return Status(Code::kNotFound, "404: Page Not Found");
  }
  const bool attach = path[0] == "attach";
  CommandRequest command;
  node::StdioSpec& spec = command.spec;
  for (const auto& [key, value] : query) {
    if (key == "command" && !attach) spec.argv.push_back(value);
  }
  spec.input = IsOn(query, "input");
  spec.output = IsOn(query, "output");
  spec.tty = IsOn(query, "tty");
  spec.error = IsOn(query, "error") && !spec.tty;
  if (!spec.input && !spec.output && !spec.error) {
    return Status(Code::kBadRequest, "you must specify at least 1 of stdin, stdout, stderr");
  }
  if (!attach && spec.argv.empty()) {
    return Status(Code::kBadRequest, "you must specify at least one command for the container");
  }
  const std::string key = StrCat(path[1], "/", path[2]);
  const json::SharedValue pod = agent_.FindPod(key);
  if (pod == nullptr) return Status(Code::kNotFound, "pod does not exist");
  const json::Value* container = node::FindContainer(*pod, path.back());
  const auto ref = plain_.FindRunning(key, path.back());
  if (container == nullptr || !ref) return NoSuchContainer(path.back());
  if (attach) {
    command.input_ends_with_client =
        json::GetBool(*container, {"stdinOnce"}) && !json::GetBool(*container, {"tty"});
    spec.input = spec.input && json::GetBool(*container, {"stdin"});
  }
  Agreement agreement;
  api::RestResponse refusal;
  if (!Negotiate(request.upgrade, CommandSpdyProtocols(), CommandWebSocketProtocols(), &agreement,
                 &refusal)) {
    sink.OnResponse(std::move(refusal));
    return Status::Ok();
  }
  command.open = [runtime = &agent_.runtime(), ref = *ref, spec](node::StdioCallback done) {
    runtime->OpenStdio(ref, spec, std::move(done));
  };
  const FairPlaces::Place place = places_.commands->Take(ValueOf(query, "user"));
  if (place == nullptr) {
    return Status(Code::kTooManyRequests,
                  StrCat(places_.commands->taken(),
                         " commands run in pods, and too many of them are yours: end some"));
  }
  auto wire = sink.OnUpgrade(agreement.headers);
  if (wire == nullptr) return Status(Code::kBadRequest, "this connection cannot be upgraded");
  wire = Holding(place, std::move(wire));
  ServeCommand(agent_.executor(), agreement, std::move(wire), std::move(command));
  return Status::Ok();
}

Status KubeletEndpoints::PortForward(const api::RestRequest& request,
                                     const std::vector<std::string>& path,
                                     const Query& query,
                                     api::RestSink& sink) {
  if (path.size() < 3 || path.size() > 4) return Status(Code::kNotFound, "404: Page Not Found");
  const json::SharedValue pod = agent_.FindPod(StrCat(path[1], "/", path[2]));
  if (pod == nullptr) return Status(Code::kNotFound, "pod does not exist");
  SWELL_ASSIGN_OR_RETURN(std::vector<uint16_t> ports, Ports(query));
  Agreement agreement;
  api::RestResponse refusal;
  if (!Negotiate(request.upgrade, PortForwardSpdyProtocols(), PortForwardWebSocketProtocols(),
                 &agreement, &refusal)) {
    sink.OnResponse(std::move(refusal));
    return Status::Ok();
  }
  const bool channels = agreement.web_socket && !agreement.protocol.starts_with("SPDY/");
  if (channels && ports.empty()) {
    return Status(Code::kBadRequest, "query parameter \"port\" is required");
  }
  auto wire = sink.OnUpgrade(agreement.headers);
  if (wire == nullptr) return Status(Code::kBadRequest, "this connection cannot be upgraded");
  const std::string uid(api::Uid(*pod));
  PortForwardRequest forward{
      .pod = StrCat(api::Name(*pod), "_", api::Namespace(*pod), ", uid ", uid),
      .ports = std::move(ports),
      .dial = DialInPlace(agent_.runtime(), uid, places_.forwarded, ValueOf(query, "user"))};
  ServePortForward(agent_.executor(), agreement, std::move(wire), std::move(forward));
  return Status::Ok();
}

std::shared_ptr<api::RestHandler> MakeKubeletEndpoints(node::NodeAgent& agent, NodePlaces places) {
  return std::make_shared<KubeletEndpoints>(agent, std::move(places));
}

NodePlaces MakeNodePlaces() {
  return {.forwarded = std::make_shared<FairPlaces>(DescriptorLimit() / kForwardedPart),
          .commands = std::make_shared<FairPlaces>(DescriptorLimit() / kCommandPart)};
}

}  // namespace swell::edge
