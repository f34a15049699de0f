#include "cli/arena/tensorboard.h"

#include "base/strings.h"

namespace swell::cli::arena {
namespace {

const Resource kDeployments{"apps", "v1", "deployments", true};
constexpr int kPort = 6006;

}  // namespace

Status CreateTensorboard(Session& session,
                         Api& api,
                         const PyTorchSpec& job,
                         const TensorboardSpec& spec) {
  std::string name = StrCat(job.name, "-tensorboard");
  json::Object labels{{"app", "tensorboard"}, {"release", job.name}, {"role", "tensorboard"}};
  json::Object container{
      {"name", "tensorboard"},
      {"image", spec.image},
      {"command", json::Array{"tensorboard", "--logdir", spec.log_dir, "--host", "0.0.0.0"}},
      {"ports", json::Array{json::Object{{"containerPort", kPort}}}}};
  json::Object pod{{"containers", json::Array{std::move(container)}}};
  if (!job.priority.empty()) pod["priorityClassName"] = job.priority;
  json::Value deployment = json::Object{
      {"apiVersion", "apps/v1"},
      {"kind", "Deployment"},
      {"metadata", json::Object{{"name", name}, {"labels", labels}}},
      {"spec",
       json::Object{{"replicas", 1},
                    {"selector", json::Object{{"matchLabels", labels}}},
                    {"template", json::Object{{"metadata", json::Object{{"labels", labels}}},
                                              {"spec", std::move(pod)}}}}}};
  json::Value service = json::Object{
      {"apiVersion", "v1"},
      {"kind", "Service"},
      {"metadata", json::Object{{"name", name}, {"labels", labels}}},
      {"spec", json::Object{{"type", "NodePort"},
                            {"selector", labels},
                            {"ports", json::Array{json::Object{{"name", "tensorboard"},
                                                               {"port", kPort},
                                                               {"targetPort", kPort}}}}}}};
  auto made = api.Create(client::resources::kServices, job.ns, service);
  if (!made.ok()) return made.status();
  session.OutLine(StrCat("service/", name, " created"));
  made = api.Create(kDeployments, job.ns, deployment);
  if (!made.ok()) return made.status();
  session.OutLine(StrCat("deployment.apps/", name, " created"));
  return Status::Ok();
}

Result<bool> DeleteTensorboard(Session& session,
                               Api& api,
                               const std::string& ns,
                               const std::string& job) {
  std::string name = StrCat(job, "-tensorboard");
  auto gone = api.Delete(client::resources::kServices, ns, name);
  if (!gone.ok()) {
    if (gone.status().code() == Code::kNotFound) return false;
    return gone.status();
  }
  session.OutLine(StrCat("service ", Quote(name), " deleted"));
  gone = api.Delete(kDeployments, ns, name);
  if (gone.ok()) session.OutLine(StrCat("deployment.apps ", Quote(name), " deleted"));
  if (!gone.ok() && gone.status().code() != Code::kNotFound) return gone.status();
  return true;
}

}  // namespace swell::cli::arena
