// Rules of nodes, of what is registered with a cluster, and of what it tells of itself.
#include <algorithm>
#include <set>

#include "base/strings.h"
#include "kube/api/meta/cidr.h"
#include "kube/api/meta/meta.h"
#include "kube/api/validate/validate_rules.h"

namespace swell::api {
namespace {

using json::Value;

void CheckTaints(const Value& node, FieldErrors& errors) {
  std::set<std::string> seen;
  const json::Array& taints = json::GetArray(node, {"spec", "taints"});
  // Not spec: as Kubernetes says it.
  for (const auto& [taint, at] : ItemsOf(taints, "metadata.taints")) {
    const std::string_view key = TextOf(taint, "key");
    const std::string_view value = TextOf(taint, "value");
    const std::string_view effect = TextOf(taint, "effect");
    CheckQualified(key, PathField(at, "key"), errors);
    CheckText(value, CheckLabelValue, PathField(at, "value"), errors);
    if (effect.empty()) errors.push_back(RequiredError(PathField(at, "effect")));
    CheckOneOf(taint, "effect", at, {"NoSchedule", "PreferNoSchedule", "NoExecute"}, errors);
    if (!seen.insert(StrCat(key, ":", effect)).second) {
      errors.push_back(
          {"FieldValueDuplicate", at,
           StrCat("Duplicate value: core.Taint{Key:", Quote(key), ", Value:", Quote(value),
                  ", Effect:", Quote(effect),
                  ", TimeAdded:<nil>}: taints must be unique by key and effect pair")});
    }
  }
}

void CheckNode(const Value& node, const Value* old, FieldErrors& errors) {
  CheckTaints(node, errors);
  for (std::string_view list : {"capacity", "allocatable"}) {
    for (const auto& amount : json::GetObject(node, {"status", list})) {
      const std::string_view name = amount.key();
      CheckQuantity(name, amount.value(), StrCat("status.", list, ".", name), errors);
    }
  }
  // The older field decides what the list may be.
  const Value* first = json::Find(node, {"spec", "podCIDR"});
  json::Array ranges = json::GetArray(node, {"spec", "podCIDRs"});
  if (first == nullptr) {
    ranges.clear();
  } else if (ranges.empty() || TextIn(ranges[0]) != TextIn(*first)) {
    ranges = {*first};
  }
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ParseCidr(TextIn(ranges[i]))) continue;
    errors.push_back(InvalidTexts(PathIndex("spec.podCIDRs", i), ranges, "must be valid CIDR"));
  }
  const bool two_families =
      ranges.size() == 2 && (TextIn(ranges[0]).find(':') == std::string::npos) !=
                                (TextIn(ranges[1]).find(':') == std::string::npos);
  if (ranges.size() > 1 && !two_families) {
    errors.push_back(InvalidTexts("spec.podCIDRs", ranges,
                                  "may specify no more than one CIDR for each IP family"));
  }
  if (old == nullptr) return;
  // Either may be given once.
  const Value* range = json::Find(*old, {"spec", "podCIDR"});
  if (range != nullptr && TextIn(*range) != (first == nullptr ? "" : TextIn(*first))) {
    errors.push_back(ForbiddenError(
        "spec.podCIDRs", "node updates may not change podCIDR except from \"\" to valid"));
  }
  const std::string_view before = json::GetString(*old, {"spec", "providerID"});
  const std::string_view now = json::GetString(node, {"spec", "providerID"});
  if (!before.empty() && now != before) {
    errors.push_back(InvalidError(
        "spec.providerID", Value(),
        now.empty() ? "field cannot be cleared once set" : "field cannot be modified once set"));
  }
}

void CheckLease(const Value& object, FieldErrors& errors) {
  const Value* seconds = json::Find(object, {"spec", "leaseDurationSeconds"});
  if (seconds && seconds->is_int64() && seconds->get_int64() <= 0) {
    errors.push_back(InvalidError("spec.leaseDurationSeconds", *seconds, "must be greater than 0"));
  }
  const Value* transitions = json::Find(object, {"spec", "leaseTransitions"});
  if (transitions && transitions->is_int64() && transitions->get_int64() < 0) {
    errors.push_back(
        InvalidError("spec.leaseTransitions", *transitions, "must to greater or equal than 0"));
  }
}

