// A whole cluster inside a test: API server over a memory store, Manager, scripted node agents, all
// in virtual time.
// - Threads: one thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/sim_executor.h"
#include "base/strings.h"
#include "kube/apiserver/api_server.h"
#include "kube/client/informer.h"
#include "kube/store/store.h"
#include "manager/manager.h"

namespace swell::manager {

inline constexpr Duration kSecond = std::chrono::seconds(1);

// Runs bound pods of its nodes: Running after 200 ms; deleted or told to stop, they end after
// `stop_after` with code 143. Nodes renew their leases until they are killed.
class ScriptedAgents {
 public:
  ScriptedAgents(SimExecutor& sim, std::shared_ptr<api::RestHandler> server);

  void AddNode(const std::string& name);
  // Silent from now on; what ran there runs no more and is not reported.
  void Kill(const std::string& node) { dead_.insert(node); }
  void Revive(const std::string& node);
  // A running pod's container ends. Restart policies OnFailure and Always restart it in place.
  void Exit(const std::string& pod, int code);

  Duration start_after = std::chrono::milliseconds(200);
  Duration stop_after = std::chrono::seconds(1);
  bool honours_stop_requests = true;

 private:
  void Renew(const std::string& node);
  void Look(const std::string& key);
  void Start(const json::Value& pod);
  void End(const std::string& key, const std::string& uid, int code, bool remove);
  bool Alive(const json::Value& pod) const;

  SimExecutor& sim_;
  std::set<std::string> nodes_, dead_;
  std::set<std::string> starting_, ending_;  // uids
  std::map<std::string, int64_t> restarts_;  // by uid
  std::map<std::string, int> last_codes_;    // of pods that have restarted, by uid
  client::Informer pods_;
  client::Client client_;
};

class TestCluster {
 public:
  explicit TestCluster(uint64_t seed = 1);
  ~TestCluster();

  void StartManager(ManagerOptions options = {});
  void StopManager();
  void AddNode(const std::string& name, int gpus, const std::string& cpu = "32");

  // One or more YAML documents. Failing the test when refused.
  void Create(std::string_view yaml);
  Status TryCreate(const json::Value& object);
  // A merge patch written as YAML.
  Status Patch(const client::Resource& resource,
               const std::string& key,
               std::string_view yaml,
               std::string_view subresource = {});
  Status Delete(const client::Resource& resource,
                const std::string& key,
                const client::DeleteOptions& options = {});
  json::SharedValue Get(const client::Resource& resource, const std::string& key);  // or nullptr
  std::vector<json::SharedValue> List(const client::Resource& resource, const std::string& ns = "");

  void Run(Duration span) { sim.Advance(span); }
  // Until it holds, looking every 100 ms of virtual time.
  bool Until(const std::function<bool()>& holds, Duration limit = std::chrono::seconds(60));

  // Facts, read from the API.
  std::string PodPhase(const std::string& key);  // "" when there is no such pod
  std::string PodUid(const std::string& key);
  int Pods(std::string_view phase);  // "" counts all
  // A variable of the pod's first container, or "not set".
  std::string Env(const std::string& pod, std::string_view name);
  bool Condition(const client::Resource& resource, const std::string& key, std::string_view type);
  std::string Reason(const client::Resource& resource,
                     const std::string& key,
                     std::string_view type);
  int64_t Int(const client::Resource& resource, const std::string& key, json::Path path);
  int Events(std::string_view reason, std::string_view about = {});
  std::string EventMessage(std::string_view reason, std::string_view about = {});

  SimExecutor sim;
  Random random;
  Metrics metrics;
  std::unique_ptr<store::Store> store;
  std::shared_ptr<apiserver::ApiServer> server;
  // What stands between the manager and the server, for tests that break it; null: nothing.
  std::shared_ptr<api::RestHandler> between;
  // The wall clock of the manager's machine; null: everybody's.
  Clock* manager_clock = nullptr;
  std::unique_ptr<client::Client> client;
  std::unique_ptr<ScriptedAgents> agents;
  std::unique_ptr<controllers::Informers> informers;
  std::unique_ptr<Manager> manager;

 private:
  template <class T>
  Result<T> Wait(std::function<void(std::function<void(Result<T>)>)> call);
};

// Answers for the metrics APIs; whatever has no answer is not found.
class MetricsServer final : public api::RestHandler {
 public:
  explicit MetricsServer(std::shared_ptr<api::RestHandler> server) : server_(std::move(server)) {}
  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override {
    if (request.path.find(".metrics.k8s.io/") == std::string::npos &&
        request.path.find("/metrics.k8s.io/") == std::string::npos) {
      return server_->Handle(std::move(request), std::move(sink));
    }
    asked = StrCat(request.path, request.query.empty() ? "" : "?", request.query);
    api::RestResponse response;
    const std::string body = answer ? answer(request.path) : "";
    if (body.empty()) response.status = 404;
    response.body.push_back(api::MakeChunk(body));
    sink->OnResponse(std::move(response));
    return nullptr;
  }
  api::HandlerCapabilities capabilities() override { return server_->capabilities(); }

  std::function<std::string(const std::string& path)> answer;
  std::string asked;

 private:
  std::shared_ptr<api::RestHandler> server_;
};

// A PyTorchJob with `workers` besides its master, `gpus` each.
struct PyTorchYaml {
  std::string name = "job";
  int workers = 1;
  int gpus = 1;
  std::string priority;
  std::string restart = "Never";
  std::string run_policy;   // flow YAML: "cleanPodPolicy: None, backoffLimit: 2"
  std::string annotations;  // flow YAML
  std::string more_spec;    // lines of the spec, indented by two
  bool master = true;
  std::string Text() const;
};

}  // namespace swell::manager
