#include "kube/process/network/netlink.h"

#include <arpa/inet.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <netinet/ether.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/strings.h"
#include "base/unique_fd.h"

namespace swell::process {

// One message under construction; attributes nest.
class Netlink::Request {
 public:
  Request(uint16_t type, uint16_t flags) : bytes_(sizeof(nlmsghdr)) {
    Header()->nlmsg_type = type;
    Header()->nlmsg_flags = static_cast<uint16_t>(NLM_F_REQUEST | NLM_F_ACK | flags);
  }

  nlmsghdr* Header() { return reinterpret_cast<nlmsghdr*>(bytes_.data()); }

  template <class T>
  void Body(const T& body) {
    Append(&body, sizeof body);
  }
  void Attribute(uint16_t type, const void* data, size_t size) {
    rtattr header{static_cast<uint16_t>(sizeof(rtattr) + size), type};
    Append(&header, sizeof header, false);
    Append(data, size);
  }
  void Text(uint16_t type, const std::string& text) {
    Attribute(type, text.c_str(), text.size() + 1);
  }
  void Number(uint16_t type, uint32_t number) { Attribute(type, &number, sizeof number); }
  size_t Begin(uint16_t type) {
    size_t at = bytes_.size();
    rtattr header{0, type};
    Append(&header, sizeof header);
    return at;
  }
  void End(size_t at) {
    auto* header = reinterpret_cast<rtattr*>(bytes_.data() + at);
    header->rta_len = static_cast<uint16_t>(bytes_.size() - at);
  }
  const std::vector<char>& Finish(uint32_t sequence) {
    Header()->nlmsg_len = static_cast<uint32_t>(bytes_.size());
    Header()->nlmsg_seq = sequence;
    return bytes_;
  }

 private:
  void Append(const void* data, size_t size, bool align = true) {
    const char* from = static_cast<const char*>(data);
    bytes_.insert(bytes_.end(), from, from + size);
    if (align) bytes_.resize(NLMSG_ALIGN(bytes_.size()));
  }
  std::vector<char> bytes_;
};

Result<Netlink> Netlink::Open() {
  int fd = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) return ErrnoStatus(errno, "netlink socket");
  // The kernel answers before send returns; the bound is for a kernel that does not.
  struct timeval limit = {5, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  return Netlink(fd);
}

Netlink::~Netlink() {
  if (fd_ >= 0) ::close(fd_);
}

Netlink::Netlink(Netlink&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), sequence_(other.sequence_) {}

Status Netlink::Send(Request& request, const std::string& what) {
  const std::vector<char>& bytes = request.Finish(++sequence_);
  if (::send(fd_, bytes.data(), bytes.size(), 0) < 0) return ErrnoStatus(errno, what);
  char buffer[8192];
  for (int round = 0; round < 16; ++round) {
    ssize_t n = ::recv(fd_, buffer, sizeof buffer, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, what);
    size_t left = static_cast<size_t>(n);
    for (auto* message = reinterpret_cast<nlmsghdr*>(buffer); NLMSG_OK(message, left);
         message = NLMSG_NEXT(message, left)) {
      if (message->nlmsg_seq != sequence_ || message->nlmsg_type != NLMSG_ERROR) continue;
      int error = -static_cast<nlmsgerr*>(NLMSG_DATA(message))->error;
      return error == 0 ? Status::Ok() : ErrnoStatus(error, what);
    }
  }
  return Status(Code::kTimeout, what + ": the kernel did not answer");
}

Result<int> Netlink::LinkIndex(const std::string& name) {
  unsigned index = ::if_nametoindex(name.c_str());
  if (index == 0) return ErrnoStatus(ENOENT, "interface " + name);
  return static_cast<int>(index);
}

Status Netlink::AddBridge(const std::string& name) {
  Request request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
  ifinfomsg info = {};
  info.ifi_flags = IFF_UP;
  info.ifi_change = IFF_UP;
  request.Body(info);
  request.Text(IFLA_IFNAME, name);
  size_t link = request.Begin(IFLA_LINKINFO);
  request.Text(IFLA_INFO_KIND, "bridge");
  request.End(link);
  return Send(request, "create bridge " + name);
}

Status Netlink::KeepHardwareAddress(const std::string& name) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return ErrnoStatus(errno, "socket");
  ifreq request = {};
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  // Setting the one it has makes it a chosen one.
  const bool kept =
      ::ioctl(fd, SIOCGIFHWADDR, &request) == 0 && ::ioctl(fd, SIOCSIFHWADDR, &request) == 0;
  const int error = errno;
  ::close(fd);
  return kept ? Status::Ok() : ErrnoStatus(error, "hardware address of " + name);
}

