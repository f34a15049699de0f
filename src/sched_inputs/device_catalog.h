// DeviceCatalog: the devices that drivers offer on nodes (ResourceSlices), the classes of devices,
// the rules that taint devices, and what pods ask of them by claims, as the scheduler's inputs.
//
// What a request asks for becomes a kind of devices (sched/state/device_kinds.h): a class with its
// conditions and the request's own. Which devices of a node are of a kind is found out once for
// each change of the node's slices.
//
// The first of the pods that use a claim and are on its node is charged with its devices; the
// others go to that node and are charged nothing. Devices of drivers of GPUs count as GPUs. A
// device that is a part of a GPU counts as that part: by its driver's counters, or by the amounts
// that are asked of a shared device.
//
// A request with adminAccess needs a node with such devices, and takes none.
//
// - Threads: core executor only.
// - Ownership: keeps the slices and classes that it was given. Bounded: at most kKindsMax kinds, a
//   quarter of them for the pods of one namespace.
// - Invariants: a device that the catalog does not understand (conditions of binding) is of no
//   kind, so that nobody gets it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "json/value.h"
#include "kube/api/cel/cel.h"
#include "kube/api/objects/device_claim.h"
#include "sched/state/device_kinds.h"
#include "sched/state/device_set.h"
#include "sched/state/types.h"
#include "sched_inputs/sched_convert.h"

namespace swell::sched_inputs {

class DeviceCatalog {
 public:
  // What pods' claims lead to. `users`: the pods that name a claim, by its key.
  struct View {
    FindObject claims;
    FindObject pods;
    std::function<std::vector<json::SharedValue>(const std::string& claim)> users;
  };

  void SetSlice(const json::SharedValue& slice);
  void RemoveSlice(std::string_view name);
  void SetClass(const json::SharedValue& device_class);
  void RemoveClass(std::string_view name);
  void SetTaintRule(const json::SharedValue& rule);
  void RemoveTaintRule(std::string_view name);
  // The class whose devices Kubernetes gives to pods that request the resource without a claim, by
  // its extendedResourceName or the name that each class has. Empty: none.
  std::string ClassServing(std::string_view resource) const;
  // Nodes of which AddToNode says something else than before.
  std::set<std::string> TakeChangedNodes() { return std::exchange(changed_, {}); }

  // Forgets all kinds of devices if there were too many at once. The caller then reads all pods
  // with claims again, then all nodes. False: there were not too many.
  bool ForgetKinds();

  void AddToNode(sched::NodeInfo& node);
  // What the pod's claims ask for, or already gave it. Why they cannot be had is its obstacle.
  void AddToPod(const json::Value& pod, const View& view, sched::PodInfo& out);

  // What a claim gets.
  struct Grant {
    std::string claim;       // its key
    json::Value allocation;  // as status.allocation; null: it has one, which the pod shares
    bool follows = false;    // it will have one when another pod of the gang has got it
  };
  struct Grants {
    std::vector<Grant> claims;
    std::vector<int> gpus;  // all of the pod's GPUs: those it requests, then those it claims
  };
  // For a pod that was given `devices` of the node. The error says what changed meanwhile.
  Result<Grants> GrantsFor(const json::Value& pod,
                           const View& view,
                           const std::string& node,
                           const std::vector<int>& devices);
  // The GPUs of the node that a claim has. nullopt: it has devices elsewhere.
  std::optional<std::vector<int>> GpusOf(const json::Value& claim, const std::string& node);

 private:
  static constexpr size_t kClaimDevicesMax = 32;  // as the API has it
  // Steps that a claim's conditions may take for one device: far more than people write. All
  // devices of the cluster are asked, on the thread that also answers requests.
  static constexpr int64_t kConditionsCost = 1000;

  struct Device {
    int index = 0;
    bool gpu = false;     // counts as a GPU of the node
    bool shared = false;  // several pods can have it
    bool usable = true;   // all counters that it takes from are known
    std::string driver, pool, name;
    const json::Value* document = nullptr;
    sched::CounterUses uses;  // as any kind
    int64_t part_ppm = 0;     // of the GPU that it is a part of

    bool Whole() const { return gpu && !shared; }
  };
  struct Node {
    std::vector<std::string> slices;
    std::vector<Device> devices;
    std::map<std::string, sched::DeviceSet, std::less<>> kinds;  // that were found out
    std::map<std::string, sched::DeviceUses, std::less<>>
        uses;  // of these, beside the devices' own
    sched::DeviceCounters counters;
    std::map<std::string, int, std::less<>> counter_ids;
    bool read = false;

