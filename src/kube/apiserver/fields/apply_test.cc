// Server-side apply and managedFields, end to end.
#include <algorithm>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/apiserver/test_server.h"

namespace swell::apiserver {
namespace {

constexpr char kApply[] = "application/apply-patch+yaml";

class ApplyTest : public ::testing::Test {
 protected:
  ApplyTest() { server.Boot(); }

  // `body` without apiVersion and kind.
  Answer Apply(std::string path,
               const std::string& manager,
               const std::string& body,
               bool force = false) {
    const bool map = path.find("/configmaps/") != std::string::npos;
    return server.Patch(StrCat(path, "?fieldManager=", manager, force ? "&force=true" : ""),
                        StrCat(map ? "apiVersion: v1\nkind: ConfigMap\n"
                                   : "apiVersion: apps/v1\nkind: Deployment\n",
                               body),
                        kApply);
  }
  // `manager Operation[/subresource] {fields}` per entry.
  static std::vector<std::string> Managers(const Answer& answer) {
    std::vector<std::string> out;
    for (const json::Value& entry : json::GetArray(answer.body, {"metadata", "managedFields"})) {
      const std::string_view sub = json::GetString(entry, {"subresource"});
      out.push_back(StrCat(json::GetString(entry, {"manager"}), " ",
                           json::GetString(entry, {"operation"}), sub.empty() ? "" : "/", sub, " ",
                           json::Print(*json::Find(entry, {"fieldsV1"}))));
    }
    return out;
  }

