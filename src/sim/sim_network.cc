#include "sim/sim_network.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace swell::sim {
namespace {

constexpr Duration kExchangeLimit = std::chrono::seconds(60);
constexpr uint64_t kNoticedWithinNs = 30'000'000'000;

}  // namespace

// One request under way. It lives until its sink has heard its end, or nobody wants it any more
// and the server is done with it.
struct SimNetwork::Exchange {
  uint64_t id = 0;
  std::string process;
  api::RestRequest request;
  std::shared_ptr<api::RestSink> sink;  // null: nobody wants to hear any more
  std::unique_ptr<api::RestCall> at_server;
  SteadyTime last_arrival;
  bool streams = false;
  int64_t lag_percent = 0;  // of its process's lag
  bool holed = false;       // a message of it vanished
  bool over = false;
  TimerId limit = kNoTimer;
};

class SimNetwork::Call final : public api::RestCall {
 public:
  Call(SimNetwork& network, ExchangePtr exchange)
      : network_(network), exchange_(std::move(exchange)) {}
  ~Call() override {
    exchange_->sink = nullptr;
    if (exchange_->over) return;
    // A request that was sent is worked on; a stream ends when the server hears of it.
    if (exchange_->streams) {
      network_.Deliver(exchange_,
                       [&network = network_, exchange = exchange_] { network.End(exchange); });
    }
  }

 private:
  SimNetwork& network_;
  ExchangePtr exchange_;
};

// The server's end of an exchange.
class SimNetwork::Sink final : public api::RestSink {
 public:
  Sink(SimNetwork& network, ExchangePtr exchange)
      : network_(network), exchange_(std::move(exchange)) {}

  void OnResponse(api::RestResponse response) override {
    if (exchange_->over) return;
    if (network_.on_answer) network_.on_answer(exchange_->id, exchange_->request, response);
    auto answer = std::make_shared<api::RestResponse>(std::move(response));
    network_.Deliver(exchange_, [&network = network_, exchange = exchange_, answer] {
      auto sink = std::exchange(exchange->sink, nullptr);
      network.End(exchange);
      if (sink) sink->OnResponse(std::move(*answer));
    });
  }
  void OnStreamStart(int status, std::string type) override {
    if (exchange_->over) return;
    exchange_->streams = true;
    network_.executor_.Cancel(std::exchange(exchange_->limit, kNoTimer));
    Pass([status, type = std::move(type)](api::RestSink& sink) {
      sink.OnStreamStart(status, type);
    });
  }
  bool OnChunk(const api::Chunk& chunk) override {
    if (exchange_->over) return false;
    // TCP knows no lines.
    const size_t cut = chunk->size() < 2 || !network_.random_.OneIn(8)
                           ? chunk->size()
                           : 1 + network_.random_.Below(chunk->size() - 1);
    Send(cut == chunk->size() ? chunk : api::MakeChunk(chunk->substr(0, cut)));
    if (cut < chunk->size() && !exchange_->over) Send(api::MakeChunk(chunk->substr(cut)));
    return !exchange_->over;
  }
  void OnStreamEnd(const Status& why) override {
    if (exchange_->over) return;
    network_.Deliver(exchange_, [&network = network_, exchange = exchange_, why] {
      auto sink = std::exchange(exchange->sink, nullptr);
      network.End(exchange);
      if (sink) sink->OnStreamEnd(why);
    });
  }

 private:
  void Send(const api::Chunk& chunk) {
    Pass([network = &network_, exchange = exchange_, chunk](api::RestSink& sink) {
      if (!sink.OnChunk(chunk)) network->End(exchange);
    });
  }
  void Pass(std::function<void(api::RestSink&)> what) {
    network_.Deliver(
        exchange_,
        [exchange = exchange_, what = std::move(what)] {
          if (auto sink = exchange->sink) what(*sink);
        },
        network_.lags_[exchange_->process] * exchange_->lag_percent / 100);
  }

  SimNetwork& network_;
  ExchangePtr exchange_;
};

class SimNetwork::Way final : public api::RestHandler {
 public:
  Way(SimNetwork& network, std::string process) : network_(network), process_(std::move(process)) {}
  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override {
    return network_.Send(process_, std::move(request), std::move(sink));
  }

 private:
  SimNetwork& network_;
  std::string process_;
};

SimNetwork::SimNetwork(SimExecutor& executor, uint64_t seed) : executor_(executor), random_(seed) {}

SimNetwork::~SimNetwork() { Attach(nullptr, true); }

std::shared_ptr<api::RestHandler> SimNetwork::Link(const std::string& process) {
  auto& way = ways_[process];
  if (!way) way = std::make_shared<Way>(*this, process);
  return way;
}

void SimNetwork::Attach(api::RestHandler* server, bool silent) {
  server_ = server;
  given_up_.clear();
  std::vector<ExchangePtr> had;
  for (const auto& [id, exchange] : open_) {
    if (exchange->at_server) had.push_back(exchange);
  }
  for (const ExchangePtr& exchange : had) {
    exchange->at_server.reset();
    const Duration noticed(silent ? static_cast<int64_t>(random_.Below(kNoticedWithinNs)) : 0);
    executor_.After(noticed, [this, exchange] { Break(exchange); });
  }
}

