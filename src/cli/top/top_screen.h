// TopScreen: the state of `swell top`: which view, which row, which filter; what a key does; what
// is drawn. It reads nothing and runs nothing: it answers with the command to run.
// - Threads: one thread.
// - Ownership: holds its data.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/top/frame.h"
#include "cli/top/keys.h"
#include "cli/top/top_data.h"
#include "cli/top/top_rows.h"

namespace swell::cli {

// What a key asks of the command around the screen. Words are those of a `swell` command.
struct TopRequest {
  enum class Kind { kNone, kQuit, kShow, kChange };
  Kind kind = Kind::kNone;
  std::vector<std::string> words;  // kShow: its output is shown; kChange: it changes the cluster
};

class TopScreen {
 public:
  void SetData(TopData data);
  // The output of a shown command.
  void SetText(std::string text);
  // One line above the footer, until the next key.
  void SetNotice(std::string notice) { notice_ = std::move(notice); }

  TopRequest Press(const Key& key);
  // The command whose output is shown; empty without one.
  const std::vector<std::string>& shown() const { return shown_; }

  Frame Draw(int columns, int rows) const;
  // The whole view without selection and keys, for --once.
  Frame DrawOnce(int columns) const;
  void SetView(TopView view);
  // Jobs with their pods.
  void ShowPods() { form_.all_open = true; }

 private:
  enum class Prompt { kNone, kFilter, kCommand, kConfirm };

  TopRequest PressInPrompt(const Key& key);
  TopRequest PressInPane(const Key& key);
  TopRequest PressLetter(const std::string& letter);
  TopRequest EndPrompt();
  TopRequest RunCommand(const std::string& word);
  TopRequest Show(std::vector<std::string> words);
  TopRequest ShowOf(std::string_view what);
  TopRequest Confirm(std::vector<std::string> words, std::string question);
  TopRequest Delete();
  TopRequest SuspendOrResume();
  void OpenOrShut();
  void Move(int by);
  void MoveTo(int row);
  const TopRow* Selected() const;
  void RebuildRows();

  int DrawHead(Frame& frame) const;
  void DrawTabs(Frame& frame, int row) const;
  void DrawFooter(Frame& frame) const;
  void DrawPane(Frame& frame, int at) const;
  std::vector<std::string> PaneLines() const;

  TopData data_;
  std::vector<double> held_;  // GPUs held at each refresh, the newest last
  TopForm form_;
  TopTable table_;
  std::string selected_;  // its row's key
  int row_ = 0;
  mutable int first_ = 0;     // the first row that is drawn
  mutable int columns_ = 80;  // of the last frame
  mutable int page_ = 10;     // rows that the last frame had room for
  mutable int pane_first_ = 0;
  bool pane_at_end_ = false;  // follows its end, as a log's reader does
  std::vector<std::string> shown_;
  std::string text_;
  Prompt prompt_ = Prompt::kNone;
  std::string typed_, question_, notice_;
  std::vector<std::string> pending_;  // waits for yes or no
};

}  // namespace swell::cli
