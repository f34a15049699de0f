// ShimStdio: serves a container's standard streams to the clients that attach. The shim listens at
// DIR/stdio.sock. The first byte of a connection says what it is, the rest is a plain stream:
//
//   O, E  gets what the container prints from now on to its standard output, its standard error
//   I     is the container's standard input
//   R     resizes its terminal: columns and rows, two bytes each, the low one first
//
// A reader that does not keep up holds the container back, so that nothing is lost.
//
// - Threads: none; lives in a shim.
#pragma once

#include <poll.h>

#include <list>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"

namespace swell::process {

inline constexpr const char* kStdioSocket = "stdio.sock";

class ShimStdio {
 public:
  struct Options {
    UniqueFd input;         // the container's standard input; invalid: discarded
    bool terminal = false;  // `input` is a terminal's master
    bool once = false;      // the first connection that ends closes the input
  };
  ShimStdio(const std::string& dir, Options options);

  void AddTo(std::vector<pollfd>& fds);
  // The descriptors that AddTo added, polled.
  void OnPolled(const pollfd* fds);

  // What the container printed.
  void Feed(char stream, std::string_view bytes);
  // More of that stream must not be read now.
  bool Congested(char stream) const;
  // The container has ended: gives readers a moment to take what is left.
  void Finish();

 private:
  struct Connection {
    UniqueFd fd;
    char role = 0;  // until it has said
    std::string pending;
  };

  void Accept();
  void OnReadable(Connection& connection);
  void OnWritable(Connection& connection);
  void TakeInput(Connection& connection);
  void FlushInput();
  void CloseInput();
  void Drop(Connection& connection);

  Options options_;
  UniqueFd listener_;
  std::list<Connection> connections_;
  std::vector<Connection*> polled_;  // in AddTo's order
  bool polled_input_ = false;
  std::string input_;
  bool input_ended_ = false;
};

}  // namespace swell::process
