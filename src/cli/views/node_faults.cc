#include "cli/views/node_faults.h"

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/node.h"
#include "kube/api/objects/node_health.h"
#include "kube/api/objects/pod.h"

namespace swell::cli {
namespace {

constexpr size_t kPlacesTold = 8;

struct Taints {
  bool unhealthy = false, suspect = false;

  explicit Taints(const json::Value& node) {
    for (const api::Taint& taint : api::TaintsOf(node)) {
      unhealthy |= taint.key == api::keys::kUnhealthyTaint;
      suspect |= taint.key == api::keys::kSuspectTaint;
    }
  }
};

// "GPU 1 is unhealthy", "GPUs 0 and 1 are unhealthy".
std::string GpusText(const std::vector<int>& gpus) {
  if (gpus.size() == 1) return StrCat("GPU ", gpus[0], " is unhealthy");
  std::vector<std::string> names;
  for (const int gpu : gpus) names.push_back(std::to_string(gpu));
  const std::string last = names.back();
  names.pop_back();
  return StrCat("GPUs ", Join(names, ", "), " and ", last, " are unhealthy");
}

// What the node's conditions say of these GPUs alone; empty: they name none.
std::string SaidOfGpus(const json::Value& node, const std::set<int>& gpus) {
  const auto condition = api::FindCondition(node, api::kGpuHealthy);
  if (!condition || !condition->IsFalse()) return "";
  std::vector<std::string> said;
  std::string_view rest = condition->message;
  while (!rest.empty()) {
    const size_t end = rest.find("; GPU ");
    const std::string_view one = rest.substr(0, end);
    const auto index =
        one.starts_with("GPU ") ? ParseInt(one.substr(4, one.find(':') - 4)) : std::nullopt;
    if (index && gpus.contains(static_cast<int>(*index))) said.emplace_back(one);
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 2);
  }
  return Join(said, "; ");
}

// "is unhealthy: GPU 1: too hot": what of the node concerns the pod; empty: nothing does.
std::string FaultUnder(const json::Value& pod, const json::Value& node) {
  constexpr std::string_view kUnhealthy = "is unhealthy: ";
  if (const auto ready = api::FindCondition(node, "Ready"); ready && !ready->IsTrue()) {
    std::string_view said = ready->message;
    if (said.ends_with('.')) said.remove_suffix(1);
    return StrCat("is not ready: ", said, "; if that lasts, the pod is given up");
  }
  const std::vector<api::NodeFault> whole = api::TaintingFaultsOf(node);
  if (!whole.empty()) return StrCat(kUnhealthy, api::FaultsSaid(whole));
  std::set<int> held;
  for (std::string_view part : Split(api::Annotation(pod, api::keys::kGpuDevices), ',')) {
    if (const auto index = ParseInt(Trim(part))) held.insert(static_cast<int>(*index));
  }
  std::set<int> bad;
  std::vector<int> named;
  for (const int gpu : api::UnhealthyGpus(node)) {
    if (!held.contains(gpu)) continue;
    bad.insert(gpu);
    named.push_back(gpu);
  }
  if (bad.empty()) return "";
  const std::string said = SaidOfGpus(node, bad);
  return StrCat(kUnhealthy, said.empty() ? GpusText(named) : said);
}

}  // namespace

NodeHealthState HealthOfNode(const json::Value& node) {
  const std::vector<api::NodeFault> faults = api::FaultsOf(node);
  const std::vector<int> gpus = api::UnhealthyGpus(node);
  const Taints taints(node);
  const bool bad = std::any_of(faults.begin(), faults.end(),
                               [](const api::NodeFault& fault) { return fault.taints; });
  const bool cordoned = api::IsUnschedulable(node);
  NodeHealthState state{.faults = api::FaultsSaid(faults), .colour = Colour::kYellow};
  std::string first, tail;
  const auto say = [&](std::string word, std::string what, std::string follows) {
    state.word = std::move(word);
    first = std::move(what);
    tail = std::move(follows);
  };
  const bool out = bad || taints.unhealthy;
  state.wellness = out                                ? NodeWellness::kUnhealthy
                   : taints.suspect                   ? NodeWellness::kSuspect
                   : !faults.empty() || !gpus.empty() ? NodeWellness::kFaulty
                                                      : NodeWellness::kHealthy;
  if (!api::ConditionIsTrue(node, "Ready")) {
    say("NotReady", "not ready", ": it gets no new pods");
    state.colour = Colour::kRed;
    const auto ready = api::FindCondition(node, "Ready");
    if (state.faults.empty()) {
      state.faults = ready ? std::string(ready->message) : "its agent has not reported yet";
    }
  } else if (out) {
    say(bad ? "Unhealthy" : "Recovering",
        bad ? "unhealthy" : "well again, but not for long enough yet", ": it gets no new pods");
    state.colour = Colour::kRed;
  } else if (!gpus.empty()) {
    say("Faulty", GpusText(gpus),
        StrCat(" and ", gpus.size() == 1 ? "gets" : "get",
               " no new pods; the rest of the node gets them"));
    if (state.faults.empty()) state.faults = first;
  } else if (taints.suspect) {
    say("Suspect", "suspect", ": pods failed there; it is used last");
    if (state.faults.empty()) state.faults = "pods failed there";
  } else if (!faults.empty()) {
    say("Faulty", "has faults", ", and gets new pods");
  } else {
    say("Healthy", "healthy", "");
    state.colour = Colour::kGreen;
  }
  state.sound = state.word == "Healthy";
  if (cordoned) {
    state.word += ",SchedulingDisabled";
    tail =
        StrCat(state.sound ? ", but cordoned" : "; the node is cordoned", ": it gets no new pods");
    if (state.sound) state.colour = Colour::kYellow;
  }
  state.sentence = first + tail;
  if (const auto broken = api::BrokenChecksOf(node); !broken.empty()) {
    state.sentence += StrCat("; ", broken.size(), broken.size() == 1 ? " check does" : " checks do",
                             " not work: ", Join(broken, ", "));
  }
  return state;
}

std::vector<std::string> UnhealthyPlaces(const std::vector<json::SharedValue>& pods,
                                         const std::vector<json::SharedValue>& nodes) {
  std::vector<std::string> lines;
  size_t more = 0;
  for (const json::SharedValue& pod : pods) {
    if (!api::IsBound(*pod) || api::HasEnded(*pod)) continue;
    const std::string_view name = api::NodeName(*pod);
    const auto node = std::find_if(nodes.begin(), nodes.end(),
                                   [name](const auto& one) { return api::Name(*one) == name; });
    if (node == nodes.end()) continue;
    const std::string fault = FaultUnder(*pod, **node);
    if (fault.empty()) continue;
    if (lines.size() == kPlacesTold) {
      ++more;
      continue;
    }
    lines.push_back(StrCat(name, ", on which ", api::Name(*pod), " runs, ", fault));
  }
  if (more > 0) lines.push_back(StrCat(more, " more of its pods run on such nodes"));
  return lines;
}

Result<std::vector<std::string>> FindUnhealthyPlaces(Api& api,
                                                     const std::vector<json::SharedValue>& pods) {
  const bool placed = std::any_of(pods.begin(), pods.end(), [](const json::SharedValue& pod) {
    return api::IsBound(*pod) && !api::HasEnded(*pod);
  });
  if (!placed) return std::vector<std::string>();
  auto nodes = api.List(client::resources::kNodes, "");
  if (nodes.status().code() == Code::kForbidden) return std::vector<std::string>();
  if (!nodes.ok()) return nodes.status();
  return UnhealthyPlaces(pods, *nodes);
}

}  // namespace swell::cli
