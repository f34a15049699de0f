// JobTable: jobs of every kind as rows, once or for as long as they change.
// - Threads: one thread.
// - Ownership: the session and the form outlive it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/print/output.h"
#include "cli/views/job_view.h"
#include "cli/views/own_namespaces.h"

namespace swell::cli {

struct JobTable {
  Session& session;
  const OutputForm& form;
  bool all_namespaces = false;
  std::string ns;                  // "" everywhere
  std::string status;              // only jobs with this word; "" all
  std::vector<std::string> names;  // of jobs or arrays; none: all
  bool active = false;             // only jobs that are not over
  // Those that run, those that wait, then those that are over; the newest of each first.
  bool by_state = false;
  bool headers = true;
  bool projects = false;  // jobs that name none have their namespace's
  std::vector<std::string> header;
  std::function<std::vector<std::string>(const JobView&)> row;

  Result<int> Show() const;
  // Until Ctrl-C. A row is printed again when something besides its times has changed.
  Result<int> Watch(bool only_changes = false) const;

 private:
  std::string NoJobs(Api& api) const;
  // What is wrong with the names.
  Result<int> NoSuchJob(Api& api) const;
  Result<ShownJobs> Jobs(Api& api) const;
  // Lines without their newline, the header's first.
  std::vector<std::string> Lines(const std::vector<JobView>& jobs) const;
  bool IsTime(size_t column) const;
};

// The pods that run, of those wanted: "3/4", and of an elastic job "3/4 (1-8)".
std::string PodsText(const JobView& job);

// How large jobs are and may be: MIN, NOW, DESIRED, MAX and why there are no more.
JobTable JobSizes(Session& session, const OutputForm& form, bool all_namespaces);

}  // namespace swell::cli
