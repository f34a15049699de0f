#include "kube/controllers/cluster/pod_janitor.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "kube/api/meta/meta.h"
#include "kube/controllers/pod_facts.h"
#include "kube/controllers/queue.h"

namespace swell::controllers {
namespace {

constexpr Duration kInterval = std::chrono::seconds(20);
constexpr size_t kDeletionsPerRoundMax = 500;
constexpr const char* kRound = "round";

using Entry = std::tuple<WallTime, std::string, json::SharedValue>;
using Ended = std::map<std::string, std::vector<Entry>, std::less<>>;  // by namespace

// How many each namespace may keep, so that all together keep at most `max`: those that have few
// keep all, and the others the same number.
size_t ShareOf(const Ended& ended, size_t max) {
  std::vector<size_t> counts;
  for (const auto& [ns, pods] : ended) counts.push_back(pods.size());
  std::sort(counts.begin(), counts.end());
  size_t share = max;
  for (size_t i = 0; i < counts.size(); ++i) {
    share = max / (counts.size() - i);
    if (counts[i] > share) return share;
    max -= counts[i];
  }
  return counts.empty() ? share : counts.back();
}

}  // namespace

PodJanitor::PodJanitor(Context context, size_t ended_pods_max)
    : context_(context),
      ended_pods_max_(ended_pods_max),
      pods_(context_.informers.Of(client::resources::kPods)),
      queue_(MakeQueue(context_, "pod-janitor", 1, this, &PodJanitor::Reconcile)),
      client_(context_.executor, context_.server, context_.user, "pod-janitor") {
  // Rounds only while there are pods that end: an idle cluster stays idle.
  auto look = [this](const json::SharedValue& pod) {
    if (HasEnded(*pod) || api::IsDeleting(*pod)) queue_.AddAfter(kRound, kInterval);
  };
  Follow(pods_, look);
}

void PodJanitor::Reconcile(client::WorkQueue::Done done) {
  Ended ended;
  size_t ended_count = 0;
  std::vector<json::SharedValue> remove;
  for (const auto& [key, pod] : pods_.objects()) {
    if (api::IsDeleting(*pod)) {
      if (!api::IsBound(*pod)) remove.push_back(pod);
    } else if (HasEnded(*pod)) {
      ended[std::string(api::Namespace(*pod))].emplace_back(api::CreationTime(*pod), key, pod);
      ++ended_count;
    }
  }
  if (ended_count > ended_pods_max_) {
    const size_t share = ShareOf(ended, ended_pods_max_);
    for (auto& [ns, pods] : ended) {
      if (pods.size() <= share) continue;
      std::sort(pods.begin(), pods.end());
      for (size_t i = 0; i < pods.size() - share; ++i) remove.push_back(std::get<2>(pods[i]));
    }
  }
  bool more = remove.size() > kDeletionsPerRoundMax;
  remove.resize(std::min(remove.size(), kDeletionsPerRoundMax));
  for (const json::SharedValue& pod : remove) {
    client_.Delete(client::resources::kPods, api::Namespace(*pod), api::Name(*pod),
                   {.grace_seconds = 0, .precondition_uid = std::string(api::Uid(*pod))}, {});
  }
  done(more ? Duration(std::chrono::milliseconds(100)) : Duration::zero());
}

}  // namespace swell::controllers
