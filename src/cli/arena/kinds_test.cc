// The kinds of jobs that arena submits beside PyTorch's and TensorFlow's, and how they are listed,
// resized and deleted.
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/temp_dir.h"
#include "cli/cli_test_util.h"

namespace swell::cli {
namespace {

constexpr std::string_view kConfigMaps = "/api/v1/namespaces/default/configmaps/";
constexpr std::string_view kMpiJobs = "/apis/kubeflow.org/v1/namespaces/default/mpijobs/";

class ArenaKindsTest : public CliTest {
 protected:
  json::Value Get(const std::string& path) {
    auto answer = server_.Send(server_.Request("GET", path));
    EXPECT_EQ(answer.status, 200) << answer.text;
    return json::Parse(answer.text).value();
  }
  json::Value MpiJob(std::string_view name) { return Get(StrCat(kMpiJobs, name)); }
  static const json::Value& Container(const json::Value& job, std::string_view role) {
    return json::GetArray(job,
                          {"spec", "mpiReplicaSpecs", role, "template", "spec", "containers"})[0];
  }
  static std::string Env(const json::Value& container, std::string_view name) {
    for (const json::Value& one : json::GetArray(container, {"env"})) {
      if (json::GetString(one, {"name"}) == name) {
        return std::string(json::GetString(one, {"value"}));
      }
    }
    return "none";
  }
  // "/etc/edl/discover_hosts.sh=discover_hosts.sh": where the launcher finds which file.
  static std::string Files(const json::Value& job) {
    std::vector<std::string> files;
    for (const json::Value& volume : json::GetArray(
             job, {"spec", "mpiReplicaSpecs", "Launcher", "template", "spec", "volumes"})) {
      const std::string_view map = json::GetString(volume, {"configMap", "name"});
      if (map.empty()) continue;
      std::string folder;
      for (const json::Value& mount :
           json::GetArray(Container(job, "Launcher"), {"volumeMounts"})) {
        if (json::GetString(mount, {"name"}) != json::GetString(volume, {"name"})) continue;
        folder = json::GetString(mount, {"mountPath"});
      }
      for (const json::Value& item : json::GetArray(volume, {"configMap", "items"})) {
        files.push_back(StrCat(folder, "/", json::GetString(item, {"path"}), "=", map, ".",
                               json::GetString(item, {"key"})));
      }
    }
    return Join(files, " ");
  }
  int SubmitEt(const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{"arena",           "submit",      "etjob",
                                   "--name=et",       "--workers=2", "--min-workers=1",
                                   "--max-workers=3", "--gpus=1",    "--image=i"};
    words.insert(words.end(), more.begin(), more.end());
    words.emplace_back("horovodrun -np 2 python a.py");
    return Run(words);
  }
  void EtPod(const std::string& role, int index) {
    const std::string name = role == "launcher" ? "et-launcher" : StrCat("et-", role, "-", index);
    const json::Value job = MpiJob("et");
    Create(StrCat("{apiVersion: v1, kind: Pod, metadata: {name: ", name,
                  ", labels: {training.kubeflow.org/replica-type: ", role,
                  ", training.kubeflow.org/replica-index: \"", index,
                  "\"}, ownerReferences: [{apiVersion: kubeflow.org/v1, kind: MPIJob, name: et, "
                  "controller: true, uid: ",
                  api::Uid(job),
                  "}]}, spec: {nodeName: node-1, containers: [{name: et, image: i}]}}"));
    Status(StrCat("/api/v1/namespaces/default/pods/", name),
           R"({"status":{"phase":"Running","hostIP":"10.0.0.1"}})");
  }
  void EtIs(std::string_view condition) {
    Status(StrCat(kMpiJobs, "et"),
           StrCat(R"({"status":{"startTime":"2026-01-01T00:00:00Z","conditions":[{"type":")",
                  condition,
                  R"(","status":"True","reason":"R","message":"M","lastTransitionTime":)"
                  R"("2026-01-01T00:00:00Z"}]}})"));
  }
  // As another client does.
  void SetWorkers(int workers) {
    const auto answer = server_.Send(server_.Request(
        "PATCH", StrCat(kMpiJobs, "et"),
        StrCat(R"({"spec":{"mpiReplicaSpecs":{"Worker":{"replicas":)", workers, "}}}}"),
        "application/merge-patch+json"));
    EXPECT_EQ(answer.status, 200);
  }
  int64_t Workers() {
    return json::GetInt(MpiJob("et"), {"spec", "mpiReplicaSpecs", "Worker", "replicas"});
  }
};