void CheckNeeded(const Value& parent,
                 std::string_view key,
                 const std::string& path,
                 FieldErrors& errors) {
  if (TextOf(parent, key).empty()) errors.push_back(RequiredError(PathField(path, key)));
}

// An event with a time says who acted and how.
void CheckNewEvent(const Value& event,
                   std::string_view about,
                   const std::string& reporter_at,
                   FieldErrors& errors) {
  const std::string_view ns = Namespace(event);
  if (about.empty() && ns != "default" && ns != "kube-system") {
    errors.push_back(
        InvalidText("involvedObject.namespace", about, "does not match event.namespace"));
  }
  const std::string_view reporter = TextOf(event, "reportingComponent");
  if (reporter.empty()) errors.push_back(RequiredError(reporter_at));
  CheckQualified(reporter, reporter_at, errors);
  constexpr size_t kTextMax = 128;
  auto check_length = [&](const char* key, size_t most) {
    if (TextOf(event, key).size() <= most) return;
    errors.push_back(InvalidText(key, "", StrCat("can have at most ", most, " characters")));
  };
  for (const char* key : {"reportingInstance", "action", "reason"}) {
    CheckNeeded(event, key, "", errors);
    check_length(key, kTextMax);
  }
  constexpr size_t kNoteMax = 1024;
  check_length("message", kNoteMax);
}

// With its fields under their names of the core group, in which all events are handled. Those of
// the newer group have a time; core's may be old ones, without.
void CheckEvent(const Value& event, bool core, FieldErrors& errors) {
  const std::string_view about = json::GetString(event, {"involvedObject", "namespace"});
  const bool is_new = MemberOf(event, "eventTime") != nullptr;
  if (is_new) {
    CheckNewEvent(event, about, core ? "reportingComponent" : "reportingController", errors);
  } else if (about != Namespace(event) && !(about.empty() && Namespace(event) == "default")) {
    errors.push_back(
        InvalidText("involvedObject.namespace", about, "does not match event.namespace"));
  }
  if (core) return;
  if (!is_new) errors.push_back(RequiredError("eventTime"));
  const std::string_view type = TextOf(event, "type");
  if (type != "Normal" && type != "Warning") {
    errors.push_back(InvalidText("type", "", StrCat("has invalid value: ", type)));
  }
  if (const Value* series = MemberOf(event, "series")) {
    if (json::GetInt(*series, {"count"}) < 2) {
      errors.push_back(InvalidText("series.count", "", "should be at least 2"));
    }
    CheckNeeded(*series, "lastObservedTime", "series", errors);
  }
  for (const char* key : {"firstTimestamp", "lastTimestamp", "count", "source"}) {
    const Value* old = MemberOf(event, key);
    if (old == nullptr || *old == Value(json::Object()) || *old == Value(0)) continue;
    errors.push_back(InvalidText(key, "", "needs to be unset"));
  }
}

// Each is there once, however long it tolerates.
void CheckClassTolerations(const json::Array& tolerations, FieldErrors& errors) {
  const std::string at = "scheduling.tolerations";
  CheckTolerations(tolerations, at, errors);
  std::set<std::string> seen;
  for (const auto& [toleration, toleration_at] : ItemsOf(tolerations, at)) {
    std::string key;
    for (const char* part : {"key", "operator", "value", "effect"}) {
      key += StrCat(TextOf(toleration, part), "\n");
    }
    if (!seen.insert(std::move(key)).second) {
      errors.push_back(DuplicateError(toleration_at, toleration));
    }
  }
}

void CheckRuntimeClass(const Value& object, const Value* old, FieldErrors& errors) {
  const std::string_view handler = TextOf(object, "handler");
  CheckRequired(handler, CheckDnsLabel, "handler", errors);
  if (const Value* overhead = json::Find(object, {"overhead", "podFixed"})) {
    CheckResources(json::Object{{"limits", *overhead}}, "overhead", errors);
  }
  if (const Value* scheduling = MemberOf(object, "scheduling")) {
    if (const Value* labels = MemberOf(*scheduling, "nodeSelector")) {
      CheckLabels(*labels, "scheduling.nodeSelector", errors);
    }
    CheckClassTolerations(json::GetArray(*scheduling, {"tolerations"}), errors);
  }
  if (old != nullptr) {
    CheckImmutable(MemberOf(object, "handler"), MemberOf(*old, "handler"), "handler", errors);
  }
}

