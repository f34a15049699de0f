// Pod Security admission: what pods may ask for in a namespace, by the namespace's labels
// pod-security.kubernetes.io/{enforce,audit,warn}[-version].
//
// A user with the right `use` on podsecuritylevels.swell.dev/privileged in the namespace may exceed
// its level. The server checks this right for the author of a job or template. If the author has it
// and the object needs it, the server sets swell.dev/pod-security: privileged. Only the server
// writes this annotation. It lets pass what a controller makes of the object; the controller's own
// rights do not count.
//
// - Threads: core executor only.
#pragma once

#include "base/result.h"
#include "kube/apiserver/core.h"

namespace swell::apiserver {

// Writes or removes the annotation; on an update, `old` is what the object was.
void StampPodSecurity(const Admission& admission, json::Value& object, const json::Value* old);

// Refuses pods and jobs beyond the level that the namespace enforces; warns of workloads whose pods
// will be refused; notes for the audit log. `old` is null for a new object.
Status CheckPodSecurity(const Admission& admission,
                        const json::Value& object,
                        const json::Value* old);

// Refuses exec, attach, port-forward and proxy to a pod beyond the level (baseline at most), and to
// one of work that may exceed it, unless the user may exceed it, too: such a pod would be a way to
// what the user may not ask for.
Status CheckPodConnection(Core& core, const Call& call, const json::Value& pod);

// Marks a new pod whose ids were chosen by an author who was given none and may not exceed the
// level, where the mark matters on the node.
Status MarkChosenIds(const Admission& admission, json::Value& pod);

// Labels of a namespace that name no level or version. A stricter level warns of the pods there.
Status CheckPodSecurityLabels(const Admission& admission,
                              const json::Value& ns,
                              const json::Value* old);

}  // namespace swell::apiserver
