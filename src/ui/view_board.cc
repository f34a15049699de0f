#include "ui/view_board.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"

namespace swell::ui {

struct ViewBoard::Entry {
  const View* view;
  Params params;
  std::shared_ptr<const Rights> rights;
  std::shared_ptr<const ViewText> last;
  Result<Shown> shown = Status(Code::kUnavailable, "the pages have not read the cluster yet");
  bool stale = true;
  SteadyTime made, used;
  Duration took{0};
  std::map<ListenerId, Listener> listeners;

  SteadyTime Due() const { return made + std::max(ViewBoard::kQuiet, took * ViewBoard::kShare); }
};

ViewBoard::ViewBoard(Executor& pages, const Clock& clock, ClusterState& state)
    : pages_(pages), clock_(clock), state_(state) {
  state_.OnChange([this](KindSet kinds) { OnChange(kinds); });
}

ViewBoard::~ViewBoard() { state_.OnChange(nullptr); }

void ViewBoard::OnChange(KindSet kinds) {
  bool any = false;
  for (auto& [key, entry] : entries_) {
    if ((entry->view->kinds & kinds) == 0) continue;
    entry->stale = true;
    any = any || !entry->listeners.empty();
  }
  if (any) Schedule();
}

void ViewBoard::Schedule() {
  std::optional<SteadyTime> next;
  for (const auto& [key, entry] : entries_) {
    if (!entry->stale || entry->listeners.empty()) continue;
    if (!next || entry->Due() < *next) next = entry->Due();
  }
  if (!next) return;
  next = std::max(*next, rests_until_);
  timer_.Start(std::max(Duration::zero(), *next - clock_.Steady()), [this] { MakeDue(); });
}

void ViewBoard::MakeDue() {
  const SteadyTime began = clock_.Steady();
  std::vector<Entry*> due;
  for (auto& [key, entry] : entries_) {
    const bool wanted = entry->stale && !entry->listeners.empty();
    if (wanted && entry->Due() <= clock_.Steady()) due.push_back(entry.get());
  }
  for (Entry* entry : due) {
    const std::string before = entry->shown.ok() ? entry->shown->revision : "";
    const std::string error = entry->shown.ok() ? "" : entry->shown.status().message();
    Make(*entry);
    const bool same = entry->shown.ok() ? entry->shown->revision == before
                                        : entry->shown.status().message() == error;
    if (same) continue;
    // A listener may remove itself or others.
    const auto listeners = entry->listeners;
    for (const auto& [id, listener] : listeners) {
      if (listeners_.contains(id)) listener(entry->shown);
    }
  }
  const SteadyTime ended = clock_.Steady();
  rests_until_ = ended + (ended - began) * (kShare - 1);
  Schedule();
}

void ViewBoard::Make(Entry& entry) {
  const SteadyTime began = clock_.Steady();
  entry.stale = false;
  ++made_;
  auto data = entry.view->make({state_, *entry.rights, entry.params, clock_.Now(), &memo_});
  if (!data.ok()) {
    entry.shown = data.status();
  } else {
    auto text = std::make_shared<const ViewText>(*data);
    if (!entry.shown.ok() || *entry.shown->text != text->text()) Show(entry, std::move(text));
  }
  entry.made = clock_.Steady();
  entry.took = entry.made - began;
}

void ViewBoard::Show(Entry& entry, std::shared_ptr<const ViewText> text) {
  Shown shown{std::shared_ptr<const std::string>(text, &text->text()),
              std::to_string(next_revision_++)};
  if (entry.shown.ok() && entry.last) {
    std::string difference = text->DifferenceFrom(*entry.last);
    if (!difference.empty()) {
      shown.difference = std::make_shared<const std::string>(std::move(difference));
      shown.base = entry.shown->revision;
    }
  }
  entry.last = std::move(text);
  entry.shown = std::move(shown);
}

Result<ViewBoard::Entry*> ViewBoard::EntryOf(const std::string& view,
                                             const Params& params,
                                             std::shared_ptr<const Rights> rights) {
  const View* found = FindView(view);
  if (found == nullptr) {
    return Status(Code::kNotFound, StrCat("the pages have no view named ", Quote(view)));
  }
  if (!state_.known()) {
    return Status(Code::kUnavailable, "the pages have not read the cluster yet; try again soon");
  }
  std::string key = view;
  for (const auto& [name, value] : params) key += StrCat("\n", name.size(), name, value);
  key += StrCat("\n", rights->Key());
  std::unique_ptr<Entry>& entry = entries_[key];
  if (!entry) {
    entry = std::make_unique<Entry>();
    entry->view = found;
    entry->params = params;
    entry->rights = std::move(rights);
  }
  entry->used = clock_.Steady();
  if (entry->stale && (entry->listeners.empty() || !entry->shown.ok())) Make(*entry);
  return entry.get();
}

Result<ViewBoard::Shown> ViewBoard::Read(const std::string& view,
                                         const Params& params,
                                         std::shared_ptr<const Rights> rights) {
  SWELL_ASSIGN_OR_RETURN(Entry * entry, EntryOf(view, params, std::move(rights)));
  // A caller that asks once wants what is true now, not what was made last.
  if (entry->stale) Make(*entry);
  Result<Shown> shown = entry->shown;
  DropIdle();
  return shown;
}

Result<ViewBoard::ListenerId> ViewBoard::Listen(const std::string& view,
                                                const Params& params,
                                                std::shared_ptr<const Rights> rights,
                                                Listener listener) {
  SWELL_ASSIGN_OR_RETURN(Entry * entry, EntryOf(view, params, std::move(rights)));
  const ListenerId id = next_listener_++;
  listeners_[id] = entry;
  entry->listeners[id] = listener;
  listener(entry->shown);
  return id;
}

void ViewBoard::Forget(ListenerId id) {
  auto found = listeners_.extract(id);
  if (found.empty()) return;
  found.mapped()->listeners.erase(id);
  DropIdle();
}

// The view that was not used for the longest time goes first.
void ViewBoard::DropIdle() {
  std::vector<std::pair<SteadyTime, std::string>> idle;
  for (const auto& [key, entry] : entries_) {
    if (entry->listeners.empty()) idle.emplace_back(entry->used, key);
  }
  if (idle.size() <= kIdleMax) return;
  std::sort(idle.begin(), idle.end());
  for (size_t i = 0; i + kIdleMax < idle.size(); ++i) entries_.erase(idle[i].second);
}

}  // namespace swell::ui
