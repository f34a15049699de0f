// Packer and Unpacker: the scheduler's plain values as bytes and back, for the record of cycles.
//
// One description serves both ways: `Fields(c, value)`, found for each struct, calls c with its
// members in order. Integers are varints; strings, lists and maps begin with their length. What
// occurs again and again (names of nodes, what pods ask) is written once and then by number.
//
// - Threads: none. An Unpacker reads views into bytes that outlive it. Bytes are not trusted:
//   whatever they are, reading ends, stays within them and makes no more than they could hold; ok()
//   says whether they made sense.
#pragma once

#include <array>
#include <concepts>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/strings.h"
#include "sched/state/device_set.h"

namespace swell::sched {

// `T` is `Value`, const or not.
template <class T, class Value>
concept Is = std::same_as<std::remove_const_t<T>, Value>;

// Strings that were said before, by number, from 1.
inline constexpr size_t kSharedMax = 1 << 17;
struct SharedOut {
  std::unordered_map<std::string, uint32_t, StringHash, std::equal_to<>> numbers;
};
struct SharedIn {
  std::vector<std::string> texts;
};

// What is read stays within these, so that a time and a duration can be added: until the year 2116,
// and 73 years.
inline constexpr int64_t kTimeMaxNs = int64_t{1} << 62;
inline constexpr int64_t kDurationMaxNs = int64_t{1} << 61;

// Times, sets of devices and pairs, as any struct.
template <class C, Is<WallTime> T>
void Fields(C& c, T& time) {
  c(time.unix_ns);
  if constexpr (requires { c.Fail(); }) {
    if (time.unix_ns > kTimeMaxNs || time.unix_ns < -kTimeMaxNs) c.Fail();
  }
}
template <class C, Is<DeviceSet> T>
void Fields(C& c, T& set) {
  c(set.words[0], set.words[1]);
}

class Packer {
 public:
  explicit Packer(SharedOut& shared) : shared_(shared) {}

  template <class... T>
  void operator()(const T&... values) {
    (Put(values), ...);
  }
  // A string that is likely to occur again. Its number for Again; 0: it has none.
  uint32_t Shared(std::string_view text) {
    auto known = shared_.numbers.find(text);
    if (known != shared_.numbers.end()) {
      Number(known->second);
      return known->second;
    }
    Number(0);
    Number(text.size());
    bytes_ += text;
    const size_t number = shared_.numbers.size() + 1;
    if (number > kSharedMax) return 0;
    shared_.numbers.emplace(text, static_cast<uint32_t>(number));
    return static_cast<uint32_t>(number);
  }
  // The string that Shared gave this number.
  void Again(uint32_t number) { Number(number); }
  // Fields that are likely to occur again, together.
  template <class Fn>
  void Part(Fn&& fields) {
    Packer part(shared_);
    fields(part);
    Shared(part.bytes());
  }
  const std::string& bytes() const { return bytes_; }
  std::string Take() { return std::exchange(bytes_, {}); }

 private:
  void Number(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  template <class T>
  void Put(const T& value) {
    if constexpr (std::is_floating_point_v<T>) {
      char raw[sizeof(T)];
      std::memcpy(raw, &value, sizeof raw);
      bytes_.append(raw, sizeof raw);
    } else if constexpr (std::is_enum_v<T> || std::is_unsigned_v<T>) {
      Number(static_cast<uint64_t>(value));
    } else if constexpr (std::is_integral_v<T>) {
      const auto wide = static_cast<int64_t>(value);
      Number((static_cast<uint64_t>(wide) << 1) ^ (wide < 0 ? ~uint64_t{0} : uint64_t{0}));
    } else {
      Fields(*this, value);
    }
  }
  void Put(const std::string& text) {
    Number(text.size());
    bytes_ += text;
  }
  void Put(const Duration& duration) { Put(static_cast<int64_t>(duration.count())); }
  template <class T>
  void Put(const std::vector<T>& list) {
    Number(list.size());
    for (const T& item : list) Put(item);
  }
  template <class T, size_t N>
  void Put(const std::array<T, N>& list) {
    for (const T& item : list) Put(item);
  }
  template <class K, class V>
  void Put(const std::map<K, V>& map) {
    Number(map.size());
    for (const auto& [key, value] : map) Put(key), Put(value);
  }
  template <class T>
  void Put(const std::optional<T>& value) {
    Number(value.has_value());
    if (value) Put(*value);
  }

  SharedOut& shared_;
  std::string bytes_;
};

class Unpacker {
 public:
  Unpacker(std::string_view bytes, SharedIn& shared) : rest_(bytes), shared_(shared) {}

