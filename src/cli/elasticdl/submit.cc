// elasticdl train, evaluate, predict.
#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <tuple>

#include "base/file.h"
#include "base/strings.h"
#include "cli/elasticdl/elasticdl.h"
#include "cli/jobs/priorities.h"
#include "cli/jobs/restricted_pods.h"
#include "json/yaml.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"

namespace swell::cli::elasticdl {
namespace {

constexpr int64_t kMinibatchUsual = 64;
constexpr int64_t kMinibatchesPerTaskUsual = 8;

// "", true, True, 1, yes: Python's clients write all of them.
Result<bool> Truth(std::string_view flag, const std::optional<std::string>& text, bool unset) {
  if (!text) return unset;
  const std::string word = ToLower(*text);
  if (word.empty() || word == "true" || word == "1" || word == "yes" || word == "t" ||
      word == "y") {
    return true;
  }
  if (word == "false" || word == "0" || word == "no" || word == "f" || word == "n") return false;
  return Misuse(StrCat(flag, " ", Quote(*text), ": expected true or false"));
}

class SubmitAction final : public Action {
 public:
  explicit SubmitAction(Mode mode) { flags_.mode = mode; }

  void Declare(Flags& flags) override {
    DeclareJob(flags);
    DeclareModel(flags);
    DeclareData(flags);
    if (flags_.mode == Mode::kTrain) DeclareTraining(flags);
    DeclarePods(flags);
    DeclareAccepted(flags);
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (!words.empty()) {
      return Misuse(StrCat("unexpected ", Quote(words[0]), "; this command takes flags only"));
    }
    SWELL_RETURN_IF_ERROR(Fill());
    const std::string folder = flags_.model_zoo.empty() ? "." : flags_.model_zoo;
    SWELL_ASSIGN_OR_RETURN(std::vector<ModelPart> parts, ReadModel(flags_));
    SWELL_RETURN_IF_ERROR(CheckModelDef(flags_, folder, parts));
    SWELL_RETURN_IF_ERROR(CheckFramework(flags_, parts));
    auto getenv = session.env().getenv;
    if (yaml_) {
      TellWithoutEffect(session);
      return PrintManifests(session, parts);
    }
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    flags_.ns = session.Namespace();
    SWELL_ASSIGN_OR_RETURN(json::Value job, MakeJob(flags_, parts, getenv));
    json::Set(job, {"metadata", "annotations", api::keys::kUser}, LocalUser(session));
    SWELL_RETURN_IF_ERROR(NamePriorities(*api, job));
    SWELL_RETURN_IF_ERROR(CheckPriorities(*api));
    SWELL_RETURN_IF_ERROR(Submit(*api, job, parts));
    if (!restricted_.empty()) session.ErrLine(StrCat(restricted_, "."));
    TellWithoutEffect(session);
    session.OutLine(StrCat("ElasticDL job ", flags_.name,
                           " was successfully submitted. The master pod is: elasticdl-master-",
                           flags_.name, "."));
    return 0;
  }