void CheckCsiNode(const Value& object, FieldErrors& errors) {
  const json::Array& drivers = json::GetArray(object, {"spec", "drivers"});
  std::set<std::string> names;
  for (const auto& [driver, at] : ItemsOf(drivers, "spec.drivers")) {
    const std::string_view name = TextOf(driver, "name");
    CheckDriverName(name, PathField(at, "name"), errors);
    CheckNeeded(driver, "nodeID", at, errors);
    const json::Array& keys = json::GetArray(driver, {"topologyKeys"});
    for (const Value& key : keys) {
      if (TextIn(key).empty()) errors.push_back(RequiredError(at));
      FieldErrors wrong;
      CheckQualified(TextIn(key), at, wrong);
      for (const FieldError& error : wrong) {
        errors.push_back(
            InvalidTexts(at, keys, error.message.substr(error.message.find(": ", 15) + 2)));
      }
    }
    if (!names.emplace(name).second) {
      errors.push_back(DuplicateError(PathField(at, "name"), Value(name)));
    }
  }
}

void CheckAttachment(const Value& object, const Value* old, FieldErrors& errors) {
  const Value& spec = SpecOf(object);
  CheckDriverName(TextOf(spec, "attacher"), "spec.attacher", errors);
  const Value* volume = json::Find(spec, {"source", "persistentVolumeName"});
  const std::string at = "spec.source.persistentVolumeName";
  if (volume == nullptr && json::Find(spec, {"source", "inlineVolumeSpec"}) == nullptr) {
    errors.push_back(RequiredError(
        "spec.source", "must specify exactly one of inlineVolumeSpec and persistentVolumeName"));
  } else if (volume != nullptr) {
    if (TextIn(*volume).empty()) {
      errors.push_back(RequiredError(at, "must specify non empty persistentVolumeName"));
    }
    CheckText(TextIn(*volume), CheckDnsSubdomain, at, errors);
  }
  const std::string_view node = TextOf(spec, "nodeName");
  CheckText(node, CheckDnsSubdomain, "spec.nodeName", errors);
  if (old != nullptr) {
    CheckImmutable(MemberOf(object, "spec"), MemberOf(*old, "spec"), "spec", errors);
  }
}

void CheckCsiDriver(const Value& object, FieldErrors& errors) {
  CheckDriverName(Name(object), "metadata.name", errors);
  CheckOneOf(SpecOf(object), "fsGroupPolicy", "spec", {"File", "None", "ReadWriteOnceWithFSType"},
             errors);
  for (const Value& mode : json::GetArray(SpecOf(object), {"volumeLifecycleModes"})) {
    if (TextIn(mode) == "Persistent" || TextIn(mode) == "Ephemeral") continue;
    errors.push_back(
        NotSupportedError("spec.volumeLifecycleModes", TextIn(mode), {"Persistent", "Ephemeral"}));
  }
}

const std::vector<std::string>& KeyUsages() {
  static const std::vector<std::string> kUsages = {"any",
                                                   "cert sign",
                                                   "client auth",
                                                   "code signing",
                                                   "content commitment",
                                                   "crl sign",
                                                   "data encipherment",
                                                   "decipher only",
                                                   "digital signature",
                                                   "email protection",
                                                   "encipher only",
                                                   "ipsec end system",
                                                   "ipsec tunnel",
                                                   "ipsec user",
                                                   "key agreement",
                                                   "key encipherment",
                                                   "microsoft sgc",
                                                   "netscape sgc",
                                                   "ocsp signing",
                                                   "s/mime",
                                                   "server auth",
                                                   "signing",
                                                   "timestamping"};
  return kUsages;
}

