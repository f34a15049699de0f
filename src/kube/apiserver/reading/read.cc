#include <iterator>

#include "base/strings.h"
#include "kube/apiserver/print/output.h"
#include "kube/apiserver/reading/handlers.h"
#include "kube/apiserver/reading/list_options.h"
#include "kube/apiserver/reading/selection.h"
#include "kube/apiserver/request/errors.h"

namespace swell::apiserver {

void HandleGet(Core& core, const CallPtr& call) {
  const auto wanted = ParseVersion(call->query.Get("resourceVersion"));
  if (!wanted.ok()) {
    call->Fail(wanted.status());
    return;
  }
  if (*wanted > core.store.Version()) {
    call->Fail(TooNewVersionError(*wanted, core.store.Version()));
    return;
  }
  const auto entry = core.store.Get(KeyFor(*call->storage, call->info.ns, call->info.name));
  if (!entry) {
    call->Fail(NotFoundError(*call->kind, call->info.name));
    return;
  }
  RespondEntry(core, *call, 200, *entry);
}

namespace {

// At most one entry, by name: no scan.
Result<store::Listing> ListOne(Core& core, const Call& call, const Selection& selection) {
  store::Listing listing;
  listing.version = core.store.Version();
  const auto entry = core.store.Get(KeyFor(*call.storage, call.info.ns, selection.only_name));
  if (entry && selection.Matches(*entry)) listing.entries.push_back(entry);
  return listing;
}

Result<store::Listing> RunList(Core& core,
                               const Call& call,
                               const Selection& selection,
                               const ListOptions& options,
                               bool count) {
  const bool one_namespace = !call.storage->namespaced || !call.info.ns.empty();
  if (!selection.only_name.empty() && one_namespace && options.at_version == 0) {
    return ListOne(core, call, selection);
  }
  std::function<bool(const store::Entry&)> filter;
  if (!selection.everything()) {
    filter = [&selection](const store::Entry& entry) { return selection.Matches(entry); };
  }
  std::optional<store::Key> after;
  if (options.after_name) {
    after = store::Key{call.storage->StoreResource(), options.after_ns, *options.after_name};
  }
  return core.store.List(call.storage->StoreResource(), call.info.ns, filter, options.limit, after,
                         options.at_version, count);
}

void FailList(Call& call, const ListOptions& options, const Status& why) {
  const bool expired = why.code() == Code::kExpired || why.code() == Code::kGone;
  if (!expired || !options.from_continue) {
    call.Fail(ExpiredListError(options.at_version, why));
    return;
  }
  const Status status = ExpiredContinueError();
  json::Value answer = StatusToJson(status);
  json::Set(answer, {"metadata", "continue"}, json::Value(InconsistentToken(options)));
  call.Respond(JsonResponse(HttpStatus(status.code()), answer));
}

// Finds what a list shows, some in each of the caller's turns: all as it was in the first.
class ListFinder : public std::enable_shared_from_this<ListFinder> {
 public:
  ListFinder(Core& core, CallPtr call, Selection selection, ListOptions options)
      : core_(core.weak_from_this()),
        call_(std::move(call)),
        selection_(std::move(selection)),
        options_(std::move(options)),
        next_(options_) {
    if (options_.limit == 0) next_.limit = kFoundPerTurn;
  }

  void Go() {
    while (const auto core = core_.lock()) {
      auto some = RunList(*core, *call_, selection_, next_, options_.limit != 0);
      if (!some.ok()) {
        if (!StartOver(some.status())) return FailList(*call_, options_, some.status());
        continue;
      }
      std::move(some->entries.begin(), some->entries.end(), std::back_inserter(entries_));
      if (!some->more || options_.limit == next_.limit) return Answer(*core, *some);
      next_.at_version = some->version;
      next_.after_ns = entries_.back()->key.ns;
      next_.after_name = entries_.back()->key.name;
      if (call_->InTurn([self = shared_from_this()] { self->Go(); })) return;
    }
  }

 private:
  static constexpr size_t kFoundPerTurn = 250;  // some 50 us

  // Where the version of the first turn is history by now: once more, all in one turn.
  bool StartOver(const Status& why) {
    if (why.code() != Code::kExpired || entries_.empty() || options_.at_version != 0) return false;
    entries_.clear();
    next_ = options_;
    return true;
  }

  void Answer(Core& core, const store::Listing& last) {
    ListMeta meta;
    meta.version = options_.at_version != 0 ? options_.at_version : last.version;
    if (last.more && !entries_.empty()) {
      const store::Key& end = entries_.back()->key;
      meta.continue_token = MakeContinueToken(meta.version, end.ns, end.name);
      if (selection_.everything()) meta.remaining = last.remaining;
    }
    RespondList(core, *call_, std::move(entries_), meta);
  }

  const std::weak_ptr<Core> core_;
  const CallPtr call_;
  const Selection selection_;
  const ListOptions options_;
  ListOptions next_;  // what is found in the next turn
  std::vector<store::EntryPtr> entries_;
};

}  // namespace

void HandleList(Core& core, const CallPtr& call) {
  auto selection = Selection::Parse(*call);
  if (!selection.ok()) {
    call->Fail(selection.status());
    return;
  }
  auto options = ListOptions::Parse(call->query, core.store.Version());
  if (!options.ok()) {
    call->Fail(options.status());
    return;
  }
  std::make_shared<ListFinder>(core, call, std::move(*selection), std::move(*options))->Go();
}

}  // namespace swell::apiserver