 private:
  void DeclareJob(Flags& flags) {
    flags.Group("Job");
    flags.Text("--job_name", &flags_.name, "NAME", "name of the job");
    flags.Text("--image_name", &flags_.image, "IMAGE", "image of the pods");
    flags.Text("--image_base", &flags_.image, "IMAGE", "the old name of --image_name");
    flags.Text("--worker_image", &flags_.worker_image, "IMAGE",
               "image of the workers, if it differs");
    flags.Int("--num_workers", &flags_.workers, "N",
              "number of workers; the job runs with fewer if there is no room (2)");
    flags.Int("--num_worker", &flags_.workers_seed, "N", "same as above, in the first version");
    flags.Choice(
        "--distribution_strategy", &flags_.strategy, "NAME",
        {"Local", "ParameterServerStrategy", "AllreduceStrategy"},
        "Local, ParameterServerStrategy or AllreduceStrategy; the master keeps the model in each");
    flags.Int("--relaunch_on_worker_failure", &flags_.relaunches, "N",
              "number of failed workers to replace (1); preempted workers are always replaced");
    flags.Text("--job_command", &flags_.job_command, "LINE", "command line of the workers");
    flags.Maybe("--yaml", &yaml_, "FILE",
                "write the manifests to this file (without FILE: print them) and submit nothing");
  }
  void Pass(Flags& flags, const std::string& name, std::string value, std::string help) {
    passed_.push_back({name, {}, {}});
    flags.Text("--" + name, &passed_.back().value, std::move(value), std::move(help));
  }
  void PassNumber(Flags& flags, const std::string& name, int64_t least, std::string help) {
    Pass(flags, name, "N", std::move(help));
    passed_.back().least = least;
  }
  void DeclareModel(Flags& flags) {
    flags.Group("Model");
    flags.Text("--model_file", &flags_.model_file, "FILE",
               "Python file with model, loss, optimizer, feed and eval_metrics_fn");
    flags.Text("--model_zoo", &flags_.model_zoo, "DIR",
               "directory of model files, here or in the image");
    flags.Text("--model_def", &flags_.model_def, "MODULE.NAME",
               "model in that directory: mnist.mnist_model.custom_model");
    Pass(flags, "model_params", "A=1;B=2", "arguments of the model");
    for (const char* name : {"loss", "optimizer", "feed", "eval_metrics_fn", "callbacks",
                             "custom_data_reader", "prediction_outputs_processor"}) {
      Pass(flags, name, "NAME", "name of this function or class in the model file");
      if (std::string_view(name) != "feed") continue;
      flags.Text("--dataset_fn", &passed_.back().value, "NAME", "the old name of --feed");
    }
  }
  void DeclareData(Flags& flags) {
    flags.Group("Data");
    flags.Text("--training_data", &training_data_, "PATH", "training data");
    flags.Text("--train_data_dir", &training_data_, "PATH", "same as above, in the first version");
    flags.Text("--validation_data", &validation_data_, "PATH", "validation data");
    flags.Text("--prediction_data", &prediction_data_, "PATH", "data to predict on");
    Pass(flags, "data_reader_params", "A=1;B=2", "arguments of the data reader");
    passed_.push_back({"codec_type", {}, {}});
    flags.Choice("--codec_type", &passed_.back().value, "NAME", {"bytes", "tf_example", "csv"},
                 "format of records for the model file: bytes, tf_example or csv");
    flags.Int("--minibatch_size", &minibatch_, "N", "records per gradient (64)");
    flags.Int("--num_minibatches_per_task", &minibatches_per_task_, "N",
              "minibatches per task (8)");
    flags.Int("--record_per_task", &records_per_task_, "N",
              "records per task, in the first version");
    Pass(flags, "checkpoint_dir_for_init", "DIR",
         "directory of the checkpoint to start from (required to evaluate and predict)");
  }
  void DeclareTraining(Flags& flags) {
    flags.Group("Training");
    flags.Int("--num_epochs", &epochs_, "N", "number of epochs (1)");
    flags.Int("--num_epoch", &epochs_, "N", "same as above, in the first version");
    PassNumber(flags, "grads_to_wait", 1, "gradients per update");
    PassNumber(flags, "sync_version_tolerance", 0,
               "maximum age of a gradient in model versions (0)");
    flags.Maybe("--use_async", &use_async_, "BOOL", "update the model with each gradient");
    flags.Maybe("--lr_staleness_modulation", &modulate_, "BOOL",
                "reduce the weight of old gradients");
    PassNumber(flags, "evaluation_steps", 0, "updates between evaluations");
    PassNumber(flags, "log_loss_steps", 0, "updates between log lines of the loss (100)");
    PassNumber(flags, "max_step", 0, "maximum number of updates");
    PassNumber(flags, "get_model_steps", 0, "accepted; workers get the model with each answer");
    PassNumber(flags, "checkpoint_steps", 0, "updates between checkpoints (default: every 20 s)");
    Pass(flags, "checkpoint_dir", "DIR", "directory of checkpoints (default: one of the job)");
    PassNumber(flags, "keep_checkpoint_max", 0, "number of checkpoints to keep (3)");
    flags.Maybe("--task_fault_tolerance", &fault_tolerance_, "BOOL",
                "a worker continues if a task fails (true)");
    PassNumber(flags, "seed", 0, "random seed of order and initial weights (1)");
  }
  static void DeclareRole(Flags& flags, const std::string& name, JobFlags::Role& role) {
    flags.Text("--" + name + "_resource_request", &role.request, "LIST",
               StrCat("what each ", name == "ps" ? "parameter server" : name,
                      " needs: cpu=1,memory=4096Mi,gpu=1"));
    flags.Text("--" + name + "_resource_limit", &role.limit, "LIST", "resource limits");
    flags.Text(
        "--" + name + "_pod_priority", &role.priority, "CLASS",
        "priority class" +
            std::string(name == "worker"
                            ? ", high or low; 0.5 or CLASS=0.5 gives it to that part of the workers"
                            : ""));
  }
  static void DeclareSeedAmounts(Flags& flags, const std::string& name, JobFlags::Role& role) {
    flags.Text("--" + name + "_cpu_request", &role.cpu_request, "AMOUNT", "CPU: 1000m");
    flags.Text("--" + name + "_cpu_limit", &role.cpu_limit, "AMOUNT", "CPU limit");
    flags.Text("--" + name + "_memory_request", &role.memory_request, "AMOUNT", "memory: 4096Mi");
    flags.Text("--" + name + "_memory_limit", &role.memory_limit, "AMOUNT", "memory limit");
  }
  void DeclarePods(Flags& flags) {
    flags.Group("Pods");
    DeclareRole(flags, "master", flags_.master);
    DeclareSeedAmounts(flags, "master", flags_.master);
    DeclareRole(flags, "worker", flags_.worker);
    DeclareSeedAmounts(flags, "worker", flags_.worker);
    flags.Text("--volume", &flags_.volume, "LIST",
               "claim_name=C,mount_path=/P or host_path=/H,mount_path=/P; separated by semicolons");
    flags.Text("--volume_name", &flags_.volume_name, "CLAIM",
               "same as above, in the first version");
    flags.Text("--mount_path", &flags_.mount_path, "PATH", "mount path of --volume_name");
    flags.Text("--envs", &flags_.envs, "A=1,B=2", "environment");
    flags.Text("--populate_env_names", &flags_.populate_env_names, "A,B",
               "variables to copy from this environment");
    flags.Choice("--image_pull_policy", &flags_.image_pull_policy, "POLICY",
                 {"Always", "IfNotPresent", "Never"}, "image pull policy");
    flags.Choice("--restart_policy", &flags_.restart_policy, "POLICY",
                 {"Never", "OnFailure", "Always"}, "restart policy of the pods (Never)");
    flags.Text("--cluster_spec_json", &flags_.cluster_spec_json, "JSON",
               R"({"pod_spec": {"labels": …, "annotations": …, "tolerations": …}})");
    flags.Text("--cluster_spec", &flags_.cluster_spec, "FILE",
               "not supported; use --cluster_spec_json");
    flags.Text("--aux_params", &flags_.aux_params, "LIST", "disable_relaunch=true");
    Pass(flags, "output", "DIR", "directory of the trained model or the predictions");
  }
  // What the original needed and this does not: parameter servers, image registries, its own parts.
  void DeclareAccepted(Flags& flags) {
    flags.Group("Accepted without effect");
    DeclareRole(flags, "ps", flags_.ps_role);
    flags.Int("--num_ps_pods", &flags_.ps, "N", "the master keeps the parameters");
    flags.AddName("--num_ps_pods", "--num_ps");
    Accept(flags, "--ps_image", "there are no parameter servers");
    Accept(flags, "--use_go_ps", "there are no parameter servers");
    // TensorFlow's estimators have these.
    constexpr const char* kNoChief = "workers are alike, without a chief";
    constexpr const char* kNoEvaluator = "workers evaluate";
    Accept(flags, "--chief_image", kNoChief);
    Accept(flags, "--chief_resource_request", kNoChief);
    Accept(flags, "--chief_resource_limit", kNoChief);
    Accept(flags, "--chief_pod_priority", kNoChief);
    Accept(flags, "--num_evaluators", kNoEvaluator);
    flags.AddName("--num_evaluators", "--num_evaluator");
    Accept(flags, "--evaluator_image", kNoEvaluator);
    Accept(flags, "--evaluator_resource_request", kNoEvaluator);
    Accept(flags, "--evaluator_resource_limit", kNoEvaluator);
    Accept(flags, "--evaluator_pod_priority", kNoEvaluator);
    constexpr const char* kNoPush = "no image is built or pushed";
    constexpr const char* kAllLogs = "kubectl logs prints all logs";
    constexpr const char* kHowOften = "--evaluation_steps sets how often";
    Accept(flags, "--repository", kNoPush);
    Accept(flags, "--docker_image_repository", kNoPush);
    Accept(flags, "--docker_base_url", kNoPush);
    Accept(flags, "--docker_tlscert", kNoPush);
    Accept(flags, "--docker_tlskey", kNoPush);
    Accept(flags, "--log_level", kAllLogs);
    Accept(flags, "--log_file_path", kAllLogs);
    Accept(flags, "--tensorboard_log_dir", "no TensorBoard is started");
    Accept(flags, "--relaunch_timeout_worker", "workers wait for resources without a time limit");
    Accept(flags, "--evaluation_start_delay_secs", kHowOften);
    Accept(flags, "--evaluation_throttle_secs", kHowOften);
    AcceptSwitch(flags, "--need_elasticdl_job_service", "the master is always reached by name");
    AcceptSwitch(flags, "--need_task_manager", "the master always hands out records");
    AcceptSwitch(flags, "--need_pod_manager", "workers are always elastic");
    AcceptSwitch(flags, "--need_tf_config", "model files are PyTorch's");
    AcceptSwitch(flags, "--force_use_kube_config_file", "the kubeconfig is always used");
  }
  void Accept(Flags& flags, const char* name, const char* why) {
    accepted_.push_back({name, why, {}, {}});
    Accepted& one = accepted_.back();
    flags.Text(name, &one.text, "TEXT", why);
  }
  void AcceptSwitch(Flags& flags, const char* name, const char* why) {
    accepted_.push_back({name, why, {}, {}});
    Accepted& one = accepted_.back();
    flags.Maybe(name, &one.word, "BOOL", why);
  }

