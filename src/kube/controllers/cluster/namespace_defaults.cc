#include "kube/controllers/cluster/namespace_defaults.h"

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/queue.h"
#include "kube/controllers/workload.h"
#include "kube/controllers/write_batch.h"

namespace swell::controllers {
namespace {

constexpr std::string_view kRootCa = "kube-root-ca.crt";
constexpr std::string_view kDescription =
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "
    "endpoints such as the internal service IP or kubernetes.default.svc. No other usage is "
    "guaranteed across distributions of Kubernetes clusters.";

}  // namespace

NamespaceDefaults::NamespaceDefaults(Context context, std::string ca_pem)
    : context_(context),
      ca_pem_(std::move(ca_pem)),
      namespaces_(context_.informers.Of(client::resources::kNamespaces)),
      accounts_(context_.informers.Of(client::resources::kServiceAccounts)),
      config_maps_(context_.executor,
                   context_.server,
                   context_.user,
                   client::resources::kConfigMaps,
                   {.field_selector = StrCat("metadata.name=", kRootCa)},
                   context_.random.Next()),
      queue_(MakeQueue(context_, "namespace-defaults", 4, this, &NamespaceDefaults::Reconcile)),
      client_(context_.executor, context_.server, context_.user, "namespace-defaults") {
  auto ns = [this](const json::SharedValue& it) { queue_.Add(std::string(api::Name(*it))); };
  auto inside = [this](const json::SharedValue& it) {
    queue_.Add(std::string(api::Namespace(*it)));
  };
  namespaces_.AddHandlers({.on_add = ns, .on_update = {}, .on_delete = {}});
  accounts_.AddHandlers({.on_add = {}, .on_update = {}, .on_delete = inside});
  if (ca_pem_.empty()) return;
  Follow(config_maps_, inside, inside);
  config_maps_.Start();
}

void NamespaceDefaults::Reconcile(const std::string& name, client::WorkQueue::Done done) {
  if (!ca_pem_.empty() && !config_maps_.synced()) return done(kNotSynced);
  const json::SharedValue ns = namespaces_.Get(name);
  if (!ns || api::IsDeleting(*ns)) return done(Duration::zero());
  auto writes = MakeBatch(std::move(done));
  if (!accounts_.Get(StrCat(name, "/default"))) {
    const json::Value account =
        json::Object{{"metadata", json::Object{{"name", "default"}, {"namespace", name}}}};
    client_.Create(client::resources::kServiceAccounts, name, account, writes->Track());
  }
  if (!ca_pem_.empty()) {
    const json::SharedValue known = config_maps_.Get(StrCat(name, "/", kRootCa));
    json::Value data = json::Object{{"ca.crt", ca_pem_}};
    if (!known) {
      const json::Value map = json::Object{
          {"metadata", json::Object{{"name", kRootCa},
                                    {"namespace", name},
                                    {"annotations",
                                     json::Object{{"kubernetes.io/description", kDescription}}}}},
          {"data", std::move(data)}};
      client_.Create(client::resources::kConfigMaps, name, map, writes->Track());
    } else if (json::GetString(*known, {"data", "ca.crt"}) != ca_pem_) {
      client_.Patch(client::resources::kConfigMaps, name, kRootCa, client::PatchType::kMerge,
                    json::Object{{"data", std::move(data)}}, writes->Track());
    }
  }
  writes->Close();
}

}  // namespace swell::controllers
