// sbatch: what scripts and flags ask for, and the objects that come of it.
#include "cli/slurm/slurm_test_util.h"

namespace swell::cli {
namespace {

TEST_F(SlurmTest, AScriptBecomesAJobWithItsScriptAndNumber) {
  arguments_ = {"--epochs", "3"};
  ASSERT_EQ(Sbatch("--job-name=My_Train\n--gpus-per-node=4 --time=1:00:00\n-c 8 --mem=64G"), 0)
      << err_;
  const std::string id = Number();
  EXPECT_EQ(out_, StrCat("Submitted batch job ", id, "\n"));
  const json::Value job = JobOf("my-train-" + id);
  const json::Value& pod = PodSpec(job);
  const json::Value& node = json::GetArray(pod, {"containers"})[0];
  EXPECT_EQ(json::Print(*json::Find(node, {"resources", "limits"})),
            R"({"cpu":"8","memory":"65536Mi","nvidia.com/gpu":"4"})");
  EXPECT_EQ(json::Print(*json::Find(node, {"command"})),
            R"(["/bin/sh","/var/spool/slurm/slurm_batch"])");
  EXPECT_EQ(json::Print(*json::Find(node, {"args"})), R"(["--epochs","3"])");
  EXPECT_EQ(json::GetInt(pod, {"activeDeadlineSeconds"}), 3600);
  EXPECT_EQ(EnvOf(pod, "SLURM_JOB_ID"), id);
  EXPECT_EQ(EnvOf(pod, "SLURM_JOB_NAME"), "My_Train");
  EXPECT_EQ(EnvOf(pod, "SLURM_NTASKS"), "1");
  EXPECT_EQ(EnvOf(pod, "SLURM_GPUS_ON_NODE"), "4");
  EXPECT_EQ(EnvOf(pod, "SLURM_JOB_NODELIST"), StrCat("my-train-", id, "-launcher-0"));
  EXPECT_EQ(EnvOf(pod, "SLURM_ARRAY_TASK_ID"), "(unset)");
  EXPECT_NE(EnvOf(pod, "SLURM_SUBMIT_HOST"), "(unset)");
  // The script's ConfigMap gave the number, and goes with the job.
  const json::Value maps =
      Get("/api/v1/namespaces/default/configmaps?labelSelector=swell.dev%2Fslurm-job-id%3D" + id);
  ASSERT_EQ(json::GetArray(maps, {"items"}).size(), 1u);
  const json::Value& map = json::GetArray(maps, {"items"})[0];
  EXPECT_TRUE(json::GetString(map, {"data", "slurm_script"}).ends_with("srun python train.py\n"));
  EXPECT_EQ(json::GetString(json::GetArray(map, {"metadata", "ownerReferences"})[0], {"name"}),
            "my-train-" + id);
}

TEST_F(SlurmTest, FlagsCountMoreThanVariablesAndTheseMoreThanTheScript) {
  variables_["SBATCH_TIMELIMIT"] = "20";
  variables_["SBATCH_JOB_NAME"] = "variable";
  ASSERT_EQ(Sbatch("-J header -t 10 --gpus=1", {"-J", "typed"}), 0) << err_;
  const json::Value job = JobOf("typed-" + Number());
  EXPECT_EQ(json::GetInt(PodSpec(job), {"activeDeadlineSeconds"}), 1200);
}

TEST_F(SlurmTest, SeveralNodesAreALauncherAndWorkers) {
  ASSERT_EQ(Sbatch("-N 3 --ntasks-per-node=4 --gres=gpu:4"), 0) << err_;
  const std::string name = "train-sh-" + Number();
  const json::Value job = Get("/apis/kubeflow.org/v1/namespaces/default/mpijobs/" + name);
  EXPECT_EQ(json::GetInt(job, {"spec", "mpiReplicaSpecs", "Worker", "replicas"}), 2);
  EXPECT_EQ(json::GetInt(job, {"spec", "slotsPerWorker"}), 4);
  const json::Value& worker =
      *json::Find(job, {"spec", "mpiReplicaSpecs", "Worker", "template", "spec"});
  EXPECT_EQ(json::Print(*json::Find(json::GetArray(worker, {"containers"})[0], {"command"})),
            R"(["/bin/sh","/var/spool/slurm/slurm_node","wait"])");
  EXPECT_EQ(EnvOf(worker, "SLURM_NTASKS"), "12");
  EXPECT_EQ(EnvOf(worker, "SLURM_TASKS_PER_NODE"), "4(x3)");
  EXPECT_EQ(EnvOf(worker, "SLURM_JOB_NODELIST"),
            StrCat(name, "-launcher,", name, "-worker-0,", name, "-worker-1"));
  // The flag's other name.
  ASSERT_EQ(Sbatch("-N 2 --tasks-per-node=3"), 0) << err_;
  const json::Value other =
      Get("/apis/kubeflow.org/v1/namespaces/default/mpijobs/train-sh-" + Number());
  EXPECT_EQ(json::GetInt(other, {"spec", "slotsPerWorker"}), 3);
}

TEST_F(SlurmTest, TheCommandOfAJobIsWhereItsScriptIs) {
  arguments_ = {"--epochs", "3"};
  ASSERT_EQ(Sbatch("-J place"), 0) << err_;
  const std::string line = StrCat("Command=", scripts_.File("train.sh"), " --epochs 3\n");
  ASSERT_EQ(Run({"scontrol", "show", "job", Number()}), 0) << err_;
  EXPECT_NE(out_.find(line), std::string::npos) << line << out_;
  std::string path = scripts_.File("train.sh");
  path.insert(path.rfind('/'), "/.");
  ASSERT_EQ(Run({"sbatch", "--container-image=img", path}), 0) << err_;
  ASSERT_EQ(Run({"squeue", "-h", "-j", Number(), "-o", "%o"}), 0) << err_;
  EXPECT_EQ(out_, scripts_.File("train.sh") + "\n");
}

TEST_F(SlurmTest, PartsOfAHeterogeneousJobAreRefused) {
  const std::string said = "begins another part of a heterogeneous job";
  EXPECT_EQ(Sbatch("-N1\nhetjob\n-N2"), 2);
  EXPECT_NE(err_.find(said), std::string::npos) << err_;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"sbatch", "-N1", ":", "-N2", "train.sh"},
        {"srun", "-N1", "hostname", ":", "-N2", "hostname"},
        {"salloc", "-N1", ":", "-N2", "hostname"}}) {
    EXPECT_EQ(Run(words), 2) << words[0];
    EXPECT_NE(err_.find(said), std::string::npos) << err_;
  }
}

