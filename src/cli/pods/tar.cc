// A header is 512 bytes: name 100, mode 8, uid 8, gid 8, size 12, mtime 12, checksum 8, type 1,
// link 100, magic 8, user 32, group 32, devices 16, prefix 155. Numbers are octal text. Bodies are
// padded to 512; two blocks of zeros end the archive.
#include "cli/pods/tar.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "base/strings.h"

namespace swell::cli {
namespace {

constexpr size_t kBlock = 512;
constexpr size_t kPiece = 256 << 10;
constexpr size_t kTextMax = 1 << 20;
constexpr size_t kNameMax = 100;

void PutOctal(std::string& header, size_t at, size_t width, uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "%0*llo", static_cast<int>(width - 1),
                static_cast<unsigned long long>(value));
  header.replace(at, width - 1, text, width - 1);
}

std::string Header(char type,
                   std::string_view name,
                   std::string_view link,
                   const struct stat& info,
                   uint64_t size) {
  std::string header(kBlock, '\0');
  header.replace(0, std::min(name.size(), kNameMax), name.substr(0, kNameMax));
  PutOctal(header, 100, 8, info.st_mode & 07777);
  PutOctal(header, 108, 8, 0);
  PutOctal(header, 116, 8, 0);
  PutOctal(header, 136, 12, static_cast<uint64_t>(std::max<int64_t>(info.st_mtime, 0)));
  if (size < (uint64_t{1} << 33)) {
    PutOctal(header, 124, 12, size);
  } else {
    // GNU's form for what eleven octal digits cannot say.
    header[124] = static_cast<char>(0x80);
    for (int i = 0; i < 8; ++i) header[128 + i] = static_cast<char>(size >> (8 * (7 - i)));
  }
  header[156] = type;
  header.replace(157, std::min(link.size(), kNameMax), link.substr(0, kNameMax));
  header.replace(257, 8, "ustar  \0", 8);
  header.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (char c : header) sum += static_cast<unsigned char>(c);
  char text[8];
  std::snprintf(text, sizeof text, "%06o", sum & 0777777);
  header.replace(148, 7, text, 7);
  return header;
}

void Pad(std::string& out, uint64_t size) { out.append((kBlock - size % kBlock) % kBlock, '\0'); }

// GNU's way: an entry of its own that says the next one's name.
void PutLong(std::string& out, char type, const std::string& text) {
  struct stat none = {};
  out += Header(type, "././@LongLink", "", none, text.size() + 1);
  out += text;
  out += '\0';
  Pad(out, text.size() + 1);
}

std::string Field(std::string_view block, size_t at, size_t width) {
  const std::string_view field = block.substr(at, width);
  return std::string(field.substr(0, field.find('\0')));
}

uint64_t Octal(std::string_view block, size_t at, size_t width) {
  uint64_t value = 0;
  if ((static_cast<unsigned char>(block[at]) & 0x80) != 0) {
    for (char c : block.substr(at + width - 8, 8)) value = value << 8 | static_cast<uint8_t>(c);
    return value;
  }
  for (char c : block.substr(at, width)) {
    if (c >= '0' && c <= '7') value = value * 8 + static_cast<uint64_t>(c - '0');
  }
  return value;
}

std::string Clean(std::string_view path) {
  return std::filesystem::path(path).lexically_normal().generic_string();
}

bool Leaves(const std::string& clean) {
  return clean == ".." || clean.starts_with("../") || clean.starts_with("/");
}

}  // namespace

TarWriter::TarWriter(std::string path, std::string name) {
  left_.push_back({std::move(path), std::move(name)});
}

TarWriter::~TarWriter() {
  if (fd_ >= 0) ::close(fd_);
}

Status TarWriter::Begin(const Entry& entry, std::string* out) {
  struct stat info;
  if (::lstat(entry.path.c_str(), &info) != 0) return ErrnoStatus(errno, entry.path);
  std::string name = entry.name, link;
  char type = '0';
  uint64_t size = 0;
  if (S_ISDIR(info.st_mode)) {
    type = '5';
    name += "/";
    SWELL_ASSIGN_OR_RETURN(std::vector<std::string> children, ListDir(entry.path));
    for (auto it = children.rbegin(); it != children.rend(); ++it) {
      left_.push_back({entry.path + "/" + *it, entry.name + "/" + *it});
    }
  } else if (S_ISLNK(info.st_mode)) {
    type = '2';
    std::error_code failed;
    link = std::filesystem::read_symlink(entry.path, failed).string();
    if (failed) return Status(Code::kInternal, StrCat("read link ", entry.path));
  } else if (S_ISREG(info.st_mode)) {
    size = static_cast<uint64_t>(info.st_size);
    fd_ = ::open(entry.path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ < 0) return ErrnoStatus(errno, "open " + entry.path);
    file_path_ = entry.path;
    file_left_ = size;
    padding_ = (kBlock - size % kBlock) % kBlock;
  } else {
    return Status::Ok();  // sockets and the like have no bytes to copy
  }
  if (link.size() > kNameMax) PutLong(*out, 'K', link);
  if (name.size() > kNameMax) PutLong(*out, 'L', name);
  *out += Header(type, name, link, info, size);
  return Status::Ok();
}

