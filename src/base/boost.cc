// The one translation unit that holds the compiled parts of Asio, Beast and Boost.JSON.
#include <boost/asio/impl/src.hpp>
#include <boost/beast/src.hpp>
#include <boost/json/src.hpp>
