#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <csignal>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"
#include "base/temp_dir.h"
#include "kube/images/credentials.h"
#include "kube/images/manifest.h"
#include "kube/images/reference.h"
#include "kube/images/registries.h"
#include "kube/images/registry.h"
#include "kube/images/users.h"

namespace swell::images {
namespace {

const std::string kHex(64, 'a');

TEST(Reference, NamesAreReadAsDockerReadsThem) {
  const std::pair<std::string, std::string> cases[] = {
      {"busybox", "docker.io/library/busybox:latest"},
      {"busybox:1.36", "docker.io/library/busybox:1.36"},
      {"team/app", "docker.io/team/app:latest"},
      {"docker.io/busybox", "docker.io/library/busybox:latest"},
      {"index.docker.io/library/busybox", "docker.io/library/busybox:latest"},
      {"localhost/app", "localhost/app:latest"},
      {"localhost:5000/app:v1", "localhost:5000/app:v1"},
      {"127.0.0.1:5000/a/b/c", "127.0.0.1:5000/a/b/c:latest"},
      {"[::1]:5000/app", "[::1]:5000/app:latest"},
      {"ghcr.io/a__b/c-d.e:x_Y.1", "ghcr.io/a__b/c-d.e:x_Y.1"},
      {"nvcr.io/nvidia/pytorch:24.07-py3", "nvcr.io/nvidia/pytorch:24.07-py3"},
      {"busybox@sha256:" + kHex, "docker.io/library/busybox@sha256:" + kHex},
      {"busybox:1@sha256:" + kHex, "docker.io/library/busybox@sha256:" + kHex},
  };
  for (const auto& [text, name] : cases) {
    auto reference = ParseReference(text);
    ASSERT_TRUE(reference.ok()) << text << ": " << reference.status().message();
    EXPECT_EQ(reference->Name(), name) << text;
  }
}

TEST(Reference, BadNamesAreRefusedWithTheReason) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "it is empty"},
      {"Busybox", "capital letter"},
      {"a/", "nothing between two slashes"},
      {"a//b", "nothing between two slashes"},
      {"app:", "is not a tag"},
      {"app:.x", "is not a tag"},
      {"app:" + std::string(129, 'x'), "is not a tag"},
      {"app@sha256:123", "is not a digest"},
      {"app@md5:" + kHex, "is not a digest"},
      {"a..b", "is not a part of a repository's name"},
      {"-a", "is not a part of a repository's name"},
      {"a b", "is not a part of a repository's name"},
      {"A b", "is not a part of a repository's name"},
      {"host:99999/app", "is not a registry's address"},
      {"oci:/tmp/layout", "is not a registry's address"},
      {kHex, "64 hexadecimal digits alone"},
      {std::string(300, 'a'), "more than 255"},
  };
  for (const auto& [text, why] : cases) {
    auto reference = ParseReference(text);
    ASSERT_FALSE(reference.ok()) << text;
    EXPECT_EQ(reference.status().code(), Code::kInvalid);
    EXPECT_NE(reference.status().message().find(why), std::string::npos)
        << text << ": " << reference.status().message();
  }
}

TEST(Reference, HostsOfUrls) {
  EXPECT_EQ(HostOf("https://mirror:5000/v2/app"), "mirror:5000");
  EXPECT_EQ(HostOf("https://mirror"), "mirror");
  EXPECT_EQ(HostOf("mirror:5000/prefix"), "mirror:5000");
  EXPECT_EQ(HostOf("https://"), "");
}

TEST(Manifest, ReadsManifestsAndIndexes) {
  auto manifest = ParseManifest(StrCat(
      R"({"schemaVersion":2,"config":{"digest":"sha256:)", kHex, R"(","size":7},"layers":[)",
      R"({"mediaType":"application/vnd.docker.image.rootfs.diff.tar.gzip","size":9,"digest":"sha256:)",
      kHex, R"("}]})"));
  ASSERT_TRUE(manifest.ok()) << manifest.status().message();
  EXPECT_FALSE(manifest->is_index);
  EXPECT_EQ(manifest->LayerBytes(), 9);
  auto index = ParseManifest(
      StrCat(R"({"schemaVersion":2,"manifests":[{"digest":"sha256:)", kHex,
             R"(","size":1,"platform":{"os":"linux","architecture":"s390x"}},{"digest":"sha256:)",
             kHex, R"(","size":2,"platform":{"os":"linux","architecture":"amd64"}}]})"));
  ASSERT_TRUE(index.ok()) << index.status().message();
  ASSERT_TRUE(index->is_index);
  EXPECT_EQ(ChoosePlatform(*index, "amd64")->size, 2);
  auto missing = ChoosePlatform(*index, "arm64");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().message(),
            "the image has nothing for linux/arm64, only for linux/s390x, linux/amd64");
}

