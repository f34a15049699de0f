// Trees of Kubernetes' gangs as one gang with parts.
#include "scheduling/gang_tree.h"

#include <map>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/yaml.h"
#include "kube/api/meta/meta.h"

namespace swell::scheduling {
namespace {

class GangTreeTest : public ::testing::Test {
 protected:
  static json::SharedValue Y(const std::string& yaml) {
    auto parsed = json::ParseYaml(yaml);
    EXPECT_TRUE(parsed.ok()) << yaml;
    return std::make_shared<const json::Value>(parsed->front());
  }
  static std::string Spec(const std::string& parent, const std::string& policy) {
    return StrCat("spec: {", parent.empty() ? "" : "parentCompositePodGroupName: ", parent,
                  parent.empty() ? "" : ", ", policy, "}");
  }
  void Composite(const std::string& name,
                 const std::string& parent,
                 int least,
                 const std::string& rack = "") {
    composites_[name] = Y(StrCat(
        "metadata: {name: ", name, "}\n",
        Spec(parent,
             StrCat(least > 0 ? StrCat("schedulingPolicy: {gang: {minGroupCount: ", least, "}}")
                              : "schedulingPolicy: {basic: {}}",
                    rack.empty() ? "" : ", schedulingConstraints: {topology: [{key: ", rack,
                    rack.empty() ? "" : "}]}"))));
  }
  void Gang(const std::string& name, const std::string& parent, int least) {
    gangs_[name] =
        Y(StrCat("metadata: {name: ", name, "}\n",
                 Spec(parent, StrCat("schedulingPolicy: {gang: {minCount: ", least, "}}"))));
  }
  // "ROOT groups sets", or why there is none.
  std::string Tree(const std::string& gang) {
    auto all = [](const auto& objects) {
      return [&objects] {
        std::vector<json::SharedValue> out;
        for (const auto& [name, object] : objects) out.push_back(object);
        return out;
      };
    };
    const auto tree =
        ReadGangTree(*gangs_[gang], {[this](std::string_view name) -> json::SharedValue {
                                       const auto found = composites_.find(std::string(name));
                                       return found == composites_.end() ? nullptr : found->second;
                                     },
                                     all(composites_), all(gangs_)});
    if (!tree.ok()) return tree.status().message();
    if (!*tree) return "alone";
    return StrCat(api::Name(*(*tree)->root), " ", json::Print((*tree)->groups), " ",
                  json::Print((*tree)->pod_sets));
  }
  std::map<std::string, json::SharedValue> composites_, gangs_;
};

TEST_F(GangTreeTest, AGangWithoutAParentIsAlone) {
  Gang("g", "", 2);
  EXPECT_EQ(Tree("g"), "alone");
}

TEST_F(GangTreeTest, GangsBelowOneAreItsParts) {
  Composite("job", "", 2, "block");
  Composite("slice", "job", 2, "rack");
  Gang("driver", "job", 1);
  Gang("a", "slice", 4);
  Gang("b", "slice", 2);
  Gang("other", "", 2);
  for (const char* gang : {"driver", "a", "b"}) {
    EXPECT_EQ(Tree(gang), R"(job [{"name":"slice","topology":{"required":"rack"}}] )"
                          R"([{"name":"driver","minMember":1},)"
                          R"({"name":"a","parent":"slice","minMember":4},)"
                          R"({"name":"b","parent":"slice","minMember":2}])");
  }
  EXPECT_EQ(Tree("other"), "alone");
}

TEST_F(GangTreeTest, ATreeWaitsForTheGroupsThatItNeeds) {
  Gang("a", "job", 1);
  EXPECT_EQ(Tree("a"), "waits for CompositePodGroup \"job\", which is not there");
  Composite("job", "", 2);
  EXPECT_EQ(Tree("a"), "waits for 2 groups of CompositePodGroup \"job\", of which 1 is there");
  Gang("b", "job", 1);
  EXPECT_EQ(Tree("a").substr(0, 7), "job [] ");
}

TEST_F(GangTreeTest, GroupsThatArePlacedOneByOneJoinNothing) {
  Composite("top", "", 0);
  Composite("job", "top", 1);
  Composite("loose", "job", 0);
  Gang("a", "job", 1);
  Gang("b", "loose", 1);
  EXPECT_EQ(Tree("a"), R"(job [] [{"name":"a","minMember":1}])");
  EXPECT_EQ(Tree("b"), "alone");
}

TEST_F(GangTreeTest, ACircleIsNoTree) {
  Composite("x", "y", 1);
  Composite("y", "x", 1);
  Gang("a", "x", 1);
  EXPECT_EQ(Tree("a"), "waits for CompositePodGroups that are not below each other");
}

}  // namespace
}  // namespace swell::scheduling
