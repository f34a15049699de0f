// Quotas: what a namespace may hold, counted when something is created and counted anew when
// something is gone.
//
// A creation adds to status.used of every quota it falls under, in the same breath as it is
// accepted, so two of them never share the last place. A failed or dry creation and all that ends
// or is deleted is put right by a recount a moment later.
//
// - Threads: core executor only.
#pragma once

#include "kube/apiserver/core.h"

namespace swell::apiserver {

// Adds what the server keeps about quotas, and reads those that are stored.
void RegisterQuotas(Core& core);

// `pods "x" is forbidden: exceeded quota: …`; else the object is counted. With `old`, what it was
// before, only the difference is.
Status ChargeQuota(Admission& admission,
                   const json::Value& object,
                   const json::Value* old = nullptr);

}  // namespace swell::apiserver
