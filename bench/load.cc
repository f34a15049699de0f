// swell_load: loads a running cluster over its real socket with TLS and prints one JSON line.
//
//   swell_load KUBECONFIG create N CONNECTIONS [NAMESPACE]  durable creates of config maps
//   swell_load KUBECONFIG get SECONDS CONNECTIONS [PATH]    gets of one pod, or of PATH
//   swell_load KUBECONFIG connect SECONDS CONNECTIONS [PATH] gets, each on a new connection
//   swell_load KUBECONFIG list SECONDS CONNECTIONS [PATH]   lists of bench's pods, or of PATH
//   swell_load KUBECONFIG patch SECONDS CONNECTIONS N       merge patches of the first N of them
//   swell_load KUBECONFIG fill N                            N pods in bench, never placed
//   swell_load KUBECONFIG watch WATCHERS ROUNDS             one write delivered to so many
//   swell_load KUBECONFIG flood WATCHERS N [WRITERS]        N writes, as fast as they are taken
//   swell_load KUBECONFIG pods N CONNECTIONS GPUS SCHEDULER N pods for a scheduler to place
//   swell_load KUBECONFIG bind N CONNECTIONS NODES          binds them to node-1, node-2, …: the
//                                                           writes of a scheduler, nothing else
//   swell_load KUBECONFIG send N CONNECTIONS FILE           creates the first N objects of FILE, on
//                                                           each line a path and an object
//   swell_load KUBECONFIG delete N CONNECTIONS              deletes N of the pods there, with grace
//   swell_load KUBECONFIG bound N SECONDS                   waits until N are bound, by whomever
//   swell_load KUBECONFIG ending N SECONDS                  until N are being deleted; also since
//                                                           the last came before the first of these
#include "kube/net/http/load.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "json/value.h"
#include "kube/client/kubeconfig.h"
#include "kube/net/http/client.h"
#include "kube/net/reactor/reactor.h"

namespace swell {
namespace {

struct Target {
  std::string url;
  net::TlsClientConfig tls;
};

double Millis(Duration d) { return static_cast<double>(d.count()) / 1e6; }

net::HttpRequest Post(std::string path, std::string body) {
  net::HttpRequest request;
  request.method = "POST";
  request.target = std::move(path);
  request.headers = {{"Content-Type", "application/json"}};
  request.body = std::move(body);
  return request;
}

net::HttpRequest Get(std::string path) {
  net::HttpRequest request;
  request.method = "GET";
  request.target = std::move(path);
  return request;
}

std::string ConfigMaps(std::string_view ns) {
  return StrCat("/api/v1/namespaces/", ns, "/configmaps");
}

std::string ConfigMap(uint64_t index) {
  return StrCat(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bench-)", index,
                R"("},"data":{"key":"value","index":")", index, R"("}})");
}

// As an operator writes a training pod: about 2 KB once stored.
std::string Pod(uint64_t index) {
  return StrCat(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"bench-)", index,
      R"(","namespace":"bench","labels":{"app":"bench","training.kubeflow.org/job-name":"bench",)",
      R"("training.kubeflow.org/replica-type":"worker"}},"spec":{"schedulerName":"nobody",)",
      R"("restartPolicy":"Never","containers":[{"name":"pytorch","image":"pytorch:1.13","command":)",
      R"(["python","train.py","--epochs","200"],"env":[{"name":"MASTER_ADDR","value":"m"},)",
      R"({"name":"MASTER_PORT","value":"23456"},{"name":"WORLD_SIZE","value":"64"},{"name":"RANK",)",
      R"("value":"7"}],"resources":{"limits":{"nvidia.com/gpu":8},"requests":{"cpu":"4"}}}]}})");
}

