// Arena's command lines against an API server in this process: memory store, virtual time.

#include <set>
#include <string>

#include "base/file.h"
#include "base/strings.h"
#include "base/temp_dir.h"
#include "cli/cli_test_util.h"
#include "kube/api/meta/meta.h"

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

// Also where kubectl deletes the job, which knows nothing of them.
TEST_F(CliTest, ConfigMapsOfAJobGoWithIt) {
  const TempDir temporary;
  const std::string file = temporary.File("a.json");
  ASSERT_TRUE(WriteFileAtomically(file, "{}").ok());
  ASSERT_EQ(Run({"arena", "submit", "pytorch", "--name=w", "--image=i",
                 StrCat("--config-file=", file, ":/etc/a.json"), "true"}),
            0)
      << err_;
  const auto get = [this](std::string_view path) {
    return server_.Send(server_.Request("GET", StrCat(path))).body;
  };
  const json::Value job = get("/apis/kubeflow.org/v1/namespaces/default/pytorchjobs/w");
  for (const char* name : {"w-pytorchjob", "w-config-files"}) {
    const json::Value map = get(StrCat("/api/v1/namespaces/default/configmaps/", name));
    const json::Array& owners = json::GetArray(map, {"metadata", "ownerReferences"});
    ASSERT_EQ(owners.size(), 1U) << name;
    EXPECT_EQ(json::GetString(owners[0], {"uid"}), api::Uid(job));
  }
  ASSERT_EQ(Run({"arena", "delete", "w"}), 0) << err_;
  EXPECT_EQ(out_,
            "pytorchjob.kubeflow.org \"w\" deleted\n"
            "configmap \"w-pytorchjob\" deleted\n"
            "configmap \"w-config-files\" deleted\n");
}

TEST_F(CliTest, ArenaSubmitNeedsAPriorityClassThatExists) {
  MediumClass();
  EXPECT_EQ(Run({"arena", "submit", "pytorch", "--name=x", "--image=i", "--priority=meduim", "a"}),
            1);
  EXPECT_NE(err_.find("did you mean medium?"), std::string::npos) << err_;
  EXPECT_NE(err_.find("Available: "), std::string::npos) << err_;
}

// No kind of job checks the name of the class when it is written.
TEST_F(CliTest, AClassOfAnothersJobStaysOnItsLine) {
  Create(
      R"({"apiVersion":"kubeflow.org/v1","kind":"PyTorchJob","metadata":{"name":"evil"},"spec":)"
      R"({"pytorchReplicaSpecs":{"Master":{"replicas":1,"template":{"spec":{"priorityClassName":)"
      R"("x\u001b[2J\nSTATUS: RUNNING","containers":[{"name":"pytorch","image":"i"}]}}}}}})");
  const std::string shown = "x\\x1b[2J\\nSTATUS: RUNNING";
  ASSERT_EQ(Run({"arena", "get", "evil"}), 0) << err_;
  EXPECT_NE(out_.find(StrCat("\nPRIORITY: ", shown, "\n")), std::string::npos) << out_;
  ASSERT_EQ(Run({"runai", "describe", "evil", "-n", "default"}), 0) << err_;
  EXPECT_NE(out_.find(StrCat("\nPriority: ", shown, ", preemptible\n")), std::string::npos) << out_;
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
  for (const char* mode : {"e", "share"}) {
    ASSERT_EQ(Run({"arena", "top", "node", "-m", mode}), 0) << err_;
    EXPECT_EQ(out_.find("z-master"), std::string::npos) << out_;
    EXPECT_NE(out_.find("4/8 (50%)"), std::string::npos) << out_;
  }
  ASSERT_EQ(Run({"arena", "top", "node", "-m", "n"}), 0) << err_;
  EXPECT_EQ(out_.find("node-1"), std::string::npos) << out_;
  EXPECT_NE(out_.find("z-master"), std::string::npos) << out_;
  EXPECT_EQ(Run({"arena", "top", "node", "-m", "all"}), 2);
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

TEST_F(CliTest, ArenaDeleteTakesEverythingAway) {
  MediumClass();
  ASSERT_EQ(SubmitMedium(), 0) << err_;
  ASSERT_EQ(Run({"arena", "delete", "medium-job"}), 0) << err_;
  EXPECT_EQ(err_, "INFO[0000] The Job medium-job has been deleted successfully\n");
  // Where the namespace is not the user's, the refusal names jobs, which were asked for.
  std::string first;
  before_ = [&first](const api::RestRequest& request) {
    if (first.empty()) first = request.path;
  };
  ASSERT_EQ(Run({"arena", "delete", "medium-job"}), 1);
  EXPECT_NE(first.find("jobs/medium-job"), std::string::npos) << first;
  EXPECT_EQ(first.find("cron"), std::string::npos) << first;
  before_ = nullptr;
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
  for (const char* role : {"Chief", "Worker", "PS"}) {
    const std::string env = json::Print(json::GetArray(container(role), {"env"}));
    EXPECT_NE(env.find(R"({"name":"workers","value":"2"},{"name":"gpus","value":"1"})"),
              std::string::npos)
        << role << env;
  }
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
  for (const char* flag : {"--ps-affinity-policy=spread", "--worker-affinity-constraint=required",
                           "--starting-timeout=1h"}) {
    EXPECT_EQ(Run({"arena", "submit", "tf", "--name=x", "--image=i", flag, "true"}), 2);
    EXPECT_NE(err_.find(" is not supported: "), std::string::npos) << err_;
  }
  EXPECT_EQ(Run({"arena", "list", "--loglevel", "loud"}), 2);
  EXPECT_NE(err_.find("--loglevel \"loud\": expected trace, debug, info, "), std::string::npos)
      << err_;
}

TEST_F(CliTest, EveryFrontEndPrintsItsVersion) {
  for (const char* program : {"swell", "arena", "runai", "elasticdl"}) {
    ASSERT_EQ(Run({program, "version"}), 0) << err_;
    const std::string version = out_;
    ASSERT_EQ(Run({program, "--version"}), 0) << err_;
    EXPECT_EQ(out_, version);
  }
}

TEST_F(CliTest, ArenaSaysWhatItDoesNotDo) {
  EXPECT_EQ(Run({"arena", "submit", "rj", "--name=x"}), 2);
  EXPECT_NE(err_.find("arena submit rayjob is not supported: create a RayJob of KubeRay"),
            std::string::npos)
      << err_;
  EXPECT_EQ(Run({"arena", "submit", "spark", "--name=x"}), 2);
  EXPECT_NE(err_.find("arena submit sparkjob is not supported: with Spark's operator"),
            std::string::npos)
      << err_;
  EXPECT_EQ(Run({"swell", "arena", "model", "list"}), 2);
  EXPECT_NE(err_.find("arena model is not supported: Swell has no model registry"),
            std::string::npos)
      << err_;
  EXPECT_EQ(Run({"arena", "get", "x", "--type", "sparkjob"}), 2);
  EXPECT_EQ(Run({"arena", "prune"}), 2);
}

}  // namespace
}  // namespace swell::cli
