// SubmitAction: `arena submit KIND` and `arena cron KIND`: the object of the job or cron, the
// ConfigMap that says that it exists, and what Arena prints of both. SubmitInstancesAction: the
// flags that most kinds have.
// - Threads: one thread.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/arena/arena.h"
#include "cli/arena/cron.h"
#include "cli/arena/instance_flags.h"
#include "cli/arena/tensorboard.h"
#include "cli/jobs/pytorch_spec.h"

namespace swell::cli::arena {

// Files of this machine, each FILE:PATH, go into the data of a ConfigMap; the spec mounts them. A
// PATH that ends in / keeps the file's name.
Status ReadConfigFiles(const std::vector<std::string>& texts,
                       PyTorchSpec& spec,
                       json::Object& data);

class SubmitAction : public Action {
 public:
  explicit SubmitAction(const Trainer& trainer) : trainer_(trainer) {}
  Result<int> Run(Session& session, std::vector<std::string> words) override;

 protected:
  // Reads the flags into spec_. kBadRequest (misuse) naming the flag.
  virtual Status Fill(Session& session, const std::vector<std::string>& words) = 0;
  virtual Result<json::Value> MakeJob() = 0;
  // One sentence for each flag that has no effect here.
  virtual std::vector<std::string> Remarks() const { return {}; }

  // Labels and annotations of every job of Arena's.
  void Mark(Session& session, int64_t gpus);

  const Trainer& trainer_;
  PyTorchSpec spec_;
  std::optional<CronFlags> cron_;  // jobs are started at the times of a schedule
  TensorboardSpec tensorboard_;
  json::Object config_data_;  // of spec_.config_map

 private:
  Result<bool> IsLeftOver(Session& session, Api& api) const;
  Status RemoveLeftOver(Api& api) const;
  Status CreateConfigMap(Session& session, Api& api, const json::Value& job);
  Status CreateObjects(Session& session, Api& api, const json::Value& job);
  void RemoveConfigMaps(Session& session, Api& api) const;
  void GiveConfigMapsTo(Session& session, Api& api, const json::Value& owner) const;

  std::vector<std::string> made_;  // ConfigMaps
  std::string told_;               // that they were made; not said if the job is refused
  std::string restricted_;         // what was written into the pods for the namespace's level
};

class SubmitInstancesAction : public SubmitAction {
 public:
  explicit SubmitInstancesAction(const Trainer& trainer, bool cron = false)
      : SubmitAction(trainer) {
    spec_.working_dir = "/root";
    if (cron) cron_.emplace();
  }
  void Declare(Flags& flags) override;

 protected:
  // How many instances of which size.
  virtual void DeclareInstances(Flags& flags) = 0;
  virtual int64_t TotalGpus() const = 0;
  // What the variables `workers` and `gpus` say. They are the workers' in all instances: a launcher
  // starts $((workers * gpus)) processes.
  virtual std::pair<int64_t, int64_t> WorkersAndGpus() const { return {spec_.workers, spec_.gpus}; }
  std::vector<std::string> Remarks() const override;
  Status Fill(Session& session, const std::vector<std::string>& words) override;

 private:
  void DeclareJob(Flags& flags);
  void DeclarePlacement(Flags& flags);
  void DeclareFiles(Flags& flags);
  void DeclareTensorboard(Flags& flags);
  void DeclareRest(Flags& flags);
  Status FillEnd();

  InstanceFlags instances_;
  std::vector<std::string> config_files_;
  std::string shell_ = "sh", on_preemption_ = "fail", running_timeout_, ttl_, cron_log_dir_;
  std::optional<std::string> queue_;
};

// arena submit mpijob, etjob, horovodjob, deepspeedjob: a launcher and workers.
std::vector<Command> SubmitLauncherSpecs();
Command SubmitVolcanoSpec();

}  // namespace swell::cli::arena
