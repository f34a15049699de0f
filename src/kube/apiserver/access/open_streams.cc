#include "kube/apiserver/access/open_streams.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/apiserver/access/access.h"
#include "kube/apiserver/access/account_tokens.h"
#include "kube/apiserver/access/registered_users.h"

namespace swell::apiserver {
namespace {

Status Deleted() { return Status(Code::kUnauthorized, "the user has been deleted"); }

template <class T>
size_t DropExpired(std::vector<std::weak_ptr<T>>& all) {
  std::erase_if(all, [](const auto& one) { return one.expired(); });
  return all.size();
}

}  // namespace

// Hands everything through until it is revoked; then both sides see the end.
class OpenStreams::Revocable final : public api::DuplexStream,
                                     public std::enable_shared_from_this<Revocable> {
 public:
  explicit Revocable(api::DuplexPtr inner) : inner_(std::move(inner)) {}

  void Start(Callbacks callbacks) override {
    callbacks_ = std::move(callbacks);
    inner_->Start({.on_data =
                       [weak = weak_from_this()](api::Chunk chunk) {
                         if (const auto self = weak.lock()) self->OnData(std::move(chunk));
                       },
                   .on_end =
                       [weak = weak_from_this()](const Status& why) {
                         if (const auto self = weak.lock()) self->OnEnd(why);
                       }});
  }
  void SetReading(bool on) override { inner_->SetReading(on); }
  bool Write(api::Chunk bytes) override { return inner_->Write(std::move(bytes)); }
  size_t queued_bytes() const override { return inner_->queued_bytes(); }
  void OnDrained(std::function<void()> callback) override {
    inner_->OnDrained(std::move(callback));
  }
  void CloseWrite() override { inner_->CloseWrite(); }
  void Close() override {
    callbacks_ = {};
    inner_->Close();
  }

  void Revoke() {
    inner_->Close();
    OnEnd(Deleted());
  }

 private:
  void OnData(api::Chunk chunk) {
    const auto on_data = callbacks_.on_data;  // the callback may close this
    if (on_data) on_data(std::move(chunk));
  }
  void OnEnd(const Status& why) {
    const Callbacks callbacks = std::exchange(callbacks_, {});
    if (callbacks.on_end) callbacks.on_end(why);
  }

  const api::DuplexPtr inner_;
  Callbacks callbacks_;
};

void OpenStreams::Sweep(OfUser& all) const {
  if (all.calls.size() + all.streams.size() < std::min(all.sweep_at, of_user_max_)) return;
  all.sweep_at = 16 + 2 * (DropExpired(all.calls) + DropExpired(all.streams));
}

std::vector<OpenStreams::OfUser*> OpenStreams::Of(const Call& call) {
  std::vector<OfUser*> all;
  for (const api::UserInfo* user : {&call.user, &call.impersonator}) {
    if (!user->uid.empty()) {
      all.push_back(&users_[user->uid]);
    } else if (!user->name.empty() && !IsSystem(*user) && !IsNode(*user)) {
      all.push_back(&users_[StrCat("name ", user->name)]);
    }
    for (const auto& [key, values] : user->extra) {
      if (key == kRequesterExtra && !values.empty()) all.push_back(&users_[values.front()]);
    }
  }
  return all;
}

Status OpenStreams::Add(const CallPtr& call) {
  const auto users = Of(*call);
  for (OfUser* user : users) {
    Sweep(*user);
    if (user->calls.size() + user->streams.size() < of_user_max_) continue;
    return Status(Code::kTooManyRequests,
                  StrCat("user ", Quote(call->user.name), " has ", of_user_max_,
                         " watches, logs, commands and connections to pods open, which is all that "
                         "one user may have: close some"),
                  {"", "", "", "", {}, 1});
  }
  for (OfUser* user : users) user->calls.push_back(call);
  return Status::Ok();
}

api::DuplexPtr OpenStreams::Add(const Call& call, api::DuplexPtr stream) {
  const auto users = Of(call);
  if (users.empty() || stream == nullptr) return stream;
  auto revocable = std::make_shared<Revocable>(std::move(stream));
  for (OfUser* user : users) {
    Sweep(*user);
    user->streams.push_back(revocable);
  }
  return revocable;
}

void OpenStreams::End(const std::string& uid) {
  const auto found = users_.find(uid);
  if (found == users_.end()) return;
  executor_.Post([open = std::move(found->second)] {
    for (const auto& weak : open.calls) {
      if (const auto call = weak.lock()) call->EndStream(Deleted());
    }
    for (const auto& weak : open.streams) {
      if (const auto stream = weak.lock()) stream->Revoke();
    }
  });
  users_.erase(found);
}

void RegisterOpenStreams(Core& core) {
  core.Add(std::make_unique<OpenStreams>(core.executor, core.options.streams_of_user_max));
  core.hooks.AddWritten(
      [](Core& here, store::EventType type, const store::EntryPtr& entry, bool ok) {
        if (!ok || type != store::EventType::kDeleted) return;
        const store::Key& key = entry->key;
        const bool user = key.resource == "secrets" && key.ns == api::kUserNamespace;
        if (user || key.resource == "serviceaccounts") {
          here.Get<OpenStreams>().End(entry->attributes.uid);
        }
      });
}

}  // namespace swell::apiserver
