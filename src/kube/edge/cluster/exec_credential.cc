#include "kube/edge/cluster/exec_credential.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/programs.h"
#include "base/strings.h"
#include "json/value.h"
#include "kube/api/meta/meta.h"

namespace swell::edge {
namespace {

constexpr size_t kOutputBytesMax = 1 << 20;

// What the program is told: KUBERNETES_EXEC_INFO.
std::string ExecInfo(const client::ExecPlugin& plugin, const client::ClusterAccess& access) {
  json::Object spec{{"interactive", false}};
  if (plugin.provide_cluster_info) {
    json::Object cluster{{"server", access.server}};
    if (!access.tls_server_name.empty()) cluster["tls-server-name"] = access.tls_server_name;
    if (access.insecure_skip_tls_verify) cluster["insecure-skip-tls-verify"] = true;
    if (!access.ca_pem.empty()) {
      cluster["certificate-authority-data"] = Base64Encode(access.ca_pem);
    }
    spec["cluster"] = std::move(cluster);
  }
  return json::Print(json::Object{
      {"apiVersion", plugin.api_version}, {"kind", "ExecCredential"}, {"spec", std::move(spec)}});
}

// This process's environment with the plugin's own variables put over it.
std::vector<std::string> Environment(const client::ExecPlugin& plugin, std::string info) {
  std::vector<std::pair<std::string, std::string>> ours = plugin.env;
  ours.emplace_back("KUBERNETES_EXEC_INFO", std::move(info));
  std::vector<std::string> all;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    std::string_view text(*variable);
    std::string_view name = text.substr(0, text.find('='));
    bool replaced = false;
    for (const auto& [key, value] : ours) replaced = replaced || key == name;
    if (!replaced) all.emplace_back(text);
  }
  for (const auto& [key, value] : ours) all.push_back(StrCat(key, "=", value));
  return all;
}

}  // namespace

Result<ExecCredential> ParseExecCredential(const client::ExecPlugin& plugin,
                                           std::string_view output) {
  auto parsed = json::Parse(output);
  if (!parsed.ok()) return parsed.status().WithContext("its output is not JSON");
  auto wrong = [](std::string_view field, std::string_view value, std::string_view why) {
    return Status(Code::kUnauthorized,
                  StrCat("its output: ", field, ": ", Quote(value), ": ", why));
  };
  std::string_view kind = json::GetString(*parsed, {"kind"});
  if (kind != "ExecCredential") return wrong("kind", kind, "must be ExecCredential");
  std::string_view version = json::GetString(*parsed, {"apiVersion"});
  if (version != plugin.api_version) {
    return wrong("apiVersion", version, StrCat("the kubeconfig says ", plugin.api_version));
  }
  ExecCredential credential;
  credential.token = json::GetString(*parsed, {"status", "token"});
  credential.client_cert_pem = json::GetString(*parsed, {"status", "clientCertificateData"});
  credential.client_key_pem = json::GetString(*parsed, {"status", "clientKeyData"});
  if (credential.client_cert_pem.empty() != credential.client_key_pem.empty()) {
    return wrong("status", "", "clientCertificateData and clientKeyData belong together");
  }
  if (credential.token.empty() && credential.client_cert_pem.empty()) {
    return wrong("status", "", "holds neither a token nor a client certificate");
  }
  std::string_view expires = json::GetString(*parsed, {"status", "expirationTimestamp"});
  if (!expires.empty()) {
    credential.expires = api::ParseTime(expires);
    if (!credential.expires) {
      return wrong("status.expirationTimestamp", expires, "not an RFC 3339 time");
    }
  }
  return credential;
}

std::unique_ptr<ExecCredentialRun> ExecCredentialRun::Start(net::Reactor& reactor,
                                                            const client::ClusterAccess& access,
                                                            Done done,
                                                            Duration limit) {
  std::unique_ptr<ExecCredentialRun> run(
      new ExecCredentialRun(reactor, *access.exec, std::move(done)));
  if (Status spawned = run->Spawn(access); !spawned.ok()) {
    reactor.Post(run->scope_.Wrap([self = run.get(), spawned] { self->Finish(spawned); }));
    return run;
  }
  run->timer_.Start(limit, [self = run.get()] {
    self->Finish(Status(Code::kTimeout, "it did not end in time"));
  });
  return run;
}

ExecCredentialRun::ExecCredentialRun(net::Reactor& reactor, client::ExecPlugin plugin, Done done)
    : reactor_(reactor), plugin_(std::move(plugin)), done_(std::move(done)) {}

ExecCredentialRun::~ExecCredentialRun() {
  scope_.Close();
  timer_.Cancel();
  out_watch_.reset();
  exit_watch_.reset();
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  if (out_ >= 0) ::close(out_);
  if (pidfd_ >= 0) ::close(pidfd_);
}

Status ExecCredentialRun::Spawn(const client::ClusterAccess& access) {
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC | O_NONBLOCK) != 0) return ErrnoStatus(errno, "pipe");
  out_ = pipe[0];
  SpawnPlan plan{.command = {plugin_.command},
                 .environment = Environment(plugin_, ExecInfo(plugin_, access)),
                 .files = {{-1, STDIN_FILENO}, {pipe[1], STDOUT_FILENO}}};
  plan.command.insert(plan.command.end(), plugin_.args.begin(), plugin_.args.end());
  const Spawned spawned = swell::Spawn(std::move(plan));
  ::close(pipe[1]);
  pid_ = spawned.pid;
  if (spawned.error != 0) return ErrnoStatus(spawned.error, "it cannot be started");
  pidfd_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
  if (pidfd_ < 0) return ErrnoStatus(errno, "pidfd_open");
  SWELL_ASSIGN_OR_RETURN(out_watch_, reactor_.WatchFd(out_, [this] { Read(); }));
  SWELL_ASSIGN_OR_RETURN(exit_watch_, reactor_.WatchFd(pidfd_, [this] { OnExit(); }));
  return Status::Ok();
}

void ExecCredentialRun::Read() {
  char buffer[16384];
  for (;;) {
    ssize_t n = ::read(out_, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      if (n == 0) out_watch_.reset();
      return;
    }
    output_.append(buffer, static_cast<size_t>(n));
    if (output_.size() > kOutputBytesMax) {
      return Finish(Status(Code::kTooLarge, "it printed more than 1 MiB"));
    }
  }
}

void ExecCredentialRun::OnExit() {
  const CallbackScope::Guard guard = scope_.guard();
  Read();
  if (guard.closed() || !done_) return;
  int status = 0;
  ::waitpid(std::exchange(pid_, -1), &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    return Finish(ParseExecCredential(plugin_, output_));
  }
  Finish(Status(Code::kUnauthorized, WIFEXITED(status)
                                         ? StrCat("it ended with exit status ", WEXITSTATUS(status))
                                         : StrCat("it was ended by signal ", WTERMSIG(status))));
}

void ExecCredentialRun::Finish(Result<ExecCredential> result) {
  if (!done_) return;
  exit_watch_.reset();
  out_watch_.reset();
  timer_.Cancel();
  Done done = std::exchange(done_, nullptr);
  if (result.ok()) return done(std::move(result));
  std::string message = StrCat("exec plugin ", plugin_.command, ": ", result.status().message());
  if (!plugin_.install_hint.empty()) message += StrCat("\n", plugin_.install_hint);
  // A program that is not there must not look like an object that is not there.
  Code code = result.status().code();
  done(Status(code == Code::kNotFound ? Code::kUnauthorized : code, std::move(message)));
}

}  // namespace swell::edge
