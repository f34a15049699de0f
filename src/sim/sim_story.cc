#include "sim/sim_story.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/controllers/pod_facts.h"
#include "sim/sim_jobs.h"

namespace swell::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr int kGpus = 4;
constexpr int kSteps = 40;
constexpr int kJobsMax = 14;
constexpr int kNeighboursMax = 10;
constexpr int kJobsInPeace = 4;
constexpr int kLimit = 6;  // GPUs of project `limited`
constexpr Duration kLookEvery = milliseconds(100);
constexpr Duration kAskAgain = seconds(1);
constexpr Duration kPeaceMax = minutes(60);
constexpr Duration kAllOverMax = minutes(5);  // from the end of the last job
constexpr std::string_view kMeddled = "sim.swell.dev/meddled";

SimOptions OptionsOf(uint64_t seed) {
  Random random(StableHash("shape", seed));
  SimOptions options;
  options.seed = seed;
  options.nodes = 2 + static_cast<int>(random.Below(3));
  options.gpus_per_node = kGpus;
  options.cpus = "16";
  options.replicas = 2;
  return options;
}

std::map<std::string, int> GpusOfNodes(const SimOptions& options) {
  std::map<std::string, int> gpus;
  for (int i = 1; i <= options.nodes; ++i) gpus[StrCat("node-", i)] = options.gpus_per_node;
  return gpus;
}

}  // namespace

// Something that somebody asks for until it is answered for good.
struct SimStory::Wish {
  enum class Verb { kCreate, kPatch, kDelete };
  Verb verb = Verb::kCreate;
  client::Resource resource;
  std::string ns, name;
  json::Value object;  // or the patch
  int members = 1;
  bool must_succeed = false;   // whatever is broken around it
  std::function<void()> then;  // once it is done

  std::string Key() const { return StrCat(resource.GroupResource(), " ", ns, "/", name); }
};

SimStory::SimStory(uint64_t seed)
    : seed_(seed),
      random_(StableHash("story", seed)),
      cluster_(OptionsOf(seed)),
      invariants_(cluster_.executor(), cluster_.history(), GpusOfNodes(cluster_.options())),
      books_(cluster_.history()),
      caches_(cluster_),
      people_(std::make_unique<client::Client>(
          cluster_.executor(), cluster_.network().Link("people"), SystemUser(), "people")),
      neighbour_(cluster_.executor(),
                 cluster_.network().Link("neighbour"),
                 GpusOfNodes(cluster_.options()),
                 StableHash("neighbour", seed)) {}

SimStory::~SimStory() {
  cluster_.network().on_ask = nullptr;
  look_timer_.Cancel();
}

void SimStory::Play() {
  Prepare();
  for (int step = 0; step < kSteps; ++step) Step();
  Peace();
  WorkInPeace();
  if (cluster_.RunUntil([this] { return AllOver(); }, kPeaceMax)) {
    CheckNothingRuns();
    CheckOneAfterTheOther();
  } else {
    cluster_.Advance(seconds(1));
  }
  CheckEnd();
}

bool SimStory::AllOver() const {
  return invariants_.OpenJobs().empty() &&
         std::all_of(watchers_.begin(), watchers_.end(),
                     [](const auto& watcher) { return watcher->current(); });
}

// Long after everything was mended, so that what is half done then is held against the cluster.
void SimStory::WorkInPeace() {
  cluster_.Advance(Invariants::kHalfPlacedMax);
  for (int i = 0; i < kJobsInPeace; ++i) {
    Submit();
    if (random_.OneIn(2)) SubmitToNeighbour();
    if (random_.OneIn(3)) DeletePodsForAWhile();
    cluster_.Advance(Between(Duration(0), seconds(20)));
  }
}

void SimStory::CheckNothingRuns() {
  auto still = [this] {
    std::vector<std::string> pods;
    for (const json::SharedValue& pod : cluster_.List("pods")) {
      if (!controllers::HasEnded(*pod)) pods.push_back(api::KeyOf(*pod));
    }
    for (size_t node = 0; node < cluster_.node_count(); ++node) {
      for (const node::ContainerSpec* container : cluster_.runtime(node).RunningForTest()) {
        pods.push_back(StrCat(container->ref.pod_uid, " on ", cluster_.NodeName(node)));
      }
    }
    return pods;
  };
  if (cluster_.RunUntil([&] { return still().empty(); }, kAllOverMax)) return;
  cluster_.history().Violation(
      StrCat("every job is over, and there still is ", Join(still(), ", ")));
}

