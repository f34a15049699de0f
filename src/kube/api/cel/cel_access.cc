#include "kube/api/cel/cel_access.h"

#include <memory>
#include <utility>

#include "base/strings.h"
#include "kube/api/cel/cel_objects.h"
#include "kube/api/meta/meta.h"

namespace swell::api {
namespace {

// With a whole budget, as many checks of one policy as Kubernetes allows (28).
constexpr size_t kCheckCost = 35'000;

using Stage = CelAuthority::Stage;

Status NoOverload() { return Status(Code::kInvalid, "no such overload"); }
Status Wrong(std::string what) { return Status(Code::kInvalid, std::move(what)); }

// The methods that make the next part of a question, and the member that each sets.
struct Part {
  std::string_view name;
  Stage of, makes;
  std::string CelAccessQuestion::*member;
  bool needed;
};
constexpr Part kParts[] = {
    {"path", Stage::kAuthorizer, Stage::kPath, &CelAccessQuestion::path, true},
    {"group", Stage::kAuthorizer, Stage::kGroup, &CelAccessQuestion::group, false},
    {"resource", Stage::kGroup, Stage::kResource, &CelAccessQuestion::resource, true},
    {"subresource", Stage::kResource, Stage::kResource, &CelAccessQuestion::subresource, false},
    {"namespace", Stage::kResource, Stage::kResource, &CelAccessQuestion::ns, false},
    {"name", Stage::kResource, Stage::kResource, &CelAccessQuestion::name, false},
};

Result<CelValue> OfAccount(const CelAuthority& authority, std::string ns, std::string name) {
  if (!CheckDnsSubdomain(name).empty()) return Wrong("Invalid service account name");
  if (!CheckDnsLabel(ns).empty()) return Wrong("Invalid service account namespace");
  CelAuthority of_account{authority.authorizer, {}, Stage::kAuthorizer, nullptr};
  of_account.question.account_ns = std::move(ns);
  of_account.question.account = std::move(name);
  return CelOf(std::move(of_account));
}

Result<CelValue> Check(const CelAuthority& authority, std::string verb, CelBudget& budget) {
  SWELL_RETURN_IF_ERROR(budget.Spend(kCheckCost));
  CelAccessQuestion question = authority.question;
  question.verb = std::move(verb);
  const CelAccessAnswer answer = (*authority.authorizer)(question);
  return CelOf(CelDecision{answer.allowed, answer.reason});
}

Result<CelValue> CallAuthority(const CelAuthority& authority,
                               std::string_view name,
                               const std::vector<std::string>& texts,
                               CelBudget& budget) {
  if (name == "serviceAccount" && authority.stage == Stage::kAuthorizer && texts.size() == 2) {
    return OfAccount(authority, texts[0], texts[1]);
  }
  if (texts.size() != 1) return NoOverload();
  const std::string& text = texts[0];
  const bool of_resource = authority.stage == Stage::kResource;
  if (name == "check" && (of_resource || authority.stage == Stage::kPath)) {
    return Check(authority, text, budget);
  }
  // RBAC knows no selectors: it gives a right to a whole list or not at all.
  if (of_resource && (name == "fieldSelector" || name == "labelSelector")) return CelOf(authority);
  for (const Part& part : kParts) {
    if (part.name != name || part.of != authority.stage) continue;
    if (part.needed && Trim(text).empty()) return Wrong(StrCat(name, " must not be empty"));
    CelAuthority next{authority.authorizer, authority.question, part.makes, nullptr};
    next.question.*part.member = text;
    return CelOf(std::move(next));
  }
  return NoOverload();
}

Result<CelValue> CallDecision(const CelDecision& decision, std::string_view name) {
  if (name == "allowed") return CelValue{decision.allowed};
  if (name == "reason") return CelValue{decision.reason};
  // Each question has an answer here: what an authorizer does not know is refused.
  if (name == "errored") return CelValue{false};
  if (name == "error") return CelValue{std::string()};
  return NoOverload();
}

}  // namespace

std::vector<std::string> WithoutCelAuthorizer(std::vector<std::string> variables) {
  std::erase(variables, kCelAuthorizer);
  return variables;
}

CelValue MakeCelAuthorizer(CelAuthorizer authorizer, CelAccessQuestion requested) {
  return CelOf(CelAuthority{std::make_shared<const CelAuthorizer>(std::move(authorizer)),
                            {},
                            Stage::kAuthorizer,
                            std::make_shared<const CelAccessQuestion>(std::move(requested))});
}

Result<CelValue> CallCelAccess(std::string_view name,
                               const std::vector<CelValue>& args,
                               CelBudget& budget) {
  if (const auto* decision = CelAs<CelDecision>(args[0])) {
    return args.size() == 1 ? CallDecision(*decision, name) : NoOverload();
  }
  std::vector<std::string> texts;
  for (size_t i = 1; i < args.size(); ++i) {
    const auto* text = std::get_if<std::string>(&args[i].data);
    if (text == nullptr) return NoOverload();
    SWELL_RETURN_IF_ERROR(budget.Spend(text->size() / 10));
    texts.push_back(*text);
  }
  return CallAuthority(*CelAs<CelAuthority>(args[0]), name, texts, budget);
}

Result<CelValue> SelectCelAccess(const CelValue& authorizer, std::string_view field) {
  const auto* authority = CelAs<CelAuthority>(authorizer);
  if (authority == nullptr || authority->requested == nullptr || field != "requestResource") {
    return Wrong(StrCat("no such attribute(s): authorizer.", field));
  }
  return CelOf(
      CelAuthority{authority->authorizer, *authority->requested, Stage::kResource, nullptr});
}

}  // namespace swell::api