// A pod for a scheduler: GPUs, or a tenth of a CPU.
std::string PodToPlace(uint64_t index, int gpus, std::string_view scheduler) {
  std::string limits =
      gpus > 0 ? StrCat(R"("limits":{"nvidia.com/gpu":)", gpus, R"(},)") : std::string();
  return StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"bench-)", index,
                R"(","labels":{"app":"bench"}},"spec":{"schedulerName":")", scheduler,
                R"(","restartPolicy":"Never","containers":[{"name":"main","image":"busybox",)",
                R"("resources":{)", limits, R"("requests":{"cpu":"100m"}}}]}})");
}

std::string Binding(uint64_t index, int nodes) {
  return StrCat(R"({"apiVersion":"v1","kind":"Binding","metadata":{"name":"bench-)", index,
                R"("},"target":{"apiVersion":"v1","kind":"Node","name":"node-)",
                1 + index % static_cast<uint64_t>(nodes), R"("}})");
}

void Print(const char* what, const net::LoadReport& report) {
  json::Value line = json::Object{
      {"what", what},
      {"per_second", report.RequestsPerSecond()},
      {"requests", report.requests},
      {"errors", report.errors},
      {"mb_per_second", static_cast<double>(report.bytes) / 1e6 / (Millis(report.elapsed) / 1e3)},
      {"p50_ms", Millis(report.latency.Quantile(0.5))},
      {"p99_ms", Millis(report.latency.Quantile(0.99))}};
  if (!report.first_error.ok()) json::Set(line, {"first_error"}, report.first_error.ToString());
  std::printf("%s\n", json::Print(line).c_str());
}

int Run(net::Reactor& reactor, const char* what, const net::LoadOptions& options) {
  auto report = net::RunLoad(reactor, options);
  if (!report.ok()) {
    std::fprintf(stderr, "swell_load: %s\n", report.status().ToString().c_str());
    return 1;
  }
  Print(what, *report);
  return report->errors == 0 ? 0 : 1;
}

net::LoadOptions Base(const Target& target, int connections) {
  net::LoadOptions options;
  options.base_url = target.url;
  options.tls = target.tls;
  options.connections = connections;
  return options;
}

// Opens `watchers` watches of config maps, then writes.
class WatchFanOut {
 public:
  WatchFanOut(net::Reactor& reactor, const Target& target, int watchers, size_t writers = 16)
      : reactor_(reactor), watchers_(watchers), writers_(writers) {
    net::ClientConfig config;
    config.base_url = target.url;
    config.tls = target.tls;
    config.max_streams = static_cast<size_t>(watchers) + 8;
    config.max_connections = writers;
    auto client = net::HttpClient::Make(reactor, config);
    if (client.ok()) client_ = std::move(*client);
  }

  // Writes `rounds` times, each when all have seen the last; prints the time from the write's start
  // to the last watcher's event.
  int Run(int rounds) {
    if (!Open()) return 1;
    std::vector<double> times;
    for (int round = 0; round < rounds; ++round) {
      SteadyTime begin = reactor_.Now();
      size_t want = events_ + static_cast<size_t>(watchers_);
      Write(static_cast<uint64_t>(round), [] {});
      if (!AllSeen(want)) return 1;
      times.push_back(Millis(reactor_.Now() - begin));
    }
    std::sort(times.begin(), times.end());
    json::Value line = json::Object{{"what", "watch"},
                                    {"watchers", watchers_},
                                    {"p50_ms", times[times.size() / 2]},
                                    {"max_ms", times.back()}};
    std::printf("%s\n", json::Print(line).c_str());
    return 0;
  }

  // Writes `count` times, as many at once as there are writers; prints how many events all watchers
  // got per second.
  int Flood(uint64_t count) {
    if (!Open()) return 1;
    const SteadyTime begin = reactor_.Now();
    const size_t want = events_ + static_cast<size_t>(watchers_) * count;
    left_ = count;
    for (size_t i = 0; i < writers_; ++i) WriteNext();
    if (!AllSeen(want)) return 1;
    const double seconds = Millis(reactor_.Now() - begin) / 1e3;
    json::Value line =
        json::Object{{"what", "flood"},
                     {"watchers", watchers_},
                     {"per_second", static_cast<double>(count) * watchers_ / seconds}};
    std::printf("%s\n", json::Print(line).c_str());
    return 0;
  }

