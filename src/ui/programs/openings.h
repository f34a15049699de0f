// Openings: which browsers may see which programs of pods, at the port for these.
//
//   ticket = Issue(session, ns, service)   asked for by the pages, as the session's user
//   opening = Redeem(ticket)               once, within kTicketLife: its path and its cookie
//   Find(path, cookie)                     at each request
//
// An opening is of one session, one namespace and one Service. Its path cannot be guessed either:
// all programs share an origin, so a script of one must not find the others.
//
// - Threads: the pages' executor.
// - Ownership: the clock outlives it.
// - Invariants: at most kTicketsMax tickets and kOpeningsMax openings, kPerSession of one session;
//   the least used gives way.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace swell::ui {

struct Opening {
  std::string path;     // a part of the address: /p/PATH/
  std::string cookie;   // 256 random bits
  std::string session;  // the id of the session that it ends with
  std::string ns, service;
  SteadyTime used;
};

class Openings {
 public:
  static constexpr Duration kTicketLife = std::chrono::seconds(30);
  static constexpr size_t kTicketsMax = 1000;
  static constexpr size_t kOpeningsMax = 1000;
  static constexpr size_t kPerSession = 32;

  // `secret` makes 256 random bits as text.
  Openings(const Clock& clock, std::function<std::string()> secret)
      : clock_(clock), secret_(std::move(secret)) {}

  std::string Issue(std::string session, std::string ns, std::string service);
  // kUnauthorized: it is unknown, too old, or was used before. Valid until the next call that is
  // not const.
  Result<const Opening*> Redeem(std::string_view ticket);
  // Notes that it is used. Null: nothing is open at that path, or the cookie is another's.
  const Opening* Find(std::string_view path, std::string_view cookie);
  void EndSession(std::string_view session);
  // The sessions of all tickets and openings.
  std::set<std::string> Sessions() const;
  size_t size() const { return openings_.size(); }

 private:
  struct Ticket {
    std::string session, ns, service;
    SteadyTime made;
  };
  void MakeRoom(const std::string& session);

  const Clock& clock_;
  std::function<std::string()> secret_;
  std::map<std::string, Ticket, std::less<>> tickets_;
  std::map<std::string, Opening, std::less<>> openings_;  // by path
};

}  // namespace swell::ui
