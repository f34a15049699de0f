#include "ops/nodes/plan_nodes.h"

#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <thread>

#include "base/file.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/quantity.h"
#include "kube/api/objects/amounts.h"
#include "kube/process/machine/nvml.h"
#include "ops/nodes/node_address.h"

namespace swell::ops {
namespace {

constexpr int64_t kNodesMax = 20'000;
constexpr int64_t kGpusPerNodeMax = 1024;

Status CheckCount(std::string_view flag, int64_t count, int64_t min, int64_t max) {
  if (count >= min && count <= max) return Status::Ok();
  return cli::Misuse(StrCat(flag, ": ", count, " is not between ", min, " and ", max));
}

Status CheckCounts(const NodePlan& plan) {
  int64_t nodes = 1;
  if (plan.nodes != NodePlan::kThisMachine) {
    nodes = plan.nodes;
    SWELL_RETURN_IF_ERROR(CheckCount("--nodes", nodes, 1, kNodesMax));
  } else if (plan.gpus_per_node != 0) {
    return cli::Misuse(
        "--gpus-per-node needs --nodes: without virtual nodes, this machine's own GPUs are used");
  }
  SWELL_RETURN_IF_ERROR(
      CheckCount("--control-plane-nodes", plan.control_plane_nodes, 0, kNodesMax - nodes));
  return CheckCount("--gpus-per-node", plan.gpus_per_node, 0, kGpusPerNodeMax);
}

Status CheckQuantity(std::string_view flag, const std::string& value) {
  if (value.empty()) return Status::Ok();
  auto quantity = api::Quantity::Parse(value);
  if (!quantity.ok() || quantity->MilliValue() <= 0) {
    return cli::Misuse(StrCat(flag, ": ", Quote(value), " is not an amount like 4 or 15Gi"));
  }
  return Status::Ok();
}

Result<std::map<std::string, std::string>> ParseReserved(const std::string& text) {
  std::map<std::string, std::string> reserved;
  for (std::string_view part : Split(text, ',')) {
    size_t equals = part.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      return cli::Misuse(StrCat("--system-reserved: ", Quote(part), " is not of the form cpu=80m"));
    }
    std::string value(part.substr(equals + 1));
    SWELL_RETURN_IF_ERROR(CheckQuantity("--system-reserved", value));
    reserved[std::string(part.substr(0, equals))] = value;
  }
  return reserved;
}

std::string MachineMemory() {
  struct sysinfo info;
  if (::sysinfo(&info) != 0) return "1Gi";
  uint64_t kib = static_cast<uint64_t>(info.totalram) * info.mem_unit / 1024;
  return StrCat(kib, "Ki");
}

// The size of the file system.
std::string DiskSize(const std::string& path) {
  struct statvfs info;
  if (::statvfs(path.c_str(), &info) != 0 && ::statvfs("/", &info) != 0) return "";
  return StrCat(static_cast<uint64_t>(info.f_blocks) * info.f_frsize / 1024, "Ki");
}

std::string MachineCpus() {
  unsigned cpus = std::thread::hardware_concurrency();
  return std::to_string(cpus == 0 ? 1 : cpus);
}

// The first line of a small file; empty if it does not exist.
std::string FirstLine(const std::string& path) {
  const auto text = ReadFile(path, 4096);
  return text.ok() ? text->substr(0, text->find('\n')) : "";
}

// "Debian GNU/Linux 12 (bookworm)".
std::string OsName() {
  const auto text = ReadFile("/etc/os-release", 64 << 10);
  if (!text.ok()) return "";
  for (std::string_view line : Split(*text, '\n')) {
    constexpr std::string_view kKey = "PRETTY_NAME=";
    if (!line.starts_with(kKey)) continue;
    line.remove_prefix(kKey.size());
    const bool quoted = line.size() >= 2 && line.front() == '"' && line.back() == '"';
    return std::string(quoted ? line.substr(1, line.size() - 2) : line);
  }
  return "";
}

// What every node has from the plan and from this machine, read once.
node::NodeConfig CommonParts(const NodePlan& plan) {
  node::NodeConfig node;
  node.capacity["cpu"] = plan.cpus.empty() ? MachineCpus() : plan.cpus;
  node.capacity["memory"] = plan.memory.empty() ? MachineMemory() : plan.memory;
  node.capacity["pods"] = "110";
  // Several virtual nodes have the same one, as they have the same processors.
  const std::string disk = DiskSize(plan.disk);
  if (!disk.empty()) node.capacity["ephemeral-storage"] = disk;
  struct utsname system;
  if (::uname(&system) == 0) node.kernel_version = system.release;
  node.os_image = OsName();
  node.machine_id = FirstLine("/etc/machine-id");
  node.system_uuid = FirstLine("/sys/class/dmi/id/product_uuid");
  node.boot_id = FirstLine("/proc/sys/kernel/random/boot_id");
  return node;
}

node::NodeConfig Numbered(node::NodeConfig node, std::string name, int number) {
  node.name = std::move(name);
  // An address of its own for each virtual node, all of them this machine.
  node.internal_ip = StrCat("127.0.", 1 + number / 250, ".", 1 + number % 250);
  return node;
}

// A model's name as NVIDIA's feature discovery writes it: NVIDIA-H100-80GB-HBM3.
std::string ProductLabel(std::string name) {
  std::replace_if(
      name.begin(), name.end(),
      [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '_';
      },
      '-');
  return api::CheckLabelValue(name).empty() ? name : "";
}

node::NodeConfig ThisMachine(const NodePlan& plan, node::NodeConfig common) {
  node::NodeConfig node =
      Numbered(std::move(common), plan.name.empty() ? HostName() : plan.name, 0);
  const std::vector<process::GpuInfo> gpus = process::DiscoverGpus();
  if (!gpus.empty()) {
    node.capacity[std::string(api::kGpuResource)] = std::to_string(gpus.size());
    node.labels["nvidia.com/gpu.present"] = "true";
    node.labels["nvidia.com/gpu.count"] = std::to_string(gpus.size());
    node.labels["nvidia.com/gpu.memory"] = std::to_string(gpus[0].memory_bytes >> 20);
    if (const std::string product = ProductLabel(gpus[0].name); !product.empty()) {
      node.labels["nvidia.com/gpu.product"] = product;
    }
    for (const auto& gpu : gpus) node.gpu_device_ids.push_back(gpu.uuid);
  }
  return node;
}

}  // namespace

