// Handlers: one function per kind of request. Each answers its call, now or once durable.
// - Threads: core executor only.
#pragma once

#include "kube/apiserver/core.h"

namespace swell::apiserver {

// read.cc
void HandleGet(Core& core, const CallPtr& call);
void HandleList(Core& core, const CallPtr& call);
// watch.cc
void HandleWatch(Core& core, const CallPtr& call);
// write.cc
void HandleCreate(Core& core, const CallPtr& call);
void HandleUpdate(Core& core, const CallPtr& call);
// patch.cc
void HandlePatch(Core& core, const CallPtr& call);
// delete.cc
void HandleDelete(Core& core, const CallPtr& call);
void HandleDeleteCollection(Core& core, const CallPtr& call);
// scale.cc
void HandleScale(Core& core, const CallPtr& call);
// binding.cc, eviction.cc, node_proxy.cc
void HandleBinding(Core& core, const CallPtr& call);
void HandleBindingsResource(Core& core, const CallPtr& call);
// See api::Binder.
std::unique_ptr<api::RestCall> BindAll(Core& core,
                                       const api::UserInfo& user,
                                       std::vector<json::Value> bindings,
                                       const api::Bound& bound);
void HandleEviction(Core& core, const CallPtr& call);
// ephemeral.cc: in the form of the pod, or in the one that clients before 1.22 know
void HandleEphemeralContainers(Core& core, const CallPtr& call);
void HandlePodProxy(Core& core, const CallPtr& call);  // log, exec, attach, portforward
void HandleNodeProxy(Core& core, const CallPtr& call);
// Lets another handler answer the call, under a path of its own.
void ForwardTo(Core& core,
               const CallPtr& call,
               std::shared_ptr<api::RestHandler> handler,
               std::string path,
               std::string query);
// proxy.cc: pods and services as HTTP servers
void HandleHttpProxy(Core& core, const CallPtr& call);
// Host and port of an endpoint behind a service's port.
Result<std::string> ServiceAddress(const Core& core,
                                   const std::string& ns,
                                   const std::string& name,
                                   int64_t port);
// strategies.cc
void HandleNamespaceFinalize(Core& core, const CallPtr& call);
// reviews.cc, token_request.cc
void HandleReview(Core& core, const CallPtr& call);
void HandleTokenRequest(Core& core, const CallPtr& call);
// False: the path is another's.
bool HandleIssuerDiscovery(Core& core, Call& call);
// computed.cc
void HandleComputed(Core& core, const CallPtr& call);
// discovery.cc: whatever is not a resource. False: there is no such path.
bool HandleNonResource(Core& core, const CallPtr& call);

// Starts the expiry of events (events.cc) and registers the kinds of stored CRDs (crds.cc).
void StartEventExpiry(Core& core);
void RegisterStoredCrds(Core& core);
// Fills the allocator from the stored services.
void LoadServiceIps(Core& core);
// bootstrap.cc
void RunBootstrap(Core& core, std::function<void(const Status&)> ready);

}  // namespace swell::apiserver
