// `runai` as people type it.
#include "cli/runai/runai_test_util.h"

namespace swell::cli {
namespace {

TEST_F(RunaiTest, MemoryCountsAsThePartOfAGpuThatItIs) {
  Cluster();
  ASSERT_EQ(Submit({"--gpu-memory", "4Gi", "--command", "python a.py"}), 0) << err_;
  JobPod("Running", 0);
  Runs();
  const auto bound = server_.Send(
      server_.Request("PATCH", "/api/v1/namespaces/project-a/pods/large-training-job-worker-0",
                      R"({"metadata":{"annotations":{"swell.dev/gpu-memory":"4096",)"
                      R"("swell.dev/gpu-share":"0.25"}}})",
                      "application/merge-patch+json"));
  ASSERT_EQ(bound.status, 200) << bound.text;
  ASSERT_EQ(Run({"runai", "list", "-p", "project-a"}), 0) << err_;
  EXPECT_NE(out_.find(" 0.25 (0.25) "), std::string::npos) << out_;
  ASSERT_EQ(Run({"runai", "top", "node"}), 0) << err_;
  EXPECT_NE(out_.find(" 0.25"), std::string::npos) << out_;
  ASSERT_EQ(Run({"swell", "why", "large-training-job", "-n", "project-a"}), 0) << err_;
  EXPECT_NE(out_.find("1 of 1 pods, 0.25 GPUs"), std::string::npos) << out_;
}

TEST_F(RunaiTest, WordsAfterTheDashesAreNeverItsName) {
  Cluster();
  ASSERT_EQ(Run({"runai", "submit", "-p", "project-a", "-i", "img", "--dry-run", "-o", "yaml", "--",
                 "sleep", "60"}),
            0)
      << err_;
  EXPECT_NE(out_.find("generateName: job-"), std::string::npos) << out_;
  EXPECT_NE(out_.find("- sleep"), std::string::npos) << out_;
  EXPECT_EQ(Run({"swell", "submit", "--image", "img", "--dry-run", "--", "sleep", "60"}), 2);
  EXPECT_NE(err_.find("expected the name of the job: swell submit NAME"), std::string::npos)
      << err_;
}

TEST_F(RunaiTest, RunsOfTheirOwnAreABatchJob) {
  Cluster();
  ASSERT_EQ(Run({"runai", "submit", "search", "-p", "project-a", "-i", "img", "-g", "1",
                 "--completions", "4", "--parallelism", "2", "--", "python", "a.py"}),
            0)
      << err_;
  auto made =
      server_.Send(server_.Request("GET", "/apis/batch/v1/namespaces/project-a/jobs/search"));
  ASSERT_EQ(made.status, 200) << made.text;
  json::Value job = json::Parse(made.text).value();
  EXPECT_EQ(json::GetInt(job, {"spec", "completions"}), 4);
  EXPECT_EQ(json::GetInt(job, {"spec", "parallelism"}), 2);
  EXPECT_EQ(json::GetString(job, {"spec", "template", "spec", "priorityClassName"}), "train");
  EXPECT_EQ(json::GetString(job, {"spec", "template", "metadata", "labels", "swell.dev/project"}),
            "project-a");
  ASSERT_EQ(Run({"runai", "list", "-p", "project-a", "--no-headers"}), 0) << err_;
  EXPECT_TRUE(out_.starts_with("search")) << out_;
  EXPECT_EQ(Run({"runai", "submit", "s2", "-p", "project-a", "-i", "img", "--completions", "4",
                 "--workers", "2"}),
            2);
}

TEST_F(RunaiTest, AClaimIsMadeWithTheWorkload) {
  Cluster();
  ASSERT_EQ(Submit({"--pvc", "standard:1Gi:/scratch", "--pvc", "data:/data"}), 0) << err_;
  auto claim = server_.Send(server_.Request(
      "GET", "/api/v1/namespaces/project-a/persistentvolumeclaims/large-training-job-pvc-0"));
  ASSERT_EQ(claim.status, 200) << claim.text;
  const json::Value object = json::Parse(claim.text).value();
  EXPECT_EQ(json::GetString(object, {"spec", "storageClassName"}), "standard");
  EXPECT_EQ(json::GetString(object, {"spec", "resources", "requests", "storage"}), "1Gi");
  const json::Value job = Job();
  std::vector<std::string> mounts;
  const json::Value* pod = json::Find(job, {"spec", "roles", "worker", "template", "spec"});
  for (const json::Value& volume : json::GetArray(*pod, {"volumes"})) {
    mounts.emplace_back(json::GetString(volume, {"persistentVolumeClaim", "claimName"}));
  }
  EXPECT_EQ(mounts, (std::vector<std::string>{"large-training-job-pvc-0", "data"}));
  EXPECT_EQ(Submit({"--pvc", "a:b:c:d"}), 2);
  EXPECT_NE(err_.find("--pvc \"a:b:c:d\": expected CLAIM:PATH or CLASS:SIZE:PATH"),
            std::string::npos)
      << err_;
}

TEST_F(RunaiTest, WhatCannotBeHadSaysWhyAndWhatElse) {
  Cluster();
  EXPECT_EQ(Submit({"--cpu", "abc"}), 2);
  EXPECT_NE(err_.find("--cpu \"abc\": expected an amount"), std::string::npos) << err_;
  EXPECT_EQ(Submit({"--template", "t"}), 2);
  EXPECT_NE(err_.find("--template is not supported: Swell stores no templates"), std::string::npos);
  EXPECT_EQ(Run({"runai", "submit-mpi", "old", "--processes", "3", "-g", "1", "-i", "img", "-p",
                 "project-a", "--", "mpirun", "a.out"}),
            0)
      << err_;
  EXPECT_EQ(Run({"runai", "login", "user", "-u", "eve", "-p", "x"}), 0) << "scripts go on";
  EXPECT_NE(err_.find("login is not needed: the kubeconfig identifies you"), std::string::npos);
  EXPECT_EQ(Run({"runai", "cluster", "list"}), 0) << "scripts go on";
  EXPECT_NE(err_.find("cluster is not needed: the kubeconfig selects the cluster"),
            std::string::npos);
  EXPECT_EQ(Run({"runai", "list", "clusters"}), 0) << "scripts go on";
  EXPECT_EQ(Run({"runai", "config", "cluster", "prod"}), 2);
  EXPECT_NE(err_.find("kubectl config use-context selects another cluster"), std::string::npos);
  EXPECT_EQ(Run({"runai", "list", "templates"}), 2);
  EXPECT_NE(err_.find("\"templates\": expected jobs, projects, departments, nodes or node-pools"),
            std::string::npos)
      << err_;
}

TEST_F(RunaiTest, VersionTwoSaysVolumesInFields) {
  Cluster();
  ASSERT_EQ(Run({"runai",
                 "workspace",
                 "submit",
                 "w",
                 "-p",
                 "project-a",
                 "-i",
                 "img",
                 "--existing-pvc",
                 "claimname=data,path=/data,ro",
                 "--new-pvc",
                 "claimname=scratch,size=1Gi,path=/scratch,accessmode-rwm",
                 "--host-path",
                 "path=/srv,mount=/host",
                 "--configmap-map-volume",
                 "name=conf,path=/conf",
                 "--secret-volume",
                 "name=keys,path=/keys",
                 "--nfs",
                 "server=nas,path=/x,mountpath=/nas,readwrite",
                 "-c",
                 "--",
                 "sleep",
                 "5"}),
            0)
      << err_;
  const json::Value job = Job("w");
  const json::Value& pod = *json::Find(job, {"spec", "roles", "workspace", "template", "spec"});
  const json::Value& container = json::GetArray(pod, {"containers"})[0];
  EXPECT_EQ(json::Print(*json::Find(container, {"command"})), R"(["sleep","5"])");
  std::vector<std::string> mounts;
  for (const json::Value& mount : json::GetArray(container, {"volumeMounts"})) {
    mounts.push_back(StrCat(json::GetString(mount, {"mountPath"}),
                            json::GetBool(mount, {"readOnly"}) ? " ro" : ""));
  }
  EXPECT_EQ(mounts, (std::vector<std::string>{"/data ro", "/scratch", "/host ro", "/conf", "/keys",
                                              "/nas"}));
  auto answer = server_.Send(
      server_.Request("GET", "/api/v1/namespaces/project-a/persistentvolumeclaims/scratch"));
  ASSERT_EQ(answer.status, 200) << answer.text;
  const json::Value claim = json::Parse(answer.text).value();
  EXPECT_EQ(json::GetString(json::GetArray(claim, {"metadata", "ownerReferences"})[0], {"name"}),
            "w");
  EXPECT_EQ(json::Print(*json::Find(claim, {"spec", "accessModes"})), R"(["ReadWriteMany"])");
  EXPECT_EQ(Run({"runai", "workspace", "submit", "x", "-p", "project-a", "-i", "img",
                 "--existing-pvc", "claim=data,path=/data"}),
            2);
  EXPECT_NE(err_.find("--existing-pvc \"claim=data,path=/data\": expected fields claimname, "
                      "path, ro, not \"claim\""),
            std::string::npos)
      << err_;
}

TEST_F(RunaiTest, PartsOfGpusAreOfThoseThatAreAskedFor) {
  Cluster();
  auto annotations = [&](std::vector<std::string> gpus) {
    std::vector<std::string> words{"runai", "training", "submit",    "t",  "-p",  "project-a",
                                   "-i",    "img",      "--dry-run", "-o", "json"};
    words.insert(words.end(), gpus.begin(), gpus.end());
    if (Run(words) != 0) return err_;
    const json::Value job = json::Parse(out_).value();
    const json::Value& pod = *json::Find(job, {"spec", "roles", "worker", "template"});
    std::string text;
    for (const char* key : {"gpu-fraction", "gpu-fraction-devices", "gpu-memory"}) {
      text += StrCat(api::Annotation(pod, StrCat("swell.dev/", key)), "|");
    }
    const json::Value& container = json::GetArray(pod, {"spec", "containers"})[0];
    return text +
           std::string(json::GetString(container, {"resources", "limits", "nvidia.com/gpu"}));
  };
  EXPECT_EQ(annotations({"--gpu-devices-request", "1", "--gpu-portion-request", "0.5"}), "0.5|||");
  EXPECT_EQ(annotations({"--gpu-portion-request", "0.5", "-g", "2"}), "0.5|2||");
  EXPECT_EQ(annotations({"-g", "2", "--gpu-portion-request", "1"}), "|||2");
  EXPECT_EQ(annotations({"-g", "1", "--gpu-memory-request", "1Gi"}), "||1024|");
  EXPECT_EQ(annotations({"-g", "0.5"}), "0.5|||");
  EXPECT_NE(annotations({"-g", "0.5", "--gpu-memory", "1Gi"}).find("exclude each other"),
            std::string::npos);
}

TEST_F(RunaiTest, PlaceAndRightsInVersionTwosWords) {
  Cluster();
  ASSERT_EQ(Run({"runai",
                 "training",
                 "submit",
                 "t",
                 "-p",
                 "project-a",
                 "-i",
                 "img",
                 "--toleration",
                 "operator=Exists,key=gpu,effect=NoExecute,seconds=60",
                 "--required-pod-topology-key",
                 "rack",
                 "--run-as-uid",
                 "7",
                 "--run-as-gid",
                 "8",
                 "--supplemental-groups",
                 "9,10",
                 "--termination-grace-period",
                 "90s",
                 "--port",
                 "service-type=NodePort,container=80,external=8080",
                 "--external-url",
                 "container=8888",
                 "--git-sync",
                 "name=r,repository=https://h/r.git,revision=v1"}),
            0)
      << err_;
  const json::Value job = Job("t");
  EXPECT_EQ(json::GetString(job, {"spec", "topology", "required"}), "rack");
  const json::Value& pod = *json::Find(job, {"spec", "roles", "worker", "template", "spec"});
  EXPECT_EQ(json::Print(*json::Find(pod, {"tolerations"})),
            R"([{"operator":"Exists","key":"gpu","effect":"NoExecute","tolerationSeconds":60}])");
  EXPECT_EQ(json::Print(*json::Find(pod, {"securityContext"})),
            R"({"runAsUser":7,"runAsGroup":8,"supplementalGroups":[9,10]})");
  EXPECT_EQ(json::GetInt(pod, {"terminationGracePeriodSeconds"}), 90);
  std::map<std::string, std::string> env;
  for (const json::Value& one :
       json::GetArray(json::GetArray(pod, {"initContainers"})[0], {"env"})) {
    env[std::string(json::GetString(one, {"name"}))] = json::GetString(one, {"value"});
  }
  EXPECT_EQ(env["GIT_SYNC_REPO"], "https://h/r.git");
  EXPECT_EQ(env["GIT_SYNC_REV"], "v1");
  auto answer = server_.Send(server_.Request("GET", "/api/v1/namespaces/project-a/services/t"));
  ASSERT_EQ(answer.status, 200) << answer.text;
  const json::Value service = json::Parse(answer.text).value();
  EXPECT_EQ(json::GetString(service, {"spec", "type"}), "NodePort");
  EXPECT_EQ(json::GetArray(service, {"spec", "ports"}).size(), 2u);
  const json::Value& owner = json::GetArray(service, {"metadata", "ownerReferences"})[0];
  EXPECT_EQ(json::GetString(owner, {"uid"}), api::Uid(job));
  EXPECT_EQ(json::Find(owner, {"controller"}), nullptr)
      << "the job's controller would remove it as none of its own";
  EXPECT_EQ(Run({"runai", "training", "submit", "u", "-p", "project-a", "-i", "img",
                 "--external-url", "container=1,authusers=eve"}),
            2)
      << "it would be open to all";
}

TEST_F(RunaiTest, PortsAreReachedAsTheServiceTypeSays) {
  Cluster();
  auto submit = [this](const std::string& name, std::vector<std::string> more) {
    std::vector<std::string> words{"runai", "submit", name, "-p", "project-a", "-i", "img"};
    words.insert(words.end(), more.begin(), more.end());
    return Run(words);
  };
  ASSERT_EQ(submit("a", {"--service-type", "nodeport", "--port", "30123:80"}), 0) << err_;
  EXPECT_NE(out_.find(":30123\n"), std::string::npos) << out_;
  Status("/api/v1/nodes/node-1", R"({"status":{"addresses":null}})");
  const auto connect = env_.connect;
  env_.connect = [&connect](const ClusterFlags& flags) {
    auto connection = connect(flags);
    connection->url = "https://[fd00::1]";
    return connection;
  };
  ASSERT_EQ(submit("v6", {"--service-type", "nodeport", "--port", "30124:80"}), 0) << err_;
  EXPECT_NE(out_.find("http://[fd00::1]:30124\n"), std::string::npos) << out_;
  env_.connect = connect;
  ASSERT_EQ(submit("b", {"--external-url", "container=80"}), 0) << err_;
  EXPECT_NE(out_.find("It will answer at http://"), std::string::npos) << out_;
  ASSERT_EQ(submit("c", {"--port", "80"}), 0) << err_;
  EXPECT_NE(out_.find("`runai port-forward c -p project-a`"), std::string::npos) << out_;
  EXPECT_EQ(submit("d", {"--service-type", "ingress", "--port", "80"}), 2);
  EXPECT_NE(err_.find("Swell runs no ingress controller"), std::string::npos) << err_;
  EXPECT_EQ(submit("e", {"--service-type", "nodeport"}), 2);
  EXPECT_NE(err_.find("needs a port: --port 8888"), std::string::npos) << err_;
}

TEST_F(RunaiTest, SeveralPoolsAreAChoice) {
  Cluster();
  for (const char* pool : {"big", "small"}) {
    Create(StrCat("{apiVersion: swell.dev/v1, kind: NodePool, metadata: {name: ", pool,
                  "}, spec: {nodeSelector: {size: ", pool, "}}}"));
  }
  ASSERT_EQ(Submit({"--node-pools", "big,small"}), 0) << err_;
  EXPECT_NE(json::Print(Job()).find(R"("nodeSelectorTerms":[{"matchExpressions":[{"key":"size",)"
                                    R"("operator":"In","values":["big"]}]},{)"),
            std::string::npos);
}

TEST_F(RunaiTest, FrameworksAreKubeflowsJobs) {
  Cluster();
  auto roles = [&](const std::string& plural, const std::string& name, std::string_view field) {
    auto answer = server_.Send(server_.Request(
        "GET", StrCat("/apis/kubeflow.org/v1/namespaces/project-a/", plural, "/", name)));
    EXPECT_EQ(answer.status, 200) << answer.text;
    return *json::Find(json::Parse(answer.text).value(), {"spec", field});
  };
  ASSERT_EQ(Run({"runai",
                 "tensorflow",
                 "submit",
                 "tf",
                 "-p",
                 "project-a",
                 "-i",
                 "img",
                 "--workers",
                 "2",
                 "-g",
                 "1",
                 "--existing-pvc",
                 "claimname=d,path=/d",
                 "--master-command",
                 "echo m",
                 "--master-gpu-devices-request",
                 "0",
                 "--master-no-pvcs",
                 "--command",
                 "--",
                 "python",
                 "a.py"}),
            0)
      << err_;
  const json::Value tf = roles("tfjobs", "tf", "tfReplicaSpecs");
  auto container = [&](std::string_view role) -> const json::Value& {
    return json::GetArray(tf, {role, "template", "spec", "containers"})[0];
  };
  EXPECT_EQ(json::GetInt(tf, {"Worker", "replicas"}), 2);
  EXPECT_EQ(json::Print(*json::Find(container("Worker"), {"command"})), R"(["python","a.py"])");
  EXPECT_EQ(json::Print(*json::Find(container("Chief"), {"command"})), R"(["sh","-c","echo m"])");
  EXPECT_EQ(json::Find(container("Chief"), {"resources"}), nullptr);
  EXPECT_EQ(json::Find(container("Chief"), {"volumeMounts"}), nullptr);
  EXPECT_NE(json::Find(container("Worker"), {"volumeMounts"}), nullptr);
  ASSERT_EQ(
      Run({"runai", "distributed", "submit", "py", "-f", "PyTorch", "-p", "project-a", "-i", "img",
           "--workers", "3", "--no-master", "--min-replicas", "1", "--max-replicas", "4"}),
      0)
      << err_;
  EXPECT_EQ(json::GetInt(roles("pytorchjobs", "py", "pytorchReplicaSpecs"), {"Worker", "replicas"}),
            3);
  ASSERT_EQ(Run({"runai", "submit-dist", "xgboost", "x", "-p", "project-a", "-i", "img"}), 0)
      << err_;
  EXPECT_EQ(roles("xgboostjobs", "x", "xgbReplicaSpecs").get_object().size(), 2u);
  ASSERT_EQ(Run({"runai", "pytorch", "submit", "-p", "project-a", "-i", "img"}), 0) << err_;
  EXPECT_NE(out_.find("The job 'pytorch-"), std::string::npos) << out_;
  ASSERT_EQ(Run({"runai", "mpi", "submit", "m", "-p", "project-a", "-i", "img", "-g", "2",
                 "--workers", "2", "--slots-per-worker", "2", "--", "mpirun", "a"}),
            0)
      << err_;
  const json::Value mpi = roles("mpijobs", "m", "mpiReplicaSpecs");
  auto mpi_container = [&](std::string_view role) -> const json::Value& {
    return json::GetArray(mpi, {role, "template", "spec", "containers"})[0];
  };
  EXPECT_EQ(json::GetInt(mpi, {"Worker", "replicas"}), 2);
  EXPECT_EQ(json::Print(*json::Find(mpi_container("Launcher"), {"args"})), R"(["mpirun","a"])");
  EXPECT_EQ(json::Find(mpi_container("Worker"), {"args"}), nullptr) << "it waits";
  EXPECT_EQ(json::Find(mpi_container("Launcher"), {"resources", "limits", "nvidia.com/gpu"}),
            nullptr);
  ASSERT_EQ(Run({"runai", "submit-mpi", "own", "-p", "project-a", "-i", "img"}), 0) << err_;
  const json::Value own = roles("mpijobs", "own", "mpiReplicaSpecs");
  const json::Value& runs = json::GetArray(own, {"Launcher", "template", "spec", "containers"})[0];
  EXPECT_EQ(json::Find(runs, {"command"}), nullptr) << "the image's own";
  EXPECT_EQ(json::Find(runs, {"args"}), nullptr);
  EXPECT_EQ(Run({"runai", "pytorch", "submit", "q", "-p", "project-a", "-i", "img",
                 "--slots-per-worker", "2"}),
            2);
  ASSERT_EQ(Run({"runai", "training", "list", "-p", "project-a", "--json"}), 0) << err_;
  EXPECT_EQ(json::GetArray(json::Parse(out_).value(), {"items"}).size(), 6u);
  ASSERT_EQ(Run({"runai", "list", "-p", "project-a", "--state", "running"}), 0) << err_;
  EXPECT_EQ(out_.find("xgb"), std::string::npos) << out_;
  ASSERT_EQ(Run({"runai", "project", "list", "--yaml"}), 0) << err_;
  EXPECT_NE(out_.find("kind: Project"), std::string::npos) << out_;
  ASSERT_EQ(Run({"runai", "node", "list", "--json"}), 0) << err_;
  EXPECT_NE(out_.find("node-1"), std::string::npos) << out_;
}

TEST_F(RunaiTest, SubmitMakesATrainingJob) {
  Cluster();
  ASSERT_EQ(Submit({"--gpu", "8", "--command", "python -c 'print(1)'", "-e", "A=b"}), 0) << err_;
  EXPECT_EQ(out_,
            "The job 'large-training-job' has been submitted successfully\n"
            "You can run `runai describe job large-training-job -p project-a` to check the job "
            "status\n");
  json::Value job = Job();
  EXPECT_EQ(json::GetString(job, {"spec", "priorityClassName"}), "train");
  EXPECT_EQ(json::GetString(job, {"spec", "project"}), "project-a");
  const json::Value& container =
      json::GetArray(job, {"spec", "roles", "worker", "template", "spec", "containers"})[0];
  EXPECT_EQ(json::Print(*json::Find(container, {"command"})),
            R"(["sh","-c","python -c 'print(1)'"])");
  EXPECT_EQ(json::GetString(container, {"resources", "limits", "nvidia.com/gpu"}), "8");
  EXPECT_EQ(Submit({"--gpu", "8"}), 1);
  EXPECT_NE(err_.find("the workload \"large-training-job\" already exists in project "
                      "\"project-a\""),
            std::string::npos)
      << err_;
}

TEST_F(RunaiTest, ElasticSplitsIntoMembersWithOneGpuEach) {
  Cluster();
  ASSERT_EQ(Submit({"-g", "8", "--elastic", "--min-workers", "2"}), 0) << err_;
  const json::Value job = Job();
  const json::Value* role = json::Find(job, {"spec", "roles", "worker"});
  EXPECT_EQ(json::GetInt(*role, {"replicas"}), 8);
  EXPECT_EQ(json::GetInt(*role, {"elastic", "minReplicas"}), 2);
  EXPECT_EQ(json::GetString(json::GetArray(*role, {"template", "spec", "containers"})[0],
                            {"resources", "limits", "nvidia.com/gpu"}),
            "1");
}

TEST_F(RunaiTest, ClassesFractionsPortsAndEntryPoints) {
  Cluster();
  ASSERT_EQ(Run({"runai", "submit", "nb", "-p", "project-b", "-i", "jupyter/x", "-g", "0.5",
                 "--interactive", "--port", "80:8888", "--", "--token", "t"}),
            0)
      << err_;
  json::Value job = Job("nb", "project-b");
  EXPECT_EQ(json::GetString(job, {"spec", "priorityClassName"}), "interactive");
  const json::Value* pod = json::Find(job, {"spec", "roles", "workspace", "template"});
  ASSERT_NE(pod, nullptr);
  EXPECT_EQ(api::Annotation(*pod, "swell.dev/gpu-fraction"), "0.5");
  const json::Value& container = json::GetArray(*pod, {"spec", "containers"})[0];
  EXPECT_EQ(json::Print(*json::Find(container, {"args"})), R"(["--token","t"])");
  EXPECT_EQ(json::Find(container, {"command"}), nullptr);
  EXPECT_EQ(json::GetInt(json::GetArray(container, {"ports"})[0], {"containerPort"}), 8888);
  auto service =
      json::Parse(
          server_.Send(server_.Request("GET", "/api/v1/namespaces/project-b/services/nb")).text)
          .value();
  EXPECT_EQ(json::GetInt(json::GetArray(service, {"spec", "ports"})[0], {"port"}), 80);
  EXPECT_EQ(json::GetInt(json::GetArray(service, {"spec", "ports"})[0], {"targetPort"}), 8888);
  ASSERT_EQ(Run({"runai", "submit", "two", "-p", "project-b", "-i", "i", "--preemptible",
                 "--command", "--", "python", "a.py"}),
            0)
      << err_;
  job = Job("two", "project-b");
  EXPECT_EQ(json::GetString(job, {"spec", "preemption", "preemptibility"}), "Preemptible");
  EXPECT_EQ(json::Print(*json::Find(json::GetArray(job, {"spec", "roles", "worker", "template",
                                                         "spec", "containers"})[0],
                                    {"command"})),
            R"(["python","a.py"])");
}

TEST_F(RunaiTest, SubmitMistakes) {
  Cluster();
  EXPECT_EQ(Run({"runai", "submit", "x", "-i", "img"}), 2);
  EXPECT_NE(err_.find("Available: project-a, project-b"), std::string::npos) << err_;
  EXPECT_EQ(Run({"runai", "submit", "x", "-i", "img", "-p", "projekt-a"}), 1);
  EXPECT_NE(err_.find("did you mean project-a?"), std::string::npos) << err_;
  EXPECT_EQ(Submit({"-g", "1.5"}), 2);
  EXPECT_EQ(Submit({"-g", "0.5", "--gpu-memory", "4Gi"}), 2);
  EXPECT_EQ(Submit({"--interactive", "--inference"}), 2);
  EXPECT_EQ(Submit({"--port", "99999"}), 2);
  EXPECT_EQ(Submit({"--priority", "tran"}), 1);
  EXPECT_NE(err_.find("did you mean train?"), std::string::npos) << err_;
}

TEST_F(RunaiTest, WhatKeepsAPlacedPodFromRunningIsTheWorkloadsStatus) {
  Cluster();
  ASSERT_EQ(Submit({"--gpu", "8", "--command", "python a.py"}), 0) << err_;
  JobPod("Running", 8);
  Runs();
  Status("/api/v1/namespaces/project-a/pods/large-training-job-worker-0",
         R"({"status":{"phase":"Running","containerStatuses":[{"name":"worker","restartCount":3,)"
         R"("state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}})");
  ASSERT_EQ(Run({"runai", "list", "--all-projects"}), 0) << err_;
  EXPECT_NE(out_.find("large-training-job  CrashLoopBackOff  "), std::string::npos) << out_;
}

