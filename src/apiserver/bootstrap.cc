// What every cluster has from its first minute.
#include "api/meta.h"
#include "apiserver/handlers.h"
#include "apiserver/prepare.h"
#include "base/strings.h"

namespace swell::apiserver {
namespace {

json::Value Named(std::string_view api_version,
                  std::string_view kind,
                  std::string_view name,
                  std::string_view ns = {}) {
  json::Object metadata;
  metadata["name"] = name;
  if (!ns.empty()) metadata["namespace"] = ns;
  json::Object object;
  object["apiVersion"] = api_version;
  object["kind"] = kind;
  object["metadata"] = std::move(metadata);
  return object;
}

json::Value PriorityClass(std::string_view name, int64_t value, std::string_view description) {
  json::Value object = Named("scheduling.k8s.io/v1", "PriorityClass", name);
  object.get_object()["value"] = value;
  object.get_object()["description"] = description;
  return object;
}

struct Step {
  std::string group;
  std::string plural;
  json::Value object;
};

void AddServices(const Options& options, const std::string& ip, std::vector<Step>& steps) {
  if (options.advertise_address.empty()) return;
  json::Value service = Named("v1", "Service", "kubernetes", "default");
  json::Set(service, {"metadata", "labels"},
            json::Object{{"component", "apiserver"}, {"provider", "kubernetes"}});
  json::Object port{{"name", "https"}, {"port", 443}, {"protocol", "TCP"}};
  port["targetPort"] = options.advertise_port;
  json::Set(service, {"spec", "ports"}, json::Array{std::move(port)});
  json::Set(service, {"spec", "clusterIP"}, json::Value(ip));
  steps.push_back({"", "services", std::move(service)});
  json::Value endpoints = Named("v1", "Endpoints", "kubernetes", "default");
  json::Object subset;
  json::Object address;
  address["ip"] = options.advertise_address;
  json::Object endpoint_port{{"name", "https"}, {"protocol", "TCP"}};
  endpoint_port["port"] = options.advertise_port;
  subset["addresses"] = json::Array{std::move(address)};
  subset["ports"] = json::Array{std::move(endpoint_port)};
  json::Set(endpoints, {"subsets"}, json::Array{std::move(subset)});
  steps.push_back({"", "endpoints", std::move(endpoints)});
}

std::vector<Step> Steps(const Core& core) {
  std::vector<Step> steps;
  const std::vector<std::string> namespaces = {"kube-system", "default", "kube-public",
                                               "kube-node-lease"};
  for (const std::string& name : namespaces) {
    steps.push_back({"", "namespaces", Named("v1", "Namespace", name)});
  }
  for (const std::string& name : namespaces) {
    steps.push_back({"", "serviceaccounts", Named("v1", "ServiceAccount", "default", name)});
  }
  const std::tuple<const char*, int64_t, const char*> classes[] = {
      {"system-node-critical", 2'000'001'000,
       "Used for system critical pods that must not be moved from their current node."},
      {"system-cluster-critical", 2'000'000'000,
       "Used for system critical pods that must run in the cluster, but can be moved to another "
       "node if necessary."},
      {"train", 50, "Training that may be preempted and resumes from its checkpoint."},
      {"interactive", 75, "Work a person is waiting for; may be preempted."},
      {"build", 100, "Work that is not preempted."},
      {"inference", 125, "Serving; not preempted."}};
  for (const auto& [name, value, description] : classes) {
    steps.push_back(
        {"scheduling.k8s.io", "priorityclasses", PriorityClass(name, value, description)});
  }
  for (json::Value& crd : api::SwellCrds()) {
    steps.push_back({"apiextensions.k8s.io", "customresourcedefinitions", std::move(crd)});
  }
  AddServices(core.options, core.service_ips.first(), steps);
  return steps;
}

struct Progress {
  std::weak_ptr<Core> core;
  std::vector<Step> steps;
  size_t next = 0;
  std::function<void(const Status&)> ready;
};

void RunNext(const std::shared_ptr<Progress>& progress) {
  const auto core = progress->core.lock();
  if (!core) return;
  if (progress->next == progress->steps.size()) {
    progress->ready(Status::Ok());
    return;
  }
  Step& step = progress->steps[progress->next++];
  CreateInternally(*core, step.group, step.plural, std::move(step.object),
                   [progress](const Status& status) {
                     if (status.ok()) {
                       RunNext(progress);
                     } else {
                       progress->ready(status.WithContext("bootstrap"));
                     }
                   });
}

}  // namespace

void RunBootstrap(Core& core, std::function<void(const Status&)> ready) {
  auto progress = std::make_shared<Progress>();
  progress->core = core.weak_from_this();
  progress->steps = Steps(core);
  progress->ready = std::move(ready);
  RunNext(progress);
}

}  // namespace swell::apiserver
