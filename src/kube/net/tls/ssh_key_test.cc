#include "kube/net/tls/ssh_key.h"

#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>

#include <gtest/gtest.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "base/strings.h"
#include "base/temp_dir.h"
#include "kube/net/tls/freer.h"

namespace swell::net {
namespace {

// The strings of SSH's binary form.
std::vector<std::string> Strings(std::string_view blob) {
  std::vector<std::string> out;
  while (blob.size() >= 4) {
    size_t size = 0;
    for (int i = 0; i < 4; ++i) size = size << 8 | static_cast<unsigned char>(blob[i]);
    blob.remove_prefix(4);
    if (size > blob.size()) return {"cut off"};
    out.emplace_back(blob.substr(0, size));
    blob.remove_prefix(size);
  }
  if (!blob.empty()) out.emplace_back("more than strings");
  return out;
}

// The uncompressed public point of a PEM private key.
std::string PointOf(const std::string& pem) {
  const std::unique_ptr<BIO, Freer<BIO_free>> bio(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>> key(
      PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
  unsigned char* point = nullptr;
  const size_t size = key ? EVP_PKEY_get1_encoded_public_key(key.get(), &point) : 0;
  std::string out(reinterpret_cast<const char*>(point), size);
  OPENSSL_free(point);
  return out;
}

TEST(SshKey, ThePublicLineIsThatOfThePrivateKey) {
  const Result<SshKey> key = MakeSshKey();
  ASSERT_TRUE(key.ok()) << key.status().ToString();
  EXPECT_TRUE(key->private_pem.starts_with("-----BEGIN EC PRIVATE KEY-----\n"));
  const std::string_view line = key->public_line;
  constexpr std::string_view kHead = "ecdsa-sha2-nistp521 ";
  ASSERT_TRUE(line.starts_with(kHead) && line.ends_with('\n')) << line;
  const auto blob = Base64Decode(line.substr(kHead.size(), line.size() - kHead.size() - 1));
  ASSERT_TRUE(blob) << line;
  EXPECT_EQ(Strings(*blob), (std::vector<std::string>{"ecdsa-sha2-nistp521", "nistp521",
                                                      PointOf(key->private_pem)}));
}

TEST(SshKey, EachIsFresh) {
  const Result<SshKey> first = MakeSshKey(), second = MakeSshKey();
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(first->private_pem, second->private_pem);
  EXPECT_NE(first->public_line, second->public_line);
}

TEST(SshKey, OpenSshReadsIt) {
  if (std::system("command -v ssh-keygen >/dev/null") != 0) {
    GTEST_SKIP() << "there is no ssh-keygen";
  }
  const Result<SshKey> key = MakeSshKey();
  ASSERT_TRUE(key.ok());
  const TempDir dir;
  const std::string path = dir.File("id_rsa");
  std::ofstream(path) << key->private_pem;
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  FILE* pipe = ::popen(StrCat("ssh-keygen -y -f ", path, " 2>&1").c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  char part[1024] = {};
  std::string said(part, std::fread(part, 1, sizeof part, pipe));
  EXPECT_EQ(::pclose(pipe), 0);
  EXPECT_EQ(said, key->public_line);
}

}  // namespace
}  // namespace swell::net
