#include "sim/chaos_scenario.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/pod_group.h"
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
constexpr int kForeignPodsMax = 10;
constexpr int kJobsAfterFaults = 4;
constexpr int kLimit = 6;  // GPUs of project `limited`
constexpr Duration kCheckEvery = milliseconds(100);
constexpr Duration kRetryAfter = seconds(1);
constexpr Duration kCalmMax = minutes(60);
constexpr Duration kAllEndedMax = minutes(5);  // from the end of the last job
constexpr std::string_view kConflictAnnotation = "sim.swell.dev/conflict";

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

// A request that is sent again until it is answered for good.
struct ChaosScenario::PendingRequest {
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

ChaosScenario::ChaosScenario(uint64_t seed)
    : seed_(seed),
      random_(StableHash("story", seed)),
      cluster_(OptionsOf(seed)),
      invariants_(cluster_.executor(), cluster_.history(), GpusOfNodes(cluster_.options())),
      job_counts_(cluster_.history()),
      caches_(cluster_),
      client_(std::make_unique<client::Client>(
          cluster_.executor(), cluster_.network().Link("users"), SystemUser(), "users")),
      foreign_(cluster_.executor(),
               cluster_.network().Link("neighbour"),
               GpusOfNodes(cluster_.options()),
               StableHash("neighbour", seed)),
      reports_(cluster_.executor(), cluster_.network().Link("scripts")) {}

ChaosScenario::~ChaosScenario() {
  cluster_.network().on_ask = nullptr;
  check_timer_.Cancel();
}

void ChaosScenario::Play() {
  Prepare();
  for (int step = 0; step < kSteps; ++step) Step();
  StopFaults();
  SubmitAfterFaults();
  if (cluster_.RunUntil([this] { return AllEnded(); }, kCalmMax)) {
    CheckNothingRuns();
    CheckWholeClusterJob();
  } else {
    cluster_.Advance(seconds(1));
  }
  CheckEnd();
}

bool ChaosScenario::AllEnded() const {
  return invariants_.OpenJobs().empty() &&
         std::all_of(watchers_.begin(), watchers_.end(),
                     [](const auto& watcher) { return watcher->current(); });
}

// Long after everything was mended, so that what is half done then is held against the cluster.
void ChaosScenario::SubmitAfterFaults() {
  cluster_.Advance(Invariants::kHalfPlacedMax);
  for (int i = 0; i < kJobsAfterFaults; ++i) {
    Submit();
    if (random_.OneIn(2)) SubmitToForeignScheduler();
    if (random_.OneIn(3)) DeletePods();
    cluster_.Advance(RandomDuration(Duration(0), seconds(20)));
  }
}

void ChaosScenario::CheckNothingRuns() {
  auto still = [this] {
    std::vector<std::string> pods;
    for (const json::SharedValue& pod : cluster_.List("pods")) {
      if (!api::HasEnded(*pod)) pods.push_back(api::KeyOf(*pod));
    }
    for (size_t node = 0; node < cluster_.node_count(); ++node) {
      for (const node::ContainerSpec* container : cluster_.runtime(node).RunningForTest()) {
        pods.push_back(StrCat(container->ref.pod_uid, " on ", cluster_.NodeName(node)));
      }
    }
    return pods;
  };
  if (cluster_.RunUntil([&] { return still().empty(); }, kAllEndedMax)) return;
  cluster_.history().Violation(
      StrCat("every job is over, and there still is ", Join(still(), ", ")));
}

bool ChaosScenario::Eventually(const std::string& what,
                               const std::function<bool()>& condition,
                               Duration limit) {
  if (cluster_.RunUntil(condition, limit)) return true;
  cluster_.history().Violation(StrCat("without faults this never happened: ", what));
  return false;
}

ChaosScenario::RequestPtr ChaosScenario::Add(json::Value object, const client::Resource& resource) {
  auto request = std::make_shared<PendingRequest>();
  request->resource = resource;
  request->ns = api::Namespace(object);
  request->name = api::Name(object);
  request->object = std::move(object);
  Send(request);
  return request;
}

int ChaosScenario::CountMembers(const std::string& job,
                                const std::function<bool(const json::Value&)>& matches) const {
  int members = 0;
  for (const json::SharedValue& pod : cluster_.List("pods")) {
    const auto owner = api::ControllerOf(*pod);
    members += owner && owner->name == job && !api::IsDeleting(*pod) && matches(*pod);
  }
  return members;
}

int ChaosScenario::Running(const std::string& job) const {
  return CountMembers(job, [](const json::Value& pod) { return api::Phase(pod) == "Running"; });
}

int ChaosScenario::Bound(const std::string& job) const {
  return CountMembers(
      job, [](const json::Value& pod) { return api::IsBound(pod) && !api::HasEnded(pod); });
}

// What is decided meanwhile is asked for and lost, or made and not answered.
void ChaosScenario::LoseMessages() {
  Log("messages are lost and late, for 5 s");
  invariants_.Disturbed();
  cluster_.network().faults = {.lost_percent = 10, .late_percent = 30};
  cluster_.executor().After(seconds(5), [this] { cluster_.network().faults = {}; });
}

// Nothing of what went wrong holds room for ever, or keeps a node away from others: one job gets
// the whole cluster. What is done to it then has the outcome that it should.
void ChaosScenario::CheckWholeClusterJob() {
  const auto nodes = static_cast<int>(cluster_.node_count());
  const JobShape all{"default", "whole", nodes, {kGpus, 200, 1, 0, "low"}};
  const bool fails = random_.OneIn(3);
  const bool elastic = !fails && random_.OneIn(2);
  const RequestPtr whole = elastic ? Add(TrainingJob(all), client::resources::kTrainingJobs)
                                   : Add(PyTorchJob(all, "OnFailure", fails ? "Fail" : "Requeue"),
                                         client::resources::kPyTorchJobs);
  auto runs = [this, nodes] { return Running("whole") == nodes; };
  auto suspend = [this, &whole](bool value) {
    Send(PatchOf(*whole, {{"runPolicy", json::Object{{"suspend", value}}}}));
  };
  if (!Eventually("one job gets the whole cluster", runs)) return;
  if (!elastic) {
    suspend(true);
    if (!Eventually("a suspended job stops", [this] { return Running("whole") == 0; })) return;
    suspend(false);
    if (!Eventually("a resumed job runs", runs)) return;
  }
  for (const std::string name : {"urgent-1", "urgent-2"}) {
    if (random_.OneIn(2)) LoseMessages();
    // It runs for longer than messages are lost: else its end may be the first that is heard of it.
    Add(PyTorchJob({"default", name, 1, {1, 30, 0, 0, "high"}}, "Never", "Requeue"),
        client::resources::kPyTorchJobs);
    if (!Eventually("an urgent job runs", [&] { return Running(name) == 1; })) return;
    const int stay = Running("whole");
    if (elastic && stay != nodes - 1) {
      cluster_.history().Violation(
          StrCat("an elastic job gave one place of ", nodes, ", and has ", stay));
    }
    if (fails) break;
    // The next urgent job may come before the members have started.
    const bool early = random_.OneIn(2);
    auto again = [&] { return (early ? Bound("whole") : Running("whole")) == nodes; };
    if (!Eventually("a preempted job gets its places again", again)) return;
  }
  auto over = [this] { return AllEnded(); };
  if (!Eventually("all of this is over", over, minutes(10))) return;
  CheckOutcome(*whole, fails ? "Failed" : "Succeeded", fails || elastic ? 0 : 2);
}

void ChaosScenario::CheckOutcome(const PendingRequest& job,
                                 const std::string& end,
                                 int64_t preemptions) {
  const json::SharedValue object = cluster_.Get(job.resource.GroupResource(), job.ns, job.name);
  const int64_t told = object ? api::PreemptionCount(*object) : -1;
  if (object && api::ConditionIsTrue(*object, end) && told == preemptions) return;
  cluster_.history().Violation(StrCat(job.Key(), " is to be ", end, " after ", preemptions,
                                      " preemptions, and is ",
                                      object ? json::Print(*object) : "gone"));
}

void ChaosScenario::Prepare() {
  cluster_.Boot();
  cluster_.history().OnChange([this](const store::Change& change) {
    LogPod(change);
    InjectConflict(change);
    DeletePod(change);
  });
  cluster_.network().on_ask = [this](const std::string& process, const api::RestRequest& request) {
    CheckRequest(process, request);
  };
  cluster_.on_server_start = [this] {
    for (auto& watcher : watchers_) watcher->OnServerStart();
  };
  // Below 100: what has more than that is not preemptible, and must fit into its project's quota.
  for (auto [name, value] : {std::pair{"high", 90}, std::pair{"low", 10}}) {
    Create(StrCat(R"({"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass",)",
                  R"("metadata":{"name":")", name, R"("},"value":)", value, "}"));
  }
  for (auto [name, amounts] : {std::pair{"limited", StrCat(R"("quota":2,"limit":)", kLimit)},
                               std::pair{"owner", std::string(R"("quota":4)")}}) {
    Create(StrCat(R"({"apiVersion":"swell.dev/v1","kind":"Project","metadata":{"name":")", name,
                  R"("},"spec":{"resources":{"gpu":{)", amounts, "}}}}"));
  }
  invariants_.LimitProject("limited", kLimit);
  for (const client::Resource& resource :
       {client::resources::kPods, client::resources::kPyTorchJobs, client::resources::kPodGroups,
        client::resources::kLeases}) {
    Watch(resource);
  }
  foreign_.Start();
  reports_.Start();
  cluster_.Advance(seconds(5));
  Check();
}

