#include "build/node_package.h"

#include <boost/json/parse.hpp>

#include "work/json_fields.h"

namespace caisson::build {

namespace json = boost::json;

std::optional<NodePackage> ReadNodePackage(const Files& files) {
  auto file = files.find("package.json");
  if (file == files.end()) return std::nullopt;
  boost::system::error_code ec;
  json::value value = json::parse(file->second, ec);
  if (ec || !value.is_object()) return std::nullopt;
  const json::object& object = value.get_object();
  NodePackage package;
  for (const auto& [name, script] : work::ObjectIn(object, "scripts"))
    if (script.is_string()) package.scripts[name] = std::string(script.get_string());
  for (const char* kind : {"dependencies", "devDependencies"})
    for (const auto& [name, version] : work::ObjectIn(object, kind))
      package.dependencies.emplace(name);
  package.main = work::TextOf(object, "main");
  if (package.main.starts_with("./")) package.main.erase(0, 2);
  std::string manager = work::TextOf(object, "packageManager");
  package.manager = manager.substr(0, manager.find('@'));
  return package;
}

std::string NodePackage::Entry(const Files& files) const {
  if (files.contains(main) && CheckPath(main)) return main;
  for (const char* path : {"server.js", "index.js", "app.js", "main.js", "server.mjs", "index.mjs",
                           "src/index.js", "src/server.js"})
    if (files.contains(path)) return path;
  return "";
}

}  // namespace caisson::build
