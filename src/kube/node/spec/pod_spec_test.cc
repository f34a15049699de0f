#include "kube/node/spec/pod_spec.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "base/strings.h"

namespace swell::node {
namespace {

// What the agent writes while the pod runs is not the pod's to change.
TEST(PodSpecTest, FilesOfTheClusterAreMountedReadOnly) {
  const json::Value pod = json::Parse(R"({"metadata":{"name":"a","uid":"u"},"spec":{"volumes":[
      {"name":"scratch","emptyDir":{}},{"name":"code","configMap":{"name":"c"}},
      {"name":"key","secret":{"secretName":"s"}},{"name":"about","downwardAPI":{}},
      {"name":"all","projected":{"sources":[]}}],
      "containers":[{"name":"main","image":"x","volumeMounts":[
        {"name":"scratch","mountPath":"/scratch"},{"name":"code","mountPath":"/code"},
        {"name":"key","mountPath":"/key"},{"name":"about","mountPath":"/about"},
        {"name":"all","mountPath":"/all"}]}]}})")
                              .value();
  const PodSources sources;
  const auto made = MakeContainerSpec({pod, sources, "", "", {}, {}},
                                      json::GetArray(pod, {"spec", "containers"})[0], 0);
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  ASSERT_EQ(made->mounts.size(), 5u);
  for (const MountSpec& mount : made->mounts) {
    EXPECT_EQ(mount.read_only, mount.volume != "scratch") << mount.volume;
  }
}

// The message of a container with these fields; empty: it can be started.
std::string Refusal(const std::string& fields) {
  const auto pod = json::Parse(StrCat(
      R"({"metadata":{"name":"a","uid":"u"},"spec":{"containers":[{"name":"main","image":"x",)",
      fields, "}]}}"));
  SWELL_CHECK(pod.ok());
  const PodSources sources;
  const auto made = MakeContainerSpec({*pod, sources, "", "", {}, {}},
                                      json::GetArray(*pod, {"spec", "containers"})[0], 0);
  return made.ok() ? "" : made.status().message();
}

TEST(PodSpecTest, WhatAZeroByteWouldCutIsRefusedByField) {
  const std::string why = R"(: has a zero byte (\u0000), and what follows it would be lost)";
  EXPECT_EQ(Refusal(R"("env":[{"name":"A","value":"a\u0000b"}])"), "env[A]" + why);
  EXPECT_EQ(Refusal(R"("env":[{"name":"A","value":"a"}],"args":["x","$(A)\u0000"])"),
            "args[1]" + why);
  EXPECT_EQ(Refusal(R"("command":["sh\u0000"])"), "command[0]" + why);
  EXPECT_EQ(Refusal(R"("workingDir":"/\u0000")"), "workingDir" + why);
  EXPECT_EQ(Refusal(R"("volumeMounts":[{"name":"v","mountPath":"/v","subPath":"..\u0000"}])"),
            "volumeMounts[v].subPath" + why);
  EXPECT_EQ(Refusal(R"("terminationMessagePath":"/dev/x\u0000")"), "terminationMessagePath" + why);
}

// Each variable names the one before it ten times.
std::string Bomb(int levels) {
  std::string env = R"({"name":"V0","value":"0123456789"})";
  for (int level = 1; level <= levels; ++level) {
    env += StrCat(R"(,{"name":"V)", level, R"(","value":")");
    for (int i = 0; i < 10; ++i) env += StrCat("$(V", level - 1, ")");
    env += "\"}";
  }
  return StrCat(R"("env":[)", env, "]");
}

TEST(PodSpecTest, VariablesInVariablesDoNotGrowWithoutEnd) {
  EXPECT_EQ(Refusal(Bomb(4)), "");
  EXPECT_EQ(Refusal(Bomb(40)),
            "env[V5]: is longer than the 131071 bytes that a program can be given");
  std::string many = R"("env":[{"name":"A","value":")" + std::string(100'000, 'x') + "\"}";
  for (int i = 0; i < 1000; ++i) many += StrCat(R"(,{"name":"B)", i, R"~(","value":"$(A)"})~");
  EXPECT_EQ(Refusal(many + "]"),
            "env: all together is longer than the 6291456 bytes that a program can be given");
  std::string args =
      R"("env":[{"name":"A","value":")" + std::string(100'000, 'x') + R"("}],"args":[)";
  for (int i = 0; i < 1000; ++i) args += StrCat(i == 0 ? "" : ",", R"~("$(A)")~");
  EXPECT_EQ(Refusal(args + "]"),
            "args: all together is longer than the 6291456 bytes that a program can be given");
}

json::SharedValue Shared(const std::string& text) {
  auto value = json::Parse(text);
  SWELL_CHECK(value.ok());
  return std::make_shared<const json::Value>(std::move(*value));
}

