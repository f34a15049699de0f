// Handlers of the access folder: reviews, service accounts' tokens and what others need to verify
// these. Each answers its call, now or once durable.
// - Threads: core executor only.
#pragma once

#include "kube/apiserver/core.h"

namespace swell::apiserver {

void HandleReview(Core& core, const CallPtr& call);
void HandleTokenRequest(Core& core, const CallPtr& call);
// False: it is another path.
bool HandleIssuerDiscovery(Core& core, Call& call);

// Completes a secret of a service account with its token.
void FillAccountSecret(Admission& admission, json::Value& secret);

}  // namespace swell::apiserver
