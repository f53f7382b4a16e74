#include "engine/manifest.h"

#include <boost/json.hpp>

#include "engine/image_pack.h"
#include "engine/protocol.h"

namespace caisson::engine {
namespace {

std::string String(const json::object& o, const char* name) {
  return json::value_to<std::string>(o.at(name));
}

json::array EncodeMounts(const std::vector<HostMount>& mounts) {
  json::array list;
  for (const HostMount& mount : mounts)
    list.push_back({{"point", mount.point}, {"source", mount.source}});
  return list;
}

// Throws on a missing or wrong field; the caller turns that into an error.
Manifest Decode(const json::object& o) {
  Manifest manifest;
  manifest.saved = DecodeSaved(o.at("saved")).value();
  manifest.snapshot = o.at("snapshot").as_bool();
  manifest.sandbox_id = String(o, "sandbox_id");
  manifest.root_dir = String(o, "root_dir");
  manifest.envd = String(o, "envd");
  manifest.boot_id = String(o, "boot_id");
  manifest.host_boot_id = String(o, "host_boot_id");
  manifest.kernel = String(o, "kernel");
  manifest.criu = String(o, "criu");
  manifest.disk_limit_bytes = o.at("disk_limit_bytes").to_number<int64_t>();
  manifest.loop = o.at("loop").to_number<int>();
  for (const json::value& layer : o.at("layers").as_array())
    manifest.layers.push_back(json::value_to<std::string>(layer));
  for (const json::value& mount : o.at("mounts").as_array())
    manifest.mounts.push_back(
        {String(mount.as_object(), "point"), String(mount.as_object(), "source")});
  for (const auto& [name, sum] : o.at("files").as_object())
    manifest.files.emplace(name, json::value_to<std::string>(sum));
  return manifest;
}

bool NamesArePlain(const Manifest& manifest) {
  for (const std::string& layer : manifest.layers)
    if (!IsFileName(layer)) return false;
  for (const auto& [name, sum] : manifest.files)
    if (!IsFileName(name)) return false;
  return IsFileName(manifest.saved.id) && IsFileName(manifest.sandbox_id);
}

}  // namespace

std::string SerializeManifest(const Manifest& manifest) {
  json::object files;
  for (const auto& [name, sum] : manifest.files) files[name] = sum;
  return json::serialize(
      json::object{{"format", kManifestFormat},
                   {"saved", EncodeSaved(manifest.saved)},
                   {"snapshot", manifest.snapshot},
                   {"sandbox_id", manifest.sandbox_id},
                   {"root_dir", manifest.root_dir},
                   {"envd", manifest.envd},
                   {"boot_id", manifest.boot_id},
                   {"host_boot_id", manifest.host_boot_id},
                   {"kernel", manifest.kernel},
                   {"criu", manifest.criu},
                   {"disk_limit_bytes", manifest.disk_limit_bytes},
                   {"loop", manifest.loop},
                   {"layers", json::array(manifest.layers.begin(), manifest.layers.end())},
                   {"mounts", EncodeMounts(manifest.mounts)},
                   {"files", std::move(files)}});
}

Result<Manifest> ParseManifest(std::string_view text) {
  try {
    json::value value = json::parse(text);
    const json::object& o = value.as_object();
    auto format = o.at("format").to_number<int64_t>();
    if (format < 1 || format > kManifestFormat)
      return Fail(Code::kFailedPrecondition,
                  "it was saved by another version of Caisson (format {}, this one reads up to {})",
                  format, kManifestFormat);
    Manifest manifest = Decode(o);
    if (NamesArePlain(manifest)) return manifest;
  } catch (const std::exception&) {
  }
  return Fail(Code::kDataLoss, "its manifest is damaged");
}

}  // namespace caisson::engine