 private:
  static constexpr uint64_t kFloodNames = 1'000'000;  // beyond those of rounds

  bool Open() {
    if (!client_) return false;
    for (int i = 0; i < watchers_; ++i) {
      client_->Stream(
          Get("/api/v1/namespaces/bench-watch/configmaps?watch=1"),
          [this](int, const net::Headers&) { ++open_; },
          [this](std::string_view data) {
            events_ += static_cast<size_t>(std::count(data.begin(), data.end(), '\n'));
          },
          [](const Status&) {});
    }
    if (reactor_.RunUntil([this] { return open_ == watchers_; }, std::chrono::minutes(2))) {
      return true;
    }
    std::fprintf(stderr, "swell_load: %d of %d watches opened\n", open_, watchers_);
    return false;
  }

  bool AllSeen(size_t want) {
    if (reactor_.RunUntil([&] { return events_ >= want; }, std::chrono::minutes(2))) return true;
    std::fprintf(stderr, "swell_load: not all watchers saw every write\n");
    return false;
  }

  void Write(uint64_t index, std::function<void()> done) {
    client_->Send(Post(ConfigMaps("bench-watch"), ConfigMap(index)), std::chrono::seconds(30),
                  [done = std::move(done)](const Result<net::HttpResponse>&) { done(); });
  }

  void WriteNext() {
    if (left_ == 0) return;
    Write(kFloodNames * writers_ + --left_, [this] { WriteNext(); });
  }

  net::Reactor& reactor_;
  const int watchers_;
  const size_t writers_;
  int open_ = 0;
  size_t events_ = 0;
  uint64_t left_ = 0;
  std::unique_ptr<net::HttpClient> client_;
};

// What a watch of bench's pods is counted for; of the pods it gets the metadata alone.
struct PodMark {
  const char* what;
  std::string_view selector;  // of the watch
  // Whether the event, a line of JSON, is the first that tells it of its pod.
  std::function<bool(std::string_view event)> tells;
};

bool IsAdded(std::string_view event) { return event.starts_with(R"({"type":"ADDED")"); }

PodMark Bound() { return {"bound", "&fieldSelector=spec.nodeName%21%3D", IsAdded}; }

PodMark Ending() {
  return {"ending", "",
          [seen = std::set<std::string, std::less<>>()](std::string_view event) mutable {
            constexpr std::string_view kName = R"("name":")";
            size_t at = event.find(kName);
            if (at == std::string_view::npos) return false;
            if (event.find(R"("deletionTimestamp":)") == std::string_view::npos) return false;
            std::string_view name = event.substr(at + kName.size());
            return seen.emplace(name.substr(0, name.find('"'))).second;
          }};
}

// Counts pods as a watch tells the mark of them, from the first to the last.
class CountPods {
 public:
  CountPods(net::Reactor& reactor, const Target& target, PodMark mark, uint64_t wanted)
      : reactor_(reactor), mark_(std::move(mark)), wanted_(wanted) {
    net::ClientConfig config;
    config.base_url = target.url;
    config.tls = target.tls;
    auto client = net::HttpClient::Make(reactor, config);
    if (client.ok()) client_ = std::move(*client);
  }

