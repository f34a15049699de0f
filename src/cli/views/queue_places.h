// QueuePlaces: the place of waiting work among all that waits in its project, in the order in which
// the scheduler serves it: priority, room that was promised, age.
// - Threads: values; the functions are pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/views/project_view.h"

namespace swell::cli {

struct QueuePlace {
  std::string project;   // empty: of no project
  int64_t of = 0;        // how much waits there
  int64_t place = 0;     // from 1; 0: the project serves its users in turn, so no order is known
  bool partial = false;  // others may wait there whom the user may not see

  std::string Text() const;  // "3rd of 7 that wait in robotics, by priority and age"
  json::Value Json() const;
};

class QueuePlaces {
 public:
  using Objects = std::vector<const json::Value*>;
  enum class Seen { kAll, kPart };
  // `pods` and `groups`: of whole namespaces; `seen` says whether of all.
  QueuePlaces(const Objects& pods, const Objects& groups, const ProjectTree& tree, Seen seen);

  // The place of the job or group of a pod that waits. nullopt: it has none, because it runs with
  // its minimum already, or lacks pods.
  std::optional<QueuePlace> Find(const json::Value& pod) const;

 private:
  std::map<std::string, QueuePlace> places_;
};

}  // namespace swell::cli
