#include "kube/process/network/pod_cidr.h"

#include "base/strings.h"
#include "kube/api/meta/cidr.h"

namespace swell::process {

Result<PodCidr> ParsePodCidr(std::string_view text) {
  const auto parsed = api::ParseCidr(text);
  if (!parsed || parsed->v6 || parsed->bits < 8 || parsed->bits > 28) {
    return Status(
        Code::kInvalid,
        StrCat(Quote(text), ": expected an IPv4 network from /8 to /28, such as 10.88.0.0/16"));
  }
  PodCidr cidr{.base = 0, .bits = parsed->bits};
  for (int i = 0; i < 4; ++i) cidr.base = cidr.base << 8 | parsed->bytes[i];
  cidr.base &= ~0U << (32 - cidr.bits);
  return cidr;
}

}  // namespace swell::process
