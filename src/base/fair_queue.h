// FairQueue: a work queue that is fair between clients: the client with the least served time goes
// next. The programs of one client take turns, and the items of one program keep their order.
//
// A client that comes or returns begins with the served time of the others: an idle client saves up
// nothing.
//
// - Threads: none; its owner guards it.
// - Invariants: a client has at most `client_max` items waiting, all clients together at most
//   `all_max`. Rests do not count; there is at most one for each popped item. A client without
//   items is forgotten once the others have caught up.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"

namespace swell {

template <class Item>
class FairQueue {
 public:
  FairQueue(size_t all_max, size_t client_max) : all_max_(all_max), client_max_(client_max) {}

  // False: there is no room.
  bool Push(const std::string& client, const std::string& program, Item item) {
    if (size_ >= all_max_) return false;
    Client& one = clients_[client];
    if (one.waiting >= client_max_) return false;
    ItemsOf(one, program).push_back(std::move(item));
    Waits(client, one);
    return true;
  }

  // Puts the rest of a popped item in front of its program's items. There is always room for it.
  void PushRest(const std::string& client, const std::string& program, Item item) {
    Client& one = clients_[client];
    ItemsOf(one, program).push_front(std::move(item));
    Waits(client, one);
  }

  // The next item and its client; nullopt when nobody waits.
  std::optional<std::pair<std::string, Item>> Pop() {
    if (order_.empty()) return std::nullopt;
    auto node = order_.extract(order_.begin());
    auto& [used, name] = node.value();
    now_ = std::max(now_, used);
    Client& client = clients_[name];
    auto program = client.programs.upper_bound(client.last);
    if (program == client.programs.end()) program = client.programs.begin();
    std::pair<std::string, Item> next{name, std::move(program->second.front())};
    program->second.pop_front();
    client.last = program->first;
    if (program->second.empty()) client.programs.erase(program);
    --client.waiting;
    --size_;
    if (client.waiting > 0) order_.insert(std::move(node));
    return next;
  }

  // The cost of the client's item; zero would let it serve any number of them.
  void Charge(const std::string& client, Duration cost) {
    const auto found = clients_.find(client);
    if (found == clients_.end()) return;
    Client& one = found->second;
    if (one.waiting > 0) order_.erase({one.used, client});
    one.used += std::max<int64_t>(cost.count(), 1000);
    if (one.waiting > 0) {
      order_.emplace(one.used, client);
    } else if (clients_.size() > kForgetFrom) {
      Forget();
    }
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  static constexpr size_t kProgramsMax = 32;
  static constexpr size_t kForgetFrom = 256;

  struct Client {
    int64_t used = 0;  // of the server's time, in ns
    size_t waiting = 0;
    std::map<std::string, std::deque<Item>> programs;  // that have something waiting
    std::string last;                                  // whose turn it was
  };

  static std::deque<Item>& ItemsOf(Client& one, const std::string& program) {
    const bool named = one.programs.size() < kProgramsMax || one.programs.contains(program);
    return one.programs[named ? program : ""];
  }

  // One more item of the client's does.
  void Waits(const std::string& name, Client& one) {
    ++size_;
    if (one.waiting++ > 0) return;
    one.used = std::max(one.used, now_);
    order_.emplace(one.used, name);
  }

  // Forgets clients that would begin with the served time of the others.
  void Forget() {
    std::erase_if(clients_, [this](const auto& it) {
      return it.second.waiting == 0 && it.second.used <= now_;
    });
  }

  const size_t all_max_;
  const size_t client_max_;
  std::map<std::string, Client> clients_;
  std::set<std::pair<int64_t, std::string>> order_;  // clients that wait, by what they have used
  int64_t now_ = 0;                                  // what the one who was last next had used
  size_t size_ = 0;
};

}  // namespace swell
