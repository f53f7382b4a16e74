# Writes a C++ file with the pages that explain the settings: cmake -DDOCS=docs -DOUTPUT=texts.cc -P
# setting_texts.cmake
set(text "// Made from docs/ by setting_texts.cmake.\n#include \"api/setting_routes.h\"\n\nnamespace caisson::api {\n")
foreach(pair "kOperationsText:operations.md" "kGithubText:github.md")
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 name)
  list(GET pair 1 file)
  file(READ ${DOCS}/${file} content)
  string(APPEND text "\nconst std::string_view ${name} = R\"docs(${content})docs\";\n")
endforeach()
string(APPEND text "\n}  // namespace caisson::api\n")
file(WRITE ${OUTPUT} "${text}")
