// UserTest: an API server with RBAC that several users ask. For tests only.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "kube/apiserver/test_server.h"

namespace swell::apiserver {

inline const api::UserInfo kAlice{"alice", "", {"system:authenticated"}};
inline const api::UserInfo kMaster{"root", "", {"system:masters"}};
inline const api::UserInfo kController{"system:swell", "", {"system:masters"}};

class UserTest : public testing::Test {
 protected:
  explicit UserTest(std::shared_ptr<const TokenKey> token_key = nullptr)
      : test_(Options{.token_key = std::move(token_key),
                      .rbac = true,
                      .audit = [this](std::string line) { audit_ += line; }}) {
    test_.Boot();
    EXPECT_TRUE(test_.boot.ok());
  }

  // A PATCH is a merge patch.
  Answer As(const api::UserInfo& user,
            std::string method,
            const std::string& target,
            std::string body) {
    auto request = test_.Request(std::move(method), target, std::move(body));
    request.user = user;
    if (request.method == "PATCH") request.content_type = "application/merge-patch+json";
    return test_.Send(std::move(request));
  }
  json::Value Must(const api::UserInfo& user,
                   std::string method,
                   const std::string& target,
                   std::string body) {
    const Answer answer = As(user, std::move(method), target, std::move(body));
    EXPECT_LT(answer.status, 300) << answer.text;
    return answer.body;
  }

  std::string audit_;  // the lines of the audit log
  TestServer test_;
};

}  // namespace swell::apiserver