void ChaosScenario::Create(const std::string& object) {
  const Status made = cluster_.Apply(object);
  if (!made.ok()) cluster_.history().Violation(StrCat(object, ": ", made.ToString()));
}

void ChaosScenario::Watch(const client::Resource& resource) {
  const std::string process = StrCat("watcher-", watchers_.size());
  watchers_.push_back(std::make_unique<SimWatcher>(
      cluster_.executor(), cluster_.network().Link(process), SystemUser(), resource,
      cluster_.history(), StableHash(process, seed_)));
  watchers_.back()->Start();
}

void ChaosScenario::Step() {
  if (random_.Below(10) < 5 && submitted_ < kJobsMax) Submit();
  if (random_.OneIn(12)) DeleteRandomJob();
  if (random_.OneIn(8)) ResizeRandomJob();
  if (random_.OneIn(12)) SuspendRandomJob();
  if (random_.OneIn(4) && submitted_to_foreign_ < kForeignPodsMax) SubmitToForeignScheduler();
  if (random_.Below(10) < 6) Break();
  // In the middle of a write, of a start, of a run.
  const Duration most[] = {milliseconds(5), milliseconds(500), seconds(20)};
  cluster_.Advance(RandomDuration(Duration(0), most[random_.Below(3)]));
}

void ChaosScenario::Submit() {
  static constexpr const char* kNamespaces[] = {"default", "limited", "owner"};
  auto request = std::make_shared<PendingRequest>();
  request->name = StrCat("job-", ++submitted_);
  request->ns = kNamespaces[random_.Below(3)];
  request->members = 1 + static_cast<int>(random_.Below(4));
  JobShape job{request->ns, request->name, request->members, {}};
  // Four members fit into the limit.
  job.pod.gpus = request->ns == "limited" ? 1 : 1 + static_cast<int>(random_.Below(2));
  job.pod.run_s = random_.OneIn(6) ? 200 + random_.Below(200) : 5 + random_.Below(60);
  job.pod.stop_s = random_.Below(random_.OneIn(4) ? 25 : 4);
  const uint64_t kind = random_.Below(6);
  if (kind > 0) job.pod.priority = random_.OneIn(3) ? "high" : random_.OneIn(2) ? "low" : "";
  if (kind == 0) {
    job.pod.gpus = 1;
    job.goodput = random_.OneIn(2);
    request->must_succeed = faults_stopped_;
    request->resource = client::resources::kTrainingJobs;
    request->object = TrainingJob(job);
  } else if (kind == 1) {
    --job.pod.gpus;  // it may fail: pods that people delete count against it
    request->resource = client::resources::kJobs;
    request->object = BatchJob(job);
  } else {
    job.pod.code = random_.OneIn(8) ? 1 : 0;
    const bool restarts = job.pod.code == 0 && random_.OneIn(2);
    const bool requeues = !random_.OneIn(4);
    // One whose members are not restarted fails when their machine does.
    request->must_succeed = job.pod.code == 0 && requeues && (faults_stopped_ || restarts);
    request->resource = client::resources::kPyTorchJobs;
    request->object =
        PyTorchJob(job, restarts ? "OnFailure" : "Never", requeues ? "Requeue" : "Fail");
  }
  Log(StrCat("users submit ", request->Key(), ", ", job.members, " x ", job.pod.gpus, " GPUs for ",
             job.pod.run_s, " s ", job.pod.priority));
  Send(request);
}

