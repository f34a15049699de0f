// ClusterState: the pages' own picture of the cluster, on a thread of their own, so that making
// their views costs the core thread next to nothing.
//
//   informers (core) ─► ClusterFeed: what changed, by key ─► one post per kFeedEvery ─►
//   ClusterState
//
// Documents are immutable and shared with the informers; only pointers travel.
//
// - Threads: ClusterFeed on the core executor; ClusterState on the pages'.
// - Ownership: executors, clock and informers outlive both; the state outlives the feed and what it
//   has posted.
// - Invariants: a key waits at most once in the feed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/callback_scope.h"
#include "base/timer.h"
#include "kube/controllers/context.h"
#include "ui/state/eviction_counts.h"
#include "ui/state/member_log.h"
#include "ui/state/pod_usage.h"

namespace swell::ui {

// What the pages follow; job kinds come behind these, like cli::JobKinds().
enum class Kind {
  kNode,
  kPod,
  kPodGroup,
  kProject,
  kNodePool,
  kNamespace,
  kEvent,
  kUsage,
  kUser,
  kCron,
  kCronJob,
  kDeployment,
  kService
};
inline constexpr size_t IndexOf(Kind kind) { return static_cast<size_t>(kind); }
inline constexpr size_t kFixedKinds = IndexOf(Kind::kService) + 1;
// Nothing is shown before these kinds are known. Some clusters do not serve the kinds after them.
inline constexpr size_t kAwaitedKinds = IndexOf(Kind::kCron);
using KindSet = uint64_t;  // bit per kind

size_t KindCount();
inline KindSet Bit(size_t kind) { return KindSet{1} << kind; }
inline KindSet Bit(Kind kind) { return Bit(IndexOf(kind)); }
KindSet AllJobKinds();
// Not a kind of objects: the measured use of pods.
inline constexpr KindSet kMeasured = KindSet{1} << 63;
// The resource of a kind, by which rights are asked for.
const client::Resource& ResourceOf(size_t kind);

using ObjectMap = std::map<std::string, json::SharedValue, std::less<>>;

struct FeedBatch {
  struct Item {
    size_t kind;
    std::string key;
    json::SharedValue object;  // null: it is gone
    json::SharedValue last;    // an object with this key that went meanwhile; mostly null
  };
  std::vector<Item> items;
};

class ClusterState {
 public:
  explicit ClusterState(const Clock& clock)
      : clock_(clock), objects_(KindCount()), versions_(KindCount()) {}

  // Called after each batch with the kinds that changed.
  void OnChange(std::function<void(KindSet)> changed) { changed_ = std::move(changed); }
  void Apply(FeedBatch batch);

  const ObjectMap& Of(size_t kind) const { return objects_[kind]; }
  const ObjectMap& Of(Kind kind) const { return Of(IndexOf(kind)); }
  // Grows with each change of one of these kinds.
  uint64_t Version(KindSet kinds) const;
  // The first batch has come: before it nothing is known.
  bool known() const { return known_; }
  const MemberLog& members() const { return members_; }
  MemberLog& members() { return members_; }
  const EvictionCounts& evictions() const { return evictions_; }
  EvictionCounts& evictions() { return evictions_; }
  // When an earlier process last saved its history. Call before the first batch.
  void SetRestoredUntil(WallTime until) { restored_until_ = until; }
  const PodUsage& usage() const { return usage_; }
  // The use of pods was measured; null: it could not be measured.
  void SetUsage(const json::Value* measured);

 private:
  const Clock& clock_;
  void Follow(const FeedBatch::Item& item, const json::Value* before, WallTime now);
  void CloseUnseenMembers();

  MemberLog members_;
  WallTime restored_until_;
  EvictionCounts evictions_;
  PodUsage usage_;
  std::vector<ObjectMap> objects_;
  std::vector<uint64_t> versions_;  // by kind
  std::function<void(KindSet)> changed_;
  bool known_ = false;
};

class ClusterFeed {
 public:
  static constexpr Duration kFeedEvery = std::chrono::milliseconds(100);

  ClusterFeed(Executor& core,
              Executor& pages,
              controllers::Informers& informers,
              std::shared_ptr<api::RestHandler> server,
              api::UserInfo user,
              ClusterState& state,
              uint64_t seed,
              KindSet without = 0);
  // After the controllers have asked for their informers.
  void Start();

 private:
  client::Informer& InformerOf(size_t kind);
  void Follow(size_t kind, client::Informer& informer);
  void Note(size_t kind, const json::SharedValue& object, bool gone);
  void Send();

  Executor& core_;
  Executor& pages_;
  controllers::Informers& informers_;
  std::shared_ptr<api::RestHandler> server_;
  const api::UserInfo user_;
  ClusterState& state_;
  uint64_t seed_;
  const KindSet without_;  // kinds that `user` may not list; none of them is ever known
  // For kinds that no controller follows.
  std::vector<std::unique_ptr<client::Informer>> own_;
  struct Waiting {
    json::SharedValue object, last;  // as in FeedBatch::Item
  };
  std::map<std::pair<size_t, std::string>, Waiting> waiting_;
  size_t unsynced_ = 0;  // of the awaited kinds
  Timer timer_{core_};
  CallbackScope scope_;
};

}  // namespace swell::ui
