// Core: what the API server's handlers share. Handlers are free functions over it; server/routes.cc
// finds the handler of a request.
// - Threads: core executor only.
// - Ownership: shared by the server and, weakly, by callbacks.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <typeindex>
#include <utility>
#include <vector>

#include "kube/apiserver/api_server.h"
#include "kube/apiserver/call.h"
#include "kube/apiserver/hooks.h"

namespace swell::apiserver {

// State of one part of the server (quotas, watches, tokens). The folder that owns it derives from
// this and adds it to the core, which keeps it.
struct CorePart {
  virtual ~CorePart() = default;
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
  std::shared_ptr<CallObserver> observer;  // set by the server before the first call
  HookTable hooks;

  template <typename T>
  T& Add(std::unique_ptr<T> part) {
    parts_.emplace_back(typeid(T), std::move(part));
    return static_cast<T&>(*parts_.back().second);
  }
  // The part of this type, which was added.
  template <typename T>
  T& Get() const {
    return static_cast<T&>(Find(typeid(T)));
  }

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
  // Both null when there is no such resource.
  Target FindTarget(const RequestInfo& info);

 private:
  CorePart& Find(std::type_index type) const;

  std::vector<std::pair<std::type_index, std::unique_ptr<CorePart>>> parts_;
};

inline bool IsText(const json::Value& value, std::string_view text) {
  return value.is_string() && json::View(value.get_string()) == text;
}

using WriteDone = std::function<void(const Status&, const store::EntryPtr&)>;

// Stamps the object with the next version and writes it; `done` runs once it is durable, after the
// `written` hooks. The object must be in its storage version.
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

// The entry's document, in its stored version. Custom objects get the defaults that their
// definition gained after they were stored, as kube-apiserver sets them when it decodes from etcd.
// `kind`: any version of the entry's kind.
json::SharedValue StoredObject(const Core& core,
                               const api::KindInfo& kind,
                               const store::Entry& entry);
// Whether StoredObject() adds defaults to the entry's text.
bool LacksDefaults(const Core& core, const api::KindInfo& kind, const store::Entry& entry);

// Newest accepted state as a document of its own, in its storage version; nullopt when absent.
std::optional<json::Value> LatestObject(Core& core,
                                        const api::KindInfo& kind,
                                        std::string_view ns,
                                        std::string_view name);

}  // namespace swell::apiserver
