#include "ops/access/secret_keys.h"

#include <algorithm>

#include "base/file.h"
#include "base/strings.h"
#include "kube/net/tls/secret_box.h"
#include "kube/net/tls/tls.h"

namespace swell::ops {
namespace {

constexpr size_t kIdDigits = 16;
constexpr size_t kFileBytesMax = 1 << 16;
constexpr std::string_view kByPassphrase = "swell-passphrase:";
constexpr size_t kSaltBytes = 16;

std::string ContextOf(const store::Key& key) {
  return StrCat(key.resource, "/", key.ns, "/", key.name);
}

// "ID" and the box of a stored text.
std::pair<std::string_view, std::string_view> Parts(std::string_view stored) {
  const std::string_view rest = stored.substr(store::kSealedPrefix.size());
  const size_t colon = rest.find(':');
  if (colon == std::string_view::npos) return {rest, {}};
  return {rest.substr(0, colon), rest.substr(colon + 1)};
}

std::string PathOf(const DataDir& dir) { return dir.path + "/pki/secrets.key"; }

}  // namespace

Result<std::shared_ptr<const SecretKeys>> SecretKeys::Parse(std::string_view text,
                                                            const std::string& path) {
  std::vector<OneKey> keys;
  size_t number = 0;
  for (std::string_view line : Split(text, '\n')) {
    ++number;
    if (Trim(line).empty()) continue;
    const auto words = Split(Trim(line), ' ');
    const auto bytes = words.size() == 2 ? Base64Decode(words[1]) : std::nullopt;
    if (words[0].size() != kIdDigits || !bytes || bytes->size() != net::kSecretKeyBytes) {
      return Status(Code::kInvalid, StrCat(path, ", line ", number,
                                           ": expected a key's id and its 32 bytes in base64; put "
                                           "back the file that belongs to this directory"));
    }
    keys.push_back({std::string(words[0]), *bytes});
  }
  if (keys.empty()) {
    return Status(Code::kInvalid, StrCat(path,
                                         ": there is no key in it; put back the file that "
                                         "belongs to this directory"));
  }
  return std::shared_ptr<const SecretKeys>(new SecretKeys(std::move(keys), path));
}

Result<std::shared_ptr<const SecretKeys>> SecretKeys::WithNewKey(const SecretKeys* old,
                                                                 const std::string& path) {
  SWELL_ASSIGN_OR_RETURN(std::string bytes, net::RandomBytes(net::kSecretKeyBytes));
  // The id tells keys apart and nothing about them.
  SWELL_ASSIGN_OR_RETURN(const std::string random, net::RandomBytes(net::kSecretKeyBytes));
  std::vector<OneKey> keys{{net::Sha256Hex(random).substr(0, kIdDigits), std::move(bytes)}};
  if (old != nullptr) keys.insert(keys.end(), old->keys_.begin(), old->keys_.end());
  return std::shared_ptr<const SecretKeys>(new SecretKeys(std::move(keys), path));
}

std::shared_ptr<const SecretKeys> SecretKeys::CurrentAlone() const {
  return std::shared_ptr<const SecretKeys>(new SecretKeys({keys_.front()}, path_));
}

std::string SecretKeys::ToText() const {
  std::string text;
  for (const OneKey& key : keys_) text += StrCat(key.id, " ", Base64Encode(key.bytes), "\n");
  return text;
}

Result<std::string> SecretKeys::Seal(const store::Key& key, std::string_view plain) const {
  SWELL_ASSIGN_OR_RETURN(const std::string box,
                         net::SealBytes(keys_.front().bytes, plain, ContextOf(key)));
  return StrCat(store::kSealedPrefix, keys_.front().id, ":", box);
}

Result<std::string> SecretKeys::Open(const store::Key& key, std::string_view stored) const {
  const auto [id, box] = Parts(stored);
  for (const OneKey& one : keys_) {
    if (one.id != id) continue;
    auto plain = net::OpenBytes(one.bytes, box, ContextOf(key));
    if (plain.ok()) return plain;
    return Status(Code::kUnauthorized,
                  StrCat("Secret ", Quote(StrCat(key.ns, "/", key.name)), " cannot be decrypted: ",
                         plain.status().message(), "; key ", one.id, " of ", path_,
                         " is not the one it was encrypted with. Put back the file that belongs to "
                         "this directory, or restore a backup"));
  }
  return Status(Code::kUnauthorized,
                StrCat("Secret ", Quote(StrCat(key.ns, "/", key.name)), " is encrypted with key ",
                       id.substr(0, kIdDigits), ", which ", path_,
                       " does not have. Put back the file that belongs to this directory, or "
                       "restore a backup"));
}

bool SecretKeys::IsCurrent(std::string_view stored) const {
  return Parts(stored).first == keys_.front().id;
}

Status StoreSecretKeys(const DataDir& dir, const SecretKeys& keys) {
  return WriteFileAtomically(PathOf(dir), keys.ToText(), 0600);
}

Result<std::shared_ptr<const SecretKeys>> LoadOrMakeSecretKeys(const DataDir& dir) {
  const std::string path = PathOf(dir);
  auto text = ReadFile(path, kFileBytesMax);
  if (text.ok()) return SecretKeys::Parse(*text, path);
  if (text.status().code() != Code::kNotFound) return text.status();
  if (FileExists(dir.Database())) {
    SWELL_ASSIGN_OR_RETURN(const bool sealed, store::HasSealedRows(dir.Database()));
    if (sealed) {
      return Status(Code::kUnauthorized,
                    StrCat(path, " is missing, and the Secrets in ", dir.Database(),
                           " are encrypted with a key of it. Put the file back, or restore a "
                           "backup: swell restore --force --data-dir ",
                           dir.path, " FILE"));
    }
  }
  SWELL_ASSIGN_OR_RETURN(auto keys, SecretKeys::WithNewKey(nullptr, path));
  SWELL_RETURN_IF_ERROR(StoreSecretKeys(dir, *keys));
  return keys;
}

Result<std::string> RotateSecretKeys(const DataDir& dir) {
  if (!FileExists(dir.Database())) {
    return Status(Code::kNotFound,
                  StrCat("there is no cluster in ", dir.path, "; --data-dir names its directory"));
  }
  SWELL_ASSIGN_OR_RETURN(const auto old, LoadOrMakeSecretKeys(dir));
  SWELL_ASSIGN_OR_RETURN(const auto both, SecretKeys::WithNewKey(old.get(), PathOf(dir)));
  // Both keys are on the disk before the first Secret needs the new one.
  SWELL_RETURN_IF_ERROR(StoreSecretKeys(dir, *both));
  SWELL_RETURN_IF_ERROR(store::SealDatabase(dir.Database(), both));
  SWELL_RETURN_IF_ERROR(StoreSecretKeys(dir, *both->CurrentAlone()));
  return both->current();
}

bool IsSealedByPassphrase(std::string_view text) { return text.starts_with(kByPassphrase); }

Result<std::string> SealByPassphrase(std::string_view plain, std::string_view passphrase) {
  SWELL_ASSIGN_OR_RETURN(const std::string salt, net::RandomBytes(kSaltBytes));
  SWELL_ASSIGN_OR_RETURN(const std::string key, net::KeyFromPassphrase(passphrase, salt));
  SWELL_ASSIGN_OR_RETURN(const std::string box, net::SealBytes(key, plain, kByPassphrase));
  return StrCat(kByPassphrase, salt, box);
}

Result<std::string> OpenByPassphrase(std::string_view sealed, std::string_view passphrase) {
  if (!IsSealedByPassphrase(sealed) || sealed.size() < kByPassphrase.size() + kSaltBytes) {
    return Status(Code::kInvalid, "not written with a passphrase");
  }
  sealed.remove_prefix(kByPassphrase.size());
  SWELL_ASSIGN_OR_RETURN(const std::string key,
                         net::KeyFromPassphrase(passphrase, sealed.substr(0, kSaltBytes)));
  return net::OpenBytes(key, sealed.substr(kSaltBytes), kByPassphrase);
}

}  // namespace swell::ops