TEST_F(SlurmTest, GpusAloneTakeAsFewNodesAsHoldThem) {
  ASSERT_EQ(Sbatch("--gpus=8"), 0) << err_;
  EXPECT_EQ(EnvOf(PodSpec(JobOf("train-sh-" + Number())), "SLURM_GPUS_ON_NODE"), "8");
  ASSERT_EQ(Sbatch("--ntasks=16 --gpus-per-task=1"), 0) << err_;
  const json::Value job =
      Get("/apis/kubeflow.org/v1/namespaces/default/mpijobs/train-sh-" + Number());
  EXPECT_EQ(json::GetInt(job, {"spec", "mpiReplicaSpecs", "Worker", "replicas"}), 1);
}

TEST_F(SlurmTest, AnExclusiveJobHasAllGpusOfItsNodes) {
  ASSERT_EQ(Sbatch("--exclusive"), 0) << err_;
  EXPECT_EQ(err_, "");
  EXPECT_EQ(EnvOf(PodSpec(JobOf("train-sh-" + Number())), "SLURM_GPUS_ON_NODE"), "8");
  ASSERT_EQ(Sbatch("--exclusive -N2 --ntasks-per-node=8"), 0) << err_;
  const json::Value job =
      Get("/apis/kubeflow.org/v1/namespaces/default/mpijobs/train-sh-" + Number());
  const json::Value* worker =
      json::Find(job, {"spec", "mpiReplicaSpecs", "Worker", "template", "spec"});
  ASSERT_NE(worker, nullptr) << json::Print(job);
  EXPECT_EQ(EnvOf(*worker, "SLURM_GPUS"), "16");
  ASSERT_EQ(Sbatch("--exclusive --gres=gpu:2"), 0) << err_;
  EXPECT_EQ(EnvOf(PodSpec(JobOf("train-sh-" + Number())), "SLURM_GPUS_ON_NODE"), "2");
}

