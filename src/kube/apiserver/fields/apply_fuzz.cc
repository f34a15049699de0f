// Fuzzes server-side apply: each four bytes of the input are one apply by one of three managers, of
// some of the fields of a custom object. A plain model, which knows of each field only its value
// and who owns it, must come to the same conflicts and to the same object; and who applies the same
// again changes nothing.
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/strings.h"
#include "kube/apiserver/test_server.h"

namespace swell::apiserver {
namespace {

constexpr char kWidget[] = "/apis/example.com/v1/namespaces/default/widgets/w";
constexpr char kDefinition[] = R"({"apiVersion":"apiextensions.k8s.io/v1",
  "kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com"},
  "spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},
  "versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{
  "type":"object","properties":{"spec":{"type":"object","properties":{
  "a":{"type":"string"},
  "map":{"type":"object","additionalProperties":{"type":"string"}},
  "atomic":{"type":"array","items":{"type":"string"}},
  "set":{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"},
  "keyed":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],
  "items":{"type":"object","required":["name"],"properties":{
  "name":{"type":"string"},"v":{"type":"string"},"w":{"type":"string"}}}}}}}}}}]}})";

// "a", "map/x", "keyed/p/v" (and "keyed/p", the item itself) → value
using Leaves = std::map<std::string, std::string>;

// The fields that may be set; each is there when its bit is.
constexpr const char* kFields[] = {"a",         "map/x",     "map/y",     "atomic",
                                   "set/s",     "set/t",     "keyed/p",   "keyed/q",
                                   "keyed/p/v", "keyed/p/w", "keyed/q/v", "keyed/q/w"};

// What one manager wants: values differ by a bit each of a byte.
Leaves Config(unsigned fields, unsigned values) {
  Leaves leaves;
  for (size_t i = 0; i < std::size(kFields); ++i) {
    if ((fields >> i & 1) == 0) continue;
    const std::string path = kFields[i];
    const bool named = path.starts_with("set/") || (path.starts_with("keyed/") && path.size() == 7);
    leaves[path] = named ? "" : StrCat(values >> i % 8 & 1);
    if (path.size() == 9) leaves[path.substr(0, 7)] = "";
  }
  return leaves;
}

std::string ConfigText(const Leaves& leaves) {
  json::Value spec = json::Object();
  for (const auto& [path, value] : leaves) {
    const auto steps = Split(path, '/');
    if (path == "a") {
      json::Set(spec, {"a"}, value);
    } else if (path == "atomic") {
      json::Set(spec, {"atomic"}, json::Value(json::Array{value, "end"}));
    } else if (steps[0] == "map") {
      json::Set(spec, {"map", steps[1]}, value);
    } else {
      json::Value* list = json::FindMutable(spec, {steps[0]});
      if (list == nullptr) list = &json::Set(spec, {steps[0]}, json::Value(json::Array()));
      json::Array& items = list->get_array();
      if (steps[0] == "set") {
        items.emplace_back(std::string(steps[1]));
      } else if (steps.size() == 2) {
        items.emplace_back(json::Object{{"name", std::string(steps[1])}});
      } else {
        json::Set(items.back(), {steps[2]}, value);  // its item comes right before it
      }
    }
  }
  return json::Print(json::Object{{"apiVersion", "example.com/v1"},
                                  {"kind", "Widget"},
                                  {"metadata", json::Object{{"name", "w"}}},
                                  {"spec", std::move(spec)}});
}

