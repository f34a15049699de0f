// Command lines against an API server in this process: memory store, virtual time.

#include <set>

#include "base/file.h"
#include "base/strings.h"
#include "base/temp_dir.h"
#include "cli/cli_test_util.h"
#include "cli/cluster.h"
#include "kube/api/objects/failure.h"

namespace swell::cli {
namespace {

TEST_F(CliTest, ArenaSubmitPrintsWhatItAlwaysPrinted) {
  MediumClass();
  ASSERT_EQ(SubmitMedium(), 0) << err_;
  EXPECT_EQ(out_,
            "configmap/medium-job-pytorchjob created\n"
            "configmap/medium-job-pytorchjob labeled\n"
            "pytorchjob.kubeflow.org/medium-job created\n");
  EXPECT_EQ(err_,
            "INFO[0000] The Job medium-job has been submitted successfully\n"
            "INFO[0000] You can run `arena get medium-job --type pytorchjob` to check the job "
            "status\n");
  EXPECT_EQ(SubmitMedium(), 1);
  EXPECT_EQ(err_,
            "arena: the job medium-job is already exist, please delete it first. use 'arena delete "
            "medium-job'\n");
}

TEST_F(CliTest, ArenaSubmitNeedsAPriorityClassThatExists) {
  MediumClass();
  EXPECT_EQ(Run({"arena", "submit", "pytorch", "--name=x", "--image=i", "--priority=meduim", "a"}),
            1);
  EXPECT_NE(err_.find("did you mean medium?"), std::string::npos) << err_;
  EXPECT_NE(err_.find("There are: "), std::string::npos) << err_;
}

TEST_F(CliTest, ArenaGetAndListFollowTheJob) {
  MediumClass();
  ASSERT_EQ(SubmitMedium(), 0) << err_;
  Pod("master", 0, "Running");
  Pod("worker", 0, "Pending");
  JobIs("Running");
  server_.executor.Advance(std::chrono::minutes(3));
  ASSERT_EQ(Run({"arena", "get", "medium-job"}), 0) << err_;
  EXPECT_TRUE(out_.starts_with("STATUS: PENDING\n")) << "an instance is pending: " << out_;
  Status("/api/v1/namespaces/default/pods/medium-job-worker-0",
         R"({"status":{"phase":"Running"}})");
  ASSERT_EQ(Run({"arena", "get", "medium-job"}), 0) << err_;
  EXPECT_EQ(out_,
            "STATUS: RUNNING\n"
            "NAMESPACE: default\n"
            "PRIORITY: medium\n"
            "TRAINING DURATION: 3m\n"
            "\n"
            "NAME        STATUS   TRAINER     AGE  INSTANCE             NODE\n"
            "medium-job  RUNNING  PYTORCHJOB  3m   medium-job-master-0  10.0.0.1\n"
            "medium-job  RUNNING  PYTORCHJOB  3m   medium-job-worker-0  10.0.0.1\n");
  ASSERT_EQ(Run({"arena", "list"}), 0) << err_;
  EXPECT_EQ(out_,
            "NAME        STATUS   TRAINER     AGE  NODE\n"
            "medium-job  RUNNING  PYTORCHJOB  3m   10.0.0.1\n");
  ASSERT_EQ(Run({"swell", "list"}), 0) << err_;
  EXPECT_EQ(
      out_,
      "NAME         KIND         STATUS    PRIORITY   PROJECT   GPUS   PODS   DURATION   AGE   "
      "PROGRESS   ETA\n"
      "medium-job   PyTorchJob   Running   medium     -         8      2/2    3m         3m    "
      "-          -\n");
  ASSERT_EQ(Run({"arena", "get", "medium-job", "-o", "json"}), 0) << err_;
  EXPECT_EQ(json::GetString(json::Parse(out_).value(), {"chiefName"}), "medium-job-master-0");
}

TEST_F(CliTest, ScaleKeepsToTheBoundsAndNamesThem) {
  Create(
      "{apiVersion: swell.dev/v1, kind: TrainingJob, metadata: {name: t}, spec: {roles: {worker: "
      "{replicas: 4, elastic: {minReplicas: 2, maxReplicas: 8}, template: {spec: {containers: "
      "[{name: m, image: i}]}}}, master: {replicas: 1, template: {spec: {containers: [{name: m, "
      "image: i}]}}}}}}");
  EXPECT_EQ(Run({"swell", "scale", "t", "--replicas", "6"}), 0) << err_;
  EXPECT_EQ(out_, "trainingjob.swell.dev/t scaled: worker 4 -> 6 (2 to 8)\n");
  EXPECT_EQ(Run({"swell", "scale", "t", "--replicas=9"}), 1);
  EXPECT_EQ(err_,
            "swell: job \"t\": role \"worker\": 9 replicas are more than 8 "
            "(spec.roles.worker.elastic.maxReplicas); it can have 2 to 8\n");
  EXPECT_EQ(Run({"swell", "scale", "t", "--replicas=1"}), 1);
  EXPECT_NE(err_.find("fewer than 2 (spec.roles.worker.elastic.minReplicas)"), std::string::npos);
  EXPECT_EQ(Run({"swell", "scale", "t", "--role", "master", "--replicas=2"}), 1);
  EXPECT_NE(err_.find("role \"master\" has a fixed size"), std::string::npos) << err_;
  EXPECT_EQ(Run({"swell", "scale", "t", "--role", "boss", "--replicas=2"}), 2);
  EXPECT_NE(err_.find("it has: "), std::string::npos) << err_;
  EXPECT_EQ(Run({"swell", "scale", "t", "--current-replicas=4", "--replicas=2"}), 1);
  EXPECT_EQ(Run({"swell", "scale", "t"}), 2);
  EXPECT_EQ(Run({"swell", "scale", "t", "--replicas=-1"}), 2);
  EXPECT_NE(err_.find("--replicas: -1: must be 0 or more"), std::string::npos) << err_;
  ASSERT_EQ(
      Run({"swell", "get", "trainingjob", "t", "-o", "jsonpath={.spec.roles.worker.replicas}"}), 0);
  EXPECT_EQ(out_, "6");
  // Its status is written between the look and the write; for ever, in the end.
  int others = 1;
  before_ = [&](const api::RestRequest& request) {
    if (request.method != "PATCH" || others-- <= 0) return;
    Status("/apis/swell.dev/v1/namespaces/default/trainingjobs/t",
           StrCat(R"({"status":{"step":)", others, "}}"));
  };
  EXPECT_EQ(Run({"swell", "scale", "t", "--replicas=3"}), 0) << err_;
  EXPECT_EQ(out_, "trainingjob.swell.dev/t scaled: worker 6 -> 3 (2 to 8)\n");
  others = 1000;
  EXPECT_EQ(Run({"swell", "scale", "t", "--replicas=4"}), 1);
  EXPECT_NE(err_.find("has been modified"), std::string::npos) << err_;
  EXPECT_GT(others, 900);
}

TEST_F(CliTest, SizesAreSeen) {
  Create(
      "{apiVersion: swell.dev/v1, kind: TrainingJob, metadata: {name: t}, spec: {roles: {worker: "
      "{replicas: 4, elastic: {minReplicas: 1, maxReplicas: 8}, template: {spec: {containers: "
      "[{name: m, image: i}]}}}}}}");
  server_.executor.Advance(std::chrono::minutes(4));
  std::string now = api::FormatTime(server_.executor.Now());
  std::string before = api::FormatTime(server_.executor.Now() - std::chrono::minutes(3));
  Status(
      "/apis/swell.dev/v1/namespaces/default/trainingjobs/t",
      StrCat(R"({"status":{"phase":"Running","conditions":[{"type":"Running","status":"True",)",
             R"("reason":"R","message":"M","lastTransitionTime":")", before,
             R"("}],"elastic":{"minReplicas":1,"replicas":2,"desiredReplicas":4,)",
             R"("maxReplicas":8,"message":"waits for 2 more","history":[{"time":")", before,
             R"(","replicas":4,"desired":4,"throughput":800.5,"reason":"started"},{"time":")", now,
             R"(","replicas":2,"desired":4,"throughput":410,"reason":"Preempted by b"}]}}})"));
  ASSERT_EQ(Run({"swell", "get"}), 0) << err_;
  EXPECT_EQ(out_,
            "NAME   KIND          STATUS    MIN   NOW   DESIRED   MAX   AGE   WHY\n"
            "t      TrainingJob   Running   1     2     4         8     4m    waits for 2 more\n");
  ASSERT_EQ(Run({"swell", "list", "--no-headers"}), 0) << err_;
  EXPECT_NE(out_.find("0/4 (1-8)"), std::string::npos) << out_;
  ASSERT_EQ(Run({"swell", "get", "-o", "name"}), 0) << err_;
  EXPECT_EQ(out_, "trainingjob.swell.dev/t\n");
  server_.executor.Advance(std::chrono::minutes(1));
  ASSERT_EQ(Run({"swell", "describe", "t"}), 0) << err_;
  for (std::string_view part : {"Size:\n  2 of 4 wanted, between 1 and 8; waits for 2 more\n",
                                "      4 │████", "      1 │████", "   speed  ████", "up to 800/s",
                                "  60s  2         410/s       Preempted by b\n",
                                "  4m   4         800/s       started\n"}) {
    EXPECT_NE(out_.find(part), std::string::npos) << part << "\nin\n" << out_;
  }
}

