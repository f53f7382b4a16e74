#include "build/framework.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace caisson::build {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Framework Detect(std::string package) {
  return DetectFramework({{"package.json", std::move(package)}});
}

TEST(Framework, Next) {
  Framework found =
      Detect(R"({"dependencies":{"next":"15"},"scripts":{"dev":"next dev -p 4000"}})");
  EXPECT_EQ(found.name, "next");
  EXPECT_EQ(found.start_command,
            "HOST=0.0.0.0 PORT=3000 npm run dev -- --hostname 0.0.0.0 --port 3000");
  EXPECT_EQ(found.port, 3000);
}

TEST(Framework, Vite) {
  Framework found = Detect(R"({"devDependencies":{"vite":"6"},"scripts":{"dev":"vite"}})");
  EXPECT_EQ(found.name, "vite");
  EXPECT_EQ(found.start_command,
            "HOST=0.0.0.0 PORT=5173 npm run dev -- --host 0.0.0.0 --strictPort --port 5173");
  EXPECT_EQ(found.port, 5173);
}

TEST(Framework, OrderMatters) {
  Framework found = Detect(
      R"({"dependencies":{"next":"15","express":"4"},"devDependencies":{"vite":"6"},
          "scripts":{"dev":"next dev"}})");
  EXPECT_EQ(found.name, "next");
  EXPECT_EQ(found.port, 3000);
  EXPECT_EQ(Detect(R"({"dependencies":{"express":"4"},"devDependencies":{"vite":"6"}})").name,
            "vite");
}

struct Case {
  const char* package;
  const char* name;
  const char* command;
  int64_t port;
};

TEST(Framework, NodeTable) {
  for (
      const Case& one : {
          Case{
              R"({"dependencies":{"react-scripts":"5"},"scripts":{"start":"react-scripts start"}})",
              "react-scripts", "npm start", 3000},
          Case{R"({"dependencies":{"express":"4"},"scripts":{"start":"node index.js"}})", "express",
               "npm start", 3000},
          Case{R"({"dependencies":{"@hono/node-server":"1"},"scripts":{"start":"node a.js"}})",
               "hono", "npm start", 3000},
          Case{R"({"dependencies":{"astro":"5","vite":"6"},"scripts":{"dev":"astro dev"}})",
               "astro", "npm run dev -- --host 0.0.0.0 --port 4321", 4321},
          Case{
              R"({"devDependencies":{"@sveltejs/kit":"2","vite":"6"},"scripts":{"dev":"vite dev"}})",
              "sveltekit", "npm run dev -- --host 0.0.0.0 --strictPort --port 5173", 5173},
          Case{R"({"dependencies":{"nuxt":"3"},"scripts":{"dev":"nuxt dev"}})", "nuxt",
               "npm run dev -- --host 0.0.0.0 --port 3000", 3000},
          Case{R"({"devDependencies":{"@remix-run/dev":"2","vite":"5"},
                    "scripts":{"dev":"remix vite:dev"}})",
               "remix", "npm run dev -- --host 0.0.0.0 --port 5173", 5173},
          Case{R"({"devDependencies":{"@react-router/dev":"7","vite":"6"},
                    "scripts":{"dev":"react-router dev"}})",
               "remix", "npm run dev -- --host 0.0.0.0 --port 5173", 5173},
          Case{R"({"devDependencies":{"@remix-run/dev":"1"},"scripts":{"dev":"remix dev"}})",
               "remix", "npm run dev", 3000},
          Case{R"({"scripts":{"dev":"node a.js","start":"node b.js"}})", "node", "npm run dev",
               3000},
          Case{R"({"scripts":{"start":"node b.js"}})", "node", "npm start", 3000},
      }) {
    Framework found = Detect(one.package);
    EXPECT_EQ(found.name, one.name) << one.package;
    EXPECT_EQ(found.start_command, fmt::format("HOST=0.0.0.0 PORT={} {}", one.port, one.command));
    EXPECT_EQ(found.port, one.port) << one.package;
  }
}

TEST(Framework, ScriptsThatAreMoreThanOneCallGetNoArguments) {
  for (const char* script : {"vite & node server.js", "vite; true", "echo vite", "vitest",
                             "vite $(cat x)", "vite > log", "vite # x"}) {
    Framework found = Detect(
        fmt::format(R"({{"devDependencies":{{"vite":"6"}},"scripts":{{"dev":"{}"}}}})", script));
    EXPECT_EQ(found.start_command, "HOST=0.0.0.0 PORT=5173 npm run dev") << script;
  }
}

TEST(Framework, NothingFromAScriptGetsIntoTheCommand) {
  Framework found = Detect(
      R"({"devDependencies":{"vite":"6; rm -rf /"},"scripts":{"dev":"vite --x 'evil'"},
          "main":"evil; touch x"})");
  EXPECT_THAT(found.start_command, Not(HasSubstr("evil")));
}

