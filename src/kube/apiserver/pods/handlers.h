// Handlers of pods' and nodes' subresources, and the hooks of both. Each answers its call, now or
// once durable.
// - Threads: core executor only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/fair_places.h"
#include "kube/api/rest/binder.h"
#include "kube/apiserver/core.h"

namespace swell::apiserver {

void RegisterPods(Core& core);
void RegisterHttpProxies(Core& core);

void HandleBinding(Core& core, const CallPtr& call);
void HandleBindingsResource(Core& core, const CallPtr& call);
// See api::Binder.
std::unique_ptr<api::RestCall> BindAll(Core& core,
                                       const api::UserInfo& user,
                                       std::vector<json::Value> bindings,
                                       const api::Bound& bound);
void HandleEviction(Core& core, const CallPtr& call);
// The answer is the pod or, for clients before 1.22, an EphemeralContainers object.
void HandleEphemeralContainers(Core& core, const CallPtr& call);
// Whether the API allows the amounts that the pod now asks for. The node decides later.
Status CheckResize(Admission& admission, json::Value& pod, const json::Value& old);
void HandlePodProxy(Core& core, const CallPtr& call);  // log, exec, attach, portforward
void HandleNodeProxy(Core& core, const CallPtr& call);
// Pods and services as HTTP servers.
void HandleHttpProxy(Core& core, const CallPtr& call);
// Lets another handler answer the call, under a path of its own. `place` is held until the caller
// has the whole answer, or an upgraded connection.
void ForwardTo(Core& core,
               const CallPtr& call,
               std::shared_ptr<api::RestHandler> handler,
               std::string path,
               std::string query,
               FairPlaces::Place place = nullptr);
// The user that the call is counted for: the person who acts, also through a service account.
std::string CountedUser(const Core& core, const Call& call);

}  // namespace swell::apiserver
