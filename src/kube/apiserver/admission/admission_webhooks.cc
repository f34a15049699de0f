#include "kube/apiserver/admission/admission_webhooks.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "json/patch.h"
#include "json/texts.h"
#include "kube/api/cel/cel_access.h"
#include "kube/api/meta/meta.h"
#include "kube/api/schema/schema.h"
#include "kube/apiserver/admission/admission_policies.h"
#include "kube/apiserver/admission/admission_rules.h"
#include "kube/apiserver/request/errors.h"
#include "kube/apiserver/webhooks/conversion.h"
#include "kube/apiserver/webhooks/webhook.h"

namespace swell::apiserver {
namespace {

constexpr std::string_view kGroup = "admissionregistration.k8s.io";
constexpr std::string_view kReviews = "admission.k8s.io/";
constexpr int64_t kTimeoutS = 10;

// One webhook of a (Mutating|Validating)WebhookConfiguration.
struct AdmissionWebhook {
  std::string name;
  std::string id;  // its configuration, its place there and the version of that
  Webhook webhook;
  RequestRules asked;
  bool ignore_failure = false;
  bool again = false;    // reinvocationPolicy IfNeeded
  bool dry_run = false;  // may be asked about dry runs
  Duration timeout{0};
  std::vector<std::string> review_versions;
  // All must hold (matchConditions).
  std::vector<std::shared_ptr<const api::CelProgram>> conditions;
};

// Those of the cluster, read again after their configurations have changed.
struct AdmissionWebhooks final : CorePart {
  bool stale = true;
  std::vector<AdmissionWebhook> mutating;
  std::vector<AdmissionWebhook> validating;
};

AdmissionWebhook WebhookFrom(const json::Value& value, std::string id) {
  AdmissionWebhook hook;
  hook.name = json::GetString(value, {"name"});
  hook.id = std::move(id);
  hook.webhook = Webhook::FromJson(json::Find(value, {"clientConfig"}));
  hook.asked = RequestRulesFrom(value, "rules");
  hook.ignore_failure = json::GetString(value, {"failurePolicy"}) == "Ignore";
  hook.again = json::GetString(value, {"reinvocationPolicy"}) == "IfNeeded";
  const std::string_view effects = json::GetString(value, {"sideEffects"});
  hook.dry_run = effects == "None" || effects == "NoneOnDryRun";
  const int64_t seconds = json::GetInt(value, {"timeoutSeconds"});
  hook.timeout = std::chrono::seconds(seconds > 0 ? seconds : kTimeoutS);
  hook.review_versions = json::Texts(json::GetArray(value, {"admissionReviewVersions"}));
  for (const json::Value& condition : json::GetArray(value, {"matchConditions"})) {
    auto program = api::CelProgram::Compile(
        json::GetString(condition, {"expression"}),
        {"object", "oldObject", "request", std::string(api::kCelAuthorizer)});
    if (program.ok()) hook.conditions.push_back(std::move(*program));
  }
  return hook;
}

// In the order of the configurations' names, and of their lists.
std::vector<AdmissionWebhook> ReadWebhooks(const Core& core, std::string_view plural) {
  std::vector<AdmissionWebhook> hooks;
  const auto all = core.store.List(StrCat(plural, ".", kGroup), "");
  if (!all.ok()) return hooks;
  for (const store::EntryPtr& entry : all->entries) {
    const json::SharedValue object = entry->Parsed();
    size_t index = 0;
    for (const json::Value& hook : json::GetArray(*object, {"webhooks"})) {
      hooks.push_back(
          WebhookFrom(hook, StrCat(plural, " ", entry->key.name, " ", entry->version, " ", index)));
      ++index;
    }
  }
  return hooks;
}

AdmissionWebhooks& WebhooksOf(const Core& core) {
  auto& webhooks = core.Get<AdmissionWebhooks>();
  if (webhooks.stale) {
    webhooks.mutating = ReadWebhooks(core, "mutatingwebhookconfigurations");
    webhooks.validating = ReadWebhooks(core, "validatingwebhookconfigurations");
    webhooks.stale = false;
  }
  return webhooks;
}

void ConfigurationWritten(Core& core, store::EventType, const store::EntryPtr&, bool ok) {
  if (ok) core.Get<AdmissionWebhooks>().stale = true;
}

// --- Answers -------------------------------------------------------------------------------------

struct Verdict {
  json::Array patch;
};

Status CallFailed(const AdmissionWebhook& hook, std::string_view why) {
  const std::string text = StrCat("failed calling webhook ", Quote(hook.name), ": ", why);
  StatusDetails details;
  details.causes.push_back({"", "", text});
  return Status(Code::kInternal, StrCat("Internal error occurred: ", text), std::move(details));
}

// A refusal, in the webhook's words and with its code.
Status Refused(Call& call, const AdmissionWebhook& hook, const json::Value* result) {
  json::Value document = json::Object{{"kind", "Status"},
                                      {"apiVersion", "v1"},
                                      {"metadata", json::Object()},
                                      {"status", "Failure"}};
  std::string text = StrCat("admission webhook ", Quote(hook.name), " denied the request");
  int64_t code = 400;
  std::string reason;
  if (result != nullptr && result->is_object()) {
    const std::string_view message = json::GetString(*result, {"message"});
    reason = json::GetString(*result, {"reason"});
    code = std::clamp<int64_t>(json::GetInt(*result, {"code"}), 400, 599);
    if (message.empty() && reason.empty()) {
      text += " without explanation";
    } else {
      text += StrCat(": ", message.empty() ? reason : message);
    }
    json::Set(document, {"message"}, json::Value(text));
    if (!reason.empty()) json::Set(document, {"reason"}, json::Value(reason));
    if (const json::Value* details = json::Find(*result, {"details"})) {
      json::Set(document, {"details"}, *details);
    }
  } else {
    text += " without explanation";
    json::Set(document, {"message"}, json::Value(text));
  }
  json::Set(document, {"code"}, json::Value(code));
  call.webhook_error = JsonResponse(static_cast<int>(code), document);
  return Status(CodeFromReason(reason, static_cast<int>(code)), text);
}

// The patch of an answer whose form is right; kInternal says what is wrong with it.
Result<json::Array> PatchIn(const json::Value& response, std::string_view version, bool mutating) {
  const std::string_view text = json::GetString(response, {"patch"});
  const json::Value* type = json::Find(response, {"patchType"});
  const bool typed = type != nullptr && !type->is_null();
  auto problem = [](std::string why) { return Status(Code::kInternal, std::move(why)); };
  if (version == "v1" && !mutating) {
    if (!text.empty()) return problem("validating webhook may not return response.patch");
    if (typed) return problem("validating webhook may not return response.patchType");
  } else if (version == "v1") {
    if (!text.empty() && !typed) {
      return problem("webhook returned response.patch but not response.patchType");
    }
    if (text.empty() && typed) {
      return problem("webhook returned response.patchType but not response.patch");
    }
    if (typed && !IsText(*type, "JSONPatch")) {
      return problem(IsText(*type, "") ? "webhook returned invalid response.patchType of \"\""
                                       : StrCat("unsupported patch type ",
                                                Quote(json::GetString(response, {"patchType"}))));
    }
  }
  if (text.empty() || !mutating) return json::Array();
  const auto bytes = Base64Decode(text);
  if (!bytes) return problem("illegal base64 data in response.patch");
  auto patch = json::Parse(*bytes);
  if (!patch.ok() || !patch->is_array()) {
    return problem("response.patch is not a JSON patch");
  }
  json::Array operations = std::move(patch->get_array());
  return operations;
}

// What a review's answer says: allowed, perhaps with a patch, or not.
Result<Verdict> ReadReview(Call& call,
                           const AdmissionWebhook& hook,
                           const json::Value& review,
                           std::string_view version,
                           bool mutating) {
  const json::Value* response = json::Find(review, {"response"});
  if (response == nullptr || !response->is_object()) {
    return CallFailed(hook, "webhook response was absent");
  }
  if (version == "v1") {
    const std::string_view sent = json::GetString(review, {"sent"});
    const std::string_view uid = json::GetString(*response, {"uid"});
    if (uid != sent) {
      return CallFailed(hook, StrCat("expected response.uid=", Quote(sent), ", got ", Quote(uid)));
    }
    const std::string wanted = GvkText(StrCat(kReviews, "v1"), "AdmissionReview");
    const std::string got =
        GvkText(json::GetString(review, {"apiVersion"}), json::GetString(review, {"kind"}));
    if (got != wanted) {
      return CallFailed(hook, StrCat("expected webhook response of ", wanted, ", got ", got));
    }
  }
  auto patch = PatchIn(*response, version, mutating);
  if (!patch.ok()) return CallFailed(hook, patch.status().message());
  for (const json::Value& warning : json::GetArray(*response, {"warnings"})) {
    if (warning.is_string()) call.AddWarning(std::string(json::View(warning.get_string())));
  }
  if (!json::GetBool(*response, {"allowed"})) {
    return Refused(call, hook, json::Find(*response, {"status"}));
  }
  return Verdict{std::move(*patch)};
}

// Whether the webhook's own conditions let it be asked.
Result<bool> ConditionsHold(const Admission& admission,
                            const AdmissionWebhook& hook,
                            const json::Value& request) {
  if (hook.conditions.empty()) return true;
  api::CelBudget budget;
  const api::CelProgram::Values variables = {
      {"object", api::CelValue::FromJson(*json::Find(request, {"object"}))},
      {"oldObject", api::CelValue::FromJson(*json::Find(request, {"oldObject"}))},
      {"request", api::CelValue::FromJson(request)},
      {std::string(api::kCelAuthorizer), AuthorizerOf(admission)}};
  Status error;
  for (const auto& condition : hook.conditions) {
    const auto value = condition->Evaluate(variables, budget);
    const bool* holds = value.ok() ? std::get_if<bool>(&value->data) : nullptr;
    // One that does not hold decides, whatever is wrong with others.
    if (holds != nullptr && !*holds) return false;
    if (holds == nullptr && error.ok()) {
      error = value.ok() ? Status(Code::kInvalid, "cel expression does not evaluate to bool")
                         : value.status();
    }
  }
  if (!error.ok()) return error;
  return true;
}

// Asks one webhook, or says what it has answered. Failures that it may ignore are an empty verdict.
Result<Verdict> AskOne(Admission& admission,
                       const AdmissionWebhook& hook,
                       const Reviewed& reviewed,
                       const api::KindInfo& kind,
                       bool mutating) {
  if (admission.dry_run && !hook.dry_run) {
    return BadRequestError(
        StrCat("admission webhook ", Quote(hook.name), " does not support dry run"));
  }
  const auto version =
      std::find_if(hook.review_versions.begin(), hook.review_versions.end(),
                   [](const std::string& v) { return v == "v1" || v == "v1beta1"; });
  auto failed = [&](const Status& why) -> Result<Verdict> {
    if (!hook.ignore_failure) return why;
    SWELL_LOG_WARNING("apiserver", "webhook failed; going on without it", {"webhook", hook.name},
                      {"error", why.message()});
    return Verdict{};
  };
  if (version == hook.review_versions.end()) {
    return failed(
        CallFailed(hook, "webhook does not accept known AdmissionReview versions (v1, v1beta1)"));
  }
  SWELL_ASSIGN_OR_RETURN(json::Object request, MakeRequest(admission, reviewed, kind, mutating));
  const json::Value asked(std::move(request));
  const auto wanted = ConditionsHold(admission, hook, asked);
  if (!wanted.ok()) {
    return failed(ForbiddenError(admission.kind, admission.name, wanted.status().message()));
  }
  if (!*wanted) return Verdict{};
  const std::string key = StrCat("admit ", hook.id, " ", Digest(json::Print(asked)));
  if (const Callouts::Answer* answer = CalloutsOf(admission.core, *admission.call).Find(key)) {
    if (!answer->ok()) return failed(CallFailed(hook, answer->status().message()));
    auto verdict = ReadReview(*admission.call, hook, **answer, *version, mutating);
    const bool refused = admission.call->webhook_error.has_value();
    return verdict.ok() || refused ? std::move(verdict) : failed(verdict.status());
  }
  const std::string uid = admission.core.random.Uuid();
  json::Object numbered{{"uid", uid}};
  for (const auto& [name, value] : asked.get_object()) numbered[name] = value;
  const json::Value review = json::Object{{"kind", "AdmissionReview"},
                                          {"apiVersion", StrCat(kReviews, *version)},
                                          {"request", std::move(numbered)}};
  SendReview(admission.core, *admission.call, key, hook.webhook, review, hook.timeout, true,
             [key, uid](Callouts& known, const Callouts::Answer& answer) {
               if (!answer.ok()) return known.Put(key, answer);
               json::Value kept = *answer;
               json::Set(kept, {"sent"}, json::Value(uid));
               known.Put(key, std::move(kept));
             });
  return WaitingForCallout();
}

Result<json::Value> RunPatch(const AdmissionWebhook& hook,
                             const json::Value& document,
                             json::Array patch) {
  auto patched = json::ApplyJsonPatch(document, json::Value(std::move(patch)));
  if (patched.ok() && patched->is_object()) return patched;
  return Status(Code::kInternal,
                StrCat("Internal error occurred: admission webhook ", Quote(hook.name),
                       ": the patch cannot be applied: ", patched.status().message()));
}

// One round of mutating webhooks. `again`: those of an earlier round that must be asked once more;
// null in the first.
struct Round {
  const std::set<std::string>* only = nullptr;
  std::set<std::string> invoked;  // that may be asked again
  std::set<std::string> again;    // that must be
  bool changed = false;
};

// What a patch makes of the object, which the webhook saw in its own version.
Result<json::Value> PatchObject(Admission& admission,
                                const AdmissionWebhook& hook,
                                const Reviewed& reviewed,
                                const api::KindInfo& kind,
                                json::Array patch) {
  if (reviewed.of != nullptr) return RunPatch(hook, *reviewed.object, std::move(patch));
  json::Value shown = *reviewed.object;
  SWELL_RETURN_IF_ERROR(ConvertObject(admission.core, *admission.call, shown, kind));
  SWELL_ASSIGN_OR_RETURN(json::Value patched, RunPatch(hook, shown, std::move(patch)));
  // What the kind has no field for is dropped, as in a user's own write.
  if (kind.schema) api::PruneUnknown(*kind.schema, patched);
  SWELL_RETURN_IF_ERROR(ConvertObject(admission.core, *admission.call, patched, admission.kind));
  return patched;
}

Status RunRound(Admission& admission, json::Value& object, Reviewed reviewed, Round& round) {
  const AdmissionWebhooks& webhooks = WebhooksOf(admission.core);
  reviewed.object = &object;
  for (const AdmissionWebhook& hook : webhooks.mutating) {
    SWELL_ASSIGN_OR_RETURN(const api::KindPtr kind, VersionAsked(hook.asked, admission, reviewed));
    if (!kind || (round.only != nullptr && !round.only->contains(hook.id))) continue;
    SWELL_ASSIGN_OR_RETURN(Verdict verdict, AskOne(admission, hook, reviewed, *kind, true));
    if (!verdict.patch.empty()) {
      SWELL_ASSIGN_OR_RETURN(json::Value patched, PatchObject(admission, hook, reviewed, *kind,
                                                              std::move(verdict.patch)));
      if (!json::Equal(patched, object)) {
        object = std::move(patched);
        round.changed = true;
        round.again.merge(round.invoked);
      }
    }
    if (hook.again) round.invoked.insert(hook.id);
  }
  return Status::Ok();
}

}  // namespace

bool HasAdmissionWebhooks(const Core& core) {
  const AdmissionWebhooks& webhooks = WebhooksOf(core);
  return !webhooks.mutating.empty() || !webhooks.validating.empty() || HasAdmissionPolicies(core);
}

bool AsksWebhooks(const Admission& admission) {
  if (!HasAdmissionWebhooks(admission.core)) return false;
  const std::string& sub = admission.subresource;
  return admission.call != nullptr && !admission.kind.read_only && sub != "binding" &&
         sub != "eviction" && sub != "scale" &&
         admission.call->storage->gvk.kind == admission.kind.gvk.kind &&
         admission.kind.gvk.group != kGroup;  // or a wrong one could not be taken away
}

Status AskMutating(Admission& admission,
                   json::Value& object,
                   const Reviewed& about,
                   const std::function<Status(json::Value&)>& complete) {
  Round first;
  SWELL_RETURN_IF_ERROR(RunRound(admission, object, about, first));
  if (!first.changed) return Status::Ok();
  const json::Value before = object;
  SWELL_RETURN_IF_ERROR(complete(object));
  // What the server itself has changed since is news to all that were asked.
  if (!json::Equal(before, object)) first.again.merge(first.invoked);
  if (first.again.empty()) return Status::Ok();
  Round second;
  second.only = &first.again;
  SWELL_RETURN_IF_ERROR(RunRound(admission, object, about, second));
  return second.changed ? complete(object) : Status::Ok();
}

Status AskValidating(Admission& admission, const Reviewed& reviewed) {
  SWELL_RETURN_IF_ERROR(AskPolicies(admission, reviewed));
  const AdmissionWebhooks& webhooks = WebhooksOf(admission.core);
  Status first;
  bool waiting = false;
  for (const AdmissionWebhook& hook : webhooks.validating) {
    SWELL_ASSIGN_OR_RETURN(const api::KindPtr kind, VersionAsked(hook.asked, admission, reviewed));
    if (!kind) continue;
    // All are asked at once; the first one's refusal is the answer.
    auto kept = std::exchange(admission.call->webhook_error, std::nullopt);
    const auto verdict = AskOne(admission, hook, reviewed, *kind, false);
    const bool unanswered = !verdict.ok() && IsWaitingForCallout(verdict.status());
    waiting = waiting || unanswered;
    if (verdict.ok() || unanswered || !first.ok()) {
      admission.call->webhook_error = std::move(kept);
    } else {
      first = verdict.status();
    }
  }
  return waiting ? WaitingForCallout() : first;
}

Status AskAbout(Admission& admission,
                json::Value& object,
                Reviewed about,
                const std::function<Status()>& check) {
  if (!HasAdmissionWebhooks(admission.core)) return check();
  SWELL_RETURN_IF_ERROR(
      AskMutating(admission, object, about, [](json::Value&) { return Status::Ok(); }));
  SWELL_RETURN_IF_ERROR(check());
  about.object = &object;
  return AskValidating(admission, about);
}

Status AskBoth(Admission& admission, const Reviewed& reviewed) {
  const AdmissionWebhooks& webhooks = WebhooksOf(admission.core);
  for (const AdmissionWebhook& hook : webhooks.mutating) {
    SWELL_ASSIGN_OR_RETURN(const api::KindPtr kind, VersionAsked(hook.asked, admission, reviewed));
    if (!kind) continue;
    SWELL_ASSIGN_OR_RETURN(const Verdict verdict, AskOne(admission, hook, reviewed, *kind, true));
    if (verdict.patch.empty()) continue;
    return Status(Code::kInternal,
                  StrCat("Internal error occurred: admission webhook ", Quote(hook.name),
                         " attempted to modify the object, which is not supported for this "
                         "operation"));
  }
  return AskValidating(admission, reviewed);
}

Status AskConnect(Core& core, Call& call, std::string_view kind, const json::Object& options) {
  if (!HasAdmissionWebhooks(core)) return Status::Ok();
  api::KindInfo of;
  of.gvk = {"", "v1", std::string(kind)};
  json::Value object = json::Object{{"kind", kind}, {"apiVersion", "v1"}};
  for (const auto& [key, value] : options) object.get_object()[key] = value;
  Admission admission = AdmissionOf(core, call);
  return AskBoth(admission, {"CONNECT", &object, nullptr, &of, json::Value(nullptr)});
}

json::Value WriteOptionsOf(const Call& call, std::string_view kind) {
  json::Value options = json::Object{{"kind", kind}, {"apiVersion", "meta.k8s.io/v1"}};
  if (call.dry_run) json::Set(options, {"dryRun"}, json::Array{json::Value("All")});
  const std::string_view manager = call.query.Get("fieldManager");
  if (!manager.empty()) json::Set(options, {"fieldManager"}, json::Value(manager));
  return options;
}

void RegisterAdmissionWebhooks(Core& core) {
  core.Add(std::make_unique<AdmissionWebhooks>());
  const ResourceHooks hooks{.written = ConfigurationWritten, .generation = true};
  core.hooks.Add(StrCat("mutatingwebhookconfigurations.", kGroup), hooks);
  core.hooks.Add(StrCat("validatingwebhookconfigurations.", kGroup), hooks);
}

}  // namespace swell::apiserver
