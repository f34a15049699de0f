#include "kube/apiserver/admission/admission_policies.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "json/texts.h"
#include "kube/api/cel/cel_access.h"
#include "kube/api/meta/meta.h"
#include "kube/apiserver/request/errors.h"
#include "kube/apiserver/webhooks/conversion.h"

namespace swell::apiserver {
namespace {

constexpr std::string_view kGroup = "admissionregistration.k8s.io";
constexpr size_t kMostParams = 1000;
constexpr size_t kMostMessageBytes = size_t{5} * 1024;
constexpr size_t kMostNoteBytes = size_t{10} * 1024;

// An expression of a policy. Without a program, `problem` says why it cannot run.
struct Expression {
  std::string text;
  std::shared_ptr<const api::CelProgram> program;
  std::string problem;
};

struct Policy {
  struct Validation {
    Expression condition;
    std::optional<Expression> says;
    std::string message;
    std::string reason;
  };
  std::string name;
  RequestRules asked;
  bool ignore_failure = false;
  std::optional<api::GroupVersionKind> param_kind;
  std::vector<Expression> conditions;
  std::vector<std::pair<std::string, Expression>> variables;
  std::vector<Validation> validations;
  std::vector<std::pair<std::string, Expression>> notes;  // audit annotations, by key
};

struct Binding {
  std::string name;
  std::string policy;
  std::optional<RequestRules> asked;  // none: all that the policy is asked about
  json::Value params;                 // paramRef, null where it has none
  bool deny = false;
  bool warn = false;
  bool audit = false;
};

// Those of the cluster, read again after they have changed.
struct AdmissionPolicies final : CorePart {
  bool stale = true;
  std::vector<Policy> policies;                          // in the order of their names
  std::map<std::string, std::vector<Binding>> bindings;  // by policy
};

Expression Compiled(std::string_view text, const std::vector<std::string>& variables) {
  Expression out;
  out.text = std::string(text);
  auto program = api::CelProgram::Compile(text, variables);
  if (program.ok()) {
    out.program = std::move(*program);
  } else {
    out.problem = StrCat("compilation failed: ", program.status().message());
  }
  return out;
}

Policy PolicyFrom(const json::Value& object) {
  Policy policy;
  policy.name = api::Name(object);
  const json::Value& spec = api::Spec(object);
  if (const json::Value* match = json::Find(spec, {"matchConstraints"})) {
    policy.asked = RequestRulesFrom(*match, "resourceRules", "excludeResourceRules");
  }
  policy.ignore_failure = json::GetString(spec, {"failurePolicy"}) == "Ignore";
  std::vector<std::string> known = {"object", "oldObject", "request", "namespaceObject",
                                    std::string(api::kCelAuthorizer)};
  if (const json::Value* kind = json::Find(spec, {"paramKind"})) {
    policy.param_kind =
        api::ParseGvk(json::GetString(*kind, {"apiVersion"}), json::GetString(*kind, {"kind"}));
    known.emplace_back("params");
  }
  for (const json::Value& condition : json::GetArray(spec, {"matchConditions"})) {
    policy.conditions.push_back(Compiled(json::GetString(condition, {"expression"}), known));
  }
  known.emplace_back("variables");
  for (const json::Value& variable : json::GetArray(spec, {"variables"})) {
    policy.variables.emplace_back(json::GetString(variable, {"name"}),
                                  Compiled(json::GetString(variable, {"expression"}), known));
  }
  for (const json::Value& check : json::GetArray(spec, {"validations"})) {
    Policy::Validation validation;
    validation.condition = Compiled(json::GetString(check, {"expression"}), known);
    const std::string_view says = json::GetString(check, {"messageExpression"});
    if (!says.empty()) validation.says = Compiled(says, api::WithoutCelAuthorizer(known));
    validation.message = Trim(json::GetString(check, {"message"}));
    validation.reason = json::GetString(check, {"reason"});
    policy.validations.push_back(std::move(validation));
  }
  for (const json::Value& note : json::GetArray(spec, {"auditAnnotations"})) {
    policy.notes.emplace_back(json::GetString(note, {"key"}),
                              Compiled(json::GetString(note, {"valueExpression"}), known));
  }
  return policy;
}

Binding BindingFrom(const json::Value& object) {
  Binding binding;
  binding.name = api::Name(object);
  const json::Value& spec = api::Spec(object);
  binding.policy = json::GetString(spec, {"policyName"});
  if (const json::Value* match = json::Find(spec, {"matchResources"})) {
    binding.asked = RequestRulesFrom(*match, "resourceRules", "excludeResourceRules");
  }
  if (const json::Value* params = json::Find(spec, {"paramRef"})) binding.params = *params;
  for (const std::string& action : json::Texts(json::GetArray(spec, {"validationActions"}))) {
    binding.deny = binding.deny || action == "Deny";
    binding.warn = binding.warn || action == "Warn";
    binding.audit = binding.audit || action == "Audit";
  }
  return binding;
}

const AdmissionPolicies& PoliciesOf(const Core& core) {
  auto& known = core.Get<AdmissionPolicies>();
  if (!known.stale) return known;
  known.policies.clear();
  known.bindings.clear();
  const auto bindings = core.store.List(StrCat("validatingadmissionpolicybindings.", kGroup), "");
  const auto policies = core.store.List(StrCat("validatingadmissionpolicies.", kGroup), "");
  if (bindings.ok() && policies.ok()) {
    for (const store::EntryPtr& entry : bindings->entries) {
      Binding binding = BindingFrom(*entry->Parsed());
      known.bindings[binding.policy].push_back(std::move(binding));
    }
    for (const store::EntryPtr& entry : policies->entries) {
      if (!known.bindings.contains(entry->key.name)) continue;
      known.policies.push_back(PolicyFrom(*entry->Parsed()));
    }
  }
  known.stale = false;
  return known;
}

void PolicyWritten(Core& core, store::EventType, const store::EntryPtr&, bool ok) {
  if (ok) core.Get<AdmissionPolicies>().stale = true;
}

// --- Evaluation ----------------------------------------------------------------------------------

// What a policy says against a request.
struct Objection {
  std::string message;
  std::string reason;  // empty: Invalid
};

// One evaluation: a policy, with one of its parameters, about one request.
class Evaluation {
 public:
  // The documents outlive it.
  Evaluation(const Policy& policy, api::CelProgram::Values values)
      : policy_(policy), values_(std::move(values)) {}