TEST(Manifest, BadManifestsAreErrors) {
  const std::string digest = R"("digest":"sha256:)" + kHex + R"(")";
  const std::string config = StrCat(R"("config":{)", digest, R"(,"size":1})");
  const std::string layers(200, 'x');
  std::string many = R"({"schemaVersion":2,)" + config + R"(,"layers":[)";
  for (int i = 0; i < 128; ++i) many += StrCat(i == 0 ? "" : ",", "{", digest, R"(,"size":1})");
  many += "]}";
  for (const std::string& text : {
           std::string("no json"),
           std::string("[]"),
           std::string("{}"),
           std::string(R"({"schemaVersion":1,"fsLayers":[]})"),
           std::string(R"({"config":{"digest":"sha256:../../etc/passwd","size":1}})"),
           StrCat(R"({"config":{)", digest, R"(,"size":-1}})"),
           StrCat(R"({"config":{)", digest, R"(,"size":99999999}})"),
           StrCat("{", config, R"(,"layers":[{"mediaType":"application/vnd.cncf.helm",)", digest,
                  R"(,"size":1}]})"),
           many,
           std::string(5 << 20, ' '),
       }) {
    auto manifest = ParseManifest(text);
    ASSERT_FALSE(manifest.ok()) << text.substr(0, 100);
    EXPECT_EQ(manifest.status().code(), Code::kInvalid);
  }
}

TEST(Manifest, ReadsConfigs) {
  auto config = ParseConfig(
      StrCat(R"({"os":"linux","architecture":"amd64","config":{"Entrypoint":["/e"],"Cmd":["c"],)",
             R"("Env":["A=1","B=x=y","=bad","worse"],"WorkingDir":"/w","User":"app:grp",)",
             R"("Volumes":{"/data":{}},"StopSignal":"SIGINT"},"rootfs":{"diff_ids":["sha256:)",
             kHex, R"("]}})"));
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->entrypoint, std::vector<std::string>{"/e"});
  EXPECT_EQ(config->env,
            (std::vector<std::pair<std::string, std::string>>{{"A", "1"}, {"B", "x=y"}}));
  EXPECT_EQ(config->volumes, std::vector<std::string>{"/data"});
  EXPECT_EQ(config->user, "app:grp");
  EXPECT_FALSE(CheckConfig(Manifest(), *config).ok());  // one layer more than the manifest
  for (const char* bad :
       {R"({"config":{"Cmd":"x"}})", R"({"config":{"Cmd":[1]}})",
        R"({"config":{"Volumes":{"/a/../../b":{}}}})", R"({"config":{"Env":["A=\u0000"]}})",
        R"({"rootfs":{"diff_ids":["sha256:../x"]}})", "[]", ""}) {
    EXPECT_FALSE(ParseConfig(bad).ok()) << bad;
  }
}

TEST(Manifest, OtherMachinesAreNamed) {
  ImageConfig config;
  config.os = "linux";
  config.architecture = "sparc";
  EXPECT_EQ(CheckConfig(Manifest(), config).message(),
            StrCat("the image is for linux/sparc, this machine is linux/", HostArchitecture()));
}

TEST(Manifest, ArtifactsThatAreNoImagesAreNamed) {
  Manifest chart;
  chart.config.media_type = "application/vnd.cncf.helm.config.v1+json";
  chart.layers.resize(1);
  EXPECT_EQ(CheckConfig(chart, ImageConfig()).message(),
            "manifest: its config, of the type \"application/vnd.cncf.helm.config.v1+json\", names "
            "no layers: this is not an image of a container");
}

