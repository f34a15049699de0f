#include "sched/state/device_kinds.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
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

constexpr double kPartsOfOne = 1e6;
constexpr std::string_view kOfAGpu = " of a GPU)";
constexpr int kStepsMax = 2000;
constexpr size_t kCountersMax = 4096;  // of a node

// Tries devices in order, those that take least first, so that small parts leave larger ones whole.
// Devices of one want are taken in increasing order, so no set is tried twice.
class CounterSearch {
 public:
  CounterSearch(const std::vector<DeviceWants>& wants,
                const DeviceSet& free,
                const DeviceSet& first,
                const DeviceCounters& counters,
                std::vector<int64_t> left)
      : wants_(wants), left_(std::move(left)), chosen_(wants.size()) {
    for (const DeviceWants& want : wants) {
      std::vector<Way>& ways = ways_.emplace_back();
      free.ForEach([&](int device) {
        if (!want.of.Has(device)) return;
        Way way{device, first.Has(device) ? 0 : 1, 0, counters.UsesOf(device, want.uses)};
        if (!CountersAllow(way.uses, left_)) return;
        for (const auto& [counter, amount] : way.uses) {
          if (counters.own[counter] != 0 || counters.capacity[counter] <= 0) continue;
          way.part = std::max(way.part, static_cast<double>(amount) /
                                            static_cast<double>(counters.capacity[counter]));
        }
        ways.push_back(std::move(way));
      });
      std::stable_sort(ways.begin(), ways.end(), [](const Way& a, const Way& b) {
        return a.turn != b.turn ? a.turn < b.turn : a.part < b.part;
      });
    }
  }

  bool Run(std::vector<DeviceSet>* out) {
    for (size_t want = 0; want < wants_.size(); ++want) {
      if (static_cast<int64_t>(ways_[want].size()) < wants_[want].count) return false;
    }
    if (!Give(0, 0, 0)) return false;
    if (out != nullptr) *out = chosen_;
    return true;
  }

 private:
  struct Way {
    int device = 0;
    int turn = 0;
    double part = 0;  // the largest part that it takes of any counter
    CounterUses uses;
  };

  void Take(const CounterUses& uses, int sign) {
    for (const auto& [counter, amount] : uses) left_[counter] -= sign * amount;
  }

  // At most as deep as there are devices and wants.
  bool Give(size_t want, int64_t given, size_t from) {
    if (want == wants_.size()) return true;
    if (given == wants_[want].count) return Give(want + 1, 0, 0);
    for (size_t i = from; i < ways_[want].size(); ++i) {
      const Way& way = ways_[want][i];
      if (++steps_ > kStepsMax) return false;
      if (taken_.Has(way.device) || !CountersAllow(way.uses, left_)) continue;
      const DeviceSet taken = taken_;
      const DeviceSet chosen = chosen_[want];
      taken_.Add(way.device);
      chosen_[want].Add(way.device);
      Take(way.uses, +1);
      if (Give(want, given + 1, i + 1)) return true;
      Take(way.uses, -1);
      taken_ = taken;
      chosen_[want] = chosen;
    }
    return false;
  }

  const std::vector<DeviceWants>& wants_;
  std::vector<int64_t> left_;
  std::vector<std::vector<Way>> ways_;  // by want
  std::vector<DeviceSet> chosen_;       // by want
  DeviceSet taken_;
  int steps_ = 0;
};

// "5:0=10+1=3;6:0=10"
std::string UsesText(const DeviceUses& all) {
  std::vector<std::string> devices;
  for (const auto& [device, uses] : all) {
    std::vector<std::string> parts;
    for (const auto& [counter, amount] : uses) parts.push_back(StrCat(counter, "=", amount));
    devices.push_back(StrCat(device, ":", Join(parts, "+")));
  }
  return Join(devices, ";");
}

DeviceUses ReadUses(std::string_view text) {
  DeviceUses out;
  for (std::string_view entry : Split(text, ';')) {
    const size_t colon = entry.find(':');
    if (colon == std::string_view::npos) continue;
    const auto device = ParseInt(entry.substr(0, colon));
    if (!device || *device < 0 || *device >= kDevicesMax) continue;
    CounterUses& uses = out[static_cast<int>(*device)];
    for (std::string_view part : Split(entry.substr(colon + 1), '+')) {
      const size_t equals = part.find('=');
      if (equals == std::string_view::npos) continue;
      const auto counter = ParseInt(part.substr(0, equals));
      const auto amount = ParseInt(part.substr(equals + 1));
      if (!counter || !amount || *counter < 0 || *amount < 0) continue;
      if (*counter >= static_cast<int64_t>(kCountersMax)) continue;
      uses.emplace_back(static_cast<int>(*counter), *amount);
    }
  }
  return out;
}

