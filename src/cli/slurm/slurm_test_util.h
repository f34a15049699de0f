// A cluster with two nodes, a node pool and a project, for tests of Slurm's commands.
// - Threads: one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/temp_dir.h"
#include "cli/cli_test_util.h"

namespace swell::cli {

class SlurmTest : public CliTest {
 protected:
  void SetUp() override {
    variables_ = {{"USER", "ada"}, {"PWD", "/home/ada/work"}, {"HOME", "/home/ada"}};
    env_.getenv = [this](const std::string& name) {
      const auto found = variables_.find(name);
      return found == variables_.end() ? std::string() : found->second;
    };
    for (const char* node : {"node-1", "node-2"}) {
      Create(StrCat("{apiVersion: v1, kind: Node, metadata: {name: ", node,
                    ", labels: {kubernetes.io/hostname: ", node,
                    ", nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB}}}"));
      Status(StrCat("/api/v1/nodes/", node),
             R"({"status":{"capacity":{"nvidia.com/gpu":"8","cpu":"64","memory":"512Gi"},)"
             R"("allocatable":{"nvidia.com/gpu":"8","cpu":"64","memory":"512Gi"},)"
             R"("conditions":[{"type":"Ready","status":"True"}]}})");
    }
    Create(
        "{apiVersion: swell.dev/v1, kind: NodePool, metadata: {name: big}, spec: {nodeSelector: "
        "{kubernetes.io/hostname: node-1}}}");
    Create("{apiVersion: v1, kind: Namespace, metadata: {name: vision}}");
    ASSERT_EQ(Run({"swell", "project", "create", "vision", "--gpu-quota", "8"}), 0) << err_;
  }
  // sbatch of a script with these #SBATCH lines, on an image.
  int Sbatch(const std::string& header, std::vector<std::string> flags = {}) {
    const std::string path = scripts_.File("train.sh");
    std::string text = "#!/bin/bash\n";
    for (std::string_view line : Split(header, '\n')) text += StrCat("#SBATCH ", line, "\n");
    EXPECT_TRUE(WriteFileAtomically(path, text + "srun python train.py\n").ok());
    std::vector<std::string> words{"sbatch", "--container-image", "img"};
    words.insert(words.end(), flags.begin(), flags.end());
    words.push_back(path);
    words.insert(words.end(), arguments_.begin(), arguments_.end());
    return Run(words);
  }
  // The number that sbatch printed.
  std::string Number() const {
    const std::string_view line = Trim(out_);
    return std::string(line.substr(line.rfind(' ') + 1));
  }
  json::Value Get(const std::string& path) {
    auto answer = server_.Send(server_.Request("GET", path));
    EXPECT_EQ(answer.status, 200) << answer.text;
    auto parsed = json::Parse(answer.text);
    return parsed.ok() ? *parsed : json::Value();
  }
  json::Value JobOf(const std::string& name, const std::string& ns = "default") {
    return Get(StrCat("/apis/swell.dev/v1/namespaces/", ns, "/trainingjobs/", name));
  }
  static const json::Value& PodSpec(const json::Value& job) {
    return *json::Find(job, {"spec", "roles", "launcher", "template", "spec"});
  }
  static std::string EnvOf(const json::Value& pod_spec, std::string_view name) {
    for (const json::Value& one :
         json::GetArray(json::GetArray(pod_spec, {"containers"})[0], {"env"})) {
      if (json::GetString(one, {"name"}) == name)
        return std::string(json::GetString(one, {"value"}));
    }
    return "(unset)";
  }
  // The job's first pod, as its controller and an agent would have made it.
  void JobPod(const std::string& name, const std::string& phase, const std::string& more = {}) {
    const json::Value job = JobOf(name);
    Create(
        StrCat("{apiVersion: v1, kind: Pod, metadata: {name: ", name,
               "-launcher-0, labels: {swell.dev/job-role: launcher, swell.dev/job-index: \"0\"}, "
               "ownerReferences: [{apiVersion: swell.dev/v1, kind: TrainingJob, controller: "
               "true, name: ",
               name, ", uid: ", json::GetString(job, {"metadata", "uid"}),
               "}]}, spec: {nodeName: node-1, containers: [{name: node, image: img, resources: "
               "{limits: {nvidia.com/gpu: 4}}}]}}"));
    Status(StrCat("/api/v1/namespaces/default/pods/", name, "-launcher-0"),
           StrCat(R"({"status":{"phase":")", phase, R"(","startTime":")",
                  api::FormatTime(server_.executor.Now()), "\"", more, "}}"));
  }
  void JobBecomes(const std::string& name,
                  const std::string& condition,
                  const std::string& reason = "R") {
    const std::string now = api::FormatTime(server_.executor.Now());
    Status(StrCat("/apis/swell.dev/v1/namespaces/default/trainingjobs/", name),
           StrCat(R"({"status":{"startTime":")", now, R"(","conditions":[{"type":")", condition,
                  R"(","status":"True","reason":")", reason,
                  R"(","message":"M","lastTransitionTime":")", now, R"("}]}})"));
  }

  std::map<std::string, std::string> variables_;
  const TempDir scripts_;
  std::vector<std::string> arguments_;
};

}  // namespace swell::cli
