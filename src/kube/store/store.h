// Store: every object of the cluster, versioned, durable, watched.
//
// The whole state is indexed in memory; a Backend makes it durable. Writes are pipelined: Write()
// accepts on the core thread, the backend commits in groups, and only what is durable becomes
// visible to Get/List/Watch and is acknowledged. Between acceptance and commit a write is seen by
// Latest() alone, so that read-modify-write needs no waiting and still never reads what a crash
// could take back.
//
//   accepted (Latest sees it) ──group commit──▶ durable (Get, List, Watch see it; done(OK))
//
// A failed commit (disk full, I/O error) rolls back to the durable state: every write of the group,
// and those accepted after it, end with that error.
//
// Versions: one counter for all resources; each Write takes the next, and one that was rolled back
// is not used again. An empty store is at version 1, for 0 means "now" everywhere. The caller puts
// the version into the object's metadata.resourceVersion (PeekVersion) before it calls Write.
//
// Watch history: a ring of at most `history_events` events and `history_bytes` of them. Every
// `history_age` it forgets the events that it had already the last time, as etcd does for
// kube-apiserver (--etcd-compaction-interval). So a cluster that was busy gives its memory back.
// Watching from a version older than the ring answers kExpired. Watching from a future version
// answers kTimeout with the cause ResourceVersionTooLarge, as Kubernetes does.
//
// - Threads: all methods on the core executor. Entries are immutable and may go anywhere.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/executor.h"
#include "base/result.h"
#include "json/value.h"
#include "kube/api/meta/string_pairs.h"
#include "kube/api/rest/rest.h"

namespace swell::store {

// resource is "pods" for the core group, "<plural>.<group>" for others: "pytorchjobs.kubeflow.org".
// ns is empty for cluster-scoped objects.
struct Key {
  std::string resource;
  std::string ns;
  std::string name;
  auto operator<=>(const Key&) const = default;
};

// What selectors ask about, kept beside the text so that lists and watches need no parsing.
struct Attributes {
  api::StringPairs labels;
  // metadata.name, metadata.namespace, and the kind's own (spec.nodeName, ...).
  api::StringPairs fields;
  std::string uid;
};

// One version of one object. Immutable.
class Entry {
 public:
  Entry(Key key, uint64_t version, std::string text, Attributes attributes)
      : key(std::move(key)),
        version(version),
        text(api::MakeChunk(std::move(text))),
        attributes(std::move(attributes)) {}

  const Key key;
  const uint64_t version;
  const api::Chunk text;  // the object as compact JSON, resourceVersion included
  const Attributes attributes;

  // The parsed document; parsed at most once while anybody holds it. Core thread only.
  json::SharedValue Parsed() const;
  // Lets the writer, who has the document anyway, spare the first reader the parsing.
  void Prime(const json::SharedValue& value) const { parsed_ = value; }
  // The document without metadata.managedFields, which are half of an object, and which only
  // writers read. Parsed at most once while anybody holds it. Core thread only.
  json::SharedValue Content() const;
  // As Prime().
  void PrimeContent(const json::SharedValue& value) const { content_ = value; }

 private:
  json::SharedValue Parse(std::string_view text) const;

