// Everything that is not a resource: discovery in both forms, OpenAPI, version, health, metrics.
#include <algorithm>

#include "base/strings.h"
#include "json/texts.h"
#include "kube/api/openapi/openapi.h"
#include "kube/apiserver/access/handlers.h"
#include "kube/apiserver/access/registered_users.h"
#include "kube/apiserver/print/output.h"
#include "kube/apiserver/reading/handlers.h"
#include "kube/apiserver/request/errors.h"

namespace swell::apiserver {
namespace {

// What clients ask for is not a valid media type ('@'), so the answer calls itself by the other
// name: kubectl 1.20 refuses to parse the first.
constexpr std::string_view kOpenApiProtobufAsked =
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
constexpr std::string_view kOpenApiProtobuf =
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

// What a subresource takes and which methods it knows.
struct SubresourceInfo {
  api::GroupVersionKind gvk;
  std::vector<std::string> verbs;
};

SubresourceInfo InfoOf(const api::KindInfo& kind, std::string_view name) {
  if (name == "scale") return {{"autoscaling", "v1", "Scale"}, {"get", "patch", "update"}};
  if (name == "binding") return {{"", "v1", "Binding"}, {"create"}};
  if (name == "eviction") return {{"policy", "v1", "Eviction"}, {"create"}};
  if (name == "token") return {{"authentication.k8s.io", "v1", "TokenRequest"}, {"create"}};
  if (name == "log") return {{"", "v1", "Pod"}, {"get"}};
  if (name == "exec") return {{"", "v1", "PodExecOptions"}, {"create", "get"}};
  if (name == "attach") return {{"", "v1", "PodAttachOptions"}, {"create", "get"}};
  if (name == "portforward") return {{"", "v1", "PodPortForwardOptions"}, {"create", "get"}};
  if (name == "finalize") return {kind.gvk, {"update"}};
  return {kind.gvk, {"get", "patch", "update"}};
}

std::vector<std::string> VerbsOf(const api::KindInfo& kind) {
  if (!kind.verbs.empty()) return kind.verbs;
  if (kind.read_only) return {"create"};
  return {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"};
}

// ---- The classic lists.

json::Value ApiVersions() {
  json::Object address;
  address["clientCIDR"] = "0.0.0.0/0";
  address["serverAddress"] = "";
  json::Object object;
  object["kind"] = "APIVersions";
  object["versions"] = json::Array{"v1"};
  object["serverAddressByClientCIDRs"] = json::Array{std::move(address)};
  return object;
}

json::Object GroupObject(const api::Scheme::Group& group) {
  auto version = [&group](const std::string& name) {
    json::Object object;
    object["groupVersion"] = StrCat(group.name, "/", name);
    object["version"] = name;
    return object;
  };
  json::Array versions;
  for (const std::string& name : group.versions) versions.push_back(version(name));
  json::Object object;
  object["name"] = group.name;
  object["versions"] = std::move(versions);
  object["preferredVersion"] = version(group.versions.front());
  return object;
}

json::Value GroupList(const api::Scheme& scheme) {
  json::Array groups;
  for (const auto& group : scheme.Groups()) {
    if (!group.name.empty() && !group.versions.empty()) groups.push_back(GroupObject(group));
  }
  json::Object object;
  object["kind"] = "APIGroupList";
  object["apiVersion"] = "v1";
  object["groups"] = std::move(groups);
  return object;
}

json::Object ResourceObject(const api::KindInfo& kind) {
  json::Object object;
  object["name"] = kind.plural;
  object["singularName"] = kind.singular;
  object["namespaced"] = kind.namespaced;
  object["kind"] = kind.gvk.kind;
  object["verbs"] = json::TextArray(VerbsOf(kind));
  if (!kind.short_names.empty()) object["shortNames"] = json::TextArray(kind.short_names);
  if (!kind.categories.empty()) object["categories"] = json::TextArray(kind.categories);
  if (!kind.read_only) {
    object["storageVersionHash"] = Base64Encode(
        std::to_string(StableHash(kind.gvk.ApiVersion() + kind.gvk.kind)).substr(0, 8));
  }
  return object;
}

json::Object SubresourceObject(const api::KindInfo& kind, const std::string& name) {
  const SubresourceInfo info = InfoOf(kind, name);
  json::Object object;
  object["name"] = StrCat(kind.plural, "/", name);
  object["singularName"] = "";
  object["namespaced"] = kind.namespaced;
  if (info.gvk.group != kind.gvk.group || info.gvk.version != kind.gvk.version) {
    if (!info.gvk.group.empty()) object["group"] = info.gvk.group;
    object["version"] = info.gvk.version;
  }
  object["kind"] = info.gvk.kind;
  object["verbs"] = json::TextArray(info.verbs);
  return object;
}

json::Value ResourceList(const std::vector<api::KindPtr>& kinds, const std::string& api_version) {
  json::Array resources;
  for (const api::KindPtr& kind : kinds) {
    if (!kind->served) continue;
    resources.push_back(ResourceObject(*kind));
    for (const std::string& sub : kind->subresources) {
      resources.push_back(SubresourceObject(*kind, sub));
    }
  }
  json::Object object;
  object["kind"] = "APIResourceList";
  object["apiVersion"] = "v1";
  object["groupVersion"] = api_version;
  object["resources"] = std::move(resources);
  return object;
}

// ---- Aggregated discovery.

json::Object KindObject(const api::GroupVersionKind& gvk) {
  json::Object object;
  object["group"] = gvk.group;
  object["version"] = gvk.version;
  object["kind"] = gvk.kind;
  return object;
}

json::Object AggregatedResource(const api::KindInfo& kind) {
  json::Object object;
  object["resource"] = kind.plural;
  object["responseKind"] = KindObject(kind.gvk);
  object["scope"] = kind.namespaced ? "Namespaced" : "Cluster";
  object["singularResource"] = kind.singular;
  object["verbs"] = json::TextArray(VerbsOf(kind));
  if (!kind.short_names.empty()) object["shortNames"] = json::TextArray(kind.short_names);
  if (!kind.categories.empty()) object["categories"] = json::TextArray(kind.categories);
  json::Array subresources;
  for (const std::string& name : kind.subresources) {
    const SubresourceInfo info = InfoOf(kind, name);
    json::Object sub;
    sub["subresource"] = name;
    sub["responseKind"] = KindObject(info.gvk);
    sub["verbs"] = json::TextArray(info.verbs);
    subresources.push_back(std::move(sub));
  }
  if (!subresources.empty()) object["subresources"] = std::move(subresources);
  return object;
}

json::Value Aggregated(const api::Scheme& scheme, bool core_group, std::string_view version) {
  json::Array items;
  for (const auto& group : scheme.Groups()) {
    if (group.name.empty() != core_group) continue;
    json::Array versions;
    for (const std::string& name : group.versions) {
      json::Array resources;
      for (const api::KindPtr& kind : scheme.KindsOf(group.name, name)) {
        if (kind->served) resources.push_back(AggregatedResource(*kind));
      }
      json::Object one;
      one["version"] = name;
      one["resources"] = std::move(resources);
      one["freshness"] = "Current";
      versions.push_back(std::move(one));
    }
    json::Object metadata;
    if (!group.name.empty()) metadata["name"] = group.name;
    metadata["creationTimestamp"] = nullptr;
    json::Object item;
    item["metadata"] = std::move(metadata);
    item["versions"] = std::move(versions);
    items.push_back(std::move(item));
  }
  json::Object object;
  object["kind"] = "APIGroupDiscoveryList";
  object["apiVersion"] = StrCat("apidiscovery.k8s.io/", version);
  object["metadata"] = json::Object();
  object["items"] = std::move(items);
  return object;
}

// The version of aggregated discovery that the client prefers to plain JSON; empty: plain.
std::string AggregatedVersion(const Call& call) {
  for (const AcceptClause& clause : ParseAccept(call.request.accept)) {
    if (clause.type == "*/*" || clause.type == "application/*") return {};
    if (clause.type != "application/json") continue;
    if (clause.Parameter("as").empty()) return {};
    const std::string_view version = clause.Parameter("v");
    if (clause.Parameter("as") == "APIGroupDiscoveryList" &&
        clause.Parameter("g") == "apidiscovery.k8s.io" &&
        (version == "v2" || version == "v2beta1")) {
      return std::string(version);
    }
  }
  return {};
}

// Discovery and OpenAPI documents, by path and form; valid for one generation of the scheme.
struct Documents final : CorePart {
  std::map<std::string, api::Chunk> chunks;
  uint64_t generation = 0;
};

// A document that changes only with the scheme, printed once per generation.
api::Chunk Cached(Core& core, const std::string& key, const std::function<std::string()>& make) {
  constexpr size_t kMaxDocuments = 512;
  auto& documents = core.Get<Documents>();
  if (documents.generation != core.scheme->generation() ||
      documents.chunks.size() > kMaxDocuments) {
    documents.chunks.clear();
    documents.generation = core.scheme->generation();
  }
  api::Chunk& document = documents.chunks[key];
  if (!document) document = api::MakeChunk(make());
  return document;
}

void RespondChunk(Call& call, api::Chunk chunk, std::string content_type = "application/json") {
  api::RestResponse response;
  response.content_type = std::move(content_type);
  response.body.push_back(std::move(chunk));
  call.Respond(std::move(response));
}

void RespondText(Call& call,
                 int status,
                 std::string text,
                 std::string_view type = "text/plain; charset=utf-8") {
  api::RestResponse response;
  response.status = status;
  response.content_type = type;
  response.body.push_back(api::MakeChunk(std::move(text)));
  call.Respond(std::move(response));
}

bool HandleDiscovery(Core& core, Call& call) {
  const auto& path = call.info.segments;
  const bool core_group = path[0] == "api";
  const std::string key = call.request.path;
  const api::Scheme& scheme = *core.scheme;
  if (path.size() == 1) {
    const std::string version = AggregatedVersion(call);
    if (!version.empty()) {
      RespondChunk(call,
                   Cached(core, StrCat(path[0], ";", version),
                          [&] { return json::Print(Aggregated(scheme, core_group, version)); }),
                   StrCat("application/json;g=apidiscovery.k8s.io;v=", version,
                          ";as=APIGroupDiscoveryList"));
      return true;
    }
    RespondChunk(call, Cached(core, path[0], [&] {
                   return json::Print(core_group ? ApiVersions() : GroupList(scheme));
                 }));
    return true;
  }
  const std::string group = core_group ? "" : path[1];
  for (const auto& known : scheme.Groups()) {
    if (known.name != group || known.versions.empty()) continue;
    if (!core_group && path.size() == 2) {
      json::Object object = GroupObject(known);
      object["kind"] = "APIGroup";
      object["apiVersion"] = "v1";
      RespondDocument(call, 200, object);
      return true;
    }
    const std::string& version = path.back();
    if (path.size() != (core_group ? 2U : 3U) ||
        std::find(known.versions.begin(), known.versions.end(), version) == known.versions.end()) {
      return false;
    }
    const std::string api_version = core_group ? version : StrCat(group, "/", version);
    RespondChunk(call, Cached(core, StrCat("resources ", api_version), [&] {
                   return json::Print(ResourceList(scheme.KindsOf(group, version), api_version));
                 }));
    return true;
  }
  return false;
}

bool AcceptsProtobufOpenApi(const Call& call) {
  const auto clauses = ParseAccept(call.request.accept);
  return !clauses.empty() &&
         (clauses[0].type == kOpenApiProtobufAsked || clauses[0].type == kOpenApiProtobuf);
}

bool HandleOpenApi(Core& core, Call& call) {
  const auto& path = call.info.segments;
  const api::Scheme& scheme = *core.scheme;
  if (path.size() == 2 && path[1] == "v2") {
    const bool protobuf = AcceptsProtobufOpenApi(call);
    RespondChunk(call,
                 Cached(core, protobuf ? "openapi v2 protobuf" : "openapi v2",
                        [&] {
                          const json::Value document = api::OpenApiV2(scheme);
                          return protobuf ? api::OpenApiV2Protobuf(document)
                                          : json::Print(document);
                        }),
                 std::string(protobuf ? kOpenApiProtobuf : "application/json"));
    return true;
  }
  if (path.size() < 2 || path[1] != "v3") return false;
  if (path.size() == 2) {
    RespondChunk(
        call, Cached(core, "openapi v3", [&] { return json::Print(api::OpenApiV3Index(scheme)); }));
    return true;
  }
  const bool core_group = path.size() == 4 && path[2] == "api";
  if (!core_group && !(path.size() == 5 && path[2] == "apis")) return false;
  const std::string group = core_group ? "" : path[3];
  const std::string& version = path.back();
  if (scheme.KindsOf(group, version).empty()) return false;
  RespondChunk(call, Cached(core, StrCat("openapi v3 ", group, "/", version),
                            [&] { return json::Print(api::OpenApiV3(scheme, group, version)); }));
  return true;
}

json::Value VersionDocument(const Core& core) {
  // "v1.37.2+swell" → 1 and 37.
  const std::string& text = core.options.git_version;
  const auto parts = Split(std::string_view(text).substr(text.empty() ? 0 : 1), '.');
  json::Object object;
  object["major"] = parts.empty() ? "1" : parts[0];
  object["minor"] = parts.size() > 1 ? parts[1] : "37";
  object["gitVersion"] = text;
  object["gitCommit"] = "0000000000000000000000000000000000000000";
  object["gitTreeState"] = "clean";
  object["buildDate"] = "1970-01-01T00:00:00Z";
  object["goVersion"] = "none";
  object["compiler"] = "gcc";
  object["platform"] = "linux/amd64";
  return object;
}

bool HandleHealth(const Core& core, Call& call) {
  const HealthChecks::Answer answer =
      core.options.health.Ask(call.request.path, call.request.query);
  if (answer.status == 404) return false;
  RespondText(call, answer.status, answer.text);
  return true;
}

json::Value RootPaths(const api::Scheme& scheme) {
  json::Array paths{"/api", "/api/v1", "/apis"};
  for (const auto& group : scheme.Groups()) {
    if (group.name.empty()) continue;
    paths.emplace_back(StrCat("/apis/", group.name));
    for (const std::string& version : group.versions) {
      paths.emplace_back(StrCat("/apis/", group.name, "/", version));
    }
  }
  for (const char* path :
       {"/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version"}) {
    paths.emplace_back(path);
  }
  json::Object object;
  object["paths"] = std::move(paths);
  return object;
}

bool HandleBackup(const Core& core, const CallPtr& call) {
  if (!core.options.backup || call->request.path != "/swell/v1/backup") return false;
  core.options.backup([call](const Result<json::Value>& made) {
    if (!made.ok()) return call->Fail(made.status());
    RespondDocument(*call, 201, *made);
  });
  return true;
}

bool HandleAudit(const Core& core, const CallPtr& call) {
  if (!core.options.search_audit || call->request.path != "/swell/v1/audit") return false;
  auto query = AuditQuery::Parse(call->request.query);
  if (!query.ok()) {
    call->Fail(query.status());
    return true;
  }
  core.options.search_audit(std::move(*query), [call](const Result<json::Value>& found) {
    if (!found.ok()) return call->Fail(found.status());
    RespondDocument(*call, 200, *found);
  });
  return true;
}

bool HandlePageCode(const Core& core, const CallPtr& call) {
  if (!core.options.page_code || call->request.path != "/swell/v1/pages/codes") return false;
  const api::Credentials& caller = call->request.credentials;
  if (!caller.impersonate.name.empty()) {
    call->Fail(Status(Code::kBadRequest, "pages are opened as oneself, not as somebody else"));
  } else if (caller.bearer_token.empty() && caller.certificate_common_name.empty()) {
    call->Fail(Status(Code::kUnauthorized, "pages are opened by users who have credentials"));
  } else {
    RespondDocument(*call, 201, core.options.page_code(caller));
  }
  return true;
}

}  // namespace

void RegisterDiscovery(Core& core) { core.Add(std::make_unique<Documents>()); }

bool HandleNonResource(Core& core, const CallPtr& call) {
  const std::string& method = call->request.method;
  if (method == "POST" && (HandleBackup(core, call) || HandlePageCode(core, call) ||
                           HandleUserCredentials(core, call))) {
    return true;
  }
  if (method != "GET" && method != "HEAD") return false;
  if (HandleAudit(core, call)) return true;
  const auto& path = call->info.segments;
  if (path.empty()) {
    RespondDocument(*call, 200, RootPaths(*core.scheme));
    return true;
  }
  const std::string& first = path[0];
  if (HandleIssuerDiscovery(core, *call)) return true;
  if (first == "api" || first == "apis") return HandleDiscovery(core, *call);
  if (first == "openapi") return HandleOpenApi(core, *call);
  if (first == "healthz" || first == "livez" || first == "readyz") {
    return HandleHealth(core, *call);
  }
  if (path.size() > 1) return false;
  if (first == "version") {
    RespondDocument(*call, 200, VersionDocument(core));
    return true;
  }
  if (first == "metrics" && core.options.metrics) {
    RespondText(*call, 200, core.options.metrics->Print(), kMetricsContentType);
    return true;
  }
  return false;
}

}  // namespace swell::apiserver
