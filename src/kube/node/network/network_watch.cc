#include "kube/node/network/network_watch.h"

#include <utility>
#include <vector>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"

namespace swell::node {
namespace {

constexpr Duration kFlushInterval = std::chrono::milliseconds(50);

std::vector<json::SharedValue> ObjectsOf(const client::Informer& informer) {
  std::vector<json::SharedValue> out;
  for (const auto& [key, object] : informer.objects()) out.push_back(object);
  return out;
}

// Rules depend on nothing else of a pod that can change.
bool SameForRules(const json::Value& a, const json::Value& b) {
  return json::GetString(a, {"status", "podIP"}) == json::GetString(b, {"status", "podIP"}) &&
         api::IsActive(a) == api::IsActive(b) &&
         json::Print(json::GetObject(a, {"metadata", "labels"})) ==
             json::Print(json::GetObject(b, {"metadata", "labels"}));
}

}  // namespace

NetworkWatch::NetworkWatch(Executor& executor,
                           Clock& clock,
                           const std::shared_ptr<api::RestHandler>& server,
                           const api::UserInfo& user,
                           EnforceRules enforce,
                           std::set<std::string, std::less<>> nodes)
    : executor_(executor),
      server_(server),
      user_(user),
      enforce_(std::move(enforce)),
      nodes_(std::move(nodes)),
      events_(executor, clock, server, user, "network", 31),
      policies_(executor, server, user, client::resources::kNetworkPolicies, {}, 32) {
  auto on_object = [this](const json::SharedValue&) { OnPolicy(); };
  policies_.AddHandlers({on_object,
                         [this](const json::SharedValue&, const json::SharedValue&) { OnPolicy(); },
                         on_object});
}

void NetworkWatch::Start() {
  policies_.Start();
  // Rules of an earlier run may be left that nobody wants now.
  policies_.WhenSynced(scope_.Wrap([this] { OnChange(); }));
}

void NetworkWatch::OnPolicy() {
  if (!pods_ && enforce_) {
    pods_ = std::make_unique<client::Informer>(
        executor_, server_, user_, client::resources::kPods,
        client::InformerOptions{
            .ns = "", .label_selector = "", .field_selector = "spec.nodeName!="},
        33);
    namespaces_ = std::make_unique<client::Informer>(
        executor_, server_, user_, client::resources::kNamespaces, client::InformerOptions{}, 34);
    auto on_object = [this](const json::SharedValue&) { OnChange(); };
    pods_->AddHandlers({on_object,
                        [this](const json::SharedValue& before, const json::SharedValue& pod) {
                          if (!SameForRules(*before, *pod)) OnChange();
                        },
                        on_object});
    namespaces_->AddHandlers(
        {on_object, [this](const json::SharedValue&, const json::SharedValue&) { OnChange(); },
         on_object});
    pods_->Start();
    namespaces_->Start();
    pods_->WhenSynced(scope_.Wrap([this] { OnChange(); }));
    namespaces_->WhenSynced(scope_.Wrap([this] { OnChange(); }));
  }
  OnChange();
}

std::vector<json::SharedValue> NetworkWatch::OwnPods() const {
  std::vector<json::SharedValue> pods = ObjectsOf(*pods_);
  if (nodes_.empty()) return pods;
  std::erase_if(pods, [this](const json::SharedValue& pod) {
    return nodes_.find(api::NodeName(*pod)) == nodes_.end();
  });
  return pods;
}

void NetworkWatch::OnChange() {
  dirty_ = true;
  if (timer_.pending() || under_way_) return;
  timer_.Start(Duration::zero(), [this] { Flush(); });
}

void NetworkWatch::Flush() {
  // What is not read yet calls again.
  if (!dirty_ || under_way_ || !policies_.synced()) return;
  if (pods_ && !(pods_->synced() && namespaces_->synced())) return;
  dirty_ = false;
  if (!enforce_) {
    return OnEnforced(Status(Code::kUnavailable,
                             "pods have no networks of their own on this machine: that needs root "
                             "and network namespaces"));
  }
  under_way_ = true;
  auto rules = std::make_shared<NetworkRules>();
  if (pods_) {
    *rules = MakeNetworkRules(ObjectsOf(policies_), OwnPods(), ObjectsOf(*namespaces_));
  }
  enforce_(std::move(rules), scope_.Wrap([this](const Status& status) {
    under_way_ = false;
    OnEnforced(status);
    if (dirty_) timer_.Start(kFlushInterval, [this] { Flush(); });
  }));
}

void NetworkWatch::OnEnforced(const Status& status) {
  if (status.ok()) return told_.clear();
  for (const auto& [key, policy] : policies_.objects()) {
    std::string& told = told_[std::string(api::Uid(*policy))];
    if (told == status.message()) continue;
    told = status.message();
    const json::Array& owners = json::GetArray(*policy, {"metadata", "ownerReferences"});
    if (owners.size() == 1 && json::GetString(owners[0], {"kind"}) == "Project") {
      const json::Value project =
          json::Object{{"apiVersion", "swell.dev/v1"},
                       {"kind", "Project"},
                       {"metadata", json::Object{{"name", json::GetString(owners[0], {"name"})},
                                                 {"uid", json::GetString(owners[0], {"uid"})}}}};
      events_.Record(project, "Warning", "NotIsolated",
                     StrCat("pods of other projects reach this project's pods: ", told));
    }
    events_.Record(*policy, "Warning", "NotEnforced",
                   StrCat("this NetworkPolicy has no effect: ", told));
  }
}

}  // namespace swell::node
