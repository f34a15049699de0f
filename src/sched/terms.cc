#include "sched/terms.h"

#include <algorithm>

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

void Bump(DomainCount& count, int sign, bool now, bool future) {
  if (now) count.now += sign;
  if (future) count.future += sign;
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
  auto it = term_by_key_.find(key);
  *created = it == term_by_key_.end();
  if (!*created) {
    ++terms_[it->second].refs;
    return it->second;
  }
  TermId id;
  if (free_terms_.empty()) {
    id = static_cast<TermId>(terms_.size());
    terms_.emplace_back();
  } else {
    id = free_terms_.back();
    free_terms_.pop_back();
  }
  Term& term = terms_[id];
  term.key = key;
  term.refs = 1;
  term.selector = selector;
  term.namespaces = namespaces;
  term.all_namespaces = all_namespaces;
  term.topology_key = topology_key;
  term_by_key_.emplace(std::move(key), id);
  live_.insert(std::lower_bound(live_.begin(), live_.end(), id), id);
  for (LabelSet& set : label_sets_) {
    if (set.refs > 0 && MatchesLabels(term, set)) {
      set.matching.insert(std::lower_bound(set.matching.begin(), set.matching.end(), id), id);
    }
  }
  return id;
}

void TermTable::ReleaseTerm(TermId id) {
  if (--terms_[id].refs > 0) return;
  for (LabelSet& set : label_sets_) std::erase(set.matching, id);
  std::erase(live_, id);
  term_by_key_.erase(term_by_key_.find(terms_[id].key));
  terms_[id] = Term{};
  free_terms_.push_back(id);
}

LabelSetId TermTable::AcquireLabels(std::string_view name_space, const Labels& labels) {
  std::string key;
  Put(key, name_space);
  for (const auto& [name, value] : labels) Put(key, name), Put(key, value);
  auto it = labels_by_key_.find(key);
  if (it != labels_by_key_.end()) {
    ++label_sets_[it->second].refs;
    return it->second;
  }
  LabelSetId id;
  if (free_label_sets_.empty()) {
    id = static_cast<LabelSetId>(label_sets_.size());
    label_sets_.emplace_back();
  } else {
    id = free_label_sets_.back();
    free_label_sets_.pop_back();
  }
  LabelSet& set = label_sets_[id];
  set.key = key;
  set.refs = 1;
  set.name_space = name_space;
  set.labels = labels;
  for (TermId term : live_) {
    if (MatchesLabels(terms_[term], set)) set.matching.push_back(term);
  }
  labels_by_key_.emplace(std::move(key), id);
  return id;
}

void TermTable::ReleaseLabels(LabelSetId id) {
  if (--label_sets_[id].refs > 0) return;
  labels_by_key_.erase(labels_by_key_.find(label_sets_[id].key));
  label_sets_[id] = LabelSet{};
  free_label_sets_.push_back(id);
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
  auto label = node_labels.find(term.topology_key);
  if (label != node_labels.end()) {
    auto [it, added] =
        term.domains.try_emplace(label->second, static_cast<int32_t>(term.matching.size()));
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
                      bool now,
                      bool future) {
  for (TermId id : label_sets_[labels].matching) {
    Bump(terms_[id].matching_total, sign, now, future);
    const int32_t domain = Domain(id, node, node_version, node_labels);
    if (domain != kNone) Bump(terms_[id].matching[domain], sign, now, future);
  }
  for (TermId id : shape.anti_affinity) {
    Bump(terms_[id].owners_total, sign, now, future);
    const int32_t domain = Domain(id, node, node_version, node_labels);
    if (domain != kNone) Bump(terms_[id].owners[domain], sign, now, future);
  }
}

void TermTable::CountMatch(TermId id,
                           NodeId node,
                           uint32_t node_version,
                           const Labels& node_labels,
                           bool now,
                           bool future) {
  Bump(terms_[id].matching_total, 1, now, future);
  const int32_t domain = Domain(id, node, node_version, node_labels);
  if (domain != kNone) Bump(terms_[id].matching[domain], 1, now, future);
}

}  // namespace swell::sched
