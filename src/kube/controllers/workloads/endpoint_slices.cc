#include "kube/controllers/workloads/endpoint_slices.h"

#include <map>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/queue.h"
#include "kube/controllers/workload.h"
#include "kube/controllers/write_batch.h"

namespace swell::controllers {
namespace {

constexpr std::string_view kServiceLabel = "kubernetes.io/service-name";
constexpr std::string_view kManagedBy = "endpointslice.kubernetes.io/managed-by";
constexpr std::string_view kManager = "endpointslice-controller.k8s.io";
constexpr std::string_view kMirror = "endpointslicemirroring-controller.k8s.io";
constexpr std::string_view kSkip = "endpointslice.kubernetes.io/skip-mirror";
constexpr size_t kSuffix = 5;

void AddEndpoints(const json::Value& subset, const char* field, bool ready, json::Array& out) {
  for (const json::Value& address : json::GetArray(subset, {field})) {
    json::Object endpoint;
    endpoint["addresses"] = json::Array{json::Value(json::GetString(address, {"ip"}))};
    endpoint["conditions"] =
        json::Object{{"ready", ready}, {"serving", ready}, {"terminating", false}};
    for (const char* copied : {"hostname", "nodeName", "targetRef"}) {
      const json::Value* value = json::Find(address, {copied});
      if (value != nullptr && *value != json::Value("")) endpoint[copied] = *value;
    }
    out.push_back(std::move(endpoint));
  }
}

// What a slice is for, without its name: two that say the same are the same.
json::Value Slice(const json::Value& endpoints, const json::Value& subset, bool selects) {
  json::Array list;
  AddEndpoints(subset, "addresses", true, list);
  AddEndpoints(subset, "notReadyAddresses", false, list);
  json::Object labels = json::GetObject(endpoints, {"metadata", "labels"});
  json::StableErase(labels, "endpoints.kubernetes.io/managed-by");
  labels[kServiceLabel] = api::Name(endpoints);
  labels[kManagedBy] = selects ? kManager : kMirror;
  json::Array ports;
  for (json::Value port : json::GetArray(subset, {"ports"})) {
    if (json::Find(port, {"name"}) == nullptr) json::Set(port, {"name"}, "");
    ports.push_back(std::move(port));
  }
  return json::Object{{"apiVersion", "discovery.k8s.io/v1"},
                      {"kind", "EndpointSlice"},
                      {"metadata", json::Object{{"namespace", api::Namespace(endpoints)},
                                                {"labels", std::move(labels)}}},
                      {"addressType", "IPv4"},
                      {"endpoints", std::move(list)},
                      {"ports", std::move(ports)}};
}

bool Same(const json::Value& slice, const json::Value& wanted) {
  return json::Equal(json::Value(json::GetArray(slice, {"endpoints"})),
                     json::Value(json::GetArray(wanted, {"endpoints"}))) &&
         json::Equal(json::Value(json::GetArray(slice, {"ports"})),
                     json::Value(json::GetArray(wanted, {"ports"}))) &&
         json::GetObject(slice, {"metadata", "labels"}) ==
             json::GetObject(wanted, {"metadata", "labels"});
}

}  // namespace

EndpointSliceController::EndpointSliceController(Context context)
    : context_(context),
      endpoints_(context_.informers.Of(client::resources::kEndpoints)),
      services_(context_.informers.Of(client::resources::kServices)),
      slices_(context_.informers.Of(client::resources::kEndpointSlices)),
      queue_(MakeQueue(context_, "endpointslices", 64, this, &EndpointSliceController::Reconcile)),
      client_(context_.executor, context_.server, context_.user, "endpointslice-controller") {
  Follow(endpoints_, Queued(queue_), Queued(queue_));
  auto slice = [this](const json::SharedValue& it) {
    queue_.Add(StrCat(api::Namespace(*it), "/", api::Label(*it, kServiceLabel)));
  };
  slices_.AddHandlers(
      {.on_add = {},
       .on_update = [slice](const json::SharedValue&, const json::SharedValue& it) { slice(it); },
       .on_delete = slice});
}

void EndpointSliceController::Reconcile(const std::string& key, client::WorkQueue::Done done) {
  const json::SharedValue endpoints = endpoints_.Get(key);
  const json::SharedValue service = services_.Get(key);
  std::map<std::string, json::Value> wanted;  // by name
  // Those of `kubernetes` are the API server's own.
  if (endpoints && service && api::Label(*endpoints, kSkip) != "true") {
    const bool selects = !json::GetObject(*service, {"spec", "selector"}).empty();
    for (const json::Value& subset : json::GetArray(*endpoints, {"subsets"})) {
      json::Value slice = Slice(*endpoints, subset, selects);
      // Ports tell subsets apart, so the name follows from them.
      Random random(StableHash(json::Print(json::Value(json::GetArray(subset, {"ports"})))));
      const std::string name = StrCat(api::Name(*endpoints), "-", random.NameSuffix(kSuffix));
      json::Set(slice, {"metadata", "name"}, name);
      json::Set(slice, {"metadata", "ownerReferences"},
                json::Array{api::MakeOwnerReference(*service)});
      wanted[name] = std::move(slice);
    }
  }
  auto writes = MakeBatch(std::move(done));
  const std::string prefix = key.substr(0, key.find('/') + 1);
  const auto& slices = slices_.objects();
  for (auto it = slices.lower_bound(prefix); it != slices.end() && it->first.starts_with(prefix);
       ++it) {
    const json::Value& slice = *it->second;
    const std::string_view manager = api::Label(slice, kManagedBy);
    if (api::Label(slice, kServiceLabel) != key.substr(prefix.size()) ||
        (manager != kManager && manager != kMirror)) {
      continue;
    }
    const auto match = wanted.find(std::string(api::Name(slice)));
    if (match == wanted.end()) {
      client_.Delete(client::resources::kEndpointSlices, api::Namespace(slice), api::Name(slice),
                     {}, writes->Track());
      continue;
    }
    if (!Same(slice, match->second)) {
      json::Set(match->second, {"metadata", "resourceVersion"},
                json::GetString(slice, {"metadata", "resourceVersion"}));
      client_.Update(client::resources::kEndpointSlices, match->second, writes->Track());
    }
    wanted.erase(match);
  }
  for (const auto& [name, slice] : wanted) {
    client_.Create(client::resources::kEndpointSlices, api::Namespace(slice), slice,
                   writes->Track());
  }
  writes->Close();
}

}  // namespace swell::controllers
