// The kinds that today's kube-scheduler and kube-controller-manager wait for: stored, listed,
// watched, printed, and what their writes are completed with.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/apiserver/test_server.h"

namespace swell::apiserver {
namespace {

constexpr char kClaims[] = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
constexpr char kSlices[] = "/apis/resource.k8s.io/v1/resourceslices";
constexpr char kAsTable[] = "application/json;as=Table;v=v1;g=meta.k8s.io";

class NewerKindsTest : public ::testing::Test {
 protected:
  NewerKindsTest() { server.Boot(); }

  // The cells of the only row.
  std::string Row(const std::string& target) {
    const Answer table = server.Get(target, kAsTable);
    const json::Array& rows = json::GetArray(table.body, {"rows"});
    return rows.size() == 1 ? json::Print(json::Value(json::GetArray(rows[0], {"cells"})))
                            : table.text;
  }

  TestServer server;
};

struct Kind {
  const char* path;
  const char* name;
  const char* body;
};

constexpr Kind kKinds[] = {
    {"/apis/resource.k8s.io/v1/deviceclasses", "gpu", R"({"metadata":{"name":"gpu"}})"},
    {kClaims, "c",
     R"({"metadata":{"name":"c"},"spec":{"devices":{"requests":[
         {"name":"gpu","exactly":{"deviceClassName":"gpu"}}]}}})"},
    {"/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates", "t",
     R"({"metadata":{"name":"t"},"spec":{"spec":{"devices":{"requests":[
         {"name":"gpu","exactly":{"deviceClassName":"gpu"}}]}}}})"},
    {kSlices, "s",
     R"({"metadata":{"name":"s"},"spec":{"driver":"d.example.com","nodeName":"n",
         "pool":{"name":"n","resourceSliceCount":1}}})"},
    {"/apis/resource.k8s.io/v1/devicetaintrules", "r",
     R"({"metadata":{"name":"r"},"spec":{"taint":{"key":"k","effect":"NoExecute"}}})"},
    {"/apis/storage.k8s.io/v1/namespaces/default/csistoragecapacities", "c",
     R"({"metadata":{"name":"c"},"storageClassName":"standard","capacity":"1Gi"})"},
    {"/apis/storage.k8s.io/v1/volumeattributesclasses", "v",
     R"({"metadata":{"name":"v"},"driverName":"d.example.com","parameters":{"a":"b"}})"},
    {"/apis/networking.k8s.io/v1/servicecidrs", "r",
     R"({"metadata":{"name":"r"},"spec":{"cidrs":["10.1.0.0/16"]}})"},
    {"/apis/networking.k8s.io/v1/ipaddresses", "10.1.0.1",
     R"({"metadata":{"name":"10.1.0.1"},"spec":{"parentRef":{"resource":"services",
         "namespace":"default","name":"x"}}})"},
    {"/apis/storagemigration.k8s.io/v1/storageversionmigrations", "m",
     R"({"metadata":{"name":"m"},"spec":{"resource":{"resource":"pods"}}})"},
    {"/apis/certificates.k8s.io/v1/namespaces/default/podcertificaterequests", "p",
     R"({"metadata":{"name":"p"},"spec":{"signerName":"example.com/s","podName":"p","podUID":"1",
         "serviceAccountName":"a","serviceAccountUID":"2","nodeName":"n","nodeUID":"3",
         "stubPKCS10Request":"MIIB"}})"},
    {"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", "p",
     R"({"metadata":{"name":"p"},"spec":{"matchConstraints":{"resourceRules":[
         {"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"]}]},
         "validations":[{"expression":"true"}]}})"},
    {"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings", "b",
     R"({"metadata":{"name":"b"},"spec":{"policyName":"p","validationActions":["Deny"]}})"}};

TEST_F(NewerKindsTest, EachIsMadeListedWatchedPatchedAndDeleted) {
  for (const Kind& kind : kKinds) {
    const std::string path = kind.path;
    const std::string one = StrCat(path, "/", kind.name);
    TestWatch watch = server.Watch(StrCat(path, "?watch=1"));
    watch.Take();
    const Answer made = server.Post(path, kind.body);
    ASSERT_EQ(made.status, 201) << path << " " << made.text;
    const Answer list = server.Get(path);
    bool listed = false;
    for (const json::Value& item : json::GetArray(list.body, {"items"})) {
      listed = listed || json::GetString(item, {"metadata", "name"}) == kind.name;
    }
    EXPECT_TRUE(listed) << list.text;
    EXPECT_EQ(server.Merge(one, R"({"metadata":{"labels":{"a":"b"}}})").status, 200) << path;
    EXPECT_EQ(server.Get(one).Str({"metadata", "labels", "a"}), "b");
    EXPECT_EQ(server.Delete(one).status, 200) << path;
    EXPECT_EQ(server.Get(one).status, 404) << path;
    std::string seen;
    for (const json::Value& event : watch.Take()) {
      seen += StrCat(json::GetString(event, {"type"}), " ");
    }
    EXPECT_EQ(seen, "ADDED MODIFIED DELETED ") << path;
  }
}