  // False: the request is none of the policy's business.
  Result<bool> Concerned() {
    Status error;
    for (const Expression& condition : policy_.conditions) {
      const auto value = Run(condition);
      const bool* holds = value.ok() ? std::get_if<bool>(&value->data) : nullptr;
      // One that does not hold decides, whatever is wrong with others.
      if (holds != nullptr && !*holds) return false;
      if (holds == nullptr && error.ok()) error = value.ok() ? NotBool(condition) : value.status();
    }
    if (!error.ok()) return error;
    return true;
  }

  // Each is there for those written after it. One that fails is an error of the expressions that
  // use it.
  void SetVariables() {
    auto known = std::make_shared<std::vector<std::pair<api::CelValue, api::CelValue>>>();
    values_.emplace_back("variables", api::CelValue{api::CelMap(known)});
    for (const auto& [name, expression] : policy_.variables) {
      auto value = Run(expression);
      if (value.ok()) {
        known->emplace_back(api::CelValue{name}, std::move(*value));
      } else {
        failed_[name] = value.status().message();
      }
    }
  }

  // nullopt: the request meets it.
  std::optional<Objection> Check(const Policy::Validation& validation) {
    const auto value = Run(validation.condition);
    const bool* holds = value.ok() ? std::get_if<bool>(&value->data) : nullptr;
    if (holds != nullptr && *holds) return std::nullopt;
    if (holds == nullptr) {
      const Status error = value.ok() ? NotBool(validation.condition) : value.status();
      if (policy_.ignore_failure) return std::nullopt;
      return Objection{error.message(), ""};
    }
    std::string message = validation.says ? Said(*validation.says) : std::string();
    if (message.empty()) message = validation.message;
    if (message.empty()) message = StrCat("failed expression: ", Trim(validation.condition.text));
    return Objection{std::move(message), validation.reason};
  }

