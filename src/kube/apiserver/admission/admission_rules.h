// RequestRules: which requests a webhook or a policy is asked about; the request as it is shown to
// them, and the rights that their expressions ask about.
// - Threads: core executor only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kube/api/cel/cel_access.h"
#include "kube/api/meta/selector.h"
#include "kube/apiserver/core.h"

namespace swell::apiserver {

// What is asked about. `object` and `old` are of the admission's kind unless `of` says otherwise.
struct Reviewed {
  std::string_view operation;           // CREATE, UPDATE, DELETE, CONNECT
  const json::Value* object = nullptr;  // null of a DELETE
  const json::Value* old = nullptr;     // null of a CREATE and a CONNECT
  const api::KindInfo* of = nullptr;    // a subresource's own kind: Scale, Binding, Eviction
  json::Value options;                  // of a DELETE
};

struct RequestRules {
  struct Rule {
    std::vector<std::string> operations, groups, versions, resources;
    std::vector<std::string> names;  // of objects; none: all
    std::string scope;
  };
  std::vector<Rule> rules;
  std::vector<Rule> excluded;
  api::LabelSelector namespaces;
  api::LabelSelector objects;
  bool equivalent = true;  // other versions of a resource count
};

// `field` of `value` has the rules; `excluded` those that are left out.
RequestRules RequestRulesFrom(const json::Value& value,
                              std::string_view field,
                              std::string_view excluded = {});

// The version of the object in which it is asked about; null: it is not. `without_rules`: rules
// that name no request are about all.
Result<api::KindPtr> VersionAsked(const RequestRules& rules,
                                  const Admission& admission,
                                  const Reviewed& reviewed,
                                  bool without_rules = false);
// The namespace of a request; of one about a namespace, its name.
const std::string& NamespaceOf(const Admission& admission);
bool IsNamespaces(const api::KindInfo& kind);
// The request of a review, without its uid.
Result<json::Object> MakeRequest(const Admission& admission,
                                 const Reviewed& reviewed,
                                 const api::KindInfo& kind,
                                 bool mutating);
// The variable `authorizer`: what the user of the request may do, and what accounts may.
api::CelValue AuthorizerOf(const Admission& admission);

}  // namespace swell::apiserver
