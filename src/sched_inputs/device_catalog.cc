#include "sched_inputs/device_catalog.h"

#include <algorithm>
#include <tuple>

#include "base/random.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/pod.h"
#include "sched/state/device_kinds.h"
#include "sched_inputs/device_facts.h"

namespace swell::controllers {
namespace {

using sched::DeviceSet;

constexpr size_t kKindsMax = 512;
constexpr int64_t kResultsMax = 32;  // devices of a claim, as the API has it
constexpr size_t kUsersMax = 256;    // pods of a claim, the same
constexpr size_t kConditionText = 160;

std::string_view NodeOf(const json::Value& slice) {
  return json::GetString(slice, {"spec", "nodeName"});
}

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

std::shared_ptr<const api::CelProgram> Compile(std::string_view expression, std::string& problem) {
  auto program = api::CelProgram::Compile(expression, {"device"});
  if (program.ok()) return *program;
  if (problem.empty()) problem = program.status().message();
  return nullptr;
}

// Only a pod that is there and not over uses a claim.
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

// They are placed in one cycle, or not at all.
bool InOneGang(const json::Value& a, const json::Value& b) {
  const std::string_view group = api::Label(a, api::keys::kPodGroup);
  return !group.empty() && group == api::Label(b, api::keys::kPodGroup);
}

std::string ClaimText(std::string_view key) {
  return StrCat("resourceclaim ", Quote(key.substr(key.find('/') + 1)));
}

}  // namespace

// ---- what drivers offer ----

void DeviceCatalog::SetSlice(const json::SharedValue& slice) {
  const std::string name(api::Name(*slice));
  RemoveSlice(name);
  const std::string node(NodeOf(*slice));
  slices_[name] = slice;
  if (node.empty()) return;  // of the network, or of several nodes
  nodes_[node].slices.push_back(name);
  nodes_[node].read = false;
  changed_.insert(node);
}

void DeviceCatalog::RemoveSlice(std::string_view name) {
  const auto slice = slices_.find(name);
  if (slice == slices_.end()) return;
  const auto node = nodes_.find(NodeOf(*slice->second));
  if (node != nodes_.end()) {
    std::erase(node->second.slices, slice->first);
    node->second.read = false;
    changed_.insert(node->first);
    if (node->second.slices.empty()) nodes_.erase(node);
  }
  slices_.erase(slice);
}

void DeviceCatalog::SetClass(const json::SharedValue& device_class) {
  Class entry{device_class, {}, ""};
  for (std::string_view expression : api::ClassSelectors(*device_class)) {
    entry.conditions.push_back(Compile(expression, entry.problem));
  }
  classes_.insert_or_assign(std::string(api::Name(*device_class)), std::move(entry));
  Changed();
}

void DeviceCatalog::RemoveClass(std::string_view name) {
  const auto found = classes_.find(name);
  if (found == classes_.end()) return;
  classes_.erase(found);
  Changed();
}

// What is of which kind has to be found out anew.
void DeviceCatalog::Changed() {
  for (auto& [name, node] : nodes_) {
    node.read = false;
    changed_.insert(name);
  }
}

DeviceCatalog::Node& DeviceCatalog::Read(Node& node) {
  if (!node.read) ReadDevices(node);
  return node;
}

// The slices of a pool's last generation count, once all of them are there.
void DeviceCatalog::ReadDevices(Node& node) {
  node.read = true;
  node.devices.clear();
  node.kinds.clear();
  std::map<std::pair<std::string, std::string>, std::vector<const json::Value*>> pools;
  for (const std::string& name : node.slices) {
    const json::Value& slice = *slices_.find(name)->second;
    auto& pool = pools[{std::string(json::GetString(slice, {"spec", "driver"})),
                        std::string(json::GetString(slice, {"spec", "pool", "name"}))}];
    const auto generation = [](const json::Value& of) {
      return json::GetInt(of, {"spec", "pool", "generation"});
    };
    if (!pool.empty() && generation(*pool.front()) > generation(slice)) continue;
    if (!pool.empty() && generation(*pool.front()) < generation(slice)) pool.clear();
    pool.push_back(&slice);
  }
  std::string_view gpus_of;
  std::vector<Device> gpus;
  std::vector<Device> others;
  for (const auto& [key, slices] : pools) {
    const int64_t whole = json::GetInt(*slices.front(), {"spec", "pool", "resourceSliceCount"}, 1);
    if (static_cast<int64_t>(slices.size()) < whole) continue;
    if (gpus_of.empty() && IsGpuDriver(key.first)) gpus_of = key.first;
    const bool gpu = key.first == gpus_of;
    for (const json::Value* slice : slices) {
      for (const json::Value& device : json::GetArray(*slice, {"spec", "devices"})) {
        const auto index = json::GetInt(device, {"attributes", "index", "int"}, -1);
        (gpu ? gpus : others)
            .push_back({static_cast<int>(std::clamp<int64_t>(index, -1, sched::kDevicesMax)), gpu,
                        key.first, key.second, std::string(json::GetString(device, {"name"})),
                        &device});
      }
    }
  }
  // GPUs have the numbers that they say they have, where these are numbers of a node's GPUs.
  const auto by_name = [](const Device& a, const Device& b) {
    return std::tuple(a.index, a.name.size(), a.name) < std::tuple(b.index, b.name.size(), b.name);
  };
  std::sort(gpus.begin(), gpus.end(), by_name);
  const bool numbered =
      std::adjacent_find(gpus.begin(), gpus.end(),
                         [](const Device& a, const Device& b) { return a.index == b.index; }) ==
          gpus.end() &&
      (gpus.empty() || (gpus.front().index >= 0 && gpus.back().index < sched::kDevicesMax));
  int next = 0;
  for (Device& device : gpus) {
    if (!numbered) device.index = next++;
    if (device.index < sched::kDevicesMax) node.devices.push_back(std::move(device));
  }
  const int least = node.devices.empty() ? 0 : node.devices.back().index + 1;
  int last = sched::kDevicesMax;
  for (Device& device : others) {
    if (last <= least) break;
    device.index = --last;
    node.devices.push_back(std::move(device));
  }
}

bool DeviceCatalog::Matches(const Kind& kind, const Device& device) const {
  const auto its_class = classes_.find(kind.device_class);
  if (its_class == classes_.end() || !IsPlainDevice(*device.document)) return false;
  const api::CelProgram::Values values{{"device", DeviceValue(*device.document, device.driver)}};
  for (const Programs* conditions : {&its_class->second.conditions, &kind.conditions}) {
    for (const auto& condition : *conditions) {
      if (condition == nullptr) return false;
      api::CelBudget budget;
      const auto holds = condition->Evaluate(values, budget);
      const bool* yes = holds.ok() ? std::get_if<bool>(&holds->data) : nullptr;
      if (yes == nullptr || !*yes) return false;
    }
  }
  return true;
}

DeviceSet DeviceCatalog::Matching(const Kind& kind, const Node& node) const {
  DeviceSet set;
  for (const Device& device : node.devices) {
    if (device.gpu == kind.gpus && Matches(kind, device)) set.Add(device.index);
  }
  return set;
}

DeviceSet DeviceCatalog::DevicesOf(const std::string& name, Node& node) {
  const auto known = Read(node).kinds.find(name);
  if (known != node.kinds.end()) return known->second;
  const auto kind = kinds_.find(name);
  if (kind == kinds_.end()) return {};
  DeviceSet set = Matching(kind->second, node);
  if (!kind->second.alike.empty()) set = Alike(kind->second, set, node);
  if (kind->second.all > 0 && set.Count() != kind->second.all) set = DeviceSet{};
  node.kinds[name] = set;
  return set;
}

// Those with the value that most devices of all the kinds have, if they are enough of each.
DeviceSet DeviceCatalog::Alike(const Kind& kind, const DeviceSet& own, Node& node) {
  std::map<std::string, DeviceSet> by_value;
  for (const Device& device : node.devices) {
    const std::string value = AttributeText(*device.document, device.driver, kind.alike);
    if (!value.empty()) by_value[value].Add(device.index);
  }
  auto both = [](const DeviceSet& a, const DeviceSet& b) {
    return DeviceSet{{a.words[0] & b.words[0], a.words[1] & b.words[1]}};
  };
  int most = 0;
  DeviceSet best;
  for (const auto& [value, devices] : by_value) {
    int sum = 0;
    bool enough = true;
    for (const auto& [other, count] : kind.together) {
      const int here = both(DevicesOf(other, node), devices).Count();
      enough = enough && here >= count;
      sum += here;
    }
    if (!enough || sum <= most) continue;
    most = sum;
    best = both(own, devices);
  }
  return best;
}

// ---- what claims ask ----

std::string DeviceCatalog::Resource(const std::string& name) const {
  const auto kind = kinds_.find(name);
  const bool gpus = kind != kinds_.end() && kind->second.gpus;
  return StrCat(gpus ? sched::kGpuKind : sched::kDeviceKind, name);
}

// The name of a kind, which is made if it does not exist yet; empty: there are too many.
std::string DeviceCatalog::KindFor(const api::DeviceWish& wish) {
  std::string name = StrCat("class ", wish.device_class);
  for (size_t i = 0; i < wish.selectors.size(); ++i) {
    name += StrCat(i == 0 ? " with " : " and ", ConditionText(wish.selectors[i]));
  }
  auto known = kinds_.find(name);
  if (known == kinds_.end()) {
    if (kinds_.size() >= kKindsMax) {
      starved_ = true;
      return "";
    }
    Kind kind;
    kind.device_class = wish.device_class;
    for (std::string_view expression : wish.selectors) {
      kind.conditions.push_back(Compile(expression, kind.problem));
    }
    known = kinds_.emplace(name, std::move(kind)).first;
    FindOutAnew(name);
  }
  Kind& kind = known->second;
  if (!kind.gpus) {  // until a GPU is seen that is of it
    kind.gpus = true;
    kind.gpus = std::any_of(nodes_.begin(), nodes_.end(),
                            [&](auto& node) { return !Matching(kind, Read(node.second)).Empty(); });
    if (kind.gpus) FindOutAnew(name);
  }
  return name;
}

// A kind that is another one with more to it.
std::string DeviceCatalog::DeriveKind(const std::string& base,
                                      const std::string& name,
                                      const std::function<void(Kind&)>& change) {
  Kind derived = kinds_.find(base)->second;
  change(derived);
  const auto known = kinds_.find(name);
  if (known != kinds_.end() && known->second.gpus == derived.gpus) return name;
  if (known == kinds_.end() && kinds_.size() >= kKindsMax) {
    starved_ = true;
    return base;
  }
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
  Changed();
  return true;
}

bool DeviceCatalog::OnSomeNode(const std::string& kind, int64_t count) {
  return std::any_of(nodes_.begin(), nodes_.end(), [&](auto& node) {
    return DevicesOf(kind, node.second).Count() >= std::max<int64_t>(1, count);
  });
}

// How many devices of the kind most nodes have that have any; the more of them, of equals.
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

// What the claim's requests ask for; false: something about it is the pod's obstacle.
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
    for (const api::DeviceWish& wish : request.ways) {
      if (wish.admin) return obstacle(" asks for adminAccess, which Swell does not give");
      const auto its_class = classes_.find(wish.device_class);
      if (its_class == classes_.end()) {
        return obstacle(" asks for device class ", Quote(wish.device_class),
                        ", which is not there");
      }
      if (!its_class->second.problem.empty()) {
        return obstacle(": a condition of device class ", Quote(wish.device_class),
                        " is not understood: ", its_class->second.problem);
      }
      std::string kind = KindFor(wish);
      if (kind.empty()) {
        return obstacle(" asks for devices in yet another way; ", kKindsMax, " are in use already");
      }
      if (const std::string& problem = kinds_.find(kind)->second.problem; !problem.empty()) {
        return obstacle(": a condition of request ", Quote(wish.request),
                        " is not understood: ", problem);
      }
      int64_t count = wish.count;
      if (wish.all) {
        count = UsualCount(kind);
        kind = DeriveKind(kind, StrCat(kind, " (all ", count, ")"),
                          [count](Kind& whole) { whole.all = count; });
      }
      if (want.kind.empty() || OnSomeNode(kind, count)) {
        want = {key, wish.request, kind, std::max<int64_t>(1, count)};
      }
      if (OnSomeNode(kind, count)) break;
    }
    if (want.kind.empty()) continue;
    sum += want.count;
    needs.wants.push_back(std::move(want));
  }
  if (sum > kResultsMax) {
    return obstacle(" asks for ", sum, " devices; a claim has ", kResultsMax, " at most");
  }
  return AddMatches(asks, first, key, needs);
}