void AddNodeFlags(cli::Flags& flags, NodePlan& plan) {
  flags.Int("--nodes", &plan.nodes, "N",
            "number of virtual nodes (default: one node, this machine)");
  flags.Int("--gpus-per-node", &plan.gpus_per_node, "N", "GPUs per virtual node");
  flags.Text("--cpus", &plan.cpus, "N", "CPUs per node (default: those of the machine)");
  flags.Text("--memory", &plan.memory, "SIZE", "memory per node (default: that of the machine)");
  flags.Int("--control-plane-nodes", &plan.control_plane_nodes, "N",
            "number of virtual control-plane nodes, which have no GPUs");
  flags.Text("--system-reserved", &plan.system_reserved, "LIST",
             "resources per node that pods cannot use: cpu=80m,memory=500Mi");
}

Result<std::vector<node::NodeConfig>> PlanNodes(const NodePlan& plan) {
  SWELL_RETURN_IF_ERROR(CheckCounts(plan));
  SWELL_RETURN_IF_ERROR(CheckQuantity("--cpus", plan.cpus));
  SWELL_RETURN_IF_ERROR(CheckQuantity("--memory", plan.memory));
  SWELL_ASSIGN_OR_RETURN(auto reserved, ParseReserved(plan.system_reserved));
  if (std::string wrong = api::CheckDnsSubdomain(plan.name); !plan.name.empty() && !wrong.empty()) {
    return cli::Misuse(StrCat("--node-name: ", Quote(plan.name), ": ", wrong));
  }
  const node::NodeConfig common = CommonParts(plan);
  std::vector<node::NodeConfig> nodes;
  const int control_planes = static_cast<int>(plan.control_plane_nodes);
  for (int i = 0; i < control_planes; ++i) {
    node::NodeConfig node =
        Numbered(common, StrCat(plan.name, plan.name.empty() ? "" : "-", "control-", i + 1), i);
    node.control_plane = true;
    node.taints.push_back({"node-role.kubernetes.io/control-plane", "", "NoSchedule"});
    nodes.push_back(std::move(node));
  }
  for (int i = 0; i < plan.nodes; ++i) {
    node::NodeConfig node = Numbered(
        common, StrCat(plan.name.empty() ? "node" : plan.name, "-", i + 1), control_planes + i);
    if (plan.gpus_per_node > 0) {
      node.capacity[std::string(api::kGpuResource)] = std::to_string(plan.gpus_per_node);
      node.labels["nvidia.com/gpu.count"] = std::to_string(plan.gpus_per_node);
      // Each has its part of the node's memory, so that parts of GPUs can be asked for by memory.
      const auto memory = api::Quantity::Parse(node.capacity["memory"]);
      const int64_t mib = memory.ok() ? (memory->Value() >> 20) / plan.gpus_per_node : 0;
      if (mib > 0) node.labels["nvidia.com/gpu.memory"] = std::to_string(mib);
    }
    node.system_reserved = reserved;
    nodes.push_back(std::move(node));
  }
  if (plan.nodes == NodePlan::kThisMachine) {
    nodes.push_back(ThisMachine(plan, common));
    nodes.back().system_reserved = reserved;
  }
  return nodes;
}

void SlowLeases(std::vector<node::NodeConfig>& fleet) {
  const auto interval = std::chrono::seconds(std::clamp<size_t>(fleet.size() / 100, 10, 20));
  for (node::NodeConfig& node : fleet) node.lease_interval = interval;
}

}  // namespace swell::ops