TEST_F(RunaiTest, MemoryOfAGpuIsAskedForAsAPartOfTheSmallest) {
  Cluster();
  for (const char* node : {"big, labels: {nvidia.com/gpu.memory: \"81920\"}",
                           "small, labels: {nvidia.com/gpu.memory: \"20480\"}"}) {
    Create(StrCat("{apiVersion: v1, kind: Node, metadata: {name: ", node, "}}"));
  }
  ASSERT_EQ(Submit({"--gpu-memory", "5G", "--command", "python a.py"}), 0) << err_;
  ASSERT_EQ(Run({"runai", "list", "--all-projects"}), 0) << err_;
  EXPECT_NE(out_.find(" 0 (0.2"), std::string::npos) << out_;
}

TEST_F(RunaiTest, MoreMemoryThanAnyGpuHasIsAWarning) {
  Cluster();
  Create(
      "{apiVersion: v1, kind: Node, metadata: {name: big, labels: {nvidia.com/gpu.memory: "
      "'81920'}}}");
  Status("/api/v1/nodes/big",
         R"({"status":{"allocatable":{"nvidia.com/gpu":"8","cpu":"8","memory":"64Gi"}}})");
  ASSERT_EQ(Submit({"--gpu-memory", "200Gi"}), 0) << err_;
  EXPECT_EQ(err_,
            "runai: warning: no GPU has 200Gi of memory; the largest has 80Gi of memory. The job "
            "waits until such a node is added\n");
  ASSERT_EQ(Run({"runai", "submit", "fits", "-p", "project-a", "-i", "i", "--gpu-memory", "80Gi"}),
            0);
  EXPECT_EQ(err_, "");
}

