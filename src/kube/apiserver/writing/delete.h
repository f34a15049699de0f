// Deletion: options, grace, finalizers, and the removal itself.
// - Threads: core executor only.
#pragma once

#include <optional>

#include "kube/apiserver/core.h"

namespace swell::apiserver {

struct DeleteOptions {
  std::optional<int64_t> grace_s;
  std::string propagation;  // "", Background, Foreground, Orphan
  std::string uid;          // preconditions
  std::string version;

  // From a DeleteOptions document and the query.
  static Result<DeleteOptions> Parse(const json::Value* body, const Query* query);
};

struct Deletion {
  store::EntryPtr entry;  // the last state, or the state with deletionTimestamp
  bool gone = false;      // removed, not only marked
};

// Marks or removes one object (its newest accepted state). `done` runs once durable; for a dry run
// at once.
void DeleteObject(Core& core,
                  Admission& admission,
                  const store::EntryPtr& entry,
                  const DeleteOptions& options,
                  std::function<void(const Result<Deletion>&)> done);

// DeleteOptions from a request's body and query; a dry run in the body counts for the call.
Result<DeleteOptions> DecodeDeleteOptions(Core& core, Call& call);

}  // namespace swell::apiserver
