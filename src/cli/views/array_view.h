// ArrayView: the jobs of an array (`--array`, one job for each index), seen together.
// - Threads: values; functions that ask the server block on its loop.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/views/job_view.h"

namespace swell::cli {

struct ArrayView {
  std::string name, ns;
  std::vector<JobView> jobs;  // by index

  // "is an array of 6 jobs: 4 are done, of which 1 failed; 2 wait".
  std::string Sentence() const;
  // The sentence; then the jobs that failed and the first that waits, with reasons.
  std::string Text() const;
  json::Value Json() const;
};

// Whether the word names the job: by its name, its array or its number in Slurm's commands.
bool NamesJob(const JobView& job, std::string_view word);
// The array of that name; no jobs if there is none.
Result<ArrayView> FindArray(Api& api, std::string_view ns, std::string_view name);

}  // namespace swell::cli
