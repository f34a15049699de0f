// The longer parts of a pod's spec: volumes, probes, affinity; and what an update may change.
#include <set>

#include "api/meta.h"
#include "api/quantity.h"
#include "api/validate_rules.h"
#include "base/strings.h"

namespace swell::api {
namespace {

using json::Value;

void CheckMode(const Value& parent,
               std::string_view key,
               const std::string& path,
               FieldErrors& errors) {
  const Value* mode = MemberOf(parent, key);
  int64_t value = json::GetInt(parent, {key});
  if (mode != nullptr && (value < 0 || value > 0777)) {
    errors.push_back(InvalidError(PathField(path, key), *mode,
                                  "must be a number between 0 and 0777 (octal), both inclusive"));
  }
}

void CheckKeys(const Value& source, const std::string& path, FieldErrors& errors) {
  const json::Array& items = json::GetArray(source, {"items"});
  for (size_t i = 0; i < items.size(); ++i) {
    std::string at = PathIndex(PathField(path, "items"), i);
    std::string_view target = TextOf(items[i], "path");
    if (MemberOf(items[i], "key") && TextOf(items[i], "key").empty()) {
      errors.push_back(RequiredError(PathField(at, "key")));
    }
    if (target.empty()) {
      errors.push_back(RequiredError(PathField(at, "path")));
    } else if (target.starts_with('/')) {
      errors.push_back(InvalidText(PathField(at, "path"), target, "must be a relative path"));
    } else if (target == ".." || target.starts_with("../") ||
               target.find("/../") != std::string_view::npos || target.ends_with("/..")) {
      errors.push_back(InvalidText(PathField(at, "path"), target, "must not contain '..'"));
    } else if (target.starts_with("..")) {
      errors.push_back(InvalidText(PathField(at, "path"), target, "must not start with '..'"));
    }
    CheckMode(items[i], "mode", at, errors);
  }
}

void CheckSource(const Value& volume, const std::string& at, FieldErrors& errors) {
  if (const Value* secret = MemberOf(volume, "secret")) {
    if (TextOf(*secret, "secretName").empty()) {
      errors.push_back(RequiredError(PathField(at, "secret.secretName")));
    }
    CheckMode(*secret, "defaultMode", PathField(at, "secret"), errors);
    CheckKeys(*secret, PathField(at, "secret"), errors);
  }
  if (const Value* config = MemberOf(volume, "configMap")) {
    if (TextOf(*config, "name").empty()) {
      errors.push_back(RequiredError(PathField(at, "configMap.name")));
    }
    CheckMode(*config, "defaultMode", PathField(at, "configMap"), errors);
    CheckKeys(*config, PathField(at, "configMap"), errors);
  }
  if (const Value* claim = MemberOf(volume, "persistentVolumeClaim")) {
    if (TextOf(*claim, "claimName").empty()) {
      errors.push_back(RequiredError(PathField(at, "persistentVolumeClaim.claimName")));
    }
  }
  if (const Value* share = MemberOf(volume, "nfs")) {
    const std::string_view path = TextOf(*share, "path");
    const std::string path_at = PathField(at, "nfs.path");
    if (TextOf(*share, "server").empty()) {
      errors.push_back(RequiredError(PathField(at, "nfs.server")));
    }
    if (path.empty()) errors.push_back(RequiredError(path_at));
    if (!path.starts_with('/')) {
      errors.push_back(InvalidText(path_at, path, "must be an absolute path"));
    }
  }
  if (const Value* limit = json::Find(volume, {"emptyDir", "sizeLimit"})) {
    Result<Quantity> size = Quantity::FromJson(*limit);
    if (size.ok() && size->negative()) {
      errors.push_back(ForbiddenError(PathField(at, "emptyDir.sizeLimit"),
                                      "SizeLimit field must be a valid resource quantity"));
    }
  }
  if (const Value* host = MemberOf(volume, "hostPath")) {
    std::string_view path = TextOf(*host, "path");
    if (path.empty()) {
      errors.push_back(RequiredError(PathField(at, "hostPath.path")));
    } else if (path == ".." || path.find("/../") != std::string_view::npos ||
               path.ends_with("/..")) {
      errors.push_back(InvalidText(PathField(at, "hostPath.path"), path, "must not contain '..'"));
    }
    static constexpr std::string_view kTypes[] = {
        "",     "BlockDevice",  "CharDevice", "Directory", "DirectoryOrCreate",
        "File", "FileOrCreate", "Socket"};
    std::string_view type = TextOf(*host, "type");
    bool known = false;
    for (std::string_view t : kTypes) known = known || t == type;
    if (!known) {
      errors.push_back(NotSupportedError(PathField(at, "hostPath.type"), type,
                                         {"", "BlockDevice", "CharDevice", "Directory",
                                          "DirectoryOrCreate", "File", "FileOrCreate", "Socket"}));
    }
  }
}

void CheckHandler(const Value& handler, const std::string& path, FieldErrors& errors) {
  bool first = true;
  for (std::string_view key : {"exec", "httpGet", "tcpSocket", "grpc", "sleep"}) {
    const Value* action = MemberOf(handler, key);
    if (action == nullptr) continue;
    const std::string at = PathField(path, key);
    if (!first) {
      errors.push_back(ForbiddenError(at, "may not specify more than 1 handler type"));
      continue;
    }
    first = false;
    if (key == "exec" && json::GetArray(*action, {"command"}).empty()) {
      errors.push_back(RequiredError(PathField(at, "command")));
    }
    if (const Value* port = MemberOf(*action, "port")) {
      CheckPortOrName(*port, PathField(at, "port"), errors);
    }
    if (key == "httpGet") CheckOneOf(*action, "scheme", at, {"HTTP", "HTTPS"}, errors);
  }
  if (first) errors.push_back(RequiredError(path, "must specify a handler type"));
}

void CheckNodeRequirements(const Value& term, const std::string& path, FieldErrors& errors) {
  for (std::string_view list : {"matchExpressions", "matchFields"}) {
    const json::Array& terms = json::GetArray(term, {list});
    for (size_t i = 0; i < terms.size(); ++i) {
      std::string at = PathIndex(PathField(path, list), i);
      std::string_view op = TextOf(terms[i], "operator");
      size_t values = json::GetArray(terms[i], {"values"}).size();
      if ((op == "In" || op == "NotIn") && values == 0) {
        errors.push_back(RequiredError(PathField(at, "values"),
                                       "must be specified when `operator` is 'In' or 'NotIn'"));
      } else if ((op == "Exists" || op == "DoesNotExist") && values > 0) {
        errors.push_back(
            ForbiddenError(PathField(at, "values"),
                           "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
      } else if ((op == "Gt" || op == "Lt") && values != 1) {
        errors.push_back(RequiredError(PathField(at, "values"),
                                       "must be specified single value when `operator` is 'Lt' "
                                       "or 'Gt'"));
      } else if (op != "In" && op != "NotIn" && op != "Exists" && op != "DoesNotExist" &&
                 op != "Gt" && op != "Lt") {
        errors.push_back(
            InvalidText(PathField(at, "operator"), op, "not a valid selector operator"));
      }
      std::string_view key = TextOf(terms[i], "key");
      if (list == "matchFields" && key != "metadata.name") {
        errors.push_back(InvalidText(PathField(at, "key"), key, "not a valid field selector key"));
      } else if (std::string why = CheckQualifiedName(key); !why.empty()) {
        errors.push_back(InvalidText(PathField(at, "key"), key, why));
      }
    }
  }
}

void CheckWeight(const Value& term, const std::string& at, FieldErrors& errors) {
  const int64_t value = json::GetInt(term, {"weight"});
  if (value < 1 || value > 100) {
    errors.push_back(
        InvalidError(PathField(at, "weight"), Value(value), "must be in the range 1-100"));
  }
}

void CheckPodTerm(const Value& term, const std::string& at, FieldErrors& errors) {
  for (std::string_view selector : {"labelSelector", "namespaceSelector"}) {
    if (const Value* s = MemberOf(term, selector)) {
      CheckLabelSelector(*s, PathField(at, selector), errors);
    }
  }
  for (const Value& name : json::GetArray(term, {"namespaces"})) {
    if (std::string why = CheckDnsLabel(TextIn(name)); !why.empty()) {
      errors.push_back(InvalidText(PathField(at, "namespace"), TextIn(name), why));
    }
  }
  std::string_view key = TextOf(term, "topologyKey");
  if (key.empty()) {
    errors.push_back(RequiredError(PathField(at, "topologyKey"), "can not be empty"));
  }
  if (std::string why = CheckQualifiedName(key); !why.empty()) {
    errors.push_back(InvalidText(PathField(at, "topologyKey"), key, why));
  }
}

constexpr std::string_view kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr std::string_view kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";

void CheckNodeAffinity(const Value& affinity, const std::string& path, FieldErrors& errors) {
  if (const Value* required = MemberOf(affinity, kRequired)) {
    const json::Array& terms = json::GetArray(*required, {"nodeSelectorTerms"});
    std::string at = PathField(PathField(path, kRequired), "nodeSelectorTerms");
    if (terms.empty()) {
      errors.push_back(RequiredError(at, "must have at least one node selector term"));
    }
    for (size_t i = 0; i < terms.size(); ++i) {
      CheckNodeRequirements(terms[i], PathIndex(at, i), errors);
    }
  }
  const json::Array& preferred = json::GetArray(affinity, {kPreferred});
  for (size_t i = 0; i < preferred.size(); ++i) {
    std::string at = PathIndex(PathField(path, kPreferred), i);
    CheckWeight(preferred[i], at, errors);
    if (const Value* term = MemberOf(preferred[i], "preference")) {
      CheckNodeRequirements(*term, PathField(at, "preference"), errors);
    }
  }
}

}  // namespace

void CheckVolumes(const Value& spec, const std::string& path, FieldErrors& errors) {
  const json::Array& volumes = json::GetArray(spec, {"volumes"});
  std::set<std::string> names;
  for (size_t i = 0; i < volumes.size(); ++i) {
    std::string at = PathIndex(PathField(path, "volumes"), i);
    std::string name(TextOf(volumes[i], "name"));
    CheckSource(volumes[i], at, errors);
    int sources = 0;
    for (const auto& member : json::GetObject(volumes[i], {})) {
      if (member.key() == "name" || !member.value().is_object()) continue;
      if (++sources > 1) {
        errors.push_back(ForbiddenError(PathField(at, std::string_view(member.key())),
                                        "may not specify more than 1 volume type"));
      }
    }
    if (name.empty()) {
      errors.push_back(RequiredError(PathField(at, "name")));
    } else if (std::string why = CheckDnsLabel(name); !why.empty()) {
      errors.push_back(InvalidText(PathField(at, "name"), name, why));
    }
    if (!names.insert(name).second && !name.empty()) {
      errors.push_back(DuplicateError(PathField(at, "name"), Value(name)));
    }
  }
}

void CheckProbe(const Value& container,
                std::string_view key,
                const std::string& path,
                FieldErrors& errors) {
  const Value* probe = MemberOf(container, key);
  if (probe == nullptr) return;
  std::string at = PathField(path, key);
  CheckHandler(*probe, at, errors);
  for (std::string_view number : {"initialDelaySeconds", "timeoutSeconds", "periodSeconds",
                                  "successThreshold", "failureThreshold"}) {
    CheckNonNegative(*probe, number, at, errors);
  }
  const Value* success = MemberOf(*probe, "successThreshold");
  if (key != "readinessProbe" && success && json::GetInt(*probe, {"successThreshold"}) != 1) {
    errors.push_back(InvalidError(PathField(at, "successThreshold"), *success, "must be 1"));
  }
  const Value* grace = MemberOf(*probe, "terminationGracePeriodSeconds");
  if (grace != nullptr && key == "readinessProbe") {
    errors.push_back(InvalidError(PathField(at, "terminationGracePeriodSeconds"), *grace,
                                  "must not be set for readinessProbes"));
  } else if (grace != nullptr && json::GetInt(*probe, {"terminationGracePeriodSeconds"}) <= 0) {
    errors.push_back(InvalidError(PathField(at, "terminationGracePeriodSeconds"), *grace,
                                  "must be greater than 0"));
  }
}

void CheckLifecycle(const Value& container, const std::string& path, FieldErrors& errors) {
  for (std::string_view key : {"postStart", "preStop"}) {
    if (const Value* hook = json::Find(container, {"lifecycle", key}); hook && hook->is_object()) {
      CheckHandler(*hook, PathField(PathField(path, "lifecycle"), key), errors);
    }
  }
}

void CheckAffinity(const Value& spec, const std::string& path, FieldErrors& errors) {
  static const Value kNothing = json::Object();
  const Value* affinity = MemberOf(spec, "affinity");
  if (affinity == nullptr) return;
  std::string at = PathField(path, "affinity");
  if (const Value* node = MemberOf(*affinity, "nodeAffinity")) {
    CheckNodeAffinity(*node, PathField(at, "nodeAffinity"), errors);
  }
  for (std::string_view key : {"podAffinity", "podAntiAffinity"}) {
    const json::Array& required = json::GetArray(*affinity, {key, kRequired});
    for (size_t i = 0; i < required.size(); ++i) {
      CheckPodTerm(required[i], PathIndex(PathField(PathField(at, key), kRequired), i), errors);
    }
    const json::Array& preferred = json::GetArray(*affinity, {key, kPreferred});
    for (size_t i = 0; i < preferred.size(); ++i) {
      std::string term_path = PathIndex(PathField(PathField(at, key), kPreferred), i);
      CheckWeight(preferred[i], term_path, errors);
      const Value* term = MemberOf(preferred[i], "podAffinityTerm");
      CheckPodTerm(term ? *term : kNothing, PathField(term_path, "podAffinityTerm"), errors);
    }
  }
}

namespace {

// Takes out of both specs what an update may change, having checked how it changed.
void TakeMutable(Value& spec, Value& old, FieldErrors& errors) {
  for (std::string_view key : {"containers", "initContainers"}) {
    Value* now = json::FindMutable(spec, {key});
    Value* before = json::FindMutable(old, {key});
    if (!now || !before || !now->is_array() || !before->is_array()) continue;
    size_t n = std::min(now->get_array().size(), before->get_array().size());
    for (size_t i = 0; i < n; ++i) {
      std::string image(TextOf(now->get_array()[i], "image"));
      if (image.empty()) {
        errors.push_back(RequiredError(PathField(PathIndex(PathField("spec", key), i), "image")));
      }
      json::Remove(now->get_array()[i], {"image"});
      json::Remove(before->get_array()[i], {"image"});
    }
  }
  // A deadline may be set and shortened.
  const Value* now = MemberOf(spec, "activeDeadlineSeconds");
  const Value* before = MemberOf(old, "activeDeadlineSeconds");
  if (before != nullptr && now == nullptr) {
    errors.push_back(InvalidError("spec.activeDeadlineSeconds", *before,
                                  "must not update from a positive integer to nil value"));
  } else if (before != nullptr && json::GetInt(spec, {"activeDeadlineSeconds"}) >
                                      json::GetInt(old, {"activeDeadlineSeconds"})) {
    errors.push_back(InvalidError("spec.activeDeadlineSeconds", *now,
                                  "must be less than or equal to previous value"));
  } else if (now != nullptr && json::GetInt(spec, {"activeDeadlineSeconds"}) < 0) {
    errors.push_back(
        InvalidError("spec.activeDeadlineSeconds", *now, "must be greater than or equal to 0"));
  }
  for (std::string_view key :
       {"activeDeadlineSeconds", "tolerations", "schedulingGates", "ephemeralContainers"}) {
    json::Remove(spec, {key});
    json::Remove(old, {key});
  }
  if (json::GetInt(old, {"terminationGracePeriodSeconds"}) < 0 &&
      json::GetInt(spec, {"terminationGracePeriodSeconds"}) == 1) {
    json::Remove(spec, {"terminationGracePeriodSeconds"});
    json::Remove(old, {"terminationGracePeriodSeconds"});
  }
}

bool Contains(const json::Array& list, const Value& item) {
  for (const Value& v : list) {
    if (json::Equal(v, item)) return true;
  }
  return false;
}

void CheckAdditions(const Value& spec, const Value& old, FieldErrors& errors) {
  const json::Array& tolerations = json::GetArray(spec, {"tolerations"});
  for (const Value& before : json::GetArray(old, {"tolerations"})) {
    bool kept = Contains(tolerations, before);
    // tolerationSeconds alone may change.
    for (const Value& now : tolerations) {
      Value a = now;
      Value b = before;
      json::Remove(a, {"tolerationSeconds"});
      json::Remove(b, {"tolerationSeconds"});
      kept = kept || json::Equal(a, b);
    }
    if (!kept) {
      errors.push_back(ForbiddenError("spec.tolerations",
                                      "existing toleration can not be modified except its "
                                      "tolerationSeconds"));
      break;
    }
  }
  const json::Array& gates = json::GetArray(spec, {"schedulingGates"});
  for (size_t i = 0; i < gates.size(); ++i) {
    if (!Contains(json::GetArray(old, {"schedulingGates"}), gates[i])) {
      errors.push_back(ForbiddenError(PathIndex("spec.schedulingGates", i),
                                      "only deletion is allowed, but found new scheduling gate " +
                                          Quote(TextOf(gates[i], "name"))));
    }
  }
}

}  // namespace

void CheckPodUpdate(const Value& pod, const Value& old_pod, FieldErrors& errors) {
  const Value* now = json::Find(pod, {"spec"});
  const Value* before = json::Find(old_pod, {"spec"});
  if (now == nullptr || before == nullptr || json::Equal(*now, *before)) return;
  size_t containers = json::GetArray(*now, {"containers"}).size();
  if (containers != json::GetArray(*before, {"containers"}).size()) {
    errors.push_back(
        ForbiddenError("spec.containers", "pod updates may not add or remove containers"));
    return;
  }
  CheckAdditions(*now, *before, errors);
  bool gated = !json::GetArray(*before, {"schedulingGates"}).empty();
  Value spec = *now;
  Value old = *before;
  TakeMutable(spec, old, errors);
  if (gated) {  // while gated, where the pod may go can still be narrowed
    for (std::string_view key : {"nodeSelector", "affinity"}) {
      json::Remove(spec, {key});
      json::Remove(old, {key});
    }
  }
  // The bind subresource sets the node; a client that sends it again unchanged is fine.
  if (!json::Equal(spec, old)) {
    errors.push_back(ForbiddenError(
        "spec",
        "pod updates may not change fields other than `spec.containers[*].image`,"
        "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
        "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to "
        "be set to 1 if it was previously negative)"));
  }
}

}  // namespace swell::api
