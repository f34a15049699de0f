#include "cli/top/keys.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/strings.h"

namespace swell::cli {
namespace {

using KeyKind = Key::Kind;

struct Sequence {
  std::string_view bytes;  // after ESC
  KeyKind kind;
};

constexpr std::array<Sequence, 18> kSequences = {{
    {"[A", KeyKind::kUp},
    {"OA", KeyKind::kUp},
    {"[B", KeyKind::kDown},
    {"OB", KeyKind::kDown},
    {"[C", KeyKind::kRight},
    {"OC", KeyKind::kRight},
    {"[D", KeyKind::kLeft},
    {"OD", KeyKind::kLeft},
    {"[5~", KeyKind::kPageUp},
    {"[6~", KeyKind::kPageDown},
    {"[H", KeyKind::kHome},
    {"OH", KeyKind::kHome},
    {"[1~", KeyKind::kHome},
    {"[7~", KeyKind::kHome},
    {"[F", KeyKind::kEnd},
    {"OF", KeyKind::kEnd},
    {"[4~", KeyKind::kEnd},
    {"[8~", KeyKind::kEnd},
}};

// Bytes of a control sequence after ESC that no key of ours has.
size_t UnknownSequence(std::string_view rest) {
  if (rest.empty() || (rest[0] != '[' && rest[0] != 'O')) return 0;
  size_t at = 1;
  while (at < rest.size() && (rest[at] < '@' || rest[at] > '~')) ++at;
  return std::min(at + 1, rest.size());
}

size_t Utf8Length(unsigned char lead) {
  if (lead >= 0xf0) return 4;
  if (lead >= 0xe0) return 3;
  return lead >= 0xc0 ? 2 : 1;
}

Key ControlKey(char byte) {
  if (byte == '\r' || byte == '\n') return {KeyKind::kEnter, ""};
  if (byte == '\t') return {KeyKind::kTab, ""};
  if (byte == '\b') return {KeyKind::kBackspace, ""};
  return {KeyKind::kControl, std::string(1, static_cast<char>(byte + 'a' - 1))};
}

}  // namespace

std::vector<Key> KeyReader::Feed(std::string_view bytes) {
  const std::string all = std::exchange(kept_, {}) + std::string(bytes);
  std::string_view rest = all;
  std::vector<Key> keys;
  while (!rest.empty()) {
    const auto byte = static_cast<unsigned char>(rest[0]);
    if (byte == 0x1b) {
      rest.remove_prefix(1);
      const auto* known =
          std::find_if(kSequences.begin(), kSequences.end(),
                       [rest](const auto& one) { return rest.starts_with(one.bytes); });
      if (known != kSequences.end()) {
        keys.push_back({known->kind, ""});
        rest.remove_prefix(known->bytes.size());
      } else if (const size_t skip = UnknownSequence(rest); skip > 0) {
        rest.remove_prefix(skip);
      } else {
        keys.push_back({KeyKind::kEscape, ""});
      }
    } else if (byte == 0x7f) {
      keys.push_back({KeyKind::kBackspace, ""});
      rest.remove_prefix(1);
    } else if (byte == 0) {
      rest.remove_prefix(1);
    } else if (byte < 0x20) {
      keys.push_back(ControlKey(static_cast<char>(byte)));
      rest.remove_prefix(1);
    } else {
      const size_t length = Utf8Length(byte);
      if (length > rest.size()) {
        kept_ = rest;
        break;
      }
      if (IsValidUtf8(rest.substr(0, length))) {
        keys.push_back({KeyKind::kText, std::string(rest.substr(0, length))});
        rest.remove_prefix(length);
      } else {
        rest.remove_prefix(1);
      }
    }
  }
  return keys;
}

}  // namespace swell::cli
