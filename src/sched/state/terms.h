// Inter-pod terms: "pods like these, per value of that node label", for (anti)affinity and spread.
//
// A term counts the placed pods it matches in every domain (value of its topology key), kept up to
// date placement by placement, so asking whether a node satisfies it is O(1).
//
// - Threads: none.
// - Ownership: TermTable owns terms and label sets; both are reference counted.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sched/state/intern_table.h"
#include "sched/state/shape.h"
#include "sched/state/types.h"

namespace swell::sched {

// Pods by domain: now, and once terminating pods are gone and promised ones have come.
struct DomainCount {
  int32_t now = 0;
  int32_t future = 0;
};

// In which of the two a pod counts: a terminating pod only now, a promised one only in the future.
enum class Presence { kNowOnly, kNowAndFuture, kFutureOnly };

struct Term {
  std::string key;
  int32_t refs = 0;
  std::vector<Requirement> selector;
  std::vector<std::string> namespaces;
  bool all_namespaces = false;
  std::string topology_key;

  std::map<std::string, int32_t, std::less<>> domains;  // value → index into the counts
  std::vector<DomainCount> matching;                    // pods that the selector matches
  std::vector<DomainCount> owners;                      // pods that require to be away from those
  DomainCount matching_total;
  DomainCount owners_total;
  // The domain of each node; index NodeId.
  struct NodeDomain {
    uint32_t node_version = 0;
    int32_t domain = kNone;  // kNone: the node lacks the label
  };
  std::vector<NodeDomain> node_domains;
};

struct LabelSet {
  std::string key;
  int32_t refs = 0;
  std::string name_space;
  Labels labels;
  std::vector<TermId> matching;  // live terms that match, ascending
};

class TermTable {
 public:
  TermId AcquireTerm(const std::vector<Requirement>& selector,
                     const std::vector<std::string>& namespaces,
                     bool all_namespaces,
                     const std::string& topology_key,
                     bool* created);
  void ReleaseTerm(TermId id);
  LabelSetId AcquireLabels(std::string_view name_space, const Labels& labels);
  void ReleaseLabels(LabelSetId id);

  Term& term(TermId id) { return terms_[id]; }
  const Term& term(TermId id) const { return terms_[id]; }
  const LabelSet& labels(LabelSetId id) const { return label_sets_[id]; }
  bool Matches(TermId term, LabelSetId labels) const;
  // Terms that some pod requires to be away from, ascending.
  const std::vector<TermId>& live() const { return live_; }
  bool empty() const { return live_.empty(); }

  // The domain of a node, remembered per node version; kNone where the label is missing.
  int32_t Domain(TermId id, NodeId node, uint32_t node_version, const Labels& node_labels);
  // Adds `sign` pods with these labels and anti-affinity terms to the node's domains.
  void Count(LabelSetId labels,
             const Shape& shape,
             NodeId node,
             uint32_t node_version,
             const Labels& node_labels,
             int sign,
             Presence presence);
  // The same for one term and a pod that matches it: catching up when the term is new.
  void CountMatch(
      TermId id, NodeId node, uint32_t node_version, const Labels& node_labels, Presence presence);

 private:
  InternTable<Term> terms_;
  std::vector<TermId> live_;
  InternTable<LabelSet> label_sets_;
};

}  // namespace swell::sched
