#include "kube/api/schema/schema.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/json_test_util.h"
#include "kube/api/schema/schema_text.h"
#include "kube/api/schema/scheme.h"

namespace swell::api {
namespace {

using json::J;

std::string Errors(const std::vector<FieldError>& errors) {
  std::string out;
  for (const FieldError& e : errors) {
    if (!out.empty()) out += "\n";
    out += e.field + ": " + e.message;
  }
  return out;
}

class SchemaTest : public ::testing::Test {
 protected:
  const Schema& Of(const char* group, const char* kind) {
    return *scheme_->FindKind({group, "v1", kind})->schema;
  }
  SchemaPtr Crd(std::string_view text) {
    Result<SchemaPtr> parsed = ParseOpenApiSchema(J(text));
    EXPECT_TRUE(parsed.ok()) << parsed.status().ToString();
    return parsed.ok() ? *parsed : nullptr;
  }
  std::string CrdError(std::string_view text) {
    Result<SchemaPtr> parsed = ParseOpenApiSchema(J(text));
    return parsed.ok() ? "" : parsed.status().message();
  }
  std::unique_ptr<Scheme> scheme_ = Scheme::BuiltIn();
};

TEST_F(SchemaTest, NumbersBeyondInt64AreRefused) {
  EXPECT_EQ(Errors(ValidateAgainst(
                Of("", "Pod"), J(R"({"spec":{"terminationGracePeriodSeconds":9223372036854775808,
                                     "containers":[]}})"))),
            "spec.terminationGracePeriodSeconds: Invalid value: 9223372036854775808: "
            "spec.terminationGracePeriodSeconds in body must be of type int64: the number does not "
            "fit");
}

TEST_F(SchemaTest, UnknownFieldsAtEveryLevel) {
  struct Case {
    const char* pod;
    std::vector<std::string> unknown;
  };
  const Case kCases[] = {
      {R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{}})", {}},
      {R"({"spek":{}})", {"spek"}},
      {R"({"metadata":{"lables":{"a":"b"},"labels":{"any":"thing"}}})", {"metadata.lables"}},
      {R"({"spec":{"containers":[{"name":"a"},{"imagee":"x"}],"hostnetwork":true}})",
       {"spec.containers[1].imagee", "spec.hostnetwork"}},
      {R"({"spec":{"volumes":[{"configMap":{"items":[{"kee":1}]}}]}})",
       {"spec.volumes[0].configMap.items[0].kee"}},
      {R"({"spec":{"containers":[{"resources":{"limits":{"nvidia.com/gpu":1},"limit":{}}}]}})",
       {"spec.containers[0].resources.limit"}},
      {R"({"metadata":{"managedFields":[{"fieldsV1":{"f:x":{"any":1}}}]}})", {}},
      {R"({"spec":null,"status":[]})", {}},
  };
  for (const Case& c : kCases) {
    EXPECT_EQ(UnknownFields(Of("", "Pod"), J(c.pod)), c.unknown) << c.pod;
  }
  std::string many = "{";
  for (int i = 0; i < 200; ++i) many += StrCat(i ? ",\"x" : "\"x", i, "\":1");
  EXPECT_EQ(UnknownFields(Of("", "Pod"), J(many + "}")).size(), 100u);
}

TEST_F(SchemaTest, ValidatesBuiltInTypes) {
  struct Case {
    const char* spec;
    const char* error;
  };
  const Case kCases[] = {
      {R"({"containers":[{"name":"a","image":"b"}]})", ""},
      {R"({})", "spec.containers: Required value"},
      {R"({"containers":null})", "spec.containers: Required value"},
      {R"({"containers":"x"})",
       "spec.containers: Invalid value: \"string\": spec.containers in body must be of type "
       "array: \"string\""},
      {R"({"containers":[{"image":"b"}]})", "spec.containers[0].name: Required value"},
      {R"({"containers":[{"name":"a","imagePullPolicy":"Sometimes"}]})",
       "spec.containers[0].imagePullPolicy: Unsupported value: \"Sometimes\": supported values: "
       "\"Always\", \"IfNotPresent\", \"Never\""},
      {R"({"containers":[],"terminationGracePeriodSeconds":"30"})",
       "spec.terminationGracePeriodSeconds: Invalid value: \"string\": "
       "spec.terminationGracePeriodSeconds in body must be of type integer: \"string\""},
      {R"({"containers":[],"priority":3000000000})",
       "spec.priority: Invalid value: 3000000000: spec.priority in body must be of type int32: "
       "the number does not fit"},
      {R"({"containers":[],"hostNetwork":"true"})",
       "spec.hostNetwork: Invalid value: \"string\": spec.hostNetwork in body must be of type "
       "boolean: \"string\""},
      {R"({"containers":[],"nodeSelector":{"a":1}})",
       "spec.nodeSelector.a: Invalid value: \"integer\": spec.nodeSelector.a in body must be of "
       "type string: \"integer\""},
      {R"({"containers":[],"nodeSelector":null,"priority":null})", ""},
  };
  for (const Case& c : kCases) {
    json::Value pod = json::Object();
    json::Set(pod, {"spec"}, J(c.spec));
    EXPECT_EQ(Errors(ValidateAgainst(Of("", "Pod"), pod)), c.error) << c.spec;
  }
  json::Value pod = J(R"({"metadata":{"creationTimestamp":"yesterday"},
      "spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":"1x","memory":5}}}]}})");
  std::vector<FieldError> errors = ValidateAgainst(Of("", "Pod"), pod);
  ASSERT_EQ(errors.size(), 2u) << Errors(errors);
  EXPECT_EQ(errors[0].field, "metadata.creationTimestamp");
  EXPECT_EQ(errors[1].field, "spec.containers[0].resources.limits.cpu");
}

