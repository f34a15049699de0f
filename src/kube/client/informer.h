// Informer: a live copy of the objects of one resource: list, then watch, for ever.
//
// It pages the first list, watches from the list's version with bookmarks, resumes after
// disconnects, lists again after 410 Gone, and backs off (up to 30 s, jittered) while the server is
// away. A watch that says nothing for longer than the server promised is given up and resumed.
// Handlers see every object's latest state but not every step between; after a new list they get
// the differences. Objects are immutable and shared. They have no managedFields: these would be
// half of an object, and nobody here reads them.
//
// - Threads: core executor only. Handlers run on it, never from inside Start().
// - Ownership: the informer keeps its own Client; destroying it stops everything.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/timer.h"
#include "kube/client/client.h"

namespace swell::client {

struct InformerOptions {
  std::string ns;  // empty: all namespaces
  std::string label_selector;
  std::string field_selector;
  int64_t page_size = 500;
};

struct Handlers {
  std::function<void(const json::SharedValue&)> on_add;
  std::function<void(const json::SharedValue& old_object, const json::SharedValue& object)>
      on_update;
  std::function<void(const json::SharedValue& last)> on_delete;
};

class Informer {
 public:
  // What an object is found by; empty: by nothing.
  using IndexFunction = std::function<std::string(const json::Value&)>;
  // The object with what is known of it from elsewhere, or itself.
  using Transform = std::function<json::SharedValue(const json::SharedValue&)>;

  Informer(Executor& executor,
           std::shared_ptr<api::RestHandler> server,
           api::UserInfo user,
           Resource resource,
           InformerOptions options = {},
           uint64_t seed = 1);

  // Before Start.
  void AddIndex(const std::string& name, IndexFunction function);
  // All readers see objects that come from now on as `transform` makes them.
  void SetTransform(Transform transform) { transform_ = std::move(transform); }
  // The transform of this known object has changed: makes it anew.
  void Retransform(std::string_view key);
  // A handler added late first gets everything that is known as adds.
  void AddHandlers(Handlers handlers);
  void Start();

  bool synced() const { return synced_; }
  // Runs `done` once the first list is in the cache (at once when it is).
  void WhenSynced(std::function<void()> done);

  // Lists again and runs `done` when everything that the server has now is in the cache: for a
  // controller that must not act on a stale cache. After Start.
  void Refresh(std::function<void()> done);

  // Key is "ns/name" or "name". nullptr when unknown.
  json::SharedValue Get(std::string_view key) const;
  const std::map<std::string, json::SharedValue, std::less<>>& objects() const { return objects_; }
  std::vector<json::SharedValue> ByIndex(const std::string& index, std::string_view value) const;
  const Resource& resource() const { return resource_; }
  // How often the list had to be fetched anew, for metrics and tests.
  int lists() const { return lists_; }

 private:
  struct Index {
    IndexFunction function;
    // By value, the keys in objects_.
    std::map<std::string, std::set<std::string_view>, std::less<>> keys;
  };

  void ListPage(std::string continue_token);
  void OnPage(Result<ObjectList> page);
  void OnListed();
  void StartWatch();
  void OnWatchChunk(const api::Chunk& chunk);
  void OnWatchLine(std::string_view line);
  void OnWatchObject(std::string_view type, const json::SharedValue& object);
  // The watch is over, whether the server says so or not; nothing more of it is heard.
  void EndWatch(const Status& why);
  void Retry(bool relist, int retry_after_s = 0);
  void Store(const json::SharedValue& object);
  void Replace(const std::string& key,
               const json::SharedValue& old_object,
               const json::SharedValue& object);
  void Erase(const std::string& key);
  // `key` is the object's in objects_, or just was.
  void Reindex(const std::string& key,
               const json::SharedValue& old_object,
               const json::SharedValue& object);

  Executor& executor_;
  Resource resource_;
  InformerOptions options_;
  Random random_;
  Transform transform_;
  std::map<std::string, Index> indexes_;
  std::vector<Handlers> handlers_;
  std::map<std::string, json::SharedValue, std::less<>> objects_;
  std::map<std::string, json::SharedValue> listing_;
  std::string version_;
  std::string partial_line_;
  bool synced_ = false;
  bool watching_ = false;
  int lists_ = 0;
  uint64_t listing_number_ = 0;  // answers to earlier ones are not heard
  int failures_ = 0;
  Timer retry_timer_{executor_};
  Timer calm_timer_{executor_};    // the watch has held: what failed before is forgotten
  Timer silent_timer_{executor_};  // the watch should have ended by itself
  std::vector<std::function<void()>> when_synced_;
  std::unique_ptr<Stream> watch_;
  Client client_;  // last: destroyed first, so no callback finds a half-dead informer
};

}  // namespace swell::client
