// Elastic jobs at the level of what decides about them: the real scheduler, metric scaler and shard
// ledger, with pods and training simulated second by second. A sequence takes milliseconds, so
// thousands of them are played: whatever comes, a job keeps between its bounds, no record is lost
// or used twice, every job ends, and left alone it changes its size a few times and then no more.
// The same through the whole API, a few times: elastic_property_test.cc.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/strings.h"
#include "elastic/metric_scaler.h"
#include "elastic/shard_ledger.h"
#include "sched/model.h"
#include "sched/scheduler.h"

namespace swell::jobs {
namespace {

constexpr int64_t kGpusPerNode = 4;
constexpr int64_t kNodes = 2;
constexpr int64_t kRoom = kNodes * kGpusPerNode;

struct Member {
  sched::PodInfo pod;
  int64_t lease = 0;  // 0: none
  elastic::Range range;
  int64_t told = 0, done = 0;  // records of the range: to the ledger, and really
};

struct Job {
  std::string name;
  int64_t least = 1, most = 1, desired = 1;
  int64_t knee = 1;  // more members than this do not make it faster
  bool by_metric = false;
  bool over = false;
  elastic::ScalePolicy policy;
  elastic::ScaleState state;
  std::vector<elastic::ShardLedger> ledger;  // one; a ledger has no empty state
  std::vector<int> used;                     // by epoch and record
  std::map<int64_t, Member> members;         // by index
  int64_t sizes = 0;                         // how often the number of running members changed
  int64_t size = 0;
};

class World {
 public:
  explicit World(uint64_t seed) : random_(seed) {}

  int64_t preemptions() const { return preemptions_; }
  int64_t deaths() const { return deaths_; }

  void Run() {
    for (int64_t i = 0; i < kNodes; ++i) AddNode(StrCat("node-", i));
    for (uint64_t jobs = 1 + random_.Below(3); jobs > 0; --jobs) Submit();
    for (uint64_t steps = 4 + random_.Below(10); steps > 0 && !Failed(); --steps) {
      Disturb();
      for (uint64_t seconds = 1 + random_.Below(12); seconds > 0; --seconds) Tick(true);
    }
    if (!Failed()) ExpectStableSizes();
    if (!Failed()) Finish();
  }

 private:
  static bool Failed() { return testing::Test::HasFailure(); }

  void AddNode(const std::string& name) {
    sched::NodeInfo node;
    node.name = name;
    node.labels["kubernetes.io/hostname"] = name;
    node.allocatable.cpu_milli = 64'000;
    node.allocatable.memory_bytes = int64_t{256} << 30;
    node.allocatable.pods = 110;
    node.allocatable.extended[sched::kGpuResource] = kGpusPerNode;
    model_.UpsertNode(node);
  }

  void AddGroup(const std::string& name, int priority, int64_t least) {
    sched::GroupInfo group;
    group.key = "default/" + name;
    group.uid = "uid-" + name;
    group.priority = priority;
    group.creation = now_;
    group.pod_sets = {sched::PodSet{"worker", static_cast<int32_t>(least), "", {}}};
    model_.UpsertGroup(group);
  }

  sched::PodInfo MakePod(const std::string& group, int64_t index) {
    sched::PodInfo pod;
    pod.key = StrCat("default/", group, "-worker-", index);
    pod.uid = StrCat("uid-", ++uids_);
    pod.group = "default/" + group;
    pod.pod_set = "worker";
    pod.requests.cpu_milli = 1000;
    pod.requests.extended[sched::kGpuResource] = 1;
    pod.creation = now_;
    pod.member_priority = static_cast<int32_t>(1000 - index);
    model_.UpsertPod(pod);
    return pod;
  }

  void Submit() {
    Job& job = jobs_.emplace_back();
    job.name = StrCat("elastic-", jobs_.size());
    job.least = 1 + static_cast<int64_t>(random_.Below(3));
    job.most = job.least + 1 + static_cast<int64_t>(random_.Below(6));
    job.by_metric = random_.OneIn(2);
    job.desired = job.by_metric ? job.least : job.most;
    job.knee = 1 + static_cast<int64_t>(random_.Below(kRoom));
    job.policy.replicas_min = job.least;
    job.policy.replicas_max = job.most;
    job.policy.doubles = random_.OneIn(2);
    job.policy.observations = 1 + static_cast<int>(random_.Below(3));
    job.policy.interval = std::chrono::seconds(2);
    elastic::LedgerOptions options;
    options.records = 200 + static_cast<int64_t>(random_.Below(800));
    options.records_per_task = 1 + static_cast<int64_t>(random_.Below(40));
    options.epochs = 1 + static_cast<int64_t>(random_.Below(3));
    options.seed = random_.Next();
    options.exact_progress = random_.OneIn(2);
    job.used.resize(static_cast<size_t>(options.records * options.epochs));
    job.ledger.emplace_back(options, 1);
    AddGroup(job.name, 0, job.least);
  }