Result<std::string> Netlink::HardwareAddress(const std::string& name) {
  const UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoStatus(errno, "socket");
  ifreq request = {};
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  if (::ioctl(fd.get(), SIOCGIFHWADDR, &request) != 0) {
    return ErrnoStatus(errno, "hardware address of " + name);
  }
  const auto* bytes = reinterpret_cast<const ether_addr*>(request.ifr_hwaddr.sa_data);
  std::string out;
  for (const uint8_t byte : bytes->ether_addr_octet) {
    char text[4];
    std::snprintf(text, sizeof text, "%s%02x", out.empty() ? "" : ":", byte);
    out += text;
  }
  return out;
}

Status Netlink::AddVeth(const std::string& name,
                        int bridge_index,
                        const std::string& peer,
                        int netns_fd,
                        const std::string& hardware) {
  ether_addr address;
  if (!hardware.empty() && ::ether_aton_r(hardware.c_str(), &address) == nullptr) {
    return Status(Code::kInvalid, StrCat(Quote(hardware), " is not a hardware address"));
  }
  Request request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
  ifinfomsg info = {};
  info.ifi_flags = IFF_UP;
  info.ifi_change = IFF_UP;
  request.Body(info);
  request.Text(IFLA_IFNAME, name);
  request.Number(IFLA_MASTER, static_cast<uint32_t>(bridge_index));
  size_t link = request.Begin(IFLA_LINKINFO);
  request.Text(IFLA_INFO_KIND, "veth");
  size_t data = request.Begin(IFLA_INFO_DATA);
  size_t other = request.Begin(VETH_INFO_PEER);
  request.Body(ifinfomsg{});
  request.Text(IFLA_IFNAME, peer);
  if (!hardware.empty()) request.Attribute(IFLA_ADDRESS, &address, sizeof address);
  request.Number(IFLA_NET_NS_FD, static_cast<uint32_t>(netns_fd));
  request.End(other);
  request.End(data);
  request.End(link);
  return Send(request, "create link " + name);
}

Status Netlink::SetUp(int index) {
  Request request(RTM_NEWLINK, 0);
  ifinfomsg info = {};
  info.ifi_index = index;
  info.ifi_flags = IFF_UP;
  info.ifi_change = IFF_UP;
  request.Body(info);
  return Send(request, StrCat("set interface ", index, " up"));
}

Status Netlink::AddAddress(int index, uint32_t address, int prefix) {
  Request request(RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE);
  return SendAddress(request, index, address, prefix, "add address to");
}

Status Netlink::DeleteAddress(int index, uint32_t address, int prefix) {
  Request request(RTM_DELADDR, 0);
  return SendAddress(request, index, address, prefix, "delete address of");
}

Status Netlink::SendAddress(
    Request& request, int index, uint32_t address, int prefix, const char* what) {
  ifaddrmsg info = {};
  info.ifa_family = AF_INET;
  info.ifa_prefixlen = static_cast<uint8_t>(prefix);
  info.ifa_index = static_cast<uint32_t>(index);
  request.Body(info);
  uint32_t wire = htonl(address);
  request.Attribute(IFA_LOCAL, &wire, sizeof wire);
  request.Attribute(IFA_ADDRESS, &wire, sizeof wire);
  return Send(request, StrCat(what, " interface ", index));
}

Status Netlink::AddDefaultRoute(uint32_t gateway) {
  Request request(RTM_NEWROUTE, NLM_F_CREATE);
  rtmsg info = {};
  info.rtm_family = AF_INET;
  info.rtm_table = RT_TABLE_MAIN;
  info.rtm_protocol = RTPROT_BOOT;
  info.rtm_scope = RT_SCOPE_UNIVERSE;
  info.rtm_type = RTN_UNICAST;
  request.Body(info);
  uint32_t wire = htonl(gateway);
  request.Attribute(RTA_GATEWAY, &wire, sizeof wire);
  return Send(request, "add default route");
}

Status Netlink::DeleteLink(const std::string& name) {
  auto index = LinkIndex(name);
  if (!index.ok()) return Status::Ok();
  Request request(RTM_DELLINK, 0);
  ifinfomsg info = {};
  info.ifi_index = *index;
  request.Body(info);
  return Send(request, "delete interface " + name);
}

}  // namespace swell::process
