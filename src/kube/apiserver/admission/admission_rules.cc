#include "kube/apiserver/admission/admission_rules.h"

#include <utility>

#include "base/strings.h"
#include "json/texts.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/rule_words.h"
#include "kube/apiserver/access/access.h"
#include "kube/apiserver/request/errors.h"
#include "kube/apiserver/webhooks/conversion.h"

namespace swell::apiserver {

bool IsNamespaces(const api::KindInfo& kind) {
  return kind.gvk.group.empty() && kind.plural == "namespaces";
}

// The namespace of a request; of one about a namespace, its name.
const std::string& NamespaceOf(const Admission& admission) {
  return IsNamespaces(admission.kind) ? admission.name : admission.ns;
}

namespace {

api::LabelSelector SelectorOf(const json::Value* selector) {
  static const json::Value everything = json::Object();
  auto parsed = api::LabelSelector::FromJson(selector == nullptr ? &everything : selector);
  return parsed.ok() ? std::move(*parsed) : api::LabelSelector();
}

std::vector<RequestRules::Rule> ReadRules(const json::Value& value, std::string_view field) {
  std::vector<RequestRules::Rule> rules;
  for (const json::Value& rule : json::GetArray(value, {field})) {
    rules.push_back({json::Texts(json::GetArray(rule, {"operations"})),
                     json::Texts(json::GetArray(rule, {"apiGroups"})),
                     json::Texts(json::GetArray(rule, {"apiVersions"})),
                     json::Texts(json::GetArray(rule, {"resources"})),
                     json::Texts(json::GetArray(rule, {"resourceNames"})),
                     std::string(json::GetString(rule, {"scope"}))});
  }
  return rules;
}

bool RuleMatches(const RequestRules::Rule& rule,
                 const api::KindInfo& kind,
                 std::string_view name,
                 std::string_view operation,
                 std::string_view subresource) {
  if (rule.scope == "Namespaced" && !kind.namespaced) return false;
  if (rule.scope == "Cluster" && kind.namespaced) return false;
  if (!api::HasWordOrAll(rule.operations, operation) ||
      !api::HasWordOrAll(rule.groups, kind.gvk.group) ||
      !api::HasWordOrAll(rule.versions, kind.gvk.version)) {
    return false;
  }
  if (!rule.names.empty() && !Contains(rule.names, name)) return false;
  for (const std::string& both : rule.resources) {
    const size_t slash = both.find('/');
    const std::string resource = both.substr(0, slash);
    const std::string sub = slash == std::string::npos ? "" : both.substr(slash + 1);
    if ((resource == "*" || resource == kind.plural) && (sub == "*" || sub == subresource)) {
      return true;
    }
  }
  return false;
}

// The version of the resource that one of the rules is about; null when there is no such rule.
api::KindPtr MatchRules(const std::vector<RequestRules::Rule>& rules,
                        bool equivalent,
                        const Admission& admission,
                        std::string_view operation) {
  auto about = [&](const RequestRules::Rule& rule, const api::KindInfo& kind) {
    return RuleMatches(rule, kind, admission.name, operation, admission.subresource);
  };
  const api::KindPtr& asked = admission.call->kind;
  for (const RequestRules::Rule& rule : rules) {
    if (about(rule, *asked)) return asked;
  }
  if (!equivalent) return nullptr;
  const auto versions = admission.core.scheme->Versions(asked->gvk.group, asked->plural);
  for (const RequestRules::Rule& rule : rules) {
    for (const api::KindPtr& version : versions) {
      if (version->served && about(rule, *version)) return version;
    }
  }
  return nullptr;
}

bool LabelsMatch(const api::LabelSelector& selector, const json::Value* object) {
  if (object == nullptr) return false;
  const json::Value* labels = json::Find(*object, {"metadata", "labels"});
  static const json::Value none = json::Object();
  return selector.Matches(labels != nullptr && labels->is_object() ? *labels : none);
}

Result<bool> NamespaceMatches(const RequestRules& rules,
                              const Admission& admission,
                              const Reviewed& reviewed) {
  const std::string& ns = NamespaceOf(admission);
  if (rules.namespaces.everything() || (ns.empty() && !IsNamespaces(admission.kind))) return true;
  if (IsNamespaces(admission.kind) && admission.subresource.empty() && reviewed.object != nullptr) {
    return LabelsMatch(rules.namespaces, reviewed.object);
  }
  const api::KindPtr kind = admission.core.scheme->FindResource("", "v1", "namespaces");
  const auto entry = kind ? admission.core.store.Latest(KeyFor(*kind, "", ns)) : nullptr;
  if (!entry) return kind ? NotFoundError(*kind, ns) : NoSuchResourceError();
  return rules.namespaces.Matches(entry->attributes.labels);
}

json::Object KindObject(const api::GroupVersionKind& gvk) {
  return {{"group", gvk.group}, {"version", gvk.version}, {"kind", gvk.kind}};
}
json::Object ResourceObject(const api::KindInfo& kind) {
  return {{"group", kind.gvk.group}, {"version", kind.gvk.version}, {"resource", kind.plural}};
}

json::Value UserObject(const api::UserInfo& user) {
  json::Object object;
  if (!user.name.empty()) object["username"] = user.name;
  if (!user.uid.empty()) object["uid"] = user.uid;
  if (!user.groups.empty()) object["groups"] = json::Array(user.groups.begin(), user.groups.end());
  if (!user.extra.empty()) {
    json::Object extra;
    for (const auto& [key, values] : user.extra) {
      extra[key] = json::Array(values.begin(), values.end());
    }
    object["extra"] = std::move(extra);
  }
  return object;
}

Result<json::Value> InVersion(const Admission& admission,
                              const Reviewed& reviewed,
                              const json::Value* object,
                              const api::KindInfo& kind) {
  if (object == nullptr) return json::Value(nullptr);
  json::Value shown = *object;
  if (reviewed.of == nullptr) {
    SWELL_RETURN_IF_ERROR(ConvertObject(admission.core, *admission.call, shown, kind));
  }
  return shown;
}

}  // namespace

RequestRules RequestRulesFrom(const json::Value& value,
                              std::string_view field,
                              std::string_view excluded) {
  RequestRules rules;
  rules.rules = ReadRules(value, field);
  if (!excluded.empty()) rules.excluded = ReadRules(value, excluded);
  rules.namespaces = SelectorOf(json::Find(value, {"namespaceSelector"}));
  rules.objects = SelectorOf(json::Find(value, {"objectSelector"}));
  rules.equivalent = json::GetString(value, {"matchPolicy"}) != "Exact";
  return rules;
}

Result<api::KindPtr> VersionAsked(const RequestRules& rules,
                                  const Admission& admission,
                                  const Reviewed& reviewed,
                                  bool without_rules) {
  const auto in_namespace = NamespaceMatches(rules, admission, reviewed);
  if (in_namespace.ok() && !*in_namespace) return api::KindPtr();
  if (!rules.objects.everything() && !LabelsMatch(rules.objects, reviewed.object) &&
      !LabelsMatch(rules.objects, reviewed.old)) {
    return api::KindPtr();
  }
  if (MatchRules(rules.excluded, rules.equivalent, admission, reviewed.operation)) {
    return api::KindPtr();
  }
  const bool all = without_rules && rules.rules.empty();
  api::KindPtr kind =
      all ? admission.call->kind
          : MatchRules(rules.rules, rules.equivalent, admission, reviewed.operation);
  if (kind && !in_namespace.ok()) return in_namespace.status();
  return kind;
}

// The request of a review, without its uid.
Result<json::Object> MakeRequest(const Admission& admission,
                                 const Reviewed& reviewed,
                                 const api::KindInfo& kind,
                                 bool mutating) {
  const Call& call = *admission.call;
  const std::string& sub = admission.subresource;
  SWELL_ASSIGN_OR_RETURN(json::Value object, InVersion(admission, reviewed, reviewed.object, kind));
  SWELL_ASSIGN_OR_RETURN(json::Value old, InVersion(admission, reviewed, reviewed.old, kind));
  json::Object request;
  request["kind"] = KindObject(reviewed.of == nullptr ? kind.gvk : reviewed.of->gvk);
  request["resource"] = ResourceObject(kind);
  if (!sub.empty()) request["subResource"] = sub;
  request["requestKind"] = KindObject(reviewed.of == nullptr ? call.kind->gvk : reviewed.of->gvk);
  request["requestResource"] = ResourceObject(*call.kind);
  if (!sub.empty()) request["requestSubResource"] = sub;
  // What the server gives a new object comes after the mutating webhooks.
  const bool fresh = mutating && reviewed.operation == "CREATE" && reviewed.of == nullptr;
  const bool unnamed = fresh && !json::GetString(object, {"metadata", "generateName"}).empty() &&
                       json::GetString(object, {"metadata", "name"}) == admission.name &&
                       call.info.name.empty();
  if (fresh) {
    json::Remove(object, {"metadata", "uid"});
    json::Remove(object, {"metadata", "creationTimestamp"});
    json::Remove(object, {"metadata", "generation"});
    if (unnamed) json::Remove(object, {"metadata", "name"});
  }
  if (!admission.name.empty() && !unnamed) request["name"] = admission.name;
  if (!NamespaceOf(admission).empty()) request["namespace"] = NamespaceOf(admission);
  request["operation"] = reviewed.operation;
  request["userInfo"] = UserObject(call.user);
  request["object"] = std::move(object);
  request["oldObject"] = std::move(old);
  request["dryRun"] = admission.dry_run;
  request["options"] = reviewed.options;
  return request;
}

api::CelValue AuthorizerOf(const Admission& admission) {
  api::CelAccessQuestion requested;
  requested.group = admission.call->kind->gvk.group;
  requested.resource = admission.call->kind->plural;
  requested.subresource = admission.subresource;
  requested.ns = NamespaceOf(admission);
  requested.name = admission.name;
  // Asked while the expressions run, which is before the admission ends.
  return api::MakeCelAuthorizer(
      [&core = admission.core, user = admission.call->user](const api::CelAccessQuestion& asked) {
        AccessAttributes attributes{asked.verb,        asked.group, "*",        asked.resource,
                                    asked.subresource, asked.ns,    asked.name, asked.path};
        api::UserInfo account;
        if (!asked.account.empty()) {
          account.name = AccountUserName(asked.account_ns, asked.account);
          account.groups = AccountGroups(asked.account_ns);
        }
        const AccessDecision decision =
            DecideWithReason(core, asked.account.empty() ? user : account, attributes);
        return api::CelAccessAnswer{decision.allowed, decision.reason};
      },
      std::move(requested));
}

}  // namespace swell::apiserver
