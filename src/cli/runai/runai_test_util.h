// A cluster with two projects, for tests of the commands that share it: runai, project, nodepool.
// - Threads: one.
#pragma once

#include <string>
#include <vector>

#include "cli/cli_test_util.h"

namespace swell::cli {

class RunaiTest : public CliTest {
 protected:
  // A node with eight GPUs, a pool of it, and two projects whose namespaces are there.
  void Cluster() {
    Create("{apiVersion: v1, kind: Node, metadata: {name: node-1}}");
    Status("/api/v1/nodes/node-1",
           R"({"status":{"capacity":{"nvidia.com/gpu":"8","cpu":"8","memory":"64Gi"},)"
           R"("allocatable":{"nvidia.com/gpu":"8","cpu":"8","memory":"64Gi"},)"
           R"("addresses":[{"type":"InternalIP","address":"10.0.0.1"}],)"
           R"("conditions":[{"type":"Ready","status":"True"}]}})");
    ASSERT_EQ(Run({"swell", "nodepool", "create", "single-node-pool", "--all-nodes"}), 0) << err_;
    for (const char* project : {"project-a", "project-b"}) {
      Create(StrCat("{apiVersion: v1, kind: Namespace, metadata: {name: ", project, "}}"));
      ASSERT_EQ(Run({"swell", "project", "create", project, "--description", "A project",
                     "--node-pool", "single-node-pool", "--gpu-quota", "4"}),
                0)
          << err_;
    }
  }
  int Submit(std::vector<std::string> more = {}) {
    std::vector<std::string> words{"runai",     "submit",  "large-training-job",    "--project",
                                   "project-a", "--image", "pytorch/pytorch:latest"};
    words.insert(words.end(), more.begin(), more.end());
    return Run(words);
  }
  json::Value Job(const std::string& name = "large-training-job",
                  const std::string& ns = "project-a") {
    auto answer = server_.Send(server_.Request(
        "GET", StrCat("/apis/swell.dev/v1/namespaces/", ns, "/trainingjobs/", name)));
    EXPECT_EQ(answer.status, 200) << answer.text;
    return json::Parse(answer.text).value();
  }
  void Usage(const std::string& project, double held, double requested, double fair) {
    Status(
        "/apis/swell.dev/v1/projects/" + project,
        json::Print(json::Object{
            {"status",
             json::Object{{"usage", json::Object{{"gpu", json::Object{{"allocated", held},
                                                                      {"requested", requested},
                                                                      {"fairShare", fair}}}}}}}}));
  }
  // A pod of the job as controller and agent would have made it: on node-1, unless it is pending.
  void JobPod(const std::string& phase, int gpus) {
    json::Value job = Job();
    Create(StrCat(
        "{apiVersion: v1, kind: Pod, metadata: {namespace: project-a, name: "
        "large-training-job-worker-0, labels: {swell.dev/pod-group: large-training-job, "
        "swell.dev/job-role: worker, swell.dev/job-index: \"0\", swell.dev/project: project-a}, "
        "ownerReferences: [{apiVersion: swell.dev/v1, kind: TrainingJob, controller: true, name: "
        "large-training-job, uid: ",
        json::GetString(job, {"metadata", "uid"}), "}]}, spec: {",
        phase == "Pending" ? "" : "nodeName: node-1, ",
        "containers: [{name: worker, image: img, ports: "
        "[{containerPort: 8888}], resources: {limits: {nvidia.com/gpu: ",
        gpus, "}}}]}}"));
    Status(
        "/api/v1/namespaces/project-a/pods/large-training-job-worker-0",
        StrCat(R"({"status":{"phase":")", phase, R"(","hostIP":"10.0.0.1","podIP":"10.1.0.5"}})"));
  }
  void Runs() {
    Status("/apis/swell.dev/v1/namespaces/project-a/trainingjobs/large-training-job",
           StrCat(R"({"status":{"startTime":")", api::FormatTime(server_.executor.Now()),
                  R"(","conditions":[{"type":"Running","status":"True","reason":"R","message":"M",)"
                  R"("lastTransitionTime":")",
                  api::FormatTime(server_.executor.Now()), R"("}]}})"));
  }
};

}  // namespace swell::cli