  void TellWithoutEffect(Session& session) const {
    if (flags_.ps > 0) {
      session.ErrLine(
          StrCat("There are no parameter servers: the master keeps the parameters, and "
                 "--num_ps_pods=",
                 flags_.ps, " has no effect."));
    }
    auto tell = [&session](std::string_view flag, std::string_view why) {
      session.ErrLine(StrCat(flag, " has no effect: ", why, "."));
    };
    constexpr std::string_view kNoServers = "there are no parameter servers";
    if (!flags_.ps_role.request.empty()) tell("--ps_resource_request", kNoServers);
    if (!flags_.ps_role.limit.empty()) tell("--ps_resource_limit", kNoServers);
    if (!flags_.ps_role.priority.empty()) tell("--ps_pod_priority", kNoServers);
    if (!ValueOf("get_model_steps").empty()) {
      tell("--get_model_steps", "workers get the model with each answer");
    }
    for (const Accepted& one : accepted_) {
      if (!one.text.empty() || one.word) tell(one.name, one.why);
    }
  }

  Status CheckNumbers() const {
    const int64_t workers_least = flags_.strategy == "Local" ? 0 : 1;
    auto wrong = [](std::string_view flag, auto number, int64_t least) {
      return Misuse(StrCat(flag, " ", number, ": expected ", least, " or more"));
    };
    struct Number {
      std::string_view flag;
      int64_t value, least;
    };
    for (const auto& [flag, value, least] :
         {Number{"--num_workers", flags_.workers, workers_least},
          Number{"--num_worker", flags_.workers_seed, workers_least},
          Number{"--minibatch_size", minibatch_, 1}, Number{"--num_epochs", epochs_, 1},
          Number{"--num_minibatches_per_task", minibatches_per_task_, 1},
          Number{"--record_per_task", records_per_task_, 1},
          Number{"--relaunch_on_worker_failure", flags_.relaunches, 0}}) {
      if (value < least && value != flags_.kUnsaid) return wrong(flag, value, least);
    }
    for (const Passed& one : passed_) {
      if (!one.least || one.value.empty()) continue;
      const auto number = ParseInt(one.value);
      if (!number || *number < *one.least) {
        return wrong("--" + one.name, Quote(one.value), *one.least);
      }
    }
    return Status::Ok();
  }