TEST_F(CliTest, DescribeSaysAFailureOnce) {
  ASSERT_EQ(Run({"swell", "submit", "net", "--image", "i", "--", "false"}), 0) << err_;
  const api::Failure failure{.member = "net-master-0",
                             .container = "pytorch",
                             .role = "container",
                             .exit_code = 3,
                             .said = "broken",
                             .advice = "mend it"};
  const std::string says = StrCat("PyTorchJob net failed. ", failure.Sentence());
  json::Object failed{{"type", "Failed"}, {"status", "True"}, {"reason", "R"}, {"message", says}};
  failed["lastTransitionTime"] = api::FormatTime(server_.executor.Now());
  json::Value status = json::Object{};
  json::Set(status, {"status", "conditions"}, json::Array{std::move(failed)});
  json::Set(status, {"status", "failure"}, failure.ToJson());
  Status("/apis/kubeflow.org/v1/namespaces/default/pytorchjobs/net", json::Print(status));
  ASSERT_EQ(Run({"swell", "describe", "net"}), 0) << err_;
  EXPECT_NE(out_.find("Failure:          net-master-0 failed: container pytorch exited with 3; its "
                      "last line: "),
            std::string::npos)
      << out_;
  EXPECT_NE(out_.find("Says:             PyTorchJob net failed.\n"), std::string::npos) << out_;
  EXPECT_EQ(out_.find("broken"), out_.rfind("broken")) << out_;
}

TEST_F(CliTest, ASubmittedJobOutlivesASignalAndEndsWithAnErrorOfItsOwn) {
  const auto policy = [this](std::vector<std::string> flags) {
    std::vector<std::string> words{"swell", "submit",    "j",  "--image",
                                   "img",   "--dry-run", "-o", "json"};
    words.insert(words.end(), flags.begin(), flags.end());
    words.insert(words.end(), {"--", "train"});
    EXPECT_EQ(Run(words), 0) << err_;
    const auto job = json::Parse(out_);
    EXPECT_TRUE(job.ok()) << out_;
    return StrCat(json::GetString(*job, {"spec", "pytorchReplicaSpecs", "Master", "restartPolicy"}),
                  " ", json::GetInt(*job, {"spec", "runPolicy", "backoffLimit"}));
  };
  EXPECT_EQ(policy({}), "ExitCode 6");
  EXPECT_EQ(policy({"--retry", "2"}), "ExitCode 2");
  EXPECT_EQ(policy({"--retry", "0"}), "Never 0");
  EXPECT_EQ(Run({"swell", "submit", "j", "--image", "img", "--retry", "-1", "--", "train"}), 2);
  EXPECT_NE(err_.find("--retry -1: expected 0 or more"), std::string::npos) << err_;
}

