// arena cron, against an API server in this process.
#include "cli/cli_test_util.h"

namespace swell::cli {
namespace {

constexpr char kCrons[] = "/apis/apps.kubedl.io/v1alpha1/namespaces/default/crons";

// Serves everything but crons.
class WithoutCrons final : public api::RestHandler {
 public:
  explicit WithoutCrons(api::RestHandler& server) : server_(server) {}
  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override {
    if (!request.path.starts_with(kCrons)) {
      return server_.Handle(std::move(request), std::move(sink));
    }
    api::RestResponse response;
    response.status = 403;
    response.body.push_back(api::MakeChunk(
        R"({"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden",)"
        R"("message":"no crons for you","code":403})"));
    sink->OnResponse(std::move(response));
    return nullptr;
  }

 private:
  api::RestHandler& server_;
};

class ArenaCronTest : public CliTest {
 protected:
  int SubmitNightly(std::vector<std::string> more = {}) {
    std::vector<std::string> words{"arena",
                                   "cron",
                                   "tfjob",
                                   "--schedule=0 22 * * *",
                                   "--deadline=2027-10-01T13:00:12Z",
                                   "--history-limit=4",
                                   "--name=nightly",
                                   "--image=tensorflow",
                                   "--gpus=1",
                                   "--ps=1",
                                   "--label=team=red"};
    words.insert(words.end(), more.begin(), more.end());
    words.push_back("python a.py");
    return Run(words);
  }
  json::Value Nightly() {
    auto answer = server_.Send(server_.Request("GET", std::string(kCrons) + "/nightly"));
    EXPECT_EQ(answer.status, 200) << answer.text;
    return answer.body;
  }
};

TEST_F(ArenaCronTest, ASecondOfZeroIsLeftOut) {
  // As Arena's guide has it.
  ASSERT_EQ(SubmitNightly({"--schedule=0 0 22 * * ?"}), 0) << err_;
  EXPECT_EQ(json::GetString(Nightly(), {"spec", "schedule"}), "0 22 * * ?");
}

// The server refuses it, and says why.
TEST_F(ArenaCronTest, OtherSecondsStay) {
  ASSERT_EQ(SubmitNightly({"--schedule=30 0 22 * * ?"}), 0) << err_;
  EXPECT_EQ(json::GetString(Nightly(), {"spec", "schedule"}), "30 0 22 * * ?");
}

TEST_F(ArenaCronTest, SubmitsWhatArenaSubmits) {
  ASSERT_EQ(SubmitNightly({"--concurrency-policy=Forbid"}), 0) << err_;
  EXPECT_EQ(out_,
            "configmap/nightly-tfjob created\n"
            "configmap/nightly-tfjob labeled\n"
            "cron.apps.kubedl.io/nightly created\n");
  EXPECT_EQ(err_,
            "INFO[0000] The cron tfjob nightly has been submitted successfully\n"
            "INFO[0000] You can run `arena cron get nightly` to check the cron status\n");
  const json::Value cron = Nightly();
  EXPECT_EQ(json::GetString(cron, {"spec", "schedule"}), "0 22 * * *");
  EXPECT_EQ(json::GetString(cron, {"spec", "concurrencyPolicy"}), "Forbid");
  EXPECT_EQ(json::GetString(cron, {"spec", "deadline"}), "2027-10-01T13:00:12Z");
  EXPECT_EQ(json::GetInt(cron, {"spec", "historyLimit"}), 4);
  EXPECT_EQ(json::GetString(cron, {"spec", "template", "apiVersion"}), "kubeflow.org/v1");
  EXPECT_EQ(json::GetString(cron, {"spec", "template", "kind"}), "TFJob");
  const json::Value& job = *json::Find(cron, {"spec", "template", "workload"});
  EXPECT_EQ(api::Name(job), "") << "each run has a name of its own";
  EXPECT_EQ(api::Label(job, "team"), "red");
  EXPECT_EQ(api::Label(job, "createdBy"), "Cron");
  EXPECT_EQ(json::GetInt(job, {"spec", "tfReplicaSpecs", "PS", "replicas"}), 1);
  EXPECT_EQ(SubmitNightly(), 1);
  EXPECT_EQ(err_,
            "arena: the cron nightly is already exist, please delete it first. use 'arena cron "
            "delete nightly'\n");
}

TEST_F(ArenaCronTest, TakesJobsOfPyTorchToo) {
  ASSERT_EQ(Run({"arena", "cron", "pytorchjob", "--schedule=@hourly", "--name=hourly", "--image=i",
                 "--workers=2", "python a.py"}),
            0)
      << err_;
  EXPECT_NE(err_.find("The cron pytorchjob hourly has been submitted"), std::string::npos) << err_;
  ASSERT_EQ(Run({"arena", "cron", "list"}), 0) << err_;
  EXPECT_EQ(out_,
            "NAME    TYPE        SCHEDULE  SUSPEND  DEADLINE  CONCURRENCYPOLICY\n"
            "hourly  PyTorchJob  @hourly   false              Allow\n");
}

TEST_F(ArenaCronTest, RefusesWhatSaysNoTime) {
  EXPECT_EQ(Run({"arena", "cron", "tfjob", "--name=n", "--image=i", "a"}), 2);
  EXPECT_NE(err_.find("--schedule must be set"), std::string::npos) << err_;
  EXPECT_EQ(SubmitNightly({"--deadline=tomorrow"}), 2);
  EXPECT_NE(err_.find("--deadline \"tomorrow\": expected a time such as"), std::string::npos)
      << err_;
  EXPECT_EQ(SubmitNightly({"--history-limit=-1"}), 2);
  EXPECT_EQ(SubmitNightly({"--concurrency-policy=Never"}), 2);
  for (const char* flag : {"--tensorboard", "--tensorboard-image=i"}) {
    EXPECT_EQ(SubmitNightly({flag}), 2) << flag;
    EXPECT_NE(err_.find("a cron has many jobs"), std::string::npos) << err_;
  }
  ASSERT_EQ(Run({"arena", "cron", "tfjob", "--help"}), 0);
  EXPECT_EQ(out_.find("logdir"), std::string::npos) << out_;
  EXPECT_NE(out_.find("name of the cron"), std::string::npos) << out_;
}

TEST_F(ArenaCronTest, SaysThatALogDirectoryHasNoEffect) {
  ASSERT_EQ(SubmitNightly({"--logdir=/logs"}), 0) << err_;
  EXPECT_NE(err_.find("WARN[0000] --logdir has no effect: a cron runs no TensorBoard\n"),
            std::string::npos)
      << err_;
}

TEST_F(ArenaCronTest, ACronThatMayNotBeReadKeepsItsConfigMap) {
  ASSERT_EQ(SubmitNightly(), 0) << err_;
  const auto connect = env_.connect;
  env_.connect = [&](const ClusterFlags& flags) {
    auto connection = connect(flags);
    connection->server = std::make_shared<WithoutCrons>(*server_.server);
    return connection;
  };
  EXPECT_EQ(Run({"arena", "delete", "nightly"}), 1);
  EXPECT_NE(err_.find("no crons for you"), std::string::npos) << err_;
  EXPECT_EQ(Run({"arena", "submit", "tfjob", "--name=nightly", "--image=i", "a"}), 1);
  EXPECT_NE(err_.find("no crons for you"), std::string::npos) << err_;
  env_.connect = connect;
  ASSERT_EQ(Run({"arena", "cron", "delete", "nightly"}), 0) << err_;
  EXPECT_EQ(out_, "cron nightly has deleted\nconfigmap \"nightly-tfjob\" deleted\n");
}

TEST_F(ArenaCronTest, ListGetSuspendResumeAndDelete) {
  ASSERT_EQ(SubmitNightly(), 0) << err_;
  ASSERT_EQ(Run({"arena", "cron", "suspend", "nightly"}), 0) << err_;
  EXPECT_EQ(out_, "cron nightly suspend success\n");
  ASSERT_EQ(Run({"arena", "cron", "list", "-A"}), 0) << err_;
  EXPECT_EQ(out_,
            "NAMESPACE  NAME     TYPE   SCHEDULE    SUSPEND  DEADLINE              "
            "CONCURRENCYPOLICY\n"
            "default    nightly  TFJob  0 22 * * *  true     2027-10-01T13:00:12Z  Allow\n");
  ASSERT_EQ(Run({"arena", "cron", "resume", "nightly"}), 0) << err_;
  EXPECT_EQ(out_, "cron nightly resume success\n");
  Status(std::string(kCrons) + "/nightly",
         R"({"status":{"lastScheduleTime":"2026-01-01T22:00:00Z","history":[{"object":)"
         R"({"apiGroup":"kubeflow.org","kind":"TFJob","name":"nightly-1767304800"},)"
         R"("status":"Succeeded","created":"2026-01-01T22:00:00Z",)"
         R"("finished":"2026-01-01T22:30:00Z"}]}})");
  const std::string created(api::CreationTimestamp(Nightly()));
  ASSERT_EQ(Run({"arena", "cron", "get", "nightly"}), 0) << err_;
  EXPECT_EQ(out_, StrCat("Name:               nightly\n"
                         "Namespace:          default\n"
                         "Type:               TFJob\n"
                         "Schedule:           0 22 * * *\n"
                         "Suspend:            false\n"
                         "ConcurrencyPolicy:  Allow\n"
                         "CreationTimestamp:  ",
                         created,
                         "\n"
                         "LastScheduleTime:   2026-01-01T22:00:00Z\n"
                         "Deadline:           2027-10-01T13:00:12Z\n"
                         "\n"
                         "History:\n"
                         "NAME                STATUS     TYPE   CREATETIME            FINISHTIME\n"
                         "----                ------     ----   ----------            ----------\n"
                         "nightly-1767304800  Succeeded  TFJob  2026-01-01T22:00:00Z  "
                         "2026-01-01T22:30:00Z\n"));
  ASSERT_EQ(Run({"arena", "cron", "get", "nightly", "-o", "json"}), 0) << err_;
  const json::Value told = json::Parse(out_).value();
  EXPECT_EQ(json::GetString(told, {"type"}), "TFJob");
  EXPECT_EQ(json::GetString(json::GetArray(told, {"cronHistory"})[0], {"status"}), "Succeeded");
  // Deleting a job of that name leaves the cron alone.
  EXPECT_EQ(Run({"arena", "delete", "nightly"}), 1);
  ASSERT_EQ(Run({"arena", "cron", "delete", "nightly"}), 0) << err_;
  EXPECT_EQ(out_, "cron nightly has deleted\nconfigmap \"nightly-tfjob\" deleted\n");
  for (const char* word : {"get", "suspend", "resume", "delete"}) {
    EXPECT_EQ(Run({"arena", "cron", word, "nightly"}), 1);
    EXPECT_NE(err_.find("The cron nightly doesn't exist in namespace default"), std::string::npos)
        << err_;
  }
  EXPECT_EQ(SubmitNightly(), 0) << "the name is free again: " << err_;
}

}  // namespace
}  // namespace swell::cli
