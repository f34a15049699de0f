// TypeMove: whether a job gains by moving to GPUs of another type, which means a restart there.
//
// A move must raise goodput clearly, and what it gains while the job can be expected to stay as it
// is must be several times what the restart costs. After a move the job stays for a while, longer
// after each one, so that it never goes to and fro on noise, or after room that is soon gone.
//
// - Threads: plain values and pure functions.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"

namespace swell::goodput {

// As long as no restart of the job was measured.
inline constexpr Duration kRestartUnknown = std::chrono::seconds(30);

struct TypeOffer {
  std::string type;
  int members = 0;        // that the job could have there; 0: there is no room for it
  double goodput = 0;     // of these members, in the unit of MoveTerms
  bool by_ratio = false;  // the job has never run there: as fast as others were, in proportion
};

struct MoveTerms {
  double goodput = 0;  // as it is
  // For how long the job can be expected to gain by a move.
  Duration lasts{0};
  Duration restart = kRestartUnknown;
  int moves = 0;  // so far
  Duration since_move{0};
};

struct MoveChoice {
  // The offer that pays and gains most, else the one that would gain most; -1: none makes more.
  int offer = -1;
  bool pays = false;
  double gain = 0;      // 0.61: it makes 61 % more
  std::string why_not;  // why it does not pay: "a move pays from +10 % on"
};
MoveChoice ChooseMove(const std::vector<TypeOffer>& offers, const MoveTerms& terms);

// How long a job stays where it is after its `moves` moves.
Duration StaysFor(int moves);

}  // namespace swell::goodput