TEST_F(SlurmTest, PartitionAccountAndQosArePoolProjectAndClass) {
  Create(
      "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 9}");
  ASSERT_EQ(Sbatch("-p big -A vision -q high --gres=gpu:a100:1 --no-requeue"), 0) << err_;
  const json::Value job = JobOf("train-sh-" + Number(), "vision");
  EXPECT_EQ(json::GetString(job, {"spec", "project"}), "vision");
  EXPECT_EQ(json::GetString(job, {"spec", "priorityClassName"}), "high");
  EXPECT_EQ(json::GetString(job, {"spec", "preemption", "onPreemption"}), "Fail");
  EXPECT_EQ(json::Print(*json::Find(PodSpec(job), {"nodeSelector"})),
            R"({"kubernetes.io/hostname":"node-1",)"
            R"("nvidia.com/gpu.product":"NVIDIA-A100-SXM4-80GB"})");
  EXPECT_EQ(Sbatch("-p small"), 1);
  EXPECT_NE(err_.find("there is no such node pool; there are: big"), std::string::npos) << err_;
  EXPECT_EQ(Sbatch("--gres=gpu:h100:1"), 1);
  EXPECT_NE(err_.find("there are: NVIDIA-A100-SXM4-80GB"), std::string::npos) << err_;
  EXPECT_EQ(Sbatch("-C infiniband"), 2);
  EXPECT_NE(err_.find("--constraint \"infiniband\": expected KEY=VALUE, or a type of GPU that "
                      "nodes have"),
            std::string::npos)
      << err_;
  ASSERT_EQ(Sbatch("-C a100"), 0) << err_;
  EXPECT_EQ(json::Print(*json::Find(PodSpec(JobOf("train-sh-" + Number())), {"nodeSelector"})),
            R"({"nvidia.com/gpu.product":"NVIDIA-A100-SXM4-80GB"})");
  Create(
      "{apiVersion: v1, kind: Node, metadata: {name: old, labels: {nvidia.com/gpu.product: "
      "Tesla-V100}}}");
  ASSERT_EQ(Sbatch("-C \"a100|v100|disk=ssd\""), 0) << err_;
  const json::Value either = PodSpec(JobOf("train-sh-" + Number()));
  std::vector<std::string> values;
  for (const json::Value& term : json::GetArray(
           either, {"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution",
                    "nodeSelectorTerms"})) {
    const json::Value& match = json::GetArray(term, {"matchExpressions"})[0];
    values.push_back(json::Print(*json::Find(match, {"values"})));
  }
  EXPECT_EQ(values, (std::vector<std::string>{R"(["NVIDIA-A100-SXM4-80GB"])", R"(["Tesla-V100"])",
                                              R"(["ssd"])"}));
  EXPECT_EQ(Sbatch("-C \"a100|infiniband\""), 2);
  EXPECT_EQ(Sbatch("-A nobody"), 1);
  EXPECT_NE(err_.find("--account"), std::string::npos) << err_;
  // The class that every cluster of Slurm has counts as no class if it does not exist.
  EXPECT_EQ(Sbatch("-q normal"), 0) << err_;
  EXPECT_EQ(EnvOf(PodSpec(JobOf("train-sh-" + Number())), "SLURM_JOB_QOS"), "normal");
}

TEST_F(SlurmTest, WhatIsNotFollowedIsRefusedByName) {
  struct Case {
    std::string header, says;
  };
  for (const Case& one :
       std::vector<Case>{{"--priority=5", "--priority is not supported: --qos CLASS"},
                         {"--gpu 2", "unknown flag --gpu"},
                         {"--gres=fpga:1", "only GPUs are resources of this kind here"},
                         {"--gpus=1 -N 2", "each of the 2 nodes needs one"},
                         {"-N 4 -n 2", "--nodes 4 is above --ntasks 2"},
                         {"--nodes=5-2", "expected the least first, like 2-5"},
                         {"--begin=now-5", "expected a time that is to come"},
                         {"--signal=USR1@60", "which the job lacks; give --time"},
                         {"--mem=4G --mem-per-cpu=1G", "exclude each other"},
                         {"--time=soon", "--time \"soon\": expected minutes"},
                         {"--dependency=aftercorr:1", "this job has no --array"},
                         {"-a 0-1 -d aftercorr:999", "there is no job 999_0"},
                         {"--dependency=afterok:999", "there is no job 999"},
                         {"--array=5-1", "indices like 0-99"}}) {
    EXPECT_NE(Sbatch(one.header), 0) << one.header;
    EXPECT_NE(err_.find(one.says), std::string::npos) << one.header << ": " << err_;
  }
  ASSERT_EQ(Sbatch("--mail-type=END"), 0) << err_;
  EXPECT_EQ(err_,
            "sbatch: warning: --mail-type changes nothing: no mail is sent; swell wait JOB returns "
            "when the job ends\n");
}

