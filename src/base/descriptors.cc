#include "base/descriptors.h"

#include <sys/resource.h>

#include <algorithm>

namespace swell {

size_t DescriptorLimit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

size_t RaiseDescriptorLimit(size_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlim_t more = std::min<rlim_t>(wanted, limit.rlim_max);
  if (more > limit.rlim_cur) {
    limit.rlim_cur = more;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  return DescriptorLimit();
}

}  // namespace swell