  int Run(Duration limit) {
    if (!client_) return 1;
    net::HttpRequest request =
        Get(StrCat("/api/v1/namespaces/bench/pods?watch=1&timeoutSeconds=3600", mark_.selector));
    request.headers = {{"Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}};
    bool ended = false;
    client_->Stream(
        std::move(request), [](int, const net::Headers&) {},
        [this](std::string_view data) { Count(data); }, [&ended](const Status&) { ended = true; });
    reactor_.RunUntil([&] { return ended || counted_ >= wanted_; }, limit);
    double seconds = Millis(last_ - first_) / 1e3;
    json::Value line = json::Object{{"what", mark_.what},
                                    {"pods", counted_},
                                    {"seconds", seconds},
                                    {"since_added", Millis(last_ - added_) / 1e3},
                                    {"per_second", static_cast<double>(counted_) / seconds}};
    std::printf("%s\n", json::Print(line).c_str());
    return counted_ >= wanted_ ? 0 : 1;
  }

 private:
  void Count(std::string_view data) {
    text_ += data;
    size_t from = 0;
    for (size_t end; (end = text_.find('\n', from)) != std::string::npos; from = end + 1) {
      const std::string_view event = std::string_view(text_).substr(from, end - from);
      if (counted_ == 0 && IsAdded(event)) added_ = reactor_.Now();
      if (!mark_.tells(event)) continue;
      last_ = reactor_.Now();
      if (counted_++ == 0) first_ = last_;
    }
    text_.erase(0, from);
  }

  net::Reactor& reactor_;
  PodMark mark_;
  uint64_t wanted_;
  uint64_t counted_ = 0;
  SteadyTime added_;  // the last pod that came before the first that counts
  SteadyTime first_;
  SteadyTime last_;
  std::string text_;
  std::unique_ptr<net::HttpClient> client_;
};

constexpr char kPodsPath[] = "/api/v1/namespaces/bench/pods";

// The names of bench's pods.
std::vector<std::string> PodNames(net::Reactor& reactor, const Target& target) {
  net::ClientConfig config;
  config.base_url = target.url;
  config.tls = target.tls;
  std::vector<std::string> names;
  auto client = net::HttpClient::Make(reactor, config);
  if (!client.ok()) return names;
  bool answered = false;
  (*client)->Send(Get(kPodsPath), std::chrono::minutes(1),
                  [&](const Result<net::HttpResponse>& response) {
                    answered = true;
                    if (!response.ok()) return;
                    auto list = json::Parse(net::BodyText(response->body));
                    if (!list.ok()) return;
                    for (const json::Value& pod : json::GetArray(*list, {"items"})) {
                      names.emplace_back(json::GetString(pod, {"metadata", "name"}));
                    }
                  });
  reactor.RunUntil([&] { return answered; }, std::chrono::minutes(1));
  return names;
}

// What a file says to create: on each line a path, a space, and the object.
std::optional<std::vector<std::pair<std::string, std::string>>> ReadCreations(const char* file) {
  std::ifstream in(file);
  std::vector<std::pair<std::string, std::string>> all;
  for (std::string line; std::getline(in, line);) {
    const size_t space = line.find(' ');
    if (space == std::string::npos) return std::nullopt;
    all.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  if (all.empty()) return std::nullopt;
  return all;
}

// The modes that write many pods: N requests of one kind.
std::optional<net::LoadOptions> PodRequests(net::Reactor& reactor,
                                            const Target& target,
                                            std::string_view mode,
                                            int argc,
                                            char** argv,
                                            net::LoadOptions options) {
  const std::string kPods = kPodsPath;
  options.requests = static_cast<uint64_t>(std::atoll(argv[3]));
  options.duration = std::chrono::minutes(5);
  options.expected_status = 201;
  if (mode == "fill") {
    options.make_request = [kPods](uint64_t i) { return Post(kPods, Pod(i)); };
  } else if (mode == "pods" && argc > 6) {
    options.make_request = [kPods, gpus = std::atoi(argv[5]), scheduler = std::string(argv[6])](
                               uint64_t i) { return Post(kPods, PodToPlace(i, gpus, scheduler)); };
  } else if (mode == "bind" && argc > 5) {
    options.make_request = [kPods, nodes = std::max(1, std::atoi(argv[5]))](uint64_t i) {
      return Post(StrCat(kPods, "/bench-", i, "/binding"), Binding(i, nodes));
    };
  } else if (mode == "send" && argc > 5) {
    auto all = ReadCreations(argv[5]);
    if (!all) return std::nullopt;
    options.requests = std::min<uint64_t>(options.requests, all->size());
    options.make_request = [all = std::move(*all)](uint64_t i) {
      return Post(all[i % all.size()].first, all[i % all.size()].second);
    };
  } else if (mode == "delete") {
    options.expected_status = 200;
    auto names = PodNames(reactor, target);
    if (names.size() < options.requests) return std::nullopt;
    options.make_request = [kPods, names = std::move(names)](uint64_t i) {
      net::HttpRequest request = Get(StrCat(kPods, "/", names[i % names.size()]));
      request.method = "DELETE";
      return request;
    };
  } else {
    return std::nullopt;
  }
  return options;
}

int Main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr,
                 "usage: swell_load KUBECONFIG "
                 "create|get|connect|list|patch|fill|watch|flood|pods|bind|send|delete|"
                 "bound|ending N [M]\n");
    return 2;
  }
  auto access = client::LoadKubeconfig(argv[1]);
  if (!access.ok()) {
    std::fprintf(stderr, "swell_load: %s\n", access.status().message().c_str());
    return 1;
  }
  Target target{access->server,
                {.ca_pem = access->ca_pem,
                 .cert_pem = access->client_cert_pem,
                 .key_pem = access->client_key_pem}};
  std::string mode = argv[2];
  auto n = static_cast<uint64_t>(std::atoll(argv[3]));
  int m = argc > 4 ? std::atoi(argv[4]) : 16;
  const std::string last = argc > 5 ? argv[5] : "";
  const std::string kPods = kPodsPath;
  net::Reactor reactor;
  net::LoadOptions options = Base(target, m);
  if (mode == "create") {
    options.requests = n;
    options.duration = std::chrono::minutes(2);
    options.expected_status = 201;
    options.make_request = [path = ConfigMaps(last.empty() ? "bench" : last)](uint64_t i) {
      return Post(path, ConfigMap(i));
    };
    return Run(reactor, "create", options);
  }
  if (mode == "get" || mode == "connect") {
    options.duration = std::chrono::seconds(n);
    options.connect = mode == "connect";
    options.make_request = [path = last.empty() ? kPods + "/bench-0" : last](uint64_t) {
      return Get(path);
    };
    return Run(reactor, mode.c_str(), options);
  }
  if (mode == "list") {
    options.duration = std::chrono::seconds(n);
    options.make_request = [path = last.empty() ? kPods : last](uint64_t) { return Get(path); };
    return Run(reactor, "list", options);
  }
  if (mode == "patch" && argc > 5) {
    options.duration = std::chrono::seconds(n);
    options.make_request = [count = std::max(1, std::atoi(argv[5]))](uint64_t i) {
      net::HttpRequest request =
          Post(StrCat(ConfigMaps("bench"), "/bench-", i % static_cast<uint64_t>(count)),
               StrCat(R"({"data":{"round":")", i, R"("}})"));
      request.method = "PATCH";
      request.headers = {{"Content-Type", "application/merge-patch+json"}};
      return request;
    };
    return Run(reactor, "patch", options);
  }
  if (auto load = PodRequests(reactor, target, mode, argc, argv, options))
    return Run(reactor, mode.c_str(), *load);
  if (mode == "bound" || mode == "ending") {
    return CountPods(reactor, target, mode == "bound" ? Bound() : Ending(), n)
        .Run(std::chrono::seconds(m));
  }
  if (mode == "watch") return WatchFanOut(reactor, target, static_cast<int>(n)).Run(m);
  if (mode == "flood") {
    const size_t writers = last.empty() ? 16 : static_cast<size_t>(std::max(1, std::atoi(argv[5])));
    return WatchFanOut(reactor, target, static_cast<int>(n), writers)
        .Flood(static_cast<uint64_t>(m));
  }
  std::fprintf(stderr, "swell_load: unknown mode %s\n", mode.c_str());
  return 2;
}

}  // namespace
}  // namespace swell

int main(int argc, char** argv) { return swell::Main(argc, argv); }
