// Pods' log, exec, attach and portforward, and nodes' proxy: forwarded to the kubelet's endpoints
// of the node.
#include <algorithm>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/container_list.h"
#include "kube/api/objects/pod.h"
#include "kube/apiserver/access/open_streams.h"
#include "kube/apiserver/access/submitter.h"
#include "kube/apiserver/admission/admission_webhooks.h"
#include "kube/apiserver/admission/pod_security.h"
#include "kube/apiserver/pods/handlers.h"
#include "kube/apiserver/request/errors.h"

namespace swell::apiserver {
namespace {

std::vector<std::string> Names(const json::Value& pod, const char* list) {
  std::vector<std::string> names;
  for (const json::Value& container : json::GetArray(pod, {"spec", list})) {
    names.emplace_back(json::GetString(container, {"name"}));
  }
  return names;
}

// The container asked for, or the only one there is.
Result<std::string> ContainerOf(const Call& call, const json::Value& pod) {
  const std::string asked(call.query.Get("container"));
  const std::vector<std::string> containers = Names(pod, "containers");
  const std::vector<std::string> init = Names(pod, "initContainers");
  const std::vector<std::string> ephemeral = Names(pod, "ephemeralContainers");
  const std::string name(api::Name(pod));
  if (asked.empty()) {
    if (containers.size() == 1) return containers[0];
    if (containers.empty()) {
      return BadRequestError(StrCat("a container name must be specified for pod ", name));
    }
    std::vector<std::string> all = init;
    all.insert(all.end(), containers.begin(), containers.end());
    all.insert(all.end(), ephemeral.begin(), ephemeral.end());
    return BadRequestError(StrCat("a container name must be specified for pod ", name,
                                  ", choose one of: [", Join(all, " "), "]"));
  }
  for (const auto* list : {&containers, &init, &ephemeral}) {
    if (std::find(list->begin(), list->end(), asked) != list->end()) return asked;
  }
  return BadRequestError(StrCat("container ", asked, " is not valid for pod ", name));
}

const json::Value* ContainerStatus(const json::Value& pod, std::string_view container) {
  for (const char* list :
       {"containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"}) {
    const json::Array& statuses = json::GetArray(pod, {"status", list});
    if (const json::Value* found = api::ContainerIn(statuses, container)) return found;
  }
  return nullptr;
}

// A container that has never run has no log to show.
Status CheckStarted(const json::Value& pod, const std::string& container) {
  const json::Value* status = ContainerStatus(pod, container);
  if (status == nullptr) return Status::Ok();
  const std::string who = StrCat("container ", Quote(container), " in pod ", Quote(api::Name(pod)));
  const json::Value* waiting = json::Find(*status, {"state", "waiting"});
  const json::Value* ended =
      json::Find(*status, {waiting != nullptr ? "lastState" : "state", "terminated"});
  if (ended != nullptr && json::GetString(*ended, {"reason"}) == "StartError") {
    return BadRequestError(StrCat(who, " did not start: ", json::GetString(*ended, {"message"})));
  }
  if (waiting == nullptr || ended != nullptr) return Status::Ok();
  const std::string_view reason = json::GetString(*waiting, {"reason"});
  return BadRequestError(
      StrCat(who, " is waiting to start: ", reason.empty() ? "ContainerCreating" : reason));
}

void AddParameter(std::string& query, std::string_view key, std::string_view value) {
  query += StrCat(query.empty() ? "" : "&", key, "=", api::EscapeQuery(value));
}

Status CheckLogOptions(const Query& query) {
  for (const char* key : {"tailLines", "sinceSeconds", "limitBytes"}) {
    SWELL_ASSIGN_OR_RETURN(const auto count, query.Count(key));
    if (count.value_or(0) < 0) {
      return BadRequestError(StrCat("PodLogOptions \"\" is invalid: ", key, ": Invalid value: ",
                                    *count, ": must be greater than or equal to 0"));
    }
  }
  if (query.Find("sinceSeconds") && query.Find("sinceTime")) {
    return BadRequestError("at most one of `sinceTime` or `sinceSeconds` may be specified");
  }
  return Status::Ok();
}

// The node's own query: the kubelet's names for exec's streams differ from the API's.
std::string NodeQuery(const Call& call) {
  std::string out;
  if (call.info.subresource == "log") {
    for (const char* key : {"follow", "previous", "timestamps", "tailLines", "sinceSeconds",
                            "sinceTime", "limitBytes", "restart"}) {
      if (const auto value = call.query.Find(key)) {
        AddParameter(out, key, value->empty() ? "true" : *value);
      }
    }
    return out;
  }
  for (std::string_view command : call.query.All("command")) AddParameter(out, "command", command);
  for (std::string_view port : call.query.All("ports")) AddParameter(out, "port", port);
  constexpr std::pair<const char*, const char*> kStreams[] = {
      {"stdin", "input"}, {"stdout", "output"}, {"stderr", "error"}, {"tty", "tty"}};
  for (const auto& [ours, kubelets] : kStreams) {
    if (call.query.Bool(ours)) AddParameter(out, kubelets, "1");
  }
  return out;
}

std::string NodePath(const Call& call, const std::string& container) {
  const std::string& sub = call.info.subresource;
  const std::string pod =
      StrCat(api::EscapePathSegment(call.info.ns), "/", api::EscapePathSegment(call.info.name));
  if (sub == "log") return StrCat("/containerLogs/", pod, "/", api::EscapePathSegment(container));
  if (sub == "portforward") return StrCat("/portForward/", pod);
  return StrCat("/", sub, "/", pod, "/", api::EscapePathSegment(container));
}

// Hands the node's answer through. Holds the call; the call's release ends the node's call.
class Forward final : public api::RestSink {
 public:
  Forward(Core& core, CallPtr call, FairPlaces::Place place)
      : core_(core.weak_from_this()), call_(std::move(call)), place_(std::move(place)) {}

