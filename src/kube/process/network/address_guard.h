// AddressGuard: a table of the kernel that lets a pod send with its own hardware and IPv4 address
// alone.
//
// A pod may send any bytes where it has the capability NET_RAW, which all pods have by default. The
// bridge would learn a false sender, and neighbours would believe a false ARP answer: a pod could
// get another pod's packets. Packets that are neither IPv4 nor ARP are dropped, too, since pods
// have no other addresses.
//
// The table outlives swell, as pods do.
//
// - Threads: none; calls block for milliseconds. The owner calls from one thread at a time.
#pragma once

#include <map>
#include <string>

#include "base/result.h"

namespace swell::process {

struct PodAddresses {
  std::string hardware;  // "02:…"
  std::string ip;
};

class AddressGuard {
 public:
  explicit AddressGuard(std::string table) : table_(std::move(table)) {}

  // Whether an earlier run left the table. An error says why there can be none.
  Result<bool> Find() const;
  // Replaces the table by one with these ports, by name.
  Status Start(std::map<std::string, PodAddresses> ports);
  // Makes the table anew where somebody removed it. Does nothing before Start.
  Status Add(const std::string& port, const PodAddresses& addresses);
  void Remove(const std::string& port);
  // Removes the table.
  void Shutdown();

 private:
  std::string MadeAnew() const;

  const std::string table_;
  bool started_ = false;
  std::map<std::string, PodAddresses> ports_;
};

}  // namespace swell::process