// Requests whose devices have something in common ask for kinds of their own.
bool DeviceCatalog::AddMatches(const api::ClaimAsks& asks,
                               size_t first,
                               const std::string& key,
                               Needs& needs) {
  std::set<size_t> matched;
  for (const api::DeviceMatch& match : asks.matches) {
    if (match.distinct) {
      needs.obstacle = StrCat(ClaimText(key),
                              " has a constraint distinctAttribute, which Swell does ", "not keep");
      return false;
    }
    std::vector<size_t> members;
    for (size_t i = first; i < needs.wants.size(); ++i) {
      const bool meant =
          match.requests.empty() ||
          std::any_of(match.requests.begin(), match.requests.end(), [&](std::string_view asked) {
            return api::IsOfRequest(needs.wants[i].request, asked);
          });
      if (!meant) continue;
      if (!matched.insert(i).second) {
        needs.obstacle = StrCat(ClaimText(key), " has several constraints on request ",
                                Quote(needs.wants[i].request), "; Swell keeps one");
        return false;
      }
      members.push_back(i);
    }
    std::vector<std::pair<std::string, int64_t>> together;
    std::string all;
    for (const size_t i : members) {
      together.emplace_back(needs.wants[i].kind, needs.wants[i].count);
      all += StrCat(needs.wants[i].kind, " x ", needs.wants[i].count, ";");
    }
    for (const size_t i : members) {
      std::string& kind = needs.wants[i].kind;
      const std::string name =
          StrCat(kind, " alike in ", match.attribute,
                 members.size() > 1 ? StrCat(" #", StableHash(all) % 1'000'000) : "");
      kind = DeriveKind(kind, name, [&](Kind& alike) {
        alike.alike = match.attribute;
        alike.together = together;
      });
    }
  }
  return true;
}

