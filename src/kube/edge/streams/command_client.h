// CommandClient: the client's half of exec and attach, over SPDY/3.1 (remotecommand v4), which
// every API server speaks, old and new.
//
// PortForwardClient: connections to a pod's ports, over one upgraded connection.
//
// - Threads: one executor. Callbacks run on it, not after the client is destroyed.
// - Ownership: executor and server outlive the clients.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/executor.h"
#include "base/result.h"
#include "kube/api/rest/rest.h"

namespace swell::edge {

struct CommandOptions {
  std::string ns, pod, container;
  std::vector<std::string> command;  // empty: attach
  bool input = false;
  bool output = true;
  bool error = true;  // not with a terminal
  bool tty = false;
};

struct CommandEvents {
  // The streams are there; input may be written before.
  std::function<void()> on_open;
  std::function<void(bool error, const api::Chunk& bytes)> on_output;
  // Last, once: the exit code or the error.
  std::function<void(Result<int>)> on_exit;
};

class CommandClient {
 public:
  virtual ~CommandClient() = default;
  // Standard input. False when nobody reads it any more.
  virtual bool Write(api::Chunk bytes) = 0;
  virtual size_t queued_bytes() const = 0;
  virtual void OnDrained(std::function<void()> callback) = 0;
  virtual void CloseInput() = 0;
  virtual void Resize(uint16_t columns, uint16_t rows) = 0;
};
std::unique_ptr<CommandClient> StartCommand(Executor& executor,
                                            std::shared_ptr<api::RestHandler> server,
                                            const api::UserInfo& user,
                                            const CommandOptions& options,
                                            CommandEvents events);

// How a command ended, by the Status that its error stream carries.
Result<int> ReadCommandStatus(const std::string& text);

class PortForwardClient {
 public:
  virtual ~PortForwardClient() = default;
  // Carries the connection to the pod's port until either ends.
  virtual void Forward(uint16_t port, api::DuplexPtr connection) = 0;
};
struct PortForwardEvents {
  std::function<void()> on_open;
  // One connection failed; the others continue.
  std::function<void(uint16_t port, const std::string& why)> on_error;
  // Last, once: no more can be forwarded.
  std::function<void(const Status&)> on_end;
};
std::unique_ptr<PortForwardClient> StartPortForward(Executor& executor,
                                                    std::shared_ptr<api::RestHandler> server,
                                                    const api::UserInfo& user,
                                                    const std::string& ns,
                                                    const std::string& pod,
                                                    PortForwardEvents events);

}  // namespace swell::edge
