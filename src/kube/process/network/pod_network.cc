#include "kube/process/network/pod_network.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <thread>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "base/random.h"
#include "base/strings.h"
#include "base/unique_fd.h"
#include "kube/process/network/netlink.h"
#include "kube/process/network/pod_cidr.h"
#include "kube/process/network/resolv_conf.h"
#include "kube/process/shim/id_map.h"

namespace swell::process {
namespace {

constexpr int kSlotMax = 60'000;
constexpr int kFailuresMax = 3;
constexpr uint32_t kServices = (10U << 24) | (96U << 16);  // where cluster IPs come from

std::string FormatAddress(uint32_t address) {
  return StrCat(address >> 24, ".", (address >> 16) & 255, ".", (address >> 8) & 255, ".",
                address & 255);
}

struct HostAddress {
  std::string interface;
  uint32_t address;
  uint32_t mask;
};

// A file that holds the namespace.
Status KeepNamespace(const std::string& link, const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0600));
  if (!file.valid()) return ErrnoStatus(errno, "create " + path);
  if (::mount(link.c_str(), path.c_str(), nullptr, MS_BIND, nullptr) == 0) return Status::Ok();
  return ErrnoStatus(errno, "keep namespace " + path);
}

// The network is the pod's alone: every user in it may use low ports, and ping.
void OpenToAllUsers() {
  static constexpr std::pair<const char*, std::string_view> kSettings[] = {
      {"/proc/sys/net/ipv4/ip_unprivileged_port_start", "0"},
      {"/proc/sys/net/ipv4/ping_group_range", "0 2147483647"}};
  for (const auto& [path, value] : kSettings) {
    const UniqueFd file(::open(path, O_WRONLY | O_CLOEXEC));
    // Where it cannot be set, these need a capability as ever.
    if (file.valid() && ::write(file.get(), value.data(), value.size()) < 0) continue;
  }
}

// That of eth0 in the network, or nothing. A thread of its own enters the namespace.
std::string HardwareAddressIn(const std::string& path) {
  std::string found;
  std::thread looker([&] {
    const UniqueFd there(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!there.valid() || ::setns(there.get(), CLONE_NEWNET) != 0) return;
    auto hardware = Netlink::HardwareAddress("eth0");
    if (hardware.ok()) found = std::move(*hardware);
  });
  looker.join();
  return found;
}

std::vector<HostAddress> HostAddresses() {
  std::vector<HostAddress> found;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return found;
  for (ifaddrs* item = list; item != nullptr; item = item->ifa_next) {
    if (item->ifa_addr == nullptr || item->ifa_addr->sa_family != AF_INET) continue;
    auto in = [](const sockaddr* address) {
      return ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr);
    };
    found.push_back({item->ifa_name, in(item->ifa_addr),
                     item->ifa_netmask == nullptr ? ~0U : in(item->ifa_netmask)});
  }
  ::freeifaddrs(list);
  return found;
}

}  // namespace

PodNetwork::PodNetwork(Options options)
    : options_(std::move(options)), guard_(StrCat("swell", options_.tag, "_own")) {}

PodNetwork::~PodNetwork() {
  scope_.Close();
  worker_.reset();
  // Ready ones are remade by the next start, under their own names.
}

std::string PodNetwork::LinkName(int slot) const {
  char text[16];
  std::snprintf(text, sizeof text, "sw%sv%x", options_.tag.c_str(), static_cast<unsigned>(slot));
  return text;
}

std::string PodNetwork::PathOf(int slot) const { return StrCat(options_.dir, "/", slot); }

std::string PodNetwork::UsersPathOf(int slot) const {
  return StrCat(options_.dir, "/", slot, ".users");
}

// Above the ids that people and their subordinate ranges have, and positive as 32 bits. Clusters
// of one machine begin at different places.
int64_t PodNetwork::FirstIdOf(int slot) const {
  const uint64_t chosen =
      (StableHash(options_.tag) + static_cast<uint64_t>(slot)) % uint64_t{kRangesOfIds};
  return (kFirstRangeOfIds + static_cast<int64_t>(chosen)) * kIdsOfPod;
}

