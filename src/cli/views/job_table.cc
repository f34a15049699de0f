#include "cli/views/job_table.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/strings.h"
#include "cli/print/text_table.h"
#include "cli/views/array_view.h"
#include "cli/views/own_namespaces.h"
#include "cli/views/project_view.h"

namespace swell::cli {
namespace {

constexpr Duration kLookInterval = std::chrono::milliseconds(500);

std::shared_ptr<json::Value> ObjectOf(const JobView& job) {
  auto object = std::make_shared<json::Value>(*job.object);
  json::Set(*object, {"kind"}, job.kind->kind);
  json::Set(*object, {"apiVersion"}, job.kind->resource.ApiVersion());
  return object;
}

int StateOrder(const JobView& job) {
  if (job.over()) return 2;
  return job.status == "Running" || job.status == "Restarting" ? 0 : 1;
}

// Newer jobs first; in an array, whose jobs are made together, lower indices first.
void SortByState(std::vector<JobView>& jobs) {
  const auto before = [](const JobView& a, const JobView& b) {
    const auto key = [](const JobView& job) {
      const std::optional<WallTime> time = job.over() && job.ended ? job.ended : job.created;
      return std::tuple(StateOrder(job), time ? -time->unix_ns : 0);
    };
    return key(a) < key(b);
  };
  std::stable_sort(jobs.begin(), jobs.end(), before);
}

}  // namespace

Result<ShownJobs> JobTable::Jobs(Api& api) const {
  SWELL_ASSIGN_OR_RETURN(ShownJobs shown, FindShownJobs(session, api, ns));
  std::vector<JobView>& jobs = shown.jobs;
  if (!status.empty()) {
    // The word that the column shows, or the one behind it: "Failed: OOMKilled" is failed.
    std::erase_if(jobs, [word = ToLower(status)](const JobView& job) {
      const std::string shown = ToLower(job.StatusText());
      if (word == "suspended" && shown == "waiting") return true;
      return shown != word && ToLower(job.status) != word;
    });
  }
  if (active) {
    std::erase_if(jobs, [](const JobView& job) { return job.over(); });
  }
  if (!names.empty()) {
    std::erase_if(jobs, [this](const JobView& job) {
      return std::none_of(names.begin(), names.end(),
                          [&job](const std::string& name) { return NamesJob(job, name); });
    });
  }
  if (by_state) SortByState(jobs);
  if (projects && !jobs.empty()) {
    // Users who cannot read projects still see their jobs.
    auto tree = ReadProjects(api);
    for (JobView& job : jobs) {
      if (tree.ok()) job.project = tree->ChargedProject(job);
    }
  }
  return shown;
}

Result<int> JobTable::Show() const {
  SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
  SWELL_ASSIGN_OR_RETURN(const ShownJobs shown, Jobs(*api));
  const std::vector<JobView>& jobs = shown.jobs;
  if (shown.partial) session.ErrLine(kPartialJobs);
  if (jobs.empty() && !names.empty()) return NoSuchJob(*api);
  if (form.kind == OutputForm::Kind::kName) {
    for (const JobView& job : jobs) session.OutLine(job.ResourceName());
    return 0;
  }
  if (!form.table()) {
    std::vector<json::SharedValue> objects;
    for (const JobView& job : jobs) objects.push_back(ObjectOf(job));
    session.Out(FormatObject(form, MakeList(objects), ""));
    return 0;
  }
  if (jobs.empty()) session.ErrLine(NoJobs(*api));
  std::vector<std::string> lines = Lines(jobs);
  if (jobs.empty()) lines.clear();
  for (size_t i = headers ? 0 : 1; i < lines.size(); ++i) session.OutLine(lines[i]);
  const size_t others = names.empty() ? ListOthersJobs(*api, ns).size() : 0;
  if (others > 0) {
    session.ErrLine(StrCat(others, others == 1 ? " more job belongs" : " more jobs belong",
                           " to other operators (swell get podgroups", ns.empty() ? " -A)" : ")"));
  }
  return 0;
}

// The job may exist, but be left out by the status or by --active.
Result<int> JobTable::NoSuchJob(Api& api) const {
  for (const std::string& name : names) {
    SWELL_ASSIGN_OR_RETURN(const ArrayView array, FindArray(api, ns, name));
    if (array.jobs.empty()) SWELL_RETURN_IF_ERROR(FindJob(api, ns, name).status());
  }
  session.ErrLine(StrCat("No such job", active ? " is active" : " has that status"));
  return 0;
}

// Somebody who looks in the wrong namespace is told where to look.
std::string JobTable::NoJobs(Api& api) const {
  const std::string_view what = !status.empty() ? " of that status"
                                : active        ? " that are active"
                                                : "";
  if (ns.empty()) return StrCat("No jobs", what);
  const auto all = ListJobs(api, "");
  const size_t others = all.ok() && what.empty() ? all->size() : 0;
  return StrCat("No jobs", what, " in namespace ", ns,
                others == 0 ? "" : StrCat("; ", others, " in others: add -A to see them"));
}

std::vector<std::string> JobTable::Lines(const std::vector<JobView>& jobs) const {
  std::vector<std::string> titles = header;
  if (all_namespaces) titles.insert(titles.begin(), "NAMESPACE");
  TextTable table(titles);
  for (const JobView& job : jobs) {
    std::vector<std::string> cells = row(job);
    if (all_namespaces) cells.insert(cells.begin(), job.ns);
    table.Add(std::move(cells));
  }
  std::string text = table.ToString();
  std::vector<std::string> lines;
  for (std::string_view line : Split(text, '\n')) lines.emplace_back(line);
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

bool JobTable::IsTime(size_t column) const {
  return column < header.size() && (header[column] == "AGE" || header[column] == "DURATION");
}

Result<int> JobTable::Watch(bool only_changes) const {
  SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
  std::map<std::string, std::string> shown;  // by namespace/name/kind: what was printed
  bool first = true;
  while (!api->interrupted()) {
    auto found = Jobs(*api);
    // A server that restarts is waited for.
    bool away = !found.ok() && found.status().code() == Code::kUnavailable;
    if (!found.ok() && !away) return found.status();
    if (first && found.ok() && found->partial) session.ErrLine(kPartialJobs);
    const std::vector<JobView> jobs = away ? std::vector<JobView>() : std::move(found->jobs);
    std::vector<std::string> lines = Lines(jobs);
    bool tell = !first || !only_changes;
    if (first && !away && headers && form.table() && !session.OutLine(lines[0])) return 0;
    std::map<std::string, std::string> now;
    for (size_t i = 0; i < jobs.size(); ++i) {
      std::vector<std::string> cells = row(jobs[i]);
      std::string state;
      for (size_t k = 0; k < cells.size(); ++k) {
        if (!IsTime(k)) state += StrCat(cells[k], "\n");
      }
      std::string key = StrCat(jobs[i].ns, "/", jobs[i].name, "/", jobs[i].ResourceName());
      bool changed = shown.find(key) == shown.end() || shown[key] != state;
      now[key] = std::move(state);
      if (!changed || !tell) continue;
      std::string text = form.table()
                             ? StrCat(lines[i + 1], "\n")
                             : FormatObject(form, *ObjectOf(jobs[i]), jobs[i].ResourceName());
      if (!session.Out(text)) return 0;
    }
    if (!away) {
      shown = std::move(now);
      first = false;
    }
    if (!api->Pause(kLookInterval)) break;
  }
  return 0;
}

std::string PodsText(const JobView& job) {
  const std::string text = StrCat(job.RunningPods(), "/", job.replicas);
  return job.elastic() ? StrCat(text, " (", job.least, "-", job.most, ")") : text;
}

}  // namespace swell::cli