// The message of a pod with these volumes; empty: they can be made.
std::string RefusalOfVolumes(const PodSources& sources, const std::string& volumes) {
  const auto pod = Shared(StrCat(R"({"metadata":{"name":"a","namespace":"ns"},"spec":{"volumes":)",
                                 R"([{"name":"v",)", volumes, "}]}}"));
  const auto made = ResolveVolumes(*pod, sources, {*pod, sources, "", "", {}, {}});
  return made.ok() ? "" : made.status().message();
}

TEST(PodSpecTest, OneObjectInManyFilesIsBounded) {
  PodSources sources;
  sources.Put("configmap", "c",
              Shared(StrCat(R"({"data":{"k":")", std::string(1 << 20, 'x'), "\"}}")));
  std::string items, maps;
  for (int i = 0; i < 100; ++i) {
    const std::string item = StrCat(R"({"key":"k","path":"f)", i, "\"}");
    items += StrCat(i == 0 ? "" : ",", item);
    maps += StrCat(i == 0 ? "" : ",", R"({"configMap":{"name":"c","items":[)", item, "]}}");
  }
  const std::string why = "the files of the pod's volumes have more than 32 MiB";
  EXPECT_EQ(RefusalOfVolumes(sources, R"("configMap":{"name":"c"})"), "");
  EXPECT_EQ(RefusalOfVolumes(sources, StrCat(R"("configMap":{"name":"c","items":[)", items, "]}")),
            why);
  EXPECT_EQ(RefusalOfVolumes(sources, StrCat(R"("projected":{"sources":[)", maps, "]}")), why);
  EXPECT_EQ(RefusalOfVolumes(sources,
                             R"("configMap":{"name":"c","items":[{"key":"k","path":"..\u0000"}]})"),
            "volume \"v\" : path \"..\\x00\" has a zero byte");
}

TEST(PodSpecTest, AVolumeOfAnotherClaimIsNotMounted) {
  PodSources sources;
  sources.Put("claim", "c", Shared(R"({"spec":{"volumeName":"pv"}})"));
  const std::string claim = R"("persistentVolumeClaim":{"claimName":"c"})";
  for (const char* ref : {R"({"namespace":"ns","name":"c"})", "null"}) {
    sources.Put("volume", "pv",
                Shared(StrCat(R"({"metadata":{"name":"pv"},"spec":{"hostPath":{"path":"/srv"},)",
                              R"("claimRef":)", ref, "}}")));
    EXPECT_EQ(RefusalOfVolumes(sources, claim), "") << ref;
  }
  sources.Put("volume", "pv",
              Shared(R"({"metadata":{"name":"pv"},"spec":{"hostPath":{"path":"/srv"},)"
                     R"("claimRef":{"namespace":"other","name":"c"}}})"));
  EXPECT_EQ(RefusalOfVolumes(sources, claim),
            "volume \"v\" : persistentvolumeclaim \"c\": volume \"pv\" belongs to another claim");
}

TEST(PodSpecTest, AnEphemeralVolumeIsTheClaimThatWasMadeForItsPod) {
  PodSources sources;
  const std::string volume = R"("ephemeral":{"volumeClaimTemplate":{"spec":{}}})";
  EXPECT_EQ(RefusalOfVolumes(sources, volume),
            "volume \"v\" : persistentvolumeclaim \"a-v\" not found");
  const std::string claim = R"({"metadata":{"name":"a-v","namespace":"ns","ownerReferences":[)";
  sources.Put("claim", "a-v", Shared(claim + "]}}"));
  EXPECT_EQ(RefusalOfVolumes(sources, volume),
            "volume \"v\" : PVC ns/a-v was not created for pod ns/a (pod is not owner)");
  sources.Put("claim", "a-v",
              Shared(claim + R"({"apiVersion":"v1","kind":"Pod","name":"a","uid":"",)"
                             R"("controller":true}]}})"));
  EXPECT_EQ(RefusalOfVolumes(sources, volume), "");
}

TEST(PodSpecTest, AGangSharesCheckpointsWhoeverMadeItsPods) {
  auto key = [](std::string_view metadata) {
    auto pod = json::Parse(StrCat(R"({"metadata":{"namespace":"ns","name":"p",)", metadata, "}}"));
    SWELL_CHECK(pod.ok());
    return CheckpointKey(*pod);
  };
  const std::string labels = R"("labels":{"swell.dev/pod-group":"jobset.s"},)";
  const std::string owned =
      R"("ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"s-a","uid":"0123456789",)"
      R"("controller":true}])";
  EXPECT_EQ(key(labels + owned), "ns/jobset.s-01234567");
  EXPECT_EQ(key(labels + R"("annotations":{"swell.dev/group-owner":"abcdefghij"},)" + owned),
            "ns/jobset.s-abcdefgh");
  EXPECT_EQ(key(R"("labels":{})"), "ns/p") << "made again, it is the same";
}

}  // namespace
}  // namespace swell::node
