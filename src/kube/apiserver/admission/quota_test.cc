// Quotas and limit ranges.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/apiserver/test_server.h"

namespace swell::apiserver {
namespace {

constexpr char kQuotas[] = "/api/v1/namespaces/default/resourcequotas";
constexpr char kRanges[] = "/api/v1/namespaces/default/limitranges";

std::string SizedPod(const std::string& name, const std::string& resources) {
  return StrCat(R"({"metadata":{"name":")", name,
                R"("},"spec":{"containers":[{"name":"c","image":"i","resources":)", resources,
                "}]}}");
}

class QuotaTest : public ::testing::Test {
 protected:
  void SetUp() override { server.Boot(); }
  void Quota(const std::string& name, const std::string& spec) {
    const Answer made =
        server.Post(kQuotas, StrCat(R"({"metadata":{"name":")", name, R"("},"spec":)", spec, "}"));
    ASSERT_EQ(made.status, 201) << made.text;
    server.executor.Advance(std::chrono::seconds(1));
  }
  // A pod has at most 4 GiB, and all together 4 CPUs and 8 GiB.
  void BoundAmounts() {
    ASSERT_EQ(server
                  .Post(kRanges, R"({"metadata":{"name":"r"},"spec":{"limits":[
                      {"type":"Pod","max":{"memory":"4Gi"}}]}})")
                  .status,
              201);
    Quota("all", R"({"hard":{"requests.cpu":"4","limits.memory":"8Gi"}})");
  }
  std::string Used(const std::string& name, std::string_view what) {
    server.executor.Advance(std::chrono::seconds(1));
    return server.Get(StrCat(kQuotas, "/", name)).Str({"status", "used", what});
  }
  TestServer server;
};

// The resize subresource.
TEST_F(QuotaTest, ResizesAreCountedBoundedAndChecked) {
  const std::string strategic = "application/strategic-merge-patch+json";
  Quota("cpu", R"({"hard":{"requests.cpu":"3"}})");
  auto has = [](std::string_view cpu) {
    return StrCat(R"({"requests":{"cpu":")", cpu, R"(","memory":"1Gi"}})");
  };
  ASSERT_EQ(server.Post(kPods, SizedPod("a", has("1"))).status, 201);
  auto resize = [&](const std::string& resources, const std::string& more = "") {
    return server.Patch(
        StrCat(kPods, "/a/resize"),
        StrCat(R"({"metadata":{"labels":{"x":"y"}},"spec":{"hostname":"h",)",
               R"("containers":[{"name":"c","resources":)", resources, more, "}]}}"),
        strategic);
  };
  const Answer grown = resize(R"({"requests":{"cpu":"2"}})");
  ASSERT_EQ(grown.status, 200) << grown.text;
  EXPECT_EQ(grown.Str({"spec", "hostname"}), "") << "only amounts change";
  EXPECT_EQ(json::Find(grown.body, {"metadata", "labels", "x"}), nullptr);
  EXPECT_EQ(json::GetInt(grown.body, {"metadata", "generation"}), 2);
  EXPECT_EQ(json::GetString(json::GetArray(grown.body, {"spec", "containers"})[0],
                            {"resources", "requests", "cpu"}),
            "2");
  EXPECT_EQ(Used("cpu", "requests.cpu"), "2");
  EXPECT_EQ(resize(R"({"requests":{"cpu":"4"}})").Message(),
            "pods \"a\" is forbidden: exceeded quota: cpu, requested: requests.cpu=2, "
            "used: requests.cpu=2, limited: requests.cpu=3");
  EXPECT_EQ(resize(R"({"requests":{"cpu":"500m"}})").status, 200);
  EXPECT_EQ(Used("cpu", "requests.cpu"), "500m");
  EXPECT_EQ(resize(R"({"requests":{"memory":"-1"}})").Message(),
            "Pod \"a\" is invalid: spec.containers[0].resources.requests[memory]: Invalid value: "
            "\"-1\": must be greater than or equal to 0");
  // What may not change.
  EXPECT_EQ(resize(R"({"requests":{"cpu":null}})").Message(),
            "Pod \"a\" is invalid: spec.containers[0].resources.requests: Forbidden: resource "
            "requests cannot be removed");
  EXPECT_EQ(
      resize(R"({"limits":{"nvidia.com/gpu":"1"},"requests":{"nvidia.com/gpu":"1"}})").Message(),
      "Pod \"a\" is invalid: spec: Forbidden: only cpu and memory resources are mutable");
  EXPECT_EQ(resize(R"({"limits":{"cpu":"500m","memory":"1Gi"}})").Message(),
            "Pod \"a\" is invalid: spec: Invalid value: \"Burstable\": Pod QOS Class may not "
            "change as a result of resizing");
  EXPECT_EQ(server
                .Patch(StrCat(kPods, "/a/resize"),
                       R"({"spec":{"containers":[{"name":"d","image":"i"}]}})", strategic)
                .Message(),
            "Pod \"a\" is invalid: spec.containers: Forbidden: containers may not be added or "
            "removed on resize");
  // A pod's own update changes no amounts.
  EXPECT_EQ(server
                .Patch(StrCat(kPods, "/a"),
                       R"({"spec":{"containers":[{"name":"c","resources":)" + has("1") + "}]}}",
                       strategic)
                .status,
            422);
}

