// Large areas of saved memory, which we put back ourselves. CRIU has the kernel give a process its
// memory in pages of 4 KB, which takes longer than copying their content; an area that is as good
// as one piece can be had in huge pages at a fraction of that.
#pragma once

#include <sys/types.h>

#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/reserve.h"

namespace caisson::engine {

// Whether a file holds content of memory, be it CRIU's or one of ours.
bool HoldsPages(std::string_view name);

// Takes the large areas out of what CRIU just wrote into `directory`: its own files hold the rest
// afterwards, `large-*.img` the areas. Where there are none, or CRIU wrote something that we do not
// know, nothing changes.
Status SplitLargeAreas(int directory);

// Puts them back. All processes of the sandbox are there with their mappings, none runs yet.
// `processes`: by the host's numbers, others among them do no harm. Takes several CPUs if there is
// much, and its memory from the reserve, which learns whether it is needed.
Status FillLargeAreas(int directory, const std::vector<pid_t>& processes, Reserve& reserve);

}  // namespace caisson::engine
