// Command lines against an API server in this process: memory store, virtual time.

#include "base/file.h"
#include "base/strings.h"
#include "base/temp_dir.h"
#include "cli/cli_test_util.h"
#include "cli/cluster.h"
#include "cli/views/job_view.h"
#include "kube/api/objects/failure.h"

namespace swell::cli {
namespace {

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
             R"("maxReplicas":8,"message":"waits for 2 more","shrinks":1,"history":[{"time":")",
             before,
             R"(","replicas":4,"desired":4,"throughput":800.5,"reason":"started"},{"time":")", now,
             R"(","replicas":2,"desired":4,"throughput":410,"reason":"Preempted by b"}]}}})"));
  ASSERT_EQ(Run({"swell", "get"}), 0) << err_;
  EXPECT_EQ(out_,
            "NAME   KIND          STATUS    MIN   NOW   DESIRED   MAX   AGE   WHY\n"
            "t      TrainingJob   Running   1     2     4         8     4m    waits for 2 more\n");
  ASSERT_EQ(Run({"swell", "list", "--no-headers"}), 0) << err_;
  EXPECT_NE(out_.find("0/4 (1-8)"), std::string::npos) << out_;
  // Nobody said how many steps there are.
  const std::string progress = StrCat(R"({"status":{"progress":{"phase":"step","step":120,)",
                                      R"("lastUpdatedTime":")", now, R"("}}})");
  Status("/apis/swell.dev/v1/namespaces/default/trainingjobs/t", progress);
  ASSERT_EQ(Run({"swell", "list", "--no-headers"}), 0) << err_;
  EXPECT_NE(out_.find(" step 120 "), std::string::npos) << out_;
  ASSERT_EQ(Run({"swell", "get", "-o", "name"}), 0) << err_;
  EXPECT_EQ(out_, "trainingjob.swell.dev/t\n");
  server_.executor.Advance(std::chrono::minutes(1));
  ASSERT_EQ(Run({"swell", "describe", "t"}), 0) << err_;
  for (std::string_view part : {"Preemptions:      1 shrink\n",
                                "Size:\n  2 of 4 wanted, between 1 and 8; waits for 2 more\n",
                                "      4 │████", "      1 │████", "   speed  ████", "up to 800/s",
                                "  60s  2         410/s       Preempted by b\n",
                                "  4m   4         800/s       started\n"}) {
    EXPECT_NE(out_.find(part), std::string::npos) << part << "\nin\n" << out_;
  }
}

TEST(JobPreemptions, WhatStoppedAJobIsToldFromWhatMadeItSmaller) {
  const auto text = [](int64_t whole, int64_t shrinks) {
    return JobPreemptions{.whole = whole, .shrinks = shrinks}.Text();
  };
  EXPECT_EQ(text(0, 0), "0");
  EXPECT_EQ(text(2, 0), "2");
  EXPECT_EQ(text(0, 1), "1 shrink");
  EXPECT_EQ(text(1, 2), "3 (1 whole, 2 shrinks)");
}

TEST_F(CliTest, PartsOfGpuTimeAreOneWhole) {
  ASSERT_EQ(Run({"swell", "submit", "net", "--image", "i", "--", "true"}), 0) << err_;
  Status("/apis/kubeflow.org/v1/namespaces/default/pytorchjobs/net",
         R"({"status":{"gpuTime":{"heldSeconds":100,"lostSeconds":100,"productivePercentage":0,)"
         R"("seconds":{"starting":30,"training":70}}}})");
  ASSERT_EQ(Run({"swell", "describe", "net"}), 0) << err_;
  EXPECT_NE(out_.find("0% productive; 70% lost work, 30% starting"), std::string::npos) << out_;
}

