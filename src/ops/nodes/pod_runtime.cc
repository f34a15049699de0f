#include "ops/nodes/pod_runtime.h"

#include "base/strings.h"
#include "kube/cri/cri_runtime.h"
#include "kube/node/runtime/simulated_runtime.h"

namespace swell::ops {

Result<RuntimeKind> ParseRuntimeKind(const std::string& text) {
  RuntimeKind kind;
  constexpr std::string_view kEngine = "cri=";
  if (text.starts_with(kEngine)) {
    kind.engine_socket = text.substr(kEngine.size());
    constexpr std::string_view kScheme = "unix://";
    if (kind.engine_socket.starts_with(kScheme)) kind.engine_socket.erase(0, kScheme.size());
    if (kind.engine_socket.starts_with('/')) return kind;
    return Status(Code::kInvalid, StrCat("--runtime ", Quote(text),
                                         ": expected the absolute path of an engine's socket, as "
                                         "cri=/run/containerd/containerd.sock"));
  }
  kind.simulated = text == "simulated";
  if (kind.simulated || text == "process") return kind;
  return Status(Code::kInvalid,
                StrCat("--runtime ", Quote(text), ": expected process, cri=SOCKET or simulated"));
}

void AddRuntimeFlag(cli::Flags& flags, std::string& to) {
  flags.Text("--runtime", &to, "KIND",
             "process: pods are processes of this machine; cri=SOCKET: the container engine behind "
             "this socket runs them (containerd, CRI-O); simulated: no process is started "
             "(default process)");
}

namespace {

Result<std::unique_ptr<process::HostedRuntime>> MakeHosted(const RuntimeKind& kind,
                                                           net::Reactor& core,
                                                           process::ProcessOptions options) {
  if (kind.processes()) {
    options.shim_command = {"/proc/self/exe", "pod-shim"};
    options.config_dir = options.data_dir;
    SWELL_ASSIGN_OR_RETURN(std::unique_ptr<process::HostedRuntime> made,
                           process::ProcessRuntime::Create(core, std::move(options)));
    return made;
  }
  SWELL_ASSIGN_OR_RETURN(std::unique_ptr<process::HostedRuntime> made,
                         cri::CriRuntime::Create(core, {.socket = kind.engine_socket,
                                                        .data_dir = options.data_dir,
                                                        .cluster_cidr = options.cluster_cidr,
                                                        .keep_logs = options.keep_logs}));
  return made;
}

}  // namespace

Result<std::unique_ptr<PodRuntime>> PodRuntime::Make(const std::string& kind,
                                                     net::Reactor& core,
                                                     Clock& clock,
                                                     process::ProcessOptions options) {
  SWELL_ASSIGN_OR_RETURN(const RuntimeKind parsed, ParseRuntimeKind(kind));
  std::unique_ptr<PodRuntime> made(new PodRuntime(core));
  if (parsed.simulated) {
    made->runtime_ = std::make_unique<node::SimulatedRuntime>(core, clock);
    return made;
  }
  SWELL_ASSIGN_OR_RETURN(auto hosted, MakeHosted(parsed, core, std::move(options)));
  made->gateway_ = hosted->gateway();
  made->hosted_ = hosted.get();
  made->runtime_ = std::move(hosted);
  return made;
}

std::unique_ptr<node::ServiceNames> PodRuntime::MakeNames(std::shared_ptr<api::RestHandler> server,
                                                          const api::UserInfo& user,
                                                          const node::MachineAddresses& machine,
                                                          node::OnRouted routed) {
  if (hosted_ == nullptr) return nullptr;
  return std::make_unique<node::ServiceNames>(core_, std::move(server), user, hosted_->Router(),
                                              machine, std::move(routed));
}

std::unique_ptr<node::NetworkWatch> PodRuntime::MakeNetworkWatch(
    Clock& clock,
    std::shared_ptr<api::RestHandler> server,
    const api::UserInfo& user,
    std::set<std::string, std::less<>> nodes) {
  if (hosted_ == nullptr) return nullptr;
  return std::make_unique<node::NetworkWatch>(core_, clock, server, user, hosted_->Enforcer(),
                                              std::move(nodes));
}

void PodRuntime::Shutdown(std::function<void()> done) {
  if (hosted_ == nullptr) return done();
  hosted_->Shutdown(std::move(done));
}

}  // namespace swell::ops
