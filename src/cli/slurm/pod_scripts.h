// The shell scripts that make a pod look like a node of Slurm to a batch script: what runs the
// script, what waits on the other nodes, and Slurm's commands that scripts call.
//
// They travel in the job's ConfigMap and need a POSIX shell only. Steps reach other nodes as
// mpirun does in an MPIJob: by its kubexec.sh.
//
// - Threads: constants.
#pragma once

#include <string_view>

namespace swell::cli::slurm {

// Where a pod finds them, and by which names.
inline constexpr std::string_view kPodFolder = "/var/spool/slurm";
inline constexpr std::string_view kContainer = "node";
inline constexpr std::string_view kScriptKey = "slurm_script";  // the user's own

struct PodScript {
  std::string_view name;
  std::string_view text;
};
// slurm_batch SCRIPT_ARGUMENTS...: the first node's command.
extern const PodScript kBatchScript;
// slurm_node wait|run|signal: what other nodes do, and what starts tasks on any node.
extern const PodScript kNodeScript;
extern const PodScript kSrunScript;
// bash_env: what bash reads before a script, so that the commands are found in login shells, too.
extern const PodScript kBashEnv;
extern const PodScript kScontrolScript;
extern const PodScript kScancelScript;
// slurm_request requeue|cancel: what a job requests of its own controller, by way of its node.
extern const PodScript kRequestScript;
// slurm_client COMMAND...: a command that asks the cluster.
extern const PodScript kClientScript;
// sbatch; and under their names, the others that are the program's alone.
extern const PodScript kSbatchScript;
inline constexpr std::string_view kClientCommands[] = {"sbatch", "squeue", "sacct", "sinfo"};

}  // namespace swell::cli::slurm
