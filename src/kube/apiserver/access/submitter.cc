#include "kube/apiserver/access/submitter.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/user.h"
#include "kube/apiserver/access/access.h"
#include "kube/apiserver/access/registered_users.h"
#include "kube/apiserver/access/work.h"
#include "kube/apiserver/request/errors.h"

namespace swell::apiserver {
namespace {

constexpr std::string_view kAccountTokenType = "kubernetes.io/service-account-token";

// Nullopt: this write says nothing of a person, or it is the system's own.
std::optional<std::string> PersonOf(const Admission& admission, const json::Value& object) {
  if (admission.call == nullptr || !admission.core.Get<AccessControl>().rbac) return std::nullopt;
  const Work work = WorkOf(admission.kind);
  const bool core_group = admission.kind.gvk.group.empty();
  const bool account = core_group && admission.kind.plural == "serviceaccounts";
  const bool token = core_group && admission.kind.plural == "secrets" &&
                     json::GetString(object, {"type"}) == kAccountTokenType;
  if ((work == Work::kNone || work == Work::kRuntime) && !account && !token) return std::nullopt;
  return SubmitterOf(admission.core, *admission.call);
}

void SetOrRemove(json::Value& object, json::Path path, const std::string& text) {
  if (!text.empty()) {
    json::Set(object, path, json::Value(text));
  } else if (json::Find(object, path) != nullptr) {
    json::Remove(object, path);
  }
}

void SetUser(json::Value& object, const std::string& user) {
  SetOrRemove(object, {"metadata", "annotations", api::keys::kUser}, user);
}

void StampTemplate(Work work, json::Value& object, const std::string& user) {
  if (json::Value* pods = TemplateOf(work, object)) SetUser(*pods, user);
}

// The Jobs that a CronJob makes are whose their pods are.
void StampJobs(Work work, json::Value& object) {
  const json::Value* pods = work == Work::kCronTemplate ? TemplateOf(work, object) : nullptr;
  if (pods == nullptr) return;
  const std::string user(api::Annotation(*pods, api::keys::kUser));
  SetOrRemove(object, {"spec", "jobTemplate", "metadata", "annotations", api::keys::kUser}, user);
}

struct Given {
  std::string whose;  // "user \"alice\"", "namespace \"vision\""
  api::RunAs numbers;
  bool of_user = false;
};

// An administrator writes the number; one that cannot be read lets nothing run.
Result<std::optional<Given>> GivenTo(const Admission& admission, const std::string& user) {
  std::string text = user.empty() ? "" : RunAsOfUser(admission.core, user);
  std::string whose = StrCat("user ", Quote(user));
  const bool of_user = !text.empty();
  if (!of_user) {
    const auto entry = admission.core.store.Latest({"namespaces", "", admission.ns});
    if (entry) text = api::Annotation(*entry->Parsed(), kRunAsUser);
    whose = StrCat("namespace ", Quote(admission.ns));
  }
  if (text.empty()) return std::optional<Given>();
  auto numbers = api::ParseRunAs(text);
  if (!numbers.ok()) {
    return ForbiddenError(admission.kind, admission.name,
                          StrCat(kRunAsUser, " of ", whose, ": ", numbers.status().message()));
  }
  return std::optional<Given>(Given{std::move(whose), std::move(*numbers), of_user});
}

// What messages call a field of a security context.
using FieldName = std::function<std::string(std::string_view field)>;

FieldName FieldBelow(std::string path) {
  return [path = std::move(path)](std::string_view field) {
    return StrCat(path, "securityContext.", field);
  };
}

// The field of a Run:ai workload, or of its master, that becomes it.
std::string FieldOfWorkload(const MadePod& made, std::string_view field) {
  if (field == "runAsUser") field = "runAsUid";
  if (field == "runAsGroup") field = "runAsGid";
  return StrCat(made.part, ".", field, ".value");
}

Status CheckContext(const Admission& admission,
                    const Given& given,
                    const FieldName& name,
                    const json::Value& of) {
  const json::Value* context = json::Find(of, {"securityContext"});
  if (context == nullptr || !context->is_object()) return Status::Ok();
  auto refuse = [&](std::string_view field, int64_t value) {
    return ForbiddenError(
        admission.kind, admission.name,
        StrCat(name(field), ": ", value, ": pods of ", given.whose, " run as user ",
               given.numbers.uid, ", group ", given.numbers.gids.front()));
  };
  const auto& gids = given.numbers.gids;
  auto allowed = [&gids](int64_t gid) {
    return std::find(gids.begin(), gids.end(), gid) != gids.end();
  };
  const int64_t uid = json::GetInt(*context, {"runAsUser"}, given.numbers.uid);
  if (uid != given.numbers.uid) return refuse("runAsUser", uid);
  for (const char* field : {"runAsGroup", "fsGroup"}) {
    const int64_t gid = json::GetInt(*context, {field}, gids.front());
    if (!allowed(gid)) return refuse(field, gid);
  }
  for (const json::Value& group : json::GetArray(*context, {"supplementalGroups"})) {
    if (group.is_int64() && !allowed(group.get_int64())) {
      return refuse("supplementalGroups", group.get_int64());
    }
  }
  return Status::Ok();
}

// `at`: the path to the pod in the user's object, with a dot: "spec.template.". Empty for a pod
// itself.
Status CheckPod(const Admission& admission,
                const Given& given,
                const json::Value& pod,
                const std::string& at = "") {
  const json::Value* spec = json::Find(pod, {"spec"});
  if (spec == nullptr) return Status::Ok();
  SWELL_RETURN_IF_ERROR(CheckContext(admission, given, FieldBelow(at + "spec."), *spec));
  for (std::string_view list : {"initContainers", "containers", "ephemeralContainers"}) {
    const json::Array& containers = json::GetArray(*spec, {list});
    for (size_t i = 0; i < containers.size(); ++i) {
      const FieldName name = FieldBelow(StrCat(at, "spec.", list, "[", i, "]."));
      SWELL_RETURN_IF_ERROR(CheckContext(admission, given, name, containers[i]));
    }
  }
  return Status::Ok();
}

Status CheckMadePod(const Admission& admission, const Given& given, const MadePod& made) {
  const FieldName name = [&made](std::string_view field) { return FieldOfWorkload(made, field); };
  const json::Value& spec = api::Spec(made.pod);
  SWELL_RETURN_IF_ERROR(CheckContext(admission, given, name, spec));
  for (const json::Value& container : json::GetArray(spec, {"containers"})) {
    SWELL_RETURN_IF_ERROR(CheckContext(admission, given, name, container));
  }
  return Status::Ok();
}

struct NamedId {
  std::string field;
  int64_t id = 0;
};

// The users and groups that a pod names, with their places.
std::vector<NamedId> IdsIn(const json::Value& pod) {
  std::vector<NamedId> ids;
  auto add = [&ids](const std::string& path, const json::Value& of) {
    for (const char* field : {"runAsUser", "runAsGroup", "fsGroup"}) {
      const int64_t id = json::GetInt(of, {"securityContext", field});
      ids.push_back({StrCat(path, "securityContext.", field), id});
    }
    const json::Array& groups = json::GetArray(of, {"securityContext", "supplementalGroups"});
    for (size_t i = 0; i < groups.size(); ++i) {
      if (!groups[i].is_int64()) continue;
      ids.push_back(
          {StrCat(path, "securityContext.supplementalGroups[", i, "]"), groups[i].get_int64()});
    }
  };
  const json::Value* spec = json::Find(pod, {"spec"});
  if (spec == nullptr) return ids;
  add("spec.", *spec);
  for (std::string_view list : {"initContainers", "containers", "ephemeralContainers"}) {
    const json::Array& containers = json::GetArray(*spec, {list});
    for (size_t i = 0; i < containers.size(); ++i) {
      add(StrCat("spec.", list, "[", i, "]."), containers[i]);
    }
  }
  return ids;
}

std::optional<NamedId> IdOfMachine(const json::Value& pod) {
  for (const NamedId& one : IdsIn(pod)) {
    if (one.id >= api::kIdsOfPod) return one;
  }
  return std::nullopt;
}

// The first id of the machine that a pod of the object has, with its place there.
std::optional<NamedId> IdOfMachineIn(Work work, const json::Value& object) {
  if (work == Work::kPod) return IdOfMachine(object);
  for (const json::Value* pod : TemplatesOf(work, object)) {
    if (const auto found = IdOfMachine(*pod)) {
      return NamedId{StrCat("template.", found->field), found->id};
    }
  }
  for (const MadePod& made : MadePodsOf(work, object)) {
    const auto found = IdOfMachine(made.pod);
    if (!found) continue;
    const std::string field = found->field.substr(found->field.rfind("Context.") + 8);
    return NamedId{FieldOfWorkload(made, field.substr(0, field.find('['))), found->id};
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> SubmitterOf(const Core& core, const Call& call) {
  const api::UserInfo& user = call.user;
  const auto account = ParseAccountUser(user.name);
  if (!account || IsSystem(user)) {
    if (IsSystem(user) || IsNode(user)) return std::nullopt;
    return user.name.starts_with("system:") ? "" : user.name;
  }
  const api::UserInfo& acting = call.impersonator;
  if (!acting.name.empty() && !IsSystem(acting) && !ParseAccountUser(acting.name)) {
    return acting.name;
  }
  for (const api::UserInfo* one : {&acting, &user}) {
    for (const auto& [key, values] : one->extra) {
      if (key == kSubmitterExtra && !values.empty()) return values.front();
    }
  }
  const auto entry = core.store.Latest({"serviceaccounts", account->ns, account->name});
  return entry ? std::string(api::Annotation(*entry->Parsed(), api::keys::kUser)) : "";
}

void StampSubmitter(const Admission& admission, json::Value& object) {
  const auto person = PersonOf(admission, object);
  if (!person) return;
  SetUser(object, *person);
  StampTemplate(WorkOf(admission.kind), object, *person);
  StampJobs(WorkOf(admission.kind), object);
}

void KeepSubmitter(const Admission& admission, json::Value& object, const json::Value& old) {
  const auto person = PersonOf(admission, old);
  if (!person) return;
  const Work work = WorkOf(admission.kind);
  const bool edited = work != Work::kPod && work != Work::kNone && PodsDiffer(work, object, old);
  const bool others = work == Work::kJob && edited;
  SetUser(object, others ? *person : std::string(api::Annotation(old, api::keys::kUser)));
  if (json::Value* is = TemplateOf(work, object)) {
    const json::Value* was = TemplateOf(work, old);
    if (edited || was == nullptr) {
      SetUser(*is, *person);
    } else {
      SetUser(*is, std::string(api::Annotation(*was, api::keys::kUser)));
    }
  }
  StampJobs(work, object);
}

Status AdmitRunAs(const Admission& admission, json::Value& pod) {
  if (!admission.core.Get<AccessControl>().rbac) return Status::Ok();
  const std::string user(api::Annotation(pod, api::keys::kUser));
  SWELL_ASSIGN_OR_RETURN(const std::optional<Given> given, GivenTo(admission, user));
  if (!given) return Status::Ok();
  SWELL_RETURN_IF_ERROR(CheckPod(admission, *given, pod));
  json::Set(pod, {"spec", "securityContext", "runAsUser"}, given->numbers.uid);
  if (given->of_user) {
    json::Set(pod, {"metadata", "annotations", kRunAsOf}, json::Value(user));
  }
  if (json::Find(pod, {"spec", "securityContext", "runAsGroup"}) == nullptr) {
    json::Set(pod, {"spec", "securityContext", "runAsGroup"}, given->numbers.gids.front());
  }
  if (given->numbers.gids.size() > 1 &&
      json::Find(pod, {"spec", "securityContext", "supplementalGroups"}) == nullptr) {
    json::Array further;
    for (size_t i = 1; i < given->numbers.gids.size(); ++i) {
      further.emplace_back(given->numbers.gids[i]);
    }
    json::Set(pod, {"spec", "securityContext", "supplementalGroups"}, std::move(further));
  }
  return Status::Ok();
}

Status AdmitNewContainers(const Admission& admission, const json::Value& pod) {
  // A container that was there before the number was given stays as it is.
  if (!admission.core.Get<AccessControl>().rbac ||
      !json::Find(pod, {"spec", "securityContext", "runAsUser"})) {
    return Status::Ok();
  }
  const std::string user(api::Annotation(pod, api::keys::kUser));
  SWELL_ASSIGN_OR_RETURN(const std::optional<Given> given, GivenTo(admission, user));
  return given ? CheckPod(admission, *given, pod) : Status::Ok();
}

Status CheckSameNumbers(const Core& core, const Call& call, const json::Value& pod) {
  if (api::Annotation(pod, kRunAsOf).empty()) return Status::Ok();
  const auto person = SubmitterOf(core, call);
  if (!person) return Status::Ok();
  const int64_t uid = json::GetInt(pod, {"spec", "securityContext", "runAsUser"});
  const auto numbers = api::ParseRunAs(RunAsOfUser(core, *person));
  std::string why = "you have no such number";
  if (numbers.ok()) {
    const std::vector<int64_t>& gids = numbers->gids;
    auto missing = [&gids](const NamedId& one) {
      const bool group = one.field.find("roup") != std::string::npos;
      return group && one.id != 0 && std::find(gids.begin(), gids.end(), one.id) == gids.end();
    };
    const std::vector<NamedId> ids = IdsIn(pod);
    if (numbers->uid == uid && std::none_of(ids.begin(), ids.end(), missing)) return Status::Ok();
    why = numbers->uid == uid ? "you have not all of its groups"
                              : StrCat("you have number ", numbers->uid);
  }
  return ForbiddenError(
      *call.kind, call.info.name,
      StrCat("it runs as user ", uid, ", a number of user ", Quote(api::Annotation(pod, kRunAsOf)),
             " (swell user create ", "--run-as), and ", why));
}

Result<bool> HasGivenNumbers(const Admission& admission, const json::Value& pod) {
  const std::string user(api::Annotation(pod, api::keys::kUser));
  SWELL_ASSIGN_OR_RETURN(const std::optional<Given> given, GivenTo(admission, user));
  return given.has_value();
}

Status CheckIdsOfWork(const Admission& admission, Work work, const json::Value& object) {
  const std::optional<NamedId> found = IdOfMachineIn(work, object);
  if (!found) return Status::Ok();
  const json::Value* made = TemplateOf(work, object);
  const std::string user(api::Annotation(made != nullptr ? *made : object, api::keys::kUser));
  SWELL_ASSIGN_OR_RETURN(const std::optional<Given> given, GivenTo(admission, user));
  if (given) return Status::Ok();
  return ForbiddenError(
      admission.kind, admission.name,
      StrCat(found->field, ": ", found->id, ": a pod has the ids 0 to ", api::kIdsOfPod - 1,
             " of its own; beyond them are ids of the machine, which an administrator names, or "
             "gives to a user (swell user create --run-as)"));
}

Status CheckRunAsOfWork(const Admission& admission,
                        const json::Value& object,
                        const json::Value* old) {
  const Work work = WorkOf(admission.kind);
  // A pod is checked when it gets its ids. A TrainingRuntime has pods that are made for others.
  if (work == Work::kNone || work == Work::kPod || work == Work::kRuntime) return Status::Ok();
  if (admission.call == nullptr || !admission.core.Get<AccessControl>().rbac) return Status::Ok();
  if (admission.subresource == "status") return Status::Ok();
  if (old != nullptr && !PodsDiffer(work, object, *old)) return Status::Ok();
  const json::Value* made = TemplateOf(work, object);
  const std::string user(api::Annotation(made != nullptr ? *made : object, api::keys::kUser));
  SWELL_ASSIGN_OR_RETURN(const std::optional<Given> given, GivenTo(admission, user));
  if (!given) return Status::Ok();
  for (const json::Value* pod : TemplatesOf(work, object)) {
    SWELL_RETURN_IF_ERROR(CheckPod(admission, *given, *pod, PathOfTemplate(object, *pod) + "."));
  }
  for (const MadePod& one : MadePodsOf(work, object)) {
    SWELL_RETURN_IF_ERROR(CheckMadePod(admission, *given, one));
  }
  return Status::Ok();
}

bool NamesIdsOfMachine(Work work, const json::Value& object) {
  return IdOfMachineIn(work, object).has_value();
}

}  // namespace swell::apiserver