TEST_F(CliTest, ArenaTopNode) {
  MediumClass();
  for (const char* node : {"node-1", "node-2"}) {
    Create(StrCat("{apiVersion: v1, kind: Node, metadata: {name: ", node, "}}"));
    Status(StrCat("/api/v1/nodes/", node),
           R"({"status":{"capacity":{"nvidia.com/gpu":"4"},"allocatable":{"nvidia.com/gpu":"4"},)"
           R"("addresses":[{"type":"InternalIP","address":"10.0.0.1"}],)"
           R"("conditions":[{"type":"Ready","status":"True"}]}})");
  }
  Create(
      "{apiVersion: v1, kind: Node, metadata: {name: z-master, labels: "
      "{node-role.kubernetes.io/master: \"\"}}}");
  ASSERT_EQ(SubmitMedium(), 0) << err_;
  Pod("master", 0, "Running");
  ASSERT_EQ(Run({"arena", "top", "node"}), 0) << err_;
  EXPECT_EQ(out_,
            "NAME      IPADDRESS  ROLE    STATUS    GPU(Total)  GPU(Allocated)\n"
            "z-master             master  notReady  0           0\n"
            "node-1    10.0.0.1   <none>  ready     4           4\n"
            "node-2    10.0.0.1   <none>  ready     4           0\n" +
                std::string(89, '-') +
                "\n"
                "Allocated/Total GPUs In Cluster:\n"
                "4/8 (50%)\n");
}

TEST_F(CliTest, TheKubeconfigsNamespaceHoldsForEveryCommand) {
  Create("{apiVersion: v1, kind: Namespace, metadata: {name: team}}");
  env_.connect = [this, connect = env_.connect](const ClusterFlags& flags) {
    auto connection = connect(flags);
    connection->ns = "team";
    return connection;
  };
  ASSERT_EQ(Run({"swell", "submit", "mnist", "--image", "i", "--", "a"}), 0) << err_;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"swell", "list", "-o", "name"}, {"swell", "get", "-o", "name"}}) {
    ASSERT_EQ(Run(words), 0) << err_;
    EXPECT_EQ(out_, "pytorchjob.kubeflow.org/mnist\n") << words[1] << err_;
  }
  ASSERT_EQ(Run({"swell", "get", "mnist", "-o", "custom-columns=NAME:.metadata.name"}), 0) << err_;
  EXPECT_EQ(out_, "NAME\nmnist\n");
  ASSERT_EQ(Run({"swell", "wait", "mnist", "--for=jsonpath={.metadata.name}=mnist"}), 0) << err_;
  EXPECT_EQ(out_, "pytorchjob.kubeflow.org/mnist condition met\n");
  EXPECT_EQ(Run({"swell", "get", "minst"}), 1);
  EXPECT_NE(err_.find("the server has no resource type \"minst\""), std::string::npos) << err_;
  ASSERT_EQ(Run({"swell", "events", "mnist"}), 0) << err_;
}

TEST_F(CliTest, EventsCommandNoTerminal) {
  Create(R"({apiVersion: v1, kind: Event, metadata: {name: e.1, namespace: default},
      involvedObject: {kind: Pod, name: p, namespace: default}, type: Warning,
      reason: "Bad\x1b[31m", message: "one\ntwo\x1b[2J"})");
  ASSERT_EQ(Run({"swell", "events"}), 0) << err_;
  EXPECT_EQ(out_.find('\x1b'), std::string::npos) << out_;
  EXPECT_NE(out_.find("Bad\\x1b[31m"), std::string::npos) << out_;
  EXPECT_NE(out_.find("one\\ntwo\\x1b[2J\n"), std::string::npos) << out_;
}

TEST_F(CliTest, ArenaTellsProgramsWhatItTellsPeople) {
  MediumClass();
  ASSERT_EQ(SubmitMedium(), 0) << err_;
  Pod("master", 0, "Running");
  ASSERT_EQ(Run({"arena", "top", "job", "-o", "json"}), 0) << err_;
  json::Value jobs = json::Parse(out_).value();
  ASSERT_TRUE(jobs.is_array() && jobs.get_array().size() == 1) << out_;
  EXPECT_EQ(json::GetInt(jobs.get_array()[0], {"requestGPUs"}), 8);
  EXPECT_EQ(json::GetInt(jobs.get_array()[0], {"allocatedGPUs"}), 4);
  ASSERT_EQ(Run({"arena", "top", "job", "medium-job", "-o", "json"}), 0) << err_;
  EXPECT_EQ(json::GetString(json::Parse(out_).value(), {"name"}), "medium-job");
  Create("{apiVersion: v1, kind: Node, metadata: {name: node-1}}");
  ASSERT_EQ(Run({"arena", "top", "node", "-o", "json"}), 0) << err_;
  json::Value nodes = json::Parse(out_).value();
  EXPECT_EQ(json::GetInt(nodes, {"allocatedGPUsInCluster"}), 4) << out_;
  EXPECT_EQ(json::GetString(json::GetArray(nodes, {"nodes"})[0], {"name"}), "node-1");
  EXPECT_EQ(Run({"arena", "top", "job", "-o", "xml"}), 2);
}

TEST_F(CliTest, ArenaKnowsItsOlderFlagsAndQueueAlone) {
  ASSERT_EQ(Run({"arena", "submit", "pytorch", "--name=old", "--image=i", "--workingDir=/w",
                 "--dataDir=/tmp", "--queue", "--nproc-per-node=auto", "python a.py"}),
            0)
      << err_;
  auto made = server_.Send(
      server_.Request("GET", "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs/old"));
  ASSERT_EQ(made.status, 200);
  EXPECT_NE(made.text.find(R"("workingDir":"/w")"), std::string::npos) << made.text;
  EXPECT_NE(made.text.find(R"({"name":"PET_NPROC_PER_NODE","value":"auto"})"), std::string::npos);
  EXPECT_EQ(made.text.find("queue"), std::string::npos);
  EXPECT_EQ(Run({"arena", "submit", "pytorch", "--name=n", "--image=i", "--nproc-per-node=0", "a"}),
            2);
  EXPECT_EQ(Run({"arena", "submit", "pytorch", "--name=n", "--image=i", "--queue", "python a"}), 2);
  EXPECT_NE(err_.find("--queue \"python a\": expected the name of a project"), std::string::npos);
}

TEST_F(CliTest, ANameIsFreeWhenOtherHandsDeletedTheJob) {
  MediumClass();
  ASSERT_EQ(SubmitMedium(), 0) << err_;
  ASSERT_EQ(Run({"swell", "delete", "pytorchjob", "medium-job"}), 0) << err_;
  EXPECT_EQ(SubmitMedium(), 1) << "it may be on its way to be submitted";
  server_.executor.Advance(std::chrono::minutes(2));
  EXPECT_EQ(SubmitMedium(), 0) << err_;
  server_.executor.Advance(std::chrono::minutes(2));
  EXPECT_EQ(SubmitMedium(), 1) << "the job is there";
}

