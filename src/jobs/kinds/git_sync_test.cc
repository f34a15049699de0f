#include "jobs/kinds/git_sync.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "jobs/kinds/kubedl_job.h"
#include "json/yaml.h"

namespace swell::jobs {
namespace {

json::Value JobWith(const std::string& config) {
  const std::string text = StrCat(
      R"({apiVersion: training.kubedl.io/v1alpha1, kind: PyTorchJob,
      metadata: {name: net, namespace: default, annotations: {kubedl.io/git-sync-config: ')",
      config, R"('}}, spec: {pytorchReplicaSpecs: {Worker: {replicas: 2, template: {spec: {
      containers: [{name: pytorch, image: i, workingDir: /work, resources: {limits: {cpu: 1}}},
      {name: side, image: i}]}}}}}})");
  return json::ParseYaml(text).value().front();
}

std::string Wrong(const std::string& config) {
  const auto spec = MakeKubedlJobKind({})->Parse(JobWith(config));
  return spec.ok() ? "" : spec.status().message();
}

TEST(GitSync, PodsBeginWithTheCode) {
  const auto spec = MakeKubedlJobKind({})->Parse(
      JobWith(R"({"source": "https://host/team/sample.git", "branch": "main", "depth": "1",)"
              R"( "envs": [{"name": "A", "value": "b"}]})"));
  ASSERT_TRUE(spec.ok()) << spec.status().ToString();
  const json::Value& pod = spec->replicas.front().pod_template;
  EXPECT_EQ(
      json::Print(*json::Find(pod, {"spec", "initContainers"})),
      R"([{"name":"git-sync-code","image":"kubedl/git-sync:v1",)"
      R"("imagePullPolicy":"IfNotPresent","env":[{"name":"A","value":"b"},)"
      R"({"name":"GIT_SYNC_REPO","value":"https://host/team/sample.git"},)"
      R"({"name":"GIT_SYNC_ONE_TIME","value":"true"},)"
      R"({"name":"GIT_SYNC_MAX_SYNC_FAILURES","value":"3"},)"
      R"({"name":"GIT_SYNC_BRANCH","value":"main"},{"name":"GIT_SYNC_DEPTH","value":"1"},)"
      R"({"name":"GIT_SYNC_ROOT","value":"/code"},{"name":"GIT_SYNC_DEST","value":"sample"}],)"
      R"("volumeMounts":[{"name":"git-sync","mountPath":"/code"}],)"
      R"("resources":{"limits":{"cpu":1}}}])");
  EXPECT_EQ(json::Print(*json::Find(pod, {"spec", "volumes"})),
            R"([{"name":"git-sync","emptyDir":{}}])");
  const json::Array& containers = json::GetArray(pod, {"spec", "containers"});
  EXPECT_EQ(json::Print(*json::Find(containers[0], {"volumeMounts"})),
            R"([{"name":"git-sync","mountPath":"/work/sample","subPath":"sample"}])");
  EXPECT_EQ(json::Print(*json::Find(containers[1], {"volumeMounts"})),
            R"([{"name":"git-sync","mountPath":"/sample","subPath":"sample"}])");
}

TEST(GitSync, MistakesNameTheField) {
  const std::string at = "metadata.annotations[kubedl.io/git-sync-config]";
  EXPECT_EQ(Wrong("source: x"), at + ": must be a JSON object, like {\"source\": "
                                     "\"https://host/team/code.git\"}");
  EXPECT_EQ(Wrong("{}"), at + ".source: Required value: the repository to fetch");
  EXPECT_EQ(Wrong(R"({"source": "/r", "rootPath": "code"})"),
            at + ".rootPath: must be an absolute path");
  for (const char* dest : {"/", "/x", "a/../b", "a//b"}) {
    EXPECT_EQ(Wrong(StrCat(R"({"source": "/r", "destPath": ")", dest, R"("})")),
              at + ".destPath: must be a relative path without '..'");
  }
  EXPECT_EQ(Wrong(R"({"source": "/r"})"), "");
  EXPECT_EQ(Wrong(R"({"source": "/r", "destPath": "code/"})"), "");
}

}  // namespace
}  // namespace swell::jobs
