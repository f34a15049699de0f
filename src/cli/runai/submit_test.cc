// What `runai submit` makes of Run:ai's own words.
#include <unistd.h>

#include <map>

#include "cli/runai/runai_test_util.h"
#include "json/yaml.h"

namespace swell::cli {
namespace {

class RunaiSubmitTest : public RunaiTest {
 protected:
  // The object that the words print, of a workload of project-a.
  json::Value Made(std::vector<std::string> words, const std::vector<std::string>& more = {}) {
    words.insert(words.begin(), "runai");
    words.insert(words.end(), {"-p", "project-a", "-i", "img", "--dry-run"});
    words.insert(words.end(), more.begin(), more.end());
    if (Run(words) != 0) {
      ADD_FAILURE() << err_;
      return json::Object{};
    }
    auto documents = json::ParseYaml(out_);
    EXPECT_TRUE(documents.ok()) << out_;
    return documents.ok() ? documents->front() : json::Value(json::Object{});
  }
  // Variables of the pod's container: values, or the paths of fields.
  static std::map<std::string, std::string> Env(const json::Value& pod) {
    std::map<std::string, std::string> env;
    for (const json::Value& one : json::GetArray(Container(pod), {"env"})) {
      const std::string name(json::GetString(one, {"name"}));
      EXPECT_FALSE(env.contains(name)) << name;
      env[name] = json::GetString(one, {"valueFrom", "fieldRef", "fieldPath"},
                                  json::GetString(one, {"value"}));
    }
    return env;
  }
  static const json::Value& Container(const json::Value& pod) {
    return json::GetArray(pod, {"containers"})[0];
  }
  static json::Value PodOf(const json::Value& job, const std::string& role = "worker") {
    return *json::Find(job, {"spec", "roles", role, "template", "spec"});
  }
};

TEST_F(RunaiSubmitTest, PodsGetRunaisVariables) {
  Cluster();
  auto env = Env(PodOf(Made({"submit", "train1"}, {"-e", "RUNAI_PROJECT=mine"})));
  EXPECT_EQ(env["JOB_NAME"], "train1");
  EXPECT_EQ(env["RUNAI_JOB_NAME"], "train1");
  EXPECT_EQ(env["RUNAI_PROJECT"], "mine") << "the user's own value counts";
  EXPECT_EQ(env["POD_UUID"], "metadata.uid");
  EXPECT_EQ(env["POD_INDEX"], "metadata.labels['swell.dev/job-index']");
  EXPECT_EQ(env["JOB_UUID"].size(), 36u);
  EXPECT_EQ(env["RUNAI_JOB_UUID"], env["JOB_UUID"]);
  EXPECT_EQ(env["NODE_NAME"], "spec.nodeName");
  EXPECT_EQ(env["RUNAI_NUM_OF_GPUS"], "0");
  EXPECT_EQ(env.count("RUNAI_MPI_NUM_WORKERS"), 0u);
  env = Env(PodOf(Made({"training", "submit"})));
  EXPECT_EQ(env["JOB_NAME"], "metadata.labels['swell.dev/job-name']") << "it has no name yet";
  EXPECT_EQ(env["RUNAI_PROJECT"], "project-a");
  const json::Value runs = Made({"submit", "--completions", "2"});
  env = Env(*json::Find(runs, {"spec", "template", "spec"}));
  EXPECT_EQ(env["RUNAI_JOB_NAME"], "metadata.labels['batch.kubernetes.io/job-name']");
  EXPECT_EQ(env["POD_INDEX"], "metadata.annotations['batch.kubernetes.io/job-completion-index']");
  EXPECT_EQ(env["JOB_UUID"], "metadata.labels['batch.kubernetes.io/controller-uid']");
  EXPECT_EQ(json::GetString(runs, {"spec", "completionMode"}), "Indexed");
  const json::Value torch = Made({"submit-dist", "pytorch", "py"});
  for (const char* role : {"Master", "Worker"}) {
    env = Env(*json::Find(torch, {"spec", "pytorchReplicaSpecs", role, "template", "spec"}));
    EXPECT_EQ(env["JOB_NAME"], "py");
    EXPECT_EQ(env["POD_INDEX"], "metadata.labels['training.kubeflow.org/replica-index']");
  }
  EXPECT_EQ(Submit(), 0) << "the server takes them: " << err_;
}

TEST_F(RunaiSubmitTest, AHomeDirectoryEndsWithThePod) {
  Cluster();
  const json::Value pod = PodOf(Made({"submit", "t"}, {"--run-as-user", "7", "--create-home-dir"}));
  EXPECT_EQ(Env(pod)["HOME"], "/home/user");
  const json::Value& mount = json::GetArray(Container(pod), {"volumeMounts"})[0];
  EXPECT_EQ(json::GetString(mount, {"mountPath"}), "/home/user");
  EXPECT_NE(json::Find(json::GetArray(pod, {"volumes"})[0], {"emptyDir"}), nullptr);
  EXPECT_EQ(Submit({"--create-home-dir", "-e", "HOME=/data"}), 0) << err_;
}

TEST_F(RunaiSubmitTest, TheMasterHasAmountsAndARestartPolicyOfItsOwn) {
  Cluster();
  const auto master = [](const json::Value& job) {
    return *json::Find(job, {"spec", "pytorchReplicaSpecs", "Master"});
  };
  const std::vector<std::string> words{"training", "pytorch", "submit", "x"};
  const std::vector<std::string> flags{"--cpu-core-request", "1", "--cpu-memory-request", "1Gi"};
  EXPECT_EQ(json::GetString(master(Made(words, flags)), {"restartPolicy"}), "OnFailure");
  std::vector<std::string> more{
      "--master-cpu-core-request", "2",          "--master-cpu-core-limit", "3",
      "--master-cpu-memory-limit", "4Gi",        "--master-restart-policy", "Never",
      "--preemptibility",          "preemptible"};
  more.insert(more.end(), flags.begin(), flags.end());
  const json::Value role = master(Made(words, more));
  EXPECT_EQ(json::GetString(role, {"restartPolicy"}), "Never");
  const json::Value& amounts =
      *json::Find(Container(*json::Find(role, {"template", "spec"})), {"resources"});
  EXPECT_EQ(json::Print(amounts),
            R"({"limits":{"cpu":"3","memory":"4Gi"},"requests":{"cpu":"2","memory":"1Gi"}})");
  EXPECT_EQ(Run({"runai", "training", "pytorch", "submit", "x", "-p", "project-a", "-i", "img",
                 "--cpu-core-limit", "1", "--master-cpu-core-request", "2"}),
            2);
  EXPECT_NE(err_.find("--master-cpu-core-request"), std::string::npos) << err_;
  EXPECT_EQ(Run({"runai", "training", "pytorch", "submit", "x", "-p", "project-a", "-i", "img",
                 "--preemptibility", "non-preemptible"}),
            2);
  EXPECT_NE(err_.find("--priority build"), std::string::npos) << err_;
}

TEST_F(RunaiSubmitTest, RunaisVariablesAreKnownWithoutAShell) {
  Cluster();
  const json::Value pod = PodOf(Made({"workspace", "submit", "w"},
                                     {"--command", "--", "start.sh",
                                      "--base_url=/${RUNAI_PROJECT}/${RUNAI_JOB_NAME}", "${HOME}"}),
                                "workspace");
  EXPECT_EQ(json::Print(*json::Find(Container(pod), {"command"})),
            R"x(["start.sh","--base_url=/$(RUNAI_PROJECT)/$(RUNAI_JOB_NAME)","${HOME}"])x");
}

TEST_F(RunaiSubmitTest, PodsKnowTheirGpus) {
  Cluster();
  const auto gpus = [this](const std::vector<std::string>& flags) {
    return Env(PodOf(Made({"submit", "t"}, flags)))["RUNAI_NUM_OF_GPUS"];
  };
  EXPECT_EQ(gpus({"-g", "8"}), "8");
  EXPECT_EQ(gpus({"-g", "0.5"}), "0.5");
  EXPECT_EQ(gpus({"--gpu-memory", "4G"}), "metadata.annotations['swell.dev/gpu-share']");
  const json::Value mpi = Made({"submit-dist", "mpi", "m"}, {"--workers", "3", "-g", "2"});
  std::string uid;
  for (const auto& [role, count] : {std::pair("Launcher", "0"), std::pair("Worker", "2")}) {
    auto env = Env(*json::Find(mpi, {"spec", "mpiReplicaSpecs", role, "template", "spec"}));
    EXPECT_EQ(env["RUNAI_NUM_OF_GPUS"], count) << role;
    EXPECT_EQ(env["RUNAI_MPI_NUM_WORKERS"], "3") << role;
    EXPECT_TRUE(uid.empty() || uid == env["JOB_UUID"]) << "all pods are of one workload";
    uid = env["JOB_UUID"];
  }
  EXPECT_EQ(Submit({"--gpu-memory", "4G"}), 0) << "the server takes it: " << err_;
}

TEST_F(RunaiSubmitTest, VariablesAreTakenFromSecretsAndFields) {
  Cluster();
  const json::Value pod =
      PodOf(Made({"submit", "t"}, {"-e", "A=SECRET:login,token", "--env-secret", "B=login,key=user",
                                   "--env-secret", "RUNAI_PROJECT=login,key=p",
                                   "--env-pod-field-ref", "C=metadata.labels['team']"}));
  std::map<std::string, std::string> env;
  for (const json::Value& one : json::GetArray(Container(pod), {"env"})) {
    const json::Value* source = json::Find(one, {"valueFrom"});
    if (source == nullptr) continue;
    env[std::string(json::GetString(one, {"name"}))] = json::Print(*source);
  }
  EXPECT_EQ(env["A"], R"({"secretKeyRef":{"key":"token","name":"login"}})");
  EXPECT_EQ(env["B"], R"({"secretKeyRef":{"key":"user","name":"login"}})");
  EXPECT_EQ(env["C"], R"({"fieldRef":{"fieldPath":"metadata.labels['team']"}})");
  EXPECT_EQ(env["RUNAI_PROJECT"], R"({"secretKeyRef":{"key":"p","name":"login"}})");
  EXPECT_EQ(Env(pod).count("RUNAI_PROJECT"), 1u) << "the user's own counts";
  EXPECT_EQ(Submit({"-e", "A=SECRET:login,token"}), 0) << "the server takes it: " << err_;
  for (const auto& [flag, wrong] :
       {std::pair("--environment", "A=SECRET:login"), std::pair("--env-secret", "A=login"),
        std::pair("--env-secret", "A=login,token"), std::pair("--env-secret", "A=,key=token")}) {
    EXPECT_EQ(Submit({flag, wrong}), 2) << wrong;
    EXPECT_NE(err_.find(StrCat(flag, " \"A=")), std::string::npos) << err_;
    EXPECT_NE(err_.find("expected VARIABLE=SECRET"), std::string::npos) << err_;
  }
  for (const char* field : {"metadata.annotations['a.b/c']", "status.podIP", "spec.nodeName"}) {
    Made({"submit", "t"}, {"--env-pod-field-ref", StrCat("A=", field)});  // fails if it is refused
  }
  for (const char* field : {"spec.tolerations", "metadata.labels", "metadata.labels['a/b/c']",
                            "metadata.name['a']", "status.phase"}) {
    EXPECT_EQ(Submit({"--env-pod-field-ref", StrCat("A=", field)}), 2) << field;
    EXPECT_NE(err_.find(StrCat("--env-pod-field-ref \"A=", field,
                               "\": no variable can have this "
                               "field of its pod; expected metadata.name, ")),
              std::string::npos)
        << err_;
  }
}

TEST_F(RunaiSubmitTest, VersionOnesVolumesMayBeOfAnNfsServer) {
  Cluster();
  const json::Value pod = PodOf(Made(
      {"submit", "t"}, {"-v", "/public/data:/root/data::nfs.example.com", "-v", "/d:/ro:ro:nas",
                        "-v", "/h:/host:ro", "-v", "/w:/work:rw:", "-v", "/same"}));
  EXPECT_EQ(json::Print(*json::Find(pod, {"volumes"})),
            R"([{"hostPath":{"path":"/h"},"name":"training-data-0"},)"
            R"({"hostPath":{"path":"/w"},"name":"training-data-1"},)"
            R"({"hostPath":{"path":"/same"},"name":"training-data-2"},)"
            R"({"name":"volume-0","nfs":{"path":"/public/data","server":"nfs.example.com"}},)"
            R"({"name":"volume-1","nfs":{"path":"/d","server":"nas"}}])");
  std::vector<std::string> mounts;
  for (const json::Value& mount : json::GetArray(Container(pod), {"volumeMounts"})) {
    mounts.push_back(StrCat(json::GetString(mount, {"mountPath"}),
                            json::GetBool(mount, {"readOnly"}) ? " ro" : ""));
  }
  EXPECT_EQ(mounts,
            (std::vector<std::string>{"/host ro", "/work", "/same", "/root/data", "/ro ro"}));
  for (const char* wrong : {"/a:/b:no", "/a:/b:ro:nas:x", "a:/b::nas", "/a:b::nas"}) {
    EXPECT_EQ(Submit({"-v", wrong}), 2) << wrong;
    EXPECT_NE(err_.find("expected HOST:PATH[:ro] or DIRECTORY:PATH:[ro]:NFS_SERVER"),
              std::string::npos)
        << err_;
  }
}

TEST_F(RunaiSubmitTest, VolumesMayBeEmptyUnnamedOrFollowTheNodesMounts) {
  Cluster();
  const json::Value pod = PodOf(Made(
      {"submit", "t"}, {"--empty-dir-volume", "name=a,path=/a,medium=Memory,size-limit=1Gi",
                        "--emptydir-volume", "path=/b", "--new-pvc", "size=1Gi,path=/n",
                        "--host-path", "path=/mnt,mount=/mnt,mount-propagation=HostToContainer",
                        "--host-path", "path=/srv,mount=/srv,mount-propagation=None"}));
  EXPECT_EQ(json::Print(*json::Find(pod, {"volumes"})),
            R"([{"name":"volume-0","persistentVolumeClaim":{"claimName":"t-new-pvc-0"}},)"
            R"({"hostPath":{"path":"/mnt"},"name":"volume-1"},)"
            R"({"hostPath":{"path":"/srv"},"name":"volume-2"},)"
            R"({"emptyDir":{"medium":"Memory","sizeLimit":"1Gi"},"name":"volume-3"},)"
            R"({"emptyDir":{},"name":"volume-4"}])");
  std::map<std::string, std::string> propagation;
  for (const json::Value& mount : json::GetArray(Container(pod), {"volumeMounts"})) {
    propagation[std::string(json::GetString(mount, {"mountPath"}))] =
        json::GetString(mount, {"mountPropagation"});
  }
  EXPECT_EQ(propagation,
            (std::map<std::string, std::string>{
                {"/n", ""}, {"/mnt", "HostToContainer"}, {"/srv", ""}, {"/a", ""}, {"/b", ""}}));
  EXPECT_EQ(Submit({"--new-pvc", "size=1Gi,path=/n"}), 0) << err_;
  const std::string claim =
      "/api/v1/namespaces/project-a/persistentvolumeclaims/large-training-job-new-pvc-0";
  EXPECT_EQ(server_.Send(server_.Request("GET", claim)).status, 200);
  EXPECT_EQ(Run({"runai", "submit", "-p", "project-a", "-i", "i", "--new-pvc", "size=1Gi,path=/n"}),
            2);
  EXPECT_NE(err_.find("claimname= is missing"), std::string::npos) << err_;
  EXPECT_EQ(Submit({"--host-path", "path=/a,mount=/a,mount-propagation=Bidirectional"}), 2);
  EXPECT_NE(err_.find("--host-path mount-propagation=Bidirectional: expected None or "
                      "HostToContainer"),
            std::string::npos)
      << err_;
  for (const auto& [wrong, expected] :
       {std::pair("path=/a,size-limit=1gb", "expected size-limit=AMOUNT, like size-limit=10Gi"),
        std::pair("path=/a,medium=memory", "expected medium=Memory, or no medium")}) {
    EXPECT_EQ(Submit({"--empty-dir-volume", wrong}), 2) << wrong;
    EXPECT_NE(err_.find(StrCat("--empty-dir-volume \"", wrong, "\": ", expected)),
              std::string::npos)
        << err_;
  }
}

TEST_F(RunaiSubmitTest, AddressesOfVersionSixStandInBrackets) {
  Cluster();
  const auto answers_at = [this](const std::string& name, const std::string& node) {
    Status("/api/v1/nodes/node-1",
           StrCat(R"({"status":{"addresses":[{"type":"InternalIP","address":")", node, R"("}]}})"));
    EXPECT_EQ(Run({"runai", "submit", name, "-p", "project-a", "-i", "img", "--service-type",
                   "nodeport", "--port", "80"}),
              0)
        << err_;
    const size_t at = out_.find("http://");
    return at == std::string::npos ? out_ : out_.substr(at + 7, out_.rfind(':') - at - 7);
  };
  EXPECT_EQ(answers_at("a", "2001:db8::7"), "[2001:db8::7]");
  // Where nodes have no addresses of their own: what the API server is reached by.
  for (const auto& [url, host] : {std::pair("https://[2001:db8::1]:6443", "[2001:db8::1]"),
                                  std::pair("https://[2001:db8::1]", "[2001:db8::1]"),
                                  std::pair("https://api.example.com/k8s", "api.example.com")}) {
    url_ = url;
    EXPECT_EQ(answers_at(StrCat("w", std::string_view(url).size()), "127.0.0.1"), host);
  }
}

TEST_F(RunaiSubmitTest, WhatAPodMayDoIsSaidInRunaisWords) {
  Cluster();
  const json::Value pod = PodOf(Made(
      {"submit", "t"}, {"--run-as-uid", "1500", "--run-as-non-root",
                        "--seccomp-profile=RuntimeDefault", "--allow-privilege-escalation=false"}));
  EXPECT_EQ(json::Print(*json::Find(pod, {"securityContext"})),
            R"({"runAsNonRoot":true,"runAsUser":1500,"seccompProfile":{"type":"RuntimeDefault"}})");
  EXPECT_EQ(json::Print(*json::Find(Container(pod), {"securityContext"})),
            R"({"allowPrivilegeEscalation":false})");
  const json::Value free = PodOf(Made({"submit", "t"}, {"--allow-privilege-escalation"}));
  EXPECT_EQ(json::Find(Container(free), {"securityContext"}), nullptr);
  EXPECT_EQ(Submit({"--seccomp-profile", "Localhost"}), 2);
  EXPECT_NE(err_.find("--seccomp-profile"), std::string::npos) << err_;
}

TEST_F(RunaiSubmitTest, TheServingPortIsTheContainersPort) {
  Cluster();
  for (const char* said : {"8000,protocol=http", "container=8000,protocol=http"}) {
    const json::Value pod =
        PodOf(Made({"inference", "submit", "s"}, {StrCat("--serving-port=", said)}), "server");
    EXPECT_EQ(json::Print(*json::Find(Container(pod), {"ports"})), R"([{"containerPort":8000}])");
    EXPECT_EQ(err_,
              "runai: --serving-port protocol=http has no effect: all pods of the cluster may "
              "reach the port\n");
  }
  for (const char* wrong : {"http", "70000"}) {
    EXPECT_EQ(Run({"runai", "inference", "submit", "s", "-p", "project-a", "-i", "img",
                   "--serving-port", wrong}),
              2);
    EXPECT_NE(err_.find("expected a port from 1 to 65535"), std::string::npos) << err_;
  }
}

TEST_F(RunaiSubmitTest, VersionOnesOtherFlags) {
  Cluster();
  const json::Value job = Made(
      {"submit", "t"},
      {"--pvc-exists", "claimname=data,path=/data", "--pvc-new", "claimname=new,size=1Gi,path=/new",
       "--add-capability", "NET_ADMIN", "--exclude-node", "node-1,node-2", "-l", "team=red",
       "--mount-propagation", "--address", "0.0.0.0", "--master-gpu", "1", "--run-as-user"});
  EXPECT_EQ(err_,
            "runai: --mount-propagation has no effect: mounts of the node that appear later are "
            "not seen\n"
            "runai: --address has no effect: runai port-forward --address says where to listen\n"
            "runai: --master-gpu has no effect: runai submit-dist makes a master\n");
  EXPECT_EQ(api::Label(job, "team"), "red");
  const json::Value pod = PodOf(job);
  EXPECT_EQ(json::GetArray(pod, {"volumes"}).size(), 2u);
  EXPECT_EQ(json::Print(*json::Find(Container(pod), {"securityContext"})),
            R"({"capabilities":{"add":["NET_ADMIN"]}})");
  EXPECT_EQ(json::Print(*json::Find(pod, {"affinity", "nodeAffinity"})),
            R"({"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":)"
            R"([{"matchFields":[)"
            R"({"key":"metadata.name","operator":"NotIn","values":["node-1"]},)"
            R"({"key":"metadata.name","operator":"NotIn","values":["node-2"]}]}]}})");
  EXPECT_EQ(json::GetInt(pod, {"securityContext", "runAsUser"}), int64_t{::geteuid()});
  EXPECT_EQ(json::GetInt(pod, {"securityContext", "runAsGroup"}), int64_t{::getegid()});
  EXPECT_EQ(Submit({"--run-as-user", "eve"}), 2);
  EXPECT_NE(err_.find("--run-as-user \"eve\": expected a whole number"), std::string::npos) << err_;
  EXPECT_EQ(Submit({"--exclude-node", "node-1"}), 0) << err_;
  const json::Value torch =
      Made({"submit-dist", "pytorch", "d"}, {"-g", "2", "--master-gpu", "1", "--address", "a"});
  EXPECT_EQ(err_,
            "runai: --address has no effect: runai port-forward --address says where to listen\n");
  const json::Value& master =
      *json::Find(torch, {"spec", "pytorchReplicaSpecs", "Master", "template", "spec"});
  EXPECT_EQ(json::GetString(Container(master), {"resources", "limits", "nvidia.com/gpu"}), "1");
}

TEST_F(RunaiSubmitTest, TheMasterHasItsOwnPartOfAGpu) {
  Cluster();
  struct Asked {
    std::string fraction, gpus;
    bool operator==(const Asked&) const = default;
  };
  const auto asked = [](const json::Value& job, const char* specs, const char* role) {
    const json::Value& pod = *json::Find(job, {"spec", specs, role, "template"});
    return Asked{
        std::string(json::GetString(pod, {"metadata", "annotations", "swell.dev/gpu-fraction"})),
        std::string(json::GetString(Container(*json::Find(pod, {"spec"})),
                                    {"resources", "limits", "nvidia.com/gpu"}))};
  };
  const char* const torch = "pytorchReplicaSpecs";
  const std::vector<std::string> words{"submit-dist", "pytorch", "d"};
  json::Value job = Made(words, {"-g", "2", "--master-gpu-portion-request", "0.5"});
  EXPECT_EQ(asked(job, torch, "Master"), (Asked{"0.5", ""}));
  EXPECT_EQ(asked(job, torch, "Worker"), (Asked{"", "2"}));
  job = Made(words, {"-g", "0.5", "--master-gpu-devices-request", "1"});
  EXPECT_EQ(asked(job, torch, "Master"), (Asked{"", "1"}));
  EXPECT_EQ(asked(job, torch, "Worker"), (Asked{"0.5", ""}));
  job = Made({"submit-dist", "mpi", "m"}, {"-g", "0.5"});
  EXPECT_EQ(asked(job, "mpiReplicaSpecs", "Launcher"), (Asked{"", ""})) << "it trains nothing";
  EXPECT_EQ(asked(job, "mpiReplicaSpecs", "Worker"), (Asked{"0.5", ""}));
  for (const char* wrong : {"2", "0"}) {
    EXPECT_EQ(Run({"runai", "submit-dist", "pytorch", "d", "-p", "project-a", "-i", "img",
                   "--master-gpu-portion-request", wrong}),
              2);
    EXPECT_NE(err_.find("--master-gpu-portion-request"), std::string::npos) << err_;
  }
}

TEST_F(RunaiSubmitTest, WhatStartsAgainIsSaidByAPolicyOrANumber) {
  Cluster();
  const json::Value job =
      Made({"submit-dist", "pytorch", "d"}, {"--restart-policy", "Never", "--backoff-limit", "2"});
  for (const char* role : {"Master", "Worker"}) {
    EXPECT_EQ(json::GetString(job, {"spec", "pytorchReplicaSpecs", role, "restartPolicy"}),
              "Never");
  }
  for (const char* flag : {"--restart-policy", "--max-restarts"}) {
    EXPECT_EQ(Submit({flag, "2"}), 2);
    EXPECT_NE(err_.find("--backoff-limit N says how often it is tried again"), std::string::npos)
        << err_;
  }
}

TEST_F(RunaiSubmitTest, TheHelpNamesVersionTwosCommands) {
  ASSERT_EQ(Run({"runai", "--help"}), 0) << err_;
  std::string text;
  for (std::string_view word : Split(out_, '\n')) text += StrCat(word, " ");
  EXPECT_NE(text.find("runai training submit, runai workspace list, runai inference describe, "
                      "runai workload list."),
            std::string::npos)
      << out_;
  EXPECT_EQ(Run({"runai", "workload", "list", "--help"}), 0) << err_;
  for (const std::string word : {"training", "workspace", "inference"}) {
    ASSERT_EQ(Run({"runai", word, "submit", "--help"}), 0) << err_;
    EXPECT_NE(out_.find(StrCat("  runai ", word, " submit ")), std::string::npos) << out_;
    EXPECT_EQ(out_.find("  runai submit "), std::string::npos) << out_;
  }
}

TEST_F(RunaiSubmitTest, TheLimitOfAPartOfAGpuIsItsRequest) {
  Cluster();
  auto run = [this](std::string_view request, std::string_view limit, const char* amount) {
    return Run({"runai", "training", "submit", "t", "-p", "project-a", "-i", "img", "--dry-run",
                std::string(request), "1Gi", std::string(limit), amount});
  };
  EXPECT_EQ(run("--gpu-memory-request", "--gpu-memory-limit", "1024Mi"), 0) << err_;
  EXPECT_EQ(run("--gpu-memory-request", "--gpu-memory-limit", "2Gi"), 2);
  EXPECT_TRUE(err_.starts_with(
      "runai training submit: --gpu-memory-limit 2Gi is not supported: the limit is always the "
      "request, 1Gi\n"))
      << err_;
  const std::vector<std::string> part{"runai",     "training",  "submit", "t",
                                      "-p",        "project-a", "-i",     "img",
                                      "--dry-run", "-g",        "0.5",    "--gpu-portion-limit",
                                      "0.50"};
  EXPECT_EQ(Run(part), 0) << err_;
}

TEST_F(RunaiSubmitTest, AWrongAmountOfGpusIsBlamedOnItsFlag) {
  Cluster();
  struct Row {
    std::vector<std::string> flags;
    std::string_view error;
  };
  for (const Row& row : {
           Row{{"--gpu", "x", "--gpu-portion-limit", "0.5"}, "--gpu \"x\": "},
           Row{{"--gpu", "0.5", "--gpu-portion-limit", "x"}, "--gpu-portion-limit \"x\": "},
           Row{{"--gpu-portion-request", "x", "--gpu-portion-limit", "0.5"},
               "--gpu-portion-request \"x\": "},
           Row{{"--gpu-portion-request", "x"}, "--gpu-portion-request \"x\": "},
           Row{{"--gpu-memory", "x"}, "--gpu-memory \"x\": "},
           Row{{"--gpu-memory", "1Gi", "--gpu-memory-limit", "x"}, "--gpu-memory-limit \"x\": "},
       }) {
    std::vector<std::string> words{"runai",     "training", "submit", "t",        "-p",
                                   "project-a", "-i",       "img",    "--dry-run"};
    words.insert(words.end(), row.flags.begin(), row.flags.end());
    EXPECT_EQ(Run(words), 2);
    EXPECT_TRUE(err_.starts_with(StrCat("runai training submit: ", row.error))) << err_;
  }
}

TEST_F(RunaiSubmitTest, ServersAreNotScaledByTheirLoad) {
  Cluster();
  const auto submit = [this](const std::string& name, std::vector<std::string> more) {
    std::vector<std::string> words{"runai", "inference", "submit", name,
                                   "-p",    "project-a", "-i",     "img"};
    words.insert(words.end(), more.begin(), more.end());
    return Run(words);
  };
  EXPECT_EQ(submit("s", {"--min-replicas", "2", "--max-replicas", "4"}), 2);
  EXPECT_TRUE(
      err_.starts_with("runai inference submit: --max-replicas 4: servers are not scaled by their "
                       "load; --min-replicas N says how many run, now 2\n"))
      << err_;
  EXPECT_EQ(submit("s", {"--min-replicas", "0"}), 2);
  EXPECT_TRUE(err_.starts_with("runai inference submit: --min-replicas 0: expected 1 or more: "))
      << err_;
  EXPECT_EQ(submit("s", {"--metric", "latency"}), 2);
  EXPECT_TRUE(err_.starts_with("runai inference submit: --metric is not supported: ")) << err_;
  ASSERT_EQ(submit("s", {"--min-replicas", "3", "--max-replicas", "3"}), 0) << err_;
  EXPECT_EQ(json::GetInt(Job("s"), {"spec", "roles", "server", "replicas"}), 3);
  ASSERT_EQ(submit("t", {"--max-replicas", "1"}), 0) << err_;
}

TEST_F(RunaiSubmitTest, TheNumberOfServersCanBeChanged) {
  Cluster();
  const auto update = [this](const std::string& name, std::vector<std::string> more) {
    std::vector<std::string> words{"runai", "inference", "update", name, "-p", "project-a"};
    words.insert(words.end(), more.begin(), more.end());
    return Run(words);
  };
  ASSERT_EQ(Run({"runai", "inference", "submit", "s", "-p", "project-a", "-i", "img"}), 0) << err_;
  ASSERT_EQ(update("s", {"--min-replicas", "3", "--max-replicas", "3"}), 0) << err_;
  EXPECT_EQ(out_, "The job 's' has been updated successfully\n");
  EXPECT_EQ(json::GetInt(Job("s"), {"spec", "roles", "server", "replicas"}), 3);
  Create(
      "{apiVersion: run.ai/v2alpha1, kind: InferenceWorkload, metadata: {namespace: project-a, "
      "name: i}, spec: {image: {value: img}, minScale: {value: 1}, maxScale: {value: 2}, ports: "
      "{items: {w: {value: {container: 80}}}}}}");
  ASSERT_EQ(update("i", {"--min-replicas", "4"}), 0) << err_;
  const auto answer = server_.Send(
      server_.Request("GET", "/apis/run.ai/v2alpha1/namespaces/project-a/inferenceworkloads/i"));
  EXPECT_NE(answer.text.find(R"("minScale":{"value":4})"), std::string::npos) << answer.text;
  EXPECT_NE(answer.text.find(R"("maxScale":{"value":4})"), std::string::npos) << answer.text;
  EXPECT_EQ(update("s", {"--min-replicas", "1", "--max-replicas", "2"}), 2);
  EXPECT_EQ(update("s", {}), 2);
  EXPECT_TRUE(err_.starts_with("runai inference update: --min-replicas is not set\n")) << err_;
  EXPECT_EQ(update("s", {"-i", "other"}), 2);
  EXPECT_NE(err_.find("servers keep what they were started with"), std::string::npos) << err_;
  EXPECT_EQ(update("s", {"--scale-down-delay", "1m"}), 2);
  EXPECT_NE(err_.find("servers are not scaled by their load"), std::string::npos) << err_;
  ASSERT_EQ(Submit(), 0) << err_;
  EXPECT_EQ(update("large-training-job", {"--min-replicas", "2"}), 2);
  EXPECT_NE(err_.find("is of type Train, and only inference workloads"), std::string::npos) << err_;
}

TEST_F(RunaiSubmitTest, AttachingWaitsForThePodAndSaysWhyItDoesNotRun) {
  Cluster();
  const std::vector<std::string> attach{"--attach", "--pod-running-timeout", "3s"};
  const json::Value pod = PodOf(Made({"training", "submit", "a"}, {"--attach"}));
  EXPECT_TRUE(json::GetBool(Container(pod), {"stdin"}));
  EXPECT_TRUE(json::GetBool(Container(pod), {"tty"}));
  EXPECT_EQ(Submit(attach), 1);
  EXPECT_NE(out_.find("has been submitted successfully"), std::string::npos) << out_;
  EXPECT_NE(err_.find("--attach: the workload \"large-training-job\" does not run yet: it is "
                      "Pending; runai attach large-training-job attaches to it when it does"),
            std::string::npos)
      << err_;
  EXPECT_EQ(Run({"runai", "training", "tf", "submit", "d", "-p", "project-a", "-i", "img",
                 "--attach", "--pod-running-timeout", "3s"}),
            1);
  EXPECT_NE(err_.find("--attach: the workload \"d\" does not run yet"), std::string::npos) << err_;
}

TEST_F(RunaiSubmitTest, CodeOfARepositoryIsWhereTheSubmissionSays) {
  Cluster();
  for (const char* path : {"path", "target"}) {
    const json::Value pod = PodOf(
        Made({"submit", path},
             {"--git-sync", StrCat("name=r,repository=https://h/team/r.git,", path, "=/work/r")}));
    EXPECT_EQ(json::Print(*json::Find(Container(pod), {"volumeMounts"})),
              R"([{"mountPath":"/work/r","name":"code-sync","subPath":"r"}])");
  }
  const json::Value pod = PodOf(Made({"submit", "b"}, {"--git-sync", "source=https://h/r.git"}));
  EXPECT_EQ(json::Print(*json::Find(Container(pod), {"volumeMounts"})),
            R"([{"mountPath":"/code","name":"code-sync"}])");
  EXPECT_EQ(Submit({"--git-sync", "source=https://h/r.git,path=r"}), 2);
  EXPECT_NE(err_.find("--git-sync \"source=https://h/r.git,path=r\": path= must begin with /"),
            std::string::npos)
      << err_;
}

TEST_F(RunaiSubmitTest, CodeIsFetchedWithTheNameAndPasswordOfASecret) {
  Cluster();
  const json::Value pod =
      PodOf(Made({"submit", "s"}, {"--git-sync", "source=https://h/r.git,secret=git"}));
  std::map<std::string, std::string> keys;
  const json::Value& fetch = json::GetArray(pod, {"initContainers"})[0];
  for (const json::Value& one : json::GetArray(fetch, {"env"})) {
    const json::Value* from = json::Find(one, {"valueFrom", "secretKeyRef"});
    if (from == nullptr) continue;
    keys[std::string(json::GetString(one, {"name"}))] =
        StrCat(json::GetString(*from, {"name"}), ".", json::GetString(*from, {"key"}));
  }
  EXPECT_EQ(keys, (std::map<std::string, std::string>{{"GIT_SYNC_USERNAME", "git.username"},
                                                      {"GIT_SYNC_PASSWORD", "git.password"}}));
  for (const json::Value& one : json::GetArray(Container(pod), {"env"})) {
    EXPECT_FALSE(json::GetString(one, {"name"}).starts_with("GIT_SYNC_")) << "training has no need";
  }
  EXPECT_EQ(Submit({"--git-sync", "source=https://h/r.git,username=u,password=p"}), 2);
  EXPECT_NE(err_.find("all who read the workload would read them"), std::string::npos) << err_;
}

TEST_F(RunaiSubmitTest, WhatIsSubmittedIsPrintedInTheFormThatIsAskedFor) {
  Cluster();
  for (const std::vector<std::string>& words : {std::vector<std::string>{"runai", "submit", "a"},
                                                {"runai", "submit-dist", "pytorch", "b"}}) {
    const auto printed = [this, &words](const std::vector<std::string>& more) {
      std::vector<std::string> all = words;
      all.insert(all.end(), {"-p", "project-a", "-i", "img"});
      all.insert(all.end(), more.begin(), more.end());
      EXPECT_EQ(Run(all), 0) << err_;
      return out_;
    };
    EXPECT_TRUE(json::Parse(printed({"--dry-run", "-o", "json"})).ok()) << out_;
    EXPECT_TRUE(printed({"--dry-run", "-o", "yaml"}).starts_with("apiVersion: ")) << out_;
    EXPECT_TRUE(printed({"-o", "name"}).ends_with(StrCat("/", words.back(), "\n"))) << out_;
  }
}

}  // namespace
}  // namespace swell::cli