Leaves LeavesOf(const json::Value& object) {
  Leaves leaves;
  const json::Value* spec = json::Find(object, {"spec"});
  if (spec == nullptr) return leaves;
  if (json::Find(*spec, {"a"}) != nullptr) leaves["a"] = json::GetString(*spec, {"a"});
  for (const auto& member : json::GetObject(*spec, {"map"})) {
    leaves[StrCat("map/", std::string(member.key()))] = member.value().get_string();
  }
  const json::Array& atomic = json::GetArray(*spec, {"atomic"});
  if (!atomic.empty()) {
    SWELL_CHECK(atomic.size() == 2);
    leaves["atomic"] = atomic[0].get_string();
  }
  for (const json::Value& item : json::GetArray(*spec, {"set"})) {
    SWELL_CHECK(leaves.emplace(StrCat("set/", std::string(item.get_string())), "").second);
  }
  for (const json::Value& item : json::GetArray(*spec, {"keyed"})) {
    const std::string path = StrCat("keyed/", json::GetString(item, {"name"}));
    SWELL_CHECK(leaves.emplace(path, "").second);
    for (const char* key : {"v", "w"}) {
      const json::Value* value = json::Find(item, {key});
      if (value != nullptr) leaves[StrCat(path, "/", key)] = value->get_string();
    }
  }
  return leaves;
}

class Model {
 public:
  // false: there are conflicts.
  bool Apply(size_t manager, const Leaves& config, bool force) {
    std::vector<std::string> taken;
    for (const auto& [path, value] : config) {
      const auto leaf = leaves_.find(path);
      if (leaf == leaves_.end() || leaf->second.first == value) continue;
      std::set<size_t> others = leaf->second.second;
      others.erase(manager);
      if (!others.empty()) taken.push_back(path);
    }
    if (!taken.empty() && !force) return false;
    for (const std::string& path : taken) leaves_[path].second.clear();
    for (const auto& [path, value] : config) {
      leaves_[path].first = value;
      leaves_[path].second.insert(manager);
    }
    for (auto leaf = leaves_.begin(); leaf != leaves_.end();) {
      if (config.count(leaf->first) == 0) leaf->second.second.erase(manager);
      leaf = leaf->second.second.empty() ? leaves_.erase(leaf) : std::next(leaf);
    }
    return true;
  }

  Leaves leaves() const {
    Leaves out;
    for (const auto& [path, leaf] : leaves_) out[path] = leaf.first;
    return out;
  }

 private:
  std::map<std::string, std::pair<std::string, std::set<size_t>>> leaves_;  // value, owners
};

TestServer& Server() {
  static const std::unique_ptr<TestServer> server = [] {
    auto made = std::make_unique<TestServer>();
    made->Boot();
    const Answer defined =
        made->Post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", kDefinition);
    SWELL_CHECK_MSG(defined.status == 201, defined.text);
    return made;
  }();
  return *server;
}

Answer Apply(size_t manager, const Leaves& config, bool force) {
  return Server().Patch(StrCat(kWidget, "?fieldManager=m", manager, force ? "&force=true" : ""),
                        ConfigText(config), "application/apply-patch+yaml");
}

void Step(Model& model, const uint8_t* bytes) {
  const size_t manager = bytes[0] % 3;
  const bool force = (bytes[0] & 4) != 0;
  const Leaves config = Config(bytes[1] | (bytes[0] & 0xf0U) << 4, bytes[2] ^ bytes[3]);
  const Answer applied = Apply(manager, config, force);
  if (!model.Apply(manager, config, force)) {
    SWELL_CHECK_MSG(applied.status == 409, applied.text);
    return;
  }
  SWELL_CHECK_MSG(applied.status == 200 || applied.status == 201, applied.text);
  SWELL_CHECK_MSG(LeavesOf(applied.body) == model.leaves(), applied.text);
  const Answer again = Apply(manager, config, false);
  SWELL_CHECK_MSG(again.status == 200 && again.text == applied.text, again.text);
}

}  // namespace
}  // namespace swell::apiserver

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace swell::apiserver;
  Model model;
  for (size_t steps = 0; size >= 4 && steps < 24; data += 4, size -= 4, ++steps) Step(model, data);
  const Answer gone = Server().Delete(kWidget);
  SWELL_CHECK_MSG(gone.status == 200 || gone.status == 404, gone.text);
  return 0;
}