  void OnResponse(api::RestResponse response) override {
    // A slow reader's answer waits in the connection, when the call is long over.
    for (api::Chunk& chunk : response.body) {
      if (place_ == nullptr) break;
      auto held = std::make_shared<const std::pair<FairPlaces::Place, api::Chunk>>(place_, chunk);
      chunk = api::Chunk(held, held->second.get());
    }
    place_.reset();
    call_->Respond(std::move(response));
  }
  void OnStreamStart(int status, std::string content_type) override {
    call_->StartStream(status, std::move(content_type));
  }
  bool OnChunk(const api::Chunk& chunk) override { return call_->Send(chunk); }
  void OnStreamEnd(const Status& why) override {
    place_.reset();
    call_->EndStream(why);
  }
  api::DuplexPtr OnUpgrade(api::HeaderList headers) override {
    place_.reset();
    auto stream = call_->Upgrade(std::move(headers));
    const auto core = core_.lock();
    return core ? core->Get<OpenStreams>().Add(*call_, std::move(stream)) : stream;
  }

 private:
  std::weak_ptr<Core> core_;
  CallPtr call_;
  FairPlaces::Place place_;
};

// Lets webhooks refuse exec, attach and portforward.
Status AskAboutStreams(Core& core, Call& call, const std::string& container) {
  json::Object options;
  if (call.info.subresource == "portforward") {
    json::Array ports;
    for (std::string_view text : call.query.All("ports")) {
      for (std::string_view port : Split(text, ',')) {
        if (const auto number = ParseInt(port)) ports.emplace_back(*number);
      }
    }
    if (!ports.empty()) options["ports"] = std::move(ports);
    return AskConnect(core, call, "PodPortForwardOptions", options);
  }
  for (const char* stream : {"stdin", "stdout", "stderr", "tty"}) {
    if (call.query.Bool(stream)) options[stream] = true;
  }
  options["container"] = container;
  if (call.info.subresource == "attach") {
    return AskConnect(core, call, "PodAttachOptions", options);
  }
  const auto words = call.query.All("command");
  options["command"] = json::Array(words.begin(), words.end());
  return AskConnect(core, call, "PodExecOptions", options);
}

void ForwardToNode(
    Core& core, const CallPtr& call, const std::string& node, std::string path, std::string query) {
  if (!core.options.node_dialer) {
    call->Fail(Status(Code::kUnavailable, "this server reaches no nodes"));
    return;
  }
  auto handler = core.options.node_dialer(node);
  if (!handler.ok()) {
    call->Fail(handler.status().WithContext(StrCat("node ", Quote(node))));
    return;
  }
  ForwardTo(core, call, *handler, std::move(path), std::move(query));
}

}  // namespace

std::string CountedUser(const Core& core, const Call& call) {
  const std::string person = SubmitterOf(core, call).value_or("");
  return person.empty() ? call.user.name : person;
}

void ForwardTo(Core& core,
               const CallPtr& call,
               std::shared_ptr<api::RestHandler> handler,
               std::string path,
               std::string query,
               FairPlaces::Place place) {
  api::RestRequest request = call->request;
  request.path = std::move(path);
  request.query = std::move(query);
  request.credentials = {};
  request.user = call->user;
  // The other side's handler and its call live as long as this one.
  auto held = std::make_shared<
      std::pair<std::shared_ptr<api::RestHandler>, std::unique_ptr<api::RestCall>>>(
      std::move(handler), nullptr);
  call->OnRelease([&core, held] {
    // Not from inside the other side's own callback.
    core.executor.Post([held] { held->second.reset(); });
  });
  auto under_way = held->first->Handle(std::move(request),
                                       std::make_shared<Forward>(core, call, std::move(place)));
  if (!call->finished()) held->second = std::move(under_way);
}

// pods/NAME/log/UID: the log of the very pod with that uid, which may be gone while its job is not.
// Its node finds out whether it was in this namespace and had this name.
void HandleKeptLog(Core& core, const CallPtr& call) {
  const std::string node(call->query.Get("node"));
  const std::string container(call->query.Get("container"));
  Status wrong = CheckLogOptions(call->query);
  if (wrong.ok() && (node.empty() || container.empty())) {
    wrong = BadRequestError(
        "node and container are required: a job's status.attempts names them for each pod");
  }
  if (!wrong.ok()) {
    call->Fail(wrong);
    return;
  }
  std::string query = NodeQuery(*call);
  AddParameter(query, "podUID", std::string_view(call->info.rest).substr(1));
  ForwardToNode(core, call, node, NodePath(*call, container), std::move(query));
}

void HandlePodProxy(Core& core, const CallPtr& call) {
  if (call->info.subresource == "log" && call->info.rest.size() > 1) {
    return HandleKeptLog(core, call);
  }
  const auto entry = core.store.Get(KeyFor(*call->storage, call->info.ns, call->info.name));
  if (!entry) {
    call->Fail(NotFoundError(*call->kind, call->info.name));
    return;
  }
  const auto pod = entry->Parsed();
  const bool log = call->info.subresource == "log";
  const Status allowed = log ? CheckLogOptions(call->query) : CheckPodConnection(core, *call, *pod);
  if (!allowed.ok()) {
    call->Fail(allowed);
    return;
  }
  std::string container;
  if (call->info.subresource != "portforward") {
    auto found = ContainerOf(*call, *pod);
    if (!found.ok()) {
      call->Fail(found.status());
      return;
    }
    container = std::move(*found);
  }
  const std::string node(api::NodeName(*pod));
  if (node.empty()) {
    if (log) {
      api::RestResponse nothing;
      nothing.status = 204;
      nothing.content_type.clear();
      call->Respond(std::move(nothing));
    } else {
      call->Fail(
          BadRequestError(StrCat("pod ", call->info.name, " does not have a host assigned")));
    }
    return;
  }
  if (log && !call->query.Bool("previous")) {
    const Status started = CheckStarted(*pod, container);
    if (!started.ok()) {
      call->Fail(started);
      return;
    }
  }
  if (!log && call->request.upgrade.empty()) {
    call->Fail(BadRequestError("Upgrade request required"));
    return;
  }
  const Status asked = log ? Status::Ok() : AskAboutStreams(core, *call, container);
  if (!asked.ok()) {
    call->Fail(asked);
    return;
  }
  std::string query = NodeQuery(*call);
  if (!log) AddParameter(query, "user", CountedUser(core, *call));
  ForwardToNode(core, call, node, NodePath(*call, container), std::move(query));
}

void HandleNodeProxy(Core& core, const CallPtr& call) {
  const std::string& node = call->info.name;
  if (!core.store.Get(KeyFor(*call->storage, "", node))) {
    call->Fail(NotFoundError(*call->kind, node));
    return;
  }
  const Status asked = AskConnect(core, *call, "NodeProxyOptions", {{"path", call->info.rest}});
  if (!asked.ok()) {
    call->Fail(asked);
    return;
  }
  ForwardToNode(core, call, node, call->info.rest.empty() ? "/" : call->info.rest,
                call->request.query);
}

}  // namespace swell::apiserver