void ChaosScenario::SubmitToForeignScheduler() {
  const std::string name = StrCat("neighbour-", ++submitted_to_foreign_);
  const int gpus = 1 + static_cast<int>(random_.Below(3));
  Log(StrCat("somebody asks another scheduler for ", name, ", ", gpus, " GPUs"));
  foreign_.Submit(name, gpus, 5 + random_.Below(60));
}

ChaosScenario::RequestPtr ChaosScenario::RandomJob(const client::Resource& resource) {
  std::vector<RequestPtr> those;
  for (const RequestPtr& job : jobs_) {
    if (job->resource == resource && acknowledged_.contains(job->Key())) those.push_back(job);
  }
  return those.empty() ? nullptr : those[random_.Below(those.size())];
}

ChaosScenario::RequestPtr ChaosScenario::PatchOf(const PendingRequest& job, json::Object spec) {
  auto request = std::make_shared<PendingRequest>(job);
  request->verb = PendingRequest::Verb::kPatch;
  request->object = json::Object{{"spec", std::move(spec)}};
  return request;
}

void ChaosScenario::ResizeRandomJob() {
  const RequestPtr job = RandomJob(client::resources::kTrainingJobs);
  if (!job) return;
  const int members = 1 + static_cast<int>(random_.Below(static_cast<uint64_t>(job->members)));
  Log(StrCat("users want ", members, " members of ", job->Key()));
  const json::Object worker{{"replicas", members}};
  Send(PatchOf(*job, {{"roles", json::Object{{"worker", worker}}}}));
}

