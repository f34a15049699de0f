// States in files: what is read, what is refused, and what simulation makes of them.
#include "scheduling/simulate.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/meta/meta.h"

namespace swell::scheduling {
namespace {

constexpr const char* kNode = R"(
apiVersion: v1
kind: Node
metadata: {name: n0}
status:
  allocatable: {cpu: "8", memory: 32Gi, pods: "110", nvidia.com/gpu: "2"}
  conditions: [{type: Ready, status: "True"}]
)";

std::string Pod(const std::string& name, const std::string& rest, const std::string& status) {
  return "---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: " + name +
         "\n  namespace: default\n  uid: " + name + "\n  labels: {swell.dev/pod-group: " + name +
         "}\nspec:\n  schedulerName: swell\n" + rest +
         "  containers:\n  - name: main\n    resources: {requests: {cpu: \"1\", nvidia.com/gpu: "
         "\"2\"}}\nstatus: {phase: " +
         status + "}\n";
}

std::string Group(const std::string& name, const std::string& priority_class) {
  return "---\napiVersion: swell.dev/v1\nkind: PodGroup\nmetadata: {name: " + name +
         ", namespace: default, uid: " + name + "}\nspec: {priorityClassName: " + priority_class +
         "}\n---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: " +
         priority_class + "}\nvalue: " + (priority_class == "high" ? "90" : "10") + "\n";
}

SimulateOptions AtNoon(int cycles) {
  SimulateOptions options;
  options.now = *api::ParseTime("2026-01-01T12:00:00Z");
  options.cycles = cycles;
  return options;
}

// A volume of n0 keeps its pod there: nobody can move it to make one piece of what is free.
TEST(Simulate, MovesNothingAwayFromItsVolume) {
  auto node = [](const std::string& name) {
    return "---\napiVersion: v1\nkind: Node\nmetadata: {name: " + name +
           ", labels: {kubernetes.io/hostname: " + name +
           "}}\nstatus: {allocatable: {cpu: 8, memory: 32Gi, pods: 110, nvidia.com/gpu: 4}, "
           "conditions: [{type: Ready, status: 'True'}]}\n";
  };
  std::string state = node("n0") + node("n1") + Group("here", "low") + Group("there", "low2") +
                      Group("whole", "low3") + Pod("here", "  nodeName: n0\n", "Running") +
                      Pod("there", "  nodeName: n1\n", "Running");
  for (size_t at; (at = state.find("nodeName: n")) != std::string::npos;) {
    const std::string on = state.substr(at + 10, 2);
    state.replace(at, 12,
                  "\"nodeName\": " + on +
                      "\n  volumes: [{name: v, persistentVolumeClaim: {claimName: of-" + on +
                      "}}]");
    state += "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: of-" + on +
             ", namespace: default}\nspec: {volumeName: of-" + on +
             "}\nstatus: {phase: Bound}\n---\napiVersion: v1\nkind: PersistentVolume\nmetadata: "
             "{name: of-" +
             on +
             "}\nspec: {nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: "
             "kubernetes.io/hostname, operator: In, values: [" +
             on + "]}]}]}}}\n";
  }
  std::string whole = Pod("whole", "", "Pending");
  whole.replace(whole.find("nvidia.com/gpu: \"2\""), 19, "nvidia.com/gpu: \"4\"");
  std::vector<std::string> problems;
  const json::Value out = Simulate(ReadState(state + whole, problems), AtNoon(1));
  EXPECT_TRUE(problems.empty()) << problems.front();
  const json::Array& cycles = json::GetArray(out, {"cycles"});
  ASSERT_EQ(cycles.size(), 1u);
  EXPECT_TRUE(json::GetArray(cycles[0], {"decisions"}).empty()) << json::Print(cycles[0]);
}

std::string StatusOf(const json::Value& view, std::string_view pod) {
  for (const json::Value& one : json::GetArray(view, {"pods"})) {
    if (json::GetString(one, {"name"}) == pod) return std::string(json::GetString(one, {"status"}));
  }
  return "absent";
}

TEST(Simulate, PlaysAPreemptionThroughItsCycles) {
  std::vector<std::string> problems;
  const std::string state = std::string(kNode) + Group("low", "low") + Group("urgent", "high") +
                            Pod("low", "  nodeName: n0\n", "Running") +
                            Pod("urgent", "", "Pending");
  const json::Value out = Simulate(ReadState(state, problems), AtNoon(2));
  ASSERT_TRUE(problems.empty()) << problems.front();
  const json::Array& cycles = json::GetArray(out, {"cycles"});
  ASSERT_EQ(cycles.size(), 2u);
  EXPECT_EQ(json::GetString(out, {"now"}), "2026-01-01T12:00:00Z");
  EXPECT_EQ(StatusOf(cycles[0], "default/low"), "Releasing");
  EXPECT_EQ(StatusOf(cycles[0], "default/urgent"), "Nominated");
  const json::Value& settled = *json::Find(cycles[0], {"settled"});
  EXPECT_EQ(StatusOf(settled, "default/low"), "Pending");
  EXPECT_EQ(StatusOf(settled, "default/urgent"), "Pending");
  EXPECT_EQ(StatusOf(cycles[1], "default/urgent"), "Bound");
  EXPECT_EQ(StatusOf(cycles[1], "default/low"), "Pending");
  const json::Value& evict = json::GetArray(cycles[0], {"decisions"})[0];
  EXPECT_EQ(json::GetString(evict, {"type"}), "evict");
  EXPECT_EQ(json::GetString(evict, {"rule"}), "preempt");
  EXPECT_TRUE(json::GetString(evict, {"reason"}).starts_with("Preempted by default/urgent"));
}

// A project over its quota has two GPUs by a claim; another is due one of them, by a claim, too.
TEST(Simulate, ReclaimsWhatIsHeldByClaims) {
  auto project = [](const std::string& name) {
    return StrCat("---\napiVersion: swell.dev/v1\nkind: Project\nmetadata: {name: ", name,
                  "}\nspec: {namespace: ", name, ", resources: {gpu: {quota: 1}}}\n");
  };
  auto claim = [](const std::string& ns, int count, const std::string& status) {
    return StrCat("---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c, ",
                  "namespace: ", ns, ", uid: c-", ns,
                  "}\nspec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: any, ",
                  "allocationMode: ExactCount, count: ", count, "}}]}}\n", status);
  };
  auto pod = [](const std::string& ns, const std::string& spec, const std::string& phase) {
    return StrCat("---\napiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: ", ns,
                  ", uid: p-", ns, "}\nspec: {schedulerName: swell, ", spec,
                  "resourceClaims: [{name: g, resourceClaimName: c}], containers: [{name: main, ",
                  "image: x, resources: {requests: {cpu: 1}, claims: [{name: g}]}}]}\nstatus: ",
                  "{phase: ", phase, "}\n");
  };
  const std::string state = StrCat(
      "apiVersion: v1\nkind: Node\nmetadata: {name: n0}\nstatus:\n  allocatable: {cpu: '8', "
      "memory: "
      "32Gi, pods: '110'}\n  conditions: [{type: Ready, status: 'True'}]\n",
      "---\napiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: any}\n",
      "spec: {selectors: [{cel: {expression: 'device.driver == \"gpu.nvidia.com\"'}}]}\n",
      "---\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s}\n",
      "spec: {driver: gpu.nvidia.com, nodeName: n0, pool: {name: n0, generation: 1, ",
      "resourceSliceCount: 1}, devices: [{name: a}, {name: b}]}\n", project("has"), project("due"),
      claim("has", 2,
            "status: {allocation: {devices: {results: [{request: gpu, driver: gpu.nvidia.com, "
            "pool: n0, device: a}, {request: gpu, driver: gpu.nvidia.com, pool: n0, device: b}]}}, "
            "reservedFor: [{resource: pods, name: p, uid: p-has}]}\n"),
      claim("due", 1, ""), pod("has", "nodeName: n0, ", "Running"), pod("due", "", "Pending"));
  std::vector<std::string> problems;
  const json::Value out = Simulate(ReadState(state, problems), AtNoon(2));
  ASSERT_TRUE(problems.empty()) << problems.front();
  const json::Array& cycles = json::GetArray(out, {"cycles"});
  ASSERT_EQ(cycles.size(), 2u);
  EXPECT_EQ(StatusOf(cycles[0], "has/p"), "Releasing") << json::Print(cycles[0]);
  EXPECT_EQ(StatusOf(cycles[0], "due/p"), "Nominated");
  EXPECT_EQ(StatusOf(cycles[1], "due/p"), "Bound");
  EXPECT_EQ(StatusOf(cycles[1], "has/p"), "Pending");
}

std::string Plain(const std::string& name, const std::string& rest, const std::string& phase) {
  return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + name +
         ", namespace: default, uid: " + name + ", labels: {app: web}}\nspec:\n" +
         "  schedulerName: swell\n" + rest +
         "  containers:\n  - name: main\n    resources: {requests: {nvidia.com/gpu: \"1\"}}\n"
         "status: {phase: " +
         phase + "}\n";
}

constexpr const char* kUrgent =
    "---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\n"
    "value: 90\n---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\n"
    "metadata: {name: polite}\nvalue: 95\npreemptionPolicy: Never\n";

std::string Reason(const json::Value& view, std::string_view pod) {
  for (const json::Value& one : json::GetArray(view, {"pods"})) {
    if (json::GetString(one, {"name"}) == pod) return std::string(json::GetString(one, {"reason"}));
  }
  return "absent";
}

TEST(Simulate, BudgetsCoverPodsWithoutAGroup) {
  for (const std::string budget :
       {"spec: {minAvailable: 2, selector: {matchLabels: {app: web}}}\n",
        "spec: {maxUnavailable: 1, selector: {matchExpressions: [{key: app, operator: In, values: "
        "[web]}]}}\nstatus: {disruptionsAllowed: 0}\n"}) {
    std::vector<std::string> problems;
    const std::string state =
        std::string(kNode) + kUrgent + Plain("a", "  nodeName: n0\n", "Running") +
        Plain("b", "  nodeName: n0\n", "Running") +
        "---\napiVersion: v1\nkind: Pod\nmetadata: {name: urgent, namespace: default, uid: u}\n"
        "spec:\n  schedulerName: swell\n  priorityClassName: high\n  containers:\n  - name: m\n"
        "    resources: {requests: {nvidia.com/gpu: \"1\"}}\nstatus: {phase: Pending}\n" +
        "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web, namespace: "
        "default}\n" +
        budget;
    const json::Value out = Simulate(ReadState(state, problems), AtNoon(1));
    ASSERT_TRUE(problems.empty()) << problems.front();
    const json::Value& cycle = json::GetArray(out, {"cycles"})[0];
    EXPECT_EQ(json::GetArray(cycle, {"decisions"}).size(), 0u) << budget;
    EXPECT_NE(Reason(cycle, "default/urgent").find("disruption budget"), std::string::npos);
  }
}

TEST(Simulate, ABudgetLetsGoNoMoreInLaterCycles) {
  std::vector<std::string> problems;
  std::string state =
      std::string(kNode) + kUrgent + Plain("a", "  nodeName: n0\n", "Running") +
      Plain("b", "  nodeName: n0\n", "Running") +
      Plain("c", "  priorityClassName: high\n", "Pending") +
      Plain("d", "  priorityClassName: high\n", "Pending") +
      "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web, namespace: "
      "default}\nspec: {minAvailable: 1, selector: {matchLabels: {app: web}}}\n"
      "status: {disruptionsAllowed: 1}\n";
  const json::Value out = Simulate(ReadState(state, problems), AtNoon(2));
  ASSERT_TRUE(problems.empty()) << problems.front();
  int evictions = 0;
  for (const json::Value& cycle : json::GetArray(out, {"cycles"})) {
    for (const json::Value& decision : json::GetArray(cycle, {"decisions"})) {
      evictions += json::GetString(decision, {"type"}) == "evict";
    }
  }
  EXPECT_EQ(evictions, 1);
}

TEST(Simulate, WhoMayNotPreemptStopsNobody) {
  std::vector<std::string> problems;
  const std::string state = std::string(kNode) + kUrgent + Group("low", "low") +
                            Pod("low", "  nodeName: n0\n", "Running") +
                            Plain("never", "  priorityClassName: polite\n", "Pending") +
                            Plain("said", "  priority: 99\n  preemptionPolicy: Never\n", "Pending");
  const json::Value out = Simulate(ReadState(state, problems), AtNoon(1));
  ASSERT_TRUE(problems.empty()) << problems.front();
  const json::Value& cycle = json::GetArray(out, {"cycles"})[0];
  EXPECT_EQ(json::GetArray(cycle, {"decisions"}).size(), 0u) << json::Print(cycle);
  EXPECT_NE(Reason(cycle, "default/never").find("its preemptionPolicy is Never"),
            std::string::npos);
}

TEST(Simulate, PodsWaitForTheirClaims) {
  const std::string volume = "  volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]\n";
  const std::string pod = std::string(kNode) + Plain("p", volume, "Pending");
  auto claim = [](const std::string& rest, const std::string& more = "") {
    return "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: "
           "default" +
           more + "}\n" + rest +
           "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: late}\n"
           "provisioner: example.com/disk\nvolumeBindingMode: WaitForFirstConsumer\n"
           "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: local}\n"
           "provisioner: kubernetes.io/no-provisioner\nvolumeBindingMode: WaitForFirstConsumer\n"
           "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: now}\n"
           "provisioner: example.com/disk\n"
           "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: v}\nspec: {}\n";
  };
  auto other = [](const std::string& name, const std::string& ns) {
    return "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " + name +
           ", namespace: " + ns + "}\nspec: {}\n";
  };
  const std::pair<std::string, std::string> kCases[] = {
      {"",
       "persistentvolumeclaim \"data\" not found; namespace \"default\" has none; apply a "
       "PersistentVolumeClaim of this name"},
      {other("sets", "default") + other("results", "default") + other("data-2", "lab"),
       "persistentvolumeclaim \"data\" not found; namespace \"default\" has sets, results; apply a "
       "PersistentVolumeClaim of this name"},
      {other("sets", "default") + other("dta", "default"),
       "persistentvolumeclaim \"data\" not found; did you mean \"dta\"? Otherwise apply a "
       "PersistentVolumeClaim of this name"},
      {claim("spec: {storageClassName: now}\n", ", deletionTimestamp: '2026-01-01T11:00:00Z'"),
       "persistentvolumeclaim \"data\" is being deleted"},
      {claim("spec: {storageClassName: now}\n"),
       "pod has unbound immediate PersistentVolumeClaims (data)"},
      {claim("spec: {storageClassName: gone}\n"),
       "pod has unbound immediate PersistentVolumeClaims (data)"},
      {claim("spec: {storageClassName: late, volumeName: v}\n"),
       "pod has unbound immediate PersistentVolumeClaims (data)"},
      {claim("spec: {storageClassName: local}\n"),
       "node(s) didn't find available persistent volumes to bind"},
      {claim("spec: {volumeName: w}\nstatus: {phase: Bound}\n"),
       "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"},
      {claim("spec: {storageClassName: late}\n"), ""},
      {claim("spec: {volumeName: v}\nstatus: {phase: Bound}\n"), ""},
  };
  for (const auto& [rest, why] : kCases) {
    std::vector<std::string> problems;
    const json::Value out = Simulate(ReadState(pod + rest, problems), AtNoon(1));
    ASSERT_TRUE(problems.empty()) << problems.front();
    const json::Value& cycle = json::GetArray(out, {"cycles"})[0];
    EXPECT_EQ(StatusOf(cycle, "default/p"), why.empty() ? "Bound" : "Pending") << rest;
    if (why.empty()) continue;
    EXPECT_EQ(Reason(cycle, "default/p"), "0/1 nodes are available: " + why + ".");
  }
}

TEST(Simulate, SameInputSameOutput) {
  const std::string state = std::string(kNode) + Group("a", "low") + Pod("a", "", "Pending");
  std::vector<std::string> problems;
  const json::Value once = Simulate(ReadState(state, problems), AtNoon(3));
  const json::Value again = Simulate(ReadState(state, problems), AtNoon(3));
  EXPECT_EQ(json::Print(once), json::Print(again));
}

TEST(ReadState, TellsEveryProblemWithObjectAndField) {
  std::vector<std::string> problems;
  ReadState(R"({"kind": "List", "items": [
    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"},
     "status": {"allocatable": {"cpu": "many"}}},
    {"apiVersion": "swell.dev/v1", "kind": "Project", "metadata": {"name": "p"},
     "spec": {"parent": "q"}},
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}},
    {"apiVersion": "example.com/v1", "kind": "Other", "metadata": {"name": "x"}}]})",
            problems);
  EXPECT_EQ(problems, (std::vector<std::string>{
                          "Pod x: metadata.namespace is missing",
                          "Node n: status.allocatable.cpu is not an amount: \"many\"",
                          "Project p: spec.parent names no project: \"q\"",
                      }));
}

