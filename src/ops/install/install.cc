// swell install, uninstall: what Swell needs in a Kubernetes cluster. Both can be repeated.
#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/strings.h"
#include "cli/session.h"
#include "json/yaml.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/schema/scheme.h"
#include "kube/client/optimistic_update.h"
#include "ops/commands.h"
#include "ops/install/install_objects.h"
#include "ops/remote_process.h"

namespace swell::ops {
namespace {

constexpr Duration kEstablishedLimit = std::chrono::minutes(2);
constexpr Duration kGoneLimit = std::chrono::minutes(2);

struct InstalledKind {
  std::string_view kind;
  client::Resource resource;
};

const InstalledKind kKinds[] = {
    {"CustomResourceDefinition", client::resources::kCrds},
    {"PriorityClass", client::resources::kPriorityClasses},
    {"Namespace", client::resources::kNamespaces},
    {"ServiceAccount", client::resources::kServiceAccounts},
    {"ClusterRole", {"rbac.authorization.k8s.io", "v1", "clusterroles", false}},
    {"ClusterRoleBinding", {"rbac.authorization.k8s.io", "v1", "clusterrolebindings", false}},
    {"Role", {"rbac.authorization.k8s.io", "v1", "roles", true}},
    {"RoleBinding", {"rbac.authorization.k8s.io", "v1", "rolebindings", true}},
    {"Deployment", {"apps", "v1", "deployments", true}},
    {"Service", client::resources::kServices},
    {"MutatingWebhookConfiguration",
     {"admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", false}},
    {"PodDisruptionBudget", {"policy", "v1", "poddisruptionbudgets", true}},
    {"NetworkPolicy", {"networking.k8s.io", "v1", "networkpolicies", true}},
};

client::Resource ResourceOf(const json::Value& object) {
  std::string_view kind = api::KindOf(object);
  const InstalledKind* found = kKinds;
  while (found->kind != kind) ++found;  // install makes no other kinds
  client::Resource resource = found->resource;
  resource.version = api::ParseGvk(api::ApiVersionOf(object), kind).version;
  return resource;
}

// "clusterrole.rbac.authorization.k8s.io/swell-agent", as kubectl names things.
std::string WordsFor(const json::Value& object) {
  const client::Resource resource = ResourceOf(object);
  std::string name = ToLower(api::KindOf(object));
  if (!resource.group.empty()) name += StrCat(".", resource.group);
  return StrCat(name, "/", api::Name(object));
}

bool IsOurs(const json::Value& object) { return api::Label(object, kManagedByLabel) == kManagedBy; }

Result<json::SharedValue> GetObject(RemoteProcess& process, const json::Value& object) {
  return process.Await([&](client::ObjectCallback done) {
    process.client().Get(ResourceOf(object), api::Namespace(object), api::Name(object),
                         std::move(done));
  });
}

// As GetObject, but waits until an object that is being deleted is gone. Its end would also delete
// what is created in it meanwhile. An uninstall does not wait for the namespace and definitions.
Result<json::SharedValue> GetAfterDeletion(RemoteProcess& process, const json::Value& object) {
  const SteadyTime start = process.clock().Steady();
  for (bool told = false;; process.Pause(std::chrono::milliseconds(200))) {
    auto now = GetObject(process, object);
    if (!now.ok() || !api::IsDeleting(**now)) return now;
    if (!std::exchange(told, true)) {
      std::printf("%s is being deleted; waiting until it is gone\n", WordsFor(object).c_str());
      std::fflush(stdout);
    }
    if (process.clock().Steady() - start < kGoneLimit) continue;
    return Status(
        Code::kTimeout,
        StrCat(WordsFor(object), " is still being deleted after ",
               kGoneLimit.count() / 1'000'000'000,
               " s; its metadata.finalizers and status.conditions show why. Run this command "
               "again when it is gone"));
  }
}

// Keeps objects that existed before and are not ours; a priority class cannot be changed anyway.
// Applies to the version that was read: a new resourceVersion then means that we changed something,
// not that a controller wrote a status in between.
Status InstallOne(RemoteProcess& process, const json::Value& object) {
  const std::string words = WordsFor(object);
  auto look = [&]() -> Result<json::SharedValue> {
    auto before = GetAfterDeletion(process, object);
    if (before.status().code() == Code::kNotFound) return json::SharedValue();
    return before;
  };
  auto write = [&](const json::SharedValue& before) -> Result<json::SharedValue> {
    if (before && !IsOurs(*before)) {
      std::printf("%s kept: it existed before and does not belong to Swell\n", words.c_str());
      return before;
    }
    json::Value wanted = object;
    if (before) client::SayVersionSeen(wanted, *before);
    auto after = process.Await([&](client::ObjectCallback done) {
      process.client().Patch(ResourceOf(object), api::Namespace(object), api::Name(object),
                             client::PatchType::kApply, wanted, std::move(done));
    });
    if (!after.ok()) return after.status().WithContext(words);
    const char* outcome = "created";
    if (before) {
      const bool same = api::ResourceVersion(*before) == api::ResourceVersion(**after);
      outcome = same ? "unchanged" : "configured";
    }
    std::printf("%s %s\n", words.c_str(), outcome);
    return after;
  };
  return client::UpdateWithRetry(look, write).status();
}

// A kind can be used once the server has established its definition.
Status WaitEstablished(RemoteProcess& process) {
  SteadyTime start = process.clock().Steady();
  for (const json::Value& crd : api::SwellCrds()) {
    for (;;) {
      SWELL_ASSIGN_OR_RETURN(json::SharedValue now, GetObject(process, crd));
      const std::optional<api::Condition> established = api::FindCondition(*now, "Established");
      if (established && established->IsTrue()) break;
      if (process.clock().Steady() - start > kEstablishedLimit) {
        return Status(Code::kTimeout,
                      StrCat(WordsFor(crd), " is not established; kubectl describe shows why"));
      }
      process.Pause(std::chrono::milliseconds(100));
    }
  }
  return Status::Ok();
}

Status Install(const RemoteFlags& flags, const std::string& ns) {
  SWELL_ASSIGN_OR_RETURN(auto process, RemoteProcess::Connect(flags, {}));
  for (const json::Value& object : InstallObjects(ns)) {
    SWELL_RETURN_IF_ERROR(InstallOne(*process, object));
  }
  return WaitEstablished(*process);
}

// With the controller as a Deployment, created last.
Status InstallController(const RemoteFlags& flags, ControllerDeployment deployment) {
  SWELL_RETURN_IF_ERROR(Install(flags, deployment.ns));
  SWELL_ASSIGN_OR_RETURN(auto process, RemoteProcess::Connect(flags, {}));
  SWELL_ASSIGN_OR_RETURN(deployment.policy_v1, process->Serves("policy", "v1"));
  for (const json::Value& object : ControllerObjects(deployment)) {
    SWELL_RETURN_IF_ERROR(InstallOne(*process, object));
  }
  return Status::Ok();
}

Status InstallWebhook(const RemoteFlags& flags, const WebhookInstall& webhook) {
  SWELL_ASSIGN_OR_RETURN(auto process, RemoteProcess::Connect(flags, {}));
  for (const json::Value& object : WebhookObjects(webhook)) {
    SWELL_RETURN_IF_ERROR(InstallOne(*process, object));
  }
  return Status::Ok();
}

// Our custom kinds that have objects, which would be deleted with the definition.
Result<std::vector<std::string>> RemainingObjects(RemoteProcess& process) {
  std::vector<std::string> remaining;
  for (const json::Value& crd : api::SwellCrds()) {
    auto defined = GetObject(process, crd);
    if (!defined.ok() || !IsOurs(**defined)) continue;
    std::string plural(json::GetString(crd, {"spec", "names", "plural"}));
    client::Resource resource{std::string(json::GetString(crd, {"spec", "group"})), "", plural,
                              true};
    resource.version = json::GetString(json::GetArray(crd, {"spec", "versions"})[0], {"name"});
    auto answer = process.Await([&](const client::ObjectCallback& done) {
      process.client().List(resource, "", {.limit = 1}, [done](Result<client::ObjectList> list) {
        if (!list.ok()) return done(list.status());
        size_t at_least = list->items.size();
        done(std::make_shared<const json::Value>(static_cast<int64_t>(at_least)));
      });
    });
    if (!answer.ok()) {
      if (answer.status().code() == Code::kNotFound) continue;
      return answer.status();
    }
    if ((*answer)->as_int64() > 0) remaining.push_back(std::string(api::Name(crd)));
  }
  return remaining;
}

Result<json::Array> Projects(RemoteProcess& process) {
  auto listed = process.Await([&](const client::ObjectCallback& done) {
    process.client().List(client::resources::kProjects, "", {},
                          [done](Result<client::ObjectList> list) {
                            json::Array projects;
                            if (list.ok()) {
                              for (const auto& item : list->items) projects.push_back(*item);
                            }
                            done(std::make_shared<const json::Value>(std::move(projects)));
                          });
  });
  if (!listed.ok()) return listed.status();
  return (*listed)->get_array();
}

Status Remove(RemoteProcess& process, const client::Resource& resource, const json::Value& object) {
  auto gone = process.Await([&](client::ObjectCallback done) {
    process.client().Delete(resource, api::Namespace(object), api::Name(object), {},
                            std::move(done));
  });
  return gone.ok() || gone.status().code() == Code::kNotFound ? Status::Ok() : gone.status();
}

// Deletes the projects and then removes the finalizer that protects projects in use: no controller
// is left to do so. A controller that still runs would restore it on a project that is not deleted.
Status ReleaseProjects(RemoteProcess& process) {
  SWELL_ASSIGN_OR_RETURN(const json::Array all, Projects(process));
  for (const json::Value& project : all) {
    SWELL_RETURN_IF_ERROR(Remove(process, client::resources::kProjects, project));
  }
  SWELL_ASSIGN_OR_RETURN(const json::Array left, Projects(process));
  for (const json::Value& project : left) {
    json::Array kept = api::Finalizers(project);
    auto guards = std::remove(kept.begin(), kept.end(), json::Value(api::keys::kProjectInUse));
    if (guards == kept.end()) continue;
    kept.erase(guards, kept.end());
    json::Value patch = json::Object{{"metadata", json::Object{{"finalizers", std::move(kept)}}}};
    auto lifted = process.Await([&](client::ObjectCallback done) {
      process.client().Patch(client::resources::kProjects, "", api::Name(project),
                             client::PatchType::kMerge, patch, std::move(done));
    });
    if (!lifted.ok() && lifted.status().code() != Code::kNotFound) return lifted.status();
  }
  return Status::Ok();
}

Status Uninstall(const RemoteFlags& flags, const std::string& ns, bool force) {
  SWELL_ASSIGN_OR_RETURN(auto process, RemoteProcess::Connect(flags, {}));
  if (!force) {
    SWELL_ASSIGN_OR_RETURN(auto remaining, RemainingObjects(*process));
    if (!remaining.empty()) {
      return Status(
          Code::kConflict,
          StrCat("objects of these kinds still exist and would be deleted with their definitions: ",
                 Join(remaining, ", "), ". Delete them first, or use --force"));
    }
  }
  if (force) SWELL_RETURN_IF_ERROR(ReleaseProjects(*process));
  std::vector<json::Value> objects = InstallObjects(ns);
  SWELL_ASSIGN_OR_RETURN(const bool policy_v1, process->Serves("policy", "v1"));
  for (json::Value& object : ControllerObjects({.ns = ns, .policy_v1 = policy_v1})) {
    objects.push_back(std::move(object));
  }
  for (json::Value& object : WebhookObjects({.ns = ns})) objects.push_back(std::move(object));
  for (auto it = objects.rbegin(); it != objects.rend(); ++it) {
    auto found = GetObject(*process, *it);
    if (!found.ok()) {
      if (found.status().code() == Code::kNotFound) continue;
      return found.status();
    }
    if (!IsOurs(**found) || api::IsDeleting(**found)) continue;
    SWELL_RETURN_IF_ERROR(Remove(*process, ResourceOf(*it), *it));
    std::printf("%s deleted\n", WordsFor(*it).c_str());
  }
  return Status::Ok();
}

void AddNamespace(cli::Flags& flags, std::string& ns) {
  flags.Text("--namespace", &ns, "NAME", "namespace of Swell's own objects (default swell-system)");
}

// [HOST[:PORT]/]NAME[/NAME…][:TAG][@DIGEST]
bool IsImage(std::string_view image) {
  auto all_of = [](std::string_view text, std::string_view more) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [more](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
             more.find(c) != std::string_view::npos;
    });
  };
  constexpr std::string_view kUpper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  const size_t at = image.find('@');
  if (at != std::string_view::npos) {
    const std::string_view digest = image.substr(at + 1);
    const size_t colon = digest.find(':');
    if (colon == std::string_view::npos || colon == 0 || !all_of(digest.substr(colon + 1), "")) {
      return false;
    }
    image = image.substr(0, at);
  }
  const size_t slash = image.rfind('/');
  const size_t tag = image.find(':', slash == std::string_view::npos ? 0 : slash);
  if (tag != std::string_view::npos) {
    if (!all_of(image.substr(tag + 1), StrCat(kUpper, "_.-"))) return false;
    image = image.substr(0, tag);
  }
  const std::vector<std::string_view> parts = Split(image, '/');
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool host = i == 0 && parts.size() > 1;
    if (!all_of(parts[i], host ? StrCat(kUpper, ".:-") : std::string("_.-"))) return false;
  }
  return true;
}