TEST_F(RunaiTest, AWorkspaceWithoutACommandWaitsAtATerminal) {
  Cluster();
  auto container = [this](std::vector<std::string> more) {
    std::vector<std::string> words{"runai",  "submit",           "desk", "-p",  "project-b", "-i",
                                   "python", "--dry-run=server", "-o",   "json"};
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_EQ(Run(words), 0) << err_;
    const json::Value job = json::Parse(out_).value();
    for (const auto& role : json::GetObject(job, {"spec", "roles"})) {
      return json::GetArray(role.value(), {"template", "spec", "containers"})[0];
    }
    return json::Value();
  };
  const json::Value desk = container({"--interactive"});
  EXPECT_TRUE(json::GetBool(desk, {"stdin"}));
  EXPECT_TRUE(json::GetBool(desk, {"tty"}));
  for (const auto& words :
       std::vector<std::vector<std::string>>{{"--interactive", "--command", "sleep 5"},
                                             {"--interactive", "--", "x"},
                                             {"--jupyter"},
                                             {}}) {
    EXPECT_FALSE(json::GetBool(container(words), {"tty"})) << Join(words, " ");
  }
}

TEST_F(RunaiTest, AProjectThatIsBeingDeletedTakesNoWork) {
  Cluster();
  Create("{apiVersion: swell.dev/v1, kind: Project, metadata: {name: going, finalizers: [a.b/c]}}");
  Create("{apiVersion: v1, kind: Namespace, metadata: {name: going}}");
  server_.Send(server_.Request("DELETE", "/apis/swell.dev/v1/projects/going"));
  const std::string refused =
      "project \"going\" is being deleted and takes no new work; swell project list shows the "
      "projects";
  EXPECT_EQ(Run({"runai", "submit", "t", "-p", "going", "-i", "i"}), 1);
  EXPECT_NE(err_.find(refused), std::string::npos) << err_;
  EXPECT_EQ(
      Run({"runai", "submit-dist", "pytorch", "t", "-p", "going", "-i", "i", "--workers", "1"}), 1);
  EXPECT_NE(err_.find(refused), std::string::npos) << err_;
  EXPECT_EQ(Run({"swell", "submit", "t", "-n", "going", "--image", "i", "--", "x"}), 1);
  EXPECT_NE(err_.find(refused), std::string::npos) << err_;
  EXPECT_EQ(Run({"swell", "submit", "t", "--project", "going", "--image", "i", "--", "x"}), 1);
  EXPECT_NE(err_.find("--project: " + refused), std::string::npos) << err_;
  EXPECT_EQ(Run({"arena", "submit", "pytorch", "--name=t", "-n", "going", "--image=i", "x"}), 1);
  EXPECT_NE(err_.find(refused), std::string::npos) << err_;
  // What a project that is gone left is for looking at.
  Create(
      "{apiVersion: v1, kind: Namespace, metadata: {name: kept, labels: {swell.dev/project: "
      "kept}}}");
  EXPECT_EQ(Run({"runai", "submit", "t", "-p", "kept", "-i", "i"}), 1);
  EXPECT_NE(err_.find("project \"kept\" was deleted and takes no new work"), std::string::npos)
      << err_;
}

