#include "sched/state/device_kinds.h"

#include <array>
#include <string>

#include "base/strings.h"

namespace swell::sched {
namespace {

// Augmenting paths: each unit that is wanted finds a device, moving earlier ones where it must.
class Matching {
 public:
  Matching(const std::vector<DeviceWants>& wants, const DeviceSet& free, const DeviceSet& first)
      : wants_(wants) {
    owner_.fill(kNobody);
    free.ForEach([&](int device) {
      if (first.Has(device)) order_.push_back(device);
    });
    free.ForEach([&](int device) {
      if (!first.Has(device)) order_.push_back(device);
    });
  }

  bool Give(int want) {
    seen_ = DeviceSet{};
    return Find(want);
  }
  void Tell(std::vector<DeviceSet>& out) const {
    out.assign(wants_.size(), DeviceSet{});
    for (size_t device = 0; device < owner_.size(); ++device) {
      if (owner_[device] != kNobody) out[owner_[device]].Add(static_cast<int>(device));
    }
  }

 private:
  static constexpr int kNobody = -1;

  // Tells whether the want has one more; as deep as there are devices at most.
  bool Find(int want) {
    for (const int device : order_) {
      if (owner_[device] != kNobody || !wants_[want].of.Has(device) || seen_.Has(device)) continue;
      owner_[device] = want;
      return true;
    }
    for (const int device : order_) {
      if (!wants_[want].of.Has(device) || seen_.Has(device)) continue;
      seen_.Add(device);
      if (owner_[device] == want || !Find(owner_[device])) continue;
      owner_[device] = want;
      return true;
    }
    return false;
  }

  const std::vector<DeviceWants>& wants_;
  std::vector<int> order_;
  std::array<int, kDevicesMax> owner_{};
  DeviceSet seen_;
};

}  // namespace

std::string DeviceKindText(const DeviceSet& devices) {
  std::vector<std::string> indices;
  devices.ForEach([&indices](int device) { indices.push_back(std::to_string(device)); });
  return Join(indices, ",");
}

DeviceSet ReadDeviceKind(std::string_view text) {
  DeviceSet set;
  for (std::string_view part : Split(text, ',')) {
    const auto index = ParseInt(part);
    if (index && *index >= 0 && *index < kDevicesMax) set.Add(static_cast<int>(*index));
  }
  return set;
}

bool ShareOut(const std::vector<DeviceWants>& wants,
              const DeviceSet& free,
              const DeviceSet& first,
              std::vector<DeviceSet>* out) {
  int64_t sum = 0;
  for (const DeviceWants& want : wants) {
    sum += want.count;
    if (want.count > kDevicesMax || sum > free.Count()) return false;
  }
  Matching matching(wants, free, first);
  for (size_t want = 0; want < wants.size(); ++want) {
    for (int64_t i = 0; i < wants[want].count; ++i) {
      if (!matching.Give(static_cast<int>(want))) return false;
    }
  }
  if (out != nullptr) matching.Tell(*out);
  return true;
}

}  // namespace swell::sched
