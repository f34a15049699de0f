#include "sched/state/shape.h"

#include <algorithm>

#include "sched/state/device_kinds.h"

namespace swell::sched {
namespace {

// Lengths before bytes: no two different values have the same text.
void Put(std::string& out, std::string_view text) {
  out += std::to_string(text.size());
  out += ':';
  out += text;
}
void Put(std::string& out, int64_t number) {
  out += std::to_string(number);
  out += ';';
}

void Put(std::string& out, const Requirement& r) {
  Put(out, r.key);
  Put(out, static_cast<int64_t>(r.op));
  Put(out, static_cast<int64_t>(r.values.size()));
  for (const std::string& value : r.values) Put(out, value);
}

void Put(std::string& out, const NodeSelectorTerm& term) {
  Put(out, static_cast<int64_t>(term.expressions.size()));
  for (const Requirement& r : term.expressions) Put(out, r);
  Put(out, static_cast<int64_t>(term.fields.size()));
  for (const Requirement& r : term.fields) Put(out, r);
}

void PutPlacement(std::string& out, const Shape& s) {
  for (const auto& [key, value] : s.node_selector) Put(out, key), Put(out, value);
  out += 'r';
  for (const NodeSelectorTerm& term : s.required) Put(out, term);
  out += 'p';
  for (const PreferredNodeTerm& term : s.preferred) Put(out, term.weight), Put(out, term.term);
  for (const std::vector<NodeSelectorTerm>& terms : s.volumes) {
    out += 'v';
    for (const NodeSelectorTerm& term : terms) Put(out, term);
  }
  out += 't';
  for (const Toleration& t : s.tolerations) {
    Put(out, t.key);
    Put(out, int64_t{t.exists});
    Put(out, t.value);
    Put(out, t.effect ? static_cast<int64_t>(*t.effect) : int64_t{-1});
  }
  out += 'h';
  for (const HostPort& p : s.ports) Put(out, p.protocol), Put(out, p.host_ip), Put(out, p.port);
}

}  // namespace

std::string ShapeKey(const Shape& s) {
  std::string out;
  for (int64_t amount : s.core) Put(out, amount);
  for (const auto& [resource, amount] : s.extended) Put(out, int64_t{resource}), Put(out, amount);
  out += 'g';
  Put(out, s.share_ppm);
  Put(out, s.share_mib);
  Put(out, int64_t{s.share_devices});
  PutPlacement(out, s);
  out += 'a';
  for (TermId term : s.affinity) Put(out, int64_t{term});
  out += 'n';
  for (TermId term : s.anti_affinity) Put(out, int64_t{term});
  out += 'w';
  for (const WeightedTerm& t : s.preferred_terms) Put(out, int64_t{t.term}), Put(out, t.weight);
  out += 's';
  for (const SpreadTerm& t : s.spread) {
    Put(out, int64_t{t.term});
    Put(out, t.max_skew);
    Put(out, int64_t{t.required});
    Put(out, t.min_domains);
    Put(out, int64_t{t.honors_affinity});
    Put(out, int64_t{t.honors_taints});
  }
  return out;
}

bool MatchesRequirement(const Labels& labels, const Requirement& r) {
  auto it = labels.find(r.key);
  const bool has = it != labels.end();
  switch (r.op) {
    case SelectorOp::kIn:
      return has && std::find(r.values.begin(), r.values.end(), it->second) != r.values.end();
    case SelectorOp::kNotIn:
      return !has || std::find(r.values.begin(), r.values.end(), it->second) == r.values.end();
    case SelectorOp::kExists:
      return has;
    case SelectorOp::kDoesNotExist:
      return !has;
    case SelectorOp::kGt:
    case SelectorOp::kLt: {
      if (!has || r.values.size() != 1) return false;
      auto left = ParseInt(it->second);
      auto right = ParseInt(r.values[0]);
      if (!left || !right) return false;
      return r.op == SelectorOp::kGt ? *left > *right : *left < *right;
    }
  }
  return false;
}

bool MatchesAll(const Labels& labels, const std::vector<Requirement>& requirements) {
  return std::all_of(requirements.begin(), requirements.end(),
                     [&](const Requirement& r) { return MatchesRequirement(labels, r); });
}

bool MatchesTerm(const NodeInfo& node, const NodeSelectorTerm& term) {
  if (term.expressions.empty() && term.fields.empty()) return false;  // as Kubernetes: matches none
  if (!MatchesAll(node.labels, term.expressions)) return false;
  const Labels fields{{"metadata.name", node.name}};
  return MatchesAll(fields, term.fields);
}

bool Tolerates(const std::vector<Toleration>& tolerations, const Taint& taint) {
  return std::any_of(tolerations.begin(), tolerations.end(), [&](const Toleration& t) {
    if (t.effect && *t.effect != taint.effect) return false;
    if (t.key.empty()) return t.exists;
    return t.key == taint.key && (t.exists || t.value == taint.value);
  });
}

const Taint* UntoleratedTaint(const NodeInfo& node, const Shape& shape) {
  for (const Taint& taint : node.taints) {
    if (taint.effect == TaintEffect::kPreferNoSchedule) continue;
    if (!Tolerates(shape.tolerations, taint)) return &taint;
  }
  return nullptr;
}

Shape::Verdict CheckNode(const NodeInfo& node, const Shape& shape) {
  Shape::Verdict verdict;
  // Weights as kube-scheduler's defaults: a soft taint (3 × 100) outweighs one affinity term (2×).
  for (const PreferredNodeTerm& p : shape.preferred) {
    if (MatchesTerm(node, p.term)) verdict.liking += 2 * std::clamp(p.weight, 1, 100);
  }
  for (const Taint& taint : node.taints) {
    if (taint.effect == TaintEffect::kPreferNoSchedule && !Tolerates(shape.tolerations, taint)) {
      verdict.liking -= 300;
    }
  }
  auto any_of = [&node](const std::vector<NodeSelectorTerm>& terms) {
    return std::any_of(terms.begin(), terms.end(),
                       [&](const NodeSelectorTerm& term) { return MatchesTerm(node, term); });
  };
  auto selected = [&] {
    for (const auto& [key, value] : shape.node_selector) {
      auto it = node.labels.find(key);
      if (it == node.labels.end() || it->second != value) return false;
    }
    return shape.required.empty() || any_of(shape.required);
  };
  const Taint cordon{"node.kubernetes.io/unschedulable", "", TaintEffect::kNoSchedule};
  verdict.selected = selected();
  verdict.tolerated = UntoleratedTaint(node, shape) == nullptr;
  if (!node.ready) {
    verdict.unfit = Unfit::kNotReady;
  } else if (node.unschedulable && !Tolerates(shape.tolerations, cordon)) {
    verdict.unfit = Unfit::kUnschedulable;
  } else if (!verdict.tolerated) {
    verdict.unfit = Unfit::kTaint;
  } else if (!verdict.selected) {
    verdict.unfit = Unfit::kSelector;
  } else if (!std::all_of(shape.volumes.begin(), shape.volumes.end(), any_of)) {
    verdict.unfit = Unfit::kVolume;
  } else if (shape.Shares() && node.gpus_sliced) {
    verdict.unfit = Unfit::kSliced;
  } else if (shape.share_mib > 0 && node.gpu_memory_mib <= 0) {
    verdict.unfit = Unfit::kGpuMemory;
  } else if ((shape.Shares() || shape.core[kGpu] > shape.gpus_by_kind) &&
             node.labels.contains(std::string(kGpusByKind))) {
    verdict.unfit = Unfit::kByKind;
  }
  return verdict;
}

ShapeId ShapeTable::Acquire(Shape&& shape) {
  bool created = false;
  const ShapeId id = shapes_.Acquire(ShapeKey(shape), created);
  if (!created) return id;
  shape.key = shapes_[id].key;
  shape.refs = 1;
  shapes_[id] = std::move(shape);
  return id;
}

}  // namespace swell::sched