// What a pod that is not on a node has to be given, or joins.
void DeviceCatalog::AddWaiting(const json::Value& pod,
                               const std::string& key,
                               const View& view,
                               Needs& needs) {
  const json::Value* claim = view.claims(key);
  const std::string text = ClaimText(key);
  std::string why;
  if (claim == nullptr) {
    why = StrCat(text, " not found");
  } else if (api::IsDeleting(*claim)) {
    why = StrCat(text, " is being deleted");
  }
  const std::string owner = claim != nullptr ? api::PodOfClaim(*claim) : "";
  if (why.empty() && !owner.empty() && owner != api::Uid(pod)) {
    why = StrCat(text, " was made for another pod");
  }
  if (!why.empty()) {
    if (needs.obstacle.empty()) needs.obstacle = why;
    return;
  }
  const std::string_view ns = api::Namespace(pod);
  const std::vector<api::ClaimConsumer> consumers = api::ConsumersOf(*claim);
  for (const api::ClaimConsumer& user : consumers) {
    if (user.uid == api::Uid(pod) || !api::IsAllocated(*claim)) continue;
    const json::Value* other = LiveUser(user, ns, view);
    if (other != nullptr && (api::IsBound(*other) || InOneGang(*other, pod))) {
      if (consumers.size() >= kUsersMax && why.empty()) {
        why = StrCat(text, " has ", consumers.size(), " pods already, which is the most");
      }
      needs.shared.push_back(key);
      if (needs.obstacle.empty()) needs.obstacle = why;
      return;
    }
    why = StrCat(text, " is reserved for ", user.resource, "/", user.name);
  }
  // The oldest pod gets it for all.
  bool together = false;
  bool follows = false;
  for (const json::SharedValue& other :
       owner.empty() ? view.users(key) : std::vector<json::SharedValue>()) {
    const bool waits =
        api::Uid(*other) != api::Uid(pod) && api::IsActive(*other) && !api::IsBound(*other);
    const bool first = waits && Before(*other, pod);
    if (waits && InOneGang(*other, pod)) {
      together = true;
      follows = follows || first;
    } else if (first && why.empty())
      why = StrCat(text, " goes to pod ", api::Name(*other), " first");
  }
  if (!why.empty()) {
    if (needs.obstacle.empty()) needs.obstacle = why;
    return;
  }
  if (together) needs.together.push_back(key);
  if (follows) {
    needs.follows.push_back(key);
    return;
  }
  needs.fresh.push_back(key);
  AddWants(*claim, key, needs);
}