void CheckCertificateRequest(const Value& object, FieldErrors& errors) {
  const Value& spec = SpecOf(object);
  const std::string request = Base64Decode(TextOf(spec, "request")).value_or("");
  if (request.find("-----BEGIN CERTIFICATE REQUEST-----") == std::string::npos &&
      request.find("-----BEGIN NEW CERTIFICATE REQUEST-----") == std::string::npos) {
    std::vector<std::string> bytes;
    static constexpr char kHex[] = "0123456789abcdef";
    for (unsigned char c : request) {
      bytes.push_back(
          StrCat("0x", c >= 16 ? std::string(1, kHex[c >> 4]) : "", std::string(1, kHex[c & 15])));
    }
    const std::string shown =
        request.empty() ? "[]byte(nil)" : StrCat("[]byte{", Join(bytes, ", "), "}");
    errors.push_back({"FieldValueInvalid", "spec.request",
                      StrCat("Invalid value: ", shown.substr(0, 512),
                             ": PEM block type must be CERTIFICATE REQUEST")});
  }
  const json::Array& usages = json::GetArray(spec, {"usages"});
  if (usages.empty()) {
    errors.push_back(RequiredError("spec.usages", "usages must be provided"));
  }
  std::set<std::string_view> seen;
  for (const auto& [one, at] : ItemsOf(usages, "spec.usages")) {
    const std::string_view usage = TextIn(one);
    if (std::find(KeyUsages().begin(), KeyUsages().end(), usage) == KeyUsages().end()) {
      errors.push_back(NotSupportedError(at, usage, KeyUsages()));
    }
    if (!seen.insert(usage).second) errors.push_back(DuplicateError(at, one));
  }
  CheckSignerName(TextOf(spec, "signerName"), "spec.signerName", errors);
}

void CheckPodCertificateRequest(const Value& object, const Value* old, FieldErrors& errors) {
  if (old != nullptr) {
    CheckImmutable(MemberOf(object, "spec"), MemberOf(*old, "spec"), "spec", errors);
    return;
  }
  const Value& spec = SpecOf(object);
  CheckSignerName(TextOf(spec, "signerName"), "spec.signerName", errors);
  for (std::string_view key : {"podName", "serviceAccountName", "nodeName"}) {
    CheckText(TextOf(spec, key), CheckDnsSubdomain, PathField("spec", key), errors);
  }
  constexpr size_t kMaxUidBytes = 128;
  for (std::string_view key : {"podUID", "serviceAccountUID", "nodeUID"}) {
    const std::string_view uid = TextOf(spec, key);
    if (uid.empty())
      errors.push_back(InvalidText(PathField("spec", key), uid, "must not be empty"));
    if (uid.size() > kMaxUidBytes) {
      errors.push_back(TooLongError(PathField("spec", key), kMaxUidBytes));
    }
  }
  const int64_t most = LongestPodCertificateSeconds(TextOf(spec, "signerName"));
  const int64_t seconds = json::GetInt(spec, {"maxExpirationSeconds"});
  if (seconds < kShortestPodCertificateSeconds || seconds > most) {
    errors.push_back(InvalidError(
        "spec.maxExpirationSeconds", Value(seconds),
        StrCat("must be in the range [", kShortestPodCertificateSeconds, ", ", most, "]")));
  }
  constexpr size_t kMaxRequestBytes = size_t{10} * 1024;
  const std::string request = Base64Decode(TextOf(spec, "stubPKCS10Request")).value_or("");
  if (request.empty()) errors.push_back(RequiredError("spec.stubPKCS10Request"));
  if (request.size() > kMaxRequestBytes) {
    errors.push_back(TooLongError("spec.stubPKCS10Request", kMaxRequestBytes));
  }
  if (const Value* notes = MemberOf(spec, "unverifiedUserAnnotations")) {
    CheckAnnotations(*notes, "spec.unverifiedUserAnnotations", errors);
  }
}

