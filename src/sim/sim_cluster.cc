#include "sim/sim_cluster.h"

#include <algorithm>

#include "base/check.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "kube/api/schema/scheme.h"
#include "kube/node/node_fleet.h"

namespace swell::sim {
namespace {

const api::UserInfo kSystem{"system:swell", "", {"system:masters", "system:authenticated"}};
constexpr Duration kAnswerLimit = std::chrono::minutes(1);
constexpr Duration kStartAgain = std::chrono::seconds(1);
// Few, so that writes do wait for others.
constexpr size_t kWritesUnderWay = 3;

std::unique_ptr<node::SimulatedRuntime> NewRuntime(Executor& executor, Clock& clock) {
  using Options = node::SimulatedRuntime::Options;
  return std::make_unique<node::SimulatedRuntime>(executor, clock, Options{.keeps_specs = true});
}

}  // namespace

const api::UserInfo& SystemUser() { return kSystem; }

struct SimCluster::Server {
  Server(SimCluster& cluster, std::unique_ptr<store::Store> opened)
      : random(cluster.random_.Next()),
        store(std::move(opened)),
        handler(apiserver::ApiServer::Create(
            cluster.executor_, cluster.clock("server"), random, *store, {})) {}

  Random random;
  std::unique_ptr<store::Store> store;
  std::shared_ptr<apiserver::ApiServer> handler;
  bool ready = false;
};

struct SimCluster::Everything {
  explicit Everything(SimCluster& cluster)
      : random(cluster.random_.Next()),
        server(cluster.server_->handler),
        informers(cluster.executor_, server, kSystem, random.Next()),
        manager(controllers::Context{cluster.executor_, cluster.executor_, random, server, kSystem,
                                     informers},
                {.scheme = &server->scheme()}),
        fleet(node::AgentPlugs{cluster.executor_, cluster.executor_, server, cluster.runtime(),
                               nullptr, random.Next()},
              cluster.nodes_),
        client(cluster.executor_, server, kSystem, "sim") {}

