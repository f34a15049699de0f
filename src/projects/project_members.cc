#include "projects/project_members.h"

#include <vector>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/project.h"
#include "kube/controllers/queue.h"
#include "kube/controllers/workload.h"
#include "kube/controllers/write_batch.h"

namespace swell::projects {
namespace {

constexpr const char* kRound = "round";
constexpr Duration kDelay = std::chrono::milliseconds(100);
constexpr std::string_view kRbac = "rbac.authorization.k8s.io";
const client::Resource kRoleBindings{std::string(kRbac), "v1", "rolebindings", true};

json::Value SubjectOf(const api::ProjectMember& member, std::string_view ns) {
  json::Object subject{{"kind", member.kind}, {"name", member.name}};
  if (member.kind == "ServiceAccount") {
    subject["namespace"] = member.ns.empty() ? ns : member.ns;
  } else {
    subject["apiGroup"] = kRbac;
  }
  return subject;
}

// The project that owns it; empty: none does.
std::string OwnerOf(const json::Value& binding) {
  const auto owner = api::ControllerOf(binding);
  return owner && owner->kind == "Project" ? owner->uid : "";
}

bool SameField(const json::Value& a, const json::Value& b, std::string_view field) {
  const json::Value* one = json::Find(a, {field});
  const json::Value* other = json::Find(b, {field});
  return one != nullptr && other != nullptr && json::Equal(*one, *other);
}

}  // namespace

ProjectMembers::ProjectMembers(controllers::Context context)
    : context_(context),
      projects_(context_.informers.Of(client::resources::kProjects)),
      namespaces_(context_.informers.Of(client::resources::kNamespaces)),
      bindings_(context_.executor,
                context_.server,
                context_.user,
                kRoleBindings,
                {.label_selector = std::string(api::keys::kProject)},
                context_.random.Next()),
      events_(controllers::MakeRecorder(context_, "project-members")),
      queue_(
          controllers::MakeQueue(context_, "project-members", 1, this, &ProjectMembers::Reconcile)),
      client_(context_.executor, context_.server, context_.user, "project-members") {
  auto look = [this](const json::SharedValue&) { queue_.AddAfter(kRound, kDelay); };
  controllers::Follow(projects_, look, look);
  controllers::Follow(bindings_, look, look);
  namespaces_.AddHandlers({.on_add = look, .on_update = {}, .on_delete = {}});
  bindings_.Start();
}

ProjectMembers::Bindings ProjectMembers::Wanted() const {
  std::vector<const json::Value*> all;
  for (const auto& [name, project] : projects_.objects()) all.push_back(project.get());
  Bindings wanted;
  for (const auto& [ns, name] : api::ProjectsByNamespace(all)) {
    const json::SharedValue space = namespaces_.Get(ns);
    if (space && !api::IsDeleting(*space)) AddBindings(*projects_.Get(name), wanted);
  }
  return wanted;
}

void ProjectMembers::AddBindings(const json::Value& project, Bindings& to) const {
  const std::string_view ns = api::NamespaceOfProject(project);
  std::map<std::string_view, json::Array> by_role;
  for (const json::Value& document : api::MembersOf(project)) {
    const api::ProjectMember member(document);
    by_role[member.ClusterRole()].push_back(SubjectOf(member, ns));
  }
  for (auto& [role, subjects] : by_role) {
    const std::string name = StrCat("swell:members:", role);
    json::Object metadata{{"name", name}, {"namespace", ns}};
    metadata["labels"] = json::Object{{api::keys::kProject, api::Name(project)}};
    metadata["ownerReferences"] = json::Array{api::MakeOwnerReference(project)};
    to[StrCat(ns, "/", name)] = json::Object{
        {"apiVersion", StrCat(kRbac, "/v1")},
        {"kind", "RoleBinding"},
        {"metadata", std::move(metadata)},
        {"roleRef", json::Object{{"apiGroup", kRbac}, {"kind", "ClusterRole"}, {"name", role}}},
        {"subjects", std::move(subjects)}};
  }
}

void ProjectMembers::Reconcile(client::WorkQueue::Done done) {
  if (!bindings_.synced()) return done(controllers::kNotSynced);
  Bindings wanted = Wanted();
  auto writes = controllers::MakeBatch(std::move(done));
  for (const auto& [key, known] : bindings_.objects()) {
    if (OwnerOf(*known).empty()) continue;
    auto want = wanted.find(key);
    const std::string ns(api::Namespace(*known));
    // A binding's role cannot be changed: it is made anew when it is gone.
    const bool keep = want != wanted.end() && SameField(want->second, *known, "roleRef") &&
                      OwnerOf(want->second) == OwnerOf(*known);
    if (!keep) {
      client_.Delete(kRoleBindings, ns, api::Name(*known),
                     {.precondition_uid = std::string(api::Uid(*known))}, writes->Track());
    } else if (!SameField(want->second, *known, "subjects")) {
      json::Value patch = json::Object{{"metadata", json::Object{{"uid", api::Uid(*known)}}},
                                       {"subjects", *json::Find(want->second, {"subjects"})}};
      client_.Patch(kRoleBindings, ns, api::Name(*known), client::PatchType::kMerge, patch,
                    writes->Track());
    }
    if (want != wanted.end()) wanted.erase(want);
  }
  for (const auto& [key, value] : wanted) {
    const json::Value& binding = value;  // clang 14 captures no structured bindings
    const std::string ns(api::Namespace(binding));
    client_.Create(kRoleBindings, ns, binding,
                   writes->Track([this, ns, binding](const Result<json::SharedValue>& made) {
                     if (made.status().code() != Code::kAlreadyExists) return;
                     // Somebody else's of that name stays as it is.
                     const json::SharedValue project =
                         projects_.Get(api::Label(binding, api::keys::kProject));
                     if (!project) return;
                     events_.Record(*project, "Warning", "MembersNotBound",
                                    StrCat("RoleBinding ", api::KeyOf(binding),
                                           " is not the project's own: its members have no role "
                                           "by it"));
                   }));
  }
  writes->Close();
}

}  // namespace swell::projects