TEST_F(SchemaTest, StatusFieldsThatGoTypesAlwaysHaveMayBeLeftOut) {
  json::Value pod = J(R"({"status":{"containerStatuses":[{"name":"a"}]}})");
  ApplyDefaults(Of("", "Pod"), pod);
  EXPECT_EQ(Errors(ValidateAgainst(Of("", "Pod"), pod)), "");
  EXPECT_EQ(json::Print(*json::Find(pod, {"status"})),
            R"({"containerStatuses":[{"name":"a","ready":false,"restartCount":0,"image":"",)"
            R"("imageID":""}]})");
}

TEST_F(SchemaTest, ValidatesEveryRuleOfCustomSchemas) {
  SchemaPtr schema = Crd(R"({"type":"object","properties":{"spec":{"type":"object",
      "required":["must"],"properties":{
      "must":{"type":"string"},
      "short":{"type":"string","minLength":2,"maxLength":3},
      "word":{"type":"string","pattern":"^[a-z]+$"},
      "n":{"type":"integer","minimum":1,"maximum":9,"multipleOf":2},
      "x":{"type":"number","minimum":0,"exclusiveMinimum":true},
      "list":{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":2},
      "set":{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"},
      "keyed":{"type":"array","x-kubernetes-list-type":"map",
        "x-kubernetes-list-map-keys":["k"],
        "items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"}}}},
      "either":{"x-kubernetes-int-or-string":true},
      "map":{"type":"object","additionalProperties":{"type":"boolean"},"maxProperties":1},
      "maybe":{"type":"string","nullable":true},
      "level":{"type":"integer","enum":[1,2]},
      "free":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
      "logic":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},
        "oneOf":[{"required":["a"]},{"required":["b"]}]},
      "date":{"type":"string","format":"date-time"}
      }}}})");
  ASSERT_NE(schema, nullptr);
  struct Case {
    const char* spec;
    const char* error;
  };
  const Case kCases[] = {
      {R"({"must":"x"})", ""},
      {R"({})", "spec.must: Required value"},
      {R"({"must":null})",
       "spec.must: Invalid value: \"null\": spec.must in body must be of type string: \"null\""},
      {R"({"must":"","maybe":null})", ""},
      {R"({"must":"","short":"a"})",
       "spec.short: Invalid value: \"a\": spec.short in body should be at least 2 chars long"},
      {R"({"must":"","short":"äöü"})", ""},
      {R"({"must":"","short":"abcd"})", "spec.short: Too long: may not be more than 3 bytes"},
      {R"({"must":"","word":"A1"})",
       "spec.word: Invalid value: \"A1\": spec.word in body should match '^[a-z]+$'"},
      {R"({"must":"","n":0})",
       "spec.n: Invalid value: 0: spec.n in body should be greater than or equal to 1"},
      {R"({"must":"","n":10})",
       "spec.n: Invalid value: 10: spec.n in body should be less than or equal to 9"},
      {R"({"must":"","n":3})",
       "spec.n: Invalid value: 3: spec.n in body should be a multiple of 2"},
      {R"({"must":"","n":2.5})",
       "spec.n: Invalid value: \"number\": spec.n in body must be of type integer: \"number\""},
      {R"({"must":"","n":4.0})", ""},
      {R"({"must":"","x":0})", "spec.x: Invalid value: 0: spec.x in body should be greater than 0"},
      {R"({"must":"","list":[]})",
       "spec.list: Invalid value: 0: spec.list in body should have at least 1 items"},
      {R"({"must":"","list":["a","b","c"]})", "spec.list: Too many: 3: must have at most 2 items"},
      {R"({"must":"","set":["a","a"]})", "spec.set[1]: Duplicate value: \"a\""},
      {R"({"must":"","keyed":[{"k":"a"},{"k":"a"}]})",
       "spec.keyed[1]: Duplicate value: map[string]interface {}{\"k\":\"a\"}"},
      {R"({"must":"","either":"50%"})", ""},
      {R"({"must":"","either":true})",
       "spec.either: Invalid value: \"boolean\": spec.either in body must be of type "
       "integer,string: \"boolean\""},
      {R"({"must":"","map":{"a":true,"b":false}})",
       "spec.map: Too many: 2: must have at most 1 items"},
      {R"({"must":"","map":{"a":1}})",
       "spec.map.a: Invalid value: \"integer\": spec.map.a in body must be of type boolean: "
       "\"integer\""},
      {R"({"must":"","level":3})",
       "spec.level: Unsupported value: \"3\": supported values: \"1\", \"2\""},
      {R"({"must":"","free":{"any":[1,{"deep":null}]}})", ""},
      {R"({"must":"","logic":{"a":""}})", ""},
      {R"({"must":"","logic":{}})",
       "<nil>: Invalid value: \"\": \"spec.logic\" must validate one and only one schema (oneOf). "
       "Found none valid\nspec.logic.a: Required value"},
      {R"({"must":"","logic":{"a":"","b":""}})",
       "<nil>: Invalid value: \"\": \"spec.logic\" must validate one and only one schema (oneOf). "
       "Found 2 valid alternatives"},
      {R"({"must":"","date":"2026-13-01"})",
       "spec.date: Invalid value: \"2026-13-01\": spec.date in body must be of type date-time: "
       "\"2026-13-01\""},
  };
  for (const Case& c : kCases) {
    json::Value object = json::Object();
    json::Set(object, {"spec"}, J(c.spec));
    EXPECT_EQ(Errors(ValidateAgainst(*schema, object)), c.error) << c.spec;
  }
}

