// POST pods/x/eviction: a deletion that disruption budgets may refuse.
#include <optional>
#include <utility>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/selector.h"
#include "kube/api/objects/pod.h"
#include "kube/apiserver/admission/admission_webhooks.h"
#include "kube/apiserver/codec.h"
#include "kube/apiserver/pods/handlers.h"
#include "kube/apiserver/print/output.h"
#include "kube/apiserver/request/errors.h"
#include "kube/apiserver/writing/delete.h"
#include "kube/apiserver/writing/write.h"

namespace swell::apiserver {
namespace {

constexpr size_t kMaxDisruptedPods = 2000;
constexpr int kRetryAfterS = 10;
// A scheduler that evicts says why in the Eviction's annotations; it ends in the condition.
constexpr std::string_view kReasonAnnotation = "swell.dev/eviction-reason";
constexpr std::string_view kMessageAnnotation = "swell.dev/eviction-message";

Status BudgetError(std::string_view pdb, std::string_view why, int retry_after_s) {
  StatusDetails details;
  details.causes.push_back(
      {"DisruptionBudget", "", StrCat("The disruption budget ", pdb, " ", why)});
  details.retry_after_s = retry_after_s;
  return Status(Code::kTooManyRequests,
                "Cannot evict pod as it would violate the pod's disruption budget.",
                std::move(details));
}

// Budgets whose selector matches the pod.
Result<std::vector<store::EntryPtr>> BudgetsOf(Core& core, const store::Entry& pod) {
  std::vector<store::EntryPtr> budgets;
  SWELL_ASSIGN_OR_RETURN(const store::Listing all,
                         core.store.List("poddisruptionbudgets.policy", pod.key.ns));
  for (const store::EntryPtr& durable : all.entries) {
    // The newest accepted one: evictions in flight have already taken their share of it.
    const auto entry = core.store.Latest(durable->key);
    if (!entry) continue;
    const auto selector =
        api::LabelSelector::FromJson(json::Find(*entry->Parsed(), {"spec", "selector"}));
    if (selector.ok() && selector->Matches(pod.attributes.labels)) budgets.push_back(entry);
  }
  return budgets;
}

// Pods that do not count as disrupted: not running yet, over, or already going.
bool IgnoresBudgets(const json::Value& pod) {
  return !api::IsActive(pod) || api::Phase(pod) == "Pending";
}

// Takes one disruption from the budget, or says why none is left.
Status TakeDisruption(Core& core,
                      const store::EntryPtr& entry,
                      std::string_view pod_name,
                      bool dry_run) {
  json::Value pdb = *entry->Parsed();
  const std::string name(api::Name(pdb));
  if (json::GetInt(pdb, {"status", "observedGeneration"}) <
      json::GetInt(pdb, {"metadata", "generation"})) {
    return BudgetError(name, "is still being processed by the server.", kRetryAfterS);
  }
  const int64_t allowed = json::GetInt(pdb, {"status", "disruptionsAllowed"});
  if (allowed <= 0) {
    return BudgetError(
        name,
        StrCat("needs ", json::GetInt(pdb, {"status", "desiredHealthy"}), " healthy pods and has ",
               json::GetInt(pdb, {"status", "currentHealthy"}), " currently"),
        0);
  }
  if (json::GetObject(pdb, {"status", "disruptedPods"}).size() > kMaxDisruptedPods) {
    return BudgetError(name, "has too many evictions under way", kRetryAfterS);
  }
  if (dry_run) return Status::Ok();
  json::Set(pdb, {"status", "disruptionsAllowed"}, json::Value(allowed - 1));
  json::Set(pdb, {"status", "disruptedPods", pod_name},
            json::Value(api::FormatTime(core.clock.Now())));
  const auto kind = core.scheme->StorageKind("policy", "poddisruptionbudgets");
  if (!kind) return NoSuchResourceError();
  WriteObject(core, *kind, store::EventType::kModified, std::move(pdb),
              [](const Status&, const store::EntryPtr&) {});
  return Status::Ok();
}

Status CheckBudgets(Core& core, const store::EntryPtr& pod, bool dry_run) {
  if (IgnoresBudgets(*pod->Parsed())) return Status::Ok();
  SWELL_ASSIGN_OR_RETURN(const std::vector<store::EntryPtr> budgets, BudgetsOf(core, *pod));
  if (budgets.empty()) return Status::Ok();
  if (budgets.size() > 1) {
    return Status(Code::kInternal,
                  "This pod has more than one PodDisruptionBudget, which the eviction subresource "
                  "does not support.");
  }
  return TakeDisruption(core, budgets[0], pod->key.name, dry_run);
}

// The pod says for good why it ended. One condition that is there already stays.
void AddCondition(Core& core,
                  const api::KindInfo& kind,
                  const store::EntryPtr& entry,
                  const json::Value& eviction) {
  json::Value pod = *entry->Parsed();
  const std::string reason(api::Annotation(eviction, kReasonAnnotation));
  if (api::IsDeleting(pod) ||
      (reason.empty() && api::ConditionIsTrue(pod, api::kDisruptionTarget))) {
    return;
  }
  const std::string_view message = api::Annotation(eviction, kMessageAnnotation);
  json::Array conditions = json::GetArray(pod, {"status", "conditions"});
  api::SetCondition(conditions, api::kDisruptionTarget, "True",
                    reason.empty() ? "EvictionByEvictionAPI" : std::string_view(reason),
                    message.empty() ? "Eviction API: evicting" : message, core.clock.Now());
  json::Set(pod, {"status", "conditions"}, std::move(conditions));
  WriteObject(core, kind, store::EventType::kModified, std::move(pod),
              [](const Status&, const store::EntryPtr&) {});
}

void RespondCreated(Call& call) {
  json::Object status;
  status["kind"] = "Status";
  status["apiVersion"] = "v1";
  status["metadata"] = json::Object();
  status["status"] = "Success";
  status["code"] = 201;
  RespondDocument(call, 201, status);
}

api::KindInfo EvictionKind(const json::Value& eviction) {
  api::KindInfo kind;
  const std::string_view version = json::GetString(eviction, {"apiVersion"});
  kind.gvk = api::ParseGvk(version.empty() ? "policy/v1beta1" : version, "Eviction");
  return kind;
}

Status CheckName(const json::Value& eviction, std::string_view pod) {
  const std::string_view name = api::Name(eviction);
  if (name.empty() || name == pod) return Status::Ok();
  return BadRequestError("name in URL does not match name in Eviction object");
}

Result<json::Value> DecodeEviction(Core& core, Call& call) {
  SWELL_ASSIGN_OR_RETURN(json::Value eviction,
                         DecodeBody(call.request, core.options.body_limit_bytes));
  api::KindInfo kind;
  kind.gvk = {"policy", "v1", "Eviction"};
  SWELL_RETURN_IF_ERROR(CheckMetadataTypes(kind, eviction));
  SWELL_RETURN_IF_ERROR(CheckName(eviction, call.info.name));
  return eviction;
}

}  // namespace

void HandleEviction(Core& core, const CallPtr& call) {
  auto eviction = DecodeEviction(core, *call);
  if (!eviction.ok()) {
    call->Fail(eviction.status());
    return;
  }
  auto entry = core.store.Latest(KeyFor(*call->storage, call->info.ns, call->info.name));
  if (!entry) {
    call->Fail(NotFoundError(*call->kind, call->info.name));
    return;
  }
  for (const json::Value& mode : json::GetArray(*eviction, {"deleteOptions", "dryRun"})) {
    if (mode == "All") call->dry_run = true;
  }
  Admission admission = AdmissionOf(core, *call);
  const api::KindInfo of = EvictionKind(*eviction);
  std::optional<DeleteOptions> options;
  auto read_options = [&] {
    SWELL_RETURN_IF_ERROR(CheckName(*eviction, call->info.name));
    SWELL_ASSIGN_OR_RETURN(options,
                           DeleteOptions::Parse(json::Find(*eviction, {"deleteOptions"}), nullptr));
    return Status::Ok();
  };
  Status status = AskAbout(
      admission, *eviction,
      {"CREATE", nullptr, nullptr, &of, WriteOptionsOf(*call, "CreateOptions")}, read_options);
  if (status.ok()) status = CheckBudgets(core, entry, call->dry_run);
  if (!status.ok()) {
    call->Fail(status);
    return;
  }
  if (!call->dry_run) AddCondition(core, *call->storage, entry, *eviction);
  entry = core.store.Latest(entry->key);
  admission.subresource.clear();
  DeleteObject(core, admission, entry, *options, [call](const Result<Deletion>& result) {
    if (result.ok()) {
      RespondCreated(*call);
    } else {
      call->Fail(result.status());
    }
  });
}

}  // namespace swell::apiserver
