#include "projects/job_accounts.h"

#include "base/strings.h"
#include "kube/api/meta/account_keys.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/project.h"
#include "kube/controllers/queue.h"
#include "kube/controllers/workload.h"

namespace swell::projects {
namespace {

constexpr const char* kRound = "round";
constexpr Duration kDelay = std::chrono::milliseconds(100);
constexpr std::string_view kRbac = "rbac.authorization.k8s.io";
constexpr std::string_view kDefault = "default";
const client::Resource kKinds[] = {
    client::resources::kServiceAccounts,
    {std::string(kRbac), "v1", "rolebindings", true},
    {std::string(kRbac), "v1", "clusterrolebindings", false},
};

json::Value Metadata(std::string_view name, std::string_view ns, const json::Value* owner) {
  json::Object metadata{{"name", name},
                        {"labels", json::Object{{api::keys::kSlurmAccount, "true"},
                                                {"app.kubernetes.io/managed-by", "swell"}}}};
  if (!ns.empty()) metadata["namespace"] = ns;
  if (owner != nullptr) {
    metadata["ownerReferences"] = json::Array{api::MakeOwnerReference(*owner)};
  }
  return metadata;
}

json::Value Binding(std::string_view kind,
                    json::Value metadata,
                    std::string_view role,
                    std::string_view ns) {
  return json::Object{
      {"apiVersion", StrCat(kRbac, "/v1")},
      {"kind", kind},
      {"metadata", std::move(metadata)},
      {"roleRef", json::Object{{"apiGroup", kRbac}, {"kind", "ClusterRole"}, {"name", role}}},
      {"subjects",
       json::Array{json::Object{
           {"kind", "ServiceAccount"}, {"name", api::keys::kJobAccount}, {"namespace", ns}}}}};
}

// Both have it alike, or neither has it.
bool SameField(const json::Value& a, const json::Value& b, std::string_view field) {
  const json::Value* one = json::Find(a, {field});
  const json::Value* other = json::Find(b, {field});
  return one == nullptr || other == nullptr ? one == other : json::Equal(*one, *other);
}

}  // namespace

JobAccounts::JobAccounts(controllers::Context context)
    : context_(std::move(context)),
      projects_(context_.informers.Of(client::resources::kProjects)),
      namespaces_(context_.informers.Of(client::resources::kNamespaces)),
      queue_(controllers::MakeQueue(context_, "job-accounts", 1, this, &JobAccounts::Reconcile)),
      client_(context_.executor, context_.server, context_.user, "job-accounts") {
  auto look = [this](const json::SharedValue&) { queue_.AddAfter(kRound, kDelay); };
  controllers::Follow(projects_, look, look);
  namespaces_.AddHandlers({.on_add = look, .on_update = {}, .on_delete = {}});
  for (const client::Resource& kind : kKinds) {
    known_.push_back(std::make_unique<client::Informer>(
        context_.executor, context_.server, context_.user, kind,
        client::InformerOptions{.label_selector = std::string(api::keys::kSlurmAccount)},
        context_.random.Next()));
    controllers::Follow(*known_.back(), look, look);
    known_.back()->Start();
  }
}

std::vector<JobAccounts::Objects> JobAccounts::Wanted() const {
  std::vector<Objects> wanted(std::size(kKinds));
  const auto want = [&](const std::string& ns, const json::Value* project) {
    const json::SharedValue space = namespaces_.Get(ns);
    if (!space || api::IsDeleting(*space)) return;
    if (project != nullptr && api::Annotation(*project, api::keys::kSlurmAccount) == "none") return;
    wanted[0][StrCat(ns, "/", api::keys::kJobAccount)] =
        json::Object{{"apiVersion", "v1"},
                     {"kind", "ServiceAccount"},
                     {"metadata", Metadata(api::keys::kJobAccount, ns, project)}};
    wanted[1][StrCat(ns, "/", api::keys::kJobAccountRole)] =
        Binding("RoleBinding", Metadata(api::keys::kJobAccountRole, ns, project),
                api::keys::kJobAccountRole, ns);
    const std::string name = StrCat(api::keys::kJobAccountRole, ":", ns);
    wanted[2][name] =
        Binding("ClusterRoleBinding", Metadata(name, "", project), "cluster-viewer", ns);
  };
  std::vector<const json::Value*> all;
  for (const auto& [name, project] : projects_.objects()) all.push_back(project.get());
  const auto by_namespace = api::ProjectsByNamespace(all);
  for (const auto& [ns, name] : by_namespace) want(ns, projects_.Get(name).get());
  if (!by_namespace.contains(kDefault)) want(std::string(kDefault), nullptr);
  return wanted;
}

void JobAccounts::Reconcile(client::WorkQueue::Done done) {
  for (const auto& known : known_) {
    if (!known->synced()) return done(controllers::kNotSynced);
  }
  std::vector<Objects> wanted = Wanted();
  auto writes = controllers::MakeBatch(std::move(done));
  for (size_t i = 0; i < known_.size(); ++i) Apply(*known_[i], std::move(wanted[i]), writes);
  writes->Close();
}

void JobAccounts::Apply(const client::Informer& known,
                        Objects wanted,
                        const std::shared_ptr<controllers::WriteBatch>& writes) {
  const client::Resource& kind = known.resource();
  for (const auto& [key, object] : known.objects()) {
    const auto want = wanted.find(key);
    const std::string ns(api::Namespace(*object));
    // A binding's role cannot be changed: it is made anew when it is gone.
    if (want == wanted.end() || !SameField(want->second, *object, "roleRef")) {
      client_.Delete(kind, ns, api::Name(*object),
                     {.precondition_uid = std::string(api::Uid(*object))}, writes->Track());
    } else if (!SameField(want->second, *object, "subjects")) {
      const json::Value patch = json::Object{{"metadata", json::Object{{"uid", api::Uid(*object)}}},
                                             {"subjects", *json::Find(want->second, {"subjects"})}};
      client_.Patch(kind, ns, api::Name(*object), client::PatchType::kMerge, patch,
                    writes->Track());
    }
    if (want != wanted.end()) wanted.erase(want);
  }
  // One of that name which somebody else has made stays as it is.
  for (const auto& [key, object] : wanted) {
    client_.Create(kind, api::Namespace(object), object, writes->Track());
  }
}

}  // namespace swell::projects
