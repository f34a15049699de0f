// `elasticdl` as people type it: the walkthrough's line, later versions' flags, and what is
// refused.
#include "base/file.h"
#include "base/temp_dir.h"
#include "cli/cli_test_util.h"

namespace swell::cli {
namespace {

class ElasticdlTest : public CliTest {
 protected:
  void SetUp() override {
    model_ = models_.File("mnist_functional_api.py");
    ASSERT_TRUE(WriteFileAtomically(model_, "def loss(o, l): ...\n").ok());
  }
  int Train(std::vector<std::string> more) {
    std::vector<std::string> words{"elasticdl", "train", "--job_name=job", "--model_file=" + model_,
                                   "--image_base=gcr.io/elasticdl/elasticdl:dev"};
    words.insert(words.end(), more.begin(), more.end());
    return Run(words);
  }
  void CreateClass(const std::string& name) {
    Create("{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: " + name +
           "}, value: 10}");
  }
  json::Value Get(const std::string& path) {
    auto answer = server_.Send(server_.Request("GET", path));
    EXPECT_EQ(answer.status, 200) << answer.text;
    return json::Parse(answer.text).value();
  }
  json::Value Job() {
    return Get("/apis/elasticdl.org/v1alpha1/namespaces/default/elasticdljobs/job");
  }
  static std::string Printed(const json::Value& root, json::Path path) {
    const json::Value* found = json::Find(root, path);
    return found ? json::Print(*found) : "";
  }
  static const json::Value& Container(const json::Value& job, std::string_view role) {
    return json::GetArray(
        job, {"spec", "elasticdlReplicaSpecs", role, "template", "spec", "containers"})[0];
  }

