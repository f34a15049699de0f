#include "apiserver/errors.h"
#include "apiserver/handlers.h"
#include "apiserver/list_options.h"
#include "apiserver/output.h"
#include "apiserver/selection.h"
#include "base/strings.h"

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
                               const ListOptions& options) {
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
                         options.at_version);
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
  auto listing = RunList(core, *call, *selection, *options);
  if (!listing.ok()) {
    FailList(*call, *options, listing.status());
    return;
  }
  ListMeta meta;
  meta.version = options->at_version != 0 ? options->at_version : listing->version;
  if (listing->more && !listing->entries.empty()) {
    const store::Key& last = listing->entries.back()->key;
    meta.continue_token = MakeContinueToken(meta.version, last.ns, last.name);
    if (selection->everything()) meta.remaining = listing->remaining;
  }
  RespondList(core, *call, std::move(listing->entries), meta);
}

}  // namespace swell::apiserver