  Status Fill() {
    SWELL_RETURN_IF_ERROR(CheckNumbers());
    if (flags_.workers < 0) flags_.workers = flags_.workers_seed < 0 ? 2 : flags_.workers_seed;
    if (flags_.strategy == "Local") flags_.workers = 1;
    const Mode mode = flags_.mode;
    const std::string& data = mode == Mode::kTrain      ? training_data_
                              : mode == Mode::kEvaluate ? validation_data_
                                                        : prediction_data_;
    const char* flag = mode == Mode::kTrain      ? "--training_data"
                       : mode == Mode::kEvaluate ? "--validation_data"
                                                 : "--prediction_data";
    if (data.empty()) {
      return Misuse(StrCat(flag, " is not set",
                           flags_.job_command.empty()
                               ? ""
                               : "; the master hands its records out to --job_command, too"));
    }
    if (mode != Mode::kTrain && ValueOf("checkpoint_dir_for_init").empty()) {
      return Misuse(
          "--checkpoint_dir_for_init is not set; it is the directory of the trained model");
    }
    const int64_t per_task = records_per_task_ == flags_.kUnsaid
                                 ? minibatch_ * minibatches_per_task_
                                 : records_per_task_;
    auto& out = flags_.arguments;
    out.emplace_back("data", data);
    if (mode == Mode::kTrain) out.emplace_back("validation_data", validation_data_);
    out.emplace_back("minibatch_size", std::to_string(minibatch_));
    out.emplace_back("records_per_task", std::to_string(per_task));
    out.emplace_back("num_epochs", std::to_string(epochs_));
    for (const Passed& one : passed_) out.emplace_back(one.name, one.value);
    for (auto [name, value, unset] : {std::tuple("use_async", &use_async_, false),
                                      {"lr_staleness_modulation", &modulate_, false},
                                      {"task_fault_tolerance", &fault_tolerance_, true}}) {
      SWELL_ASSIGN_OR_RETURN(bool on, Truth(StrCat("--", name), *value, unset));
      if (on != unset) out.emplace_back(name, on ? "true" : "false");
    }
    return Status::Ok();
  }