TEST_F(SchemaTest, FormatsOfTexts) {
  SchemaPtr schema = Crd(R"({"type":"object","properties":{"spec":{"type":"object","properties":{
      "day":{"type":"string","format":"date"},
      "mail":{"type":"string","format":"email"},
      "odd":{"type":"string","format":"odd"}
      }}}})");
  ASSERT_NE(schema, nullptr);
  json::Value object = json::Object();
  json::Set(object, {"spec"}, J(R"({"day":"2026-12-01","mail":"a@b.c","odd":"x"})"));
  EXPECT_EQ(Errors(ValidateAgainst(*schema, object)), "");
  json::Set(object, {"spec"}, J(R"({"day":"2026-13-01","mail":"nope"})"));
  EXPECT_EQ(Errors(ValidateAgainst(*schema, object)),
            "spec.day: Invalid value: \"2026-13-01\": spec.day in body must be of type date: "
            "\"2026-13-01\"\nspec.mail: Invalid value: \"nope\": spec.mail in body must be of type "
            "email: \"nope\"");
}

TEST_F(SchemaTest, PatternsSeeOneLine) {
  SchemaPtr schema = Crd(R"({"type":"object","properties":{
      "word":{"type":"string","pattern":"^[a-z]+$"}, "any":{"type":"string","pattern":"^a.b$"}}})");
  ASSERT_NE(schema, nullptr);
  EXPECT_EQ(Errors(ValidateAgainst(*schema, J(R"({"word":"abc","any":"a-b"})"))), "");
  for (const char* text : {R"({"word":"abc\n"})", R"({"word":"abc\nD"})", R"({"any":"a\nb"})"}) {
    EXPECT_NE(Errors(ValidateAgainst(*schema, J(text))), "") << text;
  }
}