TEST_F(ArenaKindsTest, AnElasticHorovodJobIsAnMpiJobWithBounds) {
  ASSERT_EQ(SubmitEt({"--worker-restart-policy=OnFailure", "--launcher-selector=kind=cpu",
                      "--selector=kind=gpu", "--worker-annotation=a=b", "--ssh-secret=s"}),
            0)
      << err_;
  EXPECT_EQ(out_,
            "configmap/et-etjob created\nconfigmap/et-etjob labeled\n"
            "mpijob.kubeflow.org/et created\n");
  EXPECT_NE(err_.find("`arena get et --type etjob`"), std::string::npos) << err_;
  EXPECT_NE(err_.find("--ssh-secret has no effect: each job has keys of its own"),
            std::string::npos)
      << err_;
  const json::Value job = MpiJob("et");
  EXPECT_EQ(json::Print(*json::Find(job, {"spec", "elasticPolicy"})),
            R"({"minReplicas":1,"maxReplicas":3})");
  EXPECT_EQ(api::Label(job, "app"), "etjob");
  EXPECT_EQ(Files(job),
            "/etc/edl/discover_hosts.sh=et-config.discover_hosts.sh "
            "/etc/edl/hostfile=et-config.horovod-hosts");
  const json::Value& launcher = Container(job, "Launcher");
  EXPECT_EQ(json::Print(*json::Find(launcher, {"command"})),
            R"(["sh","-c","export PATH=/etc/mpi/bin:$PATH\nhorovodrun -np 2 python a.py"])");
  EXPECT_EQ(json::Find(launcher, {"resources", "limits", "nvidia.com/gpu"}), nullptr);
  EXPECT_EQ(StrCat(Env(launcher, "workers"), Env(launcher, "gpus"), Env(launcher, "minWorkers"),
                   Env(launcher, "maxWorkers")),
            "2113");
  auto of = [&](std::string_view role, json::Path path) {
    const json::Value* spec = json::Find(job, {"spec", "mpiReplicaSpecs", role});
    return std::string(json::GetString(*spec, path));
  };
  EXPECT_EQ(of("Worker", {"restartPolicy"}), "OnFailure");
  EXPECT_EQ(of("Launcher", {"restartPolicy"}), "Never");
  EXPECT_EQ(of("Worker", {"template", "spec", "nodeSelector", "kind"}), "gpu");
  EXPECT_EQ(of("Launcher", {"template", "spec", "nodeSelector", "kind"}), "cpu");
  EXPECT_EQ(of("Worker", {"template", "metadata", "annotations", "a"}), "b");
  EXPECT_EQ(of("Launcher", {"template", "metadata", "annotations", "a"}), "");
}

TEST_F(ArenaKindsTest, BoundsThatTheWorkersDoNotKeepAreRefused) {
  EXPECT_EQ(SubmitEt({"--workers=4"}), 2);
  EXPECT_NE(err_.find("--workers 4: more than --max-workers 3"), std::string::npos) << err_;
  EXPECT_EQ(SubmitEt({"--min-workers=3"}), 2);
  EXPECT_NE(err_.find("--workers 2: fewer than --min-workers 3"), std::string::npos) << err_;
  EXPECT_EQ(SubmitEt({"--min-workers=4"}), 2);
  EXPECT_NE(err_.find("--max-workers 3: fewer than --min-workers 4"), std::string::npos) << err_;
  EXPECT_EQ(SubmitEt({"--min-workers=0"}), 2);
  EXPECT_NE(err_.find("--min-workers 0: expected 1 or more"), std::string::npos) << err_;
}

