// BatchJob: what sbatch was asked for, as the objects that run it: a ConfigMap with the script, and
// a TrainingJob (one node) or an MPIJob (several), whose launcher is the first node.
// - Threads: values and pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/jobs/gate_request.h"
#include "cli/key_values.h"
#include "cli/slurm/batch_flags.h"
#include "cli/slurm/capacity.h"
#include "cli/slurm/values.h"
#include "json/value.h"

namespace swell::cli::slurm {

// How many nodes, and what each has.
struct Layout {
  int64_t nodes = 1, tasks = 1, tasks_per_node = 1;  // the last: on the fullest node
  int64_t gpus_per_node = 0, gpus_per_task = 0;
  int64_t gpus_first = 0;     // of the first node, where equal parts are not possible; 0: as others
  int64_t cpus_per_task = 0;  // 0: not asked for
  int64_t cpus_per_gpu = 0;   // in its place
  bool counts_tasks = false;  // their number was said: each has a CPU
  int64_t memory_mib = 0;     // of each node; 0: not asked for
  // As it was asked for: MiB of a NODE, a CPU or a GPU.
  std::string memory_unit;
  int64_t memory_of_unit_mib = 0;
  std::string gpu_type;  // empty: any

  // The limit for a node with `gpus` GPUs; 0: no limit.
  int64_t cpus_limit(int64_t gpus) const {
    return cpus_per_gpu > 0 ? cpus_per_gpu * gpus : cpus_per_task * tasks_per_node;
  }
  // What it is asked to have.
  int64_t cpus_requested(int64_t gpus) const {
    const int64_t limit = cpus_limit(gpus);
    return limit > 0 ? limit : counts_tasks ? tasks_per_node : 0;
  }
  int64_t gpus_of_first() const { return gpus_first > 0 ? gpus_first : gpus_per_node; }
  int64_t gpus() const { return gpus_of_first() + gpus_per_node * (nodes - 1); }
};
// Misuse naming the flag.
Result<Layout> ReadLayout(const BatchFlags& flags, const Capacity& capacity);

// Where the job is submitted from and to, as far as flags do not say it.
struct Submitter {
  std::string user, directory, home, host;
  bool here = false;           // the cluster is this machine: its directories are the pods'
  int64_t uid = -1, gid = -1;  // who submits, where the cluster is this machine
  bool writes_file = true;     // the output goes to slurm-%j.out where nothing else is said
  std::string program;         // this one's path, where the cluster is this machine
  KeyValues environment;
  std::string command_line;
  WallTime now;
};

struct BatchJob {
  std::string name;     // as people gave it
  std::string command;  // the script's path, or what --wrap had
  std::string script;
  std::vector<std::string> arguments;
  std::string ns, project, partition, qos, comment, user, host, command_line;
  Layout layout;
  int64_t time_limit_s = 0;
  std::string image;
  std::string work_dir;       // empty: the image's
  std::string output, error;  // patterns, absolute; empty: the pod's log alone
  bool append = false;
  // The file's name has the job's number: what is in it since then is the job's own.
  std::optional<WallTime> own_file_since;
  bool reads_input = false;  // srun has something to read
  std::vector<std::string> host_paths, claims;
  int64_t uid = -1, gid = -1;  // who owns the processes; -1: as the image says
  KeyValues env;
  std::string path;             // what the user's PATH has, before the image's
  std::string service_account;  // of its pods; empty: the namespace's default
  std::string program;          // that Slurm's commands in the job are; empty: swell of its PATH
  std::vector<KeyValues> node_choices;
  std::vector<std::string> excluded_nodes;
  bool requeue = true;
  GateRequest gate;  // its array's name is a matter of numbers
  // gate.start_after of each task of an array, by SLURM_ARRAY_TASK_ID: tasks may wait for different
  // jobs.
  std::map<std::string, std::string> start_after_of_task;
  std::optional<SignalRequest> signal;
};

// All but what only the server knows: namespace, partition, types of GPUs, --constraint, --exclude.
// Misuse naming the flag.
// `command`: the script's path, or what --wrap had.
Result<BatchJob> ReadBatchJob(const BatchFlags& flags,
                              const Submitter& submitter,
                              Layout layout,
                              const std::string& command);

// The number of a job, and its place in an array.
struct JobNumber {
  std::string id;
  std::string array_id, task_id;  // empty: it is in no array
  std::string array_min, array_max, array_step, array_count;

  std::string Text() const;  // "1532", "1532_3"
};
// The ConfigMap whose version becomes the job's number.
json::Value MakeScriptMap(const BatchJob& job);
// `map`: the name of that ConfigMap.
Result<json::Value> MakeJob(const BatchJob& job, const JobNumber& number, const std::string& map);
// "slurm-%j.out" for that job; %N stays, as only the node knows its name.
std::string FillPattern(const std::string& pattern, const BatchJob& job, const JobNumber& number);

}  // namespace swell::cli::slurm