TEST_F(NewerKindsTest, StatusIsWrittenApart) {
  ASSERT_EQ(server.Post(kClaims, kKinds[1].body).status, 201);
  const std::string one = StrCat(kClaims, "/c");
  const char* allocation = R"({"status":{"allocation":{"devices":{"results":[{"request":"gpu",
      "driver":"d.example.com","pool":"n","device":"g"}]}}}})";
  EXPECT_EQ(server.Merge(one, allocation).status, 200);
  EXPECT_EQ(Row(one), R"(["c","pending","0s"])");
  const Answer written = server.Merge(StrCat(one, "/status"), allocation);
  EXPECT_EQ(written.status, 200) << written.text;
  EXPECT_EQ(Row(one), R"(["c","allocated","0s"])");
  // What drivers said goes with the devices.
  EXPECT_EQ(server
                .Merge(StrCat(one, "/status"),
                       R"({"status":{"devices":[{"driver":"d.example.com","pool":"n",
                           "device":"g","data":{"x":1}}]}})")
                .status,
            200);
  const Answer freed = server.Merge(StrCat(one, "/status"), R"({"status":{"allocation":null}})");
  EXPECT_EQ(freed.status, 200) << freed.text;
  EXPECT_EQ(json::Find(freed.body, {"status", "devices"}), nullptr) << freed.text;
}

TEST_F(NewerKindsTest, SlicesAreSelectedByWhatTheSchedulerAsksFor) {
  ASSERT_EQ(server.Post(kSlices, kKinds[3].body).status, 201);
  for (const char* selector :
       {"spec.nodeName=n", "spec.driver=d.example.com", "spec.pool.name=n", "spec.nodeName!=m"}) {
    const Answer found = server.Get(StrCat(kSlices, "?fieldSelector=", selector));
    EXPECT_EQ(json::GetArray(found.body, {"items"}).size(), 1u) << selector << found.text;
  }
  const Answer none = server.Get(StrCat(kSlices, "?fieldSelector=spec.nodeName=m"));
  EXPECT_EQ(json::GetArray(none.body, {"items"}).size(), 0u);
}

TEST_F(NewerKindsTest, TaintsSaySinceWhenTheyAreThere) {
  const std::string rules = "/apis/resource.k8s.io/v1/devicetaintrules";
  const Answer made = server.Post(rules, kKinds[4].body);
  const std::string first = made.Str({"spec", "taint", "timeAdded"});
  EXPECT_FALSE(first.empty()) << made.text;
  server.executor.Advance(std::chrono::seconds(60));
  const Answer same = server.Merge(StrCat(rules, "/r"), R"({"spec":{"taint":{"value":"v"}}})");
  EXPECT_EQ(same.Str({"spec", "taint", "timeAdded"}), first);
  const Answer other =
      server.Merge(StrCat(rules, "/r"), R"({"spec":{"taint":{"effect":"NoSchedule"}}})");
  EXPECT_NE(other.Str({"spec", "taint", "timeAdded"}), first) << other.text;
  EXPECT_EQ(json::GetInt(other.body, {"metadata", "generation"}), 3);
}

TEST_F(NewerKindsTest, OthersDevicesNeedANamespaceForIt) {
  const char* claim = R"({"metadata":{"name":"a"},"spec":{"devices":{"requests":[
      {"name":"gpu","exactly":{"deviceClassName":"gpu","adminAccess":true}}]}}})";
  const Answer refused = server.Post(kClaims, claim);
  EXPECT_EQ(refused.status, 422) << refused.text;
  EXPECT_NE(refused.Message().find("admin access to devices requires"), std::string::npos);
  EXPECT_EQ(server
                .Merge("/api/v1/namespaces/default",
                       R"({"metadata":{"labels":{"resource.kubernetes.io/admin-access":"true"}}})")
                .status,
            200);
  EXPECT_EQ(server.Post(kClaims, claim).status, 201);
}

TEST_F(NewerKindsTest, TheServersOwnRangeIsThereAndOthersAreToldToBeUnused) {
  const Answer own = server.Get("/apis/networking.k8s.io/v1/servicecidrs/kubernetes");
  EXPECT_EQ(own.status, 200);
  EXPECT_EQ(json::Print(json::Value(json::GetArray(own.body, {"spec", "cidrs"}))),
            R"(["10.96.0.0/16"])");
  const Answer more = server.Post(kKinds[7].path, kKinds[7].body);
  ASSERT_EQ(more.warnings.size(), 1u);
  EXPECT_NE(more.warnings[0].find("stored but not used"), std::string::npos);
}

TEST_F(NewerKindsTest, OnlyASignerAnswersAPodsRequest) {
  const std::string path = kKinds[10].path;
  ASSERT_EQ(server.Post(path, kKinds[10].body).status, 201);
  const std::string status = StrCat(path, "/p/status");
  const char* issued = R"({"status":{"certificateChain":"PEM"}})";
  const Answer written = server.Merge(status, issued);
  EXPECT_EQ(written.status, 200) << written.text;
  EXPECT_EQ(Row(StrCat(path, "/p")), R"(["p","p","a","n","example.com/s","Pending","<none>"])");
}

TEST_F(NewerKindsTest, OlderVersionsOfMigrationsAreTheSameObjects) {
  ASSERT_EQ(server.Post(kKinds[9].path, kKinds[9].body).status, 201);
  const Answer old = server.Get("/apis/storagemigration.k8s.io/v1beta1/storageversionmigrations/m");
  EXPECT_EQ(old.Str({"apiVersion"}), "storagemigration.k8s.io/v1beta1");
  EXPECT_EQ(Row(StrCat(kKinds[9].path, "/m")), R"(["m","pods","Unknown"])");
}

}  // namespace
}  // namespace swell::apiserver