TEST_F(CliTest, ArenaDeleteTakesEverythingAway) {
  MediumClass();
  ASSERT_EQ(SubmitMedium(), 0) << err_;
  ASSERT_EQ(Run({"arena", "delete", "medium-job"}), 0) << err_;
  EXPECT_EQ(err_, "INFO[0000] The Job medium-job has been deleted successfully\n");
  ASSERT_EQ(Run({"arena", "delete", "medium-job"}), 1);
  EXPECT_EQ(err_, "ERRO[0000] The job medium-job doesn't exist in namespace default\n");
  EXPECT_EQ(SubmitMedium(), 0) << "the name is free again: " << err_;
}

TEST_F(CliTest, ArenaTensorboardBelongsToItsJobAndSharesItsLogs) {
  ASSERT_EQ(Run({"arena", "submit", "pytorch", "--name=curves", "--image=img", "--tensorboard",
                 "python a.py"}),
            0)
      << err_;
  EXPECT_EQ(out_,
            "configmap/curves-pytorchjob created\n"
            "configmap/curves-pytorchjob labeled\n"
            "pytorchjob.kubeflow.org/curves created\n"
            "service/curves-tensorboard created\n"
            "deployment.apps/curves-tensorboard created\n");
  EXPECT_NE(err_.find("TensorBoard of curves will answer at http://test:3"), std::string::npos)
      << err_;
  auto get = [this](const std::string& path) {
    auto answer = server_.Send(server_.Request("GET", path));
    EXPECT_EQ(answer.status, 200) << answer.text;
    return json::Parse(answer.text).value();
  };
  const json::Value job = get("/apis/kubeflow.org/v1/namespaces/default/pytorchjobs/curves");
  for (const char* path :
       {"/apis/apps/v1/namespaces/default/deployments/curves-tensorboard",
        "/api/v1/namespaces/default/services/curves-tensorboard",
        "/api/v1/namespaces/default/persistentvolumeclaims/curves-tensorboard"}) {
    const json::Value made = get(path);
    EXPECT_EQ(json::GetString(json::GetArray(made, {"metadata", "ownerReferences"})[0], {"uid"}),
              api::Uid(job))
        << path;
  }
  const json::Value* master =
      json::Find(job, {"spec", "pytorchReplicaSpecs", "Master", "template"});
  ASSERT_NE(master, nullptr);
  const std::string pod = json::Print(*master);
  EXPECT_NE(pod.find(R"({"name":"SWELL_LOG_DIR","value":"/training_logs/curves"})"),
            std::string::npos)
      << pod;
  EXPECT_NE(pod.find(R"("claimName":"curves-tensorboard")"), std::string::npos) << pod;
  ASSERT_EQ(Run({"arena", "get", "curves"}), 0) << err_;
  EXPECT_NE(out_.find("Your tensorboard will be available on:\nhttp://test:3"), std::string::npos)
      << out_;
}

TEST_F(CliTest, ArenaTakesTheMachinesTensorboardWhereTheImageHasNone) {
  // Each image's pod ends as a shell does that finds no program.
  std::set<std::string> images;
  before_ = [&](const api::RestRequest& request) {
    if (request.method != "GET" || request.path != "/api/v1/namespaces/default/pods") return;
    auto answer = server_.Send(
        server_.Request("GET", "/apis/apps/v1/namespaces/default/deployments/curves-tensorboard"));
    if (answer.status != 200) return;
    const json::Value deployment = json::Parse(answer.text).value();
    const std::string image(json::GetString(
        json::GetArray(deployment, {"spec", "template", "spec", "containers"})[0], {"image"}));
    if (!images.insert(image).second) return;
    const std::string name = StrCat("tb-", images.size());
    auto made = server_.Send(server_.Request(
        "POST", "/api/v1/namespaces/default/pods",
        StrCat(R"({"metadata":{"name":")", name,
               R"(","labels":{"app":"tensorboard","release":"curves"}},"spec":{"containers":)",
               R"([{"name":"tensorboard","image":")", image, R"("}]}})")));
    EXPECT_EQ(made.status, 201) << made.text;
    Status(StrCat("/api/v1/namespaces/default/pods/", name),
           R"({"status":{"phase":"Running","containerStatuses":[{"name":"tensorboard","image":"i",
               "imageID":"","ready":false,"restartCount":1,"state":{"terminated":{"exitCode":127}}
               }]}})");
  };
  ASSERT_EQ(Run({"arena", "submit", "pytorch", "--name=curves", "--image=img", "--tensorboard",
                 "python a.py"}),
            0)
      << err_;
  before_ = nullptr;
  EXPECT_EQ(images, (std::set<std::string>{"img", "tensorboard"}));
  EXPECT_NE(err_.find("The job curves runs without TensorBoard: TensorBoard is not installed on "
                      "this machine. As root: `python3 -m venv /opt/tensorboard && "),
            std::string::npos)
      << err_;
  ASSERT_EQ(Run({"arena", "get", "curves"}), 0) << err_;
  EXPECT_NE(out_.find("\nTENSORBOARD: TensorBoard is not installed on this machine."),
            std::string::npos)
      << out_;
}

TEST_F(CliTest, ArenaLogsInAVolumeOfTheJobNeedNoOther) {
  ASSERT_EQ(Run({"arena", "submit", "pytorch", "--name=curves", "--image=img", "--tensorboard",
                 "--data=claim:/data:rw", "--logdir=/data/logs", "python a.py"}),
            0)
      << err_;
  auto answer = server_.Send(
      server_.Request("GET", "/apis/apps/v1/namespaces/default/deployments/curves-tensorboard"));
  EXPECT_NE(answer.text.find(R"("claimName":"claim")"), std::string::npos) << answer.text;
  EXPECT_EQ(answer.text.find(R"("claimName":"curves-tensorboard")"), std::string::npos);
  EXPECT_EQ(Run({"arena", "submit", "pytorch", "--name=other", "--image=img", "--tensorboard",
                 "--logdir=logs", "python a.py"}),
            2);
  EXPECT_NE(err_.find("--logdir \"logs\": expected an absolute path or a URL"), std::string::npos)
      << err_;
}

