#include "kube/client/client.h"

#include <utility>

#include "base/strings.h"

namespace swell::client {
namespace {

constexpr std::string_view kPatchTypes[] = {
    "application/json-patch+json", "application/merge-patch+json",
    "application/strategic-merge-patch+json", "application/apply-patch+yaml"};

// What is deleted is known: only that it is matters.
constexpr std::string_view kMetadataOnly =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

std::string ListQuery(const ListOptions& options) {
  std::string query;
  auto add = [&query](std::string_view key, std::string_view value) {
    if (value.empty()) return;
    if (!query.empty()) query += '&';
    query += StrCat(key, "=", api::EscapeQuery(value));
  };
  add("labelSelector", options.label_selector);
  add("fieldSelector", options.field_selector);
  if (options.limit > 0) add("limit", std::to_string(options.limit));
  add("continue", options.continue_token);
  add("resourceVersion", options.resource_version);
  return query;
}

Result<json::SharedValue> ParseObject(const api::RestResponse& response) {
  SWELL_ASSIGN_OR_RETURN(json::Value value, json::Parse(response.BodyString()));
  return std::make_shared<const json::Value>(std::move(value));
}

Result<ObjectList> ParseList(const api::RestResponse& response, bool managed_fields) {
  SWELL_ASSIGN_OR_RETURN(json::Value parsed,
                         json::Parse(response.BodyString(), {.bytes = 1 << 30}));
  ObjectList list;
  list.resource_version = json::GetString(parsed, {"metadata", "resourceVersion"});
  list.continue_token = json::GetString(parsed, {"metadata", "continue"});
  // A list says once what its items are; an item of its own must know.
  std::string kind(json::GetString(parsed, {"kind"}));
  if (kind.ends_with("List")) kind.resize(kind.size() - 4);
  const std::string version(json::GetString(parsed, {"apiVersion"}));
  json::Value* items = json::FindMutable(parsed, {"items"});
  if (items == nullptr || !items->is_array()) return list;
  for (json::Value& item : items->get_array()) {
    if (item.is_object() && !kind.empty() && !json::Find(item, {"kind"})) {
      item.get_object()["kind"] = kind;
      item.get_object()["apiVersion"] = version;
    }
    if (!managed_fields) json::Remove(item, {"metadata", "managedFields"});
    list.items.push_back(std::make_shared<const json::Value>(std::move(item)));
  }
  return list;
}

}  // namespace

Status StatusFromResponse(int http_status, std::string_view body) {
  if (http_status >= 200 && http_status < 300) return Status::Ok();
  auto parsed = json::Parse(body);
  if (!parsed.ok() || json::GetString(*parsed, {"kind"}) != "Status") {
    std::string text(Trim(body.substr(0, 1024)));
    return Status(
        CodeFromReason("", http_status),
        text.empty() ? StrCat("the server answered with HTTP status ", http_status) : text);
  }
  StatusDetails details;
  details.name = json::GetString(*parsed, {"details", "name"});
  details.group = json::GetString(*parsed, {"details", "group"});
  details.kind = json::GetString(*parsed, {"details", "kind"});
  details.uid = json::GetString(*parsed, {"details", "uid"});
  details.retry_after_s = static_cast<int>(json::GetInt(*parsed, {"details", "retryAfterSeconds"}));
  for (const json::Value& cause : json::GetArray(*parsed, {"details", "causes"})) {
    details.causes.push_back({std::string(json::GetString(cause, {"reason"})),
                              std::string(json::GetString(cause, {"field"})),
                              std::string(json::GetString(cause, {"message"}))});
  }
  return Status(CodeFromReason(json::GetString(*parsed, {"reason"}), http_status),
                std::string(json::GetString(*parsed, {"message"})), std::move(details));
}

std::string Resource::Path(std::string_view ns,
                           std::string_view name,
                           std::string_view subresource) const {
  std::string path =
      group.empty() ? StrCat("/api/", version) : StrCat("/apis/", group, "/", version);
  if (namespaced && !ns.empty()) path += StrCat("/namespaces/", api::EscapePathSegment(ns));
  path += StrCat("/", plural);
  if (!name.empty()) path += StrCat("/", api::EscapePathSegment(name));
  if (!subresource.empty()) path += StrCat("/", subresource);
  return path;
}

// Calls under way. Shared with the sinks, so that an answer after ~Client finds nobody home.
struct Client::State {
  bool alive = true;
  uint64_t next_id = 1;
  std::map<uint64_t, std::unique_ptr<api::RestCall>> calls;
};

// Collects one answer and hands it to the callback on the executor.
class Client::Sink : public api::RestSink {
 public:
  Sink(Executor& executor, std::shared_ptr<State> state, uint64_t id, ResponseCallback done)
      : executor_(executor), state_(std::move(state)), id_(id), done_(std::move(done)) {}

