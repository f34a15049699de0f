#include "kube/process/network/firewall.h"

#include <sched.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/process/network/nftables.h"

namespace swell::process {
namespace {

constexpr char kTable[] = "swellfire";

// Runs what a firewall posts on the test's own thread.
class Posted {
 public:
  Firewall::Post AsPost() {
    return [this](std::function<void()> fn) {
      const std::lock_guard<std::mutex> lock(mutex_);
      waiting_.push_back(std::move(fn));
      there_.notify_one();
    };
  }
  void RunOne() {
    std::unique_lock<std::mutex> lock(mutex_);
    there_.wait(lock, [this] { return !waiting_.empty(); });
    const std::function<void()> fn = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    fn();
  }

 private:
  std::mutex mutex_;
  std::condition_variable there_;
  std::deque<std::function<void()>> waiting_;
};

// One run of swell.
struct Run {
  Posted posted;
  Firewall firewall{{.table = kTable,
                     .ports = "swfirev",
                     .gateway = "10.88.0.1",
                     .port_of = [](const std::string& ip) { return "swfirev" + ip.substr(8); },
                     .services = {}},
                    posted.AsPost()};

  Status Enforce(const node::NetworkRules& rules) {
    std::optional<Status> done;
    firewall.Enforce(std::make_shared<const node::NetworkRules>(rules),
                     [&done](const Status& status) { done = status; });
    while (!done) posted.RunOne();
    return *done;
  }
};

node::NetworkRules NobodyReaches(const std::string& ip) {
  node::NetworkRules rules;
  rules.pods[ip].in.emplace();
  return rules;
}

std::string Listed() {
  const auto listed = AskNftables("list ruleset bridge\n");
  return listed.ok() ? *listed : listed.status().ToString();
}

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

void RulesOutliveARun() {
  {
    Run first;
    ASSERT_TRUE(first.firewall.Start().ok());
    EXPECT_TRUE(first.firewall.Allows("10.88.0.3", "10.88.0.2", 80));
    ASSERT_TRUE(first.Enforce(NobodyReaches("10.88.0.2")).ok());
    EXPECT_FALSE(first.firewall.Allows("10.88.0.3", "10.88.0.2", 80));
  }
  const std::string before = Listed();
  EXPECT_TRUE(Has(before, "10.88.0.2 : jump in_")) << before;
  Run second;
  ASSERT_TRUE(second.firewall.Start().ok());
  second.firewall.SetServices({{"10.96.0.7", 80}});
  EXPECT_EQ(Listed(), before);
  EXPECT_FALSE(second.firewall.Allows("10.88.0.3", "10.88.0.2", 80)) << "only the kernel knows";
  node::NetworkRules rules = NobodyReaches("10.88.0.4");
  rules.pods["10.88.0.5"].out.emplace();
  ASSERT_TRUE(second.Enforce(rules).ok());
  EXPECT_TRUE(second.firewall.Allows("10.88.0.3", "10.88.0.2", 80));
  EXPECT_FALSE(second.firewall.Allows("10.88.0.3", "10.88.0.4", 80));
  const std::string after = Listed();
  EXPECT_FALSE(Has(after, "10.88.0.2 ")) << after;
  EXPECT_TRUE(Has(after, "10.88.0.4 : jump in_")) << after;
  EXPECT_TRUE(Has(after, "10.96.0.7")) << after;
}

void RulesThatNobodyWantsAnyMoreGo() {
  {
    Run first;
    ASSERT_TRUE(first.firewall.Start().ok());
    ASSERT_TRUE(first.Enforce(NobodyReaches("10.88.0.2")).ok());
  }
  Run second;
  ASSERT_TRUE(second.firewall.Start().ok());
  ASSERT_TRUE(second.Enforce({}).ok());
  EXPECT_FALSE(Has(Listed(), kTable)) << Listed();
  EXPECT_TRUE(second.firewall.Allows("10.88.0.3", "10.88.0.2", 80));
}

// In a network of this thread and of those that it starts.
class FirewallTest : public ::testing::Test {
 protected:
  void Apart(const std::function<void()>& test) {
    std::string missing;
    std::thread apart([&] {
      if (::unshare(CLONE_NEWNET) != 0) {
        missing = "network namespaces are not permitted here";
      } else if (const Status usable = RunNftables("list tables\n"); !usable.ok()) {
        missing = usable.message();
      } else {
        test();
      }
    });
    apart.join();
    if (!missing.empty()) GTEST_SKIP() << missing;
  }
};

TEST_F(FirewallTest, RulesOfAnEarlierRunHoldUntilNewOnesReplaceThem) { Apart(RulesOutliveARun); }

TEST_F(FirewallTest, RulesOfAnEarlierRunGoWhenThereAreNone) {
  Apart(RulesThatNobodyWantsAnyMoreGo);
}

}  // namespace
}  // namespace swell::process
