#include "cli/real_console.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <utility>

#include "base/callback_scope.h"
#include "base/file.h"
#include "kube/edge/http/net_duplex.h"
#include "kube/net/connection/listener.h"

namespace swell::cli {
namespace {

constexpr size_t kReadBytes = 32 << 10;

// Files and the like are always ready and cannot be watched: they are read piece by piece.
bool CanWait(int fd) {
  struct stat info;
  if (::fstat(fd, &info) != 0) return false;
  return S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode) || ::isatty(fd) == 1;
}

class RealConsole final : public Console {
 public:
  explicit RealConsole(net::Reactor& reactor) : reactor_(reactor) {}
  ~RealConsole() override {
    watch_.reset();
    if (fd_ != STDIN_FILENO) ::close(fd_);
    if (raw_) ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &saved_);
  }

  bool input_is_terminal() const override { return ::isatty(STDIN_FILENO) == 1; }

  Status SetRaw() override {
    if (::tcgetattr(STDIN_FILENO, &saved_) != 0) return ErrnoStatus(errno, "read the terminal");
    termios raw = saved_;
    ::cfmakeraw(&raw);
    if (::tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw) != 0) {
      return ErrnoStatus(errno, "set the terminal");
    }
    raw_ = true;
    return Status::Ok();
  }

  void Start(api::DuplexStream::Callbacks callbacks) override {
    callbacks_ = std::move(callbacks);
    if (CanWait(STDIN_FILENO)) {
      // Opened anew: watching makes it non-blocking, and a terminal is also others' input and
      // output.
      const int own = ::open("/proc/self/fd/0", O_RDONLY | O_NOCTTY | O_CLOEXEC);
      if (own >= 0) fd_ = own;
      auto watch = reactor_.Watch(fd_, [this](net::Readiness) { ReadSome(); });
      if (watch.ok()) watch_ = std::move(*watch);
    }
    SetReading(true);
  }
  void SetReading(bool on) override {
    reading_ = on;
    if (watch_) return watch_->SetInterest(net::InterestIn(on && !ended_, false));
    if (on) ReadLater();
  }

  bool Size(uint16_t* columns, uint16_t* rows) const override {
    winsize size{};
    if (::ioctl(STDIN_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return false;
    *columns = size.ws_col;
    *rows = size.ws_row;
    return true;
  }
  void OnResize(std::function<void()> changed) override {
    auto watch =
        reactor_.WatchSignals({SIGWINCH}, [changed = std::move(changed)](int) { changed(); });
    if (watch.ok()) resize_ = std::move(*watch);
  }

 private:
  void ReadLater() {
    if (std::exchange(posted_, true)) return;
    reactor_.Post(scope_.Wrap([this] {
      posted_ = false;
      if (reading_) ReadSome();
    }));
  }

  void ReadSome() {
    if (ended_) return;
    std::string bytes(kReadBytes, '\0');
    const ssize_t n = ::read(fd_, bytes.data(), bytes.size());
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (n <= 0) {
      const Status why = n == 0 ? Status::Ok() : ErrnoStatus(errno, "read standard input");
      ended_ = true;
      if (watch_) watch_->SetInterest(net::Interest::kNone);
      return callbacks_.on_end(why);
    }
    bytes.resize(static_cast<size_t>(n));
    callbacks_.on_data(std::make_shared<const std::string>(std::move(bytes)));
    if (!watch_ && reading_) ReadLater();
  }

  net::Reactor& reactor_;
  int fd_ = STDIN_FILENO;
  termios saved_{};
  bool raw_ = false;
  api::DuplexStream::Callbacks callbacks_;
  std::unique_ptr<net::FdWatch> watch_;
  std::unique_ptr<net::SignalWatch> resize_;
  bool reading_ = false;
  bool posted_ = false;
  bool ended_ = false;
  CallbackScope scope_;
};

class RealListener final : public PortListener {
 public:
  explicit RealListener(std::unique_ptr<net::TcpListener> listener)
      : listener_(std::move(listener)) {}
  uint16_t port() const override { return listener_->port(); }

 private:
  std::unique_ptr<net::TcpListener> listener_;
};

}  // namespace

std::unique_ptr<Console> MakeRealConsole(net::Reactor& reactor) {
  return std::make_unique<RealConsole>(reactor);
}

Result<std::unique_ptr<PortListener>> ListenForReal(net::Reactor& reactor,
                                                    const std::string& address,
                                                    std::function<void(api::DuplexPtr)> accepted) {
  auto on_accept = [&reactor,
                    accepted = std::move(accepted)](std::shared_ptr<net::ByteStream> stream) {
    accepted(edge::MakeNetDuplex(reactor, std::move(stream)));
  };
  SWELL_ASSIGN_OR_RETURN(auto listener, net::TcpListener::Open(reactor, address, on_accept));
  return std::unique_ptr<PortListener>(std::make_unique<RealListener>(std::move(listener)));
}

}  // namespace swell::cli
