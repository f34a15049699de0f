// ViewBoard: views that somebody looks at, each made once per change for all who may see the same.
//
// A change of the state marks the views that depend on it. They are made anew no sooner than
// kQuiet after the last time, and later where making them took long: making and telling views takes
// at most one part in kShare of the thread's time, however many there are. A listener is
// called when a view's text has changed.
//
// - Threads: the pages' executor.
// - Ownership: state and clock outlive it. Listeners are removed before what they refer to.
// - Invariants: at most kIdleMax views that nobody listens to are kept.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/timer.h"
#include "ui/view_text.h"
#include "ui/views/views.h"

namespace swell::ui {

class ViewBoard {
 public:
  static constexpr Duration kQuiet = std::chrono::milliseconds(250);
  static constexpr int kShare = 8;
  static constexpr size_t kIdleMax = 32;

  struct Shown {
    std::shared_ptr<const std::string> text;  // the data as JSON
    std::string revision;
    // What changed since `base`, as ViewText has it; null: nobody can tell, or it is the whole.
    std::shared_ptr<const std::string> difference = nullptr;
    std::string base = {};
  };
  using Listener = std::function<void(const Result<Shown>&)>;
  using ListenerId = uint64_t;

  ViewBoard(Executor& pages, const Clock& clock, ClusterState& state);
  ~ViewBoard();

  // The view as it is now. kNotFound: there is no view of that name.
  Result<Shown> Read(const std::string& view,
                     const Params& params,
                     std::shared_ptr<const Rights> rights);
  // `listener` is called at once, and whenever the view has changed.
  Result<ListenerId> Listen(const std::string& view,
                            const Params& params,
                            std::shared_ptr<const Rights> rights,
                            Listener listener);
  void Forget(ListenerId id);
  // How many views were made, for tests and metrics.
  uint64_t made() const { return made_; }

 private:
  struct Entry;
  void OnChange(KindSet kinds);
  Result<Entry*> EntryOf(const std::string& view,
                         const Params& params,
                         std::shared_ptr<const Rights> rights);
  void Make(Entry& entry);
  void Show(Entry& entry, std::shared_ptr<const ViewText> text);
  void MakeDue();
  void Schedule();
  void DropIdle();

  Executor& pages_;
  const Clock& clock_;
  ClusterState& state_;
  std::map<std::string, std::unique_ptr<Entry>> entries_;
  std::map<ListenerId, Entry*> listeners_;
  ListenerId next_listener_ = 1;
  uint64_t next_revision_ = 1;
  uint64_t made_ = 0;
  SteadyTime rests_until_;
  JobsMemo memo_;
  Timer timer_{pages_};
};

}  // namespace swell::ui
