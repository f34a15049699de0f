// Admission policies: ValidatingAdmissionPolicies, which refuse writes and connections by
// expressions. A policy holds where a ValidatingAdmissionPolicyBinding says so, with the parameters
// that this names.
//
// What returns WaitingForCallout() continues when the handler runs again (request/callouts.h).
//
// - Threads: core executor only.
#pragma once

#include "kube/apiserver/admission/admission_rules.h"
#include "kube/apiserver/core.h"

namespace swell::apiserver {

void RegisterAdmissionPolicies(Core& core);
// Whether any is bound.
bool HasAdmissionPolicies(const Core& core);
// The refusal of the first that refuses. Warnings and audit annotations are the call's.
Status AskPolicies(Admission& admission, const Reviewed& reviewed);

}  // namespace swell::apiserver
