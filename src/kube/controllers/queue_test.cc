#include "kube/controllers/queue.h"

#include <vector>

#include <gtest/gtest.h>

#include "manager/testing/cluster_test_util.h"

namespace swell::controllers {
namespace {

struct Owner {
  explicit Owner(const Context& context)
      : keys_queue(MakeQueue(context, "test-keys", 1, this, &Owner::Reconcile)),
        rounds_queue(MakeQueue(context, "test-rounds", 1, this, &Owner::Round)) {}

  void Reconcile(const std::string& key, const client::WorkQueue::Done& done) {
    keys.push_back(key);
    done(Duration::zero());
  }
  void Round(client::WorkQueue::Done done) {
    ++rounds;
    done(Duration::zero());
  }

  std::vector<std::string> keys;
  int rounds = 0;
  client::WorkQueue keys_queue, rounds_queue;
};

TEST(MakeQueue, KeysWaitForTheCaches) {
  manager::TestCluster cluster;
  const api::UserInfo admin{"system:admin", "", {"system:masters"}};
  Informers informers(cluster.sim, cluster.server, admin, 1);
  informers.Of(client::resources::kPods);
  Owner owner({.executor = cluster.sim,
               .clock = cluster.sim,
               .random = cluster.random,
               .server = cluster.server,
               .user = admin,
               .informers = informers});
  owner.keys_queue.Add("default/a");
  owner.rounds_queue.Add("all");
  cluster.Run(manager::kSecond);
  EXPECT_TRUE(owner.keys.empty());
  EXPECT_EQ(owner.rounds, 0);
  informers.Start();
  cluster.Run(manager::kSecond);
  EXPECT_EQ(owner.keys, std::vector<std::string>{"default/a"});
  EXPECT_EQ(owner.rounds, 1);
}

}  // namespace
}  // namespace swell::controllers
