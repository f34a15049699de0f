#include "ui/page_server.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/host_port.h"
#include "base/random.h"
#include "base/strings.h"
#include "cli/cli.h"
#include "kube/api/meta/meta.h"
#include "kube/edge/http/net_duplex.h"
#include "kube/edge/streams/upgrade.h"
#include "ui/commands/questions.h"
#include "ui/history/sampler.h"

namespace swell::ui {
namespace {

constexpr std::string_view kApi = "/ui/api/";
constexpr uint16_t kPolicyViolation = 1008;

net::HttpResponse JsonResponse(int status, std::string text) {
  net::HttpResponse response;
  response.status = status;
  response.headers = {{"Content-Type", "application/json"}, {"Cache-Control", "no-store"}};
  response.body.push_back(net::MakeChunk(std::move(text)));
  return response;
}

Result<Params> ParamsOf(const net::HttpRequest& request) {
  Params params;
  SWELL_ASSIGN_OR_RETURN(auto pairs, api::ParseQuery(request.query));
  for (auto& [name, value] : pairs) params[std::move(name)] = std::move(value);
  return params;
}

// What pods serve would run as a script of these pages.
bool LeadsToPods(std::string_view path) {
  for (std::string_view part : Split(path, '/')) {
    if (ToLower(part) == "proxy" || part.find('%') != std::string_view::npos) return true;
  }
  return false;
}

bool IsCredential(std::string_view header) {
  const std::string name = ToLower(header);
  return name == "authorization" || name == "cookie" || name == "origin" ||
         name == "x-swell-csrf" || name.starts_with("impersonate-");
}

}  // namespace

PageServer::PageServer(PagePlugs plugs)
    : plugs_(std::move(plugs)),
      sessions_(plugs_.clock, plugs_.secret),
      programs_({.clock = plugs_.clock,
                 .secret = plugs_.secret,
                 .use_session =
                     [this](std::string_view id) {
                       const Session* session = sessions_.Use(id);
                       return session != nullptr ? &session->credentials : nullptr;
                     },
                 .relay = plugs_.relay}),
      board_(plugs_.pages, plugs_.clock, plugs_.state),
      reader_(plugs_.pages, plugs_.server, plugs_.reviewer),
      timer_(plugs_.pages) {
  plugs_.pages.Post(scope_.Wrap([this] { timer_.Start(kRevalidate, [this] { Revalidate(); }); }));
}

PageServer::~PageServer() {
  const auto tabs = std::exchange(tabs_, {});
  for (const auto& tab : tabs) tab->Close(kPolicyViolation, "the cluster is stopping");
}

// Cookies do not tell ports apart, so that clusters of one machine have names of their own. With
// TLS the prefix keeps scripts of other ports from setting it: browsers that do not know
// __Host-Http- take it for __Host-.
std::string PageServer::CookieName(const net::HttpRequest& request) const {
  const std::string host = HeaderOf(request, "Host");
  const std::string_view name = WithoutPort(host);
  const std::string_view port =
      name.size() < host.size() ? std::string_view(host).substr(name.size() + 1) : "";
  return StrCat(kind_.secure ? "__Host-Http-" : "", "swell_session", port.empty() ? "" : "_", port);
}

Result<const Session*> PageServer::SessionOf(const net::HttpRequest& request) {
  for (const std::string& id : CookiesOf(request, CookieName(request))) {
    if (const Session* session = sessions_.Use(id)) return session;
  }
  return Status(Code::kUnauthorized, "nobody is logged in; run swell ui, or log in with a token");
}

void PageServer::Answer(const ExchangePtr& exchange, net::HttpResponse response) {
  AddSafetyHeaders(response.headers);
  exchange->Respond(std::move(response));
}

void PageServer::Fail(const ExchangePtr& exchange, const Status& status) {
  Answer(exchange, net::StatusResponse(status));
}

void PageServer::OnRequest(ExchangePtr exchange) {
  const net::HttpRequest& request = exchange->request();
  if (const Status host = CheckHost(request, kind_); !host.ok()) return Fail(exchange, host);
  if (!request.path.starts_with(kApi)) {
    return Answer(exchange, ServeFile(plugs_.files, request));
  }
  if (!IsRead(request) || IsUpgrade(request)) {
    if (const Status origin = CheckOrigin(request, kind_); !origin.ok())
      return Fail(exchange, origin);
  }
  Api(exchange, std::string_view(request.path).substr(kApi.size()));
}

void PageServer::Api(const ExchangePtr& exchange, std::string_view path) {
  const net::HttpRequest& request = exchange->request();
  if (path == "login") return Login(exchange);
  const auto session = SessionOf(request);
  if (!session.ok()) return Fail(exchange, session.status());
  if (!IsRead(request) && !SameSecret(HeaderOf(request, "X-Swell-CSRF"), (*session)->csrf)) {
    return Fail(exchange, Status(Code::kForbidden,
                                 "X-Swell-CSRF: the secret of the session is missing or wrong; "
                                 "load the page again"));
  }
  if (path == "session" && IsRead(request)) return AnswerSession(exchange, **session, false);
  if (path == "logout" && request.method == "POST") return Logout(exchange, **session);
  if (path.starts_with("k8s/")) return PassOn(exchange, **session, path.substr(3));
  if (path == "views/why" && IsRead(request)) return AnswerWhy(exchange, **session);
  if ((path == "plan" || path == "whatif") && request.method == "POST") {
    return AnswerQuestion(exchange, **session, path);
  }
  if (path == "tensorboard" && (request.method == "GET" || request.method == "POST")) {
    return AnswerTensorboard(exchange, **session);
  }
  if (path == "tensorboard/open" && request.method == "POST") {
    return OpenTensorboard(exchange, **session);
  }
  if ((path == "users" && (request.method == "POST" || request.method == "DELETE")) ||
      (path == "users/kubeconfig" && request.method == "POST")) {
    return AnswerUsers(exchange, **session, path);
  }
  if (path.starts_with("views/") && IsRead(request)) {
    return AnswerView(exchange, **session, path.substr(6));
  }
  if (path == "history" && IsRead(request) && plugs_.history != nullptr) {
    return AnswerHistory(exchange, **session);
  }
  if (path == "live" && request.method == "GET") return OpenLive(exchange, **session);
  Fail(exchange, Status(Code::kNotFound, StrCat(request.method, " ", request.path,
                                                ": the pages' server has nothing there")));
}

void PageServer::Login(const ExchangePtr& exchange) {
  if (exchange->request().method != "POST") {
    return Fail(exchange, Status(Code::kMethodNotAllowed, "login: expected POST"));
  }
  const auto body = json::Parse(exchange->request().body, {.depth = 4, .bytes = 64 << 10});
  if (!body.ok()) return Fail(exchange, body.status().WithContext("login"));
  const std::string code(json::GetString(*body, {"code"}));
  const std::string token(Trim(json::GetString(*body, {"token"})));
  if (!code.empty()) {
    const auto credentials = sessions_.UseCode(code);
    if (!credentials.ok()) return Fail(exchange, credentials.status());
    return Begin(exchange, *credentials);
  }
  if (token.empty()) {
    return Fail(exchange, Status(Code::kUnauthorized, "login: expected a code or a token"));
  }
  const bool one_word = std::all_of(token.begin(), token.end(), [](char c) {
    return c > ' ' && c <= '~';  // it becomes a header of requests
  });
  if (!one_word) {
    return Fail(exchange, Status(Code::kUnauthorized,
                                 "login: the token has spaces or characters that no token has"));
  }
  Begin(exchange, {.bearer_token = token});
}

void PageServer::Begin(const ExchangePtr& exchange, const api::Credentials& credentials) {
  reader_.WhoIs(
      credentials, scope_.Wrap([this, exchange, credentials](const Result<api::UserInfo>& user) {
        if (!user.ok()) {
          const bool refused = user.status().code() == Code::kUnauthorized;
          return Fail(exchange, refused ? Status(Code::kUnauthorized,
                                                 "the cluster does not accept this token or code")
                                        : user.status());
        }
        AnswerSession(exchange, sessions_.Begin(credentials, *user), true);
      }));
}

void PageServer::AnswerSession(const ExchangePtr& exchange, const Session& session, bool cookie) {
  json::Array groups;
  for (const std::string& group : session.user.groups) groups.push_back(json::Value(group));
  const json::Value body = json::Object{{"user", session.user.name},
                                        {"groups", std::move(groups)},
                                        {"csrf", session.csrf},
                                        {"expires", api::FormatTime(session.expires)},
                                        {"version", std::string(cli::Version())}};
  net::HttpResponse response = JsonResponse(200, json::Print(body));
  if (cookie) {
    response.headers.push_back(
        {"Set-Cookie",
         StrCat(CookieName(exchange->request()), "=", session.id,
                "; Path=/; HttpOnly; SameSite=Strict", kind_.secure ? "; Secure" : "")});
  }
  Answer(exchange, std::move(response));
}

void PageServer::Logout(const ExchangePtr& exchange, const Session& session) {
  EndSession(session.id, "logged out");
  net::HttpResponse response = JsonResponse(200, "{}");
  response.headers.push_back({"Set-Cookie", StrCat(CookieName(exchange->request()),
                                                   "=; Path=/; Max-Age=0; HttpOnly; "
                                                   "SameSite=Strict",
                                                   kind_.secure ? "; Secure" : "")});
  Answer(exchange, std::move(response));
}

void PageServer::PassOn(const ExchangePtr& exchange,
                        const Session& session,
                        std::string_view path) {
  if (LeadsToPods(path)) {
    return Fail(exchange, Status(Code::kForbidden,
                                 StrCat(path,
                                        ": what pods serve is not shown inside of the pages; "
                                        "use kubectl port-forward or kubectl proxy")));
  }
  net::HttpRequest& request = exchange->mutable_request();
  const std::string rest(path);
  request.path = rest;
  request.target = request.query.empty() ? rest : StrCat(rest, "?", request.query);
  std::erase_if(request.headers, [](const net::Header& one) { return IsCredential(one.name); });
  const api::Credentials& credentials = session.credentials;
  request.peer.common_name = credentials.certificate_common_name;
  request.peer.organizations = credentials.certificate_organizations;
  if (!credentials.bearer_token.empty()) {
    request.headers.push_back({"Authorization", "Bearer " + credentials.bearer_token});
  }
  request.client = StrCat("pages of ", session.user.name);
  plugs_.front.OnRequest(exchange);
}

void PageServer::AnswerView(const ExchangePtr& exchange,
                            const Session& session,
                            std::string_view name) {
  auto params = ParamsOf(exchange->request());
  if (!params.ok()) return Fail(exchange, params.status());
  WithRights(session.id, scope_.Wrap([this, exchange, view = std::string(name), params = *params](
                                         const Result<std::shared_ptr<const Rights>>& rights) {
    if (!rights.ok()) return Fail(exchange, rights.status());
    const auto shown = board_.Read(view, params, *rights);
    if (!shown.ok()) return Fail(exchange, shown.status());
    Answer(exchange, JsonResponse(200, StrCat("{\"revision\":\"", shown->revision,
                                              "\",\"data\":", *shown->text, "}")));
  }));
}

void PageServer::AnswerWhy(const ExchangePtr& exchange, const Session& session) {
  auto params = ParamsOf(exchange->request());
  if (!params.ok()) return Fail(exchange, params.status());
  Ask(
      exchange, session,
      [ns = (*params)["namespace"], name = (*params)["name"], kind = (*params)["kind"]](
          cli::Session& command, cli::Api& api) { return AskWhy(command, api, ns, name, kind); },
      [](const json::Value& data) {
        const std::string text = json::Print(data);
        return StrCat("{\"revision\":\"", StableHash(text), "\",\"data\":", text, "}");
      });
}

Live::Ask PageServer::WhyOf(const std::string& session) {
  if (plugs_.commands == nullptr) return nullptr;
  return [this, session](const Params& params,
                         const std::function<void(const Result<json::Value>&)>& done) {
    const Session* of = sessions_.Find(session);
    if (of == nullptr) return;
    auto param = [&params](std::string_view name) {
      const auto found = params.find(name);
      return found == params.end() ? std::string() : found->second;
    };
    plugs_.commands->Run(
        of->credentials,
        [ns = param("namespace"), name = param("name"), kind = param("kind")](
            cli::Session& command, cli::Api& api) { return AskWhy(command, api, ns, name, kind); },
        done);
  };
}

void PageServer::AnswerQuestion(const ExchangePtr& exchange,
                                const Session& session,
                                std::string_view path) {
  auto body = json::Parse(exchange->request().body, {.bytes = 3 << 20});
  if (!body.ok()) return Fail(exchange, body.status().WithContext(path));
  auto question = path == "plan" ? AskPlan : AskWhatIf;
  Ask(
      exchange, session,
      [question, body = std::move(*body)](cli::Session& command, cli::Api& api) {
        return question(command, api, body);
      },
      [](const json::Value& answer) { return json::Print(answer); });
}

void PageServer::AnswerTensorboard(const ExchangePtr& exchange, const Session& session) {
  auto params = ParamsOf(exchange->request());
  if (!params.ok()) return Fail(exchange, params.status());
  const bool start = exchange->request().method == "POST";
  const bool opens = programs_.listens();
  Ask(
      exchange, session,
      [ns = (*params)["namespace"], name = (*params)["name"], kind = (*params)["kind"], start,
       opens](cli::Session& command, cli::Api& api) {
        return AskTensorboard(command, api, ns, name, kind, {.start = start, .opens = opens});
      },
      [](const json::Value& answer) { return json::Print(answer); });
}

// The ticket is made when the user's rights are known, for the session that asked.
void PageServer::OpenTensorboard(const ExchangePtr& exchange, const Session& session) {
  auto params = ParamsOf(exchange->request());
  if (!params.ok()) return Fail(exchange, params.status());
  if (plugs_.commands == nullptr || !programs_.listens()) {
    return Fail(exchange, Status(Code::kNotFound, std::string(kNoPrograms)));
  }
  plugs_.commands->Run(
      session.credentials,
      [ns = (*params)["namespace"], name = (*params)["name"]](
          cli::Session& command, cli::Api& api) { return AskOpening(command, api, ns, name); },
      scope_.Wrap([this, exchange, id = session.id](const Result<json::Value>& answer) {
        if (!answer.ok()) return FailWhole(exchange, answer.status());
        if (sessions_.Find(id) == nullptr) {
          return Fail(exchange, Status(Code::kUnauthorized, "the session is over"));
        }
        const std::string url =
            programs_.Open(id, std::string(json::GetString(*answer, {"namespace"})),
                           std::string(json::GetString(*answer, {"service"})),
                           HeaderOf(exchange->request(), "Host"));
        Answer(exchange, JsonResponse(200, json::Print(json::Object{{"url", url}})));
      }));
}

void PageServer::AnswerUsers(const ExchangePtr& exchange,
                             const Session& session,
                             std::string_view path) {
  if (plugs_.address.server.empty()) {
    return Fail(exchange, Status(Code::kNotFound, "users of this cluster are managed elsewhere"));
  }
  const auto print = [](const json::Value& answer) { return json::Print(answer); };
  if (exchange->request().method == "DELETE") {
    auto params = ParamsOf(exchange->request());
    if (!params.ok()) return Fail(exchange, params.status());
    return Ask(
        exchange, session,
        [name = (*params)["name"]](cli::Session&, cli::Api& api) {
          return AskDeleteUser(api, name);
        },
        print);
  }
  auto body = json::Parse(exchange->request().body, {.depth = 4, .bytes = 64 << 10});
  if (!body.ok()) return Fail(exchange, body.status().WithContext(path));
  auto question = path == "users" ? AskCreateUser : AskUserKubeconfig;
  Ask(
      exchange, session,
      [question, address = plugs_.address, body = std::move(*body)](cli::Session&, cli::Api& api) {
        return question(api, address, body);
      },
      print);
}

void PageServer::Ask(const ExchangePtr& exchange,
                     const Session& session,
                     CommandRunner::Work work,
                     std::function<std::string(const json::Value&)> print) {
  if (plugs_.commands == nullptr) {
    return Fail(exchange, Status(Code::kNotFound, "this server answers no questions"));
  }
  plugs_.commands->Run(
      session.credentials, std::move(work),
      scope_.Wrap([this, exchange, print = std::move(print)](const Result<json::Value>& answer) {
        if (!answer.ok()) return FailWhole(exchange, answer.status());
        Answer(exchange, JsonResponse(200, print(*answer)));
      }));
}

// With the causes by field, as the API server has them.
void PageServer::FailWhole(const ExchangePtr& exchange, const Status& status) {
  json::Array causes;
  for (const StatusCause& cause : status.details().causes) {
    causes.push_back(
        json::Object{{"reason", cause.reason}, {"field", cause.field}, {"message", cause.message}});
  }
  const json::Value body = json::Object{{"kind", "Status"},
                                        {"apiVersion", "v1"},
                                        {"status", "Failure"},
                                        {"message", status.message()},
                                        {"reason", Reason(status.code())},
                                        {"code", HttpStatus(status.code())},
                                        {"details", json::Object{{"causes", std::move(causes)}}}};
  Answer(exchange, JsonResponse(HttpStatus(status.code()), json::Print(body)));
}

namespace {

constexpr size_t kNamesMost = 32;
constexpr size_t kPointsUsual = 500;
constexpr size_t kPointsMost = 2000;
constexpr int64_t kSpanUsual = 3600;

json::Object SeriesDocument(const History::Found& found) {
  json::Object labels;
  for (const auto& [key, value] : found.series->labels) labels[key] = value;
  json::Array times, values;
  for (int64_t time : found.points.times) times.push_back(json::Value(time));
  for (double value : found.points.values) {
    values.push_back(std::isfinite(value) ? json::Value(value) : json::Value(nullptr));
  }
  return json::Object{{"name", found.series->name},
                      {"labels", std::move(labels)},
                      {"t", std::move(times)},
                      {"v", std::move(values)}};
}

}  // namespace

void PageServer::AnswerHistory(const ExchangePtr& exchange, const Session& session) {
  auto params = ParamsOf(exchange->request());
  if (!params.ok()) return Fail(exchange, params.status());
  const std::string text = (*params)["series"];
  std::vector<std::string> names;
  for (std::string_view name : Split(text, ',')) names.emplace_back(name);
  if (names.empty() || names.size() > kNamesMost) {
    return Fail(exchange,
                Status(Code::kBadRequest, StrCat("series: expected 1 to ", kNamesMost, " names")));
  }
  const int64_t now = plugs_.clock.Now().unix_ns / 1'000'000'000;
  const int64_t to = ParseInt((*params)["to"]).value_or(now);
  const int64_t from = ParseInt((*params)["from"]).value_or(to - kSpanUsual);
  const uint64_t most = ParseUint((*params)["points"]).value_or(kPointsUsual);
  WithRights(session.id, scope_.Wrap([=,
                                      this](const Result<std::shared_ptr<const Rights>>& rights) {
    if (!rights.ok()) return Fail(exchange, rights.status());
    json::Array series;
    for (const std::string& name : names) {
      const auto found =
          plugs_.history->Read(name, from, to, std::clamp<size_t>(most, 1, kPointsMost),
                               [&rights](const SeriesName& one) { return MaySee(one, **rights); });
      for (const History::Found& one : found) series.push_back(SeriesDocument(one));
    }
    Answer(exchange, JsonResponse(200, json::Print(json::Object{{"series", std::move(series)}})));
  }));
}

void PageServer::OpenLive(const ExchangePtr& exchange, const Session& session) {
  api::HeaderList offer;
  for (const net::Header& header : exchange->request().headers) {
    offer.emplace_back(header.name, header.value);
  }
  edge::Agreement agreement;
  api::RestResponse refusal;
  if (!edge::Negotiate(offer, {}, {}, &agreement, &refusal)) {
    return Fail(exchange, Status(Code::kBadRequest, std::string(Trim(refusal.BodyString()))));
  }
  const auto own = std::count_if(tabs_.begin(), tabs_.end(), [&session](const auto& tab) {
    return tab->session() == session.id;
  });
  if (tabs_.size() >= kTabsMax || static_cast<size_t>(own) >= kTabsPerSession) {
    return Fail(exchange, Status(Code::kTooManyRequests, "too many tabs are open; close some"));
  }
  WithRights(session.id, scope_.Wrap([this, exchange, id = session.id, agreement](
                                         const Result<std::shared_ptr<const Rights>>& rights) {
    if (!rights.ok()) return Fail(exchange, rights.status());
    net::Headers headers{{"Connection", "Upgrade"}};
    for (const auto& [name, value] : agreement.headers) headers.push_back({name, value});
    auto wire = edge::MakeNetDuplex(plugs_.pages, exchange->Upgrade(std::move(headers)));
    auto tab =
        std::make_shared<Live>(plugs_.pages, board_, id, *rights, std::move(wire), WhyOf(id));
    tabs_.insert(tab);
    tab->Start(scope_.Wrap([this, weak = std::weak_ptr(tab)] { tabs_.erase(weak.lock()); }));
  }));
}

std::vector<std::string> PageServer::Namespaces() const {
  std::vector<std::string> names;
  for (const auto& [name, object] : plugs_.state.Of(Kind::kNamespace)) names.push_back(name);
  return names;
}

void PageServer::WithRights(const std::string& session, RightsDone done) {
  Known& known = rights_[session];
  if (known.rights && plugs_.clock.Steady() - known.read < kRevalidate) return done(known.rights);
  known.waiting.push_back(std::move(done));
  ReadRights(session);
}

void PageServer::ReadRights(const std::string& id) {
  const Session* session = sessions_.Find(id);
  Known& known = rights_[id];
  if (session == nullptr || std::exchange(known.reading, true)) return;
  reader_.Read(session->credentials, Namespaces(),
               scope_.Wrap([this, id](const Result<Rights>& rights) {
                 auto found = rights_.find(id);
                 if (found == rights_.end()) return;
                 Known& it = found->second;
                 it.reading = false;
                 const auto waiting = std::exchange(it.waiting, {});
                 if (!rights.ok()) {
                   const Status& why = rights.status();
                   if (why.code() == Code::kUnauthorized) {
                     EndSession(id, "the cluster does not accept the credentials any more");
                   }
                   for (const auto& done : waiting) done(why);
                   return;
                 }
                 it.rights = std::make_shared<const Rights>(*rights);
                 it.read = plugs_.clock.Steady();
                 const auto now = it.rights;
                 for (const auto& done : waiting) done(now);
                 const auto tabs = tabs_;
                 for (const auto& tab : tabs) {
                   if (tab->session() == id) tab->SetRights(now);
                 }
               }));
}

void PageServer::Revalidate() {
  timer_.Start(kRevalidate, [this] { Revalidate(); });
  // A tab that shows a view keeps its session in use.
  for (const auto& tab : tabs_) {
    if (tab->watching()) sessions_.Use(tab->session());
  }
  const auto tabs = tabs_;
  for (const auto& tab : tabs) {
    if (sessions_.Find(tab->session()) == nullptr)
      EndSession(tab->session(), "the session is over");
  }
  for (const std::string& id : programs_.Sessions()) {
    if (sessions_.Find(id) == nullptr) programs_.EndSession(id);
  }
  std::erase_if(rights_, [this](const auto& one) {
    return sessions_.Find(one.first) == nullptr && one.second.waiting.empty();
  });
  for (const std::string& id : sessions_.UsedWithin(2 * kRevalidate)) ReadRights(id);
}

void PageServer::EndSession(const std::string& id, std::string_view why) {
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): `id` may be the session's own
  const std::string ended = id;
  sessions_.End(ended);
  programs_.EndSession(ended);
  const auto tabs = tabs_;
  for (const auto& tab : tabs) {
    if (tab->session() == ended) tab->Close(kPolicyViolation, why);
  }
}

}  // namespace swell::ui
