#include "cli/nodes/node_check.h"

#include <algorithm>
#include <utility>

#include "base/median.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/node_health.h"
#include "kube/api/objects/pod.h"

namespace swell::cli {
namespace {

constexpr size_t kResultMax = 8 << 10;
constexpr size_t kMessageMax = 200;
constexpr size_t kNodesToCompare = 3;
// Nodes differ, and virtual ones share a machine.
constexpr double kSlowPart = 0.25;
constexpr int64_t kSecondsMax = 180;

// What the pod runs. Its result is one JSON object, as the termination message. A sum that every
// machine must agree on is worked out twice; memory and disk must give back what they were given.
constexpr std::string_view kScript = R"py(
import hashlib, json, os, sys, tempfile, time

EXPECTED = "281e519df3077b557c6b03f5da83c4e8d397219259615dd7c3308f89cae8f2a6"
BLOCK = bytes(range(256)) * 4096
MIB = len(BLOCK) / 2**20


def compute():
    start = time.perf_counter()
    for _ in range(3):
        total = hashlib.sha256()
        for _ in range(64):
            total.update(BLOCK)
        if total.hexdigest() != EXPECTED:
            return {"ok": False, "message": "a checksum came out wrong"}
    return {"ok": True, "rate": 3 * 64 * MIB / (time.perf_counter() - start)}


def memory():
    start = time.perf_counter()
    size = 1 << 20
    for pattern in (0x55, 0xAA):
        want = bytes([pattern]) * size
        room = bytearray(64 * size)
        for at in range(0, len(room), size):
            room[at : at + size] = want
        for at in range(0, len(room), size):
            if room[at : at + size] != want:
                return {"ok": False, "message": "memory did not keep what was written"}
        del room
    return {"ok": True, "rate": 2 * 64 / (time.perf_counter() - start)}


def disk():
    start = time.perf_counter()
    with tempfile.TemporaryFile() as file:
        for _ in range(32):
            file.write(BLOCK)
        file.flush()
        os.fsync(file.fileno())
        took = time.perf_counter() - start
        file.seek(0)
        for _ in range(32):
            if file.read(len(BLOCK)) != BLOCK:
                return {"ok": False, "message": "the disk did not give back what was written"}
    return {"ok": True, "rate": 32 * MIB / took}


def gpu():
    try:
        import torch
    except ImportError:
        return {"skipped": True, "message": "the image has no torch"}
    if not torch.cuda.is_available():
        return {"skipped": True, "message": "torch finds no CUDA device"}
    torch.manual_seed(1)
    a = torch.randn(4096, 4096, device="cuda")
    first = a @ a
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(20):
        again = a @ a
    torch.cuda.synchronize()
    took = time.perf_counter() - start
    if not torch.equal(first, again) or not bool(torch.isfinite(again).all()):
        return {"ok": False, "message": "one product came out in two ways"}
    return {"ok": True, "rate": 20 * 2 * 4096**3 / took / 1e12}


parts = [compute, memory, disk] + ([gpu] if os.environ.get("CHECK_GPU") else [])
result = {}
for part in parts:
    try:
        result[part.__name__] = part()
    except Exception as error:
        result[part.__name__] = {"ok": False, "message": f"{type(error).__name__}: {error}"[:200]}
text = json.dumps(result)
print(text)
with open(os.environ.get("SWELL_TERMINATION_LOG", "/dev/termination-log"), "w") as file:
    file.write(text)
sys.exit(any(one.get("ok") is False for one in result.values()))
)py";

CheckPart PartOf(const json::Value* found) {
  CheckPart part;
  if (found == nullptr || !found->is_object()) return part;
  part.message = std::string(json::GetString(*found, {"message"}).substr(0, kMessageMax));
  if (json::Find(*found, {"ok"}) == nullptr) return part;
  part.state = json::GetBool(*found, {"ok"}) ? CheckPart::State::kGood : CheckPart::State::kBad;
  const json::Value* rate = json::Find(*found, {"rate"});
  if (rate != nullptr && rate->is_number()) part.rate = rate->to_number<double>();
  return part;
}

void ReadResult(std::string_view text, NodeCheck& check) {
  const auto result = json::Parse(text, {.depth = 8, .bytes = kResultMax});
  if (!result.ok() || !result->is_object()) return;
  std::vector<std::string> faults;
  bool any = false;
  for (size_t i = 0; i < NodeCheck::kParts; ++i) {
    CheckPart& part = check.parts[i];
    part = PartOf(json::Find(*result, {NodeCheck::kPartNames[i]}));
    any |= part.state != CheckPart::State::kSkipped;
    if (part.state == CheckPart::State::kBad) {
      faults.push_back(StrCat(NodeCheck::kPartNames[i], ": ", part.message));
    }
  }
  if (!any) return;
  check.verdict = faults.empty() ? NodeCheck::Verdict::kGood : NodeCheck::Verdict::kBad;
  check.message = Join(faults, "; ");
}

}  // namespace

std::string_view VerdictWord(NodeCheck::Verdict verdict) {
  constexpr std::string_view kWords[] = {"Good", "Slow", "Bad", "Skipped", "Unknown"};
  return kWords[static_cast<size_t>(verdict)];
}

