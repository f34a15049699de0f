#include "cli/views/array_view.h"

#include "base/strings.h"
#include "cli/print/text_table.h"
#include "kube/api/meta/gate_keys.h"
#include "kube/api/meta/meta.h"

namespace swell::cli {
namespace {

constexpr size_t kJobsNamed = 10;

enum class Fate { kSucceeded, kFailed, kRuns, kWaits };

Fate FateOf(const JobView& job) {
  if (job.over()) return job.status == "Failed" ? Fate::kFailed : Fate::kSucceeded;
  return job.RunningPods() > 0 ? Fate::kRuns : Fate::kWaits;
}

std::vector<const JobView*> Those(const ArrayView& array, Fate fate) {
  std::vector<const JobView*> some;
  for (const JobView& job : array.jobs) {
    if (FateOf(job) == fate) some.push_back(&job);
  }
  return some;
}

std::string ReasonOf(const JobView& job) { return job.over() ? job.EndText() : job.Reason(); }

// "4 are done", "1 runs"; empty for 0.
std::string Part(size_t count, std::string_view of_one, std::string_view of_many) {
  return count == 0 ? "" : StrCat(count, " ", count == 1 ? of_one : of_many);
}

}  // namespace

std::string ArrayView::Sentence() const {
  const size_t failed = Those(*this, Fate::kFailed).size();
  const size_t done = Those(*this, Fate::kSucceeded).size() + failed;
  std::vector<std::string> parts;
  const auto add = [&parts](std::string part) {
    if (!part.empty()) parts.push_back(std::move(part));
  };
  std::string over = Part(done, "is done", "are done");
  if (failed > 0 && failed == done) {
    over = StrCat(done, " failed");
  } else if (failed > 0) {
    over += StrCat(" (", failed, " failed)");
  }
  add(over);
  add(Part(Those(*this, Fate::kRuns).size(), "runs", "run"));
  add(Part(Those(*this, Fate::kWaits).size(), "waits", "wait"));
  return StrCat("is an array of ", jobs.size(),
                jobs.size() == 1 ? " job: " : " jobs: ", Join(parts, ", "));
}

std::string ArrayView::Text() const {
  std::string out = StrCat(name, " ", Sentence(), ".\n");
  const auto failed = Those(*this, Fate::kFailed);
  for (size_t i = 0; i < failed.size() && i < kJobsNamed; ++i) {
    out += StrCat("Failed:   ", failed[i]->name, ": ", OneLine(ReasonOf(*failed[i])), "\n");
  }
  if (failed.size() > kJobsNamed) {
    out += StrCat("          and ", failed.size() - kJobsNamed, " more\n");
  }
  if (const auto waiting = Those(*this, Fate::kWaits); !waiting.empty()) {
    const JobView& first = *waiting.front();
    const std::string reason = ReasonOf(first);
    out += StrCat("Waits:    ", first.name, reason.empty() ? "" : ": ", OneLine(reason));
    if (waiting.size() > 1) out += StrCat("; and ", waiting.size() - 1, " more");
    out += "\n";
  }
  return out + StrCat("Jobs:     swell list ", name, " -n ", ns, "\n");
}

json::Value ArrayView::Json() const {
  json::Array list;
  for (const JobView& job : jobs) {
    const std::string reason = ReasonOf(job);
    list.push_back(json::Object{{"name", job.name},
                                {"status", job.StatusText()},
                                {"reason", reason.empty() ? json::Value() : json::Value(reason)}});
  }
  return json::Object{{"array", name},
                      {"namespace", ns},
                      {"says", Sentence()},
                      {"succeeded", Those(*this, Fate::kSucceeded).size()},
                      {"failed", Those(*this, Fate::kFailed).size()},
                      {"running", Those(*this, Fate::kRuns).size()},
                      {"waiting", Those(*this, Fate::kWaits).size()},
                      {"jobs", std::move(list)}};
}

bool NamesJob(const JobView& job, std::string_view word) {
  return job.name == word || api::Label(*job.object, api::keys::kArray) == word ||
         api::Label(*job.object, api::keys::kSlurmJobId) == word;
}

Result<ArrayView> FindArray(Api& api, std::string_view ns, std::string_view name) {
  ArrayView array{.name = std::string(name), .ns = std::string(ns), .jobs = {}};
  SWELL_ASSIGN_OR_RETURN(array.jobs, ListJobs(api, ns));
  std::erase_if(array.jobs, [name](const JobView& job) {
    return api::Label(*job.object, api::keys::kArray) != name;
  });
  return array;
}

}  // namespace swell::cli
