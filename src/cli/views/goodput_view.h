// What an elastic job makes of its members, and would make of more (status.goodput), for people.
// - Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"

namespace swell::cli {

struct GoodputView {
  struct Size {
    int64_t members = 0;
    double per_second = 0, relative = 0;
    std::string source;       // how it is known
    int64_t efficiency = -1;  // of a record in percent; -1: all count in full
  };
  std::string name;        // of the job
  bool over = false;       // it has ended, and holds no members
  std::string default_of;  // the mode is the default of: "project a"; empty: the job names it
  std::string unit;
  int64_t members = 0, measured_at = 0, wanted = 0;
  int64_t most = 0;                     // that the job may have; 0: not known
  std::optional<int64_t> next_percent;  // what one more member would add; none: not known
  std::vector<Size> sizes;
  double noise = 0;  // the noise scale of the gradient in records; 0: not known
  std::string fit, decision;
  std::string type_decision;  // why it has the type of GPU that it has
};

// Nothing for a job that is not scaled by goodput.
std::optional<GoodputView> GoodputOf(const json::Value& job);

// "Goodput", "Goodput (default of project team-a)".
std::string GoodputModeText(const GoodputView& view);
// "MEMBERS  RECORDS/S  SPEEDUP  SOURCE" with the present size marked, then what a member more is
// worth, the model and the last decision.
std::string GoodputTable(const GoodputView& view);
// How a size is known, for people: "measured", "model", "assumed, not tried".
std::string SourceText(std::string_view source);
// "57 records per second with 1, 106 with 2 (now), 181 with 4 (assumed, not tried)".
std::string GoodputCurveText(const GoodputView& view);
// "90 records: in the batch of 2 members a record is worth 71 % of one in that of 1". Empty where
// all records count in full.
std::string NoiseText(const GoodputView& view);
// "4 members make 3.4 times what 1 makes; it asks for 6".
std::string GoodputSentence(const GoodputView& view);
// "worth +18 % here; scales with 3: +30 %, flat with 1: +4 %": the most first. Others that are over
// are left out.
std::string NextGpuText(const GoodputView& view, std::vector<GoodputView> others);

}  // namespace swell::cli
