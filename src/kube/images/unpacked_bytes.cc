#include "kube/images/unpacked_bytes.h"

#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/strings.h"
#include "kube/images/archive_library.h"
#include "kube/images/shared_library.h"

namespace swell::images {
namespace {

constexpr size_t kInputBytes = 256 << 10;
constexpr size_t kPieceBytes = 512 << 10;
constexpr size_t kPieces = 8;

// ---- igzip ----

struct Igzip {
  decltype(isal_inflate_init)* init;
  decltype(isal_inflate_reset)* reset;
  decltype(isal_inflate)* inflate;
};

Result<Igzip> LoadIgzip() {
  SWELL_ASSIGN_OR_RETURN(SharedLibrary library, SharedLibrary::Open("libisal.so.2", "libisal2"));
  Igzip out;
  library.Find("isal_inflate_init", out.init);
  library.Find("isal_inflate_reset", out.reset);
  library.Find("isal_inflate", out.inflate);
  SWELL_RETURN_IF_ERROR(library.Check());
  return out;
}

const Result<Igzip>& LoadedIgzip() {
  static const Result<Igzip> igzip = LoadIgzip();
  return igzip;
}

bool BeginsAsGzip(const uint8_t* bytes, size_t size) {
  return size >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

Status GzipError(int code) {
  const char* what = code == ISAL_INVALID_WRAPPER      ? "its header is damaged"
                     : code == ISAL_UNSUPPORTED_METHOD ? "its method of packing is unknown"
                     : code == ISAL_INCORRECT_CHECKSUM ? "its checksum is wrong"
                                                       : "its content is damaged";
  return Status(Code::kInvalid, StrCat("gzip: ", what));
}

// The members of a gzip file one after the other, as gzip reads them. What follows the last one is
// left alone.
class IgzipDecoder final : public Decoder {
 public:
  IgzipDecoder(const Igzip& lib, PackedInput& input, std::string first)
      : lib_(lib),
        input_(input),
        buffer_(std::move(first)),
        state_(std::make_unique<inflate_state>()) {
    lib_.init(state_.get());
    state_->crc_flag = ISAL_GZIP;
    state_->next_in = Bytes();
    state_->avail_in = static_cast<uint32_t>(buffer_.size());
    buffer_.resize(std::max(buffer_.size(), kInputBytes));
  }

  Result<size_t> Read(char* to, size_t size) override {
    state_->next_out = reinterpret_cast<uint8_t*>(to);
    state_->avail_out = static_cast<uint32_t>(size);
    while (state_->avail_out == size && !at_end_) {
      if (state_->block_state == ISAL_BLOCK_FINISH) {
        SWELL_RETURN_IF_ERROR(NextMember());
        continue;
      }
      if (state_->avail_in == 0) SWELL_RETURN_IF_ERROR(Fill());
      const int code = lib_.inflate(state_.get());
      if (code < 0) return GzipError(code);
      // The library keeps some output to itself until it is asked again.
      const bool stuck = state_->avail_out == size && state_->avail_in == 0 && input_ended_ &&
                         state_->block_state != ISAL_BLOCK_FINISH;
      if (stuck) return Status(Code::kInvalid, "gzip: it ends too early");
    }
    return size - state_->avail_out;
  }

 private:
  uint8_t* Bytes() { return reinterpret_cast<uint8_t*>(buffer_.data()); }

  // Moves what is left to the buffer's front and reads behind it.
  Status Fill() {
    std::memmove(buffer_.data(), state_->next_in, state_->avail_in);
    state_->next_in = Bytes();
    SWELL_ASSIGN_OR_RETURN(const size_t n, input_.Read(buffer_.data() + state_->avail_in,
                                                       buffer_.size() - state_->avail_in));
    state_->avail_in += static_cast<uint32_t>(n);
    input_ended_ = n == 0;
    return Status::Ok();
  }

  Status NextMember() {
    while (state_->avail_in < 2 && !input_ended_) SWELL_RETURN_IF_ERROR(Fill());
    at_end_ = !BeginsAsGzip(state_->next_in, state_->avail_in);
    if (!at_end_) lib_.reset(state_.get());
    return Status::Ok();
  }

  const Igzip& lib_;
  PackedInput& input_;
  std::string buffer_;
  std::unique_ptr<inflate_state> state_;  // 90 KB
  bool input_ended_ = false;
  bool at_end_ = false;
};

// ---- libarchive ----

class ArchiveDecoder final : public Decoder {
 public:
  ArchiveDecoder(const ArchiveLibrary& lib, PackedInput& input, std::string first)
      : lib_(lib),
        input_(input),
        first_(std::move(first)),
        buffer_(kInputBytes),
        reader_(lib.read_new()) {}
  ~ArchiveDecoder() override { lib_.read_free(reader_); }
  ArchiveDecoder(const ArchiveDecoder&) = delete;
  ArchiveDecoder& operator=(const ArchiveDecoder&) = delete;

  Status Open() {
    if (reader_ == nullptr) return Status(Code::kInternal, "libarchive has no memory");
    lib_.support_gzip(reader_);
    lib_.support_zstd(reader_);
    lib_.support_raw(reader_);
    lib_.support_empty(reader_);
    if (lib_.open(reader_, this, nullptr, &ArchiveDecoder::OnRead, nullptr) != ARCHIVE_OK) {
      return Error();
    }
    archive_entry* entry = nullptr;
    const int code = lib_.next_header(reader_, &entry);
    at_end_ = code == ARCHIVE_EOF;
    return code == ARCHIVE_OK || code == ARCHIVE_EOF ? Status::Ok() : Error();
  }

  Result<size_t> Read(char* to, size_t size) override {
    if (at_end_) return size_t{0};
    const la_ssize_t n = lib_.data(reader_, to, size);
    if (n < 0) return Error();
    at_end_ = n == 0;
    return static_cast<size_t>(n);
  }

 private:
  Status Error() const { return input_failed_.ok() ? lib_.Error(reader_) : input_failed_; }

  static la_ssize_t OnRead(archive*, void* user, const void** data) {
    auto& self = *static_cast<ArchiveDecoder*>(user);
    if (!self.first_.empty()) {
      self.buffer_.assign(self.first_.begin(), self.first_.end());
      const size_t size = std::exchange(self.first_, {}).size();
      *data = self.buffer_.data();
      return static_cast<la_ssize_t>(size);
    }
    self.buffer_.resize(kInputBytes);
    auto n = self.input_.Read(self.buffer_.data(), self.buffer_.size());
    if (!n.ok()) self.input_failed_ = n.status();
    *data = self.buffer_.data();
    return n.ok() ? static_cast<la_ssize_t>(*n) : -1;
  }

  const ArchiveLibrary& lib_;
  PackedInput& input_;
  std::string first_;
  std::vector<char> buffer_;
  archive* reader_;
  bool at_end_ = false;
  Status input_failed_;
};

}  // namespace

Result<std::unique_ptr<Decoder>> OpenDecoder(PackedInput& input, bool without_igzip) {
  std::string first(kInputBytes, '\0');
  size_t size = 0;
  while (size < 2) {
    SWELL_ASSIGN_OR_RETURN(const size_t n, input.Read(first.data() + size, first.size() - size));
    if (n == 0) break;
    size += n;
  }
  first.resize(size);
  const bool gzip = BeginsAsGzip(reinterpret_cast<const uint8_t*>(first.data()), size);
  if (gzip && !without_igzip && LoadedIgzip().ok()) {
    return std::unique_ptr<Decoder>(
        std::make_unique<IgzipDecoder>(*LoadedIgzip(), input, std::move(first)));
  }
  const Result<ArchiveLibrary>& loaded = LoadedArchive();
  if (!loaded.ok()) return loaded.status();
  auto out = std::make_unique<ArchiveDecoder>(*loaded, input, std::move(first));
  SWELL_RETURN_IF_ERROR(out->Open());
  return std::unique_ptr<Decoder>(std::move(out));
}

UnpackedBytes::UnpackedBytes(PackedInput& input) {
  for (size_t i = 0; i < kPieces; ++i) free_.push_back({std::vector<char>(kPieceBytes), 0});
  thread_ = std::thread([this, &input] { Run(input); });
}

UnpackedBytes::~UnpackedBytes() {
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void UnpackedBytes::Run(PackedInput& input) {
  Status done = UnpackAll(input);
  MutexLock lock(mutex_);
  failed_ = std::move(done);
  ended_ = true;
  changed_.NotifyAll();
}

Status UnpackedBytes::UnpackAll(PackedInput& input) {
  SWELL_ASSIGN_OR_RETURN(const std::unique_ptr<Decoder> decoder, OpenDecoder(input));
  Piece piece;
  while (TakeFree(piece)) {
    SWELL_ASSIGN_OR_RETURN(piece.size, decoder->Read(piece.bytes.data(), piece.bytes.size()));
    if (piece.size == 0) break;
    hash_.Add({piece.bytes.data(), piece.size});
    PutFull(std::move(piece));
  }
  return Status::Ok();
}

bool UnpackedBytes::TakeFree(Piece& piece) {
  MutexLock lock(mutex_);
  while (free_.empty() && !stopped_) changed_.Wait(mutex_);
  if (stopped_) return false;
  piece = std::move(free_.front());
  free_.pop_front();
  return true;
}

void UnpackedBytes::PutFull(Piece piece) {
  MutexLock lock(mutex_);
  full_.push_back(std::move(piece));
  changed_.NotifyAll();
}

Result<std::string_view> UnpackedBytes::Next() {
  MutexLock lock(mutex_);
  if (!current_.bytes.empty()) free_.push_back(std::move(current_));
  current_ = Piece();
  changed_.NotifyAll();
  while (full_.empty() && !ended_) changed_.Wait(mutex_);
  if (!full_.empty()) {
    current_ = std::move(full_.front());
    full_.pop_front();
  } else if (!failed_.ok()) {
    return failed_;
  }
  return std::string_view(current_.bytes.data(), current_.size);
}

std::string UnpackedBytes::Digest() { return StrCat("sha256:", hash_.Hex()); }

}  // namespace swell::images
