// Manifests: the objects that -f names: files, directories, - for standard input.
// - Threads: one thread.
#pragma once

#include <string>
#include <vector>

#include "cli/session.h"
#include "kube/api/schema/schema.h"

namespace swell::cli {

struct Manifest {
  json::Value object;
  std::string source;  // "job.yaml, document 2": for errors
};

// In the order of the files, directories sorted by name; Lists are unpacked.
Result<std::vector<Manifest>> ReadManifests(Session& session,
                                            const std::vector<std::string>& files,
                                            bool recursive);

// A manifest with what the server calls it and where it goes.
struct Placed {
  Manifest manifest;
  Kind kind;
  std::string ns;  // empty for cluster-scoped kinds
  std::string name;

  std::string ResourceName() const;  // "pytorchjob.kubeflow.org/x"
};
// Resolves kind and namespace. Errors name the file and the field.
Result<Placed> Place(Session& session, Manifest manifest);

// The patch that takes `live` to what `wanted` says, deleting what `last` said and `wanted` does
// not: a strategic merge patch by the kind's schema, so that list elements others have added stay;
// without a schema a JSON merge patch, which replaces lists whole.
json::Value ThreeWayPatch(const api::Schema* schema,
                          const json::Value& last,
                          const json::Value& wanted,
                          const json::Value& live);

}  // namespace swell::cli
