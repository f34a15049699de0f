// What the scheduler is told of pods.
#include "sched_inputs/sched_convert.h"

#include <set>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/objects/node.h"
#include "sched/state/exclusive_claims.h"
#include "sched/state/shape.h"
#include "sched_inputs/goodput_note.h"

namespace swell::sched_inputs {
namespace {

TEST(SchedConvert, PodRequestsFollowKubernetes) {
  auto spec = json::Parse(R"({"containers":[
      {"resources":{"requests":{"cpu":"500m","memory":"1Gi"}}},
      {"resources":{"limits":{"cpu":"1","nvidia.com/gpu":"2"}}}],
    "initContainers":[{"resources":{"requests":{"cpu":"2","memory":"1Mi"}}}],
    "overhead":{"cpu":"100m"}})");
  ASSERT_TRUE(spec.ok());
  sched::Resources requests = PodRequests(*spec);
  EXPECT_EQ(requests.cpu_milli, 2100);
  EXPECT_EQ(requests.memory_bytes, 1LL << 30);
  EXPECT_EQ(requests.extended["nvidia.com/gpu"], 2);
}

TEST(SchedConvert, UnhealthyGpusAreLeftOutOnceWhicheverIsSaidFirst) {
  for (const char* allocatable : {"4", "3"}) {
    const auto node = json::Parse(StrCat(R"({"metadata":{"name":"n",
        "annotations":{"swell.dev/unhealthy-gpus":"2"}},
        "status":{"capacity":{"nvidia.com/gpu":"4"},"allocatable":{"nvidia.com/gpu":")",
                                         allocatable, R"("}}})"));
    ASSERT_TRUE(node.ok());
    const sched::NodeInfo info = ToNodeInfo(*node);
    EXPECT_EQ(info.allocatable.extended.at("nvidia.com/gpu"), 3);
    EXPECT_EQ(info.labels.at("swell.dev/unhealthy-gpus"), "2");
  }
  const auto well = json::Parse(R"({"metadata":{"name":"n",
      "labels":{"swell.dev/unhealthy-gpus":"0"}}})");
  ASSERT_TRUE(well.ok());
  EXPECT_TRUE(ToNodeInfo(*well).labels.empty()) << "a label of that name says nothing";
}

TEST(SchedConvert, BadQuantitiesCountAsNothing) {
  auto spec = json::Parse(
      R"({"containers":[{"resources":{"requests":{"cpu":"lots","memory":-5,"x/y":{}}}}]})");
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(PodRequests(*spec), sched::Resources{});
}

// Controllers read tolerations from documents, the scheduler from types of its own.
TEST(SchedConvert, TolerationsMeanTheSameToControllersAndTheScheduler) {
  const auto parse = [](std::string_view text) {
    auto value = json::Parse(text);
    SWELL_CHECK(value.ok());
    return std::move(*value);
  };
  const json::Value node = parse(R"({"spec":{"taints":[
      {"key":"a","value":"x","effect":"NoSchedule"}, {"key":"a","effect":"NoSchedule"},
      {"key":"a","value":"x","effect":"NoExecute"}, {"key":"a","effect":"PreferNoSchedule"},
      {"key":"b","value":"x","effect":"NoSchedule"}]}})");
  const std::vector<api::Taint> taints = api::TaintsOf(node);
  const sched::NodeInfo info = ToNodeInfo(node);
  ASSERT_EQ(info.taints.size(), taints.size());
  // Which of the taints each bears.
  const std::pair<const char*, const char*> rows[] = {
      {R"({})", "-----"},
      {R"({"operator":"Exists"})", "+++++"},
      {R"({"operator":"Exists","effect":"NoExecute"})", "--+--"},
      {R"({"key":"a","operator":"Exists"})", "++++-"},
      {R"({"key":"a","operator":"Exists","value":"y","effect":"NoSchedule"})", "++---"},
      {R"({"key":"a","operator":"Equal","value":"x"})", "+-+--"},
      {R"({"key":"a","value":"x","effect":"NoSchedule"})", "+----"},
      {R"({"key":"a"})", "-+-+-"},
      {R"({"key":"c","operator":"Exists"})", "-----"},
      {R"({"operator":"Equal","value":"x"})", "-----"},
  };
  for (const auto& [text, expected] : rows) {
    const json::Value toleration = parse(text);
    const sched::PodInfo pod =
        ToPodInfo(json::Object{{"spec", json::Object{{"tolerations", json::Array{toleration}}}}});
    std::string documents, scheduler;
    for (size_t i = 0; i < taints.size(); ++i) {
      documents += api::Tolerates(toleration, taints[i]) ? '+' : '-';
      scheduler += sched::Tolerates(pod.tolerations, info.taints[i]) ? '+' : '-';
    }
    EXPECT_EQ(documents, expected) << text;
    EXPECT_EQ(scheduler, expected) << text;
  }
}