TEST_F(SlurmTest, WhatChangesNothingIsSaidByName) {
  struct Case {
    std::string header, name;
  };
  for (const Case& one : std::vector<Case>{{"--ntasks-per-socket=4", "ntasks-per-socket"},
                                           {"--ntasks-per-core=1", "ntasks-per-core"},
                                           {"--threads-per-core 1", "threads-per-core"},
                                           {"--mincpus=8", "mincpus"},
                                           {"-O", "overcommit"},
                                           {"--contiguous", "contiguous"},
                                           {"-I", "immediate"},
                                           {"--immediate=30", "immediate"},
                                           {"-m block:cyclic", "distribution"},
                                           {"--nice", "nice"},
                                           {"--nice=5", "nice"},
                                           {"--mpi=pmix", "mpi"},
                                           {"--hint=nomultithread", "hint"},
                                           {"--cpu-bind=cores", "cpu-bind"},
                                           {"--mem-bind=local", "mem-bind"},
                                           {"--gpu-bind=closest", "gpu-bind"},
                                           {"--switches=1@10", "switches"},
                                           {"--time-min=10 --time=60", "time-min"},
                                           {"--exclusive --gpus=1", "exclusive"},
                                           {"--exclusive=user", "exclusive"}}) {
    EXPECT_EQ(Sbatch(one.header), 0) << one.header << ": " << err_;
    EXPECT_TRUE(err_.starts_with(StrCat("sbatch: warning: --", one.name, " changes nothing: ")))
        << one.header << ": " << err_;
  }
}

TEST_F(SlurmTest, AScriptNeedsAnInterpreterAndAnImage) {
  const std::string path = scripts_.File("plain.sh");
  ASSERT_TRUE(WriteFileAtomically(path, "echo\n").ok());
  EXPECT_EQ(Run({"sbatch", path}), 2);
  EXPECT_NE(err_.find("does not look like a batch script"), std::string::npos) << err_;
  EXPECT_EQ(Run({"sbatch", "--wrap", "hostname"}), 2);
  EXPECT_NE(err_.find("--container-image IMAGE is missing"), std::string::npos) << err_;
  variables_["SBATCH_CONTAINER_IMAGE"] = "img";
  EXPECT_EQ(Run({"sbatch", "--parsable", "--wrap", "hostname"}), 0) << err_;
  EXPECT_EQ(out_, Number() + "\n");
  stdin_ = "#!/bin/sh\n#SBATCH --priority=3\n";
  EXPECT_EQ(Run({"sbatch", "--container-image=img"}), 2);
  EXPECT_NE(err_.find("#SBATCH of standard input: --priority is not supported"), std::string::npos)
      << err_;
  stdin_ = "#!/bin/sh\n#SBATCH -J piped\nhostname\n";
  EXPECT_EQ(Run({"sbatch"}), 0) << err_;
  EXPECT_EQ(
      json::GetString(JobOf("piped-" + Number()), {"metadata", "annotations", "swell.dev/user"}),
      "ada");
}

TEST_F(SlurmTest, ASignalComesBeforeTheTimeLimit) {
  ASSERT_EQ(Sbatch("--time=10 --signal=B:USR1@60 -o logs/%x-%j.out --open-mode=append"), 0) << err_;
  const json::Value job = JobOf("train-sh-" + Number());
  EXPECT_EQ(EnvOf(PodSpec(job), "SWELL_SLURM_SIGNAL"), "USR1");
  EXPECT_EQ(EnvOf(PodSpec(job), "SWELL_SLURM_SIGNAL_AFTER"), "540");
  EXPECT_EQ(EnvOf(PodSpec(job), "SWELL_SLURM_SIGNAL_SHELL"), "1");
  EXPECT_EQ(EnvOf(PodSpec(job), "SWELL_SLURM_OUTPUT"),
            StrCat("./logs/train.sh-", Number(), ".out"));
}

TEST_F(SlurmTest, AnArrayIsAJobForEachIndexThatWaitsForItsTurn) {
  ASSERT_EQ(Sbatch("--array=1-5:2%2 -J sweep", {"--parsable"}), 0) << err_;
  const std::string id = Number();
  const json::Value first = JobOf("sweep-" + id);
  EXPECT_TRUE(json::GetBool(first, {"spec", "suspend"}));
  EXPECT_EQ(json::GetString(first, {"metadata", "annotations", "swell.dev/gate"}), "closed");
  EXPECT_EQ(json::GetString(first, {"metadata", "annotations", "swell.dev/array-at-once"}), "2");
  EXPECT_EQ(json::GetString(first, {"metadata", "labels", "swell.dev/array"}), "slurm-" + id);
  EXPECT_EQ(EnvOf(PodSpec(first), "SLURM_ARRAY_TASK_ID"), "1");
  EXPECT_EQ(EnvOf(PodSpec(first), "SLURM_ARRAY_TASK_MAX"), "5");
  EXPECT_EQ(EnvOf(PodSpec(first), "SLURM_ARRAY_TASK_STEP"), "2");
  ASSERT_EQ(Run({"squeue", "-h", "-o", "%i %t %R"}), 0);
  EXPECT_EQ(out_, StrCat(id, "_[1,3,5%2] PD (JobArrayTaskLimit)\n"));
  ASSERT_EQ(Run({"squeue", "-h", "-r", "-o", "%i %K"}), 0);
  EXPECT_EQ(out_, StrCat(id, "_1 1\n", id, "_3 3\n", id, "_5 5\n"));
  // Without a limit they start as there is room.
  ASSERT_EQ(Sbatch("--array=0-1 -J free"), 0) << err_;
  EXPECT_FALSE(json::GetBool(JobOf("free-" + Number()), {"spec", "suspend"}));
}