TEST_F(CliTest, ArenaSubmitsTensorFlowByRoles) {
  ASSERT_EQ(Run({"arena", "submit", "tf", "--name=tf", "--image=i", "--workers=2", "--gpus=1",
                 "--worker-cpu=2", "--ps=1", "--psImage=p", "--ps-port=2223", "--chief",
                 "--role-sequence=w,p", "python a.py"}),
            0)
      << err_;
  EXPECT_EQ(out_,
            "configmap/tf-tfjob created\nconfigmap/tf-tfjob labeled\n"
            "tfjob.kubeflow.org/tf created\n");
  EXPECT_NE(err_.find("`arena get tf --type tfjob`"), std::string::npos) << err_;
  EXPECT_NE(err_.find("--role-sequence has no effect"), std::string::npos) << err_;
  auto answer =
      server_.Send(server_.Request("GET", "/apis/kubeflow.org/v1/namespaces/default/tfjobs/tf"));
  ASSERT_EQ(answer.status, 200) << answer.text;
  const json::Value job = json::Parse(answer.text).value();
  const json::Value& roles = *json::Find(job, {"spec", "tfReplicaSpecs"});
  EXPECT_EQ(roles.get_object().size(), 3u) << "no evaluator was asked for";
  auto container = [&](std::string_view role) -> const json::Value& {
    return json::GetArray(roles, {role, "template", "spec", "containers"})[0];
  };
  EXPECT_EQ(json::GetInt(roles, {"Worker", "replicas"}), 2);
  EXPECT_EQ(json::GetString(container("Worker"), {"resources", "limits", "nvidia.com/gpu"}), "1");
  EXPECT_EQ(json::GetString(container("Worker"), {"resources", "limits", "cpu"}), "2");
  EXPECT_EQ(json::GetString(container("PS"), {"image"}), "p");
  EXPECT_EQ(json::GetInt(json::GetArray(container("PS"), {"ports"})[0], {"containerPort"}), 2223);
  EXPECT_EQ(json::GetString(container("Chief"), {"resources", "limits", "nvidia.com/gpu"}), "1");
  EXPECT_EQ(json::Find(container("Chief"), {"resources", "limits", "cpu"}), nullptr);
  EXPECT_EQ(api::Annotation(job, "requestGPUsOfJobOwner"), "3");
  ASSERT_EQ(Run({"arena", "list", "--type", "tf"}), 0) << err_;
  EXPECT_NE(out_.find("TFJOB"), std::string::npos) << out_;
  ASSERT_EQ(Run({"arena", "list", "--type", "pytorch"}), 0) << err_;
  EXPECT_EQ(out_.find("TFJOB"), std::string::npos) << out_;
  ASSERT_EQ(Run({"arena", "delete", "tf"}), 0) << err_;
  EXPECT_EQ(out_, "tfjob.kubeflow.org \"tf\" deleted\nconfigmap \"tf-tfjob\" deleted\n");
}

TEST_F(CliTest, ArenaSubmitsALauncherThatAloneRunsTheCommand) {
  ASSERT_EQ(Run({"arena", "submit", "mpi", "--name=dist", "--image=i", "--workers=2", "--gpus=2",
                 "--cpu=1", "mpirun python a.py"}),
            0)
      << err_;
  EXPECT_EQ(out_,
            "configmap/dist-mpijob created\nconfigmap/dist-mpijob labeled\n"
            "mpijob.kubeflow.org/dist created\n");
  auto answer = server_.Send(
      server_.Request("GET", "/apis/kubeflow.org/v2beta1/namespaces/default/mpijobs/dist"));
  ASSERT_EQ(answer.status, 200) << answer.text;
  const json::Value job = json::Parse(answer.text).value();
  EXPECT_EQ(json::GetInt(job, {"spec", "slotsPerWorker"}), 2);
  EXPECT_EQ(json::GetString(job, {"spec", "runPolicy", "cleanPodPolicy"}), "Running");
  auto container = [&](std::string_view role) -> const json::Value& {
    return json::GetArray(job,
                          {"spec", "mpiReplicaSpecs", role, "template", "spec", "containers"})[0];
  };
  EXPECT_EQ(json::Print(*json::Find(container("Launcher"), {"command"})),
            R"(["sh","-c","mpirun python a.py"])");
  EXPECT_EQ(json::Find(container("Launcher"), {"resources", "limits", "nvidia.com/gpu"}), nullptr);
  EXPECT_EQ(json::Find(container("Worker"), {"command"}), nullptr) << "it waits";
  EXPECT_EQ(json::GetString(container("Worker"), {"resources", "limits", "nvidia.com/gpu"}), "2");
  ASSERT_EQ(Run({"arena", "list", "--type", "mpi"}), 0) << err_;
  EXPECT_NE(out_.find("MPIJOB"), std::string::npos) << out_;
  EXPECT_EQ(Run({"arena", "submit", "mpi", "--name=x", "--image=i"}), 2);
  EXPECT_NE(err_.find("no command; use: arena submit mpijob"), std::string::npos) << err_;
}

TEST_F(CliTest, WhatArenaCannotDoAsSaidIsRefused) {
  EXPECT_EQ(Run({"arena", "submit", "pytorch", "--name=x", "--image=i"}), 2);
  EXPECT_NE(err_.find("no command; use: arena submit pytorchjob"), std::string::npos) << err_;
  EXPECT_EQ(Run({"arena", "submit", "pytorch", "--name=x", "--image=i", "--queue=nope", "true"}),
            1);
  EXPECT_NE(err_.find("--queue: project \"nope\" not found"), std::string::npos) << err_;
  EXPECT_EQ(Run({"arena", "submit", "tf", "--name=x", "--image=i", "--worker-cpu=4",
                 "--worker-cpu-limit=2", "true"}),
            2);
  EXPECT_NE(err_.find("--worker-cpu 4 is above --worker-cpu-limit 2"), std::string::npos) << err_;
  EXPECT_EQ(Run({"arena", "list", "--loglevel", "loud"}), 2);
  EXPECT_NE(err_.find("--loglevel \"loud\": expected trace, debug, info, "), std::string::npos)
      << err_;
}

