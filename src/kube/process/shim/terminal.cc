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

namespace swell::edge {
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
Result<int> WithSocketAt(const std::string& dir, const std::string& name, Use use) {
  const int dir_fd = ::open(dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (dir_fd < 0) return ErrnoStatus(errno, "open " + dir);
  auto address = AddressIn(dir_fd, name);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  Status status = address.status();
  if (status.ok() && fd < 0) status = ErrnoStatus(errno, "socket");
  if (status.ok()) status = use(fd, dir_fd, *address);
  ::close(dir_fd);
  if (status.ok()) return fd;
  if (fd >= 0) ::close(fd);
  return status;
}

struct Terminal {
  int master = -1;
  int slave = -1;
};

Result<Terminal> OpenTerminal() {
  Terminal out;
  out.master = ::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (out.master < 0) return ErrnoStatus(errno, "open /dev/ptmx");
  int unlock = 0;
  Status status;
  if (::ioctl(out.master, TIOCSPTLCK, &unlock) != 0) {
    status = ErrnoStatus(errno, "unlock the terminal");
  } else {
    out.slave = ::ioctl(out.master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (out.slave < 0) status = ErrnoStatus(errno, "open the terminal");
  }
  if (status.ok()) return out;
  ::close(out.master);
  return status;
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

Result<int> MakeTerminal(std::optional<int64_t> owner, int socket) {
  SWELL_ASSIGN_OR_RETURN(const Terminal terminal, OpenTerminal());
  if (owner) {
    int ignored = ::fchown(terminal.slave, static_cast<uid_t>(*owner), static_cast<gid_t>(-1));
    (void)ignored;  // programs run all the same; only `mesg` and the like mind
  }
  Status sent = SendFd(socket, terminal.master);
  ::close(terminal.master);
  if (sent.ok()) return terminal.slave;
  ::close(terminal.slave);
  return sent;
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

Result<int> ReceiveFd(int socket) {
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
  return fd;
}

Result<int> ListenAt(const std::string& dir, const std::string& name) {
  return WithSocketAt(dir, name, [&](int fd, int dir_fd, const sockaddr_un& address) {
    ::unlinkat(dir_fd, name.c_str(), 0);
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    if (::bind(fd, generic, sizeof address) != 0) return ErrnoStatus(errno, "bind " + name);
    ::fchmodat(dir_fd, name.c_str(), 0600, 0);
    return ::listen(fd, kBacklog) == 0 ? Status::Ok() : ErrnoStatus(errno, "listen at " + name);
  });
}

Result<int> ConnectTo(const std::string& dir, const std::string& name) {
  return WithSocketAt(dir, name, [&](int fd, int, const sockaddr_un& address) {
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    if (::connect(fd, generic, sizeof address) == 0) return Status::Ok();
    return ErrnoStatus(errno, "connect to " + name);
  });
}

}  // namespace swell::edge
