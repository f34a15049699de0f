// swell port-forward: local ports that lead to a pod's.
#include <optional>

#include "base/host_port.h"
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/pods/interactive.h"
#include "cli/pods/pod_choice.h"
#include "cli/session.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "kube/edge/streams/command_client.h"

namespace swell::cli {
namespace {

constexpr Duration kForEver = std::chrono::hours(24 * 365);

struct PortPair {
  uint16_t local = 0;  // 0: any
  uint16_t remote = 0;
};

Result<uint16_t> ParsePort(std::string_view text) {
  const auto port = ParseUint(text);
  if (!port || *port > 65535) {
    return Misuse(StrCat("error parsing port ", Quote(text), ": expected a number up to 65535"));
  }
  return static_cast<uint16_t>(*port);
}

// The pod's port that the text means; of a service, through its ports.
Result<uint16_t> RemotePort(const ChosenPod& chosen, std::string_view text) {
  const auto number = ParseUint(text);
  const json::Value& pod = *chosen.pod;
  if (chosen.service) {
    for (const json::Value& port : json::GetArray(*chosen.service, {"spec", "ports"})) {
      const int64_t own = json::GetInt(port, {"port"});
      const bool meant =
          number ? own == static_cast<int64_t>(*number) : json::GetString(port, {"name"}) == text;
      if (!meant) continue;
      const json::Value* target = json::Find(port, {"targetPort"});
      if (target == nullptr) return static_cast<uint16_t>(own);
      if (target->is_int64()) {
        return static_cast<uint16_t>(target->get_int64() == 0 ? own : target->get_int64());
      }
      const auto named = api::NamedPort(pod, json::GetString(port, {"targetPort"}));
      if (named) return static_cast<uint16_t>(*named);
      break;
    }
    return Status(Code::kNotFound, StrCat("Service ", api::Name(*chosen.service),
                                          " does not have a service port ", text));
  }
  if (number) return ParsePort(text);
  if (const auto named = api::NamedPort(pod, text)) return static_cast<uint16_t>(*named);
  return Status(Code::kNotFound,
                StrCat("Pod '", api::Name(pod), "' does not have a named port '", text, "'"));
}

// "8080", "5000:6000", ":6000", "8080:http".
Result<PortPair> ParsePair(const ChosenPod& chosen, std::string_view text) {
  const size_t colon = text.find(':');
  PortPair pair;
  SWELL_ASSIGN_OR_RETURN(
      pair.remote,
      RemotePort(chosen, colon == std::string_view::npos ? text : text.substr(colon + 1)));
  if (pair.remote == 0) return Misuse("remote port must be > 0");
  if (colon == std::string_view::npos) {
    const auto number = ParseUint(text);
    pair.local = number ? static_cast<uint16_t>(*number) : pair.remote;
  } else if (colon > 0) {
    SWELL_ASSIGN_OR_RETURN(pair.local, ParsePort(text.substr(0, colon)));
  }
  return pair;
}

// The ports that a service or the pod's containers name.
std::vector<std::string> OwnPorts(const ChosenPod& chosen) {
  std::vector<std::string> ports;
  auto add = [&ports](const json::Value& list, std::string_view field) {
    for (const json::Value& port : json::GetArray(list, {"ports"})) {
      if (json::GetString(port, {"protocol"}, "TCP") != "TCP") continue;
      ports.push_back(std::to_string(json::GetInt(port, {field})));
    }
  };
  if (chosen.service) {
    add(*json::Find(*chosen.service, {"spec"}), "port");
    return ports;
  }
  for (const json::Value& container : json::GetArray(*chosen.pod, {"spec", "containers"})) {
    add(container, "containerPort");
  }
  return ports;
}

class PortForwardAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.List("--address", &addresses_, "ADDRESS", "address to listen on (default: localhost)");
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (words.empty()) {
      return Misuse("a name is required for port-forward: swell port-forward POD [[LOCAL:]REMOTE]");
    }
    CliEnv& env = session.env();
    if (!env.listen) return Status(Code::kUnavailable, "ports cannot be opened here");
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(const ChosenPod chosen, ChoosePod(*api, session.Namespace(), words[0]));
    SWELL_RETURN_IF_ERROR(CheckHasContainers(*chosen.pod, "forward ports to"));
    const std::string_view phase = api::Phase(*chosen.pod);
    if (phase != "Running") {
      return Status(Code::kConflict, StrCat("unable to forward port because pod is not running. ",
                                            "Current status=", phase));
    }
    if (words.size() == 1) {
      for (std::string& port : OwnPorts(chosen)) words.push_back(std::move(port));
    }
    if (words.size() == 1) {
      return Misuse(StrCat("Pod ", api::Name(*chosen.pod), " names no ports; say which ",
                           "to forward after its name, like 8888"));
    }
    std::vector<PortPair> pairs;
    for (size_t i = 1; i < words.size(); ++i) {
      SWELL_ASSIGN_OR_RETURN(const PortPair pair, ParsePair(chosen, words[i]));
      pairs.push_back(pair);
    }
    return Forward(session, *api, chosen, pairs);
  }

