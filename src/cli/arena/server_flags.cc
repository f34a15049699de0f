#include "cli/arena/server_flags.h"

#include "base/strings.h"
#include "cli/arena/command_text.h"

namespace swell::cli::arena {

void ServerFlags::DeclareServer(Flags& flags) {
  flags.Text("--name", &spec_.name, "NAME", "name of the server").also = {"--servingName"};
  const std::string usual =
      spec_.image.empty() ? std::string() : StrCat(" (default ", spec_.image, ")");
  flags.Text("--image", &spec_.image, "IMAGE", "image of each replica" + usual);
  flags.Int("--replicas", &replicas, "N", "number of replicas (a new server has 1)");
  flags.Text("--command", &command_, "COMMAND", "what the container runs");
  flags.Text("--shell", &shell_, "SHELL", "shell that runs the command (default sh)");
  instances_.DeclareNames(flags);
}

void ServerFlags::DeclareAmounts(Flags& flags) {
  flags.Group("Each replica");
  flags.Int("--gpus", &spec_.gpus, "N", "GPUs");
  flags.Int("--gpumemory", &gpu_memory_gib_, "GIB", "a part of one GPU: gibibytes of its memory")
      .also = {"--gpuMemory"};
  flags.Int("--gpucore", &gpu_percent_, "PERCENT", "a part of one GPU: per cent of it");
  flags.Text("--cpu", &spec_.cpu, "AMOUNT", "CPU");
  flags.Text("--memory", &spec_.memory, "AMOUNT", "memory");
  instances_.DeclareDevices(flags, "replica");
  instances_.DeclareNodes(flags);
}

Status ServerFlags::Fill(const std::vector<std::string>& words) {
  if (!words.empty() && !command_.empty()) {
    return Misuse("the command is given twice: as --command and as words");
  }
  if (command_.empty()) command_ = CommandText(words);
  if (replicas < 0) return Misuse(StrCat("--replicas ", replicas, ": expected 0 or more"));
  SWELL_RETURN_IF_ERROR(FillShare());
  SWELL_RETURN_IF_ERROR(instances_.Fill(spec_));
  return CheckAmounts(spec_);
}

std::vector<std::string> ServerFlags::Command() const {
  if (command_.empty()) return {};
  return {shell_, "-c", command_};
}

Status ServerFlags::FillShare() {
  constexpr int64_t kWhole = 100;
  if (gpu_percent_ < 0 || gpu_percent_ > kWhole) {
    return Misuse(StrCat("--gpucore ", gpu_percent_, ": expected 1 to 100"));
  }
  if (gpu_memory_gib_ < 0) {
    return Misuse(StrCat("--gpumemory ", gpu_memory_gib_, ": must not be negative"));
  }
  if ((spec_.gpus > 0) + (gpu_memory_gib_ > 0) + (gpu_percent_ > 0) > 1) {
    return Misuse("use one of --gpus, --gpumemory and --gpucore");
  }
  spec_.gpu_memory_mib = gpu_memory_gib_ * 1024;
  spec_.gpu_fraction = static_cast<double>(gpu_percent_) / kWhole;
  return Status::Ok();
}

}  // namespace swell::cli::arena
