#include "kube/process/shim/terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/file.h"
#include "base/strings.h"

namespace swell::process {
namespace {

constexpr int kBacklog = 64;

// A path in the directory that fits a socket's address, valid while `dir_fd` is open.
Result<sockaddr_un> AddressIn(int dir_fd, const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = StrCat("/proc/self/fd/", dir_fd, "/", name);
  if (path.size() >= sizeof address.sun_path) {
    return Status(Code::kInvalid, StrCat("socket name ", Quote(name), " is too long"));
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

template <class Use>
Result<UniqueFd> WithSocketAt(const std::string& dir, const std::string& name, Use use) {
  const UniqueFd dir_fd(::open(dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!dir_fd.valid()) return ErrnoStatus(errno, "open " + dir);
  SWELL_ASSIGN_OR_RETURN(const sockaddr_un address, AddressIn(dir_fd.get(), name));
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoStatus(errno, "socket");
  SWELL_RETURN_IF_ERROR(use(fd.get(), dir_fd.get(), address));
  return fd;
}

struct Terminal {
  UniqueFd master, slave;
};

Result<Terminal> OpenTerminal() {
  Terminal out;
  out.master = UniqueFd(::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!out.master.valid()) return ErrnoStatus(errno, "open /dev/ptmx");
  int unlock = 0;
  if (::ioctl(out.master.get(), TIOCSPTLCK, &unlock) != 0) {
    return ErrnoStatus(errno, "unlock the terminal");
  }
  out.slave = UniqueFd(::ioctl(out.master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!out.slave.valid()) return ErrnoStatus(errno, "open the terminal");
  return out;
}

Status SendFd(int socket, int fd) {
  char byte = 'f';
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(head), &fd, sizeof fd);
  if (::sendmsg(socket, &message, MSG_NOSIGNAL) != 1)
    return ErrnoStatus(errno, "send the terminal");
  return Status::Ok();
}

}  // namespace

Result<UniqueFd> MakeTerminal(std::optional<int64_t> owner, int socket) {
  SWELL_ASSIGN_OR_RETURN(Terminal terminal, OpenTerminal());
  if (owner) {
    int ignored =
        ::fchown(terminal.slave.get(), static_cast<uid_t>(*owner), static_cast<gid_t>(-1));
    (void)ignored;  // programs run all the same; only `mesg` and the like mind
  }
  SWELL_RETURN_IF_ERROR(SendFd(socket, terminal.master.get()));
  return std::move(terminal.slave);
}

Status UseTerminal(int slave) {
  if (::ioctl(slave, TIOCSCTTY, 0) != 0) return ErrnoStatus(errno, "take the terminal");
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::dup2(slave, fd) < 0) return ErrnoStatus(errno, "dup2");
  }
  return Status::Ok();
}

void ResizeTerminal(int fd, uint16_t columns, uint16_t rows) {
  winsize size{};
  size.ws_col = columns;
  size.ws_row = rows;
  ::ioctl(fd, TIOCSWINSZ, &size);
}

Result<UniqueFd> ReceiveFd(int socket) {
  char byte;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t n;
  while ((n = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {
  }
  if (n < 0) return ErrnoStatus(errno, "receive the terminal");
  const cmsghdr* head = CMSG_FIRSTHDR(&message);
  if (n == 0 || head == nullptr || head->cmsg_type != SCM_RIGHTS) {
    return Status(Code::kUnavailable, "no terminal was made");
  }
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(head), sizeof fd);
  return UniqueFd(fd);
}

Result<UniqueFd> ListenAt(const std::string& dir, const std::string& name) {
  return WithSocketAt(dir, name, [&](int fd, int dir_fd, const sockaddr_un& address) {
    ::unlinkat(dir_fd, name.c_str(), 0);
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    if (::bind(fd, generic, sizeof address) != 0) return ErrnoStatus(errno, "bind " + name);
    ::fchmodat(dir_fd, name.c_str(), 0600, 0);
    return ::listen(fd, kBacklog) == 0 ? Status::Ok() : ErrnoStatus(errno, "listen at " + name);
  });
}

Result<UniqueFd> ConnectTo(const std::string& dir, const std::string& name) {
  return WithSocketAt(dir, name, [&](int fd, int, const sockaddr_un& address) {
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    if (::connect(fd, generic, sizeof address) == 0) return Status::Ok();
    return ErrnoStatus(errno, "connect to " + name);
  });
}

}  // namespace swell::process