// Drops uses of counters that the node does not have.
void CheckUses(DeviceUses& all, size_t counters) {
  for (auto& [device, uses] : all) {
    std::erase_if(uses,
                  [&](const auto& use) { return static_cast<size_t>(use.first) >= counters; });
  }
}

}  // namespace

std::string GpuPartName(std::string_view kind, int64_t ppm) {
  char part[32];
  std::snprintf(part, sizeof part, "%g", static_cast<double>(ppm) / kPartsOfOne);
  return StrCat(kGpuPartKind, kind, " (", part, kOfAGpu);
}

int64_t GpuPartPpm(std::string_view resource) {
  if (!resource.starts_with(kGpuPartKind) || !resource.ends_with(kOfAGpu)) return 0;
  resource.remove_suffix(kOfAGpu.size());
  resource.remove_prefix(resource.rfind('(') + 1);
  double part = 0;
  const auto read = std::from_chars(resource.data(), resource.data() + resource.size(), part);
  if (read.ec != std::errc() || !(part > 0) || part > 1) return 0;
  return std::llround(part * kPartsOfOne);
}

CounterUses DeviceCounters::UsesOf(int device, const DeviceUses* kind) const {
  CounterUses uses;
  if (kind != nullptr) {
    const auto found = kind->find(device);
    if (found != kind->end()) uses = found->second;
  }
  if (shared.Has(device)) return uses;
  const auto found = of_device.find(device);
  if (found != of_device.end()) uses.insert(uses.end(), found->second.begin(), found->second.end());
  return uses;
}

std::string DeviceCountersText(const DeviceCounters& counters) {
  std::vector<std::string> capacity;
  for (size_t i = 0; i < counters.capacity.size(); ++i) {
    capacity.push_back(StrCat(counters.own[i] != 0 ? "~" : "", counters.capacity[i]));
  }
  return StrCat(Join(capacity, ","), "|", DeviceKindText(counters.shared), "|",
                UsesText(counters.of_device));
}

DeviceCounters ReadDeviceCounters(std::string_view text) {
  DeviceCounters out;
  const std::vector<std::string_view> parts = Split(text, '|');
  for (std::string_view amount : parts.empty() ? parts : Split(parts[0], ',')) {
    if (amount.empty() || out.capacity.size() >= kCountersMax) continue;
    const bool own = amount.front() == '~';
    out.own.push_back(own ? 1 : 0);
    out.capacity.push_back(std::max<int64_t>(0, ParseInt(amount.substr(own ? 1 : 0)).value_or(0)));
  }
  if (parts.size() > 1) out.shared = ReadDeviceKind(parts[1]);
  if (parts.size() > 2) out.of_device = ReadUses(parts[2]);
  CheckUses(out.of_device, out.capacity.size());
  return out;
}

std::string DeviceKindText(const DeviceSet& devices, const DeviceUses& uses) {
  std::vector<std::string> indices;
  devices.ForEach([&indices](int device) { indices.push_back(std::to_string(device)); });
  std::string text = Join(indices, ",");
  if (!uses.empty()) text += StrCat("|", UsesText(uses));
  return text;
}

DeviceUses ReadKindUses(std::string_view text, const DeviceCounters& counters) {
  const size_t bar = text.find('|');
  DeviceUses uses = bar == std::string_view::npos ? DeviceUses() : ReadUses(text.substr(bar + 1));
  CheckUses(uses, counters.capacity.size());
  return uses;
}

DeviceSet ReadDeviceKind(std::string_view text) {
  text = text.substr(0, text.find('|'));
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

bool ShareOut(const std::vector<DeviceWants>& wants,
              const DeviceSet& free,
              const DeviceSet& first,
              const DeviceCounters& counters,
              std::vector<int64_t> left,
              std::vector<DeviceSet>* out) {
  CounterSearch search(wants, free, first, counters, std::move(left));
  return search.Run(out);
}

bool CountersAllow(const CounterUses& uses, const std::vector<int64_t>& left) {
  // A device may take from one counter twice.
  for (size_t i = 0; i < uses.size(); ++i) {
    int64_t sum = 0;
    for (const auto& [counter, amount] : uses) {
      if (counter == uses[i].first) sum += amount;
    }
    if (sum > left[uses[i].first]) return false;
  }
  return true;
}

}  // namespace swell::sched
