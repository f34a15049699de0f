#include "kube/apiserver/print/output.h"

#include <algorithm>

#include "base/strings.h"
#include "json/yaml.h"
#include "kube/apiserver/print/table.h"
#include "kube/apiserver/request/errors.h"
#include "kube/apiserver/webhooks/conversion.h"

namespace swell::apiserver {
namespace {

json::Object MetaOf(const ListMeta& meta) {
  json::Object object;
  object["resourceVersion"] = std::to_string(meta.version);
  if (!meta.continue_token.empty()) object["continue"] = meta.continue_token;
  if (meta.remaining) object["remainingItemCount"] = *meta.remaining;
  return object;
}

}  // namespace

bool StoredAsIs(const Core& core, const Call& call, const store::Entry& entry) {
  if (!call.storage || call.kind->gvk != call.storage->gvk) return false;
  // A CRD may have changed its storage version after the object was written.
  return !call.kind->custom || StoredIn(core, *call.kind, entry);
}

bool StoredIn(const Core& core, const api::KindInfo& kind, const store::Entry& entry) {
  if (LacksDefaults(core, kind, entry)) return false;
  const std::string start = StrCat("{\"apiVersion\":\"", kind.gvk.ApiVersion(), "\"");
  if (entry.text->starts_with(start)) return true;
  return json::GetString(*entry.Parsed(), {"apiVersion"}) == kind.gvk.ApiVersion();
}

Result<json::Value> ObjectOf(const Core& core, Call& call, const store::Entry& entry) {
  json::Value object = *StoredObject(core, *call.kind, entry);
  SWELL_RETURN_IF_ERROR(ConvertObject(core, call, object, *call.kind));
  return object;
}

Result<json::SharedValue> SharedObjectOf(const Core& core, Call& call, const store::Entry& entry) {
  json::SharedValue stored = StoredObject(core, *call.kind, entry);
  if (json::GetString(*stored, {"apiVersion"}) == call.kind->gvk.ApiVersion()) return stored;
  json::Value object = *stored;
  SWELL_RETURN_IF_ERROR(ConvertObject(core, call, object, *call.kind));
  return std::make_shared<const json::Value>(std::move(object));
}

Result<api::Chunk> BytesOf(const Core& core, Call& call, const store::Entry& entry) {
  if (StoredAsIs(core, call, entry)) return entry.text;
  SWELL_ASSIGN_OR_RETURN(const json::Value object, ObjectOf(core, call, entry));
  return api::MakeChunk(json::Print(object));
}

json::Value MetadataOnly(const json::Value& object, std::string_view meta_version) {
  json::Object partial;
  partial["kind"] = "PartialObjectMetadata";
  partial["apiVersion"] = StrCat("meta.k8s.io/", meta_version);
  partial["metadata"] = json::GetObject(object, {"metadata"});
  return partial;
}

Result<json::Value> FormOf(const Core& core,
                           const Call& call,
                           json::Value object,
                           bool with_columns) {
  switch (call.form.as) {
    case OutputForm::As::kObject:
      return object;
    case OutputForm::As::kMetadata:
      return MetadataOnly(object, call.form.meta_version);
    case OutputForm::As::kTable:
      break;
  }
  json::Array rows;
  rows.push_back(TableRow(core, *call.kind, call.form, object));
  json::Object meta;
  meta["resourceVersion"] = json::GetString(object, {"metadata", "resourceVersion"});
  return MakeTable(*call.kind, call.form, std::move(meta), std::move(rows), with_columns);
}

void RespondDocument(Call& call, int status, const json::Value& document) {
  api::RestResponse response;
  response.status = status;
  if (call.form.yaml) {
    response.content_type = "application/yaml";
    response.body.push_back(api::MakeChunk(json::PrintYaml(document)));
  } else if (call.form.pretty) {
    response.body.push_back(api::MakeChunk(json::PrintPretty(document, 2) + "\n"));
  } else {
    response.body.push_back(api::MakeChunk(json::Print(document)));
  }
  call.Respond(std::move(response));
}

void RespondEntry(Core& core, Call& call, int status, const store::Entry& entry) {
  if (call.form.raw() && StoredAsIs(core, call, entry)) {
    api::RestResponse response;
    response.status = status;
    response.body.push_back(entry.text);
    call.Respond(std::move(response));
    return;
  }
  const api::KindInfo* kind = call.storage ? call.storage.get() : call.kind.get();
  RespondObject(core, call, status, kind ? *StoredObject(core, *kind, entry) : *entry.Parsed());
}

void RespondObject(Core& core, Call& call, int status, json::Value object) {
  if (call.kind && json::GetString(object, {"apiVersion"}) != call.kind->gvk.ApiVersion() &&
      json::GetString(object, {"kind"}) == call.kind->gvk.kind) {
    if (HasConverter(core, *call.kind)) {
      // What was done is done: only the answering comes again.
      call.retry = [weak = core.weak_from_this(), status, object](const CallPtr& again) {
        if (const auto alive = weak.lock()) RespondObject(*alive, *again, status, object);
      };
    }
    const Status converted = ConvertObject(core, call, object, *call.kind);
    if (!converted.ok()) {
      call.Fail(converted);
      return;
    }
  }
  auto formed = FormOf(core, call, std::move(object));
  if (!formed.ok()) {
    call.Fail(formed.status());
    return;
  }
  RespondDocument(call, status, *formed);
}

namespace {

// For receivers in this process: false where it takes a conversion.
bool ShareList(const Core& core,
               Call& call,
               const std::vector<store::EntryPtr>& entries,
               const ListMeta& meta) {
  const bool stored = std::all_of(entries.begin(), entries.end(), [&](const auto& entry) {
    return StoredAsIs(core, call, *entry);
  });
  if (!stored) return false;
  api::ObjectList list{{}, std::to_string(meta.version), meta.continue_token};
  list.items.reserve(entries.size());
  for (const store::EntryPtr& entry : entries) list.items.push_back(entry->Content());
  call.RespondObjects(std::move(list));
  return true;
}

// A list without its items; the array of these is its last member.
json::Value EmptyList(const Call& call, const ListMeta& meta) {
  if (call.form.as == OutputForm::As::kTable) {
    return MakeTable(*call.kind, call.form, MetaOf(meta), {}, true);
  }
  const bool partial = call.form.as == OutputForm::As::kMetadata;
  json::Object list;
  list["kind"] = partial ? "PartialObjectMetadataList" : StrCat(call.kind->gvk.kind, "List");
  list["apiVersion"] =
      partial ? StrCat("meta.k8s.io/", call.form.meta_version) : call.kind->gvk.ApiVersion();
  list["metadata"] = MetaOf(meta);
  list["items"] = json::Array();
  return json::Value(std::move(list));
}

// A list's text, in the middle of which its items come.
struct Frame {
  std::string opening, separator, closing;
};

Frame FrameOf(const OutputForm& form, const json::Value& empty) {
  if (form.yaml) {
    const std::string text = json::PrintYaml(empty);
    const std::string key = form.as == OutputForm::As::kTable ? "rows:" : "items:";
    const std::string none = StrCat("\n", key, " []\n");
    const size_t at = text.find(none);
    return {StrCat(text.substr(0, at), "\n", key, "\n"), "", text.substr(at + none.size())};
  }
  const std::string text = form.pretty ? json::PrintPretty(empty, 2) + "\n" : json::Print(empty);
  const size_t at = text.rfind("[]") + 1;
  const std::string line = form.pretty ? "\n    " : "";
  return {text.substr(0, at) + line, "," + line, (form.pretty ? "\n  " : "") + text.substr(at)};
}

std::string ItemText(const OutputForm& form, json::Value item) {
  if (form.yaml) return json::PrintYaml(json::Array{std::move(item)});
  if (!form.pretty) return json::Print(item);
  std::string text;
  for (const char c : json::PrintPretty(item, 2)) {
    text += c;
    if (c == '\n') text += "    ";
  }
  return text;
}

// Between stored bytes. Thousands are in a list: if they were counted, the threads that make and
// send lists would wait for each other at the counter.
api::Chunk Comma() {
  static const std::string comma = ",";
  return {std::shared_ptr<void>(), &comma};
}

// Makes a list's answer, some items in each of the caller's turns.
class ListMaker : public std::enable_shared_from_this<ListMaker> {
 public:
  ListMaker(Core& core, Call& call, std::vector<store::EntryPtr> entries, const ListMeta& meta)
      : core_(core.weak_from_this()),
        call_(call.shared_from_this()),
        entries_(std::move(entries)),
        frame_(FrameOf(call.form, EmptyList(call, meta))),
        as_is_(call.form.raw() && call.kind->gvk == call.storage->gvk && !call.kind->custom) {
    response_.content_type = call.form.yaml ? "application/yaml" : "application/json";
    if (call.form.raw()) response_.body.reserve(entries_.size() * 2 + 2);
    Add(api::MakeChunk(std::move(frame_.opening)));
  }