TEST(ReadState, TellsWhatDoesNotHaveItsKindsForm) {
  auto problems_of = [](const std::string& object) {
    std::vector<std::string> problems;
    ReadState(StrCat("apiVersion: v1\nkind: List\nitems:\n- ", object), problems);
    return Join(problems, "\n");
  };
  EXPECT_EQ(problems_of("{apiVersion: swell.dev/v1, kind: PodGroup, metadata: {name: g, namespace: "
                        "d}, spec: {podSets: [{name: w, minMember: -1}]}}"),
            "PodGroup d/g: spec.podSets[0].minMember: Invalid value: -1: "
            "spec.podSets[0].minMember in body should be greater than or equal to 0");
  EXPECT_EQ(problems_of("{apiVersion: swell.dev/v1, kind: Project, metadata: {name: p}, "
                        "spec: {resources: {gpu: {quota: -2}, memory: {quota: 64Gi, limit: -1}}, "
                        "nodePools: [{name: x, resources: {cpu: {limit: few}}}]}}"),
            "Project p: spec.resources.gpu.quota is not an amount: -2\n"
            "Project p: spec.nodePools[0].resources.cpu.limit is not an amount: \"few\"");
  EXPECT_EQ(problems_of("{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: d}, spec: "
                        "{containers: [{name: c, resources: {requests: {nvidia.com/gpu: 0.5}}}]}}"),
            "Pod d/p: spec.containers[c].resources.requests.nvidia.com/gpu is not a whole number: "
            "0.5");
  EXPECT_EQ(problems_of("{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: d, "
                        "annotations: {swell.dev/gpu-fraction: 0.5}}, spec: {containers: []}}"),
            "Pod d/p: json: cannot unmarshal number into Go struct field "
            "ObjectMeta.metadata.annotations of type string");
  EXPECT_EQ(problems_of("5"), "item 1: is not an object");
}

