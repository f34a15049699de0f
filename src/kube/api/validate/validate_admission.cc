// Rules of webhooks and policies that admit requests.
#include <algorithm>
#include <set>

#include "base/strings.h"
#include "kube/api/cel/cel_access.h"
#include "kube/api/meta/meta.h"
#include "kube/api/validate/validate_rules.h"

namespace swell::api {
namespace {

using json::Value;

// Answers the expression as it runs; null if it cannot.
std::shared_ptr<const CelProgram> CheckExpression(std::string_view expression,
                                                  const std::vector<std::string>& variables,
                                                  const std::string& at,
                                                  FieldErrors& errors) {
  const auto program = CelProgram::Compile(expression, variables);
  if (program.ok()) return *program;
  errors.push_back(
      InvalidText(at, expression, StrCat("compilation failed: ", program.status().message())));
  return nullptr;
}

void CheckHookRules(const Value& hook,
                    std::string_view field,
                    const std::string& path,
                    FieldErrors& errors) {
  const json::Array& rules = json::GetArray(hook, {field});
  for (size_t i = 0; i < rules.size(); ++i) {
    const std::string at = PathIndex(PathField(path, field), i);
    for (std::string_view key : {"operations", "apiGroups", "apiVersions", "resources"}) {
      const json::Array& list = json::GetArray(rules[i], {key});
      const bool star =
          std::any_of(list.begin(), list.end(), [](const Value& v) { return TextIn(v) == "*"; });
      if (list.empty()) errors.push_back(RequiredError(PathField(at, key)));
      const bool all =
          std::any_of(list.begin(), list.end(), [](const Value& v) { return TextIn(v) == "*/*"; });
      if (all && key == "resources" && list.size() > 1) {
        errors.push_back(InvalidTexts(PathField(at, key), list,
                                      "if '*/*' is present, must not specify other resources"));
      }
      if (star && list.size() > 1) {
        errors.push_back(InvalidTexts(
            PathField(at, key), list,
            key == "resources"
                ? "if '*' is present, must not specify other resources without subresources"
                : StrCat("if '*' is present, must not specify other ",
                         key == "operations"  ? "operations"
                         : key == "apiGroups" ? "API groups"
                                              : "API versions")));
      }
      for (size_t j = 0; key == "operations" && j < list.size(); ++j) {
        static const std::vector<std::string> kOperations = {"*", "CONNECT", "CREATE", "DELETE",
                                                             "UPDATE"};
        const std::string_view operation = TextIn(list[j]);
        if (std::find(kOperations.begin(), kOperations.end(), operation) != kOperations.end()) {
          continue;
        }
        errors.push_back(
            NotSupportedError(PathIndex(PathField(at, key), j), operation, kOperations));
      }
    }
    CheckOneOf(rules[i], "scope", at, {"*", "Cluster", "Namespaced"}, errors);
  }
}

void CheckMatchConditions(const Value& hook,
                          const std::string& path,
                          const std::vector<std::string>& variables,
                          FieldErrors& errors) {
  constexpr size_t kMost = 64;
  const json::Array& conditions = json::GetArray(hook, {"matchConditions"});
  if (conditions.size() > kMost) {
    errors.push_back(
        {"FieldValueTooMany", path,
         StrCat("Too many: ", conditions.size(), ": must have at most ", kMost, " items")});
    return;
  }
  std::set<std::string> names;
  for (const auto& [condition, at] : ItemsOf(conditions, path)) {
    const std::string name(TextOf(condition, "name"));
    const std::string_view expression = TextOf(condition, "expression");
    if (name.empty()) {
      errors.push_back(RequiredError(PathField(at, "name")));
    } else if (!names.insert(name).second) {
      errors.push_back(DuplicateError(PathField(at, "name"), Value(name)));
    }
    if (Trim(expression).empty()) {
      errors.push_back(RequiredError(PathField(at, "expression")));
      continue;
    }
    CheckExpression(expression, variables, PathField(at, "expression"), errors);
  }
}

void CheckWebhooks(const Value& object, FieldErrors& errors) {
  std::set<std::string> names;
  for (const auto& [hook, at] : ItemsOf(object, "webhooks", "")) {
    const std::string_view name = TextOf(hook, "name");
    if (name.empty()) {
      errors.push_back(RequiredError(PathField(at, "name")));
    } else if (std::string why = CheckDnsSubdomain(name); !why.empty()) {
      errors.push_back(InvalidText(PathField(at, "name"), name, why));
    } else if (Split(name, '.').size() < 3) {
      errors.push_back(InvalidText(PathField(at, "name"), name,
                                   "should be a domain with at least three segments separated by "
                                   "dots"));
    }
    CheckHookRules(hook, "rules", at, errors);
    CheckOneOf(hook, "failurePolicy", at, {"Fail", "Ignore"}, errors);
    CheckOneOf(hook, "matchPolicy", at, {"Equivalent", "Exact"}, errors);
    const std::string_view effects = TextOf(hook, "sideEffects");
    if (effects.empty()) {
      errors.push_back(
          RequiredError(PathField(at, "sideEffects"), "must specify one of None, NoneOnDryRun"));
    }
    CheckOneOf(hook, "sideEffects", at, {"None", "NoneOnDryRun"}, errors);
    const Value* timeout = MemberOf(hook, "timeoutSeconds");
    const int64_t seconds = json::GetInt(hook, {"timeoutSeconds"}, 1);
    if (timeout != nullptr && (seconds < 1 || seconds > 30)) {
      errors.push_back(InvalidError(PathField(at, "timeoutSeconds"), *timeout,
                                    "the timeout value must be between 1 and 30 seconds"));
    }
    for (std::string_view key : {"namespaceSelector", "objectSelector"}) {
      if (const Value* selector = MemberOf(hook, key)) {
        CheckLabelSelector(*selector, PathField(at, key), errors);
      }
    }
    CheckOneOf(hook, "reinvocationPolicy", at, {"IfNeeded", "Never"}, errors);
    CheckMatchConditions(hook, PathField(at, "matchConditions"),
                         {"object", "oldObject", "request", std::string(kCelAuthorizer)}, errors);
    CheckHookClient(MemberOf(hook, "clientConfig"), PathField(at, "clientConfig"), errors);
    CheckReviewVersions(json::GetArray(hook, {"admissionReviewVersions"}),
                        PathField(at, "admissionReviewVersions"), errors,
                        "must specify one of v1, v1beta1");
  }
}

// --- Policies ------------------------------------------------------------------------------------

void CheckMatchResources(const Value* match, const std::string& path, FieldErrors& errors) {
  if (match == nullptr) return;
  for (std::string_view key : {"namespaceSelector", "objectSelector"}) {
    if (const Value* selector = MemberOf(*match, key)) {
      CheckLabelSelector(*selector, PathField(path, key), errors);
    }
  }
  for (std::string_view field : {"resourceRules", "excludeResourceRules"}) {
    CheckHookRules(*match, field, path, errors);
    for (const auto& [rule, rule_at] : ItemsOf(*match, field, path)) {
      std::set<std::string_view> seen;
      for (const auto& [name, name_at] : ItemsOf(rule, "resourceNames", rule_at)) {
        CheckText(TextIn(name), CheckPathSegmentName, name_at, errors);
        if (seen.insert(TextIn(name)).second) continue;
        errors.push_back(DuplicateError(name_at, name));
      }
    }
  }
}

void CheckParamKind(const Value& kind, FieldErrors& errors) {
  const std::string at = "spec.paramKind";
  const std::string_view version = TextOf(kind, "apiVersion");
  const std::string_view name = TextOf(kind, "kind");
  const size_t slash = version.find('/');
  if (version.empty()) {
    errors.push_back(RequiredError(PathField(at, "apiVersion")));
  } else if (slash != version.rfind('/')) {
    errors.push_back(InvalidText(PathField(at, "apiVersion"), version,
                                 StrCat("unexpected GroupVersion string: ", version)));
  } else if (std::string why = CheckDns1035Label(
                 slash == std::string_view::npos ? version : version.substr(slash + 1));
             !why.empty()) {
    errors.push_back(InvalidText(PathField(at, "apiVersion"), version, why));
  }
  if (name.empty()) {
    errors.push_back(RequiredError(PathField(at, "kind")));
  } else if (std::string why = CheckDns1035Label(ToLower(name)); !why.empty()) {
    errors.push_back(InvalidText(PathField(at, "kind"), name,
                                 StrCat("may have mixed case, but should otherwise match: ", why)));
  }
}

bool IsCelIdentifier(std::string_view name) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  auto follows = [&letter](char c) { return letter(c) || (c >= '0' && c <= '9'); };
  return !name.empty() && letter(name[0]) && std::all_of(name.begin(), name.end(), follows);
}

// The expressions of a policy, which may use the variables written before them.
class PolicyExpressions {
 public:
  PolicyExpressions(const Value& spec, FieldErrors& errors) : errors_(errors) {
    if (MemberOf(spec, "paramKind") != nullptr) names_.emplace_back("params");
  }
  const std::vector<std::string>& names() const { return names_; }

