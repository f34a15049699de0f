#include "kube/client/informer.h"

#include <algorithm>

#include "base/log.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"

namespace swell::client {
namespace {

constexpr size_t kWatchLineBytesMax = 64 << 20;
constexpr Duration kCalmAfter = std::chrono::seconds(10);
constexpr Duration kSilenceAllowed = std::chrono::seconds(30);
// An internal error is mostly etcd being away; if it stays, the place may be what is wrong.
constexpr int kInternalErrorsMax = 4;

// What a server that is away or busy says. Where we were still holds.
bool IsPassing(Code code) {
  return code == Code::kOk || code == Code::kUnavailable || code == Code::kTimeout ||
         code == Code::kTooManyRequests;
}

}  // namespace

Informer::Informer(Executor& executor,
                   std::shared_ptr<api::RestHandler> server,
                   api::UserInfo user,
                   Resource resource,
                   InformerOptions options,
                   uint64_t seed)
    : executor_(executor),
      resource_(std::move(resource)),
      options_(std::move(options)),
      random_(seed),
      client_(executor, std::move(server), std::move(user), "swell-informer") {}

void Informer::AddIndex(const std::string& name, IndexFunction function) {
  indexes_[name].function = std::move(function);
}

void Informer::AddHandlers(Handlers handlers) {
  if (handlers.on_add) {
    for (const auto& [key, object] : objects_) handlers.on_add(object);
  }
  handlers_.push_back(std::move(handlers));
}

void Informer::Start() { ListPage(""); }

void Informer::WhenSynced(std::function<void()> done) {
  if (synced_) {
    done();
  } else {
    when_synced_.push_back(std::move(done));
  }
}

void Informer::Refresh(std::function<void()> done) {
  when_synced_.push_back(std::move(done));
  watching_ = false;
  for (Timer* timer : {&retry_timer_, &calm_timer_, &silent_timer_}) timer->Cancel();
  watch_.reset();
  ListPage("");
}

json::SharedValue Informer::Get(std::string_view key) const {
  auto it = objects_.find(key);
  return it == objects_.end() ? nullptr : it->second;
}

std::vector<json::SharedValue> Informer::ByIndex(const std::string& index,
                                                 std::string_view value) const {
  std::vector<json::SharedValue> found;
  auto it = indexes_.find(index);
  if (it == indexes_.end()) return found;
  auto keys = it->second.keys.find(value);
  if (keys == it->second.keys.end()) return found;
  for (std::string_view key : keys->second) found.push_back(Get(key));
  return found;
}

void Informer::ListPage(std::string continue_token) {
  if (continue_token.empty()) {
    listing_.clear();
    ++listing_number_;
  }
  ListOptions list{.label_selector = options_.label_selector,
                   .field_selector = options_.field_selector,
                   .limit = options_.page_size,
                   .continue_token = std::move(continue_token),
                   .managed_fields = false};
  client_.List(resource_, options_.ns, list,
               [this, number = listing_number_](Result<ObjectList> page) {
                 if (number == listing_number_) OnPage(std::move(page));
               });
}

void Informer::OnPage(Result<ObjectList> page) {
  if (!page.ok()) {
    SWELL_LOG_WARNING("client", "list failed", {"resource", resource_.plural},
                      {"error", page.status().ToString()});
    return Retry(true, page.status().details().retry_after_s);
  }
  for (json::SharedValue& item : page->items) listing_[api::KeyOf(*item)] = std::move(item);
  version_ = page->resource_version;
  if (!page->continue_token.empty()) return ListPage(page->continue_token);
  OnListed();
}

void Informer::OnListed() {
  ++lists_;
  failures_ = 0;
  std::vector<std::string> gone;
  for (const auto& [key, object] : objects_) {
    if (!listing_.contains(key)) gone.push_back(key);
  }
  for (const std::string& key : gone) Erase(key);
  for (auto& [key, object] : listing_) Store(object);
  listing_.clear();
  StartWatch();
  synced_ = true;
  for (auto& done : std::exchange(when_synced_, {})) done();
}

void Informer::StartWatch() {
  partial_line_.clear();
  watching_ = true;
  auto timeout = std::chrono::seconds(300 + random_.Below(300));
  std::string query = StrCat("watch=true&allowWatchBookmarks=true&resourceVersion=", version_,
                             "&timeoutSeconds=", timeout.count());
  auto add = [&query](std::string_view key, const std::string& value) {
    if (!value.empty()) query += StrCat("&", key, "=", api::EscapeQuery(value));
  };
  add("labelSelector", options_.label_selector);
  add("fieldSelector", options_.field_selector);
  api::RestRequest request{
      .method = "GET", .path = resource_.Path(options_.ns), .query = std::move(query)};
  calm_timer_.Start(kCalmAfter, [this] { failures_ = 0; });
  silent_timer_.Start(timeout + kSilenceAllowed, [this] {
    EndWatch(Status(Code::kTimeout, "the watch did not end when it should have"));
  });
  watch_ = client_.Open(std::move(request),
                        {.on_start = {},
                         .on_chunk = [this](const api::Chunk& chunk) { OnWatchChunk(chunk); },
                         .on_object =
                             [this](std::string_view type, const json::SharedValue& object) {
                               if (watching_) OnWatchObject(type, object);
                             },
                         .on_end = [this](const Status& why) { EndWatch(why); }});
}

void Informer::OnWatchChunk(const api::Chunk& chunk) {
  std::string_view rest = *chunk;
  while (watching_ && !rest.empty()) {
    size_t end = rest.find('\n');
    if (end == std::string_view::npos) {
      partial_line_ += rest;
      if (partial_line_.size() > kWatchLineBytesMax) {
        EndWatch(Status(Code::kTooLarge, "a watch event is larger than 64 MiB"));
      }
      return;
    }
    if (partial_line_.empty()) {
      OnWatchLine(rest.substr(0, end));
    } else {
      partial_line_ += rest.substr(0, end);
      std::string line = std::exchange(partial_line_, {});
      OnWatchLine(line);
    }
    rest.remove_prefix(end + 1);
  }
}

void Informer::OnWatchLine(std::string_view line) {
  if (Trim(line).empty()) return;
  auto event = json::Parse(line);
  json::Value* object = event.ok() ? json::FindMutable(*event, {"object"}) : nullptr;
  if (object == nullptr) {
    return EndWatch(Status(Code::kBadRequest, StrCat("unreadable event: ", line.substr(0, 200))));
  }
  std::string_view type = json::GetString(*event, {"type"});
  if (type == "ERROR") {
    auto code = static_cast<int>(json::GetInt(*object, {"code"}, 500));
    Status why = StatusFromResponse(code, json::Print(*object));
    if (why.ok()) why = Status(Code::kInternal, "the watch failed and does not say why");
    return EndWatch(why);
  }
  json::Remove(*object, {"metadata", "managedFields"});
  OnWatchObject(type, std::make_shared<const json::Value>(std::move(*object)));
}

void Informer::OnWatchObject(std::string_view type, const json::SharedValue& object) {
  failures_ = 0;
  version_ = json::GetString(*object, {"metadata", "resourceVersion"}, version_);
  if (type == "BOOKMARK") return;
  if (type == "DELETED") {
    Erase(api::KeyOf(*object));
  } else {
    Store(object);
  }
}

void Informer::EndWatch(const Status& why) {
  if (!watching_) return;
  watching_ = false;
  calm_timer_.Cancel();
  silent_timer_.Cancel();
  bool relist = !IsPassing(why.code());
  if (why.code() == Code::kInternal) relist = failures_ >= kInternalErrorsMax;
  if (relist) {
    SWELL_LOG_INFO("client", "watch lost its place", {"resource", resource_.plural},
                   {"why", why.ToString()});
  }
  Retry(relist, why.details().retry_after_s);
}

// Half a doubling delay and a random part of the other half, so that the clients of a server that
// comes back do not all ask at once.
void Informer::Retry(bool relist, int retry_after_s) {
  int shift = std::min(failures_++, 10);
  Duration base = std::chrono::milliseconds(std::min<int64_t>(30'000, 50LL << shift));
  Duration delay =
      base / 2 + Duration(random_.Below(static_cast<uint64_t>((base - base / 2).count())));
  delay += std::chrono::seconds(std::clamp(retry_after_s, 0, 60));
  retry_timer_.Start(delay, [this, relist] {
    watch_.reset();
    if (relist) {
      ListPage("");
    } else {
      StartWatch();
    }
  });
}

void Informer::Store(const json::SharedValue& object) {
  std::string key = api::KeyOf(*object);
  auto known = objects_.lower_bound(key);
  if (known == objects_.end() || known->first != key) {
    known = objects_.emplace_hint(known, key, nullptr);
  }
  json::SharedValue old_object = known->second;
  if (old_object && json::GetString(*old_object, {"metadata", "resourceVersion"}) ==
                        json::GetString(*object, {"metadata", "resourceVersion"})) {
    return;
  }
  // Deleted and created again while nobody looked: two objects, two stories.
  if (old_object && api::Uid(*old_object) != api::Uid(*object)) {
    Erase(key);
    old_object = nullptr;
    known = objects_.emplace(key, nullptr).first;
  }
  known->second = transform_ ? transform_(object) : object;
  Replace(known->first, old_object, known->second);
}

void Informer::Retransform(std::string_view key) {
  const auto known = objects_.find(key);
  if (known == objects_.end() || !transform_) return;
  const json::SharedValue old_object = known->second;
  known->second = transform_(old_object);
  if (known->second != old_object) Replace(known->first, old_object, known->second);
}

void Informer::Replace(const std::string& key,
                       const json::SharedValue& old_object,
                       const json::SharedValue& object) {
  Reindex(key, old_object, object);
  for (size_t i = 0; i < handlers_.size(); ++i) {
    if (old_object) {
      if (handlers_[i].on_update) handlers_[i].on_update(old_object, object);
    } else if (handlers_[i].on_add) {
      handlers_[i].on_add(object);
    }
  }
}

void Informer::Erase(const std::string& key) {
  auto it = objects_.find(key);
  if (it == objects_.end()) return;
  const auto gone = objects_.extract(it);
  const json::SharedValue& last = gone.mapped();
  Reindex(gone.key(), last, nullptr);
  for (size_t i = 0; i < handlers_.size(); ++i) {
    if (handlers_[i].on_delete) handlers_[i].on_delete(last);
  }
}

void Informer::Reindex(const std::string& key,
                       const json::SharedValue& old_object,
                       const json::SharedValue& object) {
  for (auto& [name, index] : indexes_) {
    const std::string before = old_object ? index.function(*old_object) : "";
    std::string now = object ? index.function(*object) : "";
    if (before == now) continue;
    if (auto it = index.keys.find(before); it != index.keys.end()) {
      it->second.erase(key);
      if (it->second.empty()) index.keys.erase(it);
    }
    if (!now.empty()) index.keys[std::move(now)].insert(key);
  }
}

}  // namespace swell::client
