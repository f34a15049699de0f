#include "ops/nodes/pod_runtime.h"

#include <cstdio>

#include "base/strings.h"
#include "kube/node/simulated_runtime.h"

namespace swell {

Result<std::unique_ptr<PodRuntime>> PodRuntime::Make(const std::string& kind,
                                                     Executor& core,
                                                     Clock& clock,
                                                     edge::ProcessOptions options) {
  std::unique_ptr<PodRuntime> made(new PodRuntime(core));
  if (kind == "simulated") {
    // An earlier start, whose pods were processes, left it.
    std::remove(StrCat(options.data_dir, "/", edge::kLimitsFile).c_str());
    made->runtime_ = std::make_unique<node::SimulatedRuntime>(core, clock);
    return made;
  }
  options.shim_command = {"/proc/self/exe", "pod-shim"};
  options.config_dir = options.data_dir;
  SWELL_ASSIGN_OR_RETURN(auto processes, edge::ProcessRuntime::Create(core, std::move(options)));
  if (processes->support().network) made->gateway_ = processes->gateway();
  made->processes_ = processes.get();
  made->runtime_ = std::move(processes);
  return made;
}

std::unique_ptr<node::ServiceNames> PodRuntime::MakeNames(std::shared_ptr<api::RestHandler> server,
                                                          const api::UserInfo& user,
                                                          const node::MachineAddresses& machine,
                                                          node::OnRouted routed) {
  if (processes_ == nullptr) return nullptr;
  return std::make_unique<node::ServiceNames>(core_, std::move(server), user, processes_->Router(),
                                              machine, std::move(routed));
}

std::unique_ptr<node::NetworkWatch> PodRuntime::MakeNetworkWatch(
    Clock& clock,
    std::shared_ptr<api::RestHandler> server,
    const api::UserInfo& user,
    std::set<std::string, std::less<>> nodes) {
  if (processes_ == nullptr) return nullptr;
  return std::make_unique<node::NetworkWatch>(core_, clock, server, user, processes_->Enforcer(),
                                              std::move(nodes));
}

void PodRuntime::Shutdown(std::function<void()> done) {
  if (processes_ == nullptr) return done();
  processes_->Shutdown(std::move(done));
}

}  // namespace swell
