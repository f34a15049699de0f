#include "kube/controllers/cluster/pod_janitor.h"

#include <algorithm>
#include <tuple>

#include "kube/api/meta/meta.h"
#include "kube/controllers/pod_facts.h"

namespace swell::controllers {
namespace {

constexpr Duration kInterval = std::chrono::seconds(20);
constexpr size_t kDeletionsPerRoundMax = 500;
constexpr const char* kRound = "round";

}  // namespace

PodJanitor::PodJanitor(Context context, size_t ended_pods_max)
    : context_(context),
      ended_pods_max_(ended_pods_max),
      pods_(context_.informers.Of(client::resources::kPods)),
      queue_(
          context_.executor,
          context_.metrics,
          "pod-janitor",
          1,
          [this](const std::string&, client::WorkQueue::Done done) { Reconcile(std::move(done)); }),
      client_(context_.executor, context_.server, context_.user, "pod-janitor") {
  // Rounds only while there are pods that end: an idle cluster stays idle.
  auto look = [this](const json::SharedValue& pod) {
    if (HasEnded(*pod) || api::IsDeleting(*pod)) queue_.AddAfter(kRound, kInterval);
  };
  Follow(pods_, look);
}

void PodJanitor::Reconcile(client::WorkQueue::Done done) {
  using Entry = std::tuple<WallTime, std::string, json::SharedValue>;
  std::vector<Entry> ended;
  std::vector<json::SharedValue> remove;
  for (const auto& [key, pod] : pods_.objects()) {
    if (api::IsDeleting(*pod)) {
      if (!api::IsBound(*pod)) remove.push_back(pod);
    } else if (HasEnded(*pod)) {
      ended.emplace_back(api::CreationTime(*pod), key, pod);
    }
  }
  if (ended.size() > ended_pods_max_) {
    std::sort(ended.begin(), ended.end());
    size_t excess = ended.size() - ended_pods_max_;
    for (size_t i = 0; i < excess; ++i) remove.push_back(std::get<2>(ended[i]));
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