TEST(SchedConvert, PortsOfSidecarsAreHeldAndThoseOfOtherInitContainersAreNot) {
  const auto pod = json::Parse(R"({"spec":{
      "initContainers":[{"restartPolicy":"Always","ports":[{"hostPort":1,"containerPort":1}]},
                        {"ports":[{"hostPort":2,"containerPort":2}]}],
      "containers":[{"ports":[{"hostPort":3,"containerPort":3},{"containerPort":4}]}]}})");
  ASSERT_TRUE(pod.ok());
  std::set<int32_t> ports;
  for (const sched::HostPort& port : ToPodInfo(*pod).host_ports) ports.insert(port.port);
  EXPECT_EQ(ports, (std::set<int32_t>{1, 3}));
}

TEST(SchedConvert, SpreadConstraintsSayWhatKubernetesReadsInThem) {
  const auto pod = json::Parse(R"({"metadata":{"labels":{"app":"web","hash":"1"}},
      "spec":{"topologySpreadConstraints":[
        {"topologyKey":"zone","maxSkew":2,"minDomains":3,"nodeAffinityPolicy":"Ignore",
         "nodeTaintsPolicy":"Honor","labelSelector":{"matchLabels":{"app":"web"}},
         "matchLabelKeys":["hash","missing"]},
        {"topologyKey":"zone","labelSelector":{},"whenUnsatisfiable":"ScheduleAnyway"},
        {"topologyKey":"zone"}]}})");
  ASSERT_TRUE(pod.ok());
  const std::vector<sched::SpreadConstraint> spread = ToPodInfo(*pod).spread;
  ASSERT_EQ(spread.size(), 3u);
  const sched::SpreadConstraint all{.max_skew = 2,
                                    .topology_key = "zone",
                                    .required = true,
                                    .selector = {{"app", sched::SelectorOp::kIn, {"web"}},
                                                 {"hash", sched::SelectorOp::kIn, {"1"}}},
                                    .min_domains = 3,
                                    .honors_affinity = false,
                                    .honors_taints = true};
  EXPECT_EQ(spread[0], all);
  EXPECT_FALSE(spread[1].required);
  const sched::SpreadConstraint usual{.topology_key = "zone", .selector = spread[2].selector};
  EXPECT_EQ(spread[2], usual);
  for (size_t i : {1, 2}) {
    EXPECT_FALSE(sched::MatchesAll({{"app", "web"}}, spread[i].selector)) << "no pod counts";
    EXPECT_FALSE(sched::MatchesAll({}, spread[i].selector));
  }
}

