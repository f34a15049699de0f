#include "kube/process/network/service_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "kube/process/process_testing.h"

namespace swell::process {
namespace {

constexpr char kAnyPort = 0;

// A socket of this test's own address, which nobody else's service has: 127.x.y.z of its process.
std::string OwnAddress(int last) {
  const auto pid = static_cast<unsigned>(::getpid());
  return StrCat("127.", 64 + (pid >> 16 & 63), ".", pid >> 8 & 255, ".",
                (pid & 63) * 4 + static_cast<unsigned>(last));
}

sockaddr_in Name(const std::string& ip, uint16_t port) {
  sockaddr_in name = {};
  name.sin_family = AF_INET;
  name.sin_port = htons(port);
  ::inet_pton(AF_INET, ip.c_str(), &name.sin_addr);
  return name;
}

// Accepts one connection after the other, says its name, and then repeats what it hears.
class Echo {
 public:
  Echo(net::Reactor& reactor, const std::string& ip, std::string name)
      : reactor_(reactor), name_(std::move(name)) {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    sockaddr_in at = Name(ip, kAnyPort);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    EXPECT_EQ(::listen(fd_, 16), 0);
    socklen_t size = sizeof at;
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size);
    backend = {ip, ntohs(at.sin_port)};
    watch_ = std::move(*reactor.WatchFd(fd_, [this] { Accept(); }));
  }
  ~Echo() {
    watch_.reset();
    ::close(fd_);
    for (auto& [fd, watch] : clients_) {
      watch.reset();
      ::close(fd);
    }
  }

  node::ServiceBackend backend;

 private:
  void Accept() {
    const int fd = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    EXPECT_EQ(::send(fd, name_.data(), name_.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(name_.size()));
    clients_[fd] = std::move(*reactor_.WatchFd(fd, [this, fd] {
      char buffer[4096];
      const ssize_t n = ::recv(fd, buffer, sizeof buffer, 0);
      if (n > 0) ::send(fd, buffer, static_cast<size_t>(n), MSG_NOSIGNAL);
      if (n == 0) ::shutdown(fd, SHUT_WR);
      if (n <= 0) clients_[fd]->SetInterest(net::Interest::kNone);
    }));
  }

  net::Reactor& reactor_;
  const std::string name_;
  int fd_ = -1;
  std::unique_ptr<net::FdWatch> watch_;
  std::map<int, std::unique_ptr<net::FdWatch>> clients_;
};

class ServiceProxyTest : public ::testing::Test {
 protected:
  // What a client hears that says `words` and then no more; "refused" when nobody listens.
  std::string Ask(const std::string& words = "") {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in to = Name(service_, kPort);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
      ::close(fd);
      return errno == ECONNREFUSED ? "refused" : "error";
    }
    std::string heard;
    bool ended = false;
    size_t sent = 0;
    auto watch = reactor_.Watch(fd, [&](net::Readiness) {
      char buffer[4096];
      const ssize_t n = ::recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
      if (n > 0) heard.append(buffer, static_cast<size_t>(n));
      if (n < 0 && errno == ECONNRESET) heard += "reset";
      ended = n == 0 || (n < 0 && errno != EAGAIN);
      if (sent == words.size()) return;
      const ssize_t m = ::send(fd, words.data() + sent, words.size() - sent, MSG_NOSIGNAL);
      if (m > 0) sent += static_cast<size_t>(m);
      if (sent < words.size()) return;
      ::shutdown(fd, SHUT_WR);
      (*watch_)->SetInterest(net::Interest::kRead);
    });
    watch_ = &*watch;
    (*watch)->SetInterest(words.empty() ? net::Interest::kRead : net::Interest::kBoth);
    if (words.empty()) ::shutdown(fd, SHUT_WR);
    EXPECT_TRUE(reactor_.RunUntil([&] { return ended; }, kLimit));
    watch->reset();
    ::close(fd);
    return heard;
  }

  node::ServiceRoute Route(std::vector<node::ServiceBackend> backends) {
    return {service_, kPort, std::move(backends)};
  }