  // An audit annotation's value; "" means none.
  Result<std::string> Note(const Expression& expression) {
    SWELL_ASSIGN_OR_RETURN(const api::CelValue value, Run(expression));
    if (value.is_null()) return std::string();
    const auto* text = std::get_if<std::string>(&value.data);
    const std::string shown(Trim(text == nullptr ? api::CelText(value) : *text));
    return shown.substr(0, kMostNoteBytes);
  }

 private:
  static Status NotBool(const Expression& expression) {
    return Status(Code::kInvalid, StrCat("expression '", expression.text,
                                         "' resulted in error: it does not evaluate to a bool"));
  }

  Result<api::CelValue> Run(const Expression& expression) {
    if (expression.program == nullptr) return Status(Code::kInvalid, expression.problem);
    auto value = expression.program->Evaluate(values_, budget_);
    if (value.ok()) return value;
    std::string why = value.status().message();
    for (const std::string& name : expression.program->Selected("variables")) {
      const auto found = failed_.find(name);
      if (found == failed_.end()) continue;
      why = StrCat("composited variable ", Quote(name), " fails to evaluate: ", found->second);
      break;
    }
    return Status(Code::kInvalid,
                  StrCat("expression '", expression.text, "' resulted in error: ", why));
  }

  // A message of one line, or none.
  std::string Said(const Expression& expression) {
    const auto value = Run(expression);
    if (!value.ok()) return {};
    const auto* text = std::get_if<std::string>(&value->data);
    if (text == nullptr) return {};
    std::string message(Trim(*text));
    const bool fits =
        message.size() <= kMostMessageBytes && message.find('\n') == std::string::npos;
    return fits ? message : std::string();
  }

  const Policy& policy_;
  api::CelProgram::Values values_;
  api::CelBudget budget_;
  std::map<std::string, std::string> failed_;  // variables
};

// --- Parameters ----------------------------------------------------------------------------------

using Params = std::vector<json::Value>;  // null: evaluated without

// In the version that the policy names.
Result<json::Value> InParamVersion(Admission& admission,
                                   json::Value object,
                                   const api::KindInfo& kind) {
  SWELL_RETURN_IF_ERROR(ConvertObject(admission.core, *admission.call, object, kind));
  return object;
}

Result<Params> FindParams(Admission& admission,
                          const api::KindInfo& kind,
                          const json::Value& ref,
                          std::string_view ns) {
  const api::KindPtr stored = admission.core.scheme->StorageKind(kind.gvk.group, kind.plural);
  Params params;
  if (stored == nullptr) return params;
  const std::string name(json::GetString(ref, {"name"}));
  if (!name.empty()) {
    auto object = LatestObject(admission.core, *stored, ns, name);
    if (!object) return params;
    SWELL_ASSIGN_OR_RETURN(json::Value shown, InParamVersion(admission, std::move(*object), kind));
    params.push_back(std::move(shown));
    return params;
  }
  SWELL_ASSIGN_OR_RETURN(const api::LabelSelector selector,
                         api::LabelSelector::FromJson(json::Find(ref, {"selector"})));
  SWELL_ASSIGN_OR_RETURN(const auto all,
                         admission.core.store.List(stored->StoreResource(), std::string(ns)));
  for (const store::EntryPtr& entry : all.entries) {
    if (!selector.Matches(entry->attributes.labels)) continue;
    if (params.size() >= kMostParams) {
      return Status(Code::kInvalid, StrCat("paramRef selects more than ", kMostParams, " objects"));
    }
    SWELL_ASSIGN_OR_RETURN(json::Value shown, InParamVersion(admission, *entry->Parsed(), kind));
    params.push_back(std::move(shown));
  }
  return params;
}

// The parameters of a policy where it is bound so. Empty: it says nothing there.
Result<Params> ParamsOf(Admission& admission, const Policy& policy, const Binding& binding) {
  if (!policy.param_kind || binding.params.is_null()) return Params{json::Value(nullptr)};
  const api::KindPtr kind = admission.core.scheme->FindKind(*policy.param_kind);
  if (kind == nullptr) {
    return Status(Code::kInvalid,
                  StrCat("failed to find resource referenced by paramKind: '",
                         policy.param_kind->ApiVersion(), ", Kind=", policy.param_kind->kind, "'"));
  }
  std::string ns(json::GetString(binding.params, {"namespace"}));
  if (!kind->namespaced && !ns.empty()) {
    return Status(Code::kInvalid,
                  "paramRef.namespace must not be provided for a cluster-scoped `paramKind`");
  }
  if (kind->namespaced && ns.empty()) ns = admission.ns;
  if (kind->namespaced && ns.empty()) {
    return Status(Code::kInvalid,
                  "cannot use namespaced paramRef in policy binding that matches cluster-scoped "
                  "resources");
  }
  SWELL_ASSIGN_OR_RETURN(Params params, FindParams(admission, *kind, binding.params, ns));
  if (params.empty() && json::GetString(binding.params, {"parameterNotFoundAction"}) == "Deny") {
    return Status(Code::kInvalid,
                  "no params found for policy binding with `Deny` parameterNotFoundAction");
  }
  return params;
}

// --- Verdicts ------------------------------------------------------------------------------------

int CodeOf(std::string_view reason) {
  if (reason == "Forbidden") return 403;
  if (reason == "Unauthorized") return 401;
  if (reason == "RequestEntityTooLarge") return 413;
  return 422;
}

Status Refusal(const Admission& admission,
               const Policy& policy,
               const Binding* binding,
               const Objection& objection) {
  const std::string bound =
      binding == nullptr ? std::string() : StrCat(" with binding '", binding->name, "'");
  const std::string text = StrCat("ValidatingAdmissionPolicy '", policy.name, "'", bound,
                                  " denied request: ", objection.message);
  const Status forbidden = ForbiddenError(admission.kind, admission.name, text);
  StatusDetails details = forbidden.details();
  details.causes.push_back({"", "", text});
  const std::string reason = objection.reason.empty() ? "Invalid" : objection.reason;
  return Status(CodeFromReason(reason, CodeOf(reason)), forbidden.message(), std::move(details));
}

// Once, also when the handler waited for a webhook and comes here again.
void AddNote(Call& call, std::string key, std::string value) {
  for (const auto& [known, ignored] : call.audit_annotations) {
    if (known == key) return;
  }
  call.audit_annotations.emplace_back(std::move(key), std::move(value));
}

// What is true of one request, whatever the policy.
class Asked {
 public:
  Asked(Admission& admission, const Reviewed& reviewed)
      : admission_(admission), reviewed_(reviewed), authorizer_(AuthorizerOf(admission)) {
    const api::KindPtr kind = admission.core.scheme->FindResource("", "v1", "namespaces");
    if (kind == nullptr || admission.ns.empty()) return;
    if (const auto entry = admission.core.store.Latest(KeyFor(*kind, "", admission.ns))) {
      namespace_ = *entry->Parsed();
    }
  }