TEST_F(SlurmTest, ADependencyNamesTheOtherJobsObjects) {
  ASSERT_EQ(Sbatch("--array=0-1 -J first", {"--parsable"}), 0) << err_;
  const std::string id = Number();
  ASSERT_EQ(Sbatch("-J then", {"--parsable", "-d", "afterok:" + id, "--kill-on-invalid-dep=yes"}),
            0)
      << err_;
  const std::string then = Number();
  const json::Value job = JobOf("then-" + then);
  const std::string_view after =
      json::GetString(job, {"metadata", "annotations", "swell.dev/start-after"});
  EXPECT_TRUE(after.starts_with(StrCat("afterok:first-", id, ":first-"))) << after;
  EXPECT_EQ(json::GetString(job, {"metadata", "annotations", "swell.dev/if-never"}), "Fail");
  EXPECT_TRUE(json::GetBool(job, {"spec", "suspend"}));
}

TEST_F(SlurmTest, TasksOfAnArrayWaitForThoseOfTheSameIndex) {
  const auto name_of = [this](const std::string& task) {
    EXPECT_EQ(Run({"squeue", "-h", "-r", "-j", task, "-O", "jobid:20"}), 0) << err_;
    return std::string(Trim(out_));
  };
  ASSERT_EQ(Sbatch("--array=1-2 -J first", {"--parsable"}), 0) << err_;
  const std::string first = Number();
  const std::string second_task = name_of(first + "_2");
  ASSERT_EQ(Sbatch("--array=1-2 -J then", {"--parsable", "-d", "aftercorr:" + first}), 0) << err_;
  const std::string then = Number();
  const auto waits_for = [this](const std::string& name) {
    return std::string(
        json::GetString(JobOf(name), {"metadata", "annotations", "swell.dev/start-after"}));
  };
  EXPECT_EQ(waits_for("then-" + then), StrCat("afterok:first-", first));
  EXPECT_EQ(waits_for("then-" + name_of(then + "_2")), StrCat("afterok:first-", second_task));
  // Without aftercorr all tasks wait for the same jobs.
  ASSERT_EQ(Sbatch("--array=1-2 -J any", {"--parsable", "-d", "afterany:" + first + "_2"}), 0);
  const std::string any = Number();
  EXPECT_EQ(waits_for("any-" + any), StrCat("afterany:first-", second_task));
  EXPECT_EQ(waits_for("any-" + name_of(any + "_2")), StrCat("afterany:first-", second_task));
  // There is no task 3 to wait for.
  EXPECT_NE(Sbatch("--array=1-3 -J more", {"-d", "aftercorr:" + first}), 0);
  EXPECT_NE(err_.find(StrCat("there is no job ", first, "_3")), std::string::npos) << err_;
}

TEST_F(SlurmTest, FewNodesHoldTheGpusAndTheTasks) {
  const auto launcher_and_worker = [this](std::string_view amount) {
    const json::Value job =
        Get("/apis/kubeflow.org/v1/namespaces/default/mpijobs/train-sh-" + Number());
    std::string text;
    for (std::string_view role : {"Launcher", "Worker"}) {
      const json::Value& pod =
          *json::Find(job, {"spec", "mpiReplicaSpecs", role, "template", "spec"});
      text +=
          StrCat(text.empty() ? "" : " ", json::GetString(json::GetArray(pod, {"containers"})[0],
                                                          {"resources", "requests", amount}));
    }
    return text;
  };
  // Nine GPUs on nodes of eight.
  ASSERT_EQ(Sbatch("--gpus=9"), 0) << err_;
  EXPECT_EQ(launcher_and_worker("nvidia.com/gpu"), "4 5");
  ASSERT_EQ(Sbatch("-n 9 --gpus-per-task=1"), 0) << err_;
  EXPECT_EQ(launcher_and_worker("nvidia.com/gpu"), "5 4");
  // A hundred tasks on nodes of 64 CPUs.
  ASSERT_EQ(Sbatch("-n 100"), 0) << err_;
  EXPECT_EQ(launcher_and_worker("cpu"), "50 50");
  ASSERT_EQ(Sbatch("-n 4 -c 32"), 0) << err_;
  EXPECT_EQ(launcher_and_worker("cpu"), "64 64");
  ASSERT_EQ(Sbatch("--gpus=4"), 0) << err_;
  EXPECT_EQ(json::Find(json::GetArray(PodSpec(JobOf("train-sh-" + Number())), {"containers"})[0],
                       {"resources", "requests", "cpu"}),
            nullptr);
}

