// Asio's own code, compiled once: reactor.cc then sees only its declarations and stays cheap.
#include <boost/asio/impl/src.hpp>