TEST_F(CliTest, DescribePodShowsPortsAndSidecars) {
  Create(
      "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {initContainers: [{name: fetch, "
      "image: i}, {name: proxy, image: i, restartPolicy: Always, ports: [{containerPort: 9000, "
      "protocol: UDP}]}], containers: [{name: main, image: i, ports: [{containerPort: 8080}, "
      "{name: metrics, containerPort: 9090, hostPort: 90}]}]}}");
  ASSERT_EQ(Run({"swell", "describe", "pod", "p"}), 0) << err_;
  const size_t inits = out_.find("Init containers:\n  fetch:");
  const size_t sidecars = out_.find("Sidecars:\n  proxy:");
  const size_t containers = out_.find("Containers:\n  main:");
  ASSERT_NE(containers, std::string::npos) << out_;
  EXPECT_LT(inits, sidecars) << out_;
  EXPECT_LT(sidecars, containers) << out_;
  EXPECT_NE(out_.find("9000/UDP\n", sidecars), std::string::npos) << out_;
  EXPECT_NE(out_.find("8080/TCP, metrics 9090/TCP on port 90 of the node\n", containers),
            std::string::npos)
      << out_;
}

TEST_F(CliTest, HelpOfACommandThatDoesNotExistIsAnError) {
  EXPECT_EQ(Run({"runai", "lsit", "--help"}), 2);
  EXPECT_EQ(out_, "");
  EXPECT_NE(err_.find("runai: unknown command \"lsit\"\nDid you mean: runai list"),
            std::string::npos)
      << err_;
}

TEST_F(CliTest, ArenaSaysWhatItDoesNotDo) {
  EXPECT_EQ(Run({"arena", "submit", "rj", "--name=x"}), 2);
  EXPECT_NE(err_.find("arena submit rayjob is not supported: create a RayJob of KubeRay"),
            std::string::npos)
      << err_;
  EXPECT_EQ(Run({"swell", "arena", "serve", "list"}), 2);
  EXPECT_NE(err_.find("arena serve is not supported: run the server as a Deployment"),
            std::string::npos)
      << err_;
  EXPECT_EQ(Run({"arena", "get", "x", "--type", "sparkjob"}), 2);
  EXPECT_EQ(Run({"arena", "prune"}), 2);
}

TEST_F(CliTest, KindsOfOtherSystemsAreRefusedWithWhatToUseInstead) {
  stdin_ = "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: j}}";
  EXPECT_EQ(Run({"swell", "apply", "-f", "-"}), 1);
  EXPECT_EQ(err_,
            "swell: standard input: the server does not know kind \"Queue\" in apiVersion "
            "\"scheduling.volcano.sh/v1beta1\"; a queue with a quota is a Project here: swell "
            "project create NAME --gpu-quota N\n");
  stdin_ = "{apiVersion: kueue.x-k8s.io/v1beta1, kind: ClusterQueue, metadata: {name: q}}";
  EXPECT_EQ(Run({"swell", "create", "-f", "-"}), 1);
  EXPECT_NE(err_.find("\"; a queue with a quota is a Project here"), std::string::npos) << err_;
  stdin_ = "{apiVersion: v7, kind: Job, metadata: {name: j}}";
  EXPECT_EQ(Run({"swell", "delete", "-f", "-"}), 1);
  EXPECT_EQ(err_,
            "swell: standard input: the server does not know kind \"Job\" in apiVersion "
            "\"v7\"\n");
}

TEST_F(CliTest, WhatReachesIntoAPodThatWaitsSaysHowToLearnWhy) {
  Create(
      "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: "
      "i}]}}");
  const std::string why = "to see why: swell why p -n default\n";
  EXPECT_EQ(Run({"swell", "exec", "p", "--", "ls"}), 1);
  EXPECT_EQ(err_, "swell: pod p does not run yet, because it waits for a node; " + why);
  EXPECT_EQ(Run({"swell", "attach", "p"}), 1);
  EXPECT_EQ(err_, "swell: pod p does not run yet, because it waits for a node; " + why);
  EXPECT_EQ(Run({"swell", "logs", "p"}), 0);
  EXPECT_EQ(err_, "p has not started: it waits for a node; " + why);
}

TEST_F(CliTest, AJobOfAProjectThatThereIsNotIsRefused) {
  EXPECT_EQ(Run({"swell", "submit", "j", "--image", "i", "--project", "nope", "--", "true"}), 1);
  EXPECT_NE(err_.find("--project: project \"nope\" not found"), std::string::npos) << err_;
}

TEST_F(CliTest, WhatAPatchGotWrongIsSaidWithoutThePatch) {
  const std::string job =
      "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j}\nspec: "
      "{pytorchReplicaSpecs: {Worker: {REPLICAS: 2, template: {spec: {containers: [{name: pytorch, "
      "image: i}]}}}}}\n";
  const size_t at = job.find("REPLICAS");
  Create(std::string(job).replace(at, 8, "replicas"));
  stdin_ = std::string(job).replace(at, 8, "replica");
  EXPECT_EQ(Run({"swell", "apply", "-f", "-"}), 1);
  EXPECT_EQ(err_,
            "swell: standard input: strict decoding error: unknown field "
            "\"spec.pytorchReplicaSpecs.Worker.replica\"\n");
}

TEST_F(CliTest, ApplyCreatesConfiguresAndLeavesAlone) {
  stdin_ = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: '1', b: '2'}}";
  ASSERT_EQ(Run({"swell", "apply", "-f", "-"}), 0) << err_;
  EXPECT_EQ(out_, "configmap/c created\n");
  ASSERT_EQ(Run({"swell", "apply", "-f", "-"}), 0) << err_;
  EXPECT_EQ(out_, "configmap/c unchanged\n");
  stdin_ = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: '3'}}";
  ASSERT_EQ(Run({"swell", "apply", "--dry-run=server", "-f", "-"}), 0) << err_;
  EXPECT_EQ(out_, "configmap/c configured (server dry run)\n");
  ASSERT_EQ(Run({"swell", "apply", "-f", "-"}), 0) << err_;
  EXPECT_EQ(out_, "configmap/c configured\n");
  ASSERT_EQ(Run({"swell", "get", "cm", "c", "-o", "jsonpath={.data}"}), 0) << err_;
  EXPECT_EQ(out_, "{\"a\":\"3\"}");
  stdin_ = "{apiVersion: v1, kind: ConfigMap, metadata: {name: d}, dta: {}}";
  EXPECT_EQ(Run({"swell", "apply", "-f", "-"}), 1);
  EXPECT_NE(err_.find("unknown field \"dta\""), std::string::npos) << err_;
}