TEST_F(SlurmTest, NumbersOfGpusThatContradictEachOtherAreRefused) {
  EXPECT_EQ(Sbatch("-N 2 --gpus-per-node=2 --gpus=40"), 2);
  EXPECT_NE(
      err_.find("--gpus 40 is not --nodes 2 times 2 GPUs of each node; leave one of them out"),
      std::string::npos)
      << err_;
  EXPECT_EQ(Sbatch("-N 2 --gpus-per-node=2 --gpus=4"), 0) << err_;
  EXPECT_EQ(Sbatch("--gpus-per-node=2 --gpus=4"), 0) << err_;
}

TEST_F(SlurmTest, WhatNoNodeHasIsSaid) {
  struct Case {
    std::string header, says;
  };
  for (const Case& one : std::vector<Case>{
           {"--gres=gpu:9",
            "a node of the job needs 9 GPUs, and the largest node has 8 GPUs, 64 CPUs"},
           {"-c 65", "needs 65 CPUs, and the largest"},
           {"--gpus=99", "the job needs 13 nodes with 8 GPUs each, and there is room for 2"},
           {"-p big -N 2 --gpus-per-node=8", "there is room for 1"}}) {
    // Elsewhere than on this machine, nodes may yet come.
    EXPECT_EQ(Sbatch(one.header), 0) << one.header << ": " << err_;
    EXPECT_NE(err_.find("warning: Requested node configuration is not available: "),
              std::string::npos)
        << one.header << ": " << err_;
    EXPECT_NE(err_.find(one.says), std::string::npos) << one.header << ": " << err_;
  }
  EXPECT_EQ(Sbatch("-p big -w node-2"), 1);
  EXPECT_NE(err_.find("--nodelist node-2 is not in the partition big, which has node-1"),
            std::string::npos)
      << err_;
  EXPECT_EQ(Sbatch("-p big -w node-1"), 0) << err_;
  EXPECT_EQ(Sbatch("-x node-3"), 1);
  EXPECT_NE(err_.find("--exclude \"node-3\": there is no such node"), std::string::npos) << err_;
  EXPECT_EQ(Sbatch("-p big --exclude node-1"), 1);
  EXPECT_NE(err_.find("--exclude leaves no node of --partition"), std::string::npos) << err_;
  ASSERT_EQ(Sbatch("--exclude node-[2] --oversubscribe"), 0) << err_;
  EXPECT_NE(err_.find("--oversubscribe changes nothing"), std::string::npos) << err_;
  EXPECT_NE(json::Print(PodSpec(JobOf("train-sh-" + Number())))
                .find(R"({"key":"metadata.name","operator":"NotIn","values":["node-2"]})"),
            std::string::npos);
  EXPECT_EQ(Sbatch("-p big -C kubernetes.io/hostname=node-2"), 1);
  EXPECT_NE(err_.find("no node is all of what --partition"), std::string::npos) << err_;
  EXPECT_EQ(Sbatch("-p all -w node-2"), 0) << err_;
  EXPECT_EQ(Sbatch("-p all,foo"), 1);
  EXPECT_NE(err_.find("--partition \"foo\": there is no such node pool"), std::string::npos)
      << err_;
}

TEST_F(SlurmTest, ACancelledJobHasEnded) {
  ASSERT_EQ(Sbatch("-J first"), 0) << err_;
  const std::string id = Number();
  ASSERT_EQ(Run({"scancel", id}), 0) << err_;
  ASSERT_EQ(Sbatch("-J any -d afterany:" + id), 0) << err_;
  EXPECT_FALSE(json::GetBool(JobOf("any-" + Number()), {"spec", "suspend"}));
  ASSERT_EQ(Sbatch("-J ok -d afterok:" + id), 0) << err_;
  EXPECT_EQ(json::GetString(JobOf("ok-" + Number()),
                            {"metadata", "annotations", "swell.dev/start-after"}),
            "afterok:first-" + id);
  // Those of the same name that have not ended.
  ASSERT_EQ(Sbatch("-J ok -d singleton"), 0) << err_;
  EXPECT_TRUE(
      json::GetString(JobOf("ok-" + Number()), {"metadata", "annotations", "swell.dev/start-after"})
          .starts_with("afterany:ok-"));
  ASSERT_EQ(Sbatch("-J alone -d singleton"), 0) << err_;
  EXPECT_FALSE(json::GetBool(JobOf("alone-" + Number()), {"spec", "suspend"}));
}