TEST(ReadState, TellsPodSetsDevicesAndPartsThatThereAreNot) {
  auto problems_of = [](const std::string& labels, const std::string& annotations) {
    std::vector<std::string> problems;
    ReadState(StrCat(kNode, R"(
---
apiVersion: swell.dev/v1
kind: PodGroup
metadata: {name: g, namespace: d}
spec: {podSets: [{name: w, minMember: 1}]}
---
apiVersion: v1
kind: Pod
metadata:
  name: p
  namespace: d
  labels: {swell.dev/pod-group: g, )",
                     labels, "}\n  annotations: {", annotations, R"(}
spec:
  nodeName: n0
  containers: [{name: c, resources: {requests: {nvidia.com/gpu: 2}}}]
status: {phase: Running}
)"),
              problems);
    return Join(problems, "\n");
  };
  const std::string devices = "Pod d/p: metadata.annotations[swell.dev/gpu-devices] ";
  EXPECT_EQ(problems_of("swell.dev/pod-set: w", "swell.dev/gpu-devices: '0,1'"), "");
  EXPECT_EQ(problems_of("", ""), "");
  EXPECT_EQ(problems_of("swell.dev/pod-set: v", ""),
            "Pod d/p: metadata.labels[swell.dev/pod-set] names no pod set of pod group d/g: \"v\"");
  EXPECT_EQ(problems_of("", "swell.dev/gpu-devices: '0,2'"),
            devices + "names device 2 of node n0, which has 2 GPUs: \"0,2\"");
  EXPECT_EQ(problems_of("", "swell.dev/gpu-devices: '1,1'"),
            devices + "names device 1 twice: \"1,1\"");
  EXPECT_EQ(problems_of("", "swell.dev/gpu-devices: '0'"),
            devices + "names 1 devices, and the pod asks for 2: \"0\"");
  EXPECT_EQ(problems_of("", "swell.dev/gpu-devices: 'a'"),
            devices + "is not a list of device indices such as 0,2: \"a\"");
  EXPECT_EQ(
      problems_of("", "swell.dev/gpu-fraction: '2'"),
      "Pod d/p: metadata.annotations[swell.dev/gpu-fraction]: Invalid value: \"2\": must be a "
      "part of a GPU, at least 0.01 and at most 1");
}