  void AddVariables(const Value& spec) {
    const json::Array& variables = json::GetArray(spec, {"variables"});
    if (!variables.empty()) names_.emplace_back("variables");
    for (const auto& [variable, at] : ItemsOf(variables, "spec.variables")) {
      const std::string name(TextOf(variable, "name"));
      if (name.empty()) {
        errors_.push_back(RequiredError(PathField(at, "name"), "name is not specified"));
      } else if (!IsCelIdentifier(name)) {
        errors_.push_back(
            InvalidText(PathField(at, "name"), name, "must be a valid CEL identifier"));
      } else if (known_.contains(name)) {
        errors_.push_back(DuplicateError(PathField(at, "name"), Value(name)));
      }
      Check(variable, "expression", at, "expression is not specified");
      known_.insert(name);
    }
  }

  // The expression in that field, which must be there unless nothing is `missing` without it.
  void Check(const Value& parent,
             std::string_view key,
             const std::string& path,
             std::string_view missing,
             bool makes_message = false) {
    const std::string at = PathField(path, key);
    const std::string_view text = TextOf(parent, key);
    if (Trim(text).empty()) {
      if (!missing.empty()) errors_.push_back(RequiredError(at, missing));
      if (missing.empty() && !text.empty()) {
        errors_.push_back(InvalidText(at, text, "must be non-empty if specified"));
      }
      return;
    }
    const auto program =
        CheckExpression(text, makes_message ? WithoutCelAuthorizer(names_) : names_, at, errors_);
    if (program == nullptr) return;
    for (const std::string& name : program->Selected("variables")) {
      if (known_.contains(name)) continue;
      errors_.push_back(InvalidText(
          at, text,
          StrCat("compilation failed: ",
                 program->Complaint(text.find(name), StrCat("undefined field '", name, "'")))));
    }
  }

