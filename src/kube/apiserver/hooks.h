// Hooks: what a resource does beyond what every resource does. The folder that knows the resource
// adds its hooks to the core's table; a resource without any is served generically.
//
// Hooks run on the object in its storage version, after its types were checked against the schema
// and before its own rules are validated.
//
// - Threads: core executor only.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kube/apiserver/call.h"
#include "kube/store/store.h"

namespace swell::apiserver {

struct Core;

// One write before it is made.
struct Admission {
  Core& core;
  Call* call;                 // null for writes that the server itself makes
  const api::KindInfo& kind;  // storage version
  std::string ns;
  std::string name;  // empty until a generated name is chosen
  std::string subresource;
  bool dry_run = false;

  void Warn(std::string text) const {
    if (call != nullptr) call->AddWarning(std::move(text));
  }
};

Admission AdmissionOf(Core& core, Call& call);

using WrittenHook = void (*)(Core&, store::EventType, const store::EntryPtr&, bool ok);
// An accepted write makes the stored object `bytes` larger (a deletion: smaller). If the write
// fails, a call with the opposite number follows.
using GrowthHook = void (*)(Core&, const store::Key&, int64_t bytes);

struct ResourceHooks {
  // Completes a new object, or refuses it.
  Status (*create)(Admission&, json::Value& object) = nullptr;
  // Completes what depends on all that webhooks have changed in a new object, or refuses it.
  Status (*settle)(Admission&, json::Value& object) = nullptr;
  // Completes an update, or refuses it.
  Status (*update)(Admission&, json::Value& object, const json::Value& old) = nullptr;
  // May refuse a deletion.
  Status (*remove)(Admission&, const json::Value& object) = nullptr;
  // After a write is durable (`ok`) or has failed.
  WrittenHook written = nullptr;
  // Allocates what the object needs of the server's own (addresses, ports): the last step before it
  // is written. `old` is null for a new object.
  Status (*reserve)(Admission&, json::Value& object, const json::Value* old) = nullptr;
  bool generation = false;        // metadata.generation counts spec changes
  bool keep_status = false;       // status of a create request is kept (nodes)
  bool answers_deleted = false;   // DELETE answers with the object, not with a Status
  bool needs_version = false;     // updates must carry resourceVersion
  bool create_on_update = false;  // PUT of an absent object creates it
};

class HookTable {
 public:
  // `resource` as in KindInfo::StoreResource: "pods", "jobs.batch". Once for each.
  void Add(std::string_view resource, const ResourceHooks& hooks);
  const ResourceHooks& Of(const api::KindInfo& kind) const;
  // Runs after the writes of every resource, after its own hook.
  void AddWritten(WrittenHook hook) { written_.push_back(hook); }
  const std::vector<WrittenHook>& written() const { return written_; }
  // Runs with the writes of every resource.
  void AddGrowth(GrowthHook hook) { growth_.push_back(hook); }
  const std::vector<GrowthHook>& growth() const { return growth_; }

 private:
  std::map<std::string, ResourceHooks, std::less<>> hooks_;
  std::vector<WrittenHook> written_;
  std::vector<GrowthHook> growth_;
};

}  // namespace swell::apiserver
