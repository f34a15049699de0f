#include "cli/arena/tensorboard.h"

#include "base/strings.h"
#include "cli/arena/arena.h"
#include "cli/jobs/restricted_pods.h"
#include "cli/jobs/service_address.h"
#include "kube/api/meta/local_storage.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/failure.h"
#include "kube/api/objects/pod.h"

namespace swell::cli::arena {
namespace {

namespace resources = client::resources;

constexpr int kPort = 6006;
// The name that an embedded cluster's catalogue has for the TensorBoard of its machine.
constexpr std::string_view kMachineImage = "tensorboard";
constexpr std::string_view kInstall =
    "python3 -m venv /opt/tensorboard && /opt/tensorboard/bin/pip install tensorboard";
constexpr int64_t kNotFoundCode = 127;

// Images have it as a program or as a package of their Python.
constexpr std::string_view kStart = R"sh(
for program in tensorboard /opt/tensorboard/bin/tensorboard; do
  command -v "$program" >/dev/null && exec "$program" "$@"
done
for python in python3 python; do
  "$python" -c 'import tensorboard' 2>/dev/null && exec "$python" -m tensorboard.main "$@"
done
echo 'this image has no TensorBoard' >&2
exit 127
)sh";

// Not as its controller: a job's controller removes services that it did not make.
json::Array OwnedBy(const json::Value& job) {
  return json::Array{api::MakeOwnerReference(job, false)};
}

std::string NameOf(const std::string& job) { return StrCat(job, "-tensorboard"); }

json::Object LabelsOf(const std::string& job) {
  return {{"app", "tensorboard"}, {"release", job}, {"role", "tensorboard"}};
}

json::Object MetadataOf(const PyTorchSpec& job, const json::Value& owner) {
  return {{"name", NameOf(job.name)},
          {"labels", LabelsOf(job.name)},
          {"ownerReferences", OwnedBy(owner)}};
}

bool IsRemote(std::string_view path) { return path.find("://") != std::string_view::npos; }

// Where "CLAIM:PATH", "PATH" and "HOST:PATH", each with :ro or :rw, are in the container.
std::string_view MountPathOf(std::string_view text) {
  if (text.ends_with(":ro") || text.ends_with(":rw")) text.remove_suffix(3);
  return text.substr(text.rfind(':') + 1);
}

// Whether the log directory is in a volume that the job mounts anyway.
bool IsInVolume(const PyTorchSpec& job, std::string_view log_dir) {
  for (const auto* list : {&job.volumes, &job.host_paths}) {
    for (const std::string& text : *list) {
      if (IsBelow(log_dir, MountPathOf(text))) return true;
    }
  }
  return false;
}

// Whether the cluster makes volumes on its one machine, which every pod can mount at a time.
bool HasLocalStorage(Api& api) {
  auto classes = api.List(resources::kStorageClasses, "");
  if (!classes.ok()) return false;
  for (const json::SharedValue& one : *classes) {
    if (json::GetString(*one, {"provisioner"}) == api::kLocalStorage &&
        api::Annotation(*one, "storageclass.kubernetes.io/is-default-class") == "true") {
      return true;
    }
  }
  return false;
}

// The folder's claim; nullptr if the job's logs are in another volume.
const PodMount* ClaimOf(const PyTorchSpec& job) {
  for (const PodMount& mount : job.mounts) {
    if (json::GetString(mount.source, {"persistentVolumeClaim", "claimName"}) == NameOf(job.name)) {
      return &mount;
    }
  }
  return nullptr;
}

// It goes with the job.
Status GiveClaimTo(Api& api, const PyTorchSpec& job, const json::Value& owner) {
  json::Value patch;
  json::Set(patch, {"metadata", "ownerReferences"}, OwnedBy(owner));
  return api
      .Patch(resources::kPersistentVolumeClaims, job.ns, NameOf(job.name),
             client::PatchType::kMerge, patch)
      .status();
}

Result<json::Object> MakePod(const TensorboardSpec& tensorboard,
                             const PyTorchSpec& job,
                             const std::string& image) {
  // What it shares with the job's instances is where they may run and what they mount.
  PyTorchSpec pod;
  pod.name = NameOf(job.name);
  pod.container = "tensorboard";
  pod.image = image;
  pod.image_pull_policy = "IfNotPresent";
  pod.image_pull_secrets = job.image_pull_secrets;
  pod.priority = job.priority;
  pod.scheduler = job.scheduler;
  pod.selectors = job.selectors;
  pod.tolerations = job.tolerations;
  pod.volumes = job.volumes;
  pod.host_paths = job.host_paths;
  pod.mounts = job.mounts;
  pod.command = {
      "/bin/sh",           "-c",     std::string(kStart), "tensorboard", "--logdir",
      tensorboard.log_dir, "--host", "0.0.0.0",           "--port",      std::to_string(kPort)};
  pod.ports = {kPort};
  SWELL_ASSIGN_OR_RETURN(json::Object spec, MakePodSpec(pod));
  json::Object& container = spec["containers"].get_array()[0].get_object();
  container["readinessProbe"] =
      json::Object{{"tcpSocket", json::Object{{"port", kPort}}}, {"periodSeconds", 1}};
  // Folders of a node are where the job is.
  json::Object near{{"topologyKey", "kubernetes.io/hostname"}};
  near["labelSelector"] =
      json::Object{{"matchLabels", json::Object{{"release", job.name}, {"heritage", "arena"}}}};
  json::Set(spec["affinity"], {"podAffinity", "preferredDuringSchedulingIgnoredDuringExecution"},
            json::Array{json::Object{{"weight", 100}, {"podAffinityTerm", std::move(near)}}});
  return spec;
}

Status CreateService(
    Session& session, Api& api, const PyTorchSpec& job, const json::Value& owner, Reach reach) {
  json::Value service = json::Object{
      {"apiVersion", "v1"},
      {"kind", "Service"},
      {"metadata", MetadataOf(job, owner)},
      {"spec", json::Object{{"type", reach == Reach::kNodePort ? "NodePort" : "ClusterIP"},
                            {"selector", LabelsOf(job.name)},
                            {"ports", json::Array{json::Object{{"name", "tensorboard"},
                                                               {"port", kPort},
                                                               {"targetPort", kPort}}}}}}};
  auto made = api.Create(resources::kServices, job.ns, service);
  if (!made.ok()) return made.status();
  session.OutLine(StrCat("service/", NameOf(job.name), " created"));
  return Status::Ok();
}

Status CreateServer(Session& session,
                    Api& api,
                    const PyTorchSpec& job,
                    json::Object pod,
                    const json::Value& owner) {
  json::Value deployment = json::Object{
      {"apiVersion", "apps/v1"},
      {"kind", "Deployment"},
      {"metadata", MetadataOf(job, owner)},
      {"spec",
       json::Object{
           {"replicas", 1},
           {"strategy", json::Object{{"type", "Recreate"}}},
           {"selector", json::Object{{"matchLabels", LabelsOf(job.name)}}},
           {"template", json::Object{{"metadata", json::Object{{"labels", LabelsOf(job.name)}}},
                                     {"spec", std::move(pod)}}}}}};
  std::string restricted;  // as the job's own pods, for which it is said
  auto made = CreateDeployment(api, job.ns, deployment, {}, restricted);
  if (!made.ok()) return made.status();
  session.OutLine(StrCat("deployment.apps/", NameOf(job.name), " created"));
  return Status::Ok();
}

// The state of its pod.
struct Seen {
  bool ready = false;
  bool missing = false;  // the image has no TensorBoard
  std::string wrong;
};

bool EndedWithNotFound(const json::Value& pod) {
  for (const json::Value& status : json::GetArray(pod, {"status", "containerStatuses"})) {
    for (const char* when : {"state", "lastState"}) {
      if (json::GetInt(status, {when, "terminated", "exitCode"}) == kNotFoundCode) return true;
    }
  }
  return false;
}

std::string MissingText(const std::string& image) {
  if (image == kMachineImage) {
    return StrCat("TensorBoard is not installed on this machine. As root: `", kInstall,
                  "`; then it starts by itself within five minutes");
  }
  return StrCat("image ", image,
                " has no TensorBoard: name one that has it with --tensorboard-image, or install "
                "the Python package tensorboard in it");
}

Seen SeenOf(Session& session,
            Api& api,
            const std::string& ns,
            const std::string& job,
            const std::string& image) {
  Seen seen;
  auto pods =
      api.List(resources::kPods, ns, {.label_selector = StrCat("app=tensorboard,release=", job)});
  if (!pods.ok()) return seen;
  for (const json::SharedValue& pod : *pods) {
    const json::Array& containers = json::GetArray(*pod, {"spec", "containers"});
    if (api::IsDeleting(*pod) || containers.empty()) continue;
    if (json::GetString(containers[0], {"image"}) != image) continue;
    seen.ready = seen.ready || api::ConditionIsTrue(*pod, "Ready");
    seen.missing = seen.missing || EndedWithNotFound(*pod);
    if (const auto failure = api::FailureOf(*pod, session.Now())) seen.wrong = failure->Sentence();
  }
  if (seen.missing) seen.wrong = MissingText(image);
  if (seen.ready) seen.wrong.clear();
  return seen;
}

// Waits until it answers or cannot, or for some seconds.
Seen Await(Session& session, Api& api, const PyTorchSpec& job, const std::string& image) {
  constexpr int kTriesMax = 75;
  Seen seen;
  for (int tries = 0; tries < kTriesMax; ++tries) {
    seen = SeenOf(session, api, job.ns, job.name, image);
    if (seen.ready || !seen.wrong.empty()) return seen;
    if (!api.Pause(std::chrono::milliseconds(200))) return seen;
  }
  return seen;
}

Status UseMachineImage(Api& api, const PyTorchSpec& job) {
  const json::Value patch =
      json::Array{json::Object{{"op", "replace"},
                               {"path", "/spec/template/spec/containers/0/image"},
                               {"value", kMachineImage}}};
  return api
      .Patch(resources::kDeployments, job.ns, NameOf(job.name), client::PatchType::kJson, patch)
      .status();
}

Status Start(Session& session,
             Api& api,
             const TensorboardSpec& tensorboard,
             const PyTorchSpec& job,
             const json::Value& made) {
  const bool local = ClaimOf(job) != nullptr;
  if (local) SWELL_RETURN_IF_ERROR(GiveClaimTo(api, job, made));
  std::string image = tensorboard.image.empty() ? job.image : tensorboard.image;
  SWELL_ASSIGN_OR_RETURN(json::Object pod, MakePod(tensorboard, job, image));
  SWELL_RETURN_IF_ERROR(CreateService(session, api, job, made, Reach::kNodePort));
  SWELL_RETURN_IF_ERROR(CreateServer(session, api, job, std::move(pod), made));
  Seen seen = Await(session, api, job, image);
  // Only an embedded cluster has a catalogue, and only its machine a TensorBoard to lend.
  if (seen.missing && tensorboard.image.empty() && (local || HasLocalStorage(api))) {
    SWELL_RETURN_IF_ERROR(UseMachineImage(api, job));
    image = kMachineImage;
    seen = Await(session, api, job, image);
  }
  if (!seen.wrong.empty()) return Status(Code::kUnavailable, seen.wrong);
  const auto view = ViewTensorboard(session, api, job.ns, job.name);
  if (view && !view->url.empty()) {
    LogLine(session, "info",
            StrCat("TensorBoard of ", job.name, seen.ready ? " answers at " : " will answer at ",
                   view->url));
  }
  LogLine(session, "info",
          StrCat("You can run `swell port-forward svc/", NameOf(job.name), " ", kPort,
                 "` to reach it from any machine with your rights"));
  return Status::Ok();
}

}  // namespace

