// Fuzzes what keeps clients in step: each two bytes of the input are a write, a watch that begins,
// one that breaks off and is resumed, a page of a list, a continue token that somebody changed. The
// history is short, so versions expire. A client that follows a selection must have its state at
// the end, having received each change once; and the pages of a list are those of one version.
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "base/check.h"
#include "base/strings.h"
#include "kube/apiserver/test_server.h"

namespace swell::apiserver {
namespace {

constexpr const char* kSelections[] = {"", "labelSelector=k%3D1", "labelSelector=k%21%3D1",
                                       "labelSelector=k+in+%280%2C2%29",
                                       "fieldSelector=metadata.name%3Dc3"};
constexpr size_t kNames = 6;
constexpr size_t kFollowersMost = 6;
constexpr size_t kStepsMost = 200;

using State = std::map<std::string, std::string>;  // name → object

State StateOf(const Answer& list) {
  State state;
  for (const json::Value& item : json::GetArray(list.body, {"items"})) {
    const std::string name(json::GetString(item, {"metadata", "name"}));
    SWELL_CHECK_MSG(state.emplace(name, json::Print(item)).second, name);
  }
  return state;
}

uint64_t VersionOf(const json::Value& object) {
  return ParseUint(json::GetString(object, {"metadata", "resourceVersion"})).value_or(0);
}

struct Follower {
  std::string selection;
  uint64_t version = 0;
  State state;
  TestWatch watch;
};

struct Pages {
  std::string selection;
  std::string token;
  uint64_t version = 0;
  State expected;
  State seen;
};

class Play {
 public:
  explicit Play(TestServer& server) : server_(server) {}

  void Step(size_t what, size_t arg) {
    switch (what % 8) {
      case 0:
      case 1:
        return Write(arg);
      case 2:
        server_.Delete(StrCat(kMaps, "/c", arg % kNames));
        return;
      case 3:
        return Follow(arg);
      case 4:
        return Resume(arg);
      case 5:
        return BeginPages(arg);
      case 6:
        return TurnPage(arg);
      default:
        return ChangeToken(arg, what / 8);
    }
  }

  void End() {
    server_.executor.RunPosted();
    for (Follower& follower : followers_) {
      if (!Hear(follower)) continue;
      const Answer list = List(follower.selection);
      SWELL_CHECK_MSG(follower.state == StateOf(list), follower.selection);
    }
    followers_.clear();
    for (size_t i = 0; i < kNames; ++i) server_.Delete(StrCat(kMaps, "/c", i));
  }

 private:
  Answer List(std::string_view query) {
    Answer list = server_.Get(StrCat(kMaps, "?", query));
    SWELL_CHECK_MSG(list.status == 200, list.text);
    return list;
  }

  void Write(size_t arg) {
    const std::string name = StrCat("c", arg % kNames);
    const std::string body = StrCat(R"({"metadata":{"name":")", name, R"(","labels":{"k":")",
                                    arg / kNames % 3, R"("}},"data":{"step":")", ++steps_, "\"}}");
    if (server_.Post(kMaps, body).status == 201) return;
    const Answer answer = server_.Merge(StrCat(kMaps, "/", name), body);
    SWELL_CHECK_MSG(answer.status == 200, answer.text);
  }

  void Follow(size_t arg) {
    if (followers_.size() == kFollowersMost) followers_.erase(followers_.begin());
    Follower follower;
    follower.selection = kSelections[arg % std::size(kSelections)];
    const Answer list = List(follower.selection);
    follower.state = StateOf(list);
    follower.version = VersionOf(list.body);
    Watch(follower);
    followers_.push_back(std::move(follower));
  }

  void Watch(Follower& follower) {
    follower.watch = server_.Watch(
        StrCat(kMaps, "?watch=1&allowWatchBookmarks=true&resourceVersion=", follower.version, "&",
               follower.selection));
  }