void ChaosScenario::SuspendRandomJob() {
  const RequestPtr job = RandomJob(client::resources::kPyTorchJobs);
  if (!job) return;
  auto to = [&job](bool suspend) {
    return PatchOf(*job, {{"runPolicy", json::Object{{"suspend", suspend}}}});
  };
  const RequestPtr suspend = to(true);
  const RequestPtr resume = to(false);
  suspended_.push_back(resume);
  const Duration span = RandomDuration(milliseconds(1), seconds(40));
  suspend->then = [this, span, resume] {
    cluster_.executor().After(span, [this, resume] {
      Log(StrCat("users resume ", resume->Key()));
      if (client_) Send(resume);
    });
  };
  Log(StrCat("users suspend ", job->Key()));
  Send(suspend);
}

void ChaosScenario::DeleteRandomJob() {
  if (jobs_.empty()) return;
  auto request = std::make_shared<PendingRequest>(*jobs_[random_.Below(jobs_.size())]);
  request->verb = PendingRequest::Verb::kDelete;
  acknowledged_.erase(request->Key());
  Log(StrCat("users delete ", request->Key()));
  Send(request);
}

void ChaosScenario::Send(const RequestPtr& request) {
  auto answer = [this, request](const Result<json::SharedValue>& result) {
    OnAnswer(request, result.ok() ? Status::Ok() : result.status());
  };
  switch (request->verb) {
    case PendingRequest::Verb::kCreate:
      return client_->Create(request->resource, request->ns, request->object, answer);
    case PendingRequest::Verb::kPatch:
      return client_->Patch(request->resource, request->ns, request->name,
                            client::PatchType::kMerge, request->object, answer);
    case PendingRequest::Verb::kDelete:
      return client_->Delete(request->resource, request->ns, request->name,
                             {.propagation = "Background"}, answer);
  }
}

void ChaosScenario::OnAnswer(const RequestPtr& request, const Status& status) {
  const Code code = status.code();
  const bool creates = request->verb == PendingRequest::Verb::kCreate;
  const bool done = status.ok() || code == (creates ? Code::kAlreadyExists : Code::kNotFound);
  if (done && creates) {
    acknowledged_.insert(request->Key());
    jobs_.push_back(request);
  }
  if (done && request->then) request->then();
  if (done) return;
  // A project's namespace is made by controllers, which may be away; the others are a server's
  // that is busy, starting, or gone.
  const bool later = code == Code::kUnavailable || code == Code::kTimeout ||
                     code == Code::kTooManyRequests || code == Code::kInternal ||
                     code == Code::kNoSpace || code == Code::kNotFound || code == Code::kConflict;
  if (!later) cluster_.history().Violation(StrCat(request->Key(), ": ", status.ToString()));
  cluster_.executor().After(kRetryAfter, [this, request] {
    if (client_) Send(request);
  });
}

