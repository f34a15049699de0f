#include "ops/remote_process.h"

#include <algorithm>
#include <csignal>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/schema/scheme.h"

namespace swell::ops {

RemoteProcess::RemoteProcess() : random_(EntropySeed()) {}

Result<std::unique_ptr<RemoteProcess>> RemoteProcess::Connect(
    const RemoteFlags& flags, edge::ClusterTransportOptions options) {
  std::unique_ptr<RemoteProcess> process(new RemoteProcess());
  SWELL_ASSIGN_OR_RETURN(process->access_, FindCluster(flags));
  SWELL_ASSIGN_OR_RETURN(
      auto transport,
      edge::ClusterTransport::Open(process->core_, process->clock_, process->access_, options));
  process->server_ = std::move(transport);
  process->client_ =
      std::make_unique<client::Client>(process->core_, process->server_, api::UserInfo{}, "swell");
  std::signal(SIGPIPE, SIG_IGN);
  return process;
}

Result<json::SharedValue> RemoteProcess::Await(
    const std::function<void(client::ObjectCallback)>& call) {
  std::optional<Result<json::SharedValue>> answer;
  call([&answer](Result<json::SharedValue> result) { answer = std::move(result); });
  core_.RunUntil([&answer] { return answer.has_value(); }, std::chrono::minutes(2));
  if (!answer) return Status(Code::kTimeout, "the server did not answer in time");
  return std::move(*answer);
}

Result<json::SharedValue> RemoteProcess::Call(api::RestRequest request) {
  return Await([&](client::ObjectCallback done) {
    client_->Call(std::move(request),
                  [done = std::move(done)](const Result<api::RestResponse>& response) {
                    if (!response.ok()) return done(response.status());
                    auto body = json::Parse(response->BodyString());
                    if (!body.ok()) return done(body.status());
                    done(std::make_shared<const json::Value>(std::move(*body)));
                  });
  });
}

Result<bool> RemoteProcess::Serves(const std::string& group, const std::string& version) {
  auto answer = Await([&](client::ObjectCallback done) {
    client_->Call({.method = "GET", .path = StrCat("/apis/", group, "/", version)},
                  [done = std::move(done)](const Result<api::RestResponse>& response) {
                    if (!response.ok()) return done(response.status());
                    done(std::make_shared<const json::Value>());
                  });
  });
  if (answer.ok()) return true;
  if (answer.status().code() == Code::kNotFound) return false;
  return answer.status();
}

Result<bool> RemoteProcess::Serves(const client::Resource& resource) {
  auto known = Call({.method = "GET", .path = StrCat("/apis/", resource.ApiVersion())});
  if (!known.ok() && known.status().code() == Code::kNotFound) return false;
  if (!known.ok()) return known.status();
  const json::Array& all = json::GetArray(**known, {"resources"});
  return std::any_of(all.begin(), all.end(), [&resource](const json::Value& one) {
    return json::GetString(one, {"name"}) == resource.plural;
  });
}

Result<std::string> RemoteProcess::ServerVersion() {
  SWELL_ASSIGN_OR_RETURN(json::SharedValue version, Call({.method = "GET", .path = "/version"}));
  return std::string(json::GetString(*version, {"gitVersion"}));
}

Status RemoteProcess::Run(const std::function<void()>& stop) {
  auto signals = core_.WatchSignals({SIGINT, SIGTERM}, [stop](int) { stop(); });
  if (!signals.ok()) return signals.status();
  core_.Run();
  return Status::Ok();
}

Result<std::vector<std::string>> MissingCrds(RemoteProcess& process) {
  std::vector<std::string> missing;
  for (const json::Value& crd : api::SwellCrds()) {
    std::string name(api::Name(crd));
    auto found = process.Await([&](client::ObjectCallback done) {
      process.client().Get(client::resources::kCrds, "", name, std::move(done));
    });
    if (found.ok()) continue;
    if (found.status().code() != Code::kNotFound) return found.status();
    missing.push_back(std::move(name));
  }
  return missing;
}

}  // namespace swell::ops
