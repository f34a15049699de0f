#include "kube/controllers/eviction.h"

#include <string>

#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "kube/controllers/write_batch.h"

namespace swell::controllers {

json::Object DisruptionCondition(std::string_view reason,
                                 std::string_view message,
                                 std::string_view time) {
  return {{"type", api::kDisruptionTarget},
          {"status", "True"},
          {"reason", reason},
          {"message", message},
          {"lastTransitionTime", time}};
}

void EvictPod(client::Client& client,
              const json::SharedValue& pod,
              const json::Object& condition,
              const client::WorkQueue::Done& done) {
  const json::Value patch =
      json::Object{{"metadata", json::Object{{"uid", api::Uid(*pod)}}},
                   {"status", json::Object{{"conditions", json::Array{condition}}}}};
  client.Patch(
      client::resources::kPods, api::Namespace(*pod), api::Name(*pod),
      client::PatchType::kStrategic, patch,
      [&client, pod, done](const Result<json::SharedValue>& marked) {
        if (!marked.ok()) return done(Outcome(marked.status()));
        client.Delete(client::resources::kPods, api::Namespace(*pod), api::Name(*pod),
                      {.precondition_uid = std::string(api::Uid(*pod))}, Ends(done));
      },
      "status");
}

}  // namespace swell::controllers
