#include "json/document.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/check.h"

namespace swell::json {

// A block that is being filled: tables from its front, keys, which need no alignment, from its
// back.
class Filling final : public boost::json::memory_resource {
 public:
  Filling(std::byte* begin, size_t bytes) : front_(begin), back_(begin + bytes) {}
  bool full() const { return front_ == back_; }

 private:
  void* do_allocate(size_t bytes, size_t alignment) override;
  void do_deallocate(void*, size_t, size_t) override {}
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  std::byte* front_;
  std::byte* back_;
};

}  // namespace swell::json

namespace boost::json {
template <>
struct is_deallocate_trivial<swell::json::Filling> : std::true_type {};
}  // namespace boost::json

namespace swell::json {
namespace {

namespace bj = boost::json;

// What is smaller is not worth looking for.
constexpr size_t kPartBytesMin = 96;
constexpr size_t kSeenMax = 16 << 10;
constexpr size_t kPartsBeforeSweep = 1024;
constexpr size_t kNodesMax = 4096;  // for which room is held from document to document

size_t Rounded(size_t bytes) {
  return (bytes + alignof(Value) - 1) / alignof(Value) * alignof(Value);
}

// What Boost.JSON 1.81 asks for when it copies; a block that is not full afterwards stops us.
size_t StringBytes(size_t size) {
  constexpr size_t kInside = 14;  // kept in the value itself
  constexpr size_t kLeast = 30;
  constexpr size_t kHead = 8;
  return size <= kInside ? 0 : Rounded(kHead + std::max(size, kLeast) + 1);
}
size_t ArrayBytes(size_t size) {
  constexpr size_t kHead = 8;
  return size == 0 ? 0 : kHead + size * sizeof(Value);
}
size_t ObjectBytes(size_t size) {
  constexpr size_t kHead = 16;
  constexpr size_t kUnindexed = 18;
  const size_t index = size > kUnindexed ? size * sizeof(uint32_t) : 0;
  return size == 0 ? 0 : Rounded(kHead + size * sizeof(bj::key_value_pair) + index);
}

uint64_t Mix(uint64_t hash, uint64_t more) {
  hash = (hash ^ more) * 0x9e3779b97f4a7c15ULL;
  return hash ^ (hash >> 29);
}

uint64_t HashOf(std::string_view text) { return std::hash<std::string_view>()(text); }

std::string_view KeyOf(const bj::key_value_pair& member) {
  return {member.key().data(), member.key().size()};
}

bool IsContainer(const Value& value) { return value.is_object() || value.is_array(); }

uint64_t ScalarHash(const Value& value) {
  const uint64_t kind = static_cast<uint64_t>(value.kind());
  switch (value.kind()) {
    case bj::kind::bool_:
      return Mix(kind, value.get_bool() ? 1 : 0);
    case bj::kind::int64:
      return Mix(kind, static_cast<uint64_t>(value.get_int64()));
    case bj::kind::uint64:
      return Mix(kind, value.get_uint64());
    case bj::kind::double_:
      return Mix(kind, std::hash<double>()(value.get_double()));
    case bj::kind::string:
      return Mix(kind, HashOf(View(value.get_string())));
    default:
      return kind;
  }
}

// The same text when printed: Equal() looks neither at the order of keys nor at a number's kind.
bool Same(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return false;
  if (const Object* members = a.if_object()) {
    const Object& others = b.get_object();
    return std::equal(members->begin(), members->end(), others.begin(), others.end(),
                      [](const auto& one, const auto& other) {
                        return one.key() == other.key() && Same(one.value(), other.value());
                      });
  }
  if (const Array* items = a.if_array()) {
    const Array& others = b.get_array();
    return std::equal(items->begin(), items->end(), others.begin(), others.end(), Same);
  }
  if (a.is_double()) {  // 0.0 and -0.0 are equal
    return std::bit_cast<uint64_t>(a.get_double()) == std::bit_cast<uint64_t>(b.get_double());
  }
  return a == b;
}

// A block begins with the parts that the document holds. The document itself follows.
struct Head {
  size_t part_count;

