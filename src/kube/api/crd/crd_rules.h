// The validation rules of a custom resource's schema (x-kubernetes-validations), compiled, and how
// an object is held against them. Kept beside the schema: only kinds that have rules pay.
// - Threads: immutable once read; pure functions.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kube/api/cel/cel.h"
#include "kube/api/schema/field_errors.h"

namespace swell::api {

struct CrdRule {
  std::string text, message, reason, field_path;
  std::shared_ptr<const CelProgram> program;
  std::shared_ptr<const CelProgram> message_program;  // may be null
};

// A schema's rules, and those of what is below it.
struct CrdRules {
  std::vector<CrdRule> rules;
  std::string type;  // as the schema names it
  std::map<std::string, std::shared_ptr<const CrdRules>> properties;
  std::shared_ptr<const CrdRules> items;       // of a list
  std::shared_ptr<const CrdRules> additional;  // of a map
  std::vector<std::string> list_keys;  // tell items of old and new apart; empty: nothing does
};

// Null when there are no rules at all. Appends to `errors` what is wrong with them.
std::shared_ptr<const CrdRules> ReadCrdRules(const json::Value& open_api_v3,
                                             const std::string& path,
                                             std::vector<FieldError>& errors);
// `old` is null on creation. At most 100 errors; the cost of all rules together is bounded.
std::vector<FieldError> CheckCrdRules(const CrdRules& rules,
                                      const json::Value& object,
                                      const json::Value* old);

}  // namespace swell::api
