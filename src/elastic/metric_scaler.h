// MetricScaler: how many members of a role pay, found by trying: grow while training gets faster,
// go back when it does not or when there is no room, and then stay.
//
// One DecideScale() per interval. States, as people read them in the job's status:
//   Start             the first observations are taken
//   Continue          it has grown and observes again
//   Stop              members found no place: back to the last number; grows again when more room
//                     has come than there was then. Or somebody else has set the number: that is
//                     their business from then on
//   ReachMaxMetric    the last growth did not pay: back to the number before; tries again when
//                     steps take another time than they did then
//   ReachMaxReplicas  as many as the job may have
//
// A decision takes `observations` of a complete group; medians are compared, so a slow step now and
// then decides nothing. Members that the scheduler took after the group had been complete are not
// the scaler's business: it waits for them.
//
// - Threads: pure; the caller keeps the state. State is stored as JSON, so that after a restart
//   the decisions are the same. Fields of foreign documents that make no sense are ignored.
// - Invariants: min <= replicas <= max in every decision. Input that stays the same leads to a
//   bounded number of changes: growth after Stop takes room that was not there, and both kinds of
//   trying again wait longer each time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "json/value.h"

namespace swell::elastic {

enum class ScaleCondition { kNone, kStart, kContinue, kStop, kReachMaxMetric, kReachMaxReplicas };

struct ScalePolicy {
  int64_t replicas_min = 1;
  int64_t replicas_max = 1;
  bool doubles = true;   // each step doubles the number; false: adds one
  int observations = 5;  // that a decision takes
  Duration interval = std::chrono::seconds(30);
  double margin = 0.02;      // less faster than this is not faster
  double change = 0.25;      // a step that takes so much longer or shorter is another one
  std::string noun = "Job";  // begins the messages
};

// What was observed in one interval.
struct ScaleFacts {
  WallTime now;
  int64_t replicas = 0;  // wanted, as the job's spec says
  int64_t running = 0;
  int64_t placed = 0;    // bound to a node
  int64_t unplaced = 0;  // pending for a whole interval because no node has room
  int64_t room = 0;      // further members that would be placed now
  std::optional<double> seconds_per_step;
};

struct ScaleState {
  ScaleCondition condition = ScaleCondition::kNone;
  bool goes_on = false;
  int64_t current = 0;
  int64_t last = 0;  // 0 before the first change
  WallTime start;
  std::string message;

  std::map<int64_t, std::vector<double>> series;  // by the number of members; the latest ones
  bool complete = false;                          // all `current` members have run together
  bool undisturbed = false;                       // and have since the last look
  bool held = false;                              // somebody else sets the number
  int64_t known_max = 0;
  int64_t room_then = -1;  // the least since Stop; -1: not looked at yet
  int64_t room_looks = 0;  // how often in a row there was more
  int64_t fits = 0;        // of the members that were too many when it stopped
  double reference = 0;    // seconds per step that ReachMaxMetric was decided on
  int64_t returns = 0;     // times in a row that members found no place
  int64_t tries = 0;       // times that steps had changed
  WallTime not_before;     // trying again

  // What the job's status shows.
  json::Value Status() const;
  // All of it; observations only while they decide something.
  json::Value Memory() const;
  static ScaleState FromMemory(const json::Value& memory);
  // What can be known from the status alone.
  static ScaleState FromStatus(const json::Value& status);
};

struct ScaleDecision {
  std::optional<int64_t> replicas;  // a new number
  std::string why;                  // in numbers, for an event
};

ScaleDecision DecideScale(const ScalePolicy& policy, const ScaleFacts& facts, ScaleState& state);

}  // namespace swell::elastic
