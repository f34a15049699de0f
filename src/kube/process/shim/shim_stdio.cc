#include "kube/process/shim/shim_stdio.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "kube/process/shim/terminal.h"

namespace swell::process {
namespace {

constexpr size_t kConnectionsMax = 64;
constexpr size_t kInputMax = 64 << 10;
constexpr int kFinishMs = 5000;
constexpr size_t kResizeBytes = 4;

bool WouldBlock() { return errno == EAGAIN || errno == EINTR; }

}  // namespace

ShimStdio::ShimStdio(const std::string& dir, Options options) : options_(std::move(options)) {
  const int input = options_.input.get();
  if (input >= 0) ::fcntl(input, F_SETFL, ::fcntl(input, F_GETFL) | O_NONBLOCK);
  auto listener = ListenAt(dir, kStdioSocket);
  if (!listener.ok()) return;  // the container runs, but nobody can attach to it
  listener_ = std::move(*listener);
  ::fcntl(listener_.get(), F_SETFL, O_NONBLOCK);
}

void ShimStdio::AddTo(std::vector<pollfd>& fds) {
  connections_.remove_if([](const Connection& connection) { return !connection.fd.valid(); });
  polled_.clear();
  fds.push_back({listener_.get(), POLLIN, 0});
  polled_input_ = !input_.empty();
  fds.push_back({polled_input_ ? options_.input.get() : -1, POLLOUT, 0});
  for (Connection& connection : connections_) {
    int events = POLLIN;
    if (connection.role == 'I' && input_.size() >= kInputMax) events = 0;
    if (!connection.pending.empty()) events |= POLLOUT;
    fds.push_back({connection.fd.get(), static_cast<short>(events), 0});
    polled_.push_back(&connection);
  }
}

void ShimStdio::OnPolled(const pollfd* fds) {
  if (polled_input_ && fds[1].revents != 0) FlushInput();
  for (size_t i = 0; i < polled_.size(); ++i) {
    Connection& connection = *polled_[i];
    const short got = fds[i + 2].revents;
    if ((got & POLLOUT) != 0) OnWritable(connection);
    if ((got & (POLLIN | POLLHUP | POLLERR)) != 0 && connection.fd.valid()) OnReadable(connection);
  }
  if (fds[0].revents != 0) Accept();
}

void ShimStdio::Accept() {
  while (true) {
    UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid()) return;
    if (connections_.size() < kConnectionsMax) connections_.push_back({std::move(fd), 0, {}});
  }
}

void ShimStdio::OnReadable(Connection& connection) {
  if (connection.role == 0) {
    if (::read(connection.fd.get(), &connection.role, 1) != 1 && !WouldBlock()) Drop(connection);
    return;
  }
  if (connection.role == 'I') return TakeInput(connection);
  char buffer[64];
  const ssize_t n = ::read(connection.fd.get(), buffer, sizeof buffer);
  if (n == 0 || (n < 0 && !WouldBlock())) return Drop(connection);
  if (n < 0 || connection.role != 'R') return;
  // A record that is cut in two is told again by the next one.
  if (n < static_cast<ssize_t>(kResizeBytes) || !options_.terminal) return;
  const auto* last = reinterpret_cast<const unsigned char*>(buffer) +
                     (static_cast<size_t>(n) / kResizeBytes - 1) * kResizeBytes;
  ResizeTerminal(options_.input.get(), static_cast<uint16_t>(last[0] | last[1] << 8),
                 static_cast<uint16_t>(last[2] | last[3] << 8));
}

void ShimStdio::TakeInput(Connection& connection) {
  char buffer[16384];
  const ssize_t n = ::read(connection.fd.get(), buffer, sizeof buffer);
  if (n < 0 && WouldBlock()) return;
  if (n > 0) {
    if (!options_.input.valid() || input_ended_) return;
    input_.append(buffer, static_cast<size_t>(n));
    return FlushInput();
  }
  Drop(connection);
  if (!options_.once || options_.terminal) return;
  input_ended_ = true;
  if (input_.empty()) CloseInput();
}

void ShimStdio::FlushInput() {
  while (!input_.empty() && options_.input.valid()) {
    const ssize_t n = ::write(options_.input.get(), input_.data(), input_.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n < 0) {
      input_.clear();
      return CloseInput();
    }
    input_.erase(0, static_cast<size_t>(n));
  }
  if (input_ended_) CloseInput();
}

void ShimStdio::CloseInput() {
  input_ended_ = true;
  // A terminal's master is needed to resize it.
  if (!options_.terminal) options_.input.Reset();
}

void ShimStdio::Feed(char stream, std::string_view bytes) {
  for (Connection& connection : connections_) {
    if (connection.role != stream || !connection.fd.valid()) continue;
    connection.pending += bytes;
    OnWritable(connection);
  }
}

void ShimStdio::OnWritable(Connection& connection) {
  while (!connection.pending.empty()) {
    const ssize_t n = ::send(connection.fd.get(), connection.pending.data(),
                             connection.pending.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n < 0) return Drop(connection);
    connection.pending.erase(0, static_cast<size_t>(n));
  }
}

bool ShimStdio::Congested(char stream) const {
  return std::any_of(connections_.begin(), connections_.end(), [stream](const auto& connection) {
    return connection.role == stream && connection.fd.valid() && !connection.pending.empty();
  });
}

void ShimStdio::Finish() {
  while (Congested('O') || Congested('E')) {
    std::vector<pollfd> fds;
    AddTo(fds);
    if (::poll(fds.data(), fds.size(), kFinishMs) <= 0) return;
    OnPolled(fds.data());
  }
}

void ShimStdio::Drop(Connection& connection) {
  connection.fd.Reset();
  connection.pending.clear();
}

}  // namespace swell::process