  // false: its version is history that nobody knows any more.
  bool Hear(Follower& follower) {
    for (const json::Value& event : follower.watch.Take()) {
      const std::string_view type = json::GetString(event, {"type"});
      const json::Value& object = *json::Find(event, {"object"});
      if (type == "ERROR") {
        SWELL_CHECK_MSG(json::GetInt(object, {"code"}) == 410, json::Print(object));
        return false;
      }
      const uint64_t version = VersionOf(object);
      SWELL_CHECK_MSG(type == "BOOKMARK" ? version >= follower.version : version > follower.version,
                      json::Print(event));
      follower.version = version;
      const std::string name(json::GetString(object, {"metadata", "name"}));
      if (type == "BOOKMARK") continue;
      SWELL_CHECK_MSG((follower.state.count(name) == 0) == (type == "ADDED"), json::Print(event));
      if (type == "DELETED") {
        follower.state.erase(name);
      } else {
        follower.state[name] = json::Print(object);
      }
    }
    return true;
  }

  void Resume(size_t arg) {
    if (followers_.empty()) return;
    const size_t place = arg % followers_.size();
    Follower& follower = followers_[place];
    // What was under way when the connection broke is never read: it must be told again.
    if (arg % 2 == 0 && !Hear(follower)) {
      followers_.erase(followers_.begin() + static_cast<std::ptrdiff_t>(place));
      return;
    }
    Watch(follower);
    const int status = follower.watch.sink->stream_status;
    const int answered = follower.watch.sink->answer.status;
    SWELL_CHECK(status == 200 || answered == 410);
    if (status != 200) followers_.erase(followers_.begin() + static_cast<std::ptrdiff_t>(place));
  }

  void BeginPages(size_t arg) {
    pages_ = Pages{.selection = kSelections[arg % std::size(kSelections)]};
    pages_->expected = StateOf(List(pages_->selection));
    Take(List(StrCat(pages_->selection, "&limit=", 1 + arg / 8 % 3)));
  }

  void Take(const Answer& page) {
    const uint64_t version = VersionOf(page.body);
    SWELL_CHECK(pages_->version == 0 || pages_->version == version);
    pages_->version = version;
    for (auto& [name, object] : StateOf(page)) {
      SWELL_CHECK_MSG(pages_->seen.emplace(name, object).second, name);
    }
    pages_->token = page.Str({"metadata", "continue"});
    if (!pages_->token.empty()) return;
    SWELL_CHECK(pages_->seen == pages_->expected);
    pages_.reset();
  }

  void TurnPage(size_t arg) {
    if (!pages_) return;
    const Answer page = server_.Get(
        StrCat(kMaps, "?limit=", 1 + arg % 3, "&", pages_->selection, "&continue=", pages_->token));
    if (page.status == 200) return Take(page);
    SWELL_CHECK_MSG(page.status == 410, page.text);
    pages_.reset();
  }

  void ChangeToken(size_t arg, size_t bit) {
    if (!pages_) return;
    std::string token = pages_->token;
    token[arg % token.size()] = static_cast<char>(token[arg % token.size()] ^ (1 << bit % 7));
    std::string escaped;
    for (const char c : token) {
      constexpr char kHex[] = "0123456789ABCDEF";
      escaped += {'%', kHex[static_cast<unsigned char>(c) >> 4], kHex[c & 15]};
    }
    const Answer page = server_.Get(StrCat(kMaps, "?limit=1&continue=", escaped));
    SWELL_CHECK_MSG(page.status == 200 || page.status == 400 || page.status == 410, page.text);
  }

  TestServer& server_;
  std::vector<Follower> followers_;
  std::optional<Pages> pages_;
  size_t steps_ = 0;
};

TestServer& Server() {
  static const std::unique_ptr<TestServer> server = [] {
    auto made = std::make_unique<TestServer>(Options{}, store::Options{.history_events = 24});
    made->Boot();
    return made;
  }();
  return *server;
}

}  // namespace
}  // namespace swell::apiserver

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  swell::apiserver::Play play(swell::apiserver::Server());
  size = std::min(size, 2 * swell::apiserver::kStepsMost);
  for (; size >= 2; data += 2, size -= 2) play.Step(data[0], data[1]);
  play.End();
  return 0;
}