void SimNetwork::Cut(const std::string& process, bool silent) {
  cut_[process] = silent;
  if (silent) return;
  std::vector<ExchangePtr> had;
  for (const auto& [id, exchange] : open_) {
    if (exchange->process == process) had.push_back(exchange);
  }
  for (const ExchangePtr& exchange : had) Break(exchange);
}

void SimNetwork::Mend(const std::string& process) {
  cut_.erase(process);
  std::vector<ExchangePtr> holed;
  for (const auto& [id, exchange] : open_) {
    if (exchange->process == process && exchange->holed) holed.push_back(exchange);
  }
  for (const ExchangePtr& exchange : holed) Break(exchange);
}

Duration SimNetwork::Delay() {
  const auto span = static_cast<uint64_t>((faults.delay_max - faults.delay_min).count());
  return faults.delay_min + Duration(static_cast<int64_t>(random_.Below(span + 1)));
}

bool SimNetwork::Vanishes(Exchange& exchange) const {
  auto cut = cut_.find(exchange.process);
  const bool vanishes = exchange.holed || (cut != cut_.end() && cut->second);
  exchange.holed = vanishes;
  return vanishes;
}

SimNetwork::ExchangePtr SimNetwork::Open(const std::string& process,
                                         api::RestRequest request,
                                         std::shared_ptr<api::RestSink> sink) {
  auto exchange = std::make_shared<Exchange>();
  exchange->id = next_++;
  exchange->process = process;
  exchange->request = std::move(request);
  exchange->sink = std::move(sink);
  open_[exchange->id] = exchange;
  exchange->streams = exchange->request.query.find("watch=true") != std::string::npos;
  if (exchange->streams) {
    exchange->lag_percent = static_cast<int64_t>(random_.Below(101));
  } else {
    exchange->limit = executor_.After(kExchangeLimit, [this, exchange] {
      exchange->limit = kNoTimer;
      Fail(exchange, 504);
    });
  }
  return exchange;
}

std::unique_ptr<api::RestCall> SimNetwork::Send(const std::string& process,
                                                api::RestRequest request,
                                                std::shared_ptr<api::RestSink> sink) {
  if (on_ask) on_ask(process, request);
  ExchangePtr exchange = Open(process, std::move(request), std::move(sink));
  const std::string& method = exchange->request.method;
  if (!exchange->streams && Happens(faults.late_percent)) {
    const ExchangePtr late = Open(process, exchange->request, nullptr);
    const auto span = static_cast<uint64_t>(faults.late_max.count());
    executor_.After(Duration(static_cast<int64_t>(random_.Below(span + 1))),
                    [this, late] { Arrive(late); });
    exchange->holed = true;
    Break(exchange);
    return std::make_unique<Call>(*this, std::move(exchange));
  }
  if ((method == "PUT" || method == "DELETE") && Happens(faults.twice_percent)) {
    const ExchangePtr first = Open(process, exchange->request, nullptr);
    Deliver(first, [this, first] { Arrive(first); });
  }
  Deliver(exchange, [this, exchange] { Arrive(exchange); });
  return std::make_unique<Call>(*this, std::move(exchange));
}

void SimNetwork::Arrive(const ExchangePtr& exchange) {
  if (exchange->over || Vanishes(*exchange)) return;
  if (server_ == nullptr) return Break(exchange);
  auto call = server_->Handle(exchange->request, std::make_shared<Sink>(*this, exchange));
  if (!exchange->over) exchange->at_server = std::move(call);
}

void SimNetwork::Deliver(const ExchangePtr& exchange, std::function<void()> fn, Duration lag) {
  if (exchange->over || Vanishes(*exchange)) return;
  if (cut_.contains(exchange->process) || Happens(faults.lost_percent)) {
    exchange->holed = true;  // what was sent before or comes after it is not heard either
    return Break(exchange);
  }
  exchange->holed = Happens(faults.mute_percent);
  if (exchange->holed) return;
  // Within one exchange nothing overtakes.
  const SteadyTime now = executor_.Steady();
  exchange->last_arrival = std::max(exchange->last_arrival, now + Delay() + lag);
  executor_.After(exchange->last_arrival - now, [this, exchange, fn = std::move(fn)] {
    if (!exchange->over && !Vanishes(*exchange)) fn();
  });
}

// The connection ends: the server gives the call up, and who asked learns it a little later.
void SimNetwork::Break(const ExchangePtr& exchange) {
  GiveUp(exchange);
  executor_.After(Delay(), [this, exchange] { Fail(exchange, 503); });
}

// Not from inside the server's own call.
void SimNetwork::GiveUp(const ExchangePtr& exchange) {
  if (!exchange->at_server) return;
  given_up_.push_back(std::move(exchange->at_server));
  executor_.Post([this] { given_up_.clear(); });
}

void SimNetwork::Fail(const ExchangePtr& exchange, int http_status) {
  if (exchange->over) return;
  auto sink = std::exchange(exchange->sink, nullptr);
  const bool streams = exchange->streams;
  End(exchange);
  if (!sink) return;
  if (streams) return sink->OnStreamEnd(Status(Code::kUnavailable, "the connection was lost"));
  api::RestResponse response;
  response.status = http_status;
  sink->OnResponse(std::move(response));
}

void SimNetwork::End(const ExchangePtr& exchange) {
  exchange->over = true;
  executor_.Cancel(std::exchange(exchange->limit, kNoTimer));
  GiveUp(exchange);
  open_.erase(exchange->id);
}

}  // namespace swell::sim
