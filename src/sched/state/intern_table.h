// InternTable: values by a canonical key, each kept once under a small id with a reference count. A
// value has the members `std::string key` and `int32_t refs`.
// - Threads: none.
// - Ownership: the table owns; an id is stable while a reference is held and is given to another
//   value after.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/strings.h"

namespace swell::sched {

template <class T>
class InternTable {
 public:
  // Takes a reference to the value of this key. Creates it, otherwise empty, if it does not exist.
  int32_t Acquire(const std::string& key, bool& created) {
    auto it = by_key_.find(key);
    created = it == by_key_.end();
    if (!created) {
      ++slots_[it->second].refs;
      return it->second;
    }
    int32_t id = static_cast<int32_t>(slots_.size());
    if (free_.empty()) {
      slots_.emplace_back();
    } else {
      id = free_.back();
      free_.pop_back();
    }
    slots_[id].key = key;
    slots_[id].refs = 1;
    by_key_.emplace(key, id);
    return id;
  }
  // Gives a reference back; calls last(value) before the value of the last one goes.
  template <class Fn>
  void Release(int32_t id, Fn&& last) {
    if (--slots_[id].refs > 0) return;
    last(slots_[id]);
    by_key_.erase(by_key_.find(slots_[id].key));
    slots_[id] = T{};
    free_.push_back(id);
  }

  T& operator[](int32_t id) { return slots_[id]; }
  const T& operator[](int32_t id) const { return slots_[id]; }
  size_t size() const { return slots_.size(); }
  auto begin() { return slots_.begin(); }
  auto end() { return slots_.end(); }

 private:
  std::vector<T> slots_;
  std::vector<int32_t> free_;
  std::unordered_map<std::string, int32_t, StringHash, std::equal_to<>> by_key_;
};

}  // namespace swell::sched
