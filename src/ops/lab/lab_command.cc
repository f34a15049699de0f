// swell lab: the laboratory's commands.
#include <algorithm>

#include "base/strings.h"
#include "lab/policy.h"
#include "ops/commands.h"
#include "ops/lab/lab_actions.h"

namespace swell::ops {
namespace {

std::string PolicyList() {
  std::string list;
  for (const lab::PolicyKind& kind : lab::Policies()) {
    list += StrCat("  ", kind.name, std::string(10 - std::min<size_t>(kind.name.size(), 9), ' '),
                   kind.summary, kind.looks_ahead ? "; looks ahead" : "", "\n");
  }
  return list;
}

}  // namespace

cli::Command LabCommand() {
  cli::Command lab{.name = "lab",
                   .group = "Scheduling",
                   .summary = "Compare scheduling policies on traces of jobs.",
                   .standalone = true};
  lab.children = {
      {.name = "run",
       .summary =
           "Play traces of jobs, or the cluster's own past jobs, under one policy or several.",
       .usage = "[TRACE...]",
       .examples = {{"Two policies over two traces",
                     "swell lab run w1.csv w2.csv --profiles profiles --policy tiresias --policy "
                     "goodput"},
                    {"A month of a Slurm cluster under Swell's scheduler",
                     "swell lab run sacct.txt --cluster 32x8 --policy fifo --policy fair"},
                    {"This cluster's last week, with more GPUs and under another quota",
                     "swell lab run --from-cluster --cluster 8x8 --policy fair --quota vision=16"}},
       .notes =
           StrCat("Policies:\n", PolicyList(),
                  "\nTraces are workloads of Pollux, Sia, Rubick and Shockwave, Philly as Pollux' "
                  "authors reduced it, Alibaba's openb, what sacct -P prints, and what "
                  "--save-trace writes. Only --from-cluster contacts a cluster. See "
                  "docs/lab.md."),
       .make = MakeLabRun},
      {.name = "explain",
       .summary = "Explain one job's life in a run of a policy: each decision, and why.",
       .usage = "[TRACE]",
       .examples = {{"Why a job waited and when it changed its size",
                     "swell lab explain sacct.txt --cluster 32x8 --policy fair --job 1742"},
                    {"What would have been decided for a job of this cluster",
                     "swell lab explain --from-cluster --policy goodput --job vision/train"}},
       .make = MakeLabExplain}};
  return lab;
}

}  // namespace swell::ops
