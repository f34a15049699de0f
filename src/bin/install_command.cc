// `swell install` and `swell uninstall`: what Swell needs in a cluster that runs elsewhere. Both
// may be run again at any time.
#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/strings.h"
#include "bin/commands.h"
#include "bin/install_objects.h"
#include "bin/remote_process.h"
#include "json/yaml.h"
#include "kube/api/meta.h"
#include "kube/api/scheme.h"
#include "kube/api/swell_keys.h"
#include "kube/client/optimistic_update.h"

namespace swell {
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
  std::string_view kind = json::GetString(object, {"kind"});
  const InstalledKind* found = kKinds;
  while (found->kind != kind) ++found;  // install makes no other kinds
  client::Resource resource = found->resource;
  resource.version = api::ParseGvk(json::GetString(object, {"apiVersion"}), kind).version;
  return resource;
}

// "clusterrole.rbac.authorization.k8s.io/swell-agent", as kubectl names things.
std::string WordsFor(const json::Value& object) {
  const client::Resource resource = ResourceOf(object);
  std::string name = ToLower(json::GetString(object, {"kind"}));
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

// As GetObject, once what is being deleted is gone: it would take with it what is made of it, or
// in it. An uninstall leaves a namespace and definitions to end by themselves.
Result<json::SharedValue> GetSettled(RemoteProcess& process, const json::Value& object) {
  const SteadyTime start = process.clock().Steady();
  for (bool told = false;; process.Pause(std::chrono::milliseconds(200))) {
    auto now = GetObject(process, object);
    if (!now.ok() || !api::IsDeleting(**now)) return now;
    if (!std::exchange(told, true)) {
      std::printf("%s is being deleted; waiting for its end\n", WordsFor(object).c_str());
      std::fflush(stdout);
    }
    if (process.clock().Steady() - start < kGoneLimit) continue;
    return Status(Code::kTimeout,
                  StrCat(WordsFor(object), " is still being deleted after ",
                         kGoneLimit.count() / 1'000'000'000,
                         " s; its metadata.finalizers and status.conditions say what it waits for. "
                         "Run this command again when it is gone"));
  }
}

// What was there before and is not ours stays as it is; a priority class cannot be changed anyway.
// What changes is applied to the version that was there: what then differs is our doing, and no
// status that a controller wrote in between.
Status InstallOne(RemoteProcess& process, const json::Value& object) {
  const std::string words = WordsFor(object);
  auto look = [&]() -> Result<json::SharedValue> {
    auto before = GetSettled(process, object);
    if (before.status().code() == Code::kNotFound) return json::SharedValue();
    return before;
  };
  auto write = [&](const json::SharedValue& before) -> Result<json::SharedValue> {
    if (before && !IsOurs(*before)) {
      std::printf("%s kept: it was there already and is not Swell's\n", words.c_str());
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

// Nobody can use a kind before the server has taken its definition in.
Status WaitEstablished(RemoteProcess& process) {
  SteadyTime start = process.clock().Steady();
  for (const json::Value& crd : api::SwellCrds()) {
    for (;;) {
      SWELL_ASSIGN_OR_RETURN(json::SharedValue now, GetObject(process, crd));
      const json::Value* established = api::FindCondition(*now, "Established");
      if (established != nullptr && json::GetString(*established, {"status"}) == "True") break;
      if (process.clock().Steady() - start > kEstablishedLimit) {
        return Status(Code::kTimeout,
                      StrCat(WordsFor(crd), " is not established; kubectl describe it"));
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

// The controller too, as a Deployment. It starts once what it needs is there.
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

// Objects of a custom kind that is ours, each with its definition's deletion gone for good.
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

// No controller will be there to let projects go that are in use. One that still is there would
// put back what is lifted from a project that nobody has deleted.
Status ReleaseProjects(RemoteProcess& process) {
  SWELL_ASSIGN_OR_RETURN(const json::Array all, Projects(process));
  for (const json::Value& project : all) {
    SWELL_RETURN_IF_ERROR(Remove(process, client::resources::kProjects, project));
  }
  SWELL_ASSIGN_OR_RETURN(const json::Array left, Projects(process));
  for (const json::Value& project : left) {
    json::Array kept = json::GetArray(project, {"metadata", "finalizers"});
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
      return Status(Code::kConflict,
                    StrCat("there are still objects of ", Join(remaining, ", "),
                           "; they would be deleted with their definitions. Delete them first, or "
                           "say --force"));
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
  flags.Text("--namespace", &ns, "NAME", "of Swell's own (default swell-system)");
}

const cli::Command kInstall{
    .name = "install",
    .summary =
        "Install what Swell needs into a cluster: custom resources, priority classes, rights.",
    .examples = {
        {"Into the cluster of a kubeconfig", "swell install --kubeconfig ~/.kube/config"},
        {"The controller, too, twice", "swell install --image registry.example.com/swell:0.1.0"},
        {"With the admission webhook",
         "swell install --webhook --image registry.example.com/swell"},
        {"By other hands", "swell install --print | kubectl apply --server-side -f -"}}};
const cli::Command kUninstall{
    .name = "uninstall",
    .summary = "Remove what `swell install` put into a cluster, and nothing else.",
    .examples = {
        {"From the cluster of a kubeconfig", "swell uninstall --kubeconfig ~/.kube/config"}}};

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

int Print(const std::vector<json::Value>& objects) {
  for (const json::Value& object : objects) {
    std::printf("---\n%s", json::PrintYaml(object).c_str());
  }
  return 0;
}

}  // namespace

int InstallCommand(const std::vector<std::string>& arguments) {
  RemoteFlags remote;
  ControllerDeployment deployment;
  WebhookInstall webhook;
  std::string print;
  bool print_all = false;
  cli::Flags flags;
  AddRemoteFlags(flags, remote);
  AddNamespace(flags, deployment.ns);
  flags.Group("Controller");
  flags.Text("--image", &deployment.image, "IMAGE",
             "run swell controller in the cluster, from this image (deploy/container)");
  flags.Int("--replicas", &deployment.replicas, "N", "of which one leads (default 2)");
  flags.Group("Admission webhook");
  flags.Switch("--webhook", &deployment.webhook,
               "have the API server ask swell controller --webhook-port about pods and jobs");
  flags.Text("--webhook-url", &webhook.url, "URL",
             "where it is, outside of the cluster: https://HOST:9443/admit (default: the Service "
             "swell-webhook)");
  flags.Group("By other hands");
  flags.Switch("--print", &print_all, "only print the manifests, the controller's with --image");
  flags.Choice("--print-part", &print, "PART", {"install", "controller"},
               "only print what others need, or the controller");
  flags.Group("");
  if (auto exit = ParseCommandLine(kInstall, flags, arguments)) return *exit;
  if (!deployment.image.empty() && !IsImage(deployment.image)) {
    return Misused(kInstall, StrCat("--image ", Quote(deployment.image),
                                    ": an image like registry.example.com/swell:0.1.0 expected"));
  }
  if (deployment.replicas < 1) {
    return Misused(kInstall, StrCat("--replicas ", deployment.replicas, ": at least 1 expected"));
  }
  if (const std::string wrong = api::CheckDnsLabel(deployment.ns); !wrong.empty()) {
    return Misused(kInstall, StrCat("--namespace ", Quote(deployment.ns), ": ", wrong));
  }
  if (!webhook.url.empty() && !webhook.url.starts_with("https://")) {
    return Misused(kInstall, StrCat("--webhook-url ", Quote(webhook.url), " is not https://…"));
  }
  deployment.webhook = deployment.webhook || !webhook.url.empty();
  webhook.ns = deployment.ns;
  if (print == "controller" && deployment.image.empty()) {
    return Misused(kInstall, "--print-part controller: say which --image");
  }
  if (print_all || !print.empty()) {
    std::vector<json::Value> objects;
    if (print != "controller") objects = InstallObjects(deployment.ns);
    if (print != "install" && !deployment.image.empty()) {
      for (json::Value& one : ControllerObjects(deployment)) objects.push_back(std::move(one));
    }
    if (deployment.webhook && print != "controller") {
      for (json::Value& one : WebhookObjects(webhook)) objects.push_back(std::move(one));
    }
    return Print(objects);
  }
  Status done = deployment.image.empty() ? Install(remote, deployment.ns)
                                         : InstallController(remote, deployment);
  if (done.ok() && deployment.webhook) done = InstallWebhook(remote, webhook);
  return done.ok() ? 0 : FailCommand(done);
}

int UninstallCommand(const std::vector<std::string>& arguments) {
  RemoteFlags remote;
  std::string ns = "swell-system";
  bool force = false;
  cli::Flags flags;
  AddRemoteFlags(flags, remote);
  AddNamespace(flags, ns);
  flags.Switch("--force", &force, "also when jobs and projects would be deleted with it");
  if (auto exit = ParseCommandLine(kUninstall, flags, arguments)) return *exit;
  Status done = Uninstall(remote, ns, force);
  return done.ok() ? 0 : FailCommand(done);
}

}  // namespace swell
