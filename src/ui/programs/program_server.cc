#include "ui/programs/program_server.h"

#include <utility>

#include "base/host_port.h"
#include "base/strings.h"

namespace swell::ui {
namespace {

constexpr std::string_view kOpen = "/open";
constexpr std::string_view kPrograms = "/p/";
constexpr std::string_view kCookie = "swell_program";

void Fail(net::Exchange& exchange, const Status& status) {
  exchange.Respond(ProgramText(HttpStatus(status.code()), status.message()));
}

// "/p/PATH/x" → "PATH".
std::string_view PathOf(std::string_view path) {
  path.remove_prefix(kPrograms.size());
  return path.substr(0, path.find('/'));
}

std::string_view TicketOf(std::string_view query) {
  constexpr std::string_view kName = "ticket=";
  return query.starts_with(kName) ? query.substr(kName.size()) : std::string_view();
}

// A page, since a redirect would not do: the browser has come from another site, so that it would
// keep the new cookie back. It replaces itself, so the ticket does not stay in the history.
std::string Onward(const std::string& to) {
  return StrCat(
      "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" "
      "content=\"0; url=",
      to, "\"><title>Opening</title><p><a href=\"", to, "\">Open the program</a></p></html>\n");
}

}  // namespace

ProgramServer::ProgramServer(ProgramPlugs plugs)
    : plugs_(std::move(plugs)), openings_(plugs_.clock, plugs_.secret) {}

std::string ProgramServer::Open(const std::string& session,
                                const std::string& ns,
                                const std::string& service,
                                std::string_view host) {
  std::string name(WithoutPort(host));
  if (kind_.loopback) name = name == "localhost" ? "127.0.0.1" : "localhost";
  return StrCat(kind_.secure ? "https://" : "http://", name, ":", port_, kOpen,
                "?ticket=", openings_.Issue(session, ns, service));
}

void ProgramServer::EndSession(const std::string& session) {
  openings_.EndSession(session);
  if (plugs_.relay != nullptr) plugs_.relay->EndSession(session);
}

void ProgramServer::OnRequest(ExchangePtr exchange) {
  const net::HttpRequest& request = exchange->request();
  if (!listens()) return Fail(*exchange, Status(Code::kNotFound, "no programs are shown here"));
  if (const Status host = CheckHost(request, kind_); !host.ok()) return Fail(*exchange, host);
  if (!IsRead(request) || IsUpgrade(request)) {
    const Status origin = CheckOrigin(request, kind_);
    if (!origin.ok()) return Fail(*exchange, origin);
  }
  if (request.path == kOpen && request.method == "GET") return Redeem(exchange);
  if (request.path.starts_with(kPrograms)) return Show(exchange);
  Fail(*exchange, Status(Code::kNotFound,
                         StrCat(request.path, ": programs are opened from the pages of a job")));
}

// Scripts do not see it, and only requests below this one program's path have it.
std::string ProgramServer::Cookie(const Opening& opening) const {
  return StrCat(kCookie, "=", opening.cookie, "; Path=", kPrograms, opening.path,
                "/; HttpOnly; SameSite=Strict", kind_.secure ? "; Secure" : "");
}

void ProgramServer::Redeem(const ExchangePtr& exchange) {
  const auto opening = openings_.Redeem(TicketOf(exchange->request().query));
  if (!opening.ok()) return Fail(*exchange, opening.status());
  net::HttpResponse response;
  response.headers = {{"Content-Type", "text/html; charset=utf-8"},
                      {"Cache-Control", "no-store"},
                      {"Content-Security-Policy", "default-src 'none'"},
                      {"Set-Cookie", Cookie(**opening)}};
  AddProgramHeaders(response.headers);
  response.body.push_back(net::MakeChunk(Onward(StrCat(kPrograms, (*opening)->path, "/"))));
  exchange->Respond(std::move(response));
}

void ProgramServer::Show(const ExchangePtr& exchange) {
  const net::HttpRequest& request = exchange->request();
  const std::string path(PathOf(request.path));
  const Opening* opening = nullptr;
  for (const std::string& cookie : CookiesOf(request, kCookie)) {
    opening = openings_.Find(path, cookie);
    if (opening != nullptr) break;
  }
  const api::Credentials* user =
      opening != nullptr ? plugs_.use_session(opening->session) : nullptr;
  if (user == nullptr) {
    return Fail(*exchange, Status(Code::kUnauthorized,
                                  "nobody has opened this program here, or the session is over; "
                                  "open it from the pages of a job"));
  }
  // A script that stays in the browser would get what others open here later.
  if (net::FindHeader(request.headers, "Service-Worker") != nullptr) {
    return Fail(*exchange, Status(Code::kForbidden, "programs get no service workers"));
  }
  if (IsUpgrade(request)) {
    return Fail(*exchange, Status(Code::kBadRequest, "programs get no WebSockets"));
  }
  plugs_.relay->Carry(exchange, {.session = opening->session,
                                 .credentials = *user,
                                 .ns = opening->ns,
                                 .service = opening->service,
                                 .place = {.authority = StrCat(opening->service, ".", opening->ns),
                                           .prefix = StrCat(kPrograms, path)}});
}

}  // namespace swell::ui