Status ShareLogs(Api& api, const TensorboardSpec& tensorboard, PyTorchSpec& job) {
  const std::string& path = tensorboard.log_dir;
  if (!path.starts_with('/') && !IsRemote(path)) {
    return Misuse(StrCat("--logdir ", Quote(path), ": expected an absolute path or a URL"));
  }
  if (IsRemote(path)) return Status::Ok();
  bool named = false;
  for (const auto& [key, value] : job.env) named = named || key == "SWELL_LOG_DIR";
  // A run of its own: a script's own files in the folder above are another.
  if (!named) job.env.emplace_back("SWELL_LOG_DIR", StrCat(path, "/", job.name));
  if (IsInVolume(job, path)) return Status::Ok();
  PodMount logs{.source = {}, .path = path};
  if (HasLocalStorage(api)) {
    logs.source["persistentVolumeClaim"] = json::Object{{"claimName", NameOf(job.name)}};
  } else {
    // Where Arena keeps them.
    logs.source["hostPath"] = json::Object{{"path", StrCat("/arena_logs/training", job.name)},
                                           {"type", "DirectoryOrCreate"}};
  }
  job.mounts.push_back(std::move(logs));
  return Status::Ok();
}

Status CreateLogs(Api& api, const PyTorchSpec& job) {
  if (ClaimOf(job) == nullptr) return Status::Ok();
  json::Value claim = json::Object{
      {"apiVersion", "v1"},
      {"kind", "PersistentVolumeClaim"},
      {"metadata", json::Object{{"name", NameOf(job.name)}, {"labels", LabelsOf(job.name)}}},
      {"spec", json::Object{{"accessModes", json::Array{"ReadWriteMany"}}}}};
  json::Set(claim, {"spec", "resources", "requests", "storage"}, "1Gi");
  // That of an earlier job of this name may be about to go.
  constexpr int kTries = 50;
  for (int tries = 0;; ++tries) {
    auto made = api.Create(resources::kPersistentVolumeClaims, job.ns, claim);
    if (made.ok()) return Status::Ok();
    if (made.status().code() != Code::kAlreadyExists || tries == kTries) return made.status();
    if (!api.Pause(std::chrono::milliseconds(100))) return made.status();
  }
}

