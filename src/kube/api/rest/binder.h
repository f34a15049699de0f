// Binder: gives many pods their nodes in one go, where a server is in the same process. What a
// scheduler decides at once then reaches the store at once.
// - Threads: core executor only.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "json/value.h"
#include "kube/api/rest/rest.h"

namespace swell::api {

// What became of a binding, by its number; once for each, perhaps from inside Bind().
using Bound = std::function<void(size_t number, const RestResponse& response)>;

class Binder {
 public:
  virtual ~Binder() = default;
  // As if each document (kind Binding, with name and namespace) had been sent to its pod's
  // `binding`, in order, by a user of this process: each is allowed, asked about, written and
  // counted by itself, and refused without harm to the others. Destroying what is answered gives
  // up hearing of those without an answer; it must not happen from inside `bound`.
  [[nodiscard]] virtual std::unique_ptr<RestCall> Bind(const UserInfo& user,
                                                       std::vector<json::Value> bindings,
                                                       Bound bound) = 0;
};

}  // namespace swell::api