TEST_F(RunaiTest, ListAndDescribeHaveTheDocumentsShape) {
  env_.getenv = [](const std::string& name) { return std::string(name == "USER" ? "ann" : ""); };
  Cluster();
  ASSERT_EQ(Submit({"--gpu", "8", "--command", "python a.py"}), 0) << err_;
  JobPod("Running", 8);
  Runs();
  Usage("project-a", 8, 8, 8);
  server_.executor.Advance(std::chrono::minutes(3));
  ASSERT_EQ(Run({"runai", "list", "--all-projects"}), 0) << err_;
  EXPECT_EQ(out_,
            "Showing jobs for all projects\n"
            "NAME                STATUS   AGE  NODE    IMAGE                   TYPE   PROJECT    "
            "USER  GPUs Allocated (Requested)  PODs Running (Pending)  SERVICE URL(S)\n"
            "large-training-job  Running  3m   node-1  pytorch/pytorch:latest  Train  project-a  "
            "ann   8 (8)                       1 (0)                   http://10.1.0.5:8888\n");
  ASSERT_EQ(Run({"runai", "describe", "large-training-job", "--project", "project-a"}), 0) << err_;
  EXPECT_EQ(out_.substr(0, out_.find("\nEvents")),
            "NAME: large-training-job\n"
            "NAMESPACE: project-a\n"
            "PROJECT: project-a, 8/4 GPUs (over quota)\n"
            "TYPE: Train\n"
            "STATUS: Running\n"
            "Priority: train (50), preemptible\n"
            "TRAINING DURATION: 3m\n"
            "IMAGE: pytorch/pytorch:latest\n"
            "GPUS: 8\n"
            "TOTAL REQUESTED GPUS: 8\n"
            "ALLOCATED GPUS: 8\n"
            "RUNNING PODS: 1\n"
            "PENDING PODS: 0\n"
            "PARALLELISM: 1\n"
            "COMPLETIONS: 1\n"
            "SUCCEEDED PODS: 0\n"
            "FAILED PODS: 0\n"
            "IS DISTRIBUTED WORKLOAD: false\n"
            "CREATED BY CLI: true\n"
            "USER: ann\n"
            "SERVICE URL(S): http://10.1.0.5:8888\n"
            "COMMAND LINE: runai submit large-training-job --project project-a --image "
            "pytorch/pytorch:latest --gpu 8 --command 'python a.py'\n"
            "\n"
            "Pods:\n"
            "POD                           STATUS    TYPE    AGE   NODE\n"
            "large-training-job-worker-0   RUNNING   TRAIN   3m    node-1/10.0.0.1\n");
  // Without a project the workload is looked for in all of them.
  ASSERT_EQ(Run({"runai", "describe", "job", "large-training-job"}), 0) << err_;
  EXPECT_NE(out_.find("Priority: train (50), preemptible\n"), std::string::npos);
  EXPECT_EQ(Run({"runai", "describe", "nope"}), 1);
  EXPECT_EQ(
      err_,
      "runai: workload \"nope\" not found in any project; runai list -A shows the workloads\n");
}