  void Go() {
    while (const auto core = core_.lock()) {
      const Status made = MakeSome(*core);
      if (!made.ok()) return call_->begun() ? call_->EndStream(made) : call_->Fail(made);
      const bool whole = next_ == entries_.size();
      if (whole) Add(api::MakeChunk(std::move(frame_.closing)));
      if (whole && !call_->begun()) return call_->Respond(std::move(response_));
      if (!SendSome()) return call_->EndStream(Status(Code::kUnavailable, "the receiver has gone"));
      if (whole) return call_->EndStream(Status::Ok());
      const auto go_on = [self = shared_from_this()] { self->Go(); };
      if (!call_->HasRoom() && call_->WhenRoom(go_on)) return;
      if (call_->InTurn(go_on)) return;
    }
  }

 private:
  // Stored text is pointed at or put together, some 50 to 150 us; the others take some 100 us.
  static constexpr size_t kStoredPerTurn = 250;
  static constexpr size_t kFormedPerTurn = 10;
  static constexpr size_t kFormedBytesPerTurn = 32 << 10;
  static constexpr size_t kStoredBytesPerTurn = 512 << 10;
  // What stored texts are put together in: it never grows, and its pages are soon used again.
  static constexpr size_t kPieceBytes = 64 << 10;
  // An answer that is longer goes out while it is made, at the pace of its receiver: many who read
  // slowly hold little of it.
  static constexpr size_t kWholeBytes = 1 << 20;