  // Somebody more important comes or goes, a member dies without a word, or people ask for another
  // number of members, within the bounds or not.
  void Disturb() {
    const uint64_t dice = random_.Below(10);
    Job& job = jobs_[random_.Below(jobs_.size())];
    if (dice < 4) {
      const std::string name = StrCat("urgent-", ++uids_);
      const auto gpus = 1 + static_cast<int64_t>(random_.Below(6));
      AddGroup(name, 100, gpus);
      for (int64_t i = 0; i < gpus; ++i) urgent_[name].push_back(MakePod(name, i));
    } else if (dice < 7 && !urgent_.empty()) {
      EndUrgent(std::next(urgent_.begin(), static_cast<int64_t>(random_.Below(urgent_.size()))));
    } else if (dice < 9) {
      if (job.members.empty()) return;
      auto it =
          std::next(job.members.begin(), static_cast<int64_t>(random_.Below(job.members.size())));
      if (it->second.pod.phase == sched::PodPhase::kRunning) Kill(job, it);
    } else {
      Ask(job, static_cast<int64_t>(random_.Below(12)));
    }
  }

  void EndUrgent(std::map<std::string, std::vector<sched::PodInfo>>::iterator one) {
    for (const sched::PodInfo& pod : one->second) model_.RemovePod(pod.key);
    model_.RemoveGroup("default/" + one->first);
    urgent_.erase(one);
  }

  // As a job's controller reads what is asked for.
  void Ask(Job& job, int64_t replicas) { job.desired = std::clamp(replicas, job.least, job.most); }

  void Kill(Job& job, std::map<int64_t, Member>::iterator member) {
    ++deaths_;
    job.ledger[0].Lost(member->second.pod.key, now_);
    model_.RemovePod(member->second.pod.key);
    job.members.erase(member);
  }

  // It tells how far it is, gives back what it has not done, and goes.
  void Notice(Job& job, Member& member) {
    if (member.pod.phase == sched::PodPhase::kReleasing) return;
    if (member.done > member.told) {
      ASSERT_TRUE(job.ledger[0].Progress(member.pod.key, member.lease, member.done, now_).ok());
    }
    job.ledger[0].Leave(member.pod.key, now_);
    member.lease = 0;
    member.pod.phase = sched::PodPhase::kReleasing;
    model_.UpsertPod(member.pod);
  }

  void Tick(bool trains) {
    now_ = now_ + std::chrono::seconds(1);
    for (Job& job : jobs_) Advance(job);
    Cycle();
    for (Job& job : jobs_) {
      if (job.over) continue;
      Check(job);
      if (trains) Train(job);
      if (job.by_metric) LookAt(job);
      if (job.ledger[0].finished()) End(job);
    }
  }

  // What the node agents and the job's controller do within a second.
  void Advance(Job& job) {
    if (job.over) return;
    int64_t staying = 0;
    for (auto it = job.members.begin(); it != job.members.end();) {
      Member& member = it->second;
      if (member.pod.phase == sched::PodPhase::kReleasing) {
        model_.RemovePod(member.pod.key);
        it = job.members.erase(it);
        continue;
      }
      if (member.pod.phase == sched::PodPhase::kBound) {
        member.pod.phase = sched::PodPhase::kRunning;
        member.pod.start = now_;
        model_.UpsertPod(member.pod);
      }
      staying += member.pod.phase == sched::PodPhase::kRunning;
      ++it;
    }
    // Fewer than its least: the gang stops whole and starts anew.
    if (staying > 0 && staying < job.least) {
      for (auto& [index, member] : job.members) {
        if (member.pod.phase == sched::PodPhase::kRunning) Notice(job, member);
      }
    }
    for (auto& [index, member] : job.members) {
      if (index < job.desired) continue;
      if (member.pod.phase == sched::PodPhase::kRunning) {
        Notice(job, member);
      } else if (member.pod.phase == sched::PodPhase::kPending) {
        member.pod.phase = sched::PodPhase::kReleasing;  // never placed: gone at once
        model_.UpsertPod(member.pod);
      }
    }
    for (int64_t index = 0; index < job.desired; ++index) {
      if (!job.members.contains(index)) job.members[index].pod = MakePod(job.name, index);
    }
  }