// The hardware address follows from the other: who has one on this bridge has the other.
PodAddresses PodNetwork::AddressesOf(int slot) const {
  const uint32_t ip = base_ + 1 + static_cast<uint32_t>(slot);
  char hardware[18];
  std::snprintf(hardware, sizeof hardware, "02:%02x:%02x:%02x:%02x:%02x",
                static_cast<unsigned>(StableHash(options_.tag) & 255), ip >> 24, (ip >> 16) & 255,
                (ip >> 8) & 255, ip & 255);
  return {hardware, FormatAddress(ip)};
}

// Pods that an older version started have other hardware addresses: they stay as they are.
Status PodNetwork::StartGuard(const std::set<int>& slots_in_use) {
  SWELL_ASSIGN_OR_RETURN(const bool found, guard_.Find());
  std::map<std::string, PodAddresses> ports;
  for (const int slot : slots_in_use) {
    const PodAddresses own = AddressesOf(slot);
    if (found || HardwareAddressIn(PathOf(slot)) == own.hardware) ports[LinkName(slot)] = own;
  }
  return guard_.Start(std::move(ports));
}

std::string PodNetwork::gateway() const { return FormatAddress(base_ + 1); }

std::string PodNetwork::ResolvConf(std::string_view resolv_conf) const {
  auto forwards = ReadFile("/proc/sys/net/ipv4/ip_forward", 16);
  if (!forwards.ok() || Trim(*forwards) != "0") return WithShortWaits(resolv_conf);
  std::set<std::string> own;
  for (const HostAddress& host : HostAddresses()) {
    if (host.address >> 24 != IN_LOOPBACKNET) own.insert(FormatAddress(host.address));
  }
  return OnlyNameServers(resolv_conf, own);
}

NetworkLease PodNetwork::LeaseOf(int slot) const {
  NetworkLease lease{
      slot, FormatAddress(base_ + 1 + static_cast<uint32_t>(slot)), PathOf(slot), {}};
  // One that an older version made has none.
  if (options_.users && FileExists(UsersPathOf(slot))) {
    lease.users = UsersPathOf(slot);
    lease.first_id = FirstIdOf(slot);
  }
  return lease;
}

RuleScope PodNetwork::RulesScope() const {
  auto port_of = [this](const std::string& ip) -> std::string {
    in_addr parsed;
    if (::inet_pton(AF_INET, ip.c_str(), &parsed) != 1) return "";
    const int64_t slot = static_cast<int64_t>(ntohl(parsed.s_addr)) - base_ - 1;
    return slot < 1 || slot > kSlotMax ? "" : LinkName(static_cast<int>(slot));
  };
  return {.table = bridge(),
          .ports = StrCat("sw", options_.tag, "v"),
          .gateway = gateway(),
          .port_of = port_of,
          .services = {}};
}

Status PodNetwork::ChooseSubnet() {
  std::vector<HostAddress> addresses = HostAddresses();
  for (const HostAddress& address : addresses) {
    // Cluster IPs are addresses of the bridge, too, without a network (service_proxy.h).
    if (address.interface != bridge() || address.mask == ~0U) continue;
    // An earlier start of this cluster chose it, and its pods live in it.
    base_ = address.address & address.mask;
    prefix_ = __builtin_popcount(address.mask);
    return Status::Ok();
  }
  if (!options_.cidr.empty()) {
    SWELL_ASSIGN_OR_RETURN(const PodCidr chosen, ParsePodCidr(options_.cidr));
    base_ = chosen.base;
    prefix_ = chosen.bits;
    return Status::Ok();
  }
  uint64_t start = StableHash(options_.tag);
  for (uint32_t i = 0; i < 128; ++i) {
    uint32_t base = (10U << 24) | ((64 + (static_cast<uint32_t>(start % 128) + i) % 128) << 16);
    bool busy = std::any_of(addresses.begin(), addresses.end(), [base](const HostAddress& host) {
      uint32_t mask = host.mask & (~0U << 16);
      return (host.address & mask) == (base & mask);
    });
    if (busy || base == kServices) continue;
    // The last one: others that choose a network in this range begin at its first address.
    base_ = base | (0xFFFFU & (~0U << (32 - options_.bits)));
    prefix_ = options_.bits;
    return Status::Ok();
  }
  return Status(Code::kUnavailable, "no private network is free for pods; set the cluster CIDR");
}

