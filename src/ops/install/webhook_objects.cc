// What makes an API server ask the webhook of `swell controller`, and what that may do for it.
#include "base/strings.h"
#include "kube/api/crd/definitions.h"
#include "kube/client/client.h"
#include "ops/install/install_objects.h"

namespace swell::ops {
namespace {

using json::Array;
using json::Object;
using json::Value;

// The label of a namespace that has its name; servers before 1.21 do not set it, and ask about
// every namespace.
constexpr std::string_view kNamespaceName = "kubernetes.io/metadata.name";
constexpr std::string_view kRbac = "rbac.authorization.k8s.io";

Value Rule(std::string_view group, std::string_view version, Array resources, Array operations) {
  return Object{{"apiGroups", Array{group}},
                {"apiVersions", Array{version}},
                {"operations", std::move(operations)},
                {"resources", std::move(resources)},
                {"scope", "Namespaced"}};
}

// Pods as they are created. The kinds of jobs, in the order of their definitions, and Crons also as
// they change: a job may name another priority class, and a user who changes the jobs of a Cron
// answers for them.
Array WorkRules() {
  const Array writes{"CREATE", "UPDATE"};
  Array rules{Rule("", "v1", {"pods"}, {"CREATE"})};
  for (const api::Definition& one : api::JobDefinitions()) {
    Value& last = rules.back();
    if (json::GetArray(last, {"apiGroups"}) == Array{one.group}) {
      json::FindMutable(last, {"resources"})->get_array().emplace_back(one.plural);
    } else {
      rules.push_back(Rule(one.group, one.version, {one.plural}, writes));
    }
  }
  const client::Resource& crons = client::resources::kCrons;
  rules.push_back(Rule(crons.group, crons.version, {crons.plural}, writes));
  return rules;
}

Value Hook(const WebhookInstall& install) {
  Object client;
  if (install.url.empty()) {
    client["service"] = Object{
        {"name", kWebhookName}, {"namespace", install.ns}, {"path", "/admit"}, {"port", 443}};
  } else {
    client["url"] = install.url;
  }
  const Value outside = Object{{"key", kNamespaceName},
                               {"operator", "NotIn"},
                               {"values", Array{"kube-system", "kube-node-lease", install.ns}}};
  return Object{{"name", "admission.swell.dev"},
                {"admissionReviewVersions", Array{"v1"}},
                {"clientConfig", std::move(client)},
                // Work continues without it.
                {"failurePolicy", "Ignore"},
                {"matchPolicy", "Equivalent"},
                {"namespaceSelector", Object{{"matchExpressions", Array{outside}}}},
                {"reinvocationPolicy", "IfNeeded"},
                {"rules", WorkRules()},
                {"sideEffects", "None"},
                {"timeoutSeconds", 5}};
}

void AddRights(std::string_view kind, Object metadata, Array rules, std::vector<Value>& out) {
  const std::string version = StrCat(kRbac, "/v1");
  const std::string ns(json::GetString(Value(metadata), {"namespace"}));
  out.push_back(Object{{"apiVersion", version},
                       {"kind", kind},
                       {"metadata", metadata},
                       {"rules", std::move(rules)}});
  out.push_back(
      Object{{"apiVersion", version},
             {"kind", StrCat(kind, "Binding")},
             {"metadata", metadata},
             {"roleRef", Object{{"apiGroup", kRbac}, {"kind", kind}, {"name", kWebhookName}}}});
}

}  // namespace

std::vector<Value> WebhookObjects(const WebhookInstall& install) {
  std::vector<Value> out;
  AddRights(
      "Role", {{"name", kWebhookName}, {"namespace", install.ns}},
      {Object{{"apiGroups", Array{""}},
              {"resources", Array{"secrets"}},
              {"resourceNames", Array{kWebhookSecret}},
              {"verbs", Array{"get", "update"}}},
       // What is made has no name yet.
       Object{
           {"apiGroups", Array{""}}, {"resources", Array{"secrets"}}, {"verbs", Array{"create"}}}},
      out);
  AddRights("ClusterRole", {{"name", kWebhookName}},
            {Object{{"apiGroups", Array{"admissionregistration.k8s.io"}},
                    {"resources", Array{"mutatingwebhookconfigurations"}},
                    {"resourceNames", Array{kWebhookName}},
                    {"verbs", Array{"get", "patch"}}}},
            out);
  for (Value& object : out) {
    if (json::Find(object, {"roleRef"}) == nullptr) continue;
    json::Set(
        object, {"subjects"},
        Array{Object{
            {"kind", "ServiceAccount"}, {"name", "swell-controller"}, {"namespace", install.ns}}});
  }
  if (install.url.empty()) {
    out.push_back(
        Object{{"apiVersion", "v1"},
               {"kind", "Service"},
               {"metadata", Object{{"name", kWebhookName}, {"namespace", install.ns}}},
               {"spec", Object{{"selector", Object{{"app.kubernetes.io/name", "swell"},
                                                   {"app.kubernetes.io/component", "controller"}}},
                               {"ports", Array{Object{{"name", "webhook"},
                                                      {"port", 443},
                                                      {"protocol", "TCP"},
                                                      {"targetPort", kWebhookPort}}}}}}});
  }
  out.push_back(Object{{"apiVersion", "admissionregistration.k8s.io/v1"},
                       {"kind", "MutatingWebhookConfiguration"},
                       {"metadata", Object{{"name", kWebhookName}}},
                       {"webhooks", Array{Hook(install)}}});
  for (Value& object : out) MarkAsOurs(object);
  return out;
}

}  // namespace swell::ops
