// PagesTest: the pages' parts over an API server in the same process, in virtual time. Both threads
// are the test's.
// - Threads: one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/apiserver/test_server.h"
#include "ui/state/core_calls.h"
#include "ui/view_board.h"

namespace swell::ui {

class PagesTest : public ::testing::Test {
 protected:
  PagesTest() : server_(OptionsOfTest()) {
    server_.Boot();
    EXPECT_TRUE(server_.boot.ok()) << server_.boot.ToString();
    feed_.Start();
    Settle();
    EXPECT_TRUE(state_.known());
  }

  static apiserver::Options OptionsOfTest() {
    apiserver::Options options;
    options.rbac = true;
    options.tokens = {{"admin-token", {.name = "root", .groups = {"system:masters"}}},
                      {"jane-token", {.name = "jane", .groups = {"swell:users"}}},
                      {"john-token", {.name = "john", .groups = {"swell:users"}}}};
    return options;
  }

  void Settle() { server_.executor.Advance(std::chrono::seconds(1)); }

  void Create(const std::string& path, const std::string& body) {
    api::RestRequest request = server_.Request("POST", path, body);
    request.user = {.name = "root", .groups = {"system:masters"}};
    const auto answer = server_.Send(std::move(request));
    ASSERT_EQ(answer.status, 201) << answer.text;
  }
  void Status(const std::string& path, const std::string& status) {
    api::RestRequest request =
        server_.Request("PATCH", path + "/status", status, "application/merge-patch+json");
    request.user = {.name = "root", .groups = {"system:masters"}};
    const auto answer = server_.Send(std::move(request));
    ASSERT_EQ(answer.status, 200) << answer.text;
  }
  // `value` as it stands in JSON.
  void Annotate(const std::string& path, const std::string& key, const std::string& value) {
    Patch(path, StrCat(R"({"metadata":{"annotations":{")", key, R"(":")", value, R"("}}})"));
  }
  void Patch(const std::string& path, const std::string& change) {
    api::RestRequest request =
        server_.Request("PATCH", path, change, "application/merge-patch+json");
    request.user = {.name = "root", .groups = {"system:masters"}};
    const auto answer = server_.Send(std::move(request));
    ASSERT_EQ(answer.status, 200) << answer.text;
  }
  // A project with its namespace, which a controller would make.
  void Project(const std::string& name) {
    Create("/api/v1/namespaces", StrCat(R"({"metadata":{"name":")", name, R"("}})"));
    Create("/apis/swell.dev/v1/projects",
           StrCat(R"({"apiVersion":"swell.dev/v1","kind":"Project","metadata":{"name":")", name,
                  R"("},"spec":{"resources":{"gpu":{"quota":4}}}})"));
  }
  void Researcher(const std::string& user, const std::string& project) {
    const std::string rbac = StrCat("/apis/rbac.authorization.k8s.io/v1/namespaces/", project, "/");
    Create(rbac + "roles",
           R"({"metadata":{"name":"reader"},"rules":[{"verbs":["get","list","watch"],"apiGroups":)"
           R"(["","swell.dev","kubeflow.org"],"resources":["pods","events","podgroups",)"
           R"("pytorchjobs"]}]})");
    Create(rbac + "rolebindings",
           StrCat(R"({"metadata":{"name":")", user, R"("},"roleRef":{"apiGroup":)",
                  R"("rbac.authorization.k8s.io","kind":"Role","name":"reader"},)",
                  R"("subjects":[{"kind":"User","name":")", user, R"("}]})"));
  }
  void Node(const std::string& name, int gpus) {
    Create("/api/v1/nodes", StrCat(R"({"metadata":{"name":")", name, R"("}})"));
    Status("/api/v1/nodes/" + name,
           StrCat(R"({"status":{"capacity":{"nvidia.com/gpu":")", gpus,
                  R"("},"allocatable":{"cpu":"8","memory":"16Gi","nvidia.com/gpu":")", gpus,
                  R"("},"conditions":[{"type":"Ready","status":"True"}]}})"));
  }
  void Job(const std::string& ns, const std::string& name, int workers = 2) {
    Create(StrCat("/apis/kubeflow.org/v1/namespaces/", ns, "/pytorchjobs"),
           StrCat(R"({"apiVersion":"kubeflow.org/v1","kind":"PyTorchJob","metadata":{"name":")",
                  name, R"("},"spec":{"pytorchReplicaSpecs":{"Worker":{"replicas":)", workers,
                  R"(,"template":{"spec":{"containers":[{"name":"pytorch","image":"i",)",
                  R"("resources":{"limits":{"nvidia.com/gpu":"1"}}}]}}}}}})"));
  }
  // A pod of the job on a node, with a GPU.
  void Pod(const std::string& ns, const std::string& job, int index, const std::string& node) {
    const std::string name = StrCat(job, "-worker-", index);
    api::RestRequest owner = server_.Request(
        "GET", StrCat("/apis/kubeflow.org/v1/namespaces/", ns, "/pytorchjobs/", job));
    owner.user = {.name = "root", .groups = {"system:masters"}};
    const apiserver::Answer made = server_.Send(std::move(owner));
    const std::string uid = made.Str({"metadata", "uid"});
    Create(StrCat("/api/v1/namespaces/", ns, "/pods"),
           StrCat(R"({"metadata":{"name":")", name, R"(","labels":{"swell.dev/job-name":")", job,
                  R"("},"annotations":{"swell.dev/gpu-devices":")", index,
                  R"("},"ownerReferences":[{"apiVersion":"kubeflow.org/v1","kind":"PyTorchJob",)",
                  R"("name":")", job, R"(","controller":true,"uid":")", uid,
                  R"("}]},"spec":{"nodeName":")", node,
                  R"(","containers":[{"name":"c","image":"i","resources":{"limits":)",
                  R"({"nvidia.com/gpu":"1"}}}]}})"));
    Status(StrCat("/api/v1/namespaces/", ns, "/pods/", name), R"({"status":{"phase":"Running"}})");
  }

  std::shared_ptr<const Rights> RightsOf(const std::string& token) {
    std::vector<std::string> namespaces;
    for (const auto& [name, object] : state_.Of(Kind::kNamespace)) namespaces.push_back(name);
    Result<Rights> rights = swell::Status(Code::kInternal, "no answer");
    reader_.Read({.bearer_token = token}, namespaces,
                 [&rights](Result<Rights> read) { rights = std::move(read); });
    server_.executor.RunPosted();
    EXPECT_TRUE(rights.ok()) << rights.status().ToString();
    return std::make_shared<const Rights>(rights.ok() ? *rights : Rights{});
  }
  // The view's data as that user sees it.
  json::Value See(const std::string& view, const std::string& token, const Params& params = {}) {
    const auto shown = board_.Read(view, params, RightsOf(token));
    EXPECT_TRUE(shown.ok()) << shown.status().ToString();
    return shown.ok() ? json::Parse(*shown->text).value() : json::Value();
  }
  // "a b": the names of the view's rows.
  std::string Names(const std::string& view, const std::string& token) {
    std::vector<std::string> names;
    const json::Value data = See(view, token);
    for (const json::Value& row : json::GetArray(data, {"rows"})) {
      names.emplace_back(json::GetString(row, {"name"}));
    }
    return Join(names, " ");
  }

  // Shares the test's server with those that want to own theirs.
  class Shared final : public api::RestHandler {
   public:
    explicit Shared(api::RestHandler& server) : server_(server) {}
    std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                          std::shared_ptr<api::RestSink> sink) override {
      return server_.Handle(std::move(request), std::move(sink));
    }
    api::HandlerCapabilities capabilities() override { return server_.capabilities(); }

   private:
    api::RestHandler& server_;
  };

  apiserver::TestServer server_;
  std::shared_ptr<api::RestHandler> handler_ = std::make_shared<Shared>(*server_.server);
  api::UserInfo system_{.name = "system:swell", .groups = {"system:masters"}};
  controllers::Informers informers_{server_.executor, handler_, system_, 1};
  ClusterState state_{server_.executor};
  ViewBoard board_{server_.executor, server_.executor, state_};
  RightsReader reader_{server_.executor,
                       MakeCoreCalls(server_.executor, server_.executor, handler_)};
  ClusterFeed feed_{server_.executor, server_.executor, informers_, handler_, system_, state_, 7};
};

}  // namespace swell::ui
