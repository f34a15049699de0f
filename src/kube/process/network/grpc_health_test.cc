#include "kube/process/network/grpc_health.h"

#include <gtest/gtest.h>

namespace swell::process {
namespace {

using std::string_literals::operator""s;

const std::string kServerSettings = "\0\0\0\4\0\0\0\0\0"s;
const std::string kServerHeaders = "\0\0\1\1\4\0\0\0\1\x88"s;

// DATA of the call with a HealthCheckResponse of that status.
std::string Data(char status) { return "\0\0\7\0\0\0\0\0\1\0\0\0\0\2\x08"s + status; }

TEST(GrpcHealth, TheQuestionNamesTheServiceAndEndsTheStream) {
  const std::string request = GrpcHealthRequest("10.1.2.3:50051", "train");
  EXPECT_TRUE(request.starts_with("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"s + kServerSettings));
  EXPECT_NE(request.find("\x0d/grpc.health"s.substr(1)), std::string::npos);
  EXPECT_NE(request.find("\x0e"
                         "10.1.2.3:50051"),
            std::string::npos);
  EXPECT_TRUE(request.ends_with("\0\0\x0c\0\1\0\0\0\1\0\0\0\0\7\x0a\5train"s));
  EXPECT_TRUE(GrpcHealthRequest("a:1", "").ends_with("\0\0\5\0\1\0\0\0\1\0\0\0\0\0"s));
  // Longer than one byte of HPACK and of protobuf say.
  const std::string name(300, 's');
  EXPECT_TRUE(GrpcHealthRequest("a:1", name).ends_with("\x0a\xac\x02"s + name));
}

TEST(GrpcHealth, ServingIsHealthyInPiecesOfAnySize) {
  const std::string answer = kServerSettings + kServerHeaders + Data(1);
  for (const size_t step : {size_t{1}, size_t{7}, answer.size()}) {
    GrpcHealthAnswer reader;
    std::optional<node::ProbeResult> verdict;
    for (size_t at = 0; at < answer.size() && !verdict; at += step) {
      verdict = reader.Add(std::string_view(answer).substr(at, step));
    }
    ASSERT_TRUE(verdict) << step;
    EXPECT_TRUE(verdict->ok) << verdict->message;
    EXPECT_EQ(reader.TakeReply(), "\0\0\0\4\1\0\0\0\0"s) << "settings are acknowledged once";
    EXPECT_EQ(reader.TakeReply(), "");
  }
}

TEST(GrpcHealth, OtherStatusesSayWhich) {
  for (const auto& [status, name] : {std::pair('\2', "NOT_SERVING"), std::pair('\0', "UNKNOWN"),
                                     std::pair('\3', "SERVICE_UNKNOWN")}) {
    GrpcHealthAnswer reader;
    const auto verdict = reader.Add(kServerSettings + Data(status));
    ASSERT_TRUE(verdict);
    EXPECT_FALSE(verdict->ok);
    EXPECT_EQ(verdict->message, "service unhealthy (responded with \""s + name + "\")");
  }
  // protobuf leaves out the first value of an enumeration.
  GrpcHealthAnswer reader;
  const auto verdict = reader.Add(kServerSettings + "\0\0\5\0\0\0\0\0\1\0\0\0\0\0"s);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->message, "service unhealthy (responded with \"UNKNOWN\")");
}

TEST(GrpcHealth, AServerWithoutTheServiceAnswersByHeadersAlone) {
  GrpcHealthAnswer reader;
  const auto verdict = reader.Add(kServerSettings + "\0\0\1\1\5\0\0\0\1\x88"s);
  ASSERT_TRUE(verdict);
  EXPECT_FALSE(verdict->ok);
  EXPECT_NE(verdict->message.find("may not implement"), std::string::npos);
}

TEST(GrpcHealth, BytesThatAreNoAnswerEndIt) {
  const std::string bad[] = {"HTTP/1.1 400 Bad Request\r\n\r\n",
                             kServerHeaders,
                             kServerSettings + "\xff\xff\xff\0\0\0\0\0\1"s,
                             kServerSettings + "\0\0\1\0\x08\0\0\0\1\xff"s,
                             kServerSettings + "\0\0\x08\7\0\0\0\0\0\0\0\0\0\0\0\0\1"s,
                             kServerSettings + "\0\0\5\0\0\0\0\0\1\0\xff\xff\xff\xff"s};
  for (const std::string& bytes : bad) {
    GrpcHealthAnswer reader;
    const auto verdict = reader.Add(bytes);
    ASSERT_TRUE(verdict) << bytes;
    EXPECT_FALSE(verdict->ok);
  }
  EXPECT_FALSE(GrpcHealthAnswer().End().ok);
}

}  // namespace
}  // namespace swell::process
