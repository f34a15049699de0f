#include "scheduling/gang_tree.h"

#include <algorithm>

#include "base/random.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"

namespace swell::scheduling {
namespace {

constexpr int kDepthMax = 8;  // Kubernetes has 4
constexpr size_t kNameMax = 63;

std::string_view ParentOf(const json::Value& group) {
  return json::GetString(group, {"spec", "parentCompositePodGroupName"});
}

// The least number of groups that a composite group needs; 0: they are placed one by one.
int64_t LeastGroups(const json::Value& composite) {
  return json::GetInt(composite, {"spec", "schedulingPolicy", "gang", "minGroupCount"});
}

Status Waits(const auto&... why) { return {Code::kUnavailable, StrCat("waits for ", why...)}; }

// The field `topology` of Swell's groups; null if the group asks for none.
json::Value TopologyOf(const json::Value& group) {
  const json::Array& asked = json::GetArray(group, {"spec", "schedulingConstraints", "topology"});
  if (asked.empty()) return nullptr;
  return json::Object{{"required", json::GetString(asked[0], {"key"})}};
}

std::vector<json::SharedValue> ByName(std::vector<json::SharedValue> objects) {
  std::sort(objects.begin(), objects.end(),
            [](const auto& a, const auto& b) { return api::Name(*a) < api::Name(*b); });
  return objects;
}

class Descent {
 public:
  explicit Descent(const GangObjects& objects)
      : composites_(ByName(objects.composites())), groups_(ByName(objects.groups())) {}

  // `part`: the composite group as a part of the gang; empty: it is the root.
  Status Add(const json::Value& composite, const std::string& part, int depth, GangTree& out) {
    if (depth > kDepthMax) return Waits("CompositePodGroups that are not below each other");
    int64_t here = 0;
    auto entry = [&](std::string_view name, const json::Value& of) {
      json::Object made{{"name", name}};
      if (!part.empty()) made["parent"] = part;
      if (json::Value topology = TopologyOf(of); !topology.is_null()) {
        made["topology"] = std::move(topology);
      }
      return made;
    };
    for (const json::SharedValue& group : groups_) {
      if (ParentOf(*group) != api::Name(composite)) continue;
      ++here;
      json::Object set = entry(PodSetOfGang(api::Name(*group)), *group);
      set["minMember"] = json::GetInt(*group, {"spec", "schedulingPolicy", "gang", "minCount"}, 1);
      out.pod_sets.push_back(std::move(set));
    }
    for (const json::SharedValue& below : composites_) {
      if (ParentOf(*below) != api::Name(composite)) continue;
      ++here;
      if (LeastGroups(*below) == 0) continue;  // its groups are gangs of their own
      const std::string name = PodSetOfGang(api::Name(*below));
      out.groups.push_back(entry(name, *below));
      SWELL_RETURN_IF_ERROR(Add(*below, name, depth + 1, out));
    }
    const int64_t least = std::max<int64_t>(1, LeastGroups(composite));
    if (here >= least) return Status::Ok();
    return Waits(least, " groups of CompositePodGroup ", Quote(api::Name(composite)), ", of which ",
                 here, here == 1 ? " is" : " are", " there");
  }

 private:
  std::vector<json::SharedValue> composites_, groups_;
};

}  // namespace

bool IsCompositeGang(const json::Value& composite) { return LeastGroups(composite) > 0; }

std::string PodSetOfGang(std::string_view pod_group) {
  if (pod_group.size() <= kNameMax) return std::string(pod_group);
  // A label's value; different names stay different.
  return StrCat(pod_group.substr(0, kNameMax - 9), "-", StableHash(pod_group) % 100'000'000);
}

Result<json::SharedValue> RootAbove(const json::Value& group, const CompositeByName& composite) {
  std::string_view parent = ParentOf(group);
  json::SharedValue root;  // keeps the text of `parent`
  for (int depth = 0; !parent.empty(); ++depth) {
    if (depth > kDepthMax) return Waits("CompositePodGroups that are not below each other");
    json::SharedValue next = composite(parent);
    if (!next) return Waits("CompositePodGroup ", Quote(parent), ", which is not there");
    if (!IsCompositeGang(*next)) break;
    root = std::move(next);
    parent = ParentOf(*root);
  }
  return root;
}

Result<std::optional<GangTree>> ReadGangTree(const json::Value& pod_group,
                                             const GangObjects& objects) {
  GangTree tree;
  SWELL_ASSIGN_OR_RETURN(tree.root, RootAbove(pod_group, objects.composite));
  if (!tree.root) return std::optional<GangTree>();
  SWELL_RETURN_IF_ERROR(Descent(objects).Add(*tree.root, "", 0, tree));
  return std::optional(std::move(tree));
}

}  // namespace swell::scheduling
