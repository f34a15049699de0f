// The first byte says what the rest is: the query of a list or of a watch, a path, an object to
// create, a patch of one of the four types. Nothing is written: the server is the same for all.
#include <cstddef>
#include <cstdint>

#include "kube/apiserver/test_server.h"

namespace swell::apiserver {
namespace {

constexpr const char* kPatches[] = {"application/json-patch+json", "application/merge-patch+json",
                                    "application/strategic-merge-patch+json",
                                    "application/apply-patch+yaml"};

TestServer& Server() {
  static const std::unique_ptr<TestServer> server = [] {
    auto made = std::make_unique<TestServer>();
    made->Boot();
    made->Post(kPods, PodJson("a"));
    return made;
  }();
  return *server;
}

void Ask(unsigned kind, std::string text) {
  TestServer& server = Server();
  const std::string pods = kPods;
  switch (kind % 5) {
    case 0: {
      api::RestRequest list = server.Request("GET", pods);
      list.query = std::move(text);
      server.Send(std::move(list));
      return;
    }
    case 1: {
      api::RestRequest watch = server.Request("GET", pods);
      watch.query = "watch=true&" + std::move(text);
      server.Send(std::move(watch));  // ends with its answer
      return;
    }
    case 2:
      server.Send(server.Request("GET", "/" + std::move(text)));
      return;
    case 3:
      server.Post(pods + "?dryRun=All", std::move(text));
      return;
    default:
      server.Patch(pods + "/a?dryRun=All&fieldManager=f&force=true", std::move(text),
                   kPatches[kind / 5 % 4]);
  }
}

}  // namespace
}  // namespace swell::apiserver

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  swell::apiserver::Ask(data[0], std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  return 0;
}