TEST_F(RunaiTest, TheUrlOfANodePortIsThatOfItsService) {
  Cluster();
  ASSERT_EQ(Submit({"--port", "30888:8888", "--service-type", "nodeport"}), 0) << err_;
  EXPECT_NE(out_.find("It will answer at http://10.0.0.1:30888\n"), std::string::npos) << out_;
  // Nothing listens yet.
  ASSERT_EQ(Run({"runai", "list", "-p", "project-a"}), 0) << err_;
  EXPECT_EQ(out_.find("http://"), std::string::npos) << out_;
  JobPod("Running", 1);
  Runs();
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"runai", "list", "-p", "project-a"},
        std::vector<std::string>{"runai", "list", "-A"},
        std::vector<std::string>{"runai", "describe", "large-training-job", "-p", "project-a"}}) {
    ASSERT_EQ(Run(words), 0) << err_;
    EXPECT_NE(out_.find(" http://10.0.0.1:30888\n"), std::string::npos) << out_;
    EXPECT_EQ(out_.find("10.1.0.5"), std::string::npos) << out_;
  }
}

TEST_F(RunaiTest, WhatAFlagCannotBeIsRefusedByItsName) {
  Cluster();
  auto refused = [this](const std::vector<std::string>& words, std::string_view why) {
    EXPECT_EQ(Run(words), 2) << out_;
    EXPECT_NE(err_.find(why), std::string::npos) << err_;
  };
  auto submit = [&](const std::string& flag, const std::string& value) {
    refused({"runai", "submit", "j", "-p", "project-a", "-i", "img", flag, value},
            StrCat(flag, " ",
                   value.find_first_not_of("-0123456789") == std::string::npos
                       ? value
                       : StrCat("\"", value, "\"")));
  };
  submit("--workers", "0");
  submit("--backoff-limit", "-3");
  submit("--image-pull-policy", "Sometimes");
  submit("--label", "a b=c");
  submit("--selector", "a=b c");
  submit("--max-run-time", "1x");
  refused({"swell", "nodepool", "create", "p", "--selector", "a b=c"}, "--selector \"a b=c\"");
  refused({"swell", "project", "create", "p", "--min-runtime", "-5m"}, "--min-runtime \"-5m\"");
  refused({"swell", "project", "create", "p", "--work-namespace", "project-a"},
          "--work-namespace \"project-a\": it is project project-a's");
}