TEST_F(SlurmTest, DirectoriesThatAProjectAllowsAreAdministrators) {
  ASSERT_EQ(Run({"swell", "project", "edit", "vision", "--allow-host-path", "/home",
                 "--allow-host-path", "/data/sets:ro"}),
            0)
      << err_;
  ASSERT_EQ(Run({"swell", "project", "edit", "vision", "--remove-host-path", "/data/sets",
                 "--allow-host-path", "/scratch"}),
            0)
      << err_;
  EXPECT_EQ(json::Print(*json::Find(Get("/apis/swell.dev/v1/projects/vision"),
                                    {"spec", "allowedHostPaths"})),
            R"([{"path":"/home"},{"path":"/scratch"}])");
  EXPECT_EQ(Run({"swell", "project", "edit", "vision", "--allow-host-path", "home"}), 2);
  EXPECT_EQ(Run({"swell", "project", "edit", "vision", "--remove-host-path", "/x"}), 2);
  // What is above a directory is mounted in its place, if that one is allowed.
  ASSERT_EQ(Sbatch("-A vision --container-mounts=/scratch/ada:/scratch/ada"), 0) << err_;
  ASSERT_EQ(Sbatch("-A vision --container-mounts=/scratch/ada"), 0) << err_;
  const json::Value job = JobOf("train-sh-" + Number(), "vision");
  EXPECT_NE(json::Print(PodSpec(job)).find(R"("hostPath":{"path":"/scratch"})"), std::string::npos)
      << json::Print(PodSpec(job));
}

TEST_F(SlurmTest, CpusOfEachGpuAreALimitOfTheNodesThatHaveThem) {
  ASSERT_EQ(Sbatch("-J own --gpus-per-node=2 --cpus-per-gpu=4 --mem-per-cpu=1G"), 0) << err_;
  const json::Value pod = PodSpec(JobOf("own-" + Number()));
  EXPECT_EQ(
      json::Print(*json::Find(json::GetArray(pod, {"containers"})[0], {"resources", "limits"})),
      R"({"cpu":"8","memory":"8192Mi","nvidia.com/gpu":"2"})");
  EXPECT_EQ(EnvOf(pod, "SLURM_CPUS_PER_GPU"), "4");
  EXPECT_EQ(EnvOf(pod, "SLURM_MEM_PER_CPU"), "1024");
  EXPECT_EQ(EnvOf(pod, "SLURM_MEM_PER_NODE"), "(unset)");
  EXPECT_EQ(EnvOf(pod, "SLURM_CPUS_ON_NODE"), "8");
  EXPECT_EQ(EnvOf(pod, "SLURM_CPUS_PER_TASK"), "(unset)");
  ASSERT_EQ(Run({"squeue", "-h", "-j", Number(), "-o", "%C"}), 0) << err_;
  EXPECT_EQ(out_, "8\n");
  // Nodes of 64 CPUs have room for four such GPUs.
  variables_["SBATCH_CPUS_PER_GPU"] = "16";
  ASSERT_EQ(Sbatch("--gpus=8"), 0) << err_;
  const json::Value wide =
      Get("/apis/kubeflow.org/v1/namespaces/default/mpijobs/train-sh-" + Number());
  EXPECT_EQ(json::GetInt(wide, {"spec", "mpiReplicaSpecs", "Worker", "replicas"}), 1);
  EXPECT_EQ(Sbatch("--gpus=1 -c 2"), 2);
  EXPECT_NE(err_.find("--cpus-per-gpu and --cpus-per-task exclude each other"), std::string::npos)
      << err_;
  EXPECT_EQ(Sbatch("-n 2"), 2);
  EXPECT_NE(err_.find("--cpus-per-gpu 16: the job asks for no GPUs"), std::string::npos) << err_;
  // Nodes may yet come, as the cluster is not this machine.
  EXPECT_EQ(Sbatch("--gpus-per-node=5"), 0);
  EXPECT_NE(err_.find("5 GPUs, 80 CPUs, and the largest node has"), std::string::npos) << err_;
}

