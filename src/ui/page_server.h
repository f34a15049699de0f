// PageServer: the port of the pages: their files, their sessions, and what they ask.
//
//   /                     the built pages
//   /ui/api/login, session, logout
//   /ui/api/k8s/PATH      the API server, as the session's user
//   /ui/api/views/NAME    what a page shows
//   /ui/api/live          the same over a WebSocket, whenever it changes
//   /ui/api/history       numbers over time
//   /ui/api/plan, whatif  what would follow
//   /ui/api/tensorboard   one beside a job; …/open: where this browser may see it
//   /ui/api/users         makes and deletes users, and gives them credentials
//
// A session's requests to the API server carry the credentials its user came with, so the API
// server decides what they may. Another site cannot
// act through a browser: cookies are SameSite=Strict, writes repeat a secret of the session, and
// Origin must be this server. On a loopback address Host must be, too, against DNS rebinding.
//
// Programs of pods are served at another port, whose handler is programs().
//
// - Threads: the pages' executor, which its HttpServer's reactor is. MakeCode on any thread.
// - Ownership: what PagePlugs refer to outlives it.
// - Invariants: at most kTabsMax live connections; kTabsPerSession of one session.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "base/callback_scope.h"
#include "base/timer.h"
#include "cli/access/users.h"
#include "kube/net/http/server.h"
#include "ui/commands/command_runner.h"
#include "ui/history/history.h"
#include "ui/live.h"
#include "ui/programs/program_server.h"
#include "ui/requests/request_checks.h"
#include "ui/sessions.h"
#include "ui/state/rights.h"
#include "ui/static_files.h"
#include "ui/view_board.h"

namespace swell::ui {

struct PagePlugs {
  Executor& pages;
  const Clock& clock;
  // Asked on the pages' executor; see CoreCalls.
  std::shared_ptr<api::RestHandler> server;
  // Takes requests that are for the API server, with credentials in place: an HttpFront.
  net::Handler& front;
  ClusterState& state;
  std::function<std::string()> secret;  // 256 random bits as text
  const StaticFiles& files;
  const History* history = nullptr;   // null: there is no history
  CommandRunner* commands = nullptr;  // null: nothing is explained
  // Where kubeconfigs of users lead to; without a server: users are managed elsewhere.
  cli::ClusterAddress address = {};
  // Asked on the pages' executor, with rights of its own, whose a token is; see RightsReader.
  std::shared_ptr<api::RestHandler> reviewer = nullptr;
  PodRelay* relay = nullptr;  // null: programs of pods are not shown
};

class PageServer final : public net::Handler {
 public:
  static constexpr size_t kTabsMax = 1000;
  static constexpr size_t kTabsPerSession = 100;
  static constexpr Duration kRevalidate = std::chrono::seconds(30);

  explicit PageServer(PagePlugs plugs);
  ~PageServer() override;

  // Before the first request.
  void SetPort(PortKind kind) { kind_ = kind; }
  // The handler of the port of pods' programs. Its SetPort opens that port.
  ProgramServer& programs() { return programs_; }

  void OnRequest(std::shared_ptr<net::Exchange> exchange) override;

  // A code that logs in once, as the user of these credentials.
  void AddCode(const std::string& code, api::Credentials credentials) {
    sessions_.AddCode(code, std::move(credentials));
  }
  size_t sessions() const { return sessions_.size(); }
  size_t tabs() const { return tabs_.size(); }

 private:
  using ExchangePtr = std::shared_ptr<net::Exchange>;
  using RightsDone = std::function<void(Result<std::shared_ptr<const Rights>>)>;

  // The session of the request's cookie; kUnauthorized: nobody is logged in.
  Result<const Session*> SessionOf(const net::HttpRequest& request);
  std::string CookieName(const net::HttpRequest& request) const;

  void Api(const ExchangePtr& exchange, std::string_view path);
  void Login(const ExchangePtr& exchange);
  void Begin(const ExchangePtr& exchange, const api::Credentials& credentials);
  void AnswerSession(const ExchangePtr& exchange, const Session& session, bool cookie);
  void Logout(const ExchangePtr& exchange, const Session& session);
  void PassOn(const ExchangePtr& exchange, const Session& session, std::string_view path);
  void AnswerView(const ExchangePtr& exchange, const Session& session, std::string_view name);
  void Ask(const ExchangePtr& exchange,
           const Session& session,
           CommandRunner::Work work,
           std::function<std::string(const json::Value&)> print);
  void FailWhole(const ExchangePtr& exchange, const Status& status);
  void AnswerHistory(const ExchangePtr& exchange, const Session& session);
  // Views that the commands' code makes: a page that shows one asks again.
  void AnswerWhy(const ExchangePtr& exchange, const Session& session);
  Live::Ask WhyOf(const std::string& session);
  // `path`: plan or whatif.
  void AnswerQuestion(const ExchangePtr& exchange, const Session& session, std::string_view path);
  // GET looks for a TensorBoard, POST makes one.
  void AnswerTensorboard(const ExchangePtr& exchange, const Session& session);
  void OpenTensorboard(const ExchangePtr& exchange, const Session& session);
  // `path`: users or users/kubeconfig.
  void AnswerUsers(const ExchangePtr& exchange, const Session& session, std::string_view path);
  void OpenLive(const ExchangePtr& exchange, const Session& session);
  void Answer(const ExchangePtr& exchange, net::HttpResponse response);
  void Fail(const ExchangePtr& exchange, const Status& status);

  // What the session's user may see, not older than kRevalidate.
  void WithRights(const std::string& session, RightsDone done);
  void ReadRights(const std::string& session);
  void Revalidate();
  void EndSession(const std::string& id, std::string_view why);
  std::vector<std::string> Namespaces() const;

  PagePlugs plugs_;
  PortKind kind_;
  Sessions sessions_;
  ProgramServer programs_;
  ViewBoard board_;
  struct Known {
    std::shared_ptr<const Rights> rights;
    SteadyTime read;
    bool reading = false;
    std::vector<RightsDone> waiting;
  };
  std::map<std::string, Known> rights_;  // by session
  std::set<std::shared_ptr<Live>> tabs_;
  RightsReader reader_;
  Timer timer_;
  CallbackScope scope_;
};

}  // namespace swell::ui
