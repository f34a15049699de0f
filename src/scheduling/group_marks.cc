#include "scheduling/group_marks.h"

#include <algorithm>
#include <set>
#include <utility>

#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/pod_group.h"
#include "kube/controllers/eviction.h"
#include "kube/controllers/pod_facts.h"

namespace swell::scheduling {
namespace {

constexpr std::string_view kField = "evicted";

EvictionMark ToMark(const api::EvictionRecord& record) {
  return {.by = std::string(record.by),
          .rule = std::string(record.rule),
          .lost_gpu_seconds = record.lost_gpu_seconds,
          .message = std::string(record.message),
          .time = std::string(record.time)};
}

json::Object ToRecord(const EvictionMark& mark) {
  return {{"by", mark.by},
          {"rule", mark.rule},
          {"lostGpuSeconds", mark.lost_gpu_seconds},
          {"message", mark.message},
          {"time", mark.time}};
}

json::Object Annotations(const EvictionMark& mark) {
  return {{api::keys::kPreemptedBy, mark.by},
          {api::keys::kPreemptedRule, mark.rule},
          {api::keys::kPreemptedLost, std::to_string(mark.lost_gpu_seconds)},
          {api::keys::kPreemptedMessage, mark.message}};
}

json::Object Condition(const EvictionMark& mark) {
  return controllers::DisruptionCondition("PreemptionByScheduler", mark.message, mark.time);
}

}  // namespace

json::Value EvictionMark::PodPatch(std::string_view uid) const {
  return json::Object{{"metadata", json::Object{{"uid", uid}, {"annotations", Annotations(*this)}}},
                      {"status", json::Object{{"conditions", json::Array{Condition(*this)}}}}};
}

GroupMarks::GroupMarks(controllers::Context& context,
                       std::function<void(const std::string& group)> changed)
    : groups_(context.informers.Of(client::resources::kPodGroups)),
      pods_(context.informers.Of(client::resources::kPods)),
      changed_(std::move(changed)) {
  pods_.SetTransform([this](const json::SharedValue& pod) { return WithMark(pod); });
  auto now = [this](const json::SharedValue& group) {
    Marks marks;
    for (const api::EvictionRecord& record : api::EvictionRecords(*group)) {
      const auto mark = std::make_shared<const EvictionMark>(ToMark(record));
      for (const std::string_view uid : record.pods) marks.emplace(uid, mark);
    }
    OnGroup(api::KeyOf(*group), std::move(marks));
  };
  controllers::Follow(groups_, now,
                      [this](const json::SharedValue& group) { OnGroup(api::KeyOf(*group), {}); });
}

void GroupMarks::OnGroup(const std::string& key, Marks marks) {
  const bool none = marks.empty();
  if (none && !marks_.contains(key)) return;
  if (none) {
    marks_.erase(key);
  } else {
    marks_[key] = std::move(marks);
  }
  for (const json::SharedValue& pod : pods_.ByIndex("group", key)) {
    pods_.Retransform(api::KeyOf(*pod));
  }
  changed_(key);
}

bool GroupMarks::Has(std::string_view group, std::string_view uid) const {
  const auto marks = marks_.find(group);
  return marks != marks_.end() && marks->second.contains(uid);
}

json::SharedValue GroupMarks::WithMark(const json::SharedValue& pod) const {
  if (marks_.empty()) return pod;
  const auto marks = marks_.find(api::GroupKeyOf(*pod));
  if (marks == marks_.end()) return pod;
  const auto found = marks->second.find(api::Uid(*pod));
  if (found == marks->second.end() || controllers::WasPreempted(*pod)) return pod;
  const EvictionMark& mark = *found->second;
  json::Value changed = *pod;
  for (auto& [key, value] : Annotations(mark)) {
    json::Set(changed, {"metadata", "annotations", std::string_view(key)}, std::move(value));
  }
  json::Array conditions;
  for (const api::Condition& condition : api::Conditions(changed)) {
    if (condition.type != api::kDisruptionTarget) conditions.push_back(*condition.document);
  }
  conditions.push_back(Condition(mark));
  json::Set(changed, {"status", "conditions"}, std::move(conditions));
  return std::make_shared<const json::Value>(std::move(changed));
}

json::Value GroupMarks::GroupPatch(const json::Value& group,
                                   const std::vector<Victim>& victims) const {
  std::vector<std::pair<const EvictionMark*, json::Array>> kinds;
  for (const Victim& victim : victims) {
    auto kind = std::find_if(kinds.begin(), kinds.end(),
                             [&](const auto& one) { return *one.first == victim.mark; });
    if (kind == kinds.end()) kind = kinds.insert(kinds.end(), {&victim.mark, {}});
    kind->second.emplace_back(std::string_view(victim.uid));
  }
  json::Array records = LivingMarks(group, pods_.ByIndex("group", api::KeyOf(group)));
  for (auto& [mark, uids] : kinds) {
    json::Object record = ToRecord(*mark);
    record["pods"] = std::move(uids);
    records.push_back(std::move(record));
  }
  return json::Object{{"metadata", json::Object{{"uid", api::Uid(group)}}},
                      {"status", json::Object{{kField, std::move(records)}}}};
}

bool GroupMarks::MayMark(const json::Value& group, const json::Value& pod) {
  const auto job = api::ControllerOf(group);
  const auto owner = api::ControllerOf(pod);
  return job && owner && job->uid == owner->uid;
}

json::Array LivingMarks(const json::Value& group, const std::vector<json::SharedValue>& pods) {
  const std::vector<api::EvictionRecord> records = api::EvictionRecords(group);
  if (records.empty()) return {};
  std::set<std::string_view> there;
  for (const json::SharedValue& pod : pods) there.insert(api::Uid(*pod));
  json::Array living;
  for (const api::EvictionRecord& record : records) {
    json::Array uids;
    for (const std::string_view uid : record.pods) {
      if (there.contains(uid)) uids.emplace_back(uid);
    }
    if (uids.empty()) continue;
    living.push_back(*record.document);
    json::Set(living.back(), {"pods"}, std::move(uids));
  }
  return living;
}

}  // namespace swell::scheduling
