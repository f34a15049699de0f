// LabInput: the traces that a command of the laboratory plays, and the cluster it plays them on,
// from files or from a live cluster.
//
// - Threads: one; Read() blocks where it asks a cluster.
// - Ownership: belongs to one command.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/session.h"
#include "lab/simulator.h"

namespace swell::ops {

class LabInput {
 public:
  void Declare(cli::Flags& flags);
  // Everything that the flags say; a misuse names the flag.
  Status Read(cli::Session& session, const std::vector<std::string>& files);

  const std::vector<lab::Trace>& traces() const { return traces_; }
  // Files of one name are told apart by their paths.
  std::vector<std::string> TraceNames() const;
  const lab::ProfileLibrary& profiles() const { return profiles_; }
  const lab::RunOptions& options() const { return options_; }
  // What really happened, of a live cluster's trace.
  const std::optional<lab::RunOutcome>& as_it_was() const { return as_it_was_; }
  // "160 jobs of 1 trace on 16x4 GPUs, 30 s a resize.", and what people should know of the input.
  std::vector<std::string> Notes() const;
  // An error if the file is one of the traces that are read, or cannot be made: a run takes
  // minutes.
  Status CheckOutput(std::string_view flag, const std::string& file) const;

 private:
  Status CheckFlags();
  Status ReadShape();
  Status ReadQuotas();
  Status ReadFiles();
  Status ReadCluster(cli::Session& session);
  Status ReadProfiles();

  static constexpr int64_t kByRules = INT64_MIN;

  std::string cluster_;
  bool from_cluster_ = false;
  std::string last_;
  std::string save_trace_;
  std::string usage_namespace_;
  std::vector<std::string> quotas_;
  std::string profiles_dir_;
  std::string gpu_type_ = "aws";
  std::string rules_ = "pollux";
  std::string plans_ = "requested";
  int64_t resize_s_ = kByRules;
  int64_t round_s_ = kByRules;

  std::vector<std::string> files_;
  std::vector<lab::Trace> traces_;
  std::optional<lab::RunOutcome> as_it_was_;
  bool measured_start_ = false;  // a start costs what it cost the cluster's own jobs
  lab::ProfileLibrary profiles_;
  lab::RunOptions options_;
  std::vector<std::string> notes_;
};

}  // namespace swell::ops
