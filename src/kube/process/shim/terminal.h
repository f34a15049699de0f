// Terminals, and descriptors sent from process to process.
// - Threads: pure functions over descriptors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace swell::edge {

// A terminal of /dev/ptmx as the calling process sees it, so that programs find theirs in /dev/pts.
// It belongs to `owner`; its master goes over `socket` (ReceiveFd), its slave is the answer.
Result<int> MakeTerminal(std::optional<int64_t> owner, int socket);
// In a process that leads a session: the terminal controls it and is its standard streams.
Status UseTerminal(int slave);
void ResizeTerminal(int fd, uint16_t columns, uint16_t rows);

// One descriptor over a unix socket. kUnavailable: the sender has gone, or nothing has come yet.
Result<int> ReceiveFd(int socket);

// A stream socket at DIR/NAME, however long the path is.
Result<int> ListenAt(const std::string& dir, const std::string& name);
Result<int> ConnectTo(const std::string& dir, const std::string& name);

}  // namespace swell::edge