TEST_F(ArenaKindsTest, WorkersAreAddedAndRemovedWithinTheBounds) {
  ASSERT_EQ(SubmitEt(), 0) << err_;
  EXPECT_EQ(Run({"arena", "scaleout", "etjob", "--name=et"}), 1);
  EXPECT_NE(err_.find("the job: et status: PENDING , is not RUNNING or SCALING"), std::string::npos)
      << err_;
  EtPod("launcher", 0);
  for (int i = 0; i < 3; ++i) EtPod("worker", i);
  EtIs("Running");
  ASSERT_EQ(Run({"arena", "scaleout", "etjob", "--name=et", "--script=/s", "--retry=2"}), 0)
      << err_;
  EXPECT_EQ(out_, "mpijob.kubeflow.org/et scaled: 2 -> 3 workers\n");
  EXPECT_EQ(err_,
            "WARN[0000] --retry has no effect: the change is made once\n"
            "WARN[0000] --script has no effect: the launcher finds its workers by "
            "/etc/edl/discover_hosts.sh\n"
            "INFO[0000] The scaleout job et has been submitted successfully\n"
            "INFO[0000] The job et runs with 3 workers\n");
  EXPECT_EQ(Workers(), 3);
  EXPECT_EQ(Run({"arena", "scaleout", "et", "--name=et", "--count=2"}), 1);
  EXPECT_NE(err_.find("scaleout by 2 would leave et with 5 workers, more than "
                      "spec.elasticPolicy.maxReplicas, 3; it has 3"),
            std::string::npos)
      << err_;
  EXPECT_EQ(Run({"arena", "scalein", "etjob", "--name=et", "--count=3"}), 1);
  EXPECT_NE(err_.find("scalein by 3 would leave et with 0 workers, fewer than "
                      "spec.elasticPolicy.minReplicas, 1; it has 3"),
            std::string::npos)
      << err_;
  EXPECT_EQ(Workers(), 3);
  EXPECT_EQ(Run({"arena", "scalein", "etjob", "--name=et", "-t", "5s"}), 1);
  EXPECT_NE(err_.find("timed out after 5s: 3 of 2 workers run"), std::string::npos) << err_;
  EXPECT_EQ(Workers(), 2) << "the job keeps it";
  EXPECT_EQ(Run({"arena", "scalein", "etjob", "--name=et", "--timeout=0"}), 0) << err_;
  EXPECT_EQ(Workers(), 1);
  for (const char* count : {"--count=0", "--count=9223372036854775807"}) {
    EXPECT_EQ(Run({"arena", "scalein", "etjob", "--name=et", count}), 2);
    EXPECT_NE(err_.find(": expected 1 to 10000"), std::string::npos) << err_;
  }
  EXPECT_EQ(Run({"arena", "scalein", "etjob"}), 2);
}

TEST_F(ArenaKindsTest, AnotherClientThatWroteInBetweenIsNotOverwritten) {
  ASSERT_EQ(SubmitEt({"--max-workers=9"}), 0) << err_;
  EtPod("launcher", 0);
  EtPod("worker", 0);
  EtIs("Running");
  bool wrote = false;
  before_ = [&](const api::RestRequest& request) {
    if (request.method != "PATCH" || wrote) return;
    wrote = true;
    SetWorkers(5);
  };
  EXPECT_EQ(Run({"arena", "scaleout", "etjob", "--name=et", "--timeout=0"}), 0) << err_;
  before_ = nullptr;
  EXPECT_EQ(Workers(), 6);
}

TEST_F(ArenaKindsTest, WorkersAreCountedFromTheNumberThatTheJobHas) {
  ASSERT_EQ(SubmitEt(), 0) << err_;
  EtPod("launcher", 0);
  EtIs("Running");
  SetWorkers(9);  // as kubectl scale does: the job has its most, 3
  EXPECT_EQ(Run({"arena", "scaleout", "etjob", "--name=et"}), 1);
  EXPECT_NE(err_.find("would leave et with 4 workers, more than spec.elasticPolicy.maxReplicas, 3; "
                      "it has 3"),
            std::string::npos)
      << err_;
  ASSERT_EQ(Run({"arena", "scalein", "etjob", "--name=et", "--timeout=0"}), 0) << err_;
  EXPECT_EQ(out_, "mpijob.kubeflow.org/et scaled: 3 -> 2 workers\n");
  EXPECT_EQ(Workers(), 2);
  SetWorkers(0);  // the job has its least, 1
  ASSERT_EQ(Run({"arena", "scaleout", "etjob", "--name=et", "--timeout=0"}), 0) << err_;
  EXPECT_EQ(Workers(), 2);
  SetWorkers(9);
  ASSERT_EQ(Run({"swell", "scale", "et", "--replicas=3", "--current-replicas=3"}), 0) << err_;
}

