// ExecCredentialRun: one run of a kubeconfig's exec plugin (client.authentication.k8s.io): a
// program that prints the credentials to use and how long they are good for.
// - Threads: the reactor's thread.
// - Ownership: destroying a run kills the program; `done` then never runs. It runs once, never from
//   inside Start.
// - Invariants: output over 1 MiB or a run longer than `limit` ends the program with an error.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/callback_scope.h"
#include "base/clock.h"
#include "base/timer.h"
#include "kube/client/kubeconfig.h"
#include "kube/net/reactor/reactor.h"

namespace swell::edge {

struct ExecCredential {
  std::string token;
  std::string client_cert_pem;
  std::string client_key_pem;
  std::optional<WallTime> expires;  // none: good until the server refuses it
};

// What the program printed. Errors name the field.
Result<ExecCredential> ParseExecCredential(const client::ExecPlugin& plugin,
                                           std::string_view output);

class ExecCredentialRun {
 public:
  using Done = std::function<void(Result<ExecCredential>)>;

  // `access.exec` is set.
  static std::unique_ptr<ExecCredentialRun> Start(net::Reactor& reactor,
                                                  const client::ClusterAccess& access,
                                                  Done done,
                                                  Duration limit = std::chrono::seconds(60));
  ~ExecCredentialRun();

 private:
  ExecCredentialRun(net::Reactor& reactor, client::ExecPlugin plugin, Done done);
  Status Spawn(const client::ClusterAccess& access);
  void Read();
  void OnExit();
  void Finish(Result<ExecCredential> result);

  net::Reactor& reactor_;
  client::ExecPlugin plugin_;
  Done done_;
  std::string output_;
  pid_t pid_ = -1;
  int out_ = -1;
  int pidfd_ = -1;
  Timer timer_{reactor_};
  std::unique_ptr<net::FdWatch> out_watch_;
  std::unique_ptr<net::FdWatch> exit_watch_;
  CallbackScope scope_;
};

}  // namespace swell::edge
