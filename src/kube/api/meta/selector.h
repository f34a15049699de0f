// Label and field selectors: parsing and matching.
// - Threads: immutable after parsing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"
#include "kube/api/meta/string_pairs.h"

namespace swell::api {

struct Requirement {
  enum class Op { kIn, kNotIn, kExists, kDoesNotExist, kGt, kLt };
  std::string key;
  Op op;
  std::vector<std::string> values;
};

class LabelSelector {
 public:
  // "a=b,c in (d,e),!f,g": kubectl's -l syntax.
  static Result<LabelSelector> Parse(std::string_view text);
  // {matchLabels, matchExpressions}. A null selector matches nothing, an empty one everything.
  static Result<LabelSelector> FromJson(const json::Value* selector);

  bool Matches(const StringPairs& labels) const;
  bool Matches(const json::Value& labels_object) const;
  bool everything() const { return !nothing_ && requirements_.empty(); }
  std::string ToString() const;
  const std::vector<Requirement>& requirements() const { return requirements_; }

 private:
  std::vector<Requirement> requirements_;
  bool nothing_ = false;
};

// Whether it has all these labels, as the selectors of services and pools ask. One without labels
// asks for nothing.
bool HasLabels(const json::Value& object, const json::Object& wanted);

class FieldSelector {
 public:
  // "spec.nodeName=x,status.phase!=Failed".
  static Result<FieldSelector> Parse(std::string_view text);
  // A field that is absent reads as "".
  bool Matches(const StringPairs& fields) const;
  bool everything() const { return terms_.empty(); }
  struct Term {
    std::string field;
    std::string value;
    bool equal;
  };
  const std::vector<Term>& terms() const { return terms_; }

 private:
  std::vector<Term> terms_;
};

}  // namespace swell::api
