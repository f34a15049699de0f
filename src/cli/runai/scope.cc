#include <algorithm>
#include <array>

#include "base/host_port.h"
#include "base/strings.h"
#include "cli/runai/runai.h"
#include "cli/views/own_namespaces.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/pod.h"

namespace swell::cli::runai {
namespace {

std::vector<std::string> LeafNames(const ProjectTree& tree) {
  std::vector<std::string> names;
  for (const ProjectView& project : tree.projects) {
    if (!project.department) names.push_back(project.name);
  }
  return names;
}

// The namespace that a deleted project left. Absent if it does not exist, or if the user may not
// read it.
std::optional<std::string> KeptNamespace(Api& api, const std::string& project) {
  auto found = api.List(client::resources::kNamespaces, "",
                        {.label_selector = StrCat(api::keys::kProject, "=", project)});
  if (!found.ok() || found->empty()) return std::nullopt;
  return std::string(api::Name(*found->front()));
}

}  // namespace

const WorkloadClass& ClassOf(std::string_view name) {
  static constexpr std::array<WorkloadClass, 4> kClasses = {
      {{"train", "Train", "worker"},
       {"interactive", "Interactive", "workspace"},
       {"build", "Build", "workspace"},
       {"inference", "Inference", "server"}}};
  for (const WorkloadClass& one : kClasses) {
    if (one.name == name) return one;
  }
  return kClasses[0];
}

std::string TypeWord(const JobView& job) {
  return std::string(ClassOf(job.workload.empty() ? job.priority : job.workload).type);
}

// As Run:ai shows it: what keeps a placed pod from running is the workload's status, in
// Kubernetes' words (CrashLoopBackOff, ImagePullBackOff, ContainerCreating).
std::string StatusWord(const JobView& job) {
  const bool waits =
      job.status == "Pending" || job.status == "Preempted" || job.status == "Restarting";
  if (!waits && job.status != "Running") return job.StatusText();
  if (job.failure && job.failure->repeats()) return job.StatusText();
  for (const json::SharedValue& pod : job.pods) {
    if (!api::IsBound(*pod) || api::HasEnded(*pod)) continue;
    const std::string word = PodStatusWord(*pod);
    if (word != "Running" && word != "Pending" && word != "Completed") return word;
  }
  return waits ? "Pending" : job.status;
}

std::string AgeWord(const JobView& job, WallTime now) {
  return job.created ? api::HumanDuration(std::max(now - *job.created, Duration(0))) : "-";
}

Result<Scope> FindScope(Session& session, NoProject none) {
  Scope scope;
  SWELL_ASSIGN_OR_RETURN(scope.api, session.Server());
  SWELL_ASSIGN_OR_RETURN(scope.tree, ReadProjects(*scope.api));
  std::string name = session.global().project;
  if (name.empty()) {
    const ProjectView* found = scope.tree.OfNamespace(session.Namespace());
    if (found == nullptr && none == NoProject::kMeansAll) {
      scope.all = true;
      return scope;
    }
    if (found == nullptr) {
      std::vector<std::string> names = LeafNames(scope.tree);
      return Misuse(StrCat("no project is set; use -p PROJECT, or: runai config project PROJECT\n",
                           names.empty() ? "  There are no projects yet. Create one with: runai "
                                           "project create NAME --gpu-quota N"
                                         : "  Available: " + Join(names, ", ")));
    }
    scope.project = *found;
    return scope;
  }
  auto project = FindProject(scope.tree, name, "runai");
  if (project.status().code() == Code::kNotFound) {
    if (auto kept = KeptNamespace(*scope.api, name)) {
      scope.project.name = name;
      scope.project.ns = *kept;
      return scope;
    }
  }
  if (!project.ok()) return project.status();
  scope.project = *std::move(project);
  if (scope.project.department) {
    return Misuse(StrCat("--project ", Quote(name), " is a department; use one of its projects: ",
                         Join(LeafNames(scope.tree), ", ")));
  }
  return scope;
}

Result<std::vector<JobView>> ListWorkloads(Session& session, const Scope& scope) {
  if (scope.all) return ListShownJobs(session, *scope.api, "");
  return ListJobsOfProject(*scope.api, scope.tree, scope.project);
}

Result<JobView> FindWorkload(Session&, Scope& scope, const std::string& name) {
  auto job = FindJob(*scope.api, scope.ns(), name);
  if (job.ok() || job.status().code() != Code::kNotFound) return job;
  if (!scope.all) {
    auto anywhere = FindJob(*scope.api, "", name);
    if (anywhere.ok() && scope.tree.ChargedProject(*anywhere) == scope.project.name)
      return anywhere;
  }
  return Status(Code::kNotFound,
                StrCat("workload ", Quote(name), " not found",
                       scope.all ? std::string(" in any project")
                                 : StrCat(" in project ", Quote(scope.project.name)),
                       "; runai list", scope.all ? " -A" : " -p " + scope.project.name,
                       " shows the workloads"));
}

std::string ProjectOf(const Scope& scope, const JobView& job) {
  const std::string project = scope.tree.ChargedProject(job);
  return project.empty() ? job.ns : project;
}

namespace {

std::vector<std::string> PortsOfPods(const JobView& job) {
  std::vector<std::string> urls;
  for (const json::SharedValue& pod : job.pods) {
    std::string_view ip = api::PodIp(*pod);
    if (ip.empty() || api::Phase(*pod) != "Running") continue;
    for (const json::Value& container : api::Containers(*pod)) {
      for (const api::ContainerPort& port : api::Ports(container)) {
        // Where its own processes meet is nothing for people.
        if (port.name == "rendezvous" || port.name.ends_with("job-port")) continue;
        urls.push_back(StrCat("http://", Bracketed(ip), ":", port.container_port));
      }
    }
  }
  return urls;
}

}  // namespace

std::string ServiceUrls::Of(const JobView& job) {
  std::vector<std::string> urls = PortsOfPods(job);
  if (urls.empty()) return "";
  if (!services_) services_.emplace(api_, ns_);
  const std::vector<std::string> outside = services_->Of(api::Uid(*job.object));
  if (!outside.empty()) urls.clear();
  for (const std::string& address : outside) urls.push_back("http://" + address);
  return Join(urls, ", ");
}

}  // namespace swell::cli::runai