TEST_F(CliTest, SuspendSaysThatAJobReportedNoCheckpoint) {
  ASSERT_EQ(Run({"swell", "submit", "net", "--image", "i", "--", "train"}), 0) << err_;
  ASSERT_EQ(Run({"swell", "get", "pytorchjob", "net", "-o", "jsonpath={.metadata.uid}"}), 0);
  Create(
      StrCat("{apiVersion: v1, kind: Pod, metadata: {name: net-master-0, ownerReferences: "
             "[{apiVersion: kubeflow.org/v1, kind: PyTorchJob, name: net, uid: ",
             out_, "}]}, spec: {nodeName: node-1, containers: [{name: pytorch, image: i}]}}"));
  Status("/api/v1/namespaces/default/pods/net-master-0", R"({"status":{"phase":"Running"}})");
  ASSERT_EQ(Run({"swell", "suspend", "net"}), 0) << err_;
  EXPECT_EQ(out_, "pytorchjob.kubeflow.org/net suspended\n");
  EXPECT_TRUE(err_.starts_with("net reported no checkpoint: unless its script saves")) << err_;
  ASSERT_EQ(Run({"swell", "suspend", "net"}), 0) << err_;
  EXPECT_EQ(err_, "") << "nothing is lost any more";
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
  json::Object degraded = failed;
  degraded["type"] = "Degraded";
  degraded["message"] = failure.Sentence();
  json::Set(status, {"status", "conditions"}, json::Array{std::move(degraded), std::move(failed)});
  json::Set(status, {"status", "failure"}, failure.ToJson());
  Status("/apis/kubeflow.org/v1/namespaces/default/pytorchjobs/net", json::Print(status));
  ASSERT_EQ(Run({"swell", "describe", "net"}), 0) << err_;
  EXPECT_NE(out_.find("Failure:          net-master-0 failed: container pytorch exited with 3; its "
                      "last line: "),
            std::string::npos)
      << out_;
  EXPECT_NE(out_.find("Says:             PyTorchJob net failed.\n"), std::string::npos) << out_;
  EXPECT_EQ(out_.find("broken"), out_.rfind("broken")) << out_;
  EXPECT_NE(out_.find("Degraded  True    0s     R       see Failure above\n"), std::string::npos)
      << out_;
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

TEST_F(CliTest, DescribePodShowsPortsAndSidecars) {
  Create(
      "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {resources: {limits: {cpu: 2}}, "
      "initContainers: [{name: fetch, "
      "image: i}, {name: proxy, image: i, restartPolicy: Always, ports: [{containerPort: 9000, "
      "protocol: UDP}]}], containers: [{name: main, image: i, ports: [{containerPort: 8080}, "
      "{name: metrics, containerPort: 9090, hostPort: 90}]}]}}");
  ASSERT_EQ(Run({"swell", "describe", "pod", "p"}), 0) << err_;
  const size_t inits = out_.find("Init containers:\n  fetch:");
  EXPECT_LT(out_.find("cpu 2\n"), inits) << out_;
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

TEST_F(CliTest, AFileThatCannotBeReadIsNoMisuse) {
  stdin_ = "apiVersion: v1\nkind: Pod\nmetadata: {name: a\nspec: [}\n";
  for (const char* command : {"apply", "create", "delete"}) {
    EXPECT_EQ(Run({"swell", command, "-f", "-"}), 1);
    EXPECT_TRUE(err_.starts_with("swell: standard input: YAML: line 4, column 5: ")) << err_;
    EXPECT_EQ(err_.find("--help"), std::string::npos) << err_;
  }
  stdin_ = "apiVersion: v1\nmetadata: {name: a}\n";
  EXPECT_EQ(Run({"swell", "apply", "-f", "-"}), 1);
  EXPECT_EQ(err_, "swell: standard input: kind is not set\n");
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
  stdin_ = "{apiVersion: serving.kubedl.io/v1alpha1, kind: Inference, metadata: {name: s}}";
  EXPECT_EQ(Run({"swell", "apply", "-f", "-"}), 1);
  EXPECT_NE(err_.find("\"; arena serve custom"), std::string::npos) << err_;
  stdin_ = "{apiVersion: v7, kind: Job, metadata: {name: j}}";
  EXPECT_EQ(Run({"swell", "delete", "-f", "-"}), 1);
  EXPECT_TRUE(
      err_.starts_with("swell: standard input: the server does not know kind \"Job\" in apiVersion "
                       "\"v7\"; it has Job in batch/v1"))
      << err_;
  stdin_ = "{apiVersion: kubeflow.org/v1, kind: PytorchJob, metadata: {name: j}}";
  EXPECT_EQ(Run({"swell", "apply", "-f", "-"}), 1);
  EXPECT_TRUE(err_.ends_with("; it has PyTorchJob in kubeflow.org/v1\n")) << err_;
  stdin_ = "{apiVersion: v7, kind: Jib, metadata: {name: j}}";
  EXPECT_EQ(Run({"swell", "apply", "-f", "-"}), 1);
  EXPECT_TRUE(err_.ends_with(" in apiVersion \"v7\"\n")) << err_;
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
  // Its node is at work on it, or tries in vain.
  Create(
      "{apiVersion: v1, kind: Pod, metadata: {name: q}, spec: {nodeName: node-1, containers: "
      "[{name: c, image: i}]}}");
  Status("/api/v1/namespaces/default/pods/q",
         R"({"status":{"phase":"Pending","containerStatuses":[{"name":"c","image":"i",)"
         R"("imageID":"","ready":false,"restartCount":0,)"
         R"("state":{"waiting":{"reason":"ContainerCreating"}}}]}})");
  EXPECT_EQ(Run({"swell", "logs", "q"}), 0);
  EXPECT_EQ(err_, "q has not started: ContainerCreating; to see why: swell why q -n default\n");
  EXPECT_EQ(Run({"swell", "exec", "q", "--", "ls"}), 1);
  EXPECT_EQ(
      err_,
      "swell: pod q does not run yet: ContainerCreating; to see why: swell why q -n default\n");
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
  EXPECT_EQ(err_,
            "swell: namespaces \"nope\" not found\nswell get namespaces shows what exists; a new "
            "project brings one: swell project create\n");
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

// An administrator acts for others; the server knows the names of everybody else.
TEST_F(CliTest, WorkSaysWhoSubmittedIt) {
  env_.getenv = [](const std::string& name) { return std::string(name == "USER" ? "ann" : ""); };
  const auto user_of = [this](const std::string& kind) {
    EXPECT_EQ(Run({"swell", "get", kind, "w", "-o", "json"}), 0) << err_;
    return std::string(api::Annotation(json::Parse(out_).value(), "swell.dev/user"));
  };
  ASSERT_EQ(Run({"swell", "submit", "w", "-i", "i", "--", "true"}), 0) << err_;
  EXPECT_EQ(user_of("pytorchjob"), "ann");
  ASSERT_EQ(
      Run({"swell", "submit", "w", "--force", "-i", "i", "-a", "swell.dev/user=bob", "--", "true"}),
      0)
      << err_;
  EXPECT_EQ(user_of("pytorchjob"), "bob");
  ASSERT_EQ(Run({"arena", "submit", "tf", "--name=w", "--image=i", "true"}), 0) << err_;
  EXPECT_EQ(user_of("tfjob"), "ann");
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
  EXPECT_EQ(Run({"swell", "delete", "pod"}), 2);
  EXPECT_TRUE(err_.starts_with("swell delete: which pod? Name it: swell delete pod NAME\n"))
      << err_;
  EXPECT_EQ(Run({"swell", "delete", "there", "missing", "--wait=false"}), 1);
  EXPECT_NE(out_.find("\"there\" deleted"), std::string::npos) << out_;
  EXPECT_NE(err_.find("missing"), std::string::npos) << err_;
}

TEST_F(CliTest, AnEmptyNameIsNotEveryName) {
  ASSERT_EQ(Run({"swell", "submit", "only", "--image", "i", "--", "true"}), 0) << err_;
  EXPECT_EQ(Run({"swell", "delete", "", "--wait=false"}), 2) << out_;
  EXPECT_NE(err_.find("the job's name is empty; is a variable of the shell not set?"),
            std::string::npos)
      << err_;
  for (const char* kind : {"pytorchjob", "pytorchjob/"}) {
    std::vector<std::string> words{"swell", "delete", "--wait=false", kind};
    if (!std::string_view(kind).ends_with("/")) words.push_back("");
    EXPECT_EQ(Run(words), 1) << kind << ": " << out_;
    EXPECT_NE(err_.find("the name of one of the pytorchjobs is empty"), std::string::npos) << err_;
  }
  EXPECT_EQ(Run({"swell", "suspend", ""}), 2) << out_;
  for (const char* form : {"wide", "json"}) {
    EXPECT_EQ(Run({"swell", "get", "pytorchjob", "", "-o", form}), 2) << out_;
    EXPECT_TRUE(err_.starts_with("swell get: a name is empty;")) << err_;
  }
  EXPECT_EQ(Run({"swell", "get", "pytorchjob", "only"}), 0) << err_;
}

TEST_F(CliTest, SubmitMakesElasticJobsPartsOfGpusWorkspacesAndTimeLimits) {
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
  ASSERT_EQ(submit({"--time-limit", "2h30m"}), 0) << err_;
  job = json::Parse(out_).value();
  EXPECT_EQ(json::GetInt(job, {"spec", "runPolicy", "activeDeadlineSeconds"}), 9000);
  struct Wrong {
    std::vector<std::string> flags;
    std::string_view said;
  };
  for (const Wrong& wrong : std::vector<Wrong>{
           {{"--gpus", "1.5"}, "--gpus \"1.5\": expected a whole number of GPUs or a part of one"},
           {{"--gpus", "-1"}, "--gpus \"-1\": expected a whole number"},
           {{"--min", "2"}, "--min 2 needs --max"},
           {{"--time-limit", "soon"}, "--time-limit \"soon\": expected a duration like 90s, 2h45m"},
           {{"--time-limit", "500ms"}, "--time-limit \"500ms\": expected 1s or more"},
           {{"--min", "0", "--max", "2"}, "--min 0: expected 1 or more"},
           {{"--min", "3", "--max", "2"}, "--max 2 is below --min 3"},
           {{"--max", "2", "--workers", "3"}, "--workers 3: expected between --min 1 and --max 2"},
           {{"--interactive", "--workers", "2"}, "--interactive and --workers exclude each other"},
           {{"--interactive", "--max", "2"}, "--interactive and --min or --max exclude"}}) {
    EXPECT_EQ(submit(wrong.flags), 2);
    EXPECT_NE(err_.find(wrong.said), std::string::npos) << err_;
  }
}

TEST_F(CliTest, FlagsOfOtherFrontEndsAndPathsOfOneSideAreAnsweredWithWhatIsMeant) {
  EXPECT_EQ(Run({"swell", "submit", "net", "--image", "i", "--min-workers", "2", "--", "ls"}), 2);
  EXPECT_TRUE(err_.starts_with("swell submit: --min-workers is not supported: use --min\n"))
      << err_;
  EXPECT_EQ(Run({"swell", "cp", "a", "b"}), 2);
  EXPECT_TRUE(
      err_.starts_with("swell cp: \"a\" and \"b\" are both on this machine; write one of "
                       "them as POD:PATH\n"))
      << err_;
  EXPECT_EQ(Run({"swell", "cp", "p:a", "q:b"}), 2);
  EXPECT_TRUE(
      err_.starts_with("swell cp: \"p:a\" and \"q:b\" are both in pods; one of them must "
                       "be a path of this machine\n"))
      << err_;
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
  EXPECT_NE(err_.find("\"net\" already exists; --force deletes it first\n"), std::string::npos)
      << err_;
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
