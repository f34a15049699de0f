// FindJob: a job by the words that people use for it, and what to ask about instead.
#include <set>
#include <utility>

#include "base/nearest_word.h"
#include "base/strings.h"
#include "cli/views/job_view.h"
#include "kube/api/meta/gate_keys.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"

namespace swell::cli {
namespace {

// Namespaces that have a job of that name, as far as the user can read them.
std::string NamespacesWith(Api& api, std::string_view ns, std::string_view name) {
  if (ns.empty()) return "";
  auto jobs = ListJobs(api, "", name);
  if (!jobs.ok()) return "";
  std::set<std::string> namespaces;
  for (const JobView& job : *jobs) namespaces.insert(job.ns);
  return Join({namespaces.begin(), namespaces.end()}, ", ");
}

// A pod of a Deployment, a StatefulSet or a DaemonSet, one that waits if there is one.
std::string PodToAskAbout(Api& api, std::string_view ns, std::string_view workload) {
  const auto pods = api.List(client::resources::kPods, ns);
  if (!pods.ok()) return "";
  std::string found;
  for (const json::SharedValue& pod : *pods) {
    if (!api::Name(*pod).starts_with(StrCat(workload, "-"))) continue;
    if (!api::IsBound(*pod)) return std::string(api::Name(*pod));
    if (found.empty()) found = api::Name(*pod);
  }
  return found;
}

// Workloads of Kubernetes are not jobs: each of their pods waits and runs for itself.
std::string WorkloadHint(Api& api, std::string_view ns, std::string_view name) {
  static const std::pair<const client::Resource*, const char*> kWorkloads[] = {
      {&client::resources::kDeployments, "Deployment"},
      {&client::resources::kStatefulSets, "StatefulSet"},
      {&client::resources::kDaemonSets, "DaemonSet"}};
  for (const auto& [resource, kind] : kWorkloads) {
    if (!api.Get(*resource, ns, name).ok()) continue;
    const std::string pod = PodToAskAbout(api, ns, name);
    return StrCat("; ", kind, " ", Quote(name), " is not a job, it has pods",
                  pod.empty() ? "" : StrCat(": swell why pod/", pod));
  }
  return "";
}

// What to ask about instead, if another operator's job has the name.
std::string OthersHint(Api& api, std::string_view ns, std::string_view name) {
  for (const OthersJob& job : ListOthersJobs(api, ns)) {
    if (job.name != name) continue;
    return StrCat("; ", job.kind, " ", Quote(name), " is another operator's: swell why ",
                  job.group);
  }
  return WorkloadHint(api, ns, name);
}

}  // namespace

Result<JobView> FindJob(Api& api, std::string_view ns, std::string_view name) {
  std::string_view kind;
  if (size_t slash = name.find('/'); slash != std::string_view::npos) {
    kind = name.substr(0, slash);
    name = name.substr(slash + 1);
  }
  SWELL_ASSIGN_OR_RETURN(std::vector<JobView> jobs, ListJobs(api, ns, name));
  std::vector<JobView> found;
  std::vector<JobView> of_other_kinds;
  for (JobView& job : jobs) {
    std::string singular = ToLower(job.kind->kind);
    if (!kind.empty() && kind != singular && kind != job.kind->resource.plural &&
        kind != StrCat(singular, ".", job.kind->resource.group)) {
      of_other_kinds.push_back(std::move(job));
      continue;
    }
    found.push_back(std::move(job));
  }
  const auto names_of = [](const std::vector<JobView>& some) {
    std::vector<std::string> names;
    for (const JobView& job : some) names.push_back(job.ResourceName());
    return Join(names, ", ");
  };
  // "job" is what people call a job of any kind.
  if (found.empty() && (kind == "job" || kind == "jobs")) {
    found = std::exchange(of_other_kinds, {});
  }
  if (found.empty() && !of_other_kinds.empty()) {
    return Status(Code::kNotFound, StrCat(kind, " ", Quote(name), " not found in namespace ",
                                          Quote(ns), "; there is ", names_of(of_other_kinds)));
  }
  std::string near;
  if (found.empty() && kind.empty()) {
    SWELL_ASSIGN_OR_RETURN(std::vector<JobView> all, ListJobs(api, ns));
    size_t tasks = 0;
    std::string first_task;
    std::vector<std::string> names;
    for (const JobView& job : all) names.push_back(job.name);
    near = NearestWord(name, names);
    for (JobView& job : all) {
      if (api::Label(*job.object, api::keys::kArray) == name && ++tasks == 1) first_task = job.name;
      // Slurm's commands print numbers; every command takes them.
      if (api::Label(*job.object, api::keys::kSlurmJobId) == name && found.empty()) {
        found.push_back(std::move(job));
      }
    }
    if (found.empty() && tasks > 0) {
      const std::string label = StrCat(api::keys::kArray, "=", name);
      return Status(
          Code::kNotFound,
          StrCat(Quote(name), " is an array of ", tasks, " jobs: name one of them (", first_task,
                 " is the first; swell list ", name, " shows all). All have the label ", label));
    }
  }
  if (found.empty()) {
    if (const std::string hint = OthersHint(api, ns, name); !hint.empty()) {
      return Status(Code::kNotFound,
                    StrCat("job ", Quote(name), " not found in namespace ", Quote(ns), hint));
    }
    const std::string elsewhere = NamespacesWith(api, ns, name);
    std::string hint = "swell list shows the jobs";
    if (!near.empty()) hint = StrCat("did you mean ", near, "?");
    if (!elsewhere.empty()) hint = StrCat("it exists in ", elsewhere, " (use -n)");
    return Status(Code::kNotFound,
                  StrCat("job ", Quote(name), " not found in namespace ", Quote(ns), "; ", hint));
  }
  if (found.size() > 1) {
    return Misuse(StrCat("there are several jobs named ", Quote(name), ": ", names_of(found),
                         "; say which one"));
  }
  return std::move(found[0]);
}

}  // namespace swell::cli