TEST_F(QuotaTest, AmountsOfWholePodsAreCompletedCountedAndBounded) {
  BoundAmounts();
  auto pod = [](const std::string& name, const std::string& resources) {
    return StrCat(R"({"metadata":{"name":")", name, R"("},"spec":{"resources":)", resources,
                  R"(,"containers":[{"name":"a","image":"i"},{"name":"b","image":"i",)",
                  R"("resources":{"requests":{"cpu":"1"}}}]}})");
  };
  const Answer made = server.Post(kPods, pod("a", R"({"limits":{"cpu":"3","memory":"2Gi"}})"));
  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_EQ(json::Print(*json::Find(made.body, {"spec", "resources"})),
            R"({"limits":{"cpu":"3","memory":"2Gi"},"requests":{"cpu":"1","memory":"2Gi"}})");
  EXPECT_EQ(made.Str({"status", "qosClass"}), "Burstable");
  EXPECT_EQ(Used("all", "requests.cpu"), "1");
  EXPECT_EQ(Used("all", "limits.memory"), "2Gi");
  EXPECT_EQ(
      server.Post(kPods, pod("b", R"({"requests":{"cpu":"3500m"},"limits":{"memory":"1Gi"}})"))
          .Message(),
      "pods \"b\" is forbidden: exceeded quota: all, requested: requests.cpu=3500m, used: "
      "requests.cpu=1, limited: requests.cpu=4");
  EXPECT_EQ(server.Post(kPods, pod("c", R"({"limits":{"memory":"5Gi"}})")).Message(),
            "pods \"c\" is forbidden: maximum memory usage per Pod is 4Gi, but limit is 5Gi");
  // They stay as they are: for clients that do not know them, and for those that would change them.
  const std::string whole = StrCat(kPods, "/a");
  json::Value unknowing = server.Get(whole).body;
  json::Remove(unknowing, {"spec", "resources"});
  const Answer put = server.Put(whole, json::Print(unknowing));
  EXPECT_EQ(put.status, 200) << put.text;
  EXPECT_EQ(put.Str({"spec", "resources", "limits", "cpu"}), "3");
  const std::string more = R"({"spec":{"resources":{"limits":{"cpu":"4"}}}})";
  EXPECT_EQ(server.Merge(whole, more).status, 422);
  // What the containers request may be more than a limit once it is the pod's request.
  EXPECT_EQ(server.Post(kPods, pod("d", R"({"limits":{"cpu":"500m"}})")).Message(),
            "Pod \"d\" is invalid: spec.resources.requests: Invalid value: \"1\": must be less "
            "than or equal to cpu limit");
}