TEST_F(ArenaKindsTest, AWaitEndsWhenAnotherClientSetsAnotherNumber) {
  ASSERT_EQ(SubmitEt(), 0) << err_;
  EtPod("launcher", 0);
  EtIs("Running");
  bool patched = false;
  int reads = 0;
  before_ = [&](const api::RestRequest& request) {
    patched = patched || request.method == "PATCH";
    // While it waits for its third worker.
    if (patched && request.method == "GET" && ++reads == 30) SetWorkers(1);
  };
  EXPECT_EQ(Run({"arena", "scaleout", "etjob", "--name=et", "--timeout=600s"}), 1);
  before_ = nullptr;
  EXPECT_GE(reads, 30);
  EXPECT_NE(err_.find("the number of workers of et was changed meanwhile to 1 by another client; "
                      "this command had set it to 3"),
            std::string::npos)
      << err_;
  EXPECT_EQ(Workers(), 1);
}

TEST_F(ArenaKindsTest, ALossThatIsNoNumberIsOneLineOfAJob) {
  ASSERT_EQ(SubmitEt(), 0) << err_;
  EtPod("launcher", 0);
  EtIs("Running");
  ASSERT_EQ(Run({"arena", "get", "et"}), 0) << err_;
  EXPECT_EQ(out_.find("NUMBERS"), std::string::npos) << out_;
  Status(StrCat(kMpiJobs, "et"),
         R"({"status":{"conditions":[{"type":"Running","status":"True","reason":"R"},)"
         R"({"type":"MetricNotFinite","status":"True","reason":"NotANumber",)"
         R"("message":"Pod et-worker-0 reports that loss is NaN at step 7."}]}})");
  ASSERT_EQ(Run({"arena", "get", "et"}), 0) << err_;
  EXPECT_TRUE(out_.ends_with("\nNUMBERS: Pod et-worker-0 reports that loss is NaN at step 7.\n"))
      << out_;
}

TEST_F(ArenaKindsTest, ARefusedJobDoesNotAnnounceItsConfigMap) {
  Create(
      "{apiVersion: kubeflow.org/v1, kind: MPIJob, metadata: {name: et}, spec: {mpiReplicaSpecs: "
      "{Launcher: {replicas: 1, template: {spec: {containers: [{name: c, image: i}]}}}}}}");
  EXPECT_EQ(SubmitEt(), 1);
  EXPECT_EQ(out_, "");
  const auto map = server_.Send(server_.Request("GET", StrCat(kConfigMaps, "et-etjob")));
  EXPECT_EQ(map.status, 404);
}

TEST_F(ArenaKindsTest, KindsThatAreMpiJobsAreToldApart) {
  ASSERT_EQ(SubmitEt(), 0) << err_;
  ASSERT_EQ(Run({"arena", "submit", "mpi", "--name=plain", "--image=i", "mpirun a"}), 0) << err_;
  ASSERT_EQ(Run({"arena", "list", "--type", "et"}), 0) << err_;
  EXPECT_NE(out_.find("et    PENDING  ETJOB"), std::string::npos) << out_;
  EXPECT_EQ(out_.find("plain"), std::string::npos) << out_;
  ASSERT_EQ(Run({"arena", "list", "--type", "mpijob"}), 0) << err_;
  EXPECT_NE(out_.find("plain  PENDING  MPIJOB"), std::string::npos) << out_;
  EXPECT_EQ(out_.find("ETJOB"), std::string::npos) << out_;
  EXPECT_EQ(Run({"arena", "get", "et", "--type=mpijob"}), 1);
  EXPECT_EQ(Run({"arena", "scaleout", "etjob", "--name=plain"}), 1);
  EXPECT_NE(err_.find("The job plain doesn't exist in namespace default"), std::string::npos)
      << err_;
  EXPECT_EQ(Run({"arena", "delete", "et", "--type=mpijob"}), 1);
  ASSERT_EQ(Run({"arena", "delete", "et", "--type=etjob"}), 0) << err_;
  EXPECT_EQ(out_, "mpijob.kubeflow.org \"et\" deleted\nconfigmap \"et-etjob\" deleted\n");
  ASSERT_EQ(Run({"arena", "delete", "plain"}), 0) << err_;
  EXPECT_EQ(out_, "mpijob.kubeflow.org \"plain\" deleted\nconfigmap \"plain-mpijob\" deleted\n");
}