TEST(Manifest, SignalsHaveNames) {
  EXPECT_EQ(SignalNumber("SIGINT"), SIGINT);
  EXPECT_EQ(SignalNumber("quit"), SIGQUIT);
  EXPECT_EQ(SignalNumber("15"), SIGTERM);
  EXPECT_EQ(SignalNumber("SIGRTMIN+3"), SIGRTMIN + 3);
  EXPECT_EQ(SignalNumber("SIGWHAT"), 0);
  EXPECT_EQ(SignalNumber("-1"), 0);
  EXPECT_EQ(SignalNumber(""), 0);
}

TEST(Credentials, TheLongestPathComesFirst) {
  auto all = ParseDockerConfig(
      StrCat(R"({"auths":{"registry.example.com":{"username":"u","password":"p"},)",
             R"("registry.example.com/team":{"auth":")", Base64Encode("team:pass:word"), R"("},)",
             R"("*.example.org:5000":{"username":"o","password":"o"},)",
             R"("https://index.docker.io/v1/":{"username":"d","password":"d"}}})"));
  ASSERT_TRUE(all.ok()) << all.status().message();
  auto users = [&](const char* image) {
    std::vector<std::string> out;
    for (const Credential& one : MatchCredentials(*all, ParseReference(image).value())) {
      out.push_back(StrCat(one.user, "/", one.password));
    }
    return out;
  };
  using List = std::vector<std::string>;
  EXPECT_EQ(users("registry.example.com/team/app"), (List{"team/pass:word", "u/p"}));
  EXPECT_EQ(users("registry.example.com/teams/app"), List{"u/p"});
  EXPECT_EQ(users("a.example.org:5000/x"), List{"o/o"});
  EXPECT_EQ(users("a.b.example.org:5000/x"), List{});
  EXPECT_EQ(users("a.example.org/x"), List{});
  EXPECT_EQ(users("busybox"), List{"d/d"});
  EXPECT_EQ(users("ghcr.io/x/y"), List{});
}

TEST(Credentials, BadOnesAreErrorsThatDoNotQuoteThem) {
  EXPECT_FALSE(ParseDockerConfig("secret text").ok());
  auto bad = ParseDockerConfig(R"({"auths":{"h":{"auth":"c2VjcmV0"}}})");
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.status().message().find("secret"), std::string::npos);
  EXPECT_TRUE(ParseDockerConfig(R"({"auths":{}})")->empty());
}

TEST(Registries, SayWhereToAsk) {
  TempDir dir;
  auto none = RegistriesConfig::Load(dir.File("registries.yaml"));
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->EndpointsOf("docker.io").at(0).url, "https://registry-1.docker.io");
  EXPECT_EQ(none->EndpointsOf("localhost:5000").at(0).url, "http://localhost:5000");
  EXPECT_EQ(none->EndpointsOf("127.0.0.1:5000").at(0).url, "http://127.0.0.1:5000");
  EXPECT_EQ(none->EndpointsOf("127x.com").at(0).url, "https://127x.com");
  EXPECT_EQ(none->EndpointsOf("127.x.com:80").at(0).url, "https://127.x.com:80");
  // A cluster IP: any service that gets the address could answer over plain HTTP.
  EXPECT_EQ(none->EndpointsOf("10.96.0.9:5000").at(0).url, "https://10.96.0.9:5000");
  ASSERT_TRUE(WriteFileAtomically(dir.File("ca.pem"), "x").ok());
  ASSERT_TRUE(WriteFileAtomically(dir.File("registries.yaml"),
                                  StrCat("registries:\n- host: docker.io\n  mirrors: "
                                         "[localhost:5000, https://m.example.com/]\n- host: "
                                         "localhost:5001\n  ca: ",
                                         dir.File("ca.pem"), "\n- host: x.io\n  insecure: true\n"))
                  .ok());
  EXPECT_FALSE(none->EndpointsOf("x.io").at(0).listed);
  auto some = RegistriesConfig::Load(dir.File("registries.yaml"));
  ASSERT_TRUE(some.ok()) << some.status().message();
  auto docker = some->EndpointsOf("docker.io");
  ASSERT_EQ(docker.size(), 3u);
  EXPECT_EQ(docker[0].url, "http://localhost:5000");
  EXPECT_EQ(docker[1].url, "https://m.example.com");
  EXPECT_TRUE(docker[1].mirror);
  EXPECT_FALSE(docker[2].mirror);
  EXPECT_EQ(some->EndpointsOf("localhost:5001").at(0).url, "https://localhost:5001");
  EXPECT_TRUE(some->EndpointsOf("x.io").at(0).insecure);
  EXPECT_TRUE(some->EndpointsOf("x.io").at(0).listed);
}