TEST(ReadState, NothingIsNoState) {
  std::vector<std::string> problems;
  ReadState("{", problems);
  EXPECT_EQ(problems.size(), 1u);
  problems.clear();
  ReadState("", problems);
  EXPECT_EQ(problems.size(), 1u);
}

TEST(Settings, AreReadAndRefused) {
  sched::Settings settings;
  EXPECT_TRUE(SetSetting("staleGracePeriod", "1m30s", settings).ok());
  EXPECT_EQ(settings.stale_grace, std::chrono::seconds(90));
  EXPECT_TRUE(SetSetting("reserveAfter", "0", settings).ok());
  EXPECT_EQ(settings.reserve_after, Duration::zero());
  EXPECT_TRUE(SetSetting("movePause", "5m", settings).ok());
  EXPECT_EQ(settings.move_pause, std::chrono::minutes(5));
  EXPECT_TRUE(SetSetting("pastUseShare", "0.5", settings).ok());
  EXPECT_DOUBLE_EQ(settings.past_share, 0.5);
  EXPECT_EQ(SetSetting("staleGracePeriod", "soon", settings).message(),
            "staleGracePeriod \"soon\" is not a duration such as 90s");
  EXPECT_EQ(
      SetSetting("colour", "red", settings).message(),
      "no setting is called \"colour\"; the settings are staleGracePeriod, reserveAfter, movePause,"
      " pastUseHalfLife, pastUseShare");
}

}  // namespace
}  // namespace swell::scheduling