bool SimStory::Comes(const std::string& what,
                     const std::function<bool()>& condition,
                     Duration limit) {
  if (cluster_.RunUntil(condition, limit)) return true;
  cluster_.history().Violation(StrCat("in calm it never comes that ", what));
  return false;
}

SimStory::WishPtr SimStory::Add(json::Value object, const client::Resource& resource) {
  auto wish = std::make_shared<Wish>();
  wish->resource = resource;
  wish->ns = api::Namespace(object);
  wish->name = api::Name(object);
  wish->object = std::move(object);
  Ask(wish);
  return wish;
}

int SimStory::Running(const std::string& job) const {
  int running = 0;
  for (const json::SharedValue& pod : cluster_.List("pods")) {
    const auto owner = api::ControllerOf(*pod);
    running += owner && owner->name == job && controllers::Phase(*pod) == "Running" &&
               !api::IsDeleting(*pod);
  }
  return running;
}

// What is decided meanwhile is asked for and lost, or made and not answered.
void SimStory::LoseMessagesForAWhile() {
  Tell("messages are lost and late, for 5 s");
  invariants_.Disturbed();
  cluster_.network().weather = {.lost_percent = 10, .late_percent = 30};
  cluster_.executor().After(seconds(5), [this] { cluster_.network().weather = {}; });
}

// Nothing of what went wrong holds room for ever, or keeps a node away from others: one job gets
// the whole cluster. What is done to it then has the outcome that it should.
void SimStory::CheckOneAfterTheOther() {
  const auto nodes = static_cast<int>(cluster_.node_count());
  const JobShape all{"default", "whole", nodes, {kGpus, 200, 1, 0, "low"}};
  const bool fails = random_.OneIn(3);
  const bool elastic = !fails && random_.OneIn(2);
  const WishPtr whole = elastic ? Add(TrainingJob(all), client::resources::kTrainingJobs)
                                : Add(PyTorchJob(all, "OnFailure", fails ? "Fail" : "Requeue"),
                                      client::resources::kPyTorchJobs);
  auto runs = [this, nodes] { return Running("whole") == nodes; };
  auto suspend = [this, &whole](bool value) {
    Ask(PatchOf(*whole, {{"runPolicy", json::Object{{"suspend", value}}}}));
  };
  if (!Comes("one job gets the whole cluster", runs)) return;
  if (!elastic) {
    suspend(true);
    if (!Comes("a suspended job stops", [this] { return Running("whole") == 0; })) return;
    suspend(false);
    if (!Comes("a resumed job runs", runs)) return;
  }
  for (const std::string name : {"urgent-1", "urgent-2"}) {
    if (random_.OneIn(2)) LoseMessagesForAWhile();
    Add(PyTorchJob({"default", name, 1, {1, 5, 0, 0, "high"}}, "Never", "Requeue"),
        client::resources::kPyTorchJobs);
    if (!Comes("an urgent job runs", [&] { return Running(name) == 1; })) return;
    const int stay = Running("whole");
    if (elastic && stay != nodes - 1) {
      cluster_.history().Violation(
          StrCat("an elastic job gave one place of ", nodes, ", and has ", stay));
    }
    if (fails) break;
    if (!Comes("a preempted job runs again", runs)) return;
  }
  auto over = [this] { return AllOver(); };
  if (!Comes("all of this is over", over, minutes(10))) return;
  CheckOutcome(*whole, fails ? "Failed" : "Succeeded", fails || elastic ? 0 : 2);
}

void SimStory::CheckOutcome(const Wish& job, const std::string& end, int64_t preemptions) {
  const json::SharedValue object = cluster_.Get(job.resource.GroupResource(), job.ns, job.name);
  const int64_t told = object ? json::GetInt(*object, {"status", "preemptions"}) : -1;
  if (object && api::ConditionIsTrue(*object, end) && told == preemptions) return;
  cluster_.history().Violation(StrCat(job.Key(), " is to be ", end, " after ", preemptions,
                                      " preemptions, and is ",
                                      object ? json::Print(*object) : "gone"));
}

