// What pods' claims ask for, as kinds of devices.
#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "base/random.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/pod.h"
#include "sched_inputs/device_catalog.h"
#include "sched_inputs/device_facts.h"

namespace swell::sched_inputs {
namespace {

constexpr size_t kKindsMax = 512;
constexpr size_t kKindsOfNamespaceMax = kKindsMax / 4;
// In place of a namespace: what pods on nodes have is charged to them in any case.
constexpr std::string_view kPlaced;
constexpr size_t kUsersMax = 256;  // pods of a claim, as the API has it
constexpr size_t kConditionText = 160;

// On one line, and not too long for a sentence.
std::string ConditionText(std::string_view expression) {
  std::string text(Trim(expression));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\t' || c == '\r'; }, ' ');
  if (text.size() <= kConditionText || !IsValidUtf8(text)) return text;
  size_t end = kConditionText;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return StrCat(text.substr(0, end), "... #", StableHash(text) % 1'000'000);
}

// "class gpu.example.com with device.attributes… and memory of 10Gi".
std::string KindName(const api::DeviceAlternative& alternative) {
  std::vector<std::string> parts;
  for (std::string_view expression : alternative.selectors)
    parts.push_back(ConditionText(expression));
  for (const auto& [name, amount] : alternative.amounts) {
    parts.push_back(StrCat(name, " of ", amount.ToString()));
  }
  for (const api::DeviceToleration& one : alternative.tolerations) {
    parts.push_back(StrCat("taint ", one.key.empty() ? "*" : one.key,
                           one.exists ? "" : StrCat("=", one.value),
                           one.effect.empty() ? "" : StrCat(":", one.effect)));
  }
  return StrCat("class ", alternative.device_class, alternative.admin ? " for admins" : "",
                parts.empty() ? "" : " with ", Join(parts, " and "));
}

// No two alternatives that differ have one such text, whatever is in their parts.
std::string ExactText(const api::DeviceAlternative& alternative) {
  std::string text = alternative.admin ? "admin" : "";
  auto add = [&text](std::string_view part) { text += StrCat(part.size(), ":", part); };
  add(alternative.device_class);
  add(StrCat(alternative.selectors.size()));
  for (std::string_view expression : alternative.selectors) add(expression);
  add(StrCat(alternative.amounts.size()));
  for (const auto& [name, amount] : alternative.amounts) {
    add(name);
    add(amount.ToString());
  }
  for (const api::DeviceToleration& one : alternative.tolerations) {
    add(one.key);
    add(one.exists ? "" : StrCat("=", one.value));
    add(one.effect);
  }
  return text;
}

// The pod, if it exists and has not ended; null otherwise.
const json::Value* LiveUser(const api::ClaimConsumer& user,
                            std::string_view ns,
                            const DeviceCatalog::View& view) {
  if (user.resource != "pods") return nullptr;
  const json::Value* pod = view.pods(StrCat(ns, "/", user.name));
  return pod != nullptr && api::Uid(*pod) == user.uid && !api::HasEnded(*pod) ? pod : nullptr;
}

// Whether `a` is served before `b`.
bool Before(const json::Value& a, const json::Value& b) {
  return std::tuple(api::CreationTimestamp(a), api::KeyOf(a)) <
         std::tuple(api::CreationTimestamp(b), api::KeyOf(b));
}

// Pods of one gang are placed in one cycle, or not at all.
bool InOneGang(const json::Value& a, const json::Value& b) {
  const std::string_view group = api::Label(a, api::keys::kPodGroup);
  return !group.empty() && group == api::Label(b, api::keys::kPodGroup);
}

std::string ClaimText(std::string_view key) {
  return StrCat("resourceclaim ", Quote(key.substr(key.find('/') + 1)));
}

// Why the pod cannot use the claim, whatever others do; empty: it can.
std::string WhyUnusable(const json::Value& pod, const json::Value* claim, std::string_view key) {
  if (claim == nullptr) return StrCat(ClaimText(key), " not found");
  if (api::IsDeleting(*claim)) return StrCat(ClaimText(key), " is being deleted");
  const std::string owner = api::PodOfClaim(*claim);
  if (owner.empty() || owner == api::Uid(pod)) return "";
  return StrCat(ClaimText(key), " was made for another pod");
}

// How a pod that waits can use a claim that others use or want.
struct ClaimUse {
  std::string obstacle;   // empty: it can
  bool shared = false;    // it joins pods that have the devices, or get them in the same cycle
  bool together = false;  // pods of its gang want the claim, too
  bool follows = false;   // and one of them gets the devices for all
};

void LookAtHolders(const json::Value& pod,
                   const json::Value& claim,
                   std::string_view key,
                   const DeviceCatalog::View& view,
                   ClaimUse& use) {
  if (!api::IsAllocated(claim)) return;
  const std::vector<api::ClaimConsumer> holders = api::ConsumersOf(claim);
  for (const api::ClaimConsumer& holder : holders) {
    if (holder.uid == api::Uid(pod)) continue;
    const json::Value* other = LiveUser(holder, api::Namespace(pod), view);
    if (other != nullptr && (api::IsBound(*other) || InOneGang(*other, pod))) {
      use.shared = true;
      if (holders.size() < kUsersMax || !use.obstacle.empty()) return;
      use.obstacle =
          StrCat(ClaimText(key), " has ", holders.size(), " pods already, which is the most");
      return;
    }
    use.obstacle = StrCat(ClaimText(key), " is reserved for ", holder.resource, "/", holder.name);
  }
}

// The oldest pod that waits for a claim gets the devices for all.
void LookAtWaiting(const json::Value& pod,
                   const json::Value& claim,
                   const std::string& key,
                   const DeviceCatalog::View& view,
                   ClaimUse& use) {
  if (!api::PodOfClaim(claim).empty()) return;
  for (const json::SharedValue& other : view.users(key)) {
    const bool waits =
        api::Uid(*other) != api::Uid(pod) && api::IsActive(*other) && !api::IsBound(*other);
    if (!waits) continue;
    const bool first = Before(*other, pod);
    if (InOneGang(*other, pod)) {
      use.together = true;
      use.follows = use.follows || first;
    } else if (first && use.obstacle.empty()) {
      use.obstacle = StrCat(ClaimText(key), " goes to pod ", api::Name(*other), " first");
    }
  }
}

}  // namespace

std::string DeviceCatalog::Resource(const std::string& name) const {
  const auto kind = kinds_.find(name);
  if (kind == kinds_.end()) return StrCat(sched::kDeviceKind, name);
  if (kind->second.part_ppm > 0) return sched::GpuPartName(name, kind->second.part_ppm);
  return StrCat(kind->second.gpus ? sched::kGpuKind : sched::kDeviceKind, name);
}

// Notes that pods of the namespace make one more kind. False: they may not.
bool DeviceCatalog::TakeKind(const std::string& ns) {
  size_t& made = made_[ns];
  if (kinds_.size() < kKindsMax && (ns == kPlaced || made < kKindsOfNamespaceMax)) {
    ++made;
    return true;
  }
  starved_ = true;
  return false;
}

// The kind that is asked for so. Another one may have its name, by chance or on purpose: `name`
// becomes one that no other has.
DeviceCatalog::Kinds::iterator DeviceCatalog::FindKind(std::string_view exact, std::string& name) {
  auto known = kinds_.find(name);
  while (known != kinds_.end() && known->second.exact != exact) known = kinds_.find(name += "'");
  return known;
}

// The name of the alternative's kind, which is made if needed. Empty: there are too many kinds.
std::string DeviceCatalog::KindFor(const api::DeviceAlternative& alternative,
                                   const std::string& ns) {
  std::string name = KindName(alternative);
  std::string exact = ExactText(alternative);
  auto known = FindKind(exact, name);
  if (known == kinds_.end()) {
    if (!TakeKind(ns)) return "";
    Kind kind;
    kind.exact = std::move(exact);
    kind.device_class = alternative.device_class;
    for (std::string_view expression : alternative.selectors) {
      kind.conditions.push_back(CompileCondition(expression, kind.problem));
    }
    kind.amounts = alternative.amounts;
    kind.tolerations = alternative.tolerations;
    for (api::DeviceToleration& one : kind.tolerations) one.document = nullptr;
    kind.admin = alternative.admin;
    known = kinds_.emplace(name, std::move(kind)).first;
    FindOutAnew(name);
  }
  if (!known->second.admin) FindOutSize(name, known->second);
  return name;
}

// Finds out whether its devices are GPUs, or which part of one they are. A kind with one whole GPU
// stays a kind of GPUs.
void DeviceCatalog::FindOutSize(const std::string& name, Kind& kind) {
  if (kind.gpus || kind.sized == offer_) return;
  kind.sized = offer_;
  const int64_t before = std::exchange(kind.part_ppm, 0);
  for (auto& [node_name, node] : nodes_) {
    for (const Device& device : Read(node).devices) {
      if ((kind.gpus && !device.Whole()) || !Matches(kind, device)) continue;
      kind.gpus = kind.gpus || device.Whole();
      kind.part_ppm = std::max(kind.part_ppm, PartOf(kind, device));
    }
    if (kind.gpus) break;
  }
  if (kind.gpus) kind.part_ppm = 0;
  if (kind.gpus || kind.part_ppm != before) FindOutAnew(name);
}

// Makes a kind that is `base` with a change. `how`: the change as a part of its name. The change
// adds what else there is to it to `exact`.
std::string DeviceCatalog::DeriveKind(const std::string& ns,
                                      const std::string& base,
                                      const std::string& how,
                                      const std::function<void(Kind&)>& change) {
  Kind derived = kinds_.find(base)->second;
  derived.exact += StrCat(how.size(), how);
  change(derived);
  std::string name = StrCat(base, how);
  const auto known = FindKind(derived.exact, name);
  const bool same = known != kinds_.end() && known->second.gpus == derived.gpus &&
                    known->second.part_ppm == derived.part_ppm;
  if (same) return name;
  if (known == kinds_.end() && !TakeKind(ns)) return base;
  kinds_.insert_or_assign(name, std::move(derived));
  FindOutAnew(name);
  return name;
}

void DeviceCatalog::FindOutAnew(const std::string& kind) {
  for (auto& [name, node] : nodes_) {
    node.kinds.erase(kind);
    changed_.insert(name);
  }
}

bool DeviceCatalog::ForgetKinds() {
  if (!std::exchange(starved_, false)) return false;
  kinds_.clear();
  made_.clear();
  Changed();
  return true;
}

bool DeviceCatalog::OnSomeNode(const std::string& kind, int64_t count) {
  return std::any_of(nodes_.begin(), nodes_.end(), [&](auto& node) {
    return DevicesOf(kind, node.second).Count() >= std::max<int64_t>(1, count);
  });
}

// The most frequent number of devices of the kind, among nodes that have any. If two are as
// frequent, the larger.
int64_t DeviceCatalog::UsualCount(const std::string& kind) {
  std::map<int64_t, int64_t> nodes;
  for (auto& [name, node] : nodes_) {
    if (const int count = DevicesOf(kind, node).Count(); count > 0) ++nodes[count];
  }
  int64_t usual = 0;
  for (const auto& [count, having] : nodes) {
    if (usual == 0 || having >= nodes[usual]) usual = count;
  }
  return usual;
}

// Why the class cannot be asked for; empty: it can.
std::string DeviceCatalog::UnknownClass(const api::DeviceAlternative& alternative) const {
  const auto its_class = classes_.find(alternative.device_class);
  if (its_class == classes_.end()) {
    return StrCat(" asks for device class ", Quote(alternative.device_class),
                  ", which is not there");
  }
  if (its_class->second.problem.empty()) return "";
  return StrCat(": a condition of device class ", Quote(alternative.device_class),
                " is not understood: ", its_class->second.problem);
}

// A slice of the network or of several nodes that has a device of the kind, while no node has one.
std::string DeviceCatalog::SliceBesideNodes(const std::string& name) {
  if (OnSomeNode(name, 1)) return "";
  Kind& kind = kinds_.find(name)->second;
  if (std::exchange(kind.looked, offer_) == offer_) return kind.beside;
  const auto has_one = [&](const json::Value& slice) {
    if (!json::GetString(slice, {"spec", "nodeName"}).empty()) return false;
    const json::Array& devices = json::GetArray(slice, {"spec", "devices"});
    return std::any_of(devices.begin(), devices.end(), [&](const json::Value& document) {
      Device device;
      device.driver = json::GetString(slice, {"spec", "driver"});
      device.document = &document;
      return Matches(kind, device);
    });
  };
  const auto found = std::find_if(slices_.begin(), slices_.end(),
                                  [&](const auto& slice) { return has_one(*slice.second); });
  return kind.beside = found == slices_.end() ? "" : found->first;
}

// Adds what the claim's requests ask for. False: the claim is the pod's obstacle.
bool DeviceCatalog::AddWants(const json::Value& claim, const std::string& key, Needs& needs) {
  auto obstacle = [&](const auto&... why) {
    if (needs.obstacle.empty()) needs.obstacle = StrCat(ClaimText(key), why...);
    return false;
  };
  const api::ClaimAsks asks(claim);
  const size_t first = needs.wants.size();
  int64_t sum = 0;
  for (const api::ClaimRequest& request : asks.requests) {
    Want want;
    bool admin = false;
    for (const api::DeviceAlternative& alternative : request.alternatives) {
      if (const std::string unknown = UnknownClass(alternative); !unknown.empty())
        return obstacle(unknown);
      admin = alternative.admin;
      std::string kind = KindFor(alternative, needs.ns);
      if (kind.empty()) {
        const bool own = made_[needs.ns] >= kKindsOfNamespaceMax;
        return obstacle(" asks for devices in yet another way; ",
                        own ? StrCat("namespace ", needs.ns, " has ", kKindsOfNamespaceMax)
                            : StrCat("the cluster has ", kKindsMax),
                        " in use already");
      }
      if (const std::string& problem = kinds_.find(kind)->second.problem; !problem.empty()) {
        return obstacle(": a condition of request ", Quote(alternative.request),
                        " is not understood: ", problem);
      }
      if (kinds_.find(kind)->second.costly == offer_) {
        return obstacle(": the conditions of request ", Quote(alternative.request),
                        " take more than ", kConditionsCost, " steps for one device");
      }
      int64_t count = alternative.count;
      if (alternative.admin && count > 1 && !alternative.all) {
        kind = DeriveKind(needs.ns, kind, StrCat(" (at least ", count, ")"),
                          [count](Kind& enough) { enough.least = count; });
      } else if (alternative.all && !alternative.admin) {
        count = UsualCount(kind);
        kind = DeriveKind(needs.ns, kind, StrCat(" (all ", count, ")"),
                          [count](Kind& whole) { whole.all = count; });
      }
      if (want.kind.empty() || OnSomeNode(kind, count)) {
        want = {key, alternative.request, kind, std::max<int64_t>(1, count), alternative.all, {}};
        for (const api::DeviceToleration& one : alternative.tolerations) {
          want.tolerations.push_back(*one.document);
        }
      }
      if (OnSomeNode(kind, count)) break;
    }
    if (want.kind.empty()) continue;
    if (const std::string slice = SliceBesideNodes(want.kind); !slice.empty()) {
      return obstacle(" asks for devices that belong to no single node (resourceslice ",
                      Quote(slice), "); Swell allocates devices of single nodes only");
    }
    sum += want.count;
    (admin ? needs.looks : needs.wants).push_back(std::move(want));
  }
  if (sum > static_cast<int64_t>(kClaimDevicesMax)) {
    return obstacle(" asks for ", sum, " devices; a claim has ", kClaimDevicesMax, " at most");
  }
  return AddMatches(asks, first, key, needs);
}

// Requests whose devices must have an attribute in common ask for kinds of their own.
bool DeviceCatalog::AddMatches(const api::ClaimAsks& asks,
                               size_t first,
                               const std::string& key,
                               Needs& needs) {
  std::set<size_t> matched;
  for (const api::DeviceMatch& match : asks.matches) {
    std::vector<size_t> members;
    for (size_t i = first; i < needs.wants.size(); ++i) {
      const bool meant =
          match.requests.empty() ||
          std::any_of(match.requests.begin(), match.requests.end(), [&](std::string_view asked) {
            return api::IsOfRequest(needs.wants[i].request, asked);
          });
      if (!meant) continue;
      if (!match.distinct && !matched.insert(i).second) {
        needs.obstacle =
            StrCat(ClaimText(key), " has several matchAttribute constraints on request ",
                   Quote(needs.wants[i].request), "; Swell keeps one");
        return false;
      }
      members.push_back(i);
    }
    if (match.distinct) {
      AddDistinct(match.attribute, members, needs);
      continue;
    }
    std::vector<std::pair<std::string, int64_t>> together;
    std::string all;
    for (const size_t i : members) {
      // Alone, its count is looked at with the pod: the kind serves pods of any count.
      together.emplace_back(needs.wants[i].kind, members.size() > 1 ? needs.wants[i].count : 1);
      all += StrCat(needs.wants[i].kind, " x ", needs.wants[i].count, ";");
    }
    for (const size_t i : members) {
      std::string& kind = needs.wants[i].kind;
      const std::string how =
          StrCat(" alike in ", match.attribute,
                 members.size() > 1 ? StrCat(" #", StableHash(all) % 1'000'000) : "");
      kind = DeriveKind(needs.ns, kind, how, [&](Kind& alike) {
        if (members.size() > 1) alike.exact += all;
        alike.alike = match.attribute;
        alike.together = together;
      });
    }
  }
  return true;
}

// Requests whose devices differ in an attribute. A mark says which requests belong together.
void DeviceCatalog::AddDistinct(std::string_view attribute,
                                const std::vector<size_t>& members,
                                Needs& needs) {
  std::string all;
  for (const size_t i : members) all += StrCat(needs.wants[i].kind, ";");
  std::string mark = StrCat(attribute, " #", StableHash(all) % 1'000'000);
  while (!needs.marks.insert(mark).second) mark += "'";  // another claim of the pod has it
  for (const size_t i : members) {
    std::string& kind = needs.wants[i].kind;
    kind = DeriveKind(needs.ns, kind, StrCat(" distinct in ", mark),
                      [&](Kind& differs) { differs.distinct.emplace_back(attribute, mark); });
  }
}

// For a pod that is not on a node: the claim's devices, or the allocated claim that it joins.
void DeviceCatalog::AddWaiting(const json::Value& pod,
                               const std::string& key,
                               const View& view,
                               Needs& needs) {
  const json::Value* claim = view.claims(key);
  ClaimUse use;
  use.obstacle = WhyUnusable(pod, claim, key);
  if (use.obstacle.empty()) LookAtHolders(pod, *claim, key, view, use);
  if (use.obstacle.empty() && !use.shared) LookAtWaiting(pod, *claim, key, view, use);
  if (needs.obstacle.empty()) needs.obstacle = use.obstacle;
  if (use.shared) needs.shared.push_back(key);
  if (use.shared || !use.obstacle.empty()) return;
  if (use.together) needs.together.push_back(key);
  if (use.follows) {
    needs.follows.push_back(key);
    return;
  }
  needs.fresh.push_back(key);
  AddWants(*claim, key, needs);
}

// For a pod on its node: the devices that it was given, charged to it unless another pod is.
void DeviceCatalog::AddPlaced(const json::Value& pod,
                              const std::string& key,
                              const View& view,
                              Needs& needs) {
  const json::Value* claim = view.claims(key);
  if (claim == nullptr) return;
  if (!api::IsAllocated(*claim)) {  // not seen yet: its binding was
    if (api::PodOfClaim(*claim) == api::Uid(pod)) AddWants(*claim, key, needs);
    return;
  }
  bool charged = false;
  for (const api::ClaimConsumer& user : api::ConsumersOf(*claim)) {
    const json::Value* other =
        user.uid == api::Uid(pod) ? &pod : LiveUser(user, api::Namespace(pod), view);
    if (other == nullptr || !api::IsBound(*other)) continue;
    charged = other == &pod;
    break;
  }
  std::map<std::string, int64_t> given;  // by request
  for (const api::AllocatedDevice& allocated : api::AllocatedDevices(*claim)) {
    if (allocated.admin) continue;
    ++given[std::string(allocated.request)];
    const Device* device = Find(api::NodeName(pod), allocated);
    if (device != nullptr) (charged ? needs.held : needs.lent).push_back(device->index);
  }
  if (!charged) return;
  for (const api::ClaimRequest& request : api::ClaimAsks(*claim).requests) {
    for (const api::DeviceAlternative& alternative : request.alternatives) {
      const auto count = given.find(alternative.request);
      if (count == given.end()) continue;
      const std::string kind = KindFor(alternative, std::string(kPlaced));
      if (!kind.empty()) {
        needs.wants.push_back({key, alternative.request, kind, count->second, alternative.all, {}});
      }
    }
  }
}

DeviceCatalog::Needs DeviceCatalog::NeedsOf(const json::Value& pod, const View& view) {
  Needs needs;
  needs.ns = api::Namespace(pod);
  const bool placed = api::IsBound(pod);
  for (const api::PodClaim& claim : api::DeviceClaimsOf(pod)) {
    if (claim.needless) continue;
    if (claim.claim.empty()) {
      needs.unmade = true;
      continue;
    }
    const std::string key = StrCat(api::Namespace(pod), "/", claim.claim);
    placed ? AddPlaced(pod, key, view, needs) : AddWaiting(pod, key, view, needs);
  }
  return needs;
}

const DeviceCatalog::Device* DeviceCatalog::Find(std::string_view node,
                                                 const api::AllocatedDevice& allocated) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return nullptr;
  for (const Device& device : Read(found->second).devices) {
    if (device.driver == allocated.driver && device.pool == allocated.pool &&
        device.name == allocated.device) {
      return &device;
    }
  }
  return nullptr;
}

}  // namespace swell::sched_inputs