TEST_F(SchemaTest, MetadataOfEmbeddedObjectsIsMetadata) {
  SchemaPtr schema = Crd(R"({"type":"object","properties":{"pod":{"type":"object",
      "x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}})");
  ASSERT_NE(schema, nullptr);
  auto errors = [&schema](const char* metadata) {
    json::Value object = J(R"({"pod":{"apiVersion":"v1","kind":"Pod"}})");
    json::Set(object, {"pod", "metadata"}, J(metadata));
    return ValidateAgainst(*schema, object);
  };
  EXPECT_EQ(Errors(errors(R"({"labels":{"a":"b"},"annotations":{"a":"b c"}})")), "");
  const auto wrong = errors(R"({"labels":{"a":"b c"},"annotations":{"a b":"c"}})");
  ASSERT_EQ(wrong.size(), 2u);
  EXPECT_EQ(wrong[0].field, "pod.metadata.labels");
  EXPECT_EQ(wrong[1].field, "pod.metadata.annotations");
}

TEST_F(SchemaTest, PrunesAndDefaultsCustomObjects) {
  SchemaPtr schema = Crd(R"({"type":"object","properties":{"spec":{"type":"object","properties":{
      "mode":{"type":"string","default":"fast"},
      "inner":{"type":"object","default":{},"properties":{"n":{"type":"integer","default":3}}},
      "list":{"type":"array","items":{"type":"object","properties":{
        "on":{"type":"boolean","default":true}}}},
      "free":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{
        "known":{"type":"object","properties":{"a":{"type":"string"}}}}}}}}})");
  ASSERT_NE(schema, nullptr);
  json::Value object = J(R"({"apiVersion":"g/v1","kind":"K","metadata":{"name":"x"},
      "junk":1,"spec":{"junk":2,"mode":null,"list":[{"junk":3},{"on":false}],
      "free":{"kept":4,"known":{"a":"","gone":5}}}})");
  EXPECT_EQ(
      UnknownFields(*schema, object),
      (std::vector<std::string>{"junk", "spec.junk", "spec.list[0].junk", "spec.free.known.gone"}));
  PruneUnknown(*schema, object);
  ApplyDefaults(*schema, object);
  EXPECT_TRUE(json::Equal(object, J(R"({"apiVersion":"g/v1","kind":"K","metadata":{"name":"x"},
      "spec":{"mode":"fast","inner":{"n":3},"list":[{"on":true},{"on":false}],
      "free":{"kept":4,"known":{"a":""}}}})")))
      << json::Print(object);
}