  mutable std::weak_ptr<const json::Value> parsed_;
  mutable std::weak_ptr<const json::Value> content_;
};
using EntryPtr = std::shared_ptr<const Entry>;

enum class EventType { kAdded, kModified, kDeleted };

struct Event {
  EventType type;
  uint64_t version;  // of this event; a deletion has one of its own
  EntryPtr entry;    // the new state; for deletions the last state, carrying the deletion's version
  EntryPtr previous;  // null for kAdded
};

struct Listing {
  std::vector<EntryPtr> entries;  // sorted by (ns, name)
  uint64_t version = 0;
  bool more = false;     // the limit cut it
  size_t remaining = 0;  // how many more
};

// A registered watch; destroying it ends it. Its methods may be called inside its callback.
class Watch {
 public:
  virtual ~Watch() = default;
  // Nothing is called until Resume(): events wait, in order.
  virtual void Pause() = 0;
  virtual void Resume() = 0;
  // How many events wait: of the history, or since it was paused.
  virtual size_t waiting() const = 0;
};

class Backend;

// For metrics.
struct StoreStats {
  uint64_t writes = 0;  // made durable
  uint64_t commits = 0;
  uint64_t failed_commits = 0;
  size_t pending = 0;  // accepted, not durable
  size_t history_events = 0;
  size_t history_bytes = 0;
  std::string last_failure;  // of the last commit; empty: it went well
};

struct Options {
  size_t history_events = 100'000;
  size_t history_bytes = 128 << 20;                // of the objects in those events
  Duration history_age = std::chrono::minutes(5);  // at least so long, at most twice
  size_t pending_writes_max = 100'000;             // beyond it Write answers kTooManyRequests
};

class Store {
 public:
  // Loads everything from the backend. kInternal with a clear message for a corrupt or foreign
  // database, which is left as it was.
  static Result<std::unique_ptr<Store>> Open(Executor& executor,
                                             std::unique_ptr<Backend> backend,
                                             const Options& options = {});
  virtual ~Store() = default;

  // Newest accepted state, durable or not; nullptr if the object does not exist.
  virtual EntryPtr Latest(const Key& key) const = 0;
  // Durable state.
  virtual EntryPtr Get(const Key& key) const = 0;
  // Durable state of one namespace (or all when ns is empty), after (ns,name) `after` when given,
  // at most `limit` (0: all) entries for which `filter` holds.
  // `at_version` 0 is now; an older one within the history is rebuilt from it, else kExpired.
  // Without `count`, entries beyond the limit are not counted: `remaining` is then 1 for any
  // number.
  virtual Result<Listing> List(const std::string& resource,
                               const std::string& ns,
                               const std::function<bool(const Entry&)>& filter = {},
                               size_t limit = 0,
                               const std::optional<Key>& after = {},
                               uint64_t at_version = 0,
                               bool count = true) const = 0;
  virtual size_t Count(const std::string& resource) const = 0;

  // The version that the next Write will take.
  virtual uint64_t PeekVersion() const = 0;
  // The newest durable version: what lists carry.
  virtual uint64_t Version() const = 0;

  // Accepts entry (whose version must be PeekVersion()) as the new state, or as the last state of
  // an object that is being deleted. kAdded goes with a Latest() of nullptr, the others without.
  // `done` runs on the executor once durable, or with the error; never from inside Write(). A
  // store that is destroyed forgets the writes that are under way, as a crash would.
  virtual void Write(EventType type, EntryPtr entry, std::function<void(const Status&)> done) = 0;

  // Runs `done` on the executor once every write that is accepted now is durable, or has failed.
  // After that, everything that Latest() shows now is visible to readers, or was rolled back.
  virtual void WhenDurable(std::function<void(const Status&)> done) = 0;

  // Events of a resource (all namespaces when ns is empty) after `since`, in order, first from the
  // history, then live. `on_event` runs on the executor; it must not block and may end the watch.
  // kExpired when `since` is before the history; since 0 means from now on. Nothing is called
  // before WatchFrom has returned.
  virtual Result<std::unique_ptr<Watch>> WatchFrom(const std::string& resource,
                                                   const std::string& ns,
                                                   uint64_t since,
                                                   std::function<void(const Event&)> on_event) = 0;
  // The oldest `since` that WatchFrom and List still know.
  virtual uint64_t OldestWatchable() const = 0;
  virtual StoreStats stats() const = 0;
  // The durable state as it is now; cheap.
  struct Snapshot {
    std::vector<EntryPtr> entries;
    uint64_t version = 0;
  };
  virtual Snapshot TakeSnapshot() const = 0;
};

}  // namespace swell::store
