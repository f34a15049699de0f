// From a request to its handler: authenticate, route, authorize, dispatch.
#include "base/log.h"
#include "base/strings.h"
#include "kube/apiserver/access/access.h"
#include "kube/apiserver/access/authn.h"
#include "kube/apiserver/access/request_log.h"
#include "kube/apiserver/admission/quota.h"
#include "kube/apiserver/handlers.h"
#include "kube/apiserver/hooks.h"
#include "kube/apiserver/reading/watch.h"
#include "kube/apiserver/request/errors.h"
#include "kube/apiserver/request_filters/ambiguous_kinds.h"
#include "kube/apiserver/request_filters/lease_terms.h"
#include "kube/apiserver/request_filters/yaml_offload.h"
#include "kube/apiserver/writing/prepare.h"
#include "kube/apiserver/writing/write_options.h"

namespace swell::apiserver {
namespace {

class CallHandle final : public api::RestCall {
 public:
  explicit CallHandle(CallPtr call) : call_(std::move(call)) {}
  ~CallHandle() override { call_->Cancel(); }

 private:
  CallPtr call_;
};

bool IsMutation(std::string_view verb) {
  return verb == "create" || verb == "update" || verb == "patch" || verb == "delete" ||
         verb == "deletecollection";
}

bool Contains(const std::vector<std::string>& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

Result<std::string> VerbOf(const Call& call) {
  const std::string_view method = call.request.method;
  const bool named = !call.info.name.empty();
  if (!call.info.is_resource) return ToLower(method);
  if (method == "GET" || method == "HEAD") {
    const bool watch = call.query.Bool("watch");
    if (call.info.deprecated_watch || (watch && call.info.subresource.empty()))
      return std::string("watch");
    return std::string(named ? "get" : "list");
  }
  if (method == "POST") return std::string("create");
  if (method == "PUT") return std::string("update");
  if (method == "PATCH") return std::string("patch");
  if (method == "DELETE") return std::string(named ? "delete" : "deletecollection");
  return MethodNotAllowedError();
}

// Finds the kind that the path names.
Status Route(Core& core, Call& call) {
  const RequestInfo& info = call.info;
  Core::Target target = core.FindTarget(info);
  call.kind = std::move(target.kind);
  call.storage = std::move(target.storage);
  if (!call.kind || !call.kind->served) return NoSuchResourceError();
  if (!call.kind->namespaced && !info.ns.empty()) return NoSuchResourceError();
  if (call.kind->namespaced && info.ns.empty() && !info.name.empty() && !info.deprecated_watch) {
    return NoSuchResourceError();
  }
  if (!info.rest.empty() && info.subresource != "proxy") return NoSuchResourceError();
  return Status::Ok();
}

using Handler = void (*)(Core&, const CallPtr&);

// Subresources with handlers of their own.
Handler SubresourceHandler(const Call& call, std::string_view verb) {
  const std::string& sub = call.info.subresource;
  const std::string& resource = call.storage->plural;
  const bool core_group = call.storage->gvk.group.empty();
  if (sub == "proxy" && core_group) {
    if (resource == "nodes") return HandleNodeProxy;
    return resource == "pods" || resource == "services" ? HandleHttpProxy : nullptr;
  }
  if (sub == "scale") {
    return verb == "get" || verb == "update" || verb == "patch" ? HandleScale : nullptr;
  }
  if (core_group && resource == "pods") {
    if (sub == "binding") return verb == "create" ? HandleBinding : nullptr;
    if (sub == "eviction") return verb == "create" ? HandleEviction : nullptr;
    if (sub == "ephemeralcontainers") return HandleEphemeralContainers;
    if (sub == "log") return verb == "get" ? HandlePodProxy : nullptr;
    if (sub == "exec" || sub == "attach" || sub == "portforward") {
      return verb == "get" || verb == "create" ? HandlePodProxy : nullptr;
    }
  }
  if (core_group && resource == "namespaces" && sub == "finalize") {
    return verb == "update" ? HandleNamespaceFinalize : nullptr;
  }
  if (core_group && resource == "serviceaccounts" && sub == "token") {
    return verb == "create" ? HandleTokenRequest : nullptr;
  }
  if (verb == "get") return HandleGet;
  if (verb == "update") return HandleUpdate;
  return verb == "patch" ? HandlePatch : nullptr;
}

Handler MainHandler(const Call& call, std::string_view verb) {
  if (call.kind->gvk.group.empty() && call.kind->plural == "bindings") {
    return verb == "create" ? HandleBindingsResource : nullptr;
  }
  if (call.kind->read_only) return verb == "create" ? HandleReview : nullptr;
  if (call.kind->computed) {
    return verb == "get" || verb == "list" ? HandleComputed : nullptr;
  }
  const bool named = !call.info.name.empty();
  if (verb == "get") return HandleGet;
  if (verb == "list") return HandleList;
  if (verb == "watch") return HandleWatch;
  if (verb == "create") return named ? nullptr : HandleCreate;
  if (verb == "update") return named ? HandleUpdate : nullptr;
  if (verb == "patch") return named ? HandlePatch : nullptr;
  if (verb == "delete") return HandleDelete;
  return verb == "deletecollection" && Contains(call.kind->verbs, verb) ? HandleDeleteCollection
                                                                        : nullptr;
}

// Below a group that nobody serves there is no API that could answer with a Status.
bool NamesUnknownGroup(const Core& core, const RequestInfo& info) {
  if (info.segments.size() < 2 || info.segments[0] != "apis") return false;
  for (const api::Scheme::Group& group : core.scheme->Groups()) {
    if (group.name == info.segments[1] && !group.versions.empty()) return false;
  }
  return true;
}

void RespondPageNotFound(Call& call) {
  api::RestResponse response;
  response.status = 404;
  response.content_type = "text/plain; charset=utf-8";
  response.body.push_back(api::MakeChunk("404 page not found\n"));
  call.Respond(std::move(response));
}

void Run(Core& core, const CallPtr& call, Handler handler, bool writes) {
  const Status leads = writes ? CheckLeaseTerm(core, *call) : Status::Ok();
  if (leads.ok()) return handler(core, call);
  call->Fail(leads);
}

Status Dispatch(Core& core, const CallPtr& call) {
  SWELL_ASSIGN_OR_RETURN(call->info, ParsePath(call->request.path));
  SWELL_ASSIGN_OR_RETURN(call->query, Query::Parse(call->request.query));
  SWELL_ASSIGN_OR_RETURN(call->user, Authenticate(core, call->request));
  SWELL_RETURN_IF_ERROR(Impersonate(core, *call));
  SWELL_ASSIGN_OR_RETURN(const std::string verb, VerbOf(*call));
  core.log->Routed(*call, verb);
  FollowHomonym(core, verb, *call);
  if (!IsMaster(call->user)) {
    SWELL_RETURN_IF_ERROR(CheckAccess(core, call->user, AttributesOf(*call, verb)));
  }
  if (!call->info.is_resource && HandleNonResource(core, call)) return Status::Ok();
  const Status routed = call->info.is_resource ? Route(core, *call) : NoSuchResourceError();
  if (!routed.ok() && NamesUnknownGroup(core, call->info)) {
    RespondPageNotFound(*call);
    return Status::Ok();
  }
  SWELL_RETURN_IF_ERROR(routed);
  const std::string& sub = call->info.subresource;
  if (!sub.empty() && !Contains(call->kind->subresources, sub)) {
    return call->kind->custom ? NotFoundError(*call->kind, call->info.name) : NoSuchResourceError();
  }
  const Handler handler = sub.empty() ? MainHandler(*call, verb) : SubresourceHandler(*call, verb);
  if (handler == nullptr) return MethodNotAllowedError();
  if (handler != HandlePodProxy && handler != HandleNodeProxy) {
    SWELL_ASSIGN_OR_RETURN(call->form, NegotiateForm(call->request.accept, call->query));
  }
  if (!call->kind->deprecation.empty()) call->AddWarning(call->kind->deprecation);
  const bool writes = IsMutation(verb);
  if (writes) SWELL_RETURN_IF_ERROR(ReadWriteOptions(*call, verb));
  call->again = [weak = core.weak_from_this(), handler, writes, random = core.random,
                 warned = call->warnings.size()](const CallPtr& again) {
    const auto alive = weak.lock();
    if (!alive) return;
    again->warnings.resize(warned);
    // The same names and uids as the first time, so that the questions are the same.
    const Random now = std::exchange(alive->random, random);
    Run(*alive, again, handler, writes);
    alive->random = now;
  };
  auto run = [call, handler, writes](Core& alive) { Run(alive, call, handler, writes); };
  if (!writes || !ReadYamlAside(core, call, run)) run(core);
  return Status::Ok();
}

class Server final : public ApiServer {
 public:
  Server(Executor& executor, Clock& clock, Random& random, store::Store& store, Options options)
      : core_(std::make_shared<Core>(executor, clock, random, store, std::move(options))) {
    RegisterStoredCrds(*core_);
    LoadServiceIps(*core_);
    LoadQuotas(*core_);
    StartEventExpiry(*core_);
  }
  ~Server() override {
    // Ends every watch before what they live on goes away.
    core_->watchers.clear();
  }

  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override {
    auto call = std::make_shared<Call>(std::move(sink));
    call->request = std::move(request);
    call->log = core_->log;
    core_->log->Began(*call);
    const Status status = Dispatch(*core_, call);
    if (!status.ok()) call->Fail(status);
    if (call->finished()) return nullptr;
    return std::make_unique<CallHandle>(std::move(call));
  }

  std::unique_ptr<api::RestCall> Bind(const api::UserInfo& user,
                                      std::vector<json::Value> bindings,
                                      api::Bound bound) override {
    return BindAll(*core_, user, std::move(bindings), bound);
  }

  // A write is accepted before Handle() returns, and what is accepted becomes durable in order.
  bool in_order() const override { return true; }

  void Advertise(std::string address, int port) override {
    core_->options.advertise_address = std::move(address);
    core_->options.advertise_port = port;
  }
  void Bootstrap(std::function<void(const Status&)> ready) override {
    RunBootstrap(*core_, std::move(ready));
  }
  const api::Scheme& scheme() const override { return *core_->scheme; }

 private:
  std::shared_ptr<Core> core_;
};

}  // namespace

std::unique_ptr<ApiServer> ApiServer::Create(
    Executor& executor, Clock& clock, Random& random, store::Store& store, Options options) {
  return std::make_unique<Server>(executor, clock, random, store, std::move(options));
}

}  // namespace swell::apiserver
