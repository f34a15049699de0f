#include "kube/edge/http/net_duplex.h"

#include <utility>
#include <vector>

namespace swell::edge {
namespace {

class NetDuplex final : public api::DuplexStream, public std::enable_shared_from_this<NetDuplex> {
 public:
  NetDuplex(Executor& executor, std::shared_ptr<net::ByteStream> stream)
      : executor_(executor), stream_(std::move(stream)) {}
  ~NetDuplex() override { stream_->Close(); }

  void Start(Callbacks callbacks) override {
    stream_->Start(
        executor_,
        [on_data = std::move(callbacks.on_data)](std::string bytes) {
          on_data(std::make_shared<const std::string>(std::move(bytes)));
        },
        [on_end = std::move(callbacks.on_end)](const Status& why) {
          if (on_end) on_end(why);
        });
  }
  void SetReading(bool on) override { stream_->SetReading(on); }
  bool Write(api::Chunk bytes) override { return stream_->Write(std::move(bytes)); }
  size_t queued_bytes() const override { return stream_->queued_bytes(); }
  void OnDrained(std::function<void()> callback) override {
    drained_.push_back(std::move(callback));
    stream_->OnDrained(executor_, api::kDuplexHighWater / 2, [weak = weak_from_this()] {
      auto self = weak.lock();
      if (!self) return;
      for (auto& fn : std::exchange(self->drained_, {})) fn();
    });
  }
  void CloseWrite() override { Close(); }
  void Close() override {
    drained_.clear();
    stream_->Close();
  }

 private:
  Executor& executor_;
  std::shared_ptr<net::ByteStream> stream_;
  std::vector<std::function<void()>> drained_;
};

}  // namespace

api::DuplexPtr MakeNetDuplex(Executor& executor, std::shared_ptr<net::ByteStream> stream) {
  return std::make_shared<NetDuplex>(executor, std::move(stream));
}

}  // namespace swell::edge
