#include "scheduling/scheduler_pod.h"

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/controllers/pod_facts.h"
#include "kube/controllers/queue.h"
#include "kube/controllers/write_batch.h"

namespace swell::scheduling {
namespace {

constexpr std::string_view kNamespace = "runai-system";
constexpr std::string_view kName = "swell-scheduler";
constexpr const char* kOnly = "only";

// An export leaves out what people did not make.
json::Object Labels() { return {{"app", kName}, {"app.kubernetes.io/managed-by", "swell"}}; }

// The namespace owns it: tools that drain nodes leave pods alone that nobody would make again.
json::Value MakePod(const std::string& log_file, const json::Value& ns) {
  json::Object container{{"name", "log"}, {"image", "busybox"}};
  container["command"] = json::Array{
      "sh", "-c", "tail -n +1 -F /var/log/swell.log | grep --line-buffered ' scheduler: '"};
  container["volumeMounts"] = json::Array{
      json::Object{{"name", "log"}, {"mountPath", "/var/log/swell.log"}, {"readOnly", true}}};
  json::Object volume{{"name", "log"}};
  volume["hostPath"] = json::Object{{"path", log_file}, {"type", "File"}};
  json::Object spec{{"schedulerName", "swell"},
                    {"restartPolicy", "Always"},
                    {"terminationGracePeriodSeconds", 1},
                    {"priorityClassName", "system-cluster-critical"},
                    {"automountServiceAccountToken", false},
                    // The log belongs to the user who started Swell.
                    {"hostUsers", true}};
  spec["tolerations"] = json::Array{json::Object{{"operator", "Exists"}}};
  spec["containers"] = json::Array{std::move(container)};
  spec["volumes"] = json::Array{std::move(volume)};
  json::Object metadata{{"name", kName}, {"namespace", kNamespace}, {"labels", Labels()}};
  // It reads the machine's log, and has the system's priority.
  metadata["annotations"] = json::Object{{api::keys::kPodSecurity, "privileged"}};
  metadata["ownerReferences"] = json::Array{json::Object{{"apiVersion", "v1"},
                                                         {"kind", "Namespace"},
                                                         {"name", kNamespace},
                                                         {"uid", api::Uid(ns)},
                                                         {"controller", true}}};
  return json::Object{{"apiVersion", "v1"},
                      {"kind", "Pod"},
                      {"metadata", std::move(metadata)},
                      {"spec", std::move(spec)}};
}

}  // namespace

SchedulerPod::SchedulerPod(controllers::Context context, std::string log_file)
    : context_(context),
      log_file_(std::move(log_file)),
      projects_(context_.informers.Of(client::resources::kProjects)),
      pods_(context_.informers.Of(client::resources::kPods)),
      namespaces_(context_.informers.Of(client::resources::kNamespaces)),
      queue_(controllers::MakeQueue(context_, "scheduler-pod", 1, this, &SchedulerPod::Reconcile)),
      client_(context_.executor, context_.server, context_.user, "scheduler-pod") {
  auto look = [this](const json::SharedValue&) { queue_.Add(kOnly); };
  projects_.AddHandlers({.on_add = look, .on_update = {}, .on_delete = {}});
  namespaces_.AddHandlers({.on_add =
                               [this](const json::SharedValue& ns) {
                                 if (api::Name(*ns) == kNamespace) queue_.Add(kOnly);
                               },
                           .on_update = {},
                           .on_delete = {}});
  pods_.AddHandlers(
      {.on_add = {}, .on_update = {}, .on_delete = [this](const json::SharedValue& pod) {
         if (api::Namespace(*pod) == kNamespace) queue_.Add(kOnly);
       }});
}

void SchedulerPod::Reconcile(client::WorkQueue::Done done) {
  if (projects_.objects().empty()) return done(Duration::zero());
  const auto ended = controllers::Ends(done, {}, {Code::kAlreadyExists});
  const json::SharedValue ns = namespaces_.Get(kNamespace);
  if (!ns) {
    json::Value object =
        json::Object{{"apiVersion", "v1"},
                     {"kind", "Namespace"},
                     {"metadata", json::Object{{"name", kNamespace}, {"labels", Labels()}}}};
    return client_.Create(client::resources::kNamespaces, "", object, ended);
  }
  if (api::IsDeleting(*ns)) return done(Duration::zero());
  if (pods_.Get(StrCat(kNamespace, "/", kName))) return done(Duration::zero());
  client_.Create(client::resources::kPods, kNamespace, MakePod(log_file_, *ns), ended);
}

}  // namespace swell::scheduling