  Random random;
  std::shared_ptr<apiserver::ApiServer> server;
  controllers::Informers informers;
  manager::Manager manager;
  node::NodeFleet fleet;
  client::Client client;
};

SimCluster::SimCluster(SimOptions options)
    : options_(std::move(options)),
      random_(options_.seed),
      history_(executor_),
      disk_(std::make_shared<store::MemoryDisk>()),
      scheme_(api::Scheme::BuiltIn()),
      nodes_(NodeConfigs()),
      network_(executor_, StableHash("network", options_.seed)) {
  disk_->commit_delay = options_.commit_delay;
  disk_->on_durable = [this](const std::vector<store::Change>& batch) { history_.Add(batch); };
  network_.on_answer = [this](uint64_t number, const api::RestRequest& request,
                              const api::RestResponse& response) {
    history_.CheckAnswer(number, request, response);
  };
  for (const json::Value& crd : api::SwellCrds()) {
    auto kinds = api::KindsOfCrd(crd);
    SWELL_CHECK(kinds.ok());
    for (api::CrdVersion& version : *kinds) {
      scheme_->Register(std::move(version.kind), version.storage);
    }
  }
  const size_t runtimes = apart() ? nodes_.size() : 1;
  for (size_t i = 0; i < runtimes; ++i) {
    Clock* mine = &executor_;
    if (apart()) mine = &clock(nodes_[i].name);
    runtimes_.push_back(NewRuntime(executor_, *mine));
  }
  if (!apart()) return;
  agents_.resize(nodes_.size());
  replicas_.resize(static_cast<size_t>(options_.replicas));
  replica_randoms_.resize(replicas_.size());
  user_ = std::make_unique<client::Client>(executor_, network_.Link("user"), kSystem, "sim");
}

SimCluster::~SimCluster() { network_.Attach(nullptr, true); }

SimClock& SimCluster::clock(const std::string& process) {
  auto& clock = clocks_[process];
  if (!clock) clock = std::make_unique<SimClock>(executor_);
  return *clock;
}

client::Client& SimCluster::client() { return apart() ? *user_ : everything_->client; }

std::vector<node::NodeConfig> SimCluster::NodeConfigs() const {
  std::vector<node::NodeConfig> nodes;
  for (int i = 0; i < options_.control_plane_nodes + options_.nodes; ++i) {
    node::NodeConfig node;
    bool control = i < options_.control_plane_nodes;
    node.name =
        control ? StrCat("control-", i + 1) : StrCat("node-", i - options_.control_plane_nodes + 1);
    node.capacity = {{"cpu", options_.cpus}, {"memory", options_.memory}, {"pods", "110"}};
    node.internal_ip = StrCat("127.0.1.", i + 1);
    node.control_plane = control;
    if (control) {
      node.taints.push_back({"node-role.kubernetes.io/control-plane", "", "NoSchedule"});
    } else if (options_.gpus_per_node > 0) {
      node.capacity["nvidia.com/gpu"] = std::to_string(options_.gpus_per_node);
    }
    nodes.push_back(std::move(node));
  }
  return nodes;
}

void SimCluster::Boot() {
  Restart();
  bool up = RunUntil(
      [this] {
        const std::vector<json::SharedValue> nodes = List("nodes");
        return nodes.size() == nodes_.size() &&
               std::all_of(nodes.begin(), nodes.end(), [](const json::SharedValue& node) {
                 return api::ConditionIsTrue(*node, "Ready");
               });
      },
      std::chrono::minutes(1));
  SWELL_CHECK_MSG(up, "the simulated cluster did not come up");
}

void SimCluster::Crash() {
  SWELL_CHECK(!apart());
  disk_->Crash(random_.OneIn(2));
  everything_.reset();
  server_.reset();
}

void SimCluster::Restart() {
  StartServer();
  SWELL_CHECK(RunUntil([this] { return server_->ready; }, kAnswerLimit));
  if (!apart()) return;
  Status made = Wait([this](client::ObjectCallback done) {
    json::Value ns = json::Object{{"apiVersion", "v1"},
                                  {"kind", "Namespace"},
                                  {"metadata", json::Object{{"name", "swell-system"}}}};
    user_->Create(client::resources::kNamespaces, "", ns, std::move(done));
  });
  SWELL_CHECK_MSG(made.ok(), made.message());
  for (size_t i = 0; i < replicas_.size(); ++i) StartReplica(i);
  for (size_t i = 0; i < agents_.size(); ++i) StartAgent(i);
}

void SimCluster::KillServer(bool silent) {
  disk_->Crash(random_.OneIn(2));
  network_.Attach(nullptr, silent);
  server_.reset();
}

void SimCluster::StartServer() {
  SWELL_CHECK(server_ == nullptr);
  auto store = store::Store::Open(executor_, store::MakeFaultyBackend(executor_, disk_));
  SWELL_CHECK_MSG(store.ok(), store.status().message());
  server_ = std::make_unique<Server>(*this, std::move(store).value());
  if (!apart()) everything_ = std::make_unique<Everything>(*this);
  server_->handler->Bootstrap([this, server = server_.get()](const Status& status) {
    if (!status.ok()) {
      // The disk may have been full, for example: the supervisor starts the server again.
      SWELL_CHECK_MSG(apart(), status.message());
      executor_.After(kStartAgain, [this, server] {
        if (server_.get() != server) return;
        KillServer(false);
        StartServer();
      });
      return;
    }
    server->ready = true;
    if (on_server_start) on_server_start();
    if (apart()) return network_.Attach(server->handler.get());
    everything_->manager.Start();
    everything_->fleet.Start();
  });
}

std::string SimCluster::ReplicaName(size_t index) { return StrCat("replica-", index); }

void SimCluster::KillReplica(size_t index) { replicas_[index].reset(); }

void SimCluster::StartReplica(size_t index) {
  SWELL_CHECK(replicas_[index] == nullptr);
  const std::string name = ReplicaName(index);
  replica_randoms_[index] = std::make_unique<Random>(random_.Next());
  replicas_[index] = std::make_unique<manager::Replica>(
      executor_, clock(name), *replica_randoms_[index], network_.Link(name), kSystem,
      manager::ReplicaOptions{
          .election = client::LeaderOptions{.identity = StrCat(name, "-", ++incarnations_)},
          // Gangs are small here, and both ways of marking are to be seen.
          .manager = {.scheme = scheme_.get(),
                      .mark_together = 2,
                      .eviction_delay = std::chrono::seconds(30)},
          .writes_under_way = kWritesUnderWay});
  replicas_[index]->Start();
}

void SimCluster::KillAgent(size_t index, bool with_pods) {
  agents_[index].reset();
  if (!with_pods) return;
  runtimes_[index] = NewRuntime(executor_, clock(nodes_[index].name));
}

void SimCluster::StartAgent(size_t index) {
  SWELL_CHECK(agents_[index] == nullptr);
  const node::NodeConfig& node = nodes_[index];
  agents_[index] = std::make_unique<node::NodeAgent>(
      node::AgentPlugs{executor_, clock(node.name), network_.Link(node.name), *runtimes_[index],
                       nullptr, random_.Next()},
      node);
  agents_[index]->Start();
}

Status SimCluster::Wait(const std::function<void(client::ObjectCallback)>& call) {
  auto answer = std::make_shared<std::optional<Status>>();
  call([answer](const Result<json::SharedValue>& result) {
    *answer = result.ok() ? Status::Ok() : result.status();
  });
  if (!RunUntil([&] { return answer->has_value(); }, kAnswerLimit)) {
    return Status(Code::kTimeout, "no answer within a minute of virtual time");
  }
  return **answer;
}

Status SimCluster::Apply(std::string_view json_text) {
  SWELL_ASSIGN_OR_RETURN(json::Value object, json::Parse(json_text));
  api::GroupVersionKind gvk = api::GvkOf(object);
  api::KindPtr kind = scheme_->FindKind(gvk);
  if (!kind) return Status(Code::kNotFound, StrCat("no kind ", gvk.ApiVersion(), " ", gvk.kind));
  client::Resource resource{gvk.group, gvk.version, kind->plural, kind->namespaced};
  std::string ns(api::Namespace(object));
  if (ns.empty() && kind->namespaced) ns = "default";
  return Wait(
      [&](client::ObjectCallback done) { client().Create(resource, ns, object, std::move(done)); });
}

Status SimCluster::Delete(const client::Resource& resource,
                          std::string_view ns,
                          std::string_view name) {
  return Wait([&](client::ObjectCallback done) {
    client().Delete(resource, ns, name, {}, std::move(done));
  });
}

Status SimCluster::Patch(const client::Resource& resource,
                         std::string_view ns,
                         std::string_view name,
                         std::string_view merge_patch,
                         std::string_view subresource) {
  SWELL_ASSIGN_OR_RETURN(json::Value patch, json::Parse(merge_patch));
  return Wait([&](client::ObjectCallback done) {
    client().Patch(resource, ns, name, client::PatchType::kMerge, patch, std::move(done),
                   subresource);
  });
}

json::SharedValue SimCluster::Get(const std::string& store_resource,
                                  std::string_view ns,
                                  std::string_view name) const {
  store::EntryPtr entry = server_->store->Get({store_resource, std::string(ns), std::string(name)});
  return entry ? entry->Parsed() : nullptr;
}

std::vector<json::SharedValue> SimCluster::List(const std::string& store_resource) const {
  std::vector<json::SharedValue> objects;
  auto listing = server_->store->List(store_resource, "");
  if (!listing.ok()) return objects;
  for (const store::EntryPtr& entry : listing->entries) objects.push_back(entry->Parsed());
  return objects;
}

std::map<std::string, uint64_t> SimCluster::Versions(const std::string& store_resource) const {
  std::map<std::string, uint64_t> versions;
  auto listing = server_->store->List(store_resource, "");
  if (!listing.ok()) return versions;
  for (const store::EntryPtr& entry : listing->entries) {
    const store::Key& key = entry->key;
    versions[key.ns.empty() ? key.name : StrCat(key.ns, "/", key.name)] = entry->version;
  }
  return versions;
}

std::string SimCluster::PodPhase(std::string_view ns, std::string_view name) const {
  json::SharedValue pod = Get("pods", ns, name);
  return pod ? std::string(api::Phase(*pod)) : "";
}

std::string SimCluster::JobState(std::string_view ns, std::string_view name) const {
  json::SharedValue job = Get("pytorchjobs.kubeflow.org", ns, name);
  if (!job) return "";
  std::string state;
  for (const api::Condition& condition : api::Conditions(*job)) {
    if (condition.IsTrue()) state = condition.type;
  }
  return state;
}

std::vector<std::string> SimCluster::Events(std::string_view name, std::string_view reason) const {
  std::vector<std::string> messages;
  for (const json::SharedValue& event : List("events")) {
    if (json::GetString(*event, {"involvedObject", "name"}) == name &&
        json::GetString(*event, {"reason"}) == reason) {
      messages.emplace_back(json::GetString(*event, {"message"}));
    }
  }
  return messages;
}

bool SimCluster::RunUntil(const std::function<bool()>& done, Duration limit) {
  return executor_.RunUntil(done, limit);
}

void SimCluster::Advance(Duration span) { executor_.Advance(span); }

}  // namespace swell::sim
