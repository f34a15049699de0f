// squeue, sinfo, scancel, sacct and scontrol: jobs and nodes in Slurm's words.
#include "cli/slurm/job_info.h"
#include "cli/slurm/slurm_test_util.h"
#include "kube/api/meta/gate_keys.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/request_keys.h"
#include "kube/api/rest/scripted_server_test_util.h"

namespace swell::cli {
namespace {

class SlurmQueueTest : public SlurmTest {
 protected:
  void SetUp() override {
    SlurmTest::SetUp();
    ASSERT_EQ(Sbatch("-J train --gpus=4 -t 30"), 0) << err_;
    id_ = Number();
    name_ = "train-" + id_;
  }
  void Runs() {
    JobPod(name_, "Running");
    JobBecomes(name_, "Running");
  }
  // Bob may not list all pods, or read any object.
  void AsBob(bool sees_nothing) {
    env_.connect = [this, sees_nothing](const ClusterFlags&) {
      Connection connection;
      connection.server = std::make_shared<api::ScriptedServer>(
          *server_.server,
          [sees_nothing](const api::RestRequest& request) -> std::optional<api::RestResponse> {
            if (request.path != "/api/v1/pods" && !(sees_nothing && request.method == "GET")) {
              return std::nullopt;
            }
            return api::Refusal(Code::kForbidden);
          });
      connection.url = "https://test:6443";
      connection.user = {.name = "bob", .groups = {"system:authenticated"}};
      return Result<Connection>(std::move(connection));
    };
  }
  std::string Queue(std::vector<std::string> flags) {
    std::vector<std::string> words{"squeue", "-h"};
    words.insert(words.end(), flags.begin(), flags.end());
    EXPECT_EQ(Run(words), 0) << err_;
    return out_;
  }

