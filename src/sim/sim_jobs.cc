#include "sim/sim_jobs.h"

#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/strings.h"

namespace swell::sim {
namespace {

std::string Template(const PodShape& pod, std::string_view more_spec = {}) {
  const std::string limits =
      pod.gpus > 0 ? StrCat(R"(,"resources":{"limits":{"nvidia.com/gpu":")", pod.gpus, R"("}})")
                   : "";
  const std::string priority =
      pod.priority.empty() ? "" : StrCat(R"("priorityClassName":")", pod.priority, R"(",)");
  return StrCat(R"({"metadata":{"annotations":{"swell.dev/run-seconds":")", pod.run_s,
                R"(","swell.dev/stop-seconds":")", pod.stop_s, R"(","swell.dev/exit-code":")",
                pod.code, R"("}},"spec":{)", priority,
                R"("containers":[{"name":"pytorch","image":"x")", limits, "}]", more_spec, "}}");
}

std::string Head(std::string_view api_version, std::string_view kind, const JobShape& job) {
  return StrCat(R"("apiVersion":")", api_version, R"(","kind":")", kind,
                R"(","metadata":{"namespace":")", job.ns, R"(","name":")", job.name, '"');
}

json::Value Parsed(const std::string& text) {
  auto value = json::Parse(text);
  SWELL_CHECK_MSG(value.ok(), text);
  return std::move(value).value();
}

}  // namespace

json::Value PyTorchJob(const JobShape& job,
                       const std::string& restart_policy,
                       const std::string& on_preemption) {
  const std::string one =
      StrCat(R"("restartPolicy":")", restart_policy, R"(","template":)", Template(job.pod), "}");
  const std::string workers =
      job.members > 1 ? StrCat(R"(,"Worker":{"replicas":)", job.members - 1, ",", one) : "";
  return Parsed(StrCat("{", Head("kubeflow.org/v1", "PyTorchJob", job),
                       R"(,"annotations":{"swell.dev/on-preemption":")", on_preemption,
                       R"("}},"spec":{"pytorchReplicaSpecs":{"Master":{"replicas":1,)", one,
                       workers, "}}}"));
}

json::Value TrainingJob(const JobShape& job) {
  const std::string scaling =
      job.goodput ? R"("autoscaling":{"mode":"Goodput","intervalSeconds":2,"observations":2},)"
                  : "";
  return Parsed(StrCat("{", Head("swell.dev/v1", "TrainingJob", job), R"(},"spec":{)", scaling,
                       R"("roles":{"worker":{"replicas":)", job.goodput ? 1 : job.members,
                       R"(,"elastic":{"minReplicas":1,"maxReplicas":)", job.members,
                       R"(},"template":)", Template(job.pod), "}}}}"));
}

json::Value BatchJob(const JobShape& job) {
  const std::string pod = Template(job.pod, R"(,"restartPolicy":"Never","schedulerName":"swell")");
  return Parsed(StrCat("{", Head("batch/v1", "Job", job), R"(},"spec":{"completions":)",
                       job.members, R"(,"parallelism":2,"template":)", pod, "}}"));
}

}  // namespace swell::sim