  TestServer server;
};

using Texts = std::vector<std::string>;

TEST_F(ApplyTest, EveryWriterIsAManager) {
  const Answer made = server.Post(StrCat(kMaps, "?fieldManager=kubectl-create"),
                                  R"({"metadata":{"name":"a","labels":{"x":"y"}},
                                      "data":{"k":"v","l":"w"}})");
  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_EQ(Managers(made), (Texts{R"(kubectl-create Update {"f:data":{".":{},"f:k":{},"f:l":{}},)"
                                   R"("f:metadata":{"f:labels":{".":{},"f:x":{}}}})"}));
  const Answer patched =
      server.Merge(StrCat(kMaps, "/a?fieldManager=other"), R"({"data":{"k":"z","l":null}})");
  EXPECT_EQ(Managers(patched), (Texts{R"(kubectl-create Update {"f:data":{},)"
                                      R"("f:metadata":{"f:labels":{".":{},"f:x":{}}}})",
                                      R"(other Update {"f:data":{"f:k":{}}})"}));
  // A writer that changes nothing manages nothing, and the entries keep their times.
  server.executor.Advance(std::chrono::seconds(90));
  const Answer same = server.Merge(StrCat(kMaps, "/a?fieldManager=third"), R"({"data":{"k":"z"}})");
  EXPECT_EQ(same.text, patched.text);
}

TEST_F(ApplyTest, Parts) {
  const Answer pod = server.Post(StrCat(kPods, "?fieldManager=m"), PodJson("p"));
  ASSERT_EQ(pod.status, 201) << pod.text;
  const std::string fields = Managers(pod)[0];
  // A struct that every pod has is not a field; a map and a list's item are; what admission added
  // belongs to nobody.
  EXPECT_NE(fields.find(R"("f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{})"),
            std::string::npos)
      << fields;
  EXPECT_EQ(fields.find("f:tolerations"), std::string::npos) << fields;
  EXPECT_EQ(fields.find("f:status"), std::string::npos) << fields;
  const Answer status = server.Merge(
      StrCat(kPods, "/p/status?fieldManager=kubelet"),
      R"({"status":{"conditions":[{"type":"Ready","status":"True"}],"podIP":"10.0.0.9"}})");
  EXPECT_EQ(Managers(status).back(), R"(m Update )" + fields.substr(fields.find('{')))
      << status.text;
  EXPECT_EQ(Managers(status)[0].rfind("kubelet Update/status {\"f:status\":{\"f:conditions\":", 0),
            0U)
      << Managers(status)[0];
}

TEST_F(ApplyTest, ConflictsNameManagersAndPaths) {
  server.Post(StrCat(kMaps, "?fieldManager=kubectl-create"),
              R"({"metadata":{"name":"a"},"data":{"k":"v","l":"w"}})");
  const std::string path = StrCat(kMaps, "/a");
  const Answer one = Apply(path, "me", "data: {k: x, l: w}");
  EXPECT_EQ(one.status, 409);
  EXPECT_EQ(one.Message(),
            "Apply failed with 1 conflict: conflict with \"kubectl-create\" using v1: .data.k");
  const json::Array& causes = json::GetArray(one.body, {"details", "causes"});
  ASSERT_EQ(causes.size(), 1U);
  EXPECT_EQ(json::GetString(causes[0], {"reason"}), "FieldManagerConflict");
  EXPECT_EQ(json::GetString(causes[0], {"field"}), ".data.k");
  EXPECT_EQ(json::GetString(causes[0], {"message"}), "conflict with \"kubectl-create\" using v1");
  EXPECT_EQ(Apply(path, "me", "data: {k: x, l: x}").Message(),
            "Apply failed with 2 conflicts: conflicts with \"kubectl-create\" using v1:\n"
            "- .data.k\n- .data.l");
  const Answer forced = Apply(path, "me", "data: {k: x, l: w}", true);
  EXPECT_EQ(Managers(forced), (Texts{R"(me Apply {"f:data":{"f:k":{},"f:l":{}}})",
                                     R"(kubectl-create Update {"f:data":{".":{},"f:l":{}}})"}));
  // Between appliers no version is named.
  EXPECT_EQ(Apply(path, "you", "data: {k: q}").Message(),
            "Apply failed with 1 conflict: conflict with \"me\": .data.k");
}

TEST_F(ApplyTest, WhatIsGivenUpGoesUnlessSomebodyElseHasIt) {
  const std::string path = StrCat(kMaps, "/a");
  ASSERT_EQ(Apply(path, "me", "data: {k: v, l: w, m: x}").status, 201);
  ASSERT_EQ(Apply(path, "you", "data: {l: w}").status, 200);
  const Answer less = Apply(path, "me", "data: {m: x}");
  EXPECT_EQ(json::Print(*json::Find(less.body, {"data"})), R"({"l":"w","m":"x"})");
  EXPECT_EQ(Managers(less),
            (Texts{R"(me Apply {"f:data":{"f:m":{}}})", R"(you Apply {"f:data":{"f:l":{}}})"}));
  EXPECT_EQ(Apply(path, "me", "data: {m: x}").text, less.text) << "a no-op writes nothing";
}

TEST_F(ApplyTest, KeyedListsMergeByKeyAndAtomicOnesAreReplaced) {
  const std::string path = "/apis/apps/v1/namespaces/default/deployments/d";
  const std::string head =
      "spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: "
      "{containers: ";
  const Answer made = Apply(path, "me", head + "[{name: x, image: i, args: [p, q]}]}}}");
  ASSERT_EQ(made.status, 201) << made.text;
  const Answer both = Apply(path, "you", head + "[{name: z, image: j}]}}}");
  ASSERT_EQ(both.status, 200) << both.text;
  EXPECT_EQ(json::GetArray(both.body, {"spec", "template", "spec", "containers"}).size(), 2U);
  const Answer conflict = Apply(path, "you", head + "[{name: x, args: [p]}]}}}");
  EXPECT_EQ(conflict.Message(),
            "Apply failed with 1 conflict: conflict with \"me\": "
            ".spec.template.spec.containers[name=\"x\"].args");
  const Answer gone = Apply(path, "you", "spec: {template: {metadata: {labels: {a: b}}}}");
  ASSERT_EQ(gone.status, 200) << gone.text;
  EXPECT_EQ(json::GetArray(gone.body, {"spec", "template", "spec", "containers"}).size(), 1U);
}

constexpr char kDeploymentPath[] = "/apis/apps/v1/namespaces/default/deployments/d";

// A Deployment whose pods have, beside one container, what `pod` says.
std::string WithPod(std::string_view pod) {
  return StrCat(
      "spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: "
      "{containers: [{name: x, image: i}], ",
      pod, "}}}");
}

std::string PodPart(const Answer& answer, std::string_view field) {
  const json::Value* found = json::Find(answer.body, {"spec", "template", "spec", field});
  return found == nullptr ? "" : json::Print(*found);
}

TEST_F(ApplyTest, AtomicMapsAreReplacedWhole) {
  const std::string path = kDeploymentPath;
  ASSERT_EQ(Apply(path, "me", WithPod("nodeSelector: {zone: a}")).status, 201);
  const Answer other = Apply(path, "me", WithPod("nodeSelector: {disk: ssd}"));
  EXPECT_EQ(PodPart(other, "nodeSelector"), R"({"disk":"ssd"})") << other.text;
  const Answer conflict = Apply(path, "you", WithPod("nodeSelector: {zone: b}"));
  EXPECT_EQ(conflict.Message(),
            "Apply failed with 1 conflict: conflict with \"me\": "
            ".spec.template.spec.nodeSelector");
  const Answer forced = Apply(path, "you", WithPod("nodeSelector: {zone: b}"), true);
  EXPECT_EQ(PodPart(forced, "nodeSelector"), R"({"zone":"b"})") << forced.text;
}

// The defaults of a volume's old source stayed beside the new one, so the volume had two.
TEST_F(ApplyTest, AStructThatIsGivenUpGoesWithItsDefaults) {
  const std::string path = kDeploymentPath;
  const std::string map = "volumes: [{name: v, configMap: {name: m}}]";
  ASSERT_EQ(Apply(path, "me", WithPod(map)).status, 201);
  const Answer other = Apply(path, "me", WithPod("volumes: [{name: v, emptyDir: {}}]"));
  EXPECT_EQ(PodPart(other, "volumes"), R"([{"name":"v","emptyDir":{}}])") << other.text;
  ASSERT_EQ(Apply(path, "me", WithPod("affinity: {nodeAffinity: {}}")).status, 200);
  const Answer none = Apply(path, "me", WithPod(""));
  ASSERT_EQ(none.status, 200) << none.text;
  EXPECT_EQ(PodPart(none, "volumes"), "");
  EXPECT_EQ(PodPart(none, "affinity"), "");
  EXPECT_EQ(PodPart(none, "dnsPolicy"), R"("ClusterFirst")") << "a default of its own";
}

TEST_F(ApplyTest, ScalesAreAppliedToo) {
  const std::string path = kDeploymentPath;
  ASSERT_EQ(Apply(path, "me", StrCat(WithPod(""), "\n")).status, 201);
  auto scale = [&](const std::string& manager, int replicas, bool force) {
    return server.Patch(
        StrCat(path, "/scale?fieldManager=", manager, force ? "&force=true" : ""),
        StrCat("apiVersion: autoscaling/v1\nkind: Scale\nspec: {replicas: ", replicas, "}"),
        kApply);
  };
  const Answer three = scale("scaler", 3, false);
  ASSERT_EQ(three.status, 200) << three.text;
  EXPECT_EQ(three.Str({"kind"}), "Scale");
  const Answer now = server.Get(path);
  EXPECT_EQ(json::GetInt(now.body, {"spec", "replicas"}), 3);
  const Texts managers = Managers(now);
  EXPECT_NE(std::find(managers.begin(), managers.end(),
                      R"(scaler Apply/scale {"f:spec":{"f:replicas":{}}})"),
            managers.end())
      << now.text;
  EXPECT_EQ(scale("other", 4, false).status, 409);
  EXPECT_EQ(scale("other", 4, true).status, 200);
}

// One by one each of these takes minutes.
TEST_F(ApplyTest, ManyMembersAndItemsAreMergedAndGivenUpInOnePass) {
  auto object = [](int count, std::string_view value) {
    std::string members;
    for (int i = 0; i < count; ++i) members += StrCat(i == 0 ? "" : ", ", "k", i, ": ", value);
    return StrCat("data: {", members, "}");
  };
  const std::string path = StrCat(kMaps, "/a");
  ASSERT_EQ(Apply(path, "me", object(60'000, "v")).status, 201);
  const Answer less = Apply(path, "me", "data: {k7: v}");
  EXPECT_EQ(json::Print(*json::Find(less.body, {"data"})), R"({"k7":"v"})");
  const Answer nothing = server.Post(
      kMaps, StrCat("metadata: {name: nulls}\n", object(100'000, "null")), "application/yaml");
  EXPECT_EQ(nothing.status, 201) << nothing.text.substr(0, 300);
  const Answer strange =
      server.Post(kMaps, StrCat("{metadata: {name: strange}, ", object(100'000, "1").substr(7)),
                  "application/yaml");
  EXPECT_EQ(strange.status, 201) << strange.text.substr(0, 300);

  const std::string deployment = "/apis/apps/v1/namespaces/default/deployments/d";
  auto with = [](int first, int last, int step) {
    std::string env;
    for (int i = first; i != last; i += step) {
      env += StrCat(env.empty() ? "" : ", ", "{name: E", i, ", value: v}");
    }
    return StrCat(
        "spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: "
        "{containers: [{name: x, image: i, env: [",
        env, "]}]}}}");
  };
  ASSERT_EQ(Apply(deployment, "me", with(0, 10'000, 1)).status, 201);
  ASSERT_EQ(Apply(deployment, "you", with(9'999, -1, -1)).status, 200);
  ASSERT_EQ(Apply(deployment, "you", with(0, 1, 1)).status, 200);
  const Answer one = Apply(deployment, "me", with(0, 1, 1));
  const json::Value& container =
      json::GetArray(one.body, {"spec", "template", "spec", "containers"}).at(0);
  EXPECT_EQ(json::Print(*json::Find(container, {"env"})), R"([{"name":"E0","value":"v"}])");
}

TEST_F(ApplyTest, KubectlTakesOverWhatItAppliedFromItsOwnSide) {
  const std::string last = R"({\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",)"
                           R"(\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"v\"}})";
  server.Post(
      StrCat(kMaps, "?fieldManager=kubectl-client-side-apply"),
      R"({"metadata":{"name":"a","annotations":{"kubectl.kubernetes.io/last-applied-configuration":")" +
          last + R"("}},"data":{"k":"v"}})");
  const std::string path = StrCat(kMaps, "/a");
  EXPECT_EQ(Apply(path, "another", "data: {k: x}").status, 409);
  const Answer applied = Apply(path, "kubectl", "data: {k: x}");
  ASSERT_EQ(applied.status, 200) << applied.text;
  EXPECT_EQ(applied.Str({"data", "k"}), "x");
  EXPECT_NE(
      applied.Str({"metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"})
          .find(R"("k":"x")"),
      std::string::npos);
}

TEST_F(ApplyTest, ResetForgetsAndManagersMayBeEdited) {
  server.Post(kMaps, R"({"metadata":{"name":"a"},"data":{"k":"v"}})");
  const Answer reset = server.Merge(StrCat(kMaps, "/a"), R"({"metadata":{"managedFields":[{}]}})");
  EXPECT_EQ(Managers(reset), Texts());
  const Answer first = Apply(StrCat(kMaps, "/a"), "me", "data: {l: w}");
  EXPECT_EQ(Managers(first), (Texts{R"(me Apply {"f:data":{"f:l":{}}})",
                                    R"(before-first-apply Update {"f:data":{".":{},"f:k":{}}})"}));
  const Answer edited = server.Patch(StrCat(kMaps, "/a"),
                                     R"([{"op":"replace","path":"/metadata/managedFields/1/manager",
                                "value":"renamed"}])",
                                     "application/json-patch+json");
  EXPECT_EQ(Managers(edited)[1].substr(0, 7), "renamed") << edited.text;
}

TEST_F(ApplyTest, TooManyUpdatersBecomeOne) {
  server.Post(kMaps, R"({"metadata":{"name":"a"},"data":{"k":"v"}})");
  Answer last;
  for (int i = 0; i < 14; ++i) {
    server.executor.Advance(std::chrono::seconds(2));
    last = server.Merge(StrCat(kMaps, "/a?fieldManager=m", i),
                        StrCat(R"({"data":{"k)", i, R"(":"v"}})"));
  }
  const Texts managers = Managers(last);
  EXPECT_EQ(managers.size(), 10U);
  EXPECT_EQ(managers[0].rfind("ancient-changes Update", 0), 0U) << managers[0];
}

TEST_F(ApplyTest, RefusesWhatItsTypeDoesNotDeclare) {
  const std::string path = StrCat(kMaps, "/a");
  struct Case {
    const char* body;
    int status;
    const char* message;
  };
  const Case cases[] = {
      {"foo: bar", 500,
       "failed to create typed patch object (default/a; /v1, Kind=ConfigMap): .foo: field not "
       "declared in schema"},
      {"data: {k: [1]}", 500,
       "failed to create typed patch object (default/a; /v1, Kind=ConfigMap): .data.k: expected "
       "string, got &{[1]}"},
      {"metadata: {finalizers: [a/b, c/d, a/b]}", 500,
       "failed to create typed patch object (default/a; /v1, Kind=ConfigMap): "
       ".metadata.finalizers: duplicate entries for key [=\"a/b\"]"},
      {"metadata: {managedFields: [{manager: x}]}", 400, "metadata.managedFields must be nil"},
      {"apiVersion: v2", 400,
       "Incorrect version specified in apply patch. Specified patch version: v2, expected: v1"},
      {"metadata: {name: b}", 400,
       "the name of the object (b) does not match the name on the URL (a)"},
  };
  for (const Case& c : cases) {
    const std::string body = c.body;
    const std::string version = body.rfind("apiVersion", 0) == 0 ? "" : "apiVersion: v1\n";
    const Answer answer = server.Patch(StrCat(path, "?fieldManager=m"),
                                       StrCat(version, "kind: ConfigMap\n", body), kApply);
    EXPECT_EQ(answer.status, c.status) << c.body;
    EXPECT_EQ(answer.Message(), c.message) << c.body;
  }
  EXPECT_EQ(server.Patch(path, "data: {}", kApply).Message(),
            "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required "
            "for apply patch");
}

}  // namespace
}  // namespace swell::apiserver