// What a pod on its node was given, if no other is charged with it.
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
    for (const api::DeviceWish& way : request.ways) {
      const auto count = given.find(way.request);
      if (count == given.end()) continue;
      const std::string kind = KindFor(way);
      if (!kind.empty()) needs.wants.push_back({key, way.request, kind, count->second});
    }
  }
}

DeviceCatalog::Needs DeviceCatalog::NeedsOf(const json::Value& pod, const View& view) {
  Needs needs;
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

// ---- as the scheduler's inputs ----

void DeviceCatalog::AddToNode(sched::NodeInfo& node) {
  const auto found = nodes_.find(node.name);
  if (found == nodes_.end()) return;
  Node& devices = Read(found->second);
  for (const auto& [name, kind] : kinds_) {
    const DeviceSet set = DevicesOf(name, devices);
    if (set.Empty()) continue;
    const std::string resource = Resource(name);
    node.labels[resource] = sched::DeviceKindText(set);
    node.allocatable.extended[resource] = set.Count();
  }
  const auto gpus = std::count_if(devices.devices.begin(), devices.devices.end(),
                                  [](const Device& device) { return device.gpu; });
  if (gpus == 0 || node.allocatable.extended.contains(sched::kGpuResource)) return;
  node.allocatable.extended[sched::kGpuResource] = gpus;
  node.labels[std::string(sched::kGpusByKind)] = "";
}

void DeviceCatalog::AddToPod(const json::Value& pod, const View& view, sched::PodInfo& out) {
  const Needs needs = NeedsOf(pod, view);
  if (out.obstacle.empty()) out.obstacle = needs.obstacle;
  if (needs.unmade && !api::IsBound(pod)) {
    out.scheduling_gates.emplace_back("resource.k8s.io/claim-made");
  }
  for (const Want& want : needs.wants) {
    out.requests.extended[Resource(want.kind)] += want.count;
    if (kinds_.find(want.kind)->second.gpus) {
      out.requests.extended[sched::kGpuResource] += want.count;
    }
  }
  for (const std::string& key : needs.shared) {
    std::vector<sched::NodeSelectorTerm> there = ToNodeTerms(json::GetArray(
        *view.claims(key), {"status", "allocation", "nodeSelector", "nodeSelectorTerms"}));
    if (!there.empty()) out.volume_affinity.push_back(std::move(there));
  }
  for (const std::string& key : needs.together) {
    const std::string label = StrCat("claim ", key);
    out.labels[label] = "";
    out.required_affinity.push_back({.selector = {{label, sched::SelectorOp::kExists, {}}},
                                     .topology_key = "kubernetes.io/hostname"});
  }
  if (!api::IsBound(pod)) return;
  auto has = [](const std::vector<int>& devices, int device) {
    return std::find(devices.begin(), devices.end(), device) != devices.end();
  };
  std::erase_if(out.gpu_devices, [&](int device) { return has(needs.lent, device); });
  for (const int device : needs.held) {
    if (!has(out.gpu_devices, device)) out.gpu_devices.push_back(device);
  }
  // A user who takes a claim away from a running pod does not take the GPUs off its account.
  if (out.gpu_fraction > 0 || out.gpu_memory_mib > 0) return;
  const auto gpus = std::count_if(out.gpu_devices.begin(), out.gpu_devices.end(),
                                  [&](int device) { return IsGpu(out.node, device); });
  int64_t& charged = out.requests.extended[sched::kGpuResource];
  charged = std::max<int64_t>(charged, gpus);
  if (charged == 0) out.requests.extended.erase(sched::kGpuResource);
}

bool DeviceCatalog::IsGpu(std::string_view node, int device) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return true;
  const std::vector<Device>& devices = Read(found->second).devices;
  return std::none_of(devices.begin(), devices.end(),
                      [device](const Device& one) { return one.index == device && !one.gpu; });
}