TEST(Http, AddressesOfThisMachineAreInside) {
  auto inside = [](const std::string& text) {
    sockaddr_in four{};
    four.sin_family = AF_INET;
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    if (::inet_pton(AF_INET, text.c_str(), &four.sin_addr) == 1) {
      return IsInside(reinterpret_cast<const sockaddr&>(four));
    }
    EXPECT_EQ(::inet_pton(AF_INET6, text.c_str(), &six.sin6_addr), 1) << text;
    return IsInside(reinterpret_cast<const sockaddr&>(six));
  };
  for (const char* text : {"127.0.0.1", "127.9.9.9", "0.0.0.0", "169.254.169.254", "::1",
                           "::", "fe80::1", "::ffff:127.0.0.1", "::ffff:169.254.1.1"}) {
    EXPECT_TRUE(inside(text)) << text;
  }
  for (const char* text : {"192.0.2.1", "198.51.100.7", "2001:db8::1"}) {
    EXPECT_FALSE(inside(text)) << text;
  }
  EXPECT_EQ(HostOfUrl("https://a.example.com:5000/v2/"), "a.example.com:5000");
  EXPECT_EQ(HostOfUrl("http://a.example.com@127.0.0.1:1?x=/"), "127.0.0.1:1");
}

TEST(Registries, BadEntriesAreNamed) {
  TempDir dir;
  const std::string file = dir.File("registries.yaml");
  for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
           {"registries: [{mirrors: [a]}]", "registries[0]: host"},
           {"registries: [{host: a}, {host: 'https://b'}]", "registries[1]: host"},
           {"registries: [{host: a, ca: /no/such/file}]", "there is no file"},
           {"registries: [{host: a, mirrors: b}]", "mirrors: must be a list"},
           {"registries: [{host: a, mirror: [b]}]",
            "registries[0]: \"mirror\" is not a field; did you mean mirrors?"},
           {"registries: [{host: a, tls: no}]", "expected host, mirrors, ca, insecure"},
           {"registries: [{host: a, insecure: 'yes'}]", "insecure: must be true or false"},
           {"registries: [a]", "registries[0]: expected the fields"},
           {"registries: {host: a}", "registries: must be a list"},
           {"registry: [{host: a}]", "\"registry\" is not a field"},
           {"a: [", "registries.yaml"}}) {
    ASSERT_TRUE(WriteFileAtomically(file, text).ok());
    auto loaded = RegistriesConfig::Load(file);
    ASSERT_FALSE(loaded.ok()) << text;
    EXPECT_NE(loaded.status().message().find(why), std::string::npos) << loaded.status().message();
  }
}

TEST(Registries, AFileOfCommentsListsNone) {
  TempDir dir;
  const std::string file = dir.File("registries.yaml");
  for (const char* text : {"", "# none yet\n", "registries:\n# none yet\n", "---\n"}) {
    ASSERT_TRUE(WriteFileAtomically(file, text).ok());
    auto loaded = RegistriesConfig::Load(file);
    EXPECT_TRUE(loaded.ok()) << loaded.status().message();
  }
}

