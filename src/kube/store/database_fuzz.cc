// Fuzzes the reading of databases: the input says which bytes of a whole one are damaged, and where
// it is cut off. It is refused with a message, or what is read of it is what was written.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>

#include "base/check.h"
#include "base/file.h"
#include "base/temp_dir.h"
#include "kube/store/store_test_util.h"

namespace {

using namespace swell::store;

constexpr size_t kObjects = 24;

struct Original {
  swell::TempDir dir;
  std::string bytes;
  std::map<Key, EntryPtr> entries;
};

const Original& Written() {
  static const auto* const original = [] {
    auto* made = new Original;
    Store::Snapshot snapshot;
    for (size_t i = 0; i < kObjects; ++i) {
      const Key key{"pods", i % 2 == 0 ? "a" : "b", swell::StrCat("p", i)};
      made->entries[key] = MakeEntry(key, i + 2, std::string(100 + 40 * i, 'x'));
      snapshot.entries.push_back(made->entries[key]);
    }
    snapshot.version = kObjects + 9;
    const std::string path = made->dir.File("whole");
    SWELL_CHECK(WriteDatabase(path, snapshot).ok());
    auto bytes = swell::ReadFile(path);
    SWELL_CHECK(bytes.ok());
    made->bytes = std::move(*bytes);
    return made;
  }();
  return *original;
}

// Each four bytes: where (two), what is changed there, and how far that goes.
std::string Damaged(std::string bytes, const uint8_t* data, size_t size) {
  for (; size >= 4; data += 4, size -= 4) {
    const size_t at = (data[0] * 256U + data[1]) % bytes.size();
    if (data[3] == 255) {
      bytes.resize(std::max<size_t>(at, 1));
    } else {
      for (size_t i = at; i < std::min(bytes.size(), at + 1 + data[3] % 64); ++i) {
        bytes[i] = static_cast<char>(bytes[i] ^ data[2]);
      }
    }
  }
  return bytes;
}

// Not WriteFileAtomically: nobody waits for a disk here.
void Write(const std::string& path, const std::string& bytes) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  SWELL_CHECK(file != nullptr);
  SWELL_CHECK(std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size());
  SWELL_CHECK(std::fclose(file) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Original& original = Written();
  const std::string path = original.dir.File("damaged");
  const std::string bytes = Damaged(original.bytes, data, size);
  Write(path, bytes);
  const auto read = ReadDatabase(path);
  const auto after = swell::ReadFile(path);
  SWELL_CHECK(after.ok() && *after == bytes);  // it is left as it was
  if (!read.ok()) {
    SWELL_CHECK(!read.status().message().empty());
    return 0;
  }
  std::map<Key, EntryPtr> seen;
  for (const EntryPtr& entry : read->entries) {
    SWELL_CHECK(entry->version <= read->version);
    SWELL_CHECK(seen.emplace(entry->key, entry).second);
    const auto written = original.entries.find(entry->key);
    SWELL_CHECK(written != original.entries.end());
    SWELL_CHECK(entry->version == written->second->version);
    SWELL_CHECK(*entry->text == *written->second->text);
    SWELL_CHECK(entry->attributes.labels == written->second->attributes.labels);
  }
  return 0;
}