void ChaosScenario::Break() {
  invariants_.Disturbed();
  const uint64_t dice = random_.Below(29);
  if (dice >= 27) return DeleteNode();
  if (dice >= 25) return DeletePods();
  if (dice >= 21) return BreakWatches();
  if (dice == 20) return InjectConflicts();
  if (dice < 4) return BreakServer();
  if (dice < 8) return BreakReplica();
  if (dice < 11) return BreakNode();
  if (dice < 15) return BreakLink();
  if (dice < 17) return BreakDisk();
  if (dice < 18) return BreakClock();
  ChangeNetworkFaults();
}

void ChaosScenario::BreakServer() {
  if (!cluster_.server_up()) return;
  const bool silent = random_.OneIn(3);
  const Duration down =
      RandomDuration(milliseconds(20), random_.OneIn(3) ? seconds(30) : seconds(2));
  Log(StrCat("the API server dies", silent ? " silently" : "", " for ", down / milliseconds(1),
             " ms"));
  cluster_.KillServer(silent);
  cluster_.executor().After(down, [this] {
    if (!cluster_.server_up()) cluster_.StartServer();
  });
}

void ChaosScenario::BreakReplica() {
  const size_t index = random_.Below(2);
  KillReplica(index, RandomDuration(milliseconds(1), random_.OneIn(2) ? seconds(20) : seconds(1)));
}

void ChaosScenario::KillReplica(size_t index, Duration down) {
  if (cluster_.replica(index) == nullptr) return;
  Log(StrCat(SimCluster::ReplicaName(index),
             cluster_.replica(index)->leading() ? ", which leads," : "", " dies for ",
             down / milliseconds(1), " ms"));
  cluster_.KillReplica(index);
  cluster_.executor().After(down, [this, index] {
    if (cluster_.replica(index) == nullptr) cluster_.StartReplica(index);
  });
}

void ChaosScenario::BreakNode() {
  const size_t index = random_.Below(cluster_.node_count());
  if (cluster_.agent(index) == nullptr) return;
  const bool machine = random_.OneIn(3);
  const Duration down =
      RandomDuration(milliseconds(1), random_.OneIn(3) ? seconds(120) : seconds(10));
  Log(StrCat(machine ? "the machine " : "the agent of ", cluster_.NodeName(index), " dies for ",
             down / milliseconds(1), " ms"));
  cluster_.KillAgent(index, machine);
  cluster_.executor().After(down, [this, index] {
    if (cluster_.agent(index) == nullptr) cluster_.StartAgent(index);
  });
}

// Somebody takes it out of the cluster; its agent, when it is there, makes it anew, and so may
// another machine that is given its name.
void ChaosScenario::DeleteNode() {
  const std::string& name = cluster_.NodeName(random_.Below(cluster_.node_count()));
  Log(StrCat("somebody deletes node ", name));
  client_->Delete(client::resources::kNodes, "", name, {}, {});
}

void ChaosScenario::BreakLink() {
  const uint64_t dice = random_.Below(4);
  std::string process = dice < 2    ? SimCluster::ReplicaName(dice)
                        : dice == 2 ? cluster_.NodeName(random_.Below(cluster_.node_count()))
                                    : StrCat("watcher-", random_.Below(watchers_.size()));
  if (cluster_.network().IsCut(process)) return;
  const bool silent = random_.OneIn(2);
  const Duration down =
      RandomDuration(milliseconds(100), random_.OneIn(3) ? seconds(90) : seconds(8));
  Log(StrCat("the link of ", process, " is cut", silent ? " silently" : "", " for ",
             down / milliseconds(1), " ms"));
  cluster_.network().Cut(process, silent);
  cluster_.executor().After(down, [this, process] { cluster_.network().Mend(process); });
}

