#include "jobs/crons/cron_run.h"

#include <optional>
#include <string>
#include <vector>

#include "base/strings.h"
#include "kube/api/crd/definitions.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/wrong_field.h"

namespace swell::jobs {
namespace {

constexpr std::string_view kTemplate = "spec.template";
constexpr int64_t kSecondNs = 1'000'000'000;

std::optional<client::Resource> ResourceOf(std::string_view api_version, std::string_view kind) {
  static const std::vector<api::Definition> jobs = api::JobDefinitions();
  for (const api::Definition& one : jobs) {
    if (one.kind != kind) continue;
    for (const std::string& version : {one.version, one.also_served}) {
      client::Resource resource{one.group, version, one.plural, true};
      if (!version.empty() && resource.ApiVersion() == api_version) return resource;
    }
  }
  return std::nullopt;
}

std::string KnownKinds() {
  std::vector<std::string> all;
  for (const api::Definition& one : api::JobDefinitions()) {
    all.push_back(StrCat(one.kind, " (", one.group, "/", one.version, ")"));
  }
  return Join(all, ", ");
}

// What the workload says of itself beside the template must say the same.
Status CheckSame(const json::Value& workload, std::string_view field, std::string_view wanted) {
  const std::string_view said = json::GetString(workload, {field}, wanted);
  if (said == wanted) return Status::Ok();
  return controllers::WrongText(
      StrCat(kTemplate, ".workload.", field), said,
      StrCat("must be ", wanted, ", as ", kTemplate, ".", field, " says"));
}

}  // namespace

Result<NewRun> MakeCronRun(const json::Value& cron, WallTime at) {
  const std::string_view api_version = json::GetString(cron, {"spec", "template", "apiVersion"});
  const std::string_view kind = json::GetString(cron, {"spec", "template", "kind"});
  const auto resource = ResourceOf(api_version, kind);
  if (!resource) {
    return controllers::WrongText(StrCat(kTemplate, ".kind"), StrCat(kind, " (", api_version, ")"),
                                  StrCat("must be a kind of job: ", KnownKinds()));
  }
  const json::Value* workload = json::Find(cron, {"spec", "template", "workload"});
  if (workload == nullptr || !workload->is_object()) {
    return controllers::WrongField(StrCat(kTemplate, ".workload"),
                                   "Required value: the job of each run");
  }
  SWELL_RETURN_IF_ERROR(CheckSame(*workload, "apiVersion", api_version));
  SWELL_RETURN_IF_ERROR(CheckSame(*workload, "kind", kind));
  // Fields that only the server sets (uid, status) are not copied.
  json::Object labels = api::Labels(*workload);
  labels[kCronNameLabel] = api::Name(cron);
  const std::string_view named = api::Name(*workload);
  NewRun run{.resource = *resource,
             .job = json::Object{{"apiVersion", api_version}, {"kind", kind}},
             .named = !named.empty()};
  json::Set(run.job, {"metadata"},
            json::Object{{"name", run.named ? std::string(named)
                                            : StrCat(api::Name(cron), "-", at.unix_ns / kSecondNs)},
                         {"namespace", api::Namespace(cron)},
                         {"labels", std::move(labels)},
                         {"annotations", api::Annotations(*workload)},
                         {"ownerReferences", json::Array{api::MakeOwnerReference(cron)}}});
  // A Run:ai workload has its master beside its spec.
  for (std::string_view part : {"spec", "masterSpec"}) {
    const json::Value* said = json::Find(*workload, {part});
    if (said != nullptr) json::Set(run.job, {part}, *said);
  }
  return run;
}

}  // namespace swell::jobs
