// SinkCapabilities: what a RestSink can do beyond receiving bytes. A server uses what is there; the
// order of answers and events is the same without it.
// - Threads: as RestSink.
// - Ownership: a sink returns pointers to itself or to its members; they live as long as the sink.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"
#include "kube/api/rest/rest.h"

namespace swell::api {

struct ObjectList {
  std::vector<json::SharedValue> items;
  std::string resource_version;
  std::string continue_token;
};

// Receives documents instead of bytes, in the server's process: each version is parsed once for all
// such receivers. Documents are whole, but without metadata.managedFields. A server may still send
// bytes, such as for a version that it would have to convert.
class ObjectSink {
 public:
  virtual ~ObjectSink() = default;
  // In place of OnChunk: one event of a watch.
  virtual bool OnObject(std::string_view type, const json::SharedValue& object) = 0;
  // In place of OnResponse: a list.
  virtual void OnObjects(ObjectList list) = 0;
};

// Makes the callers take turns: a long answer is made in pieces, one a turn, so that a small
// request does not wait for the whole of another caller's answer.
class TurnSink {
 public:
  virtual ~TurnSink() = default;
  // Runs `rest` once, later, before anything else that this caller waits for. Does not run it if
  // the server ends first.
  virtual void InTurn(std::function<void()> rest) = 0;
};

// Receives a long answer (a long list, the state with which a watch begins) at the pace at which
// its peer reads: each piece is sent when there is room for it.
class PacedSink {
 public:
  virtual ~PacedSink() = default;
  // The head of a long answer: OnChunk and OnStreamEnd bring its body.
  virtual void OnLongResponse(RestResponse head) = 0;
  // Whether the next chunk, of any size, will be taken now.
  virtual bool HasRoom() const = 0;
  // Runs `resume` once, later, when there is room. Does not run it if the receiver goes away first.
  virtual void WhenRoom(std::function<void()> resume) = 0;
};

struct SinkCapabilities {
  ObjectSink* objects = nullptr;
  TurnSink* turns = nullptr;
  PacedSink* paced = nullptr;
};

}  // namespace swell::api
