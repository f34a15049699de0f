// How many objects of a kind a project's namespace may have.
#include "kube/apiserver/admission/object_counts.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/apiserver/test_server.h"
#include "kube/store/memory_backend.h"

namespace swell::apiserver {
namespace {

constexpr char kLabPods[] = "/api/v1/namespaces/lab/pods";
constexpr char kLabMaps[] = "/api/v1/namespaces/lab/configmaps";
constexpr char kProject[] = "/apis/swell.dev/v1/projects/lab";

class ObjectCountsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    server_.Boot();
    ASSERT_EQ(server_.Post("/api/v1/namespaces", R"({"metadata":{"name":"lab"}})").status, 201);
    const Answer made =
        server_.Post("/apis/swell.dev/v1/projects",
                     R"({"apiVersion":"swell.dev/v1","kind":"Project","metadata":{"name":"lab"},)"
                     R"("spec":{"maxObjectsPerKind":2}})");
    ASSERT_EQ(made.status, 201) << made.text;
  }
  Answer MakeMap(const std::string& name) {
    return server_.Post(kLabMaps, StrCat(R"({"metadata":{"name":")", name, R"("}})"));
  }
  TestServer server_;
};

TEST_F(ObjectCountsTest, AProjectHasNoMoreOfAKindThanItMay) {
  EXPECT_EQ(server_.Post(kLabPods, PodJson("a")).status, 201);
  EXPECT_EQ(server_.Post(kLabPods, PodJson("b")).status, 201);
  const Answer third = server_.Post(kLabPods, PodJson("c"));
  EXPECT_EQ(third.status, 403);
  EXPECT_EQ(third.Message(),
            "pods \"c\" is forbidden: exceeded quota: project lab has 2 pods in namespace lab "
            "that have not ended, and may have 2; delete some, or have an administrator raise "
            "spec.maxObjectsPerKind of the "
            "project (swell project edit lab --max-objects N)");
  EXPECT_EQ(server_.Post(StrCat(kLabPods, "?dryRun=All"), PodJson("c")).status, 403);
  // Each kind has a count of its own, and so has each namespace.
  EXPECT_EQ(MakeMap("a").status, 201);
  EXPECT_EQ(server_.Post(kPods, PodJson("c")).status, 201);
  EXPECT_EQ(server_.Delete(StrCat(kLabPods, "/a")).status, 200);
  EXPECT_EQ(server_.Post(StrCat(kLabPods, "?dryRun=All"), PodJson("c")).status, 201);
  EXPECT_EQ(server_.Post(kLabPods, PodJson("c")).status, 201);
  EXPECT_EQ(server_.Post(kLabPods, PodJson("d")).status, 403);
  EXPECT_EQ(server_.Merge(kProject, R"({"spec":{"maxObjectsPerKind":3}})").status, 200);
  EXPECT_EQ(server_.Post(kLabPods, PodJson("d")).status, 201);
}

TEST_F(ObjectCountsTest, WhatIsOnItsWayIsCounted) {
  // Three requests, before the first is on the disk.
  std::vector<std::shared_ptr<TestSink>> sinks;
  std::vector<std::unique_ptr<api::RestCall>> calls;
  for (const char* name : {"a", "b", "c"}) {
    sinks.push_back(std::make_shared<TestSink>());
    calls.push_back(
        server_.server->Handle(server_.Request("POST", kLabPods, PodJson(name)), sinks.back()));
  }
  server_.executor.RunPosted();
  EXPECT_EQ(sinks[0]->answer.status, 201);
  EXPECT_EQ(sinks[1]->answer.status, 201);
  EXPECT_EQ(sinks[2]->answer.status, 403);
}

TEST_F(ObjectCountsTest, ANewServerCountsWhatIsStored) {
  EXPECT_EQ(MakeMap("a").status, 201);
  EXPECT_EQ(MakeMap("b").status, 201);
  server_.server = ApiServer::Create(server_.executor, server_.executor, server_.random,
                                     *server_.store, Options{});
  EXPECT_EQ(MakeMap("c").status, 403);
  EXPECT_EQ(server_.Delete(StrCat(kLabMaps, "/a")).status, 200);
  EXPECT_EQ(MakeMap("c").status, 201);
}