TEST_F(ArenaKindsTest, WhatIsListedCanBeDeleted) {
  struct Case {
    std::string api_version, kind, spec;
  };
  const std::string pod = "template: {spec: {containers: [{name: xgboost, image: i}]}}";
  for (const Case& one : std::vector<Case>{
           {"swell.dev/v1", "TrainingJob", StrCat("roles: {worker: {", pod, "}}")},
           {"trainer.kubeflow.org/v1alpha1", "TrainJob", "runtimeRef: {name: torch-distributed}"},
           {"kubeflow.org/v1", "XGBoostJob",
            StrCat("xgbReplicaSpecs: {Master: {replicas: 1, ", pod, "}}")}}) {
    const std::string manifest = StrCat("{apiVersion: ", one.api_version, ", kind: ", one.kind,
                                        ", metadata: {name: old}, spec: {", one.spec, "}}");
    Create(manifest);
    ASSERT_EQ(Run({"arena", "delete", "old"}), 0) << err_;
    EXPECT_TRUE(out_.starts_with(ToLower(one.kind) + ".")) << out_;
    Create(manifest);
    server_.executor.Advance(std::chrono::hours(2));
    ASSERT_EQ(Run({"arena", "prune", "--since", "3h"}), 0) << err_;
    EXPECT_EQ(out_ + err_, "");
    ASSERT_EQ(Run({"arena", "prune", "--since", "1h"}), 0) << err_;
    EXPECT_NE(err_.find(StrCat("Delete ", ToUpper(one.kind), " old with Age ")), std::string::npos)
        << err_;
    ASSERT_EQ(Run({"arena", "list"}), 0) << err_;
    EXPECT_EQ(out_.find("old"), std::string::npos) << out_;
  }
}

TEST_F(ArenaKindsTest, AJobThatIsPrunedLeavesAYoungOneOfItsName) {
  ASSERT_EQ(SubmitEt(), 0) << err_;
  server_.executor.Advance(std::chrono::hours(2));
  Create(
      "{apiVersion: swell.dev/v1, kind: TrainingJob, metadata: {name: et}, "
      "spec: {roles: {worker: {template: {spec: {containers: [{name: c, image: i}]}}}}}}");
  ASSERT_EQ(Run({"arena", "prune", "--since", "1h"}), 0) << err_;
  EXPECT_NE(err_.find("Delete ETJOB et"), std::string::npos) << err_;
  EXPECT_EQ(err_.find("TRAININGJOB"), std::string::npos) << err_;
  ASSERT_EQ(Run({"arena", "list"}), 0) << err_;
  EXPECT_NE(out_.find("TRAININGJOB"), std::string::npos) << out_;
  EXPECT_EQ(out_.find("ETJOB"), std::string::npos) << out_;
}

