// Console: the process's own standard input and terminal, for commands that converse. And the ports
// it listens on for the commands that forward them.
// - Threads: the loop's thread. Destroying a Console restores the terminal.
#pragma once

#include <cstdint>
#include <functional>

#include "kube/api/rest/duplex.h"

namespace swell::cli {

class Console {
 public:
  virtual ~Console() = default;
  virtual bool input_is_terminal() const = 0;
  // Every key goes to the other side, which also echoes.
  virtual Status SetRaw() = 0;
  // Begins to read standard input.
  virtual void Start(api::DuplexStream::Callbacks callbacks) = 0;
  virtual void SetReading(bool on) = 0;
  // The terminal's size; `changed` runs whenever there is a new one.
  virtual bool Size(uint16_t* columns, uint16_t* rows) const = 0;
  virtual void OnResize(std::function<void()> changed) = 0;
};

class PortListener {
 public:
  virtual ~PortListener() = default;
  virtual uint16_t port() const = 0;
};

}  // namespace swell::cli
