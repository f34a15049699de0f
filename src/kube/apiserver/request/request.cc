#include "kube/apiserver/request/request.h"

#include <algorithm>
#include <span>

#include "base/percent.h"
#include "base/strings.h"
#include "kube/api/rest/rest.h"

namespace swell::apiserver {
namespace {

constexpr size_t kMaxPathBytes = 4096;
constexpr size_t kMaxSegments = 64;
constexpr size_t kUsualSegments = 8;
constexpr size_t kMaxAcceptClauses = 32;

Result<std::string> DecodeSegment(std::string_view text) {
  const std::optional<std::string> out = PercentDecode(text);
  if (!out) return Status(Code::kBadRequest, StrCat("invalid URL escape in path ", Quote(text)));
  if (!IsValidUtf8(*out)) return Status(Code::kBadRequest, "the path is not valid UTF-8");
  return *out;
}

// /namespaces/NS/RES/NAME/SUB/…, /RES/NAME/SUB/…, with what precedes it taken off.
void FillResource(RequestInfo& info, std::span<const std::string> parts) {
  if (parts.size() > 1 && parts[0] == "watch") {
    info.deprecated_watch = true;
    parts = parts.subspan(1);
  }
  if (parts.empty()) return;
  info.is_resource = true;
  const bool own_subresource =
      parts.size() == 3 && (parts[2] == "status" || parts[2] == "finalize");
  if (parts[0] == "namespaces" && parts.size() > 2 && !own_subresource) {
    info.ns = parts[1];
    parts = parts.subspan(2);
  }
  info.resource = parts[0];
  if (parts.size() > 1) info.name = parts[1];
  if (parts.size() > 2) info.subresource = parts[2];
  for (size_t i = 3; i < parts.size(); ++i) info.rest += StrCat("/", parts[i]);
}

}  // namespace

Result<RequestInfo> ParsePath(std::string_view path) {
  if (path.size() > kMaxPathBytes) return Status(Code::kBadRequest, "the path is too long");
  RequestInfo info;
  info.segments.reserve(kUsualSegments);
  for (std::string_view part : Split(path, '/')) {
    if (part.empty()) continue;
    SWELL_ASSIGN_OR_RETURN(std::string segment, DecodeSegment(part));
    info.segments.push_back(std::move(segment));
    if (info.segments.size() > kMaxSegments) {
      return Status(Code::kBadRequest, "the path has too many segments");
    }
  }
  const auto& s = info.segments;
  size_t used = 0;
  if (s.size() >= 2 && s[0] == "api") {
    info.version = s[1];
    used = 2;
  } else if (s.size() >= 3 && s[0] == "apis") {
    info.group = s[1];
    info.version = s[2];
    used = 3;
  }
  if (used > 0 && s.size() > used) {
    FillResource(info, std::span(s).subspan(used));
  }
  return info;
}

Result<Query> Query::Parse(std::string_view raw) {
  Query query;
  SWELL_ASSIGN_OR_RETURN(query.pairs_, api::ParseQuery(raw));
  return query;
}

std::optional<std::string_view> Query::Find(std::string_view key) const {
  for (const auto& [k, v] : pairs_) {
    if (k == key) return v;
  }
  return std::nullopt;
}

std::vector<std::string_view> Query::All(std::string_view key) const {
  std::vector<std::string_view> values;
  for (const auto& [k, v] : pairs_) {
    if (k == key) values.emplace_back(v);
  }
  return values;
}

bool Query::Bool(std::string_view key) const {
  const auto value = Find(key);
  // As Kubernetes reads it: whatever is not plainly a no.
  return value && *value != "0" && ToLower(*value) != "false";
}

Result<std::optional<int64_t>> Query::Count(std::string_view key) const {
  const auto value = Find(key);
  if (!value || value->empty()) return std::optional<int64_t>();
  const auto number = ParseInt(*value);
  if (!number) {
    return Status(Code::kBadRequest,
                  StrCat("strconv.ParseInt: parsing ", Quote(*value), ": invalid syntax"));
  }
  return std::optional<int64_t>(*number);
}

std::string_view AcceptClause::Parameter(std::string_view key) const {
  for (const auto& [k, v] : parameters) {
    if (k == key) return v;
  }
  return {};
}

std::vector<AcceptClause> ParseAccept(std::string_view accept) {
  std::vector<std::pair<int, AcceptClause>> ranked;  // (-q in thousandths, clause)
  for (std::string_view text : Split(accept, ',')) {
    if (ranked.size() == kMaxAcceptClauses) break;
    AcceptClause clause;
    int rank = -1000;
    for (std::string_view part : Split(text, ';')) {
      part = Trim(part);
      if (clause.type.empty()) {
        clause.type = ToLower(part);
        continue;
      }
      const size_t equals = part.find('=');
      if (equals == std::string_view::npos) continue;
      std::string key = ToLower(Trim(part.substr(0, equals)));
      std::string_view value = Trim(part.substr(equals + 1));
      if (key == "q") {
        if (value.substr(0, 1) == "0") {
          rank = value.size() > 2 ? -100 * std::max(0, HexDigit(value[2])) : 0;
        }
        continue;
      }
      clause.parameters.emplace_back(std::move(key), std::string(value));
    }
    if (!clause.type.empty()) ranked.emplace_back(rank, std::move(clause));
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<AcceptClause> clauses;
  clauses.reserve(ranked.size());
  for (auto& [rank, clause] : ranked) clauses.push_back(std::move(clause));
  return clauses;
}

namespace {

// Whether the clause can be served; fills in the form.
bool TryClause(const AcceptClause& clause, OutputForm& form) {
  const bool any = clause.type == "*/*" || clause.type == "application/*";
  form.yaml = clause.type == "application/yaml" || clause.type == "text/yaml";
  if (!any && !form.yaml && clause.type != "application/json") return false;
  const std::string_view as = clause.Parameter("as");
  if (as.empty()) return true;
  const std::string_view group = clause.Parameter("g");
  const std::string_view version = clause.Parameter("v");
  if (group != "meta.k8s.io" || (version != "v1" && version != "v1beta1")) return false;
  form.meta_version = version;
  if (as == "Table") {
    form.as = OutputForm::As::kTable;
  } else if (as == "PartialObjectMetadata" || as == "PartialObjectMetadataList") {
    form.as = OutputForm::As::kMetadata;
  } else {
    return false;
  }
  return true;
}

}  // namespace

Result<OutputForm> NegotiateForm(std::string_view accept, const Query& query) {
  OutputForm result;
  bool found = Trim(accept).empty();
  for (const AcceptClause& clause : ParseAccept(accept)) {
    OutputForm form;
    if (!TryClause(clause, form)) continue;
    result = form;
    found = true;
    break;
  }
  if (!found) {
    return Status(Code::kNotAcceptable,
                  "only the following media types are accepted: application/json, "
                  "application/yaml");
  }
  const std::string_view include = query.Get("includeObject");
  if (include == "None") {
    result.include = OutputForm::Include::kNone;
  } else if (include == "Object") {
    result.include = OutputForm::Include::kObject;
  } else if (!include.empty() && include != "Metadata") {
    return Status(Code::kBadRequest,
                  StrCat("includeObject must be None, Metadata or Object, not ", Quote(include)));
  }
  if (query.Find("pretty")) result.pretty = query.Bool("pretty");
  return result;
}

std::string MediaType(std::string_view content_type) {
  return ToLower(Trim(content_type.substr(0, content_type.find(';'))));
}

}  // namespace swell::apiserver