TEST_F(QuotaTest, ResizesOfWholePodsAreCountedBoundedAndChecked) {
  BoundAmounts();
  ASSERT_EQ(server
                .Post(kPods, R"({"metadata":{"name":"a"},"spec":{
                    "resources":{"limits":{"cpu":"3","memory":"2Gi"}},"containers":[
                      {"name":"a","image":"i","resources":{"requests":{"cpu":"1"}}}]}})")
                .status,
            201);
  auto resize = [this](const std::string& resources) {
    return server.Merge(StrCat(kPods, "/a/resize"),
                        StrCat(R"({"spec":{"resources":)", resources, "}}"));
  };
  const Answer grown = resize(R"({"requests":{"cpu":"2"},"limits":{"memory":"3Gi"}})");
  ASSERT_EQ(grown.status, 200) << grown.text;
  EXPECT_EQ(json::Print(*json::Find(grown.body, {"spec", "resources"})),
            R"({"limits":{"cpu":"3","memory":"3Gi"},"requests":{"cpu":"2","memory":"2Gi"}})");
  EXPECT_EQ(json::GetInt(grown.body, {"metadata", "generation"}), 2);
  EXPECT_EQ(Used("all", "requests.cpu"), "2");
  EXPECT_EQ(Used("all", "limits.memory"), "3Gi");
  EXPECT_EQ(resize(R"({"requests":{"cpu":"5"},"limits":{"cpu":"5"}})").Message(),
            "pods \"a\" is forbidden: exceeded quota: all, requested: requests.cpu=3, used: "
            "requests.cpu=2, limited: requests.cpu=4");
  EXPECT_EQ(resize(R"({"limits":{"memory":"5Gi"}})").Message(),
            "pods \"a\" is forbidden: maximum memory usage per Pod is 4Gi, but limit is 5Gi");
  EXPECT_EQ(resize(R"({"limits":{"cpu":null}})").Message(),
            "Pod \"a\" is invalid: spec.resources.limits: Forbidden: pod-level resource limits "
            "cannot be removed");
  EXPECT_EQ(resize(R"({"requests":{"cpu":"500m"}})").Message(),
            "Pod \"a\" is invalid: spec.resources.requests[cpu]: Invalid value: \"500m\": must be "
            "greater than or equal to aggregate container requests of 1");
  EXPECT_EQ(resize(R"({"requests":{"cpu":"4"}})").Message(),
            "Pod \"a\" is invalid: spec.resources.requests: Invalid value: \"4\": must be less "
            "than or equal to cpu limit");
  EXPECT_EQ(resize(R"({"limits":{"hugepages-2Mi":"2Mi"}})").Message(),
            "Pod \"a\" is invalid: spec: Forbidden: only cpu and memory resources are mutable at "
            "pod-level");
  EXPECT_EQ(resize("null").status, 200) << "clients that do not know the field leave it out";
  EXPECT_EQ(server.Get(StrCat(kPods, "/a")).Str({"spec", "resources", "limits", "cpu"}), "3");
}

TEST_F(QuotaTest, CountsObjectsAndRefusesMore) {
  Quota("objects", R"({"hard":{"configmaps":"2","count/pods":"1"}})");
  EXPECT_EQ(Used("objects", "configmaps"), "0");
  EXPECT_EQ(server.Post(kMaps, R"({"metadata":{"name":"a"}})").status, 201);
  EXPECT_EQ(server.Post(kMaps, R"({"metadata":{"name":"b"}})").status, 201);
  EXPECT_EQ(Used("objects", "configmaps"), "2");
  const Answer third = server.Post(kMaps, R"({"metadata":{"name":"c"}})");
  EXPECT_EQ(third.status, 403);
  EXPECT_EQ(third.Message(),
            "configmaps \"c\" is forbidden: exceeded quota: objects, requested: configmaps=1, "
            "used: configmaps=2, limited: configmaps=2");
  EXPECT_EQ(server.Delete(StrCat(kMaps, "/a")).status, 200);
  EXPECT_EQ(Used("objects", "configmaps"), "1");
  EXPECT_EQ(server.Post(kMaps, R"({"metadata":{"name":"c"}})").status, 201);
}

