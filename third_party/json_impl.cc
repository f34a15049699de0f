// Boost.JSON, compiled once (its src.hpp is the library's own header-only mode).
#include <boost/json/src.hpp>