TEST_F(ArenaKindsTest, HorovodAndDeepSpeedJobsReachTheirWorkersBySshThatIsNone) {
  ASSERT_EQ(Run({"arena", "submit", "hj", "--name=h", "--image=i", "--workers=2", "--ssh-port=22",
                 "horovodrun -np 2 a"}),
            0)
      << err_;
  EXPECT_NE(err_.find("--ssh-port has no effect"), std::string::npos) << err_;
  EXPECT_NE(err_.find("`arena get h --type horovodjob`"), std::string::npos) << err_;
  const json::Value horovod = MpiJob("h");
  EXPECT_EQ(json::Find(horovod, {"spec", "elasticPolicy"}), nullptr);
  EXPECT_EQ(json::Print(*json::Find(Container(horovod, "Launcher"), {"command"})),
            R"(["sh","-c","export PATH=/etc/mpi/bin:$PATH\nhorovodrun -np 2 a"])");
  ASSERT_EQ(Run({"arena", "submit", "deepspeedjob", "--name=d", "--image=i", "--workers=2",
                 "--gpus=8", "--job-restart-policy=OnFailure", "--ssh-secret=s", "deepspeed a.py"}),
            0)
      << err_;
  const json::Value deepspeed = MpiJob("d");
  EXPECT_EQ(Files(deepspeed), "/job/hostfile=d-config.hostfile");
  EXPECT_EQ(json::GetInt(deepspeed, {"spec", "slotsPerWorker"}), 8);
  EXPECT_EQ(json::GetInt(deepspeed, {"spec", "runPolicy", "backoffLimit"}), 6);
  EXPECT_EQ(Env(Container(deepspeed, "Worker"), "NCCL_ASYNC_ERROR_HANDLING"), "1");
  ASSERT_EQ(Run({"arena", "list"}), 0) << err_;
  EXPECT_NE(out_.find("DEEPSPEEDJOB"), std::string::npos) << out_;
  EXPECT_NE(out_.find("HOROVODJOB"), std::string::npos) << out_;
  EXPECT_EQ(Run({"arena", "submit", "deepspeedjob", "--name=x", "--image=i",
                 "--job-restart-policy=Always", "a"}),
            2);
}

TEST_F(ArenaKindsTest, ABackoffLimitWithoutEffectIsSaid) {
  auto submit = [this](const std::string& name, const std::string& more) {
    EXPECT_EQ(Run({"arena", "submit", "etjob", "--name=" + name, "--image=i",
                   "--job-backoff-limit=2", more, "a"}),
              0)
        << err_;
    return json::GetInt(MpiJob(name), {"spec", "runPolicy", "backoffLimit"});
  };
  EXPECT_EQ(submit("a", "--job-restart-policy=OnFailure"), 2);
  EXPECT_EQ(err_.find("has no effect"), std::string::npos) << err_;
  submit("b", "--job-restart-policy=Never");
  EXPECT_NE(err_.find("--job-backoff-limit has no effect without --job-restart-policy=OnFailure"),
            std::string::npos)
      << err_;
  EXPECT_EQ(submit("c", "--retry=3"), 3);
  EXPECT_NE(err_.find("--job-backoff-limit has no effect: --retry sets the limit"),
            std::string::npos)
      << err_;
}

// A file for --config-file.
class ArenaFilesTest : public ArenaKindsTest {
 protected:
  ArenaFilesTest() { EXPECT_TRUE(WriteFileAtomically(path_, "x").ok()); }

  int Submit(std::vector<std::string> words) {
    words.insert(words.end(),
                 {"--name=x", "--image=i", StrCat("--config-file=", path_, ":/x"), "a"});
    return Run(words);
  }
  bool Exists(std::string_view map) {
    const auto answer = server_.Send(server_.Request("GET", StrCat(kConfigMaps, map)));
    return answer.status == 200;
  }

  TempDir folder_;
  const std::string path_ = folder_.File("x");
};

TEST_F(ArenaFilesTest, FilesOfAJobOfAnotherTypeStay) {
  ASSERT_EQ(Submit({"arena", "submit", "pytorch"}), 0) << err_;
  EXPECT_EQ(Run({"arena", "delete", "x", "--type=etjob"}), 1);
  EXPECT_NE(err_.find("The job x doesn't exist"), std::string::npos) << err_;
  EXPECT_TRUE(Exists("x-config-files"));
  ASSERT_EQ(Run({"arena", "delete", "x", "--type=pytorchjob"}), 0) << err_;
  EXPECT_FALSE(Exists("x-config-files"));
}

TEST_F(ArenaFilesTest, ACronThatIsDeletedLeavesTheFilesOfAJobOfItsName) {
  ASSERT_EQ(Submit({"arena", "submit", "pytorch"}), 0) << err_;
  ASSERT_EQ(Run({"arena", "cron", "tfjob", "--schedule=@hourly", "--name=x", "--image=i", "a"}), 0)
      << err_;
  ASSERT_EQ(Run({"arena", "cron", "delete", "x"}), 0) << err_;
  EXPECT_EQ(out_, "cron x has deleted\nconfigmap \"x-tfjob\" deleted\n");
  EXPECT_TRUE(Exists("x-pytorchjob"));
  EXPECT_TRUE(Exists("x-config-files"));
}

