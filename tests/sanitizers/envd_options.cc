// Compiled into caisson-envd in sanitizer builds only. Its environment is what the engine gives it,
// so the options are built in. A report ends envd, and an envd that ends by itself is what the
// sanitizer suite looks for in the server's log: nobody else makes it do that. Leaks are not asked
// for: envd only ever ends by being killed, and PID 1 cannot be traced.
//
// The functions are asked before the sanitizers are ready, so nothing may be counted or checked in
// them.
#define BEFORE_ALL __attribute__((no_profile_instrument_function, no_sanitize("all")))

extern "C" BEFORE_ALL const char* __asan_default_options() {
  return "detect_leaks=0:abort_on_error=0:exitcode=77:log_path=/tmp/sanitizer:"
         "allocator_may_return_null=0:quarantine_size_mb=8:malloc_context_size=10";
}
extern "C" BEFORE_ALL const char* __ubsan_default_options() { return "print_stacktrace=1"; }
// Nor can it reach the profiles of coverage: envd is counted where its own tests run it.
extern "C" const char __llvm_profile_filename[] = "/dev/null";