  // Appends what the policy says where it is bound so.
  Status Ask(const Policy& policy,
             const Binding& binding,
             const api::KindPtr& version,
             std::vector<Objection>& objections) {
    SWELL_ASSIGN_OR_RETURN(const Params params, ParamsOf(admission_, policy, binding));
    if (params.empty()) return Status::Ok();
    SWELL_ASSIGN_OR_RETURN(const json::Value* request, RequestIn(*version));
    for (const json::Value& param : params) {
      Evaluate(policy, *request, param, objections);
    }
    return Status::Ok();
  }

 private:
  // As it is shown in that version of the kind.
  Result<const json::Value*> RequestIn(const api::KindInfo& kind) {
    auto& shown = requests_[kind.gvk.ApiVersion()];
    if (shown == nullptr) {
      SWELL_ASSIGN_OR_RETURN(json::Object request, MakeRequest(admission_, reviewed_, kind, false));
      shown = std::make_unique<json::Value>(std::move(request));
    }
    return static_cast<const json::Value*>(shown.get());
  }

  void Evaluate(const Policy& policy,
                const json::Value& request,
                const json::Value& param,
                std::vector<Objection>& objections) {
    auto value = [](const json::Value* document) {
      return document == nullptr ? api::CelValue{} : api::CelValue::FromJson(*document);
    };
    Evaluation evaluation(policy, {{"object", value(json::Find(request, {"object"}))},
                                   {"oldObject", value(json::Find(request, {"oldObject"}))},
                                   {"request", value(&request)},
                                   {"params", value(&param)},
                                   {"namespaceObject", value(&namespace_)},
                                   {std::string(api::kCelAuthorizer), authorizer_}});
    const auto concerned = evaluation.Concerned();
    if (!concerned.ok()) {
      if (!policy.ignore_failure) objections.push_back({concerned.status().message(), ""});
      return;
    }
    if (!*concerned) return;
    evaluation.SetVariables();
    for (const Policy::Validation& validation : policy.validations) {
      if (auto objection = evaluation.Check(validation)) {
        objections.push_back(std::move(*objection));
      }
    }
    for (const auto& [key, expression] : policy.notes) {
      auto note = evaluation.Note(expression);
      if (!note.ok()) {
        if (!policy.ignore_failure) objections.push_back({note.status().message(), ""});
      } else if (!note->empty()) {
        AddNote(*admission_.call, StrCat(policy.name, "/", key), std::move(*note));
      }
    }
  }