TEST_F(ArenaFilesTest, AJobThatIsRefusedLeavesNoConfigMaps) {
  constexpr std::string_view kJobs = "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs";
  bool other = false;
  before_ = [&](const api::RestRequest& request) {
    if (request.method != "POST" || request.path != kJobs || other) return;
    other = true;
    auto answer = server_.Send(server_.Request(
        "POST", std::string(kJobs),
        R"({"apiVersion":"kubeflow.org/v1","kind":"PyTorchJob","metadata":{"name":"x"},"spec":)"
        R"({"pytorchReplicaSpecs":{"Master":{"template":{"spec":{"containers":[)"
        R"({"name":"pytorch","image":"i"}]}}}}}})"));
    EXPECT_EQ(answer.status, 201) << answer.text;
  };
  EXPECT_EQ(Submit({"arena", "submit", "pytorch"}), 1);
  before_ = nullptr;
  EXPECT_TRUE(other);
  EXPECT_FALSE(Exists("x-pytorchjob"));
  EXPECT_FALSE(Exists("x-config-files"));
  ASSERT_EQ(Run({"arena", "delete", "x"}), 0) << err_;
  EXPECT_EQ(Submit({"arena", "submit", "pytorch"}), 0) << err_;
}

TEST_F(ArenaKindsTest, ATensorFlowWorkerOfArenaThatIsAloneIsAChief) {
  ASSERT_EQ(Run({"arena", "submit", "tf", "--name=alone", "--image=i", "--workers=1", "--gpus=1",
                 "--worker-cpu=2", "--success-policy=ChiefWorker", "python a.py"}),
            0)
      << err_;
  const json::Value job = Get("/apis/kubeflow.org/v1/namespaces/default/tfjobs/alone");
  const json::Value& roles = *json::Find(job, {"spec", "tfReplicaSpecs"});
  EXPECT_EQ(roles.get_object().size(), 1u);
  EXPECT_EQ(json::GetInt(roles, {"Chief", "replicas"}), 1);
  const json::Value& container =
      json::GetArray(roles, {"Chief", "template", "spec", "containers"})[0];
  EXPECT_EQ(json::GetString(container, {"resources", "limits", "nvidia.com/gpu"}), "1");
  EXPECT_EQ(json::GetString(container, {"resources", "limits", "cpu"}), "2");
  EXPECT_EQ(api::Annotation(job, "requestGPUsOfJobOwner"), "1");
  EXPECT_EQ(json::Find(job, {"spec", "successPolicy"}), nullptr);
}

TEST_F(ArenaKindsTest, AVolcanoJobHasATaskForEachImage) {
  ASSERT_EQ(Run({"arena", "submit", "vj", "--name=v", "--taskImages", "a,b", "--task-replicas=2",
                 "--minAvailable=4", "--schedulerName=volcano", "-l", "team=x", "sleep 5"}),
            0)
      << err_;
  EXPECT_EQ(out_,
            "configmap/v-volcanojob created\nconfigmap/v-volcanojob labeled\n"
            "job.batch.volcano.sh/v created\n");
  EXPECT_NE(err_.find("--scheduler-name volcano has no effect"), std::string::npos) << err_;
  const json::Value job = Get("/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs/v");
  EXPECT_EQ(json::GetInt(job, {"spec", "minAvailable"}), 4);
  EXPECT_EQ(json::GetString(job, {"spec", "queue"}), "default");
  EXPECT_EQ(api::Label(job, "team"), "x");
  const json::Array& tasks = json::GetArray(job, {"spec", "tasks"});
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_EQ(json::GetString(tasks[1], {"name"}), "task-1");
  EXPECT_EQ(json::GetInt(tasks[1], {"replicas"}), 2);
  const json::Value& container = json::GetArray(tasks[1], {"template", "spec", "containers"})[0];
  EXPECT_EQ(json::GetString(container, {"image"}), "b");
  EXPECT_EQ(json::Print(*json::Find(container, {"command"})), R"(["sh","-c","sleep 5"])");
  EXPECT_EQ(json::GetString(container, {"resources", "requests", "cpu"}), "250m");
  EXPECT_EQ(json::GetInt(json::GetArray(container, {"ports"})[0], {"containerPort"}), 2222);
  ASSERT_EQ(Run({"arena", "list"}), 0) << err_;
  EXPECT_NE(out_.find("v     PENDING  VOLCANOJOB"), std::string::npos) << out_;
  ASSERT_EQ(Run({"arena", "get", "v", "--type", "volcanojob"}), 0) << err_;
  ASSERT_EQ(Run({"arena", "top", "job"}), 0) << err_;
  EXPECT_NE(out_.find("VOLCANOJOB"), std::string::npos) << out_;
  ASSERT_EQ(Run({"arena", "delete", "v"}), 0) << err_;
  EXPECT_EQ(out_, "job.batch.volcano.sh \"v\" deleted\nconfigmap \"v-volcanojob\" deleted\n");
}