void SimStory::Prepare() {
  cluster_.Boot();
  cluster_.history().OnChange([this](const store::Change& change) {
    TellOfPod(change);
    Meddle(change);
    DeletePod(change);
  });
  cluster_.network().on_ask = [this](const std::string& process, const api::RestRequest& request) {
    CheckAsked(process, request);
  };
  cluster_.on_server_start = [this] {
    for (auto& watcher : watchers_) watcher->OnServerStart();
  };
  // Below 100: what has more than that is not preemptible, and must fit into its project's quota.
  for (auto [name, value] : {std::pair{"high", 90}, std::pair{"low", 10}}) {
    Must(StrCat(R"({"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass",)",
                R"("metadata":{"name":")", name, R"("},"value":)", value, "}"));
  }
  for (auto [name, amounts] : {std::pair{"limited", StrCat(R"("quota":2,"limit":)", kLimit)},
                               std::pair{"owner", std::string(R"("quota":4)")}}) {
    Must(StrCat(R"({"apiVersion":"swell.dev/v1","kind":"Project","metadata":{"name":")", name,
                R"("},"spec":{"resources":{"gpu":{)", amounts, "}}}}"));
  }
  invariants_.LimitProject("limited", kLimit);
  for (const client::Resource& resource :
       {client::resources::kPods, client::resources::kPyTorchJobs, client::resources::kPodGroups,
        client::resources::kLeases}) {
    Watch(resource);
  }
  neighbour_.Start();
  cluster_.Advance(seconds(5));
  Look();
}

void SimStory::Must(const std::string& object) {
  const Status made = cluster_.Apply(object);
  if (!made.ok()) cluster_.history().Violation(StrCat(object, ": ", made.ToString()));
}

void SimStory::Watch(const client::Resource& resource) {
  const std::string process = StrCat("watcher-", watchers_.size());
  watchers_.push_back(std::make_unique<SimWatcher>(
      cluster_.executor(), cluster_.network().Link(process), SystemUser(), resource,
      cluster_.history(), StableHash(process, seed_)));
  watchers_.back()->Start();
}

void SimStory::Step() {
  if (random_.Below(10) < 5 && submitted_ < kJobsMax) Submit();
  if (random_.OneIn(12)) DeleteSomething();
  if (random_.OneIn(8)) ResizeSomething();
  if (random_.OneIn(12)) SuspendSomething();
  if (random_.OneIn(4) && submitted_to_neighbour_ < kNeighboursMax) SubmitToNeighbour();
  if (random_.Below(10) < 6) Break();
  // In the middle of a write, of a start, of a run.
  const Duration most[] = {milliseconds(5), milliseconds(500), seconds(20)};
  cluster_.Advance(Between(Duration(0), most[random_.Below(3)]));
}

void SimStory::Submit() {
  static constexpr const char* kNamespaces[] = {"default", "limited", "owner"};
  auto wish = std::make_shared<Wish>();
  wish->name = StrCat("job-", ++submitted_);
  wish->ns = kNamespaces[random_.Below(3)];
  wish->members = 1 + static_cast<int>(random_.Below(4));
  JobShape job{wish->ns, wish->name, wish->members, {}};
  // Four members fit into the limit.
  job.pod.gpus = wish->ns == "limited" ? 1 : 1 + static_cast<int>(random_.Below(2));
  job.pod.run_s = random_.OneIn(6) ? 200 + random_.Below(200) : 5 + random_.Below(60);
  job.pod.stop_s = random_.Below(random_.OneIn(4) ? 25 : 4);
  const uint64_t kind = random_.Below(6);
  if (kind > 0) job.pod.priority = random_.OneIn(3) ? "high" : random_.OneIn(2) ? "low" : "";
  if (kind == 0) {
    job.pod.gpus = 1;
    wish->must_succeed = peace_;
    wish->resource = client::resources::kTrainingJobs;
    wish->object = TrainingJob(job);
  } else if (kind == 1) {
    --job.pod.gpus;  // it may fail: pods that people delete count against it
    wish->resource = client::resources::kJobs;
    wish->object = BatchJob(job);
  } else {
    job.pod.code = random_.OneIn(8) ? 1 : 0;
    const bool restarts = job.pod.code == 0 && random_.OneIn(2);
    const bool requeues = !random_.OneIn(4);
    // One whose members are not restarted fails when their machine does.
    wish->must_succeed = job.pod.code == 0 && requeues && (peace_ || restarts);
    wish->resource = client::resources::kPyTorchJobs;
    wish->object = PyTorchJob(job, restarts ? "OnFailure" : "Never", requeues ? "Requeue" : "Fail");
  }
  Tell(StrCat("people submit ", wish->Key(), ", ", job.members, " x ", job.pod.gpus, " GPUs for ",
              job.pod.run_s, " s ", job.pod.priority));
  Ask(wish);
}

