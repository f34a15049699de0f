#include "kube/apiserver/server/routes.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/apiserver/access/handlers.h"
#include "kube/apiserver/kinds/handlers.h"
#include "kube/apiserver/pods/handlers.h"
#include "kube/apiserver/reading/handlers.h"
#include "kube/apiserver/request/errors.h"
#include "kube/apiserver/writing/handlers.h"

namespace swell::apiserver {

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
  // pods/NAME/log/UID: that very pod's log.
  const bool names_pod = info.subresource == "log" && call.storage->plural == "pods" &&
                         info.rest.find('/', 1) == std::string::npos;
  if (!info.rest.empty() && info.subresource != "proxy" && !names_pod) {
    return NoSuchResourceError();
  }
  return Status::Ok();
}

namespace {

// Subresources with handlers of their own.
RouteHandler SubresourceHandler(const Call& call, std::string_view verb) {
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

RouteHandler MainHandler(const Call& call, std::string_view verb) {
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
  const auto& verbs = call.kind->verbs;
  const bool listed = std::find(verbs.begin(), verbs.end(), verb) != verbs.end();
  return verb == "deletecollection" && listed ? HandleDeleteCollection : nullptr;
}

}  // namespace

RouteHandler HandlerOf(const Call& call, std::string_view verb) {
  return call.info.subresource.empty() ? MainHandler(call, verb) : SubresourceHandler(call, verb);
}

bool IsStreamed(RouteHandler handler) {
  return handler == HandlePodProxy || handler == HandleNodeProxy;
}

}  // namespace swell::apiserver
