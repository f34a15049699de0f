#include "sched/state/terms.h"

#include <algorithm>

#include "sched/state/exclusive_claims.h"

namespace swell::sched {
namespace {

void Put(std::string& out, std::string_view text) {
  out += std::to_string(text.size());
  out += ':';
  out += text;
}

bool MatchesLabels(const Term& term, const LabelSet& set) {
  if (!term.all_namespaces && std::find(term.namespaces.begin(), term.namespaces.end(),
                                        set.name_space) == term.namespaces.end()) {
    return false;
  }
  return MatchesAll(set.labels, term.selector);
}

void Bump(DomainCount& count, int sign, Presence presence) {
  if (presence != Presence::kFutureOnly) count.now += sign;
  if (presence != Presence::kNowOnly) count.future += sign;
}

}  // namespace

TermId TermTable::AcquireTerm(const std::vector<Requirement>& selector,
                              const std::vector<std::string>& namespaces,
                              bool all_namespaces,
                              const std::string& topology_key,
                              bool* created) {
  std::string key;
  Put(key, topology_key);
  key += all_namespaces ? '*' : '-';
  for (const std::string& ns : namespaces) Put(key, ns);
  for (const Requirement& r : selector) {
    Put(key, r.key);
    key += static_cast<char>('0' + static_cast<int>(r.op));
    for (const std::string& value : r.values) Put(key, value);
    key += ';';
  }
  const TermId id = terms_.Acquire(key, *created);
  if (!*created) return id;
  Term& term = terms_[id];
  term.selector = selector;
  term.namespaces = namespaces;
  term.all_namespaces = all_namespaces;
  term.topology_key = topology_key;
  live_.insert(std::lower_bound(live_.begin(), live_.end(), id), id);
  for (LabelSet& set : label_sets_) {
    if (set.refs > 0 && MatchesLabels(term, set)) {
      set.matching.insert(std::lower_bound(set.matching.begin(), set.matching.end(), id), id);
    }
  }
  return id;
}

void TermTable::ReleaseTerm(TermId id) {
  terms_.Release(id, [&](Term&) {
    for (LabelSet& set : label_sets_) std::erase(set.matching, id);
    std::erase(live_, id);
  });
}

LabelSetId TermTable::AcquireLabels(std::string_view name_space, const Labels& labels) {
  std::string key;
  Put(key, name_space);
  for (const auto& [name, value] : labels) Put(key, name), Put(key, value);
  bool created = false;
  const LabelSetId id = label_sets_.Acquire(key, created);
  if (!created) return id;
  LabelSet& set = label_sets_[id];
  set.name_space = name_space;
  set.labels = labels;
  for (TermId term : live_) {
    if (MatchesLabels(terms_[term], set)) set.matching.push_back(term);
  }
  return id;
}

void TermTable::ReleaseLabels(LabelSetId id) {
  label_sets_.Release(id, [](LabelSet&) {});
}

bool TermTable::Matches(TermId term, LabelSetId labels) const {
  const std::vector<TermId>& matching = label_sets_[labels].matching;
  return std::binary_search(matching.begin(), matching.end(), term);
}

int32_t TermTable::Domain(TermId id,
                          NodeId node,
                          uint32_t node_version,
                          const Labels& node_labels) {
  Term& term = terms_[id];
  if (term.node_domains.size() <= static_cast<size_t>(node)) term.node_domains.resize(node + 1);
  Term::NodeDomain& cached = term.node_domains[node];
  if (cached.node_version == node_version) return cached.domain;
  cached.node_version = node_version;
  cached.domain = kNone;
  const auto label = node_labels.find(term.topology_key);
  const bool whole = term.topology_key == kWholeCluster;
  if (whole || label != node_labels.end()) {
    auto [it, added] = term.domains.try_emplace(whole ? std::string() : label->second,
                                                static_cast<int32_t>(term.matching.size()));
    if (added) {
      term.matching.emplace_back();
      term.owners.emplace_back();
    }
    cached.domain = it->second;
  }
  return cached.domain;
}

void TermTable::Count(LabelSetId labels,
                      const Shape& shape,
                      NodeId node,
                      uint32_t node_version,
                      const Labels& node_labels,
                      int sign,
                      Presence presence) {
  for (TermId id : label_sets_[labels].matching) {
    Bump(terms_[id].matching_total, sign, presence);
    const int32_t domain = Domain(id, node, node_version, node_labels);
    if (domain != kNone) Bump(terms_[id].matching[domain], sign, presence);
  }
  for (TermId id : shape.anti_affinity) {
    Bump(terms_[id].owners_total, sign, presence);
    const int32_t domain = Domain(id, node, node_version, node_labels);
    if (domain != kNone) Bump(terms_[id].owners[domain], sign, presence);
  }
}

void TermTable::CountMatch(
    TermId id, NodeId node, uint32_t node_version, const Labels& node_labels, Presence presence) {
  Bump(terms_[id].matching_total, 1, presence);
  const int32_t domain = Domain(id, node, node_version, node_labels);
  if (domain != kNone) Bump(terms_[id].matching[domain], 1, presence);
}

}  // namespace swell::sched
