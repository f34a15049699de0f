#include "kube/api/schema/scheme.h"

#include <chrono>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "json/json_test_util.h"
#include "kube/api/schema/schema_text.h"

namespace swell::api {
namespace {

using json::J;

TEST(SchemeTest, EveryTypeOfTheTextsIsWellFormed) {
  SchemaLibrary library(EmbeddedSchemas());
  std::vector<std::string> names = library.Names();
  EXPECT_GT(names.size(), 300u);
  for (const std::string& name : names) {
    SchemaPtr schema = library.Find(name);
    ASSERT_NE(schema, nullptr) << name;
    EXPECT_EQ(schema->name, name);
    EXPECT_FALSE(schema->description.empty()) << name;
    for (const SchemaField& field : schema->fields) {
      EXPECT_FALSE(field.description.empty()) << name << "." << field.name;
    }
  }
}

TEST(SchemeTest, BuildsWithinTheStartBudget) {
  RealClock clock;
  SteadyTime start = clock.Steady();
  std::unique_ptr<Scheme> scheme = Scheme::BuiltIn();
  auto spent = std::chrono::duration_cast<std::chrono::microseconds>(clock.Steady() - start);
  RecordProperty("microseconds", static_cast<int>(spent.count()));
  // It takes 2 ms; generous, for sanitizers and busy machines.
  EXPECT_LT(spent, std::chrono::milliseconds(500));
  EXPECT_NE(scheme->FindKind({"", "v1", "Pod"}), nullptr);
}

TEST(SchemeTest, FindsKindsByEveryName) {
  auto scheme = Scheme::BuiltIn();
  KindPtr pod = scheme->FindResource("", "v1", "pods");
  ASSERT_NE(pod, nullptr);
  EXPECT_EQ(pod->gvk.kind, "Pod");
  EXPECT_EQ(pod->singular, "pod");
  EXPECT_TRUE(pod->has_status);
  EXPECT_EQ(pod->StoreResource(), "pods");
  KindPtr job = scheme->FindKind({"batch", "v1", "Job"});
  ASSERT_NE(job, nullptr);
  EXPECT_EQ(job->GroupResource(), "jobs.batch");
  EXPECT_EQ(scheme->FindKind({"batch", "v2", "Job"}), nullptr);
  EXPECT_EQ(scheme->FindResource("", "v1", "nosuch"), nullptr);
}

TEST(SchemeTest, StorageVersionComesFirst) {
  auto scheme = Scheme::BuiltIn();
  std::vector<KindPtr> versions = scheme->Versions("scheduling.k8s.io", "priorityclasses");
  ASSERT_EQ(versions.size(), 2u);
  EXPECT_EQ(versions[0]->gvk.version, "v1");
  EXPECT_EQ(versions[1]->gvk.version, "v1beta1");
  EXPECT_EQ(scheme->StorageKind("events.k8s.io", "events")->gvk.group, "");
  EXPECT_EQ(scheme->StorageKind("nosuch", "x"), nullptr);
}

TEST(SchemeTest, GroupsComeInKubernetesOrderWithPreferredVersionsFirst) {
  auto scheme = Scheme::BuiltIn();
  KindInfo kind;
  for (const char* version : {"v1alpha1", "v1", "v2beta1", "v10", "blue"}) {
    kind.gvk = {"a.example.com", version, "Thing"};
    kind.plural = "things";
    kind.custom = true;
    scheme->Register(kind, false);
  }
  std::vector<Scheme::Group> groups = scheme->Groups();
  EXPECT_EQ(groups.front().name, "");
  EXPECT_EQ(groups[1].name, "apiregistration.k8s.io");
  EXPECT_EQ(groups[2].name, "apps");
  // What another server could serve comes behind everything else.
  EXPECT_EQ(groups.back().name, "metrics.k8s.io");
  const Scheme::Group& custom = groups[groups.size() - 2];
  EXPECT_EQ(custom.name, "a.example.com");
  EXPECT_EQ(custom.versions,
            (std::vector<std::string>{"v10", "v1", "v2beta1", "v1alpha1", "blue"}));
}

TEST(SchemeTest, RegisteringReplacesAndCounts) {
  auto scheme = Scheme::BuiltIn();
  uint64_t before = scheme->generation();
  KindInfo kind;
  kind.gvk = {"a.example.com", "v1", "Thing"};
  kind.plural = "things";
  kind.custom = true;
  scheme->Register(kind, true);
  kind.singular = "thing";
  scheme->Register(kind, true);
  EXPECT_EQ(scheme->generation(), before + 2);
  EXPECT_EQ(scheme->KindsOf("a.example.com", "v1").size(), 1u);
  EXPECT_EQ(scheme->FindKind({"a.example.com", "v1", "Thing"})->singular, "thing");
  scheme->Unregister("a.example.com", "things");
  scheme->Unregister("a.example.com", "things");
  EXPECT_EQ(scheme->generation(), before + 3);
  EXPECT_EQ(scheme->FindKind({"a.example.com", "v1", "Thing"}), nullptr);
  scheme->Unregister("", "pods");
  EXPECT_NE(scheme->FindResource("", "v1", "pods"), nullptr);
}

TEST(SchemeTest, EventsConvertBetweenTheirTwoShapes) {
  auto scheme = Scheme::BuiltIn();
  json::Value event = J(R"({"apiVersion":"v1","kind":"Event","metadata":{"name":"e"},
      "involvedObject":{"kind":"Pod"},"message":"m","count":3,"reportingComponent":"c"})");
  json::Value original = event;
  KindPtr fresh = scheme->FindKind({"events.k8s.io", "v1", "Event"});
  ASSERT_TRUE(scheme->Convert(event, *fresh).ok());
  EXPECT_TRUE(json::Equal(event, J(R"({"apiVersion":"events.k8s.io/v1","kind":"Event",
      "metadata":{"name":"e"},"regarding":{"kind":"Pod"},"note":"m","deprecatedCount":3,
      "reportingController":"c"})")))
      << json::Print(event);
  ASSERT_TRUE(scheme->Convert(event, *scheme->FindKind({"", "v1", "Event"})).ok());
  EXPECT_TRUE(json::Equal(event, original));
  EXPECT_EQ(scheme->Convert(event, *scheme->FindKind({"", "v1", "Pod"})).code(), Code::kInternal);
}

}  // namespace
}  // namespace swell::api