  void OnResponse(api::RestResponse response) override { Finish(std::move(response)); }
  void OnStreamStart(int status, std::string content_type) override {
    collected_.status = status;
    collected_.content_type = std::move(content_type);
  }
  bool OnChunk(const api::Chunk& chunk) override {
    size_ += chunk->size();
    if (size_ > kBodyBytesMax) return false;
    collected_.body.push_back(chunk);
    return true;
  }
  void OnStreamEnd(const Status& why) override {
    if (why.ok()) {
      Finish(std::move(collected_));
    } else {
      Finish(why);
    }
  }

 private:
  static constexpr size_t kBodyBytesMax = 1 << 30;

  void Finish(Result<api::RestResponse> result) {
    if (!done_) return;
    Later([done = std::exchange(done_, nullptr), result = std::move(result)]() mutable {
      if (result.ok() && result->status >= 300) {
        done(StatusFromResponse(result->status, result->BodyString()));
      } else {
        done(std::move(result));
      }
    });
  }

 protected:
  // The call is over; `step` runs unless its client is gone by then.
  template <class F>
  void Later(F step) {
    executor_.Post([state = state_, id = id_, step = std::move(step)]() mutable {
      if (!state->alive) return;
      auto call = state->calls.extract(id);
      step();
    });
  }

 private:
  Executor& executor_;
  std::shared_ptr<State> state_;
  uint64_t id_;
  ResponseCallback done_;
  api::RestResponse collected_;
  size_t size_ = 0;
};

// Receives a list whose documents may be shared.
class Client::ListSink final : public Sink, public api::ObjectSink {
 public:
  ListSink(Executor& executor, std::shared_ptr<State> state, uint64_t id, ListCallback done)
      : ListSink(executor, std::move(state), id, std::make_shared<ListCallback>(std::move(done))) {}

  api::SinkCapabilities capabilities() override { return {.objects = this}; }
  bool OnObject(std::string_view, const json::SharedValue&) override { return false; }
  void OnObjects(ObjectList list) override {
    Later([done = done_, list = std::move(list)]() mutable { (*done)(std::move(list)); });
  }

 private:
  ListSink(Executor& executor,
           std::shared_ptr<State> state,
           uint64_t id,
           const std::shared_ptr<ListCallback>& done)
      : Sink(executor,
             std::move(state),
             id,
             [done](const Result<api::RestResponse>& response) {
               (*done)(response.ok() ? ParseList(*response, false)
                                     : Result<ObjectList>(response.status()));
             }),
        done_(done) {}

  const std::shared_ptr<ListCallback> done_;
};

namespace {

// Passes a stream on, each step on the executor, until it ends or is given up.
class StreamSink : public api::RestSink {
 public:
  StreamSink(Executor& executor, std::shared_ptr<StreamCallbacks> callbacks)
      : executor_(executor), callbacks_(std::move(callbacks)) {}

  void OnResponse(api::RestResponse response) override {
    if (response.status >= 300) {
      End(StatusFromResponse(response.status, response.BodyString()));
      return;
    }
    OnStreamStart(response.status, response.content_type);
    for (const api::Chunk& chunk : response.body) OnChunk(chunk);
    End(Status::Ok());
  }
  void OnStreamStart(int status, std::string) override {
    status_ = status;
    if (status >= 300) return;
    Later([status](StreamCallbacks& to) {
      if (to.on_start) to.on_start(status);
    });
  }
  bool OnChunk(const api::Chunk& chunk) override {
    if (callbacks_.expired()) return false;
    if (status_ >= 300) {
      if (error_body_.size() < 65536) error_body_ += *chunk;
      return true;
    }
    Later([chunk](StreamCallbacks& to) {
      if (to.on_chunk) to.on_chunk(chunk);
    });
    return true;
  }
  void OnStreamEnd(const Status& why) override {
    End(why.ok() && status_ >= 300 ? StatusFromResponse(status_, error_body_) : why);
  }

 protected:
  bool gone() const { return callbacks_.expired(); }
  template <class F>
  void Later(F step) {
    executor_.Post([weak = callbacks_, step = std::move(step)] {
      if (auto callbacks = weak.lock()) step(*callbacks);
    });
  }

 private:
  void End(Status why) {
    Later([why](StreamCallbacks& to) {
      if (to.on_end) to.on_end(why);
    });
  }

  Executor& executor_;
  std::weak_ptr<StreamCallbacks> callbacks_;
  int status_ = 200;
  std::string error_body_;
};

class ObjectStreamSink final : public StreamSink, public api::ObjectSink {
 public:
  using StreamSink::StreamSink;

