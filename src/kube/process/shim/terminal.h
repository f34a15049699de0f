// Terminals, and descriptors sent from process to process.
// - Threads: pure functions over descriptors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace swell::process {

// A terminal of /dev/ptmx as the calling process sees it, so that programs find theirs in /dev/pts.
// It belongs to `owner`. Sends its master over `socket` (ReceiveFd) and returns its slave.
Result<UniqueFd> MakeTerminal(std::optional<int64_t> owner, int socket);
// In a process that leads a session: the terminal controls it and is its standard streams.
Status UseTerminal(int slave);
void ResizeTerminal(int fd, uint16_t columns, uint16_t rows);

// One descriptor over a unix socket. kUnavailable: the sender has gone, or nothing has come yet.
Result<UniqueFd> ReceiveFd(int socket);

// A stream socket at DIR/NAME, however long the path is.
Result<UniqueFd> ListenAt(const std::string& dir, const std::string& name);
Result<UniqueFd> ConnectTo(const std::string& dir, const std::string& name);

}  // namespace swell::process
