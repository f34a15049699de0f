#include "kube/process/files/zip_writer.h"

#include <zlib.h>

namespace swell::process {
namespace {

constexpr uint16_t kVersion = 45;          // the first with ZIP64
constexpr uint16_t kMadeOnUnix = 3 << 8;   // the byte above the version
constexpr uint16_t kSizesFollow = 1 << 3;  // behind the data
constexpr uint32_t kFirstOfJanuary1980 = 0x21 << 16;
constexpr uint32_t kSeeZip64 = 0xFFFF'FFFF;
constexpr uint16_t kSeeZip64Short = 0xFFFF;

// Numbers in the order of bytes that the format has.
class Bytes {
 public:
  Bytes& U16(uint16_t value) { return Put(value, 2); }
  Bytes& U32(uint32_t value) { return Put(value, 4); }
  Bytes& U64(uint64_t value) { return Put(value, 8); }
  Bytes& Text(std::string_view text) {
    bytes_ += text;
    return *this;
  }
  const std::string& text() const { return bytes_; }

 private:
  Bytes& Put(uint64_t value, int count) {
    for (int i = 0; i < count; ++i) bytes_ += static_cast<char>(value >> (8 * i));
    return *this;
  }

  std::string bytes_;
};

}  // namespace

Status ZipWriter::Write(std::string_view bytes) {
  place_ += bytes.size();
  return sink_(bytes);
}

Status ZipWriter::Begin(const std::string& name) {
  entries_.push_back({name, place_});
  Bytes head;
  head.U32(0x0403'4b50).U16(kVersion).U16(kSizesFollow).U16(0).U32(kFirstOfJanuary1980);
  head.U32(0).U32(kSeeZip64).U32(kSeeZip64);
  head.U16(static_cast<uint16_t>(name.size())).U16(20).Text(name);
  head.U16(1).U16(16).U64(0).U64(0);
  return Write(head.text());
}

Status ZipWriter::Add(std::string_view bytes) {
  Entry& entry = entries_.back();
  entry.crc = static_cast<uint32_t>(
      ::crc32_z(entry.crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  entry.size += bytes.size();
  return Write(bytes);
}

Status ZipWriter::End() {
  const Entry& entry = entries_.back();
  return Write(Bytes().U32(0x0807'4b50).U32(entry.crc).U64(entry.size).U64(entry.size).text());
}

Status ZipWriter::Finish() {
  const uint64_t directory = place_;
  for (const Entry& entry : entries_) {
    Bytes head;
    head.U32(0x0201'4b50).U16(kMadeOnUnix | kVersion).U16(kVersion).U16(kSizesFollow).U16(0);
    head.U32(kFirstOfJanuary1980).U32(entry.crc).U32(kSeeZip64).U32(kSeeZip64);
    head.U16(static_cast<uint16_t>(entry.name.size())).U16(28).U16(0).U16(0).U16(0).U32(0);
    head.U32(kSeeZip64).Text(entry.name);
    head.U16(1).U16(24).U64(entry.size).U64(entry.size).U64(entry.place);
    SWELL_RETURN_IF_ERROR(Write(head.text()));
  }
  const uint64_t end = place_, count = entries_.size();
  Bytes tail;
  tail.U32(0x0606'4b50).U64(44).U16(kMadeOnUnix | kVersion).U16(kVersion).U32(0).U32(0);
  tail.U64(count).U64(count).U64(end - directory).U64(directory);
  tail.U32(0x0706'4b50).U32(0).U64(end).U32(1);
  tail.U32(0x0605'4b50).U16(0).U16(0).U16(kSeeZip64Short).U16(kSeeZip64Short);
  tail.U32(kSeeZip64).U32(kSeeZip64).U16(0);
  return Write(tail.text());
}

}  // namespace swell::process