void RemoveLogs(Api& api, const PyTorchSpec& job) {
  if (ClaimOf(job) == nullptr) return;
  // The reason why the job does not exist is the one to report.
  (void)api.Delete(resources::kPersistentVolumeClaims, job.ns, NameOf(job.name));
}

void StartTensorboard(Session& session,
                      Api& api,
                      const TensorboardSpec& tensorboard,
                      const PyTorchSpec& job,
                      const json::Value& made) {
  const Status started = Start(session, api, tensorboard, job, made);
  if (started.ok()) return;
  LogLine(session, "warn",
          StrCat("The job ", job.name, " runs without TensorBoard: ", started.message()));
}

std::optional<TensorboardView> ViewTensorboard(Session& session,
                                               Api& api,
                                               const std::string& ns,
                                               const std::string& job) {
  auto service = api.Get(resources::kServices, ns, NameOf(job));
  auto deployment = api.Get(resources::kDeployments, ns, NameOf(job));
  if (!service.ok() || !deployment.ok()) return std::nullopt;
  TensorboardView view;
  view.service = NameOf(job);
  for (const std::string& address : AddressesOf(api, **service)) view.url = "http://" + address;
  for (const json::Value& port : json::GetArray(**service, {"spec", "ports"})) {
    view.port = json::GetInt(port, {"nodePort"});
  }
  const json::Array& containers =
      json::GetArray(**deployment, {"spec", "template", "spec", "containers"});
  if (containers.empty()) return view;
  view.image = json::GetString(containers[0], {"image"});
  const Seen seen = SeenOf(session, api, ns, job, view.image);
  view.ready = seen.ready;
  view.missing = seen.missing;
  view.wrong = seen.wrong;
  return view;
}