  std::string id_, name_;
};

TEST_F(SlurmQueueTest, TablesAreRepeatedUntilNobodyReadsThem) {
  for (const char* command : {"squeue", "sinfo"}) {
    std::vector<std::string> times;
    env_.out = [this, &times](std::string_view text) {
      out_ += text;
      if (text.ends_with("Z\n") && text.starts_with("20")) times.emplace_back(text.substr(0, 20));
      return times.size() < 3;
    };
    const WallTime begin = server_.executor.Now();
    EXPECT_EQ(Run({command, "-i", "5", "-h"}), 0) << err_;
    EXPECT_EQ(times, (std::vector<std::string>{api::FormatTime(begin),
                                               api::FormatTime(begin + std::chrono::seconds(5)),
                                               api::FormatTime(begin + std::chrono::seconds(10))}));
    EXPECT_EQ(Run({command, "--iterate=0"}), 2);
    EXPECT_NE(err_.find("--iterate 0: expected 1 or more"), std::string::npos) << err_;
  }
}

TEST_F(SlurmQueueTest, SqueueHasSlurmsColumns) {
  Runs();
  server_.executor.Advance(std::chrono::seconds(65));
  ASSERT_EQ(Run({"squeue"}), 0) << err_;
  const std::string number(18 - id_.size(), ' ');
  EXPECT_EQ(out_,
            StrCat("             JOBID PARTITION     NAME     USER ST       TIME  NODES "
                   "NODELIST(REASON)\n",
                   number, id_, "       all    train      ada  R       1:05      1 node-1\n"));
}

TEST_F(SlurmQueueTest, StatesAreThoseOfTheJob) {
  EXPECT_EQ(Queue({"-o", "%t %r"}), "PD Priority\n");
  JobPod(name_, "Pending");
  EXPECT_EQ(Queue({"-o", "%t %T"}), "CF CONFIGURING\n");
  Status(StrCat("/api/v1/namespaces/default/pods/", name_, "-launcher-0"),
         R"({"status":{"phase":"Running"}})");
  JobBecomes(name_, "Running");
  EXPECT_EQ(Queue({"-o", "%t %l"}), "R 30:00\n");
  // What is over has left the queue, and is shown to who asks for it.
  JobBecomes(name_, "Failed", "DeadlineExceeded");
  Status(StrCat("/api/v1/namespaces/default/pods/", name_, "-launcher-0"),
         R"({"status":{"phase":"Failed"}})");
  EXPECT_EQ(Queue({}), "");
  EXPECT_EQ(Queue({"-t", "all", "-o", "%t %r"}), "TO TimeLimit\n");
  JobBecomes(name_, "Failed", "Preempted");
  EXPECT_EQ(Queue({"-t", "PR", "-o", "%T"}), "PREEMPTED\n");
  JobBecomes(name_, "Succeeded");
  EXPECT_EQ(Queue({"-t", "completed", "-o", "%t"}), "CD\n");
}

// Its controller does the rest.
TEST_F(SlurmQueueTest, ARequeueIsANumberOfTheJob) {
  // One that waits has nothing to stop.
  ASSERT_EQ(Run({"scontrol", "requeue", id_}), 0) << err_;
  EXPECT_EQ(api::Annotation(JobOf(name_), api::keys::kRequeues), "");
  Runs();
  for (const char* times : {"1", "2"}) {
    ASSERT_EQ(Run({"scontrol", "requeue", id_}), 0) << err_;
    EXPECT_EQ(api::Annotation(JobOf(name_), api::keys::kRequeues), times);
  }
  ASSERT_EQ(Sbatch("-J once --no-requeue"), 0) << err_;
  const std::string number = Number(), once = "once-" + number;
  EXPECT_EQ(EnvOf(PodSpec(JobOf(once)), "SWELL_SLURM_NO_REQUEUE"), "1");
  JobPod(once, "Running");
  JobBecomes(once, "Running");
  EXPECT_EQ(Run({"scontrol", "requeue", number}), 1);
  EXPECT_NE(err_.find("was submitted with --no-requeue"), std::string::npos) << err_;
}

TEST_F(SlurmQueueTest, ARequeuedJobMayBeHeld) {
  Runs();
  ASSERT_EQ(Run({"scontrol", "requeuehold", id_}), 0) << err_;
  const json::Value job = JobOf(name_);
  EXPECT_EQ(api::Annotation(job, api::keys::kRequeues), "1");
  EXPECT_EQ(api::Annotation(job, api::keys::kHeld), "user");
  EXPECT_TRUE(json::GetBool(job, {"spec", "suspend"}));
  ASSERT_EQ(Run({"scontrol", "release", id_}), 0) << err_;
  EXPECT_FALSE(json::GetBool(JobOf(name_), {"spec", "suspend"}));
  ASSERT_EQ(Sbatch("-J waits"), 0) << err_;
  const std::string number = Number();
  ASSERT_EQ(Run({"scontrol", "requeuehold", number}), 0) << err_;
  EXPECT_EQ(Queue({"-n", "waits", "-o", "%t %R"}), "PD (JobHeldUser)\n");
  EXPECT_EQ(api::Annotation(JobOf("waits-" + number), api::keys::kRequeues), "");
}

TEST_F(SlurmQueueTest, AnAdministratorDrainsNodes) {
  ASSERT_EQ(Run({"scontrol", "update", "NodeName=node-[1-2]", "State=DRAIN", "Reason=new disks"}),
            0)
      << err_;
  ASSERT_EQ(Run({"sinfo", "-R", "-h"}), 0) << err_;
  EXPECT_NE(out_.find("new disks"), std::string::npos) << out_;
  ASSERT_EQ(Run({"scontrol", "update", "nodename=node-1", "state=resume"}), 0) << err_;
  ASSERT_EQ(Run({"sinfo", "-N", "-h", "-p", "all", "-o", "%N %t %E"}), 0) << err_;
  EXPECT_EQ(out_, "node-1 idle none\nnode-2 drain new disks\n");
  const json::Value node = Get("/api/v1/nodes/node-1");
  EXPECT_EQ(json::Find(node, {"spec", "unschedulable"}), nullptr);
  EXPECT_EQ(json::Find(node, {"metadata", "annotations", "swell.dev/slurm-drain-reason"}), nullptr);
  ASSERT_EQ(Run({"scontrol", "update", "NodeName=node-2", "Reason=new cables"}), 0) << err_;
  ASSERT_EQ(Run({"sinfo", "-N", "-h", "-p", "all", "-n", "node-2", "-o", "%t %E"}), 0) << err_;
  EXPECT_EQ(out_, "drain new cables\n");
  EXPECT_EQ(Run({"scontrol", "update", "NodeName=node-1", "Reason=x"}), 1);
  EXPECT_NE(err_.find("node node-1 takes jobs"), std::string::npos) << err_;
  ASSERT_EQ(Run({"scontrol", "update", "NodeName=ALL", "State=IDLE"}), 0) << err_;
  ASSERT_EQ(Run({"sinfo", "-R", "-h"}), 0) << err_;
  EXPECT_EQ(out_, "");
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"NodeName=node-1", "State=DRAIN"},
        {"NodeName=node-1", "State=DOWN", "Reason=x"},
        {"NodeName=node-1", "JobId=1", "State=RESUME"},
        {"JobId=1", "State=DRAIN"}}) {
    std::vector<std::string> words{"scontrol", "update"};
    words.insert(words.end(), wrong.begin(), wrong.end());
    EXPECT_EQ(Run(words), 2) << out_;
  }
  EXPECT_EQ(Run({"scontrol", "update", "NodeName=node-1", "Weight=3"}), 2);
  EXPECT_NE(err_.find("\"Weight=3\": only State and Reason of nodes can be changed\n"),
            std::string::npos)
      << err_;
  EXPECT_EQ(Run({"scontrol", "update", "NodeName=node-9", "State=RESUME"}), 1);
  EXPECT_NE(err_.find("node-9"), std::string::npos) << err_;
  EXPECT_EQ(Run({"scontrol", "show", "config"}), 2);
  EXPECT_NE(err_.find("there is no slurm.conf"), std::string::npos) << err_;
}

TEST_F(SlurmQueueTest, AJobThatCancelledItselfIsCancelledByItsUser) {
  Runs();
  JobBecomes(name_, "Failed", std::string(api::keys::kCancelled));
  Status(StrCat("/api/v1/namespaces/default/pods/", name_, "-launcher-0"),
         R"({"status":{"phase":"Failed"}})");
  ASSERT_EQ(Run({"sacct", "-n", "-P", "-o", "State"}), 0) << err_;
  EXPECT_EQ(out_, "CANCELLED by ada\n");
}

TEST_F(SlurmQueueTest, JobsHaveTheAccountOfTheirNamespace) {
  EXPECT_EQ(json::GetString(PodSpec(JobOf(name_)), {"serviceAccountName"}), "");
  Create("{apiVersion: v1, kind: ServiceAccount, metadata: {name: slurm-job}}");
  ASSERT_EQ(Sbatch("-J next"), 0) << err_;
  EXPECT_EQ(json::GetString(PodSpec(JobOf("next-" + Number())), {"serviceAccountName"}),
            "slurm-job");
}

