// Every bound of envd in one place. The boot configuration may override any of them by name.
#pragma once

#include <cstddef>
#include <cstdint>

namespace caisson::envd {

struct Limits {
  int64_t max_connections = 2048;            // more are closed at accept
  int64_t max_processes = 1024;              // started by envd and alive at once
  int64_t max_subscribers = 64;              // clients that follow one process
  int64_t subscriber_buffer = 256 << 10;     // bytes waiting for one client; then the process waits
  int64_t output_kbps = 0;                   // output of one process per second; 0 = unlimited
  int64_t max_request_bytes = 4 << 20;       // body of an RPC
  int64_t max_input_bytes = 32 << 20;        // body of SendInput, one message of StreamInput
  int64_t max_list_entries = 100'000;        // entries in one ListDir answer
  int64_t max_watchers = 128;                // WatchDir streams and CreateWatcher watchers together
  int64_t max_watched_dirs = 65'536;         // directories under one recursive watch
  int64_t watcher_queue = 16'384;            // events kept for GetWatcherEvents
  int64_t max_part_header_bytes = 16 << 10;  // header block of one multipart part
  int64_t max_upload_parts = 10'000;         // files in one multipart upload
  int64_t exec_timeout_ms = 10'000;          // from fork to a finished execve
  int64_t retain_end_ms = 30'000;            // how long a late Connect still gets the end event
  int64_t max_retained_ends = 1024;
  int64_t stall_timeout_ms = 90'000;  // a body, upload or download, that does not move
  int64_t idle_timeout_ms = 640'000;  // keep-alive connection without a request
};

}  // namespace caisson::envd
