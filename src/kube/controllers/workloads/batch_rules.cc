#include "kube/controllers/workloads/batch_rules.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/api/meta/meta.h"

namespace swell::controllers {
namespace {

constexpr std::string_view kIndexKey = "batch.kubernetes.io/job-completion-index";

bool Contains(const json::Array& values, int64_t code) {
  return std::any_of(values.begin(), values.end(), [code](const json::Value& value) {
    return value.is_number() && value.to_number<int64_t>() == code;
  });
}

// The name of the container that matches, empty when none does.
std::string MatchExitCodes(const json::Value& rule, const json::Value& pod, int64_t* code_out) {
  std::string_view wanted = json::GetString(rule, {"onExitCodes", "containerName"});
  bool in = json::GetString(rule, {"onExitCodes", "operator"}) == "In";
  const json::Array& values = json::GetArray(rule, {"onExitCodes", "values"});
  for (std::string_view list : {"containerStatuses", "initContainerStatuses"}) {
    for (const json::Value& container : json::GetArray(pod, {"status", list})) {
      std::string_view name = json::GetString(container, {"name"});
      const json::Value* code = json::Find(container, {"state", "terminated", "exitCode"});
      if (code == nullptr || (!wanted.empty() && name != wanted)) continue;
      int64_t number = json::GetInt(container, {"state", "terminated", "exitCode"});
      if (number == 0 || Contains(values, number) != in) continue;
      *code_out = number;
      return std::string(name);
    }
  }
  return "";
}

std::string MatchConditions(const json::Value& rule, const json::Value& pod) {
  for (const json::Value& pattern : json::GetArray(rule, {"onPodConditions"})) {
    std::string_view type = json::GetString(pattern, {"type"});
    const std::optional<api::Condition> found = api::FindCondition(pod, type);
    if (found && found->status == json::GetString(pattern, {"status"}, "True")) {
      return std::string(type);
    }
  }
  return "";
}

}  // namespace

std::set<int64_t> ParseIndexes(std::string_view text, int64_t completions) {
  std::set<int64_t> out;
  completions = std::min(completions, kCompletionsMax);
  for (std::string_view part : Split(text, ',')) {
    size_t dash = part.find('-');
    auto first = ParseInt(part.substr(0, dash));
    auto last = dash == std::string_view::npos ? first : ParseInt(part.substr(dash + 1));
    if (!first || !last) continue;
    for (int64_t i = std::max<int64_t>(0, *first); i <= std::min(*last, completions - 1); ++i) {
      out.insert(i);
    }
  }
  return out;
}

std::string FormatIndexes(const std::set<int64_t>& indexes) {
  std::string out;
  for (auto it = indexes.begin(); it != indexes.end();) {
    int64_t first = *it;
    int64_t last = first;
    for (++it; it != indexes.end() && *it == last + 1; ++it) last = *it;
    if (!out.empty()) out += ',';
    out += std::to_string(first);
    if (last == first + 1) out += StrCat(",", last);
    if (last > first + 1) out += StrCat("-", last);
  }
  return out;
}

int64_t CompletionIndex(const json::Value& pod) {
  std::string_view text = api::Annotation(pod, kIndexKey);
  if (text.empty()) text = api::Label(pod, kIndexKey);
  return ParseInt(text).value_or(-1);
}

FailureVerdict ClassifyFailure(const json::Value& job, const json::Value& pod) {
  const json::Array& rules = json::GetArray(job, {"spec", "podFailurePolicy", "rules"});
  for (size_t i = 0; i < rules.size(); ++i) {
    const json::Value& rule = rules[i];
    std::string what;
    if (json::Find(rule, {"onExitCodes"})) {
      int64_t code = 0;
      std::string container = MatchExitCodes(rule, pod, &code);
      if (container.empty()) continue;
      what = StrCat("Container ", container, " for pod ", api::KeyOf(pod),
                    " failed with exit code ", code);
    } else {
      std::string condition = MatchConditions(rule, pod);
      if (condition.empty()) continue;
      what = StrCat("Pod ", api::KeyOf(pod), " has condition ", condition);
    }
    std::string_view action = json::GetString(rule, {"action"});
    if (action == "FailJob") {
      return {FailureAction::kFailJob, StrCat(what, " matching FailJob rule at index ", i)};
    }
    if (action == "FailIndex") return {FailureAction::kFailIndex, ""};
    return {action == "Ignore" ? FailureAction::kIgnore : FailureAction::kCount, ""};
  }
  return {};
}

std::optional<size_t> MatchSuccessPolicy(const json::Value& job,
                                         const std::set<int64_t>& completed) {
  const json::Array& rules = json::GetArray(job, {"spec", "successPolicy", "rules"});
  for (size_t i = 0; i < rules.size(); ++i) {
    auto succeeded = static_cast<int64_t>(completed.size());
    int64_t wanted = 1;
    if (const json::Value* indexes = json::Find(rules[i], {"succeededIndexes"})) {
      std::set<int64_t> named =
          ParseIndexes(indexes->is_string() ? json::View(indexes->get_string()) : "",
                       json::GetInt(job, {"spec", "completions"}));
      wanted = std::max<int64_t>(1, static_cast<int64_t>(named.size()));
      succeeded = std::count_if(named.begin(), named.end(),
                                [&](int64_t index) { return completed.contains(index); });
    }
    if (succeeded >= json::GetInt(rules[i], {"succeededCount"}, wanted)) return i;
  }
  return std::nullopt;
}

WallTime EndTime(const json::Value& pod) {
  WallTime end = api::CreationTime(pod);
  for (const json::Value& container : json::GetArray(pod, {"status", "containerStatuses"})) {
    auto time = api::ParseTime(json::GetString(container, {"state", "terminated", "finishedAt"}));
    if (time && *time > end) end = *time;
  }
  return end;
}

Duration BackoffAfter(int64_t failures) {
  if (failures <= 0) return Duration::zero();
  int64_t shift = std::min<int64_t>(failures - 1, 6);
  return std::chrono::seconds(std::min<int64_t>(360, 10LL << shift));
}

}  // namespace swell::controllers