TEST_F(CliTest, GetShowsTablesAndSaysWhatIsMissing) {
  ASSERT_EQ(Run({"swell", "get", "ns", "default"}), 0) << err_;
  EXPECT_EQ(out_, "NAME      STATUS   AGE\ndefault   Active   0s\n");
  ASSERT_EQ(Run({"swell", "get", "pods"}), 0);
  EXPECT_EQ(err_, "No resources found in default namespace.\n");
  EXPECT_EQ(Run({"swell", "get", "ns", "nope", "default"}), 1);
  EXPECT_NE(out_.find("default"), std::string::npos) << "what is there is shown";
  EXPECT_EQ(err_, "swell: namespaces \"nope\" not found\n");
  EXPECT_EQ(Run({"swell", "get", "podz"}), 1);
  EXPECT_EQ(err_,
            "swell: no job \"podz\" in namespace \"default\", and the server has no resource type "
            "\"podz\"; did you mean pods?\n");
  EXPECT_EQ(Run({"swell", "list", "--status", "frob"}), 2);
  EXPECT_NE(err_.find("--status \"frob\": expected pending, waiting, running, "), std::string::npos)
      << err_;
  ASSERT_EQ(Run({"swell", "get", "ns", "-o", "name"}), 0);
  EXPECT_NE(out_.find("namespace/default\n"), std::string::npos) << out_;
}

TEST(Kubeconfigs, OneThatIsNotThereLeadsToNoOtherCluster) {
  TempDir home;
  ASSERT_TRUE(MakeDirs(home.path() + "/.kube").ok());
  const std::string users = home.path() + "/.kube/config";
  ASSERT_TRUE(WriteFileAtomically(users, "{}", 0600).ok());
  std::string listed;
  auto env = [&](const std::string& name) -> std::string {
    if (name == "HOME") return home.path();
    return name == "KUBECONFIG" ? listed : "";
  };
  EXPECT_EQ(*FindKubeconfig({}, env), users);
  listed = "/none/at/all";
  EXPECT_EQ(FindKubeconfig({}, env).status().message(),
            "no cluster found\n  $KUBECONFIG: /none/at/all does not exist\n"
            "Unset KUBECONFIG to use the cluster of this machine");
  listed = "/none/at/all:" + users;
  EXPECT_EQ(*FindKubeconfig({}, env), listed);
}

TEST_F(CliTest, JobsOfOtherOperatorsArePointedTo) {
  Create(
      "{apiVersion: swell.dev/v1, kind: PodGroup, metadata: {name: mpijob.mnist, ownerReferences: "
      "[{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, name: mnist, uid: 1-2}]}, "
      "spec: {}}");
  EXPECT_EQ(Run({"swell", "describe", "mnist"}), 1);
  EXPECT_EQ(err_,
            "swell: job \"mnist\" not found in namespace \"default\"; MPIJob \"mnist\" is another "
            "operator's: swell why mpijob.mnist\n");
  EXPECT_EQ(Run({"swell", "list"}), 0);
  EXPECT_EQ(err_,
            "No jobs in namespace default\n1 more job belongs to other operators (swell get "
            "podgroups)\n");
  Create(
      "{apiVersion: batch/v1, kind: Job, metadata: {name: own}, spec: {template: {spec: "
      "{restartPolicy: Never, containers: [{name: c, image: i}]}}}}");
  EXPECT_EQ(Run({"swell", "list"}), 0);
  EXPECT_NE(out_.find("own "), std::string::npos) << out_;
  EXPECT_EQ(err_, "1 more job belongs to other operators (swell get podgroups)\n");
}

TEST_F(CliTest, SubmitPassesTheCommandOnUntouched) {
  ASSERT_EQ(Run({"swell", "submit", "net", "--image", "i", "--", "python", "a.py", "--lr", "0.1"}),
            0)
      << err_;
  EXPECT_EQ(out_, "pytorchjob.kubeflow.org/net created\n");
  ASSERT_EQ(
      Run({"swell", "get", "pytorchjob", "net", "-o",
           "jsonpath={.spec.pytorchReplicaSpecs.Master.template.spec.containers[0].command}"}),
      0);
  EXPECT_EQ(out_, R"(["python","a.py","--lr","0.1"])");
  ASSERT_EQ(Run({"swell", "suspend", "net"}), 0) << err_;
  EXPECT_EQ(out_, "pytorchjob.kubeflow.org/net suspended\n");
  ASSERT_EQ(Run({"swell", "describe", "net"}), 0) << err_;
  EXPECT_NE(out_.find("When preempted:   resumes by itself"), std::string::npos) << out_;
  // "job" is Kubernetes' kind only where there is one of that name.
  const std::string described = out_;
  for (const char* word : {"job", "jobs"}) {
    ASSERT_EQ(Run({"swell", "describe", word, "net"}), 0) << err_;
    EXPECT_EQ(out_, described);
  }
  EXPECT_EQ(Run({"swell", "why", "job/net"}), 0) << err_;
  EXPECT_EQ(Run({"swell", "describe", "job", "nobody"}), 1);
  ASSERT_EQ(Run({"swell", "delete", "net"}), 0) << err_;
  EXPECT_EQ(out_, "pytorchjob.kubeflow.org \"net\" deleted\n");
  EXPECT_EQ(Run({"swell", "wait", "pytorchjob/net", "--for=delete"}), 0) << err_;
}

TEST_F(CliTest, WordsBeforeTheDashesAreNoCommand) {
  EXPECT_EQ(Run({"swell", "submit", "fl", "--name", "other", "--image", "i", "--", "echo", "hi"}),
            2);
  EXPECT_NE(err_.find("\"fl\": --name \"other\" names the job already; the command follows the "
                      "dashes"),
            std::string::npos)
      << err_;
  EXPECT_EQ(Run({"swell", "submit", "fl", "other2", "--image", "i", "--", "echo", "hi"}), 2);
  EXPECT_NE(err_.find("\"other2\": expected one name for the job"), std::string::npos) << err_;
}

TEST_F(CliTest, DeleteTakesWhatThereIsAndNamesWhatIsMissing) {
  ASSERT_EQ(Run({"swell", "submit", "there", "--image", "i", "--", "true"}), 0) << err_;
  EXPECT_EQ(Run({"swell", "delete", "there", "missing", "--wait=false"}), 1);
  EXPECT_NE(out_.find("\"there\" deleted"), std::string::npos) << out_;
  EXPECT_NE(err_.find("missing"), std::string::npos) << err_;
}

