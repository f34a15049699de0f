// The policies that the laboratory compares; registry.cc describes each.
// - Threads: pure functions.
#pragma once

#include <memory>

#include "lab/policy.h"

namespace swell::lab {

std::unique_ptr<Policy> MakeFifo(const ClusterShape& shape);
std::unique_ptr<Policy> MakeFair(const ClusterShape& shape);
std::unique_ptr<Policy> MakeShortest(const ClusterShape& shape);
std::unique_ptr<Policy> MakeCritical(const ClusterShape& shape);
std::unique_ptr<Policy> MakeTiresias(const ClusterShape& shape);
std::unique_ptr<Policy> MakeOptimus(const ClusterShape& shape);
std::unique_ptr<Policy> MakeAfs(const ClusterShape& shape);
std::unique_ptr<Policy> MakeMaxMin(const ClusterShape& shape);
std::unique_ptr<Policy> MakeMaxMinTypes(const ClusterShape& shape);  // MakeMaxMin, several types
std::unique_ptr<Policy> MakeMaxSum(const ClusterShape& shape);
std::unique_ptr<Policy> MakePollux(const ClusterShape& shape);
std::unique_ptr<Policy> MakeShockwave(const ClusterShape& shape);
std::unique_ptr<Policy> MakeRubick(const ClusterShape& shape);
std::unique_ptr<Policy> MakeSia(const ClusterShape& shape);
std::unique_ptr<Policy> MakeGoodput(const ClusterShape& shape);
std::unique_ptr<Policy> MakeGoodputTypes(const ClusterShape& shape);  // MakeGoodput, several types

// PolicyKind::bytes
double BytesOfMaxMin(const ClusterShape& shape, size_t jobs);
double BytesOfMaxSum(const ClusterShape& shape, size_t jobs);
double BytesOfPollux(const ClusterShape& shape, size_t jobs);

}  // namespace swell::lab