class InstallAction final : public cli::Action {
 public:
  void Declare(cli::Flags& flags) override {
    AddRemoteFlags(flags, remote_);
    AddNamespace(flags, deployment_.ns);
    flags.Group("Controller");
    flags.Text("--image", &deployment_.image, "IMAGE",
               "also run swell controller in the cluster, from this image (deploy/container)");
    flags.Int("--replicas", &deployment_.replicas, "N",
              "number of replicas, one of which leads (default 2)");
    flags.Switch("--ui", &deployment_.pages,
                 "let the controller of --image serve the pages, at the Service swell-pages");
    flags.Switch("--ui-programs", &deployment_.programs,
                 StrCat("with --ui: let the pages open TensorBoard, at port ", kProgramsPort,
                        " of that Service"));
    flags.Group("Admission webhook");
    flags.Switch("--webhook", &deployment_.webhook,
                 "let swell controller --webhook-port validate pods and jobs");
    flags.Text("--webhook-url", &webhook_.url, "URL",
               "address of a webhook outside of the cluster: https://HOST:9443/admit (default: the "
               "Service swell-webhook)");
    flags.Group("Manifests only");
    flags.Switch("--print", &print_all_,
                 "print the manifests, with --image those of the controller, too");
    flags.Choice("--print-part", &print_, "PART", {"install", "controller"},
                 "print one part: install or controller");
  }

