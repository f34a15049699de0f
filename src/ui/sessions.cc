#include "ui/sessions.h"

#include <algorithm>

namespace swell::ui {

void Sessions::AddCode(const std::string& code, api::Credentials credentials) {
  const SteadyTime now = clock_.Steady();
  std::erase_if(codes_, [now](const auto& one) { return now - one.second.made > kCodeLife; });
  if (codes_.size() >= kCodesMax) {
    codes_.erase(std::min_element(codes_.begin(), codes_.end(), [](const auto& a, const auto& b) {
      return a.second.made < b.second.made;
    }));
  }
  codes_[code] = {std::move(credentials), now};
}

Result<api::Credentials> Sessions::UseCode(const std::string& code) {
  auto found = codes_.extract(code);
  if (found.empty() || clock_.Steady() - found.mapped().made > kCodeLife) {
    return Status(Code::kUnauthorized,
                  "the code is not valid any more: it is good once, for a minute. Run swell ui "
                  "for a new one");
  }
  return std::move(found.mapped().credentials);
}

bool Sessions::Over(const Session& session) const {
  const SteadyTime now = clock_.Steady();
  return now - session.used > kIdle || now - session.created > kLife;
}

// The session that was not used for the longest time gives way.
void Sessions::MakeRoom() {
  std::erase_if(sessions_, [this](const auto& one) { return Over(one.second); });
  if (sessions_.size() < kSessionsMax) return;
  sessions_.erase(
      std::min_element(sessions_.begin(), sessions_.end(),
                       [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
}

const Session& Sessions::Begin(api::Credentials credentials, api::UserInfo user) {
  MakeRoom();
  Session session;
  session.id = secret_();
  session.csrf = secret_();
  session.credentials = std::move(credentials);
  session.user = std::move(user);
  session.created = session.used = clock_.Steady();
  session.expires = clock_.Now() + kLife;
  std::string id = session.id;
  return sessions_[std::move(id)] = std::move(session);
}

const Session* Sessions::Use(std::string_view id) {
  auto found = sessions_.find(id);
  if (found == sessions_.end()) return nullptr;
  if (Over(found->second)) {
    sessions_.erase(found);
    return nullptr;
  }
  found->second.used = clock_.Steady();
  return &found->second;
}

const Session* Sessions::Find(std::string_view id) const {
  auto found = sessions_.find(id);
  return found == sessions_.end() || Over(found->second) ? nullptr : &found->second;
}

void Sessions::SetUser(std::string_view id, api::UserInfo user) {
  auto found = sessions_.find(id);
  if (found != sessions_.end()) found->second.user = std::move(user);
}

void Sessions::End(std::string_view id) {
  auto found = sessions_.find(id);
  if (found != sessions_.end()) sessions_.erase(found);
}

std::vector<std::string> Sessions::UsedWithin(Duration span) {
  std::erase_if(sessions_, [this](const auto& one) { return Over(one.second); });
  std::vector<std::string> ids;
  const SteadyTime now = clock_.Steady();
  for (const auto& [id, session] : sessions_) {
    if (now - session.used <= span) ids.push_back(id);
  }
  return ids;
}

}  // namespace swell::ui