  SharedValue* parts() { return reinterpret_cast<SharedValue*>(this + 1); }
  Value* root() { return reinterpret_cast<Value*>(parts() + part_count); }
};

// Of a kept document nothing is taken apart: no value in it owns anything but bytes of the block.
struct Drop {
  Head* head;

  void operator()(const Value*) const {
    std::destroy_n(head->parts(), head->part_count);
    ::operator delete(head);
  }
};

// Keeps documents, and knows the parts of those that it has kept.
class Keeper {
 public:
  SharedValue Keep(const Value& value) {
    Look(value);
    SharedValue kept = Lay(value, 0, true);
    if (nodes_.size() > kNodesMax) nodes_ = {};
    nodes_.clear();
    return kept;
  }

 private:
  // An object or array of the document at hand, each before those in it.
  struct Node {
    uint64_t hash = 0;
    size_t bytes = 0;  // of all that is in it
    size_t end = 0;    // of the nodes in it
    bool is_part = false;
  };

  // Calls each(child, index of its node) for what is in the node, scalars with the index 0.
  template <class Each>
  void ForChildren(const Value& value, size_t node, Each each) {
    size_t next = node + 1;
    auto child = [&](const Value& it) {
      if (!IsContainer(it)) return each(it, 0);
      const size_t at = next;
      next = nodes_[at].end;
      each(it, at);
    };
    if (const Object* object = value.if_object()) {
      for (const auto& member : *object) child(member.value());
    } else if (const Array* array = value.if_array()) {
      for (const Value& item : *array) child(item);
    }
  }

  // Appends the nodes of `value`, and returns its hash.
  uint64_t Look(const Value& value) {
    if (!IsContainer(value)) return ScalarHash(value);
    const size_t at = nodes_.size();
    nodes_.emplace_back();
    uint64_t hash = Mix(static_cast<uint64_t>(value.kind()), 0);
    size_t bytes = 0;
    auto look = [&](const Value& child) {
      const size_t before = nodes_.size();
      hash = Mix(hash, Look(child));
      bytes += before < nodes_.size() ? nodes_[before].bytes : OwnBytes(child);
    };
    if (const Object* object = value.if_object()) {
      for (const auto& member : *object) {
        hash = Mix(hash, HashOf(KeyOf(member)));
        look(member.value());
      }
    } else {
      for (const Value& item : value.get_array()) look(item);
    }
    nodes_[at] = {.hash = hash, .bytes = bytes + OwnBytes(value), .end = nodes_.size()};
    return hash;
  }

  // Without what its values need.
  static size_t OwnBytes(const Value& value) {
    if (value.is_string()) return StringBytes(value.get_string().size());
    if (value.is_array()) return ArrayBytes(value.get_array().size());
    if (!value.is_object()) return 0;
    size_t bytes = ObjectBytes(value.get_object().size());
    for (const auto& member : value.get_object()) bytes += member.key().size() + 1;
    return bytes;
  }

  // Parts are made of what is in documents, not of what is in other parts: mostly it is met there
  // alone.
  SharedValue Lay(const Value& value, size_t node, bool makes_parts) {
    std::vector<SharedValue> parts;
    size_t bytes = IsContainer(value) ? nodes_[node].bytes : OwnBytes(value);
    if (IsContainer(value)) bytes -= FindParts(value, node, makes_parts, parts);
    const size_t before = sizeof(Head) + parts.size() * sizeof(SharedValue) + sizeof(Value);
    auto* block = static_cast<std::byte*>(::operator new(before + bytes));
    Head* head = new (block) Head{parts.size()};
    std::uninitialized_move(parts.begin(), parts.end(), head->parts());
    Filling filling(block + before, bytes);
    Value* root = new (head->root()) Value(nullptr, &filling);
    const SharedValue* part = head->parts();
    Fill(*root, value, node, part);
    SWELL_CHECK(filling.full());
    return SharedValue(root, Drop{head});
  }