  Member* Find(const std::string& key, Job*& owner) {
    for (Job& job : jobs_) {
      for (auto& [index, member] : job.members) {
        if (member.pod.key != key) continue;
        owner = &job;
        return &member;
      }
    }
    return nullptr;
  }

  sched::PodInfo* FindUrgent(const std::string& key) {
    for (auto& [name, pods] : urgent_) {
      for (sched::PodInfo& pod : pods) {
        if (pod.key == key) return &pod;
      }
    }
    return nullptr;
  }

  void Cycle() {
    const sched::CycleResult result = scheduler_.RunCycle(model_, now_);
    for (const sched::Decision& decision : result.decisions) {
      Job* job = nullptr;
      Member* member = Find(decision.pod, job);
      sched::PodInfo* pod = member ? &member->pod : FindUrgent(decision.pod);
      ASSERT_TRUE(pod) << decision.pod;
      if (decision.type == sched::Decision::Type::kEvict) {
        ASSERT_TRUE(member) << "nobody is more important than " << decision.pod;
        ++preemptions_;
        Notice(*job, *member);
        continue;
      }
      pod->nominated_node = decision.type == sched::Decision::Type::kNominate ? decision.node : "";
      if (decision.type == sched::Decision::Type::kBind) {
        pod->node = decision.node;
        pod->gpu_devices = decision.gpu_devices;
        pod->phase = sched::PodPhase::kBound;
      }
      model_.UpsertPod(*pod);
    }
  }

  static int64_t Running(const Job& job) {
    return std::count_if(job.members.begin(), job.members.end(), [](const auto& named) {
      return named.second.pod.phase == sched::PodPhase::kRunning;
    });
  }

  void Check(Job& job) {
    int64_t alive = 0;
    for (const auto& [index, member] : job.members) {
      alive += member.pod.phase != sched::PodPhase::kReleasing;
    }
    ASSERT_LE(alive, job.most) << job.name;
    ASSERT_GE(job.desired, job.least) << job.name;
    ASSERT_LE(job.desired, job.most) << job.name;
    const int64_t running = Running(job);
    job.sizes += running != job.size;
    job.size = running;
  }

  // With exact progress records are used in the very step that tells of them, else before.
  void Train(Job& job) {
    if (Running(job) < job.least) return;
    for (auto& [index, member] : job.members) {
      if (member.pod.phase != sched::PodPhase::kRunning || job.ledger[0].finished()) continue;
      if (member.lease == 0) {
        auto handed = job.ledger[0].Next(member.pod.key, now_);
        ASSERT_TRUE(handed.ok()) << handed.status().ToString();
        if (handed->kind != elastic::Handout::Kind::kLease) continue;
        member.lease = handed->lease.id;
        member.range = handed->lease.range;
        member.told = member.done = 0;
      }
      const int64_t from = member.done;
      member.done = std::min<int64_t>(member.range.size(),
                                      from + 1 + static_cast<int64_t>(random_.Below(12)));
      for (int64_t i = from; i < member.done; ++i) {
        ++job.used[static_cast<size_t>(member.range.epoch * job.ledger[0].options().records +
                                       member.range.start + i)];
      }
      const bool tells = job.ledger[0].options().exact_progress || random_.OneIn(2) ||
                         member.done == member.range.size();
      if (!tells) continue;
      ASSERT_TRUE(job.ledger[0].Progress(member.pod.key, member.lease, member.done, now_).ok());
      member.told = member.done;
      if (member.done == member.range.size()) member.lease = 0;
    }
  }

