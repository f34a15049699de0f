// FailureRules: what follows from failures: how much memory a killed container gets next, and how
// long a job that fails again and again waits for its next start and may not preempt.
// - Threads: pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "json/value.h"
#include "kube/api/objects/failure.h"

namespace swell::jobs {

// How long a job waits for its next start after `crashes` failures in a row; the same rule as nodes
// have for containers. Zero: it starts at once.
Duration RestartDelay(int64_t crashes);
// How long it may not preempt others after that; zero: it may at once.
Duration PreemptionHold(int64_t crashes);
// The same for a job whose members could not be started at all: what others gave up for it was of
// no use, and the next place would probably be of none either. Bounded, so that a job whose image
// comes later gets what it has a right to without anybody's help.
Duration UnstartedHold(int64_t crashes);

// The latest failure that a job was charged with, as its annotation has it.
struct ChargedFailure {
  WallTime time;
  api::FailureClass which = api::FailureClass::kUnknown;

  static std::optional<ChargedFailure> Parse(std::string_view text);
  std::string ToString() const;
  // The failure `which` of a pod made at `created` belongs to this one: a member ended, and its
  // peers lost it.
  bool Covers(api::FailureClass other, WallTime created, WallTime now) const;
};

// The value of kAvoidedNodes with `node`, which is suspected. It names kAvoidedNodesMost at most.
constexpr size_t kAvoidedNodesMost = 4;
std::string AddAvoidedNode(std::string_view avoided, std::string_view node);
// The pod goes to other nodes where they have room. A preference: a repaired node is used again.
void AvoidNodes(json::Value& pod, std::string_view avoided);

// Memory limits by "role/container", in bytes.
using MemoryRaises = std::map<std::string, int64_t, std::less<>>;
MemoryRaises ParseMemoryRaises(std::string_view text);
std::string ToString(const MemoryRaises& raises);
// "1536Mi".
std::string MemoryText(int64_t bytes);
// The limit after `current`, of a container whose template says `first`; `most` bounds it. 0: it
// cannot be raised any more.
int64_t NextMemory(int64_t first, int64_t current, int64_t most);
// Gives the containers of a role's pod the limits of `raises`, unless they have more.
void RaiseMemoryOf(json::Value& pod, std::string_view role, const MemoryRaises& raises);
// The memory limit of the container, or else of its pod as a whole, in bytes; 0 if neither has one.
int64_t MemoryLimitOf(const json::Value& pod, std::string_view container);

}  // namespace swell::jobs
