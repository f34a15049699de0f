#include "sched/victims/node_room.h"

#include <algorithm>

#include "sched/placement/placement.h"

namespace swell::sched {
namespace {

int64_t At(const std::vector<int64_t>& amounts, int resource) {
  return static_cast<size_t>(resource) < amounts.size() ? amounts[resource] : 0;
}

}  // namespace

void NodeRoom::Reset(const State& state, const NodeState& node, const Shape& shape) {
  state_ = &state;
  node_ = &node;
  shape_ = &shape;
  ppm_ = state.DevicePpm(shape, node);
  for (int r = 0; r < kCoreCount; ++r) {
    free_[r] = node.allocatable[r] - node.used[r] + node.releasing[r] - node.promised[r];
  }
  ext_free_.clear();
  for (const auto& [r, wanted] : shape.extended) {
    ext_free_.push_back(At(node.ext_allocatable, r) - At(node.ext_used, r) +
                        At(node.ext_releasing, r) - At(node.ext_promised, r));
  }
  kinds_.clear();
  for (const auto& [r, wanted] : shape.extended) {
    if (state.resource_kinds[r] == 0) continue;
    const DeviceSet* devices = node.KindOf(r);
    kinds_.push_back({devices != nullptr ? *devices : DeviceSet{}, wanted,
                      node.counters != nullptr ? node.counters->KindUses(r) : nullptr});
  }
  counters_.clear();
  if (shape.by_kind && node.counters != nullptr) {
    counters_ = CountersLeft(state, node, Tense::kFuture);
  }
  device_count_ = shape.UsesGpu() ? node.gpu_count : 0;
  if (shape.by_kind) {
    device_count_ = static_cast<int>(std::min<size_t>(node.devices.size(), kDevicesMax));
  }
  for (int i = 0; i < device_count_; ++i) devices_[i] = node.devices[i].FreeInFuture();
}

void NodeRoom::Move(const PodState& pod, int sign) {
  const Shape& shape = state_->shapes[pod.shape];
  for (int r = 0; r < kCoreCount; ++r) free_[r] += sign * shape.core[r];
  for (size_t i = 0; i < shape_->extended.size(); ++i) {
    for (const auto& [r, amount] : shape.extended) {
      if (r == shape_->extended[i].first) ext_free_[i] += sign * amount;
    }
  }
  if (device_count_ == 0) return;
  if (!counters_.empty()) TakeCounters(*node_->counters, shape, pod.devices, -sign, counters_);
  const int64_t ppm = state_->DevicePpm(shape, *node_);
  pod.devices.ForEach([&](int i) {
    if (i < device_count_) devices_[i] += sign * ppm;
  });
}

bool NodeRoom::ShortWithout(const CoreAmounts& amounts) const {
  for (int r = 0; r < kCoreCount; ++r) {
    if (shape_->core[r] > 0 && free_[r] - amounts[r] < shape_->core[r]) return true;
  }
  return false;
}

// How much the devices that come closest lack, over as many as each kind wants. If each one could
// be given but not all of them together, a small amount.
double NodeRoom::MissingKinds() const {
  const DeviceCounters& counters = *node_->counters;
  auto free = [&](int i) {
    return counters.shared.Has(i) || (i < device_count_ && devices_[i] >= kPpm);
  };
  DeviceSet set;
  for (const DeviceWants& kind : kinds_) {
    kind.of.ForEach([&](int i) {
      if (free(i)) set.Add(i);
    });
  }
  if (ShareOut(kinds_, set, {}, counters, counters_, nullptr)) return 0;
  constexpr double kLeast = 0.01;
  double missing = 0;
  for (const DeviceWants& kind : kinds_) {
    std::vector<double> lacks;
    kind.of.ForEach([&](int i) {
      double lack = free(i) ? 0 : 1;
      for (const auto& [counter, amount] : counters.UsesOf(i, kind.uses)) {
        if (amount <= counters_[counter]) continue;
        lack += static_cast<double>(amount - counters_[counter]) / static_cast<double>(amount);
      }
      lacks.push_back(lack);
    });
    std::sort(lacks.begin(), lacks.end());
    lacks.resize(static_cast<size_t>(std::min<int64_t>(kind.count, kDevicesMax)), 1.0);
    for (const double lack : lacks) missing += lack / static_cast<double>(kind.count);
  }
  return std::max(missing, kLeast);
}

double NodeRoom::Missing() const {
  double missing = 0;
  auto add = [&missing](int64_t wanted, int64_t free) {
    if (wanted > 0 && free < wanted) {
      missing += static_cast<double>(wanted - free) / static_cast<double>(wanted);
    }
  };
  for (int r = 0; r < kCoreCount; ++r) add(shape_->core[r], free_[r]);
  for (size_t i = 0; i < ext_free_.size(); ++i) add(shape_->extended[i].second, ext_free_[i]);
  if (!counters_.empty()) missing += MissingKinds();
  for (size_t i = 0; counters_.empty() && i < kinds_.size(); ++i) {
    int64_t free = 0;
    kinds_[i].of.ForEach([&](int d) { free += d < device_count_ && devices_[d] >= kPpm; });
    add(kinds_[i].count, free);
  }
  if (!shape_->UsesGpu()) return missing;
  int64_t fitting = 0;
  double nearly = 0;  // parts of devices count a little, so that sharers add up
  for (int i = 0; i < std::min(device_count_, node_->gpu_count); ++i) {
    const int64_t free = devices_[i];
    if (free >= ppm_) {
      ++fitting;
    } else if (free > 0) {
      nearly = std::max(nearly, static_cast<double>(free) / static_cast<double>(ppm_));
    }
  }
  const int64_t wanted = shape_->Shares() ? shape_->share_devices : shape_->core[kGpu];
  if (fitting < wanted) {
    missing += (static_cast<double>(wanted - fitting) - 0.5 * nearly) / static_cast<double>(wanted);
  }
  return missing;
}

}  // namespace swell::sched