Result<TensorboardView> EnsureTensorboard(Session& session,
                                          Api& api,
                                          const PyTorchSpec& job,
                                          const std::string& log_dir,
                                          const json::Value& owner,
                                          Reach reach) {
  const auto made = [](const Status& status) {
    return status.ok() || status.code() == Code::kAlreadyExists ? Status::Ok() : status;
  };
  auto view = ViewTensorboard(session, api, job.ns, job.name);
  if (!view) {
    SWELL_ASSIGN_OR_RETURN(json::Object pod, MakePod({.log_dir = log_dir}, job, job.image));
    SWELL_RETURN_IF_ERROR(made(CreateService(session, api, job, owner, reach)));
    SWELL_RETURN_IF_ERROR(made(CreateServer(session, api, job, std::move(pod), owner)));
    view = ViewTensorboard(session, api, job.ns, job.name);
    if (!view) return Status(Code::kConflict, "TensorBoard was removed meanwhile; try again");
  } else if (view->missing && view->image == job.image && HasLocalStorage(api)) {
    SWELL_RETURN_IF_ERROR(UseMachineImage(api, job));
    view->image = kMachineImage;
    view->missing = false;
    view->wrong.clear();
  }
  return *view;
}

Result<bool> DeleteTensorboard(Session& session,
                               Api& api,
                               const std::string& ns,
                               const std::string& job) {
  const std::string name = NameOf(job);
  bool any = false;
  const std::pair<const client::Resource*, std::string_view> parts[] = {
      {&resources::kServices, "service"},
      {&resources::kDeployments, "deployment.apps"},
      {&resources::kPersistentVolumeClaims, "persistentvolumeclaim"}};
  for (const auto& [resource, word] : parts) {
    auto gone = api.Delete(*resource, ns, name);
    if (!gone.ok() && gone.status().code() != Code::kNotFound) return gone.status();
    if (!gone.ok()) continue;
    any = true;
    session.OutLine(StrCat(word, " ", Quote(name), " deleted"));
  }
  return any;
}

}  // namespace swell::cli::arena
