// Watcher: one watch request. It selects, forms and sends events until its time is up, its receiver
// is too slow or gone, or the server ends.
// - Threads: core executor only.
// - Ownership: Watches::open; the release of its call removes it.
// - Invariants: events arrive in version order; a bookmark's version is never ahead of an event
//   that has not been sent. What is there at the start is sent at the receiver's pace. A
//   receiver can only be too slow for what happens afterwards.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/timer.h"
#include "kube/apiserver/core.h"
#include "kube/apiserver/reading/selection.h"

namespace swell::apiserver {

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

class Watcher;

// The watches that are open.
struct Watches final : CorePart {
  explicit Watches(Executor& executor) : bookmark_timer(executor) {}

  std::map<uint64_t, std::shared_ptr<Watcher>> open;  // by number, oldest first
  uint64_t next = 1;
  EventCache events;
  Timer bookmark_timer;
};

class Watcher : public std::enable_shared_from_this<Watcher> {
 public:
  Watcher(Core& core, CallPtr call, Selection selection, uint64_t id);

  struct Start {
    uint64_t version = 0;      // events after it
    bool initial = false;      // synthetic ADDED for the state at the start
    bool initial_end = false;  // and a bookmark after them
    bool bookmarks = false;
    Duration timeout{0};
  };
  // An error: the caller answers it instead of a stream.
  Status Begin(const Start& start);
  // The history no longer has the events since then. The watch sends one error event and ends.
  void BeginTooLate(const Status& why);
  void SendBookmark();
  // Events that are still on their way: no bookmark may run ahead of them.
  bool wants_bookmarks() const { return bookmarks_ && !waiting_ && watch_->waiting() == 0; }

 private:
  void OnEvent(const store::Event& event);
  void Deliver(const store::Event& event);
  // The state at the start, and what it must be followed by.
  void SendStart();
  bool SendInitial();
  // Whether a webhook must convert something first; sending resumes when it has.
  bool Waits(const Status& status);
  // Whether the receiver has enough to read for now; sending resumes when it has read.
  bool Paced();
  void Wait();
  void Resume();
  bool Send(const api::Chunk& chunk);
  // Whether the receiver takes the document that is kept of it.
  bool SharesObject(const store::Entry& entry) const;
  Result<bool> SendEvent(std::string_view type,
                         uint64_t version,
                         const store::Entry& entry,
                         bool reversion);
  Result<api::Chunk> EventBytes(std::string_view type,
                                uint64_t version,
                                const store::Entry& entry,
                                bool reversion);
  bool SendInitialEnd(uint64_t version);
  json::Value BookmarkObject(uint64_t version) const;
  void End(const Status& why);
  void SendError(const Status& status);

  Core& core_;
  Watches& watches_;
  CallPtr call_;
  Selection selection_;
  const uint64_t id_;
  uint64_t form_;  // key of the shared event bytes
  bool bookmarks_ = false;
  bool columns_sent_ = false;  // a table's columns go with its first event only
  uint64_t sent_version_ = 0;
  size_t unpaced_bytes_ = 0;  // sent in this turn
  std::unique_ptr<store::Watch> watch_;
  // While a webhook converts or the receiver reads, the next members hold what is sent afterwards.
  bool waiting_ = false;
  std::optional<store::Listing> start_;
  size_t start_at_ = 0;                // how many of its entries are sent
  std::optional<uint64_t> start_end_;  // the bookmark after it
  std::optional<store::Event> again_;  // what is converted
  Timer timeout_{core_.executor};
};

}  // namespace swell::apiserver