TEST_F(CliTest, SubmitMakesElasticJobsPartsOfGpusAndWorkspaces) {
  const auto submit = [this](std::vector<std::string> flags) {
    std::vector<std::string> words = {"swell", "submit",    "net", "--image",
                                      "i",     "--dry-run", "-o",  "json"};
    words.insert(words.end(), flags.begin(), flags.end());
    words.insert(words.end(), {"--", "python", "a.py"});
    return Run(words);
  };
  ASSERT_EQ(submit({"--min", "2", "--max", "8"}), 0) << err_;
  json::Value job = json::Parse(out_).value();
  EXPECT_EQ(json::GetInt(job, {"spec", "elasticPolicy", "minReplicas"}), 2);
  EXPECT_EQ(json::GetInt(job, {"spec", "elasticPolicy", "maxReplicas"}), 8);
  EXPECT_EQ(json::GetInt(job, {"spec", "pytorchReplicaSpecs", "Worker", "replicas"}), 8);
  EXPECT_EQ(json::Find(job, {"spec", "pytorchReplicaSpecs", "Master"}), nullptr);
  ASSERT_EQ(submit({"--gpus", "0.5", "--interactive"}), 0) << err_;
  job = json::Parse(out_).value();
  EXPECT_EQ(json::GetString(job, {"metadata", "labels", "swell.dev/workload"}), "interactive");
  const json::Value& pod = *json::Find(job, {"spec", "pytorchReplicaSpecs", "Master", "template"});
  EXPECT_EQ(json::GetString(pod, {"metadata", "annotations", "swell.dev/gpu-fraction"}), "0.5");
  EXPECT_EQ(json::GetString(pod, {"spec", "priorityClassName"}), "interactive");
  struct Wrong {
    std::vector<std::string> flags;
    std::string_view said;
  };
  for (const Wrong& wrong : std::vector<Wrong>{
           {{"--gpus", "1.5"}, "--gpus \"1.5\": expected a whole number of GPUs or a part of one"},
           {{"--gpus", "-1"}, "--gpus \"-1\": expected a whole number"},
           {{"--min", "2"}, "--min 2 needs --max"},
           {{"--min", "0", "--max", "2"}, "--min 0: expected 1 or more"},
           {{"--min", "3", "--max", "2"}, "--max 2 is below --min 3"},
           {{"--max", "2", "--workers", "3"}, "--workers 3: expected between --min 1 and --max 2"},
           {{"--interactive", "--workers", "2"}, "--interactive and --workers exclude each other"},
           {{"--interactive", "--max", "2"}, "--interactive and --min or --max exclude"}}) {
    EXPECT_EQ(submit(wrong.flags), 2);
    EXPECT_NE(err_.find(wrong.said), std::string::npos) << err_;
  }
}

TEST_F(CliTest, SubmitReplacesAJobWhenForced) {
  const std::vector<std::string> kSubmit = {"swell", "submit", "net", "--image", "i"};
  auto submit = [&](const std::string& flag, const std::string& command) {
    std::vector<std::string> words = kSubmit;
    if (!flag.empty()) words.push_back(flag);
    words.insert(words.end(), {"--", "python", command});
    return Run(words);
  };
  auto uid = [&] {
    EXPECT_EQ(Run({"swell", "get", "pytorchjob", "net", "-o", "jsonpath={.metadata.uid}"}), 0);
    return out_;
  };
  ASSERT_EQ(submit("", "a.py"), 0) << err_;
  const std::string first = uid();
  EXPECT_EQ(submit("", "b.py"), 1);
  EXPECT_NE(err_.find("\"net\" already exists"), std::string::npos) << err_;
  ASSERT_EQ(submit("--force", "b.py"), 0) << err_;
  EXPECT_EQ(out_, "pytorchjob.kubeflow.org/net created\n");
  EXPECT_EQ(err_, "pytorchjob.kubeflow.org \"net\" deleted\n");
  EXPECT_NE(uid(), first);
  ASSERT_EQ(Run({"swell", "delete", "net"}), 0) << err_;
  EXPECT_EQ(Run({"swell", "wait", "pytorchjob/net", "--for=delete"}), 0) << err_;
  ASSERT_EQ(submit("--force", "c.py"), 0) << err_;
  EXPECT_EQ(err_, "");
}

TEST_F(CliTest, UnknownWordsAreMisuse) {
  EXPECT_EQ(Run({"swell", "gte", "pods"}), 2);
  EXPECT_EQ(err_, "swell: unknown command \"gte\"\nDid you mean: swell get\nSee: swell --help\n");
  EXPECT_EQ(Run({"swell", "top", "nod"}), 2);
  EXPECT_EQ(err_,
            "swell top: unknown command \"nod\": expected node, job or project\nSee: swell top "
            "--help\n");
}

TEST_F(CliTest, EveryCommandHelpsWithoutACluster) {
  env_.connect = [](const ClusterFlags&) {
    return Result<Connection>(swell::Status(Code::kNotFound, "no cluster found"));
  };
  for (const char* command : {"get", "list", "describe", "logs", "events", "submit", "apply",
                              "create", "delete", "suspend", "resume", "wait"}) {
    EXPECT_EQ(Run({"swell", command, "--help"}), 0) << command;
    EXPECT_NE(out_.find("Examples:\n  # "), std::string::npos) << command;
    EXPECT_NE(out_.find(StrCat("  swell ", command)), std::string::npos) << command;
  }
  EXPECT_EQ(Run({"swell", "list"}), 1);
  EXPECT_EQ(err_, "swell: no cluster found\n");
}

// Each has global flags of its own, which a command's flags must leave alone.
TEST_F(CliTest, EveryFrontEndHasLogs) {
  for (const char* front_end : {"swell", "arena", "runai"}) {
    EXPECT_EQ(Run({front_end, "logs", "--help"}), 0) << front_end;
    EXPECT_NE(out_.find("--attempt N"), std::string::npos) << out_;
    EXPECT_NE(Run({front_end, "logs", "job", "--attempt", "-1"}), 0) << front_end;
  }
}

TEST_F(CliTest, NoReaderIsNoError) {
  env_.out = [](std::string_view) { return false; };
  EXPECT_EQ(Run({"swell", "get", "ns"}), 0);
}

}  // namespace
}  // namespace swell::cli
