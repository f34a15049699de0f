// What earlier starts and jobs that are gone have left: nodes in the store, logs on disk.
#include <set>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"
#include "base/temp_dir.h"
#include "kube/apiserver/test_server.h"
#include "kube/node/runtime/simulated_runtime.h"
#include "ops/nodes/job_logs.h"
#include "ops/nodes/old_nodes.h"
#include "ops/nodes/volume_files.h"

namespace swell::ops {
namespace {

const api::UserInfo kUser{"system:swell", "", {"system:masters"}};

class LeftoversTest : public ::testing::Test {
 protected:
  LeftoversTest() { EXPECT_TRUE(server_.Boot().boot.ok()); }

  void Create(const std::string& path, const std::string& body) {
    const auto answer = server_.Post(path, body);
    ASSERT_EQ(answer.status, 201) << answer.text;
  }

  apiserver::TestServer server_;
};

TEST_F(LeftoversTest, OnlyMarkedNodesThatAreNotPlannedGo) {
  std::vector<node::NodeConfig> earlier(2);
  earlier[0].name = "node-1";
  earlier[1].name = "node-2";
  MarkNodes(earlier);
  for (const node::NodeConfig& node : earlier) {
    const auto& [key, mark] = *node.annotations.begin();
    Create("/api/v1/nodes", StrCat(R"({"metadata":{"name":")", node.name, R"(","annotations":{")",
                                   key, R"(":")", mark, R"("}}})"));
  }
  Create("/api/v1/nodes", R"({"metadata":{"name":"of-an-agent"}})");
  std::shared_ptr<api::RestHandler> server(server_.server.get(), [](api::RestHandler*) {});
  client::Client client(server_.executor, server, kUser, "swell-up");
  earlier.pop_back();
  ForgetOldNodes(client, earlier);
  server_.executor.RunPosted();
  EXPECT_EQ(server_.Get("/api/v1/nodes/node-1").status, 200);
  EXPECT_EQ(server_.Get("/api/v1/nodes/node-2").status, 404);
  EXPECT_EQ(server_.Get("/api/v1/nodes/of-an-agent").status, 200);
}

class RuntimeWithLogs final : public node::SimulatedRuntime {
 public:
  using SimulatedRuntime::SimulatedRuntime;
  void KeptJobs(std::function<void(std::vector<std::string>)> done) override {
    done({kept.begin(), kept.end()});
  }
  void ForgetJob(const std::string& uid) override { kept.erase(uid); }
  std::set<std::string> kept;
};

TEST_F(LeftoversTest, LogsGoWithTheirJob) {
  const std::string jobs = "/apis/swell.dev/v1/namespaces/default/trainingjobs";
  const std::string body =
      R"({"apiVersion":"swell.dev/v1","kind":"TrainingJob","metadata":{"name":"NAME"},"spec":{)"
      R"("roles":{"worker":{"replicas":1,"template":{"spec":{"containers":[{"name":"main",)"
      R"("image":"python"}]}}}}}})";
  std::vector<std::string> uids;
  for (const char* name : {"a", "b"}) {
    const auto made = server_.Post(jobs, std::string(body).replace(body.find("NAME"), 4, name));
    ASSERT_EQ(made.status, 201) << made.text;
    uids.push_back(made.Str({"metadata", "uid"}));
  }
  RuntimeWithLogs runtime(server_.executor, server_.executor);
  runtime.kept = {uids[0], uids[1], "of-a-job-that-went-while-nobody-looked"};
  std::shared_ptr<api::RestHandler> server(server_.server.get(), [](api::RestHandler*) {});
  controllers::Informers informers(server_.executor, server, kUser, 7);
  informers.Of(client::resources::kTrainingJobs);
  informers.Start();
  ForgetLogsWithTheirJobs(informers, runtime);
  server_.executor.Advance(std::chrono::seconds(1));
  EXPECT_EQ(runtime.kept, (std::set<std::string>{uids[0], uids[1]}));
  ASSERT_EQ(server_.Delete(jobs + "/a").status, 200);
  server_.executor.Advance(std::chrono::seconds(1));
  EXPECT_EQ(runtime.kept, std::set<std::string>{uids[1]});
}

TEST(VolumeFilesTest, AVolumesDirectoryGoesAndOthersStay) {
  TempDir folder;
  const DataDir dir{folder.path()};
  for (const char* claim : {"team/data", "team/other"}) {
    ASSERT_TRUE(MakeDirs(StrCat(dir.path, "/volumes/", claim)).ok());
  }
  ASSERT_TRUE(MakeDirs(dir.RemovedVolumesDir() + "/of-an-earlier-run").ok());
  VolumeFiles volumes(dir);
  volumes.Remove("team/data");
  volumes.Remove("team/none");
  volumes.Finish();
  EXPECT_FALSE(FileExists(dir.path + "/volumes/team/data"));
  EXPECT_TRUE(FileExists(dir.path + "/volumes/team/other"));
  EXPECT_FALSE(FileExists(dir.RemovedVolumesDir() + "/of-an-earlier-run"));
}

}  // namespace
}  // namespace swell::ops