  // False: the receiver has gone.
  bool SendSome() {
    if (!call_->begun()) {
      api::RestResponse head;
      head.content_type = response_.content_type;
      if (bytes_ < kWholeBytes || !call_->Begin(std::move(head))) return true;
    }
    std::string piece;
    for (const api::Chunk& chunk : std::exchange(response_.body, {})) piece += *chunk;
    return call_->Send(api::MakeChunk(std::move(piece)));
  }

  void Add(api::Chunk chunk) {
    bytes_ += chunk->size();
    response_.body.push_back(std::move(chunk));
  }

  Status MakeSome(Core& core) {
    const size_t most = as_is_ ? kStoredPerTurn : kFormedPerTurn;
    const size_t end = std::min(entries_.size(), next_ + most);
    const size_t bytes_most = as_is_ ? kStoredBytesPerTurn : kFormedBytesPerTurn;
    std::string text;
    for (size_t bytes = 0; next_ < end && bytes < bytes_most; ++next_) {
      const store::Entry& entry = *entries_[next_];
      bytes += entry.text->size();
      if (call_->form.raw()) {
        Put(std::exchange(text, {}));
        if (next_ > 0) Add(Comma());
        SWELL_ASSIGN_OR_RETURN(api::Chunk bytes, BytesOf(core, *call_, entry));
        Add(std::move(bytes));
        continue;
      }
      if (next_ > 0) text += frame_.separator;
      SWELL_ASSIGN_OR_RETURN(json::Value item, Formed(core, entry));
      text += ItemText(call_->form, std::move(item));
    }
    Put(std::move(text));
    return Status::Ok();
  }

  void Put(std::string text) {
    if (!text.empty()) Add(api::MakeChunk(std::move(text)));
  }

  Result<json::Value> Formed(Core& core, const store::Entry& entry) {
    SWELL_ASSIGN_OR_RETURN(const json::SharedValue object, SharedObjectOf(core, *call_, entry));
    switch (call_->form.as) {
      case OutputForm::As::kObject:
        break;
      case OutputForm::As::kMetadata:
        return MetadataOnly(*object, call_->form.meta_version);
      case OutputForm::As::kTable:
        return TableRow(core, *call_->kind, call_->form, *object);
    }
    return *object;
  }

  const std::weak_ptr<Core> core_;
  const CallPtr call_;
  const std::vector<store::EntryPtr> entries_;
  Frame frame_;
  const bool as_is_;
  size_t next_ = 0;
  api::RestResponse response_;  // what is made and not sent
  size_t bytes_ = 0;            // made
};

}  // namespace

void RespondList(Core& core,
                 Call& call,
                 std::vector<store::EntryPtr> entries,
                 const ListMeta& meta) {
  if (HasConverter(core, *call.kind)) {
    call.retry = [weak = core.weak_from_this(), entries, meta](const CallPtr& again) {
      if (const auto alive = weak.lock()) RespondList(*alive, *again, entries, meta);
    };
    const Status known = ConvertAhead(core, call, entries, *call.kind);
    if (!known.ok()) {
      call.Fail(known);
      return;
    }
  }
  if (call.TakesObjects() && ShareList(core, call, entries, meta)) return;
  if (entries.empty()) return RespondDocument(call, 200, EmptyList(call, meta));
  std::make_shared<ListMaker>(core, call, std::move(entries), meta)->Go();
}

}  // namespace swell::apiserver