Status PodNetwork::Start(const std::set<int>& slots_in_use) {
  SWELL_RETURN_IF_ERROR(MakeDirs(options_.dir));
  SWELL_ASSIGN_OR_RETURN(Netlink host, Netlink::Open());
  SWELL_RETURN_IF_ERROR(ChooseSubnet());
  auto index = host.LinkIndex(bridge());
  if (!index.ok()) {
    SWELL_RETURN_IF_ERROR(host.AddBridge(bridge()));
    index = host.LinkIndex(bridge());
    if (!index.ok()) return index.status();
  }
  bridge_index_ = *index;
  SWELL_RETURN_IF_ERROR(Netlink::KeepHardwareAddress(bridge()));
  SWELL_RETURN_IF_ERROR(host.AddAddress(bridge_index_, base_ + 1, prefix_));
  SWELL_RETURN_IF_ERROR(host.SetUp(bridge_index_));
  guarded_ = StartGuard(slots_in_use);
  taken_ = slots_in_use;
  SWELL_ASSIGN_OR_RETURN(std::vector<std::string> old, ListDir(options_.dir));
  for (const std::string& name : old) {
    auto slot = ParseInt(name.substr(0, name.find('.')));
    if (slot && !slots_in_use.contains(static_cast<int>(*slot))) Destroy(static_cast<int>(*slot));
  }
  // The first one is made here: it shows at once whether this machine lets us.
  int slot = NextSlot();
  SWELL_RETURN_IF_ERROR(Make(slot));
  taken_.insert(slot);
  ready_.push_back(slot);
  worker_ = std::make_unique<IdleWorker>();
  const Spares::Options spares = {.kept = options_.ready,
                                  .there =
                                      [this] {
                                        return static_cast<int64_t>(ready_.size() + making_) -
                                               static_cast<int64_t>(waiting_.size());
                                      },
                                  .make_one = [this] { return MakeOne(); },
                                  .post = options_.post};
  spares_ = std::make_unique<Spares>(spares, *worker_);
  spares_->RefillInQuiet();
  return Status::Ok();
}

int PodNetwork::NextSlot() {
  int most = std::min(kSlotMax, (1 << (32 - prefix_)) - 3);
  // Addresses come round late: a name that a peer still remembers does not lead to a stranger.
  for (int tried = 0; tried < most; ++tried) {
    cursor_ = cursor_ >= most ? 1 : cursor_ + 1;
    if (!taken_.contains(cursor_)) return cursor_;
  }
  return 0;
}

// False: no address is free, or it failed too often to try again before one is requested.
bool PodNetwork::MakeOne() {
  if (failures_ >= kFailuresMax) return false;
  const int slot = NextSlot();
  if (slot == 0) return false;
  taken_.insert(slot);
  ++making_;
  auto on_made = scope_.Wrap([this, slot](const Status& status) { OnMade(slot, status); });
  worker_->Post([this, slot, on_made] {
    options_.post([on_made, status = Make(slot)] { on_made(status); });
  });
  return true;
}

void PodNetwork::Acquire(std::function<void(Result<NetworkLease>)> done) {
  if (ready_.empty()) {
    failures_ = 0;
    waiting_.push_back(std::move(done));
    spares_->Refill();
    if (making_ == 0) {
      auto nobody = std::move(waiting_.front());
      waiting_.pop_front();
      nobody(Status(Code::kUnavailable, "the pods' network has no free address"));
    }
    return;
  }
  int slot = ready_.front();
  ready_.pop_front();
  spares_->Refill();
  done(LeaseOf(slot));
}

void PodNetwork::Release(int slot) {
  auto on_destroyed = scope_.Wrap([this, slot] { taken_.erase(slot); });
  auto destroy = [this, slot, on_destroyed] {
    Destroy(slot);
    options_.post(on_destroyed);
  };
  if (!worker_->PostIdle(destroy)) worker_->Post(destroy);
}

