// FindJob: a job by the words that people use for it, and what to ask about instead.
#include <set>

#include "base/nearest_word.h"
#include "base/strings.h"
#include "cli/views/job_view.h"
#include "cli/views/left_pods.h"
#include "cli/views/workloads.h"
#include "kube/api/meta/gate_keys.h"
#include "kube/api/meta/meta.h"

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

// Workloads of Kubernetes are not jobs.
std::string WorkloadHint(Api& api, std::string_view ns, std::string_view name) {
  const std::vector<Workload> found = WorkloadsNamed(api, ns, name);
  if (found.empty()) return "";
  const std::string_view own = api::Name(*found[0].object);
  if (own == name) {
    return StrCat("; ", found[0].kind, " ", Quote(name), " is not a job; swell why ", name,
                  " explains its pods");
  }
  return StrCat("; it is a server: arena serve get ", name, ", swell logs ", name);
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

// `near`: a name like it; empty: none is.
Status NotFound(Api& api, std::string_view ns, std::string_view name, const std::string& near) {
  const std::string what = StrCat("job ", Quote(name), " not found in namespace ", Quote(ns));
  if (const std::string hint = OthersHint(api, ns, name); !hint.empty()) {
    return Status(Code::kNotFound, what + hint);
  }
  if (const std::string left = LeftPodsText(api, ns, name); !left.empty()) {
    return Status(Code::kNotFound, StrCat(what, "; ", left));
  }
  const std::string elsewhere = NamespacesWith(api, ns, name);
  std::string hint = "swell list shows the jobs";
  if (!near.empty()) hint = StrCat("did you mean ", near, "?");
  if (!elsewhere.empty()) hint = StrCat("it exists in ", elsewhere, " (use -n)");
  return Status(Code::kNotFound, StrCat(what, "; ", hint));
}

std::string NamesOf(const std::vector<JobView>& jobs) {
  std::vector<std::string> names;
  for (const JobView& job : jobs) names.push_back(job.ResourceName());
  return Join(names, ", ");
}

bool IsOfKind(const JobView& job, std::string_view kind) {
  const std::string singular = ToLower(job.kind->kind);
  return kind.empty() || kind == singular || kind == job.kind->resource.plural ||
         kind == StrCat(singular, ".", job.kind->resource.group);
}

// The jobs of that name, and of that kind if one is named.
Result<std::vector<JobView>> JobsNamed(Api& api,
                                       std::string_view ns,
                                       std::string_view kind,
                                       std::string_view name) {
  SWELL_ASSIGN_OR_RETURN(std::vector<JobView> jobs, ListJobs(api, ns, name));
  std::vector<JobView> found;
  std::vector<JobView> of_other_kinds;
  for (JobView& job : jobs) {
    (IsOfKind(job, kind) ? found : of_other_kinds).push_back(std::move(job));
  }
  if (!found.empty() || of_other_kinds.empty()) return found;
  // "job" is what people call a job of any kind.
  if (kind == "job" || kind == "jobs") return of_other_kinds;
  return Status(Code::kNotFound, StrCat(kind, " ", Quote(name), " not found in namespace ",
                                        Quote(ns), "; there is ", NamesOf(of_other_kinds)));
}

// No job has the name: it may be a number of Slurm's commands, an array's name, or misspelt.
Result<JobView> FindByOtherNames(Api& api, std::string_view ns, std::string_view name) {
  SWELL_ASSIGN_OR_RETURN(std::vector<JobView> all, ListJobs(api, ns));
  size_t tasks = 0;
  std::string first_task;
  std::vector<std::string> names;
  for (JobView& job : all) {
    if (api::Label(*job.object, api::keys::kSlurmJobId) == name) {
      return Result<JobView>(std::move(job));
    }
    if (api::Label(*job.object, api::keys::kArray) == name && ++tasks == 1) first_task = job.name;
    names.push_back(job.name);
  }
  if (tasks > 0) {
    const std::string label = StrCat(api::keys::kArray, "=", name);
    return Status(
        Code::kNotFound,
        StrCat(Quote(name), " is an array of ", tasks, " jobs: name one of them (", first_task,
               " is the first; swell list ", name, " shows all), or all: $(swell list ", name,
               " -o name). All have the label ", label));
  }
  return NotFound(api, ns, name, NearestWord(name, names));
}

}  // namespace

Result<JobView> FindJob(Api& api, std::string_view ns, std::string_view name) {
  std::string_view kind;
  if (size_t slash = name.find('/'); slash != std::string_view::npos) {
    kind = name.substr(0, slash);
    name = name.substr(slash + 1);
  }
  // To a list of jobs, no name is every name.
  if (name.empty()) return Misuse("the job's name is empty; is a variable of the shell not set?");
  SWELL_ASSIGN_OR_RETURN(std::vector<JobView> found, JobsNamed(api, ns, kind, name));
  if (found.empty()) {
    return kind.empty() ? FindByOtherNames(api, ns, name) : NotFound(api, ns, name, "");
  }
  if (found.size() > 1) {
    return Misuse(StrCat("there are several jobs named ", Quote(name), ": ", NamesOf(found),
                         "; say which one"));
  }
  return std::move(found[0]);
}

}  // namespace swell::cli