TEST_F(SlurmTest, FlagsOfOtherClustersAreWarnedOfOrRefusedByName) {
  ASSERT_EQ(Sbatch("--wckey=x --propagate --gres-flags=enforce-binding -S 2 --cpu-freq=high"), 0)
      << err_;
  for (const char* name : {"wckey", "propagate", "gres-flags", "core-spec", "cpu-freq"}) {
    EXPECT_NE(err_.find(StrCat("--", name, " changes nothing: ")), std::string::npos) << err_;
  }
  for (const char* flag : {"--tres-per-task=cpu=2", "--container=/oci", "--bb=x", "--pty"}) {
    EXPECT_EQ(Run({"sbatch", flag, "--wrap", "true"}), 2) << flag;
    EXPECT_NE(err_.find("is not supported: "), std::string::npos) << err_;
  }
  EXPECT_EQ(Sbatch("--gres=gpu:2,lustre:1"), 2);
  EXPECT_NE(err_.find("--gres \"gpu:2,lustre:1\": only GPUs"), std::string::npos) << err_;
}

TEST_F(SlurmTest, SrunNeedsACommand) {
  EXPECT_EQ(Run({"srun"}), 2);
  EXPECT_EQ(Run({"srun", "--pty", "--exact", "--wait=60", "-T", "4"}), 2);
  EXPECT_NE(err_.find("no command"), std::string::npos) << err_;
  EXPECT_EQ(Run({"srun", "--x11", "xterm"}), 2);
  EXPECT_NE(err_.find("--x11 is not supported: windows"), std::string::npos) << err_;
  EXPECT_EQ(Run({"srun", "-K", "-K1", "--kill-on-bad-exit=0", "--kill-on-bad-exit"}), 2);
  EXPECT_NE(err_.find("no command"), std::string::npos) << err_;
  EXPECT_EQ(Run({"srun", "-K2", "hostname"}), 2);
  EXPECT_NE(err_.find("expected 0 or 1"), std::string::npos) << err_;
}

TEST_F(SlurmTest, SwellSubmitWaitsInTheSameWay) {
  const auto job = [this](const std::string& name) {
    return Get("/apis/kubeflow.org/v1/namespaces/default/pytorchjobs/" + name);
  };
  ASSERT_EQ(Run({"swell", "submit", "sweep", "--image", "img", "--array", "0-4:2%2", "--", "a"}), 0)
      << err_;
  EXPECT_EQ(out_,
            "pytorchjob.kubeflow.org/sweep-0 created\npytorchjob.kubeflow.org/sweep-2 created\n"
            "pytorchjob.kubeflow.org/sweep-4 created\n");
  const json::Value task = job("sweep-2");
  EXPECT_TRUE(json::GetBool(task, {"spec", "runPolicy", "suspend"}));
  EXPECT_EQ(json::GetString(task, {"metadata", "labels", "swell.dev/array"}), "sweep");
  ASSERT_EQ(Run({"swell", "submit", "then", "--image", "img", "--after", "sweep,afterany:sweep-0",
                 "--", "a"}),
            0)
      << err_;
  EXPECT_EQ(json::GetString(job("then"), {"metadata", "annotations", "swell.dev/start-after"}),
            "afterok:sweep-0:sweep-2:sweep-4,afterany:sweep-0");
  EXPECT_EQ(Run({"swell", "submit", "x", "--image", "img", "--after", "nobody", "--", "a"}), 1);
  EXPECT_NE(err_.find("there is no job \"nobody\""), std::string::npos) << err_;
  EXPECT_EQ(Run({"swell", "submit", "x", "--image", "img", "--array", "b", "--", "a"}), 2);
  EXPECT_EQ(Run({"swell", "submit", "x", "--image", "img", "--array", "", "--", "a"}), 2);
  EXPECT_EQ(Sbatch("--array=0-99999", {"--test-only"}), 2);
  // The numbers of Slurm's jobs are names, too.
  ASSERT_EQ(Sbatch("-J numbered", {"--parsable"}), 0) << err_;
  const std::string id = Number();
  ASSERT_EQ(Run({"swell", "submit", "late", "--image", "img", "--after", id, "--", "a"}), 0)
      << err_;
  EXPECT_EQ(json::GetString(job("late"), {"metadata", "annotations", "swell.dev/start-after"}),
            "afterok:numbered-" + id);
  ASSERT_EQ(Run({"swell", "why", id}), 0) << err_;
  EXPECT_TRUE(out_.starts_with("numbered-" + id)) << out_;
  ASSERT_EQ(Run({"swell", "why", "then"}), 0) << err_;
  EXPECT_EQ(out_, "then waits to be looked at.\n");
}

}  // namespace
}  // namespace swell::cli
