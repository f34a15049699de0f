// The kinds of jobs in Arena's words.
#include <algorithm>

#include "base/check.h"
#include "base/strings.h"
#include "cli/arena/arena.h"
#include "cli/jobs/pytorch_spec.h"
#include "kube/api/meta/meta.h"

namespace swell::cli::arena {
namespace {

std::string TrainerNames() {
  std::vector<std::string> names;
  for (const Trainer& trainer : Trainers()) names.push_back(trainer.word());
  return Join(names, ", ");
}

// KubeDL's jobs of the same name count, too. "Job" is what several systems call theirs.
bool IsOf(const Trainer& trainer, const client::Resource& resource) {
  return trainer.resource.plural == resource.plural &&
         (trainer.kind != "Job" || trainer.resource.group == resource.group);
}

}  // namespace

const std::vector<Trainer>& Trainers() {
  // The first of those that share a resource is meant where the label says nothing.
  static const std::vector<Trainer>* trainers = new std::vector<Trainer>{
      {{"pytorchjob", "pytorch", "py"}, "PyTorchJob", kPyTorchForm.resource(), "PyTorchJob"},
      {{"tfjob", "tf"}, "TFJob", kTensorFlowForm.resource(), "TFJob"},
      {{"mpijob", "mpi", "mj"}, "MPIJob", kMpiForm.resource(), "MPIJob"},
      {{"etjob", "et"}, "MPIJob", kMpiForm.resource(), "etjob"},
      {{"horovodjob", "horovod", "hj"}, "MPIJob", kMpiForm.resource(), "horovodjob"},
      {{"deepspeedjob", "deepspeed", "dp"}, "MPIJob", kMpiForm.resource(), "deepspeedjob"},
      {{"volcanojob", "volcano", "vj"},
       "Job",
       {"batch.volcano.sh", "v1alpha1", "jobs", true},
       "VolcanoJob"}};
  return *trainers;
}

const Trainer& TrainerNamed(std::string_view word) {
  const auto& all = Trainers();
  auto found = std::find_if(all.begin(), all.end(),
                            [word](const Trainer& one) { return one.words[0] == word; });
  SWELL_CHECK(found != all.end());
  return *found;
}

const Trainer* TrainerOf(const client::Resource& resource, const json::Value& job) {
  const std::string_view app = api::Label(job, "app");
  const Trainer* first = nullptr;
  for (const Trainer& trainer : Trainers()) {
    if (!IsOf(trainer, resource)) continue;
    if (trainer.words[0] == app) return &trainer;
    if (first == nullptr) first = &trainer;
  }
  return first;
}

std::string Trainer::Object() const { return StrCat(ToLower(kind), ".", resource.group); }

std::string Trainer::ConfigMapName(const std::string& job) const {
  return StrCat(job, "-", words[0]);
}

std::string ConfigFilesName(const std::string& job) { return StrCat(job, "-config-files"); }

std::string NamedJob::Object() const {
  return StrCat(ToLower(kind->kind), ".", kind->resource.group);
}

Result<std::vector<NamedJob>> JobsNamed(Api& api, const std::string& ns, const std::string& name) {
  std::vector<NamedJob> found;
  for (const JobKindInfo& kind : JobKinds()) {
    if (!IsTrainingJob(kind)) continue;
    auto job = api.Get(kind.resource, ns, name);
    if (job.ok()) {
      // Swell's server answers with another group's job where only that has the name.
      if (KindOfJob(**job) != &kind) continue;
      found.push_back({&kind, TrainerOf(kind.resource, **job), std::move(*job)});
    } else if (job.status().code() != Code::kNotFound) {
      return job.status();
    }
  }
  return found;
}

bool IsTrainingJob(const JobKindInfo& kind) {
  return kind.resource.GroupResource() != client::resources::kJobs.GroupResource();
}

TypeFlag::TypeFlag(const JobView& job)
    : trainer_(TrainerOf(job.kind->resource, *job.object)), kind_(job.kind) {}

void TypeFlag::Declare(Flags& flags) {
  flags.Text("-T,--type", &said_, "TYPE", StrCat("the kind of job: ", TrainerNames()));
}

Status TypeFlag::Check() {
  if (said_.empty()) return Status::Ok();
  for (const Trainer& trainer : Trainers()) {
    if (std::find(trainer.words.begin(), trainer.words.end(), said_) != trainer.words.end()) {
      trainer_ = &trainer;
      return Status::Ok();
    }
  }
  for (const JobKindInfo& kind : JobKinds()) {
    if (ToLower(kind.kind) != said_) continue;
    kind_ = &kind;
    return Status::Ok();
  }
  return Misuse(
      StrCat("--type ", Quote(said_), " is not supported; this cluster trains ", TrainerNames()));
}

bool TypeFlag::Takes(const JobKindInfo& kind, const json::Value& job) const {
  if (!IsTrainingJob(kind)) return false;
  if (trainer_ != nullptr) return TrainerOf(kind.resource, job) == trainer_;
  return kind_ == nullptr || kind.kind == kind_->kind;
}

bool TypeFlag::Takes(const Trainer& trainer) const {
  if (trainer_ != nullptr) return &trainer == trainer_;
  return kind_ == nullptr || kind_->kind == trainer.kind;
}

}  // namespace swell::cli::arena