void SimStory::SubmitToNeighbour() {
  const std::string name = StrCat("neighbour-", ++submitted_to_neighbour_);
  const int gpus = 1 + static_cast<int>(random_.Below(3));
  Tell(StrCat("somebody asks another scheduler for ", name, ", ", gpus, " GPUs"));
  neighbour_.Submit(name, gpus, 5 + random_.Below(60));
}

SimStory::WishPtr SimStory::SomeJob(const client::Resource& resource) {
  std::vector<WishPtr> those;
  for (const WishPtr& job : jobs_) {
    if (job->resource == resource && acknowledged_.contains(job->Key())) those.push_back(job);
  }
  return those.empty() ? nullptr : those[random_.Below(those.size())];
}

SimStory::WishPtr SimStory::PatchOf(const Wish& job, json::Object spec) {
  auto wish = std::make_shared<Wish>(job);
  wish->verb = Wish::Verb::kPatch;
  wish->object = json::Object{{"spec", std::move(spec)}};
  return wish;
}

void SimStory::ResizeSomething() {
  const WishPtr job = SomeJob(client::resources::kTrainingJobs);
  if (!job) return;
  const int members = 1 + static_cast<int>(random_.Below(static_cast<uint64_t>(job->members)));
  Tell(StrCat("people want ", members, " members of ", job->Key()));
  const json::Object worker{{"replicas", members}};
  Ask(PatchOf(*job, {{"roles", json::Object{{"worker", worker}}}}));
}

void SimStory::SuspendSomething() {
  const WishPtr job = SomeJob(client::resources::kPyTorchJobs);
  if (!job) return;
  auto to = [&job](bool suspend) {
    return PatchOf(*job, {{"runPolicy", json::Object{{"suspend", suspend}}}});
  };
  const WishPtr suspend = to(true);
  const WishPtr resume = to(false);
  suspended_.push_back(resume);
  const Duration span = Between(milliseconds(1), seconds(40));
  suspend->then = [this, span, resume] {
    cluster_.executor().After(span, [this, resume] {
      Tell(StrCat("people resume ", resume->Key()));
      if (people_) Ask(resume);
    });
  };
  Tell(StrCat("people suspend ", job->Key()));
  Ask(suspend);
}

void SimStory::DeleteSomething() {
  if (jobs_.empty()) return;
  auto wish = std::make_shared<Wish>(*jobs_[random_.Below(jobs_.size())]);
  wish->verb = Wish::Verb::kDelete;
  acknowledged_.erase(wish->Key());
  Tell(StrCat("people delete ", wish->Key()));
  Ask(wish);
}

void SimStory::Ask(const WishPtr& wish) {
  auto answer = [this, wish](const Result<json::SharedValue>& result) {
    OnAnswer(wish, result.ok() ? Status::Ok() : result.status());
  };
  switch (wish->verb) {
    case Wish::Verb::kCreate:
      return people_->Create(wish->resource, wish->ns, wish->object, answer);
    case Wish::Verb::kPatch:
      return people_->Patch(wish->resource, wish->ns, wish->name, client::PatchType::kMerge,
                            wish->object, answer);
    case Wish::Verb::kDelete:
      return people_->Delete(wish->resource, wish->ns, wish->name, {.propagation = "Background"},
                             answer);
  }
}

