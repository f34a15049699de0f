#include "cli/top/top_screen.h"

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "cli/print/text_table.h"
#include "kube/api/meta/meta.h"

namespace swell::cli {
namespace {

using KeyKind = Key::Kind;

constexpr size_t kHistoryMost = 600;
constexpr size_t kTypedMost = 200;

struct Tab {
  TopView view;
  std::string_view word, key;
};
constexpr std::array<Tab, 4> kTabs = {{{TopView::kJobs, "jobs", "1"},
                                       {TopView::kNodes, "nodes", "2"},
                                       {TopView::kProjects, "projects", "3"},
                                       {TopView::kEvents, "events", "4"}}};

constexpr std::string_view kHelp =
    "Keys of swell top\n"
    "\n"
    "  1 2 3 4, Tab     jobs, nodes, projects, events\n"
    "  :WORD            a view by its name; :q ends\n"
    "  arrows, j k      move; PgUp PgDn, g G: a page, the ends\n"
    "  Enter            show or hide a job's pods or a project's jobs; else describe\n"
    "  /TEXT            only rows with the text; /!TEXT: without it; Esc: all rows\n"
    "  d                describe\n"
    "  w                why a job waits or was stopped, and what would start it\n"
    "  l                the log, its end first; it follows\n"
    "  y                YAML\n"
    "  p                suspend a job, or resume it\n"
    "  Ctrl-D           delete\n"
    "  N G A S          order jobs by name, GPUs, age, status\n"
    "  Esc              back\n"
    "  q, Ctrl-C        quit\n"
    "\n"
    "Bars of projects: full is held within the quota, hatched is held beyond it,\n"
    "dots are quota that is not used.\n";

std::string NameOf(const TopTarget& target) { return StrCat(target.resource, "/", target.name); }

void AddNamespace(std::vector<std::string>& words, const TopTarget& target) {
  if (target.ns.empty()) return;
  words.emplace_back("-n");
  words.push_back(target.ns);
}

}  // namespace

void TopScreen::SetData(TopData data) {
  data_ = std::move(data);
  held_.push_back(static_cast<double>(data_.HeldMilliGpus()));
  if (held_.size() > kHistoryMost) held_.erase(held_.begin());
  RebuildRows();
}

void TopScreen::SetView(TopView view) {
  form_.view = view;
  form_.filter.clear();
  row_ = first_ = 0;
  selected_.clear();
  RebuildRows();
}

void TopScreen::SetText(std::string text) {
  text_ = std::move(text);
  if (pane_at_end_) pane_first_ = static_cast<int>(PaneLines().size());
}

// Keeps the selection on the same object while rows come and go.
void TopScreen::RebuildRows() {
  table_ = TopTableOf(data_, form_);
  const auto found = std::find_if(table_.rows.begin(), table_.rows.end(),
                                  [this](const TopRow& row) { return row.key == selected_; });
  if (found != table_.rows.end()) row_ = static_cast<int>(found - table_.rows.begin());
  MoveTo(row_);
}

void TopScreen::MoveTo(int row) {
  row_ = std::clamp(row, 0, std::max(0, static_cast<int>(table_.rows.size()) - 1));
  const TopRow* selected = Selected();
  selected_ = selected == nullptr ? "" : selected->key;
}

void TopScreen::Move(int by) { MoveTo(row_ + by); }

const TopRow* TopScreen::Selected() const {
  return table_.rows.empty() ? nullptr : &table_.rows[static_cast<size_t>(row_)];
}

TopRequest TopScreen::Press(const Key& key) {
  notice_.clear();
  if (key == Key{KeyKind::kControl, "c"}) return {TopRequest::Kind::kQuit, {}};
  if (prompt_ != Prompt::kNone) return PressInPrompt(key);
  if (!shown_.empty()) return PressInPane(key);
  switch (key.kind) {
    case KeyKind::kUp:
      Move(-1);
      break;
    case KeyKind::kDown:
      Move(1);
      break;
    case KeyKind::kPageUp:
      Move(-page_);
      break;
    case KeyKind::kPageDown:
      Move(page_);
      break;
    case KeyKind::kHome:
      MoveTo(0);
      break;
    case KeyKind::kEnd:
      MoveTo(static_cast<int>(table_.rows.size()));
      break;
    case KeyKind::kTab:
      SetView(static_cast<TopView>((static_cast<int>(form_.view) + 1) % 4));
      break;
    case KeyKind::kEnter:
      if (form_.view != TopView::kJobs) return ShowOf("describe");
      OpenOrShut();
      break;
    case KeyKind::kEscape:
      form_.filter.clear();
      RebuildRows();
      break;
    case KeyKind::kControl:
      if (key.text == "d") return Delete();
      break;
    case KeyKind::kText:
      return PressLetter(key.text);
    default:
      break;
  }
  return {};
}

TopRequest TopScreen::PressLetter(const std::string& letter) {
  for (const Tab& tab : kTabs) {
    if (letter == tab.key) SetView(tab.view);
  }
  constexpr std::array<std::pair<std::string_view, TopOrder>, 4> kOrders = {
      {{"N", TopOrder::kName},
       {"G", TopOrder::kGpus},
       {"A", TopOrder::kAge},
       {"S", TopOrder::kStatus}}};
  for (const auto& [word, order] : kOrders) {
    if (letter != word || form_.view != TopView::kJobs) continue;
    form_.order = order;
    RebuildRows();
    return {};
  }
  if (letter == "q") return {TopRequest::Kind::kQuit, {}};
  if (letter == "?") return Show({"?"});
  if (letter == "j") Move(1);
  if (letter == "k") Move(-1);
  if (letter == "g") MoveTo(0);
  if (letter == "G") MoveTo(static_cast<int>(table_.rows.size()));
  if (letter == "d") return ShowOf("describe");
  if (letter == "w") return ShowOf("why");
  if (letter == "l") return ShowOf("logs");
  if (letter == "y") return ShowOf("get");
  if (letter == "p") return SuspendOrResume();
  if (letter == "/" || letter == ":") {
    prompt_ = letter == "/" ? Prompt::kFilter : Prompt::kCommand;
    typed_ = prompt_ == Prompt::kFilter ? form_.filter : "";
  }
  return {};
}

TopRequest TopScreen::PressInPane(const Key& key) {
  const bool up = key.kind == KeyKind::kUp || key.text == "k";
  const bool down = key.kind == KeyKind::kDown || key.text == "j";
  const int end = static_cast<int>(PaneLines().size());
  if (key.kind == KeyKind::kEscape || key.text == "q" || key.text == "?") {
    shown_.clear();
    return {};
  }
  if (up) pane_first_ -= 1;
  if (down) pane_first_ += 1;
  if (key.kind == KeyKind::kPageUp) pane_first_ -= page_;
  if (key.kind == KeyKind::kPageDown) pane_first_ += page_;
  if (key.kind == KeyKind::kHome || key.text == "g") pane_first_ = 0;
  if (key.kind == KeyKind::kEnd || key.text == "G") pane_first_ = end;
  pane_first_ = std::clamp(pane_first_, 0, std::max(0, end - page_));
  pane_at_end_ = shown_.front() == "logs" && pane_first_ >= end - page_;
  return {};
}

TopRequest TopScreen::PressInPrompt(const Key& key) {
  if (prompt_ == Prompt::kConfirm) {
    prompt_ = Prompt::kNone;
    if (key.text == "y") return {TopRequest::Kind::kChange, std::move(pending_)};
    notice_ = "Nothing was changed.";
    return {};
  }
  if (key.kind == KeyKind::kEscape) {
    if (prompt_ == Prompt::kFilter) form_.filter.clear();
    prompt_ = Prompt::kNone;
    RebuildRows();
    return {};
  }
  if (key.kind == KeyKind::kEnter) return EndPrompt();
  if (key.kind == KeyKind::kText && typed_.size() < kTypedMost) typed_ += key.text;
  if (key.kind == KeyKind::kBackspace && !typed_.empty()) {
    // A whole character of UTF-8.
    do {
      const bool more = (static_cast<unsigned char>(typed_.back()) & 0xc0) == 0x80;
      typed_.pop_back();
      if (!more) break;
    } while (!typed_.empty());
  }
  if (prompt_ == Prompt::kFilter) {
    form_.filter = typed_;
    RebuildRows();
  }
  return {};
}

TopRequest TopScreen::EndPrompt() {
  const Prompt ended = std::exchange(prompt_, Prompt::kNone);
  if (ended == Prompt::kCommand) return RunCommand(typed_);
  return {};
}

TopRequest TopScreen::RunCommand(const std::string& word) {
  if (word == "q" || word == "quit") return {TopRequest::Kind::kQuit, {}};
  if (word == "help") return Show({"?"});
  for (const Tab& tab : kTabs) {
    if (word.empty() || !tab.word.starts_with(word)) continue;
    SetView(tab.view);
    return {};
  }
  notice_ = StrCat("No view is called ", Quote(word), ": jobs, nodes, projects or events.");
  return {};
}

TopRequest TopScreen::Show(std::vector<std::string> words) {
  shown_ = words;
  text_ = "…\n";
  pane_first_ = 0;
  pane_at_end_ = words.front() == "logs";
  if (words.front() == "?") {
    text_ = kHelp;
    return {};
  }
  return {TopRequest::Kind::kShow, std::move(words)};
}

TopRequest TopScreen::ShowOf(std::string_view what) {
  const TopRow* row = Selected();
  if (row == nullptr || row->target.kind == TopTarget::Kind::kNothing) return {};
  const TopTarget& target = row->target;
  const bool runs = target.kind == TopTarget::Kind::kJob || target.kind == TopTarget::Kind::kPod;
  if ((what == "why" || what == "logs") && !runs) {
    notice_ = StrCat("Only jobs and pods have ", what == "why" ? "reasons." : "logs.");
    return {};
  }
  std::vector<std::string> words{std::string(what), NameOf(target)};
  if (what == "get") words.insert(words.end(), {"-o", "yaml"});
  if (what == "logs") words.insert(words.end(), {"--tail", "500"});
  AddNamespace(words, target);
  return Show(std::move(words));
}

TopRequest TopScreen::Confirm(std::vector<std::string> words, std::string question) {
  prompt_ = Prompt::kConfirm;
  pending_ = std::move(words);
  question_ = std::move(question);
  return {};
}

TopRequest TopScreen::Delete() {
  const TopRow* row = Selected();
  if (row == nullptr ||
      (row->target.kind != TopTarget::Kind::kJob && row->target.kind != TopTarget::Kind::kPod)) {
    notice_ = "Only jobs and pods can be deleted here.";
    return {};
  }
  std::vector<std::string> words{"delete", NameOf(row->target)};
  AddNamespace(words, row->target);
  return Confirm(std::move(words), StrCat("Delete ", NameOf(row->target), "? y/n"));
}

TopRequest TopScreen::SuspendOrResume() {
  const TopRow* row = Selected();
  if (row == nullptr || row->target.kind != TopTarget::Kind::kJob) {
    notice_ = "Only jobs can be suspended.";
    return {};
  }
  const std::string_view verb = row->target.suspended ? "resume" : "suspend";
  std::vector<std::string> words{std::string(verb), NameOf(row->target)};
  AddNamespace(words, row->target);
  return Confirm(std::move(words), StrCat(row->target.suspended ? "Resume " : "Suspend ",
                                          NameOf(row->target), "? y/n"));
}

void TopScreen::OpenOrShut() {
  const TopRow* row = Selected();
  if (row == nullptr) return;
  std::set<std::string>& keys = row->key.starts_with("project/") ? form_.shut : form_.open;
  if (row->target.kind == TopTarget::Kind::kPod) return;
  if (const std::string key = row->key; !keys.erase(key)) keys.insert(key);
  RebuildRows();
}

// --- Drawing -------------------------------------------------------------------------------------

int TopScreen::DrawHead(Frame& frame) const {
  const int64_t total = data_.MilliGpus(), held = data_.HeldMilliGpus();
  int64_t running = 0, pending = 0;
  for (const JobView& job : data_.jobs) {
    if (job.status == "Running") {
      ++running;
    } else if (!job.over() && (job.status != "Suspended" || !job.GateText().empty())) {
      ++pending;
    }
  }
  int x = frame.Put(0, 0, "GPUs ", Ink::kBold);
  x = frame.Put(0, x, BarText(static_cast<double>(held), static_cast<double>(total), 16),
                Ink::kBar);
  x = frame.Put(0, x + 1, StrCat(GpuText(held), "/", GpuText(total), " held"));
  x = frame.Put(0, x + 2, CurveText(held_, static_cast<double>(total), 12), Ink::kBar);
  frame.Put(0, x + 2, StrCat(running, " running, ", pending, " waiting"));
  const std::string clock = api::FormatTime(data_.now).substr(11, 8);
  frame.Put(0, frame.columns() - static_cast<int>(clock.size()), clock, Ink::kDim);
  int row = 1;
  for (const std::string& line : data_.hidden) frame.Put(row++, 0, line, Ink::kWarn);
  return row;
}

void TopScreen::DrawTabs(Frame& frame, int row) const {
  int x = 0;
  for (const Tab& tab : kTabs) {
    const Ink ink = tab.view == form_.view ? Ink::kAccent : Ink::kDim;
    x = frame.Put(row, x, StrCat(tab.key, " ", tab.word), ink) + 2;
  }
  if (!form_.filter.empty()) frame.Put(row, x, StrCat("/", form_.filter), Ink::kAccent);
}

// The shown text, its long lines folded at the width of the last frame.
std::vector<std::string> TopScreen::PaneLines() const {
  std::vector<std::string> lines;
  for (std::string_view line : Split(text_, '\n')) {
    while (static_cast<int>(DisplayWidth(line)) > columns_) {
      size_t cut = 0;
      for (int cells = 0; cells < columns_ && cut < line.size(); ++cells) {
        do {
          ++cut;
        } while (cut < line.size() && (static_cast<unsigned char>(line[cut]) & 0xc0) == 0x80);
      }
      lines.emplace_back(line.substr(0, cut));
      line.remove_prefix(cut);
    }
    lines.emplace_back(line);
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

void TopScreen::DrawPane(Frame& frame, int at) const {
  const std::vector<std::string> lines = PaneLines();
  page_ = std::max(1, frame.rows() - at - 2);
  pane_first_ = std::clamp(pane_first_, 0, std::max(0, static_cast<int>(lines.size()) - page_));
  if (shown_.front() != "?") frame.Put(at, 0, "swell " + Join(shown_, " "), Ink::kAccent);
  for (int i = 0; i < page_ && pane_first_ + i < static_cast<int>(lines.size()); ++i) {
    const int shown = pane_first_ + i;
    frame.Put(at + 1 + i, 0, lines[static_cast<size_t>(shown)]);
  }
}

void TopScreen::DrawFooter(Frame& frame) const {
  const int row = frame.rows() - 1;
  switch (prompt_) {
    case Prompt::kFilter:
      frame.Put(row, 0, StrCat("/", typed_, "▏"), Ink::kBold);
      return;
    case Prompt::kCommand:
      frame.Put(row, 0, StrCat(":", typed_, "▏"), Ink::kBold);
      return;
    case Prompt::kConfirm:
      frame.Put(row, 0, question_, Ink::kWarn);
      return;
    case Prompt::kNone:
      break;
  }
  if (!notice_.empty()) {
    frame.Put(row, 0, OneLine(notice_), Ink::kWarn);
  } else if (!shown_.empty()) {
    frame.Put(row, 0, "Esc back   j k PgUp PgDn scroll   g G ends", Ink::kDim);
  } else {
    frame.Put(row, 0,
              "d describe  w why  l log  y YAML  p suspend  ^D delete  / filter  ? help  q quit",
              Ink::kDim);
  }
}

Frame TopScreen::Draw(int columns, int rows) const {
  Frame frame(columns, rows);
  columns_ = frame.columns();
  int at = DrawHead(frame);
  DrawTabs(frame, at++);
  if (!shown_.empty()) {
    DrawPane(frame, at);
  } else {
    page_ = std::max(1, rows - at - 2);
    if (row_ < first_) first_ = row_;
    if (row_ >= first_ + page_) first_ = row_ - page_ + 1;
    first_ = std::clamp(first_, 0, std::max(0, static_cast<int>(table_.rows.size()) - page_));
    DrawTable(frame, at, page_ + 1, table_, first_, row_);
    if (table_.rows.empty()) frame.Put(at + 1, 0, "Nothing to show.", Ink::kDim);
  }
  DrawFooter(frame);
  return frame;
}

Frame TopScreen::DrawOnce(int columns) const {
  const int rows = static_cast<int>(table_.rows.size());
  Frame frame(columns, 3 + static_cast<int>(data_.hidden.size()) + std::max(rows, 1));
  const int at = DrawHead(frame) + 1;
  DrawTable(frame, at, rows + 1, table_, 0, -1);
  if (rows == 0) frame.Put(at + 1, 0, "Nothing to show.", Ink::kDim);
  return frame;
}

}  // namespace swell::cli
