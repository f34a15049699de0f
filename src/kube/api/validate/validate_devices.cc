// Rules of devices that drivers offer, and of claims to them (resource.k8s.io). Expressions are
// compiled, and checked for the types of their values where they run: in the scheduler.
#include <algorithm>
#include <set>

#include "base/strings.h"
#include "kube/api/cel/cel.h"
#include "kube/api/meta/meta.h"
#include "kube/api/validate/validate_rules.h"

namespace swell::api {
namespace {

using json::Value;

constexpr size_t kMaxRequests = 32;  // and constraints, settings, selectors, results
constexpr size_t kMaxChoices = 8;
constexpr size_t kMaxConsumers = 256;
constexpr size_t kMaxExpressionBytes = 10'240;
constexpr size_t kMaxParametersBytes = 10'240;
constexpr size_t kMaxDevices = 128;
constexpr size_t kMaxSpecialDevices = 64;  // with taints, shared amounts or lists of values
constexpr size_t kMaxFacts = 32;
constexpr size_t kMaxFactBytes = 64;
constexpr size_t kMaxTaints = 16;
constexpr size_t kMaxCounterSets = 8;
constexpr size_t kMaxCounters = 32;
constexpr size_t kMaxIdentifierBytes = 32;

bool IsSet(const Value& parent, std::string_view key) {
  const Value* value = MemberOf(parent, key);
  return value != nullptr && !value->is_null();
}

// The list, which may have at most `most` items. A longer one is an error, and its items are not
// checked.
const json::Array& ListOf(const Value& parent,
                          std::string_view key,
                          size_t most,
                          const std::string& path,
                          FieldErrors& errors) {
  static const json::Array none;
  const json::Array& list = json::GetArray(parent, {key});
  if (list.size() <= most) return list;
  errors.push_back(TooManyError(PathField(path, key), list.size(), most));
  return none;
}

void CheckPoolName(const Value& parent,
                   std::string_view key,
                   const std::string& path,
                   FieldErrors& errors) {
  constexpr size_t kMaxBytes = 253;
  const std::string at = PathField(path, key);
  const std::string_view name = TextOf(parent, key);
  if (name.empty()) {
    errors.push_back(RequiredError(at));
    return;
  }
  if (name.size() > kMaxBytes) errors.push_back(TooLongError(at, kMaxBytes));
  for (std::string_view part : Split(name, '/')) {
    CheckText(part, CheckDnsSubdomain, at, errors);
  }
}

// "name" or "domain/name", the name as in C.
void CheckFactName(std::string_view name,
                   bool needs_domain,
                   const std::string& at,
                   FieldErrors& errors) {
  const size_t slash = name.find('/');
  const bool has_domain = slash != std::string_view::npos;
  const std::string_view id = has_domain ? name.substr(slash + 1) : name;
  if (has_domain) CheckDriverName(name.substr(0, slash), at, errors);
  if (needs_domain && !has_domain) {
    errors.push_back(InvalidText(
        at, name, "a fully qualified name must be a domain and a name separated by a slash"));
  }
  if (id.size() > kMaxIdentifierBytes) errors.push_back(TooLongError(at, kMaxIdentifierBytes));
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  auto follows = [&letter](char c) { return letter(c) || (c >= '0' && c <= '9'); };
  if (id.empty() || !letter(id[0]) || !std::all_of(id.begin(), id.end(), follows)) {
    errors.push_back(InvalidText(
        at, id,
        "a valid C identifier must start with alphabetic character or '_', followed by a string of "
        "alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used "
        "for validation is '[A-Za-z_][A-Za-z0-9_]*')"));
  }
}

void CheckSelectors(const Value& parent, const std::string& path, FieldErrors& errors) {
  const json::Array& list = ListOf(parent, "selectors", kMaxRequests, path, errors);
  for (const auto& [item, item_at] : ItemsOf(list, PathField(path, "selectors"))) {
    const std::string at = PathField(item_at, "cel");
    const Value* cel = MemberOf(item, "cel");
    if (cel == nullptr || cel->is_null()) {
      errors.push_back(RequiredError(at));
      continue;
    }
    const std::string_view text = TextOf(*cel, "expression");
    const std::string field = PathField(at, "expression");
    if (text.empty()) {
      errors.push_back(RequiredError(field));
    } else if (text.size() > kMaxExpressionBytes) {
      errors.push_back(TooLongError(field, kMaxExpressionBytes));
    } else if (errors.empty()) {
      // The first mistake is told: a claim may have a thousand long ones.
      const auto program = CelProgram::Compile(text, {"device"});
      if (!program.ok()) {
        errors.push_back(
            InvalidText(field, text, StrCat("compilation failed: ", program.status().message())));
      }
    }
  }
}

void CheckDeviceTolerations(const Value& parent, const std::string& path, FieldErrors& errors) {
  for (const auto& [item, at] : ItemsOf(parent, "tolerations", path)) {
    const std::string_view key = TextOf(item, "key");
    if (!key.empty()) CheckQualified(key, PathField(at, "key"), errors);
    const std::string_view value = TextOf(item, "value");
    if (TextOf(item, "operator") == "Exists") {
      if (!value.empty()) {
        errors.push_back(
            InvalidText(PathField(at, "value"), value, "must be empty for operator `Exists`"));
      }
    } else {
      CheckText(value, CheckLabelValue, PathField(at, "value"), errors);
    }
    CheckOneOf(item, "effect", at, {"NoExecute", "NoSchedule", "None"}, errors);
  }
}

// What is asked for of one class.
void CheckWanted(const Value& wanted, const std::string& at, FieldErrors& errors) {
  const std::string_view name = TextOf(wanted, "deviceClassName");
  if (name.empty()) {
    errors.push_back(RequiredError(PathField(at, "deviceClassName")));
  } else {
    CheckSubdomain(wanted, "deviceClassName", at, errors);
  }
  CheckSelectors(wanted, at, errors);
  CheckDeviceTolerations(wanted, at, errors);
  const std::string_view mode = TextOf(wanted, "allocationMode");
  const int64_t count = json::GetInt(wanted, {"count"});
  if (mode == "All" && count != 0) {
    errors.push_back(InvalidError(PathField(at, "count"), Value(count),
                                  "must not be specified when allocationMode is 'All'"));
  } else if (mode == "ExactCount" && count <= 0) {
    errors.push_back(
        InvalidError(PathField(at, "count"), Value(count), "must be greater than zero"));
  }
  const json::Array& facts = ListOf(wanted, "derivedAttributes", kMaxRequests, at, errors);
  for (const auto& [derived, fact] : ItemsOf(facts, PathField(at, "derivedAttributes"))) {
    CheckFactName(TextOf(derived, "name"), true, PathField(fact, "name"), errors);
    if (TextOf(derived, "expression").empty()) {
      errors.push_back(RequiredError(PathField(fact, "expression")));
    }
  }
}

void CheckRequest(const Value& request, const std::string& at, FieldErrors& errors) {
  CheckName(request, "name", CheckDnsLabel, at, errors);
  const Value* exactly = MemberOf(request, "exactly");
  const json::Array& choices = json::GetArray(request, {"firstAvailable"});
  const std::string what = "exactly one of `exactly` or `firstAvailable` is required";
  if (exactly == nullptr && choices.empty()) {
    errors.push_back(RequiredError(at, what));
    return;
  }
  if (exactly != nullptr && !choices.empty()) {
    errors.push_back(
        InvalidError(at, Value(nullptr), StrCat(what, ", but multiple fields are set")));
    return;
  }
  if (exactly != nullptr) CheckWanted(*exactly, PathField(at, "exactly"), errors);
  std::set<std::string_view> names;
  const json::Array& list = ListOf(request, "firstAvailable", kMaxChoices, at, errors);
  for (const auto& [item, choice] : ItemsOf(list, PathField(at, "firstAvailable"))) {
    CheckName(item, "name", CheckDnsLabel, choice, errors);
    CheckWanted(item, choice, errors);
    if (!names.insert(TextOf(item, "name")).second) {
      errors.push_back(DuplicateError(choice, Value(TextOf(item, "name"))));
    }
  }
}

// "gpu", and "gpu/large" where it is one of several ways to meet it.
std::set<std::string> RequestNames(const Value& claim) {
  std::set<std::string> names;
  for (const Value& request : json::GetArray(claim, {"requests"})) {
    const std::string name(TextOf(request, "name"));
    names.insert(name);
    for (const Value& choice : json::GetArray(request, {"firstAvailable"})) {
      names.insert(StrCat(name, "/", TextOf(choice, "name")));
    }
  }
  return names;
}

void CheckRequestRefs(const Value& parent,
                      const std::set<std::string>& names,
                      const std::string& path,
                      FieldErrors& errors) {
  const json::Array& refs = ListOf(parent, "requests", kMaxRequests, path, errors);
  std::set<std::string_view> seen;
  for (const auto& [ref, at] : ItemsOf(refs, PathField(path, "requests"))) {
    if (!names.contains(std::string(TextIn(ref)))) {
      errors.push_back(InvalidText(at, TextIn(ref),
                                   "must be the name of a request in the claim or the name of a "
                                   "request and a subrequest separated by '/'"));
    }
    if (!seen.insert(TextIn(ref)).second) errors.push_back(DuplicateError(at, ref));
  }
}

void CheckSettings(const Value& settings, const std::string& path, FieldErrors& errors) {
  const std::string at = PathField(path, "opaque");
  const Value* opaque = MemberOf(settings, "opaque");
  if (opaque == nullptr || opaque->is_null()) {
    errors.push_back(RequiredError(at));
    return;
  }
  CheckDriverName(TextOf(*opaque, "driver"), PathField(at, "driver"), errors);
  const Value* parameters = MemberOf(*opaque, "parameters");
  if (parameters == nullptr || parameters->is_null()) {
    errors.push_back(RequiredError(PathField(at, "parameters")));
  } else if (json::Print(*parameters).size() > kMaxParametersBytes) {
    errors.push_back(TooLongError(PathField(at, "parameters"), kMaxParametersBytes));
  }
}

void CheckClaimed(const Value& claim, const std::string& path, FieldErrors& errors) {
  const std::set<std::string> names = RequestNames(claim);
  std::set<std::string_view> seen;
  const json::Array& requests = ListOf(claim, "requests", kMaxRequests, path, errors);
  for (const auto& [request, at] : ItemsOf(requests, PathField(path, "requests"))) {
    CheckRequest(request, at, errors);
    if (!seen.insert(TextOf(request, "name")).second) {
      errors.push_back(DuplicateError(at, Value(TextOf(request, "name"))));
    }
  }
  const json::Array& constraints = ListOf(claim, "constraints", kMaxRequests, path, errors);
  for (const auto& [constraint, at] : ItemsOf(constraints, PathField(path, "constraints"))) {
    CheckRequestRefs(constraint, names, at, errors);
    const bool match = IsSet(constraint, "matchAttribute");
    if (match == IsSet(constraint, "distinctAttribute")) {
      errors.push_back(RequiredError(
          at, "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required"));
      continue;
    }
    const std::string_view key = match ? "matchAttribute" : "distinctAttribute";
    CheckFactName(TextOf(constraint, key), true, PathField(at, key), errors);
  }
  const json::Array& config = ListOf(claim, "config", kMaxRequests, path, errors);
  for (const auto& [entry, at] : ItemsOf(config, PathField(path, "config"))) {
    CheckRequestRefs(entry, names, at, errors);
    CheckSettings(entry, at, errors);
  }
}

const Value& Part(const Value& parent, std::string_view key) {
  static const Value none = json::Object();
  const Value* found = MemberOf(parent, key);
  return found == nullptr ? none : *found;
}

void CheckAllocation(const Value& object, const Value& status, FieldErrors& errors) {
  const std::set<std::string> names = RequestNames(Part(SpecOf(object), "devices"));
  const Value& devices = Part(Part(status, "allocation"), "devices");
  const std::string path = "status.allocation.devices";
  const json::Array& results = ListOf(devices, "results", kMaxRequests, path, errors);
  for (const auto& [result, at] : ItemsOf(results, PathField(path, "results"))) {
    const std::string_view request = TextOf(result, "request");
    if (!names.contains(std::string(request))) {
      errors.push_back(InvalidText(PathField(at, "request"), request,
                                   "must be the name of a request in the claim or the name of a "
                                   "request and a subrequest separated by '/'"));
    }
    CheckDriverName(TextOf(result, "driver"), PathField(at, "driver"), errors);
    CheckPoolName(result, "pool", at, errors);
    CheckName(result, "device", CheckDnsLabel, at, errors);
  }
  const json::Array& config = ListOf(devices, "config", 2 * kMaxRequests, path, errors);
  for (const auto& [entry, at] : ItemsOf(config, PathField(path, "config"))) {
    CheckRequestRefs(entry, names, at, errors);
    CheckSettings(entry, at, errors);
  }
  if (const Value* nodes = json::Find(status, {"allocation", "nodeSelector"})) {
    CheckNodeSelectorTerms(*nodes, "status.allocation.nodeSelector", errors);
  }
}

// What drivers report is about devices that the claim has.
void CheckReports(const Value& status, FieldErrors& errors) {
  auto id = [](const Value& device) {
    return StrCat(TextOf(device, "driver"), "/", TextOf(device, "pool"), "/",
                  TextOf(device, "device"), "/", TextOf(device, "shareID"));
  };
  std::set<std::string> allocated;
  for (const Value& result : json::GetArray(status, {"allocation", "devices", "results"})) {
    allocated.insert(id(result));
  }
  for (const auto& [one, at] : ItemsOf(status, "devices", "status")) {
    if (!allocated.contains(id(one))) {
      errors.push_back(InvalidText(at, id(one), "must be an allocated device in the claim"));
    }
  }
}

void CheckClaimStatus(const Value& object, const Value& old, FieldErrors& errors) {
  const Value& status = Part(object, "status");
  const Value& before = Part(old, "status");
  const Value* now = MemberOf(status, "allocation");
  const Value* was = MemberOf(before, "allocation");
  const json::Array& users = ListOf(status, "reservedFor", kMaxConsumers, "status", errors);
  if (was == nullptr && now != nullptr) CheckAllocation(object, status, errors);
  // It is taken back, and given anew as another one.
  if (was != nullptr && now != nullptr) {
    CheckImmutable(now, was, "status.allocation", errors);
  }
  if (now == nullptr && !users.empty()) {
    errors.push_back(
        ForbiddenError("status.reservedFor", "may not be specified when `allocated` is not set"));
  }
  const size_t had = json::GetArray(before, {"reservedFor"}).size();
  if (IsDeleting(object) && users.size() > had) {
    errors.push_back(ForbiddenError("status.reservedFor",
                                    "new entries may not be added while `deallocationRequested` "
                                    "or `deletionTimestamp` are set"));
  }
  CheckReports(status, errors);
}

void CheckResourceClaim(const Value& object, const Value* old, FieldErrors& errors) {
  if (old == nullptr) {
    CheckClaimed(Part(SpecOf(object), "devices"), "spec.devices", errors);
    return;
  }
  CheckImmutable(MemberOf(object, "spec"), MemberOf(*old, "spec"), "spec", errors);
  CheckClaimStatus(object, *old, errors);
}

void CheckTemplate(const Value& object, const Value* old, FieldErrors& errors) {
  if (old != nullptr) {
    CheckImmutable(MemberOf(object, "spec"), MemberOf(*old, "spec"), "spec", errors);
    return;
  }
  const Value& spec = SpecOf(object);
  if (const Value* labels = json::Find(spec, {"metadata", "labels"})) {
    CheckLabels(*labels, "spec.metadata.labels", errors);
  }
  if (const Value* annotations = json::Find(spec, {"metadata", "annotations"})) {
    CheckAnnotations(*annotations, "spec.metadata.annotations", errors);
  }
  CheckClaimed(Part(Part(spec, "spec"), "devices"), "spec.spec.devices", errors);
}

void CheckDeviceClass(const Value& object, FieldErrors& errors) {
  const Value& spec = SpecOf(object);
  CheckSelectors(spec, "spec", errors);
  const json::Array& config = ListOf(spec, "config", kMaxRequests, "spec", errors);
  for (const auto& [entry, entry_at] : ItemsOf(config, "spec.config")) {
    CheckSettings(entry, entry_at, errors);
  }
  const Value* extended = MemberOf(spec, "extendedResourceName");
  if (extended == nullptr) return;
  const std::string_view name = TextIn(*extended);
  const std::string_view domain = name.substr(0, name.find('/'));
  const bool own = domain == "kubernetes.io" || domain.ends_with(".kubernetes.io");
  if (name.find('/') == std::string_view::npos || own || name.starts_with("requests.") ||
      !CheckQualifiedName(name).empty()) {
    errors.push_back(
        InvalidText("spec.extendedResourceName", name, "must be a valid extended resource name"));
  }
}

void CheckTaint(const Value& taint, const std::string& at, FieldErrors& errors) {
  CheckQualified(TextOf(taint, "key"), PathField(at, "key"), errors);
  const std::string_view value = TextOf(taint, "value");
  CheckText(value, CheckLabelValue, PathField(at, "value"), errors);
  if (TextOf(taint, "effect").empty()) errors.push_back(RequiredError(PathField(at, "effect")));
}

// One of the fields is set, and no text is long.
void CheckFact(const Value& fact, const std::string& at, FieldErrors& errors) {
  size_t set = 0;
  for (std::string_view key :
       {"bool", "int", "string", "version", "bools", "ints", "strings", "versions"}) {
    set += IsSet(fact, key) ? 1 : 0;
  }
  if (set != 1) errors.push_back(InvalidText(at, "", "exactly one value must be specified"));
  for (std::string_view key : {"string", "version"}) {
    if (TextOf(fact, key).size() <= kMaxFactBytes) continue;
    errors.push_back(TooLongError(PathField(at, key), kMaxFactBytes));
  }
  for (std::string_view key : {"strings", "versions"}) {
    for (const auto& [item, item_at] : ItemsOf(fact, key, at)) {
      if (TextIn(item).size() <= kMaxFactBytes) continue;
      errors.push_back(TooLongError(item_at, kMaxFactBytes));
    }
  }
}

// Which nodes reach it: one of the ways is said.
void CheckReach(const Value& of,
                std::initializer_list<std::string_view> ways,
                const std::string& path,
                std::string_view what,
                FieldErrors& errors) {
  std::vector<std::string> said;
  for (std::string_view way : ways) {
    const Value* value = MemberOf(of, way);
    if (value == nullptr || value->is_null()) continue;
    if (value->is_bool() && !value->get_bool()) {
      errors.push_back(
          InvalidError(PathField(path, way), *value, "must be either unset or set to true"));
      continue;
    }
    if (value->is_string() && value->get_string().empty()) {
      errors.push_back(InvalidText(PathField(path, way), "",
                                   "must be either unset or set to a non-empty string"));
      continue;
    }
    said.push_back(StrCat("`", way, "`"));
  }
  CheckSubdomain(of, "nodeName", path, errors);
  if (const Value* nodes = MemberOf(of, "nodeSelector")) {
    CheckNodeSelectorTerms(*nodes, PathField(path, "nodeSelector"), errors);
  }
  if (said.empty()) {
    errors.push_back(RequiredError(path, what));
  } else if (said.size() > 1) {
    errors.push_back(InvalidText(path, StrCat("{", Join(said, ", "), "}"),
                                 StrCat(what, ", but multiple fields are set")));
  }
}

void CheckCounters(const Value& parent, const std::string& path, FieldErrors& errors) {
  const std::string at = PathField(path, "counters");
  const json::Object& counters = json::GetObject(parent, {"counters"});
  if (counters.empty()) errors.push_back(RequiredError(at));
  if (counters.size() > kMaxCounters) {
    errors.push_back(TooManyError(at, counters.size(), kMaxCounters));
  }
  for (const auto& counter : counters) {
    CheckText(counter.key(), CheckDnsLabel, at, errors);
  }
}

void CheckDevice(const Value& device, bool by_device, const std::string& at, FieldErrors& errors) {
  CheckName(device, "name", CheckDnsLabel, at, errors);
  const json::Object& facts = json::GetObject(device, {"attributes"});
  const json::Object& amounts = json::GetObject(device, {"capacity"});
  if (facts.size() + amounts.size() > kMaxFacts) {
    errors.push_back(InvalidError(
        at, Value(facts.size() + amounts.size()),
        StrCat("the total number of attributes and capacities must not exceed ", kMaxFacts)));
    return;
  }
  for (const auto& fact : facts) {
    const std::string key = PathKey(PathField(at, "attributes"), fact.key());
    CheckFactName(fact.key(), false, key, errors);
    CheckFact(fact.value(), key, errors);
  }
  for (const auto& amount : amounts) {
    CheckFactName(amount.key(), false, PathKey(PathField(at, "capacity"), amount.key()), errors);
  }
  const json::Array& taints = ListOf(device, "taints", kMaxTaints, at, errors);
  for (const auto& [taint, taint_at] : ItemsOf(taints, PathField(at, "taints"))) {
    CheckTaint(taint, taint_at, errors);
  }
  const json::Array& consumed = ListOf(device, "consumesCounters", 2, at, errors);
  for (const auto& [counters, one] : ItemsOf(consumed, PathField(at, "consumesCounters"))) {
    CheckName(counters, "counterSet", CheckDnsLabel, one, errors);
    CheckCounters(counters, one, errors);
  }
  if (by_device) {
    CheckReach(device, {"nodeName", "nodeSelector", "allNodes"}, at,
               "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when "
               "`perDeviceNodeSelection` is set to true in the ResourceSlice spec",
               errors);
  } else if (IsSet(device, "nodeName") || IsSet(device, "nodeSelector") ||
             IsSet(device, "allNodes")) {
    errors.push_back(InvalidError(at, Value(nullptr),
                                  "`nodeName`, `nodeSelector` and `allNodes` can only be set if "
                                  "`perDeviceNodeSelection` is set to true in the ResourceSlice "
                                  "spec"));
  }
}

bool IsSpecial(const Value& device) {
  if (IsSet(device, "taints") || IsSet(device, "consumesCounters")) return true;
  const json::Object& facts = json::GetObject(device, {"attributes"});
  return std::any_of(facts.begin(), facts.end(), [](const auto& fact) {
    return IsSet(fact.value(), "bools") || IsSet(fact.value(), "ints") ||
           IsSet(fact.value(), "strings") || IsSet(fact.value(), "versions");
  });
}

void CheckDevices(const Value& spec, FieldErrors& errors) {
  const json::Array& all = json::GetArray(spec, {"devices"});
  const bool special = std::any_of(all.begin(), all.end(), IsSpecial);
  const json::Array& devices =
      ListOf(spec, "devices", special ? kMaxSpecialDevices : kMaxDevices, "spec", errors);
  const bool by_device = json::GetBool(spec, {"perDeviceNodeSelection"});
  std::set<std::string_view> names;
  for (const auto& [device, at] : ItemsOf(devices, "spec.devices")) {
    CheckDevice(device, by_device, at, errors);
    if (!names.insert(TextOf(device, "name")).second) {
      errors.push_back(DuplicateError(at, Value(TextOf(device, "name"))));
    }
  }
  const json::Array& sets = ListOf(spec, "sharedCounters", kMaxCounterSets, "spec", errors);
  if (!sets.empty() && !devices.empty()) {
    errors.push_back(
        InvalidText("spec", "", "only one of `sharedCounters` or `devices` is allowed"));
  }
  for (const auto& [counters, at] : ItemsOf(sets, "spec.sharedCounters")) {
    CheckName(counters, "name", CheckDnsLabel, at, errors);
    CheckCounters(counters, at, errors);
  }
}

void CheckSlice(const Value& object, const Value* old, FieldErrors& errors) {
  const Value& spec = SpecOf(object);
  CheckDriverName(TextOf(spec, "driver"), "spec.driver", errors);
  const Value& pool = Part(spec, "pool");
  CheckPoolName(pool, "name", "spec.pool", errors);
  if (const int64_t slices = json::GetInt(pool, {"resourceSliceCount"}); slices <= 0) {
    errors.push_back(
        InvalidError("spec.pool.resourceSliceCount", Value(slices), "must be greater than zero"));
  }
  CheckNonNegative(pool, "generation", "spec.pool", errors);
  CheckReach(spec, {"nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"}, "spec",
             "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is "
             "required",
             errors);
  const json::Array& terms = json::GetArray(spec, {"nodeSelector", "nodeSelectorTerms"});
  if (terms.size() > 1) {
    errors.push_back({"FieldValueInvalid", "spec.nodeSelector.nodeSelectorTerms",
                      StrCat("Invalid value: ", json::Print(Value(terms)),
                             ": must have exactly one node selector term")});
  }
  CheckDevices(spec, errors);
  if (old == nullptr) return;
  const Value& before = SpecOf(*old);
  CheckImmutable(MemberOf(pool, "name"), MemberOf(Part(before, "pool"), "name"), "spec.pool.name",
                 errors);
  for (std::string_view key : {"driver", "nodeName"}) {
    CheckImmutable(MemberOf(spec, key), MemberOf(before, key), PathField("spec", key), errors);
  }
}

void CheckTaintRule(const Value& object, FieldErrors& errors) {
  const Value& spec = SpecOf(object);
  CheckTaint(Part(spec, "taint"), "spec.taint", errors);
  const Value& of = Part(spec, "deviceSelector");
  const std::string path = "spec.deviceSelector";
  if (IsSet(of, "driver")) CheckDriverName(TextOf(of, "driver"), PathField(path, "driver"), errors);
  if (IsSet(of, "pool")) CheckPoolName(of, "pool", path, errors);
  if (IsSet(of, "device")) CheckName(of, "device", CheckDnsLabel, path, errors);
}

}  // namespace

void CheckDeviceKinds(const KindInfo& kind,
                      const Value& object,
                      const Value* old,
                      FieldErrors& errors) {
  if (kind.gvk.group != "resource.k8s.io") return;
  const std::string& k = kind.gvk.kind;
  if (k == "ResourceClaim") CheckResourceClaim(object, old, errors);
  if (k == "ResourceClaimTemplate") CheckTemplate(object, old, errors);
  if (k == "DeviceClass") CheckDeviceClass(object, errors);
  if (k == "ResourceSlice") CheckSlice(object, old, errors);
  if (k == "DeviceTaintRule") CheckTaintRule(object, errors);
}

}  // namespace swell::api
