// What `swell install` puts into a cluster: CustomResourceDefinitions, priority classes, a
// namespace, service accounts and their rights. In the order in which they can be made.
// - Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "json/value.h"

namespace swell::ops {

// Marks what install made: uninstall removes nothing else.
inline constexpr std::string_view kManagedByLabel = "app.kubernetes.io/managed-by";
inline constexpr std::string_view kManagedBy = "swell";
// Marks what is Swell's, also where Helm installed it and wrote its own name over the other label.
inline constexpr std::string_view kPartOfLabel = "app.kubernetes.io/part-of";
inline constexpr std::string_view kPartOf = "swell";
void MarkAsOurs(json::Value& object);

std::vector<json::Value> InstallObjects(const std::string& ns);

// The Service and the configuration of the admission webhook, and the controller's port for it.
inline constexpr char kWebhookName[] = "swell-webhook";
inline constexpr char kWebhookSecret[] = "swell-webhook-ca";
inline constexpr int kWebhookPort = 9443;

// The Service of the pages, and the controller's port for them.
inline constexpr char kPagesName[] = "swell-pages";
inline constexpr int kPagesPort = 10443;
// The port for what pods serve. The Service has the same number, since the pages name it to
// browsers.
inline constexpr int kProgramsPort = 10444;

// `swell controller` as a Deployment, with what belongs to it: a Service for its metrics, a
// PodDisruptionBudget, a NetworkPolicy.
struct ControllerDeployment {
  std::string ns = "swell-system";
  std::string image;
  int64_t replicas = 2;
  bool webhook = false;   // it answers the API server
  bool pages = false;     // it serves the pages
  bool programs = false;  // and what pods serve, for the pages
  bool policy_v1 = true;  // else policy/v1beta1: before Kubernetes 1.21
};
std::vector<json::Value> ControllerObjects(const ControllerDeployment& deployment);

// What makes the API server ask the admission webhook of `swell controller`: the configuration, a
// Service unless there is an URL, and the controller's rights to be trusted.
struct WebhookInstall {
  std::string ns = "swell-system";
  std::string url;  // of a controller outside of the cluster: https://HOST:PORT/admit
};
std::vector<json::Value> WebhookObjects(const WebhookInstall& install);

}  // namespace swell::ops
