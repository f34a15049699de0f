// Two replicas over one API server: one leads, and nothing is decided twice, whichever dies or is
// cut off at any time.
#include "manager/replica.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "manager/testing/cluster_test_util.h"

namespace swell::manager {
namespace {

using client::resources::kLeases;
using client::resources::kNamespaces;
using client::resources::kPods;
using std::chrono::milliseconds;
using std::chrono::seconds;

const api::UserInfo kAdmin{"system:admin", "", {"system:masters"}};
constexpr std::string_view kLease = "swell-system/swell-controller";

// A replica's way to the server: it may be cut, and notes bindings.
class Link final : public api::RestHandler {
 public:
  Link(std::shared_ptr<api::RestHandler> server, std::map<std::string, int>& bindings)
      : server_(std::move(server)), bindings_(bindings) {}

  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override {
    if (cut) {
      auto wanted = std::make_shared<bool>(true);
      unanswered_.push_back({std::move(sink), wanted});
      if (!silent) AnswerAll();
      return std::make_unique<Call>(std::move(wanted));
    }
    if (!forbidden.empty() && request.path.ends_with(forbidden)) {
      api::RestResponse refused;
      refused.status = 403;
      sink->OnResponse(std::move(refused));
      return nullptr;
    }
    if (request.path.ends_with("/binding")) ++bindings_[request.path];
    if (request.path.ends_with("/swell-controller") && request.method != "GET") {
      if (before_lease_write) before_lease_write();
      if (hold_lease_writes) {
        held_.push_back({std::move(request), std::move(sink)});
        return nullptr;
      }
    }
    const bool watch = request.query.find("watch=true") != std::string::npos;
    if (watch) {
      auto kept = std::make_shared<Kept>(std::move(sink), frozen_);
      return server_->Handle(std::move(request), std::move(kept));
    }
    return server_->Handle(std::move(request), std::move(sink));
  }
  // What was never answered is lost.
  void Mend() {
    cut = false;
    AnswerAll();
  }
  // Watches say nothing from now on, though they are open.
  void FreezeWatches() { *frozen_ = true; }

  size_t held() const { return held_.size(); }
  // What was held arrives.
  void Deliver() {
    for (Held& one : std::exchange(held_, {})) {
      server_->Handle(std::move(one.request), std::move(one.sink));
    }
  }

  bool cut = false;
  bool silent = false;    // cut, and nothing is answered
  std::string forbidden;  // the end of paths that are refused
  std::function<void()> before_lease_write;
  bool hold_lease_writes = false;

 private:
  struct Held {
    api::RestRequest request;
    std::shared_ptr<api::RestSink> sink;
  };
  struct Unanswered {
    std::shared_ptr<api::RestSink> sink;
    std::shared_ptr<bool> wanted;
  };
  struct Call final : api::RestCall {
    explicit Call(std::shared_ptr<bool> flag) : wanted(std::move(flag)) {}
    ~Call() override { *wanted = false; }
    std::shared_ptr<bool> wanted;
  };
  void AnswerAll() {
    for (const Unanswered& one : std::exchange(unanswered_, {})) {
      if (!*one.wanted) continue;
      api::RestResponse away;
      away.status = 503;
      one.sink->OnResponse(std::move(away));
    }
  }

  class Kept final : public api::RestSink {
   public:
    Kept(std::shared_ptr<api::RestSink> sink, std::shared_ptr<bool> frozen)
        : sink_(std::move(sink)), frozen_(std::move(frozen)) {}
    void OnResponse(api::RestResponse response) override { sink_->OnResponse(std::move(response)); }
    void OnStreamStart(int status, std::string type) override {
      sink_->OnStreamStart(status, std::move(type));
    }
    bool OnChunk(const api::Chunk& chunk) override { return *frozen_ || sink_->OnChunk(chunk); }
    void OnStreamEnd(const Status& why) override { sink_->OnStreamEnd(why); }

   private:
    std::shared_ptr<api::RestSink> sink_;
    std::shared_ptr<bool> frozen_;
  };

  std::shared_ptr<api::RestHandler> server_;
  std::map<std::string, int>& bindings_;
  std::shared_ptr<bool> frozen_ = std::make_shared<bool>(false);
  std::vector<Unanswered> unanswered_;
  std::vector<Held> held_;
};

class ReplicaTest : public testing::Test {
 protected:
  struct One {
    std::shared_ptr<Link> link;
    std::unique_ptr<Replica> replica;
    int led = 0;
    std::string follows;
  };