  // Appends the parts that are in `value`, and returns how many bytes it needs less for them.
  size_t FindParts(const Value& value,
                   size_t node,
                   bool makes_parts,
                   std::vector<SharedValue>& parts) {
    size_t saved = 0;
    ForChildren(value, node, [&](const Value& child, size_t at) {
      if (at == 0) return;
      SharedValue part = Part(child, at, makes_parts);
      nodes_[at].is_part = part != nullptr;
      if (part != nullptr) {
        parts.push_back(std::move(part));
        saved += nodes_[at].bytes;
      } else {
        saved += FindParts(child, at, makes_parts, parts);
      }
    });
    return saved;
  }

  // nullptr: nobody else has it. What comes for the second time becomes a part.
  SharedValue Part(const Value& value, size_t node, bool make) {
    if (nodes_[node].bytes < kPartBytesMin) return nullptr;
    const uint64_t hash = nodes_[node].hash;
    if (auto known = parts_.find(hash); known != parts_.end()) {
      SharedValue part = known->second.lock();
      if (part != nullptr) return Same(*part, value) ? part : nullptr;
    }
    if (!make || std::exchange(seen_[hash % kSeenMax], hash) != hash) return nullptr;
    SharedValue part = Lay(value, node, false);
    Sweep();
    parts_[hash] = part;
    return part;
  }

  // Forgets parts that nobody holds any more.
  void Sweep() {
    if (parts_.size() < sweep_at_) return;
    std::erase_if(parts_, [](const auto& entry) { return entry.second.expired(); });
    sweep_at_ = std::max(kPartsBeforeSweep, 2 * parts_.size());
  }

  // Makes of `to`, which is null and in the block, what `from` is; `part` is the next to be used.
  void Fill(Value& to, const Value& from, size_t node, const SharedValue*& part) {
    auto child = [&](Value& slot, const Value& it, size_t at) {
      if (at != 0 && nodes_[at].is_part) {
        // Both are in their blocks for ever, so two may own one table.
        std::memcpy(static_cast<void*>(&slot), part++->get(), sizeof(Value));
      } else {
        Fill(slot, it, at, part);
      }
    };
    if (const Object* object = from.if_object()) {
      Object& made = to.emplace_object();
      made.reserve(object->size());
      auto member = object->begin();
      ForChildren(from, node, [&](const Value& it, size_t at) {
        child(made.emplace(member++->key(), nullptr).first->value(), it, at);
      });
    } else if (const Array* array = from.if_array()) {
      Array& made = to.emplace_array();
      made.reserve(array->size());
      ForChildren(from, node,
                  [&](const Value& it, size_t at) { child(made.emplace_back(nullptr), it, at); });
    } else {
      new (&to) Value(from, to.storage());
    }
    // Whoever copies it shall get a value that knows nothing of the block.
    const_cast<bj::storage_ptr&>(to.storage()) = bj::storage_ptr();
  }

  std::vector<Node> nodes_;
  std::unordered_map<uint64_t, std::weak_ptr<const Value>> parts_;  // by hash
  std::vector<uint64_t> seen_ = std::vector<uint64_t>(kSeenMax);    // hashes that came lately
  size_t sweep_at_ = kPartsBeforeSweep;
};

}  // namespace

void* Filling::do_allocate(size_t bytes, size_t alignment) {
  const bool is_key = alignment == 1;
  if (!is_key) bytes = Rounded(bytes);
  SWELL_CHECK(bytes <= static_cast<size_t>(back_ - front_));
  if (is_key) return back_ -= bytes;
  return std::exchange(front_, front_ + bytes);
}

SharedValue Keep(const Value& value) {
  thread_local Keeper keeper;
  return keeper.Keep(value);
}

}  // namespace swell::json
