#include "scheduling/kept_rooms.h"

#include <algorithm>
#include <utility>

namespace swell::scheduling {
namespace {

// What the controllers of a thousand jobs need to answer a restart of the cluster.
constexpr Duration kAnswerWithin = std::chrono::seconds(10);

}  // namespace

void KeptRooms::Keep(const std::string& pod, std::string_view uid, std::string_view group) {
  Room& room = rooms_[pod];
  room = {std::string(uid), std::string(group), std::make_unique<Timer>(executor_)};
  room.until->Start(kAnswerWithin, [this, pod] {
    rooms_.erase(pod);
    lapsed_(pod);
  });
}

bool KeptRooms::Keeps(std::string_view pod, std::string_view uid) const {
  const auto room = rooms_.find(pod);
  return room != rooms_.end() && room->second.uid == uid;
}

std::string KeptRooms::TakeFor(std::string_view pod, std::string_view group) {
  auto room = rooms_.find(pod);
  if (room == rooms_.end()) {
    room = std::find_if(rooms_.begin(), rooms_.end(),
                        [&](const auto& kept) { return kept.second.group == group; });
  }
  if (room == rooms_.end()) return "";
  return std::move(rooms_.extract(room).key());
}

}  // namespace swell::scheduling
