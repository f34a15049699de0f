#include "kube/node/pod/pod_state_machine.h"

#include <algorithm>
#include <iterator>

namespace swell::node {
namespace {

using S = PodState;
using E = PodEvent;

struct Transition {
  S from;
  E event;
  S to;
};

constexpr Transition kTransitions[] = {
    {S::kNew, E::kQueued, S::kAdmitting},
    {S::kNew, E::kAdopted, S::kPreparing},
    // The API says that its containers ended for good, before this agent started.
    {S::kNew, E::kContainersDone, S::kCompleting},
    {S::kNew, E::kTerminate, S::kTerminating},

    {S::kAdmitting, E::kAdmitted, S::kPreparing},
    {S::kAdmitting, E::kTerminate, S::kTerminating},
    {S::kAdmitting, E::kDeletedFromApi, S::kKilling},

    {S::kPreparing, E::kSourcesFetched, S::kCreatingSandbox},
    // An adopted pod has its sandbox.
    {S::kPreparing, E::kSandboxReady, S::kRunning},
    {S::kPreparing, E::kTerminate, S::kTerminating},
    {S::kPreparing, E::kDeletedFromApi, S::kKilling},

    {S::kCreatingSandbox, E::kSandboxReady, S::kRunning},
    {S::kCreatingSandbox, E::kSandboxFailed, S::kPreparing},
    {S::kCreatingSandbox, E::kTerminate, S::kTerminating},
    {S::kCreatingSandbox, E::kDeletedFromApi, S::kKilling},

    {S::kRunning, E::kContainersDone, S::kCompleting},
    {S::kRunning, E::kTerminate, S::kTerminating},
    {S::kRunning, E::kDeletedFromApi, S::kKilling},

    {S::kCompleting, E::kAllStopped, S::kStopped},
    {S::kCompleting, E::kTerminate, S::kTerminating},
    {S::kCompleting, E::kDeletedFromApi, S::kKilling},

    {S::kTerminating, E::kAllStopped, S::kStopped},
    {S::kTerminating, E::kDeletedFromApi, S::kKilling},

    {S::kKilling, E::kAllStopped, S::kRemoving},

    {S::kStopped, E::kDeleteSent, S::kDeleting},
    {S::kStopped, E::kDeletedFromApi, S::kRemoving},

    {S::kDeleting, E::kDeleteFailed, S::kStopped},
    {S::kDeleting, E::kDeletedFromApi, S::kRemoving},

    {S::kRemoving, E::kRemovedFromRuntime, S::kRemoved},
};

}  // namespace

bool PodStateMachine::Handle(PodEvent event) {
  const auto* row = std::find_if(std::begin(kTransitions), std::end(kTransitions),
                                 [&](const Transition& transition) {
                                   return transition.from == state_ && transition.event == event;
                                 });
  if (row == std::end(kTransitions)) return false;
  state_ = row->to;
  return true;
}

}  // namespace swell::node
