#include "cli/jobs/too_large.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/nearest_word.h"
#include "base/strings.h"
#include "cli/jobs/what_if.h"
#include "cli/views/job_view.h"
#include "cli/views/node_view.h"
#include "cli/views/project_view.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/node.h"

namespace swell::cli {
namespace {

struct Measure {
  int64_t Amounts::*field;
  std::string (*text)(int64_t);
};
std::string CpusText(int64_t milli) {
  return milli == 1000 ? "1 CPU" : StrCat(CpuText(milli), " CPUs");
}
std::string OfMemoryText(int64_t bytes) { return StrCat(MemoryText(bytes), " of memory"); }
constexpr Measure kMeasures[] = {{&Amounts::milli_gpus, GpusText},
                                 {&Amounts::milli_cpu, CpusText},
                                 {&Amounts::memory, OfMemoryText}};

// A part of a GPU, by memory, that not even a whole one has.
std::string TooLargeShare(const json::Value& pod, const std::vector<NodeView>& nodes) {
  const int64_t mib = ParseInt(api::Annotation(pod, api::keys::kGpuMemory)).value_or(0);
  int64_t most = 0;
  for (const NodeView& node : nodes) {
    if (node.gpus() > 0) most = std::max(most, api::GpuMemoryMib(*node.object));
  }
  if (mib <= most) return "";
  if (most == 0) return "no node says how much memory its GPUs have";
  return StrCat("no GPU has ", OfMemoryText(mib << 20), "; the largest has ",
                OfMemoryText(most << 20));
}

// `that` says which nodes these are, " with gpu=a100". Empty: all nodes.
std::string TooLarge(const Amounts& need,
                     const std::vector<NodeView>& nodes,
                     std::string_view that) {
  std::vector<std::string> asked;
  for (const auto& [field, text] : kMeasures) {
    int64_t most = 0;
    for (const NodeView& node : nodes) most = std::max(most, node.total.*field);
    if (need.*field > most) {
      return StrCat("no node", that, " has ", text(need.*field), "; the largest has ", text(most));
    }
    if (need.*field > 0) asked.push_back(text(need.*field));
  }
  const bool held = std::any_of(nodes.begin(), nodes.end(), [&need](const NodeView& node) {
    return std::all_of(std::begin(kMeasures), std::end(kMeasures), [&](const Measure& one) {
      return need.*one.field <= node.total.*one.field;
    });
  });
  return held ? "" : StrCat("no node", that, " has all that a pod needs: ", Join(asked, ", "));
}

using LabelList = std::vector<std::pair<std::string_view, std::string_view>>;

// The labels of its node selector.
LabelList LabelsWanted(const json::Value& pod) {
  LabelList labels;
  for (const auto& label : json::GetObject(pod, {"spec", "nodeSelector"})) {
    if (label.value().is_string()) {
      labels.emplace_back(std::string_view(label.key().data(), label.key().size()),
                          json::View(label.value().get_string()));
    }
  }
  return labels;
}

std::vector<NodeView> NodesWith(const LabelList& labels, const std::vector<NodeView>& nodes) {
  std::vector<NodeView> some;
  for (const NodeView& node : nodes) {
    if (std::all_of(labels.begin(), labels.end(), [&node](const auto& label) {
          return api::Label(*node.object, label.first) == label.second;
        })) {
      some.push_back(node);
    }
  }
  return some;
}

// What the nodes have instead: other values of the label, or a label with nearly this name.
std::string InsteadOf(std::string_view key,
                      std::string_view value,
                      const std::vector<NodeView>& nodes) {
  constexpr size_t kValuesShown = 5;
  std::set<std::string> values, keys;
  for (const NodeView& node : nodes) {
    for (const auto& label : api::Labels(*node.object)) {
      keys.emplace(label.key().data(), label.key().size());
    }
    if (const std::string_view has = api::Label(*node.object, key); !has.empty()) {
      values.emplace(has);
    }
  }
  if (values.empty()) {
    const std::string near = NearestName(key, {keys.begin(), keys.end()});
    return DidYouMean(near);
  }
  const std::string near = NearestName(value, {values.begin(), values.end()});
  if (!near.empty()) return DidYouMean(StrCat(key, "=", near));
  if (values.size() > kValuesShown) return "";
  return StrCat("; there is ", key, "=", Join({values.begin(), values.end()}, ", "));
}

// " with gpu=a100"; empty for no labels.
std::string WithText(const LabelList& labels) {
  std::vector<std::string> all;
  for (const auto& [key, value] : labels) all.push_back(StrCat(key, "=", value));
  return all.empty() ? "" : StrCat(" with ", Join(all, ", "));
}

// Names the first label that no node has, or all of them.
std::string NoneWith(const LabelList& labels, const std::vector<NodeView>& nodes) {
  for (const auto& label : labels) {
    if (NodesWith({label}, nodes).empty()) {
      return StrCat("no node has the label ", label.first, "=", label.second,
                    InsteadOf(label.first, label.second, nodes));
    }
  }
  return StrCat("there is no node", WithText(labels));
}

// How many such pods the nodes hold when they are empty.
int64_t HowMany(const Amounts& need, const std::vector<NodeView>& nodes) {
  constexpr int64_t kMany = 1'000'000;
  int64_t pods = 0;
  for (const NodeView& node : nodes) {
    int64_t here = kMany;
    for (const Measure& one : kMeasures) {
      if (need.*one.field > 0) here = std::min(here, node.total.*one.field / (need.*one.field));
    }
    pods += here;
  }
  return pods;
}

std::string TooMany(const Amounts& need, int64_t replicas, const std::vector<NodeView>& nodes) {
  const int64_t pods = HowMany(need, nodes);
  if (pods >= replicas) return "";
  const std::string each = need.milli_gpus > 0 ? StrCat(" of ", GpusText(need.milli_gpus)) : "";
  return StrCat("the job needs ", replicas, " pods", each, "; the nodes hold ", pods,
                " of them when they are empty");
}

bool IsRigid(const json::Value& job, const JobKindInfo& kind) {
  const std::vector<RoleBounds> roles = BoundsOf(job, kind);
  return std::all_of(roles.begin(), roles.end(),
                     [](const RoleBounds& role) { return role.least >= role.replicas; });
}

// The project that the job is charged to, or one above it, of which the limit is too small for it.
std::string BeyondLimit(Api& api, const json::Value& job, int64_t milli_gpus) {
  if (milli_gpus == 0) return "";
  const auto tree = ReadProjects(api);
  if (!tree.ok()) return "";
  const ProjectView* at = tree->OfNamespace(api::Namespace(job));
  if (at == nullptr) at = tree->Find(api::Label(job, api::keys::kProject));
  for (size_t i = 0; at != nullptr && i < tree->projects.size(); ++i) {
    const double limit = at->gpu().limit;
    if (limit >= 0 && static_cast<double>(milli_gpus) / 1000.0 > limit) {
      return StrCat("the job needs ", GpusText(milli_gpus), ", and the limit of project ", at->name,
                    " is ", ShareText(limit, ShareOf::kGpu),
                    ". It waits until the limit is raised");
    }
    at = tree->Find(at->parent);
  }
  return "";
}

}  // namespace

std::string TooLargeText(Api& api, const json::Value& job) {
  const JobKindInfo* kind = KindOfJob(job);
  if (kind == nullptr) return "";
  auto list = api.CallObject({.method = "GET", .path = "/api/v1/nodes", .query = "limit=500"});
  if (!list.ok() || !json::GetString(**list, {"metadata", "continue"}).empty()) return "";
  std::vector<json::SharedValue> objects;
  for (const json::Value& node : json::GetArray(**list, {"items"})) {
    objects.push_back(std::make_shared<const json::Value>(node));
  }
  if (objects.empty()) return "";
  const std::vector<NodeView> nodes = ViewNodes(std::move(objects), {});
  std::vector<std::pair<Amounts, int64_t>> pods;  // alike, and how many
  for (const JobTemplate& one : TemplatesOf(job, *kind)) {
    Amounts need;
    need.AddPod(*one.pod);
    const auto labels = LabelsWanted(*one.pod);
    const std::vector<NodeView> usable = NodesWith(labels, nodes);
    std::string text = usable.empty() ? NoneWith(labels, nodes) : "";
    if (text.empty()) text = TooLarge(need, usable, WithText(labels));
    if (text.empty()) text = TooLargeShare(*one.pod, usable);
    if (!text.empty()) {
      return StrCat(text, text.ends_with('?') ? " " : ". ",
                    "The job waits until such a node is added");
    }
    auto alike = std::find_if(pods.begin(), pods.end(),
                              [&need](const auto& known) { return known.first == need; });
    if (alike == pods.end()) alike = pods.insert(pods.end(), {need, 0});
    alike->second += one.replicas;
  }
  if (!IsRigid(job, *kind)) return "";
  int64_t milli_gpus = 0;
  for (const auto& [need, replicas] : pods) milli_gpus += need.milli_gpus * replicas;
  if (std::string text = BeyondLimit(api, job, milli_gpus); !text.empty()) return text;
  for (const auto& [need, replicas] : pods) {
    const std::string text = TooMany(need, replicas, nodes);
    if (!text.empty()) return StrCat(text, ". It waits until nodes are added");
  }
  return "";
}

}  // namespace swell::cli
