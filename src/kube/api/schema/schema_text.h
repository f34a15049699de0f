// The text form of built-in schemas, read into Schema trees.
//
//   package io.k8s.api.core.v1             every type below gets this prefix
//   copy Event from io.k8s.api.core.v1     the same type under this package's name, too
//   type Name [MARK...]: one sentence      a struct; marks: `atomic`, server-side apply replaces
//                                          it whole; `preserve`, unknown fields are kept;
//                                          `with=OTHER`, OTHER's fields come before its own
//   kind Name: one sentence                a struct with apiVersion and kind of its own
//     field[!] TYPE [#N[.M][*]] [FLAG...]: one sentence
//
// `!` marks a required field. #N is the protobuf field number; #N.M is field M of the message in
// field N, a level that JSON does not have; #N.M.K: one level more; #N.0: the message in field N is
// a boolean (1) or the type that the field stands in (2); `*`: zero on the wire is a value and not
// absence. TYPE
// is string, bool, int32, int64, number, bytes, quantity, time, microtime, intorstring, any, object
// (any object), [TYPE] for lists, {TYPE} for maps, or the name of a type: of this package, else of
// meta/v1, else of core/v1, or a full name. Flags:
//   merge=KEY   strategic merge merges the list by KEY, and server-side apply too unless map= says
//               otherwise; without =KEY: a list of scalars merged as a set
//   map=K,K     server-side apply's keys         set      server-side apply merges it as a set
//   atomic      server-side apply replaces it    retain   strategic merge: $retainKeys
//   replace     strategic merge replaces it      enum=A|B the only values
//   default=JSON, min=N, max=N
// A default on a required field is the zero value that absence means in Kubernetes' own types.
//
// A malformed text is a bug of ours: it fails a check, at start.
//
// - Threads: immutable after construction.
// - Ownership: schemas keep what they refer to alive. References of a type to itself are kept alive
// by
//   the outermost schema.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kube/api/schema/schema.h"

namespace swell::api {

// A field's proto_outer where the message that it is nested in is itself nested: the message
// `inner` of the message `outer`; 0: of the type itself.
constexpr int kMostInnerNumber = 32767;
constexpr int InnerMessage(int outer, int inner) { return outer * (kMostInnerNumber + 1) + inner; }

class SchemaLibrary {
 public:
  // The texts must outlive the library.
  explicit SchemaLibrary(const std::vector<std::string_view>& texts);
  ~SchemaLibrary();

  // By full name, "io.k8s.api.core.v1.Pod"; parsed when first asked for. nullptr: no such type.
  SchemaPtr Find(const std::string& full_name);
  std::vector<std::string> Names() const;

 private:
  struct Entry {
    std::string_view head;  // "kind Pod: …"
    std::vector<std::string_view> lines;
    std::string_view package;
    std::string copy_of;               // full name, for `copy`
    SchemaPtr schema;                  // once built
    const Schema* building = nullptr;  // while being built
  };

  void AddText(std::string_view text);
  SchemaPtr Build(const std::string& full_name, Entry& entry);
  SchemaField ParseField(std::string_view line, std::string_view package);
  SchemaPtr ParseType(std::string_view type, std::string_view package);
  SchemaPtr Resolve(std::string_view name, std::string_view package);
  void ApplyFlags(std::string_view flags, SchemaField& field);

  std::map<std::string, Entry, std::less<>> entries_;
  std::map<std::string, SchemaPtr, std::less<>> scalars_;
};

// src/kube/api/schemas/*.txt, in file name order.
std::vector<std::string_view> EmbeddedSchemas();

}  // namespace swell::api
