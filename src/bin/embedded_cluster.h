// EmbeddedCluster: every component of a cluster in one process, wired to real plugs.
//
//   core thread   API server, controllers, scheduler, node agents: one Executor, no locks
//   I/O thread    sockets, TLS, HTTP
//   store thread  SQLite's commits
//   record thread the record of the scheduler's cycles
//   pages thread  the pages: their sockets, sessions and views
//
// - Threads: the thread that constructs it runs it and is the core thread.
// - Ownership: members are destroyed in reverse order: clients before the server that answers them.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "ops/options/cluster_options.h"

namespace swell {

class EmbeddedCluster {
 public:
  struct Listeners {
    std::function<void()> ready;      // the API answers
    std::function<void()> pods_save;  // the cluster stops, and pods take their time to save
  };

  // Opens the store, binds the port and writes the kubeconfig; nothing runs yet.
  static Result<std::unique_ptr<EmbeddedCluster>> Create(const ops::ClusterOptions& options);
  ~EmbeddedCluster();

  // Runs until SIGINT or SIGTERM; then pods have 30 s to save and end. A second signal, or SIGQUIT,
  // ends them at once.
  Status Run(const Listeners& listeners);

  const std::string& server_url() const;
  // The address of the pages; empty: the cluster has no pages.
  std::string pages_url() const;

 private:
  struct Impl;
  explicit EmbeddedCluster(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace swell