TEST_F(SlurmQueueTest, ReasonsAreSlurmsWordsForTheSchedulersSentences) {
  EXPECT_EQ(slurm::ReasonOf("0/2 nodes are available: 2 Insufficient nvidia.com/gpu."),
            "Resources");
  EXPECT_EQ(slurm::ReasonOf("project vision would be above its limit"), "AssocGrpGRES");
  EXPECT_EQ(slurm::ReasonOf("node(s) were held for default/big"), "Priority");
  EXPECT_EQ(slurm::ReasonOf(""), "Priority");
}

TEST_F(SlurmQueueTest, FiltersChooseJobs) {
  ASSERT_EQ(Sbatch("-J other -A vision"), 0) << err_;
  const std::string other = Number();
  EXPECT_EQ(Queue({"-o", "%i"}), StrCat(id_, "\n", other, "\n"));
  EXPECT_EQ(Queue({"-o", "%i", "-n", "other"}), other + "\n");
  EXPECT_EQ(Queue({"-o", "%i", "-j", id_}), id_ + "\n");
  EXPECT_EQ(Queue({"-o", "%i", "-A", "vision"}), other + "\n");
  EXPECT_EQ(Queue({"-o", "%i", "-u", "bob"}), "");
  EXPECT_EQ(Queue({"-o", "%i", "--me"}), StrCat(id_, "\n", other, "\n"));
  EXPECT_EQ(Run({"squeue", "-j", "999"}), 1);
  EXPECT_EQ(Run({"squeue", "-t", "XX"}), 2);
  EXPECT_EQ(Run({"squeue", "-p", "nosuch"}), 1);
  EXPECT_NE(err_.find("Invalid partition; available: big, all"), std::string::npos) << err_;
  EXPECT_EQ(Queue({"-o", "%i", "-p", "all"}), StrCat(id_, "\n", other, "\n"));
  EXPECT_EQ(Queue({"-o", "%z %E", "-j", id_}), "N/A (null)\n");
  EXPECT_EQ(err_, "squeue: warning: nothing is known here for %z; N/A stands in its place\n");
  EXPECT_EQ(Run({"squeue", "-o", "%"}), 2);
  EXPECT_EQ(Queue({"--start", "-o", "%i %S", "-j", id_}), id_ + " N/A\n");
  // What is over has left the queue, and is known.
  ASSERT_EQ(Run({"scancel", other}), 0) << err_;
  EXPECT_EQ(Queue({"-j", other}), "");
}

