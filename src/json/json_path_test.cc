#include "json/json_path.h"

#include <gtest/gtest.h>

namespace swell::json {
namespace {

const Value& Sample() {
  static const Value* value = new Value(Parse(R"({"kind":"List","n":3,"a.b":"dotted","items":[
        {"metadata":{"name":"x","labels":{"k/l":"1"}},"ready":true,"size":1,"tags":["p","q"]},
        {"metadata":{"name":"y"},"ready":false,"size":12,"tags":[]},
        {"metadata":{"name":"z"},"size":5}]})")
                                            .value());
  return *value;
}

TEST(JsonPathTest, Expressions) {
  struct Case {
    const char* path;
    const char* printed;
  };
  for (const Case& one : std::vector<Case>{
           {"{.kind}", "List"},
           {".kind", "List"},
           {"kind", "List"},
           {"{$.n}", "3"},
           {"{.items[*].metadata.name}", "x y z"},
           {"{.items[0].metadata.name}", "x"},
           {"{.items[-1].metadata.name}", "z"},
           {"{.items[-1:].metadata.name}", "z"},
           {"{.items[0:2].metadata.name}", "x y"},
           {"{.items[0,2].metadata.name}", "x z"},
           {"{.items[0].metadata.labels.k/l}", "1"},
           {"{.items[0].metadata.labels['k/l']}", "1"},
           {"{.a\\.b}", "dotted"},
           {"{..name}", "x y z"},
           {"{.items[?(@.size>4)].metadata.name}", "y z"},
           {"{.items[?(@.metadata.name==\"y\")].size}", "12"},
           {"{.items[?(@.ready==true)].metadata.name}", "x"},
           {"{.items[?(@.ready)].metadata.name}", "x y"},
           {"{.items[0].tags}", "[\"p\",\"q\"]"},
           {"{.missing.deep}", ""},
           {"{range .items[*]}{.metadata.name}{\"\\t\"}{.size}{\"\\n\"}{end}",
            "x\t1\ny\t12\nz\t5\n"},
           {"names: {.items[*].metadata.name}!", "names: x y z!"},
           {"{range .items[*]}{.metadata.name} of {$.kind}; {end}",
            "x of List; y of List; z of List; "},
       }) {
    auto path = JsonPath::Parse(one.path);
    ASSERT_TRUE(path.ok()) << one.path << ": " << path.status().message();
    EXPECT_EQ(path->Print(Sample()), one.printed) << one.path;
  }
}

// Each step of unions multiplies what it has: what is looked at stays bounded.
TEST(JsonPathTest, VisitsAreBounded) {
  const Value value = json::Parse(R"([[[[[[1]]]]]])").value();
  std::string path;
  for (int i = 0; i < 6; ++i) path += "[0,0,0,0,0,0,0,0,0,0]";
  const auto parsed = JsonPath::Parse(path);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->Find(value).size(), 1'000'000U);
  EXPECT_LT(parsed->Find(value, 1000).size(), 10'000U);
}

}  // namespace
}  // namespace swell::json
