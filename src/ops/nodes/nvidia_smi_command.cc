// swell nvidia-smi: the virtual GPUs of a node, by the script that pods have.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/file.h"
#include "base/strings.h"
#include "cli/session.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/amounts.h"
#include "kube/client/client.h"
#include "kube/process/machine/virtual_smi.h"
#include "ops/commands.h"
#include "ops/flags.h"
#include "ops/nodes/node_gpus.h"

namespace swell::ops {
namespace {

// A directory that goes when the script has ended.
class Scratch {
 public:
  Scratch() {
    const char* parent = std::getenv("TMPDIR");
    path_ = StrCat(parent == nullptr ? "/tmp" : parent, "/swell-nvidia-smi-XXXXXX");
    made_ = ::mkdtemp(path_.data()) != nullptr;
  }
  ~Scratch() {
    if (made_) (void)RemoveTree(path_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  Status Write(std::string_view name, std::string_view text) const {
    if (!made_) return Status(Code::kUnavailable, StrCat(path_, " cannot be made"));
    return WriteFileAtomically(Path(name), text);
  }
  std::string Path(std::string_view name) const { return StrCat(path_, "/", name); }

 private:
  std::string path_;
  bool made_ = false;
};

// As one word of the shell.
std::string ShellWord(std::string_view text) {
  std::string out = "'";
  for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

class NvidiaSmiAction final : public cli::Action {
 public:
  void Declare(cli::Flags& flags) override {
    flags.Text("--node", &node_, "NODE", "the node (default: the only one with virtual GPUs)");
    flags.Switch("-L,--list-gpus", &list_, "a line for each GPU");
    flags.Switch("-q,--query", &full_, "all figures of each GPU");
    flags.Text("--query-gpu", &gpu_fields_, "FIELDS",
               "these figures of each GPU: index,name,uuid,utilization.gpu,memory.used,…");
    flags.Text("--query-compute-apps", &app_fields_, "FIELDS",
               "these figures of each container on the GPUs: process_name,gpu_uuid,used_memory");
    flags.Text("--format", &format_, "FORMAT", "of a query: csv[,noheader][,nounits]");
    flags.Text("-i,--id", &only_, "INDEX|UUID", "this GPU only");
    flags.Refuse("-l,--loop", "use watch: watch swell nvidia-smi");
  }

  Result<int> Run(cli::Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(CheckWords(words));
    SWELL_ASSIGN_OR_RETURN(cli::Api* const api, session.Server());
    SWELL_ASSIGN_OR_RETURN(const json::SharedValue node, FindNode(*api));
    client::ListOptions on_node;
    on_node.field_selector = StrCat("spec.nodeName=", api::Name(*node));
    SWELL_ASSIGN_OR_RETURN(const auto pods, api->List(client::resources::kPods, "", on_node));
    auto usage = api->CallObject({.method = "GET", .path = "/apis/metrics.k8s.io/v1beta1/pods"});
    if (!usage.ok()) {
      session.ErrLine(StrCat("Utilization is not known: ", usage.status().message()));
    }
    SWELL_ASSIGN_OR_RETURN(const NodeGpus gpus,
                           DescribeNodeGpus(*node, pods, usage.ok() ? **usage : json::Value()));
    return Show(session, gpus);
  }

 private:
  Result<json::SharedValue> FindNode(cli::Api& api) const {
    if (!node_.empty()) return api.Get(client::resources::kNodes, "", node_);
    SWELL_ASSIGN_OR_RETURN(const auto nodes, api.List(client::resources::kNodes, ""));
    json::SharedValue only;
    std::vector<std::string> names;
    for (const json::SharedValue& node : nodes) {
      if (!DescribeNodeGpus(*node, {}, {}).ok()) continue;
      if (json::Find(*node, {"status", "capacity", api::kGpuResource}) == nullptr) continue;
      names.emplace_back(api::Name(*node));
      only = node;
    }
    if (names.size() == 1) return only;
    if (names.empty()) return Status(Code::kNotFound, "no node has virtual GPUs");
    return cli::Misuse(StrCat("--node: name one of ", Join(names, ", ")));
  }

  std::string Arguments() const {
    std::string out;
    auto add = [&out](std::string_view flag, std::string_view value) {
      if (!value.empty()) out += StrCat(" ", ShellWord(StrCat(flag, "=", value)));
    };
    if (list_) out += " -L";
    if (full_) out += " -q";
    add("--query-gpu", gpu_fields_);
    add("--query-compute-apps", app_fields_);
    add("--format", format_);
    add("--id", only_);
    return out;
  }

  Result<int> Show(cli::Session& session, const NodeGpus& gpus) const {
    const Scratch scratch;
    SWELL_RETURN_IF_ERROR(scratch.Write("devices", gpus.devices));
    SWELL_RETURN_IF_ERROR(scratch.Write("programs", gpus.programs));
    SWELL_RETURN_IF_ERROR(scratch.Write("nvidia-smi", process::VirtualSmiScript()));
    const std::string line =
        StrCat("SWELL_GPU_DEVICES=", ShellWord(scratch.Path("devices")),
               " SWELL_GPU_PROGRAMS=", ShellWord(scratch.Path("programs")), " /bin/sh ",
               ShellWord(scratch.Path("nvidia-smi")), Arguments());
    std::FILE* pipe = ::popen(line.c_str(), "r");
    if (pipe == nullptr) return Status(Code::kUnavailable, "/bin/sh cannot be started");
    char part[4096];
    for (size_t n = 0; (n = std::fread(part, 1, sizeof part, pipe)) > 0;) {
      session.Out(std::string_view(part, n));
    }
    const int status = ::pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  }

  std::string node_, gpu_fields_, app_fields_, format_, only_;
  bool list_ = false;
  bool full_ = false;
};

}  // namespace

cli::Command NvidiaSmiCommand() {
  return {.name = "nvidia-smi",
          .group = "Cluster",
          .summary = "Show the virtual GPUs of a node as nvidia-smi does in its pods.",
          .examples = {{"A table", "swell nvidia-smi --node node-1"},
                       {"Utilization and memory, for a script",
                        "swell nvidia-smi --node node-1 "
                        "--query-gpu=index,utilization.gpu,memory.used --format=csv,noheader"}},
          .notes =
              "Figures are those of the containers that hold the GPUs. On machines with GPUs "
              "of their own, run their nvidia-smi.",
          .make = cli::Makes<NvidiaSmiAction>()};
}

}  // namespace swell::ops
