#include "kube/apiserver/access/system_marks.h"

#include <algorithm>
#include <string>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/user.h"
#include "kube/apiserver/access/access.h"
#include "kube/apiserver/access/submitter.h"
#include "kube/apiserver/access/work.h"
#include "kube/apiserver/request/errors.h"

namespace swell::apiserver {
namespace {

namespace keys = api::keys;

// How many GPUs and why it stopped are what the scheduler, the node and the job controller say.
constexpr std::string_view kMarks[] = {keys::kGpuDevices,        keys::kGpuShare,
                                       keys::kPreemptedBy,       keys::kPreemptedRule,
                                       keys::kPreemptedMessage,  keys::kPreemptedLost,
                                       keys::kPreemptionsBefore, keys::kStopRequested,
                                       keys::kRestarts,          kRunAsOf,
                                       api::kIdsChosen};

bool IsWrittenByPeople(const Admission& admission) {
  if (admission.call == nullptr || !admission.core.Get<AccessControl>().rbac) return false;
  const api::UserInfo& user = admission.call->user;
  return !IsSystem(user) && !IsNode(user);
}

// `old` is null where the object is new.
void Keep(const Admission& admission, json::Value& object, const json::Value* old) {
  for (std::string_view mark : kMarks) {
    const json::Value* now = json::Find(object, {"metadata", "annotations", mark});
    const json::Value* before =
        old != nullptr ? json::Find(*old, {"metadata", "annotations", mark}) : nullptr;
    if (now == nullptr ? before == nullptr : before != nullptr && *now == *before) continue;
    if (before != nullptr) {
      json::Set(object, {"metadata", "annotations", mark}, *before);
    } else {
      json::Remove(object, {"metadata", "annotations", mark});
    }
    admission.Warn(StrCat("metadata.annotations[", mark,
                          "]: only the system sets this annotation; the value was ignored"));
  }
}

bool MayBind(const Admission& admission) {
  AccessAttributes attributes;
  attributes.verb = "create";
  attributes.version = "v1";
  attributes.resource = "pods";
  attributes.subresource = "binding";
  attributes.ns = admission.ns;
  return Decide(admission.core, admission.call->user, attributes).allowed;
}

// The first node that a pod or a template names; empty: the scheduler chooses.
std::string NodeIn(Work work, const json::Value& object) {
  if (work == Work::kPod) return std::string(json::GetString(object, {"spec", "nodeName"}));
  for (const json::Value* one : TemplatesOf(work, object)) {
    const std::string_view node = json::GetString(*one, {"spec", "nodeName"});
    if (!node.empty()) return std::string(node);
  }
  return "";
}

}  // namespace

void KeepSystemMarks(const Admission& admission, json::Value& object, const json::Value* old) {
  const Work work = WorkOf(admission.kind);
  if (work == Work::kNone || !IsWrittenByPeople(admission)) return;
  Keep(admission, object, old);
  // Pods and jobs are made of templates as they are: nothing in them is a fact about one yet.
  for (json::Value* one : TemplatesOf(work, object)) Keep(admission, *one, nullptr);
  if (json::Value* job = JobTemplateOf(work, object)) Keep(admission, *job, nullptr);
}

Status CheckNodeName(const Admission& admission,
                     const json::Value& object,
                     const json::Value* old) {
  const Work work = WorkOf(admission.kind);
  if (work == Work::kNone || !IsWrittenByPeople(admission)) return Status::Ok();
  if (old != nullptr && (work == Work::kPod || !PodsDiffer(work, object, *old))) {
    return Status::Ok();
  }
  const std::string node = NodeIn(work, object);
  if (node.empty() || MayBind(admission)) return Status::Ok();
  return ForbiddenError(
      admission.kind, admission.name,
      StrCat(work == Work::kPod ? "" : "template.", "spec.nodeName: ", Quote(node),
             ": the scheduler chooses the node; User ", Quote(admission.call->user.name),
             " needs the right to create pods/binding; or use spec.nodeSelector"));
}

}  // namespace swell::apiserver
