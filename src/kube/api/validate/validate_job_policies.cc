// Rules of what failures and successes of pods mean to a job.
#include <algorithm>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/container_list.h"
#include "kube/api/validate/validate_rules.h"

namespace swell::api {
namespace {

using json::Value;

constexpr size_t kRulesMax = 20;
constexpr size_t kConditionsMax = 20;
constexpr size_t kExitCodesMax = 255;
constexpr size_t kIndexesMaxBytes = 64 << 10;
constexpr size_t kManagerMaxBytes = 63;

FieldError InvalidRule(const std::string& at, std::string_view detail) {
  return {"FieldValueInvalid", at, StrCat("Invalid value: ", detail)};
}

void CheckCodes(const json::Array& codes, bool in, const std::string& at, FieldErrors& errors) {
  if (codes.empty()) {
    errors.push_back(InvalidError(at, Value(codes), "at least one value is required"));
  } else if (codes.size() > kExitCodesMax) {
    errors.push_back(TooManyError(at, codes.size(), kExitCodesMax));
  }
  std::set<int64_t> seen;
  bool ordered = true;
  for (const auto& [item, item_at] : ItemsOf(codes, at)) {
    const int64_t code = json::GetInt(item, {});
    if (in && code == 0) {
      errors.push_back(InvalidError(item_at, item, "must not be 0 for the In operator"));
    }
    ordered = ordered && (seen.empty() || code >= *seen.rbegin());
    if (!seen.insert(code).second) errors.push_back(DuplicateError(item_at, item));
  }
  if (!ordered) errors.push_back(InvalidError(at, Value(codes), "must be ordered"));
}

bool HasContainer(const Value& job_spec, std::string_view name) {
  for (std::string_view list : {"containers", "initContainers"}) {
    const json::Array& containers = json::GetArray(job_spec, {"template", "spec", list});
    if (api::ContainerIn(containers, name) != nullptr) return true;
  }
  return false;
}

void CheckExitCodes(const Value& job_spec,
                    const Value& wanted,
                    const std::string& at,
                    FieldErrors& errors) {
  const std::string_view given = TextOf(wanted, "operator");
  if (given.empty()) {
    errors.push_back(RequiredError(PathField(at, "operator"), "valid values: [\"In\" \"NotIn\"]"));
  }
  const Value* container = MemberOf(wanted, "containerName");
  if (container != nullptr && !HasContainer(job_spec, TextIn(*container))) {
    errors.push_back(
        InvalidText(PathField(at, "containerName"), TextIn(*container),
                    "must be one of the container or initContainer names in the pod template"));
  }
  CheckCodes(json::GetArray(wanted, {"values"}), given == "In", PathField(at, "values"), errors);
}

void CheckConditions(const json::Array& patterns, const std::string& at, FieldErrors& errors) {
  if (patterns.size() > kConditionsMax) {
    errors.push_back(TooManyError(at, patterns.size(), kConditionsMax));
  }
  for (const auto& [pattern, path] : ItemsOf(patterns, at)) {
    CheckQualified(TextOf(pattern, "type"), PathField(path, "type"), errors, true);
    CheckOneOf(pattern, "status", path, {"False", "True", "Unknown"}, errors);
  }
}

void CheckFailureRule(const Value& job_spec,
                      const Value& rule,
                      const std::string& at,
                      FieldErrors& errors) {
  const std::string_view action = TextOf(rule, "action");
  if (action.empty()) {
    errors.push_back(RequiredError(
        PathField(at, "action"), "valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]"));
  } else if (action == "FailIndex" && MemberOf(job_spec, "backoffLimitPerIndex") == nullptr) {
    errors.push_back(InvalidText(PathField(at, "action"), action,
                                 "requires the backoffLimitPerIndex to be set"));
  }
  const Value* codes = MemberOf(rule, "onExitCodes");
  if (codes != nullptr) CheckExitCodes(job_spec, *codes, PathField(at, "onExitCodes"), errors);
  const json::Array& conditions = json::GetArray(rule, {"onPodConditions"});
  CheckConditions(conditions, PathField(at, "onPodConditions"), errors);
  if (codes != nullptr && !conditions.empty()) {
    errors.push_back(
        InvalidRule(at, "specifying both OnExitCodes and OnPodConditions is not supported"));
  } else if (codes == nullptr && conditions.empty()) {
    errors.push_back(
        InvalidRule(at, "specifying one of OnExitCodes and OnPodConditions is required"));
  }
}

void CheckFailurePolicy(const Value& spec, const std::string& path, FieldErrors& errors) {
  const Value* policy = MemberOf(spec, "podFailurePolicy");
  if (policy == nullptr) return;
  const std::string at = PathField(path, "podFailurePolicy.rules");
  const json::Array& rules = json::GetArray(*policy, {"rules"});
  if (rules.size() > kRulesMax) errors.push_back(TooManyError(at, rules.size(), kRulesMax));
  for (const auto& [rule, rule_at] : ItemsOf(rules, at)) {
    CheckFailureRule(spec, rule, rule_at, errors);
  }
  const std::string_view replaced = TextOf(spec, "podReplacementPolicy");
  if (!replaced.empty() && replaced != "Failed") {
    errors.push_back(
        NotSupportedError(PathField(path, "podReplacementPolicy"), replaced, {"Failed"}));
  }
  if (json::GetString(spec, {"template", "spec", "restartPolicy"}) == "OnFailure") {
    errors.push_back(InvalidText(PathField(path, "template.spec.restartPolicy"), "OnFailure",
                                 "only \"Never\" is supported when podFailurePolicy is specified"));
  }
}

// An index in text, and what is wrong with it.
Result<int64_t> Index(std::string_view text, int64_t completions) {
  const std::optional<int64_t> index = ParseInt(text);
  if (!index) {
    return Status(Code::kInvalid,
                  StrCat("cannot convert string to integer for index: ", Quote(text)));
  }
  if (*index >= completions) {
    return Status(Code::kInvalid, StrCat("too large index: ", Quote(text)));
  }
  return *index;
}

Status NotIncreasing(int64_t before, int64_t now) {
  return Status(Code::kInvalid,
                StrCat("non-increasing order, previous: ", before, ", current: ", now));
}

// How many indexes "1,3-5" names.
Result<int64_t> CountIndexes(std::string_view text, int64_t completions) {
  int64_t count = 0;
  std::optional<int64_t> last;
  if (text.empty()) return count;
  for (std::string_view interval : Split(text, ',')) {
    const std::vector<std::string_view> ends = Split(interval, '-');
    if (ends.size() > 2) {
      return Status(Code::kInvalid,
                    StrCat("the fragment ", Quote(interval),
                           " violates the requirement that an index interval can have at most "
                           "two parts separated by '-'"));
    }
    const Result<int64_t> from = Index(ends.front(), completions);
    if (!from.ok()) return from.status();
    const Result<int64_t> to = Index(ends.back(), completions);
    if (!to.ok()) return to.status();
    if (ends.size() == 2 && *from >= *to) return NotIncreasing(*from, *to);
    if (last && *last >= *from) return NotIncreasing(*last, *from);
    count += *to - *from + 1;
    last = *to;
  }
  return count;
}

void CheckSuccessRule(const Value& rule,
                      int64_t completions,
                      const std::string& at,
                      FieldErrors& errors) {
  const Value* indexes = MemberOf(rule, "succeededIndexes");
  const Value* wanted = MemberOf(rule, "succeededCount");
  if (indexes == nullptr && wanted == nullptr) {
    errors.push_back(
        RequiredError(at, "at least one of succeededCount or succeededIndexes must be specified"));
    return;
  }
  int64_t named = 0;
  if (indexes != nullptr) {
    const std::string_view text = TextIn(*indexes);
    const std::string path = PathField(at, "succeededIndexes");
    if (text.size() > kIndexesMaxBytes) errors.push_back(TooLongError(path, kIndexesMaxBytes));
    const Result<int64_t> count = CountIndexes(text, completions);
    if (count.ok()) {
      named = *count;
    } else {
      errors.push_back(InvalidText(
          path, text, StrCat("error parsing succeededIndexes: ", count.status().message())));
    }
  }
  if (wanted == nullptr) return;
  CheckNonNegative(rule, "succeededCount", at, errors);
  const std::string path = PathField(at, "succeededCount");
  const int64_t count = json::GetInt(*wanted, {});
  auto check = [&](int64_t most, std::string_view of) {
    if (count <= most) return;
    errors.push_back(
        InvalidError(path, *wanted,
                     StrCat("must be less than or equal to ", most, " (the number of ", of, ")")));
  };
  check(completions, "specified completions");
  if (indexes != nullptr) check(named, "indexes in the specified succeededIndexes field");
}

void CheckSuccessPolicy(const Value& spec, const std::string& path, FieldErrors& errors) {
  const Value* policy = MemberOf(spec, "successPolicy");
  if (policy == nullptr) return;
  if (TextOf(spec, "completionMode") != "Indexed") {
    errors.push_back(InvalidError(PathField(path, "successPolicy"), *policy,
                                  "requires indexed completion mode"));
    return;
  }
  const std::string at = PathField(path, "successPolicy.rules");
  const json::Array& rules = json::GetArray(*policy, {"rules"});
  if (rules.empty()) {
    errors.push_back(RequiredError(
        at, "at least one rules must be specified when the successPolicy is specified"));
  }
  if (rules.size() > kRulesMax) errors.push_back(TooManyError(at, rules.size(), kRulesMax));
  for (const auto& [rule, rule_at] : ItemsOf(rules, at)) {
    CheckSuccessRule(rule, json::GetInt(spec, {"completions"}), rule_at, errors);
  }
}

void CheckManager(const Value& spec, const std::string& path, FieldErrors& errors) {
  const Value* given = MemberOf(spec, "managedBy");
  if (given == nullptr) return;
  const std::string at = PathField(path, "managedBy");
  const std::string_view manager = TextIn(*given);
  const size_t slash = manager.find('/');
  if (manager.empty()) {
    errors.push_back(RequiredError(at));
  } else if (slash == 0 || slash >= manager.size() - 1) {
    errors.push_back(
        InvalidText(at, manager, "must be a domain-prefixed path (such as \"acme.io/foo\")"));
  } else {
    CheckText(manager.substr(0, slash), CheckDnsSubdomain, at, errors);
  }
  if (manager.size() > kManagerMaxBytes) errors.push_back(TooLongError(at, kManagerMaxBytes));
}

}  // namespace

void CheckJobPolicies(const Value& spec, const std::string& path, FieldErrors& errors) {
  CheckManager(spec, path, errors);
  CheckFailurePolicy(spec, path, errors);
  CheckSuccessPolicy(spec, path, errors);
}

}  // namespace swell::api