  void LookAt(Job& job) {
    if ((now_.unix_ns / 1'000'000'000) % 2 != 0) return;
    elastic::ScaleFacts facts;
    facts.now = now_;
    facts.replicas = job.desired;
    int64_t held = 0;
    for (const auto& [name, pods] : urgent_) held += static_cast<int64_t>(pods.size());
    for (const Job& other : jobs_) {
      for (const auto& [index, member] : other.members) held += !member.pod.node.empty();
    }
    facts.room = std::max<int64_t>(0, kRoom - held);
    for (const auto& [index, member] : job.members) {
      if (member.pod.phase == sched::PodPhase::kReleasing) continue;
      facts.running += member.pod.phase == sched::PodPhase::kRunning;
      facts.placed += !member.pod.node.empty();
      facts.unplaced += member.pod.node.empty() && member.pod.nominated_node.empty() &&
                        now_ - member.pod.creation >= job.policy.interval;
    }
    if (facts.running == facts.replicas) {
      facts.seconds_per_step = static_cast<double>(facts.running) /
                               static_cast<double>(std::min(facts.running, job.knee));
    }
    elastic::ScaleDecision decision = elastic::DecideScale(job.policy, facts, job.state);
    if (!decision.replicas) return;
    ASSERT_GE(*decision.replicas, job.least);
    ASSERT_LE(*decision.replicas, job.most);
    job.desired = *decision.replicas;
  }

  void End(Job& job) {
    const elastic::ShardLedger& ledger = job.ledger[0];
    ASSERT_EQ(ledger.done(), static_cast<int64_t>(job.used.size()));
    ASSERT_GE(*std::min_element(job.used.begin(), job.used.end()), 1) << "a record was lost";
    int64_t extra = -static_cast<int64_t>(job.used.size());
    for (int times : job.used) extra += times;
    ASSERT_LE(extra, ledger.options().exact_progress ? 0 : ledger.repeated_max())
        << "a record was used twice";
    for (const auto& [index, member] : job.members) model_.RemovePod(member.pod.key);
    model_.RemoveGroup("default/" + job.name);
    job.members.clear();
    job.over = true;
  }

  // Left alone: a bounded number of changes, and then none.
  void ExpectStableSizes() {
    for (Job& job : jobs_) job.sizes = 0;
    for (int second = 0; second < 1200; ++second) Tick(false);
    for (Job& job : jobs_) {
      EXPECT_LE(job.sizes, 40) << job.name;
      job.sizes = 0;
    }
    for (int second = 0; second < 300; ++second) Tick(false);
    for (Job& job : jobs_) EXPECT_EQ(job.sizes, 0) << job.name << " has nothing to react to";
  }

  void Finish() {
    while (!urgent_.empty()) EndUrgent(urgent_.begin());
    auto over = [this] {
      return std::all_of(jobs_.begin(), jobs_.end(), [](const Job& job) { return job.over; });
    };
    for (int second = 0; second < 10'000 && !over() && !Failed(); ++second) Tick(true);
    for (const Job& job : jobs_) {
      EXPECT_TRUE(job.over) << job.name << ": " << job.ledger[0].left() << " records are left";
    }
  }

  Random random_;
  WallTime now_{1'700'000'000'000'000'000};
  sched::Model model_;
  sched::Scheduler scheduler_{sched::Settings{}};
  std::vector<Job> jobs_;
  std::map<std::string, std::vector<sched::PodInfo>> urgent_;
  uint64_t uids_ = 0;
  int64_t preemptions_ = 0, deaths_ = 0;
};

// SWELL_SEED replays one sequence; SWELL_SEQUENCES says how many.
TEST(ElasticWorldTest, ThousandsOfSequencesKeepBoundsLoseNoRecordSettleAndEnd) {
  const char* seed = std::getenv("SWELL_SEED");
  const char* count = std::getenv("SWELL_SEQUENCES");
  const uint64_t first = seed ? ParseUint(seed).value_or(1) : 1;
  const uint64_t last = seed ? first : ParseUint(count ? count : "").value_or(5000);
  int64_t preemptions = 0, deaths = 0;
  for (uint64_t i = first; i <= last; ++i) {
    SCOPED_TRACE(StrCat("SWELL_SEED=", i));
    World world(i);
    world.Run();
    preemptions += world.preemptions();
    deaths += world.deaths();
    if (testing::Test::HasFailure()) break;
  }
  if (!seed) {
    EXPECT_GT(preemptions, static_cast<int64_t>(last)) << "little was disturbed";
    EXPECT_GT(deaths, static_cast<int64_t>(last) / 4);
  }
  RecordProperty("preemptions", static_cast<int>(preemptions));
}

}  // namespace
}  // namespace swell::jobs