TEST_F(SchemaTest, RefusesWhatIsNotStructural) {
  struct Case {
    const char* schema;
    const char* error;
  };
  const Case kCases[] = {
      {R"({"type":"string"})", "must be object at the root"},
      {R"({"type":"object","properties":{"a":{}}})",
       "properties[a].type: Required value: must not be empty for specified object fields"},
      {R"({"type":"object","properties":{"a":{"type":"array"}}})",
       "properties[a].items: Required value: must be specified"},
      {R"({"type":"object","properties":{"a":{"type":"text"}}})", "Unsupported value: \"text\""},
      {R"({"type":"object","properties":{"a":{"type":"object","properties":{},
          "additionalProperties":{"type":"string"}}}})",
       "additionalProperties and properties are mutual exclusive"},
      {R"({"type":"object","properties":{"a":{"$ref":"#/x"}}})", "$ref is not supported"},
      {R"({"type":"object","properties":{"a":{"type":"array","uniqueItems":true,
          "items":{"type":"string"}}}})",
       "uniqueItems cannot be set to true"},
      {R"({"type":"object","properties":{"a":{"type":"string","pattern":"("}}})",
       "must be a valid regular expression"},
      {R"({"type":"object","properties":{"a":{"type":"string","default":1}}})",
       "properties[a].default: Invalid value"},
      {R"({"type":"object","anyOf":[{"type":"object"}]})", "must be empty to be structural"},
      {R"({"type":"object","properties":{"a":{"type":"array","x-kubernetes-list-type":"map",
          "items":{"type":"object"}}}})",
       "must not be empty if x-kubernetes-list-type is map"},
      {R"({"type":"object","properties":{"metadata":{"type":"object","required":["x"]}}})",
       "must not specify anything other than name and generateName"},
      {R"({"type":"object","properties":{"a":7}})", "must be a schema"},
      {R"([])", "must be"},
  };
  for (const Case& c : kCases) {
    EXPECT_NE(CrdError(c.schema).find(c.error), std::string::npos)
        << c.schema << "\n  says: " << CrdError(c.schema);
  }
  std::string deep = R"({"type":"object"})";
  for (int i = 0; i < 30; ++i) {
    deep = StrCat(R"({"type":"object","properties":{"a":)", deep, "}}");
  }
  EXPECT_EQ(CrdError(deep), "");
}

TEST_F(SchemaTest, PatternsThatNeverEndDoNotMatch) {
  SchemaPtr schema = Crd(R"({"type":"object","properties":{
      "a":{"type":"string","pattern":"^(a+)+$"}}})");
  ASSERT_NE(schema, nullptr);
  json::Value object = json::Object();
  json::Set(object, {"a"}, json::Value(std::string(5000, 'a') + "!"));
  EXPECT_EQ(ValidateAgainst(*schema, object).size(), 1u);
}

TEST(SchemaTextTest, ReadsEveryMark) {
  SchemaLibrary library({R"(package a.b
type Leaf preserve atomic: A leaf.
  x! string #3: Needed: always.
type Root: The root.
  leaves [Leaf] #1 merge=x: Odd.
  byName [Leaf] #2.7* merge=x map=x,y retain: Keyed.
  words [string] merge: A set.
  again Root: Itself.
  n int32 min=-1 max=5 default=3: A number.
  state string enum=On|Off:
type More with=Leaf: A leaf with more.
  y int32: Another.
package a.c
copy Root from a.b
)"});
  SchemaPtr root = library.Find("a.b.Root");
  ASSERT_NE(root, nullptr);
  const SchemaField* keyed = root->Field("byName");
  EXPECT_EQ(keyed->proto, 7);
  EXPECT_EQ(keyed->proto_outer, 2);
  EXPECT_TRUE(keyed->proto_pointer);
  EXPECT_TRUE(keyed->schema->patch_merge);
  EXPECT_TRUE(keyed->schema->patch_retain_keys);
  EXPECT_EQ(keyed->schema->list_map_keys, (std::vector<std::string>{"x", "y"}));
  EXPECT_TRUE(keyed->schema->items->preserve_unknown);
  EXPECT_TRUE(keyed->schema->items->atomic);
  EXPECT_EQ(keyed->schema->items->fields[0].description, "Needed: always.");
  EXPECT_TRUE(keyed->schema->items->fields[0].required);
  EXPECT_EQ(root->Field("words")->schema->list_type, ListType::kSet);
  EXPECT_EQ(root->Field("again")->schema.get(), root.get());
  EXPECT_EQ(root->Field("n")->schema->minimum, "-1");
  EXPECT_EQ(json::Print(*root->Field("n")->default_value), "3");
  EXPECT_EQ(root->Field("state")->schema->enum_values, (std::vector<std::string>{"On", "Off"}));
  const SchemaPtr more = library.Find("a.b.More");
  ASSERT_EQ(more->fields.size(), 2u);
  EXPECT_TRUE(more->Field("x")->required);
  EXPECT_EQ(more->fields[1].name, "y");
  EXPECT_FALSE(more->preserve_unknown);
  EXPECT_EQ(library.Find("a.c.Root")->name, "a.c.Root");
  EXPECT_EQ(library.Find("a.c.Leaf"), nullptr);
}

}  // namespace
}  // namespace swell::api