TEST(Registry, ChallengesAreParsed) {
  auto parameters =
      ParseChallenge(R"(realm="https://auth.example.com/token",service="reg \"x\"", scope=pull)");
  EXPECT_EQ(parameters["realm"], "https://auth.example.com/token");
  EXPECT_EQ(parameters["service"], "reg \"x\"");
  EXPECT_EQ(parameters["scope"], "pull");
  EXPECT_TRUE(ParseChallenge("").empty());
  EXPECT_TRUE(ParseChallenge("nonsense").empty());
  EXPECT_EQ(ParseChallenge("realm=\"open").size(), 1u);
}

TEST(Users, AreFoundInTheTopmostFile) {
  TempDir dir;
  for (const char* layer : {"low", "high"}) ASSERT_TRUE(MakeDirs(dir.File(layer) + "/etc").ok());
  ASSERT_TRUE(WriteFileAtomically(dir.File("low/etc/passwd"),
                                  "root:x:0:0:root:/root:/bin/sh\nold:x:5:5::/:/bin/sh\n")
                  .ok());
  ASSERT_TRUE(WriteFileAtomically(dir.File("high/etc/passwd"),
                                  "root:x:0:0:root:/root:/bin/sh\napp:x:1000:1001::/home/app:\n")
                  .ok());
  ASSERT_TRUE(WriteFileAtomically(dir.File("low/etc/group"),
                                  "root:x:0:\nwheel:x:10:app,root\nvideo:x:44:app\n")
                  .ok());
  const std::vector<std::string> layers{dir.File("low"), dir.File("high")};
  auto show = [&](const char* user) {
    auto found = FindImageUser(layers, user);
    if (!found.ok()) return found.status().message();
    std::string groups;
    for (int64_t group : found->groups) groups += StrCat(" ", group);
    return StrCat(found->uid, ":", found->gid, " ", found->home, groups);
  };
  EXPECT_EQ(show(""), "0:0 /root 10");
  EXPECT_EQ(show("app"), "1000:1001 /home/app 10 44");
  EXPECT_EQ(show("1000"), "1000:1001 /home/app 10 44");
  EXPECT_EQ(show("app:video"), "1000:44 /home/app");
  EXPECT_EQ(show("app:"), "1000:1001 /home/app 10 44");
  EXPECT_EQ(show("4242"), "4242:0 /");
  EXPECT_EQ(show("4242:7"), "4242:7 /");
  EXPECT_EQ(show("old"), "user \"old\" is not in the image's /etc/passwd");
  EXPECT_EQ(show("app:no"), "group \"no\" is not in the image's /etc/group");
  EXPECT_EQ(show("-5"), "user \"-5\" is not in the image's /etc/passwd");
}

TEST(Users, LinksLeadFromLayerToLayer) {
  TempDir dir;
  ASSERT_TRUE(MakeDirs(dir.File("low/store/etc")).ok());
  ASSERT_TRUE(MakeDirs(dir.File("low/etc")).ok());
  ASSERT_TRUE(MakeDirs(dir.File("high/etc")).ok());
  const std::string line = "app:x:7:8::/home/app:/bin/sh\n";
  ASSERT_TRUE(WriteFileAtomically(dir.File("low/store/etc/passwd"), line).ok());
  ASSERT_EQ(::symlink("/way/../etc/./users", dir.File("high/etc/passwd").c_str()), 0);
  ASSERT_EQ(::symlink("../../../store/etc/passwd", dir.File("low/etc/users").c_str()), 0);
  ASSERT_EQ(::symlink("etc", dir.File("low/way").c_str()), 0);
  std::vector<std::string> layers{dir.File("low"), dir.File("high")};
  auto found = FindImageUser(layers, "app");
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->uid, 7);
  // A layer above hides the directory, or a file stands in its place.
  ASSERT_TRUE(MakeDirs(dir.File("top/store/etc")).ok());
  layers.push_back(dir.File("top"));
  EXPECT_TRUE(FindImageUser(layers, "app").ok());
  const std::string store = dir.File("top/store");
  ASSERT_EQ(::setxattr(store.c_str(), "user.overlay.opaque", "y", 1, 0), 0);
  EXPECT_FALSE(FindImageUser(layers, "app").ok());
  ASSERT_TRUE(RemoveTree(store).ok());
  ASSERT_TRUE(WriteFileAtomically(store, "a file").ok());
  EXPECT_FALSE(FindImageUser(layers, "app").ok());
}

TEST(Users, LinksOutOfTheImageAreNotFollowed) {
  TempDir dir;
  ASSERT_TRUE(MakeDirs(dir.File("layer/etc")).ok());
  ASSERT_EQ(::symlink("/etc/passwd", dir.File("layer/etc/passwd").c_str()), 0);
  EXPECT_FALSE(FindImageUser({dir.File("layer")}, "root").ok());
  ASSERT_EQ(::unlink(dir.File("layer/etc/passwd").c_str()), 0);
  ASSERT_TRUE(WriteFileAtomically(dir.File("passwd"), "root:x:0:0:root:/root:/bin/sh\n").ok());
  ASSERT_EQ(::symlink("../../passwd", dir.File("layer/etc/passwd").c_str()), 0);
  EXPECT_FALSE(FindImageUser({dir.File("layer")}, "root").ok());
}

}  // namespace
}  // namespace swell::images