json::Value NodeCheck::ToJson() const {
  json::Object out{{"node", node}, {"verdict", VerdictWord(verdict)}};
  if (!gpu.empty()) out["gpu"] = gpu;
  if (!message.empty()) out["message"] = message;
  json::Object list;
  for (size_t i = 0; i < kParts; ++i) {
    const CheckPart& part = parts[i];
    constexpr std::string_view kStates[] = {"Skipped", "Good", "Bad"};
    json::Object one{{"state", kStates[static_cast<size_t>(part.state)]}};
    if (part.rate > 0) one[i == 3 ? "teraflops" : "mibPerSecond"] = part.rate;
    if (!part.message.empty()) one["message"] = part.message;
    list[kPartNames[i]] = std::move(one);
  }
  out["parts"] = std::move(list);
  return out;
}

json::Value CheckPod(const std::string& node,
                     const std::string& pod,
                     const std::string& image,
                     bool with_gpu) {
  json::Object resources{{"requests", json::Object{{"cpu", "100m"}, {"memory", "256Mi"}}}};
  json::Array env;
  if (with_gpu) {
    resources["limits"] = json::Object{{"nvidia.com/gpu", "1"}};
    env.push_back(json::Object{{"name", "CHECK_GPU"}, {"value", "1"}});
  }
  json::Array tolerations;
  for (std::string_view key : {api::keys::kUnhealthyTaint, api::keys::kSuspectTaint,
                               std::string_view("node.kubernetes.io/unschedulable")}) {
    tolerations.push_back(json::Object{{"key", key}, {"operator", "Exists"}});
  }
  const json::Value here = json::Object{
      {"nodeSelectorTerms",
       json::Array{json::Object{
           {"matchFields",
            json::Array{json::Object{
                {"key", "metadata.name"}, {"operator", "In"}, {"values", json::Array{node}}}}}}}}};
  return json::Object{
      {"apiVersion", "v1"},
      {"kind", "Pod"},
      {"metadata",
       json::Object{{"name", pod}, {"labels", json::Object{{"swell.dev/node-check", "true"}}}}},
      {"spec",
       json::Object{
           {"schedulerName", "swell"},
           {"restartPolicy", "Never"},
           {"activeDeadlineSeconds", kSecondsMax},
           {"terminationGracePeriodSeconds", 1},
           {"automountServiceAccountToken", false},
           {"tolerations", std::move(tolerations)},
           {"affinity",
            json::Object{{"nodeAffinity",
                          json::Object{{"requiredDuringSchedulingIgnoredDuringExecution", here}}}}},
           {"containers",
            json::Array{json::Object{{"name", "check"},
                                     {"image", image},
                                     {"command", json::Array{"python3", "-c", kScript}},
                                     {"env", std::move(env)},
                                     {"resources", std::move(resources)}}}}}}};
}

std::optional<NodeCheck> CheckOf(const std::string& node, const json::Value& pod) {
  if (!api::HasEnded(pod)) return std::nullopt;
  NodeCheck check{.node = node};
  check.gpu = std::string(api::Annotation(pod, api::keys::kGpuDevices));
  for (const json::Value& status : json::GetArray(pod, {"status", "containerStatuses"})) {
    const json::Value* end = json::Find(status, {"state", "terminated"});
    if (end == nullptr) continue;
    ReadResult(json::GetString(*end, {"message"}), check);
    if (check.verdict == NodeCheck::Verdict::kUnknown) {
      check.message = StrCat("the test exited with ", json::GetInt(*end, {"exitCode"}),
                             " and said nothing that can be read");
    }
  }
  if (api::ConditionIsTrue(pod, api::kDisruptionTarget)) {
    check.verdict = NodeCheck::Verdict::kSkipped;
    check.message = "other work took the place of the test";
  } else if (check.verdict == NodeCheck::Verdict::kUnknown && check.message.empty()) {
    check.message = std::string(json::GetString(pod, {"status", "message"}).substr(0, kMessageMax));
    if (check.message.empty()) check.message = "the test did not run";
  }
  return check;
}

void CompareChecks(std::vector<NodeCheck>& checks) {
  for (size_t i = 0; i < NodeCheck::kParts; ++i) {
    std::vector<double> rates;
    for (const NodeCheck& one : checks) {
      if (one.parts[i].rate > 0) rates.push_back(one.parts[i].rate);
    }
    if (rates.size() < kNodesToCompare) continue;
    const double middle = UpperMedian(std::move(rates));
    for (NodeCheck& one : checks) {
      const double part = one.parts[i].rate / middle;
      if (one.parts[i].rate <= 0 || part >= kSlowPart) continue;
      if (one.verdict == NodeCheck::Verdict::kGood) one.verdict = NodeCheck::Verdict::kSlow;
      one.message += StrCat(one.message.empty() ? "" : "; ", NodeCheck::kPartNames[i], " is at ",
                            static_cast<int>(part * 100), " % of most nodes' speed");
    }
  }
}

}  // namespace swell::cli