  api::SinkCapabilities capabilities() override { return {.objects = this}; }
  bool OnObject(std::string_view type, const json::SharedValue& object) override {
    if (gone()) return false;
    Later([type = std::string(type), object](StreamCallbacks& to) { to.on_object(type, object); });
    return true;
  }
  // A watch is not a list.
  void OnObjects(ObjectList) override {}
};

class OpenStream final : public Stream {
 public:
  std::shared_ptr<StreamCallbacks> callbacks;
  std::unique_ptr<api::RestCall> call;
};

}  // namespace

Client::Client(Executor& executor,
               std::shared_ptr<api::RestHandler> server,
               api::UserInfo user,
               std::string user_agent,
               bool urgent)
    : executor_(executor),
      server_(std::move(server)),
      user_(std::move(user)),
      user_agent_(std::move(user_agent)),
      urgent_(urgent),
      state_(std::make_shared<State>()) {}

Client::~Client() {
  state_->alive = false;
  state_->calls.clear();
}

template <class Make>
void Client::Handle(api::RestRequest request, Make&& make) {
  request.user = user_;
  request.user_agent = user_agent_;
  request.urgent = urgent_;
  const uint64_t id = state_->next_id++;
  auto call = server_->Handle(std::move(request), make(id));
  if (call) state_->calls.emplace(id, std::move(call));
}

void Client::Call(api::RestRequest request, ResponseCallback done) {
  Handle(std::move(request), [&](uint64_t id) {
    return std::make_shared<Sink>(executor_, state_, id, std::move(done));
  });
}

std::unique_ptr<Stream> Client::Open(api::RestRequest request, StreamCallbacks callbacks) {
  request.user = user_;
  request.user_agent = user_agent_;
  auto stream = std::make_unique<OpenStream>();
  stream->callbacks = std::make_shared<StreamCallbacks>(std::move(callbacks));
  std::shared_ptr<api::RestSink> sink;
  if (stream->callbacks->on_object) {
    sink = std::make_shared<ObjectStreamSink>(executor_, stream->callbacks);
  } else {
    sink = std::make_shared<StreamSink>(executor_, stream->callbacks);
  }
  stream->call = server_->Handle(std::move(request), std::move(sink));
  return stream;
}

void Client::Send(api::RestRequest request, ObjectCallback done) {
  Call(std::move(request), [done = std::move(done)](Result<api::RestResponse> response) {
    if (!done) return;
    if (response.ok()) {
      done(ParseObject(*response));
    } else {
      done(response.status());
    }
  });
}

void Client::Create(const Resource& resource,
                    std::string_view ns,
                    const json::Value& object,
                    ObjectCallback done) {
  Send({.method = "POST", .path = resource.Path(ns), .body = json::Print(object)}, std::move(done));
}

void Client::Get(const Resource& resource,
                 std::string_view ns,
                 std::string_view name,
                 ObjectCallback done) {
  Send({.method = "GET", .path = resource.Path(ns, name)}, std::move(done));
}

void Client::List(const Resource& resource,
                  std::string_view ns,
                  const ListOptions& options,
                  ListCallback done) {
  api::RestRequest request{.method = "GET", .path = resource.Path(ns), .query = ListQuery(options)};
  if (!options.managed_fields) {
    return Handle(std::move(request), [&](uint64_t id) {
      return std::make_shared<ListSink>(executor_, state_, id, std::move(done));
    });
  }
  Call(std::move(request), [done = std::move(done)](const Result<api::RestResponse>& response) {
    done(response.ok() ? ParseList(*response, true) : Result<ObjectList>(response.status()));
  });
}

void Client::Update(const Resource& resource,
                    const json::Value& object,
                    ObjectCallback done,
                    std::string_view subresource) {
  std::string path = resource.Path(json::GetString(object, {"metadata", "namespace"}),
                                   json::GetString(object, {"metadata", "name"}), subresource);
  Send({.method = "PUT", .path = std::move(path), .body = json::Print(object)}, std::move(done));
}

void Client::Patch(const Resource& resource,
                   std::string_view ns,
                   std::string_view name,
                   PatchType type,
                   const json::Value& patch,
                   ObjectCallback done,
                   std::string_view subresource) {
  api::RestRequest request{.method = "PATCH",
                           .path = resource.Path(ns, name, subresource),
                           .content_type = std::string(kPatchTypes[static_cast<int>(type)]),
                           .body = json::Print(patch)};
  if (type == PatchType::kApply) request.query = "fieldManager=swell&force=true";
  Send(std::move(request), std::move(done));
}

void Client::Delete(const Resource& resource,
                    std::string_view ns,
                    std::string_view name,
                    const DeleteOptions& options,
                    ObjectCallback done) {
  json::Object body{{"kind", "DeleteOptions"}, {"apiVersion", "v1"}};
  if (options.grace_seconds >= 0) body["gracePeriodSeconds"] = options.grace_seconds;
  if (!options.propagation.empty()) body["propagationPolicy"] = options.propagation;
  if (!options.precondition_uid.empty()) {
    body["preconditions"] = json::Object{{"uid", options.precondition_uid}};
  }
  Send({.method = "DELETE",
        .path = resource.Path(ns, name),
        .accept = in_order() ? "" : std::string(kMetadataOnly),
        .body = json::Print(body)},
       std::move(done));
}

void Client::CreateSubresource(const Resource& resource,
                               std::string_view ns,
                               std::string_view name,
                               std::string_view subresource,
                               const json::Value& object,
                               ObjectCallback done) {
  Send(
      {.method = "POST", .path = resource.Path(ns, name, subresource), .body = json::Print(object)},
      std::move(done));
}

}  // namespace swell::client
