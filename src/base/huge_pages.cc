#include "base/huge_pages.h"

#include <sys/mman.h>

namespace swell {

void AdviseHugePages(void* memory, size_t bytes) { madvise(memory, bytes, MADV_HUGEPAGE); }

}  // namespace swell
