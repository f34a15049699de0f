#include "sim/sim_cluster.h"

#include "api/meta.h"
#include "api/scheme.h"
#include "base/check.h"
#include "base/strings.h"

namespace swell::sim {
namespace {

const api::UserInfo kSystem{"system:swell", "", {"system:masters", "system:authenticated"}};
constexpr Duration kAnswerLimit = std::chrono::minutes(1);

}  // namespace

// Sums up what becomes durable.
class SimCluster::Trace {
 public:
  void Add(const std::vector<store::Change>& batch) {
    for (const store::Change& change : batch) {
      const store::Entry& entry = *change.entry;
      hash_ = StableHash(StrCat(static_cast<int>(change.type), "|", entry.version, "|",
                                entry.key.resource, "|", entry.key.ns, "|", entry.key.name, "|"),
                         hash_);
      hash_ = StableHash(*entry.bytes, hash_);
    }
  }
  uint64_t hash() const { return hash_; }

 private:
  uint64_t hash_ = 0xcbf29ce484222325ULL;
};

namespace {

template <class TraceT>
class TracingBackend final : public store::Backend {
 public:
  TracingBackend(std::unique_ptr<store::Backend> inner, std::shared_ptr<TraceT> trace)
      : inner_(std::move(inner)), trace_(std::move(trace)) {}

  Result<Loaded> Load() override { return inner_->Load(); }
  void Commit(std::vector<store::Change> batch, std::function<void(const Status&)> done) override {
    auto copy = batch;
    inner_->Commit(std::move(batch), [trace = trace_, copy = std::move(copy),
                                      done = std::move(done)](const Status& status) {
      if (status.ok()) trace->Add(copy);
      done(status);
    });
  }

 private:
  std::unique_ptr<store::Backend> inner_;
  std::shared_ptr<TraceT> trace_;
};

}  // namespace

struct SimCluster::ControlPlane {
  ControlPlane(SimCluster& cluster, std::unique_ptr<store::Store> opened)
      : random(cluster.random_.Next()),
        store(std::move(opened)),
        server(
            apiserver::ApiServer::Create(cluster.executor_, cluster.executor_, random, *store, {})),
        informers(cluster.executor_, server, kSystem, random.Next()),
        manager(controllers::Context{cluster.executor_, cluster.executor_, random, server, kSystem,
                                     informers},
                {.scheme = &server->scheme()}),
        fleet(agent::AgentPlugs{cluster.executor_, cluster.executor_, server, cluster.runtime_,
                                nullptr, random.Next()},
              cluster.NodeConfigs()),
        client(cluster.executor_, server, kSystem, "sim") {}

  Random random;
  std::unique_ptr<store::Store> store;
  std::shared_ptr<apiserver::ApiServer> server;
  controllers::Informers informers;
  controllers::Manager manager;
  agent::NodeFleet fleet;
  client::Client client;
  bool ready = false;
};

SimCluster::SimCluster(SimOptions options)
    : options_(std::move(options)),
      random_(options_.seed),
      disk_(std::make_shared<store::MemoryDisk>()),
      trace_(std::make_shared<Trace>()),
      runtime_(executor_, executor_) {
  disk_->commit_delay = options_.commit_delay;
}

SimCluster::~SimCluster() = default;

std::vector<agent::NodeConfig> SimCluster::NodeConfigs() const {
  std::vector<agent::NodeConfig> nodes;
  for (int i = 0; i < options_.control_plane_nodes + options_.nodes; ++i) {
    agent::NodeConfig node;
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
        if (!plane_->fleet.registered()) return false;
        for (const json::SharedValue& node : List("nodes")) {
          if (!api::ConditionIsTrue(*node, "Ready")) return false;
        }
        return true;
      },
      std::chrono::minutes(1));
  SWELL_CHECK_MSG(up, "the simulated cluster did not come up");
}

void SimCluster::Crash() {
  disk_->Crash(random_.OneIn(2));
  plane_.reset();
}

void SimCluster::Restart() {
  SWELL_CHECK(plane_ == nullptr);
  auto backend =
      std::make_unique<TracingBackend<Trace>>(store::MakeFaultyBackend(executor_, disk_), trace_);
  auto store = store::Store::Open(executor_, std::move(backend));
  SWELL_CHECK_MSG(store.ok(), store.status().message());
  plane_ = std::make_unique<ControlPlane>(*this, std::move(store).value());
  ControlPlane* plane = plane_.get();
  plane->server->Bootstrap([plane](const Status& status) {
    SWELL_CHECK_MSG(status.ok(), status.message());
    plane->ready = true;
    plane->manager.Start();
    plane->fleet.Start();
  });
  SWELL_CHECK(RunUntil([plane] { return plane->ready; }, kAnswerLimit));
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
  api::GroupVersionKind gvk =
      api::ParseGvk(json::GetString(object, {"apiVersion"}), json::GetString(object, {"kind"}));
  api::KindPtr kind = plane_->server->scheme().FindKind(gvk);
  if (!kind) return Status(Code::kNotFound, StrCat("no kind ", gvk.ApiVersion(), " ", gvk.kind));
  client::Resource resource{gvk.group, gvk.version, kind->plural, kind->namespaced};
  std::string ns(api::Namespace(object));
  if (ns.empty() && kind->namespaced) ns = "default";
  return Wait([&](client::ObjectCallback done) {
    plane_->client.Create(resource, ns, object, std::move(done));
  });
}

Status SimCluster::Delete(const client::Resource& resource,
                          std::string_view ns,
                          std::string_view name) {
  return Wait([&](client::ObjectCallback done) {
    plane_->client.Delete(resource, ns, name, {}, std::move(done));
  });
}

Status SimCluster::Patch(const client::Resource& resource,
                         std::string_view ns,
                         std::string_view name,
                         std::string_view merge_patch,
                         std::string_view subresource) {
  SWELL_ASSIGN_OR_RETURN(json::Value patch, json::Parse(merge_patch));
  return Wait([&](client::ObjectCallback done) {
    plane_->client.Patch(resource, ns, name, client::PatchType::kMerge, patch, std::move(done),
                         subresource);
  });
}

json::SharedValue SimCluster::Get(const std::string& store_resource,
                                  std::string_view ns,
                                  std::string_view name) const {
  store::EntryPtr entry = plane_->store->Get({store_resource, std::string(ns), std::string(name)});
  return entry ? entry->Parsed() : nullptr;
}

std::vector<json::SharedValue> SimCluster::List(const std::string& store_resource) const {
  std::vector<json::SharedValue> objects;
  auto listing = plane_->store->List(store_resource, "");
  if (!listing.ok()) return objects;
  for (const store::EntryPtr& entry : listing->entries) objects.push_back(entry->Parsed());
  return objects;
}

std::string SimCluster::PodPhase(std::string_view ns, std::string_view name) const {
  json::SharedValue pod = Get("pods", ns, name);
  return pod ? std::string(json::GetString(*pod, {"status", "phase"})) : "";
}

std::string SimCluster::JobState(std::string_view ns, std::string_view name) const {
  json::SharedValue job = Get("pytorchjobs.kubeflow.org", ns, name);
  if (!job) return "";
  std::string state;
  for (const json::Value& condition : json::GetArray(*job, {"status", "conditions"})) {
    if (json::GetString(condition, {"status"}) == "True") {
      state = json::GetString(condition, {"type"});
    }
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

uint64_t SimCluster::trace_hash() const { return trace_->hash(); }

}  // namespace swell::sim