TEST(SchedConvert, TermsAboutPodsTakeLabelsOfThePodItself) {
  const auto pod = json::Parse(R"({"metadata":{"labels":{"tenant":"a"}},
      "spec":{"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[
        {"topologyKey":"zone","labelSelector":{},"mismatchLabelKeys":["tenant"]},
        {"topologyKey":"zone","labelSelector":{"matchExpressions":[
           {"key":"tenant","operator":"In","values":["a"]}]},"matchLabelKeys":["tenant"]},
        {"topologyKey":"zone"}]}}}})");
  ASSERT_TRUE(pod.ok());
  const auto terms = ToPodInfo(*pod).required_anti_affinity;
  ASSERT_EQ(terms.size(), 3u);
  const std::vector<sched::Requirement> others{{"tenant", sched::SelectorOp::kNotIn, {"a"}}};
  const std::vector<sched::Requirement> own{{"tenant", sched::SelectorOp::kIn, {"a"}}};
  EXPECT_EQ(terms[0].selector, others);
  EXPECT_EQ(terms[1].selector, own) << "as a server writes it that does so itself";
  EXPECT_FALSE(sched::MatchesAll({{"tenant", "a"}}, terms[2].selector)) << "no selector: no pod";
}

TEST(SchedConvert, NamespacesAreSelectedByTheirLabels) {
  const auto pod = json::Parse(R"({"spec":{"affinity":{"podAffinity":{
      "requiredDuringSchedulingIgnoredDuringExecution":[
        {"topologyKey":"z","namespaces":["listed"],"labelSelector":{},
         "namespaceSelector":{"matchLabels":{"tenant":"a"}}},
        {"topologyKey":"z","labelSelector":{},
         "namespaceSelector":{"matchLabels":{"tenant":"none"}}},
        {"topologyKey":"z","labelSelector":{},"namespaceSelector":{}},
        {"topologyKey":"z","labelSelector":{}}]}}}})");
  const auto ours = json::Parse(R"({"metadata":{"name":"ours","labels":{"tenant":"a"}}})");
  const auto theirs = json::Parse(R"({"metadata":{"name":"theirs"}})");
  ASSERT_TRUE(pod.ok() && ours.ok() && theirs.ok());
  const auto namespaces = [&](const json::Value& selector) {
    return SelectNamespaces(selector, {&*ours, &*theirs});
  };
  const auto terms = ToPodInfo(*pod, {}, namespaces).required_affinity;
  ASSERT_EQ(terms.size(), 4u);
  EXPECT_EQ(terms[0].namespaces, (std::vector<std::string>{"listed", "ours"}));
  EXPECT_EQ(terms[1].namespaces, std::vector<std::string>{""}) << "not the pod's own";
  EXPECT_TRUE(terms[2].all_namespaces);
  EXPECT_TRUE(terms[3].namespaces.empty()) << "the pod's own";
  for (size_t i : {0, 1, 3}) EXPECT_FALSE(terms[i].all_namespaces);
}

TEST(SchedConvert, AClaimOfOnePodIsToldOnceAndOthersAreNot) {
  const auto pod = json::Parse(
      R"({"metadata":{"name":"p","namespace":"ns"},"spec":{"volumes":[
        {"name":"a","persistentVolumeClaim":{"claimName":"alone"}},
        {"name":"b","persistentVolumeClaim":{"claimName":"alone"}},
        {"name":"c","persistentVolumeClaim":{"claimName":"shared"}}]}})");
  const auto alone = json::Parse(R"({"spec":{"accessModes":["ReadWriteOncePod"]}})");
  const auto shared = json::Parse(R"({"spec":{"accessModes":["ReadWriteOnce"]}})");
  ASSERT_TRUE(pod.ok() && alone.ok() && shared.ok());
  const FindObject nothing = [](std::string_view) -> const json::Value* { return nullptr; };
  const StorageView storage{[&](std::string_view key) -> const json::Value* {
                              return key == "ns/alone" ? &*alone : &*shared;
                            },
                            nothing,
                            nothing,
                            {}};
  sched::PodInfo info = ToPodInfo(*pod);
  AddVolumeTerms(*pod, storage, info);
  EXPECT_EQ(info.labels, (sched::Labels{{sched::ExclusiveClaimLabel("alone"), ""}}));
  ASSERT_EQ(info.required_anti_affinity.size(), 1u);
  EXPECT_EQ(info.required_anti_affinity[0], sched::ExclusiveClaimTerm("alone"));
}

