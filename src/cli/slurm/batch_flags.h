// BatchFlags: the flags that sbatch, its script's #SBATCH lines and srun share, as texts by name. A
// flag of Slurm's that is not followed here is refused, or warned about where it changes nothing.
// - Threads: one thread.
// - Ownership: the Flags they were declared to outlive them.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/flags.h"

namespace swell::cli::slurm {

enum class BatchCommand { kSbatch, kSrun };

class BatchFlags {
 public:
  explicit BatchFlags(BatchCommand command) : command_(command) {}
  BatchFlags(const BatchFlags&) = delete;
  BatchFlags& operator=(const BatchFlags&) = delete;

  void Declare(Flags& flags);
  // Reads the words, as the command line has them before its script. Words that are not flags are
  // refused.
  Status Parse(const std::vector<std::string>& words);
  // Notes what the Flags of Declare() have been given.
  void Take();
  // SBATCH_PARTITION and the like.
  void TakeEnvironment(const std::function<std::string(const std::string&)>& getenv);
  // What `stronger` was given counts in place of what is here.
  void Override(const BatchFlags& stronger);

  bool Has(std::string_view name) const { return given_.contains(name); }
  // The value of a flag by its long name; "" where it was not given. "true" for a switch.
  const std::string& Text(std::string_view name) const;
  // --exclusive of a job that says no number of GPUs: it has all GPUs of its nodes.
  bool WantsWholeNodes() const;
  // What was given and changes nothing, each in a sentence.
  std::vector<std::string> Warnings() const;

 private:
  BatchCommand command_;
  Flags* declared_ = nullptr;
  std::map<std::string, std::string, std::less<>> texts_;
  std::map<std::string, bool, std::less<>> switches_;
  std::set<std::string, std::less<>> given_;
};

// Misuse where a colon among the words of a command begins another part of a heterogeneous job.
Status RefuseParts(const std::vector<std::string>& words);
// The words of a script's #SBATCH lines, which end where its commands begin. Misuse naming the
// line.
Result<std::vector<std::string>> HeaderWords(std::string_view script);

}  // namespace swell::cli::slurm
