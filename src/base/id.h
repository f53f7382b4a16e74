// Random ids and secrets, from the kernel's generator.
#pragma once

#include <string>

namespace caisson {

// `prefix` + `length` characters of [a-z0-9]. Sandbox ids are RandomId("i", 20).
std::string RandomId(std::string_view prefix, size_t length);
// 2 × `bytes` lower-case hexadecimal digits.
std::string RandomHex(size_t bytes);
// A random (version 4) UUID.
std::string RandomUuid();
// Fills with getrandom(2); aborts if the kernel cannot, there is no sane way on.
void FillRandom(void* data, size_t size);

}  // namespace caisson