  void SetUp() override {
    cluster_.Create("{apiVersion: v1, kind: Namespace, metadata: {name: swell-system}}");
    for (const char* node : {"node-a", "node-b"}) cluster_.AddNode(node, 4);
  }
  void Start(One& one, const std::string& identity, const std::string& forbidden = "") {
    one.link = std::make_shared<Link>(cluster_.server, bindings_);
    one.link->forbidden = forbidden;
    one.replica = std::make_unique<Replica>(
        cluster_.sim, cluster_.sim, cluster_.random, one.link, kAdmin,
        ReplicaOptions{.election = client::LeaderOptions{.identity = identity},
                       .manager = {.scheme = &cluster_.server->scheme()},
                       .on_lead = [&one](const controllers::Informers&) { ++one.led; },
                       .on_follow = [&one](const std::string& leader) { one.follows = leader; }});
    one.replica->Start();
  }
  void CreatePod(const std::string& name, int gpus) {
    cluster_.Create(StrCat("{apiVersion: v1, kind: Pod, metadata: {name: ", name,
                           "}, spec: {restartPolicy: Never, schedulerName: swell, containers: "
                           "[{name: c, image: x, resources: {limits: {nvidia.com/gpu: ",
                           gpus, "}}}]}}"));
  }
  bool Running(const std::string& name) {
    return cluster_.Until([&] { return cluster_.PodPhase("default/" + name) == "Running"; });
  }
  std::string Holder() {
    json::SharedValue lease = cluster_.Get(kLeases, std::string(kLease));
    return lease ? std::string(json::GetString(*lease, {"spec", "holderIdentity"})) : "none";
  }
  // How long until it holds, in virtual time.
  Duration TimeUntil(const std::function<bool()>& holds) {
    const SteadyTime begin = cluster_.sim.Steady();
    EXPECT_TRUE(cluster_.Until(holds));
    return cluster_.sim.Steady() - begin;
  }
  void ExpectNothingBoundTwice() {
    for (const auto& [path, count] : bindings_) EXPECT_EQ(count, 1) << path;
    std::set<std::string> devices;
    for (const json::SharedValue& pod : cluster_.List(kPods)) {
      for (std::string_view device : Split(api::Annotation(*pod, api::keys::kGpuDevices), ',')) {
        const std::string_view node = json::GetString(*pod, {"spec", "nodeName"});
        if (node.empty()) continue;
        EXPECT_TRUE(devices.insert(StrCat(node, "/", device)).second) << api::Name(*pod);
      }
    }
  }

