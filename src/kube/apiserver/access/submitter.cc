#include "kube/apiserver/access/submitter.h"

#include <algorithm>
#include <optional>

#include "base/strings.h"
#include "kube/api/crd/definitions.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/apiserver/access/access.h"
#include "kube/apiserver/access/registered_users.h"
#include "kube/apiserver/request/errors.h"

namespace swell::apiserver {
namespace {

constexpr int64_t kIdMax = 2'147'483'647;

enum class Work { kNone, kPod, kJob, kTemplate, kCronTemplate };

Work WorkOf(const api::KindInfo& kind) {
  const std::string& group = kind.gvk.group;
  const std::string& name = kind.gvk.kind;
  if (group.empty() && name == "Pod") return Work::kPod;
  if (group.empty() && name == "ReplicationController") return Work::kTemplate;
  if (group == "apps" && kind.plural != "controllerrevisions") return Work::kTemplate;
  if (group == "batch") return name == "CronJob" ? Work::kCronTemplate : Work::kTemplate;
  static const std::vector<api::Definition> jobs = api::JobDefinitions();
  const bool job = std::any_of(jobs.begin(), jobs.end(), [&](const api::Definition& one) {
    return one.group == group && one.kind == name;
  });
  return job ? Work::kJob : Work::kNone;
}

std::vector<std::string_view> TemplatePath(Work work) {
  if (work == Work::kTemplate) return {"spec", "template"};
  if (work == Work::kCronTemplate) return {"spec", "jobTemplate", "spec", "template"};
  return {};
}

json::Value* TemplateOf(Work work, json::Value& object) {
  json::Value* at = &object;
  for (std::string_view step : TemplatePath(work)) at = at ? json::FindMutable(*at, {step}) : at;
  return at == &object || at == nullptr || !at->is_object() ? nullptr : at;
}

// Null: nobody whom work is accounted to. Masters may say for whom they act.
const api::UserInfo* PersonOf(const Admission& admission) {
  if (admission.call == nullptr || !admission.core.Get<AccessControl>().rbac) return nullptr;
  if (WorkOf(admission.kind) == Work::kNone) return nullptr;
  const api::UserInfo& user = admission.call->user;
  return user.name.starts_with("system:") || IsMaster(user) ? nullptr : &user;
}

void StampTemplate(Work work, json::Value& object, std::string_view user) {
  json::Value* pods = TemplateOf(work, object);
  if (pods == nullptr) return;
  json::Set(*pods, {"metadata", "annotations", api::keys::kUser}, user);
}

// The Jobs that a CronJob makes are whose their pods are.
void StampJobs(Work work, json::Value& object) {
  const json::Value* pods = work == Work::kCronTemplate ? TemplateOf(work, object) : nullptr;
  if (pods == nullptr) return;
  const std::string user(api::Annotation(*pods, api::keys::kUser));
  json::Set(object, {"spec", "jobTemplate", "metadata", "annotations", api::keys::kUser}, user);
}

struct Given {
  std::string whose;  // "user \"alice\"", "namespace \"vision\""
  RunAs numbers;
};

// An administrator writes the number; one that cannot be read lets nothing run.
Result<std::optional<Given>> GivenTo(const Admission& admission, const json::Value& pod) {
  const std::string user(api::Annotation(pod, api::keys::kUser));
  std::string text = user.empty() ? "" : RunAsOfUser(admission.core, user);
  std::string whose = StrCat("user ", Quote(user));
  if (text.empty()) {
    const auto entry = admission.core.store.Latest({"namespaces", "", admission.ns});
    if (entry) text = api::Annotation(*entry->Parsed(), kRunAsUser);
    whose = StrCat("namespace ", Quote(admission.ns));
  }
  if (text.empty()) return std::optional<Given>();
  auto numbers = ParseRunAs(text);
  if (!numbers.ok()) {
    return ForbiddenError(admission.kind, admission.name,
                          StrCat(kRunAsUser, " of ", whose, ": ", numbers.status().message()));
  }
  return std::optional<Given>(Given{std::move(whose), std::move(*numbers)});
}

Status CheckContext(const Admission& admission,
                    const Given& given,
                    const std::string& path,
                    const json::Value& of) {
  const json::Value* context = json::Find(of, {"securityContext"});
  if (context == nullptr || !context->is_object()) return Status::Ok();
  auto refuse = [&](std::string_view field, int64_t value) {
    return ForbiddenError(
        admission.kind, admission.name,
        StrCat(path, "securityContext.", field, ": ", value, ": pods of ", given.whose,
               " run as user ", given.numbers.uid, ", group ", given.numbers.gids.front()));
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

Status CheckPod(const Admission& admission, const Given& given, const json::Value& pod) {
  const json::Value* spec = json::Find(pod, {"spec"});
  if (spec == nullptr) return Status::Ok();
  SWELL_RETURN_IF_ERROR(CheckContext(admission, given, "spec.", *spec));
  for (std::string_view list : {"initContainers", "containers", "ephemeralContainers"}) {
    const json::Array& containers = json::GetArray(*spec, {list});
    for (size_t i = 0; i < containers.size(); ++i) {
      const std::string path = StrCat("spec.", list, "[", i, "].");
      SWELL_RETURN_IF_ERROR(CheckContext(admission, given, path, containers[i]));
    }
  }
  return Status::Ok();
}

}  // namespace

Result<RunAs> ParseRunAs(std::string_view text) {
  auto number = [](std::string_view word) -> std::optional<int64_t> {
    auto value = ParseInt(Trim(word));
    return value && *value >= 0 && *value <= kIdMax ? value : std::nullopt;
  };
  const size_t colon = text.find(':');
  const auto uid = number(text.substr(0, colon));
  RunAs out{uid.value_or(0), {}};
  bool good = uid.has_value();
  if (colon != std::string_view::npos) {
    for (std::string_view word : Split(text.substr(colon + 1), ',')) {
      const auto gid = number(word);
      good = good && gid;
      out.gids.push_back(gid.value_or(0));
    }
    good = good && !out.gids.empty();
  }
  if (!good) {
    return Status(Code::kInvalid, StrCat(Quote(text),
                                         ": UID[:GID[,GID...]] expected, for example 1500 or "
                                         "1500:100,44"));
  }
  if (out.gids.empty()) out.gids.push_back(out.uid);
  return out;
}

void StampSubmitter(const Admission& admission, json::Value& object) {
  const api::UserInfo* person = PersonOf(admission);
  if (person == nullptr) return;
  json::Set(object, {"metadata", "annotations", api::keys::kUser}, json::Value(person->name));
  StampTemplate(WorkOf(admission.kind), object, person->name);
  StampJobs(WorkOf(admission.kind), object);
}

void KeepSubmitter(const Admission& admission, json::Value& object, const json::Value& old) {
  const api::UserInfo* person = PersonOf(admission);
  if (person == nullptr) return;
  const std::string before(api::Annotation(old, api::keys::kUser));
  if (before.empty()) {
    json::Remove(object, {"metadata", "annotations", api::keys::kUser});
  } else {
    json::Set(object, {"metadata", "annotations", api::keys::kUser}, json::Value(before));
  }
  const Work work = WorkOf(admission.kind);
  json::Value previous = old;
  const json::Value* was = TemplateOf(work, previous);
  const json::Value* is = TemplateOf(work, object);
  if (is != nullptr && (was == nullptr || *was != *is)) StampTemplate(work, object, person->name);
  StampJobs(work, object);
}

Status AdmitRunAs(const Admission& admission, json::Value& pod) {
  if (!admission.core.Get<AccessControl>().rbac) return Status::Ok();
  SWELL_ASSIGN_OR_RETURN(const std::optional<Given> given, GivenTo(admission, pod));
  if (!given) return Status::Ok();
  SWELL_RETURN_IF_ERROR(CheckPod(admission, *given, pod));
  json::Set(pod, {"spec", "securityContext", "runAsUser"}, given->numbers.uid);
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
  SWELL_ASSIGN_OR_RETURN(const std::optional<Given> given, GivenTo(admission, pod));
  return given ? CheckPod(admission, *given, pod) : Status::Ok();
}

}  // namespace swell::apiserver