  Admission& admission_;
  const Reviewed& reviewed_;
  const api::CelValue authorizer_;
  json::Value namespace_;
  std::map<std::string, std::unique_ptr<json::Value>> requests_;  // by version
};

// What objections of one binding come to: warnings, annotations, and the first for a refusal.
void Weigh(const Admission& admission,
           const Policy& policy,
           const Binding& binding,
           const std::vector<Objection>& objections,
           json::Array& failures,
           Status& refusal) {
  for (const Objection& objection : objections) {
    if (binding.deny && refusal.ok()) {
      refusal = Refusal(admission, policy, &binding, objection);
    }
    if (binding.warn) {
      admission.Warn(StrCat("Validation failed for ValidatingAdmissionPolicy '", policy.name,
                            "' with binding '", binding.name, "': ", objection.message));
    }
    constexpr size_t kMostFailures = 50;
    if (!binding.audit || failures.size() >= kMostFailures) continue;
    json::Array actions;
    if (binding.deny) actions.emplace_back("Deny");
    if (binding.warn) actions.emplace_back("Warn");
    actions.emplace_back("Audit");
    failures.push_back(json::Object{{"message", objection.message},
                                    {"policy", policy.name},
                                    {"binding", binding.name},
                                    {"validationActions", std::move(actions)}});
  }
}

}  // namespace

bool HasAdmissionPolicies(const Core& core) { return !PoliciesOf(core).policies.empty(); }

Status AskPolicies(Admission& admission, const Reviewed& reviewed) {
  const AdmissionPolicies& known = PoliciesOf(admission.core);
  if (known.policies.empty()) return Status::Ok();
  Asked asked(admission, reviewed);
  Status refusal;
  json::Array failures;
  for (const Policy& policy : known.policies) {
    SWELL_ASSIGN_OR_RETURN(const api::KindPtr version,
                           VersionAsked(policy.asked, admission, reviewed));
    if (version == nullptr) continue;
    for (const Binding& binding : known.bindings.at(policy.name)) {
      if (binding.asked) {
        SWELL_ASSIGN_OR_RETURN(const api::KindPtr bound,
                               VersionAsked(*binding.asked, admission, reviewed, true));
        if (bound == nullptr) continue;
      }
      std::vector<Objection> objections;
      const Status status = asked.Ask(policy, binding, version, objections);
      if (!status.ok() && IsWaitingForCallout(status)) return status;
      if (!status.ok() && !policy.ignore_failure && refusal.ok()) {
        // A policy that cannot be asked refuses, whatever its binding says.
        refusal = Refusal(admission, policy, &binding,
                          {StrCat("failed to configure binding: ", status.message()), ""});
      }
      Weigh(admission, policy, binding, objections, failures, refusal);
    }
  }
  if (!failures.empty()) {
    AddNote(*admission.call, "validation.policy.admission.k8s.io/validation_failure",
            json::Print(json::Value(std::move(failures))));
  }
  return refusal;
}

void RegisterAdmissionPolicies(Core& core) {
  core.Add(std::make_unique<AdmissionPolicies>());
  const ResourceHooks hooks{.written = PolicyWritten, .generation = true};
  core.hooks.Add(StrCat("validatingadmissionpolicies.", kGroup), hooks);
  core.hooks.Add(StrCat("validatingadmissionpolicybindings.", kGroup), hooks);
}

}  // namespace swell::apiserver
