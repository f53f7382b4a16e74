#include "http/accept.h"

#include "base/text.h"

namespace caisson::http {
namespace {

// "q=0", "q=0.0", "q=0.000": the only qualities without another digit.
bool IsRefusal(std::string_view parameter) {
  parameter = Trim(parameter);
  if (!parameter.starts_with("q=") && !parameter.starts_with("Q=")) return false;
  return parameter.find_first_of("123456789") == parameter.npos;
}

}  // namespace

bool AcceptsCoding(std::string_view accept_encoding, std::string_view coding) {
  for (std::string_view part : Split(accept_encoding, ',')) {
    size_t end = part.find(';');
    if (!EqualsIgnoreCase(Trim(part.substr(0, end)), coding)) continue;
    return end == part.npos || !IsRefusal(part.substr(end + 1));
  }
  return false;
}

}  // namespace caisson::http