// What has ended stays so.
void CheckMigration(const Value& object, const Value* old, FieldErrors& errors) {
  const Value* resource = json::Find(object, {"spec", "resource"});
  const std::string at = "spec.resource";
  const std::string_view name = resource == nullptr ? "" : TextOf(*resource, "resource");
  if (name.empty()) {
    errors.push_back(RequiredError(PathField(at, "resource"), "resource is required to be set"));
  } else {
    CheckText(name, CheckDns1035Label, PathField(at, "resource"), errors);
  }
  if (resource != nullptr) CheckSubdomain(*resource, "group", at, errors);
  const bool succeeded = ConditionIsTrue(object, "Succeeded");
  const bool failed = ConditionIsTrue(object, "Failed");
  auto refuse = [&](std::string_view why) {
    errors.push_back(ForbiddenError("status.conditions", why));
  };
  if (succeeded && failed) {
    refuse("Both success and failed conditions cannot be true at the same time");
  }
  if (old == nullptr) return;
  CheckImmutable(MemberOf(object, "spec"), MemberOf(*old, "spec"), "spec", errors);
  if (ConditionIsTrue(*old, "Succeeded") && !succeeded) {
    refuse("Success condition cannot be set to false once it is true");
  }
  if (ConditionIsTrue(*old, "Failed") && !failed) {
    refuse("Failed condition cannot be set to false once it is true");
  }
  const Value* since = json::Find(*old, {"status", "resourceVersion"});
  if (since != nullptr && !TextIn(*since).empty()) {
    CheckImmutable(json::Find(object, {"status", "resourceVersion"}), since,
                   "status.resourceVersion", errors);
  }
}

// spec.finalizers of a namespace.
void CheckNamespaceFinalizers(const Value& object, FieldErrors& errors) {
  for (const Value& item : json::GetArray(object, {"spec", "finalizers"})) {
    const std::string_view name = TextIn(item);
    const size_t before = errors.size();
    CheckQualified(name, "spec.finalizers", errors);
    if (errors.size() > before || name == "kubernetes" ||
        name.find('/') != std::string_view::npos) {
      continue;
    }
    errors.push_back(
        InvalidText("spec.finalizers", name,
                    "name is neither a standard finalizer name nor is it fully qualified"));
  }
}

}  // namespace

void CheckSignerName(std::string_view signer, const std::string& at, FieldErrors& errors) {
  const size_t slash = signer.find('/');
  if (signer.empty()) {
    errors.push_back(RequiredError(at, "signerName must be provided"));
  } else if (slash == std::string_view::npos) {
    errors.push_back(InvalidText(at, signer,
                                 "must be a fully qualified domain and path of the form "
                                 "'example.com/signer-name'"));
  } else if (std::string why = CheckDnsSubdomain(signer.substr(0, slash)); !why.empty()) {
    errors.push_back(
        InvalidText(at, signer.substr(0, slash),
                    StrCat("validating label \"", signer.substr(0, slash), "\": ", why)));
  }
}

int64_t LongestPodCertificateSeconds(std::string_view signer) {
  const int64_t days = signer.starts_with("kubernetes.io/") ? 1 : 91;
  return days * 24 * 3600;
}

bool CheckRegistered(const KindInfo& kind,
                     const Value& object,
                     const Value* old,
                     FieldErrors& errors) {
  const std::string& k = kind.gvk.kind;
  if (k == "Node") {
    CheckNode(object, old, errors);
  } else if (k == "Namespace") {
    CheckNamespaceFinalizers(object, errors);
  } else if (k == "Lease") {
    CheckLease(object, errors);
  } else if (k == "Event") {
    if (old == nullptr) CheckEvent(object, kind.gvk.group.empty(), errors);
  } else if (k == "RuntimeClass") {
    CheckRuntimeClass(object, old, errors);
  } else if (k == "CSINode") {
    CheckCsiNode(object, errors);
  } else if (k == "CSIDriver") {
    CheckCsiDriver(object, errors);
  } else if (k == "VolumeAttachment") {
    CheckAttachment(object, old, errors);
  } else if (k == "CertificateSigningRequest") {
    if (old == nullptr) CheckCertificateRequest(object, errors);
  } else if (k == "PodCertificateRequest") {
    CheckPodCertificateRequest(object, old, errors);
  } else if (k == "StorageVersionMigration") {
    CheckMigration(object, old, errors);
  } else if (k == "ControllerRevision") {
    if (MemberOf(object, "data") == nullptr) {
      errors.push_back(RequiredError("data", "data is mandatory"));
    }
    CheckNonNegative(object, "revision", "", errors);
  } else {
    return false;
  }
  return true;
}

}  // namespace swell::api