TEST_F(SlurmQueueTest, JobsOfOthersHaveTheirNameForANumber) {
  ASSERT_EQ(Run({"swell", "submit", "mnist", "--image", "img", "--gpus", "2", "--", "python"}), 0)
      << err_;
  EXPECT_EQ(Queue({"-o", "%i %D %b"}), StrCat(id_, " 1 gres/gpu:4\nmnist 1 gres/gpu:2\n"));
  ASSERT_EQ(Run({"squeue", "--json"}), 0);
  const auto document = json::Parse(out_);
  ASSERT_TRUE(document.ok());
  EXPECT_EQ(json::GetString(json::GetArray(*document, {"jobs"})[0], {"job_state"}), "PENDING");
  const json::Value& first = json::GetArray(*document, {"jobs"})[0];
  EXPECT_EQ(std::to_string(json::GetInt(first, {"job_id"})), id_);
  EXPECT_EQ(json::GetInt(first, {"nodes"}), 1);
  EXPECT_EQ(json::GetInt(first, {"time_limit"}), 30);
  EXPECT_EQ(json::GetInt(first, {"submit_time"}), server_.executor.Now().unix_ns / 1'000'000'000);
}

TEST_F(SlurmQueueTest, ScancelEndsAJobAndSacctRemembersIt) {
  Runs();
  ASSERT_EQ(Run({"scancel", id_}), 0) << err_;
  EXPECT_EQ(Queue({"-t", "all"}), "");
  ASSERT_EQ(Run({"sacct", "-n", "-P", "-j", id_, "-o", "JobID,JobName,State,NodeList"}), 0) << err_;
  EXPECT_EQ(out_, StrCat(id_, "|train|CANCELLED by ada|node-1\n"));
  EXPECT_EQ(Run({"scancel", id_}), 1);
  EXPECT_NE(err_.find("Invalid job id " + id_), std::string::npos) << err_;
  EXPECT_EQ(Run({"scancel"}), 2);
}

TEST_F(SlurmQueueTest, ScancelTakesSomeTasksOfAnArray) {
  ASSERT_EQ(Sbatch("-J sweep --array=0-4", {"--parsable"}), 0) << err_;
  const std::string array = Number();
  ASSERT_EQ(Run({"scancel", array + "_[1-3]"}), 0) << err_;
  EXPECT_EQ(Queue({"-o", "%i", "-n", "sweep"}), StrCat(array, "_[0,4]\n"));
  EXPECT_EQ(Queue({"-r", "-o", "%i", "-n", "sweep"}), StrCat(array, "_0\n", array, "_4\n"));
  ASSERT_EQ(Run({"scancel", array}), 0) << err_;
  EXPECT_EQ(Queue({"-o", "%i", "-n", "sweep"}), "");
  ASSERT_EQ(Run({"scancel", "-t", "PENDING", "-u", "ada"}), 0) << err_;
  EXPECT_EQ(Queue({}), "");
}

TEST_F(SlurmQueueTest, SacctTellsHowJobsEnded) {
  JobPod(name_, "Failed",
         R"(,"containerStatuses":[{"name":"node","image":"img","imageID":"img","ready":false,)"
         R"("restartCount":0,"state":{"terminated":{"exitCode":3,"reason":"Error"}}}])");
  JobBecomes(name_, "Failed", "JobFailed");
  ASSERT_EQ(Run({"sacct"}), 0) << err_;
  EXPECT_EQ(out_, StrCat("JobID           JobName  Partition    Account  AllocCPUS      State "
                         "ExitCode \n------------ ---------- ---------- ---------- ---------- "
                         "---------- -------- \n",
                         id_, std::string(12 - id_.size() + 6, ' '), "train", std::string(8, ' '),
                         "all", std::string(21, ' '), "1     FAILED      3:0 \n"));
  EXPECT_EQ(Run({"sacct", "-n", "-P", "-o", "JobID,Nonsense"}), 0);
  EXPECT_EQ(out_, id_ + "|N/A\n");
  EXPECT_NE(err_.find("nothing is known here for Nonsense"), std::string::npos) << err_;
  ASSERT_EQ(Run({"sacct", "-n", "-b", "-S", "now-1hours", "-N", "node-1"}), 0) << err_;
  EXPECT_EQ(out_, StrCat(id_, std::string(12 - id_.size(), ' '), "     FAILED      3:0 \n"));
  ASSERT_EQ(Run({"sacct", "--json", "-j", id_}), 0) << err_;
  const auto document = json::Parse(out_);
  ASSERT_TRUE(document.ok()) << out_;
  EXPECT_EQ(std::to_string(json::GetInt(json::GetArray(*document, {"jobs"})[0], {"JobID"})), id_);
  ASSERT_EQ(Run({"sacct", "-n", "-X", "-s", "CD"}), 0);
  EXPECT_EQ(out_, "");
  // Where nothing was written, as without a right to the output's folder, this alone says it.
  ASSERT_EQ(Run({"scontrol", "show", "job", id_}), 0) << err_;
  EXPECT_NE(out_.find("   Why="), std::string::npos) << out_;
  EXPECT_NE(out_.find("container node exited with 3"), std::string::npos) << out_;
}

TEST_F(SlurmQueueTest, SacctKnowsTheNodesOfPodsThatAreGone) {
  ASSERT_EQ(Sbatch("-J wide -N 3 --gpus-per-node=1", {"--parsable"}), 0) << err_;
  const std::string id = Number();
  const std::string path = StrCat("/apis/kubeflow.org/v1/namespaces/default/mpijobs/wide-", id);
  const auto becomes = [&](std::string_view condition) {
    const auto attempt = [&id](std::string_view worker, std::string_view node) {
      return StrCat(R"({"member":"wide-)", id, "-worker-", worker, R"(","node":")", node, R"("})");
    };
    Status(path,
           StrCat(R"({"status":{"attempts":[)", attempt("1", "node-1"), ",", attempt("0", "node-1"),
                  ",", attempt("1", "node-2"), R"(],"conditions":[{"type":")", condition,
                  R"(","status":"True","reason":"R","message":"M","lastTransitionTime":")",
                  api::FormatTime(server_.executor.Now()), R"("}]}})"));
    EXPECT_EQ(Run({"sacct", "-n", "-P", "-j", id, "-o", "NNodes,NodeList"}), 0) << err_;
    return out_;
  };
  EXPECT_EQ(becomes("Succeeded"), "3|node-[1-2]\n");
  // While it runs, its pods say where it is.
  EXPECT_EQ(becomes("Running"), "3|None assigned\n");
}

TEST_F(SlurmTest, ACommandThatIsNotProvidedSaysWhatDoesItsWork) {
  EXPECT_EQ(Run({"/home/ada/.swell/slurm/sreport", "user", "top", "-t", "hours"}), 1);
  EXPECT_EQ(err_,
            "sreport: there is no sreport here: swell report shows GPU use by project, user, job "
            "and time\n");
  EXPECT_EQ(Run({"swell", "slurm", "sacctmgr", "-n", "show", "assoc"}), 1);
  EXPECT_NE(err_.find("accounts are projects: swell project list"), std::string::npos) << err_;
  EXPECT_EQ(Run({"swell", "seff", "1532"}), 2);
  EXPECT_NE(err_.find("swell: there is no seff here: swell report --by job"), std::string::npos)
      << err_;
  EXPECT_EQ(Run({"swell", "squeue", "--me"}), 2);
  EXPECT_EQ(err_,
            "swell: unknown command \"squeue\"\nDid you mean: swell slurm squeue\nSee: swell "
            "--help\n");
  ASSERT_EQ(Run({"swell", "slurm", "--help"}), 0);
  EXPECT_EQ(out_.find("sreport"), std::string::npos) << out_;
}

