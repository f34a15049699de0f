// Output: stored entries in the form and version that a client asked for.
// - Threads: core executor only.
#pragma once

#include <vector>

#include "kube/apiserver/core.h"

namespace swell::apiserver {

// Whether entries of this kind can be sent as they are stored.
bool StoredAsIs(const Core& core, const Call& call, const store::Entry& entry);
// Whether the entry's text is the custom object in that version, with all its defaults.
bool StoredIn(const Core& core, const api::KindInfo& kind, const store::Entry& entry);
// The entry's object in the call's version.
Result<json::Value> ObjectOf(const Core& core, Call& call, const store::Entry& entry);
// The same, for reading: not copied unless it must be converted.
Result<json::SharedValue> SharedObjectOf(const Core& core, Call& call, const store::Entry& entry);
// The entry's bytes in the call's version.
Result<api::Chunk> BytesOf(const Core& core, Call& call, const store::Entry& entry);

// One object as the call's form wants it: itself, its metadata, or a table of one row.
Result<json::Value> FormOf(const Core& core,
                           const Call& call,
                           json::Value object,
                           bool with_columns = true);
// {kind: PartialObjectMetadata, …} of an object.
json::Value MetadataOnly(const json::Value& object, std::string_view meta_version);

// Answers a call with one entry.
void RespondEntry(Core& core, Call& call, int status, const store::Entry& entry);
// Answers with an object that is not stored (of a dry run, say).
void RespondObject(Core& core, Call& call, int status, json::Value object);
// Answers with a document as it is, printed as JSON or YAML.
void RespondDocument(Call& call, int status, const json::Value& document);
// Answers with a list of entries in the call's form.
struct ListMeta {
  uint64_t version = 0;
  std::string continue_token;
  std::optional<size_t> remaining;
};
void RespondList(Core& core,
                 Call& call,
                 std::vector<store::EntryPtr> entries,
                 const ListMeta& meta);

}  // namespace swell::apiserver
