#include "ui/state/rights.h"

#include <utility>

#include "base/strings.h"
#include "kube/api/meta/rule_words.h"

namespace swell::ui {
namespace {

constexpr std::string_view kReviews = "/apis/authorization.k8s.io/v1/";
constexpr std::string_view kReviewVersion = "authorization.k8s.io/v1";

bool GrantsList(const json::Value& rule, const client::Resource& resource) {
  return json::GetArray(rule, {"resourceNames"}).empty() &&
         api::HasWordOrAll(json::GetArray(rule, {"verbs"}), "list") &&
         api::HasWordOrAll(json::GetArray(rule, {"apiGroups"}), resource.group) &&
         api::HasWordOrAll(json::GetArray(rule, {"resources"}), resource.plural);
}

KindSet Granted(const json::Value& status) {
  KindSet kinds = 0;
  for (const json::Value& rule : json::GetArray(status, {"resourceRules"})) {
    for (size_t kind = 0; kind < KindCount(); ++kind) {
      if (ResourceOf(kind).namespaced && GrantsList(rule, ResourceOf(kind))) kinds |= Bit(kind);
    }
  }
  return kinds;
}

}  // namespace

std::string Rights::Key() const {
  std::string key = std::to_string(everywhere);
  for (const auto& [ns, kinds] : inside) key += StrCat(" ", ns, "=", kinds);
  return key;
}

struct RightsReader::Reading {
  api::Credentials credentials;
  std::vector<std::string> namespaces;
  Done done;
  Rights rights;
  std::vector<std::function<void()>> questions;  // the last is next
  size_t under_way = 0;
  std::function<void()> then;
  Status failed;
};

void RightsReader::Read(const api::Credentials& credentials,
                        std::vector<std::string> namespaces,
                        Done done) {
  auto reading = std::make_shared<Reading>();
  reading->credentials = credentials;
  reading->namespaces = std::move(namespaces);
  reading->done = std::move(done);
  AskEverywhere(reading);
}

void RightsReader::AskEverywhere(const std::shared_ptr<Reading>& reading) {
  // Questions refer to the reading that holds them, until they are asked.
  Reading* const it = reading.get();
  for (size_t kind = 0; kind < KindCount(); ++kind) {
    reading->questions.push_back([this, it, kind, weak = std::weak_ptr(reading)] {
      const client::Resource& resource = ResourceOf(kind);
      json::Object attributes{
          {"verb", "list"}, {"group", resource.group}, {"resource", resource.plural}};
      const json::Value review =
          json::Object{{"apiVersion", kReviewVersion},
                       {"kind", "SelfSubjectAccessReview"},
                       {"spec", json::Object{{"resourceAttributes", std::move(attributes)}}}};
      Ask(weak.lock(), "selfsubjectaccessreviews", review, [it, kind](const json::Value& status) {
        if (json::GetBool(status, {"allowed"})) it->rights.everywhere |= Bit(kind);
      });
    });
  }
  reading->then = [this, weak = std::weak_ptr(reading)] { AskInside(weak.lock()); };
  AskNext(reading);
}

void RightsReader::AskInside(const std::shared_ptr<Reading>& reading) {
  KindSet namespaced = 0;
  for (size_t kind = 0; kind < KindCount(); ++kind) {
    if (ResourceOf(kind).namespaced) namespaced |= Bit(kind);
  }
  Reading* const it = reading.get();
  const bool all = (it->rights.everywhere & namespaced) == namespaced;
  for (size_t i = 0; !all && i < it->namespaces.size(); ++i) {
    it->questions.push_back([this, it, i, weak = std::weak_ptr(reading)] {
      const std::string& ns = it->namespaces[i];
      const json::Value review = json::Object{{"apiVersion", kReviewVersion},
                                              {"kind", "SelfSubjectRulesReview"},
                                              {"spec", json::Object{{"namespace", ns}}}};
      Ask(weak.lock(), "selfsubjectrulesreviews", review, [it, i](const json::Value& status) {
        const KindSet more = Granted(status) & ~it->rights.everywhere;
        if (more != 0) it->rights.inside[it->namespaces[i]] = more;
      });
    });
  }
  it->then = [it] { it->done(std::move(it->rights)); };
  AskNext(reading);
}

void RightsReader::AskNext(const std::shared_ptr<Reading>& reading) {
  while (reading->under_way < kAsksMax && !reading->questions.empty()) {
    auto question = std::move(reading->questions.back());
    reading->questions.pop_back();
    ++reading->under_way;
    question();
  }
  if (reading->under_way > 0) return;
  if (!reading->failed.ok()) return reading->done(reading->failed);
  std::exchange(reading->then, nullptr)();
}

void RightsReader::Ask(const std::shared_ptr<Reading>& reading,
                       std::string_view plural,
                       const json::Value& review,
                       std::function<void(const json::Value& status)> heard) {
  api::RestRequest request{
      .method = "POST", .path = StrCat(kReviews, plural), .body = json::Print(review)};
  request.credentials = reading->credentials;
  client_.Call(std::move(request),
               [this, reading, heard = std::move(heard)](const Result<api::RestResponse>& answer) {
                 --reading->under_way;
                 if (answer.ok()) {
                   const auto document = json::Parse(answer->BodyString());
                   const json::Value* status =
                       document.ok() ? json::Find(*document, {"status"}) : nullptr;
                   if (status != nullptr) heard(*status);
                 } else if (answer.status().code() != Code::kForbidden) {
                   // A user who may not even ask may see nothing; anything else is not an answer.
                   reading->failed = answer.status();
                   reading->questions.clear();
                 }
                 AskNext(reading);
               });
}

namespace {

// What a review says of a user: `path` leads to the name and the groups.
Result<api::UserInfo> UserIn(const Result<api::RestResponse>& answer, std::string_view field) {
  if (!answer.ok()) return answer.status();
  SWELL_ASSIGN_OR_RETURN(const json::Value document, json::Parse(answer->BodyString()));
  api::UserInfo user;
  user.name = json::GetString(document, {"status", field, "username"});
  for (const json::Value& group : json::GetArray(document, {"status", field, "groups"})) {
    if (group.is_string()) user.groups.emplace_back(json::View(group.get_string()));
  }
  if (user.name.empty() || user.name == "system:anonymous") {
    return Status(Code::kUnauthorized, "the credentials name no user");
  }
  return user;
}

api::RestRequest ReviewRequest(std::string_view kind, std::string_view plural, json::Object spec) {
  json::Object review{{"apiVersion", "authentication.k8s.io/v1"}, {"kind", kind}};
  if (!spec.empty()) review["spec"] = std::move(spec);
  return {.method = "POST",
          .path = StrCat("/apis/authentication.k8s.io/v1/", plural),
          .body = json::Print(json::Value(std::move(review)))};
}

}  // namespace

void RightsReader::WhoIs(const api::Credentials& credentials, UserDone done) {
  api::RestRequest request = ReviewRequest("SelfSubjectReview", "selfsubjectreviews", {});
  request.credentials = credentials;
  client_.Call(std::move(request), [this, credentials, done = std::move(done)](
                                       const Result<api::RestResponse>& answer) {
    // The server does not know the question, or answers it to few.
    const Code code = answer.status().code();
    const bool unknown = !answer.ok() && (code == Code::kNotFound || code == Code::kForbidden);
    if (unknown && reviewer_) return ReviewToken(credentials, done);
    done(UserIn(answer, "userInfo"));
  });
}

void RightsReader::ReviewToken(const api::Credentials& credentials, UserDone done) {
  if (credentials.bearer_token.empty()) {
    return done(Status(Code::kUnauthorized, "the credentials name no user"));
  }
  reviewer_->Call(ReviewRequest("TokenReview", "tokenreviews",
                                json::Object{{"token", json::Value(credentials.bearer_token)}}),
                  [done = std::move(done)](const Result<api::RestResponse>& answer) {
                    done(UserIn(answer, "user"));
                  });
}

}  // namespace swell::ui
