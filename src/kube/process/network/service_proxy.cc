#include "kube/process/network/service_proxy.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/callback_scope.h"
#include "base/descriptors.h"
#include "base/file.h"
#include "base/log.h"
#include "base/strings.h"
#include "kube/process/network/netlink.h"

namespace swell::process {
namespace {

constexpr int kBacklog = 256;
// Connections have two sockets each: what pods ask of each other leaves the rest of the process
// half of its descriptors.
constexpr size_t kFlowPart = 4;
constexpr size_t kListenerPart = 4;  // one in kListenerPart of the descriptors
constexpr Duration kAcceptPause = std::chrono::milliseconds(100);
constexpr size_t kClientsMax = 4096;  // whose backend is remembered

std::optional<sockaddr_in> SocketName(const std::string& ip, uint16_t port) {
  sockaddr_in name = {};
  name.sin_family = AF_INET;
  name.sin_port = htons(port);
  if (::inet_pton(AF_INET, ip.c_str(), &name.sin_addr) != 1) return std::nullopt;
  return name;
}

int NewSocket() { return ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }

void SetOption(int fd, int level, int option, int value) {
  ::setsockopt(fd, level, option, &value, sizeof value);
}

// Whether a connection comes from this machine itself: the kernel then chooses the address that is
// called, or a loopback one.
bool IsOwnAddress(int fd, const in_addr& client) {
  sockaddr_in called = {};
  socklen_t size = sizeof called;
  if (ntohl(client.s_addr) >> 24 == IN_LOOPBACKNET) return true;
  return ::getsockname(fd, reinterpret_cast<sockaddr*>(&called), &size) == 0 &&
         called.sin_addr.s_addr == client.s_addr;
}

Status BindFault(int error) {
  if (error == EADDRINUSE) {
    return Status(Code::kConflict, "another program of this machine listens there");
  }
  if (error == EADDRNOTAVAIL) {
    return Status(Code::kUnavailable,
                  "this machine has no such address; swell up --external-address names the one "
                  "where load balancers answer");
  }
  return ErrnoStatus(error, "bind");
}

// Its peer reads an error rather than an end.
void Abort(int fd) {
  if (fd < 0) return;
  const linger at_once = {.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  ::close(fd);
}

// One connection: a client's socket, a backend's, and what is on its way between them.
class Flow {
 public:
  Flow(net::Reactor& reactor,
       int client_fd,
       std::vector<node::ServiceBackend> backends,
       std::function<void()> ended)
      : reactor_(reactor), backends_(std::move(backends)), ended_(std::move(ended)) {
    client_.fd = client_fd;
    SetOption(client_fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    SetOption(client_fd, IPPROTO_TCP, TCP_NODELAY, 1);
  }
  ~Flow() {
    client_.watch.reset();
    backend_.watch.reset();
    Abort(client_.fd);
    Abort(backend_.fd);
  }

  // Tries the backends in turn. False: none of them is there.
  bool Dial() {
    while (!backends_.empty()) {
      const node::ServiceBackend next = backends_.front();
      backends_.erase(backends_.begin());
      const auto name = SocketName(next.ip, next.port);
      backend_.watch.reset();
      Abort(std::exchange(backend_.fd, NewSocket()));
      if (!name || backend_.fd < 0) continue;
      SetOption(backend_.fd, SOL_SOCKET, SO_KEEPALIVE, 1);
      SetOption(backend_.fd, IPPROTO_TCP, TCP_NODELAY, 1);
      const auto* address = reinterpret_cast<const sockaddr*>(&*name);
      if (::connect(backend_.fd, address, sizeof *name) != 0 && errno != EINPROGRESS) continue;
      if (!WatchEnd(backend_)) continue;
      backend_.watch->SetInterest(net::Interest::kWrite);
      return true;
    }
    return false;
  }

 private:
  struct End {
    int fd = -1;
    std::unique_ptr<net::FdWatch> watch;
    std::string unsent;     // what it has not taken yet
    bool said_all = false;  // nothing more comes from it
    bool told_all = false;  // and it knows that nothing more comes to it
  };

  bool WatchEnd(End& end) {
    auto watch = reactor_.Watch(end.fd, [this](net::Readiness) { OnReady(); });
    if (!watch.ok()) return false;
    end.watch = std::move(*watch);
    return true;
  }

  void OnReady() {
    if (!connected_ && !FinishDialing()) return;
    if (!Carry(client_, backend_) || !Carry(backend_, client_)) return Finish();
    if (client_.told_all && backend_.told_all) return Finish();
    client_.watch->SetInterest(
        net::InterestIn(!client_.said_all && backend_.unsent.empty(), !client_.unsent.empty()));
    backend_.watch->SetInterest(
        net::InterestIn(!backend_.said_all && client_.unsent.empty(), !backend_.unsent.empty()));
  }

  bool FinishDialing() {
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(backend_.fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error == 0 && WatchEnd(client_)) return connected_ = true;
    if (error == 0 || !Dial()) Finish();
    return false;
  }

  void Finish() {
    for (End* end : {&client_, &backend_}) {
      end->watch.reset();
      // An end that has got everything reads an ordinary end of the stream.
      if (end->told_all) ::close(std::exchange(end->fd, -1));
    }
    ended_();
  }

  // False: the connection is broken.
  bool Carry(End& from, End& to) {
    if (!Send(to)) return false;
    if (to.unsent.empty() && !from.said_all) {
      const ssize_t n = ::recv(from.fd, reactor_.scratch(), net::Reactor::kScratchBytes, 0);
      if (n < 0 && errno != EAGAIN && errno != EINTR) return false;
      from.said_all = n == 0;
      if (n > 0) to.unsent.assign(reactor_.scratch(), static_cast<size_t>(n));
      if (!Send(to)) return false;
    }
    if (from.said_all && to.unsent.empty() && !to.told_all) {
      to.told_all = true;
      ::shutdown(to.fd, SHUT_WR);
    }
    return true;
  }

  static bool Send(End& to) {
    if (to.unsent.empty()) return true;
    const ssize_t n = ::send(to.fd, to.unsent.data(), to.unsent.size(), MSG_NOSIGNAL);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    to.unsent.erase(0, static_cast<size_t>(n));
    return true;
  }

  net::Reactor& reactor_;
  std::vector<node::ServiceBackend> backends_;  // that have not been tried
  std::function<void()> ended_;
  End client_;
  End backend_;
  bool connected_ = false;
};

}  // namespace

// The connections of each client. Where there is no room for another one, the client that has most
// of them gives one up: so no client takes the services from the others.
class ServiceProxy::FlowBook {
 public:
  struct Place {
    Listener* listener = nullptr;
    uint64_t flow = 0;
    auto operator<=>(const Place&) const = default;
  };

  explicit FlowBook(size_t flows_max) : flows_max_(flows_max) {}

  bool Full() const { return size_ >= std::min(flows_max_, DescriptorLimit() / kFlowPart); }
  void Add(uint32_t client, const Place& place) {
    size_ += clients_[client].insert(place).second ? 1 : 0;
  }
  void Remove(uint32_t client, const Place& place) {
    const auto of_client = clients_.find(client);
    if (of_client == clients_.end()) return;
    size_ -= of_client->second.erase(place);
    if (of_client->second.empty()) clients_.erase(of_client);
  }
  // The one to give up for the client; null if the client itself has most.
  std::optional<Place> ToGiveUpFor(uint32_t client) const {
    const auto most = std::max_element(
        clients_.begin(), clients_.end(),
        [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    const auto own = clients_.find(client);
    const size_t has = own == clients_.end() ? 0 : own->second.size();
    if (most == clients_.end() || most->second.size() <= has + 1) return std::nullopt;
    return *most->second.begin();
  }

 private:
  const size_t flows_max_;
  std::map<uint32_t, std::set<Place>> clients_;  // by address
  size_t size_ = 0;
};

// One port of a cluster IP, and the connections that came by it.
class ServiceProxy::Listener {
 public:
  Listener(net::Reactor& reactor, FlowBook& book, const Judge& judge, int fd)
      : reactor_(reactor), book_(book), judge_(judge), fd_(fd) {}
  ~Listener() {
    watch_.reset();
    for (const auto& [id, flow] : flows_) book_.Remove(flow.client, {this, id});
    ::close(fd_);
  }

  static Result<std::unique_ptr<Listener>> Open(net::Reactor& reactor,
                                                FlowBook& book,
                                                const Judge& judge,
                                                const std::string& device,
                                                const Key& key) {
    const auto name = SocketName(key.first, key.second);
    if (!name) return Status(Code::kInvalid, "no IPv4 address");
    const int fd = NewSocket();
    if (fd < 0) return ErrnoStatus(errno, "socket");
    auto listener = std::make_unique<Listener>(reactor, book, judge, fd);
    SetOption(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    const auto size = static_cast<socklen_t>(device.size());
    if (!device.empty() &&
        ::setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device.c_str(), size) != 0) {
      return ErrnoStatus(errno, "bind to " + device);
    }
    if (::bind(fd, reinterpret_cast<const sockaddr*>(&*name), sizeof *name) != 0) {
      return BindFault(errno);
    }
    if (::listen(fd, kBacklog) != 0) return ErrnoStatus(errno, "listen");
    SWELL_ASSIGN_OR_RETURN(listener->watch_,
                           reactor.WatchFd(fd, [it = listener.get()] { it->Accept(); }));
    return listener;
  }

  void Set(const node::ServiceRoute& route) {
    backends_ = route.backends;
    affinity_ = route.affinity;
    if (affinity_ == Duration::zero()) clients_.clear();
  }

 private:
  struct Client {
    node::ServiceBackend backend;
    SteadyTime until;
  };
  struct ClientFlow {
    uint32_t client = 0;  // its address
    std::unique_ptr<Flow> flow;
  };

  void Accept() {
    sockaddr_in peer = {};
    socklen_t size = sizeof peer;
    const int fd =
        ::accept4(fd_, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return OnNoneAccepted(errno);
    const uint32_t client = peer.sin_addr.s_addr;
    if (book_.Full()) {
      const auto place = book_.ToGiveUpFor(client);
      if (!place) return Abort(fd);
      place->listener->End(place->flow);
    }
    const uint64_t id = ++flow_ids_;
    // From inside the flow's own callback: it ends when that has returned.
    auto ended = [this, id] { reactor_.Post(scope_.Wrap([this, id] { End(id); })); };
    std::vector<node::ServiceBackend> backends = InTurn(client);
    Judged(fd, peer.sin_addr, backends);
    auto flow = std::make_unique<Flow>(reactor_, fd, std::move(backends), ended);
    if (!flow->Dial()) return;
    flows_[id] = {client, std::move(flow)};
    book_.Add(client, {this, id});
  }

  void End(uint64_t id) {
    const auto found = flows_.find(id);
    if (found == flows_.end()) return;
    book_.Remove(found->second.client, {this, id});
    flows_.erase(found);
  }

  // Leaves the backends that the client may reach. This machine reaches all of its pods.
  void Judged(int fd, const in_addr& client, std::vector<node::ServiceBackend>& backends) const {
    if (!judge_ || IsOwnAddress(fd, client)) return;
    char text[INET_ADDRSTRLEN] = {};
    ::inet_ntop(AF_INET, &client, text, sizeof text);
    std::erase_if(backends, [this, from = std::string(text)](const node::ServiceBackend& to) {
      return !judge_(from, to);
    });
  }

  // Out of descriptors: somebody still waits, and to ask in a loop would eat the CPU.
  void OnNoneAccepted(int error) {
    if (error != EMFILE && error != ENFILE && error != ENOBUFS && error != ENOMEM) return;
    watch_->SetInterest(net::Interest::kNone);
    reactor_.After(kAcceptPause,
                   scope_.Wrap([this] { watch_->SetInterest(net::Interest::kRead); }));
  }

  // The backends for a connection of this client, the one that is its turn first.
  std::vector<node::ServiceBackend> InTurn(uint32_t address) {
    std::vector<node::ServiceBackend> turn = backends_;
    if (turn.empty()) return turn;
    const auto next = static_cast<std::ptrdiff_t>(turn_++ % turn.size());
    std::rotate(turn.begin(), turn.begin() + next, turn.end());
    if (affinity_ == Duration::zero()) return turn;
    const SteadyTime now = reactor_.Now();
    const auto known = clients_.find(address);
    if (known != clients_.end() && now < known->second.until) {
      const auto at = std::find(turn.begin(), turn.end(), known->second.backend);
      if (at != turn.end()) std::rotate(turn.begin(), at, at + 1);
    }
    if (known == clients_.end() && clients_.size() >= kClientsMax) clients_.clear();
    clients_[address] = {turn.front(), now + affinity_};
    return turn;
  }

  net::Reactor& reactor_;
  FlowBook& book_;      // the proxy's
  const Judge& judge_;  // likewise
  const int fd_;
  std::unique_ptr<net::FdWatch> watch_;
  std::vector<node::ServiceBackend> backends_;
  size_t turn_ = 0;
  Duration affinity_{0};
  std::map<uint32_t, Client> clients_;  // only with affinity
  std::map<uint64_t, ClientFlow> flows_;
  uint64_t flow_ids_ = 0;
  CallbackScope scope_;
};

ServiceProxy::ServiceProxy(net::Reactor& reactor,
                           std::string device,
                           Judge judge,
                           std::optional<std::string> pods_device,
                           size_t flows_max)
    : reactor_(reactor),
      device_(std::move(device)),
      pods_device_(std::move(pods_device).value_or(device_)),
      judge_(std::move(judge)),
      flows_(std::make_unique<FlowBook>(flows_max)) {
  FindAddresses();
}

ServiceProxy::~ServiceProxy() = default;

void ServiceProxy::FindAddresses() {
  ifaddrs* list = nullptr;
  if (device_.empty() || ::getifaddrs(&list) != 0) return;
  for (const ifaddrs* item = list; item != nullptr; item = item->ifa_next) {
    if (device_ != item->ifa_name || item->ifa_addr == nullptr || item->ifa_netmask == nullptr ||
        item->ifa_addr->sa_family != AF_INET) {
      continue;
    }
    // The bridge's own address has its network's mask.
    auto in = [](const sockaddr* address) {
      return reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
    };
    if (in(item->ifa_netmask).s_addr != ~uint32_t{0}) continue;
    char text[INET_ADDRSTRLEN] = {};
    const in_addr address = in(item->ifa_addr);
    ::inet_ntop(AF_INET, &address, text, sizeof text);
    addresses_.insert(text);
  }
  ::freeifaddrs(list);
}

Status ServiceProxy::SetAddress(const std::string& ip, bool present) {
  if (device_.empty() || addresses_.contains(ip) == present) return Status::Ok();
  const auto name = SocketName(ip, 0);
  if (!name) return Status(Code::kInvalid, "no IPv4 address");
  SWELL_ASSIGN_OR_RETURN(Netlink host, Netlink::Open());
  SWELL_ASSIGN_OR_RETURN(const int index, host.LinkIndex(device_));
  const uint32_t address = ntohl(name->sin_addr.s_addr);
  if (present) {
    SWELL_RETURN_IF_ERROR(host.AddAddress(index, address, 32));
    addresses_.insert(ip);
    return Status::Ok();
  }
  addresses_.erase(ip);
  return host.DeleteAddress(index, address, 32);
}

void ServiceProxy::SetAddresses(const std::set<std::string>& ips) {
  for (const std::string& ip : std::set<std::string>(addresses_)) {
    if (ips.contains(ip)) continue;
    const Status removed = SetAddress(ip, false);
    if (!removed.ok()) SWELL_LOG_WARNING("network", "cluster IP left", {"ip", ip});
  }
  // An address that leads nowhere is there too, so that connections to it are refused at once.
  for (const std::string& ip : ips) {
    const Status added = SetAddress(ip, true);
    if (!added.ok()) {
      SWELL_LOG_WARNING("network", "no cluster IP", {"ip", ip}, {"error", added.ToString()});
    }
  }
}

Status ServiceProxy::Serve(const Key& key, const node::ServiceRoute& route) {
  auto there = listeners_.find(key);
  if (there == listeners_.end()) {
    const size_t most = DescriptorLimit() / kListenerPart;
    if (listeners_.size() >= most) {
      return Status(Code::kUnavailable,
                    StrCat("this machine serves no more than ", most, " ports of services"));
    }
    const std::string& device = route.owner.kind.empty() ? pods_device_ : std::string();
    SWELL_ASSIGN_OR_RETURN(auto opened, Listener::Open(reactor_, *flows_, judge_, device, key));
    there = listeners_.emplace(key, std::move(opened)).first;
  }
  there->second->Set(route);
  return Status::Ok();
}

std::vector<const node::ServiceRoute*> ServiceProxy::ByRight(
    const std::vector<node::ServiceRoute>& routes) const {
  std::vector<const node::ServiceRoute*> order;
  order.reserve(routes.size());
  for (const node::ServiceRoute& route : routes) order.push_back(&route);
  // A cluster IP is its service's. Times of the API are as long as each other.
  auto rank = [this](const node::ServiceRoute& route) {
    if (route.owner.kind.empty()) return std::pair<int, std::string_view>(0, {});
    const auto holder = holders_.find({route.ip, route.port});
    const bool holds = holder != holders_.end() && holder->second == route.owner.uid;
    return std::pair<int, std::string_view>(holds ? 1 : 2, route.owner.created);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&rank](const auto* a, const auto* b) { return rank(*a) < rank(*b); });
  return order;
}

std::vector<node::RouteFault> ServiceProxy::Update(const std::vector<node::ServiceRoute>& routes) {
  std::vector<node::RouteFault> faults;
  std::map<Key, const node::ServiceRoute*> wanted;
  std::set<std::string> ips;
  for (const node::ServiceRoute* route : ByRight(routes)) {
    if (route->owner.kind.empty()) ips.insert(route->ip);
    const auto [other, first] = wanted.try_emplace({route->ip, route->port}, route);
    if (first || route->owner.kind.empty() || route->backends.empty()) continue;
    const node::RouteOwner& owner = other->second->owner;
    const std::string whose =
        owner.kind.empty() ? "a service" : StrCat(owner.kind, " ", owner.ns, "/", owner.name);
    faults.push_back({route->owner, StrCat("port ", route->port, " of ", route->ip,
                                           " is not served: ", whose, " has it already")});
  }
  holders_.clear();
  for (const auto& [key, route] : wanted) holders_[key] = route->owner.uid;
  std::erase_if(wanted, [](const auto& one) { return one.second->backends.empty(); });
  std::erase_if(listeners_, [&](const auto& one) { return !wanted.contains(one.first); });
  SetAddresses(ips);
  for (const auto& [key, route] : wanted) {
    const Status served = Serve(key, *route);
    if (served.ok()) continue;
    SWELL_LOG_WARNING("network", "service not served",
                      {"address", StrCat(key.first, ":", key.second)},
                      {"error", served.ToString()});
    if (route->owner.kind.empty()) continue;
    faults.push_back({route->owner, StrCat("port ", key.second, " of ", key.first,
                                           " is not served: ", served.message())});
  }
  return faults;
}

std::set<std::pair<std::string, uint16_t>> ServiceProxy::ClusterPorts() const {
  std::set<Key> ports;
  for (const auto& [key, listener] : listeners_) {
    if (addresses_.contains(key.first)) ports.insert(key);
  }
  return ports;
}

}  // namespace swell::process
