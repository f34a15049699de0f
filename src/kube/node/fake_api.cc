#include "kube/node/fake_api.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "json/patch.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "kube/api/patch/strategic.h"

namespace swell::node {
namespace {

// "/api/v1/pods" also means every "/api/v1/namespaces/NS/pods".
bool InCollection(const std::string& path, const std::string& collection) {
  std::string_view dir = std::string_view(path).substr(0, path.rfind('/'));
  if (dir == collection) return true;
  size_t plural = collection.rfind('/');
  std::string prefix = collection.substr(0, plural) + "/namespaces/";
  std::string_view rest = dir;
  if (!rest.starts_with(prefix)) return false;
  rest.remove_prefix(prefix.size());
  size_t slash = rest.find('/');
  return slash != std::string_view::npos && rest.substr(slash) == collection.substr(plural);
}

bool Selected(const std::string& query, const json::Value& object) {
  auto pairs = api::ParseQuery(query);
  if (!pairs.ok()) return false;
  std::string_view node = api::NodeName(object);
  for (const auto& [name, value] : *pairs) {
    if (name != "fieldSelector") continue;
    if (value == "spec.nodeName!=" && node.empty()) return false;
    if (value.starts_with("spec.nodeName=") && node != value.substr(14)) return false;
  }
  return true;
}

}  // namespace

struct FakeApi::Watch {
  std::string collection, query;
  std::shared_ptr<api::RestSink> sink;
};

class FakeApi::Call final : public api::RestCall {
 public:
  explicit Call(std::shared_ptr<Watch> watch) : watch_(std::move(watch)) {}

