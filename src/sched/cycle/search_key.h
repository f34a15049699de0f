// SearchKey, PlacementKey: keys of failed attempts. Attempts with equal keys fail alike: within a
// cycle, and for victim searches until the state changes.
// - Threads: plain values.
#pragma once

#include <compare>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sched/state/shape.h"

namespace swell::sched {

// Searches that agree in this share what they know of the nodes' victims.
struct SearcherKey {
  std::string_view action;     // Action::Name()
  bool across_queues = false;  // victims are other queues' work, by the rules of fairness
  int32_t pool = kNone;
  QueueId queue = kNone;  // kNone: of any
  int32_t priority = 0;   // where it decides who may be a victim
  bool moves_only = false;
  auto operator<=>(const SearcherKey&) const = default;
};

struct SearchKey {
  SearcherKey searcher;
  bool preemptible = false;
  GroupId group = kNone;  // kNone: any group whose pods are the same
  UserId user = kNone;    // kNone: of any; no limit bounds a user
  std::vector<ShapeId> shapes;
  std::vector<LabelSetId> labels;  // where inter-pod terms tell pods of one shape apart
  auto operator<=>(const SearchKey&) const = default;
};

// An attempt to place a group without victims.
struct PlacementKey {
  int32_t tense = 0;
  int32_t pool = kNone;
  GroupId group = kNone;  // kNone: any group whose pods are the same
  std::vector<ShapeId> shapes;
  auto operator<=>(const PlacementKey&) const = default;
};

}  // namespace swell::sched