  Result<int> Run(cli::Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(CheckWords(words));
    SWELL_RETURN_IF_ERROR(Check());
    if (print_all_ || !print_.empty()) {
      for (const json::Value& object : Manifests()) {
        session.Out(StrCat("---\n", json::PrintYaml(object)));
      }
      return 0;
    }
    SWELL_RETURN_IF_ERROR(deployment_.image.empty() ? Install(remote_, deployment_.ns)
                                                    : InstallController(remote_, deployment_));
    if (deployment_.webhook) SWELL_RETURN_IF_ERROR(InstallWebhook(remote_, webhook_));
    return 0;
  }

 private:
  Status Check() {
    if (!deployment_.image.empty() && !IsImage(deployment_.image)) {
      return cli::Misuse(StrCat("--image ", Quote(deployment_.image),
                                ": expected an image like registry.example.com/swell:0.1.0"));
    }
    if (deployment_.replicas < 1) {
      return cli::Misuse(StrCat("--replicas ", deployment_.replicas, ": expected at least 1"));
    }
    if (const std::string wrong = api::CheckDnsLabel(deployment_.ns); !wrong.empty()) {
      return cli::Misuse(StrCat("--namespace ", Quote(deployment_.ns), ": ", wrong));
    }
    if (!webhook_.url.empty() && !webhook_.url.starts_with("https://")) {
      return cli::Misuse(
          StrCat("--webhook-url ", Quote(webhook_.url), ": expected a URL with https://"));
    }
    if (print_ == "controller" && deployment_.image.empty()) {
      return cli::Misuse("--print-part controller needs --image");
    }
    if (deployment_.programs && !deployment_.pages) {
      return cli::Misuse("--ui-programs needs --ui");
    }
    if (deployment_.pages && deployment_.image.empty()) {
      return cli::Misuse(
          "--ui needs --image; a controller outside of the cluster serves the pages with swell "
          "controller --ui-address HOST:PORT");
    }
    deployment_.webhook = deployment_.webhook || !webhook_.url.empty();
    webhook_.ns = deployment_.ns;
    return Status::Ok();
  }