  std::string ValueOf(std::string_view name) const {
    for (const Passed& one : passed_) {
      if (one.name == name) return one.value;
    }
    return "";
  }

  Result<int> PrintManifests(Session& session, const std::vector<ModelPart>& parts) {
    flags_.ns = session.Namespace();
    SWELL_ASSIGN_OR_RETURN(json::Value job, MakeJob(flags_, parts, session.env().getenv));
    std::string text;
    if (!parts.empty()) text = StrCat(json::PrintYaml(MakeModelMap(flags_, parts)), "---\n");
    text += json::PrintYaml(job);
    if (yaml_->empty() || *yaml_ == "-") {
      session.Out(text);
      return 0;
    }
    SWELL_RETURN_IF_ERROR(WriteFileAtomically(*yaml_, text));
    session.OutLine(StrCat("The manifests are in ", *yaml_, "."));
    return 0;
  }

  // `high` and `low` are classes of these names, or else high-priority and low-priority.
  static Status NamePriorities(Api& api, json::Value& job) {
    for (std::string_view word : {"high", "low"}) {
      const bool needed = std::ranges::any_of(std::array{"Master", "Worker"}, [&](auto role) {
        return NeedsClass(
            json::GetString(job, {"spec", "elasticdlReplicaSpecs", role, "priorityClassName"}),
            word);
      });
      if (!needed) continue;
      for (const std::string& name : {std::string(word), StrCat(word, "-priority")}) {
        auto found = api.Get(client::resources::kPriorityClasses, "", name);
        if (!found.ok() && found.status().code() != Code::kNotFound) return found.status();
        if (!found.ok()) continue;
        json::Set(job, {"spec", StrCat(word, "PriorityClassName")}, name);
        break;
      }
      if (json::GetString(job, {"spec", StrCat(word, "PriorityClassName")}).empty()) {
        return Misuse(StrCat("PriorityClasses ", Quote(word), " and ",
                             Quote(StrCat(word, "-priority")), " not found; create one of them"));
      }
    }
    return Status::Ok();
  }

  // Those that are said by their own names.
  Status CheckPriorities(Api& api) const {
    for (const auto& [flag, priority] :
         {std::pair("--master_pod_priority", flags_.master.priority),
          std::pair("--worker_pod_priority", flags_.worker.priority)}) {
      const std::string name = priority.substr(0, priority.find('='));
      if (NeedsClass(name, "")) continue;
      SWELL_RETURN_IF_ERROR(CheckPriorityClass(api, name, flag));
    }
    return Status::Ok();
  }

