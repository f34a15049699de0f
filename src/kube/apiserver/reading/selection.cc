#include "kube/apiserver/reading/selection.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/apiserver/request/errors.h"

namespace swell::apiserver {
namespace {

constexpr size_t kMaxSelectorBytes = 64 << 10;

// events.k8s.io names the fields of the one event store in its own way.
std::string StoredFieldName(const api::KindInfo& kind, const std::string& field) {
  if (kind.gvk.group != "events.k8s.io") return field;
  constexpr std::string_view kRegarding = "regarding.";
  if (field.rfind(kRegarding, 0) == 0) {
    return StrCat("involvedObject.", std::string_view(field).substr(kRegarding.size()));
  }
  if (field == "reportingController") return "reportingComponent";
  return field;
}

std::string EscapeValue(std::string_view value) {
  std::string out;
  for (char c : value) {
    if (c == '\\' || c == ',' || c == '=') out += '\\';
    out += c;
  }
  return out;
}

bool Offers(const api::KindInfo& kind, const std::string& field) {
  if (field == "metadata.name" || (field == "metadata.namespace" && kind.namespaced)) return true;
  const auto& offered = kind.selectable_fields;
  return std::find(offered.begin(), offered.end(), field) != offered.end() ||
         (kind.plural == "namespaces" && field == "status.phase");
}

// Kinds that offer fields of their own say it in their own words.
Status UnknownField(const api::KindInfo& kind, const std::string& field) {
  if (kind.gvk.group == "batch" && kind.plural == "jobs") {
    return BadRequestError(StrCat("field label ", Quote(field), " not supported for batchv1.Job"));
  }
  if (kind.custom || !kind.selectable_fields.empty()) {
    return BadRequestError(StrCat("field label not supported: ", field));
  }
  return BadRequestError(StrCat(Quote(field),
                                " is not a known field selector: only "
                                "\"metadata.name\", \"metadata.namespace\""));
}

Result<api::FieldSelector> ParseFields(const Call& call) {
  SWELL_ASSIGN_OR_RETURN(api::FieldSelector asked,
                         api::FieldSelector::Parse(call.query.Get("fieldSelector")));
  std::string text;
  for (const auto& term : asked.terms()) {
    const std::string field = StoredFieldName(*call.kind, term.field);
    if (!Offers(*call.storage, field)) return UnknownField(*call.kind, term.field);
    text +=
        StrCat(text.empty() ? "" : ",", field, term.equal ? "=" : "!=", EscapeValue(term.value));
  }
  if (!call.info.name.empty()) {
    text += StrCat(text.empty() ? "" : ",", "metadata.name=", EscapeValue(call.info.name));
  }
  return api::FieldSelector::Parse(text);
}

}  // namespace

Result<Selection> Selection::Parse(const Call& call) {
  Selection selection;
  const std::string_view labels = call.query.Get("labelSelector");
  if (labels.size() > kMaxSelectorBytes ||
      call.query.Get("fieldSelector").size() > kMaxSelectorBytes) {
    return BadRequestError("the selector is too long");
  }
  SWELL_ASSIGN_OR_RETURN(selection.labels, api::LabelSelector::Parse(labels));
  SWELL_ASSIGN_OR_RETURN(selection.fields, ParseFields(call));
  for (const auto& term : selection.fields.terms()) {
    if (term.field == "metadata.name" && term.equal) selection.only_name = term.value;
  }
  return selection;
}

}  // namespace swell::apiserver
