// Writing: from a prepared object to the answer. Used by create, update, patch and subresources.
// - Threads: core executor only.
#pragma once

#include "kube/apiserver/core.h"

namespace swell::apiserver {

// Decoded object (storage version) → prepared → written → answered with 201.
void CreateObject(Core& core, const CallPtr& call, json::Value object);

// Replaces `old` by `object` (in the version in which it is handled), of a call: checks
// resourceVersion and uid, prepares, writes, removes it when the last finalizer went. `done` gets
// the new state, an entry that is not stored when it was a dry run.
struct UpdateResult {
  store::EntryPtr entry;  // the durable state; null for a dry run
  json::Value object;     // of a dry run
};
using UpdateDone = std::function<void(const Result<UpdateResult>&)>;
void UpdateObject(Core& core,
                  Admission& admission,
                  json::Value object,
                  const store::EntryPtr& old,
                  UpdateDone done);
// The usual end of an update: 200 with the new state, or the error.
UpdateDone AnswerUpdate(Core& core, const CallPtr& call);

// kBadRequest when an object that is to replace another names none, or another than the URL.
Status CheckNames(const Call& call, const json::Value& object);

// kConflict when the object carries another resourceVersion or uid than `old`.
Status CheckPreconditions(const Admission& admission,
                          const json::Value& object,
                          const json::Value& old);

}  // namespace swell::apiserver
