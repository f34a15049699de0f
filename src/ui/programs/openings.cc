#include "ui/programs/openings.h"

#include <algorithm>
#include <utility>

#include "ui/requests/request_checks.h"

namespace swell::ui {

std::string Openings::Issue(std::string session, std::string ns, std::string service) {
  const SteadyTime now = clock_.Steady();
  std::erase_if(tickets_, [now](const auto& one) { return now - one.second.made > kTicketLife; });
  if (tickets_.size() >= kTicketsMax) {
    tickets_.erase(std::min_element(
        tickets_.begin(), tickets_.end(),
        [](const auto& a, const auto& b) { return a.second.made < b.second.made; }));
  }
  std::string ticket = secret_();
  tickets_[ticket] = {std::move(session), std::move(ns), std::move(service), now};
  return ticket;
}

void Openings::MakeRoom(const std::string& session) {
  const auto own = static_cast<size_t>(
      std::count_if(openings_.begin(), openings_.end(),
                    [&session](const auto& one) { return one.second.session == session; }));
  const bool of_session = own >= kPerSession;
  if (!of_session && openings_.size() < kOpeningsMax) return;
  auto least = openings_.end();
  for (auto it = openings_.begin(); it != openings_.end(); ++it) {
    if (of_session && it->second.session != session) continue;
    if (least == openings_.end() || it->second.used < least->second.used) least = it;
  }
  openings_.erase(least);
}

Result<const Opening*> Openings::Redeem(std::string_view ticket) {
  const auto found = tickets_.find(ticket);
  if (found == tickets_.end()) {
    return Status(Code::kUnauthorized,
                  "the ticket is not valid: it is good once, for 30 s; open the program from the "
                  "pages again");
  }
  Ticket taken = std::move(found->second);
  tickets_.erase(found);
  const SteadyTime now = clock_.Steady();
  if (now - taken.made > kTicketLife) {
    return Status(Code::kUnauthorized,
                  "the ticket is too old: it is good for 30 s; open the program from the pages "
                  "again");
  }
  MakeRoom(taken.session);
  Opening opening{.path = secret_(),
                  .cookie = secret_(),
                  .session = std::move(taken.session),
                  .ns = std::move(taken.ns),
                  .service = std::move(taken.service),
                  .used = now};
  std::string path = opening.path;
  return &(openings_[std::move(path)] = std::move(opening));
}

const Opening* Openings::Find(std::string_view path, std::string_view cookie) {
  const auto found = openings_.find(path);
  if (found == openings_.end() || !SameSecret(found->second.cookie, cookie)) return nullptr;
  found->second.used = clock_.Steady();
  return &found->second;
}

void Openings::EndSession(std::string_view session) {
  std::erase_if(tickets_, [session](const auto& one) { return one.second.session == session; });
  std::erase_if(openings_, [session](const auto& one) { return one.second.session == session; });
}

std::set<std::string> Openings::Sessions() const {
  std::set<std::string> sessions;
  for (const auto& [ticket, one] : tickets_) sessions.insert(one.session);
  for (const auto& [path, one] : openings_) sessions.insert(one.session);
  return sessions;
}

}  // namespace swell::ui
