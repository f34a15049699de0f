// The few rtnetlink requests that pod networks need, as blocking calls on one socket.
//
// A socket belongs to the network namespace it was made in, whatever its thread joins later.
//
// - Threads: none; each owner has its own.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace swell::process {

class Netlink {
 public:
  static Result<Netlink> Open();
  ~Netlink();
  Netlink(Netlink&& other) noexcept;
  Netlink& operator=(Netlink&&) = delete;

  // Interface index, or kNotFound.
  Result<int> LinkIndex(const std::string& name);
  Status AddBridge(const std::string& name);
  // A pair: `name` here, attached to `bridge_index` and up; `peer` in the namespace, with this
  // hardware address ("02:…"; empty: one that the kernel chooses).
  Status AddVeth(const std::string& name,
                 int bridge_index,
                 const std::string& peer,
                 int netns_fd,
                 const std::string& hardware = "");
  // "02:…", of an interface in this thread's network.
  static Result<std::string> HardwareAddress(const std::string& name);
  // Fixes a bridge's hardware address. Otherwise it is the lowest one of its ports, and changes
  // with them: pods that remember the old one would reach nothing.
  static Status KeepHardwareAddress(const std::string& name);
  Status SetUp(int index);
  // IPv4 in host byte order.
  Status AddAddress(int index, uint32_t address, int prefix);
  Status DeleteAddress(int index, uint32_t address, int prefix);
  Status AddDefaultRoute(uint32_t gateway);
  Status DeleteLink(const std::string& name);

 private:
  explicit Netlink(int fd) : fd_(fd) {}
  class Request;
  Status SendAddress(Request& request, int index, uint32_t address, int prefix, const char* what);
  Status Send(Request& request, const std::string& what);

  int fd_;
  uint32_t sequence_ = 0;
};

}  // namespace swell::process