  Status Submit(Api& api, const json::Value& job, const std::vector<ModelPart>& parts) {
    const client::Resource jobs{"elasticdl.org", "v1alpha1", "elasticdljobs", true};
    // Before its model is replaced: a job of that name may be running on it.
    auto there = api.Get(jobs, flags_.ns, flags_.name);
    if (there.ok()) {
      return {Code::kAlreadyExists,
              StrCat("elasticdljobs.elasticdl.org ", Quote(flags_.name), " already exists")};
    }
    if (there.status().code() != Code::kNotFound) return there.status();
    const std::string map = ModelMapName(flags_);
    if (!parts.empty()) {
      auto gone = api.Delete(client::resources::kConfigMaps, flags_.ns, map);
      if (!gone.ok() && gone.status().code() != Code::kNotFound) return gone.status();
      auto made =
          api.Create(client::resources::kConfigMaps, flags_.ns, MakeModelMap(flags_, parts));
      if (!made.ok()) return made.status();
    }
    auto created =
        CreateJob(api, jobs, flags_.ns, job, {.field_validation = "Strict"}, restricted_, "");
    if (!created.ok()) {
      if (!parts.empty()) {
        // What the server says of the job matters more than what it says of the clean-up.
        std::ignore = api.Delete(client::resources::kConfigMaps, flags_.ns, map);
      }
      return created.status();
    }
    if (parts.empty()) return Status::Ok();
    json::Value owned;
    json::Set(owned, {"metadata", "ownerReferences"},
              json::Array{api::MakeOwnerReference(**created)});
    auto patched =
        api.Patch(client::resources::kConfigMaps, flags_.ns, map, client::PatchType::kMerge, owned);
    return patched.ok() ? Status::Ok() : patched.status();
  }

  struct Passed {
    std::string name, value;
    std::optional<int64_t> least;  // of a number
  };
  // A flag without effect, and what it was given.
  struct Accepted {
    const char* name;
    const char* why;
    std::string text;
    std::optional<std::string> word;
  };

  JobFlags flags_;
  std::deque<Passed> passed_;      // addresses of its members are given away
  std::deque<Accepted> accepted_;  // likewise
  std::string restricted_;         // what was written into its pods for the namespace's level
  std::optional<std::string> yaml_, use_async_, modulate_, fault_tolerance_;
  std::string training_data_, validation_data_, prediction_data_;
  int64_t minibatch_ = kMinibatchUsual;
  int64_t minibatches_per_task_ = kMinibatchesPerTaskUsual;
  int64_t records_per_task_ = JobFlags::kUnsaid;
  int64_t epochs_ = 1;
};

}  // namespace

Command SubmitSpec(Mode mode) {
  Command command;
  command.make = [mode] { return std::make_unique<SubmitAction>(mode); };
  if (mode == Mode::kTrain) {
    command.name = "train";
    command.summary = "Submit an elastic training job.";
    command.examples = {
        {"Train with two workers that may be preempted",
         "elasticdl train --job_name=mnist --image_name=elasticdl:dev --model_file=mnist.py "
         "--training_data=/data/mnist/train --num_workers=2 --worker_pod_priority=low-priority"},
        {"Half of the workers at high priority", "elasticdl train … --worker_pod_priority=0.5"}};
  } else if (mode == Mode::kEvaluate) {
    command.name = "evaluate";
    command.summary = "Submit a job that evaluates a trained model.";
    command.examples = {{"Evaluate a checkpoint",
                         "elasticdl evaluate --job_name=check --image_name=elasticdl:dev "
                         "--model_file=mnist.py --validation_data=/data/mnist/test "
                         "--checkpoint_dir_for_init=/models/mnist"}};
  } else {
    command.name = "predict";
    command.summary = "Submit a job that predicts with a trained model.";
    command.examples = {{"Predict into a folder",
                         "elasticdl predict --job_name=guess --image_name=elasticdl:dev "
                         "--model_file=mnist.py --prediction_data=/data/mnist/test "
                         "--checkpoint_dir_for_init=/models/mnist --output=/models/guesses"}};
  }
  return command;
}

}  // namespace swell::cli::elasticdl