  std::vector<json::Value> Manifests() const {
    std::vector<json::Value> objects;
    if (print_ != "controller") objects = InstallObjects(deployment_.ns);
    if (print_ != "install" && !deployment_.image.empty()) {
      for (json::Value& one : ControllerObjects(deployment_)) objects.push_back(std::move(one));
    }
    if (deployment_.webhook && print_ != "controller") {
      for (json::Value& one : WebhookObjects(webhook_)) objects.push_back(std::move(one));
    }
    return objects;
  }

  RemoteFlags remote_;
  ControllerDeployment deployment_;
  WebhookInstall webhook_;
  std::string print_;
  bool print_all_ = false;
};

class UninstallAction final : public cli::Action {
 public:
  void Declare(cli::Flags& flags) override {
    AddRemoteFlags(flags, remote_);
    AddNamespace(flags, ns_);
    flags.Switch("--force", &force_, "also delete all jobs and projects");
  }
  Result<int> Run(cli::Session&, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(CheckWords(words));
    SWELL_RETURN_IF_ERROR(Uninstall(remote_, ns_, force_));
    return 0;
  }

 private:
  RemoteFlags remote_;
  std::string ns_ = "swell-system";
  bool force_ = false;
};

}  // namespace

cli::Command InstallCommand() {
  return {
      .name = "install",
      .group = "Kubernetes",
      .summary = "Install custom resources, priority classes and roles into a Kubernetes cluster.",
      .examples = {{"Into the cluster of a kubeconfig",
                    "swell install --kubeconfig ~/.kube/config"},
                   {"With two replicas of the controller",
                    "swell install --image registry.example.com/swell:0.1.0"},
                   {"With the admission webhook",
                    "swell install --webhook --image registry.example.com/swell"},
                   {"With the pages", "swell install --ui --image registry.example.com/swell"},
                   {"With kubectl", "swell install --print | kubectl apply --server-side -f -"}},
      .notes = "It can be run again at any time, for example after an upgrade.",
      .standalone = true,
      .make = cli::Makes<InstallAction>()};
}

cli::Command UninstallCommand() {
  return {.name = "uninstall",
          .group = "Kubernetes",
          .summary =
              "Remove what swell install created. If there are jobs or projects, it needs --force.",
          .examples = {{"From the cluster of a kubeconfig",
                        "swell uninstall --kubeconfig ~/.kube/config"}},
          .standalone = true,
          .make = cli::Makes<UninstallAction>()};
}

}  // namespace swell::ops
