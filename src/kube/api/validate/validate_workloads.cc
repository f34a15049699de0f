// Rules of jobs and of what keeps pods running.
#include <algorithm>

#include "base/strings.h"
#include "base/time_zone.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/selector.h"
#include "kube/api/validate/validate_rules.h"

namespace swell::api {
namespace {

using json::Value;

void CheckJobRestartPolicy(const Value& spec, const std::string& path, FieldErrors& errors) {
  std::string_view policy = json::GetString(spec, {"template", "spec", "restartPolicy"});
  std::string at = PathField(path, "template.spec.restartPolicy");
  if (policy.empty() || policy == "Always") {
    errors.push_back(RequiredError(at, "valid values: \"OnFailure\", \"Never\""));
  } else if (policy != "OnFailure" && policy != "Never") {
    errors.push_back(NotSupportedError(at, policy, {"OnFailure", "Never"}));
  }
}

// Whether `selector` and the template's labels are told to differ.
void CheckTemplateLabels(const Value& spec,
                         const Value* selector,
                         const std::string& path,
                         FieldErrors& errors) {
  const json::Object& labels = json::GetObject(spec, {"template", "metadata", "labels"});
  bool matches = false;  // an absent selector selects nothing
  if (selector != nullptr) {
    Result<LabelSelector> parsed = LabelSelector::FromJson(selector);
    matches = !parsed.ok() || parsed->Matches(Value(labels));
  }
  if (matches) return;
  errors.push_back({"FieldValueInvalid", PathField(path, "template.metadata.labels"),
                    StrCat("Invalid value: ", ShowLabels(Value(labels)),
                           ": `selector` does not match template `labels`")});
}

void CheckJobAmounts(const Value& spec, const std::string& path, FieldErrors& errors) {
  for (std::string_view key :
       {"parallelism", "completions", "activeDeadlineSeconds", "backoffLimit",
        "ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes"}) {
    CheckNonNegative(spec, key, path, errors);
  }
  const bool indexed = TextOf(spec, "completionMode") == "Indexed";
  const Value* completions = MemberOf(spec, "completions");
  if (indexed && completions == nullptr) {
    errors.push_back(
        RequiredError(PathField(path, "completions"), "when completion mode is Indexed"));
  }
  const Value* failed = MemberOf(spec, "maxFailedIndexes");
  if (failed != nullptr && !MemberOf(spec, "backoffLimitPerIndex")) {
    errors.push_back(RequiredError(PathField(path, "backoffLimitPerIndex"),
                                   "when maxFailedIndexes is specified"));
  }
  if (indexed && failed != nullptr && completions != nullptr &&
      json::GetInt(*failed, {}) > json::GetInt(*completions, {})) {
    errors.push_back(InvalidError(PathField(path, "maxFailedIndexes"), *failed,
                                  "must be less than or equal to completions"));
  }
  for (std::string_view key : {"backoffLimitPerIndex", "maxFailedIndexes"}) {
    const Value* given = MemberOf(spec, key);
    if (given == nullptr || indexed) continue;
    errors.push_back(
        InvalidError(PathField(path, key), *given, "requires indexed completion mode"));
  }
}

void CheckJobSpec(const Value& spec, const std::string& path, FieldErrors& errors) {
  CheckOneOf(spec, "completionMode", path, {"Indexed", "NonIndexed"}, errors);
  CheckJobAmounts(spec, path, errors);
  CheckJobPolicies(spec, path, errors);
  CheckPodTemplate(spec, path, errors);
  CheckJobRestartPolicy(spec, path, errors);
  CheckJobScheduling(spec, nullptr, path, errors);
}

// A job that does not manage its selector itself has the one that was made for it.
void CheckJobSelector(const Value& job, const Value& spec, FieldErrors& errors) {
  const Value* selector = MemberOf(spec, "selector");
  if (selector == nullptr) {  // made later, or for no job yet
    if (!json::GetBool(spec, {"manualSelector"})) return;
    errors.push_back(RequiredError("spec.selector"));
    CheckTemplateLabels(spec, nullptr, "spec", errors);
    return;
  }
  const json::Object& labels = json::GetObject(*selector, {"matchLabels"});
  bool generated = labels.size() == 1 && json::GetArray(*selector, {"matchExpressions"}).empty();
  for (const auto& label : labels) {
    generated = generated && std::string_view(label.key()).ends_with("controller-uid") &&
                label.value().is_string() &&
                json::View(label.value().get_string()) == json::GetString(job, {"metadata", "uid"});
  }
  if (!generated && !json::GetBool(spec, {"manualSelector"})) {
    errors.push_back(
        {"FieldValueInvalid", "spec.selector",
         StrCat("Invalid value: ", ShowSelector(*selector), ": `selector` not auto-generated")});
  }
}

// Suspended, and without pods: before its first start, or since its controller took them away.
bool MayChangePods(const Value& job) {
  const bool none =
      json::Find(job, {"status", "startTime"}) == nullptr || ConditionIsTrue(job, "Suspended");
  return none && json::GetBool(job, {"spec", "suspend"}) &&
         json::GetInt(job, {"status", "active"}) == 0;
}

// The spec of a job's pods without what says where they run and what they ask for.
Value PodsWithoutPlacement(const Value& spec) {
  const Value* found = json::Find(spec, {"template", "spec"});
  if (found == nullptr) return {};
  Value pods = *found;
  for (std::string_view field : {"nodeSelector", "tolerations", "schedulingGates"}) {
    json::Remove(pods, {field});
  }
  json::Remove(pods, {"affinity", "nodeAffinity"});
  if (json::GetObject(pods, {"affinity"}).empty()) json::Remove(pods, {"affinity"});
  for (std::string_view list : {"containers", "initContainers"}) {
    Value* containers = json::FindMutable(pods, {list});
    if (containers == nullptr || !containers->is_array()) continue;
    for (Value& container : containers->get_array()) json::Remove(container, {"resources"});
  }
  return pods;
}

void CheckJobTemplate(const Value& old, const Value& spec, FieldErrors& errors) {
  const Value& before = SpecOf(old);
  if (!MayChangePods(old)) {
    CheckImmutable(MemberOf(spec, "template"), MemberOf(before, "template"), "spec.template",
                   errors);
    return;
  }
  const Value is = PodsWithoutPlacement(spec);
  const Value was = PodsWithoutPlacement(before);
  CheckImmutable(&is, &was, "spec.template.spec", errors);
  CheckPodTemplate(spec, "spec", errors);
  const Value* selector = MemberOf(spec, "selector");
  if (selector != nullptr) CheckTemplateLabels(spec, selector, "spec", errors);
}

void CheckJob(const Value& job, const Value* old, FieldErrors& errors) {
  const Value& spec = SpecOf(job);
  if (old == nullptr) {
    CheckJobSelector(job, spec, errors);
    CheckJobSpec(spec, "spec", errors);
    if (const Value* selector = MemberOf(spec, "selector")) {
      CheckLabelSelector(*selector, "spec.selector", errors);
      CheckTemplateLabels(spec, selector, "spec", errors);
    }
    return;
  }
  const Value& before = SpecOf(*old);
  for (std::string_view key : {"selector", "completionMode", "podFailurePolicy",
                               "backoffLimitPerIndex", "managedBy", "successPolicy"}) {
    CheckImmutable(MemberOf(spec, key), MemberOf(before, key), PathField("spec", key), errors);
  }
  bool elastic = TextOf(spec, "completionMode") == "Indexed" &&
                 json::GetInt(spec, {"completions"}) == json::GetInt(spec, {"parallelism"});
  if (!elastic) {
    CheckImmutable(MemberOf(spec, "completions"), MemberOf(before, "completions"),
                   "spec.completions", errors);
  }
  CheckJobTemplate(*old, spec, errors);
  CheckJobAmounts(spec, "spec", errors);
  CheckJobScheduling(spec, &before, "spec", errors);
}

struct CronField {
  int64_t first, last;
  std::string_view words;  // of values from `first` on, three letters each
};
constexpr CronField kCronFields[] = {{0, 59, ""},
                                     {0, 23, ""},
                                     {1, 31, ""},
                                     {1, 12, "janfebmaraprmayjunjulaugsepoctnovdec"},
                                     {0, 6, "sunmontuewedthufrisat"}};

Result<int64_t> CronValue(std::string_view text, const CronField& field) {
  const size_t at = text.size() == 3 ? field.words.find(ToLower(text)) : std::string_view::npos;
  if (at != std::string_view::npos && at % 3 == 0)
    return field.first + static_cast<int64_t>(at / 3);
  const auto number = ParseInt(text);
  if (!number) {
    return Status(Code::kInvalid,
                  StrCat("Failed to parse int from ", text, ": strconv.Atoi: parsing ", Quote(text),
                         ": invalid syntax"));
  }
  if (*number < 0) {
    return Status(Code::kInvalid, StrCat("Negative number (", *number, ") not allowed: ", text));
  }
  return *number;
}

// What is wrong with one of a field's items: "*", "?", "3", "1-5", each perhaps with "/2".
std::string CronItemProblem(std::string_view item, const CronField& field) {
  const std::vector<std::string_view> parts = Split(item, '/');
  const std::vector<std::string_view> ends = Split(parts[0], '-');
  int64_t from = field.first;
  int64_t to = field.last;
  if (ends[0] != "*" && ends[0] != "?") {
    Result<int64_t> low = CronValue(ends[0], field);
    if (!low.ok()) return low.status().message();
    from = to = *low;
    if (ends.size() > 2) return StrCat("Too many hyphens: ", item);
    if (ends.size() == 2) {
      Result<int64_t> high = CronValue(ends[1], field);
      if (!high.ok()) return high.status().message();
      to = *high;
    }
  }
  if (parts.size() > 2) return StrCat("Too many slashes: ", item);
  if (parts.size() == 2) {
    Result<int64_t> step = CronValue(parts[1], {});
    if (!step.ok()) return step.status().message();
    if (*step == 0) return StrCat("Step of range should be a positive number: ", item);
    if (ends.size() == 1) to = std::max(to, field.last);
  }
  if (from < field.first) {
    return StrCat("Beginning of range (", from, ") below minimum (", field.first, "): ", item);
  }
  if (to > field.last) {
    return StrCat("End of range (", to, ") above maximum (", field.last, "): ", item);
  }
  if (from > to) {
    return StrCat("Beginning of range (", from, ") beyond end of range (", to, "): ", item);
  }
  return {};
}

// Numbers with units, "1h30m", as Go writes them.
bool IsDuration(std::string_view text) {
  if (text.empty()) return false;
  while (!text.empty()) {
    const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
    const size_t unit = std::min(text.find_first_of("0123456789.", digits), text.size());
    static constexpr std::string_view kUnits[] = {"ns", "us", "µs", "ms", "s", "m", "h"};
    const std::string_view name = text.substr(digits, unit - digits);
    if (digits == 0 || std::find(std::begin(kUnits), std::end(kUnits), name) == std::end(kUnits)) {
      return false;
    }
    text.remove_prefix(unit);
  }
  return true;
}

std::string ScheduleProblem(std::string_view schedule) {
  if (schedule.starts_with("TZ=") || schedule.starts_with("CRON_TZ=")) {
    const size_t space = schedule.find(' ');
    schedule = space == std::string_view::npos ? "" : schedule.substr(space + 1);
  }
  if (schedule.starts_with('@')) {
    for (std::string_view known :
         {"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}) {
      if (schedule == known) return {};
    }
    if (!schedule.starts_with("@every ")) return StrCat("Unrecognized descriptor: ", schedule);
    const std::string_view every = schedule.substr(7);
    if (IsDuration(every)) return {};
    return StrCat("Failed to parse duration ", schedule, ": time: invalid duration ", Quote(every));
  }
  std::vector<std::string_view> fields;
  for (std::string_view field : Split(schedule, ' ')) {
    if (!field.empty()) fields.push_back(field);
  }
  if (fields.size() != std::size(kCronFields)) {
    return StrCat("Expected exactly 5 fields, found ", fields.size(), ": ", schedule);
  }
  for (size_t i = 0; i < fields.size(); ++i) {
    for (std::string_view item : Split(fields[i], ',')) {
      if (std::string why = CronItemProblem(item, kCronFields[i]); !why.empty()) return why;
    }
  }
  return {};
}

bool NamesZone(std::string_view schedule) { return schedule.find("TZ") != std::string_view::npos; }

void CheckCronJob(const Value& cron, const Value* old, FieldErrors& errors) {
  constexpr size_t kNameMax = 63 - 11;  // its jobs' names get a time behind it
  const Value& spec = SpecOf(cron);
  const std::string_view zone = TextOf(spec, "timeZone");
  const bool same = old != nullptr && TextOf(SpecOf(*old), "timeZone") == zone;
  if (json::Find(spec, {"timeZone"}) != nullptr && !same) {
    const Status known = TimeZone::Load(zone).status();
    if (zone.empty()) {
      errors.push_back(
          InvalidText("spec.timeZone", zone, "timeZone must be nil or non-empty string"));
    } else if (!known.ok()) {
      errors.push_back(InvalidText("spec.timeZone", zone, std::string(known.message())));
    }
  }
  std::string_view schedule = TextOf(spec, "schedule");
  const bool had_zone = old != nullptr && NamesZone(TextOf(SpecOf(*old), "schedule"));
  if (NamesZone(schedule) && !had_zone) {
    errors.push_back(
        InvalidText("spec.schedule", schedule,
                    "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"));
  } else {
    CheckRequired(schedule, ScheduleProblem, "spec.schedule", errors);
  }
  CheckNonNegative(spec, "startingDeadlineSeconds", "spec", errors);
  CheckOneOf(spec, "concurrencyPolicy", "spec", {"Allow", "Forbid", "Replace"}, errors);
  const Value* job = json::Find(spec, {"jobTemplate", "spec"});
  static const Value kNothing = json::Object();
  CheckJobSpec(job && job->is_object() ? *job : kNothing, "spec.jobTemplate.spec", errors);
  if (job != nullptr && json::GetBool(*job, {"manualSelector"})) {
    errors.push_back({"FieldValueNotSupported", "spec.jobTemplate.spec.manualSelector",
                      "Unsupported value: true: supported values: \"nil\", \"false\""});
  }
  CheckNonNegative(spec, "successfulJobsHistoryLimit", "spec", errors);
  CheckNonNegative(spec, "failedJobsHistoryLimit", "spec", errors);
  if (old == nullptr && Name(cron).size() > kNameMax) {
    errors.push_back(InvalidText("metadata.name", Name(cron),
                                 StrCat("must be no more than ", kNameMax, " characters")));
  }
}

// What pods live for is none of a controller's business that keeps as many as it was told.
void CheckKeptPods(std::string_view kind,
                   const Value& spec,
                   const std::string& path,
                   FieldErrors& errors) {
  std::string_view policy = json::GetString(spec, {"template", "spec", "restartPolicy"});
  if (!policy.empty() && policy != "Always") {
    errors.push_back(
        NotSupportedError(PathField(path, "template.spec.restartPolicy"), policy, {"Always"}));
  }
  if (json::Find(spec, {"template", "spec", "activeDeadlineSeconds"}) != nullptr) {
    std::string_view who = kind == "Deployment" ? "ReplicaSet" : kind;
    errors.push_back(ForbiddenError(PathField(path, "template.spec.activeDeadlineSeconds"),
                                    StrCat("activeDeadlineSeconds in ", who, " is not Supported")));
  }
}

// Answers whether the selector can be compared with labels.
bool CheckSelector(std::string_view kind, const Value& spec, FieldErrors& errors) {
  const Value* selector = MemberOf(spec, "selector");
  if (selector == nullptr) {
    if (kind != "DaemonSet") errors.push_back(RequiredError("spec.selector"));
    return true;
  }
  CheckLabelSelector(*selector, "spec.selector", errors);
  auto invalid = [&](std::string_view why) {
    errors.push_back({"FieldValueInvalid", "spec.selector",
                      StrCat("Invalid value: ", ShowSelector(*selector), why)});
  };
  if (json::GetObject(*selector, {"matchLabels"}).empty() &&
      json::GetArray(*selector, {"matchExpressions"}).empty()) {
    const std::string_view who = kind == "ReplicaSet" ? "deployment" : kind;
    invalid(StrCat(": empty selector is invalid for ", ToLower(who)));
  }
  if (LabelSelector::FromJson(selector).ok()) return true;
  if (kind != "DaemonSet") invalid(kind == "StatefulSet" ? "" : ": invalid label selector");
  return false;
}

void CheckRollingUpdate(const Value& rolling, FieldErrors& errors) {
  const std::string at = "spec.strategy.rollingUpdate";
  CheckIntOrPercent(rolling, "maxUnavailable", at, errors);
  CheckIntOrPercent(rolling, "maxSurge", at, errors);
  auto zero = [&rolling](std::string_view key) {
    const Value* amount = MemberOf(rolling, key);
    if (amount == nullptr) return false;  // a quarter
    if (!amount->is_string()) return json::GetInt(*amount, {}) == 0;
    return json::View(amount->get_string()) == "0%";
  };
  if (zero("maxUnavailable") && zero("maxSurge")) {
    errors.push_back(InvalidIntOrText(PathField(at, "maxUnavailable"),
                                      *MemberOf(rolling, "maxUnavailable"),
                                      "may not be 0 when `maxSurge` is 0"));
  }
  CheckNotAbove100Percent(rolling, "maxUnavailable", at, errors);
}

void CheckDeployment(const Value& spec, FieldErrors& errors) {
  static const Value kNothing = json::Object();
  const Value* strategy = MemberOf(spec, "strategy");
  if (strategy == nullptr) strategy = &kNothing;
  const std::string_view type = TextOf(*strategy, "type");
  const Value* rolling = MemberOf(*strategy, "rollingUpdate");
  if (type == "Recreate" && rolling != nullptr) {
    errors.push_back(ForbiddenError("spec.strategy.rollingUpdate",
                                    "may not be specified when strategy `type` is 'Recreate'"));
  } else if (type == "RollingUpdate" && rolling != nullptr) {
    CheckRollingUpdate(*rolling, errors);
  } else if (!type.empty() && type != "Recreate" && type != "RollingUpdate") {
    errors.push_back({"FieldValueNotSupported", "spec.strategy",
                      StrCat("Unsupported value: apps.DeploymentStrategy{Type:", Quote(type),
                             ", RollingUpdate:(*apps.RollingUpdateDeployment)(nil)}: supported "
                             "values: \"Recreate\", \"RollingUpdate\"")});
  }
  CheckNonNegative(spec, "minReadySeconds", "spec", errors);
  CheckNonNegative(spec, "revisionHistoryLimit", "spec", errors);
  const Value* deadline = MemberOf(spec, "progressDeadlineSeconds");
  if (deadline == nullptr) return;
  CheckNonNegative(spec, "progressDeadlineSeconds", "spec", errors);
  if (json::GetInt(*deadline, {}) <= json::GetInt(spec, {"minReadySeconds"})) {
    errors.push_back(InvalidError("spec.progressDeadlineSeconds", *deadline,
                                  "must be greater than minReadySeconds"));
  }
}

// Pods are replaced one way or the other: others before they go, or none.
void CheckDaemonRollingUpdate(const Value& rolling, FieldErrors& errors) {
  const std::string at = "spec.updateStrategy.rollingUpdate";
  for (std::string_view key : {"maxUnavailable", "maxSurge"}) {
    CheckIntOrPercent(rolling, key, at, errors);
    CheckNotAbove100Percent(rolling, key, at, errors);
  }
  const Value* surge = MemberOf(rolling, "maxSurge");
  const bool unavailable = !IsZeroOrNoNumber(MemberOf(rolling, "maxUnavailable"));
  if (unavailable && !IsZeroOrNoNumber(surge)) {
    errors.push_back(InvalidIntOrText(PathField(at, "maxSurge"), *surge,
                                      "may not be set when maxUnavailable is non-zero"));
  } else if (!unavailable && IsZeroOrNoNumber(surge)) {
    errors.push_back(
        RequiredError(PathField(at, "maxUnavailable"), "cannot be 0 when maxSurge is 0"));
  }
}

void CheckDaemonUpdates(const Value& spec, FieldErrors& errors) {
  const std::string_view type = json::GetString(spec, {"updateStrategy", "type"});
  const Value* rolling = json::Find(spec, {"updateStrategy", "rollingUpdate"});
  if (type == "RollingUpdate" && rolling != nullptr) {
    CheckDaemonRollingUpdate(*rolling, errors);
  } else if (!type.empty() && type != "RollingUpdate" && type != "OnDelete") {
    errors.push_back({"FieldValueNotSupported", "spec.updateStrategy",
                      StrCat("Unsupported value: apps.DaemonSetUpdateStrategy{Type:", Quote(type),
                             ", RollingUpdate:(*apps.RollingUpdateDaemonSet)(nil)}: supported "
                             "values: \"RollingUpdate\", \"OnDelete\"")});
  }
  CheckNonNegative(spec, "minReadySeconds", "spec", errors);
  CheckNonNegative(spec, "revisionHistoryLimit", "spec", errors);
}

void CheckStatefulUpdates(const Value& spec, FieldErrors& errors) {
  const std::string_view pods = TextOf(spec, "podManagementPolicy");
  if (!pods.empty() && pods != "OrderedReady" && pods != "Parallel") {
    errors.push_back(
        InvalidText("spec.podManagementPolicy", pods, "must be 'OrderedReady' or 'Parallel'"));
  }
  const std::string_view type = json::GetString(spec, {"updateStrategy", "type"});
  const Value* rolling = json::Find(spec, {"updateStrategy", "rollingUpdate"});
  const std::string at = "spec.updateStrategy.rollingUpdate";
  if (type == "OnDelete" && rolling != nullptr) {
    errors.push_back({"FieldValueInvalid", at,
                      StrCat("Invalid value: apps.RollingUpdateStatefulSetStrategy{Partition:",
                             json::GetInt(*rolling, {"partition"}),
                             "}: only allowed for updateStrategy 'RollingUpdate'")});
  } else if (type == "RollingUpdate" && rolling != nullptr) {
    CheckNonNegative(*rolling, "partition", at, errors);
    if (const Value* amount = MemberOf(*rolling, "maxUnavailable")) {
      CheckIntOrPercent(*rolling, "maxUnavailable", at, errors);
      if (IsZeroOrNoNumber(amount)) {
        errors.push_back(InvalidIntOrText(PathField(at, "maxUnavailable"), *amount, "cannot be 0"));
      }
      CheckNotAbove100Percent(*rolling, "maxUnavailable", at, errors);
    }
  } else if (!type.empty() && type != "OnDelete" && type != "RollingUpdate") {
    errors.push_back({"FieldValueInvalid", "spec.updateStrategy",
                      StrCat("Invalid value: apps.StatefulSetUpdateStrategy{Type:", Quote(type),
                             ", RollingUpdate:(*apps.RollingUpdateStatefulSetStrategy)(nil)}: "
                             "must be 'RollingUpdate' or 'OnDelete'")});
  }
  for (std::string_view key : {"whenDeleted", "whenScaled"}) {
    const Value* policy = MemberOf(spec, "persistentVolumeClaimRetentionPolicy");
    if (policy == nullptr) break;
    CheckOneOf(*policy, key, "spec.persistentVolumeClaimRetentionPolicy", {"Retain", "Delete"},
               errors);
  }
  CheckNonNegative(spec, "replicas", "spec", errors);
  CheckNonNegative(spec, "minReadySeconds", "spec", errors);
  if (const Value* ordinals = MemberOf(spec, "ordinals")) {
    CheckNonNegative(*ordinals, "start", "spec.ordinals", errors);
  }
}

void CheckStatefulSetUpdate(const Value& spec, const Value& before, FieldErrors& errors) {
  for (std::string_view key :
       {"selector", "volumeClaimTemplates", "serviceName", "podManagementPolicy"}) {
    CheckImmutable(MemberOf(spec, key), MemberOf(before, key), PathField("spec", key), errors);
  }
}

// A StatefulSet's pods get a volume of each claim template: mounts may name it.
Value WithClaimVolumes(const Value& spec) {
  const json::Array& claims = json::GetArray(spec, {"volumeClaimTemplates"});
  Value with = spec;
  if (claims.empty()) return with;
  json::Array volumes = json::GetArray(spec, {"template", "spec", "volumes"});
  for (const Value& claim : claims) {
    const std::string_view name = json::GetString(claim, {"metadata", "name"});
    // One of the template's own by that name is replaced.
    const bool known = std::any_of(volumes.begin(), volumes.end(), [name](const Value& volume) {
      return TextOf(volume, "name") == name;
    });
    if (known) continue;
    volumes.push_back(json::Object{{"name", name}, {"emptyDir", json::Object()}});
  }
  json::Set(with, {"template", "spec", "volumes"}, std::move(volumes));
  return with;
}

// A template that did not change was accepted before.
void CheckTemplate(std::string_view kind,
                   const Value& spec,
                   const Value* old,
                   FieldErrors& errors) {
  if (old != nullptr) {
    const Value* now = MemberOf(spec, "template");
    const Value* before = json::Find(*old, {"spec", "template"});
    if (json::Equal(before ? *before : Value(), now ? *now : Value())) return;
  }
  CheckPodTemplate(WithClaimVolumes(spec), "spec", errors);
  CheckKeptPods(kind, spec, "spec", errors);
}

void CheckReplicationController(const Value& spec, const Value* old, FieldErrors& errors) {
  CheckNonNegative(spec, "minReadySeconds", "spec", errors);
  const json::Object& selector = json::GetObject(spec, {"selector"});
  if (selector.empty()) errors.push_back(RequiredError("spec.selector"));
  CheckNonNegative(spec, "replicas", "spec", errors);
  if (MemberOf(spec, "template") == nullptr) {
    errors.push_back(RequiredError("spec.template"));
    return;
  }
  const Value terms(json::Object{{"matchLabels", selector}});
  if (!selector.empty()) CheckTemplateLabels(spec, &terms, "spec", errors);
  CheckTemplate("ReplicationController", spec, old, errors);
}

void CheckSelectorStays(const Value& spec, const Value& before, FieldErrors& errors) {
  const Value* selector = MemberOf(spec, "selector");
  const Value* had = MemberOf(before, "selector");
  if (selector == nullptr || had == nullptr || json::Equal(*selector, *had)) return;
  errors.push_back({"FieldValueInvalid", "spec.selector",
                    StrCat("Invalid value: ", ShowSelector(*selector), ": field is immutable")});
}

void CheckReplicated(std::string_view kind,
                     const Value& object,
                     const Value* old,
                     FieldErrors& errors) {
  const Value& spec = SpecOf(object);
  if (kind == "StatefulSet") {
    CheckStatefulUpdates(spec, errors);
    const std::string_view service = TextOf(spec, "serviceName");
    if (std::string why = CheckDnsLabel(service);
        old == nullptr && !service.empty() && !why.empty()) {
      errors.push_back(InvalidText("spec.serviceName", service, why));
    }
    const json::Array& claims = json::GetArray(spec, {"volumeClaimTemplates"});
    for (size_t i = 0; old == nullptr && i < claims.size(); ++i) {
      CheckNewClaim(SpecOf(claims[i]), PathField(PathIndex("spec.volumeClaimTemplates", i), "spec"),
                    errors);
    }
  }
  if (kind == "Deployment" || kind == "ReplicaSet") {
    CheckNonNegative(spec, "replicas", "spec", errors);
  }
  if (kind == "ReplicaSet") CheckNonNegative(spec, "minReadySeconds", "spec", errors);
  // A DaemonSet's update is told first what it may not change.
  if (kind == "DaemonSet" && old != nullptr) CheckSelectorStays(spec, SpecOf(*old), errors);
  const Value* selector = MemberOf(spec, "selector");
  if (CheckSelector(kind, spec, errors)) {
    CheckTemplateLabels(spec, selector, "spec", errors);
    CheckTemplate(kind, spec, old, errors);
  } else if (kind == "DaemonSet") {
    CheckTemplate(kind, spec, old, errors);
  }
  if (kind == "Deployment") CheckDeployment(spec, errors);
  if (kind == "DaemonSet") CheckDaemonUpdates(spec, errors);
  if (old == nullptr || kind == "DaemonSet") return;
  if (kind == "StatefulSet") {
    CheckStatefulSetUpdate(spec, SpecOf(*old), errors);
  } else {
    CheckSelectorStays(spec, SpecOf(*old), errors);
  }
}

}  // namespace

bool CheckWorkload(const KindInfo& kind,
                   const Value& object,
                   const Value* old,
                   FieldErrors& errors) {
  const std::string& k = kind.gvk.kind;
  if (k == "Job") {
    CheckJob(object, old, errors);
  } else if (k == "CronJob") {
    CheckCronJob(object, old, errors);
  } else if (k == "ReplicationController") {
    CheckReplicationController(SpecOf(object), old, errors);
  } else if (k == "Deployment" || k == "ReplicaSet" || k == "StatefulSet" || k == "DaemonSet") {
    CheckReplicated(k, object, old, errors);
  } else if (k == "PodTemplate") {
    CheckPodTemplate(object, "", errors);
  } else {
    return false;
  }
  return true;
}

}  // namespace swell::api
