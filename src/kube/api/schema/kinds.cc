// The built-in kinds: one row each.
#include "kube/api/schema/kinds.h"

#include "base/check.h"
#include "base/strings.h"

namespace swell::api {
namespace {

enum KindFlags : unsigned {
  kNone = 0,
  kCluster = 1,    // not namespaced
  kStatus = 2,     // has the status subresource
  kScale = 4,      // has the scale subresource
  kReview = 8,     // created and answered, never stored
  kOlder = 16,     // another version of a kind stored in the storage one
  kSingly = 64,    // cannot be deleted as a collection
  kComputed = 32,  // read only: made up when asked for, never stored
};

struct KindRow {
  std::string_view group;
  std::string_view version;
  std::string_view kind;
  std::string_view plural;
  std::string_view short_names;
  std::string_view categories;
  unsigned flags;
  std::string_view package;       // of the schema
  std::string_view subresources;  // beyond status and scale
  std::string_view selectable;
};

constexpr std::string_view kCore = "io.k8s.api.core.v1";
constexpr std::string_view kApps = "io.k8s.api.apps.v1";
constexpr std::string_view kRbac = "io.k8s.api.rbac.v1";
constexpr std::string_view kRbacGroup = "rbac.authorization.k8s.io";
constexpr std::string_view kAuthz = "io.k8s.api.authorization.v1";
constexpr std::string_view kAuthzGroup = "authorization.k8s.io";
constexpr std::string_view kAuthnGroup = "authentication.k8s.io";

constexpr std::string_view kNetworking = "io.k8s.api.networking.v1";
constexpr std::string_view kStorage = "io.k8s.api.storage.v1";
constexpr std::string_view kAdmission = "io.k8s.api.admissionregistration.v1";
constexpr std::string_view kAdmissionGroup = "admissionregistration.k8s.io";

constexpr std::string_view kCertificates = "io.k8s.api.certificates.v1";
constexpr std::string_view kDevices = "io.k8s.api.resource.v1";
constexpr std::string_view kDeviceGroup = "resource.k8s.io";
constexpr std::string_view kMigrationGroup = "storagemigration.k8s.io";

constexpr std::string_view kPodFields =
    "spec.nodeName,spec.restartPolicy,spec.schedulerName,spec.serviceAccountName,"
    "spec.hostNetwork,status.phase,status.podIP,status.podIPs,status.nominatedNodeName";
constexpr std::string_view kEventFields =
    "involvedObject.kind,involvedObject.namespace,involvedObject.name,involvedObject.uid,"
    "involvedObject.apiVersion,involvedObject.resourceVersion,involvedObject.fieldPath,reason,"
    "reportingComponent,source,type";
constexpr std::string_view kNewEventFields =
    "regarding.kind,regarding.namespace,regarding.name,regarding.uid,regarding.apiVersion,"
    "regarding.resourceVersion,regarding.fieldPath,reason,reportingController,type";

constexpr KindRow kRows[] = {
    {"", "v1", "Binding", "bindings", "", "", kReview, kCore},
    {"", "v1", "ComponentStatus", "componentstatuses", "cs", "", kCluster | kComputed, kCore},
    {"", "v1", "ConfigMap", "configmaps", "cm", "", kNone, kCore},
    {"", "v1", "Endpoints", "endpoints", "ep", "", kNone, kCore},
    {"", "v1", "Event", "events", "ev", "", kNone, kCore, "", kEventFields},
    {"", "v1", "LimitRange", "limitranges", "limits", "", kNone, kCore},
    {"", "v1", "Namespace", "namespaces", "ns", "", kCluster | kStatus | kSingly, kCore, "finalize",
     "status.phase"},
    {"", "v1", "Node", "nodes", "no", "", kCluster | kStatus, kCore, "proxy", "spec.unschedulable"},
    {"", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", "pvc", "", kStatus, kCore},
    {"", "v1", "PersistentVolume", "persistentvolumes", "pv", "", kCluster | kStatus, kCore},
    {"", "v1", "Pod", "pods", "po", "all", kStatus, kCore,
     "attach,binding,ephemeralcontainers,eviction,exec,log,portforward,proxy,resize", kPodFields},
    {"", "v1", "PodTemplate", "podtemplates", "", "", kNone, kCore},
    {"", "v1", "ReplicationController", "replicationcontrollers", "rc", "all", kStatus | kScale,
     kCore, "", "status.replicas"},
    {"", "v1", "ResourceQuota", "resourcequotas", "quota", "", kStatus, kCore},
    {"", "v1", "Secret", "secrets", "", "", kNone, kCore, "", "type"},
    {"", "v1", "ServiceAccount", "serviceaccounts", "sa", "", kNone, kCore, "token"},
    {"", "v1", "Service", "services", "svc", "all", kStatus, kCore, "proxy",
     "spec.clusterIP,spec.type"},
    {"apps", "v1", "ControllerRevision", "controllerrevisions", "", "", kNone, kApps},
    {"apps", "v1", "DaemonSet", "daemonsets", "ds", "all", kStatus, kApps},
    {"apps", "v1", "Deployment", "deployments", "deploy", "all", kStatus | kScale, kApps},
    {"apps", "v1", "ReplicaSet", "replicasets", "rs", "all", kStatus | kScale, kApps, "",
     "status.replicas"},
    {"apps", "v1", "StatefulSet", "statefulsets", "sts", "all", kStatus | kScale, kApps},
    {"events.k8s.io", "v1", "Event", "events", "ev", "", kOlder, "io.k8s.api.events.v1", "",
     kNewEventFields},
    {kAuthnGroup, "v1", "SelfSubjectReview", "selfsubjectreviews", "", "", kCluster | kReview,
     "io.k8s.api.authentication.v1"},
    {kAuthnGroup, "v1", "TokenReview", "tokenreviews", "", "", kCluster | kReview,
     "io.k8s.api.authentication.v1"},
    {kAuthzGroup, "v1", "LocalSubjectAccessReview", "localsubjectaccessreviews", "", "", kReview,
     kAuthz},
    {kAuthzGroup, "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", "", "",
     kCluster | kReview, kAuthz},
    {kAuthzGroup, "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", "", "",
     kCluster | kReview, kAuthz},
    {kAuthzGroup, "v1", "SubjectAccessReview", "subjectaccessreviews", "", "", kCluster | kReview,
     kAuthz},
    {"autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa", "all",
     kStatus, "io.k8s.api.autoscaling.v2"},
    {"autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa", "all",
     kStatus | kOlder, "io.k8s.api.autoscaling.v1"},
    {"autoscaling", "v2beta2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa", "all",
     kStatus | kOlder, "io.k8s.api.autoscaling.v2beta2"},
    {"batch", "v1", "CronJob", "cronjobs", "cj", "all", kStatus, "io.k8s.api.batch.v1"},
    {"batch", "v1", "Job", "jobs", "", "all", kStatus, "io.k8s.api.batch.v1", "",
     "status.successful"},
    {"batch", "v1beta1", "CronJob", "cronjobs", "cj", "all", kStatus | kOlder,
     "io.k8s.api.batch.v1beta1"},
    {"certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", "csr",
     "", kCluster | kStatus, kCertificates, "approval", "spec.signerName"},
    {"certificates.k8s.io", "v1", "PodCertificateRequest", "podcertificaterequests", "", "",
     kStatus, kCertificates, "", "spec.signerName,spec.podName,spec.nodeName"},
    {"networking.k8s.io", "v1", "IngressClass", "ingressclasses", "", "", kCluster, kNetworking},
    {"networking.k8s.io", "v1", "Ingress", "ingresses", "ing", "", kStatus, kNetworking},
    {"networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", "netpol", "", kNone,
     kNetworking},
    {"networking.k8s.io", "v1", "IPAddress", "ipaddresses", "ip", "", kCluster, kNetworking},
    {"networking.k8s.io", "v1", "ServiceCIDR", "servicecidrs", "", "", kCluster | kStatus,
     kNetworking},
    {"policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", "pdb", "", kStatus,
     "io.k8s.api.policy.v1"},
    {"policy", "v1beta1", "PodDisruptionBudget", "poddisruptionbudgets", "pdb", "",
     kStatus | kOlder, "io.k8s.api.policy.v1beta1"},
    {kRbacGroup, "v1", "ClusterRoleBinding", "clusterrolebindings", "", "", kCluster, kRbac},
    {kRbacGroup, "v1", "ClusterRole", "clusterroles", "", "", kCluster, kRbac},
    {kRbacGroup, "v1", "RoleBinding", "rolebindings", "", "", kNone, kRbac},
    {kRbacGroup, "v1", "Role", "roles", "", "", kNone, kRbac},
    {kDeviceGroup, "v1", "DeviceClass", "deviceclasses", "", "", kCluster, kDevices},
    {kDeviceGroup, "v1", "DeviceTaintRule", "devicetaintrules", "", "", kCluster | kStatus,
     kDevices},
    {kDeviceGroup, "v1", "ResourceClaim", "resourceclaims", "", "", kStatus, kDevices},
    {kDeviceGroup, "v1", "ResourceClaimTemplate", "resourceclaimtemplates", "", "", kNone,
     kDevices},
    {kDeviceGroup, "v1", "ResourceSlice", "resourceslices", "", "", kCluster, kDevices, "",
     "spec.nodeName,spec.driver,spec.pool.name"},
    {"storage.k8s.io", "v1", "CSIDriver", "csidrivers", "", "", kCluster, kStorage},
    {"storage.k8s.io", "v1", "CSINode", "csinodes", "", "", kCluster, kStorage},
    {"storage.k8s.io", "v1", "CSIStorageCapacity", "csistoragecapacities", "", "", kNone, kStorage},
    {"storage.k8s.io", "v1", "StorageClass", "storageclasses", "sc", "", kCluster, kStorage},
    {"storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", "", "", kCluster | kStatus,
     kStorage},
    {"storage.k8s.io", "v1", "VolumeAttributesClass", "volumeattributesclasses", "vac", "",
     kCluster, kStorage},
    {kMigrationGroup, "v1", "StorageVersionMigration", "storageversionmigrations", "", "",
     kCluster | kStatus, "io.k8s.api.storagemigration.v1"},
    {kMigrationGroup, "v1beta1", "StorageVersionMigration", "storageversionmigrations", "", "",
     kCluster | kStatus | kOlder, "io.k8s.api.storagemigration.v1beta1"},
    {kAdmissionGroup, "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", "",
     "api-extensions", kCluster, kAdmission},
    {kAdmissionGroup, "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", "",
     "api-extensions", kCluster | kStatus, kAdmission},
    {kAdmissionGroup, "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings",
     "", "api-extensions", kCluster, kAdmission},
    {kAdmissionGroup, "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", "",
     "api-extensions", kCluster, kAdmission},
    {"apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions",
     "crd,crds", "api-extensions", kCluster | kStatus,
     "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"},
    {"scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", "pc", "", kCluster,
     "io.k8s.api.scheduling.v1"},
    {"scheduling.k8s.io", "v1beta1", "PriorityClass", "priorityclasses", "pc", "",
     kCluster | kOlder, "io.k8s.api.scheduling.v1beta1"},
    {"scheduling.k8s.io", "v1alpha3", "CompositePodGroup", "compositepodgroups", "", "", kStatus,
     "io.k8s.api.scheduling.v1alpha3"},
    {"scheduling.k8s.io", "v1beta1", "PodGroup", "podgroups", "", "", kStatus,
     "io.k8s.api.scheduling.v1beta1"},
    {"scheduling.k8s.io", "v1beta1", "Workload", "workloads", "", "", kNone,
     "io.k8s.api.scheduling.v1beta1"},
    {"coordination.k8s.io", "v1", "Lease", "leases", "", "", kNone, "io.k8s.api.coordination.v1"},
    {"node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", "", "", kCluster, "io.k8s.api.node.v1"},
    {"discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", "", "", kNone,
     "io.k8s.api.discovery.v1"},
    {"discovery.k8s.io", "v1beta1", "EndpointSlice", "endpointslices", "", "", kOlder,
     "io.k8s.api.discovery.v1beta1"},
    {"apiregistration.k8s.io", "v1", "APIService", "apiservices", "", "api-extensions",
     kCluster | kComputed, "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1"},
    {"metrics.k8s.io", "v1beta1", "NodeMetrics", "nodes", "", "", kCluster | kComputed,
     "io.k8s.metrics.pkg.apis.metrics.v1beta1"},
    {"metrics.k8s.io", "v1beta1", "PodMetrics", "pods", "", "", kComputed,
     "io.k8s.metrics.pkg.apis.metrics.v1beta1"},
};

std::vector<std::string> Words(std::string_view text) {
  std::vector<std::string> out;
  for (std::string_view word : Split(text, ',')) out.emplace_back(word);
  return out;
}

PrinterColumn Column(std::string name, std::string json_path, std::string type = "string") {
  PrinterColumn column;
  column.name = std::move(name);
  column.json_path = std::move(json_path);
  column.type = std::move(type);
  return column;
}

KindInfo MakeKind(const KindRow& row, SchemaLibrary& library) {
  KindInfo kind;
  kind.gvk = {std::string(row.group), std::string(row.version), std::string(row.kind)};
  kind.plural = std::string(row.plural);
  kind.singular = ToLower(row.kind);
  kind.short_names = Words(row.short_names);
  kind.categories = Words(row.categories);
  kind.namespaced = (row.flags & kCluster) == 0;
  kind.has_status = (row.flags & kStatus) != 0;
  kind.has_scale = (row.flags & kScale) != 0;
  kind.read_only = (row.flags & kReview) != 0;
  kind.subresources = Words(row.subresources);
  if (kind.has_scale) {
    kind.subresources.emplace_back("scale");
    kind.scale_spec_path = ".spec.replicas";
    kind.scale_status_path = ".status.replicas";
    kind.scale_selector_path = ".spec.selector";
  }
  if (kind.has_status) kind.subresources.emplace_back("status");
  kind.stored_otherwise = (row.flags & kOlder) != 0;
  kind.computed = (row.flags & kComputed) != 0;
  kind.verbs = kind.read_only ? Words("create")
               : kind.computed
                   ? Words("get,list")
                   : Words("create,delete,deletecollection,get,list,patch,update,watch");
  if ((row.flags & kSingly) != 0) std::erase(kind.verbs, "deletecollection");
  kind.selectable_fields = Words(row.selectable);
  kind.schema = library.Find(StrCat(row.package, ".", row.kind));
  SWELL_CHECK_MSG(kind.schema != nullptr, row.kind);
  return kind;
}

// What kube-apiserver says of versions and kinds on their way out.
std::string Deprecation(const GroupVersionKind& gvk) {
  if (gvk.kind == "ComponentStatus") return "v1 ComponentStatus is deprecated in v1.19+";
  if (gvk.kind == "Endpoints") {
    return "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";
  }
  struct Row {
    std::string_view version, since, gone, instead;
  };
  static constexpr Row kRows[] = {
      {"autoscaling/v2beta2", "1.23", "1.26", "autoscaling/v2"},
      {"batch/v1beta1", "1.21", "1.25", "batch/v1"},
      {"discovery.k8s.io/v1beta1", "1.21", "1.25", "discovery.k8s.io/v1"},
      {"policy/v1beta1", "1.21", "1.25", "policy/v1"},
      {"scheduling.k8s.io/v1beta1", "1.14", "1.22", "scheduling.k8s.io/v1"},
  };
  // The version is back with kinds of its own.
  if (gvk.group == "scheduling.k8s.io" && gvk.kind != "PriorityClass") return {};
  for (const Row& row : kRows) {
    if (gvk.ApiVersion() != row.version) continue;
    return StrCat(row.version, " ", gvk.kind, " is deprecated in v", row.since,
                  "+, unavailable in v", row.gone, "+; use ", row.instead, " ", gvk.kind);
  }
  return {};
}

void AddColumns(KindInfo& kind) {
  if (kind.gvk.kind == "PriorityClass") {
    kind.columns = {Column("Value", ".value", "integer"),
                    Column("Global-Default", ".globalDefault", "boolean"),
                    Column("Age", ".metadata.creationTimestamp", "date"),
                    Column("PreemptionPolicy", ".preemptionPolicy")};
  } else if (kind.gvk.kind == "Lease") {
    kind.columns = {Column("Holder", ".spec.holderIdentity"),
                    Column("Age", ".metadata.creationTimestamp", "date")};
  } else if (kind.gvk.kind == "CustomResourceDefinition") {
    kind.columns = {Column("Created At", ".metadata.creationTimestamp")};
  }
}

}  // namespace

std::vector<BuiltInKind> BuiltInKinds(SchemaLibrary& library) {
  std::vector<BuiltInKind> out;
  out.reserve(std::size(kRows));
  for (const KindRow& row : kRows) {
    BuiltInKind kind{MakeKind(row, library), (row.flags & kOlder) == 0};
    AddColumns(kind.kind);
    kind.kind.deprecation = Deprecation(kind.kind.gvk);
    out.push_back(std::move(kind));
  }
  return out;
}

}  // namespace swell::api
