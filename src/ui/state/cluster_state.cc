#include "ui/state/cluster_state.h"

#include <limits>
#include <set>
#include <utility>

#include "base/strings.h"
#include "cli/views/job_view.h"
#include "cli/views/workloads.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/user.h"
#include "kube/client/usage_record.h"

namespace swell::ui {
namespace {

namespace resources = client::resources;

client::InformerOptions OptionsOf(size_t kind) {
  if (kind == IndexOf(Kind::kUsage)) {
    return {.ns = std::string(client::kUsageNamespace),
            .label_selector = std::string(client::kUsageLabel)};
  }
  if (kind == IndexOf(Kind::kUser)) {
    return {.ns = std::string(api::kUserNamespace), .label_selector = std::string(api::kUserLabel)};
  }
  // Where no controller follows them all: the servers of `arena serve`.
  if (kind == IndexOf(Kind::kDeployment)) {
    return {.label_selector = std::string(cli::kServingName)};
  }
  return {};
}

}  // namespace

size_t KindCount() { return kFixedKinds + cli::JobKinds().size(); }

KindSet AllJobKinds() {
  KindSet all = 0;
  for (size_t kind = kFixedKinds; kind < KindCount(); ++kind) all |= Bit(kind);
  return all;
}

const client::Resource& ResourceOf(size_t kind) {
  static const client::Resource* const kFixed[kFixedKinds] = {
      &resources::kNodes,    &resources::kPods,       &resources::kPodGroups,
      &resources::kProjects, &resources::kNodePools,  &resources::kNamespaces,
      &resources::kEvents,   &resources::kConfigMaps, &resources::kSecrets,
      &resources::kCrons,    &resources::kCronJobs,   &resources::kDeployments,
      &resources::kServices};
  return kind < kFixedKinds ? *kFixed[kind] : cli::JobKinds()[kind - kFixedKinds].resource;
}

void ClusterState::Apply(FeedBatch batch) {
  KindSet kinds = 0;
  const WallTime now = clock_.Now();
  for (FeedBatch::Item& item : batch.items) {
    kinds |= Bit(item.kind);
    ++versions_[item.kind];
    const auto last = objects_[item.kind].find(item.key);
    Follow(item, last == objects_[item.kind].end() ? nullptr : last->second.get(), now);
    if (item.object) {
      objects_[item.kind][std::move(item.key)] = std::move(item.object);
    } else {
      objects_[item.kind].erase(item.key);
    }
  }
  if (!std::exchange(known_, true)) {
    kinds = ~KindSet{0};
    CloseUnseenMembers();
  }
  if (changed_ && kinds != 0) changed_(kinds);
}

void ClusterState::Follow(const FeedBatch::Item& item, const json::Value* before, WallTime now) {
  if (item.kind == IndexOf(Kind::kPod)) {
    const bool another =
        before != nullptr && (!item.object || api::Uid(*before) != api::Uid(*item.object));
    if (another) members_.OnPodGone(*before, now);
    if (item.object) members_.OnPod(*item.object, now);
  }
  // Between two batches a pod may be marked, gone, and followed by another of its name. The
  // first batch counts only for what no earlier process has seen.
  constexpr WallTime kNever{std::numeric_limits<int64_t>::max()};
  const WallTime first = restored_until_ == WallTime() ? kNever : restored_until_;
  const WallTime since = known_ ? WallTime() : first;
  for (const json::SharedValue& one : {item.last, item.object}) {
    if (one == nullptr) continue;
    if (item.kind == IndexOf(Kind::kPod)) evictions_.OnPod(*one, since);
    if (item.kind == IndexOf(Kind::kPodGroup)) evictions_.OnGroup(*one, since);
  }
}

void ClusterState::CloseUnseenMembers() {
  std::set<std::string, std::less<>> pods;
  for (const auto& [key, pod] : Of(Kind::kPod)) pods.emplace(api::Uid(*pod));
  members_.CloseUnseen(pods, restored_until_);
}

uint64_t ClusterState::Version(KindSet kinds) const {
  uint64_t sum = 0;
  for (size_t kind = 0; kind < versions_.size(); ++kind) {
    if ((kinds & Bit(kind)) != 0) sum += versions_[kind];
  }
  return sum;
}

void ClusterState::SetUsage(const json::Value* measured) {
  const bool before = !usage_.empty();
  if (measured == nullptr) {
    usage_.Clear();
  } else {
    usage_.Measure(*measured);
  }
  usage_.NoteIdle(Of(Kind::kPod), clock_.Now());
  if (changed_ && (before || !usage_.empty())) changed_(kMeasured);
}

ClusterFeed::ClusterFeed(Executor& core,
                         Executor& pages,
                         controllers::Informers& informers,
                         std::shared_ptr<api::RestHandler> server,
                         api::UserInfo user,
                         ClusterState& state,
                         uint64_t seed,
                         KindSet without)
    : core_(core),
      pages_(pages),
      informers_(informers),
      server_(std::move(server)),
      user_(std::move(user)),
      state_(state),
      seed_(seed),
      without_(without) {}

client::Informer& ClusterFeed::InformerOf(size_t kind) {
  client::InformerOptions options = OptionsOf(kind);
  if (options.ns.empty()) {
    if (client::Informer* shared = informers_.Find(ResourceOf(kind))) return *shared;
  }
  own_.push_back(std::make_unique<client::Informer>(core_, server_, user_, ResourceOf(kind),
                                                    std::move(options), ++seed_));
  return *own_.back();
}

void ClusterFeed::Start() {
  for (size_t kind = 0; kind < kAwaitedKinds; ++kind) unsynced_ += (without_ & Bit(kind)) == 0;
  for (size_t kind = 0; kind < KindCount(); ++kind) {
    if ((without_ & Bit(kind)) != 0) continue;
    client::Informer& informer = InformerOf(kind);
    Follow(kind, informer);
    if (!own_.empty() && own_.back().get() == &informer) informer.Start();
    if (kind >= kAwaitedKinds) continue;
    informer.WhenSynced(scope_.Wrap([this] {
      if (--unsynced_ == 0) timer_.Start(Duration::zero(), [this] { Send(); });
    }));
  }
}

void ClusterFeed::Follow(size_t kind, client::Informer& informer) {
  controllers::Follow(
      informer,
      scope_.Wrap([this, kind](const json::SharedValue& object) { Note(kind, object, false); }),
      scope_.Wrap([this, kind](const json::SharedValue& object) { Note(kind, object, true); }));
}

void ClusterFeed::Note(size_t kind, const json::SharedValue& object, bool gone) {
  Waiting& one = waiting_[{kind, api::KeyOf(*object)}];
  one.object = gone ? nullptr : object;
  if (gone) one.last = object;
  if (unsynced_ == 0 && !timer_.pending()) timer_.Start(kFeedEvery, [this] { Send(); });
}

void ClusterFeed::Send() {
  FeedBatch batch;
  batch.items.reserve(waiting_.size());
  for (auto& [key, one] : waiting_) {
    batch.items.push_back({key.first, key.second, std::move(one.object), std::move(one.last)});
  }
  waiting_.clear();
  pages_.Post([&state = state_, batch = std::move(batch)] { state.Apply(batch); });
}

}  // namespace swell::ui
