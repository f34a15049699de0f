// Rights: which kinds of objects a user may list, everywhere or namespace by namespace. The API
// server is asked as that user, so its authorizer alone decides; what is not allowed is not shown.
// - Threads: Rights is a plain value; RightsReader on the pages' executor.
// - Ownership: executor and server outlive the reader.
// - Invariants: at most kAsksMax questions of one reading are under way; reviews that fail grant
//   nothing.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/client/client.h"
#include "ui/state/cluster_state.h"

namespace swell::ui {

struct Rights {
  KindSet everywhere = 0;
  std::map<std::string, KindSet, std::less<>> inside;  // by namespace; only what adds to it

  bool MayEverywhere(size_t kind) const { return (everywhere & Bit(kind)) != 0; }
  bool May(size_t kind, std::string_view ns) const {
    if (MayEverywhere(kind)) return true;
    const auto found = inside.find(ns);
    return found != inside.end() && (found->second & Bit(kind)) != 0;
  }
  bool May(Kind kind, std::string_view ns) const { return May(IndexOf(kind), ns); }
  // Users with equal keys see the same.
  std::string Key() const;
};

class RightsReader {
 public:
  static constexpr size_t kAsksMax = 16;
  using Done = std::function<void(Result<Rights>)>;

  // Before Kubernetes 1.28 an API server does not tell a token's user whose token it is. There
  // `reviewer`, with rights of its own, is asked. Null: the server tells its users.
  RightsReader(Executor& pages,
               std::shared_ptr<api::RestHandler> server,
               std::shared_ptr<api::RestHandler> reviewer = nullptr)
      : client_(pages, std::move(server), {}, "swell-pages") {
    if (reviewer) reviewer_.emplace(pages, std::move(reviewer), api::UserInfo{}, "swell-pages");
  }

  // kUnauthorized: the credentials are not accepted any more.
  void Read(const api::Credentials& credentials, std::vector<std::string> namespaces, Done done);
  // The user that the credentials belong to.
  void WhoIs(const api::Credentials& credentials, std::function<void(Result<api::UserInfo>)> done);

 private:
  struct Reading;
  void AskEverywhere(const std::shared_ptr<Reading>& reading);
  void AskInside(const std::shared_ptr<Reading>& reading);
  void AskNext(const std::shared_ptr<Reading>& reading);
  void Ask(const std::shared_ptr<Reading>& reading,
           std::string_view plural,
           const json::Value& review,
           std::function<void(const json::Value& status)> heard);

  using UserDone = std::function<void(Result<api::UserInfo>)>;
  void ReviewToken(const api::Credentials& credentials, UserDone done);

  client::Client client_;
  std::optional<client::Client> reviewer_;
};

}  // namespace swell::ui