TEST_F(RunaiTest, SuspendResumeAndDelete) {
  Cluster();
  ASSERT_EQ(Submit({"--gpu", "8"}), 0) << err_;
  ASSERT_EQ(Run({"runai", "suspend", "large-training-job", "-p", "project-a"}), 0) << err_;
  EXPECT_TRUE(json::GetBool(Job(), {"spec", "suspend"}));
  ASSERT_EQ(Run({"runai", "resume", "large-training-job", "-p", "project-a"}), 0) << err_;
  EXPECT_FALSE(json::GetBool(Job(), {"spec", "suspend"}));
  ASSERT_EQ(Run({"runai", "suspend", "job", "large-training-job", "-p", "project-a"}), 0) << err_;
  EXPECT_TRUE(json::GetBool(Job(), {"spec", "suspend"}));
  ASSERT_EQ(Run({"runai", "training", "resume", "workload", "large-training-job"}), 0) << err_;
  EXPECT_FALSE(json::GetBool(Job(), {"spec", "suspend"}));
  ASSERT_EQ(Run({"runai", "delete", "large-training-job", "--project", "project-a"}), 0) << err_;
  EXPECT_EQ(out_, "The job 'large-training-job' has been deleted successfully\n");
  EXPECT_EQ(Run({"runai", "delete", "large-training-job", "--project", "project-a"}), 1);
}

