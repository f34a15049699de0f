// Watcher: one watch request. It selects, forms and sends events until its time is up, its
// receiver is too slow or gone, or the server ends.
//
// Thread-safety: core executor only. Ownership: Core::watchers; a call's release removes it.
// Invariants: events arrive in version order; a bookmark's version is never ahead of an event that
// has not been sent.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "apiserver/core.h"
#include "apiserver/selection.h"

namespace swell::apiserver {

class Watcher : public std::enable_shared_from_this<Watcher> {
 public:
  Watcher(Core& core, CallPtr call, Selection selection, uint64_t id);
  ~Watcher();

  struct Start {
    uint64_t version = 0;      // events after it
    bool initial = false;      // synthetic ADDED for the state at the start
    bool initial_end = false;  // and a bookmark after them
    bool bookmarks = false;
    Duration timeout{0};
  };
  // An error is to be answered instead of a stream.
  Status Begin(const Start& start);
  // Events from then on are no longer known: the watch's only event says so, and it ends.
  void BeginTooLate(const Status& why);
  void SendBookmark();
  bool wants_bookmarks() const { return bookmarks_ && !replaying_ && !waiting_; }

 private:
  void OnEvent(const store::Event& event);
  void Deliver(const store::Event& event);
  // The state at the start, and what it must be followed by.
  void SendStart();
  bool SendInitial(const store::Listing& listing);
  // Whether a webhook must convert something before the sending can go on, which it then does.
  bool Waits(const Status& status);
  void GoOn();
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
  void CheckReplay();
  bool SendInitialEnd(uint64_t version);
  json::Value BookmarkObject(uint64_t version) const;
  void End(const Status& why);
  void SendError(const Status& status);

  Core& core_;
  CallPtr call_;
  Selection selection_;
  const uint64_t id_;
  uint64_t form_;  // key of the shared event bytes
  bool bookmarks_ = false;
  bool columns_sent_ = false;  // a table's columns go with its first event only
  uint64_t sent_version_ = 0;
  // Events of the past are still on their way: no bookmark may run ahead of them.
  bool replaying_ = false;
  size_t sent_since_check_ = 0;
  std::unique_ptr<store::Watch> watch_;
  // While a webhook converts: what it is about, and what has come behind it.
  bool waiting_ = false;
  std::optional<store::Listing> start_;
  std::optional<uint64_t> start_end_;  // the bookmark after it
  std::deque<store::Event> held_;
  TimerId timeout_ = kNoTimer;
};

}  // namespace swell::apiserver
