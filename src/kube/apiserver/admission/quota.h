// Quotas: what a namespace may hold, counted when something is created and counted anew when
// something is gone.
//
// A creation adds to status.used of every quota it falls under, in the same breath as it is
// accepted, so two of them never share the last place. A failed or dry creation and all that ends
// or is deleted is put right by a recount a moment later.
//
// - Threads: core executor only.
#pragma once

#include <set>
#include <string>

#include "kube/apiserver/hooks.h"

namespace swell::apiserver {

struct QuotaState {
  std::set<std::string> namespaces;  // that have quotas
  std::set<std::string> recount;     // of these, soon
  TimerId timer = kNoTimer;
};

// `pods "x" is forbidden: exceeded quota: …`; else the object is counted.
Status ChargeQuota(Admission& admission, const json::Value& object);
// After every durable write, and every failed one.
void NoteForQuota(Core& core, store::EventType type, const store::EntryPtr& entry, bool ok);
void LoadQuotas(Core& core);

}  // namespace swell::apiserver
