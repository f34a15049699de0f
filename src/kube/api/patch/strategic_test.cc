// Tests of strategic merge patches.
#include "kube/api/patch/strategic.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/strings.h"
#include "json/json_test_util.h"
#include "kube/api/schema/schema_test_util.h"

namespace swell::api {
namespace {

using json::J;

// As much of a pod as the tests need.
SchemaPtr PodSchema() {
  auto labels = std::make_shared<Schema>();
  labels->type = SchemaType::kMap;
  labels->items = Scalar();
  SchemaPtr port = Fields({{"containerPort", Scalar()}, {"name", Scalar()}});
  SchemaPtr env = Fields({{"name", Scalar()}, {"value", Scalar()}});
  SchemaPtr container = Fields({{"name", Scalar()},
                                {"image", Scalar()},
                                {"args", List(Scalar(), false)},
                                {"env", List(env, true, "name")},
                                {"ports", List(port, true, "containerPort")}});
  return Fields({{"labels", labels},
                 {"finalizers", List(Scalar(), true)},
                 {"containers", List(container, true, "name")},
                 {"tolerations", List(Fields({{"key", Scalar()}}), false)},
                 {"strategy", Fields({{"type", Scalar()}, {"rolling", Scalar()}})}});
}

std::string Merge(std::string_view document, std::string_view patch) {
  json::Value value = J(document);
  Status status = ApplyStrategicMerge(*PodSchema(), value, J(patch));
  if (!status.ok()) {
    EXPECT_TRUE(json::Equal(value, J(document))) << "an error must change nothing";
    return status.ToString();
  }
  return json::Print(value);
}

TEST(StrategicMerge, MergesByTheSchema) {
  struct Case {
    std::string document, patch, result;
  };
  const Case cases[] = {
      // Maps merge, null deletes, atomic lists are replaced.
      {R"({"labels":{"a":"1","b":"2"}})", R"({"labels":{"b":null,"c":"3"}})",
       R"({"labels":{"a":"1","c":"3"}})"},
      {R"({"tolerations":[{"key":"a"}]})", R"({"tolerations":[{"key":"b","x":null}]})",
       R"({"tolerations":[{"key":"b"}]})"},
      {R"({})", R"({"labels":{"a":"1","b":null},"gone":null})", R"({"labels":{"a":"1"}})"},
      // Lists of objects merge by key; what the patch names comes in its order.
      {R"({"containers":[{"name":"a","image":"1"},{"name":"b","image":"1"}]})",
       R"({"containers":[{"name":"b","image":"2"}]})",
       R"({"containers":[{"name":"a","image":"1"},{"name":"b","image":"2"}]})"},
      {R"({"containers":[{"name":"a","image":"1"}]})",
       R"({"containers":[{"name":"c","image":"3"}]})",
       R"({"containers":[{"name":"c","image":"3"},{"name":"a","image":"1"}]})"},
      {R"({"containers":[{"name":"a","env":[{"name":"X","value":"1"},{"name":"Y","value":"2"}]}]})",
       R"({"containers":[{"name":"a","env":[{"name":"X","value":"9"},{"$patch":"delete","name":"Y"}]}]})",
       R"({"containers":[{"name":"a","env":[{"name":"X","value":"9"}]}]})"},
      {R"({"containers":[{"name":"a","args":["x","y"],"ports":[{"containerPort":80}]}]})",
       R"({"containers":[{"name":"a","args":["z"],"ports":[{"containerPort":80,"name":"web"}]}]})",
       R"({"containers":[{"name":"a","args":["z"],"ports":[{"containerPort":80,"name":"web"}]}]})"},
      // Lists of scalars are sets.
      {R"({"finalizers":["a","b"]})", R"({"finalizers":["b","c"]})",
       R"({"finalizers":["a","b","c"]})"},
      {R"({"finalizers":["a","b","c"]})", R"({"$deleteFromPrimitiveList/finalizers":["b"]})",
       R"({"finalizers":["a","c"]})"},
      {R"({"finalizers":["a","b"]})",
       R"({"$deleteFromPrimitiveList/finalizers":["a"],"$setElementOrder/finalizers":["c","b"],)"
       R"("finalizers":["c"]})",
       R"({"finalizers":["c","b"]})"},
      // Directives.
      {R"({"containers":[{"name":"a"},{"name":"b"}]})",
       R"({"containers":[{"$patch":"replace"},{"name":"c"}]})", R"({"containers":[{"name":"c"}]})"},
      {R"({"labels":{"a":"1"}})", R"({"labels":{"$patch":"replace","b":"2"}})",
       R"({"labels":{"b":"2"}})"},
      {R"({"labels":{"a":"1"}})", R"({"labels":{"$patch":"delete"}})", R"({"labels":{}})"},
      {R"({"labels":{"a":"1"}})", R"({"labels":{"$patch":"merge","b":"2"}})",
       R"({"labels":{"a":"1","b":"2"}})"},
      {R"({"strategy":{"type":"RollingUpdate","rolling":"x"}})",
       R"({"strategy":{"$retainKeys":["type"],"type":"Recreate"}})",
       R"({"strategy":{"type":"Recreate"}})"},
      // kubectl's order.
      {R"({"containers":[{"name":"a"},{"name":"b"},{"name":"s"}]})",
       R"({"$setElementOrder/containers":[{"name":"b"},{"name":"n"},{"name":"a"}],)"
       R"("containers":[{"name":"n"}]})",
       R"({"containers":[{"name":"b"},{"name":"n"},{"name":"a"},{"name":"s"}]})"},
      {R"({"containers":[{"name":"a"},{"name":"b"}]})",
       R"({"$setElementOrder/containers":[{"name":"b"},{"name":"a"}]})",
       R"({"containers":[{"name":"b"},{"name":"a"}]})"},
      // Fields without a schema: objects merge, lists are replaced.
      {R"({"x":{"a":1,"l":[1]}})", R"({"x":{"b":2,"l":[2]}})", R"({"x":{"a":1,"l":[2],"b":2}})"},
      {R"({"labels":"odd"})", R"({"labels":{"a":"1"}})", R"({"labels":{"a":"1"}})"},
      // Where there is no list no key is needed to find an element.
      {R"({})", R"({"containers":[{"image":"x","command":null},{"image":"y"}]})",
       R"({"containers":[{"image":"x"},{"image":"y"}]})"},
  };
  for (const Case& c : cases) EXPECT_EQ(Merge(c.document, c.patch), c.result) << c.patch;
}

// One by one this takes minutes.
TEST(StrategicMerge, ManyMembersGoInOnePass) {
  json::Value document = J(R"({"labels":{}})"), patch = J(R"({"labels":{}})");
  for (int i = 0; i < 200'000; ++i) {
    json::Set(document, {"labels", StrCat("k", i)}, "v");
    json::Set(patch, {"labels", StrCat("k", i)}, nullptr);
  }
  json::Set(document, {"labels", "stays"}, "v");
  ASSERT_TRUE(ApplyStrategicMerge(*PodSchema(), document, patch).ok());
  EXPECT_EQ(json::Print(document), R"({"labels":{"stays":"v"}})");
}

TEST(StrategicMerge, RefusesWhatCannotBeMeant) {
  const std::pair<std::string, std::string> cases[] = {
      {R"([])", "Invalid: the patch must be an object"},
      {R"({"containers":[{"image":"x"}]})",
       "InternalError: map: map[image:x] does not contain declared merge key: name"},
      {R"({"containers":["x"]})",
       "InternalError: list element types are not identical: [[map[name:a]] [x]]"},
      {R"({"containers":[{"$patch":"delete"}]})",
       "InternalError: map: map[$patch:delete] does not contain declared merge key: name"},
      {R"({"containers":[{"$patch":"burn","name":"a"}]})",
       "InternalError: unknown patch type: burn in map: map[$patch:burn name:a]"},
      {R"({"labels":{"$patch":3}})", "InternalError: unknown patch type: 3 in map: map[$patch:3]"},
      {R"({"$deleteFromPrimitiveList/finalizers":"a"})",
       "InternalError: expected a []interface {}, but received a string"},
      {R"({"$setElementOrder/containers":3})",
       "InternalError: expected a []interface {}, but received a int64"},
      {R"({"$setElementOrder/containers":[{"name":"b"}],"containers":[{"name":"c"}]})",
       "InternalError: The order in patch list:\n[map[name:c]]\n doesn't match $setElementOrder "
       "list:\n[map[name:b]]\n"},
      {R"({"strategy":{"$retainKeys":["type"],"rolling":"x"}})",
       "BadRequest: invalid patch format of retainKeys"},
  };
  for (const auto& [patch, message] : cases) {
    std::string result = Merge(R"({"containers":[{"name":"a"}],"labels":{"a":"1"}})", patch);
    EXPECT_EQ(result, message) << patch;
  }
}

TEST(StrategicMergeProperty, KubectlsPatchesGiveWhatWasWanted) {
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    Random random(seed);
    auto containers = [&random] {
      json::Array list;
      for (char name = 'a'; name < 'h'; ++name) {
        if (random.OneIn(2)) continue;
        list.push_back(
            json::Object{{"name", std::string(1, name)}, {"image", StrCat(random.Below(3))}});
      }
      for (size_t i = list.size(); i > 1; --i) swap(list[i - 1], list[random.Below(i)]);
      return list;
    };
    json::Array before = containers();
    json::Array wanted = containers();
    json::Array changes;
    json::Array order;
    for (const json::Value& item : wanted) {
      order.push_back(json::Object{{"name", item.at("name")}});
      if (std::find(before.begin(), before.end(), item) == before.end()) changes.push_back(item);
    }
    for (const json::Value& item : before) {
      auto same = [&](const json::Value& w) { return w.at("name") == item.at("name"); };
      if (std::none_of(wanted.begin(), wanted.end(), same)) {
        changes.push_back(json::Object{{"$patch", "delete"}, {"name", item.at("name")}});
      }
    }
    json::Value document = json::Object{{"containers", before}};
    json::Value patch =
        json::Object{{"$setElementOrder/containers", order}, {"containers", changes}};
    ASSERT_TRUE(ApplyStrategicMerge(*PodSchema(), document, patch).ok()) << "seed " << seed;
    EXPECT_EQ(json::Print(document.at("containers")), json::Print(wanted)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace swell::api
