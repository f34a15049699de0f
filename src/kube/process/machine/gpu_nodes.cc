#include "kube/process/machine/gpu_nodes.h"

#include <algorithm>
#include <map>

#include "base/file.h"
#include "base/strings.h"

namespace swell::process {
namespace {

constexpr size_t kInformationBytesMax = 64 << 10;

// The value of "Key:   value" in the driver's description of a device.
std::string FieldIn(std::string_view text, std::string_view key) {
  for (std::string_view line : Split(text, '\n')) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || Trim(line.substr(0, colon)) != key) continue;
    return std::string(Trim(line.substr(colon + 1)));
  }
  return {};
}

std::map<std::string, std::string> MinorsByUuid(const std::string& root) {
  std::map<std::string, std::string> minors;
  const std::string dir = root + "/proc/driver/nvidia/gpus";
  auto names = ListDir(dir);
  if (!names.ok()) return minors;
  for (const std::string& name : *names) {
    auto text = ReadFile(StrCat(dir, "/", name, "/information"), kInformationBytesMax);
    if (text.ok()) minors[FieldIn(*text, "GPU UUID")] = FieldIn(*text, "Device Minor");
  }
  return minors;
}

// /dev/nvidia and a number: one GPU.
bool IsOneGpu(std::string_view name) {
  constexpr std::string_view kPrefix = "nvidia";
  return name.starts_with(kPrefix) && ParseUint(name.substr(kPrefix.size())).has_value();
}

}  // namespace

std::vector<std::string> RealGpus(const std::vector<std::string>& ids) {
  std::vector<std::string> real;
  for (const std::string& id : ids) {
    if (id.starts_with("GPU-") || id.starts_with("MIG-")) real.push_back(id);
  }
  return real;
}

std::vector<std::string> GpuNodes(const std::vector<std::string>& ids, const std::string& root) {
  std::vector<std::string> nodes;
  auto names = ListDir(root + "/dev");
  if (ids.empty() || !names.ok()) return nodes;
  const std::map<std::string, std::string> minors = MinorsByUuid(root);
  const bool all = std::any_of(ids.begin(), ids.end(),
                               [&minors](const std::string& id) { return !minors.contains(id); });
  std::vector<std::string> own;
  for (const std::string& id : ids) {
    if (minors.contains(id)) own.push_back("nvidia" + minors.at(id));
  }
  for (const std::string& name : *names) {
    const bool shared = (name.starts_with("nvidia") && !IsOneGpu(name)) || name == "infiniband";
    const bool mine = all || std::find(own.begin(), own.end(), name) != own.end();
    if (shared || (IsOneGpu(name) && mine)) nodes.push_back("/dev/" + name);
  }
  return nodes;
}

}  // namespace swell::process
