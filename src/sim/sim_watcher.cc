#include "sim/sim_watcher.h"

#include <utility>

#include "base/strings.h"
#include "kube/api/meta/meta.h"

namespace swell::sim {
namespace {

std::string_view TypeName(store::EventType type) {
  switch (type) {
    case store::EventType::kAdded:
      return "ADDED";
    case store::EventType::kModified:
      return "MODIFIED";
    case store::EventType::kDeleted:
      return "DELETED";
  }
  return "?";
}

uint64_t VersionOf(const json::Value& object) {
  return ParseUint(api::ResourceVersionText(object)).value_or(0);
}

}  // namespace

SimWatcher::SimWatcher(SimExecutor& executor,
                       std::shared_ptr<api::RestHandler> server,
                       api::UserInfo user,
                       client::Resource resource,
                       SimHistory& history,
                       uint64_t seed)
    : executor_(executor),
      resource_(std::move(resource)),
      stored_as_(resource_.GroupResource()),
      history_(history),
      random_(seed),
      client_(executor, std::move(server), std::move(user), "sim-watcher") {}

void SimWatcher::Start() { List(); }

void SimWatcher::List() {
  may_expire_ = false;  // until another server starts, be it before the answer is here
  client_.List(resource_, "", {},
               [this](Result<client::ObjectList> list) { OnList(std::move(list)); });
}

void SimWatcher::OnList(Result<client::ObjectList> list) {
  if (!list.ok()) return Retry();
  version_ = ParseUint(list->resource_version).value_or(0);
  if (version_ > history_.version()) {
    history_.Violation(
        StrCat("a list of ", stored_as_, " is of version ", version_, ", which is not durable"));
  }
  std::map<std::string, uint64_t> durable;
  const auto& changes = history_.Of(stored_as_);
  for (next_ = 0; next_ < changes.size() && changes[next_].entry->version <= version_; ++next_) {
    const store::Entry& entry = *changes[next_].entry;
    const std::string key = StrCat(entry.key.ns, "/", entry.key.name);
    if (changes[next_].type == store::EventType::kDeleted) {
      durable.erase(key);
    } else {
      durable[key] = entry.version;
    }
  }
  std::map<std::string, uint64_t> seen;
  for (const json::SharedValue& item : list->items) {
    seen[StrCat(api::Namespace(*item), "/", api::Name(*item))] = VersionOf(*item);
  }
  if (seen != durable) {
    history_.Violation(StrCat("a list of ", stored_as_, " at version ", version_, " has ",
                              seen.size(), " objects, not the ", durable.size(),
                              " of that version"));
  }
  listed_ = true;
  Watch();
}

void SimWatcher::Watch() {
  api::RestRequest request;
  request.method = "GET";
  request.path = resource_.Path("");
  request.query =
      StrCat("watch=true&allowWatchBookmarks=true&timeoutSeconds=60&resourceVersion=", version_);
  partial_.clear();
  stream_ =
      client_.Open(std::move(request),
                   {.on_start = [](int) {},
                    .on_chunk =
                        [this](const api::Chunk& chunk) {
                          partial_ += *chunk;
                          size_t end;
                          while (listed_ && (end = partial_.find('\n')) != std::string::npos) {
                            const std::string line = partial_.substr(0, end);
                            partial_.erase(0, end + 1);
                            OnLine(line);
                          }
                        },
                    .on_end =
                        [this](const Status& why) {
                          if (why.code() == Code::kExpired || why.code() == Code::kGone)
                            Expired("answer");
                          Retry();
                        }});
}

void SimWatcher::OnLine(std::string_view line) {
  auto event = json::Parse(line);
  if (!event.ok()) return history_.Violation(StrCat("a watch says ", line.substr(0, 80)));
  const json::Value* object = json::Find(*event, {"object"});
  const std::string_view type = json::GetString(*event, {"type"});
  if (object == nullptr) return history_.Violation("a watch's event has no object");
  if (type == "ERROR") {
    const int64_t code = json::GetInt(*object, {"code"});
    if (code == 410) Expired("event");
    return;
  }
  OnEvent(type, *object);
}

void SimWatcher::OnEvent(std::string_view type, const json::Value& object) {
  const uint64_t version = VersionOf(object);
  const auto& changes = history_.Of(stored_as_);
  if (type == "BOOKMARK") {
    if (next_ < changes.size() && changes[next_].entry->version <= version) {
      history_.Violation(StrCat("a bookmark of ", stored_as_, " says ", version, " before event ",
                                changes[next_].entry->version));
    }
    version_ = version;
    return;
  }
  ++events_;
  if (next_ >= changes.size()) {
    return history_.Violation(StrCat("event ", version, " of ", stored_as_, " is not durable"));
  }
  const store::Change& due = changes[next_];
  if (due.entry->version != version || TypeName(due.type) != type ||
      due.entry->key.name != api::Name(object)) {
    history_.Violation(StrCat("a watch of ", stored_as_, " says ", type, " ", api::Name(object),
                              " ", version, " where ", TypeName(due.type), " ", due.entry->key.name,
                              " ", due.entry->version, " is due"));
  }
  while (next_ < changes.size() && changes[next_].entry->version <= version) ++next_;
  version_ = version;
}

void SimWatcher::Expired(const std::string& how) {
  if (!may_expire_) {
    history_.Violation(StrCat("a watch of ", stored_as_, " from ", version_, " expired (", how,
                              ") at a server that should know it"));
  }
  listed_ = false;
}

void SimWatcher::Retry() {
  retry_.Cancel();
  const Duration wait = std::chrono::milliseconds(1 + random_.Below(2000));
  retry_.Start(wait, [this] {
    stream_.reset();
    if (listed_) {
      Watch();
    } else {
      List();
    }
  });
}

bool SimWatcher::current() const { return listed_ && next_ == history_.Of(stored_as_).size(); }

std::string SimWatcher::Summary() const {
  return StrCat(stored_as_, ": at ", next_, " of ", history_.Of(stored_as_).size(),
                listed_ ? "" : ", not listed");
}

}  // namespace swell::sim