void PodNetwork::OnMade(int slot, const Status& status) {
  --making_;
  if (!status.ok()) {
    ++failures_;
    taken_.erase(slot);
    SWELL_LOG_WARNING("network", "pod network not made", {"error", status.ToString()});
    if (waiting_.empty() || making_ > 0) return;
    auto done = std::move(waiting_.front());
    waiting_.pop_front();
    return done(status);
  }
  failures_ = 0;
  if (waiting_.empty()) {
    ready_.push_back(slot);
    return;
  }
  auto done = std::move(waiting_.front());
  waiting_.pop_front();
  done(LeaseOf(slot));
}

// The calling thread is in the slot's network from here on.
Status PodNetwork::EnterNew(int slot) const {
  if (!options_.users) {
    return ::unshare(CLONE_NEWNET) == 0 ? Status::Ok()
                                        : ErrnoStatus(errno, "new network namespace");
  }
  SWELL_ASSIGN_OR_RETURN(const Namespaces made,
                         MakeNamespaces(PodIdMap(FirstIdOf(slot)), NetworkNamespace::kMade));
  if (::setns(made.net.get(), CLONE_NEWNET) != 0) {
    return ErrnoStatus(errno, "enter network namespace");
  }
  return KeepNamespace(StrCat("/proc/self/fd/", made.user.get()), UsersPathOf(slot));
}

// In a thread of its own, which the namespace is unshared for and which then ends.
Status PodNetwork::Make(int slot) {
  SWELL_ASSIGN_OR_RETURN(Netlink host, Netlink::Open());
  const PodAddresses addresses = AddressesOf(slot);
  SWELL_RETURN_IF_ERROR(guard_.Add(LinkName(slot), addresses));
  std::string path = PathOf(slot);
  Status status;
  std::thread maker([&] {
    status = [&]() -> Status {
      SWELL_RETURN_IF_ERROR(EnterNew(slot));
      SWELL_RETURN_IF_ERROR(KeepNamespace("/proc/thread-self/ns/net", path));
      int ns = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
      if (ns < 0) return ErrnoStatus(errno, "open network namespace");
      Status linked = host.AddVeth(LinkName(slot), bridge_index_, "eth0", ns, addresses.hardware);
      ::close(ns);
      SWELL_RETURN_IF_ERROR(linked);
      SWELL_ASSIGN_OR_RETURN(Netlink inside, Netlink::Open());
      SWELL_RETURN_IF_ERROR(inside.SetUp(1));
      SWELL_ASSIGN_OR_RETURN(int index, inside.LinkIndex("eth0"));
      SWELL_RETURN_IF_ERROR(
          inside.AddAddress(index, base_ + 1 + static_cast<uint32_t>(slot), prefix_));
      SWELL_RETURN_IF_ERROR(inside.SetUp(index));
      OpenToAllUsers();
      return inside.AddDefaultRoute(base_ + 1);
    }();
  });
  maker.join();
  if (!status.ok()) Destroy(slot);
  return status;
}

void PodNetwork::Destroy(int slot) {
  auto host = Netlink::Open();
  // The link first: its name is free again at once, while the kernel takes its time for the rest.
  if (host.ok()) {
    Status deleted = host->DeleteLink(LinkName(slot));
    (void)deleted;
  }
  guard_.Remove(LinkName(slot));
  for (const std::string& path : {PathOf(slot), UsersPathOf(slot)}) {
    ::umount2(path.c_str(), MNT_DETACH);
    ::unlink(path.c_str());
  }
}

void PodNetwork::Shutdown() {
  worker_.reset();
  spares_.reset();
  auto left = ListDir(options_.dir);
  if (left.ok()) {
    for (const std::string& name : *left) {
      if (auto slot = ParseInt(name.substr(0, name.find('.')))) Destroy(static_cast<int>(*slot));
    }
  }
  guard_.Shutdown();
  auto host = Netlink::Open();
  if (!host.ok()) return;
  Status deleted = host->DeleteLink(bridge());
  if (!deleted.ok()) SWELL_LOG_WARNING("network", "bridge left", {"error", deleted.ToString()});
}

}  // namespace swell::process
