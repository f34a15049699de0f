// Core: what the API server's handlers share. Handlers are free functions over it; which request
// goes to which is in server.cc.
// - Threads: core executor only.
// - Ownership: shared by the server and, weakly, by callbacks.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "kube/apiserver/api_server.h"
#include "kube/apiserver/call.h"
#include "kube/apiserver/service_ips.h"

namespace swell::api {
struct CrdRules;
}

namespace swell::apiserver {

class Authorizer;
struct QuotaState;
class Rbac;
class RequestLog;
class Watcher;
struct Webhooks;

// Event bytes that several watchers want, printed once. A fixed number of slots.
class EventCache {
 public:
  // `form` distinguishes versions, tables and so on; 0 is never used.
  api::Chunk Find(uint64_t version, uint64_t form) const;
  void Put(uint64_t version, uint64_t form, api::Chunk bytes);

 private:
  struct Slot {
    uint64_t version = 0;
    uint64_t form = 0;
    api::Chunk bytes;
  };
  static constexpr size_t kSlots = 64;
  std::array<Slot, kSlots> slots_;
};

struct Core : std::enable_shared_from_this<Core> {
  Core(Executor& executor_in,
       Clock& clock_in,
       Random& random_in,
       store::Store& store_in,
       Options options_in);
  ~Core();

  Executor& executor;
  Clock& clock;
  Random& random;
  store::Store& store;
  Options options;
  std::unique_ptr<api::Scheme> scheme;
  std::shared_ptr<RequestLog> log;
  std::unique_ptr<Metrics::Registration> metrics;  // of the store and what watches it
  std::shared_ptr<Rbac> rbac;                      // null where it is off
  std::shared_ptr<const Authorizer> authorizer;
  // Tokens whose signature was found right, with their claims: a bounded cache.
  std::map<std::string, json::SharedValue, std::less<>> known_tokens;

  // Watches by number, oldest first.
  std::map<uint64_t, std::shared_ptr<Watcher>> watchers;
  uint64_t next_watch = 1;
  TimerId bookmark_timer = kNoTimer;
  EventCache event_cache;

  ServiceIps service_ips;
  std::unique_ptr<QuotaState> quotas;
  std::unique_ptr<Webhooks> webhooks;

  // Events in the order of their last write, for expiry.
  struct WrittenEvent {
    store::Key key;
    uint64_t version;
    WallTime at;
  };
  std::deque<WrittenEvent> written_events;
  TimerId expiry_timer = kNoTimer;

  // Documents written lately, kept parsed: what was just created is bound, patched and listed next.
  static constexpr size_t kRecentDocuments = 256;
  std::array<json::SharedValue, kRecentDocuments> recent;
  size_t next_recent = 0;

  // What paths lead to, by "group/version/plural"; valid for one generation of the scheme.
  struct Target {
    api::KindPtr kind;
    api::KindPtr storage;
  };
  std::map<std::string, Target, std::less<>> targets;
  uint64_t targets_generation = 0;
  void AddStoreMetrics(MetricPage& page) const;
  // Both null when there is no such resource.
  Target FindTarget(const RequestInfo& info);

  // The rules of custom kinds that have any, by "group/version/plural".
  std::map<std::string, std::shared_ptr<const api::CrdRules>, std::less<>> crd_rules;

  // Discovery and OpenAPI documents, by path and form; valid for one generation of the scheme.
  std::map<std::string, api::Chunk> documents;
  uint64_t documents_generation = 0;
};

inline bool IsText(const json::Value& value, std::string_view text) {
  return value.is_string() && json::View(value.get_string()) == text;
}

using WriteDone = std::function<void(const Status&, const store::EntryPtr&)>;

// Stamps the object with the next version and writes it; `done` runs once durable, after the
// resource's `written` hook. The object must be in its storage version.
void WriteObject(Core& core,
                 const api::KindInfo& kind,
                 store::EventType type,
                 json::Value object,
                 WriteDone done);
// The same for what was printed already, resourceVersion included.
void WriteEntry(Core& core,
                const api::KindInfo& kind,
                store::EventType type,
                const store::EntryPtr& entry,
                WriteDone done);
store::Key KeyFor(const api::KindInfo& kind, std::string_view ns, std::string_view name);
store::Attributes AttributesOf(const api::KindInfo& kind, const json::Value& object);

// Labels as they are kept there.
api::StringPairs LabelPairs(const json::Object& labels);

// One of the fields kept beside the entry's bytes; empty when absent.
std::string FieldOf(const store::Entry& entry, std::string_view field);

// Newest accepted state as a document of its own, in its storage version; nullopt when absent.
std::optional<json::Value> LatestObject(Core& core,
                                        const api::KindInfo& kind,
                                        std::string_view ns,
                                        std::string_view name);

}  // namespace swell::apiserver
