#include "jobs/job_rules.h"

#include <map>
#include <set>

#include "base/check.h"
#include "base/duration.h"
#include "base/strings.h"
#include "elastic/log_metrics.h"
#include "elastic/log_progress.h"
#include "jobs/crons/cron_run.h"
#include "jobs/pass/job_members.h"
#include "jobs/progress/progress_reader.h"
#include "json/path_search.h"
#include "kube/api/crd/definitions.h"
#include "kube/api/meta/failure_keys.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/cron_schedule.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/pod_group.h"
#include "sched_inputs/gpu_request.h"
#include "sched_inputs/project_shares.h"

namespace swell::jobs {

using controllers::WrongField;
using controllers::WrongText;

namespace {

Status CheckPattern(std::string_view field, std::string_view pattern) {
  const auto compiled = elastic::LogMetrics::Compile(pattern);
  return compiled.ok() ? Status::Ok() : WrongField(field, compiled.status().message());
}

// Both kinds of scaling say where the pattern is that finds their numbers.
template <typename Read>
Status CheckScaling(Read read, const json::Value& job) {
  if (read == nullptr) return Status::Ok();
  SWELL_ASSIGN_OR_RETURN(const auto scaled, read(job));
  return scaled ? CheckPattern(scaled->pattern_field, scaled->pattern) : Status::Ok();
}

// How long GPUs may be idle, of a job or a project.
Status CheckIdleTimeout(const json::Value& object) {
  const std::string_view text = api::Annotation(object, api::keys::kIdleTimeout);
  if (text.empty() || ParseDuration(text)) return Status::Ok();
  return WrongText(StrCat("metadata.annotations[", api::keys::kIdleTimeout, "]"), text,
                   "must be a duration such as 30m or 2h; 0 means no limit");
}

// What finds the progress of a job in its log.
Status CheckProgress(const json::Value& job) {
  const std::string_view pattern = ProgressPatternOf(job);
  if (pattern.empty()) return Status::Ok();
  const auto compiled = elastic::LogProgress::Compile(pattern);
  return compiled.ok() ? Status::Ok()
                       : WrongField(ProgressPatternField(job), compiled.status().message());
}

constexpr int kPartsDeep = 16;
// In names of a Cron's runs; the digits are as many until the year 2286.
constexpr WallTime kTypicalTime{.unix_ns = 2'000'000'000'000'000'000};

// Parents are there, and no part is inside of itself: it would be in the group nowhere.
Status CheckPodGroup(const json::Value& group) {
  const api::PodGroupSpec spec(group);
  std::map<std::string_view, std::string_view> parents;
  for (const api::GroupPartSpec& part : spec.parts) parents[part.name] = part.parent;
  auto check = [&parents](const std::string& field, std::string_view parent) {
    const std::string_view said = parent;
    for (int depth = 0; !parent.empty(); ++depth) {
      auto above = parents.find(parent);
      if (above == parents.end()) {
        return WrongField(field, StrCat("Not found: ", Quote(parent), ": spec.groups has no such"));
      }
      if (depth > kPartsDeep) {
        return WrongText(field, said,
                         StrCat("leads into itself, or more than ", kPartsDeep, " up"));
      }
      parent = above->second;
    }
    return Status::Ok();
  };
  for (size_t i = 0; i < spec.parts.size(); ++i) {
    SWELL_RETURN_IF_ERROR(check(StrCat("spec.groups[", i, "].parent"), spec.parts[i].parent));
  }
  for (size_t i = 0; i < spec.pod_sets.size(); ++i) {
    SWELL_RETURN_IF_ERROR(check(StrCat("spec.podSets[", i, "].parent"), spec.pod_sets[i].parent));
  }
  return Status::Ok();
}

// Kinds of jobs as their CustomResourceDefinitions have them; null for another kind. Versions
// of a kind have the same fields.
const api::KindInfo* DefinedKind(const client::Resource& resource) {
  static const std::map<std::string, api::KindInfo> kinds = [] {
    std::map<std::string, api::KindInfo> all;
    std::set<std::string> jobs;
    for (const api::Definition& one : api::JobDefinitions()) jobs.insert(one.GroupResource());
    for (const json::Value& crd : api::SwellCrds()) {
      std::string name(api::Name(crd));
      if (!jobs.contains(name)) continue;
      auto versions = api::KindsOfCrd(crd);
      SWELL_CHECK_MSG(versions.ok(), versions.status().ToString());
      all.emplace(std::move(name), std::move(versions->front().kind));
    }
    return all;
  }();
  const auto found = kinds.find(resource.GroupResource());
  return found == kinds.end() ? nullptr : &found->second;
}

// Where a Cron has what is at this field of its run. A run that is named after the Cron has no name
// of its own to change.
std::string FieldOfCron(const NewRun& run, std::string_view field) {
  if (!run.named && field == "metadata.name") return std::string(field);
  return StrCat("spec.template.workload.", field);
}

// Wrong types and values, in the words in which the server would refuse the run.
Status CheckTypes(const NewRun& run) {
  const api::KindInfo* kind = DefinedKind(run.resource);
  if (kind == nullptr) return Status::Ok();
  json::Value job = run.job;
  json::Remove(job, {"metadata", "ownerReferences"});  // a Cron that is new has no uid yet
  api::ApplyDefaults(*kind->schema, job);
  StatusDetails details;
  std::vector<std::string> texts;
  for (const api::FieldError& error :
       api::ValidateObject(*kind, job, nullptr, api::ValidateAgainst(*kind->schema, job))) {
    std::string field = FieldOfCron(run, error.field);
    texts.push_back(StrCat(field, ": ", error.message));
    details.causes.push_back({error.reason, std::move(field), error.message});
  }
  if (texts.empty()) return Status::Ok();
  return Status(Code::kInvalid, Join(texts, ", "), std::move(details));
}

// Pods are reached by their names, which are labels of DNS then.
Status CheckPodNames(const JobSpec& spec, const json::Value& job) {
  constexpr size_t kNameMax = 63;
  const std::string_view name = api::Name(job);
  std::string longest;
  for (const ReplicaSpec& replica : spec.replicas) {
    std::string pod = replica.PodName(name, std::max<int64_t>(0, replica.replicas - 1));
    // The pod's host name, unless its template says another.
    if (json::Find(replica.pod_template, {"spec", "hostname"}) == nullptr &&
        pod.find('.') != std::string::npos) {
      return WrongText("metadata.name", name,
                       StrCat("the job's pods would have host names with a dot (", pod,
                              "); take a name without dots"));
    }
    if (pod.size() > longest.size()) longest = std::move(pod);
  }
  if (longest.size() <= kNameMax) return Status::Ok();
  return WrongText("metadata.name", name,
                   StrCat("the job's pods would have names of ", longest.size(), " characters (",
                          longest, "), and ", kNameMax, " fit; take a name that is ",
                          longest.size() - kNameMax, " shorter"));
}

// Some kinds tell each member the names of all others in a variable. One member stands for all.
Status CheckVariables(const JobKind& kind, const json::Value& job, const JobSpec& spec) {
  constexpr size_t kBytesMax = (128 << 10) - 1;  // the kernel's MAX_ARG_STRLEN, without the zero
  const json::Value pod = MakeMember({kind, job, spec, ""}, spec.replicas.front(), 0);
  for (const json::Value& container : api::Containers(pod)) {
    for (const json::Value& variable : json::GetArray(container, {"env"})) {
      const size_t bytes = json::GetString(variable, {"value"}).size();
      if (bytes <= kBytesMax) continue;
      return WrongField(
          "spec", StrCat("Invalid value: with ", spec.TotalReplicas(), " members, the variable ",
                         json::GetString(variable, {"name"}), " of each would have ", bytes,
                         " bytes, and a program can be given ", kBytesMax,
                         "; use a shorter value or fewer members"));
    }
  }
  return Status::Ok();
}

// Where the job names the class, as "high" or for a part of the members: "high=0.5". "spec" if it
// is nowhere, as the class of a kind whose jobs all have the same.
std::string ClassField(const json::Value& job, std::string_view name) {
  constexpr int kDepthMax = 16;
  const auto names = [name](std::string_view key, const json::Value& value) {
    if (!value.is_string() || (key != "priorityClass" && key != "priorityClassName")) return false;
    const std::string_view text = json::View(value.get_string());
    return text.substr(0, text.find('=')) == name;
  };
  const auto path = json::FindPathOf(api::Spec(job), kDepthMax, names);
  return path ? StrCat("spec.", *path) : "spec";
}

}  // namespace

std::string NoSuchClass(std::string_view name) {
  return StrCat("no PriorityClass with name ", name, " was found");
}

JobRules::JobRules() : kinds_(MakeJobKinds({})) {}

const JobKind* JobRules::Find(std::string_view group, std::string_view plural) const {
  for (const JobKindEntry& row : kinds_) {
    const client::Resource own = row.kind->resource();
    if (own.group == group && own.plural == plural) return row.kind.get();
  }
  return nullptr;
}

Status JobRules::Check(const JobKind& kind, const json::Value& job) const {
  SWELL_ASSIGN_OR_RETURN(const JobSpec spec, kind.Parse(job));
  SWELL_RETURN_IF_ERROR(CheckPodNames(spec, job));
  SWELL_RETURN_IF_ERROR(CheckVariables(kind, job, spec));
  SWELL_RETURN_IF_ERROR(CheckIdleTimeout(job));
  SWELL_RETURN_IF_ERROR(CheckProgress(job));
  // KubeDL's: a job that ran once without a word would pass for one that comes again.
  if (json::Find(job, {"spec", "cronPolicy"}) != nullptr) {
    return WrongField("spec.cronPolicy",
                      "Forbidden: jobs run once; a Cron (apps.kubedl.io/v1alpha1) makes one at "
                      "each time of a schedule");
  }
  if (json::Find(job, {"spec", "modelVersion"}) != nullptr) {
    return WrongField("spec.modelVersion",
                      "Forbidden: no image is built of a trained model; leave it out, save the "
                      "model to a volume, and build the image from there");
  }
  if (json::Find(job, {"spec", "cacheBackend"}) != nullptr) {
    return WrongField("spec.cacheBackend",
                      "Forbidden: training data are not cached; leave it out, and mount the volume "
                      "that has them");
  }
  for (const JobKindEntry& row : kinds_) {
    if (row.kind.get() != &kind) continue;
    SWELL_RETURN_IF_ERROR(CheckScaling(row.scale, job));
    SWELL_RETURN_IF_ERROR(CheckScaling(row.target, job));
    if (row.goodput != nullptr) SWELL_RETURN_IF_ERROR(row.goodput(job, {}).status());
  }
  return Status::Ok();
}

Status JobRules::CheckCron(const json::Value& cron) const {
  const std::string_view text = json::GetString(cron, {"spec", "schedule"});
  const auto schedule = api::CronSchedule::Parse(text);
  if (!schedule.ok()) return WrongText("spec.schedule", text, schedule.status().message());
  if (!schedule->Next({})) return WrongText("spec.schedule", text, "matches no date");
  // A label of its jobs has the Cron's name.
  if (const std::string wrong = api::CheckLabelValue(api::Name(cron)); !wrong.empty()) {
    return WrongText("metadata.name", api::Name(cron), wrong);
  }
  SWELL_ASSIGN_OR_RETURN(const NewRun run, MakeCronRun(cron, kTypicalTime));
  const JobKind* kind = Find(run.resource.group, run.resource.plural);
  if (kind == nullptr) return Status::Ok();
  SWELL_RETURN_IF_ERROR(CheckTypes(run));
  const Status wrong = Check(*kind, run.job);
  if (wrong.ok() || wrong.details().causes.empty()) return wrong;
  const StatusCause& cause = wrong.details().causes.front();
  return WrongField(FieldOfCron(run, cause.field), cause.message);
}

Status JobRules::CheckObject(const api::KindInfo& kind, const json::Value& object) const {
  if (kind.gvk.group.empty() && kind.plural == "pods")
    return sched_inputs::ValidateGpuRequest(object);
  if (kind.gvk.group == "swell.dev" && kind.plural == "podgroups") return CheckPodGroup(object);
  if (kind.gvk.group == "swell.dev" && kind.plural == "projects") {
    SWELL_RETURN_IF_ERROR(CheckIdleTimeout(object));
    const auto fault = sched_inputs::FindProjectFault(object);
    return fault ? WrongField(fault->field, fault->message) : Status::Ok();
  }
  if (kind.gvk.group == client::resources::kCrons.group &&
      kind.plural == client::resources::kCrons.plural) {
    return CheckCron(object);
  }
  const JobKind* job = Find(kind.gvk.group, kind.plural);
  return job == nullptr ? Status::Ok() : Check(*job, object);
}

std::vector<api::FieldError> JobRules::CheckWrite(const api::KindInfo& kind,
                                                  const json::Value& object,
                                                  const json::Value* old) const {
  const Status found = CheckObject(kind, object);
  if (found.ok() || (old != nullptr && CheckObject(kind, *old).message() == found.message())) {
    return {};
  }
  std::vector<api::FieldError> errors;
  for (const StatusCause& cause : found.details().causes) {
    errors.push_back({cause.reason, cause.field, cause.message});
  }
  return errors;
}

std::set<std::string> JobRules::ClassesOf(const JobKind& kind, const json::Value& job) const {
  std::set<std::string> names;
  const auto spec = kind.Parse(job);
  if (!spec.ok()) return names;
  names.insert(spec->priority_class);
  for (const ReplicaSpec& replica : spec->replicas) {
    // ElasticDL's high and low stand for others, and go before what the template says.
    const bool own = !replica.priority.priority_class.empty();
    if (spec->grouped) names.insert(replica.priority.priority_class);
    if (spec->grouped || !own) names.emplace(api::PriorityClassName(replica.pod_template));
  }
  names.erase("");
  return names;
}

std::set<std::string> JobRules::ClassesIn(const api::KindInfo& kind,
                                          const json::Value& object) const {
  if (kind.gvk.group == client::resources::kCrons.group &&
      kind.plural == client::resources::kCrons.plural) {
    const auto run = MakeCronRun(object, kTypicalTime);
    const JobKind* of_run = run.ok() ? Find(run->resource.group, run->resource.plural) : nullptr;
    return of_run != nullptr ? ClassesOf(*of_run, run->job) : std::set<std::string>();
  }
  const JobKind* job = Find(kind.gvk.group, kind.plural);
  return job != nullptr ? ClassesOf(*job, object) : std::set<std::string>();
}

std::vector<api::FieldError> JobRules::CheckClasses(
    const api::KindInfo& kind,
    const json::Value& object,
    const json::Value* old,
    const std::function<bool(const std::string&)>& exists) const {
  std::vector<api::FieldError> errors;
  for (const std::string& name : ClassesIn(kind, object)) {
    if (exists(name)) continue;
    if (old != nullptr && ClassesIn(kind, *old).contains(name)) continue;
    const Status wrong = WrongText(ClassField(object, name), name, NoSuchClass(name));
    for (const StatusCause& cause : wrong.details().causes) {
      errors.push_back({cause.reason, cause.field, cause.message});
    }
  }
  return errors;
}

}  // namespace swell::jobs