// ---- what is given ----

// The claim's devices, the settings that go with them, and where they are.
json::Value DeviceCatalog::Allocation(const json::Value& claim,
                                      const std::string& node,
                                      json::Array results) const {
  json::Array config;
  const api::ClaimAsks asks(claim);
  for (const api::ClaimRequest& request : asks.requests) {
    for (const api::DeviceWish& way : request.ways) {
      const bool given = std::any_of(results.begin(), results.end(), [&](const json::Value& one) {
        return json::GetString(one, {"request"}) == way.request;
      });
      const auto its_class = classes_.find(way.device_class);
      if (!given || its_class == classes_.end()) continue;
      for (const json::Value& setting :
           json::GetArray(*its_class->second.object, {"spec", "config"})) {
        json::Value entry = setting;
        json::Set(entry, {"source"}, "FromClass");
        json::Set(entry, {"requests"}, json::Value(json::Array{json::Value(way.request)}));
        config.push_back(std::move(entry));
      }
    }
  }
  for (const json::Value& setting : json::GetArray(claim, {"spec", "devices", "config"})) {
    json::Value entry = setting;
    json::Set(entry, {"source"}, "FromClaim");
    config.push_back(std::move(entry));
  }
  json::Object devices{{"results", std::move(results)}};
  if (!config.empty()) devices["config"] = std::move(config);
  return json::Object{
      {"devices", std::move(devices)},
      {"nodeSelector",
       json::Object{{"nodeSelectorTerms",
                     json::Array{json::Object{
                         {"matchFields", json::Array{json::Object{
                                             {"key", "metadata.name"},
                                             {"operator", "In"},
                                             {"values", json::Array{json::Value(node)}}}}}}}}}}};
}