 private:
  std::shared_ptr<Watch> watch_;
};

void FakeApi::Answer(api::RestSink& sink, int status, const json::Value& body) {
  api::RestResponse response;
  response.status = status;
  response.body.push_back(api::MakeChunk(json::Print(body)));
  sink.OnResponse(std::move(response));
}

void FakeApi::Refuse(api::RestSink& sink,
                     int status,
                     std::string_view reason,
                     const std::string& why) {
  Answer(sink, status, json::Object{{"kind", "Status"}, {"reason", reason}, {"message", why}});
}

void FakeApi::Changed(const std::string& type, const std::string& path) {
  json::Value& object = objects_.at(path);
  json::Set(object, {"metadata", "resourceVersion"}, json::Value(std::to_string(++version_)));
  std::string line = json::Print(json::Object{{"type", type}, {"object", object}}) + "\n";
  std::vector<std::weak_ptr<Watch>> watches = watches_;
  for (const auto& weak : watches) {
    auto watch = weak.lock();
    if (watch && InCollection(path, watch->collection) && Selected(watch->query, object)) {
      watch->sink->OnChunk(api::MakeChunk(line));
    }
  }
}

void FakeApi::Put(const std::string& collection, json::Value object) {
  std::string path = StrCat(collection, "/", api::Name(object));
  bool known = objects_.contains(path);
  if (api::Uid(object).empty()) {
    json::Set(object, {"metadata", "uid"}, json::Value(StrCat("uid-", ++version_)));
  }
  objects_[path] = std::move(object);
  Changed(known ? "MODIFIED" : "ADDED", path);
}

json::Value FakeApi::Get(const std::string& collection, const std::string& name) const {
  auto it = objects_.find(StrCat(collection, "/", name));
  return it == objects_.end() ? json::Value() : it->second;
}

bool FakeApi::Has(const std::string& collection, const std::string& name) const {
  return objects_.contains(StrCat(collection, "/", name));
}

std::vector<std::string> FakeApi::Names(const std::string& collection) const {
  std::vector<std::string> names;
  for (const auto& [path, object] : objects_) {
    if (InCollection(path, collection)) names.emplace_back(api::Name(object));
  }
  return names;
}

void FakeApi::Delete(const std::string& collection,
                     const std::string& name,
                     int64_t grace_seconds) {
  std::string path = StrCat(collection, "/", name);
  auto it = objects_.find(path);
  if (it == objects_.end()) return;
  bool bound = api::IsBound(it->second);
  if (bound && grace_seconds > 0) {
    json::Set(it->second, {"metadata", "deletionTimestamp"},
              json::Value(api::FormatTime(clock_.Now() + std::chrono::seconds(grace_seconds))));
    json::Set(it->second, {"metadata", "deletionGracePeriodSeconds"}, json::Value(grace_seconds));
    return Changed("MODIFIED", path);
  }
  Changed("DELETED", path);
  objects_.erase(path);
}

void FakeApi::List(const std::string& collection, const std::string& query, api::RestSink& sink) {
  json::Array items;
  for (const auto& [path, object] : objects_) {
    if (InCollection(path, collection) && Selected(query, object)) items.push_back(object);
  }
  Answer(sink, 200,
         json::Object{{"metadata", json::Object{{"resourceVersion", std::to_string(version_)}}},
                      {"items", std::move(items)}});
}

void FakeApi::Patch(const api::RestRequest& request, api::RestSink& sink) {
  std::string path = request.path;
  if (path.ends_with("/status")) path.resize(path.size() - 7);
  auto it = objects_.find(path);
  if (it == objects_.end()) return Refuse(sink, 404, "NotFound", path + " not found");
  json::Value patch = *json::Parse(request.body);
  std::string_view uid = json::GetString(patch, {"metadata", "uid"});
  if (!uid.empty() && uid != api::Uid(it->second)) {
    return Refuse(sink, 409, "Conflict", "the uid differs");
  }
  std::string_view version = json::GetString(patch, {"metadata", "resourceVersion"});
  if (!version.empty() && version != json::GetString(it->second, {"metadata", "resourceVersion"})) {
    return Refuse(sink, 409, "Conflict", "the object has been modified");
  }
  std::string before = json::Print(it->second);
  if (request.content_type.find("strategic") == std::string::npos) {
    json::ApplyMergePatch(it->second, patch);
  } else {
    std::string_view kind = path.find("/pods/") == std::string::npos ? "Node" : "Pod";
    api::KindPtr known = scheme_->FindKind({"", "v1", std::string(kind)});
    Status merged = api::ApplyStrategicMerge(*known->schema, it->second, patch);
    if (!merged.ok()) return Refuse(sink, 422, "Invalid", merged.message());
  }
  if (json::Print(it->second) != before) Changed("MODIFIED", path);
  Answer(sink, 200, it->second);
}

std::unique_ptr<api::RestCall> FakeApi::StartWatch(const std::string& collection,
                                                   const std::string& query,
                                                   const std::shared_ptr<api::RestSink>& sink) {
  auto watch = std::make_shared<Watch>(Watch{collection, query, sink});
  std::erase_if(watches_, [](const auto& weak) { return weak.expired(); });
  watches_.push_back(watch);
  sink->OnStreamStart(200, "application/json");
  return std::make_unique<Call>(std::move(watch));
}

std::unique_ptr<api::RestCall> FakeApi::Handle(api::RestRequest request,
                                               std::shared_ptr<api::RestSink> sink) {
  requests.push_back(StrCat(request.method, " ", request.path));
  if (fail && fail(request)) {
    Refuse(*sink, 500, "InternalError", "told to fail");
    return nullptr;
  }
  if (conflict && conflict(request)) {
    Refuse(*sink, 409, "Conflict", "the object has been modified");
    return nullptr;
  }
  if (request.method == "GET") {
    if (request.query.find("watch=true") != std::string::npos) {
      return StartWatch(request.path, request.query, sink);
    }
    auto it = objects_.find(request.path);
    if (it != objects_.end()) {
      Answer(*sink, 200, it->second);
    } else if (std::string_view last =
                   std::string_view(request.path).substr(request.path.rfind('/') + 1);
               last.ends_with("s") && request.path.find("maps/") == std::string::npos &&
               request.path.find("secrets/") == std::string::npos) {
      List(request.path, request.query, *sink);
    } else {
      Refuse(*sink, 404, "NotFound", StrCat(Quote(last), " not found"));
    }
  } else if (request.method == "POST") {
    json::Value object = *json::Parse(request.body);
    if (Has(request.path, std::string(api::Name(object)))) {
      Refuse(*sink, 409, "AlreadyExists", "already exists");
    } else {
      Put(request.path, object);
      Answer(*sink, 201, Get(request.path, std::string(api::Name(object))));
    }
  } else if (request.method == "PATCH") {
    Patch(request, *sink);
  } else if (request.method == "DELETE") {
    size_t slash = request.path.rfind('/');
    std::string collection = request.path.substr(0, slash), name = request.path.substr(slash + 1);
    if (!Has(collection, name)) {
      Refuse(*sink, 404, "NotFound", "not found");
    } else {
      auto body = json::Parse(request.body);
      Delete(collection, name, body.ok() ? json::GetInt(*body, {"gracePeriodSeconds"}, 30) : 30);
      Answer(*sink, 200, json::Object{{"kind", "Status"}, {"status", "Success"}});
    }
  }
  return nullptr;
}

}  // namespace swell::node
