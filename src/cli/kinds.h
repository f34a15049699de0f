// Kinds: the resources of a server, found by any name people use for them: pod, pods, po, Pod,
// pytorchjobs.kubeflow.org, pytorchjobs.v1.kubeflow.org.
//
// Well-known names are answered without asking; everything else is discovered, once per command.
//
// - Threads: one thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/api.h"

namespace swell::cli {

struct Kind {
  Resource resource;
  std::string kind;      // "Pod"
  std::string singular;  // "pod"
  std::vector<std::string> short_names;
  std::vector<std::string> categories;
  std::vector<std::string> verbs;

  // "pod", "pytorchjob.kubeflow.org": as messages name one object.
  std::string SingularName() const;
  // "pods", "pytorchjobs.kubeflow.org".
  std::string GroupResource() const;
};

class Kinds {
 public:
  explicit Kinds(Api& api) : api_(api) {}

  // kNotFound with a suggestion when the server has no such resource.
  Result<Kind> Find(std::string_view word);
  Result<Kind> FindGvk(std::string_view api_version, std::string_view kind);
  // "all" and other categories; empty if it is not a category.
  std::vector<Kind> InCategory(std::string_view category);
  // Everything, discovered.
  Result<std::vector<Kind>> All();

 private:
  Status Discover();
  Status Aggregated(const json::Value& list);
  Status Classic();

  Api& api_;
  bool discovered_ = false;
  std::vector<Kind> kinds_;
};

// Names and short names of the kinds everybody has, for completion without a server.
const std::vector<Kind>& WellKnownKinds();

// The error for a word that names neither a job nor a kind, from that of Kinds::Find.
Status NeitherJobNorKind(const Status& no_kind, std::string_view word, std::string_view ns);

}  // namespace swell::cli
