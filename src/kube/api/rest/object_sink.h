// ObjectSink: what a RestSink may be beside, where the caller lives in the server's process: it
// takes stored objects as documents, which all such receivers share, instead of as bytes that one
// side prints and the other parses.
//
// A server need not offer it, and what it has not as one document of the version that was asked for
// comes as bytes. Both ways the order of events is the same.
//
// - Threads: as RestSink.
// - Invariants: documents are whole but for metadata.managedFields, which they lack.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"

namespace swell::api {

struct ObjectList {
  std::vector<json::SharedValue> items;
  std::string resource_version;
  std::string continue_token;
};

class ObjectSink {
 public:
  virtual ~ObjectSink() = default;
  // In place of OnChunk: one event of a watch.
  virtual bool OnObject(std::string_view type, const json::SharedValue& object) = 0;
  // In place of OnResponse: a list.
  virtual void OnObjects(ObjectList list) = 0;
};

}  // namespace swell::api