TEST_F(RunaiTest, WhySaysWhatWouldStartIt) {
  Cluster();
  ASSERT_EQ(Submit({"--gpu", "8"}), 0) << err_;
  EXPECT_EQ(Run({"swell", "why", "large-training-job", "-n", "project-a"}), 0) << err_;
  EXPECT_TRUE(out_.starts_with("large-training-job has no pods yet.\n")) << out_;
  JobPod("Pending", 8);
  int cycles = 0;
  // A scheduler that has room for the group only when there is a second node.
  env_.what_if.simulate = [&cycles](const StateView& state, WallTime) {
    ++cycles;
    int nodes = 0;
    for (const json::Value* object : state) nodes += json::GetString(*object, {"kind"}) == "Node";
    json::Value cycle = json::Object{{"decisions", json::Array{}}, {"pods", json::Array{}}};
    json::Object pod{{"name", "project-a/large-training-job-worker-0"},
                     {"podGroup", "project-a/large-training-job"}};
    if (nodes > 1) {
      json::Set(cycle, {"decisions"},
                json::Array{json::Object{{"type", "bind"},
                                         {"pod", "project-a/large-training-job-worker-0"},
                                         {"node", "node-2"}}});
    } else {
      pod["status"] = "Pending";
      pod["reason"] = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.";
      json::Set(cycle, {"pods"}, json::Array{std::move(pod)});
    }
    return json::Value(json::Object{{"cycles", json::Array{std::move(cycle)}}});
  };
  ASSERT_EQ(Run({"swell", "why", "large-training-job", "-n", "project-a"}), 0) << err_;
  EXPECT_GT(cycles, 1);
  EXPECT_NE(out_.find("Why:      0/1 nodes are available: 1 Insufficient nvidia.com/gpu.\n"),
            std::string::npos)
      << out_;
  EXPECT_NE(out_.find("It would start, for example, with:\n  one more node like node-1\n"),
            std::string::npos)
      << out_;
  ASSERT_EQ(Run({"swell", "why", "large-training-job", "-n", "project-a", "-o",
                 "jsonpath={.wouldStartWith[0]}"}),
            0);
  EXPECT_EQ(out_, "one more node like node-1");
}

