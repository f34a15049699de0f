// SecretKeys: the keys with which an embedded cluster's Secrets are encrypted on disk.
//
// DIR/pki/secrets.key has a line for each key: its id (16 hexadecimal digits) and its 32 bytes in
// base64. The first is the current one; the others are those of a rotation that has not ended. A
// stored Secret is "swell-sealed:ID:" and a box (kube/net/tls/secret_box.h).
//
// - Threads: immutable; any.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kube/store/backend.h"
#include "ops/data_dir.h"

namespace swell::ops {

class SecretKeys final : public store::RowSealer {
 public:
  // What the file says; kInvalid names the line.
  static Result<std::shared_ptr<const SecretKeys>> Parse(std::string_view text,
                                                         const std::string& path);
  // With a new key in front.
  static Result<std::shared_ptr<const SecretKeys>> WithNewKey(const SecretKeys* old,
                                                              const std::string& path);
  // The current key alone.
  std::shared_ptr<const SecretKeys> CurrentAlone() const;

  std::string ToText() const;
  const std::string& current() const { return keys_.front().id; }
  size_t count() const { return keys_.size(); }

  bool Seals(std::string_view resource) const override { return resource == "secrets"; }
  Result<std::string> Seal(const store::Key& key, std::string_view plain) const override;
  Result<std::string> Open(const store::Key& key, std::string_view stored) const override;
  bool IsCurrent(std::string_view stored) const override;

 private:
  struct OneKey {
    std::string id, bytes;
  };
  SecretKeys(std::vector<OneKey> keys, std::string path)
      : keys_(std::move(keys)), path_(std::move(path)) {}

  std::vector<OneKey> keys_;  // never empty
  std::string path_;          // for messages
};

// The keys of the directory. A new directory, and one of before Secrets were encrypted, get a key.
// kUnauthorized: Secrets there are encrypted and the file of keys is missing.
Result<std::shared_ptr<const SecretKeys>> LoadOrMakeSecretKeys(const DataDir& dir);
Status StoreSecretKeys(const DataDir& dir, const SecretKeys& keys);

// Encrypts all Secrets of the stopped cluster with a new key, and forgets the old one. Answers the
// new key's id. May be run again after it was interrupted.
Result<std::string> RotateSecretKeys(const DataDir& dir);

// Bytes under a passphrase, for files that leave the machine; kUnauthorized: another passphrase.
bool IsSealedByPassphrase(std::string_view text);
Result<std::string> SealByPassphrase(std::string_view plain, std::string_view passphrase);
Result<std::string> OpenByPassphrase(std::string_view sealed, std::string_view passphrase);

}  // namespace swell::ops
