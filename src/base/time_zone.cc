#include "base/time_zone.h"

#include <algorithm>
#include <array>

#include "base/file.h"
#include "base/strings.h"

namespace swell {
namespace {

constexpr std::string_view kFolder = "/usr/share/zoneinfo/";
constexpr size_t kHeaderBytes = 44;
constexpr size_t kFileBytesMax = 1 << 20;

int64_t BigEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (char c : bytes) value = value << 8 | static_cast<unsigned char>(c);
  // The first of four bytes has the sign.
  return bytes.size() == 4 ? static_cast<int32_t>(static_cast<uint32_t>(value))
                           : static_cast<int64_t>(value);
}

// How many of each a block of a zone file has.
struct Counts {
  std::array<int64_t, 6> all{};  // isut, isstd, leap, time, type, char
  int64_t times() const { return all[3]; }
  int64_t types() const { return all[4]; }
  int64_t Bytes(int64_t time_bytes) const {
    return times() * (time_bytes + 1) + types() * 6 + all[5] + all[2] * (time_bytes + 4) + all[1] +
           all[0];
  }
};

Result<Counts> ReadCounts(std::string_view bytes) {
  const Status wrong(Code::kInvalid, "no zone file");
  if (bytes.size() < kHeaderBytes || !bytes.starts_with("TZif")) return wrong;
  Counts counts;
  for (size_t i = 0; i < counts.all.size(); ++i) {
    counts.all[i] = BigEndian(bytes.substr(20 + 4 * i, 4));
    if (counts.all[i] < 0 || counts.all[i] > static_cast<int64_t>(kFileBytesMax)) return wrong;
  }
  return counts;
}

bool IsZoneName(std::string_view name) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-/";
  return !name.empty() && name.size() <= 100 && name.front() != '/' &&
         name.find_first_not_of(kAllowed) == std::string_view::npos;
}

}  // namespace

Result<TimeZone> TimeZone::Load(std::string_view name) {
  const Status unknown(Code::kNotFound, StrCat("unknown time zone ", name));
  if (name == "UTC" || name == "Etc/UTC") return TimeZone();
  if (!IsZoneName(name)) return unknown;
  const auto bytes = ReadFile(StrCat(kFolder, name), kFileBytesMax);
  if (!bytes.ok()) return unknown;
  auto zone = FromFile(*bytes);
  return zone.ok() ? std::move(zone) : unknown;
}

Result<TimeZone> TimeZone::FromFile(std::string_view bytes) {
  const Status wrong(Code::kInvalid, "no zone file");
  SWELL_ASSIGN_OR_RETURN(Counts counts, ReadCounts(bytes));
  int64_t time_bytes = 4;
  if (bytes[4] >= '2') {  // the same once more, with times of eight bytes
    const size_t old = kHeaderBytes + static_cast<size_t>(counts.Bytes(4));
    if (bytes.size() < old) return wrong;
    bytes.remove_prefix(old);
    SWELL_ASSIGN_OR_RETURN(counts, ReadCounts(bytes));
    time_bytes = 8;
  }
  bytes.remove_prefix(kHeaderBytes);
  if (counts.types() == 0 || static_cast<int64_t>(bytes.size()) < counts.Bytes(time_bytes)) {
    return wrong;
  }
  const auto width = static_cast<size_t>(time_bytes);
  const auto times = static_cast<size_t>(counts.times());
  const std::string_view kinds = bytes.substr(times * width, times);
  const std::string_view types = bytes.substr(times * (width + 1));
  const auto offset_of = [&types](size_t type) { return BigEndian(types.substr(type * 6, 4)); };
  TimeZone zone;
  zone.first_ = offset_of(0);
  for (size_t i = 0; i < times; ++i) {
    const auto type = static_cast<unsigned char>(kinds[i]);
    if (type >= counts.types()) return wrong;
    zone.changes_.push_back({BigEndian(bytes.substr(i * width, width)), offset_of(type)});
  }
  return zone;
}

int64_t TimeZone::OffsetAt(int64_t unix_seconds) const {
  const auto after =
      std::upper_bound(changes_.begin(), changes_.end(), unix_seconds,
                       [](int64_t time, const Change& change) { return time < change.at; });
  return after == changes_.begin() ? first_ : std::prev(after)->offset;
}

}  // namespace swell