void SimStory::OnAnswer(const WishPtr& wish, const Status& status) {
  const Code code = status.code();
  const bool creates = wish->verb == Wish::Verb::kCreate;
  const bool done = status.ok() || code == (creates ? Code::kAlreadyExists : Code::kNotFound);
  if (done && creates) {
    acknowledged_.insert(wish->Key());
    jobs_.push_back(wish);
  }
  if (done && wish->then) wish->then();
  if (done) return;
  // A project's namespace is made by controllers, which may be away; the others are a server's
  // that is busy, starting, or gone.
  const bool later = code == Code::kUnavailable || code == Code::kTimeout ||
                     code == Code::kTooManyRequests || code == Code::kInternal ||
                     code == Code::kNoSpace || code == Code::kNotFound || code == Code::kConflict;
  if (!later) cluster_.history().Violation(StrCat(wish->Key(), ": ", status.ToString()));
  cluster_.executor().After(kAskAgain, [this, wish] {
    if (people_) Ask(wish);
  });
}

void SimStory::Break() {
  invariants_.Disturbed();
  const uint64_t dice = random_.Below(29);
  if (dice >= 27) return ForgetNode();
  if (dice >= 25) return DeletePodsForAWhile();
  if (dice >= 21) return BreakWatches();
  if (dice == 20) return MeddleForAWhile();
  if (dice < 4) return BreakServer();
  if (dice < 8) return BreakReplica();
  if (dice < 11) return BreakNode();
  if (dice < 15) return BreakWay();
  if (dice < 17) return BreakDisk();
  if (dice < 18) return BreakClock();
  ChangeWeather();
}

void SimStory::BreakServer() {
  if (!cluster_.server_up()) return;
  const bool silent = random_.OneIn(3);
  const Duration down = Between(milliseconds(20), random_.OneIn(3) ? seconds(30) : seconds(2));
  Tell(StrCat("the API server dies", silent ? " silently" : "", " for ", down / milliseconds(1),
              " ms"));
  cluster_.KillServer(silent);
  cluster_.executor().After(down, [this] {
    if (!cluster_.server_up()) cluster_.StartServer();
  });
}

void SimStory::BreakReplica() {
  const size_t index = random_.Below(2);
  KillReplica(index, Between(milliseconds(1), random_.OneIn(2) ? seconds(20) : seconds(1)));
}

void SimStory::KillReplica(size_t index, Duration down) {
  if (cluster_.replica(index) == nullptr) return;
  Tell(StrCat(SimCluster::ReplicaName(index),
              cluster_.replica(index)->leading() ? ", which leads," : "", " dies for ",
              down / milliseconds(1), " ms"));
  cluster_.KillReplica(index);
  cluster_.executor().After(down, [this, index] {
    if (cluster_.replica(index) == nullptr) cluster_.StartReplica(index);
  });
}

void SimStory::BreakNode() {
  const size_t index = random_.Below(cluster_.node_count());
  if (cluster_.agent(index) == nullptr) return;
  const bool machine = random_.OneIn(3);
  const Duration down = Between(milliseconds(1), random_.OneIn(3) ? seconds(120) : seconds(10));
  Tell(StrCat(machine ? "the machine " : "the agent of ", cluster_.NodeName(index), " dies for ",
              down / milliseconds(1), " ms"));
  cluster_.KillAgent(index, machine);
  cluster_.executor().After(down, [this, index] {
    if (cluster_.agent(index) == nullptr) cluster_.StartAgent(index);
  });
}

// Somebody takes it out of the cluster; its agent, when it is there, makes it anew, and so may
// another machine that is given its name.
void SimStory::ForgetNode() {
  const std::string& name = cluster_.NodeName(random_.Below(cluster_.node_count()));
  Tell(StrCat("somebody deletes node ", name));
  people_->Delete(client::resources::kNodes, "", name, {}, {});
}

void SimStory::BreakWay() {
  const uint64_t dice = random_.Below(4);
  std::string process = dice < 2    ? SimCluster::ReplicaName(dice)
                        : dice == 2 ? cluster_.NodeName(random_.Below(cluster_.node_count()))
                                    : StrCat("watcher-", random_.Below(watchers_.size()));
  if (cluster_.network().IsCut(process)) return;
  const bool silent = random_.OneIn(2);
  const Duration down = Between(milliseconds(100), random_.OneIn(3) ? seconds(90) : seconds(8));
  Tell(StrCat("the way of ", process, " is cut", silent ? " silently" : "", " for ",
              down / milliseconds(1), " ms"));
  cluster_.network().Cut(process, silent);
  cluster_.executor().After(down, [this, process] { cluster_.network().Mend(process); });
}