TEST_F(QuotaTest, CountsWhatPodsAskFor) {
  Quota("compute", R"({"hard":{"requests.cpu":"1","limits.memory":"1Gi","pods":"5",
                      "requests.nvidia.com/gpu":"2"}})");
  EXPECT_EQ(server.Post(kPods, PodJson("none")).Message(),
            "pods \"none\" is forbidden: failed quota: compute: must specify "
            "limits.memory for: c; requests.cpu for: c");
  const std::string half =
      R"({"requests":{"cpu":"400m","memory":"1Mi"},"limits":{"memory":"300Mi","nvidia.com/gpu":1}})";
  EXPECT_EQ(server.Post(kPods, SizedPod("a", half)).status, 201);
  EXPECT_EQ(server.Post(kPods, SizedPod("b", half)).status, 201);
  EXPECT_EQ(Used("compute", "requests.cpu"), "800m");
  EXPECT_EQ(Used("compute", "limits.memory"), "600Mi");
  EXPECT_EQ(Used("compute", "requests.nvidia.com/gpu"), "2");
  EXPECT_EQ(server.Post(kPods, SizedPod("c", half)).Message(),
            "pods \"c\" is forbidden: exceeded quota: compute, requested: "
            "requests.cpu=400m,requests.nvidia.com/gpu=1, used: "
            "requests.cpu=800m,requests.nvidia.com/gpu=2, limited: "
            "requests.cpu=1,requests.nvidia.com/gpu=2");
  // What has ended makes room.
  EXPECT_EQ(server.Merge(StrCat(kPods, "/a/status"), R"({"status":{"phase":"Succeeded"}})").status,
            200);
  EXPECT_EQ(Used("compute", "requests.cpu"), "400m");
  EXPECT_EQ(server.Post(kPods, SizedPod("c", half)).status, 201);
}

TEST_F(QuotaTest, ScopesNarrowIt) {
  Quota("best", R"({"hard":{"pods":"1"},"scopes":["BestEffort"]})");
  EXPECT_EQ(server.Post(kPods, SizedPod("a", R"({"requests":{"cpu":"1"}})")).status, 201);
  EXPECT_EQ(server.Post(kPods, PodJson("b")).status, 201);
  EXPECT_EQ(Used("best", "pods"), "1");
  EXPECT_EQ(server.Post(kPods, PodJson("c")).status, 403);
  EXPECT_EQ(server.Post(kPods, SizedPod("d", R"({"requests":{"cpu":"1"}})")).status, 201);
}

TEST_F(QuotaTest, DryRunsAndRefusedObjectsCostNothing) {
  Quota("objects", R"({"hard":{"configmaps":"1"}})");
  EXPECT_EQ(server.Post(StrCat(kMaps, "?dryRun=All"), R"({"metadata":{"name":"a"}})").status, 201);
  EXPECT_EQ(server.Post(kMaps, R"({"metadata":{"name":"Bad_Name"}})").status, 422);
  EXPECT_EQ(Used("objects", "configmaps"), "0");
  EXPECT_EQ(server.Post(kMaps, R"({"metadata":{"name":"a"}})").status, 201);
  EXPECT_EQ(server.Post(kMaps, R"({"metadata":{"name":"a"}})").status, 409);
}

TEST_F(QuotaTest, LimitRangesFillInWhatIsLeftOut) {
  ASSERT_EQ(server
                .Post(kRanges, R"({"metadata":{"name":"r"},"spec":{"limits":[{"type":"Container",
      "default":{"cpu":"500m"},"defaultRequest":{"cpu":"100m","memory":"64Mi"}}]}})")
                .status,
            201);
  const Answer pod = server.Post(kPods, PodJson("p"));
  ASSERT_EQ(pod.status, 201) << pod.text;
  const json::Value& container = json::GetArray(pod.body, {"spec", "containers"})[0];
  EXPECT_EQ(json::GetString(container, {"resources", "requests", "cpu"}), "100m");
  EXPECT_EQ(json::GetString(container, {"resources", "requests", "memory"}), "64Mi");
  EXPECT_EQ(json::GetString(container, {"resources", "limits", "cpu"}), "500m");
  EXPECT_EQ(pod.Str({"metadata", "annotations", "kubernetes.io/limit-ranger"}),
            "LimitRanger plugin set: cpu, memory request for container c; cpu limit for container "
            "c");
  EXPECT_EQ(pod.Str({"status", "qosClass"}), "Burstable");
}