TEST_F(SlurmQueueTest, SinfoShowsPoolsAndStates) {
  Runs();
  ASSERT_EQ(Run({"sinfo"}), 0) << err_;
  EXPECT_EQ(out_,
            "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"
            "big          up   infinite      1    mix node-1\n"
            "all*         up   infinite      1    mix node-1\n"
            "all*         up   infinite      1   idle node-2\n");
  // A partition has one line for nodes that are alike in what is shown.
  ASSERT_EQ(Run({"sinfo", "-h", "-o", "%P"}), 0) << err_;
  EXPECT_EQ(out_, "big\nall*\n");
  ASSERT_EQ(Run({"sinfo", "-h", "-p", "all", "-o", "%P %D %N"}), 0) << err_;
  EXPECT_EQ(out_, "all* 2 node-[1-2]\n");
  ASSERT_EQ(Run({"sinfo", "-h", "-p", "all", "-o", "%n"}), 0) << err_;
  EXPECT_EQ(out_, "node-1\nnode-2\n");
  ASSERT_EQ(Run({"sinfo", "-N", "-h", "-p", "all", "-o", "%N %t %G %c"}), 0) << err_;
  EXPECT_EQ(out_,
            "node-1 mix gpu:NVIDIA-A100-SXM4-80GB:8 64\nnode-2 idle gpu:NVIDIA-A100-SXM4-80GB:8 "
            "64\n");
}

TEST_F(SlurmQueueTest, ColumnsAreChosenByNames) {
  Runs();
  const std::string spaces(20 - id_.size(), ' ');
  EXPECT_EQ(Queue({"-O", "jobid,Name:.7,STATE:9|,tres-per-node:0"}),
            StrCat(id_, spaces, "  trainRUNNING  |gres/gpu:4\n"));
  EXPECT_EQ(Queue({"--Format=JobArrayID:6,tres-alloc:4,NodeList:8"}),
            StrCat(id_, std::string(6 - id_.size(), ' '), "N/A node-1  \n"));
  EXPECT_EQ(err_,
            "squeue: warning: nothing is known here for tres-alloc; N/A stands in its place\n");
  EXPECT_EQ(Run({"squeue", "-O", ","}), 2);
  ASSERT_EQ(Run({"sinfo", "-p", "all", "-O", "NodeHost:10,Features:23,GresUsed:0"}), 0) << err_;
  EXPECT_EQ(out_,
            "HOSTNAMES AVAIL_FEATURES         GRES_USED\n"
            "node-1    NVIDIA-A100-SXM4-80GB  gpu:NVIDIA-A100-SXM4-80GB:4\n"
            "node-2    NVIDIA-A100-SXM4-80GB  gpu:NVIDIA-A100-SXM4-80GB:0\n");
  ASSERT_EQ(Run({"sinfo", "-h", "-p", "big", "-o", "%N %f"}), 0) << err_;
  EXPECT_EQ(out_, "node-1 NVIDIA-A100-SXM4-80GB\n");
}

TEST_F(SlurmQueueTest, AJobThatStartsAgainLaterWaitsForThatTime) {
  const auto fails = [this](const std::string& waits) {
    Status(
        StrCat("/apis/swell.dev/v1/namespaces/default/trainingjobs/", name_),
        StrCat(R"({"status":{"failure":{"member":"m","class":"Unknown","exitCode":1,"waitsWith":")",
               waits, R"("}}})"));
    return Queue({"-o", "%t %r"});
  };
  EXPECT_EQ(fails("CrashLoopBackOff"), "PD BeginTime\n");
  EXPECT_EQ(fails("ErrImagePull"), "PD BadConstraints\n");
}

TEST_F(SlurmQueueTest, AllColumnsAreShownAtOnce) {
  Runs();
  EXPECT_TRUE(Queue({"-o", "%all"}).starts_with(StrCat(id_, "|", id_, "|", id_, "|N/A|all|train|")))
      << out_;
  EXPECT_NE(Queue({"-O", "ALL"}).find("RUNNING"), std::string::npos) << out_;
  ASSERT_EQ(Run({"sinfo", "-h", "-p", "all", "-o", "%all"}), 0) << err_;
  EXPECT_NE(out_.find("|NVIDIA-A100-SXM4-80GB|"), std::string::npos) << out_;
  ASSERT_EQ(Run({"sacct", "-n", "-P", "-j", id_, "--format=ALL"}), 0) << err_;
  EXPECT_TRUE(out_.starts_with(StrCat(id_, "|"))) << out_;
  EXPECT_EQ(err_, "");
}

TEST_F(SlurmQueueTest, SacctTakesDaysAndDelimitersAsSlurmDoes) {
  Runs();
  const std::vector<std::string> row{"sacct", "-n", "-P", "-o", "JobName,State"};
  const auto sacct = [&](std::vector<std::string> more) {
    more.insert(more.begin(), row.begin(), row.end());
    EXPECT_EQ(Run(more), 0) << err_;
    return out_;
  };
  EXPECT_EQ(sacct({"--delimiter=, "}), "train, RUNNING\n");
  EXPECT_EQ(sacct({"-p", "--delimiter=;"}), "train;RUNNING\n") << "-P counts more";
  EXPECT_EQ(sacct({"-S", "01/02/20", "-E", "12/31/2098-10:00"}), "train|RUNNING\n");
  EXPECT_EQ(sacct({"-S", "01/02/19", "-E", "01/02/20-10:00:00"}), "");
  EXPECT_EQ(sacct({"-q", "gold", "--units=G", "--noconvert"}), "");
  for (const char* wrong : {"1/2", "13/40/26", "01/02/03/04", "01/02-x"}) {
    EXPECT_EQ(Run({"sacct", "-S", wrong}), 2) << wrong;
  }
}