void SimStory::BreakWatches() {
  const Duration lag = Between(milliseconds(100), seconds(40));
  const Duration span = Between(seconds(1), seconds(60));
  auto let = [this, lag, span](const std::string& process) {
    Tell(StrCat("the watches of ", process, " are up to ", lag / milliseconds(1), " ms behind for ",
                span / milliseconds(1), " ms"));
    cluster_.network().Lag(process, lag);
    cluster_.executor().After(span, [this, process] { cluster_.network().Lag(process, {}); });
  };
  const uint64_t dice = random_.Below(8);
  if (dice == 0) return let(cluster_.NodeName(random_.Below(cluster_.node_count())));
  if (dice < 3) return let(SimCluster::ReplicaName(dice - 1));
  // Being behind is worst for who is to lead next.
  const auto leads = [this](size_t i) {
    return cluster_.replica(i) && cluster_.replica(i)->leading();
  };
  const size_t leader = leads(0) ? 0 : 1;
  let(SimCluster::ReplicaName(1 - leader));
  cluster_.executor().After(Between(seconds(0), seconds(20)), [this, leader] {
    if (!peace_) KillReplica(leader, seconds(10));
  });
}

void SimStory::BreakDisk() {
  if (random_.OneIn(2)) {
    cluster_.disk().failing_commits = 1 + random_.Below(20);
    Tell(StrCat("the disk is full for ", cluster_.disk().failing_commits, " commits"));
    return;
  }
  cluster_.disk().commit_delay =
      Between(Duration(0), random_.OneIn(3) ? seconds(3) : milliseconds(100));
  Tell(StrCat("a commit takes ", cluster_.disk().commit_delay / milliseconds(1), " ms"));
}

void SimStory::BreakClock() {
  const uint64_t dice = random_.Below(4);
  const std::string process = dice == 0   ? "server"
                              : dice == 3 ? cluster_.NodeName(random_.Below(cluster_.node_count()))
                                          : SimCluster::ReplicaName(dice - 1);
  const Duration jump = Between(-minutes(10), minutes(10));
  Tell(StrCat("the clock of ", process, " is wrong by ", jump / milliseconds(1), " ms"));
  cluster_.clock(process).skew = jump;
}

void SimStory::ChangeWeather() {
  Weather& weather = cluster_.network().weather;
  const uint64_t dice = random_.Below(4);
  weather = {};
  if (dice == 1) weather.delay_max = milliseconds(50);
  if (dice == 2) weather.delay_max = milliseconds(800);
  if (dice >= 2) weather.lost_percent = random_.Below(8);
  if (random_.OneIn(2)) weather.mute_percent = random_.Below(8);
  if (random_.OneIn(2)) weather.late_percent = random_.Below(random_.OneIn(3) ? 50 : 8);
  if (random_.OneIn(2)) weather.twice_percent = random_.Below(8);
  Tell(StrCat("messages take up to ", weather.delay_max / milliseconds(1), " ms, ",
              weather.lost_percent, "% are lost, ", weather.mute_percent, "% without a word, ",
              weather.late_percent, "% late, ", weather.twice_percent, "% sent twice"));
}

void SimStory::MeddleForAWhile() {
  const Duration span = Between(seconds(1), seconds(30));
  Tell(StrCat("somebody writes what others write, for ", span / milliseconds(1), " ms"));
  meddles_until_ = cluster_.executor().Steady() + span;
}

