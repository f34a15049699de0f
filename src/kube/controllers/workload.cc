#include "kube/controllers/workload.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/pod_facts.h"

namespace swell::controllers {
namespace {

constexpr std::string_view kDeletionCost = "controller.kubernetes.io/pod-deletion-cost";

WallTime ReadySince(const json::Value& pod) {
  const std::optional<api::Condition> ready = api::FindCondition(pod, "Ready");
  if (!ready) return {};
  return ready->Since().value_or(WallTime{});
}

// The order in which surplus pods are removed: smaller first.
struct Rank {
  int assigned = 0;
  int phase = 0;
  int ready = 0;
  int64_t cost = 0;
  int64_t alone = 0;         // minus the number of its peers on the node
  int64_t ready_since = 0;   // minus: the younger first
  int64_t few_restarts = 0;  // minus the restarts
  int64_t created = 0;       // minus: the younger first
  std::string name;
  auto operator<=>(const Rank&) const = default;
};

Rank RankOf(const json::Value& pod, int64_t peers_on_node) {
  Rank rank;
  rank.assigned = api::IsBound(pod) ? 1 : 0;
  const std::string_view phase = Phase(pod);
  rank.phase = phase == "Pending" ? 0 : phase == "Running" ? 2 : 1;
  rank.ready = IsReady(pod) ? 1 : 0;
  rank.cost = ParseInt(api::Annotation(pod, kDeletionCost)).value_or(0);
  rank.alone = -peers_on_node;
  if (rank.ready != 0) rank.ready_since = -ReadySince(pod).unix_ns;
  rank.few_restarts = -RestartCount(pod);
  rank.created = -api::CreationTime(pod).unix_ns;
  rank.name = api::Name(pod);
  return rank;
}

}  // namespace

bool Selects(const api::LabelSelector& selector, const json::Value& object) {
  static const json::Value kNone = json::Object{};
  const json::Value* labels = json::Find(object, {"metadata", "labels"});
  return selector.Matches(labels != nullptr && labels->is_object() ? *labels : kNone);
}

bool IsAvailable(const json::Value& pod, Duration least, WallTime now, Duration& wait) {
  if (!IsReady(pod)) return false;
  const Duration age = now - ReadySince(pod);
  if (least.count() == 0 || age >= least) return true;
  if (wait.count() == 0 || least - age < wait) wait = least - age;
  return false;
}

bool SameButLabel(const json::Value& a, const json::Value& b, std::string_view ignored_label) {
  json::Value left = a;
  json::Value right = b;
  for (json::Value* one : {&left, &right}) {
    json::Remove(*one, {"metadata", "labels", ignored_label});
    json::Remove(*one, {"metadata", "creationTimestamp"});
  }
  return json::Equal(left, right);
}

int64_t ScaledValue(const json::Value* value, int64_t total, bool round_up, int64_t fallback) {
  if (value == nullptr || value->is_null()) return fallback;
  if (value->is_number()) return value->to_number<int64_t>();
  if (!value->is_string()) return fallback;
  std::string_view text = json::View(value->get_string());
  if (!text.ends_with('%')) return ParseInt(text).value_or(fallback);
  const auto percent = ParseInt(text.substr(0, text.size() - 1));
  if (!percent || *percent < 0 || *percent > 1'000'000) return fallback;
  return (total * *percent + (round_up ? 99 : 0)) / 100;
}

bool IsOlder(const json::SharedValue& a, const json::SharedValue& b) {
  const WallTime left = api::CreationTime(*a);
  const WallTime right = api::CreationTime(*b);
  return left.unix_ns != right.unix_ns ? left.unix_ns < right.unix_ns
                                       : api::Name(*a) < api::Name(*b);
}

json::Value PodOf(const json::Value& owner, std::string_view name) {
  json::Value pod = json::Object{{"apiVersion", "v1"}, {"kind", "Pod"}};
  json::Object metadata{{"name", name}, {"namespace", api::Namespace(owner)}};
  for (const char* field : {"labels", "annotations", "finalizers"}) {
    const json::Value* value = json::Find(owner, {"spec", "template", "metadata", field});
    if (value != nullptr) metadata[field] = *value;
  }
  metadata["ownerReferences"] = json::Array{api::MakeOwnerReference(owner)};
  json::Set(pod, {"metadata"}, std::move(metadata));
  json::Set(pod, {"spec"}, json::GetObject(owner, {"spec", "template", "spec"}));
  return pod;
}

std::vector<json::SharedValue> InOrderOfRemoval(std::vector<json::SharedValue> pods, WallTime) {
  std::map<std::string, int64_t, std::less<>> on_node;
  for (const json::SharedValue& pod : pods) {
    ++on_node[std::string(api::NodeName(*pod))];
  }
  std::vector<std::pair<Rank, json::SharedValue>> ranked;
  ranked.reserve(pods.size());
  for (json::SharedValue& pod : pods) {
    const auto node = on_node.find(api::NodeName(*pod));
    Rank rank = RankOf(*pod, node->second);
    ranked.emplace_back(std::move(rank), std::move(pod));
  }
  std::sort(ranked.begin(), ranked.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<json::SharedValue> ordered;
  ordered.reserve(ranked.size());
  for (auto& [rank, pod] : ranked) ordered.push_back(std::move(pod));
  return ordered;
}

void SetStatusCondition(json::Value& status,
                        std::string_view type,
                        bool value,
                        std::string_view reason,
                        std::string_view message,
                        WallTime now) {
  json::Array conditions = json::GetArray(status, {"conditions"});
  api::SetCondition(conditions, type, value ? "True" : "False", reason, message, now);
  json::Set(status, {"conditions"}, std::move(conditions));
}

void RemoveStatusCondition(json::Value& status, std::string_view type) {
  json::Array kept;
  for (const json::Value& one : json::GetArray(status, {"conditions"})) {
    if (json::GetString(one, {"type"}) != type) kept.push_back(one);
  }
  if (kept.empty()) {
    json::Remove(status, {"conditions"});
  } else {
    json::Set(status, {"conditions"}, std::move(kept));
  }
}

json::Array OwnersWith(const json::Value& object, const json::Value& owner) {
  json::Array owners = json::GetArray(object, {"metadata", "ownerReferences"});
  owners.push_back(api::MakeOwnerReference(owner));
  return owners;
}

json::Array OwnersWithout(const json::Value& object, const json::Value& owner) {
  json::Array owners;
  for (const json::Value& one : json::GetArray(object, {"metadata", "ownerReferences"})) {
    if (json::GetString(one, {"uid"}) != api::Uid(owner)) owners.push_back(one);
  }
  return owners;
}

std::vector<json::SharedValue> Adoption::OwnedBy(const json::Value& owner) {
  std::vector<json::SharedValue> mine;
  const std::string uid(api::Uid(owner));
  const auto selector = api::LabelSelector::FromJson(json::Find(owner, {"spec", "selector"}));
  if (!selector.ok() || selector->everything()) return mine;
  for (const json::SharedValue& object : objects_.ByIndex("owner", uid)) {
    if (Selects(*selector, *object)) {
      mine.push_back(object);
    } else if (!api::IsDeleting(owner)) {
      Release(owner, *object);
    }
  }
  if (api::IsDeleting(owner)) return mine;
  for (const json::SharedValue& object : objects_.ByIndex("orphans", api::Namespace(owner))) {
    if (api::IsDeleting(*object) || !Selects(*selector, *object) || HasEnded(*object)) {
      continue;
    }
    Adopt(owner, *object);
    mine.push_back(object);
  }
  return mine;
}

void Adoption::Adopt(const json::Value& owner, const json::Value& object) {
  Write(owner, object,
        {{"resourceVersion", api::ResourceVersionText(object)},
         {"ownerReferences", OwnersWith(object, owner)}});
}

void Adoption::Release(const json::Value& owner, const json::Value& object) {
  Write(owner, object, {{"ownerReferences", OwnersWithout(object, owner)}});
}

void Adoption::Write(const json::Value& owner, const json::Value& object, json::Object metadata) {
  const std::string token = StrCat(api::Uid(owner), "/", api::Uid(object));
  if (!writing_.insert(token).second) return;
  metadata["uid"] = api::Uid(object);
  client_.Patch(objects_.resource(), api::Namespace(object), api::Name(object),
                client::PatchType::kMerge, json::Object{{"metadata", std::move(metadata)}},
                [this, token](const Result<json::SharedValue>&) { writing_.erase(token); });
}

void Expectations::Add(const std::string& owner, const std::string& token, SteadyTime now) {
  expected_[token] = {owner, now};
  pending_[owner].insert(token);
}

void Expectations::Seen(const std::string& token) {
  const auto found = expected_.find(token);
  if (found == expected_.end()) return;
  const auto pending = pending_.find(found->second.owner);
  if (pending != pending_.end()) {
    pending->second.erase(token);
    if (pending->second.empty()) pending_.erase(pending);
  }
  expected_.erase(found);
}

void Expectations::Forget(const std::string& owner) {
  const auto pending = pending_.find(owner);
  if (pending == pending_.end()) return;
  for (const std::string& token : pending->second) expected_.erase(token);
  pending_.erase(pending);
}

Duration Expectations::Remaining(const std::string& owner, SteadyTime now) {
  const auto pending = pending_.find(owner);
  if (pending == pending_.end()) return Duration::zero();
  SteadyTime newest;
  for (const std::string& token : pending->second) {
    newest = std::max(newest, expected_.at(token).added);
  }
  const Duration left = newest + kTimeout - now;
  if (left > Duration::zero()) return left;
  Forget(owner);
  return Duration::zero();
}

std::optional<SteadyTime> Expectations::AddedAt(const std::string& token) const {
  const auto found = expected_.find(token);
  return found == expected_.end() ? std::nullopt : std::optional(found->second.added);
}

}  // namespace swell::controllers
