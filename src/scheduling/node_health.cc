#include "scheduling/node_health.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/failure.h"
#include "kube/api/objects/pod_group.h"
#include "kube/controllers/pod_facts.h"
#include "kube/controllers/queue.h"
#include "kube/controllers/write_batch.h"

namespace swell::scheduling {
namespace {

constexpr std::string_view kComponent = "node-health";
constexpr double kPeerLostWeight = 1.0 / 3;
constexpr Duration kPeersTime = std::chrono::seconds(10);
// Peers notice the end of a member within this.
constexpr Duration kCauseTime = std::chrono::minutes(2);
constexpr size_t kNewsMax = 64;  // of one node
constexpr size_t kFailuresNamed = 3;

bool HasTaint(const json::Array& taints, std::string_view key) {
  return std::any_of(taints.begin(), taints.end(), [key](const json::Value& taint) {
    return json::GetString(taint, {"key"}) == key;
  });
}

void SetTaint(
    json::Array& taints, std::string_view key, std::string_view effect, bool wanted, WallTime now) {
  if (HasTaint(taints, key) == wanted) return;
  if (wanted) {
    taints.push_back(
        json::Object{{"key", key}, {"effect", effect}, {"timeAdded", api::FormatTime(now)}});
    return;
  }
  const auto gone = std::remove_if(taints.begin(), taints.end(), [key](const json::Value& taint) {
    return json::GetString(taint, {"key"}) == key;
  });
  taints.erase(gone, taints.end());
}

// Zero stands for never.
void Sooner(Duration& requeue_after, Duration delay) {
  if (requeue_after == Duration::zero() || delay < requeue_after) requeue_after = delay;
}

std::string FailuresText(const std::vector<api::NodeFailure>& failures) {
  std::string text;
  for (size_t i = 0; i < failures.size() && i < kFailuresNamed; ++i) {
    const api::NodeFailure& one = failures[i];
    text += StrCat(i == 0 ? "" : "; ", one.pod, " (", api::FailureClassName(one.which), ")",
                   one.said.empty() ? "" : ": ", one.said);
  }
  return text;
}

// A pod that ended, or whose container starts again, through a failure that may be its node's.
std::optional<api::NodeFailure> FailureOfNode(const json::Value& pod, WallTime now) {
  if (!api::IsBound(pod)) return std::nullopt;
  const auto failure = api::FailureOf(pod, now);
  if (!failure || !failure->time || now - *failure->time >= api::kNodeFailureWindow) {
    return std::nullopt;
  }
  const bool hardware = failure->which == api::FailureClass::kHardware;
  if (!hardware && failure->which != api::FailureClass::kPeerLost) return std::nullopt;
  return api::NodeFailure{*failure->time,
                          api::KeyOf(pod),
                          std::string(api::Uid(pod)),
                          failure->which,
                          hardware ? 1 : kPeerLostWeight,
                          failure->said};
}

// The node fell silent: its Ready condition is Unknown since then.
std::optional<api::NodeFailure> SilenceOf(const json::Value& node) {
  const auto ready = api::FindCondition(node, "Ready");
  const auto since = ready && ready->status == "Unknown" ? ready->Since() : std::nullopt;
  if (!since) return std::nullopt;
  return api::NodeFailure{
      *since, "", "silence", api::FailureClass::kUnknown, 1, "the node fell silent"};
}

}  // namespace

NodeHealthController::NodeHealthController(controllers::Context context)
    : context_(std::move(context)),
      nodes_(context_.informers.Of(client::resources::kNodes)),
      pods_(context_.informers.Of(client::resources::kPods)),
      events_(controllers::MakeRecorder(context_, std::string(kComponent))),
      queue_(controllers::MakeQueue(
          context_, "node-health", 64, this, &NodeHealthController::Reconcile)),
      client_(context_.executor, context_.server, context_.user, std::string(kComponent)) {
  controllers::Follow(
      nodes_, [this](const json::SharedValue& node) { queue_.Add(std::string(api::Name(*node))); },
      [this](const json::SharedValue& node) {
        news_.erase(std::string(api::Name(*node)));
        calm_since_.erase(std::string(api::Name(*node)));
      });
  controllers::Follow(pods_, [this](const json::SharedValue& pod) { OnPod(pod); });
}

// The cause of a peer's failure may be seen later than that: the news wait a moment.
void NodeHealthController::OnPod(const json::SharedValue& pod) {
  const std::string group = api::GroupKeyOf(*pod);
  NoteCause(*pod, group);
  auto failure = FailureOfNode(*pod, context_.clock.Now());
  if (!failure) return;
  const std::string node(api::NodeName(*pod));
  std::vector<News>& news = news_[node];
  const bool known = std::any_of(news.begin(), news.end(), [&failure](const News& one) {
    return one.failure.uid == failure->uid && one.failure.time == failure->time;
  });
  if (known || news.size() == kNewsMax) return;
  if (const json::SharedValue object = nodes_.Get(node)) {
    std::vector<api::NodeFailure> written = api::NodeFailuresOf(*object);
    if (!api::AddNodeFailure(written, *failure)) return;
  }
  news.push_back({std::move(*failure), group, context_.clock.Steady()});
  queue_.AddAfter(node, kPeersTime);
}

void NodeHealthController::NoteCause(const json::Value& pod, const std::string& group) {
  if (group.empty()) return;
  const WallTime now = context_.clock.Now();
  bool cause = controllers::WasDisrupted(pod);
  if (!cause) {
    const auto failure = api::FailureOf(pod, now);
    cause = failure && failure->which != api::FailureClass::kPeerLost && failure->time &&
            now - *failure->time < kCauseTime;
  }
  if (!cause) return;
  const SteadyTime steady = context_.clock.Steady();
  if (causes_.size() >= kCausesMax) {
    std::erase_if(causes_, [steady](const auto& one) { return steady - one.second > kCauseTime; });
  }
  if (causes_.size() < kCausesMax) causes_[group] = steady;
}

void NodeHealthController::ForgetTaken(const std::string& name) {
  const auto news = news_.find(name);
  if (news == news_.end()) return;
  std::erase_if(news->second, [](const News& one) { return one.taken; });
  if (news->second.empty()) news_.erase(news);
}

// Whether there is a failure that was not written yet.
bool NodeHealthController::TakeNews(const std::string& name,
                                    const json::Value& node,
                                    std::vector<api::NodeFailure>& failures,
                                    Duration& requeue_after) {
  bool fresh = false;
  const SteadyTime now = context_.clock.Steady();
  const auto news = news_.find(name);
  if (news != news_.end()) {
    for (News& one : news->second) {
      if (const Duration left = kPeersTime - (now - one.seen); left > Duration::zero()) {
        Sooner(requeue_after, left);
        continue;
      }
      one.taken = true;
      const auto cause = causes_.find(one.group);
      const bool explained = one.failure.which == api::FailureClass::kPeerLost &&
                             cause != causes_.end() && now - cause->second < kCauseTime;
      if (!explained) fresh |= api::AddNodeFailure(failures, one.failure);
    }
    if (!fresh) ForgetTaken(name);
  }
  const auto silence = SilenceOf(node);
  if (silence && context_.clock.Now() - silence->time < api::kNodeFailureWindow) {
    const auto pods = pods_.ByIndex("node", name);
    const bool busy = std::any_of(pods.begin(), pods.end(), [](const json::SharedValue& pod) {
      return api::Phase(*pod) == "Running";
    });
    if (busy) fresh |= api::AddNodeFailure(failures, *silence);
  }
  return fresh;
}

bool NodeHealthController::WantUnhealthy(const std::string& name,
                                         const json::Value& node,
                                         Duration& requeue_after) {
  const bool bad = !api::TaintingFaultsOf(node).empty();
  const SteadyTime now = context_.clock.Steady();
  if (bad || !HasTaint(json::GetArray(node, {"spec", "taints"}), api::keys::kUnhealthyTaint)) {
    calm_since_.erase(name);
    return bad;
  }
  // A leader that does not know since when counts from now.
  const SteadyTime since = calm_since_.try_emplace(name, now).first->second;
  const Duration left = kCalm - (now - since);
  if (left <= Duration::zero()) return false;
  Sooner(requeue_after, left);
  return true;
}

void NodeHealthController::Reconcile(const std::string& name, Done done) {
  const json::SharedValue node = nodes_.Get(name);
  if (!node || api::IsDeleting(*node)) return done(Duration::zero());
  const WallTime now = context_.clock.Now();
  Duration requeue_after{0};
  std::vector<api::NodeFailure> failures = api::NodeFailuresOf(*node);
  const bool failed = TakeNews(name, *node, failures, requeue_after);
  const double score = api::NodeScore(failures, now);
  json::Array taints = json::GetArray(*node, {"spec", "taints"});
  const json::Array before = taints;
  SetTaint(taints, api::keys::kUnhealthyTaint, "NoSchedule",
           WantUnhealthy(name, *node, requeue_after), now);
  const bool was_suspect = HasTaint(before, api::keys::kSuspectTaint);
  const double bound = was_suspect ? api::kSuspectScore / 2 : api::kSuspectScore;
  SetTaint(taints, api::keys::kSuspectTaint, "PreferNoSchedule", score >= bound, now);
  if (score >= bound) Sooner(requeue_after, kEvery);
  const bool retaint = !json::Equal(json::Value(taints), json::Value(before));
  if (!failed && !retaint) return done(requeue_after);
  json::Value patch = json::Object{
      {"metadata",
       json::Object{{"resourceVersion", json::GetString(*node, {"metadata", "resourceVersion"})}}}};
  if (failed) {
    json::Set(patch, {"metadata", "annotations", api::keys::kNodeFailures},
              api::NodeFailuresText(failures));
  }
  if (retaint) json::Set(patch, {"spec", "taints"}, taints);
  client_.Patch(client::resources::kNodes, "", name, client::PatchType::kMerge, patch,
                [this, name, node, before, taints, failures, requeue_after,
                 done](const Result<json::SharedValue>& result) {
                  if (result.ok()) {
                    ForgetTaken(name);
                    Report(*node, before, taints, failures);
                  }
                  done(controllers::Outcome(result.status(), requeue_after));
                });
}

void NodeHealthController::Report(const json::Value& node,
                                  const json::Array& before,
                                  const json::Array& after,
                                  const std::vector<api::NodeFailure>& failures) {
  const std::string name(api::Name(node));
  const auto changed = [&](std::string_view key) {
    return HasTaint(after, key) != HasTaint(before, key);
  };
  if (changed(api::keys::kUnhealthyTaint)) {
    if (HasTaint(after, api::keys::kUnhealthyTaint)) {
      events_.Record(
          node, "Warning", "NodeUnhealthy",
          StrCat("Node ", name, " gets no new pods: ", api::FaultsText(api::TaintingFaultsOf(node)),
                 ". What runs there runs on."));
    } else {
      events_.Record(node, "Normal", "NodeRecovered",
                     StrCat("Node ", name, " is healthy again and gets new pods."));
    }
  }
  if (!changed(api::keys::kSuspectTaint)) return;
  if (HasTaint(after, api::keys::kSuspectTaint)) {
    events_.Record(node, "Warning", "NodeSuspect",
                   StrCat("Node ", name, " gets new pods only where no other node has room, since ",
                          failures.size(), " pods failed there without an error of their own: ",
                          FailuresText(failures), ". Test it: swell node check ", name));
  } else {
    events_.Record(node, "Normal", "NodeTrusted",
                   StrCat("Node ", name, " is no longer suspect: few pods failed there lately."));
  }
}

}  // namespace swell::scheduling