// A process that writes an object twice meets another write in between: a conflict, if its write
// names the version it knows.
void SimStory::Meddle(const store::Change& change) {
  static const client::Resource* const kResources[] = {
      &client::resources::kPods,         &client::resources::kPodGroups,
      &client::resources::kPyTorchJobs,  &client::resources::kJobs,
      &client::resources::kTrainingJobs, &client::resources::kLeases,
      &client::resources::kNodes};
  const store::Key& key = change.entry->key;
  if (cluster_.executor().Steady() >= meddles_until_) return;
  if (change.type == store::EventType::kDeleted) return;
  const auto resource = std::find_if(
      std::begin(kResources), std::end(kResources),
      [&key](const client::Resource* one) { return one->GroupResource() == key.resource; });
  if (resource == std::end(kResources)) return;
  // Not after its own.
  const std::string says(api::Annotation(*change.entry->Parsed(), kMeddled));
  std::string& said = meddled_with_[StrCat(key.resource, " ", key.ns, "/", key.name)];
  if (std::exchange(said, says) != says) return;
  const json::Value patch = json::Object{
      {"metadata", json::Object{{"annotations", json::Object{{kMeddled, StrCat(++meddled_)}}}}}};
  people_->Patch(**resource, key.ns, key.name, client::PatchType::kMerge, patch, {});
}

void SimStory::DeletePodsForAWhile() {
  const Duration span = Between(seconds(1), seconds(20));
  Tell(StrCat("somebody deletes pods that have just come or changed, for ", span / milliseconds(1),
              " ms"));
  deletes_until_ = cluster_.executor().Steady() + span;
}

// While they wait, while their binding is under way, while they start and run.
void SimStory::DeletePod(const store::Change& change) {
  const store::Key& key = change.entry->key;
  if (cluster_.executor().Steady() >= deletes_until_ || key.resource != "pods") return;
  if (change.type == store::EventType::kDeleted || !random_.OneIn(6)) return;
  const json::SharedValue pod = change.entry->Parsed();
  if (api::IsDeleting(*pod)) return;
  ++deleted_;
  people_->Delete(
      client::resources::kPods, key.ns, key.name,
      {.grace_seconds = random_.OneIn(3) ? 0 : -1, .precondition_uid = std::string(api::Uid(*pod))},
      {});
}

void SimStory::Peace() {
  Tell("peace");
  peace_ = true;
  invariants_.Disturbed();
  meddles_until_ = deletes_until_ = {};
  cluster_.network().weather = {};
  cluster_.disk().commit_delay = cluster_.options().commit_delay;
  cluster_.disk().failing_commits = 0;
  if (!cluster_.server_up()) cluster_.StartServer();
  for (size_t i = 0; i < cluster_.node_count(); ++i) {
    cluster_.network().Mend(cluster_.NodeName(i));
    cluster_.network().Lag(cluster_.NodeName(i), {});
    if (cluster_.agent(i) == nullptr) cluster_.StartAgent(i);
  }
  for (size_t i = 0; i < 2; ++i) {
    cluster_.network().Mend(SimCluster::ReplicaName(i));
    cluster_.network().Lag(SimCluster::ReplicaName(i), {});
    if (cluster_.replica(i) == nullptr) cluster_.StartReplica(i);
  }
  for (size_t i = 0; i < watchers_.size(); ++i) cluster_.network().Mend(StrCat("watcher-", i));
  // What people still ask for is answered, and becomes a job.
  cluster_.Advance(minutes(2));
  // What they had asked for before may have come after what they asked for last.
  for (const WishPtr& resume : suspended_) Ask(resume);
}

// A replica that does not lead writes nothing but Leases and events, whatever it had still to say.
void SimStory::CheckAsked(const std::string& process, const api::RestRequest& request) {
  if (request.method == "GET" || request.path.find("/leases") != std::string::npos ||
      request.path.find("/events") != std::string::npos) {
    return;
  }
  for (size_t i = 0; i < 2; ++i) {
    if (process != SimCluster::ReplicaName(i)) continue;
    if (cluster_.replica(i) != nullptr && cluster_.replica(i)->leading()) return;
    cluster_.history().Violation(StrCat(process, " does not lead, and asks for ", request.method,
                                        " ", request.path, " ", request.body));
  }
}

void SimStory::Look() {
  std::vector<std::string> leaders;
  for (size_t i = 0; i < 2; ++i) {
    const controllers::Replica* replica = cluster_.replica(i);
    if (replica != nullptr && replica->leading()) leaders.push_back(SimCluster::ReplicaName(i));
  }
  if (leaders.size() > 1) cluster_.history().Violation("two replicas lead");
  const std::string leader = leaders.empty() ? "nobody" : leaders.front();
  if (std::exchange(leader_told_, leader) != leader) Tell(StrCat(leader, " leads"));
  LookAtDevices();
  invariants_.Look();
  if (invariants_.CalmFor() > Invariants::kHalfPlacedMax) caches_.Look();
  look_timer_.Start(kLookEvery, [this] { Look(); });
}

