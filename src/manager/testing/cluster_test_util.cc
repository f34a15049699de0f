#include "manager/testing/cluster_test_util.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/yaml.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/pod_facts.h"
#include "kube/store/backend.h"
#include "sched_inputs/sched_convert.h"

namespace swell::manager {
namespace {

const api::UserInfo kAdmin{"system:admin", "", {"system:masters"}};

}  // namespace

ScriptedAgents::ScriptedAgents(SimExecutor& sim, std::shared_ptr<api::RestHandler> server)
    : sim_(sim),
      pods_(sim, server, kAdmin, client::resources::kPods),
      client_(sim, server, kAdmin, "scripted-agents") {
  auto look = [this](const json::SharedValue& pod) { Look(api::KeyOf(*pod)); };
  controllers::Follow(pods_, look);
  pods_.Start();
}

void ScriptedAgents::AddNode(const std::string& name) {
  nodes_.insert(name);
  json::Value lease = json::Object{
      {"metadata", json::Object{{"name", name}, {"namespace", "kube-node-lease"}}},
      {"spec",
       json::Object{{"holderIdentity", name}, {"renewTime", api::FormatMicroTime(sim_.Now())}}}};
  client_.Create(client::resources::kLeases, "kube-node-lease", lease, {});
  sim_.After(std::chrono::seconds(10), [this, name] { Renew(name); });
}

void ScriptedAgents::Renew(const std::string& node) {
  sim_.After(std::chrono::seconds(10), [this, node] { Renew(node); });
  if (dead_.contains(node)) return;
  json::Value patch =
      json::Object{{"spec", json::Object{{"renewTime", api::FormatMicroTime(sim_.Now())}}}};
  client_.Patch(client::resources::kLeases, "kube-node-lease", node, client::PatchType::kMerge,
                patch, {});
}

void ScriptedAgents::Revive(const std::string& node) {
  dead_.erase(node);
  json::Value patch = json::Object{
      {"status",
       json::Object{{"conditions", json::Array{json::Object{
                                       {"type", "Ready"},
                                       {"status", "True"},
                                       {"reason", "KubeletReady"},
                                       {"lastHeartbeatTime", api::FormatTime(sim_.Now())},
                                       {"lastTransitionTime", api::FormatTime(sim_.Now())}}}}}}};
  client_.Patch(client::resources::kNodes, "", node, client::PatchType::kStrategic, patch, {},
                "status");
  for (const auto& [key, pod] : pods_.objects()) Look(key);
}

bool ScriptedAgents::Alive(const json::Value& pod) const {
  std::string node(json::GetString(pod, {"spec", "nodeName"}));
  return nodes_.contains(node) && !dead_.contains(node);
}

void ScriptedAgents::Look(const std::string& key) {
  json::SharedValue pod = pods_.Get(key);
  if (!pod || !Alive(*pod)) return;
  std::string uid(api::Uid(*pod));
  bool stop = honours_stop_requests && !api::Annotation(*pod, api::keys::kStopRequested).empty();
  if (api::IsDeleting(*pod) || (stop && !api::HasEnded(*pod))) {
    bool remove = api::IsDeleting(*pod);
    if (!ending_.insert(uid + (remove ? "/gone" : "/stopped")).second) return;
    bool at_once = api::HasEnded(*pod) ||
                   json::GetInt(*pod, {"metadata", "deletionGracePeriodSeconds"}, 30) == 0;
    sim_.After(at_once ? Duration(std::chrono::milliseconds(1)) : stop_after,
               [this, key, uid, remove] { End(key, uid, 143, remove); });
    return;
  }
  if (api::Phase(*pod) != "Pending" || !starting_.insert(uid).second) return;
  sim_.After(start_after, [this, key, uid] {
    json::SharedValue now = pods_.Get(key);
    if (!now || api::Uid(*now) != uid || api::IsDeleting(*now)) return;
    // A node that died meanwhile begins anew when it is back.
    if (!Alive(*now)) {
      starting_.erase(uid);
      return;
    }
    Start(*now);
  });
}

void ScriptedAgents::Start(const json::Value& pod) {
  std::string uid(api::Uid(pod));
  std::string now = api::FormatTime(sim_.Now());
  json::Array containers;
  for (const json::Value& container : json::GetArray(pod, {"spec", "containers"})) {
    containers.push_back(
        json::Object{{"name", json::GetString(container, {"name"})},
                     {"image", "x"},
                     {"imageID", "x"},
                     {"ready", true},
                     {"restartCount", restarts_[uid]},
                     {"state", json::Object{{"running", json::Object{{"startedAt", now}}}}}});
    const auto code = last_codes_.find(uid);
    if (code == last_codes_.end()) continue;
    json::Set(containers.back(), {"lastState", "terminated"},
              json::Object{{"exitCode", code->second}, {"reason", "Error"}, {"finishedAt", now}});
  }
  uint64_t address = StableHash(uid) % 65'000;
  json::Value patch = json::Object{
      {"metadata", json::Object{{"uid", uid}}},
      {"status",
       json::Object{{"phase", "Running"},
                    {"startTime", now},
                    {"podIP", StrCat("10.0.", address / 255, ".", address % 255 + 1)},
                    {"containerStatuses", std::move(containers)},
                    {"conditions",
                     json::Array{json::Object{
                         {"type", "Ready"}, {"status", "True"}, {"lastTransitionTime", now}}}}}}};
  client_.Patch(client::resources::kPods, api::Namespace(pod), api::Name(pod),
                client::PatchType::kStrategic, patch, {}, "status");
}

void ScriptedAgents::Exit(const std::string& key, int code) {
  json::SharedValue pod = pods_.Get(key);
  ASSERT_TRUE(pod) << key;
  ASSERT_EQ(api::Phase(*pod), "Running") << key;
  std::string uid(api::Uid(*pod));
  std::string_view policy = json::GetString(*pod, {"spec", "restartPolicy"});
  if (policy == "Always" || (policy == "OnFailure" && code != 0)) {
    ++restarts_[uid];
    last_codes_[uid] = code;
    return Start(*pod);
  }
  End(key, uid, code, false);
}

void ScriptedAgents::End(const std::string& key, const std::string& uid, int code, bool remove) {
  json::SharedValue pod = pods_.Get(key);
  if (!pod || api::Uid(*pod) != uid) return;
  if (!Alive(*pod)) {
    ending_.erase(uid + (remove ? "/gone" : "/stopped"));
    return;
  }
  auto [ns, name] = sched_inputs::SplitKey(key);
  auto gone = [this, ns = ns, name = name, uid, remove](const Result<json::SharedValue>&) {
    if (!remove) return;
    client_.Delete(client::resources::kPods, ns, name,
                   {.grace_seconds = 0, .precondition_uid = uid}, {});
  };
  if (api::HasEnded(*pod)) return gone(pod);
  json::Array containers;
  for (const json::Value& container : json::GetArray(*pod, {"spec", "containers"})) {
    containers.push_back(json::Object{
        {"name", json::GetString(container, {"name"})},
        {"image", "x"},
        {"imageID", "x"},
        {"ready", false},
        {"restartCount", restarts_[uid]},
        {"state",
         json::Object{{"terminated", json::Object{{"exitCode", code},
                                                  {"finishedAt", api::FormatTime(sim_.Now())}}},
                      {"running", nullptr}}}});
  }
  json::Value patch = json::Object{
      {"metadata", json::Object{{"uid", uid}}},
      {"status", json::Object{{"phase", code == 0 ? "Succeeded" : "Failed"},
                              {"containerStatuses", std::move(containers)},
                              {"conditions", json::Array{json::Object{{"type", "Ready"},
                                                                      {"status", "False"}}}}}}};
  client_.Patch(client::resources::kPods, ns, name, client::PatchType::kStrategic, patch, gone,
                "status");
}

TestCluster::TestCluster(uint64_t seed) : random(seed) {
  auto opened = store::Store::Open(sim, store::MakeMemoryBackend(sim));
  SWELL_CHECK(opened.ok());
  store = std::move(opened).value();
  apiserver::Options options;
  options.bind_check = [this](const json::Value& pod, const std::string& node) {
    return manager ? manager->CheckBind(pod, node) : Status::Ok();
  };
  server = apiserver::ApiServer::Create(sim, sim, random, *store, options);
  Status ready(Code::kUnavailable, "not yet");
  server->Bootstrap([&ready](const Status& status) { ready = status; });
  sim.Advance(std::chrono::seconds(1));
  SWELL_CHECK_MSG(ready.ok(), ready.ToString());
  client = std::make_unique<client::Client>(sim, server, kAdmin, "test");
  agents = std::make_unique<ScriptedAgents>(sim, server);
}

TestCluster::~TestCluster() {
  StopManager();
  agents.reset();
  client.reset();
  server.reset();
}

void TestCluster::StartManager(ManagerOptions options) {
  if (options.scheme == nullptr) options.scheme = &server->scheme();
  // These tests have no OpenSSL.
  if (!options.make_ssh_key) {
    options.make_ssh_key = [made = 0]() mutable -> Result<jobs::SshKeyPair> {
      ++made;
      return jobs::SshKeyPair{StrCat("private ", made), StrCat("public ", made)};
    };
  }
  std::shared_ptr<api::RestHandler> asked = server;
  if (between) asked = between;
  informers = std::make_unique<controllers::Informers>(sim, asked, kAdmin, random.Next());
  Clock* clock = &sim;
  if (manager_clock != nullptr) clock = manager_clock;
  manager = std::make_unique<Manager>(
      controllers::Context{sim, *clock, random, asked, kAdmin, *informers, &metrics}, options);
  manager->Start();
  sim.RunUntil([this] { return manager->synced(); }, std::chrono::seconds(10));
  EXPECT_TRUE(manager->synced());
}

void TestCluster::StopManager() {
  manager.reset();
  informers.reset();
}

void TestCluster::AddNode(const std::string& name, int gpus, const std::string& cpu) {
  std::string now = api::FormatTime(sim.Now());
  std::string amounts = StrCat("{cpu: '", cpu, "', memory: 128Gi, pods: '110'");
  if (gpus > 0) amounts += StrCat(", nvidia.com/gpu: '", gpus, "'");
  amounts += "}";
  agents->AddNode(name);
  Create(StrCat("apiVersion: v1\nkind: Node\nmetadata: {name: ", name,
                "}\nstatus:\n  capacity: ", amounts, "\n  allocatable: ", amounts,
                "\n  conditions:\n  - {type: Ready, status: 'True', reason: KubeletReady, "
                "lastHeartbeatTime: '",
                now, "', lastTransitionTime: '", now, "'}\n"));
}

template <class T>
Result<T> TestCluster::Wait(std::function<void(std::function<void(Result<T>)>)> call) {
  auto answer = std::make_shared<std::optional<Result<T>>>();
  call([answer](Result<T> result) { *answer = std::move(result); });
  sim.RunUntil([&] { return answer->has_value(); }, std::chrono::seconds(10));
  if (!answer->has_value()) return Status(Code::kTimeout, "no answer");
  return std::move(**answer);
}

void TestCluster::Create(std::string_view yaml) {
  auto documents = json::ParseYaml(yaml);
  ASSERT_TRUE(documents.ok()) << documents.status().ToString() << "\n" << yaml;
  for (const json::Value& document : *documents) {
    Status status = TryCreate(document);
    ASSERT_TRUE(status.ok()) << status.ToString() << "\n" << json::Print(document);
  }
}

Status TestCluster::TryCreate(const json::Value& object) {
  auto kind = server->scheme().FindKind(api::GvkOf(object));
  if (!kind) return Status(Code::kNotFound, StrCat("no kind for ", json::Print(object)));
  client::Resource resource{kind->gvk.group, kind->gvk.version, kind->plural, kind->namespaced};
  std::string ns(json::GetString(object, {"metadata", "namespace"}, "default"));
  return Wait<json::SharedValue>(
             [&](auto done) { client->Create(resource, kind->namespaced ? ns : "", object, done); })
      .status();
}

Status TestCluster::Patch(const client::Resource& resource,
                          const std::string& key,
                          std::string_view yaml,
                          std::string_view subresource) {
  auto documents = json::ParseYaml(yaml);
  if (!documents.ok()) return documents.status();
  auto [ns, name] = sched_inputs::SplitKey(key);
  return Wait<json::SharedValue>([&, ns = ns, name = name](auto done) {
           client->Patch(resource, ns, name, client::PatchType::kMerge, documents->front(), done,
                         subresource);
         })
      .status();
}

Status TestCluster::Delete(const client::Resource& resource,
                           const std::string& key,
                           const client::DeleteOptions& options) {
  auto [ns, name] = sched_inputs::SplitKey(key);
  return Wait<json::SharedValue>([&, ns = ns, name = name](auto done) {
           client->Delete(resource, ns, name, options, done);
         })
      .status();
}

json::SharedValue TestCluster::Get(const client::Resource& resource, const std::string& key) {
  auto [ns, name] = sched_inputs::SplitKey(key);
  auto result = Wait<json::SharedValue>(
      [&, ns = ns, name = name](auto done) { client->Get(resource, ns, name, done); });
  return result.ok() ? *result : nullptr;
}

std::vector<json::SharedValue> TestCluster::List(const client::Resource& resource,
                                                 const std::string& ns) {
  auto result = Wait<client::ObjectList>(
      [&](auto done) { client->List(resource, ns, client::ListOptions{}, done); });
  EXPECT_TRUE(result.ok()) << result.status().ToString();
  return result.ok() ? result->items : std::vector<json::SharedValue>{};
}

bool TestCluster::Until(const std::function<bool()>& holds, Duration limit) {
  SteadyTime end = sim.Steady() + limit;
  while (!holds()) {
    if (sim.Steady() >= end) return false;
    sim.Advance(std::chrono::milliseconds(100));
  }
  return true;
}

std::string TestCluster::PodPhase(const std::string& key) {
  json::SharedValue pod = Get(client::resources::kPods, key);
  return pod ? std::string(api::Phase(*pod)) : "";
}

std::string TestCluster::PodUid(const std::string& key) {
  json::SharedValue pod = Get(client::resources::kPods, key);
  return pod ? std::string(api::Uid(*pod)) : "";
}

std::string TestCluster::Env(const std::string& pod, std::string_view name) {
  const json::SharedValue found = Get(client::resources::kPods, pod);
  if (!found) return "no pod " + pod;
  for (const json::Value& one : json::GetArray(api::Containers(*found)[0], {"env"})) {
    if (json::GetString(one, {"name"}) == name) return std::string(json::GetString(one, {"value"}));
  }
  return "not set";
}

int TestCluster::Pods(std::string_view phase) {
  int count = 0;
  for (const json::SharedValue& pod : List(client::resources::kPods)) {
    if (phase.empty() || api::Phase(*pod) == phase) ++count;
  }
  return count;
}

bool TestCluster::Condition(const client::Resource& resource,
                            const std::string& key,
                            std::string_view type) {
  json::SharedValue object = Get(resource, key);
  return object && api::ConditionIsTrue(*object, type);
}

std::string TestCluster::Reason(const client::Resource& resource,
                                const std::string& key,
                                std::string_view type) {
  json::SharedValue object = Get(resource, key);
  const std::optional<api::Condition> condition =
      object ? api::FindCondition(*object, type) : std::nullopt;
  return condition ? std::string(condition->reason) : "";
}

int64_t TestCluster::Int(const client::Resource& resource,
                         const std::string& key,
                         json::Path path) {
  json::SharedValue object = Get(resource, key);
  return object ? json::GetInt(*object, path) : -1;
}

int TestCluster::Events(std::string_view reason, std::string_view about) {
  int64_t count = 0;
  for (const json::SharedValue& event : List(client::resources::kEvents)) {
    if (json::GetString(*event, {"reason"}) != reason) continue;
    if (!about.empty() && json::GetString(*event, {"involvedObject", "name"}) != about) continue;
    count += json::GetInt(*event, {"count"}, 1);
  }
  return static_cast<int>(count);
}

std::string TestCluster::EventMessage(std::string_view reason, std::string_view about) {
  for (const json::SharedValue& event : List(client::resources::kEvents)) {
    if (json::GetString(*event, {"reason"}) == reason &&
        (about.empty() || json::GetString(*event, {"involvedObject", "name"}) == about)) {
      return std::string(json::GetString(*event, {"message"}));
    }
  }
  return "";
}

std::string PyTorchYaml::Text() const {
  auto replica = [this](std::string_view type, int count) {
    std::string limits = gpus > 0 ? StrCat("{nvidia.com/gpu: ", gpus, "}") : "{cpu: 1}";
    std::string text =
        StrCat("    ", type, ":\n      replicas: ", count, "\n      restartPolicy: ", restart,
               "\n      template:\n        spec:\n");
    if (!priority.empty()) text += StrCat("          priorityClassName: ", priority, "\n");
    return text + StrCat(
                      "          containers:\n          - {name: pytorch, image: x, resources: "
                      "{limits: ",
                      limits, "}}\n");
  };
  std::string text =
      StrCat("apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: ", name,
             ", namespace: default, annotations: {", annotations, "}}\nspec:\n  runPolicy: {",
             run_policy, "}\n", more_spec, "  pytorchReplicaSpecs:\n");
  if (master) text += replica("Master", 1);
  if (workers > 0) text += replica("Worker", workers);
  return text;
}

}  // namespace swell::manager
