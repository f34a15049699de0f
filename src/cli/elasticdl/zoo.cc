// elasticdl zoo init, build, push: a folder of model files, and what becomes of it.
#include "base/file.h"
#include "base/strings.h"
#include "cli/elasticdl/elasticdl.h"

namespace swell::cli::elasticdl {
namespace {

constexpr std::string_view kModel =
    R"py("""A model file: what elasticdl trains. Rename it, and fill it in."""

import torch
from torch import nn
from torch.nn import functional


def custom_model():
    return nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, 10))


def loss(labels, predictions):
    return functional.cross_entropy(predictions, labels)


def optimizer(parameters, lr=0.05):
    return torch.optim.SGD(parameters, lr=lr)


def feed(records, mode, metadata):
    """Records are bytes: the label, then the pixels."""
    data = torch.frombuffer(bytearray(b"".join(records)), dtype=torch.uint8).view(len(records), -1)
    return data[:, 1:].to(torch.float32) / 255, data[:, 0].to(torch.long)


def eval_metrics_fn():
    return {"accuracy": lambda labels, outputs: (outputs.argmax(1) == labels).float().mean()}
)py";

class InitAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Text("--model_zoo", &folder_, "DIR", "directory (default: the current one)");
    flags.Text("--base_image", &image_, "IMAGE", "image of the jobs");
    for (const char* name : {"--extra_pypi_index", "--cluster_spec", "--local_pkg_dir"}) {
      flags.Text(name, &ignored_, "TEXT", "accepted for compatibility").hidden = true;
    }
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (!words.empty()) folder_ = words[0];
    const std::string path = StrCat(folder_, "/model.py");
    // A folder that has models needs no example beside them.
    JobFlags models;
    models.model_zoo = folder_;
    models.model_def = "any";
    const auto parts = ReadModel(models);
    if (parts.ok() && !parts->empty()) {
      session.OutLine(
          StrCat(folder_, " has ", parts->size(), " Python file", parts->size() == 1 ? "" : "s",
                 ": elasticdl train --model_zoo=", folder_, " uses the folder as it is."));
      return 0;
    }
    if (FileExists(path)) return Status(Code::kAlreadyExists, StrCat(path, " is there already"));
    SWELL_RETURN_IF_ERROR(MakeDirs(folder_));
    SWELL_RETURN_IF_ERROR(WriteFileAtomically(path, kModel));
    session.OutLine(StrCat("An example model is in ", path,
                           ". Train it with:\n  elasticdl train --job_name=NAME "
                           "--image_name=",
                           image_, " --model_zoo=", folder_,
                           " --model_def=model.custom_model --training_data=PATH"));
    return 0;
  }

 private:
  std::string folder_ = ".", image_ = "elasticdl:dev", ignored_;
};

// Nothing is built: train sends the Python files of the zoo along with the job.
class BuildAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Text("--image", &image_, "IMAGE", "name of the image, in the original");
    for (const char* name : {"--docker_base_url", "--docker_tlscert", "--docker_tlskey"}) {
      flags.Text(name, &ignored_, "TEXT", "accepted for compatibility").hidden = true;
    }
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    JobFlags flags;
    flags.model_zoo = words.empty() ? "." : words[0];
    flags.model_def = "any";
    const std::string folder = flags.model_zoo;
    SWELL_ASSIGN_OR_RETURN(std::vector<ModelPart> parts, ReadModel(flags));
    if (parts.empty()) return Misuse(StrCat(folder, ": there are no Python files"));
    session.OutLine(StrCat("There is no image to build: elasticdl train --model_zoo=", folder,
                           " sends ", parts.size(), " Python file", parts.size() == 1 ? "" : "s",
                           " along."));
    return 0;
  }

 private:
  std::string image_, ignored_;
};

class PushAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    for (const char* name : {"--docker_base_url", "--docker_tlscert", "--docker_tlskey"}) {
      flags.Text(name, &ignored_, "TEXT", "accepted for compatibility").hidden = true;
    }
  }
  Result<int> Run(Session& session, std::vector<std::string>) override {
    session.OutLine("There is no image to push: train sends the model along with the job.");
    return 0;
  }

 private:
  std::string ignored_;
};

}  // namespace

Command ZooSpec() {
  Command init{
      .name = "init",
      .summary = "Write an example model file.",
      .usage = "[DIR]",
      .make = Makes<InitAction>(),
  };
  Command build{
      .name = "build",
      .summary = "List the model files that a job would include.",
      .usage = "[DIR]",
      .make = Makes<BuildAction>(),
  };
  Command push{
      .name = "push",
      .summary = "Accepted without effect: jobs include their model files.",
      .usage = "[IMAGE]",
      .make = Makes<PushAction>(),
  };
  return {
      .name = "zoo",
      .summary = "Manage folders of model files.",
      .children = {std::move(init), std::move(build), std::move(push)},
  };
}

}  // namespace swell::cli::elasticdl
