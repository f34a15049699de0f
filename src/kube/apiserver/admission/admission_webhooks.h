// Admission webhooks: the servers in (Mutating|Validating)WebhookConfigurations review writes and
// connections to pods. Mutating webhooks are called one after the other, between the server's own
// admission and its validation; policies (admission_policies.h) are asked at the end, and then the
// validating webhooks all at once.
//
// What returns WaitingForCallout() continues when the handler runs again (request/callouts.h).
//
// - Threads: core executor only.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "kube/apiserver/admission/admission_rules.h"
#include "kube/apiserver/core.h"

namespace swell::apiserver {

void RegisterAdmissionWebhooks(Core& core);
// Whether there are any, or policies.
bool HasAdmissionWebhooks(const Core& core);
// Whether webhooks are asked about this write where it is prepared.
bool AsksWebhooks(const Admission& admission);

// Lets webhooks change the object, which they are asked `about`. `complete` is the server's own
// admission: it runs again after a change.
Status AskMutating(Admission& admission,
                   json::Value& object,
                   const Reviewed& about,
                   const std::function<Status(json::Value&)>& complete);
Status AskValidating(Admission& admission, const Reviewed& reviewed);
// Both, about the object of a subresource's own kind; `check` is what must hold in between, of the
// object as the webhooks left it.
Status AskAbout(Admission& admission,
                json::Value& object,
                Reviewed about,
                const std::function<Status()>& check);
// Both, about what no webhook can change.
Status AskBoth(Admission& admission, const Reviewed& reviewed);
// About a connection to a pod, a service or a node; `options` is of the kind.
Status AskConnect(Core& core, Call& call, std::string_view kind, const json::Object& options);
// The options of a write, as webhooks are shown them.
json::Value WriteOptionsOf(const Call& call, std::string_view kind);

}  // namespace swell::apiserver