TEST_F(ObjectCountsTest, ABoundIsSeenThoughTheStatusOfItsProjectIsWrittenAllTheTime) {
  auto write_status = [this](const std::string& name) {
    const Answer written = server_.Merge(StrCat(kProject, "/status"),
                                         StrCat(R"({"status":{"message":")", name, R"("}})"));
    EXPECT_EQ(written.status, 200) << written.text;
    return MakeMap(name).status;
  };
  EXPECT_EQ(write_status("a"), 201);
  EXPECT_EQ(write_status("b"), 201);
  EXPECT_EQ(write_status("c"), 403);
  EXPECT_EQ(server_.Merge(kProject, R"({"spec":{"maxObjectsPerKind":3}})").status, 200);
  EXPECT_EQ(write_status("c"), 201);
  EXPECT_EQ(write_status("d"), 403);
  EXPECT_EQ(server_.Delete(kProject).status, 200);
  EXPECT_EQ(MakeMap("d").status, 201);
}

TEST_F(ObjectCountsTest, PodsThatHaveEndedDoNotCount) {
  auto end = [this](const std::string& name, const std::string& phase) {
    const Answer ended = server_.Merge(StrCat(kLabPods, "/", name, "/status"),
                                       StrCat(R"({"status":{"phase":")", phase, R"("}})"));
    EXPECT_EQ(ended.status, 200) << ended.text;
  };
  auto make = [this](const std::string& name) {
    return server_.Post(kLabPods, PodJson(name)).status;
  };
  EXPECT_EQ(make("a"), 201);
  EXPECT_EQ(make("b"), 201);
  end("a", "Running");
  EXPECT_EQ(make("c"), 403);
  end("a", "Succeeded");
  end("b", "Failed");
  EXPECT_EQ(make("c"), 201);
  server_.server = ApiServer::Create(server_.executor, server_.executor, server_.random,
                                     *server_.store, Options{});
  EXPECT_EQ(make("d"), 201);
  EXPECT_EQ(make("e"), 403);
  // A pod that has ended, and that a finalizer keeps, counts once it is deleted.
  const std::string pod = StrCat(kLabPods, "/b");
  ASSERT_EQ(server_.Merge(pod, R"({"metadata":{"finalizers":["x.example.com/y"]}})").status, 200);
  EXPECT_EQ(server_.Delete(StrCat(kLabPods, "/d")).status, 200);
  EXPECT_EQ(server_.Delete(pod).status, 200);
  EXPECT_EQ(make("e"), 403);
  ASSERT_EQ(server_.Merge(pod, R"({"metadata":{"finalizers":null}})").status, 200);
  EXPECT_EQ(make("d"), 201);
  // What has not counted is not taken off once more, and a new pod of its name counts.
  EXPECT_EQ(server_.Delete(StrCat(kLabPods, "/a")).status, 200);
  EXPECT_EQ(make("a"), 403);
  EXPECT_EQ(server_.Delete(StrCat(kLabPods, "/c")).status, 200);
  EXPECT_EQ(make("a"), 201);
  EXPECT_EQ(make("c"), 403);
}

// A project that may have one MiB. Objects are of a researcher's.
class ObjectBytesTest : public ObjectCountsTest {
 protected:
  void SetUp() override {
    ObjectCountsTest::SetUp();
    SetBounds(R"({"maxObjectsPerKind":100,"maxObjectsMib":1})");
  }
  void SetBounds(const std::string& spec) {
    const Answer set = server_.Merge(kProject, StrCat(R"({"spec":)", spec, "}"));
    EXPECT_EQ(set.status, 200) << set.text;
  }
  static std::string Data(size_t kib) {
    return StrCat(R"("data":{"x":")", std::string(kib << 10, 'x'), R"("})");
  }
  Answer Make(const std::string& plural, const std::string& name, size_t kib) {
    return server_.Post(
        StrCat("/api/v1/namespaces/lab/", plural),
        StrCat(R"({"metadata":{"name":")", name, R"("},)",
               plural == "secrets" ? "\"stringData\"" + Data(kib).substr(6) : Data(kib), "}"));
  }
  Answer Change(const std::string& name, size_t kib) {
    return server_.Merge(StrCat(kLabMaps, "/", name), StrCat("{", Data(kib), "}"));
  }
};

