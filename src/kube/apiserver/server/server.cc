// From a request to its handler: authenticate, route, authorize, dispatch.
#include <algorithm>
#include <set>

#include "base/strings.h"
#include "kube/apiserver/access/access.h"
#include "kube/apiserver/access/authn.h"
#include "kube/apiserver/access/node_restriction.h"
#include "kube/apiserver/access/open_streams.h"
#include "kube/apiserver/access/request_log.h"
#include "kube/apiserver/admission/admission_policies.h"
#include "kube/apiserver/admission/admission_webhooks.h"
#include "kube/apiserver/admission/object_counts.h"
#include "kube/apiserver/admission/quota.h"
#include "kube/apiserver/kinds/handlers.h"
#include "kube/apiserver/pods/handlers.h"
#include "kube/apiserver/reading/handlers.h"
#include "kube/apiserver/reading/watch.h"
#include "kube/apiserver/request/errors.h"
#include "kube/apiserver/request_filters/ambiguous_kinds.h"
#include "kube/apiserver/request_filters/lease_terms.h"
#include "kube/apiserver/request_filters/yaml_offload.h"
#include "kube/apiserver/server/bootstrap.h"
#include "kube/apiserver/server/routes.h"
#include "kube/apiserver/webhooks/webhook.h"
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

bool IsLasting(const Call& call, std::string_view verb) {
  const std::string& sub = call.info.subresource;
  return verb == "watch" || sub == "log" || sub == "proxy" || sub == "exec" || sub == "attach" ||
         sub == "portforward";
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

void Run(Core& core, const CallPtr& call, RouteHandler handler, bool writes) {
  const Status leads = writes ? CheckLeaseTerm(core, *call) : Status::Ok();
  if (leads.ok()) return handler(core, call);
  call->Fail(leads);
}

Status Dispatch(Core& core, const CallPtr& call) {
  SWELL_ASSIGN_OR_RETURN(call->info, ParsePath(call->request.path));
  SWELL_ASSIGN_OR_RETURN(call->query, Query::Parse(call->request.query));
  SWELL_ASSIGN_OR_RETURN(call->user, Authenticate(core, call->request));
  SWELL_ASSIGN_OR_RETURN(const std::string verb, VerbOf(*call));
  SWELL_RETURN_IF_ERROR(Impersonate(core, verb, *call));
  core.observer->Routed(*call, verb);
  ResolveAmbiguousKind(core, verb, *call);
  if (!IsMaster(call->user)) {
    SWELL_RETURN_IF_ERROR(CheckAccess(core, call->user, AttributesOf(*call, verb)));
    SWELL_RETURN_IF_ERROR(CheckNodeRequest(core, *call, verb));
  }
  if (IsLasting(*call, verb)) SWELL_RETURN_IF_ERROR(core.Get<OpenStreams>().Add(call));
  if (!call->info.is_resource) {
    SWELL_RETURN_IF_ERROR(core.observer->Admit(*call));
    if (HandleNonResource(core, call)) return Status::Ok();
  }
  const Status routed = call->info.is_resource ? Route(core, *call) : NoSuchResourceError();
  if (!routed.ok() && NamesUnknownGroup(core, call->info)) {
    RespondPageNotFound(*call);
    return Status::Ok();
  }
  SWELL_RETURN_IF_ERROR(routed);
  SWELL_RETURN_IF_ERROR(core.observer->Admit(*call));
  const std::string& sub = call->info.subresource;
  const auto& known = call->kind->subresources;
  if (!sub.empty() && std::find(known.begin(), known.end(), sub) == known.end()) {
    return call->kind->custom ? NotFoundError(*call->kind, call->info.name) : NoSuchResourceError();
  }
  const RouteHandler handler = HandlerOf(*call, verb);
  if (handler == nullptr) return MethodNotAllowedError();
  if (!IsStreamed(handler)) {
    SWELL_ASSIGN_OR_RETURN(call->form, NegotiateForm(call->request.accept, call->query));
  }
  if (!call->kind->deprecation.empty()) call->AddWarning(call->kind->deprecation);
  const bool writes = IsMutation(verb);
  if (writes) SWELL_RETURN_IF_ERROR(ReadWriteOptions(*call, verb));
  call->retry = [weak = core.weak_from_this(), handler, writes, random = core.random,
                 warned = call->warnings.size()](const CallPtr& call) {
    const auto alive = weak.lock();
    if (!alive) return;
    call->warnings.resize(warned);
    // The same names and uids as the first time, so that the callouts are the same.
    const Random now = std::exchange(alive->random, random);
    Run(*alive, call, handler, writes);
    alive->random = now;
  };
  auto run = [call, handler, writes](Core& alive) { Run(alive, call, handler, writes); };
  if (!writes || !OffloadYaml(core, call, run)) run(core);
  return Status::Ok();
}

void AddStoreMetrics(const Core& core, MetricPage& page) {
  using enum MetricType;
  const MetricFamily objects{
      "apiserver_storage_objects", kGauge, "Objects in the store.", {"resource"}};
  std::set<std::string> resources;
  for (const auto& group : core.scheme->Groups()) {
    for (const std::string& version : group.versions) {
      for (const api::KindPtr& kind : core.scheme->KindsOf(group.name, version)) {
        resources.insert(kind->StoreResource());
      }
    }
  }
  for (const std::string& resource : resources) {
    const size_t count = core.store.Count(resource);
    if (count > 0) page.Add(objects, {resource}, static_cast<double>(count));
  }
  const store::StoreStats stats = core.store.stats();
  auto add = [&page](std::string_view name, MetricType type, std::string_view help, auto value) {
    page.Add({name, type, help}, static_cast<double>(value));
  };
  add("swell_store_version", kGauge, "The newest durable resourceVersion.", core.store.Version());
  add("swell_store_writes_total", kCounter, "Durable writes and deletions of objects.",
      stats.writes);
  add("swell_store_commits_total", kCounter, "Committed transactions.", stats.commits);
  add("swell_store_failed_commits_total", kCounter, "Transactions that were rolled back.",
      stats.failed_commits);
  add("swell_store_pending_writes", kGauge, "Writes that wait for the disk.", stats.pending);
  add("swell_store_history_events", kGauge, "Events in the history, at which watches can start.",
      stats.history_events);
  add("swell_store_history_bytes", kGauge, "Bytes of the objects in the history.",
      stats.history_bytes);
  add("apiserver_registered_watchers", kGauge, "Open watches.", core.Get<Watches>().open.size());
}

class Server final : public ApiServer {
 public:
  Server(Executor& executor, Clock& clock, Random& random, store::Store& store, Options options)
      : core_(std::make_shared<Core>(executor, clock, random, store, std::move(options))),
        metrics_(RegisterMetrics(core_->options.metrics, [core = core_.get()](MetricPage& page) {
          AddStoreMetrics(*core, page);
        })) {
    Core& core = *core_;
    core.observer = std::make_shared<RequestLog>(clock, random, core.options);
    core.Add(std::make_unique<Webhooks>());
    RegisterAccess(core);
    RegisterOpenStreams(core);
    RegisterAdmissionWebhooks(core);
    RegisterAdmissionPolicies(core);
    RegisterDiscovery(core);
    core.Add(std::make_unique<Watches>(executor));
    RegisterPods(core);
    RegisterCustomKinds(core);
    RegisterBuiltInKinds(core);
    RegisterNewerKinds(core);
    RegisterSigningRequests(core);
    RegisterQuotas(core);
    RegisterObjectCounts(core);
    RegisterEvents(core);
  }
  ~Server() override {
    // Ends every watch before what it uses.
    core_->Get<Watches>().open.clear();
  }

  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override {
    auto call = std::make_shared<Call>(std::move(sink));
    call->request = std::move(request);
    call->observer = core_->observer;
    core_->observer->Received(*call);
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
  api::HandlerCapabilities capabilities() override { return {.in_order = true, .binder = this}; }

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
  std::unique_ptr<Metrics::Registration> metrics_;
};

}  // namespace

std::unique_ptr<ApiServer> ApiServer::Create(
    Executor& executor, Clock& clock, Random& random, store::Store& store, Options options) {
  return std::make_unique<Server>(executor, clock, random, store, std::move(options));
}

}  // namespace swell::apiserver
