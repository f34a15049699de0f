// Documents that are kept: what informers hold of a cluster, by the ten thousand.
//
// Keep() lays a tree into one block of memory without a byte to spare, which is freed in one step.
// What kept documents have in common (the containers, volumes and tolerations of a job's pods) is
// there once, for all of them: a part. Scratch is memory for trees that live for a moment.
//
// - Threads: any thread may read and drop a kept document. Each shares the parts of those that it
//   kept itself.
// - Ownership: a Scratch outlives the trees in it; what is moved out of one is still in it, a copy
//   of a piece, too. A kept document needs nothing but itself, and a copy of it, or of a piece, is
//   a value like any other.
// - Invariants: kept documents never change.
#pragma once

#include <string_view>

#include "json/value.h"

namespace swell::json {

// Whatever is freed in it is free only when all of it is, so nothing of it is taken apart.
class Scratch {
 public:
  boost::json::storage_ptr storage() { return &memory_; }

 private:
  boost::json::monotonic_resource memory_{8 << 10};
};

// As Parse(text, limits), into `scratch`.
Result<Value> Parse(std::string_view text, const ParseLimits& limits, Scratch& scratch);

SharedValue Keep(const Value& value);

}  // namespace swell::json
