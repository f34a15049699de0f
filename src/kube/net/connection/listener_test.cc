#include "kube/net/connection/listener.h"

#include <gtest/gtest.h>

#include "kube/net/net_testing.h"

namespace swell::net {
namespace {

class ListenerTest : public ::testing::Test {
 protected:
  ListenerTest() {
    auto made = TcpListener::Open(reactor_, "127.0.0.1:0", [this](std::shared_ptr<ByteStream> s) {
      ByteStream* raw = s.get();
      raw->Start(
          reactor_, [raw](std::string bytes) { raw->Write(MakeChunk("echo " + bytes)); },
          [this](const Status&) { ++ended_; });
      streams_.push_back(std::move(s));
    });
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    listener_ = std::move(*made);
  }
  bool Run(const std::function<bool()>& done) { return reactor_.RunUntil(done, kPatience); }

  Reactor reactor_;
  std::unique_ptr<TcpListener> listener_;
  std::vector<std::shared_ptr<ByteStream>> streams_;
  int ended_ = 0;
};

TEST_F(ListenerTest, ConnectionsAreStreamsOfTheirOwn) {
  RawPeer a(reactor_, listener_->port()), b(reactor_, listener_->port());
  a.Send("a");
  b.Send("b");
  a.Expect("echo a");
  b.Expect("echo b");
  b.Close();
  EXPECT_TRUE(Run([&] { return ended_ == 1; }));
  a.Send("again");
  a.Expect("echo again");
}

TEST_F(ListenerTest, DroppingAStreamClosesItAndTheListenersEndClosesAll) {
  RawPeer a(reactor_, listener_->port()), b(reactor_, listener_->port());
  ASSERT_TRUE(Run([&] { return streams_.size() == 2; }));
  streams_[0].reset();
  EXPECT_TRUE(Run([&] { return a.eof || b.eof; }));
  listener_.reset();
  EXPECT_TRUE(Run([&] { return a.eof && b.eof; }));
}

TEST_F(ListenerTest, AnAddressInUseIsAnError) {
  auto second = TcpListener::Open(reactor_, "127.0.0.1:" + std::to_string(listener_->port()),
                                  [](const std::shared_ptr<ByteStream>&) {});
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find("in use"), std::string::npos)
      << second.status().message();
}

}  // namespace
}  // namespace swell::net
