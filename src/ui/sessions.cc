#include "ui/sessions.h"

#include <algorithm>

namespace swell::ui {
namespace {

// Erases the oldest of those that belong to whom the most belong to. There are some.
template <class Map, class Whose, class Since>
void GiveWay(Map& all, Whose whose, Since since) {
  std::map<std::string, size_t> counts;
  for (const auto& [id, one] : all) ++counts[whose(one)];
  const std::string most =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
        return a.second < b.second;
      })->first;
  auto oldest = all.end();
  for (auto it = all.begin(); it != all.end(); ++it) {
    if (whose(it->second) != most) continue;
    if (oldest == all.end() || since(it->second) < since(oldest->second)) oldest = it;
  }
  all.erase(oldest);
}

}  // namespace

void Sessions::AddCode(const std::string& code, api::Credentials credentials) {
  const SteadyTime now = clock_.Steady();
  std::erase_if(codes_, [now](const auto& one) { return now - one.second.made > kCodeLife; });
  if (codes_.size() >= kCodesMax) {
    // The user is not known before the code is used.
    const auto whose = [](const LoginCode& code) {
      return code.credentials.bearer_token + " " + code.credentials.certificate_common_name;
    };
    GiveWay(codes_, whose, [](const LoginCode& code) { return code.made; });
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

void Sessions::MakeRoom() {
  std::erase_if(sessions_, [this](const auto& one) { return Over(one.second); });
  if (sessions_.size() < kSessionsMax) return;
  GiveWay(
      sessions_, [](const Session& session) { return session.user.name; },
      [](const Session& session) { return session.used; });
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