  static constexpr uint16_t kPort = 7780;
  const std::string service_ = OwnAddress(0);
  net::Reactor reactor_;
  std::unique_ptr<net::FdWatch>* watch_ = nullptr;
  Echo a_{reactor_, OwnAddress(1), "a"};
  Echo b_{reactor_, OwnAddress(2), "b"};
  ServiceProxy proxy_{reactor_, ""};
};

TEST_F(ServiceProxyTest, ConnectionsGoToTheBackendsInTurnAtTheirOwnPorts) {
  proxy_.Update({Route({a_.backend, b_.backend})});
  EXPECT_EQ(Ask(), "a");
  EXPECT_EQ(Ask(), "b");
  EXPECT_EQ(Ask("hello"), "ahello");
}

TEST_F(ServiceProxyTest, MoreThanSocketsHoldComesThroughWhole) {
  proxy_.Update({Route({a_.backend})});
  std::string words;
  for (int i = 0; words.size() < (3 << 20); ++i) words += StrCat(i, ",");
  EXPECT_TRUE(Ask(words) == "a" + words);
}

TEST_F(ServiceProxyTest, WithoutBackendsItRefuses) {
  proxy_.Update({Route({})});
  EXPECT_EQ(Ask(), "refused");
  proxy_.Update({Route({a_.backend})});
  EXPECT_EQ(Ask(), "a");
  proxy_.Update({});
  EXPECT_EQ(Ask(), "refused");
}

TEST_F(ServiceProxyTest, ABackendThatIsNotThereIsPassedOver) {
  const node::ServiceBackend nobody{OwnAddress(3), 9};
  proxy_.Update({Route({nobody, b_.backend})});
  EXPECT_EQ(Ask(), "b");
  proxy_.Update({Route({nobody})});
  EXPECT_EQ(Ask(), "reset");
}

TEST_F(ServiceProxyTest, WhoHasMostConnectionsMakesRoomForOthers) {
  ServiceProxy small(reactor_, "", {}, std::nullopt, 4);
  small.Update({Route({a_.backend})});
  std::vector<UniqueFd> held;
  for (int i = 0; i < 4; ++i) {
    held.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int fd = held.back().get();
    const sockaddr_in from = Name(OwnAddress(3), kAnyPort), to = Name(service_, kPort);
    ASSERT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&from), sizeof from), 0);
    ASSERT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    char byte = 0;
    ASSERT_TRUE(reactor_.RunUntil([&] { return ::recv(fd, &byte, 1, MSG_DONTWAIT) == 1; }, kLimit));
  }
  EXPECT_EQ(Ask(), "a") << "another client finds them all taken, and gets one";
  char byte = 0;
  EXPECT_TRUE(reactor_.RunUntil(
      [&] { return ::recv(held[0].get(), &byte, 1, MSG_DONTWAIT) < 0 && errno == ECONNRESET; },
      kLimit));
}

TEST_F(ServiceProxyTest, WithAffinityAClientStaysWhereItWas) {
  node::ServiceRoute route = Route({a_.backend, b_.backend});
  route.affinity = std::chrono::hours(1);
  proxy_.Update({route});
  EXPECT_EQ(Ask(), "a");
  EXPECT_EQ(Ask(), "a");
  route.backends = {b_.backend};
  proxy_.Update({route});
  EXPECT_EQ(Ask(), "b");
}

TEST_F(ServiceProxyTest, APortOfTheMachineThatIsTakenIsAFaultOfItsOwner) {
  node::ServiceRoute first = Route({a_.backend}), second = Route({b_.backend});
  first.owner = {"Service", "default", "first", "1"};
  second.owner = {"Service", "default", "second", "2"};
  const auto faults = proxy_.Update({first, second});
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].owner.name, "second");
  EXPECT_EQ(faults[0].message, StrCat("port 7780 of ", service_,
                                      " is not served: Service default/first has it already"));
  EXPECT_EQ(Ask(), "a");

  first.ip = second.ip = a_.backend.ip;
  first.port = a_.backend.port;
  const auto taken = proxy_.Update({first});
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].message, StrCat("port ", first.port, " of ", first.ip, " is not served: ",
                                     "another program of this machine listens there"));
  EXPECT_TRUE(proxy_.Update({}).empty());
}

TEST_F(ServiceProxyTest, APortStaysWithTheOwnerThatHasIt) {
  node::ServiceRoute first = Route({a_.backend}), second = Route({b_.backend});
  first.owner = {"Service", "red", "web", "1", "2026-01-02T00:00:00Z"};
  second.owner = {"Service", "blue", "web", "2", "2026-01-01T00:00:00Z"};
  proxy_.Update({first});
  // Neither a name that comes first nor an older object takes what is held.
  auto faults = proxy_.Update({second, first});
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].owner.ns, "blue");
  EXPECT_EQ(Ask(), "a");
  // Nor do pods that are not ready for a moment give it away.
  first.backends.clear();
  EXPECT_EQ(proxy_.Update({second, first}).size(), 1u);
  EXPECT_EQ(Ask(), "refused");
  first.backends = {a_.backend};
  proxy_.Update({second, first});
  EXPECT_EQ(Ask(), "a");
  EXPECT_TRUE(proxy_.Update({second}).empty());
  EXPECT_EQ(Ask(), "b");
  // Where nobody has it, as after a start, the oldest gets it.
  proxy_.Update({});
  faults = proxy_.Update({first, second});
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].owner.ns, "red");
  // A cluster IP is its service's.
  second.owner = {};
  faults = proxy_.Update({first, second});
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_NE(faults[0].message.find("a service has it already"), std::string::npos);
  EXPECT_EQ(Ask(), "b");
}

class ServicesOfPods : public ProcessRuntimeTest {};

TEST_F(ServicesOfPods, PodsReachThemAtTheirClusterIps) {
  node::RouteServices route = runtime_->Router();
  if (!route) GTEST_SKIP() << "pods have no networks of their own on this machine";
  Echo echo(core_, runtime_->gateway(), "hello from the service\n");
  route({{"10.96.7.7", 80, {echo.backend}}, {"10.96.7.7", 81, {}}}, [](const auto&) {});
  Create(Sandbox("client"));
  ContainerSpec client = Shell("client", "");
  client.image = "python:3";
  client.command = {"/bin/bash", "-c",
                    "exec 3<>/dev/tcp/10.96.7.7/80 && read -r line <&3 && echo \"$line\"; "
                    "(exec 4<>/dev/tcp/10.96.7.7/81) 2>&1 | grep -o -m1 refused"};
  EXPECT_EQ(Run(client).code, 0);
  EXPECT_EQ(Log(client.ref), "hello from the service\nrefused\n");
}

}  // namespace
}  // namespace swell::process