TEST_F(ArenaKindsTest, AVolcanoJobThatCouldNotStartIsRefused) {
  EXPECT_EQ(Run({"arena", "submit", "vj", "--name=v", "--min-available=4"}), 2);
  EXPECT_NE(err_.find("--min-available 4: the job has 3 instances"), std::string::npos) << err_;
  EXPECT_EQ(Run({"arena", "submit", "vj", "--name=v", "--task-replicas=9223372036854775807"}), 2);
  EXPECT_NE(err_.find("--task-replicas 9223372036854775807: expected 1 to 10000"),
            std::string::npos)
      << err_;
  EXPECT_EQ(Run({"arena", "submit", "vj", "--name=v", "--queue=nope"}), 1);
  EXPECT_NE(err_.find("--queue: project \"nope\" not found"), std::string::npos) << err_;
  EXPECT_EQ(Run({"arena", "submit", "vj", "--name=v", "--task-cpu=much"}), 2);
}

TEST_F(ArenaKindsTest, PlainBatchJobsAreNotArenas) {
  Create(
      "{apiVersion: batch/v1, kind: Job, metadata: {name: b}, spec: {template: {spec: "
      "{restartPolicy: Never, containers: [{name: c, image: i}]}}}}");
  ASSERT_EQ(Run({"arena", "list"}), 0) << err_;
  EXPECT_EQ(out_.find("b "), std::string::npos) << out_;
  EXPECT_EQ(Run({"arena", "delete", "b"}), 1);
}

TEST_F(ArenaKindsTest, GetSaysOnTheTerminalThatAJobWasPreempted) {
  MediumClass();
  ASSERT_EQ(SubmitMedium(), 0) << err_;
  Pod("master", 0, "Failed");
  Status("/apis/kubeflow.org/v1/namespaces/default/pytorchjobs/medium-job",
         R"({"status":{"conditions":[{"type":"Failed","status":"True","reason":"Preempted",
             "message":"PyTorchJob medium-job failed because medium-job-worker-0: a job came first",
             "lastTransitionTime":"2026-01-01T00:00:00Z"}]}})");
  // Scripts, and the walkthrough, find what Arena prints.
  ASSERT_EQ(Run({"arena", "get", "medium-job"}), 0) << err_;
  EXPECT_EQ(out_.find("REASON"), std::string::npos) << out_;
  const std::string line =
      "\nREASON: PyTorchJob medium-job failed because medium-job-worker-0: a job came first\n";
  ASSERT_EQ(Run({"arena", "get", "medium-job", "-o", "wide"}), 0) << err_;
  EXPECT_NE(out_.find(line), std::string::npos) << out_;
  env_.out_is_terminal = true;
  ASSERT_EQ(Run({"arena", "get", "medium-job"}), 0) << err_;
  EXPECT_NE(out_.find(line), std::string::npos) << out_;
  // Its other members were stopped: they have not failed.
  ASSERT_EQ(Run({"swell", "why", "medium-job"}), 0) << err_;
  EXPECT_NE(out_.find("Next:     submit it with --on-preemption requeue"), std::string::npos)
      << out_;
  EXPECT_EQ(out_.find("swell logs"), std::string::npos) << out_;
}

}  // namespace
}  // namespace swell::cli