Result<DeviceCatalog::Grants> DeviceCatalog::GrantsFor(const json::Value& pod,
                                                       const View& view,
                                                       const std::string& node,
                                                       const std::vector<int>& devices) {
  const Needs needs = NeedsOf(pod, view);
  if (!needs.obstacle.empty()) return Status(Code::kConflict, needs.obstacle);
  if (needs.unmade) return Status(Code::kConflict, "a claim of the pod is not made yet");
  std::vector<sched::DeviceWants> wants;
  const auto found = nodes_.find(node);
  for (const Want& want : needs.wants) {
    wants.push_back(
        {found == nodes_.end() ? DeviceSet{} : DevicesOf(want.kind, found->second), want.count});
  }
  std::vector<DeviceSet> shares;
  if (!sched::ShareOut(wants, DeviceSet::From(devices), {}, &shares)) {
    return Status(Code::kConflict,
                  StrCat("the devices of node ", node, " are no more what its claims ask for"));
  }
  Grants out;
  std::map<std::string, json::Array> results;  // by claim
  for (const std::string& claim : needs.fresh) results[claim];
  DeviceSet claimed;
  for (size_t i = 0; i < shares.size(); ++i) {
    for (const Device& device : found->second.devices) {
      if (!shares[i].Has(device.index)) continue;
      claimed.Add(device.index);
      results[needs.wants[i].claim].push_back(json::Object{{"request", needs.wants[i].request},
                                                           {"driver", device.driver},
                                                           {"pool", device.pool},
                                                           {"device", device.name}});
    }
  }
  for (const int device : devices) {
    if (!claimed.Has(device)) out.gpus.push_back(device);
  }
  auto add_gpu = [&](const Device& device) {
    const bool known = std::find(out.gpus.begin(), out.gpus.end(), device.index) != out.gpus.end();
    if (device.gpu && !known) out.gpus.push_back(device.index);
  };
  if (found != nodes_.end()) {
    for (const Device& device : found->second.devices) {
      if (claimed.Has(device.index)) add_gpu(device);
    }
  }
  for (auto& [claim, given] : results) {
    out.claims.push_back({claim, Allocation(*view.claims(claim), node, std::move(given))});
  }
  for (const std::string& claim : needs.shared) {
    out.claims.push_back({claim, nullptr});
    for (const api::AllocatedDevice& allocated : api::AllocatedDevices(*view.claims(claim))) {
      const Device* device = Find(node, allocated);
      if (device != nullptr) add_gpu(*device);
    }
  }
  for (const std::string& claim : needs.follows) out.claims.push_back({claim, nullptr, true});
  return out;
}

std::optional<std::vector<int>> DeviceCatalog::GpusOf(const json::Value& claim,
                                                      const std::string& node) {
  std::vector<int> gpus;
  for (const api::AllocatedDevice& allocated : api::AllocatedDevices(claim)) {
    const Device* device = Find(node, allocated);
    if (device == nullptr) return std::nullopt;
    if (device->gpu) gpus.push_back(device->index);
  }
  return gpus;
}

}  // namespace swell::controllers