TEST(Framework, ServersWithoutScriptsAreStartedByTheirFile) {
  std::string express = R"({"dependencies":{"express":"4"},"main":"./lib/it's.js"})";
  EXPECT_EQ(DetectFramework({{"package.json", express}, {"lib/it's.js", ""}}).start_command,
            "HOST=0.0.0.0 PORT=3000 node 'lib/it'\\''s.js'");
  EXPECT_EQ(DetectFramework({{"package.json", express}, {"index.js", ""}}).start_command,
            "HOST=0.0.0.0 PORT=3000 node 'index.js'");
  EXPECT_EQ(DetectFramework({{"package.json", "{}"}, {"server.js", ""}}).name, "node");
  // The other script is better than none.
  EXPECT_THAT(Detect(R"({"dependencies":{"express":"4"},"scripts":{"dev":"node --watch a.js"}})")
                  .start_command,
              HasSubstr("npm run dev"));
}

TEST(Framework, WithoutAnythingItIsNpmRunDev) {
  for (const char* package :
       {"", "{", "[]", "null", "{}", R"({"scripts":[]})", R"({"scripts":{"dev":1}})",
        R"({"dependencies":"next"})", R"({"dependencies":{"nextish":"1"}})"}) {
    Framework found = Detect(package);
    EXPECT_EQ(found.name, "unknown") << package;
    EXPECT_EQ(found.start_command, "HOST=0.0.0.0 PORT=3000 npm run dev") << package;
    EXPECT_EQ(found.port, 3000) << package;
  }
  EXPECT_EQ(DetectFramework({}).port, 3000);
  EXPECT_EQ(Detect(std::string(10'000, '[')).name, "unknown");
}

TEST(Framework, FastApi) {
  Framework found =
      DetectFramework({{"requirements.txt", "fastapi[standard]==0.115\nuvicorn\n"},
                       {"backend/main.py", "from fastapi import FastAPI\n\napi = FastAPI()\n"}});
  EXPECT_EQ(found.name, "fastapi");
  EXPECT_EQ(found.start_command,
            ".venv/bin/python -m uvicorn backend.main:api --host 0.0.0.0 --port 8000");
  EXPECT_EQ(found.port, 8000);
}

TEST(Framework, Flask) {
  Framework found =
      DetectFramework({{"requirements.txt", "Flask~=3.0  # the server\n"},
                       {"app.py", "import flask\n\napp: flask.Flask = flask.Flask(__name__)\n"}});
  EXPECT_EQ(found.name, "flask");
  EXPECT_EQ(found.start_command,
            ".venv/bin/python -m flask --app app:app run --host 0.0.0.0 --port 5000");
  EXPECT_EQ(found.port, 5000);
  found = DetectFramework(
      {{"shop/__init__.py", "from flask import Flask\ndef create_app():\n  app = Flask('x')\n"}});
  EXPECT_EQ(found.start_command, "python3 -m flask --app shop run --host 0.0.0.0 --port 5000");
}

TEST(Framework, Django) {
  Framework found = DetectFramework(
      {{"requirements.txt", "django\n"},
       {"site/manage.py", "import os\nfrom django.core.management import x\n"},
       {"package.json",
        R"({"devDependencies":{"tailwindcss":"4"},"scripts":{"dev":"tailwind"}})"}});
  EXPECT_EQ(found.name, "django");
  EXPECT_EQ(found.start_command,
            ".venv/bin/python 'site/manage.py' migrate --noinput && .venv/bin/python "
            "'site/manage.py' runserver 0.0.0.0:8000");
  EXPECT_EQ(found.port, 8000);
}

TEST(Framework, Streamlit) {
  Framework found = DetectFramework({{"requirements.txt", "streamlit\nfastapi\n"},
                                     {"dash board.py", "import streamlit as st\n"}});
  EXPECT_EQ(found.name, "streamlit");
  EXPECT_THAT(found.start_command, HasSubstr("streamlit run 'dash board.py' --server.address"));
  EXPECT_EQ(found.port, 8501);
}

TEST(Framework, OtherPackagesOfSimilarNamesAreOthers) {
  EXPECT_EQ(DetectFramework({{"requirements.txt", "flask-cors\nmy.flask\n# flask\n"},
                             {"main.py", "import flask_cors\nfrom flaskish import x\n"}})
                .name,
            "python");
}

TEST(Framework, OtherLanguages) {
  EXPECT_EQ(DetectFramework({{"main.py", "print(1)"}}).start_command,
            "HOST=0.0.0.0 PORT=8000 python3 main.py");
  EXPECT_EQ(DetectFramework({{"go.mod", "module x"}, {"main.go", ""}}).start_command,
            "HOST=0.0.0.0 PORT=3000 go run '.'");
  EXPECT_EQ(DetectFramework({{"go.mod", "module x"}, {"cmd/shop/main.go", ""}}).start_command,
            "HOST=0.0.0.0 PORT=3000 go run './cmd/shop'");
  EXPECT_EQ(DetectFramework({{"Cargo.toml", ""}, {"src/main.rs", ""}}).name, "rust");
}

TEST(Framework, Static) {
  Framework found = DetectFramework({{"index.html", "<p>"}, {"app.js", ""}});
  EXPECT_EQ(found.name, "static");
  EXPECT_EQ(found.start_command, "python3 -m http.server 3000 --bind 0.0.0.0 --directory .");
  EXPECT_EQ(found.port, 3000);
  EXPECT_THAT(DetectFramework({{"public/index.html", ""}}).start_command, HasSubstr(" public"));
  // A package.json that starts nothing.
  EXPECT_EQ(DetectFramework({{"index.html", ""}, {"package.json", "{}"}}).name, "static");
}

}  // namespace
}  // namespace caisson::build
