#include "apiserver/output.h"

#include <algorithm>

#include "apiserver/conversion.h"
#include "apiserver/errors.h"
#include "apiserver/table.h"
#include "base/strings.h"
#include "json/yaml.h"

namespace swell::apiserver {
namespace {

const api::Chunk& Comma() {
  static const api::Chunk chunk = api::MakeChunk(",");
  return chunk;
}
const api::Chunk& ListEnd() {
  static const api::Chunk chunk = api::MakeChunk("]}");
  return chunk;
}

json::Object MetaOf(const ListMeta& meta) {
  json::Object object;
  object["resourceVersion"] = std::to_string(meta.version);
  if (!meta.continue_token.empty()) object["continue"] = meta.continue_token;
  if (meta.remaining) object["remainingItemCount"] = *meta.remaining;
  return object;
}

}  // namespace

bool StoredAsIs(const Call& call, const store::Entry& entry) {
  if (!call.storage || call.kind->gvk != call.storage->gvk) return false;
  // A CRD may have changed its storage version after the object was written.
  return !call.kind->custom || StoredIn(*call.kind, entry);
}

bool StoredIn(const api::KindInfo& kind, const store::Entry& entry) {
  const std::string start = StrCat("{\"apiVersion\":\"", kind.gvk.ApiVersion(), "\"");
  if (entry.bytes->compare(0, start.size(), start) == 0) return true;
  return json::GetString(*entry.Parsed(), {"apiVersion"}) == kind.gvk.ApiVersion();
}

Result<json::Value> ObjectOf(const Core& core, Call& call, const store::Entry& entry) {
  json::Value object = *entry.Parsed();
  SWELL_RETURN_IF_ERROR(ConvertObject(core, call, object, *call.kind));
  return object;
}

Result<json::SharedValue> SharedObjectOf(const Core& core, Call& call, const store::Entry& entry) {
  json::SharedValue stored = entry.Parsed();
  if (json::GetString(*stored, {"apiVersion"}) == call.kind->gvk.ApiVersion()) return stored;
  SWELL_ASSIGN_OR_RETURN(json::Value object, ObjectOf(core, call, entry));
  return std::make_shared<const json::Value>(std::move(object));
}

Result<api::Chunk> BytesOf(const Core& core, Call& call, const store::Entry& entry) {
  if (StoredAsIs(call, entry)) return entry.bytes;
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
  if (call.form.raw() && StoredAsIs(call, entry)) {
    api::RestResponse response;
    response.status = status;
    response.body.push_back(entry.bytes);
    call.Respond(std::move(response));
    return;
  }
  RespondObject(core, call, status, *entry.Parsed());
}

void RespondObject(Core& core, Call& call, int status, json::Value object) {
  if (call.kind && json::GetString(object, {"apiVersion"}) != call.kind->gvk.ApiVersion() &&
      json::GetString(object, {"kind"}) == call.kind->gvk.kind) {
    if (HasConverter(core, *call.kind)) {
      // What was done is done: only the answering comes again.
      call.again = [weak = core.weak_from_this(), status, object](const CallPtr& again) {
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

// The fast way: stored bytes, joined.
Status RawList(Core& core,
               Call& call,
               const std::vector<store::EntryPtr>& entries,
               const ListMeta& meta,
               api::RestResponse& response) {
  response.body.reserve(entries.size() * 2 + 2);
  response.body.push_back(api::MakeChunk(StrCat(
      "{\"kind\":\"", call.kind->gvk.kind, "List\",\"apiVersion\":\"", call.kind->gvk.ApiVersion(),
      "\",\"metadata\":", json::Print(json::Value(MetaOf(meta))), ",\"items\":[")));
  bool first = true;
  const bool as_is = call.kind->gvk == call.storage->gvk && !call.kind->custom;
  for (const store::EntryPtr& entry : entries) {
    if (!first) response.body.push_back(Comma());
    first = false;
    if (as_is) {
      response.body.push_back(entry->bytes);
    } else {
      SWELL_ASSIGN_OR_RETURN(api::Chunk bytes, BytesOf(core, call, *entry));
      response.body.push_back(std::move(bytes));
    }
  }
  response.body.push_back(ListEnd());
  return Status::Ok();
}

// For receivers in this process: false where it takes a conversion.
bool ShareList(Call& call, const std::vector<store::EntryPtr>& entries, const ListMeta& meta) {
  const bool stored = std::all_of(entries.begin(), entries.end(),
                                  [&](const auto& entry) { return StoredAsIs(call, *entry); });
  if (!stored) return false;
  api::ObjectList list{{}, std::to_string(meta.version), meta.continue_token};
  list.items.reserve(entries.size());
  for (const store::EntryPtr& entry : entries) list.items.push_back(entry->Content());
  call.RespondObjects(std::move(list));
  return true;
}

Result<json::Value> FormedList(const Core& core,
                               Call& call,
                               const std::vector<store::EntryPtr>& entries,
                               const ListMeta& meta) {
  json::Array items;
  items.reserve(entries.size());
  for (const store::EntryPtr& entry : entries) {
    SWELL_ASSIGN_OR_RETURN(const json::SharedValue object, SharedObjectOf(core, call, *entry));
    switch (call.form.as) {
      case OutputForm::As::kObject:
        items.push_back(*object);
        break;
      case OutputForm::As::kMetadata:
        items.push_back(MetadataOnly(*object, call.form.meta_version));
        break;
      case OutputForm::As::kTable:
        items.push_back(TableRow(core, *call.kind, call.form, *object));
        break;
    }
  }
  if (call.form.as == OutputForm::As::kTable) {
    return MakeTable(*call.kind, call.form, MetaOf(meta), std::move(items), true);
  }
  const bool partial = call.form.as == OutputForm::As::kMetadata;
  json::Object list;
  list["kind"] = partial ? "PartialObjectMetadataList" : StrCat(call.kind->gvk.kind, "List");
  list["apiVersion"] =
      partial ? StrCat("meta.k8s.io/", call.form.meta_version) : call.kind->gvk.ApiVersion();
  list["metadata"] = MetaOf(meta);
  list["items"] = std::move(items);
  return json::Value(std::move(list));
}

}  // namespace

void RespondList(Core& core,
                 Call& call,
                 const std::vector<store::EntryPtr>& entries,
                 const ListMeta& meta) {
  if (HasConverter(core, *call.kind)) {
    call.again = [weak = core.weak_from_this(), entries, meta](const CallPtr& again) {
      if (const auto alive = weak.lock()) RespondList(*alive, *again, entries, meta);
    };
    const Status known = ConvertAhead(core, call, entries, *call.kind);
    if (!known.ok()) {
      call.Fail(known);
      return;
    }
  }
  if (call.TakesObjects() && ShareList(call, entries, meta)) return;
  if (call.form.raw()) {
    api::RestResponse response;
    const Status made = RawList(core, call, entries, meta, response);
    if (made.ok()) {
      call.Respond(std::move(response));
    } else {
      call.Fail(made);
    }
    return;
  }
  auto list = FormedList(core, call, entries, meta);
  if (!list.ok()) {
    call.Fail(list.status());
    return;
  }
  RespondDocument(call, 200, *list);
}

}  // namespace swell::apiserver
