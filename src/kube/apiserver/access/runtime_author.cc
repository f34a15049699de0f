#include "kube/apiserver/access/runtime_author.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/user.h"
#include "kube/apiserver/access/access.h"
#include "kube/apiserver/access/registered_users.h"
#include "kube/apiserver/access/submitter.h"
#include "kube/apiserver/access/work.h"
#include "kube/apiserver/request/errors.h"

namespace swell::apiserver {
namespace {

bool Names(const json::Value& job, const std::string& runtime) {
  return json::GetString(job, {"spec", "runtimeRef", "name"}) == runtime &&
         json::GetString(job, {"spec", "runtimeRef", "kind"}) == "TrainingRuntime";
}

// Jobs and other objects that run with the runtime, now or later, and their users.
std::vector<std::pair<std::string, std::string>> UsersOf(const Admission& runtime) {
  std::vector<std::pair<std::string, std::string>> users;
  auto add = [&](std::string_view kind, const json::Value& object, const json::Value* job) {
    if (job == nullptr || !Names(*job, runtime.name)) return;
    users.emplace_back(StrCat(kind, " ", Quote(api::Name(object))),
                       api::Annotation(*job, api::keys::kUser));
  };
  const store::Store& store = runtime.core.store;
  const auto jobs = store.List("trainjobs.trainer.kubeflow.org", runtime.ns);
  for (size_t i = 0; jobs.ok() && i < jobs->entries.size(); ++i) {
    const json::SharedValue job = jobs->entries[i]->Parsed();
    const bool over =
        api::ConditionIsTrue(*job, "Complete") || api::ConditionIsTrue(*job, "Failed");
    if (!over) add("TrainJob", *job, job.get());
  }
  const auto crons = store.List("crons.apps.kubedl.io", runtime.ns);
  for (size_t i = 0; crons.ok() && i < crons->entries.size(); ++i) {
    const json::SharedValue cron = crons->entries[i]->Parsed();
    add("Cron", *cron, TemplateOf(Work::kCronWorkload, *cron));
  }
  return users;
}

}  // namespace

Status CheckRuntimeAuthor(const Admission& admission,
                          const json::Value& runtime,
                          const json::Value* old) {
  const Core& core = admission.core;
  if (WorkOf(admission.kind) != Work::kRuntime || !admission.kind.namespaced) return Status::Ok();
  if (admission.call == nullptr || !core.Get<AccessControl>().rbac) return Status::Ok();
  if (old != nullptr && !PodsDiffer(Work::kRuntime, runtime, *old)) return Status::Ok();
  const std::optional<std::string> author = SubmitterOf(core, *admission.call);
  if (!author || MayExceedPodSecurity(core, admission.call->user, admission.ns)) {
    return Status::Ok();
  }
  const std::string own = RunAsOfUser(core, *author);
  for (const auto& [work, user] : UsersOf(admission)) {
    const std::string numbers = RunAsOfUser(core, user);
    if (numbers.empty() || user == *author || numbers == own) continue;
    return ForbiddenError(
        admission.kind, admission.name,
        StrCat(work, " of user ", Quote(user), " runs it with that user's ids (swell user create ",
               "--run-as), and yours are others; make a runtime with another name"));
  }
  return Status::Ok();
}

}  // namespace swell::apiserver
