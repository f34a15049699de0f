// Helpers of the store's tests and benchmarks: objects, and an executor for backends with threads.
#pragma once

#include <deque>
#include <string>

#include "base/executor.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "base/temp_dir.h"
#include "kube/store/backend.h"
#include "kube/store/store.h"

namespace swell::store {

// Runs on the thread that calls RunUntil; Post comes from any thread. Timers never
// fire: no test here lasts so long.
class LoopExecutor final : public Executor {
 public:
  void Post(std::function<void()> fn) override {
    {
      MutexLock hold(mutex_);
      queue_.push_back(std::move(fn));
    }
    wake_.NotifyOne();
  }
  TimerId After(Duration, std::function<void()>) override { return kNoTimer; }
  void Cancel(TimerId) override {}
  bool OnThread() const override { return true; }

  // Runs closures, waiting for more, until done() holds.
  template <class Done>
  void RunUntil(const Done& done) {
    while (!done()) {
      std::function<void()> next;
      {
        MutexLock hold(mutex_);
        while (queue_.empty()) wake_.Wait(mutex_);
        next = std::move(queue_.front());
        queue_.pop_front();
      }
      next();
    }
  }

 private:
  Mutex mutex_;
  CondVar wake_;
  std::deque<std::function<void()>> queue_ SWELL_GUARDED_BY(mutex_);
};

inline EntryPtr MakeEntry(Key key, uint64_t version, std::string_view payload = "") {
  json::Value object = json::Object();
  json::Set(object, {"metadata", "name"}, json::Value(key.name));
  json::Set(object, {"metadata", "resourceVersion"}, json::Value(std::to_string(version)));
  json::Set(object, {"payload"},
            json::Value(boost::json::string_view(payload.data(), payload.size())));
  Attributes attributes;
  attributes.labels = {{"app", key.name}};
  attributes.fields = {{"metadata.name", key.name}, {"metadata.namespace", key.ns}};
  attributes.uid = "uid-" + key.name;
  return std::make_shared<const Entry>(std::move(key), version, json::Print(object),
                                       std::move(attributes));
}

// Writes with the next version and the type that the newest state asks for.
inline uint64_t Put(Store& store,
                    const Key& key,
                    std::string_view payload,
                    std::function<void(const Status&)> done = {}) {
  uint64_t version = store.PeekVersion();
  EventType type = store.Latest(key) ? EventType::kModified : EventType::kAdded;
  store.Write(type, MakeEntry(key, version, payload), std::move(done));
  return version;
}

inline uint64_t Delete(Store& store, const Key& key, std::function<void(const Status&)> done = {}) {
  uint64_t version = store.PeekVersion();
  store.Write(EventType::kDeleted, MakeEntry(key, version, "gone"), std::move(done));
  return version;
}

inline std::string PayloadOf(const EntryPtr& entry) {
  return entry ? std::string(json::GetString(*entry->Parsed(), {"payload"})) : "(none)";
}

}  // namespace swell::store