// What really runs, whatever the API says.
void SimStory::LookAtDevices() {
  for (size_t node = 0; node < cluster_.node_count(); ++node) {
    std::map<std::string, std::string> users;
    for (const node::ContainerSpec* container : cluster_.runtime(node).RunningForTest()) {
      for (const auto& [name, value] : container->env) {
        if (name != "CUDA_VISIBLE_DEVICES") continue;
        for (std::string_view device : Split(value, ',')) {
          const std::string slot = StrCat(cluster_.NodeName(node), "/", device);
          auto [it, first] = users.emplace(slot, container->ref.pod_uid);
          if (first || doubly_used_.contains(slot)) continue;
          doubly_used_[slot] = it->second;
          cluster_.history().Violation(
              StrCat("device ", slot, " is used by ", it->second, " and ", container->ref.pod_uid));
        }
      }
    }
  }
}

void SimStory::CheckEnd() {
  invariants_.CheckEnd();
  for (const auto& watcher : watchers_) {
    if (!watcher->current()) cluster_.history().Violation(watcher->Summary());
  }
  for (const WishPtr& job : jobs_) {
    if (!acknowledged_.contains(job->Key())) continue;
    if (!cluster_.Get(job->resource.GroupResource(), job->ns, job->name)) {
      cluster_.history().Violation(StrCat(job->Key(), " was acknowledged, and is not there"));
    } else if (job->must_succeed && !invariants_.Succeeded(job->Key())) {
      cluster_.history().Violation(StrCat(job->Key(), " should have succeeded"));
    }
  }
  if (invariants_.OpenJobs().empty()) return;
  for (const json::SharedValue& pod : cluster_.List("pods")) {
    Tell(StrCat("left is ", json::Print(*pod)));
  }
}

void SimStory::Tell(const std::string& what) {
  told_.push_back(StrCat(cluster_.executor().Steady().ns / 1'000'000, " ms: ", what));
}

void SimStory::TellOfPod(const store::Change& change) {
  const store::Key& key = change.entry->key;
  if (key.resource != "pods") return;
  const json::SharedValue pod = change.entry->Parsed();
  std::string now = "is gone";
  if (change.type != store::EventType::kDeleted) {
    now = json::GetString(*pod, {"status", "phase"});
    const std::string_view node = json::GetString(*pod, {"spec", "nodeName"});
    if (!node.empty()) {
      now += StrCat(" on ", node, ", device ", api::Annotation(*pod, api::keys::kGpuDevices));
    }
    const std::string_view by = api::Annotation(*pod, api::keys::kPreemptedBy);
    if (!by.empty()) {
      now += StrCat(", preempted by ", by, " (", api::Annotation(*pod, api::keys::kPreemptedRule),
                    ")");
    }
    if (api::IsDeleting(*pod)) now += ", leaves";
  }
  const std::string name = StrCat("pod ", key.ns, "/", key.name, " ", api::Uid(*pod).substr(0, 4));
  std::string& before = pods_told_[name];
  if (std::exchange(before, now) != now) Tell(StrCat(name, " ", now));
}

Duration SimStory::Between(Duration least, Duration most) {
  return least + Duration(static_cast<int64_t>(
                     random_.Below(static_cast<uint64_t>((most - least).count()) + 1)));
}

size_t SimStory::watched() const {
  size_t events = 0;
  for (const auto& watcher : watchers_) events += watcher->events();
  return events;
}

std::string SimStory::Summary() {
  return StrCat(jobs(), " jobs, ", invariants_.bindings(), " bindings, ", invariants_.evictions(),
                " evictions, ", watched(), " events watched, ", meddled_, " writes and ", deleted_,
                " deletions by others, ", neighbour_.bindings(), " bindings by a neighbour, ",
                cluster_.history().conflicts(), " conflicts");
}

}  // namespace swell::sim
