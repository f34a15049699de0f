// TopRows: the rows of each view of `swell top`, and how they are laid out in columns.
// - Threads: pure functions.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "cli/top/frame.h"
#include "cli/top/top_data.h"

namespace swell::cli {

enum class TopView { kJobs, kNodes, kProjects, kEvents };

// What a row stands for, as commands name it.
struct TopTarget {
  enum class Kind { kNothing, kProject, kJob, kPod, kNode };
  Kind kind = Kind::kNothing;
  std::string resource;  // "pytorchjob.kubeflow.org", as in RESOURCE/NAME
  std::string ns, name;
  bool suspended = false;  // a job
};

struct TopCell {
  std::string text;
  Ink ink = Ink::kPlain;
  bool whole = false;  // a part of it would tell something else
};

struct TopRow {
  std::string key;  // the same after a refresh
  TopTarget target;
  std::vector<TopCell> cells;
};

struct TopTable {
  std::vector<std::string> header;
  std::vector<TopRow> rows;
};

enum class TopOrder { kName, kGpus, kAge, kStatus };

struct TopForm {
  TopView view = TopView::kJobs;
  TopOrder order = TopOrder::kName;
  std::string filter;          // a part of any cell; "!" before it: rows without it
  std::set<std::string> open;  // keys of jobs whose pods are shown
  std::set<std::string> shut;  // keys of projects whose jobs are not shown
  bool all_open = false;
};

TopTable TopTableOf(const TopData& data, const TopForm& form);

// Draws rows from `first` on at a frame's row. Columns take what they need; the last one takes the
// rest. Returns how many rows were drawn. `selected`: the index of the row in reverse, or -1.
int DrawTable(Frame& frame, int at, int height, const TopTable& table, int first, int selected);

}  // namespace swell::cli
