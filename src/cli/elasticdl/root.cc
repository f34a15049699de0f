// The whole of `elasticdl`.
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/elasticdl/elasticdl.h"

namespace swell::cli {

Command ElasticdlRoot() {
  Command root{
      .name = "elasticdl",
      .summary = "ElasticDL's client for elastic training, provided by Swell.",
      .examples =
          {{"Train with a varying number of workers",
            "elasticdl train --job_name=mnist --image_name=elasticdl:dev --model_file=mnist.py "
            "--training_data=/data/mnist/train --num_workers=2"},
           {"List its pods", "kubectl get pods -l elasticdl_job_name=mnist"}},
      .children = {elasticdl::SubmitSpec(elasticdl::Mode::kTrain),
                   elasticdl::SubmitSpec(elasticdl::Mode::kEvaluate),
                   elasticdl::SubmitSpec(elasticdl::Mode::kPredict), elasticdl::ZooSpec(),
                   VersionCommandSpec(), CompletionCommandSpec("elasticdl"), CompleteCommandSpec()},
  };
  for (Command& child : root.children) child.group.clear();
  return root;
}

}  // namespace swell::cli
