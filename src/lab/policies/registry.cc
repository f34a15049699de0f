#include "base/strings.h"
#include "lab/policies/policies.h"

namespace swell::lab {

const std::vector<PolicyKind>& Policies() {
  static const std::vector<PolicyKind> kPolicies{
      {.name = "goodput",
       .summary = "Swell: each GPU goes where it adds most goodput",
       .on_events = true,
       .batch = BatchMode::kAdaptive,
       .resizes = true,
       .many_types = true,
       .plans = true,
       .make = MakeGoodput},
      {.name = "recurring",
       .summary = "as goodput, but a job begins with what earlier jobs of its application measured",
       .on_events = true,
       .batch = BatchMode::kAdaptive,
       .learns = true,
       .resizes = true,
       .many_types = true,
       .plans = true,
       .make = MakeGoodput},
      {.name = "sia",
       .summary = "an integer program over types and sizes, by goodput (SOSP'23)",
       .batch = BatchMode::kAdaptive,
       .resizes = true,
       .many_types = true,
       .make = MakeSia},
      {.name = "rubick",
       .summary = "GPUs go to the steepest curves, on one node; guaranteed jobs first (MLSys'25)",
       .resizes = true,
       .plans = true,
       .make = MakeRubick},
      {.name = "tiresias",
       .summary = "two queues by attained service, with preemption (NSDI'19)",
       .make = MakeTiresias},
      {.name = "fifo",
       .summary = "Swell's scheduler, one project, jobs rigid",
       .on_events = true,
       .make = MakeFifo},
      {.name = "fair",
       .summary = "Swell's scheduler, a project for each tenant with its quota; jobs rigid",
       .on_events = true,
       .make = MakeFair},
      {.name = "shortest",
       .summary = "the job with the least left to train first, with preemption",
       .looks_ahead = true,
       .make = MakeShortest},
      {.name = "critical",
       .summary = "as shortest, but a job that would end last if it waited goes first",
       .looks_ahead = true,
       .make = MakeCritical},
      {.name = "optimus",
       .summary = "the next GPU goes where it saves most time, by an oracle (EuroSys'18)",
       .looks_ahead = true,
       .resizes = true,
       .make = MakeOptimus},
      {.name = "afs",
       .summary = "the shorter job first, unless a longer one gains more from a GPU (NSDI'21)",
       .on_events = true,
       .resizes = true,
       .make = MakeAfs},
      {.name = "max-min",
       .summary = "equal parts of all GPU time, as in Gavel (OSDI'20)",
       .round_s = 360,
       .many_types = true,
       .bytes = BytesOfMaxMin,
       .make = MakeMaxMin},
      {.name = "max-sum",
       .summary = "the most steps per second of all jobs together, as in Gavel (OSDI'20)",
       .round_s = 360,
       .many_types = true,
       .bytes = BytesOfMaxSum,
       .make = MakeMaxSum},
      {.name = "pollux",
       .summary = "a genetic algorithm over jobs and nodes, by goodput (OSDI'21)",
       .batch = BatchMode::kAdaptive,
       .resizes = true,
       .bytes = BytesOfPollux,
       .make = MakePollux},
      {.name = "shockwave",
       .summary = "plans 20 rounds: progress for all, and an early end for the longest (NSDI'23)",
       .round_s = 120,
       .looks_ahead = true,
       .make = MakeShockwave},
  };
  return kPolicies;
}

Result<const PolicyKind*> FindPolicy(std::string_view name) {
  std::vector<std::string> names;
  for (const PolicyKind& kind : Policies()) {
    if (kind.name == name) return &kind;
    names.push_back(kind.name);
  }
  return Status(Code::kInvalid,
                StrCat("unknown policy ", Quote(name), "; the policies are ", Join(names, ", ")));
}

}  // namespace swell::lab