TEST_F(RunaiTest, WhatCannotBeMeantTogetherIsRefused) {
  Cluster();
  EXPECT_EQ(Submit({"-g", "1", "--gpu-memory", "4Gi"}), 2);
  EXPECT_NE(err_.find("--gpu 1 and --gpu-memory 4Gi exclude each other"), std::string::npos)
      << err_;
  EXPECT_EQ(Submit({"--build", "--preemptible"}), 2);
  EXPECT_NE(err_.find("--build and --preemptible exclude each other"), std::string::npos) << err_;
  EXPECT_EQ(Submit({"--preemptible", "--preemptibility", "non-preemptible"}), 2);
  EXPECT_EQ(Submit({"--cpu", "4", "--cpu-limit", "2"}), 2);
  EXPECT_NE(err_.find("--cpu 4 is above --cpu-limit 2"), std::string::npos) << err_;
  EXPECT_EQ(Submit({"--memory", "4Gi", "--memory-limit", "4000Mi"}), 2);
  EXPECT_EQ(Submit({"python", "a.py"}), 2);
  EXPECT_NE(err_.find("unexpected \"python\"; the workload has a name already"), std::string::npos)
      << err_;
  EXPECT_EQ(Run({"runai", "list", "-p", "project-a", "--state", "runing"}), 2);
  EXPECT_NE(
      err_.find("--state \"runing\": expected pending, running, succeeded, failed or suspended"),
      std::string::npos)
      << err_;
  EXPECT_EQ(Run({"runai", "list", "-p", "project-a", "--state", "CrashLoopBackOff"}), 0) << err_;
}

TEST_F(RunaiTest, EachFrameworkHasItsOwnFlags) {
  ASSERT_EQ(Run({"runai", "submit-dist", "jax", "--help"}), 0) << err_;
  EXPECT_EQ(out_.find("aster"), std::string::npos) << out_;
  EXPECT_EQ(out_.find("--min-workers"), std::string::npos) << out_;
  ASSERT_EQ(Run({"runai", "submit-dist", "mpi", "--help"}), 0) << err_;
  EXPECT_NE(out_.find("--slots-per-worker"), std::string::npos) << out_;
  EXPECT_NE(out_.find("in addition to the launcher"), std::string::npos) << out_;
  EXPECT_EQ(out_.find("--no-master "), std::string::npos) << out_;
  EXPECT_EQ(Run({"runai", "submit-dist", "xgboost", "x", "-i", "i", "--min-workers", "2"}), 2);
  EXPECT_NE(err_.find("--min-workers is not supported: jobs of xgboost cannot change size"),
            std::string::npos)
      << err_;
}

TEST_F(RunaiTest, WorkIsFoundByItsProject) {
  Cluster();
  ASSERT_EQ(Run({"swell", "submit", "far", "--image", "i", "--project", "project-a", "--", "true"}),
            0)
      << err_;
  ASSERT_EQ(Run({"runai", "list", "-p", "project-a"}), 0) << err_;
  EXPECT_NE(out_.find("far "), std::string::npos) << out_;
  ASSERT_EQ(Run({"runai", "list", "-p", "project-b"}), 0) << err_;
  EXPECT_EQ(out_.find("far "), std::string::npos) << out_;
  EXPECT_EQ(Run({"runai", "describe", "far", "-p", "project-a"}), 0) << err_;
  EXPECT_EQ(Run({"runai", "describe", "far", "-p", "project-b"}), 1);
  EXPECT_EQ(Run({"swell", "project", "delete", "project-a"}), 1);
  EXPECT_NE(err_.find("still has 1 job: default/far"), std::string::npos) << err_;
}

TEST_F(RunaiTest, WorkOfADeletedProjectCanBeReached) {
  Cluster();
  ASSERT_EQ(Submit(), 0) << err_;
  EXPECT_EQ(Run({"runai", "list", "-p", "gone"}), 1);
  EXPECT_NE(err_.find("project \"gone\" not found"), std::string::npos) << err_;
  Create(
      "{apiVersion: v1, kind: Namespace, metadata: {name: g, labels: {swell.dev/project: gone}}}");
  Create(
      "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: left, namespace: g}, spec: "
      "{pytorchReplicaSpecs: {Master: {replicas: 1, template: {spec: {containers: [{name: pytorch, "
      "image: i}]}}}}}}");
  ASSERT_EQ(Run({"runai", "list", "-p", "gone"}), 0) << err_;
  EXPECT_NE(out_.find("left "), std::string::npos) << out_;
  EXPECT_EQ(Run({"runai", "delete", "left", "-p", "gone"}), 0) << err_;
}

TEST_F(RunaiTest, SuspendedTwiceIsSaidSo) {
  Cluster();
  ASSERT_EQ(Submit(), 0) << err_;
  const std::vector<std::string> again{"runai", "suspend", "large-training-job", "-p", "project-a"};
  ASSERT_EQ(Run(again), 0) << err_;
  EXPECT_EQ(out_, "The job 'large-training-job' has been suspended successfully\n");
  ASSERT_EQ(Run(again), 0) << err_;
  EXPECT_EQ(out_, "The job 'large-training-job' is already suspended\n");
  ASSERT_EQ(Run({"swell", "suspend", "large-training-job", "-n", "project-a"}), 0) << err_;
  EXPECT_EQ(out_, "trainingjob.swell.dev/large-training-job is already suspended\n");
  ASSERT_EQ(Run({"swell", "resume", "large-training-job", "-n", "project-a"}), 0) << err_;
  ASSERT_EQ(Run({"swell", "resume", "large-training-job", "-n", "project-a"}), 0) << err_;
  EXPECT_EQ(out_, "trainingjob.swell.dev/large-training-job is not suspended\n");
}

}  // namespace
}  // namespace swell::cli
