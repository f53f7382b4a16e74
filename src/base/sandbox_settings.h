// The part of Config about sandboxes and the engine that makes them.
#pragma once

#include <cstdint>
#include <string>

namespace caisson {

struct SandboxSettings {
  // ---- sandboxes: 0 = unlimited ---------------------------------------------------
  int64_t max_sandboxes = 1000;           // running at once on this server
  int64_t max_sandboxes_per_key = 0;      // running at once per API key
  int64_t default_timeout_s = 300;        // POST /v2/sandboxes without a timeout
  int64_t max_timeout_s = 86'400;         // longest life of one run
  int64_t max_metadata_bytes = 64 << 10;  // metadata, and likewise envVars, of one sandbox
  int64_t create_timeout_ms = 30'000;
  int64_t envd_timeout_ms = 10'000;  // envd does not answer for so long: reported as stopped
  int64_t metrics_interval_ms = 5'000;
  int64_t metrics_history = 720;          // samples kept per sandbox,
  int64_t metrics_long_interval_s = 300;  // and means over so long,
  int64_t metrics_long_history = 288;     // so many of them
  int64_t spare_sockets = 8;              // sockets into a sandbox kept ready, per sandbox
  int64_t max_events = 10'000;            // timeline entries kept per sandbox
  int64_t retention_days = 30;            // ended sandboxes are forgotten after so long; 0 = never

  // ---- rates and capacity: 0 = unlimited --------------------------------------------
  int64_t rate_limit = 0;              // control-plane requests per second and API key
  int64_t rate_burst = 0;              // how many may come at once; 0 = twice the rate
  int64_t create_rate_limit = 0;       // sandboxes started per minute and API key
  int64_t max_promised_memory_mb = 0;  // sum of the memory limits of all running sandboxes

  // ---- pause, snapshots, warm pool ---------------------------------------------------
  bool save_memory = true;              // false: pausing freezes instead of saving memory
  std::string criu;                     // directory of CRIU; default: what ./run prepared, if any
  bool save_sync = true;                // saved state is forced to the host's disk
  int64_t save_timeout_ms = 120'000;    // of one pause, resume or snapshot
  int64_t resume_reserve_mb = 64;       // at hand per launcher where memory is slow to come
  int64_t max_deleted_mb = 1024;        // of deleted files still open; with more no memory is saved
  int64_t min_free_disk_mb = 1024;      // below it nothing is saved or started
  int64_t hold_free_disk_mb = 512;      // below it those whose disks grow fastest stand still
  int64_t max_snapshot_layers = 64;     // snapshots of sandboxes made from snapshots, how deep
  int64_t max_forks = 100;              // of one request
  int64_t max_paused_per_key = 0;       // 0 = unlimited
  int64_t max_snapshots_per_key = 0;    // 0 = unlimited
  int64_t paused_retention_days = 0;    // paused sandboxes are deleted after so long; 0 = never
  int64_t auto_resume_timeout_s = 300;  // a sandbox woken by traffic runs at least so long
  int64_t idle_pause_s = 0;             // without traffic for so long it is paused; 0 = never
  std::string on_shutdown = "keep";     // "keep": sandboxes live on; "pause": they are saved
  std::string warm_pool;                // sandboxes kept ready: "base=4,other=2"
  int64_t pool_check_interval_ms = 10'000;  // how often those are asked whether they are well

  // ---- one sandbox, when its template does not say otherwise -------------------------
  int64_t sandbox_cpus = 2;
  int64_t sandbox_memory_mb = 1024;
  int64_t sandbox_disk_mb = 10'240;
  int64_t sandbox_pids = 4096;
  int64_t sandbox_open_files = 65'536;  // per process, unless the host allows less
  int64_t sandbox_output_kbps = 0;      // output of one command, in KB per second; 0 = unlimited
  int64_t busy_after_ms = 2'000;  // one that computes or writes so long makes room for the others:
  int64_t busy_write_mbps = 50;   // it may then write so many MB per second; 0 = unlimited
  // ---- how much one request may ask for; 0 = unlimited
  int64_t max_sandbox_cpus = 8;
  int64_t max_sandbox_memory_mb = 8192;
  int64_t max_sandbox_disk_mb = 51'200;
  int64_t max_sandbox_pids = 32'768;
  int64_t max_sandbox_open_files = 0;
  int64_t max_sandbox_output_kbps = 0;

  // ---- engine ---------------------------------------------------------------------
  int64_t launchers = 0;          // processes that build sandboxes; 0 = one per CPU, at most 8, + 1
  int64_t launcher_queue = 1000;  // sandboxes waiting to be built; more are refused
  std::string network = "auto";   // "auto" = veth + nftables where possible, "none"
  std::string network_cidr = "198.18.0.0/15";
  std::string deny_always;  // IPv4 addresses and networks no sandbox may reach, with commas
  int64_t network_max_connections = 4096;  // open at once from one sandbox
  std::string dns;  // resolver for sandboxes; default: the host's first nameserver
  int64_t dns_queries_per_second = 200;    // of one sandbox; more are refused
  int64_t blocked_events_per_minute = 60;  // of one sandbox; more are only counted
  std::string egress_proxy;        // HOST:PORT of a SOCKS5 proxy all sandboxes go out through
  std::string ca_bundle = "auto";  // trusted inside: "auto" = the host's, "none", or a PEM file
  int64_t uid_base = 0x10000000;   // first host uid; each sandbox takes the next 65536
  int64_t max_slots = 16'000;      // uid ranges and addresses to take from
  bool nesting = false;            // user namespaces and mounts inside sandboxes (weaker)
  bool overlay_by_path = false;    // for tests: mount roots the way kernels before 6.13 need it
  std::string engine_fail_at;      // for tests: the name of a creation step that shall fail
};

}  // namespace caisson
