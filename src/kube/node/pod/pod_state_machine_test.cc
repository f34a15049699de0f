// The table of a pod's states: the usual ways through it, and the events that it ignores.
#include "kube/node/pod/pod_state_machine.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace swell::node {
namespace {

using E = PodEvent;

constexpr E kAllEvents[] = {E::kQueued,
                            E::kAdopted,
                            E::kAdmitted,
                            E::kSourcesFetched,
                            E::kSandboxReady,
                            E::kSandboxFailed,
                            E::kContainersDone,
                            E::kTerminate,
                            E::kAllStopped,
                            E::kDeleteSent,
                            E::kDeleteFailed,
                            E::kDeletedFromApi,
                            E::kRemovedFromRuntime};

std::string_view PodStateName(PodState state) {
  static constexpr std::string_view kNames[] = {
      "New",         "Admitting", "Preparing", "CreatingSandbox", "Running",  "Completing",
      "Terminating", "Killing",   "Stopped",   "Deleting",        "Removing", "Removed"};
  return kNames[static_cast<size_t>(state)];
}

// The states that a new pod passes through; "-" where an event is ignored.
std::string Path(const std::vector<E>& events) {
  PodStateMachine machine;
  std::string path;
  for (E event : events) {
    if (!path.empty()) path += ' ';
    path += machine.Handle(event) ? PodStateName(machine.state()) : "-";
  }
  return path;
}

TEST(PodStateMachine, APodRunsToItsEnd) {
  EXPECT_EQ(
      Path({E::kQueued, E::kAdmitted, E::kSourcesFetched, E::kSandboxReady, E::kContainersDone,
            E::kAllStopped, E::kDeleteSent, E::kDeletedFromApi, E::kRemovedFromRuntime}),
      "Admitting Preparing CreatingSandbox Running Completing Stopped Deleting Removing "
      "Removed");
}

TEST(PodStateMachine, AFailedSandboxIsPreparedAgain) {
  EXPECT_EQ(
      Path({E::kQueued, E::kAdmitted, E::kSourcesFetched, E::kSandboxFailed, E::kSourcesFetched}),
      "Admitting Preparing CreatingSandbox Preparing CreatingSandbox");
}

TEST(PodStateMachine, AnAdoptedPodNeedsNoSandbox) {
  EXPECT_EQ(Path({E::kAdopted, E::kSandboxReady}), "Preparing Running");
}

TEST(PodStateMachine, ASandboxThatComesTooLateChangesNothing) {
  EXPECT_EQ(Path({E::kQueued, E::kAdmitted, E::kSourcesFetched, E::kTerminate, E::kAllStopped,
                  E::kSandboxReady, E::kSandboxFailed}),
            "Admitting Preparing CreatingSandbox Terminating Stopped - -");
}

TEST(PodStateMachine, AnObjectThatIsGoneIsNotDeletedAgain) {
  EXPECT_EQ(Path({E::kAdopted, E::kSandboxReady, E::kTerminate, E::kDeletedFromApi, E::kAllStopped,
                  E::kDeleteSent}),
            "Preparing Running Terminating Killing Removing -");
}

TEST(PodStateMachine, ARefusedDeletionIsSentAgain) {
  EXPECT_EQ(Path({E::kContainersDone, E::kAllStopped, E::kDeleteSent, E::kDeleteFailed,
                  E::kDeleteSent, E::kDeletedFromApi}),
            "Completing Stopped Deleting Stopped Deleting Removing");
}

// Every state that any sequence of events reaches, and what must hold in it.
TEST(PodStateMachine, NoEventLeadsBackFromTheEnd) {
  std::vector<PodStateMachine> reached(1);
  for (size_t i = 0; i < reached.size(); ++i) {
    for (E event : kAllEvents) {
      const PodStateMachine before = reached[i];
      PodStateMachine after = before;
      if (!after.Handle(event)) continue;
      EXPECT_TRUE(!before.ending() || after.ending()) << PodStateName(before.state());
      EXPECT_TRUE(!before.stopped() || after.stopped()) << PodStateName(before.state());
      EXPECT_TRUE(!before.deleted_from_api() || after.deleted_from_api())
          << PodStateName(before.state());
      EXPECT_FALSE(after.stopped() && after.holds_resources()) << PodStateName(after.state());
      bool known = false;
      for (const PodStateMachine& machine : reached) known |= machine.Is(after.state());
      if (!known) reached.push_back(after);
    }
  }
  EXPECT_EQ(reached.size(), static_cast<size_t>(PodState::kRemoved) + 1);
}

}  // namespace
}  // namespace swell::node