TEST(SchedConvert, PhasesOfPods) {
  auto phase = [](std::string_view text) {
    auto pod = json::Parse(text);
    SWELL_CHECK(pod.ok());
    return ToPodInfo(*pod).phase;
  };
  EXPECT_EQ(phase(R"({"status":{"phase":"Pending"}})"), sched::PodPhase::kPending);
  EXPECT_EQ(phase(R"({"spec":{"nodeName":"n"},"status":{"phase":"Pending"}})"),
            sched::PodPhase::kBound);
  EXPECT_EQ(phase(R"({"spec":{"nodeName":"n"},"status":{"phase":"Running"}})"),
            sched::PodPhase::kRunning);
  EXPECT_EQ(phase(R"({"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},
                      "spec":{"nodeName":"n"},"status":{"phase":"Running"}})"),
            sched::PodPhase::kReleasing);
  EXPECT_EQ(phase(R"({"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},
                      "spec":{"nodeName":"n"},"status":{"phase":"Failed"}})"),
            sched::PodPhase::kFailed);
}

TEST(SchedConvert, WhatIsInAProjectsNamespaceIsThatProjectsWhateverItSays) {
  const auto pod = json::Parse(R"({"metadata":{"labels":{"swell.dev/project":"said"}}})");
  ASSERT_TRUE(pod.ok());
  EXPECT_EQ(ToPodInfo(*pod).queue, "said");
  EXPECT_EQ(ToPodInfo(*pod, "team").queue, "team");
  const auto group = json::Parse(R"({"spec":{"project":"said"}})");
  ASSERT_TRUE(group.ok());
  const FindObject none = [](std::string_view) { return nullptr; };
  EXPECT_EQ(ToGroupInfo(*group, none).queue, "said");
  EXPECT_EQ(ToGroupInfo(*group, none, "team").queue, "team");
}

TEST(SchedConvert, GoodputOfAGroupIsWhatItsNoteSays) {
  auto group_with = [](const std::string& note) {
    return json::Value(json::Object{
        {"metadata", json::Object{{"annotations", json::Object{{"swell.dev/goodput", note}}}}}});
  };
  const sched::GoodputInfo said{.pod_set = "worker",
                                .curve = {{1, 1'000'000}, {4, 3'100'000}},
                                .measured_at = 2,
                                .resize_cost = std::chrono::milliseconds(300)};
  EXPECT_EQ(ToGoodput(group_with(GoodputNote(said))), said);
  for (const char* nonsense : {"", "{", "[]", R"({"curve":7})", R"({"curve":[1,[2],["a","b"]]})",
                               R"({"curve":[[0,5],[3,-1],[99999999999,1]],"measuredAt":-4})"}) {
    EXPECT_TRUE(ToGoodput(group_with(nonsense)).curve.empty()) << nonsense;
  }
}

TEST(SchedConvert, RulesBetweenUsersAndWhoseAPodIs) {
  const auto project = json::Parse(R"({"spec":{"users":{"gpuLimit":2.5,"fairShare":true}}})");
  ASSERT_TRUE(project.ok());
  EXPECT_EQ(ToQueueInfo(*project).user_gpu_limit, 2.5);
  EXPECT_TRUE(ToQueueInfo(*project).fair_to_users);
  const auto plain = json::Parse(R"({"spec":{}})");
  ASSERT_TRUE(plain.ok());
  EXPECT_LT(ToQueueInfo(*plain).user_gpu_limit, 0);
  EXPECT_FALSE(ToQueueInfo(*plain).fair_to_users);
  const auto pod = json::Parse(R"({"metadata":{"annotations":{"swell.dev/user":"alice"}}})");
  ASSERT_TRUE(pod.ok());
  EXPECT_EQ(ToPodInfo(*pod).user, "alice");
}

}  // namespace
}  // namespace swell::sched_inputs
