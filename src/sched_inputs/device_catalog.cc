#include "sched_inputs/device_catalog.h"

#include <algorithm>
#include <cstdio>
#include <tuple>

#include "base/random.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/extended_claim.h"
#include "kube/api/objects/pod.h"
#include "sched/state/device_kinds.h"
#include "sched/state/shape.h"
#include "sched_inputs/device_facts.h"

namespace swell::sched_inputs {
namespace {

using sched::DeviceSet;

std::string_view NodeOf(const json::Value& slice) {
  return json::GetString(slice, {"spec", "nodeName"});
}

bool IsShared(const json::Value& device) {
  return json::GetBool(device, {"allowMultipleAllocations"});
}

// How many users the device can have if each takes this much.
int64_t PlacesOn(const sched::DeviceCounters& counters, const sched::CounterUses& uses) {
  constexpr int64_t kMost = 1000;
  int64_t places = kMost;
  for (const auto& [counter, amount] : uses) {
    if (amount > 0 && counters.own[counter] == 0) {
      places = std::min(places, counters.capacity[counter] / amount);
    }
  }
  return places;
}

// The largest part that it takes of any counter.
double LargestPart(const sched::DeviceCounters& counters, const sched::CounterUses& uses) {
  double part = 0;
  for (const auto& [counter, amount] : uses) {
    const int64_t whole = counters.capacity[counter];
    if (whole <= 0) continue;
    part = std::max(part, static_cast<double>(amount) / static_cast<double>(whole));
  }
  return part;
}

// Rounded down, so that all parts of a GPU together are at most one GPU.
int64_t PartPpm(double part) {
  constexpr double kSlack = 1e-6;  // for rounding errors of the division
  return std::clamp<int64_t>(static_cast<int64_t>(part * 1e6 + kSlack), 0, sched::kPpm);
}

// A share's number, which has to differ from those of other claims.
std::string ShareId(std::string_view claim_uid, std::string_view request, std::string_view device) {
  const std::string text = StrCat(claim_uid, "/", request, "/", device);
  const uint64_t high = StableHash(text);
  const uint64_t low = StableHash(text, high);
  char id[40];
  std::snprintf(id, sizeof id, "%08x-%04x-4%03x-8%03x-%012llx", static_cast<unsigned>(high >> 32),
                static_cast<unsigned>(high >> 16) & 0xffff, static_cast<unsigned>(high) & 0xfff,
                static_cast<unsigned>(low >> 48) & 0xfff,
                static_cast<unsigned long long>(low & 0xffffffffffffULL));
  return id;
}

}  // namespace

// ---- what drivers offer ----

void DeviceCatalog::SetSlice(const json::SharedValue& slice) {
  const std::string name(api::Name(*slice));
  RemoveSlice(name);
  ++offer_;
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
  ++offer_;
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
    entry.conditions.push_back(CompileCondition(expression, entry.problem));
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

std::string DeviceCatalog::ClassServing(std::string_view resource) const {
  const auto found = std::find_if(classes_.begin(), classes_.end(), [&](const auto& each) {
    return api::ServesResource(*each.second.object, resource);
  });
  return found == classes_.end() ? "" : found->first;
}

void DeviceCatalog::SetTaintRule(const json::SharedValue& rule) {
  taint_rules_.insert_or_assign(std::string(api::Name(*rule)), rule);
  Changed();
}

void DeviceCatalog::RemoveTaintRule(std::string_view name) {
  const auto found = taint_rules_.find(name);
  if (found == taint_rules_.end()) return;
  taint_rules_.erase(found);
  Changed();
}

// What is of which kind has to be found out anew.
void DeviceCatalog::Changed() {
  ++offer_;
  for (auto& [name, node] : nodes_) {
    node.read = false;
    changed_.insert(name);
  }
}

DeviceCatalog::Node& DeviceCatalog::Read(Node& node) {
  if (!node.read) ReadDevices(node);
  return node;
}

int DeviceCatalog::Node::Counter(const std::string& name, int64_t capacity, bool own) {
  const auto [known, made] =
      counter_ids.try_emplace(name, static_cast<int>(counters.capacity.size()));
  if (made) {
    counters.capacity.push_back(capacity);
    counters.own.push_back(own ? 1 : 0);
  }
  return known->second;
}

namespace {

std::string PoolName(const json::Value& slice) {
  return StrCat(json::GetString(slice, {"spec", "driver"}), "/",
                json::GetString(slice, {"spec", "pool", "name"}), "/");
}

int64_t ValueOf(const json::Value& counter) {
  const json::Value* value = json::Find(counter, {"value"});
  if (value == nullptr) return 0;
  const auto quantity = api::Quantity::FromJson(*value);
  return quantity.ok() ? CounterAmount(*quantity) : 0;
}

}  // namespace

// The amounts that devices of the pool share.
void DeviceCatalog::ReadCounters(Node& node, const Pool& slices) {
  for (const json::Value* slice : slices) {
    for (const json::Value& set : json::GetArray(*slice, {"spec", "sharedCounters"})) {
      for (const auto& counter : json::GetObject(set, {"counters"})) {
        node.Counter(StrCat(PoolName(*slice), json::GetString(set, {"name"}), "/",
                            std::string_view(counter.key())),
                     ValueOf(counter.value()), false);
      }
    }
  }
}

DeviceCatalog::Device DeviceCatalog::ReadDevice(Node& node,
                                                const json::Value& slice,
                                                const json::Value& device) {
  const auto index = json::GetInt(device, {"attributes", "index", "int"}, -1);
  Device out;
  out.index = static_cast<int>(std::clamp<int64_t>(index, -1, sched::kDevicesMax));
  out.driver = json::GetString(slice, {"spec", "driver"});
  out.pool = json::GetString(slice, {"spec", "pool", "name"});
  out.name = json::GetString(device, {"name"});
  out.document = &device;
  out.shared = IsShared(device);
  out.usable = IsPlainDevice(device);
  for (const json::Value& taken : json::GetArray(device, {"consumesCounters"})) {
    for (const auto& counter : json::GetObject(taken, {"counters"})) {
      const auto known =
          node.counter_ids.find(StrCat(PoolName(slice), json::GetString(taken, {"counterSet"}), "/",
                                       std::string_view(counter.key())));
      if (known == node.counter_ids.end()) {
        out.usable = false;
      } else {
        out.uses.emplace_back(known->second, ValueOf(counter.value()));
      }
    }
  }
  // A shared device has counters of its own for the amounts that are asked of it.
  for (const auto& capacity : json::GetObject(device, {"capacity"})) {
    if (!out.shared) break;
    const int64_t whole = ValueOf(capacity.value());
    out.uses.emplace_back(
        node.Counter(StrCat(PoolName(slice), out.name, "#", std::string_view(capacity.key())),
                     whole, false),
        whole);
  }
  return out;
}

// By driver and pool, those of the pool's last generation.
std::map<std::pair<std::string, std::string>, DeviceCatalog::Pool> DeviceCatalog::LatestSlices(
    const Node& node) const {
  const auto generation = [](const json::Value& slice) {
    return json::GetInt(slice, {"spec", "pool", "generation"});
  };
  std::map<std::pair<std::string, std::string>, Pool> pools;
  for (const std::string& name : node.slices) {
    const json::Value& slice = *slices_.find(name)->second;
    Pool& pool = pools[{std::string(json::GetString(slice, {"spec", "driver"})),
                        std::string(json::GetString(slice, {"spec", "pool", "name"}))}];
    if (!pool.empty() && generation(*pool.front()) > generation(slice)) continue;
    if (!pool.empty() && generation(*pool.front()) < generation(slice)) pool.clear();
    pool.push_back(&slice);
  }
  return pools;
}

// GPUs have the numbers that they say they have, if these are numbers of a node's GPUs and differ.
// Other devices have the highest numbers.
void DeviceCatalog::NumberDevices(std::vector<Device> gpus,
                                  std::vector<Device> others,
                                  Node& node) {
  const auto by_number = [](const Device& a, const Device& b) {
    return std::tuple(a.index, a.name.size(), a.name) < std::tuple(b.index, b.name.size(), b.name);
  };
  std::sort(gpus.begin(), gpus.end(), by_number);
  const bool differ =
      std::adjacent_find(gpus.begin(), gpus.end(), [](const Device& a, const Device& b) {
        return a.index == b.index;
      }) == gpus.end();
  const bool numbered =
      gpus.empty() || (differ && gpus.front().index >= 0 && gpus.back().index < sched::kDevicesMax);
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

// A pool counts once all slices of its last generation are there.
void DeviceCatalog::ReadDevices(Node& node) {
  node.read = true;
  node.devices.clear();
  node.kinds.clear();
  node.uses.clear();
  node.counters = {};
  node.counter_ids.clear();
  std::string_view gpus_of;
  std::vector<Device> gpus;
  std::vector<Device> others;
  std::set<int> of_whole_gpus;  // counters
  const auto pools = LatestSlices(node);
  for (const auto& [key, slices] : pools) {
    const int64_t whole = json::GetInt(*slices.front(), {"spec", "pool", "resourceSliceCount"}, 1);
    if (static_cast<int64_t>(slices.size()) < whole) continue;
    if (gpus_of.empty() && IsGpuDriver(key.first)) gpus_of = key.first;
    ReadCounters(node, slices);
    for (const json::Value* slice : slices) {
      for (const json::Value& said : json::GetArray(*slice, {"spec", "devices"})) {
        Device device = ReadDevice(node, *slice, said);
        // A device that takes all of a counter shares it with no other.
        const bool all = device.uses.empty() ? json::GetArray(said, {"consumesCounters"}).empty()
                                             : LargestPart(node.counters, device.uses) >= 1;
        device.gpu = key.first == gpus_of && all;
        if (device.Whole()) {
          for (const auto& [counter, amount] : device.uses) of_whole_gpus.insert(counter);
        }
        (device.gpu ? gpus : others).push_back(std::move(device));
      }
    }
  }
  for (Device& device : others) {
    const bool part = std::any_of(device.uses.begin(), device.uses.end(), [&](const auto& use) {
      return of_whole_gpus.contains(use.first);
    });
    if (part) device.part_ppm = PartPpm(LargestPart(node.counters, device.uses));
  }
  NumberDevices(std::move(gpus), std::move(others), node);
  for (const Device& device : node.devices) {
    if (device.shared) node.counters.shared.Add(device.index);
    if (!device.uses.empty()) node.counters.of_device[device.index] = device.uses;
  }
}

// Whether a taint of the device, by its driver or by a rule, is not tolerated.
bool DeviceCatalog::KeptAway(const Kind& kind, const Device& device) const {
  for (const json::Value& taint : json::GetArray(*device.document, {"taints"})) {
    if (KeepsAway(taint, kind.tolerations)) return true;
  }
  return std::any_of(taint_rules_.begin(), taint_rules_.end(), [&](const auto& rule) {
    const json::Value* taint = json::Find(*rule.second, {"spec", "taint"});
    return taint != nullptr &&
           api::RuleTaints(*rule.second, device.driver, device.pool, device.name) &&
           KeepsAway(*taint, kind.tolerations);
  });
}

bool DeviceCatalog::AllHold(const Programs& conditions,
                            const api::CelProgram::Values& values,
                            api::CelBudget& budget) {
  return std::all_of(conditions.begin(), conditions.end(), [&](const auto& condition) {
    if (condition == nullptr) return false;
    const auto holds = condition->Evaluate(values, budget);
    const bool* yes = holds.ok() ? std::get_if<bool>(&holds->data) : nullptr;
    return yes != nullptr && *yes;
  });
}

bool DeviceCatalog::Matches(Kind& kind, const Device& device) const {
  const auto its_class = classes_.find(kind.device_class);
  if (its_class == classes_.end() || !device.usable || kind.costly == offer_) return false;
  if (KeptAway(kind, device)) return false;
  const bool amounts = !kind.amounts.empty() || (device.shared && !kind.admin);
  if (amounts && !AmountsTaken(*device.document, kind.amounts)) return false;
  const api::CelProgram::Values values{{"device", DeviceValue(*device.document, device.driver)}};
  api::CelBudget of_class;
  if (!AllHold(its_class->second.conditions, values, of_class)) return false;
  api::CelBudget of_claim{kConditionsCost};
  const bool all = AllHold(kind.conditions, values, of_claim);
  if (of_claim.left < 0) kind.costly = offer_;
  return all;
}

// What devices of the set take as devices of the kind, in addition to what they always take.
sched::DeviceUses DeviceCatalog::UsesAs(const Kind& kind, const DeviceSet& set, Node& node) const {
  sched::DeviceUses out;
  if (kind.admin) return out;
  for (const Device& device : node.devices) {
    if (!set.Has(device.index)) continue;
    sched::CounterUses uses;
    const auto taken = device.shared ? AmountsTaken(*device.document, kind.amounts) : std::nullopt;
    if (taken) {
      for (const auto& [name, amount] : *taken) {
        const auto counter = node.counter_ids.find(
            StrCat(device.driver, "/", device.pool, "/", device.name, "#", name));
        if (counter != node.counter_ids.end()) {
          uses.emplace_back(counter->second, CounterAmount(amount));
        }
      }
    }
    for (const auto& [attribute, mark] : kind.distinct) {
      const std::string value = AttributeText(*device.document, device.driver, attribute);
      uses.emplace_back(node.Counter(StrCat("one of ", mark, " ", value), 1, true), 1);
    }
    if (!uses.empty()) out.emplace(device.index, std::move(uses));
  }
  return out;
}

// The part of a GPU that a device is, given as one of the kind.
int64_t DeviceCatalog::PartOf(const Kind& kind, const Device& device) const {
  if (!device.gpu || !device.shared) return device.part_ppm;
  const auto taken = AmountsTaken(*device.document, kind.amounts);
  if (!taken || taken->empty()) return sched::kPpm;  // nothing says how many can have it
  double part = 0;
  for (const auto& [name, amount] : *taken) {
    const json::Value* capacity = json::Find(*device.document, {"capacity", name});
    const int64_t whole = capacity != nullptr ? ValueOf(*capacity) : 0;
    if (whole <= 0) continue;
    part = std::max(part, static_cast<double>(CounterAmount(amount)) / static_cast<double>(whole));
  }
  return PartPpm(part);
}

DeviceSet DeviceCatalog::Matching(Kind& kind, const Node& node) const {
  DeviceSet set;
  for (const Device& device : node.devices) {
    const bool meant = kind.admin || device.Whole() == kind.gpus;
    if (meant && Matches(kind, device)) set.Add(device.index);
  }
  return set;
}

namespace {

template <class Devices>
DeviceSet HavingAttribute(std::string_view attribute,
                          const DeviceSet& set,
                          const Devices& devices) {
  DeviceSet out;
  for (const auto& device : devices) {
    const bool has =
        set.Has(device.index) && !AttributeText(*device.document, device.driver, attribute).empty();
    if (has) out.Add(device.index);
  }
  return out;
}

}  // namespace

DeviceSet DeviceCatalog::DevicesOf(const std::string& name, Node& node) {
  const auto known = Read(node).kinds.find(name);
  if (known != node.kinds.end()) return known->second;
  const auto kind = kinds_.find(name);
  if (kind == kinds_.end()) return {};
  DeviceSet set = Matching(kind->second, node);
  if (!kind->second.alike.empty()) set = Alike(kind->second, set, node);
  for (const auto& [attribute, mark] : kind->second.distinct) {
    set = HavingAttribute(attribute, set, node.devices);
  }
  if (kind->second.all > 0 && set.Count() != kind->second.all) set = DeviceSet{};
  if (set.Count() < kind->second.least) set = DeviceSet{};
  node.kinds[name] = set;
  sched::DeviceUses uses = UsesAs(kind->second, set, node);
  if (!uses.empty()) node.uses[name] = std::move(uses);
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

// ---- as the scheduler's inputs ----

void DeviceCatalog::AddToNode(sched::NodeInfo& node) {
  const auto found = nodes_.find(node.name);
  if (found == nodes_.end()) return;
  Node& devices = Read(found->second);
  // A pod that asks for GPUs by number could get one there of which others have parts.
  const auto numbered = node.allocatable.extended.find(sched::kGpuResource);
  const bool by_number = numbered != node.allocatable.extended.end() && numbered->second > 0;
  for (const auto& [name, kind] : kinds_) {
    const DeviceSet set = DevicesOf(name, devices);
    if (set.Empty() || (by_number && kind.part_ppm > 0)) continue;
    const std::string resource = Resource(name);
    const auto found_uses = devices.uses.find(name);
    const sched::DeviceUses uses =
        found_uses == devices.uses.end() ? sched::DeviceUses() : found_uses->second;
    int64_t places = set.Count();
    if (!kind.admin) {
      set.ForEach([&](int device) {
        if (!devices.counters.shared.Has(device)) return;
        places += PlacesOn(devices.counters, devices.counters.UsesOf(device, &uses)) - 1;
      });
    }
    node.labels[resource] = sched::DeviceKindText(set, uses);
    node.allocatable.extended[resource] = places;
  }
  if (!devices.counters.capacity.empty() || !devices.counters.shared.Empty()) {
    node.labels[std::string(sched::kDeviceCounters)] = sched::DeviceCountersText(devices.counters);
  }
  const auto gpus = std::count_if(devices.devices.begin(), devices.devices.end(),
                                  [](const Device& device) { return device.gpu; });
  if (gpus == 0 || by_number) return;
  node.allocatable.extended[sched::kGpuResource] = gpus;
  node.labels[std::string(sched::kGpusByKind)] = "";
}

namespace {

void RequireLabel(const std::string& label, sched::PodInfo& out) {
  const sched::Requirement exists{label, sched::SelectorOp::kExists, {}};
  if (out.required_node_affinity.empty()) {
    out.required_node_affinity.push_back({.expressions = {exists}, .fields = {}});
    return;
  }
  for (sched::NodeSelectorTerm& term : out.required_node_affinity) {
    // A term without expressions matches no node.
    if (!term.expressions.empty() || !term.fields.empty()) term.expressions.push_back(exists);
  }
}

}  // namespace

void DeviceCatalog::AddToPod(const json::Value& pod, const View& view, sched::PodInfo& out) {
  LeaveOutMapped(pod, out.requests);
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
  for (const Want& look : needs.looks) RequireLabel(Resource(look.kind), out);
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
                      [device](const Device& one) { return one.index == device && !one.Whole(); });
}

// ---- what is given ----

// The claim's devices, the settings that go with them, and where they are.
json::Value DeviceCatalog::Allocation(const json::Value& claim,
                                      const std::string& node,
                                      json::Array results) const {
  json::Array config;
  const api::ClaimAsks asks(claim);
  for (const api::ClaimRequest& request : asks.requests) {
    for (const api::DeviceAlternative& alternative : request.alternatives) {
      const bool given = std::any_of(results.begin(), results.end(), [&](const json::Value& one) {
        return json::GetString(one, {"request"}) == alternative.request;
      });
      const auto its_class = classes_.find(alternative.device_class);
      if (!given || its_class == classes_.end()) continue;
      for (const json::Value& setting :
           json::GetArray(*its_class->second.object, {"spec", "config"})) {
        json::Value entry = setting;
        json::Set(entry, {"source"}, "FromClass");
        json::Set(entry, {"requests"}, json::Value(json::Array{json::Value(alternative.request)}));
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

// The result of an allocation that gives a claim the device.
json::Value DeviceCatalog::ResultFor(const Want& want,
                                     const Device& device,
                                     const json::Value& claim) const {
  json::Object result{{"request", want.request},
                      {"driver", device.driver},
                      {"pool", device.pool},
                      {"device", device.name}};
  if (!want.tolerations.empty()) result["tolerations"] = want.tolerations;
  const auto kind = kinds_.find(want.kind);
  if (kind == kinds_.end()) return result;
  if (kind->second.admin) {
    result["adminAccess"] = true;
  } else if (device.shared) {
    json::Object consumed;
    const auto taken = AmountsTaken(*device.document, kind->second.amounts);
    for (const auto& [name, amount] : taken.value_or(api::DeviceAmounts())) {
      consumed[name] = amount.ToString();
    }
    if (!consumed.empty()) result["consumedCapacity"] = std::move(consumed);
    result["shareID"] = ShareId(api::Uid(claim), want.request,
                                StrCat(device.driver, "/", device.pool, "/", device.name));
  }
  return result;
}

// Assigns the devices that the scheduler chose to the wants.
bool DeviceCatalog::ShareOut(const Needs& needs,
                             Node* node,
                             const std::vector<int>& devices,
                             std::vector<DeviceSet>& out) {
  std::vector<sched::DeviceWants> wants;
  for (const Want& want : needs.wants) {
    wants.push_back({node == nullptr ? DeviceSet{} : DevicesOf(want.kind, *node), want.count});
  }
  const DeviceSet given = DeviceSet::From(devices);
  if (node == nullptr) return sched::ShareOut(wants, given, {}, &out);
  for (size_t i = 0; i < wants.size(); ++i) {
    const auto uses = node->uses.find(needs.wants[i].kind);
    if (uses != node->uses.end()) wants[i].uses = &uses->second;
  }
  if (node->counters.capacity.empty()) return sched::ShareOut(wants, given, {}, &out);
  return sched::ShareOut(wants, given, {}, node->counters, node->counters.capacity, &out);
}

// Adds the devices that the claim may use with adminAccess, also if other claims hold them.
bool DeviceCatalog::AddLooks(const Want& look,
                             Node* node,
                             const json::Value& claim,
                             json::Array& results) {
  const DeviceSet set = node == nullptr ? DeviceSet{} : DevicesOf(look.kind, *node);
  int64_t count = look.all ? set.Count() : look.count;
  if (set.Empty() || set.Count() < count) return false;
  for (const Device& device : node->devices) {
    if (!set.Has(device.index) || count-- <= 0) continue;
    results.push_back(ResultFor(look, device, claim));
  }
  return results.size() <= kClaimDevicesMax;
}

Result<DeviceCatalog::Grants> DeviceCatalog::GrantsFor(const json::Value& pod,
                                                       const View& view,
                                                       const std::string& node,
                                                       const std::vector<int>& devices) {
  const Needs needs = NeedsOf(pod, view);
  if (!needs.obstacle.empty()) return Status(Code::kConflict, needs.obstacle);
  if (needs.unmade) return Status(Code::kConflict, "a claim of the pod is not made yet");
  std::vector<DeviceSet> shares;
  const auto found = nodes_.find(node);
  if (!ShareOut(needs, found == nodes_.end() ? nullptr : &found->second, devices, shares)) {
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
      results[needs.wants[i].claim].push_back(
          ResultFor(needs.wants[i], device, *view.claims(needs.wants[i].claim)));
    }
  }
  for (const Want& look : needs.looks) {
    if (!AddLooks(look, found == nodes_.end() ? nullptr : &found->second, *view.claims(look.claim),
                  results[look.claim])) {
      return Status(Code::kConflict,
                    StrCat("node ", node, " does not have the devices of request ", look.request));
    }
  }
  for (const int device : devices) {
    if (!claimed.Has(device)) out.gpus.push_back(device);
  }
  auto add_gpu = [&](const Device& device) {
    const bool known = std::find(out.gpus.begin(), out.gpus.end(), device.index) != out.gpus.end();
    if (device.Whole() && !known) out.gpus.push_back(device.index);
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
      const Device* device = allocated.admin ? nullptr : Find(node, allocated);
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
    if (device->Whole() && !allocated.admin) gpus.push_back(device->index);
  }
  return gpus;
}

}  // namespace swell::sched_inputs
