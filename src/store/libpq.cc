#include "store/libpq.h"

#include <dlfcn.h>

namespace caisson::store {
namespace {

Result<Libpq> Load() {
  void* library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return Fail(Code::kFailedPrecondition,
                "PostgreSQL's client library is missing ({}): install libpq5", dlerror());
  Libpq libpq;
  bool complete = true;
  auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (!function) complete = false;
  };
#define CAISSON_LIBPQ_FIND(name) find(libpq.name, "PQ" #name);
  CAISSON_LIBPQ(CAISSON_LIBPQ_FIND)
#undef CAISSON_LIBPQ_FIND
  if (!complete)
    return Fail(Code::kFailedPrecondition,
                "PostgreSQL's client library is too old: version 15 or newer is needed");
  return libpq;
}

}  // namespace

Result<const Libpq*> Libpq::Get() {
  static const Result<Libpq> loaded = Load();
  if (!loaded) return tl::unexpected(loaded.error());
  return &*loaded;
}

}  // namespace caisson::store
