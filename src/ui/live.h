// Live: the WebSocket of one tab. The tab says which views it shows, and gets each at once and
// whenever it has changed.
//
//   client {"op":"subscribe","id":1,"view":"nodes","params":{}}   {"op":"unsubscribe","id":1}
//   server {"id":1,"revision":"7","data":…}                       {"id":1,"error":"…"}
//
// A tab that says "delta":true as it subscribes gets what changed where it has what was before:
//
//   server {"id":1,"revision":"8","base":"7","delta":…}           see ViewText
//
// - Threads: the pages' executor.
// - Ownership: the board outlives it. It keeps itself alive while its connection does.
// - Invariants: at most kSubscriptionsMax views; while a slow tab has much to read, it gets nothing
//   new, and then only the latest.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/timer.h"
#include "kube/api/rest/duplex.h"
#include "kube/net/framing/websocket.h"
#include "ui/view_board.h"

namespace swell::ui {

class Live : public std::enable_shared_from_this<Live> {
 public:
  static constexpr size_t kSubscriptionsMax = 64;
  static constexpr size_t kMessageBytesMax = 64 << 10;
  static constexpr Duration kRetry = std::chrono::milliseconds(500);
  static constexpr Duration kAskEvery = std::chrono::seconds(5);

  // Answers a view that is not made from the state but searched for; `done` may run later.
  using Ask = std::function<void(const Params& params,
                                 std::function<void(const Result<json::Value>&)> done)>;

  // `why`: how the view of that name is found.
  Live(Executor& pages,
       ViewBoard& board,
       std::string session,
       std::shared_ptr<const Rights> rights,
       api::DuplexPtr wire,
       Ask why);
  ~Live();

  // Begins to read. `gone` runs once when the tab has gone or Close was called.
  void Start(std::function<void()> gone);
  // The user may see something else now.
  void SetRights(std::shared_ptr<const Rights> rights);
  void Close(uint16_t code, std::string_view why);

  const std::string& session() const { return session_; }
  bool watching() const { return !subscriptions_.empty(); }

 private:
  struct Subscription {
    std::string view;
    Params params;
    ViewBoard::ListenerId listener = 0;  // 0: the cluster was not read yet
    Result<ViewBoard::Shown> latest = ViewBoard::Shown{};
    bool unsent = false;
    bool wants_delta = false;
    std::string sent = {};  // the revision that the tab has
    bool asked = false;     // the answer is under way
  };

  void OnBytes(std::string_view bytes);
  void OnMessage(const std::string& text);
  void Subscribe(int64_t id, Subscription subscription);
  void Begin(int64_t id);
  void AskFor(int64_t id);
  void AskAgain();
  void Unsubscribe(int64_t id);
  void Flush();
  void SendLatest(int64_t id, Subscription& one);
  void SendError(int64_t id, std::string_view message);
  void Send(net::WebSocketCodec::Opcode opcode, std::string_view payload);
  void End();

  Executor& pages_;
  ViewBoard& board_;
  const std::string session_;
  std::shared_ptr<const Rights> rights_;
  api::DuplexPtr wire_;
  net::WebSocketCodec codec_{net::WebSocketCodec::Role::kServer, kMessageBytesMax};
  std::map<int64_t, Subscription> subscriptions_;
  std::function<void()> gone_;
  bool waiting_ = false;  // for the tab to read
  const Ask why_;
  Timer retry_{pages_};
  Timer ask_{pages_};
};

}  // namespace swell::ui
