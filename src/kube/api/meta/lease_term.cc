#include "kube/api/meta/lease_term.h"

#include <vector>

#include "base/strings.h"
#include "kube/api/meta/meta.h"

namespace swell::api {

LeaseTerm LeaseTerm::Of(const json::Value& lease) {
  return {std::string(Namespace(lease)), std::string(Name(lease)), std::string(Uid(lease)),
          json::GetInt(lease, {"spec", "leaseTransitions"})};
}

std::optional<LeaseTerm> LeaseTerm::Parse(std::string_view text) {
  const auto parts = Split(text, '/');
  if (parts.size() != 4) return std::nullopt;
  const auto transitions = ParseInt(parts[3]);
  if (!transitions) return std::nullopt;
  return LeaseTerm{std::string(parts[0]), std::string(parts[1]), std::string(parts[2]),
                   *transitions};
}

std::string LeaseTerm::ToString() const {
  return StrCat(ns, "/", name, "/", uid, "/", transitions);
}

}  // namespace swell::api
