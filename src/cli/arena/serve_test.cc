// arena serve, against an API server in this process.
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/temp_dir.h"
#include "cli/cli_test_util.h"

namespace swell::cli {
namespace {

constexpr std::string_view kDeployments = "/apis/apps/v1/namespaces/default/deployments/";
constexpr std::string_view kServices = "/api/v1/namespaces/default/services/";
constexpr std::string_view kConfigMaps = "/api/v1/namespaces/default/configmaps/";

class ArenaServeTest : public CliTest {
 protected:
  // Null if it is not there.
  json::Value Get(std::string_view folder, std::string_view name) {
    auto answer = server_.Send(server_.Request("GET", StrCat(folder, name)));
    return answer.status == 200 ? answer.body : json::Value();
  }
  int Serve(const std::string& version, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{"arena",        "serve",
                                   "custom",       "--name=bert",
                                   "--gpus=1",     "--version=" + version,
                                   "--replicas=2", "--restful-port=5000",
                                   "--image=i"};
    words.insert(words.end(), more.begin(), more.end());
    return Run(words);
  }
  static const json::Value& Container(const json::Value& deployment) {
    return json::GetArray(deployment, {"spec", "template", "spec", "containers"}).at(0);
  }
  static std::string CommandOf(const json::Value& deployment) {
    std::vector<std::string> words;
    for (const json::Value& word : json::GetArray(Container(deployment), {"command"})) {
      words.emplace_back(json::View(word.get_string()));
    }
    return Join(words, " ");
  }
  void ReplicaPod(const std::string& name, const std::string& status) {
    Create(StrCat("{apiVersion: v1, kind: Pod, metadata: {name: ", name,
                  ", labels: {app: custom-serving, release: bert-v1}}, spec: {containers: [{name: "
                  "custom-serving, image: i, resources: {limits: {nvidia.com/gpu: 1}}}]}}"));
    Status("/api/v1/namespaces/default/pods/" + name, status);
  }
};

TEST_F(ArenaServeTest, StartsADeploymentAndAService) {
  ASSERT_EQ(Serve("v1", {"--port=8001", "--data=models:/models", "--env=A=b", "--label=team=red",
                         "--max-unavailable=1", "--readiness-probe-action=httpGet",
                         "--readiness-probe-action-option=port: 5000",
                         "--readiness-probe-action-option=path: /healthz",
                         "--readiness-probe-option=periodSeconds: 5", "python app.py"}),
            0)
      << err_;
  EXPECT_EQ(out_,
            "service/bert-v1 created\n"
            "deployment.apps/bert-v1-custom-serving created\n");
  EXPECT_EQ(err_,
            "INFO[0000] The Job bert has been submitted successfully\n"
            "INFO[0000] You can run `arena serve get bert --type custom-serving` to check the job "
            "status\n"
            "INFO[0000] You can run `swell port-forward svc/bert-v1 5000` to reach it from any "
            "machine with your rights\n");
  const json::Value deployment = Get(kDeployments, "bert-v1-custom-serving");
  const json::Value service = Get(kServices, "bert-v1");
  for (const json::Value* object :
       {&deployment, &service, json::Find(deployment, {"spec", "template"})}) {
    EXPECT_EQ(api::Label(*object, "servingName"), "bert");
    EXPECT_EQ(api::Label(*object, "servingType"), "custom-serving");
    EXPECT_EQ(api::Label(*object, "servingVersion"), "v1");
    EXPECT_EQ(api::Label(*object, "release"), "bert-v1");
    EXPECT_EQ(api::Label(*object, "team"), "red");
  }
  EXPECT_EQ(json::GetInt(deployment, {"spec", "replicas"}), 2);
  EXPECT_EQ(json::GetInt(deployment, {"spec", "strategy", "rollingUpdate", "maxUnavailable"}), 1);
  EXPECT_EQ(CommandOf(deployment), "sh -c python app.py");
  const json::Value& container = Container(deployment);
  EXPECT_EQ(json::GetString(container, {"resources", "limits", "nvidia.com/gpu"}), "1");
  EXPECT_EQ(json::GetString(container, {"readinessProbe", "httpGet", "path"}), "/healthz");
  EXPECT_EQ(json::GetInt(container, {"readinessProbe", "periodSeconds"}), 5);
  // The Service leads to the pods, and goes with the Deployment.
  EXPECT_TRUE(json::Equal(*json::Find(service, {"spec", "selector"}),
                          *json::Find(deployment, {"spec", "selector", "matchLabels"})));
  EXPECT_EQ(json::GetArray(service, {"spec", "ports"}).size(), 2U);
  EXPECT_EQ(
      json::GetString(json::GetArray(service, {"metadata", "ownerReferences"}).at(0), {"uid"}),
      api::Uid(deployment));
}

TEST_F(ArenaServeTest, AVersionIsTheTimeUnlessItIsSaid) {
  ASSERT_EQ(Run({"arena", "serve", "custom", "--name=bert", "--image=i"}), 0) << err_;
  std::string time = api::FormatTime(server_.executor.Now());
  std::erase_if(time, [](char c) { return c < '0' || c > '9'; });
  EXPECT_EQ(out_, StrCat("deployment.apps/bert-", time.substr(0, 12), "-custom-serving created\n"));
}

TEST_F(ArenaServeTest, ANameIsTakenOncePerVersion) {
  ASSERT_EQ(Serve("v1"), 0) << err_;
  EXPECT_EQ(Serve("v1"), 1);
  EXPECT_NE(err_.find("use 'arena serve delete bert --version v1'"), std::string::npos) << err_;
  EXPECT_EQ(Serve("v2"), 0) << err_;
}

TEST_F(ArenaServeTest, NothingIsLeftWhenTheServiceIsRefused) {
  Create("{apiVersion: v1, kind: Service, metadata: {name: bert-v1}, spec: {ports: [{port: 80}]}}");
  EXPECT_EQ(Serve("v1"), 1);
  EXPECT_EQ(out_, "");
  EXPECT_NE(err_.find("bert-v1"), std::string::npos) << err_;
  EXPECT_TRUE(Get(kDeployments, "bert-v1-custom-serving").is_null());
}

TEST_F(ArenaServeTest, FilesAndPartsOfGpus) {
  TempDir dir;
  ASSERT_TRUE(WriteFileAtomically(dir.path() + "/a.conf", "x = 1").ok());
  ASSERT_EQ(Run({"arena", "serve", "custom", "--name=bert", "--version=v1", "--image=i",
                 "--gpumemory=4", "--config-file=" + dir.path() + "/a.conf:/etc/app/"}),
            0)
      << err_;
  const json::Value deployment = Get(kDeployments, "bert-v1-custom-serving");
  EXPECT_EQ(api::Annotation(*json::Find(deployment, {"spec", "template"}), "swell.dev/gpu-memory"),
            "4096");
  ASSERT_EQ(Run({"arena", "serve", "get", "bert"}), 0) << err_;
  EXPECT_NE(out_.find("GPU:        4096Mi\n"), std::string::npos) << out_;
  const json::Value map = Get(kConfigMaps, "bert-v1-custom-serving-cm");
  EXPECT_EQ(json::GetString(map, {"data", "file-0"}), "x = 1");
  EXPECT_EQ(
      json::GetString(json::GetArray(Container(deployment), {"volumeMounts"}).at(0), {"mountPath"}),
      "/etc/app/a.conf");
}

TEST_F(ArenaServeTest, TensorFlowServesAModel) {
  ASSERT_EQ(
      Run({"arena", "serve", "tensorflow", "--name=mymnist", "--version=1", "--model-name=mnist",
           "--data=pvc:/tfmodel", "--model-path=/tfmodel/mnist", "--version-policy=specific:3"}),
      0)
      << err_;
  EXPECT_EQ(out_,
            "configmap/mymnist-1-tensorflow-serving-cm created\n"
            "service/mymnist-1-tensorflow-serving created\n"
            "deployment.apps/mymnist-1-tensorflow-serving created\n");
  EXPECT_EQ(CommandOf(Get(kDeployments, "mymnist-1-tensorflow-serving")),
            "tensorflow_model_server --port=8500 --rest_api_port=8501 "
            "--model_config_file=/etc/tf-serving/models.config");
  const json::Value map = Get(kConfigMaps, "mymnist-1-tensorflow-serving-cm");
  EXPECT_NE(json::GetString(map, {"data", "file-0"}).find("specific: { versions: 3 }"),
            std::string_view::npos);
  ASSERT_EQ(Run({"arena", "serve", "list", "--type", "tf"}), 0) << err_;
  EXPECT_NE(out_.find("GRPC:8500,RESTFUL:8501"), std::string::npos) << out_;
  EXPECT_EQ(Run({"arena", "serve", "tf", "--name=a", "--model-name=m", "--model-path=/m",
                 "--version-policy=newest"}),
            2);
}

TEST_F(ArenaServeTest, TensorFlowReadsFilesOfTheContainer) {
  ASSERT_EQ(Run({"arena", "serve", "tensorflow", "--name=m", "--version=1", "--model-name=mnist",
                 "--model-path=/m", "--monitoring-config-file=/m/prometheus_config.txt"}),
            0)
      << err_;
  EXPECT_EQ(CommandOf(Get(kDeployments, "m-1-tensorflow-serving")),
            "tensorflow_model_server --port=8500 --rest_api_port=8501 "
            "--monitoring_config_file=/m/prometheus_config.txt --model_name=mnist "
            "--model_base_path=/m");
  ASSERT_EQ(Run({"arena", "serve", "tensorflow", "--name=m", "--version=2",
                 "--model-config-file=/m/models.config"}),
            0)
      << err_;
  EXPECT_EQ(CommandOf(Get(kDeployments, "m-2-tensorflow-serving")),
            "tensorflow_model_server --port=8500 --rest_api_port=8501 "
            "--model_config_file=/m/models.config");
}

TEST_F(ArenaServeTest, CommandsForJobsPointToServers) {
  ASSERT_EQ(Serve("v1"), 0) << err_;
  EXPECT_EQ(Run({"arena", "get", "bert"}), 1);
  EXPECT_EQ(err_,
            "arena: The job bert doesn't exist in namespace default, please create it first. use "
            "'arena submit'. It is a server: use 'arena serve get bert'\n");
  EXPECT_EQ(Run({"arena", "delete", "bert", "nobody"}), 1);
  EXPECT_EQ(err_,
            "ERRO[0000] The job bert doesn't exist in namespace default. It is a server: use "
            "'arena serve delete bert'\n"
            "ERRO[0000] The job nobody doesn't exist in namespace default\n");
}

TEST_F(ArenaServeTest, FlagsOfOlderVersionsAreKnown) {
  ASSERT_EQ(Serve("v1", {"--imagePullPolicy=Always"}), 0) << err_;
  EXPECT_EQ(
      json::GetString(Container(Get(kDeployments, "bert-v1-custom-serving")), {"imagePullPolicy"}),
      "Always");
  EXPECT_EQ(Serve("v2", {"--exposeService"}), 2);
  EXPECT_NE(err_.find("--exposeService is not supported: Swell has no Istio"), std::string::npos)
      << err_;
  EXPECT_EQ(Run({"arena", "serve", "tf", "--name=m", "--modelConfigFile=/m"}), 0) << err_;
}

TEST_F(ArenaServeTest, TritonServesARepository) {
  ASSERT_EQ(Run({"arena", "serve", "triton", "--name=t", "--version=1", "--gpus=1",
                 "--model-repository=/models", "--load-model=a", "--allow-metrics",
                 "--extend-command=--log-verbose=1 --strict-readiness=false"}),
            0)
      << err_;
  EXPECT_NE(err_.find("svc/t-1-tritoninferenceserver 8000`"), std::string::npos) << err_;
  EXPECT_EQ(CommandOf(Get(kDeployments, "t-1-tritoninferenceserver")),
            "tritonserver --model-repository=/models --http-port=8000 --grpc-port=8001 "
            "--metrics-port=8002 --allow-metrics=true --model-control-mode=explicit "
            "--load-model=a --log-verbose=1 --strict-readiness=false");
}

TEST_F(ArenaServeTest, ListShowsEachVersion) {
  ASSERT_EQ(Serve("v1"), 0) << err_;
  ASSERT_EQ(Serve("v2"), 0) << err_;
  Status(StrCat(kDeployments, "bert-v1-custom-serving"),
         R"({"status":{"replicas":2,"readyReplicas":1,"availableReplicas":1}})");
  // No server.
  Create(
      "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {selector: "
      "{matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, "
      "image: i}]}}}}");
  ASSERT_EQ(Run({"arena", "serve", "list"}), 0) << err_;
  const auto address = [this](std::string_view service) {
    return std::string(json::GetString(Get(kServices, service), {"spec", "clusterIP"}));
  };
  const std::string first = address("bert-v1"), second = address("bert-v2");
  const auto padded = [](std::string text) {
    text.resize(std::max<size_t>(text.size(), 9), ' ');
    return text;
  };
  EXPECT_EQ(out_, StrCat("NAME  TYPE    VERSION  DESIRED  AVAILABLE  ", padded("ADDRESS"),
                         "  PORTS         GPU\n", "bert  Custom  v1       2        1          ",
                         padded(first), "  RESTFUL:5000  2\n",
                         "bert  Custom  v2       2        0          ", padded(second),
                         "  RESTFUL:5000  2\n"));
  ASSERT_EQ(Run({"arena", "serve", "list", "-A", "-o", "json"}), 0) << err_;
  const json::Value all = json::Parse(out_).value();
  EXPECT_EQ(all.get_array().size(), 2U);
  EXPECT_EQ(json::GetInt(all.get_array()[0], {"availableInstances"}), 1);
}

TEST_F(ArenaServeTest, GetShowsInstancesAndWhatIsWrong) {
  ASSERT_EQ(Serve("v1"), 0) << err_;
  ReplicaPod("bert-a",
             R"({"status":{"phase":"Pending","conditions":[{"type":"PodScheduled",)"
             R"("status":"False","reason":"Unschedulable","message":"no GPU is free"}]}})");
  ASSERT_EQ(Run({"arena", "serve", "get", "bert"}), 0) << err_;
  for (const char* line :
       {"Name:       bert\n", "Type:       Custom\n", "Version:    v1\n", "Available:  0\n",
        "Port:       RESTFUL:5000\n", "GPU:        2\n", "Instances:\n",
        "  NAME    STATUS   AGE  READY  RESTARTS  GPU  NODE\n",
        "  bert-a  Pending  0s   0/1    0         1    N/A\n", "\nREASON: no GPU is free\n"}) {
    EXPECT_NE(out_.find(line), std::string::npos) << line << "\nin\n" << out_;
  }
  ASSERT_EQ(Run({"arena", "serve", "get", "bert", "-o", "json"}), 0) << err_;
  const json::Value one = json::Parse(out_).value();
  EXPECT_EQ(json::GetString(one, {"reason"}), "no GPU is free");
  EXPECT_EQ(json::GetArray(one, {"instances"}).size(), 1U);
}

TEST_F(ArenaServeTest, OneOfSeveralVersionsIsChosen) {
  ASSERT_EQ(Serve("v1"), 0) << err_;
  ASSERT_EQ(Serve("v2"), 0) << err_;
  EXPECT_EQ(Run({"arena", "serve", "get", "bert"}), 2);
  EXPECT_NE(err_.find("the serving job bert has 2 versions: v1 (custom-serving), v2 "
                      "(custom-serving); choose one with --version or --type"),
            std::string::npos)
      << err_;
  ASSERT_EQ(Run({"arena", "serve", "get", "bert", "--version", "v2"}), 0) << err_;
  EXPECT_NE(out_.find("Version:    v2\n"), std::string::npos) << out_;
  EXPECT_EQ(Run({"arena", "serve", "get", "bert", "--type", "tf-serving"}), 1);
  EXPECT_EQ(Run({"arena", "serve", "logs", "nobody"}), 1);
  EXPECT_NE(err_.find("The serving job nobody doesn't exist in namespace default"),
            std::string::npos)
      << err_;
}

TEST_F(ArenaServeTest, UpdateChangesWhatIsSaid) {
  ASSERT_EQ(Serve("v1", {"--env=A=b", "python app.py"}), 0) << err_;
  ASSERT_EQ(Run({"arena", "serve", "update", "custom", "--name=bert", "--replicas=5"}), 0) << err_;
  EXPECT_EQ(err_,
            "INFO[0000] The serving job bert with version v1 has been updated successfully\n");
  ASSERT_EQ(Run({"arena", "serve", "update", "custom", "--name=bert", "--image=j", "--env=C=d",
                 "--command=python b.py", "--gpus=2"}),
            0)
      << err_;
  const json::Value deployment = Get(kDeployments, "bert-v1-custom-serving");
  EXPECT_EQ(json::GetInt(deployment, {"spec", "replicas"}), 5);
  EXPECT_EQ(json::GetString(Container(deployment), {"image"}), "j");
  EXPECT_EQ(CommandOf(deployment), "sh -c python b.py");
  EXPECT_EQ(json::GetString(Container(deployment), {"resources", "requests", "nvidia.com/gpu"}),
            "2");
  EXPECT_EQ(json::GetArray(Container(deployment), {"env"}).size(), 2U);
  ASSERT_EQ(Run({"arena", "serve", "update", "custom", "--name=bert", "--max-surge=0",
                 "--max-unavailable=50%"}),
            0)
      << err_;
  const json::Value paced = Get(kDeployments, "bert-v1-custom-serving");
  EXPECT_EQ(json::GetInt(paced, {"spec", "strategy", "rollingUpdate", "maxSurge"}, 1), 0);
  EXPECT_EQ(json::GetString(paced, {"spec", "strategy", "rollingUpdate", "maxUnavailable"}), "50%");
  EXPECT_EQ(Run({"arena", "serve", "update", "custom", "--name=bert"}), 2);
  EXPECT_EQ(Run({"arena", "serve", "update", "triton", "--name=bert", "--replicas=1"}), 1);
}

TEST_F(ArenaServeTest, UpdateTakesTheFlagsOfAStart) {
  const auto update = [this](const std::vector<std::string>& more) {
    std::vector<std::string> words{"arena", "serve", "update", "custom", "--name=bert"};
    words.insert(words.end(), more.begin(), more.end());
    return Run(words);
  };
  const auto annotation = [](const json::Value& deployment, std::string_view key) {
    return api::Annotation(*json::Find(deployment, {"spec", "template"}), key);
  };
  ASSERT_EQ(Serve("v1", {"--selector=zone=a"}), 0) << err_;
  ASSERT_EQ(update({"--label=team=red", "--annotation=x=y", "--selector=disk=ssd",
                    "--toleration=all", "--device=rdma/hca=1", "--gpumemory=2"}),
            0)
      << err_;
  const json::Value shared = Get(kDeployments, "bert-v1-custom-serving");
  for (const json::Value* object : {&shared, json::Find(shared, {"spec", "template"})}) {
    EXPECT_EQ(api::Label(*object, "team"), "red");
    EXPECT_EQ(api::Annotation(*object, "x"), "y");
  }
  const json::Value& pod = *json::Find(shared, {"spec", "template", "spec"});
  EXPECT_EQ(json::GetString(pod, {"nodeSelector", "zone"}), "a");
  EXPECT_EQ(json::GetString(pod, {"nodeSelector", "disk"}), "ssd");
  EXPECT_EQ(json::GetArray(pod, {"tolerations"}).size(), 1U);
  EXPECT_EQ(json::GetString(Container(shared), {"resources", "limits", "rdma/hca"}), "1");
  EXPECT_EQ(json::Find(Container(shared), {"resources", "limits", "nvidia.com/gpu"}), nullptr);
  EXPECT_EQ(annotation(shared, "swell.dev/gpu-memory"), "2048");
  ASSERT_EQ(update({"--gpus=0"}), 0) << err_;
  const json::Value without = Get(kDeployments, "bert-v1-custom-serving");
  EXPECT_EQ(annotation(without, "swell.dev/gpu-memory"), "");
  EXPECT_EQ(json::GetString(json::GetArray(Container(without), {"env"}).at(0), {"value"}), "void");
  ASSERT_EQ(update({"--gpus=1"}), 0) << err_;
  const json::Value whole = Get(kDeployments, "bert-v1-custom-serving");
  EXPECT_TRUE(json::GetArray(Container(whole), {"env"}).empty()) << "it sees its GPU";
  for (const auto& [flag, wrong] : {std::pair("--cpu=abc", "--cpu \"abc\""),
                                    std::pair("--device=rdma/hca=x", "resource rdma/hca \"x\""),
                                    std::pair("--gpus=-1", "--gpus -1: must not be negative")}) {
    EXPECT_EQ(update({flag}), 2);
    EXPECT_TRUE(err_.starts_with(StrCat("arena serve update custom: ", wrong))) << err_;
  }
  EXPECT_EQ(update({"--label=app=x"}), 2);
  EXPECT_NE(err_.find("--label app: arena tells servers apart by it"), std::string::npos) << err_;
}

TEST_F(ArenaServeTest, DeleteTakesTheServiceToo) {
  ASSERT_EQ(Serve("v1"), 0) << err_;
  ASSERT_EQ(Serve("v2"), 0) << err_;
  ASSERT_EQ(Run({"arena", "serve", "delete", "bert", "--version=v1"}), 0) << err_;
  EXPECT_EQ(out_,
            "service \"bert-v1\" deleted\n"
            "deployment.apps \"bert-v1-custom-serving\" deleted\n");
  EXPECT_EQ(err_,
            "INFO[0000] The serving job bert with version v1 has been deleted successfully\n");
  EXPECT_TRUE(Get(kServices, "bert-v1").is_null());
  EXPECT_FALSE(Get(kServices, "bert-v2").is_null());
  EXPECT_EQ(Run({"arena", "serve", "delete", "other"}), 1);
}

TEST_F(ArenaServeTest, WhatCannotBeServedIsRefusedInWords) {
  EXPECT_EQ(Run({"arena", "serve", "kserve", "--name=a", "--image=i"}), 2);
  EXPECT_NE(err_.find("arena serve kserve is not supported"), std::string::npos) << err_;
  EXPECT_EQ(Serve("v1", {"--enable-istio"}), 2);
  EXPECT_NE(err_.find("Istio"), std::string::npos) << err_;
  EXPECT_EQ(Serve("1.0"), 2);
  EXPECT_NE(err_.find("--version \"1.0\""), std::string::npos) << err_;
  EXPECT_EQ(Serve("v1", {"--gpucore=50"}), 2);  // beside --gpus
  EXPECT_EQ(Serve("v1", {"--command=a", "b"}), 2);
  EXPECT_EQ(Serve("v1", {"--readiness-probe-option=periodSeconds: 5"}), 2);
}

}  // namespace
}  // namespace swell::cli
