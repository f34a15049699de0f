#include "kube/controllers/workloads/endpoints.h"

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/selector.h"
#include "kube/controllers/pod_facts.h"
#include "kube/controllers/queue.h"
#include "kube/controllers/write_batch.h"

namespace swell::controllers {
namespace {

bool SelectsPod(const json::Object& selector, const json::Value& pod) {
  return !selector.empty() && api::HasLabels(pod, selector);
}

// The number behind a service's targetPort in this pod; 0 when a name is not found.
int64_t TargetPort(const json::Value& port, const json::Value& pod) {
  const json::Value* target = json::Find(port, {"targetPort"});
  if (target == nullptr || target->is_null()) return json::GetInt(port, {"port"});
  if (target->is_number()) return json::GetInt(port, {"targetPort"});
  std::string_view name = json::GetString(port, {"targetPort"});
  for (const json::Value& container : json::GetArray(pod, {"spec", "containers"})) {
    for (const json::Value& candidate : json::GetArray(container, {"ports"})) {
      if (json::GetString(candidate, {"name"}) == name) {
        return json::GetInt(candidate, {"containerPort"});
      }
    }
  }
  return 0;
}

json::Array Ports(const json::Value& service, const json::Value& pod) {
  json::Array ports;
  for (const json::Value& port : json::GetArray(service, {"spec", "ports"})) {
    int64_t number = TargetPort(port, pod);
    if (number == 0) continue;
    json::Object one;
    if (std::string_view name = json::GetString(port, {"name"}); !name.empty()) one["name"] = name;
    one["port"] = number;
    one["protocol"] = json::GetString(port, {"protocol"}, "TCP");
    ports.push_back(std::move(one));
  }
  return ports;
}

// Most updates of a pod change nothing that its services show.
bool Matters(const json::Value& before, const json::Value& pod) {
  return json::GetString(before, {"status", "podIP"}) !=
             json::GetString(pod, {"status", "podIP"}) ||
         api::ConditionIsTrue(before, "Ready") != api::ConditionIsTrue(pod, "Ready") ||
         HasEnded(before) != HasEnded(pod) || api::IsDeleting(before) != api::IsDeleting(pod) ||
         json::GetObject(before, {"metadata", "labels"}) !=
             json::GetObject(pod, {"metadata", "labels"});
}

constexpr std::string_view kManagedBy = "endpoints.kubernetes.io/managed-by";
constexpr std::string_view kManager = "endpoint-controller";
constexpr std::string_view kHeadless = "service.kubernetes.io/headless";

// The service's own, whether it is headless, and who writes them.
json::Object Labels(const json::Value& service) {
  json::Object labels = json::GetObject(service, {"metadata", "labels"});
  json::StableErase(labels, kHeadless);
  const std::string_view ip = json::GetString(service, {"spec", "clusterIP"});
  if (ip.empty() || ip == "None") labels[kHeadless] = "";
  labels[kManagedBy] = kManager;
  return labels;
}

// A merge patch that makes labels of what is there the wanted ones.
json::Object LabelPatch(const json::Value& known, const json::Object& wanted) {
  json::Object patch = wanted;
  for (const auto& label : json::GetObject(known, {"metadata", "labels"})) {
    if (!wanted.contains(label.key())) patch[label.key()] = nullptr;
  }
  return patch;
}

json::Value Address(const json::Value& pod) {
  json::Object address{{"ip", json::GetString(pod, {"status", "podIP"})}};
  std::string_view hostname = json::GetString(pod, {"spec", "hostname"});
  if (!hostname.empty() && !json::GetString(pod, {"spec", "subdomain"}).empty()) {
    address["hostname"] = hostname;
  }
  address["nodeName"] = api::NodeName(pod);
  address["targetRef"] = json::Object{{"kind", "Pod"},
                                      {"namespace", api::Namespace(pod)},
                                      {"name", api::Name(pod)},
                                      {"uid", api::Uid(pod)}};
  return address;
}

}  // namespace

EndpointsController::EndpointsController(Context context)
    : context_(context),
      services_(context_.informers.Of(client::resources::kServices)),
      endpoints_(context_.informers.Of(client::resources::kEndpoints)),
      pods_(context_.informers.Of(client::resources::kPods)),
      queue_(MakeQueue(context_, "endpoints", 64, this, &EndpointsController::Reconcile)),
      client_(context_.executor, context_.server, context_.user, "endpoints-controller") {
  Follow(services_, Queued(queue_), [this](const json::SharedValue& service) {
    gone_.insert(api::KeyOf(*service));
    queue_.Add(api::KeyOf(*service));
  });
  Follow(endpoints_, Queued(queue_), Queued(queue_));
  pods_.AddHandlers({.on_add = [this](const json::SharedValue& pod) { OnPod(*pod); },
                     .on_update =
                         [this](const json::SharedValue& before, const json::SharedValue& pod) {
                           if (!Matters(*before, *pod)) return;
                           OnPod(*before);
                           OnPod(*pod);
                         },
                     .on_delete = [this](const json::SharedValue& pod) { OnPod(*pod); }});
}

void EndpointsController::OnPod(const json::Value& pod) {
  if (json::GetString(pod, {"status", "podIP"}).empty()) return;
  for (const auto& [key, service] : services_.objects()) {
    if (api::Namespace(*service) == api::Namespace(pod) &&
        SelectsPod(json::GetObject(*service, {"spec", "selector"}), pod)) {
      queue_.Add(key);
    }
  }
}

// Pods with the same ports share a subset, as kube-controller-manager writes them.
json::Value EndpointsController::Wanted(const json::Value& service) const {
  bool publish_not_ready = json::GetBool(service, {"spec", "publishNotReadyAddresses"});
  const json::Object& selector = json::GetObject(service, {"spec", "selector"});
  struct Subset {
    json::Array ports, ready, not_ready;
  };
  std::map<std::string, Subset> subsets;
  std::string prefix = StrCat(api::Namespace(service), "/");
  const auto& pods = pods_.objects();
  for (auto it = pods.lower_bound(prefix); it != pods.end(); ++it) {
    const json::SharedValue& pod = it->second;
    if (!it->first.starts_with(prefix)) break;
    if (HasEnded(*pod) || api::IsDeleting(*pod) ||
        json::GetString(*pod, {"status", "podIP"}).empty() || !SelectsPod(selector, *pod)) {
      continue;
    }
    json::Array ports = Ports(service, *pod);
    Subset& subset = subsets[json::Print(ports)];
    subset.ports = std::move(ports);
    bool ready = publish_not_ready || api::ConditionIsTrue(*pod, "Ready");
    (ready ? subset.ready : subset.not_ready).push_back(Address(*pod));
  }
  json::Array list;
  for (auto& [ports, subset] : subsets) {
    json::Object one;
    if (!subset.ready.empty()) one["addresses"] = std::move(subset.ready);
    if (!subset.not_ready.empty()) one["notReadyAddresses"] = std::move(subset.not_ready);
    if (!subset.ports.empty()) one["ports"] = std::move(subset.ports);
    list.push_back(std::move(one));
  }
  return list;
}

void EndpointsController::Reconcile(const std::string& key, client::WorkQueue::Done done) {
  json::SharedValue service = services_.Get(key);
  json::SharedValue known = endpoints_.Get(key);
  if (!service) return Remove(key, std::move(done));
  gone_.erase(key);
  const auto ended = Ends(done, {}, {Code::kNotFound, Code::kAlreadyExists});
  // Without a selector the Endpoints belong to the user.
  if (json::GetObject(*service, {"spec", "selector"}).empty()) return done(Duration::zero());
  json::Value subsets = Wanted(*service);
  json::Object labels = Labels(*service);
  if (known) {
    if (json::Equal(json::Value(json::GetArray(*known, {"subsets"})), subsets) &&
        json::Equal(json::Value(json::GetObject(*known, {"metadata", "labels"})),
                    json::Value(labels))) {
      return done(Duration::zero());
    }
    json::Value patch =
        json::Object{{"metadata", json::Object{{"labels", LabelPatch(*known, labels)}}},
                     {"subsets", std::move(subsets)}};
    client_.Patch(client::resources::kEndpoints, api::Namespace(*service), api::Name(*service),
                  client::PatchType::kMerge, patch, ended);
    return;
  }
  json::Value endpoints =
      json::Object{{"apiVersion", "v1"},
                   {"kind", "Endpoints"},
                   {"metadata", json::Object{{"name", api::Name(*service)},
                                             {"namespace", api::Namespace(*service)},
                                             {"labels", std::move(labels)}}},
                   {"subsets", std::move(subsets)}};
  client_.Create(client::resources::kEndpoints, api::Namespace(*service), endpoints, ended);
}

// Endpoints go with their service. Those that somebody made without one stay.
void EndpointsController::Remove(const std::string& key, client::WorkQueue::Done done) {
  const json::SharedValue known = endpoints_.Get(key);
  const bool gone = gone_.erase(key) > 0;
  if (!known || (!gone && api::Label(*known, kManagedBy) != kManager)) {
    return done(Duration::zero());
  }
  client_.Delete(client::resources::kEndpoints, api::Namespace(*known), api::Name(*known), {},
                 Ends(done, {}, {Code::kNotFound}));
}

}  // namespace swell::controllers
