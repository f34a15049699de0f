// HugePageAllocator: for vectors of many megabytes that are read here and there. Where the kernel
// has huge pages to give (transparent_hugepage not `never`), such an array takes few entries of the
// processor's tables instead of one for every 4 KiB; small arrays lie where they always do.
// - Threads: as the global allocator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace swell {

inline constexpr size_t kHugePageBytes = 2 << 20;

// Asks the kernel to put whole pages of it behind this memory; it need not.
void AdviseHugePages(void* memory, size_t bytes);

template <class T>
class HugePageAllocator {
 public:
  using value_type = T;

  HugePageAllocator() = default;
  template <class U>
  explicit HugePageAllocator(const HugePageAllocator<U>&) {}

  T* allocate(size_t count) {
    // It also refuses what no address space holds.
    if (!IsLarge(count) || count > kMost) return std::allocator<T>().allocate(count);
    const size_t bytes = (count * sizeof(T) + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
    void* memory = ::operator new(bytes, kAlignment);
    AdviseHugePages(memory, bytes);
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, size_t count) {
    if (!IsLarge(count)) return std::allocator<T>().deallocate(memory, count);
    ::operator delete(memory, kAlignment);
  }
  template <class U>
  bool operator==(const HugePageAllocator<U>&) const {
    return true;
  }

 private:
  static constexpr std::align_val_t kAlignment{kHugePageBytes};
  static constexpr size_t kMost = (PTRDIFF_MAX - kHugePageBytes) / sizeof(T);
  static bool IsLarge(size_t count) { return count >= kHugePageBytes / sizeof(T); }
};

template <class T>
using LargeVector = std::vector<T, HugePageAllocator<T>>;

}  // namespace swell
