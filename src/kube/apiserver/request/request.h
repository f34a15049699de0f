// What a request asks for: its path taken apart, its query parameters, the form its answer takes.
// - Threads: values and pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace swell::apiserver {

// A path under /api or /apis.
struct RequestInfo {
  bool is_resource = false;           // false: a non-resource path such as /version
  std::vector<std::string> segments;  // of the whole path, unescaped
  std::string group;
  std::string version;
  std::string ns;
  std::string resource;  // plural
  std::string name;
  std::string subresource;
  std::string rest;               // what follows the subresource, for proxies
  bool deprecated_watch = false;  // /api/v1/watch/…
};

// kBadRequest for a bad escape. `/api/v1` alone is not a resource path.
Result<RequestInfo> ParsePath(std::string_view path);

class Query {
 public:
  static Result<Query> Parse(std::string_view raw);

  // First value, or nothing.
  std::optional<std::string_view> Find(std::string_view key) const;
  std::string_view Get(std::string_view key) const { return Find(key).value_or(""); }
  std::vector<std::string_view> All(std::string_view key) const;
  // True when it is there and neither 0 nor false; a bare `?watch` is true.
  bool Bool(std::string_view key) const;
  // nullopt when absent; kBadRequest when it is not an integer.
  Result<std::optional<int64_t>> Count(std::string_view key) const;

 private:
  std::vector<std::pair<std::string, std::string>> pairs_;
};

// The form of an answer, from the Accept header and a few parameters.
struct OutputForm {
  enum class As { kObject, kTable, kMetadata };
  enum class Include { kNone, kMetadata, kObject };
  As as = As::kObject;
  std::string meta_version = "v1";  // of Table and PartialObjectMetadata
  Include include = Include::kMetadata;
  bool yaml = false;
  bool pretty = false;

  // Plain compact JSON of whole objects: stored bytes can be sent as they are.
  bool raw() const { return as == As::kObject && !yaml && !pretty; }
};

// One clause of an Accept header: "application/json;as=Table;v=v1;g=meta.k8s.io".
struct AcceptClause {
  std::string type;
  std::vector<std::pair<std::string, std::string>> parameters;
  std::string_view Parameter(std::string_view key) const;
};
// In order of preference (q, then position). At most 32 clauses are read.
std::vector<AcceptClause> ParseAccept(std::string_view accept);

// kNotAcceptable when nothing that the client takes can be given.
Result<OutputForm> NegotiateForm(std::string_view accept, const Query& query);

// "application/json; charset=utf-8" → "application/json".
std::string MediaType(std::string_view content_type);

}  // namespace swell::apiserver