Result<std::string> TarWriter::Next() {
  std::string out;
  while (out.size() < kPiece && !ended_) {
    if (fd_ >= 0) {
      const size_t at = out.size();
      const size_t want = static_cast<size_t>(std::min<uint64_t>(kPiece, file_left_));
      out.resize(at + want);
      const ssize_t n = want == 0 ? 0 : ::read(fd_, out.data() + at, want);
      if (n < 0) return ErrnoStatus(errno, "read " + file_path_);
      // A file that shrinks while it is read is filled up: its size has been said.
      const size_t got = n == 0 ? want : static_cast<size_t>(n);
      out.resize(at + got);
      file_left_ -= got;
      if (file_left_ > 0) continue;
      out.append(padding_, '\0');
      ::close(std::exchange(fd_, -1));
    } else if (left_.empty()) {
      out.append(2 * kBlock, '\0');
      ended_ = true;
    } else {
      const Entry entry = std::move(left_.back());
      left_.pop_back();
      SWELL_RETURN_IF_ERROR(Begin(entry, &out));
    }
  }
  return out;
}

TarReader::TarReader(const std::string& prefix,
                     std::string destination,
                     std::function<void(std::string_view)> warn)
    : prefix_(Clean(prefix)), destination_(std::move(destination)), warn_(std::move(warn)) {}

TarReader::~TarReader() {
  if (fd_ >= 0) ::close(fd_);
}

Status TarReader::Feed(std::string_view bytes) {
  while (!bytes.empty() && !at_end_) {
    if (body_left_ > 0) {
      const auto size = static_cast<size_t>(std::min<uint64_t>(body_left_, bytes.size()));
      SWELL_RETURN_IF_ERROR(TakeBody(bytes.substr(0, size)));
      bytes.remove_prefix(size);
      body_left_ -= size;
      if (body_left_ == 0) SWELL_RETURN_IF_ERROR(EndBody());
    } else if (padding_ > 0) {
      const auto size = static_cast<size_t>(std::min<uint64_t>(padding_, bytes.size()));
      bytes.remove_prefix(size);
      padding_ -= size;
    } else {
      const size_t size = std::min(kBlock - block_.size(), bytes.size());
      block_ += bytes.substr(0, size);
      bytes.remove_prefix(size);
      if (block_.size() < kBlock) break;
      SWELL_RETURN_IF_ERROR(TakeHeader());
      block_.clear();
    }
  }
  return Status::Ok();
}

Status TarReader::Finish() {
  if (at_end_ || (body_left_ == 0 && block_.empty() && entries_ > 0)) return Status::Ok();
  return Status(Code::kInternal, "the archive is cut off");
}

Status TarReader::TakeHeader() {
  const std::string_view block = block_;
  if (block.find_first_not_of('\0') == std::string_view::npos) {
    at_end_ = true;
    return Status::Ok();
  }
  unsigned sum = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(block[i]);
  }
  if (sum != Octal(block, 148, 8)) return Status(Code::kInternal, "the archive is damaged");
  body_left_ = Octal(block, 124, 12);
  padding_ = (kBlock - body_left_ % kBlock) % kBlock;
  body_ = Body::kSkip;
  text_.clear();
  const char type = block[156];
  if (type == 'L' || type == 'K' || type == 'x' || type == 'g') {
    if (body_left_ > kTextMax) return Status(Code::kInternal, "the archive has a name too long");
    body_ = type == 'L' ? Body::kLongName : type == 'K' ? Body::kLongLink : Body::kPax;
    return Status::Ok();
  }
  std::string name = Field(block, 0, 100);
  if (block.substr(257, 6) == std::string_view("ustar\0", 6)) {
    const std::string prefix = Field(block, 345, 155);
    if (!prefix.empty()) name = prefix + "/" + name;
  }
  std::string link = Field(block, 157, 100);
  if (!next_name_.empty()) name = std::exchange(next_name_, {});
  if (!next_link_.empty()) link = std::exchange(next_link_, {});
  next_name_.clear();
  next_link_.clear();
  ++entries_;
  return Open(type, name, link, static_cast<int>(Octal(block, 100, 8) & 0777));
}