TEST_F(SlurmQueueTest, ScontrolWritesTheScriptOfAJob) {
  ASSERT_EQ(Run({"scontrol", "write", "batch_script", id_, "-"}), 0) << err_;
  EXPECT_TRUE(out_.starts_with("#!/bin/bash\n#SBATCH -J train")) << out_;
  const std::string file = scripts_.File("copy.sh"), script = out_;
  ASSERT_EQ(Run({"scontrol", "write", "batch_script", id_, file}), 0) << err_;
  EXPECT_EQ(*ReadFile(file), script);
  EXPECT_EQ(Run({"scontrol", "write", "batch_script", "99999"}), 1);
  EXPECT_EQ(Run({"scontrol", "write", "config"}), 2);
}

TEST_F(SlurmQueueTest, WhatScontrolLacksNamesWhatDoesItsWork) {
  EXPECT_EQ(Run({"scontrol", "suspend", id_}), 2);
  EXPECT_NE(err_.find("scontrol requeuehold JOB stops a job"), std::string::npos) << err_;
  EXPECT_EQ(Run({"scontrol", "show", "steps"}), 2);
  EXPECT_NE(err_.find("nothing records steps"), std::string::npos) << err_;
  ASSERT_EQ(Run({"scontrol", "show", "hostlist", "node-1,node-2"}), 0) << err_;
  EXPECT_EQ(out_, "node-[1-2]\n");
  // A name and its value may stand apart.
  ASSERT_EQ(Run({"scontrol", "update", "job", id_, "TimeLimit=20"}), 0) << err_;
  EXPECT_EQ(Queue({"-o", "%l"}), "20:00\n");
}

TEST_F(SlurmQueueTest, SortOrdersLines) {
  Runs();
  server_.executor.Advance(std::chrono::seconds(100));
  ASSERT_EQ(Sbatch("-J big --gpus=8 -t 2-0"), 0) << err_;
  ASSERT_EQ(Sbatch("-J any"), 0) << err_;
  EXPECT_EQ(Queue({"-o", "%j", "-S", "j"}), "any\nbig\ntrain\n");
  EXPECT_EQ(Queue({"-o", "%j", "--sort=-i"}), "any\nbig\ntrain\n");
  EXPECT_EQ(Queue({"-o", "%j", "-S", "l"}), "train\nbig\nany\n") << "no limit is the longest";
  EXPECT_EQ(Queue({"-o", "%j", "-S", "-M,j"}), "train\nany\nbig\n");
  EXPECT_EQ(Queue({"-o", "%j", "-S", "+t,-V,-j"}), "big\nany\ntrain\n");
  EXPECT_EQ(Run({"squeue", "-S", "jobid"}), 2);
  EXPECT_NE(err_.find("--sort \"jobid\""), std::string::npos) << err_;
}

TEST_F(SlurmQueueTest, SinfoSaysWhyANodeIsDrained) {
  Status("/api/v1/nodes/node-2",
         R"({"status":{"conditions":[{"type":"Ready","status":"True"},
             {"type":"CableHealthy","status":"False","reason":"CheckFailed",
              "message":"the cable is out"}]}})");
  const auto tainted = server_.Send(server_.Request(
      "PATCH", "/api/v1/nodes/node-2",
      R"({"spec":{"taints":[{"key":"swell.dev/unhealthy","effect":"NoSchedule"}]}})",
      "application/merge-patch+json"));
  ASSERT_EQ(tainted.status, 200) << tainted.text;
  ASSERT_EQ(Run({"sinfo", "-N", "-h", "-p", "all", "-o", "%N %t %E"}), 0) << err_;
  EXPECT_EQ(out_, "node-1 idle none\nnode-2 drain the cable is out\n");
  ASSERT_EQ(Run({"sinfo", "-R"}), 0) << err_;
  EXPECT_EQ(out_,
            "NODELIST              STATE REASON\nnode-2                drain the cable is out\n");
  ASSERT_EQ(Run({"scontrol", "show", "node", "node-2"}), 0) << err_;
  EXPECT_NE(out_.find("State=DRAINED"), std::string::npos) << out_;
  EXPECT_NE(out_.find("Reason=the cable is out"), std::string::npos) << out_;
}

TEST_F(SlurmQueueTest, ScontrolShowsHoldsAndReleases) {
  ASSERT_EQ(Run({"scontrol", "hold", id_}), 0) << err_;
  EXPECT_EQ(Queue({"-o", "%t %R"}), "PD (JobHeldUser)\n");
  EXPECT_TRUE(json::GetBool(JobOf(name_), {"spec", "suspend"}));
  ASSERT_EQ(Run({"scontrol", "release", id_}), 0) << err_;
  EXPECT_FALSE(json::GetBool(JobOf(name_), {"spec", "suspend"}));
  ASSERT_EQ(Run({"scontrol", "show", "job", id_}), 0) << err_;
  for (const char* part : {"JobName=train\n", "JobState=PENDING Reason=Priority",
                           "TimeLimit=00:30:00", "ReqTRES=cpu=1,node=1,gres/gpu=4"}) {
    EXPECT_NE(out_.find(part), std::string::npos) << part << "\n" << out_;
  }
  Runs();
  EXPECT_EQ(Run({"scontrol", "hold", id_}), 1);
  EXPECT_NE(err_.find("swell suspend " + name_), std::string::npos) << err_;
  ASSERT_EQ(Run({"scontrol", "show", "hostnames", "n[1-2],x"}), 0) << err_;
  EXPECT_EQ(out_, "n1\nn2\nx\n");
  ASSERT_EQ(Run({"scontrol", "show", "node", "node-2"}), 0) << err_;
  EXPECT_NE(out_.find("State=IDLE"), std::string::npos) << out_;
  ASSERT_EQ(Run({"scontrol", "show", "partition", "big"}), 0) << err_;
  EXPECT_NE(out_.find("Nodes=node-1\n"), std::string::npos) << out_;
}

