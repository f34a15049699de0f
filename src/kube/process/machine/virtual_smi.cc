#include "kube/process/machine/virtual_smi.h"

#include <sys/stat.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/strings.h"
#include "kube/process/machine/gpu_nodes.h"
#include "kube/process/shim/shim_spec.h"

namespace swell::process {
namespace {

constexpr size_t kFileBytesMax = 64 << 10;
constexpr size_t kNameBytesMax = 64;

std::vector<VirtualGpu> Parse(std::string_view text) {
  std::vector<VirtualGpu> out;
  for (std::string_view line : Split(text, '\n')) {
    const std::vector<std::string_view> words = Split(line, '|');
    if (words.size() != 6) continue;
    out.push_back({std::string(words[0]), std::string(words[1]), std::string(words[2]),
                   ParseInt(words[3]).value_or(0), 0, 0});
  }
  return out;
}

// The pod's author may have set the variable: what the script divides by is kept out.
std::string Plain(std::string_view text) {
  std::string out(text.substr(0, kNameBytesMax));
  std::erase_if(out, [](char c) { return c < ' ' || c > '~' || c == '|' || c == ','; });
  return out.empty() ? "Swell virtual GPU" : out;
}

std::string_view EnvOf(const node::EnvList& env, std::string_view name) {
  std::string_view out;
  for (const auto& [known, value] : env) {
    if (known == name) out = value;
  }
  return out;
}

Status Write(const std::string& path, std::string_view bytes, int mode) {
  SWELL_RETURN_IF_ERROR(ReplaceFile(path, bytes, mode));
  ::chmod(path.c_str(), static_cast<mode_t>(mode));  // whatever the umask is
  return Status::Ok();
}

}  // namespace

VirtualGpu MakeVirtualGpu(int index,
                          std::string_view node,
                          std::string_view id,
                          const node::EnvList& env) {
  return {std::to_string(index),
          Plain(EnvOf(env, "SWELL_GPU_NAME")),
          StrCat("GPU-virtual-", node, "-", Plain(id)),
          ParseInt(EnvOf(env, "SWELL_GPU_TOTAL_MIB")).value_or(0),
          0,
          0};
}

int64_t AddUse(VirtualGpu& gpu, const VirtualGpuUse& use) {
  const double held = static_cast<double>(std::max<int64_t>(use.held_milli, 1)) / 1000;
  const auto busy = static_cast<int64_t>(std::clamp(100 * use.cores / held + 0.5, 0.0, 100.0));
  const auto parts = static_cast<int64_t>(std::max<size_t>(use.gpus, 1));
  const int64_t each = (use.memory_bytes >> 20) / parts;
  const int64_t used =
      std::clamp<int64_t>(each, 0, std::max<int64_t>(gpu.total_mib - gpu.used_mib, 0));
  gpu.busy_percent = std::min<int64_t>(gpu.busy_percent + busy, 100);
  gpu.used_mib += used;
  return used;
}

std::string PrintVirtualGpus(const std::vector<VirtualGpu>& gpus) {
  std::string out;
  for (const VirtualGpu& gpu : gpus) {
    out += StrCat(gpu.index, "|", gpu.name, "|", gpu.uuid, "|", gpu.total_mib, "|",
                  gpu.busy_percent, "|", gpu.used_mib, "\n");
  }
  return out;
}

bool HasVirtualGpus(const node::ContainerSpec& spec) {
  return !spec.gpus.empty() && RealGpus(spec.gpus).empty();
}

Status MakeVirtualGpus(const std::string& dir,
                       const std::string& node,
                       const node::ContainerSpec& spec) {
  SWELL_RETURN_IF_ERROR(MakeDirs(dir, 0755));
  std::vector<VirtualGpu> devices;
  for (const std::string& id : spec.gpus) {
    // Programs count the GPUs that they see from 0, whichever of the node's these are.
    devices.push_back(MakeVirtualGpu(static_cast<int>(devices.size()), node, id, spec.env));
  }
  int64_t milli = spec.cpu_limit_milli > 0 ? spec.cpu_limit_milli : spec.cpu_request_milli;
  if (milli <= 0) milli = 1000 * static_cast<int64_t>(std::thread::hardware_concurrency());
  SWELL_RETURN_IF_ERROR(Write(dir + "/share", std::to_string(std::max<int64_t>(milli, 1)), 0600));
  SWELL_RETURN_IF_ERROR(Write(dir + "/nvidia-smi", VirtualSmiScript(), 0755));
  return Write(dir + "/devices", PrintVirtualGpus(devices), 0644);
}

Status UpdateVirtualGpus(const std::string& dir, const node::ContainerUsage& usage) {
  const auto share = ReadFile(dir + "/share", 32);
  if (!share.ok()) return Status::Ok();
  SWELL_ASSIGN_OR_RETURN(const std::string text, ReadFile(dir + "/devices", kFileBytesMax));
  std::vector<VirtualGpu> devices = Parse(text);
  if (devices.empty()) return Status::Ok();
  const auto window = static_cast<double>(usage.window.count());
  const VirtualGpuUse use = {
      .cores = window > 0 ? static_cast<double>(usage.window_cpu.count()) / window : 0,
      .held_milli = ParseInt(*share).value_or(1000),
      .memory_bytes = usage.memory_bytes,
      .gpus = devices.size()};
  for (VirtualGpu& gpu : devices) AddUse(gpu, use);
  return Write(dir + "/devices", PrintVirtualGpus(devices), 0644);
}

}  // namespace swell::process
