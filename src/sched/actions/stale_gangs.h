// Gangs below their minimum: since when, and which of them a cycle reports.
// - Threads: none; the scheduler's thread.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "sched/cycle/context.h"

namespace swell::sched {

// Notes since when groups are below their minimum; answers those it noted just now. Before promises
// are lifted: a group that is promised the room it lacks is not below.
std::vector<GroupId> NoteStale(CycleContext& context);

// Reports groups that fell below their minimum in this cycle or rose above it, once for each group.
// A change that the same cycle undid is not reported.
// `fresh` is NoteStale's answer, `noticed` what cycles have reported so far.
void ReportStale(CycleContext& context,
                 const std::vector<GroupId>& fresh,
                 std::set<GroupId>& noticed);

}  // namespace swell::sched
