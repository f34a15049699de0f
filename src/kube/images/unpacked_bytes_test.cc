#include "kube/images/unpacked_bytes.h"

#include <zlib.h>

#include <thread>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"
#include "base/temp_dir.h"

namespace swell::images {
namespace {

std::string Gzip(const std::string& text) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

// Larger than all pieces together, and not all alike.
std::string Text() {
  std::string out;
  for (int i = 0; out.size() < 6 << 20; ++i)
    out += StrCat("line ", int64_t{i} * 7919 % 10007, "\n");
  return out;
}

// At most so many bytes at a time.
class Trickle final : public PackedInput {
 public:
  Trickle(std::string bytes, size_t step) : bytes_(std::move(bytes)), step_(step) {}
  Result<size_t> Read(char* to, size_t size) override {
    const size_t n = std::min({size, step_, bytes_.size() - at_});
    bytes_.copy(to, n, at_);
    at_ += n;
    return n;
  }

 private:
  std::string bytes_;
  size_t step_;
  size_t at_ = 0;
};

Result<std::string> ReadAll(UnpackedBytes& bytes) {
  std::string out;
  while (true) {
    SWELL_ASSIGN_OR_RETURN(const std::string_view piece, bytes.Next());
    if (piece.empty()) return out;
    out += piece;
  }
}

Result<std::string> Unpack(const std::string& packed, size_t step = 1 << 20) {
  Trickle input(packed, step);
  UnpackedBytes bytes(input);
  return ReadAll(bytes);
}

TEST(UnpackedBytesTest, GzipInPiecesOfAnySize) {
  const std::string text = Text();
  const std::string packed = Gzip(text);
  for (const size_t step : {size_t{997}, size_t{65536}, packed.size()}) {
    EXPECT_TRUE(Unpack(packed, step).value() == text) << step;
  }
  EXPECT_EQ(Unpack(Gzip("a"), 1).value(), "a");
  EXPECT_EQ(Unpack(Gzip("")).value(), "");
  EXPECT_EQ(Unpack("").value(), "");
  EXPECT_EQ(Unpack("plain").value(), "plain");
  EXPECT_EQ(Unpack("p").value(), "p");
}

TEST(UnpackedBytesTest, MembersOfGzipFollowEachOther) {
  const std::string two = Gzip("one ") + Gzip("") + Gzip("two");
  EXPECT_EQ(Unpack(two).value(), "one two");
  EXPECT_EQ(Unpack(two, 1).value(), "one two");
  // What follows is not gzip's.
  EXPECT_EQ(Unpack(two + std::string(600, '\0')).value(), "one two");
}

TEST(UnpackedBytesTest, DamagedGzipIsAnErrorInWords) {
  const std::string good = Gzip(Text());
  for (const size_t size : {size_t{5}, size_t{30}, good.size() / 2, good.size() - 3}) {
    auto cut = Unpack(good.substr(0, size));
    ASSERT_FALSE(cut.ok()) << size;
    EXPECT_EQ(cut.status().code(), Code::kInvalid);
  }
  std::string wrong = good;
  wrong[good.size() - 6] ^= 1;  // of the checksum
  auto unpacked = Unpack(wrong);
  ASSERT_FALSE(unpacked.ok());
  for (size_t at = 12; at < good.size(); at += good.size() / 20) {
    wrong = good;
    wrong[at] ^= 0x55;
    EXPECT_FALSE(Unpack(wrong).ok()) << at;
  }
}

TEST(UnpackedBytesTest, LibarchiveUnpacksTheSame) {
  const std::string text = Text();
  Trickle input(Gzip(text), 5000);
  auto decoder = OpenDecoder(input, /*without_igzip=*/true);
  ASSERT_TRUE(decoder.ok()) << decoder.status().message();
  std::string out, buffer(100'000, '\0');
  while (true) {
    auto n = (*decoder)->Read(buffer.data(), buffer.size());
    ASSERT_TRUE(n.ok()) << n.status().message();
    if (*n == 0) break;
    out.append(buffer, 0, *n);
  }
  EXPECT_TRUE(out == text);
}

TEST(UnpackedBytesTest, AFileThatGrowsIsReadAsItComes) {
  TempDir dir;
  const std::string text = Text(), packed = Gzip(text), path = dir.File("part");
  const size_t half = packed.size() / 2;
  ASSERT_TRUE(WriteFileAtomically(path, packed).ok());
  auto growing = GrowingFile::Open(path);
  ASSERT_TRUE(growing.ok());
  (*growing)->Grew(static_cast<int64_t>(half));
  UnpackedBytes bytes(**growing);
  // The first piece is there before the rest is.
  auto first = bytes.Next();
  ASSERT_TRUE(first.ok()) << first.status().message();
  std::string out(*first);
  EXPECT_FALSE(out.empty());
  (*growing)->Grew(static_cast<int64_t>(packed.size()));
  (*growing)->End(/*whole=*/true);
  out += ReadAll(bytes).value();
  EXPECT_TRUE(out == text);
}

TEST(UnpackedBytesTest, AFileThatDoesNotComeWholeIsAnError) {
  TempDir dir;
  const std::string packed = Gzip(Text()), path = dir.File("part");
  ASSERT_TRUE(WriteFileAtomically(path, packed).ok());
  for (const bool again : {false, true}) {
    auto growing = GrowingFile::Open(path);
    ASSERT_TRUE(growing.ok());
    (*growing)->Grew(1000);
    UnpackedBytes bytes(**growing);
    if (again) (*growing)->Grew(0);
    (*growing)->End(/*whole=*/again);
    auto read = ReadAll(bytes);
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.status().code(), Code::kUnavailable) << read.status().message();
    EXPECT_EQ((*growing)->restarted(), again);
  }
}

TEST(UnpackedBytesTest, WhoReadsNoMoreEndsIt) {
  Trickle input(Gzip(Text()), 1 << 20);
  UnpackedBytes bytes(input);
  EXPECT_TRUE(bytes.Next().ok());
}

}  // namespace
}  // namespace swell::images