    int Counter(const std::string& name, int64_t capacity, bool own);
  };
  using Pool = std::vector<const json::Value*>;  // slices of one generation
  using Programs = std::vector<std::shared_ptr<const api::CelProgram>>;
  struct Class {
    json::SharedValue object;
    Programs conditions;
    std::string problem;  // why a condition is not understood
  };
  struct Kind {
    std::string exact;  // what is asked for, in full: names are cut, and may be alike
    std::string device_class;
    Programs conditions;
    std::string problem;
    api::DeviceAmounts amounts;
    std::vector<api::DeviceToleration> tolerations;  // their documents are not kept
    bool admin = false;    // for adminAccess: whether others hold its devices does not matter
    bool gpus = false;     // its devices are whole GPUs
    int64_t part_ppm = 0;  // its devices are parts of GPUs, of this size at most
    uint64_t sized = 0;    // the offer_ for which these two are known
    std::string beside;    // see SliceBesideNodes
    uint64_t looked = 0;   // the offer_ for which that is known
    uint64_t costly = 0;   // the offer_ for which its conditions cost too much: it has no devices
    // All its devices have one value of the attribute, whatever their kind. `together` has each
    // kind with the least number of devices of it.
    std::string alike;
    std::vector<std::pair<std::string, int64_t>> together;
    int64_t all = 0;    // a node with another number of them counts as having none
    int64_t least = 0;  // so does a node with fewer
    // Attributes in which the devices of one pod differ, with those of other kinds of that mark.
    std::vector<std::pair<std::string, std::string>> distinct;
  };
  using Kinds = std::map<std::string, Kind, std::less<>>;
  // Devices of a kind for a request of a claim that has none yet.
  struct Want {
    std::string claim, request, kind;
    int64_t count = 0;
    bool all = false;  // that the node has
    json::Array tolerations;
  };
  struct Needs {
    std::string ns;
    std::vector<Want> wants;
    std::vector<Want> looks;  // with adminAccess: devices that it may use even if others hold them
    std::vector<std::string> fresh;     // claims that are given devices with the pod
    std::vector<std::string> shared;    // claims that others have, which it joins
    std::vector<std::string> follows;   // claims that another pod of its gang is given
    std::vector<std::string> together;  // claims whose users in the gang go to one node
    std::vector<int> held;              // devices that it is charged with already
    std::vector<int> lent;              // devices on its node that others are charged with
    std::set<std::string> marks;        // of requests whose devices differ
    std::string obstacle;
    bool unmade = false;  // a claim does not exist yet; it will soon, so the pod gets no reason
  };

  Node& Read(Node& node);
  void ReadDevices(Node& node);
  std::map<std::pair<std::string, std::string>, Pool> LatestSlices(const Node& node) const;
  static void NumberDevices(std::vector<Device> gpus, std::vector<Device> others, Node& node);
  void ReadCounters(Node& node, const Pool& slices);
  Device ReadDevice(Node& node, const json::Value& slice, const json::Value& device);
  sched::DeviceSet DevicesOf(const std::string& kind, Node& node);
  sched::DeviceSet Matching(Kind& kind, const Node& node) const;
  sched::DeviceSet Alike(const Kind& kind, const sched::DeviceSet& own, Node& node);
  static bool AllHold(const Programs& conditions,
                      const api::CelProgram::Values& values,
                      api::CelBudget& budget);
  bool Matches(Kind& kind, const Device& device) const;
  bool KeptAway(const Kind& kind, const Device& device) const;
  sched::DeviceUses UsesAs(const Kind& kind, const sched::DeviceSet& set, Node& node) const;
  int64_t PartOf(const Kind& kind, const Device& device) const;
  void FindOutSize(const std::string& name, Kind& kind);
  bool OnSomeNode(const std::string& kind, int64_t count);
  int64_t UsualCount(const std::string& kind);
  bool TakeKind(const std::string& ns);
  Kinds::iterator FindKind(std::string_view exact, std::string& name);
  std::string KindFor(const api::DeviceAlternative& alternative, const std::string& ns);
  std::string DeriveKind(const std::string& ns,
                         const std::string& base,
                         const std::string& how,
                         const std::function<void(Kind&)>& change);
  void FindOutAnew(const std::string& kind);
  std::string Resource(const std::string& kind) const;
  const Device* Find(std::string_view node, const api::AllocatedDevice& allocated);
  bool AddWants(const json::Value& claim, const std::string& key, Needs& needs);
  bool AddMatches(const api::ClaimAsks& asks, size_t first, const std::string& key, Needs& needs);
  void AddDistinct(std::string_view attribute, const std::vector<size_t>& members, Needs& needs);
  std::string UnknownClass(const api::DeviceAlternative& alternative) const;
  std::string SliceBesideNodes(const std::string& kind);
  void AddWaiting(const json::Value& pod, const std::string& key, const View& view, Needs& needs);
  void AddPlaced(const json::Value& pod, const std::string& key, const View& view, Needs& needs);
  Needs NeedsOf(const json::Value& pod, const View& view);
  bool IsGpu(std::string_view node, int device);
  json::Value ResultFor(const Want& want, const Device& device, const json::Value& claim) const;
  bool ShareOut(const Needs& needs,
                Node* node,
                const std::vector<int>& devices,
                std::vector<sched::DeviceSet>& out);
  bool AddLooks(const Want& look, Node* node, const json::Value& claim, json::Array& results);
  void Changed();
  json::Value Allocation(const json::Value& claim,
                         const std::string& node,
                         json::Array results) const;

  uint64_t offer_ = 1;  // goes up with each change of slices and classes
  std::map<std::string, json::SharedValue, std::less<>> slices_;
  std::map<std::string, Node, std::less<>> nodes_;
  std::map<std::string, Class, std::less<>> classes_;
  std::map<std::string, json::SharedValue, std::less<>> taint_rules_;
  Kinds kinds_;
  std::map<std::string, size_t>
      made_;  // how many of them pods of a namespace were the first to ask
  std::set<std::string> changed_;
  bool starved_ = false;  // a kind was not made
};

}  // namespace swell::sched_inputs