TEST_F(QuotaTest, LimitRangesRefuseTooMuchAndTooLittle) {
  ASSERT_EQ(server
                .Post(kRanges, R"({"metadata":{"name":"r"},"spec":{"limits":[{"type":"Container",
      "min":{"cpu":"100m"},"max":{"cpu":"1"}},{"type":"PersistentVolumeClaim",
      "max":{"storage":"1Gi"}}]}})")
                .status,
            201);
  EXPECT_EQ(server.Post(kPods, SizedPod("p", R"({"requests":{"cpu":"50m"},"limits":{"cpu":"2"}})"))
                .Message(),
            "pods \"p\" is forbidden: [minimum cpu usage per Container is 100m, but request is "
            "50m, maximum cpu usage per Container is 1, but limit is 2]");
  EXPECT_EQ(server
                .Post("/api/v1/namespaces/default/persistentvolumeclaims",
                      R"({"metadata":{"name":"c"},"spec":{"accessModes":["ReadWriteOnce"],
                           "resources":{"requests":{"storage":"2Gi"}}}})")
                .Message(),
            "persistentvolumeclaims \"c\" is forbidden: maximum storage usage per "
            "PersistentVolumeClaim is 1Gi, but request is 2Gi");
}

TEST_F(QuotaTest, TheSizeOfClaimsIsCountedAndBounded) {
  constexpr char kClaims[] = "/api/v1/namespaces/default/persistentvolumeclaims";
  Quota("disk",
        R"({"hard":{"requests.storage":"3Gi","fast.storageclass.storage.k8s.io/requests.storage":)"
        R"("1Gi"}})");
  ASSERT_EQ(server
                .Post("/apis/storage.k8s.io/v1/storageclasses",
                      R"({"metadata":{"name":"grows"},"provisioner":"example.com/disks",)"
                      R"("allowVolumeExpansion":true})")
                .status,
            201);
  auto claim = [](const std::string& name, const std::string& size, const std::string& more = "") {
    return StrCat(R"({"metadata":{"name":")", name, R"("},"spec":{"accessModes":["ReadWriteOnce"])",
                  more, R"(,"resources":{"requests":{"storage":")", size, R"("}}}})");
  };
  ASSERT_EQ(server.Post(kClaims, claim("a", "1Gi", R"(,"storageClassName":"grows")")).status, 201);
  EXPECT_EQ(server.Post(kClaims, claim("b", "3Gi")).Message(),
            "persistentvolumeclaims \"b\" is forbidden: exceeded quota: disk, requested: "
            "requests.storage=3Gi, used: requests.storage=1Gi, limited: requests.storage=3Gi");
  EXPECT_NE(server.Post(kClaims, claim("b", "2Gi", R"(,"storageClassName":"fast")"))
                .Message()
                .find("requested: fast.storageclass.storage.k8s.io/requests.storage=2Gi"),
            std::string::npos);
  ASSERT_EQ(server.Merge(StrCat(kClaims, "/a/status"), R"({"status":{"phase":"Bound"}})").status,
            200);
  // One that grows is charged for what it gains.
  const auto grow = [&](const std::string& size) {
    return server.Merge(
        StrCat(kClaims, "/a"),
        StrCat(R"({"spec":{"resources":{"requests":{"storage":")", size, R"("}}}})"));
  };
  EXPECT_EQ(grow("4Gi").Message(),
            "persistentvolumeclaims \"a\" is forbidden: exceeded quota: disk, requested: "
            "requests.storage=3Gi, used: requests.storage=1Gi, limited: requests.storage=3Gi");
  EXPECT_EQ(grow("2Gi").status, 200);
  // So is a Service of another type.
  constexpr char kServices[] = "/api/v1/namespaces/default/services";
  Quota("ports", R"({"hard":{"services.nodeports":"0"}})");
  ASSERT_EQ(
      server.Post(kServices, R"({"metadata":{"name":"s"},"spec":{"ports":[{"port":80}]}})").status,
      201);
  EXPECT_EQ(server.Merge(StrCat(kServices, "/s"), R"({"spec":{"type":"NodePort"}})").Message(),
            "services \"s\" is forbidden: exceeded quota: ports, requested: services.nodeports=1, "
            "used: services.nodeports=0, limited: services.nodeports=0");
  EXPECT_EQ(Used("disk", "requests.storage"), "2Gi");
  ASSERT_EQ(server.Post(kClaims, claim("b", "1Gi")).status, 201);
  EXPECT_EQ(Used("disk", "requests.storage"), "3Gi");
}

}  // namespace
}  // namespace swell::apiserver