TEST_F(SlurmQueueTest, OfAnArrayTheTasksThatWaitAreHeld) {
  ASSERT_EQ(Sbatch("-J sweep --array=0-1", {"--parsable"}), 0) << err_;
  const std::string array = Number();
  JobPod("sweep-" + array, "Running");
  JobBecomes("sweep-" + array, "Running");
  ASSERT_EQ(Run({"scontrol", "hold", array}), 0) << err_;
  EXPECT_EQ(Queue({"-o", "%i %t %r", "-n", "sweep"}),
            StrCat(array, "_0 R None\n", array, "_1 PD JobHeldUser\n"));
}

TEST_F(SlurmQueueTest, AGateIsShownWithItsSentence) {
  ASSERT_EQ(Sbatch("-J then -d afterok:" + id_), 0) << err_;
  const std::string then = "then-" + Number();
  auto said = server_.Send(server_.Request(
      "PATCH", "/apis/swell.dev/v1/namespaces/default/trainingjobs/" + then,
      R"({"metadata":{"annotations":{"swell.dev/gate-reason":"DependencyNeverSatisfied: job x failed"}}})",
      "application/merge-patch+json"));
  ASSERT_EQ(said.status, 200) << said.text;
  ASSERT_EQ(Run({"scontrol", "show", "job", then.substr(5)}), 0) << err_;
  for (const std::string& part :
       {StrCat("Reason=DependencyNeverSatisfied Dependency=afterok:", id_, "\n"),
        std::string("Why=job x failed\n")}) {
    EXPECT_NE(out_.find(part), std::string::npos) << part << out_;
  }
  ASSERT_EQ(Run({"swell", "why", then}), 0) << err_;
  EXPECT_EQ(out_, StrCat(then, " waits for ever: job x failed; swell delete trainingjob.swell.dev/",
                         then, " -n default removes it.\n"));
}

TEST_F(SlurmQueueTest, DependenciesHaveTheNumbersOfJobs) {
  ASSERT_EQ(Sbatch("-J sweep --array=0-2"), 0) << err_;
  const std::string array = Number();
  const std::vector<std::string> wanted{
      StrCat("afterok:", id_, ":", array, "_*"), StrCat("afternotok:", array, "_*"),
      StrCat("afterok:", array, "_0:", array, "_2,afterany:", id_)};
  std::string shown;
  for (const std::string& one : wanted) {
    std::string typed = one;
    if (const size_t star = typed.find("_*"); star != std::string::npos) typed.resize(star);
    ASSERT_EQ(Sbatch("-J then -d " + typed), 0) << err_;
    shown += one + "\n";
  }
  EXPECT_EQ(Queue({"-n", "then", "-o", "%E"}), shown);
  // The object of one that is gone is all that is known of it.
  ASSERT_EQ(Run({"swell", "delete", "trainingjob", name_}), 0) << err_;
  EXPECT_EQ(Queue({"-n", "then", "-o", "%E"}).substr(0, 9 + name_.size()),
            "afterok:" + name_ + ":");
}

TEST_F(SlurmQueueTest, AUserWhoSeesAPartIsShownThat) {
  Runs();
  AsBob(false);
  ASSERT_EQ(Run({"sinfo", "-h", "-p", "all"}), 0) << err_;
  EXPECT_EQ(out_,
            "all*         up   infinite      1    mix node-1\n"
            "all*         up   infinite      1   idle node-2\n");
  EXPECT_EQ(err_, "Only pods in namespaces that you can read are counted.\n");
  // His jobs are those of the cluster's user, whatever this machine calls him.
  ASSERT_EQ(Sbatch("-J own", {"--parsable"}), 0) << err_;
  EXPECT_EQ(Queue({"--me", "-o", "%j %u"}), "own bob\n");
}

TEST_F(SlurmQueueTest, WithinAJobItIsSaidThatItsAccountSeesNothing) {
  AsBob(true);
  variables_["SLURM_JOB_ID"] = id_;
  for (const char* command : {"squeue", "sinfo", "sacct"}) {
    EXPECT_EQ(Run({command}), 1) << command;
    EXPECT_NE(err_.find("this job's account may not do that"), std::string::npos)
        << command << ": " << err_;
  }
  EXPECT_EQ(Sbatch("-J next"), 1);
  EXPECT_NE(err_.find("run this outside of the job"), std::string::npos) << err_;
}

TEST_F(SlurmQueueTest, ATimeLimitBecomesShorterOnly) {
  ASSERT_EQ(Run({"scontrol", "update", "JobId=" + id_, "TimeLimit=10"}), 0) << err_;
  EXPECT_EQ(json::GetInt(PodSpec(JobOf(name_)), {"activeDeadlineSeconds"}), 600);
  EXPECT_EQ(Queue({"-o", "%l"}), "10:00\n");
  EXPECT_EQ(Run({"scontrol", "update", "JobId=" + id_, "TimeLimit=1-0"}), 1);
  EXPECT_NE(err_.find("can be made shorter, not longer"), std::string::npos) << err_;
  EXPECT_EQ(Run({"scontrol", "update", "JobId=" + id_, "Partition=big"}), 2);
}

