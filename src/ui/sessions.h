// Sessions: who is logged in to the pages, and the one-time codes with which `swell ui` logs in.
//
// A session keeps the credentials with which its user came. Every request of its pages carries them
// to the API server, which authenticates and authorizes it like any other: a session gives no right
// of its own, and what the user loses its pages lose. The browser holds a random id in a cookie,
// never the credentials.
//
// - Threads: the pages' executor.
// - Ownership: the clock outlives it.
// - Invariants: at most kSessionsMax sessions and kCodesMax codes. For one more, the oldest of the
//   user who has the most gives way: nobody logs out others by logging in often.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "kube/api/rest/rest.h"

namespace swell::ui {

struct Session {
  std::string id;    // 256 random bits; the cookie
  std::string csrf;  // what each write repeats in X-Swell-CSRF
  api::Credentials credentials;
  api::UserInfo user;  // as the API server last said
  SteadyTime created, used;
  WallTime expires;  // at the latest
};

class Sessions {
 public:
  static constexpr Duration kIdle = std::chrono::hours(12);
  static constexpr Duration kLife = std::chrono::hours(24 * 7);
  static constexpr Duration kCodeLife = std::chrono::seconds(60);
  static constexpr size_t kSessionsMax = 1000;
  static constexpr size_t kCodesMax = 1000;

  // `secret` makes 256 random bits as text.
  Sessions(const Clock& clock, std::function<std::string()> secret)
      : clock_(clock), secret_(std::move(secret)) {}

  // The code is good once, for kCodeLife.
  void AddCode(const std::string& code, api::Credentials credentials);
  // kUnauthorized: it is unknown, too old, or was used before.
  Result<api::Credentials> UseCode(const std::string& code);

  const Session& Begin(api::Credentials credentials, api::UserInfo user);
  // Notes that the session is used. Null: there is none of that id, or it is over.
  const Session* Use(std::string_view id);
  // The same without noting it. Valid until the next call that is not const.
  const Session* Find(std::string_view id) const;
  void End(std::string_view id);

  // Ends what is over, and tells the ids of the sessions that were used within `span`.
  std::vector<std::string> UsedWithin(Duration span);
  size_t size() const { return sessions_.size(); }

 private:
  struct LoginCode {
    api::Credentials credentials;
    SteadyTime made;
  };
  bool Over(const Session& session) const;
  void MakeRoom();

  const Clock& clock_;
  std::function<std::string()> secret_;
  std::map<std::string, Session, std::less<>> sessions_;
  std::map<std::string, LoginCode, std::less<>> codes_;
};

}  // namespace swell::ui