 private:
  FieldErrors& errors_;
  std::vector<std::string> names_{"object", "oldObject", "request", "namespaceObject",
                                  std::string(kCelAuthorizer)};
  std::set<std::string> known_;
};

void CheckValidations(const Value& spec, PolicyExpressions& expressions, FieldErrors& errors) {
  for (const auto& [validation, at] : ItemsOf(spec, "validations", "spec")) {
    expressions.Check(validation, "expression", at, "expression is not specified");
    expressions.Check(validation, "messageExpression", at, "", true);
    const std::string_view message = TextOf(validation, "message");
    if (!message.empty() && Trim(message).empty()) {
      errors.push_back(
          InvalidText(PathField(at, "message"), message, "must be non-empty if specified"));
    } else if (Trim(message).find_first_of("\n\r") != std::string_view::npos) {
      errors.push_back(
          InvalidText(PathField(at, "message"), message, "must not contain line breaks"));
    }
  }
}

void CheckAuditAnnotations(const Value& object,
                           PolicyExpressions& expressions,
                           FieldErrors& errors) {
  constexpr size_t kMost = 20;
  const json::Array& notes = json::GetArray(object, {"spec", "auditAnnotations"});
  if (notes.size() > kMost) {
    errors.push_back(TooManyError("spec.auditAnnotations", notes.size(), kMost));
    return;
  }
  std::set<std::string_view> keys;
  for (const auto& [note, at] : ItemsOf(notes, "spec.auditAnnotations")) {
    const std::string_view key = TextOf(note, "key");
    CheckQualified(StrCat(Name(object), "/", key), PathField(at, "key"), errors);
    if (!keys.insert(key).second) {
      errors.push_back(DuplicateError(PathField(at, "key"), Value(key)));
    }
    expressions.Check(note, "valueExpression", at, "valueExpression is not specified");
  }
}

void CheckAdmissionPolicy(const Value& object, FieldErrors& errors) {
  const Value& spec = SpecOf(object);
  const Value* match = MemberOf(spec, "matchConstraints");
  if (match == nullptr) {
    errors.push_back(RequiredError("spec.matchConstraints"));
  } else if (json::GetArray(*match, {"resourceRules"}).empty()) {
    errors.push_back(RequiredError("spec.matchConstraints.resourceRules"));
  }
  CheckMatchResources(match, "spec.matchConstraints", errors);
  if (const Value* kind = MemberOf(spec, "paramKind")) CheckParamKind(*kind, errors);
  PolicyExpressions expressions(spec, errors);
  CheckMatchConditions(spec, "spec.matchConditions", expressions.names(), errors);
  expressions.AddVariables(spec);
  if (json::GetArray(spec, {"validations"}).empty() &&
      json::GetArray(spec, {"auditAnnotations"}).empty()) {
    for (std::string_view key : {"spec.validations", "spec.auditAnnotations"}) {
      errors.push_back(RequiredError(
          std::string(key), "validations or auditAnnotations must contain at least one item"));
    }
  }
  CheckValidations(spec, expressions, errors);
  CheckAuditAnnotations(object, expressions, errors);
}

void CheckParamRef(const Value& ref, FieldErrors& errors) {
  const std::string at = "spec.paramRef";
  const std::string_view name = TextOf(ref, "name");
  const Value* selector = MemberOf(ref, "selector");
  if (std::string why = CheckPathSegmentName(name); !name.empty() && !why.empty()) {
    errors.push_back(InvalidText(PathField(at, "name"), name, why));
  }
  if (selector != nullptr) CheckLabelSelector(*selector, PathField(at, "selector"), errors);
  if (!name.empty() && selector != nullptr) {
    for (std::string_view key : {"name", "selector"}) {
      errors.push_back(
          ForbiddenError(PathField(at, key), "name and selector are mutually exclusive"));
    }
  }
  if (name.empty() && selector == nullptr) {
    errors.push_back(RequiredError(at, "one of name or selector must be specified"));
  }
  if (TextOf(ref, "parameterNotFoundAction").empty()) {
    errors.push_back(RequiredError(PathField(at, "parameterNotFoundAction")));
  }
}

void CheckPolicyBinding(const Value& object, FieldErrors& errors) {
  const Value& spec = SpecOf(object);
  if (TextOf(spec, "policyName").empty()) errors.push_back(RequiredError("spec.policyName"));
  CheckSubdomain(spec, "policyName", "spec", errors);
  if (const Value* ref = MemberOf(spec, "paramRef")) CheckParamRef(*ref, errors);
  CheckMatchResources(MemberOf(spec, "matchResources"), "spec.matchResources", errors);
  const std::string at = "spec.validationActions";
  const json::Array& actions = json::GetArray(spec, {"validationActions"});
  if (actions.empty()) {
    errors.push_back(RequiredError(at, "at least one validation action is required"));
  }
  std::set<std::string_view> seen;
  for (const auto& [one, item_at] : ItemsOf(actions, at)) {
    const std::string_view action = TextIn(one);
    if (action != "Audit" && action != "Deny" && action != "Warn") {
      errors.push_back(NotSupportedError(item_at, action, {"Audit", "Deny", "Warn"}));
    }
    if (!seen.insert(action).second) {
      errors.push_back(DuplicateError(item_at, one));
    }
  }
  if (seen.contains("Deny") && seen.contains("Warn")) {
    errors.push_back(InvalidTexts(at, actions,
                                  "must not contain both Deny and Warn (repeating the same "
                                  "validation failure information in the API response and headers "
                                  "serves no purpose)"));
  }
}

}  // namespace

bool CheckAdmission(const KindInfo& kind, const Value& object, FieldErrors& errors) {
  const std::string& k = kind.gvk.kind;
  if (k == "ValidatingWebhookConfiguration" || k == "MutatingWebhookConfiguration") {
    CheckWebhooks(object, errors);
  } else if (k == "ValidatingAdmissionPolicy") {
    CheckAdmissionPolicy(object, errors);
  } else if (k == "ValidatingAdmissionPolicyBinding") {
    CheckPolicyBinding(object, errors);
  } else {
    return false;
  }
  return true;
}

}  // namespace swell::api