  template <class... T>
  void operator()(T&... values) {
    (Get(values), ...);
  }
  void Shared(std::string& text) { text = SharedText(); }
  template <class Fn>
  void Part(Fn&& fields) {
    const std::string bytes = SharedText();
    Unpacker part(bytes, shared_);
    fields(part);
    ok_ = ok_ && part.ok();
  }
  bool ok() const { return ok_; }
  bool done() const { return rest_.empty(); }
  void Fail() { ok_ = false, rest_ = {}; }

 private:
  uint64_t Number() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) break;
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    Fail();
    return 0;
  }
  // A count of things that take at least a byte each.
  size_t Count() {
    const uint64_t count = Number();
    if (count > rest_.size()) Fail();
    return ok_ ? static_cast<size_t>(count) : 0;
  }
  std::string SharedText() {
    const uint64_t number = Number();
    if (number > shared_.texts.size()) Fail();
    if (!ok_) return {};
    if (number > 0) return shared_.texts[number - 1];
    std::string text;
    Get(text);
    if (ok_ && shared_.texts.size() < kSharedMax) shared_.texts.push_back(text);
    return text;
  }
  template <class T>
  void Get(T& value) {
    if constexpr (std::is_floating_point_v<T>) {
      if (rest_.size() < sizeof(T)) return Fail();
      std::memcpy(&value, rest_.data(), sizeof(T));
      rest_.remove_prefix(sizeof(T));
      if (!(value - value == 0)) Fail();  // neither infinite nor a NaN
    } else if constexpr (std::is_enum_v<T>) {
      const uint64_t number = Number();
      if (number > static_cast<uint64_t>(EnumMax(T{}))) return Fail();
      value = static_cast<T>(number);
    } else if constexpr (std::is_unsigned_v<T>) {
      value = static_cast<T>(Number());
    } else if constexpr (std::is_integral_v<T>) {
      const uint64_t number = Number();
      value = static_cast<T>(static_cast<int64_t>(number >> 1) ^ -static_cast<int64_t>(number & 1));
    } else {
      Fields(*this, value);
    }
  }
  void Get(std::string& text) {
    const size_t size = Count();
    text = rest_.substr(0, size);
    rest_.remove_prefix(size);
  }
  void Get(Duration& duration) {
    int64_t count = 0;
    Get(count);
    if (count > kDurationMaxNs || count < -kDurationMaxNs) return Fail();
    duration = Duration(count);
  }
  template <class T>
  void Get(std::vector<T>& list) {
    list.clear();
    for (size_t left = Count(); left > 0 && ok_; --left) Get(list.emplace_back());
  }
  template <class T, size_t N>
  void Get(std::array<T, N>& list) {
    for (T& item : list) Get(item);
  }
  template <class K, class V>
  void Get(std::map<K, V>& map) {
    map.clear();
    for (size_t left = Count(); left > 0 && ok_; --left) {
      K key{};
      Get(key);
      Get(map[key]);
    }
  }
  template <class T>
  void Get(std::optional<T>& value) {
    if (Count() > 0) {
      Get(value.emplace());
    } else {
      value.reset();
    }
  }

  std::string_view rest_;
  SharedIn& shared_;
  bool ok_ = true;
};

}  // namespace swell::sched
