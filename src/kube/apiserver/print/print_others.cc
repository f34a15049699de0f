// Table cells of services, configuration, storage, policy and the rest.
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/apiserver/print/table.h"

namespace swell::apiserver {
namespace {

constexpr size_t kMaxEndpoints = 3;

std::string OrNone(std::string_view text) {
  return std::string(text.empty() ? std::string_view("<none>") : text);
}

std::string TextOr(const json::Value& object, json::Path path, std::string_view fallback) {
  const json::Value* value = json::Find(object, path);
  if (value == nullptr || value->is_null()) return std::string(fallback);
  return value->is_string() ? std::string(json::View(value->get_string())) : json::Print(*value);
}

std::string ServicePorts(const json::Value& service) {
  std::string text;
  for (const json::Value& port : json::GetArray(service, {"spec", "ports"})) {
    text += StrCat(text.empty() ? "" : ",", json::GetInt(port, {"port"}));
    const int64_t node_port = json::GetInt(port, {"nodePort"});
    if (node_port != 0) text += StrCat(":", node_port);
    text += StrCat("/", json::GetString(port, {"protocol"}, "TCP"));
  }
  return OrNone(text);
}

std::string ExternalIps(const json::Value& service) {
  const std::string_view type = json::GetString(service, {"spec", "type"});
  if (type == "ExternalName") return TextOr(service, {"spec", "externalName"}, "<none>");
  std::vector<std::string> ips;
  for (const json::Value& ingress :
       json::GetArray(service, {"status", "loadBalancer", "ingress"})) {
    const std::string_view ip = json::GetString(ingress, {"ip"});
    ips.emplace_back(ip.empty() ? json::GetString(ingress, {"hostname"}) : ip);
  }
  for (const json::Value& ip : json::GetArray(service, {"spec", "externalIPs"})) {
    if (ip.is_string()) ips.emplace_back(json::View(ip.get_string()));
  }
  if (ips.empty()) return type == "LoadBalancer" ? "<pending>" : "<none>";
  return Join(ips, ",");
}

void PrintService(const json::Value& object, const CellContext& context, json::Array& cells) {
  cells.emplace_back(api::Name(object));
  cells.emplace_back(json::GetString(object, {"spec", "type"}, "ClusterIP"));
  cells.emplace_back(OrNone(json::GetString(object, {"spec", "clusterIP"})));
  cells.emplace_back(ExternalIps(object));
  cells.emplace_back(ServicePorts(object));
  cells.emplace_back(AgeCell(object, context.now));
  cells.emplace_back(LabelsCell(json::GetObject(object, {"spec", "selector"})));
}

std::string EndpointList(const json::Value& object) {
  std::vector<std::string> shown;
  size_t count = 0;
  auto add = [&shown, &count](std::string text) {
    if (++count <= kMaxEndpoints) shown.push_back(std::move(text));
  };
  for (const json::Value& subset : json::GetArray(object, {"subsets"})) {
    const json::Array& ports = json::GetArray(subset, {"ports"});
    const json::Array& addresses = json::GetArray(subset, {"addresses"});
    for (const json::Value& address : addresses) {
      const std::string_view ip = json::GetString(address, {"ip"});
      if (ports.empty()) add(std::string(ip));
    }
    for (const json::Value& port : ports) {
      for (const json::Value& address : addresses) {
        add(StrCat(json::GetString(address, {"ip"}), ":", json::GetInt(port, {"port"})));
      }
    }
  }
  std::string text = Join(shown, ",");
  if (count > kMaxEndpoints) text += StrCat(" + ", count - kMaxEndpoints, " more...");
  return OrNone(text);
}

void PrintEndpoints(const json::Value& object, const CellContext& context, json::Array& cells) {
  cells.emplace_back(api::Name(object));
  cells.emplace_back(EndpointList(object));
  cells.emplace_back(AgeCell(object, context.now));
}

void PrintNamespace(const json::Value& object, const CellContext& context, json::Array& cells) {
  cells.emplace_back(api::Name(object));
  cells.emplace_back(api::StatusPhase(object));
  cells.emplace_back(AgeCell(object, context.now));
}

size_t DataCount(const json::Value& object) {
  return json::GetObject(object, {"data"}).size() + json::GetObject(object, {"binaryData"}).size();
}

void PrintConfigMap(const json::Value& object, const CellContext& context, json::Array& cells) {
  cells.emplace_back(api::Name(object));
  cells.emplace_back(DataCount(object));
  cells.emplace_back(AgeCell(object, context.now));
}

void PrintSecret(const json::Value& object, const CellContext& context, json::Array& cells) {
  cells.emplace_back(api::Name(object));
  cells.emplace_back(json::GetString(object, {"type"}));
  cells.emplace_back(DataCount(object));
  cells.emplace_back(AgeCell(object, context.now));
}

void PrintServiceAccount(const json::Value& object,
                         const CellContext& context,
                         json::Array& cells) {
  cells.emplace_back(api::Name(object));
  cells.emplace_back(json::GetArray(object, {"secrets"}).size());
  cells.emplace_back(AgeCell(object, context.now));
}

void PrintPriorityClass(const json::Value& object, const CellContext& context, json::Array& cells) {
  cells.emplace_back(api::Name(object));
  cells.emplace_back(json::GetInt(object, {"value"}));
  cells.emplace_back(json::GetBool(object, {"globalDefault"}));
  cells.emplace_back(AgeCell(object, context.now));
  cells.emplace_back(json::GetString(object, {"preemptionPolicy"}));
}

void PrintDefinition(const json::Value& object, const CellContext&, json::Array& cells) {
  std::vector<std::string> versions;
  for (const json::Value& version : json::GetArray(object, {"spec", "versions"})) {
    if (!json::GetBool(version, {"served"})) continue;
    versions.push_back(StrCat(json::GetString(version, {"name"}),
                              json::GetBool(version, {"storage"}) ? "(storage)" : ""));
  }
  std::sort(versions.begin(), versions.end());
  std::vector<std::string> short_names;
  for (const json::Value& name : json::GetArray(object, {"spec", "names", "shortNames"})) {
    short_names.emplace_back(json::View(name.get_string()));
  }
  cells.emplace_back(api::Name(object));
  cells.emplace_back(json::GetString(object, {"spec", "scope"}));
  cells.emplace_back(Join(versions, ","));
  cells.emplace_back(json::GetString(object, {"metadata", "creationTimestamp"}));
  cells.emplace_back(json::GetString(object, {"spec", "group"}));
  cells.emplace_back(json::GetString(object, {"spec", "names", "kind"}));
  cells.emplace_back(Join(short_names, ","));
  cells.emplace_back(api::ConditionIsTrue(object, "Established"));
}

void PrintLease(const json::Value& object, const CellContext& context, json::Array& cells) {
  cells.emplace_back(api::Name(object));
  cells.emplace_back(json::GetString(object, {"spec", "holderIdentity"}));
  cells.emplace_back(AgeCell(object, context.now));
}

void PrintBudget(const json::Value& object, const CellContext& context, json::Array& cells) {
  cells.emplace_back(api::Name(object));
  cells.emplace_back(TextOr(object, {"spec", "minAvailable"}, "N/A"));
  cells.emplace_back(TextOr(object, {"spec", "maxUnavailable"}, "N/A"));
  cells.emplace_back(json::GetInt(object, {"status", "disruptionsAllowed"}));
  cells.emplace_back(AgeCell(object, context.now));
}

std::string AccessModes(const json::Array& modes) {
  std::string text;
  for (const json::Value& mode : modes) {
    const std::string_view name = mode.is_string() ? json::View(mode.get_string()) : "";
    std::string_view word = name;
    if (name == "ReadWriteOnce") word = "RWO";
    if (name == "ReadOnlyMany") word = "ROX";
    if (name == "ReadWriteMany") word = "RWX";
    if (name == "ReadWriteOncePod") word = "RWOP";
    text += StrCat(text.empty() ? "" : ",", word);
  }
  return text;
}

std::string VolumePhase(const json::Value& object) {
  if (api::IsDeleting(object)) return "Terminating";
  return std::string(api::StatusPhase(object));
}

void PrintVolume(const json::Value& object, const CellContext& context, json::Array& cells) {
  const std::string_view claim = json::GetString(object, {"spec", "claimRef", "name"});
  cells.emplace_back(api::Name(object));
  cells.emplace_back(TextOr(object, {"spec", "capacity", "storage"}, ""));
  cells.emplace_back(AccessModes(json::GetArray(object, {"spec", "accessModes"})));
  cells.emplace_back(json::GetString(object, {"spec", "persistentVolumeReclaimPolicy"}));
  cells.emplace_back(VolumePhase(object));
  cells.emplace_back(
      claim.empty()
          ? std::string()
          : StrCat(json::GetString(object, {"spec", "claimRef", "namespace"}), "/", claim));
  cells.emplace_back(json::GetString(object, {"spec", "storageClassName"}));
  cells.emplace_back(TextOr(object, {"spec", "volumeAttributesClassName"}, "<unset>"));
  cells.emplace_back(json::GetString(object, {"status", "reason"}));
  cells.emplace_back(AgeCell(object, context.now));
  cells.emplace_back(TextOr(object, {"spec", "volumeMode"}, "<unset>"));
}

void PrintClaim(const json::Value& object, const CellContext& context, json::Array& cells) {
  const bool bound = !json::GetString(object, {"spec", "volumeName"}).empty();
  cells.emplace_back(api::Name(object));
  cells.emplace_back(VolumePhase(object));
  cells.emplace_back(json::GetString(object, {"spec", "volumeName"}));
  cells.emplace_back(bound ? TextOr(object, {"status", "capacity", "storage"}, "") : std::string());
  cells.emplace_back(bound ? AccessModes(json::GetArray(object, {"status", "accessModes"}))
                           : std::string());
  cells.emplace_back(json::GetString(object, {"spec", "storageClassName"}));
  cells.emplace_back(TextOr(object, {"spec", "volumeAttributesClassName"}, "<unset>"));
  cells.emplace_back(AgeCell(object, context.now));
  cells.emplace_back(TextOr(object, {"spec", "volumeMode"}, "<unset>"));
}

void PrintCreatedAt(const json::Value& object, const CellContext&, json::Array& cells) {
  cells.emplace_back(api::Name(object));
  cells.emplace_back(json::GetString(object, {"metadata", "creationTimestamp"}));
}

void PrintRoleBinding(const json::Value& object, const CellContext& context, json::Array& cells) {
  std::map<std::string, std::string> subjects;
  for (const json::Value& subject : json::GetArray(object, {"subjects"})) {
    std::string& list = subjects[std::string(json::GetString(subject, {"kind"}))];
    const std::string_view ns = json::GetString(subject, {"namespace"});
    list += StrCat(list.empty() ? "" : ", ", ns, ns.empty() ? "" : "/",
                   json::GetString(subject, {"name"}));
  }
  cells.emplace_back(api::Name(object));
  cells.emplace_back(StrCat(json::GetString(object, {"roleRef", "kind"}), "/",
                            json::GetString(object, {"roleRef", "name"})));
  cells.emplace_back(AgeCell(object, context.now));
  for (const char* kind : {"User", "Group", "ServiceAccount"}) {
    cells.emplace_back(subjects[kind]);
  }
}

void PrintQuota(const json::Value& object, const CellContext& context, json::Array& cells) {
  std::string request;
  std::string limit;
  std::map<std::string, std::string> hard;
  for (const auto& [key, value] : json::GetObject(object, {"status", "hard"})) {
    hard[std::string(key.data(), key.size())] =
        value.is_string() ? std::string(json::View(value.get_string())) : json::Print(value);
  }
  for (const auto& [key, value] : hard) {
    std::string& to = key.rfind("limits.", 0) == 0 ? limit : request;
    to += StrCat(to.empty() ? "" : ", ", key, ": ", TextOr(object, {"status", "used", key}, "0"),
                 "/", value);
  }
  cells.emplace_back(api::Name(object));
  cells.emplace_back(request);
  cells.emplace_back(limit);
  cells.emplace_back(AgeCell(object, context.now));
}

void PrintStorageClass(const json::Value& object, const CellContext& context, json::Array& cells) {
  std::string name(api::Name(object));
  if (api::Annotation(object, "storageclass.kubernetes.io/is-default-class") == "true") {
    name += " (default)";
  }
  cells.emplace_back(name);
  cells.emplace_back(json::GetString(object, {"provisioner"}));
  cells.emplace_back(json::GetString(object, {"reclaimPolicy"}, "Delete"));
  cells.emplace_back(json::GetString(object, {"volumeBindingMode"}, "Immediate"));
  cells.emplace_back(json::GetBool(object, {"allowVolumeExpansion"}));
  cells.emplace_back(AgeCell(object, context.now));
}

std::string EventSource(const json::Value& event) {
  std::string_view component = json::GetString(event, {"source", "component"});
  std::string_view instance = json::GetString(event, {"source", "host"});
  if (component.empty()) component = json::GetString(event, {"reportingComponent"});
  if (instance.empty()) instance = json::GetString(event, {"reportingInstance"});
  return instance.empty() ? std::string(component) : StrCat(component, ", ", instance);
}

void PrintEvent(const json::Value& event, const CellContext& context, json::Array& cells) {
  auto since = [&context](std::string_view time) { return SinceCell(time, context.now); };
  std::string_view first = json::GetString(event, {"firstTimestamp"});
  if (first.empty()) first = json::GetString(event, {"eventTime"});
  std::string_view last = json::GetString(event, {"lastTimestamp"});
  if (last.empty()) last = first;
  int64_t count = json::GetInt(event, {"count"});
  if (json::Find(event, {"series", "lastObservedTime"}) != nullptr) {
    last = json::GetString(event, {"series", "lastObservedTime"});
    count = json::GetInt(event, {"series", "count"});
  } else if (count == 0) {
    count = 1;
  }
  const std::string_view kind = json::GetString(event, {"involvedObject", "kind"});
  const std::string_view name = json::GetString(event, {"involvedObject", "name"});
  cells.emplace_back(since(last));
  cells.emplace_back(json::GetString(event, {"type"}));
  cells.emplace_back(json::GetString(event, {"reason"}));
  cells.emplace_back(kind.empty() ? std::string(name) : StrCat(ToLower(kind), "/", name));
  cells.emplace_back(json::GetString(event, {"involvedObject", "fieldPath"}));
  cells.emplace_back(EventSource(event));
  cells.emplace_back(Trim(json::GetString(event, {"message"})));
  cells.emplace_back(since(first));
  cells.emplace_back(count);
  cells.emplace_back(api::Name(event));
}

}  // namespace

void AddPolicyPrinters(std::map<std::string, TablePrinter, std::less<>>& printers) {
  const api::PrinterColumn name = Column("Name", "string", 0, "name");
  const api::PrinterColumn age = Column("Age", "string");
  auto text = [](const char* title, int priority = 0) { return Column(title, "string", priority); };
  const api::PrinterColumn created = Column("Created At", "date");
  printers["services"] = {{name, text("Type"), text("Cluster-IP"), text("External-IP"),
                           text("Port(s)"), age, text("Selector", 1)},
                          PrintService};
  printers["endpoints"] = {{name, text("Endpoints"), age}, PrintEndpoints};
  printers["namespaces"] = {{name, text("Status"), age}, PrintNamespace};
  printers["configmaps"] = {{name, text("Data"), age}, PrintConfigMap};
  printers["secrets"] = {{name, text("Type"), text("Data"), age}, PrintSecret};
  printers["serviceaccounts"] = {{name, text("Secrets"), age}, PrintServiceAccount};
  printers["priorityclasses.scheduling.k8s.io"] = {
      {name, Column("Value", "integer"), Column("Global-Default", "boolean"), age,
       text("PreemptionPolicy")},
      PrintPriorityClass};
  printers["leases.coordination.k8s.io"] = {{name, text("Holder"), age}, PrintLease};
  printers["poddisruptionbudgets.policy"] = {{name, text("Min Available"), text("Max Unavailable"),
                                              Column("Allowed Disruptions", "integer"), age},
                                             PrintBudget};
  printers["persistentvolumes"] = {
      {name, text("Capacity"), text("Access Modes"), text("Reclaim Policy"), text("Status"),
       text("Claim"), text("StorageClass"), text("VolumeAttributesClass"), text("Reason"), age,
       text("VolumeMode", 1)},
      PrintVolume};
  printers["persistentvolumeclaims"] = {
      {name, text("Status"), text("Volume"), text("Capacity"), text("Access Modes"),
       text("StorageClass"), text("VolumeAttributesClass"), age, text("VolumeMode", 1)},
      PrintClaim};
  printers["customresourcedefinitions.apiextensions.k8s.io"] = {
      {name, text("Scope"), text("Versions"), created, text("Group", 1), text("Kind", 1),
       text("ShortNames", 1), Column("Established", "boolean", 1)},
      PrintDefinition};
  for (const char* roles : {"roles", "clusterroles"}) {
    printers[StrCat(roles, ".rbac.authorization.k8s.io")] = {{name, created}, PrintCreatedAt};
  }
  for (const char* bindings : {"rolebindings", "clusterrolebindings"}) {
    printers[StrCat(bindings, ".rbac.authorization.k8s.io")] = {
        {name, text("Role"), age, text("Users", 1), text("Groups", 1), text("ServiceAccounts", 1)},
        PrintRoleBinding};
  }
  printers["resourcequotas"] = {{name, text("Request"), text("Limit"), age}, PrintQuota};
  printers["storageclasses.storage.k8s.io"] = {
      {name, text("Provisioner"), text("ReclaimPolicy"), text("VolumeBindingMode"),
       text("AllowVolumeExpansion"), age},
      PrintStorageClass};
  printers["events"] = {
      {text("Last Seen"), text("Type"), text("Reason"), text("Object"), text("Subobject", 1),
       text("Source", 1), text("Message"), text("First Seen", 1), Column("Count", "integer", 1),
       Column("Name", "string", 1, "name")},
      PrintEvent};
}

}  // namespace swell::apiserver
