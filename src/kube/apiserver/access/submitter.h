// Submitter: the user who submitted an object, and the uid with which it runs on nodes.
//
// Jobs, pods and workloads that people bring carry their name (annotation swell.dev/user), set here
// and nowhere else: in the object, and in the template of pods that a built-in controller makes of
// it. A name is worth something twice: work is accounted to it, and its pods run as the numbers
// that `swell user create --run-as` gave it, or as those of the namespace's annotation
// swell.dev/run-as-user; nobody's pod may ask for other ones.
//
// A service account acts for a person: for the one who acts as it, who was given its token, whose
// pod has the token, or who created it, in this order.
//
// - Threads: core executor only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kube/apiserver/access/work.h"
#include "kube/apiserver/core.h"

namespace swell::apiserver {

// An annotation of namespaces, for this server alone.
inline constexpr std::string_view kRunAsUser = "swell.dev/run-as-user";
// An annotation of pods that run as the numbers of a registered user: the user's name. The server
// alone writes it. With the user, the numbers would be gone from what the pod's token makes, so the
// token ends with the user.
inline constexpr std::string_view kRunAsOf = "swell.dev/run-as-of";

// The user for whom the call acts. Empty: unknown. nullopt: the system itself, which may name a
// user.
std::optional<std::string> SubmitterOf(const Core& core, const Call& call);
// A user's extra field that names the submitter of a service account's token; also the claim.
inline constexpr std::string_view kSubmitterExtra = "swell.dev/submitter";

// Writes the submitter into a new object.
void StampSubmitter(const Admission& admission, json::Value& object);
// Keeps the submitter. A user who changes the template of the pods becomes the submitter.
void KeepSubmitter(const Admission& admission, json::Value& object, const json::Value& old);

// Gives a pod the numbers that it must run as, or refuses those that it asks for.
Status AdmitRunAs(const Admission& admission, json::Value& pod);
// The same of containers that are added to a pod that runs; it is as it was admitted.
Status AdmitNewContainers(const Admission& admission, const json::Value& pod);

// Refuses what lets the caller act in a pod that runs as the numbers of a registered user, unless
// the caller has these numbers, too. Administrators' right is for the caller of this to look at.
Status CheckSameNumbers(const Core& core, const Call& call, const json::Value& pod);
// Whether the pod's author, or its namespace, was given the numbers that pods run as.
Result<bool> HasGivenNumbers(const Admission& admission, const json::Value& pod);
// Refuses ids beyond those that a pod has of its own: they would be the machine's. A user who was
// given numbers is held to those when the pod is made.
Status CheckIdsOfWork(const Admission& admission, Work work, const json::Value& object);
// Refuses a job or another workload whose templates name other user ids than its pods must run as.
// Otherwise its pods would be refused one after the other.
Status CheckRunAsOfWork(const Admission& admission,
                        const json::Value& object,
                        const json::Value* old);
// Whether a pod of the object names such an id.
bool NamesIdsOfMachine(Work work, const json::Value& object);

}  // namespace swell::apiserver
