// arena submit volcanojob: a Job of Volcano with one task per image.
#include "base/strings.h"
#include "cli/arena/command_text.h"
#include "cli/arena/submit_action.h"
#include "kube/api/meta/meta.h"

namespace swell::cli::arena {
namespace {

constexpr std::string_view kQueueUsual = "default";  // Volcano's queue of jobs that choose none

class SubmitVolcanoAction final : public SubmitAction {
 public:
  SubmitVolcanoAction() : SubmitAction(TrainerNamed("volcanojob")) {
    spec_.cpu = "250m";
    spec_.memory = "128Mi";
    spec_.image_pull_policy = "Always";
  }

  void Declare(Flags& flags) override {
    flags.Group("Job");
    flags.Text("--name", &spec_.name, "NAME", "name of the job");
    Older(flags.Int("--min-available", &min_available_, "N",
                    "number of instances that start together (default 1)"),
          "--minAvailable");
    flags.Text("--queue", &queue_, "NAME", "project whose quota it uses (default: this one's)");
    Older(flags.Text("--scheduler-name", &scheduler_, "NAME",
                     "accepted for compatibility; Swell places the instances"),
          "--schedulerName");
    flags.List("-a,--annotation", &annotations_, "KEY=VALUE", "annotation, repeatable");
    flags.List("-l,--label", &labels_, "KEY=VALUE", "label, repeatable");
    flags.Group("Tasks");
    Older(flags.List("--task-images", &images_, "IMAGES",
                     "one task per image, between commas or repeated (default "
                     "ubuntu,nginx,busybox)"),
          "--taskImages");
    Older(flags.Text("--task-name", &task_, "NAME", "tasks are called NAME-0, … (default task)"),
          "--taskName");
    Older(flags.Int("--task-replicas", &replicas_, "N", "instances per task (default 1)"),
          "--taskReplicas");
    Older(flags.Text("--task-cpu", &spec_.cpu, "AMOUNT", "CPU per instance (default 250m)"),
          "--taskCPU");
    Older(
        flags.Text("--task-memory", &spec_.memory, "AMOUNT", "memory per instance (default 128Mi)"),
        "--taskMemory");
    Older(flags.Int("--task-port", &port_, "PORT", "port of each instance (default 2222)"),
          "--taskPort");
  }

 private:
  static void Older(Flag& flag, std::string name) { flag.also = {std::move(name)}; }

  Status Fill(Session& session, const std::vector<std::string>& words) override {
    SWELL_ASSIGN_OR_RETURN(spec_.labels, ParseLabels(labels_, "--label"));
    SWELL_ASSIGN_OR_RETURN(spec_.annotations, ParsePairs(annotations_, "--annotation"));
    if (images_.empty()) images_ = {"ubuntu", "nginx", "busybox"};
    for (const std::string& some : images_) {
      for (std::string_view image : Split(some, ',')) {
        if (!image.empty()) task_images_.emplace_back(image);
      }
    }
    if (replicas_ < 1 || replicas_ > kInstancesMax) {
      return Misuse(StrCat("--task-replicas ", replicas_, ": expected 1 to ", kInstancesMax));
    }
    const int64_t instances = replicas_ * static_cast<int64_t>(task_images_.size());
    if (min_available_ < 0 || min_available_ > instances) {
      return Misuse(StrCat("--min-available ", min_available_, ": the job has ", instances,
                           instances == 1 ? " instance" : " instances"));
    }
    if (port_ < 1 || port_ > 65'535) return Misuse(StrCat("--task-port ", port_, ": no port"));
    if (queue_ != kQueueUsual && !api::CheckDnsLabel(queue_).empty()) {
      return Misuse(StrCat("--queue ", Quote(queue_), ": expected the name of a project"));
    }
    if (queue_ != kQueueUsual) spec_.project = queue_;
    if (!words.empty()) spec_.command = {"sh", "-c", CommandText(words)};
    spec_.image = task_images_.empty() ? "" : task_images_[0];
    SWELL_RETURN_IF_ERROR(CheckJob(spec_));
    Mark(session, 0);
    return Status::Ok();
  }

  Result<json::Value> MakeJob() override {
    json::Object labels, annotations;
    for (const auto& [key, value] : spec_.labels) labels[key] = value;
    for (const auto& [key, value] : spec_.annotations) annotations[key] = value;
    json::Array tasks;
    for (size_t i = 0; i < task_images_.size(); ++i) {
      PyTorchSpec instance = spec_;
      instance.image = task_images_[i];
      instance.container = StrCat(task_, "-", i);
      SWELL_ASSIGN_OR_RETURN(json::Object pod, MakePodSpec(instance));
      pod["containers"].get_array()[0].get_object()["ports"] =
          json::Array{json::Object{{"name", StrCat("job-port-", i)}, {"containerPort", port_}}};
      json::Object pod_labels = labels;
      if (i == 0) pod_labels["volcano-role"] = "driver";
      tasks.push_back(json::Object{
          {"name", instance.container},
          {"replicas", replicas_},
          {"template", json::Object{{"metadata", json::Object{{"labels", std::move(pod_labels)},
                                                              {"annotations", annotations}}},
                                    {"spec", std::move(pod)}}}});
    }
    return json::Value(json::Object{
        {"apiVersion", trainer_.resource.ApiVersion()},
        {"kind", trainer_.kind},
        {"metadata", json::Object{{"name", spec_.name},
                                  {"namespace", spec_.ns},
                                  {"labels", std::move(labels)},
                                  {"annotations", std::move(annotations)}}},
        {"spec",
         json::Object{
             {"minAvailable", min_available_}, {"queue", queue_}, {"tasks", std::move(tasks)}}}});
  }

  std::vector<std::string> Remarks() const override {
    if (scheduler_.empty()) return {};
    return {StrCat("--scheduler-name ", scheduler_, " has no effect: Swell places the instances")};
  }

  int64_t min_available_ = 1, replicas_ = 1, port_ = 2222;
  std::string queue_{kQueueUsual}, scheduler_, task_ = "task";
  std::vector<std::string> images_, labels_, annotations_;
  std::vector<std::string> task_images_;  // one each
};

}  // namespace

Command SubmitVolcanoSpec() {
  return {
      .name = "volcanojob",
      .aliases = {"volcano", "vj"},
      .summary = "Submit a Job of Volcano: a task for each image.",
      .usage = "[\"COMMAND\"]",
      .examples = {{"Two tasks with two instances each",
                    "arena submit volcanojob --name=demo --task-images=python,python "
                    "--task-replicas=2 --min-available=4 \"python train.py\""}},
      .notes = "All tasks run the command, or what their images run without one.",
      .make = Makes<SubmitVolcanoAction>(),
  };
}

}  // namespace swell::cli::arena
