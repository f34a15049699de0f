#include "kube/controllers/cluster/certificate_cleaner.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "kube/api/meta/meta.h"
#include "kube/controllers/queue.h"
#include "kube/controllers/workload.h"
#include "kube/controllers/write_batch.h"

namespace swell::controllers {
namespace {

const client::Resource kRequests{"certificates.k8s.io", "v1", "certificatesigningrequests", false};
constexpr Duration kKeptUndecided = std::chrono::hours(24);
constexpr Duration kKeptAnswered = std::chrono::hours(1);

// Nothing: it waits for its signer, however long that takes.
std::optional<WallTime> EndOf(const json::Value& request) {
  const WallTime made = api::CreationTime(request);
  const json::Array& conditions = json::GetArray(request, {"status", "conditions"});
  if (conditions.empty()) return made + kKeptUndecided;
  const bool issued = !json::GetString(request, {"status", "certificate"}).empty();
  std::optional<WallTime> end;
  for (const json::Value& condition : conditions) {
    if (json::GetString(condition, {"type"}) == "Approved" && !issued) continue;
    const auto since = api::ParseTime(json::GetString(condition, {"lastUpdateTime"}));
    const WallTime kept_until = since.value_or(made) + kKeptAnswered;
    end = end ? std::min(*end, kept_until) : kept_until;
  }
  return end;
}

}  // namespace

CertificateCleaner::CertificateCleaner(Context context)
    : context_(std::move(context)),
      requests_(context_.informers.Of(kRequests)),
      queue_(MakeQueue(context_, "csrcleaner", 4, this, &CertificateCleaner::Reconcile)),
      client_(context_.executor, context_.server, context_.user, "csrcleaner") {
  Follow(requests_, Queued(queue_));
}

void CertificateCleaner::Reconcile(const std::string& name, client::WorkQueue::Done done) {
  const json::SharedValue request = requests_.Get(name);
  const auto end = request && !api::IsDeleting(*request) ? EndOf(*request) : std::nullopt;
  if (!end) return done(Duration::zero());
  const Duration left = *end - context_.clock.Now();
  if (left > Duration::zero()) return done(left);
  client_.Delete(kRequests, "", name, {.precondition_uid = std::string(api::Uid(*request))},
                 Ends(std::move(done)));
}

}  // namespace swell::controllers