  TestCluster cluster_;
  std::map<std::string, int> bindings_;
  One a_, b_;
};

TEST_F(ReplicaTest, OneLeadsAndTheOtherStandsBy) {
  Start(a_, "a");
  ASSERT_TRUE(cluster_.Until([&] { return a_.led == 1; }));
  Start(b_, "b");
  CreatePod("one", 1);
  EXPECT_TRUE(Running("one"));
  cluster_.Run(seconds(30));
  EXPECT_TRUE(a_.replica->leading());
  EXPECT_EQ(b_.replica->manager(), nullptr);
  EXPECT_EQ(b_.follows, "a");
  json::SharedValue lease = cluster_.Get(kLeases, std::string(kLease));
  ASSERT_TRUE(lease);
  EXPECT_EQ(json::GetString(*lease, {"spec", "holderIdentity"}), "a");
  EXPECT_EQ(json::GetInt(*lease, {"spec", "leaseDurationSeconds"}), 4);
  EXPECT_EQ(json::GetInt(*lease, {"spec", "leaseTransitions"}), 0);
  ExpectNothingBoundTwice();
}

// As a new program does over rights of an older one's.
TEST_F(ReplicaTest, WhoMayNotLookLeavesTheLeadToOthers) {
  One blind, other;
  Start(blind, "blind", "/storageclasses");
  cluster_.Run(seconds(10));
  EXPECT_FALSE(blind.replica->leading());
  Start(other, "other");
  ASSERT_TRUE(cluster_.Until([&] { return other.led == 1; }, seconds(5)));
  bool ended = false;
  blind.replica->Stop([&] { ended = true; });
  EXPECT_TRUE(cluster_.Until([&] { return ended; }, seconds(3)));
  EXPECT_TRUE(other.replica->leading());
}

TEST_F(ReplicaTest, TheOtherTakesOverWithinFiveSecondsOfItsDeath) {
  Start(a_, "a");
  ASSERT_TRUE(cluster_.Until([&] { return a_.led == 1; }));
  Start(b_, "b");
  CreatePod("one", 4);
  ASSERT_TRUE(Running("one"));
  for (int i = 0; i < 5; ++i) {  // wherever between two renewals it dies
    cluster_.Run(seconds(3) + milliseconds(130) * i);
    One& dying = a_.replica->leading() ? a_ : b_;
    One& next = a_.replica->leading() ? b_ : a_;
    dying.link->cut = true;
    dying.replica.reset();
    CreatePod(StrCat("p", i), i == 0 ? 4 : 0);
    EXPECT_LE(TimeUntil([&] { return next.replica->leading(); }), seconds(5));
    EXPECT_TRUE(Running(StrCat("p", i)));
    Start(dying, StrCat("again-", i));
  }
  EXPECT_EQ(json::GetInt(*cluster_.Get(kLeases, std::string(kLease)), {"spec", "leaseTransitions"}),
            5);
  ExpectNothingBoundTwice();
}

TEST_F(ReplicaTest, WhoStopsLetsTheOtherLeadAtOnce) {
  Start(a_, "a");
  ASSERT_TRUE(cluster_.Until([&] { return a_.led == 1; }));
  Start(b_, "b");
  cluster_.Run(seconds(2));
  bool stopped = false;
  a_.replica->Stop([&] {
    stopped = true;
    EXPECT_EQ(b_.led, 0);
  });
  EXPECT_FALSE(a_.replica->leading());
  EXPECT_LE(TimeUntil([&] { return stopped; }), milliseconds(200));
  EXPECT_LE(TimeUntil([&] { return b_.replica->leading(); }), seconds(1));
  EXPECT_EQ(Holder(), "b");
  CreatePod("one", 1);
  EXPECT_TRUE(Running("one"));
}

// Its parts give up what they asked, one after the other, which makes room for what waits.
TEST_F(ReplicaTest, WhoEndsWithMoreWritesThanMayBeUnderWaySendsNoneOfTheOthers) {
  Start(a_, "a");
  ASSERT_TRUE(cluster_.Until([&] { return a_.led == 1; }));
  a_.link->cut = a_.link->silent = true;
  for (int i = 0; i < 200; ++i) CreatePod(StrCat("p", i), 0);
  cluster_.Run(milliseconds(100));
  a_.link->cut = false;
  a_.replica.reset();
  EXPECT_TRUE(bindings_.empty());
}

TEST_F(ReplicaTest, AReleasedLeaseNamesNobody) {
  Start(a_, "a");
  ASSERT_TRUE(cluster_.Until([&] { return a_.led == 1; }));
  a_.replica->Stop([] {});
  cluster_.Run(seconds(1));
  EXPECT_EQ(Holder(), "");
}

TEST_F(ReplicaTest, WhoIsCutOffStopsBeforeTheOtherLeads) {
  Start(a_, "a");
  ASSERT_TRUE(cluster_.Until([&] { return a_.led == 1; }));
  Start(b_, "b");
  cluster_.Run(seconds(2));
  for (bool silent : {false, true}) {
    One& cut = a_.replica->leading() ? a_ : b_;
    One& next = a_.replica->leading() ? b_ : a_;
    cut.link->cut = true;
    cut.link->silent = silent;
    for (int i = 0; i < 1000 && !next.replica->leading(); ++i) {
      cluster_.Run(milliseconds(10));
      ASSERT_FALSE(cut.replica->leading() && next.replica->leading());
    }
    EXPECT_TRUE(next.replica->leading());
    EXPECT_FALSE(cut.replica->leading());
    cut.link->Mend();
    cluster_.Run(seconds(20));
    EXPECT_FALSE(cut.replica->leading());
    EXPECT_EQ(cut.replica->manager(), nullptr) << "what it believed is worth nothing any more";
  }
  CreatePod("one", 1);
  EXPECT_TRUE(Running("one"));
  ExpectNothingBoundTwice();
}

// The server was away, and nobody else led meanwhile: the same Manager continues.
TEST_F(ReplicaTest, ALeaderOutlivesAnAbsentServer) {
  Start(a_, "a");
  ASSERT_TRUE(cluster_.Until([&] { return a_.led == 1; }));
  const Manager* manager = a_.replica->manager();
  a_.link->cut = true;
  CreatePod("one", 1);
  cluster_.Run(seconds(20));
  EXPECT_FALSE(a_.replica->leading());
  EXPECT_EQ(a_.replica->manager(), manager);
  a_.link->Mend();
  EXPECT_TRUE(cluster_.Until([&] { return a_.replica->leading(); }));
  EXPECT_EQ(a_.replica->manager(), manager);
  EXPECT_TRUE(Running("one"));
  ExpectNothingBoundTwice();
}

// Its watch says nothing for minutes while the leader fills the cluster.
TEST_F(ReplicaTest, ANewLeaderLooksBeforeItDecides) {
  Start(a_, "a");
  ASSERT_TRUE(cluster_.Until([&] { return a_.led == 1; }));
  Start(b_, "b");
  cluster_.Run(seconds(2));
  b_.link->FreezeWatches();
  for (int i = 0; i < 8; ++i) CreatePod(StrCat("p", i), 1);
  ASSERT_TRUE(cluster_.Until([&] { return cluster_.Pods("Running") == 8; }));
  a_.link->cut = true;
  a_.replica.reset();
  ASSERT_TRUE(cluster_.Until([&] { return b_.replica->leading(); }));
  cluster_.Run(seconds(5));
  EXPECT_EQ(b_.replica->manager()->scheduler().stats().binds, 0);
  EXPECT_EQ(b_.replica->manager()->scheduler().stats().refused, 0);
  ExpectNothingBoundTwice();
}

// What it knows of the Lease is an older version each time it renews it, or gives it up.
TEST_F(ReplicaTest, ALeaderStaysThoughAnothersWriteComesBeforeEachOfItsLease) {
  Start(a_, "a");
  ASSERT_TRUE(cluster_.Until([&] { return a_.led == 1; }));
  Start(b_, "b");
  int written = 0;
  for (One* one : {&a_, &b_}) {
    one->link->before_lease_write = [&] {
      const json::Object annotations{{"n", StrCat(++written)}};
      cluster_.client->Patch(kLeases, "swell-system", "swell-controller", client::PatchType::kMerge,
                             json::Object{{"metadata", json::Object{{"annotations", annotations}}}},
                             {});
    };
  }
  for (int i = 0; i < 100; ++i) {
    cluster_.Run(milliseconds(100));
    ASSERT_TRUE(a_.replica->leading()) << i;
  }
  EXPECT_GT(written, 10);
  a_.replica->Stop([] {});
  EXPECT_LE(TimeUntil([&] { return b_.replica->leading(); }), seconds(1));
  json::SharedValue lease = cluster_.Get(kLeases, std::string(kLease));
  EXPECT_EQ(api::Annotation(*lease, "n"), StrCat(written)) << "theirs is not lost";
  EXPECT_EQ(json::GetInt(*lease, {"spec", "leaseTransitions"}), 1);
}

TEST_F(ReplicaTest, ARenewalThatComesWhenAnotherLeadsChangesNothing) {
  Start(a_, "a");
  ASSERT_TRUE(cluster_.Until([&] { return a_.led == 1; }));
  Start(b_, "b");
  cluster_.Run(seconds(2));
  a_.link->hold_lease_writes = true;
  ASSERT_TRUE(cluster_.Until([&] { return b_.replica->leading(); }));
  const json::SharedValue before = cluster_.Get(kLeases, std::string(kLease));
  a_.link->Deliver();
  const json::SharedValue after = cluster_.Get(kLeases, std::string(kLease));
  EXPECT_EQ(json::Print(*json::Find(*after, {"spec"})),
            json::Print(*json::Find(*before, {"spec"})));
  cluster_.Run(seconds(10));
  EXPECT_TRUE(b_.replica->leading());
  EXPECT_FALSE(a_.replica->leading());
}

// What it knows of the Lease is not what its own renewal says that it had given up.
TEST_F(ReplicaTest, WhoseGivenUpRenewalComesAfterAllLeadsOn) {
  Start(a_, "a");
  ASSERT_TRUE(cluster_.Until([&] { return a_.led == 1; }));
  a_.link->hold_lease_writes = true;
  ASSERT_TRUE(cluster_.Until([&] { return !a_.replica->leading(); }));
  cluster_.Run(seconds(5));
  ASSERT_EQ(a_.link->held(), 2U);
  a_.link->hold_lease_writes = false;
  a_.link->Deliver();
  EXPECT_LE(TimeUntil([&] { return a_.replica->leading(); }), seconds(1));
  EXPECT_EQ(json::GetInt(*cluster_.Get(kLeases, std::string(kLease)), {"spec", "leaseTransitions"}),
            0);
}

TEST_F(ReplicaTest, ALeaseThatSaysNothingIsAnybodys) {
  cluster_.Create(
      "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: swell-controller, "
      "namespace: swell-system}}");
  Start(a_, "a");
  Start(b_, "b");
  EXPECT_LE(TimeUntil([&] { return a_.replica->leading() || b_.replica->leading(); }), seconds(1));
  EXPECT_FALSE(a_.replica->leading() && b_.replica->leading());
}

TEST_F(ReplicaTest, ALeaseOfAnotherKindOfReplicaIsRespected) {
  cluster_.Create(
      "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: swell-controller, "
      "namespace: swell-system}, spec: {holderIdentity: somebody, leaseDurationSeconds: 15, "
      "leaseTransitions: 7}}");
  Start(a_, "a");
  cluster_.Run(seconds(14));
  EXPECT_EQ(Holder(), "somebody");
  EXPECT_EQ(a_.follows, "somebody");
  EXPECT_LE(TimeUntil([&] { return a_.replica->leading(); }), seconds(2));
  EXPECT_EQ(json::GetInt(*cluster_.Get(kLeases, std::string(kLease)), {"spec", "leaseTransitions"}),
            8);
}

TEST(LeaderOptions, MustAllowForOneLeaderAtATime) {
  using client::LeaderOptions;
  EXPECT_TRUE(LeaderOptions().Check().ok());
  EXPECT_FALSE(LeaderOptions{.lease_duration = milliseconds(4500)}.Check().ok());
  EXPECT_FALSE(LeaderOptions{.lease_duration = seconds(3)}.Check().ok());
  EXPECT_FALSE(LeaderOptions{.retry_period = milliseconds(2600)}.Check().ok());
  EXPECT_FALSE(LeaderOptions{.retry_period = Duration::zero()}.Check().ok());
}

// Replicas come, go, die and are cut off: never do two of them lead.
class ReplicaProperty : public ReplicaTest, public testing::WithParamInterface<uint64_t> {};

TEST_P(ReplicaProperty, NeverDoTwoLead) {
  SCOPED_TRACE(StrCat("seed ", GetParam()));
  Random random(GetParam());
  std::vector<One*> all = {&a_, &b_};
  Start(a_, "a");
  Start(b_, "b");
  int pods = 0;
  for (int step = 0; step < 60; ++step) {
    One& one = *all[random.Below(2)];
    switch (random.Below(6)) {
      case 0:
        one.link->cut = true;
        one.link->silent = random.OneIn(2);
        break;
      case 1:
        one.link->cut = true;
        one.replica.reset();
        Start(one, StrCat("again-", step));
        break;
      case 2:
        if (pods < 20) CreatePod(StrCat("p", pods++), static_cast<int>(random.Below(2)));
        break;
      default:
        one.link->Mend();
        break;
    }
    const auto span = static_cast<int>(random.Below(60));
    for (int i = 0; i < span; ++i) {
      cluster_.Run(milliseconds(50));
      ASSERT_FALSE(a_.replica->leading() && b_.replica->leading()) << "step " << step;
    }
  }
  a_.link->Mend();
  b_.link->Mend();
  EXPECT_TRUE(cluster_.Until([&] { return a_.replica->leading() || b_.replica->leading(); }));
  EXPECT_TRUE(
      cluster_.Until([&] { return cluster_.Pods("Running") >= std::min(pods, 8); }, seconds(120)));
  ExpectNothingBoundTwice();
}

INSTANTIATE_TEST_SUITE_P(Seeds, ReplicaProperty, testing::Range<uint64_t>(1, 6));

}  // namespace
}  // namespace swell::manager
