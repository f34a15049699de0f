#include "ui/live.h"

#include <utility>

#include "base/random.h"
#include "base/strings.h"

namespace swell::ui {

using Opcode = net::WebSocketCodec::Opcode;

namespace {

constexpr std::string_view kWhy = "why";
constexpr uint16_t kProtocolError = 1002;
constexpr uint16_t kNormal = 1000;

}  // namespace

Live::Live(Executor& pages,
           ViewBoard& board,
           std::string session,
           std::shared_ptr<const Rights> rights,
           api::DuplexPtr wire,
           Ask why)
    : pages_(pages),
      board_(board),
      session_(std::move(session)),
      rights_(std::move(rights)),
      wire_(std::move(wire)),
      why_(std::move(why)) {}

Live::~Live() {
  for (const auto& [id, subscription] : subscriptions_) board_.Forget(subscription.listener);
}

void Live::Start(std::function<void()> gone) {
  gone_ = std::move(gone);
  wire_->Start({.on_data =
                    [weak = weak_from_this()](const api::Chunk& bytes) {
                      if (auto self = weak.lock()) self->OnBytes(*bytes);
                    },
                .on_end =
                    [weak = weak_from_this()](const Status&) {
                      if (auto self = weak.lock()) self->End();
                    }});
}

void Live::SetRights(std::shared_ptr<const Rights> rights) {
  if (rights->Key() == rights_->Key()) return;
  rights_ = std::move(rights);
  for (auto& [id, subscription] : subscriptions_) {
    board_.Forget(std::exchange(subscription.listener, 0));
    Begin(id);
  }
}

void Live::OnBytes(std::string_view bytes) {
  std::vector<net::WebSocketCodec::Message> messages;
  const Status fed = codec_.Feed(bytes, &messages);
  for (const auto& message : messages) {
    if (message.opcode == Opcode::kPing) {
      Send(Opcode::kPong, message.payload);
    } else if (message.opcode == Opcode::kClose) {
      return Close(kNormal, "");
    } else if (message.opcode != Opcode::kPong) {
      OnMessage(message.payload);
    }
    if (!wire_) return;
  }
  if (!fed.ok()) Close(kProtocolError, fed.message());
}

void Live::OnMessage(const std::string& text) {
  const auto message = json::Parse(text, {.depth = 8, .bytes = kMessageBytesMax});
  if (!message.ok() || !message->is_object()) {
    return Close(kProtocolError, "a message must be a JSON object");
  }
  const std::string_view op = json::GetString(*message, {"op"});
  const int64_t id = json::GetInt(*message, {"id"}, -1);
  if (op == "unsubscribe") return Unsubscribe(id);
  if (op == "ping") return;
  if (op != "subscribe") {
    return SendError(id, StrCat("op ", Quote(op), ": expected subscribe or unsubscribe"));
  }
  if (id < 0) return SendError(id, "id: expected a number from 0 on");
  Subscription subscription;
  subscription.view = json::GetString(*message, {"view"});
  subscription.wants_delta = json::GetBool(*message, {"delta"});
  for (const auto& [name, value] : json::GetObject(*message, {"params"})) {
    const std::string key(name.data(), name.size());
    subscription.params[key] =
        value.is_string() ? std::string(json::View(value.get_string())) : json::Print(value);
  }
  Subscribe(id, std::move(subscription));
}

void Live::Subscribe(int64_t id, Subscription subscription) {
  Unsubscribe(id);
  if (subscriptions_.size() >= kSubscriptionsMax) {
    return SendError(id, StrCat("a tab shows at most ", kSubscriptionsMax, " views"));
  }
  subscriptions_[id] = std::move(subscription);
  Begin(id);
}

void Live::Begin(int64_t id) {
  Subscription& one = subscriptions_[id];
  if (one.view == kWhy && why_) return AskFor(id);
  auto listener =
      board_.Listen(one.view, one.params, rights_,
                    [weak = weak_from_this(), id](const Result<ViewBoard::Shown>& shown) {
                      auto self = weak.lock();
                      if (!self) return;
                      auto found = self->subscriptions_.find(id);
                      if (found == self->subscriptions_.end()) return;
                      found->second.latest = shown;
                      found->second.unsent = true;
                      self->Flush();
                    });
  if (listener.ok()) {
    subscriptions_[id].listener = *listener;
    return;
  }
  if (listener.status().code() != Code::kUnavailable) {
    SendError(id, listener.status().message());
    subscriptions_.erase(id);
    return;
  }
  // The cluster has just started.
  retry_.Start(kRetry, [this] {
    std::vector<int64_t> waiting;
    for (const auto& [which, subscription] : subscriptions_) {
      if (subscription.listener == 0) waiting.push_back(which);
    }
    for (int64_t which : waiting) Begin(which);
  });
}

// What would start a job is searched for, which takes long: it is found anew now and then.
void Live::AskFor(int64_t id) {
  Subscription& one = subscriptions_[id];
  if (!ask_.pending()) ask_.Start(kAskEvery, [this] { AskAgain(); });
  if (std::exchange(one.asked, true)) return;
  why_(one.params, [weak = weak_from_this(), id](const Result<json::Value>& answer) {
    auto self = weak.lock();
    if (!self) return;
    auto found = self->subscriptions_.find(id);
    if (found == self->subscriptions_.end()) return;
    Subscription& it = found->second;
    it.asked = false;
    const bool known = it.latest.ok() && it.latest->text != nullptr;
    if (!answer.ok()) {
      it.latest = answer.status();
    } else {
      auto text = std::make_shared<const std::string>(json::Print(*answer));
      if (known && *it.latest->text == *text) return;
      it.latest = ViewBoard::Shown{text, std::to_string(StableHash(*text))};
    }
    it.unsent = true;
    self->Flush();
  });
}

void Live::AskAgain() {
  for (const auto& [id, one] : subscriptions_) {
    if (one.view == kWhy) AskFor(id);
  }
}

void Live::Unsubscribe(int64_t id) {
  auto found = subscriptions_.extract(id);
  if (!found.empty()) board_.Forget(found.mapped().listener);
}

void Live::Flush() {
  if (!wire_ || waiting_) return;
  for (auto& [id, one] : subscriptions_) {
    if (!one.unsent) continue;
    if (wire_->queued_bytes() > api::kDuplexHighWater) {
      waiting_ = true;
      wire_->OnDrained([weak = weak_from_this()] {
        auto self = weak.lock();
        if (!self) return;
        self->waiting_ = false;
        self->Flush();
      });
      return;
    }
    one.unsent = false;
    SendLatest(id, one);
    if (!wire_) return;
  }
}

void Live::SendLatest(int64_t id, Subscription& one) {
  if (!one.latest.ok()) {
    one.sent.clear();
    return SendError(id, one.latest.status().message());
  }
  const ViewBoard::Shown& shown = *one.latest;
  const bool delta = one.wants_delta && shown.difference && shown.base == one.sent;
  one.sent = shown.revision;
  const std::string head = StrCat("{\"id\":", id, ",\"revision\":\"", shown.revision, "\"");
  if (delta) {
    return Send(Opcode::kText,
                StrCat(head, ",\"base\":\"", shown.base, "\",\"delta\":", *shown.difference, "}"));
  }
  Send(Opcode::kText, StrCat(head, ",\"data\":", *shown.text, "}"));
}

void Live::SendError(int64_t id, std::string_view message) {
  const json::Value error = json::Object{{"id", id}, {"error", boost::json::string_view(message)}};
  Send(Opcode::kText, json::Print(error));
}

void Live::Send(Opcode opcode, std::string_view payload) {
  if (!wire_) return;
  if (!wire_->Write(api::MakeChunk(codec_.Encode(opcode, payload)))) End();
}

void Live::Close(uint16_t code, std::string_view why) {
  Send(Opcode::kClose, net::WebSocketCodec::ClosePayload(code, why));
  End();
}

void Live::End() {
  if (!wire_) return;
  const auto keep = shared_from_this();
  wire_->Close();
  wire_.reset();
  retry_.Cancel();
  ask_.Cancel();
  for (const auto& [id, subscription] : subscriptions_) board_.Forget(subscription.listener);
  subscriptions_.clear();
  if (gone_) std::exchange(gone_, nullptr)();
}

}  // namespace swell::ui
