#include "kube/apiserver/admission/admission_webhooks.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "json/patch.h"
#include "kube/api/cel/cel.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/selector.h"
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
  struct Rule {
    std::vector<std::string> operations, groups, versions, resources;
    std::string scope;
  };
  std::string name;
  std::string id;  // its configuration, its place there and the version of that
  Webhook webhook;
  std::vector<Rule> rules;
  api::LabelSelector namespaces;
  api::LabelSelector objects;
  bool ignore_failure = false;
  bool equivalent = true;
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

std::vector<std::string> Texts(const json::Array& list) {
  std::vector<std::string> out;
  for (const json::Value& item : list) {
    if (item.is_string()) out.emplace_back(json::View(item.get_string()));
  }
  return out;
}

api::LabelSelector SelectorOf(const json::Value* selector) {
  static const json::Value everything = json::Object();
  auto parsed = api::LabelSelector::FromJson(selector == nullptr ? &everything : selector);
  return parsed.ok() ? std::move(*parsed) : api::LabelSelector();
}

AdmissionWebhook WebhookFrom(const json::Value& value, std::string id) {
  AdmissionWebhook hook;
  hook.name = json::GetString(value, {"name"});
  hook.id = std::move(id);
  hook.webhook = Webhook::FromJson(json::Find(value, {"clientConfig"}));
  for (const json::Value& rule : json::GetArray(value, {"rules"})) {
    hook.rules.push_back(
        {Texts(json::GetArray(rule, {"operations"})), Texts(json::GetArray(rule, {"apiGroups"})),
         Texts(json::GetArray(rule, {"apiVersions"})), Texts(json::GetArray(rule, {"resources"})),
         std::string(json::GetString(rule, {"scope"}))});
  }
  hook.namespaces = SelectorOf(json::Find(value, {"namespaceSelector"}));
  hook.objects = SelectorOf(json::Find(value, {"objectSelector"}));
  hook.ignore_failure = json::GetString(value, {"failurePolicy"}) == "Ignore";
  hook.equivalent = json::GetString(value, {"matchPolicy"}) != "Exact";
  hook.again = json::GetString(value, {"reinvocationPolicy"}) == "IfNeeded";
  const std::string_view effects = json::GetString(value, {"sideEffects"});
  hook.dry_run = effects == "None" || effects == "NoneOnDryRun";
  const int64_t seconds = json::GetInt(value, {"timeoutSeconds"});
  hook.timeout = std::chrono::seconds(seconds > 0 ? seconds : kTimeoutS);
  hook.review_versions = Texts(json::GetArray(value, {"admissionReviewVersions"}));
  for (const json::Value& condition : json::GetArray(value, {"matchConditions"})) {
    auto program = api::CelProgram::Compile(json::GetString(condition, {"expression"}),
                                            {"object", "oldObject", "request"});
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

bool Has(const std::vector<std::string>& list, std::string_view wanted) {
  return std::any_of(list.begin(), list.end(),
                     [&](const std::string& one) { return one == "*" || one == wanted; });
}

bool IsNamespaces(const api::KindInfo& kind) {
  return kind.gvk.group.empty() && kind.plural == "namespaces";
}

// The namespace of a request; of one about a namespace, its name.
const std::string& NamespaceOf(const Admission& admission) {
  return IsNamespaces(admission.kind) ? admission.name : admission.ns;
}

bool RuleMatches(const AdmissionWebhook::Rule& rule,
                 const api::KindInfo& kind,
                 std::string_view operation,
                 std::string_view subresource) {
  if (rule.scope == "Namespaced" && !kind.namespaced) return false;
  if (rule.scope == "Cluster" && kind.namespaced) return false;
  if (!Has(rule.operations, operation) || !Has(rule.groups, kind.gvk.group) ||
      !Has(rule.versions, kind.gvk.version)) {
    return false;
  }
  for (const std::string& both : rule.resources) {
    const size_t slash = both.find('/');
    const std::string resource = both.substr(0, slash);
    const std::string sub = slash == std::string::npos ? "" : both.substr(slash + 1);
    if ((resource == "*" || resource == kind.plural) && (sub == "*" || sub == subresource)) {
      return true;
    }
  }
  return false;
}

// The version of the resource that the webhook wants to be asked about; null: it does not.
api::KindPtr MatchRules(const AdmissionWebhook& hook,
                        const Admission& admission,
                        std::string_view operation) {
  const std::string& sub = admission.subresource;
  const api::KindPtr& asked = admission.call->kind;
  for (const AdmissionWebhook::Rule& rule : hook.rules) {
    if (RuleMatches(rule, *asked, operation, sub)) return asked;
  }
  if (!hook.equivalent) return nullptr;
  const auto versions = admission.core.scheme->Versions(asked->gvk.group, asked->plural);
  for (const AdmissionWebhook::Rule& rule : hook.rules) {
    for (const api::KindPtr& version : versions) {
      if (version->served && RuleMatches(rule, *version, operation, sub)) return version;
    }
  }
  return nullptr;
}

bool LabelsMatch(const api::LabelSelector& selector, const json::Value* object) {
  if (object == nullptr) return false;
  const json::Value* labels = json::Find(*object, {"metadata", "labels"});
  static const json::Value none = json::Object();
  return selector.Matches(labels != nullptr && labels->is_object() ? *labels : none);
}

Result<bool> NamespaceMatches(const AdmissionWebhook& hook,
                              const Admission& admission,
                              const Reviewed& reviewed) {
  const std::string& ns = NamespaceOf(admission);
  if (hook.namespaces.everything() || (ns.empty() && !IsNamespaces(admission.kind))) return true;
  if (IsNamespaces(admission.kind) && admission.subresource.empty() && reviewed.object != nullptr) {
    return LabelsMatch(hook.namespaces, reviewed.object);
  }
  const api::KindPtr kind = admission.core.scheme->FindResource("", "v1", "namespaces");
  const auto entry = kind ? admission.core.store.Latest(KeyFor(*kind, "", ns)) : nullptr;
  if (!entry) return kind ? NotFoundError(*kind, ns) : NoSuchResourceError();
  return hook.namespaces.Matches(entry->attributes.labels);
}

// The version in which this webhook is asked about it; null: it is not.
Result<api::KindPtr> ShouldAsk(const AdmissionWebhook& hook,
                               const Admission& admission,
                               const Reviewed& reviewed) {
  const auto in_namespace = NamespaceMatches(hook, admission, reviewed);
  if (in_namespace.ok() && !*in_namespace) return api::KindPtr();
  if (!hook.objects.everything() && !LabelsMatch(hook.objects, reviewed.object) &&
      !LabelsMatch(hook.objects, reviewed.old)) {
    return api::KindPtr();
  }
  api::KindPtr kind = MatchRules(hook, admission, reviewed.operation);
  if (kind && !in_namespace.ok()) return in_namespace.status();
  return kind;
}

// --- Reviews -------------------------------------------------------------------------------------

json::Object KindObject(const api::GroupVersionKind& gvk) {
  return {{"group", gvk.group}, {"version", gvk.version}, {"kind", gvk.kind}};
}
json::Object ResourceObject(const api::KindInfo& kind) {
  return {{"group", kind.gvk.group}, {"version", kind.gvk.version}, {"resource", kind.plural}};
}

json::Value UserObject(const api::UserInfo& user) {
  json::Object object;
  if (!user.name.empty()) object["username"] = user.name;
  if (!user.uid.empty()) object["uid"] = user.uid;
  if (!user.groups.empty()) object["groups"] = json::Array(user.groups.begin(), user.groups.end());
  if (!user.extra.empty()) {
    json::Object extra;
    for (const auto& [key, values] : user.extra) {
      extra[key] = json::Array(values.begin(), values.end());
    }
    object["extra"] = std::move(extra);
  }
  return object;
}

Result<json::Value> InVersion(const Admission& admission,
                              const Reviewed& reviewed,
                              const json::Value* object,
                              const api::KindInfo& kind) {
  if (object == nullptr) return json::Value(nullptr);
  json::Value shown = *object;
  if (reviewed.of == nullptr) {
    SWELL_RETURN_IF_ERROR(ConvertObject(admission.core, *admission.call, shown, kind));
  }
  return shown;
}

// The request of a review, but for its uid.
Result<json::Object> MakeRequest(const Admission& admission,
                                 const Reviewed& reviewed,
                                 const api::KindInfo& kind,
                                 bool mutating) {
  const Call& call = *admission.call;
  const std::string& sub = admission.subresource;
  SWELL_ASSIGN_OR_RETURN(json::Value object, InVersion(admission, reviewed, reviewed.object, kind));
  SWELL_ASSIGN_OR_RETURN(json::Value old, InVersion(admission, reviewed, reviewed.old, kind));
  json::Object request;
  request["kind"] = KindObject(reviewed.of == nullptr ? kind.gvk : reviewed.of->gvk);
  request["resource"] = ResourceObject(kind);
  if (!sub.empty()) request["subResource"] = sub;
  request["requestKind"] = KindObject(reviewed.of == nullptr ? call.kind->gvk : reviewed.of->gvk);
  request["requestResource"] = ResourceObject(*call.kind);
  if (!sub.empty()) request["requestSubResource"] = sub;
  // What the server gives a new object comes after the mutating webhooks.
  const bool fresh = mutating && reviewed.operation == "CREATE" && reviewed.of == nullptr;
  const bool unnamed = fresh && !json::GetString(object, {"metadata", "generateName"}).empty() &&
                       json::GetString(object, {"metadata", "name"}) == admission.name &&
                       call.info.name.empty();
  if (fresh) {
    json::Remove(object, {"metadata", "uid"});
    json::Remove(object, {"metadata", "creationTimestamp"});
    json::Remove(object, {"metadata", "generation"});
    if (unnamed) json::Remove(object, {"metadata", "name"});
  }
  if (!admission.name.empty() && !unnamed) request["name"] = admission.name;
  if (!NamespaceOf(admission).empty()) request["namespace"] = NamespaceOf(admission);
  request["operation"] = reviewed.operation;
  request["userInfo"] = UserObject(call.user);
  request["object"] = std::move(object);
  request["oldObject"] = std::move(old);
  request["dryRun"] = admission.dry_run;
  request["options"] = reviewed.options;
  return request;
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
Result<bool> ConditionsHold(const AdmissionWebhook& hook, const json::Value& request) {
  api::CelBudget budget;
  const api::CelProgram::Variables variables = {{"object", json::Find(request, {"object"})},
                                                {"oldObject", json::Find(request, {"oldObject"})},
                                                {"request", &request}};
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
  const auto wanted = ConditionsHold(hook, asked);
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
  SWELL_RETURN_IF_ERROR(ConvertObject(admission.core, *admission.call, patched, admission.kind));
  return patched;
}

Status RunRound(Admission& admission, json::Value& object, Reviewed reviewed, Round& round) {
  const AdmissionWebhooks& webhooks = WebhooksOf(admission.core);
  reviewed.object = &object;
  for (const AdmissionWebhook& hook : webhooks.mutating) {
    SWELL_ASSIGN_OR_RETURN(const api::KindPtr kind, ShouldAsk(hook, admission, reviewed));
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
  return !webhooks.mutating.empty() || !webhooks.validating.empty();
}

bool AsksWebhooks(const Admission& admission) {
  if (!HasAdmissionWebhooks(admission.core)) return false;
  const std::string& sub = admission.subresource;
  return admission.call != nullptr && !admission.kind.read_only && sub != "binding" &&
         sub != "eviction" && sub != "scale" &&
         admission.call->storage->gvk.kind == admission.kind.gvk.kind &&
         !(admission.kind.gvk.group == kGroup &&
           admission.kind.gvk.kind.ends_with("WebhookConfiguration"));
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
  const AdmissionWebhooks& webhooks = WebhooksOf(admission.core);
  Status first;
  bool waiting = false;
  for (const AdmissionWebhook& hook : webhooks.validating) {
    SWELL_ASSIGN_OR_RETURN(const api::KindPtr kind, ShouldAsk(hook, admission, reviewed));
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
    SWELL_ASSIGN_OR_RETURN(const api::KindPtr kind, ShouldAsk(hook, admission, reviewed));
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
