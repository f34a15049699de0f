// Table cells of networking, storage classes' kin, extension points and the control plane itself.
#include <algorithm>

#include "base/strings.h"
#include "json/texts.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/quantity.h"
#include "kube/apiserver/print/table.h"

namespace swell::apiserver {
namespace {

constexpr size_t kMaxShown = 3;
constexpr std::string_view kNone = "<none>";
constexpr std::string_view kUnset = "<unset>";

std::string OrNone(std::string_view text) { return std::string(text.empty() ? kNone : text); }

// The first few, and how many more there are.
std::string Some(const std::vector<std::string>& all, std::string_view when_empty) {
  if (all.empty()) return std::string(when_empty);
  if (all.size() <= kMaxShown) return Join(all, ",");
  return StrCat(Join({all.begin(), all.begin() + kMaxShown}, ","), " + ", all.size() - kMaxShown,
                " more...");
}

void PrintIngress(const json::Value& object, const CellContext& context, json::Array& cells) {
  std::vector<std::string> hosts;
  for (const json::Value& rule : json::GetArray(object, {"spec", "rules"})) {
    const std::string_view host = json::GetString(rule, {"host"});
    if (!host.empty()) hosts.emplace_back(host);
  }
  std::vector<std::string> addresses;
  for (const json::Value& one : json::GetArray(object, {"status", "loadBalancer", "ingress"})) {
    const std::string_view ip = json::GetString(one, {"ip"});
    addresses.emplace_back(ip.empty() ? json::GetString(one, {"hostname"}) : ip);
  }
  const bool tls = !json::GetArray(object, {"spec", "tls"}).empty();
  cells.emplace_back(api::Name(object));
  cells.emplace_back(OrNone(json::GetString(object, {"spec", "ingressClassName"})));
  cells.emplace_back(Some(hosts, "*"));
  cells.emplace_back(Join(addresses, ","));
  cells.emplace_back(tls ? "80, 443" : "80");
  cells.emplace_back(AgeCell(object, context.now));
}

void PrintIngressClass(const json::Value& object, const CellContext& context, json::Array& cells) {
  std::string parameters(kNone);
  if (const json::Value* ref = json::Find(object, {"spec", "parameters"})) {
    const std::string_view group = json::GetString(*ref, {"apiGroup"});
    parameters = StrCat(json::GetString(*ref, {"kind"}), group.empty() ? "" : ".", group, "/",
                        json::GetString(*ref, {"name"}));
  }
  cells.emplace_back(api::Name(object));
  cells.emplace_back(json::GetString(object, {"spec", "controller"}));
  cells.emplace_back(parameters);
  cells.emplace_back(AgeCell(object, context.now));
}

void PrintNetworkPolicy(const json::Value& object, const CellContext& context, json::Array& cells) {
  cells.emplace_back(api::Name(object));
  cells.emplace_back(SelectorCell(json::Find(object, {"spec", "podSelector"})));
  cells.emplace_back(AgeCell(object, context.now));
}

std::string Amount(const json::Value& value) {
  return value.is_string() ? std::string(json::View(value.get_string())) : json::Print(value);
}

// One metric: what is, and what is aimed at.
std::string Target(const json::Value& metric, const json::Value* current) {
  static constexpr std::pair<std::string_view, std::string_view> kSources[] = {
      {"Resource", "resource"},
      {"ContainerResource", "containerResource"},
      {"Pods", "pods"},
      {"Object", "object"},
      {"External", "external"}};
  for (const auto& [type, member] : kSources) {
    if (json::GetString(metric, {"type"}) != type) continue;
    const bool resource = type == "Resource" || type == "ContainerResource";
    const std::string name =
        resource ? StrCat(json::GetString(metric, {member, "name"}), ": ") : std::string();
    for (const char* field : {"averageUtilization", "averageValue", "value"}) {
      const json::Value* wanted = json::Find(metric, {member, "target", field});
      if (wanted == nullptr) continue;
      const json::Value* now =
          current == nullptr ? nullptr : json::Find(*current, {member, "current", field});
      const bool percent = std::string_view(field) == "averageUtilization";
      const bool average = std::string_view(field) == "averageValue" && !resource;
      return StrCat(name, now == nullptr ? "<unknown>" : Amount(*now),
                    now != nullptr && percent ? "%" : "", "/", Amount(*wanted), percent ? "%" : "",
                    average ? " (avg)" : "");
    }
    return name + "<auto>";
  }
  return "<unknown type>";
}

void PrintAutoscaler(const json::Value& object, const CellContext& context, json::Array& cells) {
  const json::Array& metrics = json::GetArray(object, {"spec", "metrics"});
  const json::Array& current = json::GetArray(object, {"status", "currentMetrics"});
  std::vector<std::string> targets;
  for (size_t i = 0; i < metrics.size(); ++i) {
    targets.push_back(Target(metrics[i], i < current.size() ? &current[i] : nullptr));
  }
  std::string text = targets.empty() ? std::string(kNone) : targets[0];
  if (targets.size() > 1) text = StrCat(targets[0], ", ", targets[1]);
  if (targets.size() > 2) text += StrCat(" + ", targets.size() - 2, " more...");
  const json::Value* least = json::Find(object, {"spec", "minReplicas"});
  cells.emplace_back(api::Name(object));
  cells.emplace_back(StrCat(json::GetString(object, {"spec", "scaleTargetRef", "kind"}), "/",
                            json::GetString(object, {"spec", "scaleTargetRef", "name"})));
  cells.emplace_back(text);
  cells.emplace_back(least == nullptr ? std::string(kUnset) : json::Print(*least));
  cells.emplace_back(json::GetInt(object, {"spec", "maxReplicas"}));
  cells.emplace_back(json::GetInt(object, {"status", "currentReplicas"}));
  cells.emplace_back(AgeCell(object, context.now));
}

void PrintRuntimeClass(const json::Value& object, const CellContext& context, json::Array& cells) {
  cells.emplace_back(api::Name(object));
  cells.emplace_back(json::GetString(object, {"handler"}));
  cells.emplace_back(AgeCell(object, context.now));
}

void PrintCsiDriver(const json::Value& object, const CellContext& context, json::Array& cells) {
  auto flag = [&object](const char* field, bool fallback) {
    return json::GetBool(object, {"spec", field}, fallback);
  };
  std::vector<std::string> audiences;
  for (const json::Value& request : json::GetArray(object, {"spec", "tokenRequests"})) {
    audiences.emplace_back(json::GetString(request, {"audience"}));
  }
  const std::vector<std::string> modes =
      json::Texts(json::GetArray(object, {"spec", "volumeLifecycleModes"}));
  cells.emplace_back(api::Name(object));
  cells.emplace_back(flag("attachRequired", true));
  cells.emplace_back(flag("podInfoOnMount", false));
  cells.emplace_back(flag("storageCapacity", false));
  cells.emplace_back(audiences.empty() ? std::string(kUnset) : Join(audiences, ","));
  cells.emplace_back(flag("requiresRepublish", false));
  cells.emplace_back(OrNone(Join(modes, ",")));
  cells.emplace_back(AgeCell(object, context.now));
}

void PrintCsiNode(const json::Value& object, const CellContext& context, json::Array& cells) {
  cells.emplace_back(api::Name(object));
  cells.emplace_back(json::GetArray(object, {"spec", "drivers"}).size());
  cells.emplace_back(AgeCell(object, context.now));
}

void PrintAttachment(const json::Value& object, const CellContext& context, json::Array& cells) {
  cells.emplace_back(api::Name(object));
  cells.emplace_back(json::GetString(object, {"spec", "attacher"}));
  cells.emplace_back(json::GetString(object, {"spec", "source", "persistentVolumeName"}));
  cells.emplace_back(json::GetString(object, {"spec", "nodeName"}));
  cells.emplace_back(json::GetBool(object, {"status", "attached"}));
  cells.emplace_back(AgeCell(object, context.now));
}

void PrintClaim(const json::Value& object, const CellContext& context, json::Array& cells) {
  const bool allocated = json::Find(object, {"status", "allocation"}) != nullptr;
  const bool reserved = !json::GetArray(object, {"status", "reservedFor"}).empty();
  std::vector<std::string> states;
  if (api::IsDeleting(object)) states.emplace_back("deleted");
  if (!allocated && states.empty()) states.emplace_back("pending");
  if (allocated) states.emplace_back("allocated");
  if (allocated && reserved) states.emplace_back("reserved");
  cells.emplace_back(api::Name(object));
  cells.emplace_back(Join(states, ","));
  cells.emplace_back(AgeCell(object, context.now));
}

void PrintSlice(const json::Value& object, const CellContext& context, json::Array& cells) {
  cells.emplace_back(api::Name(object));
  cells.emplace_back(json::GetString(object, {"spec", "nodeName"}));
  cells.emplace_back(json::GetString(object, {"spec", "driver"}));
  cells.emplace_back(json::GetString(object, {"spec", "pool", "name"}));
  cells.emplace_back(AgeCell(object, context.now));
}

void PrintTaintRule(const json::Value& object, const CellContext& context, json::Array& cells) {
  cells.emplace_back(api::Name(object));
  for (const char* field : {"key", "value", "effect"}) {
    cells.emplace_back(json::GetString(object, {"spec", "taint", field}));
  }
  const std::string_view added = json::GetString(object, {"spec", "taint", "timeAdded"});
  cells.emplace_back(added.empty() ? std::string() : SinceCell(added, context.now));
  cells.emplace_back(AgeCell(object, context.now));
}

void PrintCapacity(const json::Value& object, const CellContext&, json::Array& cells) {
  const json::Value* amount = json::Find(object, {"capacity"});
  cells.emplace_back(api::Name(object));
  cells.emplace_back(json::GetString(object, {"storageClassName"}));
  cells.emplace_back(amount == nullptr || !amount->is_string()
                         ? std::string(kUnset)
                         : std::string(json::View(amount->get_string())));
}

void PrintAttributesClass(const json::Value& object,
                          const CellContext& context,
                          json::Array& cells) {
  cells.emplace_back(api::Name(object));
  cells.emplace_back(json::GetString(object, {"driverName"}));
  cells.emplace_back(AgeCell(object, context.now));
}

void PrintServiceRange(const json::Value& object, const CellContext& context, json::Array& cells) {
  cells.emplace_back(api::Name(object));
  cells.emplace_back(Join(json::Texts(json::GetArray(object, {"spec", "cidrs"})), ","));
  cells.emplace_back(AgeCell(object, context.now));
}

void PrintAddress(const json::Value& object, const CellContext&, json::Array& cells) {
  const json::Value* parent = json::Find(object, {"spec", "parentRef"});
  std::string text = "<none>";
  if (parent != nullptr) {
    const std::string_view group = json::GetString(*parent, {"group"});
    const std::string_view ns = json::GetString(*parent, {"namespace"});
    text = StrCat(json::GetString(*parent, {"resource"}), group.empty() ? "" : ".", group,
                  ns.empty() ? "" : "/", ns, "/", json::GetString(*parent, {"name"}));
  }
  cells.emplace_back(api::Name(object));
  cells.emplace_back(text);
}

// The last of the named conditions that holds.
std::string StateOf(const json::Value& object,
                    std::initializer_list<std::string_view> known,
                    std::string_view otherwise) {
  std::string state(otherwise);
  for (const json::Value& condition : json::GetArray(object, {"status", "conditions"})) {
    const std::string_view type = json::GetString(condition, {"type"});
    if (json::GetString(condition, {"status"}) != "True") continue;
    if (std::find(known.begin(), known.end(), type) != known.end()) state = type;
  }
  return state;
}

void PrintMigration(const json::Value& object, const CellContext&, json::Array& cells) {
  const std::string_view group = json::GetString(object, {"spec", "resource", "group"});
  cells.emplace_back(api::Name(object));
  cells.emplace_back(StrCat(json::GetString(object, {"spec", "resource", "resource"}),
                            group.empty() ? "" : ".", group));
  cells.emplace_back(StateOf(object, {"Running", "Failed", "Succeeded"}, "Unknown"));
}

void PrintPodCertificate(const json::Value& object, const CellContext&, json::Array& cells) {
  cells.emplace_back(api::Name(object));
  for (const char* field : {"podName", "serviceAccountName", "nodeName", "signerName"}) {
    cells.emplace_back(json::GetString(object, {"spec", field}));
  }
  cells.emplace_back(StateOf(object, {"Issued", "Denied", "Failed"}, "Pending"));
  cells.emplace_back(LabelsCell(json::GetObject(object, {"spec", "unverifiedUserAnnotations"})));
}

void PrintPolicy(const json::Value& object, const CellContext& context, json::Array& cells) {
  const json::Value* params = json::Find(object, {"spec", "paramKind"});
  cells.emplace_back(api::Name(object));
  cells.emplace_back(json::GetArray(object, {"spec", "validations"}).size());
  cells.emplace_back(params == nullptr ? std::string(kUnset)
                                       : StrCat(json::GetString(*params, {"apiVersion"}), "/",
                                                json::GetString(*params, {"kind"})));
  cells.emplace_back(AgeCell(object, context.now));
}

void PrintPolicyBinding(const json::Value& object, const CellContext& context, json::Array& cells) {
  const std::string_view name = json::GetString(object, {"spec", "paramRef", "name"});
  const json::Value* selector = json::Find(object, {"spec", "paramRef", "selector"});
  std::string params(kUnset);
  if (!name.empty()) {
    params = StrCat(json::GetString(object, {"spec", "paramRef", "namespace"}, "*"), "/", name);
  } else if (selector != nullptr) {
    params = SelectorCell(selector);
  }
  cells.emplace_back(api::Name(object));
  cells.emplace_back(json::GetString(object, {"spec", "policyName"}));
  cells.emplace_back(params);
  cells.emplace_back(AgeCell(object, context.now));
}

void PrintWebhooks(const json::Value& object, const CellContext& context, json::Array& cells) {
  cells.emplace_back(api::Name(object));
  cells.emplace_back(json::GetArray(object, {"webhooks"}).size());
  cells.emplace_back(AgeCell(object, context.now));
}

// Approved, Denied or Pending; and whether it was signed or failed since.
std::string RequestState(const json::Value& object) {
  std::string state = "Pending";
  bool failed = false;
  for (const json::Value& condition : json::GetArray(object, {"status", "conditions"})) {
    const std::string_view type = json::GetString(condition, {"type"});
    if (type == "Approved" || type == "Denied") state = type;
    failed = failed || type == "Failed";
  }
  if (failed) state += ",Failed";
  if (!json::GetString(object, {"status", "certificate"}).empty()) state += ",Issued";
  return state;
}

void PrintSigningRequest(const json::Value& object,
                         const CellContext& context,
                         json::Array& cells) {
  const int64_t seconds = json::GetInt(object, {"spec", "expirationSeconds"});
  cells.emplace_back(api::Name(object));
  cells.emplace_back(AgeCell(object, context.now));
  cells.emplace_back(OrNone(json::GetString(object, {"spec", "signerName"})));
  cells.emplace_back(json::GetString(object, {"spec", "username"}));
  cells.emplace_back(seconds == 0 ? std::string(kNone)
                                  : api::HumanDuration(std::chrono::seconds(seconds)));
  cells.emplace_back(RequestState(object));
}

void PrintApiService(const json::Value& object, const CellContext& context, json::Array& cells) {
  std::string available = "Unknown";
  for (const json::Value& condition : json::GetArray(object, {"status", "conditions"})) {
    if (json::GetString(condition, {"type"}) != "Available") continue;
    available = json::GetString(condition, {"status"});
    const std::string_view reason = json::GetString(condition, {"reason"});
    if (available != "True" && !reason.empty()) available += StrCat(" (", reason, ")");
  }
  const json::Value* service = json::Find(object, {"spec", "service"});
  cells.emplace_back(api::Name(object));
  cells.emplace_back(service == nullptr ? std::string("Local")
                                        : StrCat(json::GetString(*service, {"namespace"}), "/",
                                                 json::GetString(*service, {"name"})));
  cells.emplace_back(available);
  cells.emplace_back(AgeCell(object, context.now));
}

// The sum over all containers of a pod.
void PrintMeasured(const json::Value& object, const CellContext&, json::Array& cells) {
  cells.emplace_back(api::Name(object));
  for (const char* resource : {"cpu", "memory"}) {
    api::Quantity sum;
    auto add = [&](const json::Value& of) {
      const json::Value* used = json::Find(of, {"usage", resource});
      auto quantity = used ? api::Quantity::FromJson(*used) : api::Quantity();
      if (quantity.ok()) sum += *quantity;
    };
    add(object);
    for (const json::Value& container : json::GetArray(object, {"containers"})) add(container);
    cells.emplace_back(sum.ToString());
  }
  cells.emplace_back(json::GetString(object, {"window"}));
}

void PrintComponent(const json::Value& object, const CellContext&, json::Array& cells) {
  std::string status = "Unknown";
  std::string message;
  std::string error;
  for (const json::Value& condition : json::GetArray(object, {"conditions"})) {
    if (json::GetString(condition, {"type"}) != "Healthy") continue;
    status = json::GetString(condition, {"status"}) == "True" ? "Healthy" : "Unhealthy";
    message = json::GetString(condition, {"message"});
    error = json::GetString(condition, {"error"});
  }
  cells.emplace_back(api::Name(object));
  cells.emplace_back(status);
  cells.emplace_back(message);
  cells.emplace_back(error);
}

void PrintEndpointSlice(const json::Value& object, const CellContext& context, json::Array& cells) {
  std::vector<std::string> ports;
  for (const json::Value& port : json::GetArray(object, {"ports"})) {
    const json::Value* number = json::Find(port, {"port"});
    ports.push_back(number == nullptr ? "*" : json::Print(*number));
  }
  std::vector<std::string> addresses;
  for (const json::Value& endpoint : json::GetArray(object, {"endpoints"})) {
    for (const json::Value& address : json::GetArray(endpoint, {"addresses"})) {
      if (address.is_string()) addresses.emplace_back(json::View(address.get_string()));
    }
  }
  cells.emplace_back(api::Name(object));
  cells.emplace_back(json::GetString(object, {"addressType"}));
  cells.emplace_back(Some(ports, kUnset));
  cells.emplace_back(Some(addresses, kUnset));
  cells.emplace_back(AgeCell(object, context.now));
}

void PrintRevision(const json::Value& object, const CellContext& context, json::Array& cells) {
  std::string controller(kNone);
  for (const json::Value& owner : json::GetArray(object, {"metadata", "ownerReferences"})) {
    if (!json::GetBool(owner, {"controller"})) continue;
    const auto gvk = api::ParseGvk(json::GetString(owner, {"apiVersion"}), "");
    controller = StrCat(ToLower(json::GetString(owner, {"kind"})), gvk.group.empty() ? "" : ".",
                        gvk.group, "/", json::GetString(owner, {"name"}));
  }
  cells.emplace_back(api::Name(object));
  cells.emplace_back(controller);
  cells.emplace_back(json::GetInt(object, {"revision"}));
  cells.emplace_back(AgeCell(object, context.now));
}

void PrintPodTemplate(const json::Value& object, const CellContext&, json::Array& cells) {
  std::vector<std::string> names;
  std::vector<std::string> images;
  for (const json::Value& one : json::GetArray(object, {"template", "spec", "containers"})) {
    names.emplace_back(json::GetString(one, {"name"}));
    images.emplace_back(json::GetString(one, {"image"}));
  }
  cells.emplace_back(api::Name(object));
  cells.emplace_back(Join(names, ","));
  cells.emplace_back(Join(images, ","));
  cells.emplace_back(LabelsCell(json::GetObject(object, {"template", "metadata", "labels"})));
}

void PrintCreated(const json::Value& object, const CellContext&, json::Array& cells) {
  cells.emplace_back(api::Name(object));
  cells.emplace_back(json::GetString(object, {"metadata", "creationTimestamp"}));
}

void AddNewerPrinters(std::map<std::string, TablePrinter, std::less<>>& printers) {
  const api::PrinterColumn name = Column("Name", "string", 0, "name");
  const api::PrinterColumn age = Column("Age", "string");
  auto text = [](const char* title, int priority = 0) { return Column(title, "string", priority); };
  printers["resourceclaims.resource.k8s.io"] = {{name, text("State"), age}, PrintClaim};
  printers["resourceslices.resource.k8s.io"] = {
      {name, text("Node"), text("Driver"), text("Pool"), age}, PrintSlice};
  printers["devicetaintrules.resource.k8s.io"] = {
      {name, text("Key"), text("Value"), text("Effect"), text("TimeAdded"), age}, PrintTaintRule};
  printers["csistoragecapacities.storage.k8s.io"] = {
      {name, text("StorageClassName"), text("Capacity")}, PrintCapacity};
  printers["volumeattributesclasses.storage.k8s.io"] = {{name, text("DriverName"), age},
                                                        PrintAttributesClass};
  printers["servicecidrs.networking.k8s.io"] = {{name, text("CIDRs"), age}, PrintServiceRange};
  printers["ipaddresses.networking.k8s.io"] = {{name, text("ParentRef")}, PrintAddress};
  printers["storageversionmigrations.storagemigration.k8s.io"] = {
      {name, text("Resource"), text("Status")}, PrintMigration};
  printers["podcertificaterequests.certificates.k8s.io"] = {
      {name, text("PodName"), text("ServiceAccountName"), text("NodeName"), text("SignerName"),
       text("State"), text("UnverifiedUserAnnotations", 1)},
      PrintPodCertificate};
  printers["validatingadmissionpolicies.admissionregistration.k8s.io"] = {
      {name, Column("Validations", "integer"), text("ParamKind"), age}, PrintPolicy};
  printers["validatingadmissionpolicybindings.admissionregistration.k8s.io"] = {
      {name, text("PolicyName"), text("ParamRef"), age}, PrintPolicyBinding};
}

}  // namespace

void AddClusterPrinters(std::map<std::string, TablePrinter, std::less<>>& printers) {
  const api::PrinterColumn name = Column("Name", "string", 0, "name");
  const api::PrinterColumn age = Column("Age", "string");
  auto text = [](const char* title, int priority = 0) { return Column(title, "string", priority); };
  auto number = [](const char* title) { return Column(title, "integer"); };
  auto flag = [](const char* title) { return Column(title, "boolean"); };
  AddNewerPrinters(printers);
  printers["ingresses.networking.k8s.io"] = {
      {name, text("Class"), text("Hosts"), text("Address"), text("Ports"), age}, PrintIngress};
  printers["ingressclasses.networking.k8s.io"] = {
      {name, text("Controller"), text("Parameters"), age}, PrintIngressClass};
  printers["networkpolicies.networking.k8s.io"] = {{name, text("Pod-Selector"), age},
                                                   PrintNetworkPolicy};
  printers["horizontalpodautoscalers.autoscaling"] = {
      {name, text("Reference"), text("Targets"), text("MinPods"), number("MaxPods"),
       number("Replicas"), age},
      PrintAutoscaler};
  printers["runtimeclasses.node.k8s.io"] = {{name, text("Handler"), age}, PrintRuntimeClass};
  printers["csidrivers.storage.k8s.io"] = {
      {name, flag("AttachRequired"), flag("PodInfoOnMount"), flag("StorageCapacity"),
       text("TokenRequests"), flag("RequiresRepublish"), text("Modes"), age},
      PrintCsiDriver};
  printers["csinodes.storage.k8s.io"] = {{name, number("Drivers"), age}, PrintCsiNode};
  printers["volumeattachments.storage.k8s.io"] = {
      {name, text("Attacher"), text("PV"), text("Node"), flag("Attached"), age}, PrintAttachment};
  for (const char* webhooks : {"mutating", "validating"}) {
    printers[StrCat(webhooks, "webhookconfigurations.admissionregistration.k8s.io")] = {
        {name, number("Webhooks"), age}, PrintWebhooks};
  }
  printers["certificatesigningrequests.certificates.k8s.io"] = {
      {name, age, text("SignerName"), text("Requestor"), text("RequestedDuration"),
       text("Condition")},
      PrintSigningRequest};
  printers["apiservices.apiregistration.k8s.io"] = {{name, text("Service"), text("Available"), age},
                                                    PrintApiService};
  printers["componentstatuses"] = {{name, text("Status"), text("Message"), text("Error")},
                                   PrintComponent};
  for (const char* measured : {"nodes.metrics.k8s.io", "pods.metrics.k8s.io"}) {
    printers[measured] = {{name, text("cpu"), text("memory"), text("Window")}, PrintMeasured};
  }
  printers["endpointslices.discovery.k8s.io"] = {
      {name, text("AddressType"), text("Ports"), text("Endpoints"), age}, PrintEndpointSlice};
  printers["controllerrevisions.apps"] = {{name, text("Controller"), number("Revision"), age},
                                          PrintRevision};
  printers["podtemplates"] = {{name, text("Containers"), text("Images"), text("Pod Labels")},
                              PrintPodTemplate};
  printers["limitranges"] = {{name, Column("Created At", "date")}, PrintCreated};
}

}  // namespace swell::apiserver
