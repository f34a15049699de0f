// The drop-in front end `elasticdl`: ElasticDL's client, with the flags of its first walkthrough
// and of its last version. Its jobs are ElasticDLJobs; nothing is built or pushed: the model file
// travels in a ConfigMap, and the image is one that the nodes know.
// - Threads: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/session.h"

namespace swell::cli::elasticdl {

enum class Mode { kTrain, kEvaluate, kPredict };

Command SubmitSpec(Mode mode);
Command ZooSpec();

// The job as the flags say it.
struct JobFlags {
  Mode mode = Mode::kTrain;
  // The job.
  std::string name, ns, image, worker_image, image_pull_policy, restart_policy = "Never";
  std::string strategy, yaml;
  static constexpr int64_t kUnsaid = INT64_MIN;
  int64_t workers = kUnsaid, workers_seed = kUnsaid, ps = 0;
  int64_t relaunches = kUnsaid;
  // Amounts: "cpu=1,memory=4096Mi,gpu=1", or one by one as the first version had them.
  struct Role {
    std::string request, limit;
    std::string cpu_request, cpu_limit, memory_request, memory_limit;
    std::string priority;
  };
  Role master, worker, ps_role;
  std::string volume, volume_name, mount_path;
  std::string envs, populate_env_names, cluster_spec, cluster_spec_json, aux_params, job_command;
  // What the processes of the pods are told, as --name=value.
  std::string model_file, model_zoo, model_def;
  std::vector<std::pair<std::string, std::string>> arguments;
};

// A file of the model, by its path below the folder that the pods see.
struct ModelPart {
  std::string path;
  std::string text;
};
inline constexpr std::string_view kModelFolder = "/model_zoo";

// The model file, or the Python files of the zoo. Empty when --model_zoo is a folder of the image.
Result<std::vector<ModelPart>> ReadModel(JobFlags& flags);
// Misuse where these parts are a zoo (`folder`) without the file that --model_def names.
Status CheckModelDef(const JobFlags& flags,
                     const std::string& folder,
                     const std::vector<ModelPart>& parts);
// Misuse where the model's own file is another framework's, as those of ElasticDL's tutorials are.
Status CheckFramework(const JobFlags& flags, const std::vector<ModelPart>& parts);
std::string ModelMapName(const JobFlags& flags);
json::Value MakeModelMap(const JobFlags& flags, const std::vector<ModelPart>& parts);
// Misuse naming the flag whose value is invalid. `getenv` for --populate_env_names.
Result<json::Value> MakeJob(const JobFlags& flags,
                            const std::vector<ModelPart>& parts,
                            const std::function<std::string(const std::string&)>& getenv);
// Whether a priority needs the class that `word`, high or low, stands for: by name, as "0.5" or as
// "high=0.5", where the others are low.
bool NeedsClass(std::string_view priority, std::string_view word);

}  // namespace swell::cli::elasticdl