  const TempDir models_;
  std::string model_;
};

TEST_F(ElasticdlTest, TheWalkthroughsLineMeansWhatItSays) {
  CreateClass("high-priority");
  CreateClass("low-priority");
  ASSERT_EQ(Train({"--train_data_dir=/data/mnist/train", "--master_pod_priority=high-priority",
                   "--worker_pod_priority=low-priority", "--num_epoch=1", "--minibatch_size=10",
                   "--record_per_task=100", "--num_worker=2", "--master_cpu_request=1000m",
                   "--master_cpu_limit=1000m", "--master_memory_request=1024Mi",
                   "--master_memory_limit=1024Mi", "--worker_cpu_request=3000m",
                   "--worker_cpu_limit=3000m", "--worker_memory_request=4096Mi",
                   "--worker_memory_limit=4096Mi", "--grads_to_wait=2", "--codec_type=bytes",
                   "--repository=gcr.io"}),
            0)
      << err_;
  EXPECT_EQ(out_,
            "ElasticDL job job was successfully submitted. The master pod is: "
            "elasticdl-master-job.\n");
  const json::Value job = Job();
  EXPECT_EQ(json::GetInt(job, {"spec", "elasticdlReplicaSpecs", "Worker", "replicas"}), 2);
  EXPECT_EQ(json::GetString(job, {"spec", "elasticdlReplicaSpecs", "Worker", "priorityClassName"}),
            "low-priority");
  EXPECT_EQ(json::GetString(job, {"spec", "elasticdlReplicaSpecs", "Master", "priorityClassName"}),
            "high-priority");
  EXPECT_EQ(Printed(Container(job, "Worker"), {"resources"}),
            R"({"requests":{"cpu":"3000m","memory":"4096Mi"},)"
            R"("limits":{"cpu":"3000m","memory":"4096Mi"}})");
  EXPECT_EQ(Printed(Container(job, "Master"), {"resources", "requests"}),
            R"({"cpu":"1000m","memory":"1024Mi"})");
  EXPECT_EQ(Printed(Container(job, "Worker"), {"args"}),
            R"(["--mode=train","--job_name=job","--model_file=/model_zoo/mnist_functional_api.py",)"
            R"("--data=/data/mnist/train","--minibatch_size=10","--records_per_task=100",)"
            R"("--num_epochs=1","--codec_type=bytes","--grads_to_wait=2"])");
  const json::Value map = Get("/api/v1/namespaces/default/configmaps/elasticdl-model-job");
  EXPECT_EQ(json::GetString(map, {"data", "mnist_functional_api.py"}), "def loss(o, l): ...\n");
  EXPECT_EQ(api::Owners(map)[0].name, "job");
}

TEST_F(ElasticdlTest, LaterVersionsFlagsAndFractions) {
  CreateClass("high-priority");
  CreateClass("low");
  ASSERT_EQ(Train({"--training_data=/d", "--num_minibatches_per_task=4", "--num_workers=4",
                   "--worker_pod_priority=0.5", "--worker_resource_request",
                   "cpu=2,memory=1Gi,gpu=1", "--use_async", "true", "--envs=A=1,B=x=y",
                   "--volume=claim_name=c,mount_path=/v;host_path=/h,mount_path=/w",
                   "--aux_params=disable_relaunch=true", "--need_tf_config", "--num_ps_pods=2",
                   "--log_level=INFO", "--ps_pod_priority=high", "--get_model_steps=2"}),
            0)
      << err_;
  for (const char* told : {"--need_tf_config has no effect: model files are PyTorch's.\n",
                           "--log_level has no effect: kubectl logs prints all logs.\n",
                           "--ps_pod_priority has no effect: there are no parameter servers.\n",
                           "--get_model_steps has no effect: workers get the model with each "
                           "answer.\n"}) {
    EXPECT_NE(err_.find(told), std::string::npos) << told << err_;
  }
  EXPECT_EQ(err_.find("--repository"), std::string::npos) << err_;
  EXPECT_NE(err_.find("There are no parameter servers: the master keeps the parameters, and "
                      "--num_ps_pods=2 has no effect."),
            std::string::npos)
      << err_;
  const json::Value job = Job();
  EXPECT_EQ(json::GetString(job, {"spec", "highPriorityClassName"}), "high-priority");
  EXPECT_EQ(json::GetString(job, {"spec", "lowPriorityClassName"}), "low");
  EXPECT_EQ(json::GetInt(job, {"spec", "relaunchOnWorkerFailure"}, 9), 0);
  EXPECT_EQ(Printed(Container(job, "Worker"), {"resources", "limits"}),
            R"({"cpu":"2","memory":"1Gi","nvidia.com/gpu":"1"})");
  EXPECT_EQ(Printed(Container(job, "Worker"), {"env"}),
            R"([{"name":"A","value":"1"},{"name":"B","value":"x=y"}])");
  const std::string args = Printed(Container(job, "Worker"), {"args"});
  EXPECT_NE(args.find("--records_per_task=256"), std::string::npos) << args;
  EXPECT_NE(args.find("--use_async=true"), std::string::npos) << args;
}

TEST_F(ElasticdlTest, TakesTheLinesOfTutorialsForEstimators) {
  ASSERT_EQ(Train({"--training_data=/d", "--dataset_fn=records", "--num_ps=1", "--ps_image=i",
                   "--use_go_ps=true", "--chief_image=i", "--chief_resource_request=cpu=0.3",
                   "--chief_resource_limit=cpu=1", "--chief_pod_priority=high", "--num_evaluator=1",
                   "--evaluator_image=i", "--evaluator_resource_request=cpu=0.3",
                   "--evaluator_resource_limit=cpu=1", "--evaluator_pod_priority=low"}),
            0)
      << err_;
  for (const char* told :
       {"--num_ps_pods=1 has no effect.\n",
        "--ps_image has no effect: there are no parameter servers.\n",
        "--use_go_ps has no effect: there are no parameter servers.\n",
        "--chief_image has no effect: workers are alike, without a chief.\n",
        "--chief_resource_request has no effect: ", "--chief_resource_limit has no effect: ",
        "--chief_pod_priority has no effect: ",
        "--num_evaluators has no effect: workers evaluate.\n",
        "--evaluator_image has no effect: ", "--evaluator_resource_request has no effect: ",
        "--evaluator_resource_limit has no effect: ", "--evaluator_pod_priority has no effect: "}) {
    EXPECT_NE(err_.find(told), std::string::npos) << told << err_;
  }
  const std::string args = Printed(Container(Job(), "Worker"), {"args"});
  EXPECT_NE(args.find("\"--feed=records\""), std::string::npos) << args;
}

TEST_F(ElasticdlTest, APartOfTheWorkersHasAClassByName) {
  CreateClass("low");
  CreateClass("urgent");
  ASSERT_EQ(Train({"--training_data=/d", "--num_workers=4", "--worker_pod_priority=urgent=0.5"}), 0)
      << err_;
  const json::Value job = Job();
  EXPECT_EQ(json::GetString(job, {"spec", "elasticdlReplicaSpecs", "Worker", "priorityClassName"}),
            "urgent=0.5");
  EXPECT_EQ(json::GetString(job, {"spec", "lowPriorityClassName"}), "low");
  EXPECT_EQ(Train({"--training_data=/d", "--worker_pod_priority=high=2"}), 2);
  EXPECT_NE(err_.find("--worker_pod_priority \"high=2\": expected CLASS=PART, with a part between "
                      "0 and 1, such as high=0.5"),
            std::string::npos)
      << err_;
}

TEST_F(ElasticdlTest, NamesAPriorityClassThatThereIsNot) {
  CreateClass("urgent");
  for (const std::string flag : {"--master_pod_priority", "--worker_pod_priority"}) {
    err_.clear();
    EXPECT_NE(Train({"--training_data=/d", flag + "=urgnt"}), 0);
    EXPECT_NE(err_.find(flag + ": PriorityClass \"urgnt\" not found; did you mean urgent?"),
              std::string::npos)
        << err_;
  }
}

TEST_F(ElasticdlTest, EvaluationNeedsATrainedModel) {
  for (const auto& [mode, data] : {std::pair("evaluate", "--validation_data=/d"),
                                   std::pair("predict", "--prediction_data=/d")}) {
    EXPECT_EQ(Run({"elasticdl", mode, "--job_name=e", "--image_name=i", "--model_def=m.f", data}),
              2);
    EXPECT_NE(err_.find("--checkpoint_dir_for_init is not set"), std::string::npos) << err_;
  }
  EXPECT_EQ(Train({"--training_data=/d", "--worker_cpu_request=4", "--worker_cpu_limit=2"}), 2);
  EXPECT_NE(err_.find("--worker_cpu_request 4 is above --worker_cpu_limit 2"), std::string::npos)
      << err_;
}

TEST_F(ElasticdlTest, RefusesByName) {
  EXPECT_EQ(Train({"--training_data=/d", "--no_such_flag=1"}), 2);
  EXPECT_NE(err_.find("--no_such_flag"), std::string::npos) << err_;
  for (auto [flag, says] :
       {std::pair("--num_workers=-3", "--num_workers -3: expected 1 or more"),
        std::pair("--num_worker=-1", "--num_worker -1: expected 1 or more"),
        std::pair("--worker_cpu_request=lots", "--worker_cpu_request \"lots\""),
        std::pair("--num_workers=0", "--num_workers 0: expected 1 or more"),
        std::pair("--num_epoch=0", "--num_epochs 0: expected 1 or more"),
        std::pair("--minibatch_size=0", "--minibatch_size 0: expected 1 or more"),
        std::pair("--record_per_task=0", "--record_per_task 0: expected 1 or more"),
        std::pair("--grads_to_wait=0", "--grads_to_wait \"0\": expected 1 or more"),
        std::pair("--seed=one", "--seed \"one\": expected 0 or more"),
        std::pair("--codec_type=xml", "\"xml\": expected bytes, tf_example or csv"),
        std::pair("--use_async=maybe", "--use_async \"maybe\": expected true or false"),
        std::pair("--cluster_spec=hooks.py", "--cluster_spec hooks.py"),
        std::pair("--aux_params=fly=1", "\"fly\" is not disable_relaunch"),
        std::pair("--distribution_strategy=Gossip", "Gossip"),
        std::pair("--image_pull_policy=Sometimes",
                  "\"Sometimes\": expected Always, IfNotPresent or Never"),
        std::pair("--volume=claim_name=c", "mount_path")}) {
    err_.clear();
    EXPECT_EQ(Train({"--training_data=/d", flag}), 2) << flag;
    EXPECT_NE(err_.find(says), std::string::npos) << err_;
  }
  err_.clear();
  EXPECT_EQ(Train({}), 2);
  EXPECT_NE(err_.find("--training_data is not set\n"), std::string::npos) << err_;
  EXPECT_EQ(Train({"--job_command=python a.py --training_data=/d"}), 2);
  EXPECT_NE(err_.find("--training_data is not set; the master hands its records out to"),
            std::string::npos)
      << err_;
}

TEST_F(ElasticdlTest, YamlDumpsAndSubmitsNothing) {
  ASSERT_EQ(Train({"--training_data=/d", "--yaml"}), 0) << err_;
  EXPECT_NE(out_.find("kind: ElasticDLJob"), std::string::npos) << out_;
  EXPECT_NE(out_.find("kind: ConfigMap"), std::string::npos) << out_;
  const auto answer = server_.Send(
      server_.Request("GET", "/apis/elasticdl.org/v1alpha1/namespaces/default/elasticdljobs/job"));
  EXPECT_EQ(answer.status, 404);
}

TEST_F(ElasticdlTest, AJobIsNotReplacedByAnotherOfItsName) {
  ASSERT_EQ(Train({"--training_data=/d"}), 0) << err_;
  EXPECT_EQ(Train({"--training_data=/d"}), 1);
  EXPECT_NE(err_.find("already exists"), std::string::npos) << err_;
}

TEST_F(ElasticdlTest, AModelThatIsNotInTheZooIsRefusedAtOnce) {
  const auto train = [this](const std::string& model_def) {
    err_.clear();
    return Run({"elasticdl", "train", "--job_name=job", "--image_name=i", "--training_data=/d",
                "--model_zoo=" + models_.path(), "--model_def=" + model_def, "--yaml"});
  };
  EXPECT_EQ(train("mnist_functional_api.custom_model"), 0) << err_;
  EXPECT_EQ(train("mnist_functional_api"), 0) << err_;
  EXPECT_EQ(train("mnist_funktional_api.custom_model"), 2);
  EXPECT_TRUE(
      err_.starts_with(StrCat("elasticdl train: --model_def "
                              "\"mnist_funktional_api.custom_model\": ",
                              models_.path(),
                              " has no such module; did you mean "
                              "mnist_functional_api.custom_model?\n")))
      << err_;
  EXPECT_EQ(train("x.y"), 2);
  EXPECT_NE(err_.find("has no such module; it has mnist_functional_api\n"), std::string::npos)
      << err_;
  ASSERT_EQ(Run({"elasticdl", "zoo", "build", models_.path()}), 0) << err_;
  EXPECT_TRUE(out_.ends_with(" sends 1 Python file along.\n")) << out_;
}

TEST_F(ElasticdlTest, AFolderThatHasModelsGetsNoExample) {
  const auto init = [this](const std::string& folder) {
    return Run({"elasticdl", "zoo", "init", "--model_zoo=" + folder, "--base_image=i",
                "--local_pkg_dir=./build", "--extra_pypi_index=u"});
  };
  ASSERT_EQ(init(models_.path()), 0) << err_;
  EXPECT_EQ(out_, StrCat(models_.path(), " has 1 Python file: elasticdl train --model_zoo=",
                         models_.path(), " uses the folder as it is.\n"));
  EXPECT_FALSE(FileExists(models_.File("model.py")));
  const std::string fresh = models_.File("fresh");
  ASSERT_EQ(init(fresh), 0) << err_;
  EXPECT_TRUE(FileExists(fresh + "/model.py"));
  ASSERT_EQ(init(fresh), 0) << err_;
}

TEST_F(ElasticdlTest, AModelOfAnotherFrameworkIsRefusedAtOnce) {
  const auto train = [this](std::string_view text) {
    EXPECT_TRUE(WriteFileAtomically(model_, text).ok());
    return Train({"--training_data=/d", "--yaml"});
  };
  EXPECT_EQ(train("import numpy as np\nimport tensorflow as tf\ndef loss(o, l): ...\n"), 2);
  EXPECT_TRUE(
      err_.starts_with("elasticdl train: --model_file: mnist_functional_api.py imports "
                       "tensorflow and no torch, but model files are PyTorch's here"))
      << err_;
  EXPECT_EQ(train("from tensorflow.keras import layers\r\n"), 2);
  EXPECT_EQ(train("import torch\nimport tensorflow as tf\n"), 0) << err_;
  EXPECT_EQ(train("from torch import nn\nimport tensorflow_datasets\n"), 0) << err_;
  EXPECT_EQ(train("# import tensorflow\nfrom own import model\n"), 0) << err_;
  // Only the model's own file counts.
  EXPECT_TRUE(WriteFileAtomically(models_.File("other.py"), "import tensorflow\n").ok());
  EXPECT_EQ(
      Run({"elasticdl", "train", "--job_name=job", "--image_name=i", "--training_data=/d",
           "--model_zoo=" + models_.path(), "--model_def=mnist_functional_api.model", "--yaml"}),
      0)
      << err_;
  EXPECT_EQ(Run({"elasticdl", "train", "--job_name=job", "--image_name=i", "--training_data=/d",
                 "--model_zoo=" + models_.path(), "--model_def=other.model", "--yaml"}),
            2);
}

}  // namespace
}  // namespace swell::cli
