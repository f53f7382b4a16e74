// What the files of a Python project say, as far as builds need it.
#pragma once

#include <optional>
#include <string>

#include "build/framework.h"

namespace caisson::build {

// FastAPI, Flask, Django, Streamlit: by what is required or imported.
std::optional<Framework> KnownPython(const Files& files);
// A program with a usual name.
std::optional<Framework> AnyPython(const Files& files);
// The interpreter with the project's packages, relative to the workspace.
std::string PythonProgram(const Files& files);
bool HasPython(const Files& files);
// Of Django; "" if there is none.
std::string ManagePath(const Files& files);

}  // namespace caisson::build