void ChaosScenario::BreakWatches() {
  const Duration lag = RandomDuration(milliseconds(100), seconds(40));
  const Duration span = RandomDuration(seconds(1), seconds(60));
  auto let = [this, lag, span](const std::string& process) {
    Log(StrCat("the watches of ", process, " are up to ", lag / milliseconds(1), " ms behind for ",
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
  cluster_.executor().After(RandomDuration(seconds(0), seconds(20)), [this, leader] {
    if (!faults_stopped_) KillReplica(leader, seconds(10));
  });
}

void ChaosScenario::BreakDisk() {
  if (random_.OneIn(2)) {
    cluster_.disk().failing_commits = 1 + random_.Below(20);
    Log(StrCat("the disk is full for ", cluster_.disk().failing_commits, " commits"));
    return;
  }
  cluster_.disk().commit_delay =
      RandomDuration(Duration(0), random_.OneIn(3) ? seconds(3) : milliseconds(100));
  Log(StrCat("a commit takes ", cluster_.disk().commit_delay / milliseconds(1), " ms"));
}

void ChaosScenario::BreakClock() {
  const uint64_t dice = random_.Below(4);
  const std::string process = dice == 0   ? "server"
                              : dice == 3 ? cluster_.NodeName(random_.Below(cluster_.node_count()))
                                          : SimCluster::ReplicaName(dice - 1);
  const Duration jump = RandomDuration(-minutes(10), minutes(10));
  Log(StrCat("the clock of ", process, " is wrong by ", jump / milliseconds(1), " ms"));
  cluster_.clock(process).skew = jump;
}

void ChaosScenario::ChangeNetworkFaults() {
  NetworkFaults& faults = cluster_.network().faults;
  const uint64_t dice = random_.Below(4);
  faults = {};
  if (dice == 1) faults.delay_max = milliseconds(50);
  if (dice == 2) faults.delay_max = milliseconds(800);
  if (dice >= 2) faults.lost_percent = random_.Below(8);
  if (random_.OneIn(2)) faults.mute_percent = random_.Below(8);
  if (random_.OneIn(2)) faults.late_percent = random_.Below(random_.OneIn(3) ? 50 : 8);
  if (random_.OneIn(2)) faults.twice_percent = random_.Below(8);
  Log(StrCat("messages take up to ", faults.delay_max / milliseconds(1), " ms, ",
             faults.lost_percent, "% are lost, ", faults.mute_percent, "% without a word, ",
             faults.late_percent, "% late, ", faults.twice_percent, "% sent twice"));
}

void ChaosScenario::InjectConflicts() {
  const Duration span = RandomDuration(seconds(1), seconds(30));
  Log(StrCat("somebody writes what others write, for ", span / milliseconds(1), " ms"));
  conflicts_until_ = cluster_.executor().Steady() + span;
}

// A process that writes an object twice meets another write in between: a conflict, if its write
// names the version it knows.
void ChaosScenario::InjectConflict(const store::Change& change) {
  static const client::Resource* const kResources[] = {
      &client::resources::kPods,         &client::resources::kPodGroups,
      &client::resources::kPyTorchJobs,  &client::resources::kJobs,
      &client::resources::kTrainingJobs, &client::resources::kLeases,
      &client::resources::kNodes};
  const store::Key& key = change.entry->key;
  if (cluster_.executor().Steady() >= conflicts_until_) return;
  if (change.type == store::EventType::kDeleted) return;
  const auto resource = std::find_if(
      std::begin(kResources), std::end(kResources),
      [&key](const client::Resource* one) { return one->GroupResource() == key.resource; });
  if (resource == std::end(kResources)) return;
  // Not after its own.
  const std::string says(api::Annotation(*change.entry->Parsed(), kConflictAnnotation));
  std::string& said = conflict_marks_[StrCat(key.resource, " ", key.ns, "/", key.name)];
  if (std::exchange(said, says) != says) return;
  const json::Value patch = json::Object{
      {"metadata", json::Object{{"annotations", json::Object{{kConflictAnnotation,
                                                              StrCat(++conflicts_injected_)}}}}}};
  client_->Patch(**resource, key.ns, key.name, client::PatchType::kMerge, patch, {});
}

void ChaosScenario::DeletePods() {
  const Duration span = RandomDuration(seconds(1), seconds(20));
  Log(StrCat("somebody deletes pods that have just come or changed, for ", span / milliseconds(1),
             " ms"));
  deletes_until_ = cluster_.executor().Steady() + span;
}

// While they wait, while their binding is under way, while they start and run.
void ChaosScenario::DeletePod(const store::Change& change) {
  const store::Key& key = change.entry->key;
  if (cluster_.executor().Steady() >= deletes_until_ || key.resource != "pods") return;
  if (change.type == store::EventType::kDeleted || !random_.OneIn(6)) return;
  const json::SharedValue pod = change.entry->Parsed();
  if (api::IsDeleting(*pod)) return;
  ++deleted_;
  client_->Delete(
      client::resources::kPods, key.ns, key.name,
      {.grace_seconds = random_.OneIn(3) ? 0 : -1, .precondition_uid = std::string(api::Uid(*pod))},
      {});
}

void ChaosScenario::StopFaults() {
  Log("faults stop");
  faults_stopped_ = true;
  invariants_.Disturbed();
  conflicts_until_ = deletes_until_ = {};
  cluster_.network().faults = {};
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
  for (const RequestPtr& resume : suspended_) Send(resume);
}

// A replica that does not lead writes nothing but Leases and events, whatever it had still to say.
void ChaosScenario::CheckRequest(const std::string& process, const api::RestRequest& request) {
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

void ChaosScenario::Check() {
  std::vector<std::string> leaders;
  for (size_t i = 0; i < 2; ++i) {
    const manager::Replica* replica = cluster_.replica(i);
    if (replica != nullptr && replica->leading()) leaders.push_back(SimCluster::ReplicaName(i));
  }
  if (leaders.size() > 1) cluster_.history().Violation("two replicas lead");
  const std::string leader = leaders.empty() ? "nobody" : leaders.front();
  if (std::exchange(leader_logged_, leader) != leader) Log(StrCat(leader, " leads"));
  CheckDevices();
  invariants_.Check();
  if (invariants_.CalmFor() > Invariants::kHalfPlacedMax) caches_.Check();
  check_timer_.Start(kCheckEvery, [this] { Check(); });
}

// What really runs, whatever the API says.
void ChaosScenario::CheckDevices() {
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

void ChaosScenario::CheckEnd() {
  invariants_.CheckEnd();
  for (const auto& watcher : watchers_) {
    if (!watcher->current()) cluster_.history().Violation(watcher->Summary());
  }
  for (const RequestPtr& job : jobs_) {
    if (!acknowledged_.contains(job->Key())) continue;
    if (!cluster_.Get(job->resource.GroupResource(), job->ns, job->name)) {
      cluster_.history().Violation(StrCat(job->Key(), " was acknowledged, and is not there"));
    } else if (job->must_succeed && !invariants_.Succeeded(job->Key())) {
      cluster_.history().Violation(StrCat(job->Key(), " should have succeeded"));
    }
  }
  if (invariants_.OpenJobs().empty()) return;
  for (const json::SharedValue& pod : cluster_.List("pods")) {
    Log(StrCat("left is ", json::Print(*pod)));
  }
}

void ChaosScenario::Log(const std::string& what) {
  log_.push_back(StrCat(cluster_.executor().Steady().ns / 1'000'000, " ms: ", what));
}

void ChaosScenario::LogPod(const store::Change& change) {
  const store::Key& key = change.entry->key;
  if (key.resource != "pods") return;
  const json::SharedValue pod = change.entry->Parsed();
  std::string now = "is gone";
  if (change.type != store::EventType::kDeleted) {
    now = api::Phase(*pod);
    const std::string_view node = api::NodeName(*pod);
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
  std::string& before = pods_logged_[name];
  if (std::exchange(before, now) != now) Log(StrCat(name, " ", now));
}

Duration ChaosScenario::RandomDuration(Duration least, Duration most) {
  return least + Duration(static_cast<int64_t>(
                     random_.Below(static_cast<uint64_t>((most - least).count()) + 1)));
}

size_t ChaosScenario::GrownByGoodput() const {
  size_t grown = 0;
  for (const json::SharedValue& job : cluster_.List("trainingjobs.swell.dev")) {
    grown += json::GetInt(*job, {"status", "goodput", "measuredAt"}) > 1 ? 1 : 0;
  }
  return grown;
}

size_t ChaosScenario::watched() const {
  size_t events = 0;
  for (const auto& watcher : watchers_) events += watcher->events();
  return events;
}

std::string ChaosScenario::Summary() {
  return StrCat(jobs(), " jobs, ", invariants_.bindings(), " bindings, ", invariants_.evictions(),
                " evictions, ", watched(), " events watched, ", conflicts_injected_, " writes and ",
                deleted_, " deletions by others, ", foreign_.bindings(),
                " bindings by the foreign scheduler, ", cluster_.history().conflicts(),
                " conflicts");
}

}  // namespace swell::sim
