// Claims for devices that pods request as extended resources.
#include "kube/api/objects/extended_claim.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"

namespace swell::api {
namespace {

std::string ClassOf(const std::string& resource) {
  return resource == "example.com/acc" ? "acc" : resource == "example.com/nic" ? "nic" : "";
}

// "NAME: CLASS x COUNT; " of each request, then "CONTAINER RESOURCE NAME; " of each mapping.
std::string Made(std::string_view init_containers, std::string_view containers) {
  const auto pod = json::Parse(StrCat(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"ns","uid":"u"},)",
      R"("spec":{"initContainers":[)", init_containers, R"(],"containers":[)", containers, "]}}"));
  EXPECT_TRUE(pod.ok()) << pod.status().ToString();
  const auto made = pod.ok() ? MakeExtendedClaim(*pod, ClassOf) : std::nullopt;
  if (!made) return "";
  EXPECT_EQ(json::GetString(made->claim, {"metadata", "generateName"}), "p-extended-resources-");
  EXPECT_EQ(Annotation(made->claim, "resource.kubernetes.io/extended-resource-claim"), "true");
  EXPECT_EQ(ControllerOf(made->claim)->uid, "u");
  std::string text;
  for (const json::Value& one : json::GetArray(made->claim, {"spec", "devices", "requests"})) {
    text += StrCat(json::GetString(one, {"name"}), ": ",
                   json::GetString(one, {"exactly", "deviceClassName"}), " x ",
                   json::GetInt(one, {"exactly", "count"}), "; ");
  }
  for (const json::Value& one : made->mappings) {
    text +=
        StrCat(json::GetString(one, {"containerName"}), " ", json::GetString(one, {"resourceName"}),
               " ", json::GetString(one, {"requestName"}), "; ");
  }
  return text;
}

std::string Asks(std::string_view name, std::string_view requests, std::string_view more = "") {
  return StrCat(R"({"name":")", name, R"(","resources":{"requests":{)", requests, "}}", more, "}");
}

TEST(ExtendedClaim, EachContainerHasARequestForEachResource) {
  EXPECT_EQ(Made("", Asks("a", R"("cpu":"1","example.com/other":"1")")), "");
  EXPECT_EQ(Made("", Asks("a", R"("cpu":"1","example.com/acc":"2","example.com/nic":"1")") + "," +
                         Asks("b", R"("example.com/acc":"1")")),
            "container-0-request-1: acc x 2; container-0-request-2: nic x 1; "
            "container-1-request-0: acc x 1; "
            "a example.com/acc container-0-request-1; b example.com/acc container-1-request-0; "
            "a example.com/nic container-0-request-2; ");
}

TEST(ExtendedClaim, InitContainersUseDevicesOfThoseThatFollow) {
  const std::string one = R"("example.com/acc":"1")";
  EXPECT_EQ(Made(Asks("first", one), Asks("a", one)),
            "container-1-request-0: acc x 1; "
            "a example.com/acc container-1-request-0; first example.com/acc "
            "container-1-request-0; ");
  // What two of them need beyond that is one request, of the larger number.
  EXPECT_EQ(Made(Asks("first", R"("example.com/acc":"2")") + "," +
                     Asks("second", R"("example.com/acc":"4")"),
                 Asks("a", one)),
            "container-1-request-0: acc x 3; container-2-request-0: acc x 1; "
            "a example.com/acc container-2-request-0; "
            "first example.com/acc container-2-request-0; "
            "first example.com/acc container-1-request-0; "
            "second example.com/acc container-2-request-0; "
            "second example.com/acc container-1-request-0; ");
  // A sidecar runs beside the others and has its own.
  EXPECT_EQ(Made(Asks("side", one, R"(,"restartPolicy":"Always")"), Asks("a", one)),
            "container-0-request-0: acc x 1; container-1-request-0: acc x 1; "
            "side example.com/acc container-0-request-0; a example.com/acc "
            "container-1-request-0; ");
}

TEST(ExtendedClaim, AClassStandsForItsResourceAndForItsName) {
  const json::Value acc = *json::Parse(
      R"({"metadata":{"name":"acc"},"spec":{"extendedResourceName":"example.com/acc"}})");
  EXPECT_TRUE(ServesResource(acc, "example.com/acc"));
  EXPECT_TRUE(ServesResource(acc, "deviceclass.resource.kubernetes.io/acc"));
  EXPECT_FALSE(ServesResource(acc, "deviceclass.resource.kubernetes.io/other"));
  EXPECT_FALSE(ServesResource(acc, "example.com/other"));
  EXPECT_FALSE(ServesResource(*json::Parse(R"({"metadata":{"name":"x"},"spec":{}})"), ""));
}

}  // namespace
}  // namespace swell::api
