#include "kube/apiserver/access/authorizer.h"

#include <algorithm>

#include "base/strings.h"

namespace swell::apiserver {
namespace {

class AllowAuthenticated final : public Authorizer {
 public:
  AccessDecision Authorize(const api::UserInfo& user,
                           const AccessAttributes& attributes) const override {
    if (Authenticated(user)) return {true, ""};
    if (attributes.resource.empty() && attributes.verb == "get" && Public(attributes.path)) {
      return {true, ""};
    }
    return {false, ""};
  }

  AccessRules RulesFor(const api::UserInfo& user, const std::string&) const override {
    AccessRules rules;
    if (!Authenticated(user)) return rules;
    rules.resources.push_back({{"*"}, {"*"}, {"*"}, {}});
    rules.non_resources.push_back({{"*"}, {"*"}});
    return rules;
  }

 private:
  static bool Authenticated(const api::UserInfo& user) {
    return std::find(user.groups.begin(), user.groups.end(), "system:authenticated") !=
           user.groups.end();
  }
  static bool Public(std::string_view path) {
    return path == "/version" || path == "/healthz" || path == "/livez" || path == "/readyz" ||
           path == "/api" || path == "/apis" || path.substr(0, 5) == "/api/" ||
           path.substr(0, 6) == "/apis/" || path.substr(0, 9) == "/openapi/";
  }
};

}  // namespace

std::shared_ptr<const Authorizer> MakeAllowAuthenticated() {
  return std::make_shared<AllowAuthenticated>();
}

}  // namespace swell::apiserver