 private:
  Result<int> Forward(Session& session,
                      Api& api,
                      const ChosenPod& chosen,
                      const std::vector<PortPair>& pairs) {
    CliEnv& env = session.env();
    bool open = false;
    std::optional<Status> ended;
    edge::PortForwardEvents events;
    events.on_open = [&] { open = true; };
    events.on_error = [&](uint16_t, const std::string& why) {
      session.ErrLine(StrCat("error: an error occurred forwarding: ", why));
    };
    events.on_end = [&](const Status& why) { ended = why; };
    const Connection& connection = api.connection();
    auto client = edge::StartPortForward(env.loop->executor(), connection.server, connection.user,
                                         std::string(api::Namespace(*chosen.pod)),
                                         std::string(api::Name(*chosen.pod)), events);
    env.loop->RunUntil([&] { return open || ended; }, kForEver);
    std::vector<std::unique_ptr<PortListener>> listeners;
    if (open) SWELL_RETURN_IF_ERROR(Listen(session, *client, pairs, &listeners));
    env.loop->RunUntil([&] { return ended.has_value(); }, kForEver);
    listeners.clear();
    if (!ended) return 130;
    if (!open) return *ended;
    return Status(Code::kUnavailable, "lost connection to pod");
  }

  Status Listen(Session& session,
                edge::PortForwardClient& client,
                const std::vector<PortPair>& pairs,
                std::vector<std::unique_ptr<PortListener>>* listeners) {
    std::vector<std::string> hosts;
    for (const std::string& listed : addresses_) {
      for (std::string_view host : Split(listed, ',')) hosts.emplace_back(host);
    }
    if (hosts.empty()) hosts = {"localhost"};
    for (const PortPair& pair : pairs) {
      uint16_t local = pair.local;
      Status failed;
      const size_t before = listeners->size();
      for (const std::string& host : hosts) {
        const bool both = host == "localhost";
        for (const std::string& one :
             both ? std::vector<std::string>{"127.0.0.1", "::1"} : std::vector<std::string>{host}) {
          const std::string shown = Bracketed(one);
          auto accepted = [&session, &client, pair, local](api::DuplexPtr connection) {
            session.OutLine(StrCat("Handling connection for ", local == 0 ? pair.remote : local));
            client.Forward(pair.remote, std::move(connection));
          };
          auto listener = session.env().listen(StrCat(shown, ":", local), accepted);
          if (!listener.ok()) {
            failed = listener.status();
            // One of localhost's two families is enough.
            if (both) continue;
            return failed;
          }
          local = (*listener)->port();
          session.OutLine(StrCat("Forwarding from ", shown, ":", local, " -> ", pair.remote));
          listeners->push_back(std::move(*listener));
        }
      }
      if (listeners->size() == before) {
        return failed.WithContext(StrCat("unable to listen on port ", pair.local));
      }
    }
    return Status::Ok();
  }

  std::vector<std::string> addresses_;
};

}  // namespace

Command PortForwardCommandSpec() {
  return {
      .name = "port-forward",
      .group = "Pods",
      .summary = "Forward local ports to a pod or a service.",
      .usage = "POD | svc/NAME [[LOCAL:]REMOTE...]",
      .examples = {{"TensorBoard in a job's master", "swell port-forward mnist 6006"},
                   {"The ports that the job names", "swell port-forward notebook"},
                   {"A service at another local port", "swell port-forward svc/web 8080:80"},
                   {"Any free local port", "swell port-forward pod/web :80"}},
      .completes = Completes::kJob,
      .make = Makes<PortForwardAction>(),
  };
}

}  // namespace swell::cli
