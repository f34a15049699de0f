// Selection: which objects a list, watch or delete-collection is about.
// - Threads: immutable after parsing.
#pragma once

#include "kube/api/meta/selector.h"
#include "kube/apiserver/core.h"

namespace swell::apiserver {

struct Selection {
  api::LabelSelector labels;
  api::FieldSelector fields;
  std::string only_name;  // of metadata.name=x; empty: any

  // From labelSelector, fieldSelector and the name in the path. kBadRequest for a malformed one or
  // a field that the kind does not offer.
  static Result<Selection> Parse(const Call& call);

  bool everything() const { return labels.everything() && fields.everything(); }
  bool Matches(const store::Entry& entry) const {
    return labels.Matches(entry.attributes.labels) && fields.Matches(entry.attributes.fields);
  }
};

}  // namespace swell::apiserver
