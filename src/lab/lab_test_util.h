// A small application whose times are easy to work out by hand, and traces of it.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "base/strings.h"
#include "base/temp_dir.h"
#include "lab/model/profile.h"
#include "lab/simulator.h"

namespace swell::lab {

// "toy": a batch of 8 takes 2 s on one GPU, 1.5 s on two of a node, 1.75 s on two nodes; two epochs
// of 100 such steps; a batch of 16 gains twice as much per step. "fast" GPUs take half the time
// of "aws" ones.
inline void WriteToyProfile(const std::string& folder) {
  const std::string dir = StrCat(folder, "/toy");
  auto write = [&](const std::string& name, const std::string& text) {
    SWELL_CHECK(WriteFileAtomically(StrCat(dir, "/", name), text).ok());
  };
  SWELL_CHECK(MakeDirs(dir).ok());
  write("placements-aws.csv",
        "placement,local_bsz,step_time,sync_time\n"
        "1,4,1.0,0\n1,8,2.0,0\n"
        "2,4,1.5,0.5\n2,8,2.5,0.5\n"
        "11,4,1.75,0.75\n11,8,2.75,0.75\n"
        "22,4,1.75,0.75\n22,8,2.75,0.75\n");
  write("placements-fast.csv",
        "placement,local_bsz,step_time,sync_time\n"
        "1,4,0.5,0\n1,8,1.0,0\n"
        "2,4,0.75,0.25\n2,8,1.25,0.25\n"
        "11,4,0.875,0.375\n11,8,1.375,0.375\n"
        "22,4,0.875,0.375\n22,8,1.375,0.375\n");
  for (const char* batch : {"8", "64"}) {
    write(StrCat("validation-", batch, ".csv"),
          "progress,iteration,metric,grad_sqr,grad_var\n"
          "100,100,0,0,1\n200,200,0,0,1\n");
  }
}

inline ProfileLibrary ToyProfiles(const std::vector<std::string>& types = {"aws"}) {
  const TempDir dir;
  WriteToyProfile(dir.path());
  auto library = ProfileLibrary::Load(dir.path(), types);
  SWELL_CHECK_MSG(library.ok(), library.status().message());
  return std::move(*library);
}

// Jobs of "toy" with a batch of 8: "NAME SUBMITTED GPUS" for each.
inline Trace ToyTrace(std::initializer_list<std::tuple<const char*, int64_t, int>> jobs) {
  Trace trace{"toy.csv", "pollux", {}};
  for (const auto& [name, submitted_s, gpus] : jobs) {
    trace.jobs.push_back({name, "", submitted_s, gpus, "toy", 8, 0});
  }
  return trace;
}

// "NAME START-END xRESTARTS, ...", or an error's words.
inline std::string TextOf(const Result<RunOutcome>& run) {
  if (!run.ok()) return run.status().message();
  std::string text;
  for (const JobOutcome& job : run->jobs) {
    text += StrCat(text.empty() ? "" : ", ", job.name, " ", job.started_s, "-", job.ended_s, " x",
                   job.restarts);
  }
  return text;
}

// The text of a run of a policy on a cluster.
inline std::string Outcome(const Trace& trace,
                           std::string_view policy,
                           const ClusterShape& shape,
                           int64_t round_s = 0) {
  RunOptions options;
  options.shape = shape;
  options.round_s = round_s;
  const ProfileLibrary library = ToyProfiles({"aws", "fast"});
  return TextOf(Play(trace, library, **FindPolicy(policy), options));
}

}  // namespace swell::lab