// Where an entry goes; empty: nowhere.
Result<std::string> TarReader::Target(const std::string& name) {
  std::string clean = Clean(name);
  while (clean.size() > 1 && clean.ends_with('/')) clean.pop_back();
  while (clean.starts_with('/')) clean.erase(0, 1);
  if (Leaves(clean)) {
    warn_(StrCat("skipping ", Quote(name), ": it is outside of the archive"));
    return std::string();
  }
  std::string rest;
  if (clean != prefix_) {
    if (!prefix_.empty() && prefix_ != "." && !clean.starts_with(prefix_ + "/")) {
      warn_(StrCat("skipping ", Quote(name), ": it is not part of ", Quote(prefix_)));
      return std::string();
    }
    rest = prefix_.empty() || prefix_ == "." ? clean : clean.substr(prefix_.size() + 1);
  }
  if (rest.empty() || rest == ".") return destination_;
  // A link that an earlier entry made must not be walked through.
  std::string at = destination_;
  const std::string above = rest.substr(0, rest.rfind('/') + 1);
  for (std::string_view step : Split(above, '/')) {
    if (step.empty()) continue;
    at += StrCat("/", step);
    struct stat info;
    if (::lstat(at.c_str(), &info) == 0 && S_ISLNK(info.st_mode)) {
      warn_(StrCat("skipping ", Quote(name), ": ", at, " is a link"));
      return std::string();
    }
  }
  return destination_ + "/" + rest;
}

Status TarReader::Open(char type, const std::string& name, const std::string& link, int mode) {
  SWELL_ASSIGN_OR_RETURN(const std::string target, Target(name));
  if (target.empty()) return Status::Ok();
  if (type == '5') return MakeDirs(target, 0755);
  const size_t slash = target.rfind('/');
  if (slash != std::string::npos && slash > 0) {
    SWELL_RETURN_IF_ERROR(MakeDirs(target.substr(0, slash)));
  }
  if (type == '2') {
    const std::string base = target.substr(0, slash + 1);
    const std::string meant = Clean(link.starts_with('/') ? link : base + link);
    const std::string inside = Clean(destination_) + "/";
    if (!meant.starts_with(inside) && meant + "/" != inside) {
      warn_(StrCat("skipping ", Quote(name), ": the link points outside: ", Quote(link)));
      return Status::Ok();
    }
    ::unlink(target.c_str());
    return ::symlink(link.c_str(), target.c_str()) == 0 ? Status::Ok()
                                                        : ErrnoStatus(errno, "link " + target);
  }
  if (type != '0' && type != '\0') {
    warn_(StrCat("skipping ", Quote(name), ": not a file, a directory or a link"));
    return Status::Ok();
  }
  struct stat info;
  if (::lstat(target.c_str(), &info) == 0 && S_ISLNK(info.st_mode)) ::unlink(target.c_str());
  fd_ = ::open(target.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
               static_cast<mode_t>(mode | 0200));
  if (fd_ < 0) return ErrnoStatus(errno, "create " + target);
  file_path_ = target;
  body_ = Body::kFile;
  return body_left_ == 0 ? EndBody() : Status::Ok();
}

Status TarReader::TakeBody(std::string_view bytes) {
  if (body_ == Body::kFile) return WriteAll(fd_, bytes, file_path_);
  if (body_ != Body::kSkip) text_ += bytes;
  return Status::Ok();
}

Status TarReader::EndBody() {
  switch (body_) {
    case Body::kFile:
      if (::close(std::exchange(fd_, -1)) != 0) return ErrnoStatus(errno, "write " + file_path_);
      break;
    case Body::kLongName:
      next_name_ = text_.substr(0, text_.find('\0'));
      break;
    case Body::kLongLink:
      next_link_ = text_.substr(0, text_.find('\0'));
      break;
    case Body::kPax: {
      // Records of "LENGTH KEY=VALUE\n".
      std::string_view rest = text_;
      while (!rest.empty()) {
        const auto size = ParseUint(rest.substr(0, rest.find(' ')));
        if (!size || *size == 0 || *size > rest.size()) break;
        std::string_view record = rest.substr(0, static_cast<size_t>(*size));
        rest.remove_prefix(record.size());
        record.remove_prefix(record.find(' ') + 1);
        if (record.ends_with('\n')) record.remove_suffix(1);
        if (record.starts_with("path=")) next_name_ = record.substr(5);
        if (record.starts_with("linkpath=")) next_link_ = record.substr(9);
      }
      break;
    }
    case Body::kSkip:
      break;
  }
  body_ = Body::kSkip;
  return Status::Ok();
}

}  // namespace swell::cli
