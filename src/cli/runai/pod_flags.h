// PodFlags: what Run:ai's commands that submit ask alike of one pod, in the words of both versions
// of its command line, and the PyTorchSpec that it makes.
//
//   flags_.DeclareContainer(flags); ... after parsing: flags_.Fill(spec), flags_.ChoosePools(...)
//
// - Threads: one thread.
// - Ownership: outlives the Flags that it declares in.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/flags.h"
#include "cli/jobs/pytorch_spec.h"
#include "cli/runai/runai.h"

namespace swell::cli::runai {

// Run:ai's size of a large /dev/shm is the machine's to say; this is enough for data loaders.
inline constexpr const char* kLargeShm = "8Gi";

// Where a pod says what the variables of its workload name: fields of the pod.
struct PodFacts {
  std::string name, index;  // the workload's name; which of its replicas it is
  std::string uid;          // a field, or the value itself
  bool uid_is_field = false;
  int64_t mpi_workers = 0;
};

// A new identifier of a workload.
std::string NewUid(const Session& session);

class PodFlags {
 public:
  // `version` 2: -c is --command, where version 1 has it for --cpu.
  explicit PodFlags(int version) : version_(version) {}

  // Each in the group of flags that is open.
  void DeclareContainer(Flags& flags, PyTorchSpec& pod);
  void DeclareAmounts(Flags& flags, PyTorchSpec& pod);
  void DeclarePlace(Flags& flags, PyTorchSpec& pod);
  // --attach, and for how long it waits.
  void DeclareAttach(Flags& flags);
  // What Run:ai has beside these, and why it is not here.
  static void RefuseOthers(Flags& flags);

  // The words are those that no name took. Version 1: --command "LINE" is for the shell. Version 2:
  // --command alone says that the words after -- are the command; without it they are arguments of
  // the image's entry point.
  void FillCommand(PyTorchSpec& pod, std::vector<std::string> words) const;
  // In its command line: the ${NAME} of Run:ai's variables have their values.
  static void PutVariables(PyTorchSpec& pod);
  // The first of the words is the name where no flag gives it. Refuses other words before "--".
  static Status TakeName(PyTorchSpec& pod, size_t before_dashes, std::vector<std::string>& words);
  Status Fill(PyTorchSpec& pod);
  // One sentence for each flag that was given and has no effect here.
  std::vector<std::string> Remarks() const;
  // The variables that Run:ai gives its workloads, of a pod whose project and GPUs are known.
  static void AddVariables(const PodFacts& facts, PyTorchSpec& pod);
  // The nodes of the pools that were asked for, by their labels.
  Status ChoosePools(Api& api, PyTorchSpec& pod) const;
  // Makes claims that must exist before the workload, and claims that are deleted with it.
  Status MakeClaims(Api& api, const std::string& ns) const;
  Status MakeOwnClaims(Api& api, const json::Value& job) const;

  std::optional<std::string>& command() { return command_; }
  // After the submission: what --attach asks for; 0 without it.
  Result<int> Attach(Session& session, Scope& scope, const std::string& name) const;

 private:
  Status CheckGpuLimits() const;
  Status FillGpus(PyTorchSpec& pod) const;
  Status FillEnv(PyTorchSpec& pod) const;
  Status FillUser(PyTorchSpec& pod) const;
  Status FillMounts(PyTorchSpec& pod);
  Status FillGit(PyTorchSpec& pod) const;
  static Status ReadVolume(const std::string& text, PyTorchSpec& pod);
  Status ReadClaim(const std::string& text, PyTorchSpec& pod);
  Status ReadNewClaim(const std::string& text, PyTorchSpec& pod);

  int version_;
  std::optional<std::string> command_, run_as_user_;  // empty: given alone
  std::vector<std::string> args_, env_, secret_env_, field_env_, volumes_, claims_,
      existing_claims_, new_claims_, host_paths_, empty_dirs_, config_maps_, secrets_, nfs_,
      labels_, annotations_, devices_, selectors_, node_pools_, groups_, excluded_nodes_,
      addresses_;
  std::string gpus_, gpu_portion_, gpu_memory_, gpu_portion_limit_, gpu_memory_limit_,
      gpu_request_type_, node_type_, git_sync_, grace_, ignored_text_, attach_limit_text_;
  bool local_image_ = false, always_pull_ = false, large_shm_ = false, as_submitter_ = false,
       create_home_ = false, mount_propagation_ = false, attach_ = false, may_escalate_ = true;
  std::optional<Duration> attach_limit_;
  std::vector<json::Value> lasting_claims_, own_claims_;
};

}  // namespace swell::cli::runai