TEST_F(SlurmQueueTest, TasksThatWaitGetAnotherLimit) {
  ASSERT_EQ(Sbatch("-J sweep --array=0-2"), 0) << err_;
  const std::string array = Number();
  const std::string first = "sweep-" + array;
  JobPod(first, "Running");
  JobBecomes(first, "Running");
  ASSERT_EQ(Run({"scontrol", "update", "JobId=" + array, "ArrayTaskThrottle=1"}), 0) << err_;
  EXPECT_EQ(Queue({"-n", "sweep", "-o", "%i %t %r"}),
            StrCat(array, "_0 R None\n", array, "_[1-2%1] PD JobArrayTaskLimit\n"));
  EXPECT_FALSE(json::GetBool(JobOf(first), {"spec", "suspend"})) << "it runs on";
  ASSERT_EQ(Run({"scontrol", "update", "JobId=" + array, "ArrayTaskThrottle=0"}), 0) << err_;
  EXPECT_EQ(Queue({"-n", "sweep", "-t", "PD", "-o", "%i"}), array + "_[1-2]\n");
  EXPECT_EQ(Run({"scontrol", "update", "JobId=" + id_, "ArrayTaskThrottle=1"}), 1);
  EXPECT_NE(err_.find("is not an array"), std::string::npos) << err_;
  EXPECT_EQ(Run({"scontrol", "update", "JobId=" + array, "ArrayTaskThrottle=-1"}), 2);
}

TEST_F(SlurmQueueTest, AJobThatWaitsGetsALaterStart) {
  ASSERT_EQ(Run({"scontrol", "update", "JobId=" + id_, "StartTime=now+1hour"}), 0) << err_;
  EXPECT_EQ(Queue({"-o", "%t %r"}), "PD BeginTime\n");
  EXPECT_TRUE(json::GetBool(JobOf(name_), {"spec", "suspend"}));
  const json::Value later = JobOf(name_);
  EXPECT_EQ(api::Annotation(later, "swell.dev/start-not-before"),
            api::FormatTime(server_.executor.Now() + std::chrono::hours(1)));
  ASSERT_EQ(Run({"scontrol", "update", "JobId=" + id_, "StartTime=now"}), 0) << err_;
  const json::Value now = JobOf(name_);
  EXPECT_EQ(api::Annotation(now, "swell.dev/start-not-before"), "");
  Runs();
  EXPECT_EQ(Run({"scontrol", "update", "JobId=" + id_, "StartTime=now+1hour"}), 1);
  EXPECT_NE(err_.find("StartTime is for jobs that wait"), std::string::npos) << err_;
}

TEST_F(SlurmQueueTest, SprioShowsWhatDecidesTheOrderOfJobsThatWait) {
  server_.executor.Advance(std::chrono::seconds(65));
  Status("/apis/swell.dev/v1/projects/vision",
         R"({"status":{"usage":{"gpu":{"allocated":2,"requested":6,"fairShare":4}}}})");
  ASSERT_EQ(Run({"sprio", "-h", "-o", "%i %r %u %Y %A %F"}), 0) << err_;
  EXPECT_EQ(out_, id_ + " all ada 0 1:05 N/A\n") << "it is charged to no project";
  ASSERT_EQ(Sbatch("-A vision"), 0) << err_;
  const std::string charged = Number();
  ASSERT_EQ(Run({"sprio", "-h", "-j", charged, "-o", "%i %o %F %N"}), 0) << err_;
  EXPECT_EQ(out_, charged + " vision 2/4 N/A\n");
  EXPECT_NE(err_.find("nothing is known here for %N"), std::string::npos) << err_;
  Runs();
  ASSERT_EQ(Run({"sprio", "-h", "-u", "ada", "-o", "%i"}), 0) << err_;
  EXPECT_EQ(out_, charged + "\n") << "a job that runs has no turn to wait for";
  EXPECT_EQ(Run({"sprio", "-n"}), 2);
  EXPECT_EQ(Run({"sprio", "-p", "nowhere"}), 1);
}

TEST_F(SlurmQueueTest, SshareShowsTheSharesOfProjects) {
  ASSERT_EQ(Run({"swell", "project", "create", "audio", "--gpu-quota", "24"}), 0) << err_;
  Status("/apis/swell.dev/v1/projects/vision",
         R"({"status":{"usage":{"gpu":{"allocated":2,"requested":6,"fairShare":4}}}})");
  ASSERT_EQ(Run({"sshare", "-P"}), 0) << err_;
  EXPECT_EQ(out_,
            "Account|RawShares|NormShares|RawUsage|Allocated|FairShare\n"
            "audio|24|0.750000|N/A|0|N/A\n"
            "vision|8|0.250000|N/A|2|4\n");
  ASSERT_EQ(Run({"sshare", "-n", "-A", "vision", "-o", "Account,Requested,User"}), 0) << err_;
  EXPECT_EQ(out_, "vision                        6        N/A \n");
  EXPECT_NE(err_.find("nothing is known here for User"), std::string::npos) << err_;
  EXPECT_EQ(Run({"sshare", "-A", "visoin"}), 1);
  EXPECT_NE(err_.find("did you mean vision?"), std::string::npos) << err_;
  EXPECT_EQ(Run({"sshare", "-u", "ada"}), 2);
}

TEST_F(SlurmQueueTest, SallocNeedsATerminalOrACommand) {
  EXPECT_EQ(Run({"salloc", "--gpus=1", "--container-image", "img"}), 2);
  EXPECT_NE(err_.find("no terminal for a shell, and no command"), std::string::npos) << err_;
  EXPECT_EQ(Run({"salloc", "--no-shell"}), 2);
}

}  // namespace
}  // namespace swell::cli