TEST_F(ObjectBytesTest, AProjectsObjectsHaveNoMoreBytesThanTheyMay) {
  EXPECT_EQ(Make("configmaps", "a", 600).status, 201);
  EXPECT_EQ(Make("secrets", "b", 600).status, 201);
  const Answer refused = Make("configmaps", "c", 0);
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(
      refused.Message(),
      "configmaps \"c\" is forbidden: exceeded quota: the objects of project lab in namespace "
      "lab have 1 MiB, and may have 1 MiB; delete some, or have an administrator raise "
      "spec.maxObjectsMib of the project (swell project edit lab --max-objects-mib N)");
  // Every kind counts; other namespaces have room.
  EXPECT_EQ(server_.Post(kLabPods, PodJson("p")).status, 403);
  EXPECT_EQ(server_.Post(kPods, PodJson("p")).status, 201);
  EXPECT_EQ(server_.Delete(StrCat(kLabMaps, "/a")).status, 200);
  EXPECT_EQ(server_.Post(kLabPods, PodJson("p")).status, 201);
  EXPECT_EQ(Make("configmaps", "a", 600).status, 201);
  EXPECT_EQ(Make("configmaps", "c", 0).status, 403);
  SetBounds(R"({"maxObjectsMib":2})");
  EXPECT_EQ(Make("configmaps", "c", 0).status, 201);
}

TEST_F(ObjectBytesTest, ObjectsDoNotGrowBeyondItEither) {
  EXPECT_EQ(Make("configmaps", "a", 1).status, 201);
  EXPECT_EQ(Make("configmaps", "b", 600).status, 201);
  EXPECT_EQ(Change("a", 600).status, 200);
  EXPECT_EQ(Change("a", 601).status, 403);
  // The system still writes to them.
  auto by_system = server_.Request("PATCH", StrCat(kLabMaps, "/a"),
                                   R"({"metadata":{"annotations":{"seen":"yes"}}})",
                                   "application/merge-patch+json");
  by_system.user = {"system:kube-controller-manager", "", {}};
  EXPECT_EQ(server_.Send(std::move(by_system)).status, 200);
  EXPECT_EQ(Change("a", 1).status, 200);
  EXPECT_EQ(Change("a", 300).status, 200);
  EXPECT_EQ(server_.Delete(StrCat(kLabMaps, "/b")).status, 200);
  EXPECT_EQ(Change("a", 900).status, 200);
}

TEST_F(ObjectBytesTest, ANewServerCountsTheBytesThatAreStored) {
  EXPECT_EQ(Make("configmaps", "a", 600).status, 201);
  EXPECT_EQ(Make("configmaps", "b", 600).status, 201);
  server_.server = ApiServer::Create(server_.executor, server_.executor, server_.random,
                                     *server_.store, Options{});
  EXPECT_EQ(Make("configmaps", "c", 0).status, 403);
  EXPECT_EQ(Change("a", 100).status, 200);
  EXPECT_EQ(Make("configmaps", "c", 0).status, 201);
}

TEST_F(ObjectBytesTest, WritesThatFailTakeNoRoom) {
  const auto disk = std::make_shared<store::MemoryDisk>();
  server_.server.reset();
  server_.store = std::move(store::Store::Open(server_.executor,
                                               store::MakeFaultyBackend(server_.executor, disk)))
                      .value();
  server_.server = ApiServer::Create(server_.executor, server_.executor, server_.random,
                                     *server_.store, Options{});
  SetUp();
  EXPECT_EQ(Make("configmaps", "a", 600).status, 201);
  disk->failing_commits = 3;
  EXPECT_EQ(Make("configmaps", "b", 600).status, 507);
  EXPECT_EQ(Change("a", 900).status, 507);
  EXPECT_EQ(server_.Delete(StrCat(kLabMaps, "/a")).status, 507);
  EXPECT_EQ(Make("configmaps", "b", 600).status, 201);
  EXPECT_EQ(Make("configmaps", "c", 0).status, 403);
}

TEST_F(ObjectCountsTest, EventsHaveBoundsOfTheirOwn) {
  for (int i = 0; i < 4; ++i) {
    const Answer made =
        server_.Post("/api/v1/namespaces/lab/events",
                     StrCat(R"({"metadata":{"name":"e)", i,
                            R"("},"involvedObject":{"kind":"Pod","namespace":"lab","name":"x"}})"));
    EXPECT_EQ(made.status, 201) << made.text;
  }
}

}  // namespace
}  // namespace swell::apiserver
